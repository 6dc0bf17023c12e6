//! Reading a stream of server-sent events, in pieces as they arrive.
//!
//! A piece may end anywhere: inside a line, between the `\r` and the `\n` of one line's end, inside a field's name. Only
//! `data` matters here; comments (which keep the connection alive) and other fields are passed over.

/// Collects text and hands out the data of each event that is complete.
#[derive(Debug, Default)]
pub struct Reader {
    line: String,
    data: Option<String>,
    after_cr: bool,
}

impl Reader {
    /// Takes the next piece and returns the events that it completed.
    pub fn push(&mut self, piece: &str) -> Vec<String> {
        let mut events = Vec::new();
        for character in piece.chars() {
            let second_half = std::mem::take(&mut self.after_cr) && character == '\n';
            match character {
                _ if second_half => {}
                '\r' | '\n' => {
                    self.after_cr = character == '\r';
                    events.extend(self.end_line());
                }
                other => self.line.push(other),
            }
        }
        events
    }

    /// At the end of the stream: an event whose closing empty line never came. The standard drops it; an error chunk that
    /// was the last thing a dying upstream said is worth more than that.
    pub fn finish(mut self) -> Option<String> {
        self.end_line();
        self.data
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take();
        }
        let value = line.strip_prefix("data")?;
        let value = match value.strip_prefix(':') {
            Some(value) => value.strip_prefix(' ').unwrap_or(value),
            None if value.is_empty() => "",
            None => return None,
        };
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    const STREAM: &str = ": keep-alive\r\n\r\nevent: x\r\ndata: {\"a\":\"é\"}\r\n\r\ndata: one\ndata:two\n\n: more\n\ndatax: no\n\ndata: [DONE]\n\n";

    #[test]
    fn every_cut_gives_the_same_events() {
        let whole = Reader::default().push(STREAM);
        assert_eq!(whole, ["{\"a\":\"é\"}", "one\ntwo", "[DONE]"]);
        for (cut, _) in STREAM.char_indices() {
            let mut reader = Reader::default();
            let mut events = reader.push(&STREAM[..cut]);
            events.extend(reader.push(&STREAM[cut..]));
            assert_eq!(events, whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_last_event_without_its_empty_line_is_kept() {
        let mut reader = Reader::default();
        assert!(reader.push("data: {\"error\":1}").is_empty());
        assert_eq!(reader.finish().as_deref(), Some("{\"error\":1}"));
        assert_eq!(Reader::default().finish(), None);
    }
}
