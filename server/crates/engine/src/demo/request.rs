//! What a chat request asks for.

use super::{
    fields::Fields,
    refusal::Refusal,
    text::{fingerprint, mix},
    tokens,
    tools::{Tool, ToolChoice},
};
use serde_json::Value;

/// What a picture, a sound or a file in a message counts for.
const TOKENS_PER_ATTACHMENT: usize = 85;
/// What a message costs beside its text: its role and its borders.
const TOKENS_PER_MESSAGE: usize = 4;

/// The demo models that chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    Normal,
    Slow,
    Flaky,
    Cut,
    RateLimited,
}

impl Model {
    fn parse(name: &str) -> Result<Self, Refusal> {
        match name {
            "demo" => Ok(Self::Normal),
            "demo-slow" => Ok(Self::Slow),
            "demo-flaky" => Ok(Self::Flaky),
            "demo-cut" => Ok(Self::Cut),
            "demo-429" => Ok(Self::RateLimited),
            "demo-embed" => Err(Refusal::wrong_endpoint(name, "/chat/completions")),
            unknown => Err(Refusal::unknown_model(unknown)),
        }
    }

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Normal => "demo",
            Self::Slow => "demo-slow",
            Self::Flaky => "demo-flaky",
            Self::Cut => "demo-cut",
            Self::RateLimited => "demo-429",
        }
    }
}

pub(super) struct ChatRequest {
    pub(super) model: Model,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) max_tokens: Option<usize>,
    pub(super) stop: Vec<String>,
    /// The request's `n`.
    pub(super) choices: usize,
    pub(super) format: Format,
    pub(super) tools: Vec<Tool>,
    pub(super) tool_choice: ToolChoice,
    pub(super) parallel_tool_calls: bool,
    /// Never empty.
    pub(super) messages: Vec<Message>,
    pub(super) prompt_tokens: usize,
    /// A function of the messages and of the request's `seed`: what is random about an answer comes from it.
    pub(super) seed: u64,
}

pub(super) struct Message {
    pub(super) role: String,
    /// All the text of its parts.
    pub(super) text: String,
    attachments: usize,
}

/// The request's `response_format`.
pub(super) enum Format {
    Text,
    JsonObject,
    JsonSchema(Value),
}

impl ChatRequest {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let body: Value = serde_json::from_slice(body).map_err(|_| Refusal::bad_json())?;
        let fields = Fields::of(&body, String::new())?;
        let model = Model::parse(fields.required_string("model")?)?;
        let messages = messages(&fields)?;
        let tools = Tool::parse_all(&fields)?;
        let tool_choice = ToolChoice::parse(&fields, &tools)?;
        fields.number("temperature", 0.0..=2.0)?;
        let stream = fields.flag("stream", false)?;
        let prompt_tokens = prompt_tokens(&messages) + fields.get("tools").map_or(0, |t| tokens::count(&t.to_string()));
        let seed = messages.iter().fold(fields.seed("seed")?.unwrap_or(0), |seed, m| {
            mix(seed ^ fingerprint(&m.text))
        });
        Ok(Self {
            model,
            stream,
            include_usage: include_usage(&fields, stream)?,
            max_tokens: max_tokens(&fields)?,
            stop: stop(&fields)?,
            choices: fields.count("n", 1..=128)?.unwrap_or(1),
            format: Format::parse(&fields)?,
            tools,
            tool_choice,
            parallel_tool_calls: fields.flag("parallel_tool_calls", true)?,
            messages,
            prompt_tokens,
            seed,
        })
    }

    /// What the user said last; empty when nobody did.
    pub(super) fn last_user_text(&self) -> &str {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role == "user")
            .map_or("", |message| &message.text)
    }

    /// The text of the tool's result that the conversation ends with.
    pub(super) fn tool_result(&self) -> Option<&str> {
        self.messages
            .last()
            .filter(|message| message.role == "tool")
            .map(|message| message.text.as_str())
    }
}

impl Format {
    fn parse(fields: &Fields<'_>) -> Result<Self, Refusal> {
        let Some(format) = fields.object("response_format")? else {
            return Ok(Self::Text);
        };
        match format.required_string("type")? {
            "text" => Ok(Self::Text),
            "json_object" => Ok(Self::JsonObject),
            "json_schema" => {
                let missing = || Refusal::missing(format.path_of("json_schema"));
                let definition = format.object("json_schema")?.ok_or_else(missing)?;
                definition.required_string("name")?;
                definition.object("schema")?;
                Ok(Self::JsonSchema(
                    definition
                        .get("schema")
                        .cloned()
                        .unwrap_or_else(|| Value::Object(<_>::default())),
                ))
            }
            _ => {
                let problem = "must be 'text', 'json_object' or 'json_schema'";
                Err(Refusal::bad_value(format.path_of("type"), problem))
            }
        }
    }
}

fn messages(fields: &Fields<'_>) -> Result<Vec<Message>, Refusal> {
    let list = fields
        .array("messages")?
        .ok_or_else(|| Refusal::missing("messages".to_owned()))?;
    if list.is_empty() {
        return Err(Refusal::bad_value(
            "messages".to_owned(),
            "must have at least one message",
        ));
    }
    list.iter()
        .enumerate()
        .map(|(nth, message)| {
            let fields = Fields::of(message, format!("messages[{nth}]"))?;
            let role = fields.required_string("role")?.to_owned();
            let (text, attachments) = content(&fields)?;
            Ok(Message {
                role,
                text,
                attachments,
            })
        })
        .collect()
}

/// A message's text, and how many parts of it are something else.
fn content(fields: &Fields<'_>) -> Result<(String, usize), Refusal> {
    let parts = match fields.get("content") {
        None => return Ok((String::new(), 0)),
        Some(Value::String(text)) => return Ok((text.clone(), 0)),
        Some(Value::Array(parts)) => parts,
        Some(_) => {
            return Err(Refusal::wrong_type(
                fields.path_of("content"),
                "a string or an array of parts",
            ));
        }
    };
    let mut texts = Vec::new();
    for (nth, part) in parts.iter().enumerate() {
        let part = Fields::of(part, fields.path_of(&format!("content[{nth}]")))?;
        if part.required_string("type")? == "text" {
            texts.push(part.required_string("text")?);
        }
    }
    Ok((texts.join("\n"), parts.len() - texts.len()))
}

fn prompt_tokens(messages: &[Message]) -> usize {
    let tokens_of = |message: &Message| {
        TOKENS_PER_MESSAGE + tokens::count(&message.text) + message.attachments * TOKENS_PER_ATTACHMENT
    };
    messages.iter().map(tokens_of).sum()
}

fn include_usage(fields: &Fields<'_>, stream: bool) -> Result<bool, Refusal> {
    match fields.object("stream_options")? {
        None => Ok(false),
        Some(_) if !stream => Err(Refusal::bad_value(
            "stream_options".to_owned(),
            "is only allowed when 'stream' is true",
        )),
        Some(options) => options.flag("include_usage", false),
    }
}

/// The smaller of the new and the old name, when a request has both.
fn max_tokens(fields: &Fields<'_>) -> Result<Option<usize>, Refusal> {
    let new = fields.count("max_completion_tokens", 1..=usize::MAX)?;
    let old = fields.count("max_tokens", 1..=usize::MAX)?;
    Ok(new.into_iter().chain(old).min())
}

fn stop(fields: &Fields<'_>) -> Result<Vec<String>, Refusal> {
    let wrong = || Refusal::wrong_type("stop".to_owned(), "a string or an array of strings");
    let mut stop = match fields.get("stop") {
        None => Vec::new(),
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(list)) => {
            let strings = list.iter().map(|value| value.as_str().map(str::to_owned));
            strings.collect::<Option<Vec<_>>>().ok_or_else(wrong)?
        }
        Some(_) => return Err(wrong()),
    };
    stop.retain(|sequence| !sequence.is_empty());
    Ok(stop)
}
