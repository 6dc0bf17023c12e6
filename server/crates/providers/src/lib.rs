//! Wire formats, and nothing but: requests out, bytes in.
//!
//! A [`Wire`] turns a [`Call`] into an `http::Request` and an upstream's bytes into a [`Reply`] or a run of frames. It owns
//! no client, no clock and no task; the engine moves the bytes. Where the caller and the upstream speak the same dialect
//! nothing is re-encoded: a request goes up as the bytes that came in, with the few places that must differ spliced, and a
//! stream comes down as slices of what arrived.

pub mod call;
pub mod failure;
mod json;
pub mod openai;
mod prompt;
mod skim;
pub mod sse;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::time::SystemTime;
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

pub use call::{Call, Surface};

/// A vendor's wire format, bound to one provider's address and credential.
pub trait Wire: Send + Sync {
    /// The call for `model`, with the allowed ones of the client's headers.
    ///
    /// # Errors
    /// When the call cannot be expressed on this wire.
    fn encode(&self, call: &Call, model: &str, client: &HeaderMap) -> Result<http::Request<Bytes>, Error>;

    /// The listing of the provider's models, if the vendor has one.
    fn list_models(&self) -> Option<http::Request<Bytes>>;

    /// A whole answer with a status of success.
    ///
    /// # Errors
    /// When it is a failure in disguise, or no answer at all.
    fn decode(&self, call: &Call, renamed: bool, body: Bytes) -> Result<Reply, Error>;

    /// A decoder for one stream.
    fn decoder(&self, call: &Call, renamed: bool) -> Box<dyn StreamDecoder>;

    /// What a status that is no success means.
    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error;
}

/// A whole answer as it goes to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub body: Bytes,
    pub usage: Usage,
}

/// Reads one stream. Any split of the same bytes gives the same output.
pub trait StreamDecoder: Send {
    /// Takes bytes as they arrived.
    fn push(&mut self, bytes: Bytes) -> Progress;

    /// The upstream closed its stream.
    fn finish(&mut self) -> Progress;

    /// What was used, as far as it is known: reported by the upstream, or estimated from what passed.
    fn usage(&self) -> Usage;
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
