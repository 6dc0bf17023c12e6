//! Anthropic's Messages, as a front and as a back.

use super::{answer, read, reader, write, writer};
use crate::codec::{Ask, Back, CountBack, Front, Reader, Writer};
use crate::ir::{Answer, Prompt};
use crate::notes::Notes;
use crate::{Call, Origin};
use serde::Deserialize;
use serde_json::Value;
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

/// Anthropic's Messages, as a front and as a back.
pub(crate) struct Messages;

impl Front for Messages {
    fn read(&self, call: &Call) -> Result<Prompt, Error> {
        read::read(call)
    }

    fn write(&self, answer: Answer, call: &Call, notes: &mut Notes) -> Vec<u8> {
        answer::write(&answer, call, notes)
    }

    fn writer(&self, call: &Call, model: &str) -> Box<dyn Writer> {
        Box::new(writer::Messages::new(call, model))
    }
}

impl Back for Messages {
    fn write(&self, prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        write::write(prompt, ask, notes)
    }

    fn read(&self, body: &[u8], origin: &Origin) -> Result<Answer, Error> {
        answer::read(body, origin)
    }

    fn reader(&self, origin: &Origin) -> Box<dyn Reader> {
        Box::new(reader::Messages::new(origin))
    }
}

/// The counting of tokens, which takes what a conversation has but for what shapes its answer.
pub(super) struct Count;

/// What a count takes.
const COUNTED: [&str; 7] = [
    "model",
    "system",
    "messages",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
];

impl CountBack for Count {
    fn write(&self, conversation: Vec<u8>, _ask: &Ask<'_>) -> Result<Vec<u8>, Error> {
        let unreadable = |_| Error::new(Kind::Internal, "a conversation was written that is no JSON object");
        let mut body: serde_json::Map<String, Value> = serde_json::from_slice(&conversation).map_err(unreadable)?;
        body.retain(|key, _| COUNTED.contains(&key.as_str()));
        serde_json::to_vec(&body).map_err(unreadable)
    }

    fn read(&self, body: &[u8]) -> Result<Usage, Error> {
        let prompt = answer::read_count(body)?;
        Ok(Usage {
            prompt: Some(prompt),
            ..Usage::default()
        })
    }
}

#[derive(Deserialize)]
pub(super) struct Counted {
    pub(super) input_tokens: u64,
}
