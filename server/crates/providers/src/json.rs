//! Small tools for JSON that is looked at without being taken apart.

use crate::skim::{Skim, Span, Wrong};
use bytes::{Bytes, BytesMut};
use memchr::memchr;
use std::borrow::Cow;
use std::ops::Range;

/// Hands out the items of a list, or the keys and values of an object, one by one and unread: what is odd about one says
/// nothing about the next. `false` if the document is neither, or not valid to its end.
pub(crate) fn each<'a>(document: &'a str, mut with: impl FnMut(Option<&'a str>, &'a str)) -> bool {
    let written = |span: Span| document.get(span.range()).unwrap_or_default();
    let mut read = || -> Result<(), Wrong> {
        let mut skim = Skim::new(document.as_bytes());
        if document.trim_ascii_start().starts_with('[') {
            skim.enter(b'[')?;
            while skim.item()? {
                with(None, written(skim.value()?));
            }
        } else {
            skim.enter_object()?;
            while let Some(name) = skim.name()? {
                with(Some(written(name)), written(skim.value()?));
            }
        }
        skim.finish()
    };
    read().is_ok()
}

/// What stands between the quotes of a JSON string, escapes and all.
pub(crate) fn inside(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

/// Undoes the escapes of JSON. A surrogate without its other half becomes U+FFFD; what is no escape stays.
pub(crate) fn unescaped(written: &str) -> Cow<'_, str> {
    let mut rest = written;
    let mut out = String::new();
    while let Some((before, escape)) = memchr(b'\\', rest.as_bytes()).map(|at| rest.split_at(at)) {
        if out.is_empty() {
            out.reserve(written.len());
        }
        out.push_str(before);
        let (meant, length) = read_escape(escape);
        out.push(meant);
        rest = escape.get(length..).unwrap_or_default();
    }
    if rest.len() == written.len() {
        return Cow::Borrowed(written);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What an escape at the start of a text means, and how long it is.
fn read_escape(text: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    if let Some(first) = unit(0) {
        let pair = [Some(first), unit(6)].into_iter().flatten();
        let meant = char::decode_utf16(pair).next().and_then(Result::ok);
        let meant = meant.unwrap_or(char::REPLACEMENT_CHARACTER);
        return (meant, 6 * meant.len_utf16());
    }
    match text.as_bytes().get(1) {
        Some(b'n') => ('\n', 2),
        Some(b't') => ('\t', 2),
        Some(b'r') => ('\r', 2),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(&plain @ (b'"' | b'\\' | b'/')) => (char::from(plain), 2),
        _ => ('\\', 1),
    }
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
    use super::{each, member, splice, unescaped};
    use bytes::Bytes;

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
    fn escapes_are_undone_even_where_they_make_no_sense() {
        for (written, want) in [
            ("", ""),
            ("é", "é"),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r"a\u00e9b\uD83D\uDE00c", "aéb😀c"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ud83d\n\ude00x", "\u{fffd}\n\u{fffd}x"),
            (r"\ud83d\u0061", "\u{fffd}a"),
            (r"\u12", r"\u12"),
            (r"\ué234", r"\ué234"),
            (r"\x\", r"\x\"),
        ] {
            assert_eq!(unescaped(written), want, "{written}");
        }
    }

    #[test]
    fn items_and_members_come_one_by_one() {
        for (document, whole, want) in [
            (r#"[1, "\ud83d" ,{"a":[]}]"#, true, r#"1|"\ud83d"|{"a":[]}"#),
            (r#"{"a" : 1,"\ud83d":null,"a":2}"#, true, r#""a"=1|"\ud83d"=null|"a"=2"#),
            ("[]", true, ""),
            ("[1,", false, "1"),
            ("7", false, ""),
        ] {
            let mut seen = Vec::new();
            let done = each(document, |key, value| {
                let key = key.map(|key| format!("{key}=")).unwrap_or_default();
                seen.push(format!("{key}{value}"));
            });
            assert_eq!((done, seen.join("|").as_str()), (whole, want), "{document}");
        }
    }
}
