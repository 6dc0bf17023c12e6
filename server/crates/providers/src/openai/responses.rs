//! OpenAI's Responses: as a front, as a back, and relayed.
//!
//! A conversation here is a flat list of *items*: messages, and beside them, not inside, reasoning, calls of tools and their
//! results. An answer is a list of items too, and a client carries on by sending those back behind its own, or by naming the
//! answer and leaving the list to the server.
//!
//! So everything that the next turn needs must be in the items. What a vendor signs goes out as `encrypted_content` of a
//! reasoning item, whether the client asked for it or not: for another vendor's seal there is no server that keeps it
//! otherwise. A call's own seal, for which this dialect has no place, goes out as a reasoning item of its own that names the
//! call. Items made here are told by their ids, `rs_sy…`, so that they can be kept from a vendor who does not know them.

mod back;
mod history;
mod native;
mod read;
mod reader;
mod write;

use crate::codec::{Ask, Back, Front, Reader, Writer};
use crate::ir::{Answer, Maker, Prompt, Seal};
use crate::notes::Notes;
use crate::{Call, Origin};
use switchyard_core::error::Error;

pub(super) use back::suits;
pub use history::{Item, items, merge, references, resolve};
pub(super) use native::{Judge, foreign, relay};

/// OpenAI's Responses, as a front and as a back.
pub(crate) struct Responses;

impl Front for Responses {
    fn read(&self, call: &Call) -> Result<Prompt, Error> {
        read::read(call)
    }

    fn write(&self, answer: Answer, call: &Call, notes: &mut Notes) -> Vec<u8> {
        write::whole(answer, call, notes)
    }

    fn writer(&self, call: &Call, model: &str) -> Box<dyn Writer> {
        Box::new(write::Stream::new(call, model))
    }
}

impl Back for Responses {
    fn write(&self, prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        back::write(prompt, ask, notes)
    }

    fn read(&self, body: &[u8], _origin: &Origin) -> Result<Answer, Error> {
        back::read(body)
    }

    fn reader(&self, _origin: &Origin) -> Box<dyn Reader> {
        Box::new(reader::Stream::default())
    }
}

// === ids ===

/// What the ids of an answer are made of: letters and digits of the request's own id.
fn stem(origin: &Origin) -> String {
    origin.id.chars().filter(char::is_ascii_alphanumeric).take(32).collect()
}

/// The id under which the gateway answers a request, where the upstream has no Responses.
#[must_use]
pub fn response_id(origin: &Origin) -> String {
    format!("resp_{}", stem(origin))
}

/// Begins every id of an item that was made here, behind what its kind begins with.
const OURS: &str = "sy";

/// The id of an item of an answer.
fn item_id(kind: &str, stem: &str, index: usize) -> String {
    format!("{kind}_{OURS}{stem}_{index}")
}

/// The id of the answer that an item of ours belongs to. `None` for a vendor's.
#[must_use]
pub fn response_of_item(id: &str) -> Option<String> {
    let (_, rest) = id.split_once('_')?;
    let (stem, index) = rest.strip_prefix(OURS)?.rsplit_once('_')?;
    let is_ours = !stem.is_empty()
        && stem.bytes().all(|b| b.is_ascii_alphanumeric())
        && index.bytes().all(|b| b.is_ascii_digit());
    is_ours.then(|| format!("resp_{stem}"))
}

// === seals ===

/// In front of a seal that is all there is of a thought.
const REDACTED: &str = "sy.redacted.";
/// In front of a seal that belongs to a call, whose id follows.
const OF_CALL: &str = "sy.call.";

/// What an `encrypted_content` holds.
#[derive(Debug, PartialEq, Eq)]
enum Sealed {
    Thought { seal: Seal, is_redacted: bool },
    Call { id: String, seal: Seal },
}

/// A thought's seal as it is written. OpenAI's own has no mark: of its thoughts there is never more than a summary.
fn write_seal(seal: &Seal, is_redacted: bool) -> String {
    let written = seal.write(Maker::OpenAi);
    if is_redacted && seal.maker != Maker::OpenAi {
        return format!("{REDACTED}{written}");
    }
    written
}

fn write_call_seal(seal: &Seal, call: &str) -> String {
    format!("{OF_CALL}{call}:{}", seal.write(Maker::OpenAi))
}

fn read_seal(written: &str) -> Sealed {
    let of_call = written
        .strip_prefix(OF_CALL)
        .and_then(|rest| rest.rsplit_once(':'))
        .map(|(id, seal)| Sealed::Call {
            id: id.to_owned(),
            seal: Seal::read(seal, Maker::OpenAi),
        });
    of_call.unwrap_or_else(|| {
        let (seal, is_redacted) = match written.strip_prefix(REDACTED) {
            Some(seal) => (seal, true),
            None => (written, false),
        };
        Sealed::Thought {
            seal: Seal::read(seal, Maker::OpenAi),
            is_redacted,
        }
    })
}

#[cfg(test)]
mod tests;
