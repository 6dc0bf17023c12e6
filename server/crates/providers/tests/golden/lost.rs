//! Nothing is lost in silence: each text that goes in comes out, or a note names the field in which it stood.
//!
//! Looked at from outside, and so roughly: texts that are words of a dialect (short, and without a space) are left aside, for
//! they become other words; a note of what was lost counts for a caller's text if it names a key on the way to it, and for any
//! text of an answer, of which it tells in other words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use switchyard_providers::notes::{Fate, Notes};

/// Shorter ones without a space are words of a dialect, or ids that may be mapped.
const SHORTEST: usize = 16;

/// In whose words the first text is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Caller,
    Upstream,
}

/// Keys whose texts are about the answer and not in it: names, versions and times of its making; and keys of ids and of a
/// dialect's own words, which become others.
const ABOUT: [&str; 28] = [
    "model",
    "modelVersion",
    "id",
    "responseId",
    "system_fingerprint",
    "service_tier",
    "trace",
    "created_at",
    "createTime",
    "generation_id",
    "finish_message",
    "object",
    "type",
    "role",
    "stopReason",
    "blockReason",
    "finishReason",
    "finish_reason",
    "stop_reason",
    "response_type",
    "texts",
    "include",
    "format",
    "responseMimeType",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "toolUseId",
];

/// A text, and the keys on the way to it.
struct Leaf<'a> {
    path: Vec<&'a str>,
    text: String,
}

fn leaves<'a>(value: &'a Value, path: &mut Vec<&'a str>, out: &mut Vec<Leaf<'a>>) {
    match value {
        Value::String(text) => {
            // Arguments of a call are an object here and a text there.
            if let Ok(inside @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(text) {
                let mut all = Vec::new();
                leaves(&inside, &mut Vec::new(), &mut all);
                let texts = all.into_iter().map(|leaf| leaf.text);
                out.extend(texts.map(|text| Leaf {
                    path: path.clone(),
                    text,
                }));
                return;
            }
            let text = match text.split_once(";base64,") {
                Some((_, data)) if text.starts_with("data:") => data,
                _ => text,
            };
            // Without the mark of who made a seal. Gemini's clients take them in base64 only.
            let unwrapped = STANDARD
                .decode(text)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            let text = unwrapped
                .as_deref()
                .filter(|text| text.starts_with("sy."))
                .unwrap_or(text);
            let marks = ["sy.openai.", "sy.anthropic.", "sy.gemini."];
            let text = marks.iter().find_map(|mark| text.strip_prefix(mark)).unwrap_or(text);
            out.push(Leaf {
                path: path.clone(),
                text: text.to_owned(),
            });
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, path, out)),
        Value::Object(members) => {
            for (key, member) in members {
                path.push(key);
                leaves(member, path, out);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Texts of `before` that are not in `after`, and of which no note tells.
pub(crate) fn silently(whose: Whose, before: &[u8], after: &[u8], notes: &Notes) -> Vec<String> {
    let (Ok(before), Ok(after)) = (
        serde_json::from_slice::<Value>(before),
        serde_json::from_slice::<Value>(after),
    ) else {
        return Vec::new();
    };
    let (mut said, mut told) = (Vec::new(), Vec::new());
    leaves(&before, &mut Vec::new(), &mut said);
    leaves(&after, &mut Vec::new(), &mut told);
    let told: Vec<String> = told.into_iter().map(|leaf| leaf.text).collect();
    let told = told.join("\n");
    let lost = notes
        .list()
        .iter()
        .filter(|note| matches!(note.fate, Fate::Dropped | Fate::Approximated | Fate::Mapped));
    let fields: Vec<&str> = lost.map(|note| &*note.field).collect();
    let is_told_of = |leaf: &Leaf<'_>| {
        let names =
            |key: &str, field: &str| field.split(['.', '[', '_']).any(|part| part == key) || field.starts_with(key);
        match whose {
            Whose::Caller => leaf.path.iter().any(|key| fields.iter().any(|field| names(key, field))),
            // It is told in the caller's words, not in those of the upstream.
            Whose::Upstream => !fields.is_empty(),
        }
    };
    said.iter()
        .filter(|leaf| leaf.text.contains(' ') || leaf.text.len() >= SHORTEST)
        .filter(|leaf| !leaf.path.iter().any(|key| ABOUT.contains(key)))
        .filter(|leaf| !told.contains(leaf.text.trim()) && !is_told_of(leaf))
        .map(|leaf| format!("{} is lost in silence: {:?}", leaf.path.join("."), leaf.text))
        .collect()
}
