//! Requests that are in this dialect already, before they go up.

use super::address::is_older;
use super::request::NO_SIGNATURE;
use super::told::read_seal;
use crate::ir::Maker;
use crate::json::{member, quoted, splice};
use crate::notes::Notes;
use crate::skim::{Skim, Span, Written, Wrong};
use bytes::Bytes;
use memchr::memmem;
use std::ops::Range;

type Edits = Vec<(Range<usize>, Vec<u8>)>;

/// A part of a content, as far as signatures go.
#[derive(Default)]
struct Part {
    at: Range<usize>,
    /// Behind the value of its `functionCall`.
    call_end: Option<usize>,
    /// Another vendor's: its key, and where the value stands.
    foreign: Vec<(&'static str, Span)>,
    has_own: bool,
    /// It says something besides.
    has_content: bool,
}

/// The body without the signatures of models behind other wires, which the gateway wrote into earlier answers: Google refuses
/// the whole request for one. The first call of such a turn gets the documented text in its place, where the model wants one.
/// All else stays as it was written.
pub(super) fn without_foreign_seals(body: &Bytes, model: &str, notes: &mut Notes) -> Bytes {
    let may_have = |key: &str| memmem::find(body, key.as_bytes()).is_some();
    if !may_have("houghtSignature") && !may_have("thought_signature") {
        return body.clone();
    }
    let mut edits = Vec::new();
    let needs_one = !is_older(model);
    let read = lists_of_parts(body, |parts| amend(body, &parts, needs_one, &mut edits));
    // What cannot be read is Google's to refuse.
    if read.is_err() || edits.is_empty() {
        return body.clone();
    }
    notes.dropped(
        "contents[].parts[].thoughtSignature",
        "signed by another vendor, and only its maker takes it back",
    );
    splice(body, edits)
}

/// Hands out the parts of each content. There may be one thing where a list has to be, as elsewhere in this dialect.
fn lists_of_parts(body: &[u8], mut with: impl FnMut(Vec<Part>)) -> Result<(), Wrong> {
    let mut skim = Skim::new(body);
    skim.enter_object()?;
    while let Some(name) = skim.name()? {
        if name.of(body).says("contents") != Some(true) {
            skim.skip()?;
            continue;
        }
        each(&mut skim, body, |skim| {
            if !skim.enter_if(b'{')? {
                return Ok(());
            }
            while let Some(name) = skim.name()? {
                if name.of(body).says("parts") != Some(true) {
                    skim.skip()?;
                    continue;
                }
                let mut parts = Vec::new();
                each(skim, body, |skim| {
                    parts.push(part(skim, body)?);
                    Ok(())
                })?;
                with(parts);
            }
            Ok(())
        })?;
    }
    skim.finish()
}

fn each<'a>(
    skim: &mut Skim<'a>,
    body: &[u8],
    mut with: impl FnMut(&mut Skim<'a>) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let start = skim.value_start();
    if body.get(start) != Some(&b'[') {
        return with(skim);
    }
    skim.enter(b'[')?;
    while skim.item()? {
        with(skim)?;
    }
    Ok(())
}

fn part(skim: &mut Skim<'_>, body: &[u8]) -> Result<Part, Wrong> {
    let start = skim.value_start();
    let mut part = Part::default();
    if !skim.enter_if(b'{')? {
        part.has_content = true;
        part.at = skim.span_from(start).range();
        return Ok(part);
    }
    while let Some(name) = skim.name()? {
        let span = skim.value()?;
        let value = span.of(body);
        match name.of(body).bytes() {
            br#""thoughtSignature""# if is_foreign(value) => part.foreign.push(("thoughtSignature", span)),
            br#""thought_signature""# if is_foreign(value) => part.foreign.push(("thought_signature", span)),
            br#""thoughtSignature""# | br#""thought_signature""# => part.has_own |= !value.is_empty(),
            br#""thought""# => {}
            br#""functionCall""# | br#""function_call""# => {
                part.has_content = true;
                part.call_end = Some(span.end);
            }
            _ => part.has_content |= !value.is_empty(),
        }
    }
    part.at = skim.span_from(start).range();
    Ok(part)
}

fn is_foreign(value: Written<'_>) -> bool {
    // Every mark begins with `sy.`, and its Base64 with the same three bytes of it: others need not be decoded.
    value
        .text()
        .filter(|text| text.starts_with("c3ku") || text.starts_with("sy."))
        .is_some_and(|text| read_seal(&text).maker != Maker::Gemini)
}

/// What has to change in one content.
fn amend(body: &[u8], parts: &[Part], needs_one: bool, edits: &mut Edits) {
    if parts.iter().all(|part| part.foreign.is_empty()) {
        return;
    }
    // The seal of a turn may stand at its thought, and its first call is refused without one all the same.
    let has_own = parts.iter().any(|part| part.has_own);
    let first_call = parts.iter().position(|part| part.call_end.is_some());
    let first_call = first_call.filter(|_| needs_one && !has_own);
    // A part that had nothing but a seal goes as a whole: an empty one is refused too. Unless there would be none then.
    let goes = |part: &Part| !part.foreign.is_empty() && !part.has_own && !part.has_content;
    let last_kept = parts.iter().rposition(|part| !goes(part));
    for (index, part) in parts.iter().enumerate() {
        if let Some(last) = last_kept.filter(|_| goes(part)) {
            if let Some(next) = parts.get(index + 1).filter(|_| index < last) {
                edits.push((part.at.start..next.at.start, Vec::new()));
            }
            continue;
        }
        let mut foreign = part.foreign.iter();
        if first_call == Some(index) {
            if let Some((_, span)) = foreign.next() {
                edits.push((span.range(), quoted(NO_SIGNATURE)));
            } else if let Some(end) = part.call_end {
                let member = format!(r#","thoughtSignature":"{NO_SIGNATURE}""#);
                edits.push((end..end, member.into_bytes()));
            }
        } else if let Some((key, span)) = foreign.next()
            && let Some(range) = member(body, key, span.range())
        {
            edits.push((range, Vec::new()));
        }
        // Whoever writes it twice: two members that go could not share the comma between them.
        edits.extend(foreign.map(|(_, span)| (span.range(), b"null".to_vec())));
    }
    if let (Some(last), Some(end)) = (last_kept.and_then(|last| parts.get(last)), parts.last())
        && last.at.end < end.at.end
    {
        edits.push((last.at.end..end.at.end, Vec::new()));
    }
}

#[cfg(test)]
mod tests {
    use super::{NO_SIGNATURE, without_foreign_seals};
    use crate::gemini::told::write_seal;
    use crate::ir::{Maker, Seal};
    use crate::notes::{Fate, Notes};
    use bytes::Bytes;

    /// `F` stands for another vendor's, `N` for the text in its place.
    #[track_caller]
    fn check(model: &str, parts: &str, want: &str) {
        for foreign in [
            write_seal(&Seal::new(Maker::Anthropic, "EqQB+/=")),
            write_seal(&Seal::new(Maker::OpenAi, "gAAA")),
            write_seal(&Seal::new(Maker::OpenAi, "gAAA?>"))
                .replace('+', "-")
                .replace('/', "_"),
            "sy.anthropic.x".to_owned(),
        ] {
            let whole = |parts: &str| {
                let parts = parts.replace("\"F\"", &format!("\"{foreign}\""));
                let parts = parts.replace("\"N\"", &format!("\"{NO_SIGNATURE}\""));
                format!(
                    r#"{{"x": 1.50, "contents" : [ {{"parts":{parts},"role":"model"}},{{"parts":[{{"text":"é"}}]}} ]}}"#
                )
            };
            let mut notes = Notes::default();
            let body = Bytes::from(whole(parts));
            let made = without_foreign_seals(&body, model, &mut notes);
            assert_eq!(String::from_utf8_lossy(&made), whole(want), "{parts}");
            assert_eq!(notes.count(Fate::Dropped), u32::from(parts != want), "{parts}");
            let _: serde_json::Value = serde_json::from_slice(&made).unwrap();
        }
    }

    const NEW: &str = "models/gemini-3-pro-preview";

    #[test]
    fn what_is_not_foreign_stays_as_it_was_written() {
        for parts in [
            r#"[{"functionCall": {"name":"f"}, "thoughtSignature" : "CiQB_-8"}]"#,
            r#"[{"text":"c3ku thoughtSignature"}, {"functionCall":{"args":{"thoughtSignature":"F"}}}]"#,
            r#"[{"text":"t","thoughtSignature":null},{"text":"u","thought_signature":7}, "thoughtSignature"]"#,
            r#"[{"text":"t","thoughtSignature":"c3kuOTk5"},{"functionCall":{}}]"#,
        ] {
            check(NEW, parts, parts);
        }
        // Nor is what cannot be read.
        let odd = Bytes::from_static(br#"{"contents":[{"parts":[{"thoughtSignature":"sy.openai.x"}]}]"#);
        let mut notes = Notes::default();
        assert_eq!(without_foreign_seals(&odd, NEW, &mut notes), odd);
        assert!(notes.is_empty());
    }

    #[test]
    fn foreign_seals_go_and_the_first_call_gets_the_documented_text() {
        let calls = r#"[{"functionCall":{"name":"f"}, "thoughtSignature" : "F"}, {"thought_signature":"F","functionCall":{"name":"g"}}]"#;
        check(
            NEW,
            calls,
            r#"[{"functionCall":{"name":"f"}, "thoughtSignature" : "N"}, {"functionCall":{"name":"g"}}]"#,
        );
        check(
            "gemini-2.5-flash",
            calls,
            r#"[{"functionCall":{"name":"f"}}, {"functionCall":{"name":"g"}}]"#,
        );
        // The seal stood at the thought.
        let thought = r#"[{"text":"hm","thought":true,"thoughtSignature":"F"},{"functionCall":{"name":"f"}}]"#;
        check(
            NEW,
            thought,
            r#"[{"text":"hm","thought":true},{"functionCall":{"name":"f"},"thoughtSignature":"N"}]"#,
        );
        check(
            "gemini-2.5-flash",
            thought,
            r#"[{"text":"hm","thought":true},{"functionCall":{"name":"f"}}]"#,
        );
        // The model's own is there already.
        check(
            NEW,
            r#"[{"text":"hm","thoughtSignature":"F"},{"functionCall":{},"thoughtSignature":"S"}]"#,
            r#"[{"text":"hm"},{"functionCall":{},"thoughtSignature":"S"}]"#,
        );
        check(
            NEW,
            r#"{"text":"one","thoughtSignature":"F","thought_signature":"F"}"#,
            r#"{"text":"one","thought_signature":null}"#,
        );
    }

    #[test]
    fn a_part_that_was_nothing_but_a_seal_goes_with_it() {
        let hollow = r#"{"text":"","thought":true,"thoughtSignature":"F"}"#;
        check(
            "gemini-2.5-pro",
            &format!(r#"[{hollow}, {hollow},{{"text":"t"}} ]"#),
            r#"[{"text":"t"} ]"#,
        );
        check(
            "gemini-2.5-pro",
            &format!(r#"[{{"text":"t"}}, {hollow}, {hollow} ]"#),
            r#"[{"text":"t"} ]"#,
        );
        check(
            NEW,
            &format!(r#"[{{"text":"t"}}, {hollow}, {{"functionCall":{{}}}}, {hollow}]"#),
            r#"[{"text":"t"}, {"functionCall":{},"thoughtSignature":"N"}]"#,
        );
        check(NEW, &format!("[{hollow}]"), r#"[{"text":"","thought":true}]"#);
    }
}
