//! What one event of a chat stream says.
//!
//! Read leniently: a field that is missing, null or of another type is as good as absent. Upstreams differ, and a playground
//! that stops at the first surprise would hide the rest of the answer.

use serde_json::Value;

/// A part of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<CallPart>,
    pub finish: Option<String>,
    pub usage: Option<Usage>,
    /// The stream ends here, and not well.
    pub error: Option<String>,
}

/// A part of a tool call. Its name comes once, its arguments in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPart {
    pub index: usize,
    pub name: String,
    pub arguments: String,
}

/// Tokens as the upstream counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub tokens_in: u64,
    pub tokens_out: u64,
}

impl Chunk {
    /// Reads the data of an event. What is no JSON is an error that quotes it.
    pub fn read(data: &str) -> Self {
        let Ok(json) = serde_json::from_str::<Value>(data) else {
            let quoted: String = data.chars().take(200).collect();
            return Self {
                error: Some(format!("The stream held something that is no JSON: {quoted}")),
                ..Self::default()
            };
        };
        let (choice, delta) = (&json["choices"][0], &json["choices"][0]["delta"]);
        let reasoning = [&delta["reasoning_content"], &delta["reasoning"]]
            .into_iter()
            .find(|value| value.is_string());
        Self {
            text: text(&delta["content"]) + &text(&delta["refusal"]),
            reasoning: reasoning.map(text).unwrap_or_default(),
            calls: delta["tool_calls"].as_array().into_iter().flatten().map(call).collect(),
            finish: choice["finish_reason"].as_str().map(str::to_owned),
            usage: usage(&json["usage"]),
            error: error(&json["error"]),
        }
    }

    /// Whether anything of the answer itself is here: what "first token" means.
    pub const fn has_content(&self) -> bool {
        !(self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn call(value: &Value) -> CallPart {
    CallPart {
        index: value["index"]
            .as_u64()
            .and_then(|index| usize::try_from(index).ok())
            .unwrap_or(0),
        name: text(&value["function"]["name"]),
        arguments: text(&value["function"]["arguments"]),
    }
}

fn usage(value: &Value) -> Option<Usage> {
    Some(Usage {
        tokens_in: value["prompt_tokens"].as_u64()?,
        tokens_out: value["completion_tokens"].as_u64()?,
    })
}

fn error(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(message) => Some(message.clone()),
        other => Some(
            other["message"]
                .as_str()
                .map_or_else(|| other.to_string(), str::to_owned),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_usage_and_errors_are_found_where_they_are() {
        let chunk = Chunk::read(r#"{"choices":[{"delta":{"content":"Har"},"finish_reason":null}]}"#);
        assert_eq!(
            chunk,
            Chunk {
                text: "Har".to_owned(),
                ..Chunk::default()
            }
        );
        let last = Chunk::read(r#"{"choices":[],"usage":{"prompt_tokens":42,"completion_tokens":18}}"#);
        assert_eq!(
            last.usage,
            Some(Usage {
                tokens_in: 42,
                tokens_out: 18
            })
        );
        assert_eq!(
            Chunk::read(r#"{"error":{"message":"cut","type":"x"}}"#)
                .error
                .as_deref(),
            Some("cut")
        );
    }

    #[test]
    fn a_role_alone_is_not_the_first_token() {
        assert!(!Chunk::read(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#).has_content());
        let call = Chunk::read(
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"name":"stock","arguments":"{"}}]}}]}"#,
        );
        assert!(call.has_content());
        assert_eq!(
            call.calls,
            [CallPart {
                index: 1,
                name: "stock".to_owned(),
                arguments: "{".to_owned()
            }]
        );
    }

    #[test]
    fn surprises_do_not_panic() {
        for odd in [
            "[]",
            "null",
            "7",
            r#"{"choices":{}}"#,
            r#"{"choices":[{"delta":{"tool_calls":[3]}}],"usage":"x"}"#,
        ] {
            assert_eq!(Chunk::read(odd).error, None, "{odd}");
        }
        assert!(Chunk::read("oops").error.is_some());
    }
}
