//! The last call as it went over the line: what was sent, and what came back before anything was made of it.

/// Bytes of an answer that are kept. More would only make the page slow.
pub const MOST: usize = 64 << 10;

/// A call and its answer, as far as it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    /// Counts calls, so that whoever shows one notices the next.
    pub number: u32,
    pub path: String,
    /// The request's body.
    pub sent: String,
    /// Before the answer's head is there, 0.
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The beginning of the answer's body, at most [`MOST`] bytes.
    pub raw: String,
    /// Bytes that came in all.
    pub bytes: usize,
    pub events: usize,
}

impl Wire {
    /// A call that is about to be sent, after that with the number `before`.
    pub fn asked(before: u32, path: String, sent: String) -> Self {
        Self {
            number: before.wrapping_add(1),
            path,
            sent,
            ..Self::default()
        }
    }

    /// Adds a piece of the body.
    pub fn take(&mut self, piece: &str) {
        self.bytes += piece.len();
        let room = MOST.saturating_sub(self.raw.len());
        // Once something was left out, all that follows is: what is shown has no holes.
        if self.bytes - piece.len() <= self.raw.len() {
            self.raw.push_str(&piece[..piece.floor_char_boundary(room)]);
        }
    }

    /// Something came that is not kept.
    pub fn is_cut(&self) -> bool {
        self.bytes > self.raw.len()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(this, _)| this == name);
        found.map(|(_, value)| value.clone())
    }
}

/// Whether a header says something about the call, and not about connections and caches. Names are in lower case.
pub fn is_telling(name: &str) -> bool {
    const ALSO: [&str; 5] = [
        "content-type",
        "x-request-id",
        "request-id",
        "retry-after",
        "server-timing",
    ];
    name.starts_with("x-gateway-") || ALSO.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_no_holes_and_ends_between_characters() {
        let mut wire = Wire::asked(4, "/v1/messages".to_owned(), "{}".to_owned());
        assert_eq!((wire.number, wire.is_cut()), (5, false));
        wire.take("data: é\n\n");
        assert!(!wire.is_cut());
        wire.take(&"é".repeat(MOST / 2));
        assert!(wire.is_cut() && wire.raw.len() <= MOST && wire.raw.len() > MOST - 2);
        let kept = wire.raw.len();
        wire.take("x");
        assert_eq!((wire.raw.len(), wire.bytes), (kept, 10 + MOST + 1));
    }

    #[test]
    fn headers_of_the_gateway_are_telling() {
        assert!(is_telling("x-gateway-translation") && is_telling("x-request-id"));
        assert!(!is_telling("content-security-policy") && !is_telling("date"));
    }
}
