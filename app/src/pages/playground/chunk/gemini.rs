//! Gemini: each event is a response of its own with the next parts in it. Nothing marks the last one.

use super::{Chunk, Usage, add, word};
use serde_json::Value;

pub(super) fn read(json: &Value, chunk: &mut Chunk) {
    let candidate = &json["candidates"][0];
    chunk.finish = word(&candidate["finishReason"]).or_else(|| word(&json["promptFeedback"]["blockReason"]));
    chunk.usage = usage(&json["usageMetadata"]);
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        let call = &part["functionCall"];
        if call.is_object() {
            chunk.call(None, &call["name"], &call["args"]);
        } else if part["thought"].as_bool() == Some(true) {
            add(&mut chunk.reasoning, &part["text"]);
        } else {
            add(&mut chunk.text, &part["text"]);
        }
    }
}

fn usage(value: &Value) -> Usage {
    let both = |one: &str, other: &str| match (value[one].as_u64(), value[other].as_u64()) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0) + other.unwrap_or(0)),
    };
    Usage {
        tokens_in: both("promptTokenCount", "toolUsePromptTokenCount"),
        tokens_out: both("candidatesTokenCount", "thoughtsTokenCount"),
        cached: value["cachedContentTokenCount"].as_u64(),
        cache_write: None,
        reasoning: value["thoughtsTokenCount"].as_u64(),
        cache_apart: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::playground::dialect::Dialect;

    fn read(data: &str) -> Chunk {
        Chunk::read(Dialect::Gemini, data)
    }

    #[test]
    fn parts_are_told_apart() {
        let chunk = read(
            r#"{"candidates":[{"content":{"parts":[{"text":"Hm","thought":true},{"text":"Har"},{"functionCall":{"name":"stock","args":{"a":1}}},{"functionCall":{"name":"now"}}]},"finishReason":"STOP"}]}"#,
        );
        assert_eq!((chunk.reasoning.as_str(), chunk.text.as_str()), ("Hm", "Har"));
        let calls: Vec<_> = chunk
            .calls
            .iter()
            .map(|call| (call.index, format!("{}({})", call.name, call.arguments)))
            .collect();
        assert_eq!(
            calls,
            [(None, "stock({\"a\":1})".to_owned()), (None, "now()".to_owned())]
        );
        assert_eq!((chunk.finish.as_deref(), chunk.last), (Some("STOP"), false));
    }

    #[test]
    fn thoughts_are_output_and_a_block_is_a_reason() {
        let chunk = read(
            r#"{"usageMetadata":{"promptTokenCount":42,"candidatesTokenCount":10,"thoughtsTokenCount":8,"cachedContentTokenCount":4}}"#,
        );
        assert_eq!(
            (chunk.usage.tokens_out, chunk.usage.reasoning, chunk.usage.cached),
            (Some(18), Some(8), Some(4))
        );
        assert_eq!(
            read(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#).finish.as_deref(),
            Some("SAFETY")
        );
    }
}
