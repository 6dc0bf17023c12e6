//! The seam of translation: what a dialect and a wire have to be able to do.
//!
//! A **front** is a way in which callers write: it reads their requests and writes their answers. A **back** is a way in which
//! upstreams are written to: it writes requests and reads answers. OpenAI's chat, its Responses, Anthropic's Messages and
//! Gemini's generateContent are both; Bedrock's Converse and Cohere's chat are backs only, and OpenAI's old completions a front
//! only. Between them stands [`crate::ir`], so each pair is made of two halves that know nothing of each other.
//!
//! Everything here is pure: bytes in, bytes out. Ids and times that an answer needs and an upstream does not give are made of
//! the request's own id and arrival, so the same bytes always give the same bytes.

use crate::ir::{Answer, Embed, Event, Prompt, Vectors};
use crate::notes::Notes;
use crate::{Call, End, Origin, Surface};
use bytes::Bytes;
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

/// A dialect, as callers use it.
pub(crate) trait Front: Sync {
    /// Reads a request. Fields that it does not know become the prompt's strangers.
    ///
    /// # Errors
    /// `InvalidRequest` that names the field and the remedy.
    fn read(&self, call: &Call) -> Result<Prompt, Error>;

    /// Writes a whole answer. `answer.model` is the name that the caller is to see. What the dialect cannot say is noted.
    fn write(&self, answer: Answer, call: &Call, notes: &mut Notes) -> Vec<u8>;

    /// For one streamed answer. `model` is the name that the caller is to see.
    fn writer(&self, call: &Call, model: &str) -> Box<dyn Writer>;
}

/// Writes one stream.
pub(crate) trait Writer: Send {
    /// Appends the frames of one step, each with its blank line, none or several.
    fn write(&mut self, event: Event, out: &mut Vec<u8>, notes: &mut Notes);

    /// Appends what a stream ends with whose answer is whole.
    fn finish(&mut self, out: &mut Vec<u8>, notes: &mut Notes);
}

/// What a request is written for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// The upstream's name of the model.
    pub(crate) model: &'a str,
    /// Where the caller wrote it: notes name its fields.
    pub(crate) surface: Surface,
    /// Whether a stream is wanted.
    pub(crate) stream: bool,
}

/// A wire, as upstreams speak it.
pub(crate) trait Back: Sync {
    /// Writes a request's body. Parameters that the wire does not have were taken out before, see [`crate::params`]; what else
    /// it cannot say is noted, or refused where the answer would not be one to what was asked (a picture that nobody sees).
    ///
    /// # Errors
    /// `Unsupported` that names the caller's field: another target may be able to.
    fn write(&self, prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error>;

    /// Reads a whole answer with a status of success.
    ///
    /// # Errors
    /// When it is a failure in disguise, or no answer.
    fn read(&self, body: &[u8], origin: &Origin) -> Result<Answer, Error>;

    /// For one stream.
    fn reader(&self, origin: &Origin) -> Box<dyn Reader>;
}

/// Reads one stream. Any split of the same bytes gives the same events.
pub(crate) trait Reader: Send {
    /// Takes bytes as they arrived and appends what they say. Tells once when the stream has ended, one way or the other.
    fn push(&mut self, bytes: Bytes, out: &mut Vec<Event>) -> Option<End>;

    /// The upstream closed its stream, which had not ended.
    fn finish(&mut self, out: &mut Vec<Event>) -> End;
}

/// Embeddings, as an upstream makes them.
pub(crate) trait EmbedBack: Sync {
    /// Writes a request's body.
    ///
    /// # Errors
    /// `Unsupported` that names the caller's field.
    fn write(&self, embed: &Embed, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error>;

    /// Reads an answer with a status of success.
    ///
    /// # Errors
    /// When it is a failure in disguise, or no answer.
    fn read(&self, body: &[u8]) -> Result<Vectors, Error>;
}

/// Counting tokens without an answer, as an upstream does it. What is to be counted is written by [`Back::write`], and put
/// into its place here.
pub(crate) trait CountBack: Sync {
    /// Makes the body of a count of that of a conversation.
    ///
    /// # Errors
    /// `Unsupported`.
    fn write(&self, conversation: Vec<u8>, ask: &Ask<'_>) -> Result<Vec<u8>, Error>;

    /// Reads an answer: `prompt` is the count.
    ///
    /// # Errors
    /// When it is no answer.
    fn read(&self, body: &[u8]) -> Result<Usage, Error>;
}
