//! What a token is here.
//!
//! A token is up to five characters of a word, together with the white space before them. In ordinary prose that comes
//! to about four characters a token, as with the real thing. One function splits, and everything is counted in its
//! pieces: a prompt, an answer, `max_tokens`, the frames of a stream. So the figures agree with each other.

const LONGEST: usize = 5;

/// Splits a text into its tokens. Joined, they are the text again.
pub(super) fn split(text: &str) -> Tokens<'_> {
    Tokens { rest: text }
}

pub(super) fn count(text: &str) -> usize {
    split(text).count()
}

/// The first `limit` tokens of a text, when it has more than that.
pub(super) fn truncated(text: &str, limit: usize) -> Option<&str> {
    let length = split(text).take(limit).map(str::len).sum::<usize>();
    if length < text.len() { text.get(..length) } else { None }
}

pub(super) struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let blank = self.rest.len() - self.rest.trim_start().len();
        let word = &self.rest[blank..];
        let length = word
            .char_indices()
            .enumerate()
            .find(|(nth, (_, char))| *nth == LONGEST || char.is_whitespace())
            .map_or(word.len(), |(_, (at, _))| at);
        let (token, rest) = self.rest.split_at(blank + length);
        self.rest = rest;
        Some(token)
    }
}
