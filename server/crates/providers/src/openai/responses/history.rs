//! What the gateway keeps of a conversation for upstreams that keep nothing.

use super::OURS;
use crate::json::{member, splice};
use crate::skim::{Skim, Span};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::BuildHasher;
use switchyard_core::error::{Error, Kind};

/// An item of a conversation, as it stands in `input` or `output`.
pub type Item = Value;

/// Where the members of a request stand that have to change.
#[derive(Default)]
struct View {
    input: Option<Span>,
    previous: Option<Span>,
    /// Behind the brace with which it begins.
    start: usize,
    members: usize,
}

fn view(body: &[u8]) -> Result<View, Error> {
    let mut skim = Skim::new(body);
    let mut view = View {
        start: skim.value_start() + 1,
        ..View::default()
    };
    let mut read = || {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            view.members += 1;
            match key {
                b"input" => skim.fill(&mut view.input, "input")?,
                b"previous_response_id" => skim.fill(&mut view.previous, "previous_response_id")?,
                _ => skim.skip()?,
            }
        }
        skim.finish()
    };
    match read() {
        Ok(()) => Ok(view),
        Err(wrong) => Err(malformed(&skim.explain(wrong))),
    }
}

fn malformed(what: &str) -> Error {
    Error::new(
        Kind::InvalidRequest,
        format!("the body is not a valid JSON object: {what}"),
    )
}

fn wrong_input() -> Error {
    let message = "`input` must be a text or a list of items";
    Error::new(Kind::InvalidRequest, message).with_param("input")
}

/// A request with what was said before in front of its own input, and without the name of the answer that it carries on from.
/// All other bytes stay.
///
/// # Errors
/// `InvalidRequest` when the body is no object, or its input neither a text nor a list.
pub fn merge(body: &Bytes, earlier: &[Item]) -> Result<Bytes, Error> {
    let view = view(body)?;
    let mut list = serde_json::to_vec(earlier).unwrap_or_default();
    // Without its brackets, so that it goes in front of other items.
    list.pop();
    let items = list.split_off(1);
    let own = view.input.filter(|input| !input.of(body).is_null());
    let mut edits = Vec::new();
    match own {
        Some(input) if input.of(body).is_list() => {
            let mut insert = items;
            if !insert.is_empty() && !input.of(body).is_empty() {
                insert.push(b',');
            }
            edits.push((input.start + 1..input.start + 1, insert));
        }
        Some(input) if input.of(body).is_text() => {
            let mut whole = b"[".to_vec();
            whole.extend_from_slice(&items);
            if !items.is_empty() {
                whole.push(b',');
            }
            whole.extend_from_slice(br#"{"type":"message","role":"user","content":"#);
            whole.extend_from_slice(input.of(body).bytes());
            whole.extend_from_slice(b"}]");
            edits.push((input.range(), whole));
        }
        Some(_) => return Err(wrong_input()),
        None => {
            let whole = [b"[", items.as_slice(), b"]"].concat();
            if let Some(null) = view.input {
                edits.push((null.range(), whole));
            } else {
                let is_alone = view.members == usize::from(view.previous.is_some());
                let mut insert = b"\"input\":".to_vec();
                insert.extend_from_slice(&whole);
                if !is_alone {
                    insert.push(b',');
                }
                edits.push((view.start..view.start, insert));
            }
        }
    }
    if let Some(previous) = view.previous {
        let gone = member(body, "previous_response_id", previous.range());
        edits.push(match gone {
            Some(range) => (range, Vec::new()),
            // Its key has escapes in it, and stays; `null` is as good as nothing.
            None => (previous.range(), b"null".to_vec()),
        });
    }
    Ok(splice(body, edits))
}

/// The ids of items to which a request only refers, in their order. Some clients send nothing else of what an answer said.
///
/// # Errors
/// `InvalidRequest` when the body is no object.
pub fn references(body: &Bytes) -> Result<Vec<String>, Error> {
    Ok(referring(body)?.into_iter().map(|(_, id)| id).collect())
}

/// A request with the items themselves in the place of references to them. Those that are not known stay, and so do all other
/// bytes.
///
/// # Errors
/// `InvalidRequest` when the body is no object.
pub fn resolve<S: BuildHasher>(body: &Bytes, known: &HashMap<String, Item, S>) -> Result<Bytes, Error> {
    let referring = referring(body)?.into_iter();
    let edits = referring.filter_map(|(at, id)| {
        let item = serde_json::to_vec(known.get(&id)?).ok()?;
        Some((at.range(), item))
    });
    Ok(splice(body, edits.collect()))
}

/// Where there are references, and to what.
fn referring(body: &[u8]) -> Result<Vec<(Span, String)>, Error> {
    #[derive(Deserialize)]
    struct Reference {
        #[serde(rename = "type")]
        kind: Option<String>,
        id: String,
        role: Option<IgnoredAny>,
    }
    /// An id and a few words, and nothing that holds what was said.
    const LONGEST: usize = 512;
    let mut skim = Skim::new(body);
    let mut found = Vec::new();
    let mut read = || {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            if key != b"input" {
                skim.skip()?;
            } else if skim.enter_if(b'[')? {
                while skim.item()? {
                    let at = skim.value()?;
                    let item = at.of(body).bytes();
                    if item.len() > LONGEST {
                        continue;
                    }
                    let Ok(item) = serde_json::from_slice::<Reference>(item) else {
                        continue;
                    };
                    if item.kind.map_or(item.role.is_none(), |kind| kind == "item_reference") {
                        found.push((at, item.id));
                    }
                }
            }
        }
        skim.finish()
    };
    match read() {
        Ok(()) => Ok(found),
        Err(wrong) => Err(malformed(&skim.explain(wrong))),
    }
}

/// A request's own input as a list of items, each with an id: its own, or one that is made of the request and the item's place.
///
/// # Errors
/// `InvalidRequest` when the body is no object, or its input no text and no list of objects.
pub fn items(body: &Bytes) -> Result<Vec<Item>, Error> {
    let mut request: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| malformed(&error.to_string()))?;
    let list = match request.remove("input") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong_input()),
    };
    let mut stem = String::new();
    for byte in Sha256::digest(body).iter().take(12) {
        // Writing to a string does not fail.
        let _ = write!(stem, "{byte:02x}");
    }
    let numbered = list.into_iter().enumerate();
    numbered.map(|(index, value)| item(value, index, &stem)).collect()
}

fn item(value: Value, index: usize, stem: &str) -> Result<Item, Error> {
    let Value::Object(object) = value else {
        let field = crate::notes::item("input", index);
        let message = format!("`{field}` must be an object: a message, a call of a tool, …");
        return Err(Error::new(Kind::InvalidRequest, message).with_param(field));
    };
    let has = |key: &str| object.get(key).is_some_and(|value| !value.is_null());
    let is_message = !has("type") && has("role");
    let kind = if is_message {
        "message"
    } else {
        object.get("type").and_then(Value::as_str).unwrap_or_default()
    };
    let mut made = Map::new();
    if !has("id") {
        let before = prefix(kind);
        made.insert("id".to_owned(), format!("{before}_{OURS}{stem}_{index}").into());
    }
    if is_message {
        made.insert("type".to_owned(), "message".into());
    }
    let part = match object.get("role").and_then(Value::as_str) {
        Some("assistant") => "output_text",
        _ => "input_text",
    };
    let is_message = kind == "message";
    for (key, value) in object {
        let is_made = made.contains_key(&key) && value.is_null();
        let value = match value {
            // As the vendor lists it.
            Value::String(text) if is_message && key == "content" => json!([{"type": part, "text": text}]),
            value => value,
        };
        if !is_made {
            made.insert(key, value);
        }
    }
    Ok(Value::Object(made))
}

/// What the ids of a kind of item begin with.
fn prefix(kind: &str) -> &'static str {
    match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "function_call_output" => "fco",
        "custom_tool_call" => "ctc",
        "custom_tool_call_output" => "ctco",
        _ => "item",
    }
}
