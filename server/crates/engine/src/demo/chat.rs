//! A chat answer as a value: composed once, then sent whole or in a stream, so that both say and count the same.

use super::{
    Stamp,
    request::{ChatRequest, Format},
    schema::Filler,
    text, tokens, tools,
    tools::Call,
    wire,
};
use serde_json::json;

pub(super) struct Answer {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: &'static str,
    pub(super) choices: Vec<Choice>,
    pub(super) usage: wire::Usage,
}

pub(super) struct Choice {
    pub(super) content: Content,
    /// `stop`, `length` or `tool_calls`.
    pub(super) finish_reason: &'static str,
}

pub(super) enum Content {
    Text(String),
    Calls(Vec<Call>),
}

impl Answer {
    pub(super) fn compose(request: &ChatRequest, stamp: Stamp) -> Self {
        let choices: Vec<_> = (0..request.choices as u64)
            .map(|nth| Choice::compose(request, text::mix(request.seed.wrapping_add(nth)), stamp))
            .collect();
        let completion_tokens = choices.iter().map(|choice| choice.content.tokens()).sum();
        Self {
            id: format!("chatcmpl-simulated-{:08x}{:08x}", stamp.created, stamp.serial),
            created: stamp.created,
            model: request.model.id(),
            choices,
            usage: wire::Usage::of(request.prompt_tokens, completion_tokens),
        }
    }

    /// How many steps of the clock it takes: one for each token, all choices side by side.
    pub(super) fn steps(&self) -> usize {
        self.choices
            .iter()
            .map(|choice| choice.content.tokens())
            .max()
            .unwrap_or(0)
    }

    pub(super) fn unary(&self) -> wire::Completion<'_> {
        wire::Completion {
            id: &self.id,
            object: "chat.completion",
            created: self.created,
            model: self.model,
            choices: self
                .choices
                .iter()
                .enumerate()
                .map(|(index, choice)| choice.unary(index))
                .collect(),
            usage: self.usage,
            system_fingerprint: wire::FINGERPRINT,
        }
    }
}

impl Choice {
    fn compose(request: &ChatRequest, seed: u64, stamp: Stamp) -> Self {
        // Two answers to one question must not have calls of the same id.
        let calls = tools::calls(request, seed ^ text::mix(stamp.serial));
        if !calls.is_empty() {
            return Self::calling(calls, request.max_tokens);
        }
        let prompt = request.last_user_text();
        let full = match (&request.format, request.tool_result()) {
            (Format::JsonSchema(schema), _) => Filler::new(schema, prompt).object().to_string(),
            (Format::JsonObject, _) => json!({"simulated": true, "topics": text::topics(prompt)}).to_string(),
            (Format::Text, Some(result)) => text::answer_with_tool_result(prompt, result, seed),
            (Format::Text, None) => text::answer(prompt, seed),
        };
        Self::saying(full, &request.stop, request.max_tokens)
    }

    /// What comes first ends the text: a stop sequence or the limit.
    fn saying(mut full: String, stop: &[String], max_tokens: Option<usize>) -> Self {
        if let Some(end) = stop.iter().filter_map(|sequence| full.find(sequence.as_str())).min() {
            full.truncate(end);
        }
        match max_tokens.and_then(|limit| tokens::truncated(&full, limit)) {
            Some(cut) => Self {
                content: Content::Text(cut.to_owned()),
                finish_reason: "length",
            },
            None => Self {
                content: Content::Text(full),
                finish_reason: "stop",
            },
        }
    }

    fn calling(mut calls: Vec<Call>, max_tokens: Option<usize>) -> Self {
        let mut left = max_tokens.unwrap_or(usize::MAX);
        let mut finish_reason = "tool_calls";
        calls.retain_mut(|call| {
            if left == 0 {
                finish_reason = "length";
                return false;
            }
            left -= 1;
            if let Some(cut) = tokens::truncated(&call.arguments, left) {
                call.arguments = cut.to_owned();
                finish_reason = "length";
            }
            left = left.saturating_sub(tokens::count(&call.arguments));
            true
        });
        Self {
            content: Content::Calls(calls),
            finish_reason,
        }
    }

    fn unary(&self, index: usize) -> wire::Choice<'_> {
        let (content, tool_calls) = match &self.content {
            Content::Text(text) => (Some(text.as_str()), Vec::new()),
            Content::Calls(calls) => (None, calls.iter().map(whole_call).collect()),
        };
        let message = wire::Message {
            role: "assistant",
            content,
            tool_calls,
            refusal: None,
        };
        wire::Choice {
            index,
            message,
            logprobs: None,
            finish_reason: self.finish_reason,
        }
    }
}

impl Content {
    fn tokens(&self) -> usize {
        match self {
            Self::Text(text) => tokens::count(text),
            // The name is one token, and one frame.
            Self::Calls(calls) => calls.iter().map(|call| 1 + tokens::count(&call.arguments)).sum(),
        }
    }
}

fn whole_call(call: &Call) -> wire::ToolCall<'_> {
    wire::ToolCall {
        index: None,
        id: Some(&call.id),
        r#type: Some("function"),
        function: wire::Function {
            name: Some(&call.name),
            arguments: &call.arguments,
        },
    }
}
