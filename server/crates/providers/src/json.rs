//! Small tools for JSON that is looked at without being taken apart.

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::ops::Range;

/// A field that is there, be it `null`. (`Option<&RawValue>` alone reads `null` as absent.)
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a JSON object. (Alone, serde would take a list for a struct too, field by field.)
pub(crate) fn object<'de, T: Deserialize<'de>>(document: &'de [u8]) -> Result<T, serde_json::Error> {
    if document.trim_ascii_start().starts_with(b"[") {
        return Err(serde::de::Error::custom("this is a list"));
    }
    serde_json::from_slice(document)
}

/// Where `value`, borrowed from `document`, stands in it.
pub(crate) fn span(document: &[u8], value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr().saturating_sub(document.as_ptr().addr());
    start..start + value.get().len()
}

/// `null`, `""`, `[]`, `{}` and white space around them say nothing.
pub(crate) fn is_empty(value: &RawValue) -> bool {
    let text = value.get().trim();
    matches!(text, "null" | "\"\"" | "[]" | "{}")
        || (text.len() > 2
            && (text.starts_with('[') || text.starts_with('{'))
            && text
                .get(1..text.len() - 1)
                .is_some_and(|inside| inside.trim().is_empty()))
}

pub(crate) fn is_null(value: &RawValue) -> bool {
    value.get().trim() == "null"
}

/// The document with some ranges replaced. Without edits these are the same bytes, not a copy.
pub(crate) fn splice(document: &Bytes, mut edits: Vec<(Range<usize>, Vec<u8>)>) -> Bytes {
    if edits.is_empty() {
        return document.clone();
    }
    edits.sort_by_key(|(range, _)| range.start);
    let grown: usize = edits.iter().map(|(_, text)| text.len()).sum();
    let mut out = BytesMut::with_capacity(document.len() + grown);
    let mut at = 0;
    for (range, text) in edits {
        out.extend_from_slice(&document[at..range.start]);
        out.extend_from_slice(&text);
        at = range.end;
    }
    out.extend_from_slice(&document[at..]);
    out.freeze()
}

/// A text as a JSON string, quotes included.
pub(crate) fn quoted(text: &str) -> Vec<u8> {
    serde_json::to_vec(text).unwrap_or_default()
}

/// The range that takes a whole `"key": value` out of an object, with the one comma that goes with it.
///
/// `value` is the value's range. `None` when the bytes before it are not a key (which cannot be, for a parsed object).
pub(crate) fn member(document: &[u8], key: &str, value: Range<usize>) -> Option<Range<usize>> {
    let before = |end: usize| document[..end].iter().rposition(|b| !b.is_ascii_whitespace());
    let colon = before(value.start).filter(|&at| document[at] == b':')?;
    let quote = before(colon).filter(|&at| document[at] == b'"')?;
    let start = quote.checked_sub(key.len() + 1)?;
    if document.get(start + 1..quote)? != key.as_bytes() {
        return None;
    }
    if let Some(comma) = before(start).filter(|&at| document[at] == b',') {
        return Some(comma..value.end);
    }
    let after = document[value.end..]
        .iter()
        .position(|b| !b.is_ascii_whitespace())
        .map_or(value.end, |n| value.end + n);
    Some(
        start..if document.get(after) == Some(&b',') {
            after + 1
        } else {
            value.end
        },
    )
}

#[cfg(test)]
mod tests {
    use super::{is_empty, member, splice};
    use bytes::Bytes;
    use serde_json::value::RawValue;

    #[test]
    fn a_member_leaves_with_its_comma() {
        for (document, want) in [
            (r#"{"a":1,"usage":null,"b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"usage" : null , "b":2}"#, r#"{ "b":2}"#),
            (r#"{"a":1, "usage":null}"#, r#"{"a":1}"#),
            (r#"{"usage":null}"#, "{}"),
        ] {
            let at = document.find("null").unwrap();
            let range = member(document.as_bytes(), "usage", at..at + 4).unwrap();
            assert_eq!(splice(&Bytes::from(document), vec![(range, Vec::new())]), want);
        }
        assert_eq!(member(br#"{"use":null}"#, "usage", 7..11), None);
    }

    #[test]
    fn empty_values_say_nothing() {
        for (text, empty) in [
            ("null", true),
            ("\"\"", true),
            ("[]", true),
            ("{ }", true),
            ("\" \"", false),
            ("[1]", false),
            ("0", false),
        ] {
            assert_eq!(
                is_empty(&RawValue::from_string(text.to_owned()).unwrap()),
                empty,
                "{text}"
            );
        }
    }
}
