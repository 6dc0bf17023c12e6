//! Gemini's generateContent, as a front and as a back.

use super::{GoogleService, answer, caller, reply, request};
use crate::codec::{Ask, Back, Front, Reader, Writer};
use crate::ir::{Answer, Prompt};
use crate::notes::Notes;
use crate::{Call, Origin};
use switchyard_core::error::Error;

/// Gemini's generateContent, as callers use it.
pub(crate) struct Generate;

impl Front for Generate {
    fn read(&self, call: &Call) -> Result<Prompt, Error> {
        caller::read(call)
    }

    fn write(&self, answer: Answer, call: &Call, notes: &mut Notes) -> Vec<u8> {
        reply::write(answer, call, notes)
    }

    fn writer(&self, call: &Call, model: &str) -> Box<dyn Writer> {
        Box::new(reply::Stream::new(call, model))
    }
}

/// The same, as one of Google's services has it.
pub(crate) struct Service(GoogleService);

impl Service {
    pub(super) const fn of(service: GoogleService) -> &'static Self {
        match service {
            GoogleService::Gemini => &Self(GoogleService::Gemini),
            GoogleService::Vertex => &Self(GoogleService::Vertex),
        }
    }
}

impl Back for Service {
    fn write(&self, prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        request::write(prompt, ask, self.0, notes)
    }

    fn read(&self, body: &[u8], origin: &Origin) -> Result<Answer, Error> {
        answer::read(body, origin)
    }

    fn reader(&self, origin: &Origin) -> Box<dyn Reader> {
        Box::new(answer::Stream::new(origin))
    }
}
