//! OpenAI's chat completions, as a front and as a back.
//!
//! The most spoken dialect, and the one with the most accents. What its owner documents is written; what others have made of it
//! is read too: thoughts as `reasoning_content` or `reasoning`, counts of tokens in any of five places, calls of tools without an
//! index or an id.
//!
//! What a vendor wants to see again travels through this dialect in three places, all of which are read back: the signature or
//! the encrypted text of a thought in `reasoning_details`, as `OpenRouter` has it (`details`); that of a call in the call's
//! `extra_content.google.thought_signature`, as Gemini's own endpoint has it; and the thought's text in `reasoning_content`.

mod answer;
mod details;
mod doc;
mod fields;
mod hear;
mod read;
mod seals;
mod speak;
#[cfg(test)]
mod tests;
mod usage;
mod write;

use crate::codec::{Ask, Back, Front, Reader, Writer};
use crate::ir::{Answer, Prompt};
use crate::notes::Notes;
use crate::{Call, Origin};
use switchyard_core::error::Error;

pub(in crate::openai) use answer::{NO_CHOICE, answer_id, failed_choice};
pub(in crate::openai) use doc::{Object, json};
pub(in crate::openai) use fields::{At, body};
pub(in crate::openai) use read::stop;
pub(in crate::openai) use seals::without_foreign_seals;
pub(in crate::openai) use usage::{is_known as is_usage_known, write as write_usage};

/// OpenAI's chat completions, as a front and as a back.
pub(crate) struct Chat;

impl Front for Chat {
    fn read(&self, call: &Call) -> Result<Prompt, Error> {
        read::read(call)
    }

    fn write(&self, answer: Answer, call: &Call, notes: &mut Notes) -> Vec<u8> {
        answer::write(&answer, call, notes)
    }

    fn writer(&self, call: &Call, model: &str) -> Box<dyn Writer> {
        Box::new(speak::Speaker::new(call, model))
    }
}

impl Back for Chat {
    fn write(&self, prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        write::write(prompt, ask, notes)
    }

    fn read(&self, body: &[u8], origin: &Origin) -> Result<Answer, Error> {
        answer::read(body, origin)
    }

    fn reader(&self, origin: &Origin) -> Box<dyn Reader> {
        Box::new(hear::Listener::new(origin))
    }
}
