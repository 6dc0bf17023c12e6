//! A caller's request, read once and only as deep as needed.

use crate::prompt::{Piece, Whose, pieces};
use crate::skim::{Skim, Span, Written, Wrong};
use bytes::Bytes;
use serde::Deserialize;
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

/// Where the members stand that are looked at.
#[derive(Default)]
struct View {
    model: Option<Span>,
    stream: Option<Span>,
    stream_options: Option<Span>,
    messages: Option<Span>,
    input: Option<Span>,
    user: Option<Span>,
    tools: Option<Span>,
    functions: Option<Span>,
    max_tokens: Option<Span>,
    max_completion_tokens: Option<Span>,
}

impl View {
    fn read(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            match key {
                b"model" => skim.fill(&mut self.model, "model")?,
                b"stream" => skim.fill(&mut self.stream, "stream")?,
                b"stream_options" => skim.fill(&mut self.stream_options, "stream_options")?,
                b"messages" => skim.fill(&mut self.messages, "messages")?,
                b"input" => skim.fill(&mut self.input, "input")?,
                b"user" => skim.fill(&mut self.user, "user")?,
                b"tools" => skim.fill(&mut self.tools, "tools")?,
                b"functions" => skim.fill(&mut self.functions, "functions")?,
                b"max_tokens" => skim.fill(&mut self.max_tokens, "max_tokens")?,
                b"max_completion_tokens" => {
                    skim.fill(&mut self.max_completion_tokens, "max_completion_tokens")?;
                }
                _ => skim.skip()?,
            }
        }
        skim.finish()
    }
}

impl Call {
    /// Reads a request body.
    ///
    /// # Errors
    /// [`Kind::InvalidRequest`] that names the field and what it must be.
    pub fn parse(surface: Surface, body: Bytes) -> Result<Self, Error> {
        let mut skim = Skim::new(&body);
        let mut view = View::default();
        view.read(&mut skim).map_err(|wrong| malformed(&skim.explain(wrong)))?;
        let written = |span: Option<Span>| span.map(|span| span.of(&body));
        let (model, model_at) = read_model(&body, view.model)?;
        let input_at = read_input(&body, surface, &view)?;
        // What only routing looks at is not judged here: a value that makes no sense is the upstream's to refuse.
        let max_output = written(view.max_completion_tokens)
            .and_then(read_count)
            .or_else(|| written(view.max_tokens).and_then(read_count));
        let user = written(view.user)
            .and_then(Written::text)
            .filter(|user| !user.is_empty())
            .map(Cow::into_owned);
        let has_tools = [view.tools, view.functions]
            .into_iter()
            .any(|offered| written(offered).is_some_and(|offered| !offered.is_empty()));
        let stream = match written(view.stream).map(Written::bytes) {
            None | Some(b"null" | b"false") => false,
            Some(b"true") => true,
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
            prompt_bytes: input_at.len(),
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
            .then(|| simdutf8::basic::from_utf8(self.input()).ok())
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

fn malformed(what: &str) -> Error {
    Error::new(
        Kind::InvalidRequest,
        format!("the body is not a valid JSON object: {what}"),
    )
}

fn read_model(body: &[u8], at: Option<Span>) -> Result<(String, Range<usize>), Error> {
    let at = at.ok_or_else(|| wrong("model", "is required: name the model that should answer"))?;
    let model = at
        .of(body)
        .text()
        .ok_or_else(|| wrong("model", "must be a text: the name of a model"))?;
    if model.trim().is_empty() {
        return Err(wrong("model", "must not be empty: name the model that should answer"));
    }
    Ok((model.into_owned(), at.range()))
}

fn read_input(body: &[u8], surface: Surface, view: &View) -> Result<Range<usize>, Error> {
    let field = surface.input_field();
    let at = match surface {
        Surface::Chat => view.messages,
        Surface::Embeddings => view.input,
    };
    let at = at
        .filter(|at| !at.of(body).is_null())
        .ok_or_else(|| wrong(field, "is required"))?;
    if surface == Surface::Chat {
        if !at.of(body).is_list() {
            return Err(wrong(field, "must be a list of messages"));
        }
        if at.of(body).is_empty() {
            return Err(wrong(field, "must hold at least one message"));
        }
    }
    Ok(at.range())
}

/// More output than this is nobody's to ask for.
const MOST_OUTPUT: f64 = 1e12;

/// A count, be it written `4000`, `4000.0` or `4e3`.
fn read_count(written: Written<'_>) -> Option<u64> {
    let count: f64 = match written.count().map(u32::try_from) {
        // Nearly all are, and nobody has to look for a point in them.
        Some(Ok(small)) => return Some(small.into()),
        _ => written.as_str().parse().ok()?,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is rounded down, and within a range that fits"
    )]
    (0.0..=MOST_OUTPUT).contains(&count).then(|| count.floor() as u64)
}

fn read_stream_options(body: &[u8], at: Option<Span>) -> Result<(bool, StreamOptions), Error> {
    let Some(at) = at else {
        return Ok((false, StreamOptions::Absent));
    };
    let options = at.of(body);
    if options.is_null() {
        return Ok((false, StreamOptions::Value(at.range())));
    }
    let flag = read_include_usage(options).map_err(|_| wrong("stream_options", "must be an object"))?;
    Ok(match flag {
        None if options.is_empty() => (false, StreamOptions::Value(at.range())),
        None => (false, StreamOptions::Object(at.start + 1)),
        Some(flag) => match flag.of(options.bytes()).bytes() {
            b"true" => (true, StreamOptions::Asked),
            b"false" | b"null" => {
                let range = at.start + flag.start..at.start + flag.end;
                (false, StreamOptions::Flag(range))
            }
            _ => return Err(wrong("stream_options.include_usage", "must be true or false")),
        },
    })
}

fn read_include_usage(options: Written<'_>) -> Result<Option<Span>, Wrong> {
    let mut skim = Skim::new(options.bytes());
    let mut flag = None;
    skim.enter_object()?;
    while let Some(key) = skim.key()? {
        match key {
            b"include_usage" => skim.fill(&mut flag, "include_usage")?,
            _ => skim.skip()?,
        }
    }
    skim.finish()?;
    Ok(flag)
}
