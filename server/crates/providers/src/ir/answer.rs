//! A whole answer.

use super::Part;
use serde_json::Value;
use switchyard_core::usage::Usage;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The vendor's id of it.
    pub id: Option<String>,
    /// As the vendor names the model.
    pub model: Option<String>,
    /// Seconds since the Unix epoch.
    pub created: Option<i64>,
    /// In the order of their indices. Most wires know one only.
    pub choices: Vec<Choice>,
    pub usage: Usage,
    pub service_tier: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// In the order in which they were said: thoughts, texts, calls of tools.
    pub parts: Vec<Part>,
    pub finish: Finish,
    /// As OpenAI writes them: `{"content":[{"token","logprob","bytes","top_logprobs"}],"refusal":null}`.
    pub logprobs: Option<Value>,
}

/// Why a choice ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// The model had said all it had to say.
    #[default]
    Stop,
    /// It came to one of the caller's stop texts; which one, where the vendor says it.
    StopSequence(Option<String>),
    /// `max_tokens`.
    Length,
    /// The model's own window.
    ContextWindow,
    /// It waits for results of tools.
    ToolCalls,
    /// The vendor held it back.
    ContentFilter,
    /// The model declined.
    Refusal,
    /// A vendor's long turn, to be carried on by sending it back.
    Pause,
    /// Another reason, in the vendor's word.
    Other(String),
}
