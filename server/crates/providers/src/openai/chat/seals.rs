//! Marked seals, taken out of a request that goes up as it came.
//!
//! The marks are made for callers, who bring them back when the same conversation goes on; they are read where a request is taken
//! apart. One that is passed on as it is would take them to an upstream for which they are no signature of anybody's, and which
//! may refuse the whole request for one.

use crate::ir::{Maker, Seal};
use crate::json::splice;
use crate::skim::{Skim, Span, Wrong};
use bytes::Bytes;
use std::ops::Range;

/// How every marked seal begins, as it is written.
const MARKED: &[u8] = br#""sy."#;

/// Where in a request a value stands, as far as there may be seals in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Body,
    Messages,
    Message,
    Details,
    Detail,
    Calls,
    Call,
    Extra,
    Google,
    /// The text itself.
    Seal,
}

impl Place {
    /// The place of a member, by its key as it is written.
    fn member(self, key: &[u8]) -> Option<Self> {
        Some(match (self, key) {
            (Self::Body, br#""messages""#) => Self::Messages,
            (Self::Message, br#""reasoning_details""#) => Self::Details,
            (Self::Message, br#""tool_calls""#) => Self::Calls,
            (Self::Message | Self::Call, br#""extra_content""#) => Self::Extra,
            (Self::Extra, br#""google""#) => Self::Google,
            (Self::Detail, br#""signature""# | br#""data""#) | (Self::Google, br#""thought_signature""#) => Self::Seal,
            _ => return None,
        })
    }

    /// The place of every item.
    const fn item(self) -> Option<Self> {
        match self {
            Self::Messages => Some(Self::Message),
            Self::Details => Some(Self::Detail),
            Self::Calls => Some(Self::Call),
            _ => None,
        }
    }
}

/// The request without the seals that bear a mark. All other bytes stay, and without such a seal it is the request itself.
pub(crate) fn without_foreign_seals(body: &Bytes) -> Bytes {
    // Nearly no request has one, and to see that takes no reading.
    if memchr::memmem::find(body, MARKED).is_none() {
        return body.clone();
    }
    let mut skim = Skim::new(body);
    let mut gone = Vec::new();
    let read = walk(&mut skim, body, Place::Body, &mut gone).and_then(|()| skim.finish());
    // What cannot be read is for others to refuse.
    if read.is_err() {
        return body.clone();
    }
    splice(body, gone.into_iter().map(|range| (range, Vec::new())).collect())
}

fn walk(skim: &mut Skim<'_>, body: &[u8], place: Place, gone: &mut Vec<Range<usize>>) -> Result<(), Wrong> {
    let Some(item) = place.item() else {
        return members(skim, body, place, gone);
    };
    if skim.enter_if(b'[')? {
        while skim.item()? {
            walk(skim, body, item, gone)?;
        }
    }
    Ok(())
}

/// A member leaves with the comma before it or, where nothing is kept before it, with the one behind.
fn members(skim: &mut Skim<'_>, body: &[u8], place: Place, gone: &mut Vec<Range<usize>>) -> Result<(), Wrong> {
    if !skim.enter_if(b'{')? {
        return Ok(());
    }
    let mut has_kept = false;
    // Where the member before ended, and where the first ones began if they leave.
    let (mut end, mut first) = (0, None);
    while let Some(name) = skim.name()? {
        let is_gone = match place.member(name.of(body).bytes()) {
            Some(Place::Seal) => is_marked(skim.value()?, body),
            Some(inner) => walk(skim, body, inner, gone).map(|()| false)?,
            None => skim.skip().map(|()| false)?,
        };
        let before = std::mem::replace(&mut end, skim.span_from(0).end);
        if !is_gone {
            gone.extend(first.take().map(|start| start..name.start));
            has_kept = true;
        } else if has_kept {
            gone.push(before..end);
        } else {
            first.get_or_insert(name.start);
        }
    }
    gone.extend(first.map(|start| start..end));
    Ok(())
}

fn is_marked(value: Span, body: &[u8]) -> bool {
    let text = value.of(body).text();
    // Whoever reads a seal takes its mark off.
    text.is_some_and(|text| Seal::read(&text, Maker::OpenAi).data != *text)
}

#[cfg(test)]
mod tests {
    use super::without_foreign_seals;
    use bytes::Bytes;
    use serde_json::Value;

    #[test]
    fn marked_seals_leave_and_nothing_else() {
        for (message, want) in [
            (
                r#"{"reasoning_details": [ {"type":"reasoning.text", "text":"é", "signature" : "sy.anthropic.Eq+/=" , "index":0} ]}"#,
                r#"{"reasoning_details": [ {"type":"reasoning.text", "text":"é" , "index":0} ]}"#,
            ),
            (
                r#"{"reasoning_details":[{"data":"sy.gemini.x", "type":"reasoning.encrypted"},{"data":"gAAA"},7]}"#,
                r#"{"reasoning_details":[{"type":"reasoning.encrypted"},{"data":"gAAA"},7]}"#,
            ),
            (
                r#"{"reasoning_details":[{"signature":"sy.openai.x","data":"sy.openai.y","index":0,"data":"sy.gemini."}]}"#,
                r#"{"reasoning_details":[{"index":0}]}"#,
            ),
            (
                r#"{"reasoning_details":[{"index":0,"signature":"sy.openai.x","data":"sy.openai.y"}]}"#,
                r#"{"reasoning_details":[{"index":0}]}"#,
            ),
            (
                r#"{"reasoning_details":[{ "signature":"sy.openai.x", "data":"sy.openai.y" }]}"#,
                r#"{"reasoning_details":[{  }]}"#,
            ),
            (
                r#"{"tool_calls":[{"id":"a","extra_content":{"google":{"thought_signature":"sy.openai.x"}}},{"id":"b"}]}"#,
                r#"{"tool_calls":[{"id":"a","extra_content":{"google":{}}},{"id":"b"}]}"#,
            ),
            (
                r#"{"extra_content":{"google":{"a":1,"thought_signature":"sy.anthropic.x"},"b":2}}"#,
                r#"{"extra_content":{"google":{"a":1},"b":2}}"#,
            ),
        ] {
            let whole = |message: &str| {
                format!(r#" {{"model":"m", "messages": [{{"role":"user","content":"\"sy. é"}} ,{message}],"n":1e0}}"#)
            };
            let body = Bytes::from(whole(message));
            let read = without_foreign_seals(&body);
            assert_eq!(read, whole(want));
            serde_json::from_slice::<Value>(&read).unwrap();
        }
    }

    #[test]
    fn all_else_is_passed_on_byte_by_byte() {
        for body in [
            r#"{"messages":[{"role":"user","content":"Hi"}]}"#,
            r#"{"messages":[{"role":"user","content":"sy.anthropic.x"}],"data":"sy.openai.x"}"#,
            r#"{"messages":[{"role":"user","signature":"sy.openai.x","tool_calls":[{"data":"sy.gemini.x"}]}]}"#,
            r#"{ "messages":[{"reasoning_details":[{"signature":"sy.other.x","data":"sy."}, "sy.openai.x"]}] }"#,
            r#"{"messages":[{"reasoning_details":{"signature":"sy.openai.x"}}, ["sy.openai.x"], null]}"#,
            r#"{"messages":[{"tool_calls":[{"extra_content":{"google":{"thought_signature":"c2ln"}},"x":"sy."}]}]}"#,
            r#"{"messages":"sy.openai.x"}"#,
            r#"["sy.openai.x"]"#,
            r#"{"messages":[{"reasoning_details":[{"signature":"sy.openai.x"}]}]"#,
            r#""sy."#,
            "",
        ] {
            let body = Bytes::from(body);
            let read = without_foreign_seals(&body);
            assert_eq!((&read, read.as_ptr()), (&body, body.as_ptr()), "not even a copy");
        }
        let no_utf8 = Bytes::from_static(b"{\"messages\":[{\"reasoning_details\":[{\"data\":\"sy.openai.\xff\"}]}]}");
        assert_eq!(without_foreign_seals(&no_utf8), no_utf8);
    }
}
