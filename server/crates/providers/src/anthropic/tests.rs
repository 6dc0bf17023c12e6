//! The wire, the front and the back, from outside: bytes in, bytes out.

mod native;
mod reading;
mod streams;
mod writing;

use super::Messages;
use crate::codec::{Ask, Back, Reader};
use crate::ir::{Event, Prompt};
use crate::notes::{Fate, Notes};
use crate::{Call, End, Origin, Surface};
use bytes::Bytes;
use serde_json::Value;
use switchyard_core::error::Error;

fn origin() -> Origin {
    Origin {
        id: "0193f0a0b1c2d3e4f5061728".into(),
        at: 0,
    }
}

fn call(body: &Value) -> Call {
    let body = Bytes::from(body.to_string());
    Call::read(Surface::Messages, body, None, origin()).unwrap()
}

/// What a prompt becomes for a model, as if a chat had asked.
fn sent_to(model: &str, prompt: &Prompt) -> Result<(Value, Notes), Error> {
    let mut notes = Notes::default();
    let ask = Ask {
        model,
        surface: Surface::Chat,
        stream: prompt.stream,
    };
    let body = Back::write(&Messages, prompt, &ask, &mut notes)?;
    Ok((serde_json::from_slice(&body).unwrap(), notes))
}

/// The fields that met a fate, in their order.
fn fields(notes: &Notes, fate: Fate) -> Vec<&str> {
    let list = notes.list().iter();
    list.filter(|note| note.fate == fate).map(|note| &*note.field).collect()
}

/// Reads a stream in pieces of the given ends.
fn events(stream: &[u8], ends: &[usize]) -> (Vec<Event>, End) {
    let mut reader = Back::reader(&Messages, &origin());
    let mut out = Vec::new();
    let mut from = 0;
    for end in ends.iter().copied().chain([stream.len()]) {
        let piece = Bytes::copy_from_slice(stream.get(from..end).unwrap_or_default());
        if let Some(end) = reader.push(piece, &mut out) {
            return (out, end);
        }
        from = from.max(end);
    }
    let end = Reader::finish(&mut *reader, &mut out);
    (out, end)
}
