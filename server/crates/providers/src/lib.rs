//! Wire formats, and nothing but: requests out, bytes in.
//!
//! A [`Wire`] turns a [`Call`] into an `http::Request` and an upstream's bytes into a [`Reply`] or a run of frames. It owns
//! no client, no clock and no task; the engine moves the bytes.
//!
//! Where the caller and the upstream speak the same dialect nothing is re-encoded: a request goes up as the bytes that came
//! in, with the few places that must differ spliced, and a stream comes down as slices of what arrived. Where they do not, a
//! call is read by its *front* and written by a *back* (`codec.rs`), by way of the types in [`ir`], and what was lost on the
//! way is told in [`notes`].

pub mod anthropic;
pub mod bedrock;
pub mod call;
mod codec;
pub mod cohere;
mod custom;
pub mod failure;
mod front;
pub mod gemini;
mod ids;
pub mod ir;
mod json;
mod names;
pub mod notes;
pub mod openai;
pub mod params;
mod prompt;
mod relay;
mod schema;
mod site;
mod skim;
pub mod sse;
mod translate;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use notes::Notes;
use params::{OnUnsupported, WireKind};
use std::time::SystemTime;
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

pub use call::{Call, Dialect, FromPath, Origin, Surface, Task};
pub use site::Unusable;

/// What a conversation in OpenAI's Responses is kept with, for upstreams that do not keep it themselves.
pub mod responses {
    pub use crate::openai::responses::{Item, items, merge, references, resolve, response_id, response_of_item};
}

/// How calls of a surface reach an upstream, the straightest way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Takes {
    /// As they are: it speaks the caller's dialect.
    Native,
    Translated,
    /// Not at all.
    Not,
}

/// What holds for one call besides what it says.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub now: SystemTime,
    pub on_unsupported: OnUnsupported,
}

/// A request that can be sent.
#[derive(Debug)]
pub struct Encoded {
    pub request: http::Request<Bytes>,
    /// Empty where nothing was translated.
    pub notes: Notes,
}

/// A vendor's wire format, bound to one provider's address and credential.
pub trait Wire: Send + Sync {
    fn kind(&self) -> WireKind;

    fn takes(&self, surface: Surface) -> Takes;

    /// The call for `model`, with the allowed ones of the client's headers.
    ///
    /// # Errors
    /// When the call cannot be expressed on this wire.
    fn encode(&self, call: &Call, model: &str, client: &HeaderMap, terms: &Terms) -> Result<Encoded, Error>;

    /// A request that the gateway does not understand, for an upstream whose paths and words are the caller's own. `path` is
    /// what stands below the API's root, query included. `None` where the wire is another one.
    ///
    /// # Errors
    /// When it makes no request.
    fn pass_on(
        &self,
        _method: http::Method,
        _path: &str,
        _client: &HeaderMap,
        _body: Bytes,
    ) -> Option<Result<http::Request<Bytes>, Error>> {
        None
    }

    /// The answer to a call that needs no upstream, such as an estimate of tokens where the vendor counts none.
    fn answer_here(&self, _call: &Call) -> Option<Reply> {
        None
    }

    /// The listing of the provider's models, if the vendor has one.
    fn list_models(&self) -> Option<http::Request<Bytes>>;

    /// A whole answer with a status of success, of the model that was asked for.
    ///
    /// # Errors
    /// When it is a failure in disguise, or no answer at all.
    fn decode(&self, call: &Call, model: &str, body: Bytes) -> Result<Reply, Error>;

    /// A decoder for one stream. `model` is the one that was asked for.
    fn decoder(&self, call: &Call, model: &str) -> Box<dyn StreamDecoder>;

    /// What a status that is no success means.
    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error;
}

/// A whole answer as it goes to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub body: Bytes,
    pub usage: Usage,
    /// Empty where nothing was translated.
    pub notes: Notes,
}

/// Reads one stream. Any split of the same bytes gives the same output.
pub trait StreamDecoder: Send {
    /// Takes bytes as they arrived.
    fn push(&mut self, bytes: Bytes) -> Progress;

    /// The upstream closed its stream.
    fn finish(&mut self) -> Progress;

    /// What was used, as far as it is known: reported by the upstream, or estimated from what passed.
    fn usage(&self) -> Usage;

    /// What was lost of the answer, so far.
    fn notes(&self) -> Option<&Notes> {
        None
    }
}

/// What one step through a stream brought.
#[derive(Debug, Default)]
pub struct Progress {
    /// Whole frames, ready to go out, in order.
    pub out: Vec<Bytes>,
    /// Text, reasoning, refusal, tool call or audio that is not empty was among them. A role alone is none.
    pub content: bool,
    /// Set once, when the stream has ended one way or the other.
    pub end: Option<End>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The answer is whole.
    Complete,
    /// An error event, or a cut.
    Failed(Error),
}
