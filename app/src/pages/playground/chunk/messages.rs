//! Anthropic's messages: blocks begin, grow and end; usage is told at both ends.

use super::{Chunk, Usage, add, word};
use serde_json::Value;

pub(super) fn read(json: &Value, chunk: &mut Chunk) {
    let index = json["index"].as_u64();
    let (block, delta) = (&json["content_block"], &json["delta"]);
    match json["type"].as_str().unwrap_or_default() {
        "message_start" => chunk.usage = usage(&json["message"]["usage"]),
        // Arguments come in pieces after an empty object. Who sends them at once has them here.
        "content_block_start" if block["name"].is_string() => match &block["input"] {
            Value::Object(fields) if fields.is_empty() => chunk.call(index, &block["name"], &Value::Null),
            input => chunk.call(index, &block["name"], input),
        },
        "content_block_start" => {
            add(&mut chunk.text, &block["text"]);
            add(&mut chunk.reasoning, &block["thinking"]);
        }
        "content_block_delta" if delta["partial_json"].is_string() => {
            chunk.call(index, &Value::Null, &delta["partial_json"]);
        }
        "content_block_delta" => {
            add(&mut chunk.text, &delta["text"]);
            add(&mut chunk.reasoning, &delta["thinking"]);
        }
        "message_delta" => {
            chunk.finish = word(&delta["stop_reason"]);
            chunk.usage = usage(&json["usage"]);
        }
        "message_stop" => chunk.last = true,
        _ => {}
    }
}

fn usage(value: &Value) -> Usage {
    Usage {
        tokens_in: value["input_tokens"].as_u64(),
        tokens_out: value["output_tokens"].as_u64(),
        cached: value["cache_read_input_tokens"].as_u64(),
        cache_write: value["cache_creation_input_tokens"].as_u64(),
        reasoning: None,
        cache_apart: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::playground::chunk::CallPart;
    use crate::pages::playground::dialect::Dialect;

    fn read(data: &str) -> Chunk {
        Chunk::read(Dialect::Messages, data)
    }

    #[test]
    fn blocks_are_told_apart() {
        let text = read(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Har"}}"#);
        assert_eq!(text.text, "Har");
        let thought =
            read(r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#);
        assert_eq!((thought.reasoning.as_str(), thought.text.as_str()), ("Hm", ""));
        let sealed =
            read(r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq"}}"#);
        assert!(!sealed.has_content());
        let call = read(
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"stock","input":{}}}"#,
        );
        let more = read(
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}"#,
        );
        assert_eq!(
            [call.calls, more.calls].concat(),
            [
                CallPart {
                    index: Some(2),
                    name: "stock".to_owned(),
                    arguments: String::new()
                },
                CallPart {
                    index: Some(2),
                    name: String::new(),
                    arguments: "{\"a\"".to_owned()
                },
            ]
        );
    }

    #[test]
    fn usage_stands_at_both_ends() {
        let first = read(
            r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":10,"cache_creation_input_tokens":0,"output_tokens":1}}}"#,
        );
        assert_eq!(first.usage.all_in(), Some(13));
        let last = read(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20}}"#);
        assert_eq!(
            (last.usage.tokens_out, last.finish.as_deref()),
            (Some(20), Some("end_turn"))
        );
        assert!(read(r#"{"type":"message_stop"}"#).last);
        assert_eq!(read(r#"{"type":"ping"}"#), Chunk::default());
    }
}
