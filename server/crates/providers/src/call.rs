//! A caller's request, read once and only as deep as needed.

use crate::json::{is_null, object, present, span};
use crate::prompt::{Piece, Whose, pieces};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
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
    /// The end user, as the caller names it.
    pub user: Option<String>,
    /// Tools, or functions of older clients, are offered.
    pub has_tools: bool,
    /// Most output tokens that the caller wants.
    pub max_output: Option<u64>,
    /// Where the messages, or what is to be embedded, stand.
    input_at: Range<usize>,
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
    #[serde(borrow, default, deserialize_with = "present")]
    user: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    functions: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_completion_tokens: Option<&'a RawValue>,
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
        let input = read_input(surface, view.messages, view.input)?;
        let (prompt_bytes, input_at) = (input.get().len(), span(&body, input));
        // What only routing looks at is not judged here: a value that makes no sense is the upstream's to refuse.
        let max_output = read_count(view.max_completion_tokens).or_else(|| read_count(view.max_tokens));
        let user: Option<String> = view.user.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let user = user.filter(|user| !user.is_empty());
        let offered = |raw: Option<&RawValue>| raw.is_some_and(|raw| !crate::json::is_empty(raw));
        let has_tools = offered(view.tools) || offered(view.functions);
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
            user,
            has_tools,
            max_output,
            input_at,
            body,
        })
    }

    /// The text of the user's messages, one per line; `None` where there are no messages. What cannot be understood is in it
    /// as it is written.
    #[must_use]
    pub fn user_text(&self) -> Option<String> {
        let messages = self.messages()?;
        let mut text = String::new();
        pieces(messages, Whose::User, &mut |piece| {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&piece.read());
        });
        Some(text)
    }

    /// An estimate of the input's tokens: a quarter of its characters, and one.
    #[must_use]
    pub fn estimate_tokens(&self) -> u64 {
        let mut characters = 0;
        let mut tokens = 0;
        match self.surface {
            Surface::Chat => {
                // What is odd may be data, and data is no text.
                pieces(self.messages().unwrap_or_default(), Whose::Everyones, &mut |piece| {
                    if matches!(piece, Piece::Text(_)) {
                        characters += piece.read().chars().count();
                    }
                });
            }
            Surface::Embeddings => match serde_json::from_slice(self.input()) {
                Ok(Embedded::Text(text)) => characters = text.chars().count(),
                Ok(Embedded::Texts(texts)) => characters = texts.iter().map(|text| text.chars().count()).sum(),
                Ok(Embedded::Tokens(numbers)) => tokens = numbers.len(),
                Ok(Embedded::TokenLists(lists)) => tokens = lists.iter().map(Vec::len).sum(),
                Err(_) => characters = self.prompt_bytes,
            },
        }
        let estimate = if tokens > 0 { tokens } else { characters / 4 + 1 };
        u64::try_from(estimate).unwrap_or(u64::MAX)
    }

    fn input(&self) -> &[u8] {
        self.body.get(self.input_at.clone()).unwrap_or_default()
    }

    /// The messages as they are written.
    fn messages(&self) -> Option<&str> {
        (self.surface == Surface::Chat)
            .then(|| std::str::from_utf8(self.input()).ok())
            .flatten()
    }
}

/// What may be embedded.
#[derive(Deserialize)]
#[serde(untagged)]
enum Embedded<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Texts(#[serde(borrow)] Vec<Cow<'a, str>>),
    Tokens(Vec<u64>),
    TokenLists(Vec<Vec<u64>>),
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

fn read_input<'a>(
    surface: Surface,
    messages: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
) -> Result<&'a RawValue, Error> {
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
    Ok(raw)
}

/// More output than this is nobody's to ask for.
const MOST_OUTPUT: f64 = 1e12;

/// A count, be it written `4000`, `4000.0` or `4e3`.
fn read_count(raw: Option<&RawValue>) -> Option<u64> {
    let count: f64 = raw?.get().trim().parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is rounded down, and within a range that fits"
    )]
    (0.0..=MOST_OUTPUT).contains(&count).then(|| count.floor() as u64)
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
