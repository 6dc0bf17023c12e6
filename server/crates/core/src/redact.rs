//! Takes credentials out of texts that leave: error messages of upstreams, above all.
//!
//! An upstream that refuses a key likes to quote it. What looks like a credential is replaced by its first characters and
//! an ellipsis before a message reaches a caller, a log or a record.

/// Shortest run that can be a credential after a known prefix.
const SHORTEST: usize = 12;

/// Words that credentials of known makers begin with.
const PREFIXES: [&str; 12] = [
    "sk-", "sk_", "sy_", "sys_", "pk-", "rk_", "gsk_", "xai-", "AIza", "hf_", "fgw_", "eyJ",
];

/// The text with everything that looks like a credential cut down to its prefix, and without any of `known`.
#[must_use]
pub fn redact(text: &str, known: &[&str]) -> String {
    let mut clean = text.to_owned();
    for secret in known.iter().filter(|secret| secret.len() >= SHORTEST) {
        clean = clean.replace(secret, "[credential]");
    }
    let mut out = String::with_capacity(clean.len());
    let mut rest = clean.as_str();
    while let Some(start) = rest.find(|c: char| is_part(c)) {
        out.push_str(&rest[..start]);
        let run = &rest[start..];
        let end = run.find(|c: char| !is_part(c)).unwrap_or(run.len());
        let (word, tail) = run.split_at(end);
        match PREFIXES
            .iter()
            .find(|prefix| word.starts_with(**prefix) && word.len() >= prefix.len() + SHORTEST)
        {
            Some(prefix) => {
                out.push_str(prefix);
                out.push('…');
            }
            None if out.ends_with("Bearer ") && word.len() >= SHORTEST => out.push('…'),
            None => out.push_str(word),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// `*` is one: upstreams mask keys themselves (`sk-abc***xyz`), and the ends are still too much.
const fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*')
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn credentials_are_cut_and_words_stay() {
        for (text, want) in [
            (
                "Incorrect API key provided: sk-proj-abcdefghijkl1234. See docs",
                "Incorrect API key provided: sk-… See docs",
            ),
            ("key sk-abc***********xyz is wrong", "key sk-… is wrong"),
            ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer …"),
            (
                "ask-me-anything about risk-free sk-short",
                "ask-me-anything about risk-free sk-short",
            ),
            ("token=eyJhbGciOiJIUzI1NiJ9.e30.sig", "token=eyJ…"),
            ("the secret hunter2hunter2 is out", "the secret [credential] is out"),
        ] {
            assert_eq!(redact(text, &["hunter2hunter2", "a"]), want);
        }
    }
}
