//! OpenAI's responses: a name for everything that happens to an item of the output.

use super::{Chunk, Usage, add, error, word};
use serde_json::Value;

pub(super) fn read(json: &Value, chunk: &mut Chunk) {
    let (delta, response, index) = (&json["delta"], &json["response"], json["output_index"].as_u64());
    match json["type"].as_str().unwrap_or_default() {
        "response.output_text.delta" | "response.refusal.delta" => add(&mut chunk.text, delta),
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => add(&mut chunk.reasoning, delta),
        "response.reasoning_summary_part.added" if json["summary_index"].as_u64() > Some(0) => {
            chunk.reasoning.push_str("\n\n");
        }
        "response.output_item.added" => item(&json["item"], index, chunk),
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            chunk.call(index, &Value::Null, delta);
        }
        "response.completed" | "response.incomplete" => {
            chunk.finish = word(&response["incomplete_details"]["reason"]).or_else(|| word(&response["status"]));
            chunk.usage = usage(&response["usage"]);
            chunk.last = true;
        }
        "response.failed" => {
            chunk.usage = usage(&response["usage"]);
            chunk.error =
                error(&response["error"]).or_else(|| Some("The answer failed, and no reason was given.".to_owned()));
        }
        "error" => chunk.error = word(&json["message"]),
        _ => {}
    }
}

/// The beginning of an item: calls have a name, those of built-in tools only a type.
fn item(item: &Value, index: Option<u64>, chunk: &mut Chunk) {
    let kind = &item["type"];
    if kind.as_str().is_some_and(|kind| kind.ends_with("_call")) {
        let name = if item["name"].is_string() { &item["name"] } else { kind };
        let written = if item["input"].is_string() {
            &item["input"]
        } else {
            &item["arguments"]
        };
        chunk.call(index, name, written);
    }
}

fn usage(value: &Value) -> Usage {
    Usage::read(
        value,
        ["input_tokens", "output_tokens"],
        ["input_tokens_details", "output_tokens_details"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::playground::dialect::Dialect;

    fn read(data: &str) -> Chunk {
        Chunk::read(Dialect::Responses, data)
    }

    #[test]
    fn each_name_says_what_grows() {
        let text = read(r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Har"}"#);
        assert_eq!(text.text, "Har");
        // What was said in pieces is repeated whole.
        assert!(!read(r#"{"type":"response.output_text.done","text":"Harbour."}"#).has_content());
        let thought = read(r#"{"type":"response.reasoning_summary_text.delta","summary_index":0,"delta":"Hm"}"#);
        assert_eq!(thought.reasoning, "Hm");
        let call = read(
            r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","name":"stock","arguments":"","call_id":"c"}}"#,
        );
        let more = read(r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{}"}"#);
        let parts: Vec<_> = [call.calls, more.calls]
            .concat()
            .into_iter()
            .map(|part| (part.index, part.name + &part.arguments))
            .collect();
        assert_eq!(parts, [(Some(2), "stock".to_owned()), (Some(2), "{}".to_owned())]);
        assert!(!read(r#"{"type":"response.output_item.added","item":{"type":"message"}}"#).has_content());
    }

    #[test]
    fn the_end_has_usage_and_the_reason() {
        let whole = read(
            r#"{"type":"response.completed","response":{"status":"completed","incomplete_details":null,"usage":{"input_tokens":42,"output_tokens":18,"input_tokens_details":{"cached_tokens":8},"output_tokens_details":{"reasoning_tokens":4}}}}"#,
        );
        assert!(whole.last && whole.error.is_none());
        assert_eq!(whole.finish.as_deref(), Some("completed"));
        assert_eq!((whole.usage.cached, whole.usage.reasoning), (Some(8), Some(4)));
        let cut = read(
            r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
        );
        assert_eq!(cut.finish.as_deref(), Some("max_output_tokens"));
        assert!(
            read(r#"{"type":"response.failed","response":{"error":null}}"#)
                .error
                .is_some()
        );
    }
}
