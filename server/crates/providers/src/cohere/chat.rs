//! Cohere's chat, version 2. A back only.
//!
//! It looks like OpenAI's and is not: a model says what it is going to do with its tools in a plan of its own, documents stand
//! beside the messages, a stream has events with names, and many parameters are called otherwise or have narrower bounds.

mod answer;
mod stream;
#[cfg(test)]
mod tests;
mod write;

use crate::Origin;
use crate::bedrock::common::{Letters, Tools};
use crate::codec::{Ask, Back, Reader};
use crate::ir::{Answer, Prompt};
use crate::notes::Notes;
use std::sync::Arc;
use switchyard_core::error::{Error, Kind};

/// What Cohere takes for the name of a tool.
pub(super) const LETTERS: Letters = Letters::Plain;

/// Cohere's chat.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    /// Those of the request that is answered.
    tools: Arc<Tools>,
}

impl Chat {
    /// For the answer to a call with these tools.
    pub(super) fn answering(tools: Tools) -> Self {
        Self { tools: Arc::new(tools) }
    }
}

impl Back for Chat {
    fn write(&self, prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
        let body = write::Writing::new(prompt, ask, notes).body()?;
        serde_json::to_vec(&body).map_err(|error| Error::new(Kind::Internal, error.to_string()))
    }

    fn read(&self, body: &[u8], origin: &Origin) -> Result<Answer, Error> {
        answer::read(body, &self.tools, origin)
    }

    fn reader(&self, origin: &Origin) -> Box<dyn Reader> {
        Box::new(stream::ChatReader::new(Arc::clone(&self.tools), origin.clone()))
    }
}

/// Cohere's counts are floats, and whole.
pub(super) fn count(count: Option<f64>) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is within a range that fits"
    )]
    count
        .filter(|count| (0.0..1e15).contains(count))
        .map(|count| count as u64)
}
