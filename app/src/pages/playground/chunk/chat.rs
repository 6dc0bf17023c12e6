//! OpenAI's chat: each event is a piece of the same object.

use super::{Chunk, Usage, add, word};
use serde_json::Value;

pub(super) fn read(json: &Value, chunk: &mut Chunk) {
    let (choice, delta) = (&json["choices"][0], &json["choices"][0]["delta"]);
    add(&mut chunk.text, &delta["content"]);
    add(&mut chunk.text, &delta["refusal"]);
    // One of the two, and never both with different words.
    add(&mut chunk.reasoning, &delta["reasoning_content"]);
    if chunk.reasoning.is_empty() {
        add(&mut chunk.reasoning, &delta["reasoning"]);
    }
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let index = call["index"].as_u64().unwrap_or(0);
        let function = &call["function"];
        chunk.call(Some(index), &function["name"], &function["arguments"]);
    }
    chunk.finish = word(&choice["finish_reason"]);
    let usage = &json["usage"];
    chunk.usage = Usage::read(
        usage,
        ["prompt_tokens", "completion_tokens"],
        ["prompt_tokens_details", "completion_tokens_details"],
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::playground::chunk::CallPart;
    use crate::pages::playground::dialect::Dialect;

    fn read(data: &str) -> Chunk {
        Chunk::read(Dialect::Chat, data)
    }

    #[test]
    fn content_and_usage_are_found_where_they_are() {
        let chunk = read(r#"{"choices":[{"delta":{"content":"Har"},"finish_reason":null}]}"#);
        assert_eq!(
            chunk,
            Chunk {
                text: "Har".to_owned(),
                ..Chunk::default()
            }
        );
        let last = read(
            r#"{"choices":[],"usage":{"prompt_tokens":42,"completion_tokens":18,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":9}}}"#,
        );
        let usage = Usage {
            tokens_in: Some(42),
            tokens_out: Some(18),
            cached: Some(40),
            reasoning: Some(9),
            ..Usage::default()
        };
        assert_eq!((last.usage, last.usage.all_in()), (usage, Some(42)));
    }

    #[test]
    fn a_role_alone_is_not_the_first_token() {
        assert!(!read(r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#).has_content());
        let call =
            read(r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"name":"stock","arguments":"{"}}]}}]}"#);
        assert!(call.has_content());
        assert_eq!(
            call.calls,
            [CallPart {
                index: Some(1),
                name: "stock".to_owned(),
                arguments: "{".to_owned()
            }]
        );
    }
}
