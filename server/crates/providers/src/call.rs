//! A caller's request, read once and only as deep as needed.

use crate::front::front;
use crate::ir::Prompt;
use crate::prompt::{Piece, Whose, part, pieces};
use crate::skim::{Skim, Span, Written, Wrong};
use bytes::Bytes;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use switchyard_core::error::{Error, Kind};

/// Where a call came in: what is asked for, and in whose words. Surfaces differ in data, not in code paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    Chat,
    /// OpenAI's older way: a prompt and no messages.
    Completions,
    Embeddings,
    Responses,
    /// Anthropic's.
    Messages,
    CountTokens,
    /// Gemini's.
    Generate,
    GeminiCountTokens,
}

/// How a caller writes, errors included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    OpenAi,
    Anthropic,
    Gemini,
}

/// What is to be done, whatever the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    Converse,
    Embed,
    /// Count the tokens of a conversation.
    Count,
}

impl Surface {
    pub const ALL: [Self; 8] = [
        Self::Chat,
        Self::Completions,
        Self::Embeddings,
        Self::Responses,
        Self::Messages,
        Self::CountTokens,
        Self::Generate,
        Self::GeminiCountTokens,
    ];

    /// The word for logs, metrics and pages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Embeddings => "embeddings",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::CountTokens => "count_tokens",
            Self::Generate => "generate_content",
            Self::GeminiCountTokens => "gemini_count_tokens",
        }
    }

    #[must_use]
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Chat | Self::Completions | Self::Embeddings | Self::Responses => Dialect::OpenAi,
            Self::Messages | Self::CountTokens => Dialect::Anthropic,
            Self::Generate | Self::GeminiCountTokens => Dialect::Gemini,
        }
    }

    #[must_use]
    pub const fn task(self) -> Task {
        match self {
            Self::Chat | Self::Completions | Self::Responses | Self::Messages | Self::Generate => Task::Converse,
            Self::Embeddings => Task::Embed,
            Self::CountTokens | Self::GeminiCountTokens => Task::Count,
        }
    }

    /// Below an API's root, where the path is always the same.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Completions => "/completions",
            Self::Embeddings => "/embeddings",
            Self::Responses => "/responses",
            Self::Messages => "/messages",
            Self::CountTokens => "/messages/count_tokens",
            Self::Generate | Self::GeminiCountTokens => "/models",
        }
    }

    /// The field without which there is nothing to answer.
    const fn input_field(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages | Self::CountTokens => "messages",
            Self::Completions => "prompt",
            Self::Embeddings | Self::Responses => "input",
            Self::Generate | Self::GeminiCountTokens => "contents",
        }
    }

    /// The field without which an answer is none.
    pub(crate) const fn output_field(self) -> &'static str {
        match self {
            Self::Chat | Self::Completions => "choices",
            Self::Embeddings => "data",
            Self::Responses => "output",
            Self::Messages => "content",
            Self::CountTokens => "input_tokens",
            Self::Generate => "candidates",
            Self::GeminiCountTokens => "totalTokens",
        }
    }
}

/// What a path says about a call, where a dialect puts it there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FromPath {
    pub model: String,
    pub stream: bool,
}

/// Which request a call belongs to: what an answer is named after whose upstream gave it no name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The request's id.
    pub id: Arc<str>,
    /// Its arrival, in seconds since the Unix epoch.
    pub at: i64,
}

/// A request in its caller's dialect: the bytes as they came, and where in them the few things stand that the gateway may have
/// to change.
#[derive(Clone, Debug)]
pub struct Call {
    pub surface: Surface,
    pub origin: Origin,
    pub body: Bytes,
    /// As the caller wrote it.
    pub model: String,
    pub stream: bool,
    /// The caller wants the chunk with usage at a stream's end.
    pub wants_usage: bool,
    /// Nowhere, if the path says it.
    pub(crate) model_at: Option<Range<usize>>,
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
    /// Where that stands which goes before the messages.
    system_at: Option<Range<usize>>,
    /// Read when it is needed: a call that is relayed needs none.
    prompt: OnceLock<Result<Arc<Prompt>, Error>>,
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
    input: Option<Span>,
    system: Option<Span>,
    /// Names the user, or holds what does.
    user: Option<Span>,
    tools: Option<Span>,
    functions: Option<Span>,
    max_tokens: Option<Span>,
    max_completion_tokens: Option<Span>,
}

impl View {
    fn read(&mut self, surface: Surface, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        let input = surface.input_field();
        skim.enter_object()?;
        match surface.dialect() {
            Dialect::OpenAi => self.read_openai(input, skim)?,
            Dialect::Anthropic => self.read_anthropic(input, skim)?,
            Dialect::Gemini => self.read_gemini(input, skim)?,
        }
        skim.finish()
    }

    fn read_openai(&mut self, input: &'static str, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        while let Some(key) = skim.key()? {
            match key {
                b"model" => skim.fill(&mut self.model, "model")?,
                b"stream" => skim.fill(&mut self.stream, "stream")?,
                b"stream_options" => skim.fill(&mut self.stream_options, "stream_options")?,
                b"user" => skim.fill(&mut self.user, "user")?,
                b"tools" => skim.fill(&mut self.tools, "tools")?,
                b"functions" => skim.fill(&mut self.functions, "functions")?,
                b"max_tokens" => skim.fill(&mut self.max_tokens, "max_tokens")?,
                b"max_completion_tokens" => {
                    skim.fill(&mut self.max_completion_tokens, "max_completion_tokens")?;
                }
                b"max_output_tokens" => skim.fill(&mut self.max_completion_tokens, "max_output_tokens")?,
                b"instructions" => skim.fill(&mut self.system, "instructions")?,
                key if key == input.as_bytes() => skim.fill(&mut self.input, input)?,
                _ => skim.skip()?,
            }
        }
        Ok(())
    }

    fn read_anthropic(&mut self, input: &'static str, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        while let Some(key) = skim.key()? {
            match key {
                b"model" => skim.fill(&mut self.model, "model")?,
                b"stream" => skim.fill(&mut self.stream, "stream")?,
                b"system" => skim.fill(&mut self.system, "system")?,
                b"metadata" => skim.fill(&mut self.user, "metadata")?,
                b"tools" => skim.fill(&mut self.tools, "tools")?,
                b"max_tokens" => skim.fill(&mut self.max_tokens, "max_tokens")?,
                key if key == input.as_bytes() => skim.fill(&mut self.input, input)?,
                _ => skim.skip()?,
            }
        }
        Ok(())
    }

    /// The protocol's other way of writing names, with underscores, is taken as well.
    fn read_gemini(&mut self, input: &'static str, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        while let Some(key) = skim.key()? {
            match key {
                b"systemInstruction" | b"system_instruction" => skim.fill(&mut self.system, "systemInstruction")?,
                b"tools" => skim.fill(&mut self.tools, "tools")?,
                b"generationConfig" | b"generation_config" => skim.fill(&mut self.max_tokens, "generationConfig")?,
                // What is to be counted may stand one level deeper, as a whole request.
                b"generateContentRequest" | b"generate_content_request" => {
                    skim.fill(&mut self.input, "generateContentRequest")?;
                }
                key if key == input.as_bytes() => skim.fill(&mut self.input, input)?,
                _ => skim.skip()?,
            }
        }
        Ok(())
    }
}

impl Call {
    /// Reads a request body.
    ///
    /// # Errors
    /// [`Kind::InvalidRequest`] that names the field and what it must be.
    pub fn parse(surface: Surface, body: Bytes) -> Result<Self, Error> {
        Self::read(surface, body, None, Origin::default())
    }

    /// Reads a request body that came in by a path which may say something too.
    ///
    /// # Errors
    /// [`Kind::InvalidRequest`] that names the field and what it must be.
    pub fn read(surface: Surface, body: Bytes, path: Option<FromPath>, origin: Origin) -> Result<Self, Error> {
        let mut skim = Skim::new(&body);
        let mut view = View::default();
        view.read(surface, &mut skim)
            .map_err(|wrong| malformed(&skim.explain(wrong)))?;
        let written = |span: Option<Span>| span.map(|span| span.of(&body));
        let (model, model_at, stream) = match path {
            Some(FromPath { model, stream }) => (model, None, stream),
            None => {
                let (model, at) = read_model(&body, view.model)?;
                (model, Some(at), read_stream(written(view.stream))?)
            }
        };
        let input_at = read_input(&body, surface, view.input)?;
        // What only routing looks at is not judged here: a value that makes no sense is the upstream's to refuse.
        let max_output = match surface.dialect() {
            Dialect::Gemini => written(view.max_tokens)
                .and_then(|config| member_of(config, &["maxOutputTokens", "max_output_tokens"]))
                .and_then(read_count),
            _ => written(view.max_completion_tokens)
                .and_then(read_count)
                .or_else(|| written(view.max_tokens).and_then(read_count)),
        };
        let user = match surface.dialect() {
            Dialect::Anthropic => written(view.user).and_then(|metadata| member_of(metadata, &["user_id"])),
            _ => written(view.user),
        };
        let user = user
            .and_then(Written::text)
            .filter(|user| !user.is_empty())
            .map(Cow::into_owned);
        let has_tools = [view.tools, view.functions]
            .into_iter()
            .any(|offered| written(offered).is_some_and(|offered| !offered.is_empty()));
        if stream && surface.task() != Task::Converse {
            return Err(wrong("stream", "is not possible here: the answer comes in one piece"));
        }
        let (wants_usage, stream_options) = match surface {
            Surface::Chat | Surface::Completions => read_stream_options(&body, view.stream_options)?,
            // These report usage in every stream.
            _ => (true, StreamOptions::Asked),
        };
        let system_at = view.system.map(Span::range);
        Ok(Self {
            surface,
            origin,
            model,
            stream,
            wants_usage,
            model_at,
            stream_options,
            prompt_bytes: input_at.len() + system_at.as_ref().map_or(0, ExactSizeIterator::len),
            user,
            has_tools,
            max_output,
            input_at,
            system_at,
            prompt: OnceLock::new(),
            body,
        })
    }

    /// What it says, apart from how it is written. Read once, at the first need.
    ///
    /// # Errors
    /// [`Kind::InvalidRequest`] that names the field and what it must be.
    pub fn prompt(&self) -> Result<Arc<Prompt>, Error> {
        let read = || front(self.surface).read(self).map(Arc::new);
        self.prompt.get_or_init(read).clone()
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
        match self.surface.task() {
            Task::Converse | Task::Count => {
                // What is odd may be data, and data is no text.
                let mut count = |piece: Piece<'_>| {
                    if matches!(piece, Piece::Text(_)) {
                        characters += piece.read().chars().count();
                    }
                };
                pieces(self.messages().unwrap_or_default(), Whose::Everyones, &mut count);
                if let Some(system) = self.system() {
                    part(system, &mut count);
                }
            }
            Task::Embed => match serde_json::from_slice(self.input()) {
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

    pub(crate) fn input(&self) -> &[u8] {
        self.body.get(self.input_at.clone()).unwrap_or_default()
    }

    /// The messages as they are written.
    fn messages(&self) -> Option<&str> {
        (self.surface.task() != Task::Embed)
            .then(|| simdutf8::basic::from_utf8(self.input()).ok())
            .flatten()
    }

    /// What goes before the messages, as it is written.
    fn system(&self) -> Option<&str> {
        simdutf8::basic::from_utf8(self.body.get(self.system_at.clone()?)?).ok()
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

fn read_stream(written: Option<Written<'_>>) -> Result<bool, Error> {
    match written.map(Written::bytes) {
        None | Some(b"null" | b"false") => Ok(false),
        Some(b"true") => Ok(true),
        Some(_) => Err(wrong("stream", "must be true or false")),
    }
}

/// A member of an object, by the first of its names that is there; nothing if the object is none.
fn member_of<'a>(object: Written<'a>, names: &[&str]) -> Option<Written<'a>> {
    let mut skim = Skim::new(object.bytes());
    let mut found = None;
    if !skim.enter_if(b'{').ok()? {
        return None;
    }
    while let Some(key) = skim.any_key().ok()? {
        let is_it = key.is_some_and(|key| names.iter().any(|name| name.as_bytes() == key));
        let value = skim.value().ok()?;
        if is_it {
            found = Some(value);
        }
    }
    found.map(|span| span.of(object.bytes()))
}

fn read_input(body: &[u8], surface: Surface, at: Option<Span>) -> Result<Range<usize>, Error> {
    let field = surface.input_field();
    let at = match (at.filter(|at| !at.of(body).is_null()), surface) {
        (Some(at), _) => at,
        // A stored prompt, or an earlier answer, may be all there is.
        (None, Surface::Responses) => return Ok(0..0),
        (None, _) => return Err(wrong(field, "is required")),
    };
    let takes_text = matches!(surface, Surface::Completions | Surface::Embeddings | Surface::Responses);
    if !takes_text && surface != Surface::GeminiCountTokens {
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
