//! What a page asks for, and how the answer travels inside the page that the server rendered.

use super::read::{Read, read};
use leptos::{
    prelude::*,
    server::codee::{Decoder, Encoder},
};
use serde::Serialize;
use switchyard_api::ApiError;

/// An answer that may be on its way. A fault travels too, so that what failed on the server is not asked for again.
pub type Asked<T> = Resource<Result<T, ApiError>, Json>;

/// Asks `question` for what `source` says, and again when that changes.
pub fn ask<S, T, F>(
    source: impl Fn() -> S + Send + Sync + 'static,
    question: impl Fn(S) -> F + Send + Sync + 'static,
) -> Asked<T>
where
    S: PartialEq + Clone + Send + Sync + 'static,
    T: Serialize + Read + Send + Sync + 'static,
    F: Future<Output = Result<T, ApiError>> + Send + 'static,
{
    Resource::new_with_options(source, question, false)
}

/// Written by serde, read by [`read`]: see there.
pub struct Json;

impl<T: Serialize> Encoder<T> for Json {
    type Error = serde_json::Error;
    type Encoded = String;

    fn encode(answer: &T) -> Result<String, serde_json::Error> {
        serde_json::to_string(answer)
    }
}

impl<T: Read> Decoder<T> for Json {
    type Error = ApiError;
    type Encoded = str;

    fn decode(text: &str) -> Result<T, ApiError> {
        read(text)
    }
}
