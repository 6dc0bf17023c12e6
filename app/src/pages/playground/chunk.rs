//! What one event of a stream says, in whichever dialect.
//!
//! Read leniently: a field that is missing, null or of another type is as good as absent. Upstreams differ, and a playground
//! that stops at the first surprise would hide the rest of the answer.

mod chat;
mod gemini;
mod messages;
mod responses;

use super::dialect::Dialect;
use serde_json::Value;

/// A part of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<CallPart>,
    pub finish: Option<String>,
    pub usage: Usage,
    /// The stream ends here, and not well.
    pub error: Option<String>,
    /// Nothing comes after this.
    pub last: bool,
}

/// A part of a tool call. Its name comes once, its arguments in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPart {
    /// Which call of this answer it belongs to. Where a dialect has no such number, a part is a whole call.
    pub index: Option<u64>,
    pub name: String,
    pub arguments: String,
}

/// Tokens as the upstream counted them, as far as it has said by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cached: Option<u64>,
    pub cache_write: Option<u64>,
    pub reasoning: Option<u64>,
    /// What has to do with the cache is not among `tokens_in`.
    pub cache_apart: bool,
}

impl Usage {
    /// As OpenAI writes it, in two places under different names.
    fn read(value: &Value, [tokens_in, tokens_out]: [&str; 2], [of_in, of_out]: [&str; 2]) -> Self {
        let of_in = &value[of_in];
        Self {
            tokens_in: value[tokens_in].as_u64(),
            tokens_out: value[tokens_out].as_u64(),
            cached: of_in["cached_tokens"].as_u64(),
            cache_write: of_in["cache_write_tokens"].as_u64(),
            reasoning: value[of_out]["reasoning_tokens"].as_u64(),
            cache_apart: false,
        }
    }

    /// What is known now that `later` has been said too.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self {
            tokens_in: later.tokens_in.or(self.tokens_in),
            tokens_out: later.tokens_out.or(self.tokens_out),
            cached: later.cached.or(self.cached),
            cache_write: later.cache_write.or(self.cache_write),
            reasoning: later.reasoning.or(self.reasoning),
            cache_apart: later.cache_apart || self.cache_apart,
        }
    }

    /// All that was read, from a cache or not.
    pub fn all_in(self) -> Option<u64> {
        let apart = if self.cache_apart {
            self.cached.unwrap_or(0) + self.cache_write.unwrap_or(0)
        } else {
            0
        };
        self.tokens_in.map(|tokens| tokens + apart)
    }
}

impl Chunk {
    /// Reads the data of an event. What is no JSON is an error that quotes it.
    pub fn read(dialect: Dialect, data: &str) -> Self {
        let mut chunk = Self::default();
        if data == "[DONE]" {
            chunk.last = true;
            return chunk;
        }
        let Ok(json) = serde_json::from_str::<Value>(data) else {
            let quoted: String = data.chars().take(200).collect();
            chunk.error = Some(["The stream held something that is no JSON: ", &quoted].concat());
            return chunk;
        };
        match dialect {
            Dialect::Chat => chat::read(&json, &mut chunk),
            Dialect::Responses => responses::read(&json, &mut chunk),
            Dialect::Messages => messages::read(&json, &mut chunk),
            Dialect::Gemini => gemini::read(&json, &mut chunk),
        }
        if chunk.error.is_none() {
            // Where all of them put it.
            chunk.error = error(&json["error"]);
        }
        chunk
    }

    /// A part of a call. Arguments are text, or the JSON that the text would be.
    fn call(&mut self, index: Option<u64>, name: &Value, arguments: &Value) {
        let mut part = CallPart {
            index,
            ..CallPart::default()
        };
        add(&mut part.name, name);
        match arguments {
            Value::Null => {}
            Value::String(text) => part.arguments.push_str(text),
            json => part.arguments = json.to_string(),
        }
        self.calls.push(part);
    }

    /// Whether anything of the answer itself is here: what "first token" means.
    pub const fn has_content(&self) -> bool {
        !(self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty())
    }
}

fn add(text: &mut String, value: &Value) {
    text.push_str(value.as_str().unwrap_or_default());
}

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn error(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(message) => Some(message.clone()),
        other => word(&other["message"]).or_else(|| Some(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surprises_do_not_panic() {
        for odd in [
            "[]",
            "null",
            "7",
            r#"{"choices":{}}"#,
            r#"{"choices":[{"delta":{"tool_calls":[3]}}],"usage":"x"}"#,
            r#"{"type":"content_block_delta"}"#,
            r#"{"type":"message_start","message":[],"index":"x"}"#,
            r#"{"type":"response.output_item.added","item":7,"output_index":-1}"#,
            r#"{"type":"response.output_text.delta","delta":{}}"#,
            r#"{"candidates":[{"content":{"parts":[7,{"functionCall":3}]}}],"usageMetadata":[]}"#,
        ] {
            for dialect in Dialect::ALL {
                assert_eq!(Chunk::read(dialect, odd).error, None, "{odd}");
            }
        }
        for dialect in Dialect::ALL {
            assert!(Chunk::read(dialect, "oops").error.is_some());
            assert!(Chunk::read(dialect, "[DONE]").last);
        }
    }

    #[test]
    fn an_error_is_found_in_each_dialects_shape() {
        for (dialect, data) in [
            (Dialect::Chat, r#"{"error":{"message":"cut","type":"x"}}"#),
            (Dialect::Chat, r#"{"error":"cut"}"#),
            (
                Dialect::Messages,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"cut"}}"#,
            ),
            (
                Dialect::Gemini,
                r#"{"error":{"code":503,"message":"cut","status":"UNAVAILABLE"}}"#,
            ),
            (
                Dialect::Responses,
                r#"{"type":"error","code":"x","message":"cut","param":null}"#,
            ),
            (Dialect::Responses, r#"{"type":"error","error":{"message":"cut"}}"#),
            (
                Dialect::Responses,
                r#"{"type":"response.failed","response":{"error":{"message":"cut"}}}"#,
            ),
        ] {
            assert_eq!(Chunk::read(dialect, data).error.as_deref(), Some("cut"), "{data}");
        }
    }

    #[test]
    fn usage_comes_in_parts_and_what_is_apart_is_added_once() {
        let first = Usage {
            tokens_in: Some(3),
            tokens_out: Some(1),
            cached: Some(10),
            cache_write: Some(4),
            cache_apart: true,
            ..Usage::default()
        };
        let last = Usage {
            tokens_out: Some(20),
            ..Usage::default()
        };
        let all = first.and(last);
        assert_eq!((all.all_in(), all.tokens_out), (Some(17), Some(20)));
        assert_eq!(Usage::default().all_in(), None);
    }
}
