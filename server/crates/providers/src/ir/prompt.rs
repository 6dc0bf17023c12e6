//! A request for an answer in a conversation.

use super::Seal;
use crate::Surface;
use crate::params::Param;
use serde_json::Value;

/// A request. What the caller did not say is absent, never a default of ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// In the order in which they were said, those of the system among them.
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may call several tools in one turn.
    pub parallel_tools: Option<bool>,
    pub sampling: Sampling,
    /// Most tokens of output, reasoning included.
    pub max_tokens: Option<u64>,
    pub format: Option<Format>,
    pub reasoning: Option<Reasoning>,
    /// How much the model is to say: `low`, `medium`, `high`.
    pub verbosity: Option<String>,
    /// The end user, as the caller names it.
    pub user: Option<String>,
    /// Texts by name, for whoever reads the vendor's log.
    pub metadata: Option<Value>,
    pub service_tier: Option<String>,
    /// Whether the vendor is to keep the answer.
    pub store: Option<bool>,
    /// What this request has in common with others, for the vendor's cache.
    pub cache_key: Option<String>,
    pub stream: bool,
    /// Fields of the caller's dialect that have no place here.
    pub strangers: Vec<Stranger>,
    /// What the caller called a parameter that has several names in its dialect.
    pub called: Vec<(Param, &'static str)>,
}

impl Prompt {
    /// What the caller calls a parameter.
    #[must_use]
    pub fn name(&self, param: Param, surface: Surface) -> &'static str {
        let called = self.called.iter().find(|(known, _)| *known == param);
        called.map_or_else(|| param.name(surface), |(_, name)| *name)
    }
}

/// Where the caller wrote something: its path in the body, such as `messages[2]`. It is no part of what is said, so that two
/// places are always equal.
#[derive(Clone, Debug, Default)]
pub struct Place(String);

impl Place {
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// `None` where nobody has told.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(&*self.0)
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Place {}

/// A field that only the caller's dialect knows. Where the upstream's wire is of the same family it is passed on; elsewhere it
/// is dropped, with a note.
#[derive(Clone, Debug, PartialEq)]
pub struct Stranger {
    /// Path in the caller's body, such as `prediction` or `messages[2].audio`.
    pub field: String,
    pub value: Value,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u64>,
    pub n: Option<u64>,
    pub seed: Option<i64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub stop: Vec<String>,
    pub logprobs: Option<bool>,
    pub top_logprobs: Option<u64>,
    /// Bias by token, as the caller wrote it.
    pub logit_bias: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    /// The operator of an application, where that is told apart from the system.
    Developer,
    User,
    Assistant,
    /// Results of tools; every part of it is a [`Part::Result`].
    Tool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub role: Role,
    /// Who of that role it is, where there are several.
    pub name: Option<String>,
    pub parts: Vec<Part>,
    pub at: Place,
}

/// One piece of a message, or of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text {
        text: String,
        citations: Vec<Citation>,
        /// The vendor may cache everything up to here; as the caller wrote it, such as `{"type":"ephemeral"}`.
        cache: Option<Value>,
    },
    Image(Image),
    Document(Document),
    Audio(Audio),
    Call(Call),
    Result(ResultOf),
    Thought(Thought),
    /// The model declines, in its own words.
    Refusal(String),
    /// A kind of part that only the caller's dialect knows, with its path in the body.
    Stranger(Stranger),
}

impl Part {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            citations: Vec::new(),
            cache: None,
        }
    }
}

/// Where data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Url(String),
    /// Base64 as the caller wrote it, without the `data:` around it.
    Data {
        media_type: String,
        base64: String,
    },
    /// The vendor's own id of something that was uploaded there.
    File(String),
    /// Plain text in place of a file.
    Text(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    pub source: Source,
    /// `low`, `high`, `auto`.
    pub detail: Option<String>,
    pub cache: Option<Value>,
}

/// A PDF or another file that is read as a document. Also video, where the media type says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub source: Source,
    pub name: Option<String>,
    /// What the caller says about it.
    pub context: Option<String>,
    /// Passages of it are to be cited.
    pub cite: Option<bool>,
    pub cache: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audio {
    pub source: Source,
    /// `wav`, `mp3`, …
    pub format: Option<String>,
    /// What is heard, where that is known.
    pub transcript: Option<String>,
}

/// The model calls a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// Names the call to its result. Never empty: readers of wires that have no ids make one, see `crate::ids`.
    pub id: String,
    pub name: String,
    /// JSON, as text; `{}` for none. Of a custom tool: its input, which is any text.
    pub arguments: String,
    pub is_custom: bool,
    /// What the vendor wants to see again with this call.
    pub seal: Option<Seal>,
    pub cache: Option<Value>,
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultOf {
    pub call_id: String,
    /// Of the tool: read from the call that it answers, where the dialect does not say it.
    pub name: Option<String>,
    /// Texts, images, documents.
    pub parts: Vec<Part>,
    pub is_error: bool,
    pub is_custom: bool,
    pub cache: Option<Value>,
}

impl ResultOf {
    /// All of its text, one part per line.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// The model's reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thought {
    /// Empty where the vendor shows none.
    pub text: String,
    /// `text` is a summary of it and not the reasoning itself.
    pub is_summary: bool,
    pub seal: Option<Seal>,
    /// The vendor hides all of it: the seal is all there is.
    pub is_redacted: bool,
}

/// Where a text has something from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Citation {
    pub url: Option<String>,
    pub title: Option<String>,
    /// The words of the source.
    pub quoted: Option<String>,
    /// Which of the request's documents, counted from 0.
    pub document: Option<u64>,
    /// Where in the answer's text, in characters.
    pub start: Option<u64>,
    pub end: Option<u64>,
    /// As the vendor wrote it, for callers of the same dialect.
    pub raw: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: Option<String>,
    pub kind: ToolKind,
    pub cache: Option<Value>,
    pub at: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ToolKind {
    Function {
        /// JSON schema of its arguments; absent where it takes none.
        schema: Option<Value>,
        strict: Option<bool>,
    },
    /// Takes any text, or one of a grammar.
    Custom(Custom),
    /// Run by the vendor (web search, code, …): as the caller's dialect has it, with its path in the body.
    Vendors(Stranger),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Custom {
    /// As OpenAI writes it: `{"type":"grammar",…}`.
    pub format: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    None,
    /// One of them, whichever.
    Required,
    /// This one.
    Named(String),
    /// One of these, or none unless `required`.
    Among {
        names: Vec<String>,
        required: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    Text,
    /// Any JSON object.
    Json,
    Schema {
        /// Absent where the dialect does not name schemas.
        name: Option<String>,
        description: Option<String>,
        schema: Value,
        strict: Option<bool>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    pub effort: Option<Effort>,
    /// Tokens that may be spent on it.
    pub budget: Option<u64>,
    /// The vendor decides how much.
    pub is_adaptive: bool,
    /// Whether the caller wants to see it, as a summary or in full. Absent: the vendor's habit.
    pub show: Option<bool>,
}

/// How hard to think, from not at all to as hard as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::XHigh,
        Self::Max,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == text)
    }

    /// Tokens of reasoning that come near it, where a wire counts them.
    #[must_use]
    pub const fn budget(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Minimal => 1024,
            Self::Low => 2048,
            Self::Medium => 8192,
            Self::High => 16_384,
            Self::XHigh => 24_576,
            Self::Max => 32_000,
        }
    }

    /// What comes near a number of tokens, where a wire has words for it: the least effort whose budget is enough.
    #[must_use]
    pub fn of_budget(tokens: u64) -> Self {
        let enough = |effort: &Self| effort.budget() >= tokens;
        Self::ALL.into_iter().find(enough).unwrap_or(Self::Max)
    }
}
