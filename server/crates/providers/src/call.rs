//! A caller's request, read once and only as deep as needed.

use crate::json::{is_null, object, present, span};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;
use switchyard_core::error::{Error, Kind};

/// What is asked for. Surfaces differ in data, not in code paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    Chat,
    Embeddings,
}

impl Surface {
    /// The word for logs, metrics and pages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
        }
    }

    /// Below an API's root, in OpenAI's dialect.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Embeddings => "/embeddings",
        }
    }

    /// The field without which there is nothing to answer.
    const fn input_field(self) -> &'static str {
        match self {
            Self::Chat => "messages",
            Self::Embeddings => "input",
        }
    }

    /// The field without which an answer is none.
    pub(crate) const fn output_field(self) -> &'static str {
        match self {
            Self::Chat => "choices",
            Self::Embeddings => "data",
        }
    }
}

/// A request in OpenAI's dialect: the bytes as they came, and where in them the few things stand that the gateway may have
/// to change.
#[derive(Clone, Debug)]
pub struct Call {
    pub surface: Surface,
    pub body: Bytes,
    /// As the caller wrote it.
    pub model: String,
    pub stream: bool,
    /// The caller wants the chunk with usage at a stream's end.
    pub wants_usage: bool,
    pub(crate) model_at: Range<usize>,
    pub(crate) stream_options: StreamOptions,
    /// Bytes of the prompt as written; for estimates.
    pub prompt_bytes: usize,
}

/// Where a request for usage has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamOptions {
    /// There is no `stream_options`.
    Absent,
    /// Replace this value: `null`, or an empty object.
    Value(Range<usize>),
    /// Insert a member behind the brace that ends here.
    Object(usize),
    /// Replace the value of `include_usage`.
    Flag(Range<usize>),
    /// It already says so.
    Asked,
}

#[derive(Deserialize)]
struct View<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stream: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    messages: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StreamOptionsView<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    include_usage: Option<&'a RawValue>,
}

impl Call {
    /// Reads a request body.
    ///
    /// # Errors
    /// [`Kind::InvalidRequest`] that names the field and what it must be.
    pub fn parse(surface: Surface, body: Bytes) -> Result<Self, Error> {
        let view: View<'_> = object(&body).map_err(|error| malformed(&error))?;
        let (model, model_at) = read_model(&body, view.model)?;
        let prompt_bytes = read_input(surface, view.messages, view.input)?;
        let stream = match view.stream.map(|raw| raw.get().trim()) {
            None | Some("null" | "false") => false,
            Some("true") => true,
            Some(_) => return Err(wrong("stream", "must be true or false")),
        };
        if stream && surface != Surface::Chat {
            return Err(wrong("stream", "is not possible here: embeddings come in one piece"));
        }
        let (wants_usage, stream_options) = read_stream_options(&body, view.stream_options)?;
        Ok(Self {
            surface,
            model,
            stream,
            wants_usage,
            model_at,
            stream_options,
            prompt_bytes,
            body,
        })
    }
}

fn wrong(field: &str, must: &str) -> Error {
    Error::new(Kind::InvalidRequest, format!("`{field}` {must}")).with_param(field)
}

fn malformed(error: &serde_json::Error) -> Error {
    Error::new(
        Kind::InvalidRequest,
        format!("the body is not a valid JSON object: {error}"),
    )
}

fn read_model(body: &[u8], raw: Option<&RawValue>) -> Result<(String, Range<usize>), Error> {
    let raw = raw.ok_or_else(|| wrong("model", "is required: name the model that should answer"))?;
    let model: String =
        serde_json::from_str(raw.get()).map_err(|_| wrong("model", "must be a text: the name of a model"))?;
    if model.trim().is_empty() {
        return Err(wrong("model", "must not be empty: name the model that should answer"));
    }
    Ok((model, span(body, raw)))
}

fn read_input(surface: Surface, messages: Option<&RawValue>, input: Option<&RawValue>) -> Result<usize, Error> {
    let field = surface.input_field();
    let raw = match surface {
        Surface::Chat => messages,
        Surface::Embeddings => input,
    };
    let raw = raw
        .filter(|raw| !is_null(raw))
        .ok_or_else(|| wrong(field, "is required"))?;
    if surface == Surface::Chat {
        if !raw.get().trim_start().starts_with('[') {
            return Err(wrong(field, "must be a list of messages"));
        }
        if crate::json::is_empty(raw) {
            return Err(wrong(field, "must hold at least one message"));
        }
    }
    Ok(raw.get().len())
}

fn read_stream_options(body: &[u8], raw: Option<&RawValue>) -> Result<(bool, StreamOptions), Error> {
    let Some(raw) = raw else {
        return Ok((false, StreamOptions::Absent));
    };
    let at = span(body, raw);
    if is_null(raw) {
        return Ok((false, StreamOptions::Value(at)));
    }
    let options: StreamOptionsView<'_> =
        object(raw.get().as_bytes()).map_err(|_| wrong("stream_options", "must be an object"))?;
    Ok(match options.include_usage {
        None if crate::json::is_empty(raw) => (false, StreamOptions::Value(at)),
        None => (false, StreamOptions::Object(at.start + 1)),
        Some(flag) => match flag.get().trim() {
            "true" => (true, StreamOptions::Asked),
            "false" | "null" => (false, StreamOptions::Flag(span(body, flag))),
            _ => return Err(wrong("stream_options.include_usage", "must be true or false")),
        },
    })
}
