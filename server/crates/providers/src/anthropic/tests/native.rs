//! Messages to Messages.

use super::{call, origin};
use crate::anthropic::Anthropic;
use crate::notes::Fate;
use crate::params::OnUnsupported;
use crate::{Call, Encoded, End, FromPath, Surface, Takes, Terms, Wire};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;
use switchyard_core::usage::Usage;

fn wire(headers: &[(String, String)]) -> Anthropic {
    let key = Secret::new("sk-ant-1".to_owned());
    Anthropic::new("https://api.anthropic.com/v1/", Some(&key), headers).unwrap()
}

fn encode(call: &Call, model: &str, client: &HeaderMap) -> Encoded {
    let terms = Terms {
        now: SystemTime::UNIX_EPOCH,
        on_unsupported: OnUnsupported::Warn,
    };
    wire(&[]).encode(call, model, client, &terms).unwrap()
}

#[test]
fn a_call_goes_up_as_it_came_but_for_its_model() {
    let body = r#"{ "model" : "mine","temperature":1.50,"max_tokens":1, "messages":[{"role":"user","content":"\u00e9"}],"new":{"a":[1]}}"#;
    let call = Call::read(Surface::Messages, Bytes::from(body), None, origin()).unwrap();
    let mut client = HeaderMap::new();
    client.append("anthropic-beta", HeaderValue::from_static("one"));
    client.append("anthropic-beta", HeaderValue::from_static("two"));
    client.insert("authorization", HeaderValue::from_static("Bearer sy_x"));
    let Encoded { request, notes } = encode(&call, "claude-opus-4-8", &client);
    assert_eq!(request.body(), &body.replace("\"mine\"", "\"claude-opus-4-8\""));
    assert_eq!(request.uri(), "https://api.anthropic.com/v1/messages");
    let headers = request.headers();
    assert!(headers["x-api-key"].is_sensitive());
    assert_eq!(headers["anthropic-version"], "2023-06-01");
    assert_eq!(headers.get_all("anthropic-beta").iter().count(), 2);
    assert!(!headers.contains_key("authorization"));
    assert!(notes.is_empty());
    client.insert("anthropic-version", HeaderValue::from_static("2023-01-01"));
    assert_eq!(
        encode(&call, "mine", &client).request.headers()["anthropic-version"],
        "2023-01-01"
    );
    assert_eq!(encode(&call, "mine", &client).request.body(), body);
}

#[test]
fn every_surface_has_its_way() {
    let anthropic = wire(&[("anthropic-version".to_owned(), "2024-01-01".to_owned())]);
    assert_eq!(anthropic.takes(Surface::Messages), Takes::Native);
    assert_eq!(anthropic.takes(Surface::CountTokens), Takes::Native);
    assert_eq!(anthropic.takes(Surface::Chat), Takes::Translated);
    assert_eq!(anthropic.takes(Surface::GeminiCountTokens), Takes::Translated);
    assert_eq!(anthropic.takes(Surface::Embeddings), Takes::Not);
    let models = anthropic.list_models().unwrap();
    assert_eq!(models.uri(), "https://api.anthropic.com/v1/models");
    assert_eq!(models.headers()["anthropic-version"], "2024-01-01");
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#;
    let count = Call::read(Surface::CountTokens, Bytes::from(body), None, origin()).unwrap();
    let request = encode(&count, "m", &HeaderMap::new()).request;
    assert_eq!(request.uri(), "https://api.anthropic.com/v1/messages/count_tokens");
    let reply = anthropic
        .decode(&count, "m", Bytes::from(r#"{"input_tokens":14}"#))
        .unwrap();
    assert_eq!(
        (&*reply.body, reply.usage),
        (&br#"{"input_tokens":14}"#[..], Usage::default())
    );
    let path = FromPath {
        model: "m".to_owned(),
        stream: false,
    };
    let body = r#"{"contents":[{"parts":[{"text":"Hi"}]}]}"#;
    let count = Call::read(Surface::GeminiCountTokens, Bytes::from(body), Some(path), origin()).unwrap();
    let reply = anthropic
        .decode(&count, "m", Bytes::from(r#"{"input_tokens":14}"#))
        .unwrap();
    assert_eq!(&*reply.body, br#"{"totalTokens":14}"#);
}

#[test]
fn thoughts_of_other_vendors_stay_here() {
    let thinking = |signature: &str| json!({"type": "thinking", "thinking": "sy. \"x\"", "signature": signature});
    let tool = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]});
    let user = json!({"role": "user", "content": "sy."});
    let body = json!({
        "model": "m", "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [
            user,
            {"role": "assistant", "content": [thinking("EqQB"), {"type": "text", "text": "sy.openai."}]},
            user,
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "sy.openai.x"}]},
            user,
            {"role": "assistant", "content": [thinking("sy.gemini.x"), thinking("sy.none"), tool]},
            result,
        ]
    });
    let Encoded { request, notes } = encode(&call(&body), "m", &HeaderMap::new());
    let mut want = body.clone();
    want["messages"][5]["content"] = json!([tool]);
    want["messages"].as_array_mut().unwrap().remove(3);
    // A budget wants the turn that goes on to begin with a thought.
    want.as_object_mut().unwrap().shift_remove("thinking");
    assert_eq!(serde_json::from_slice::<Value>(request.body()).unwrap(), want);
    assert_eq!(
        super::fields(&notes, Fate::Dropped),
        ["messages[].content[].thinking", "thinking"]
    );
    // The vendor's own are none of ours.
    let own = json!({"model": "m", "messages": [user, {"role": "assistant", "content": [thinking("EqQB")]}]});
    let Encoded { request, notes } = encode(&call(&own), "m", &HeaderMap::new());
    assert_eq!(request.body(), &own.to_string());
    assert!(notes.is_empty());
}

#[test]
fn answers_come_down_as_they_are() {
    let call = call(&json!({"model": "mine", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}));
    let body = r#"{"id":"msg_1","type":"message","model":"claude-x","content":[{"type":"text","text":"\u00e9"}],"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":2},"new":1.50}"#;
    let reply = wire(&[]).decode(&call, "claude-x", Bytes::from(body)).unwrap();
    assert_eq!(reply.body, body.replace("claude-x", "mine"));
    assert_eq!(
        (reply.usage.prompt, reply.usage.cached, reply.usage.total),
        (Some(15), Some(5), Some(17))
    );
    assert_eq!(wire(&[]).decode(&call, "mine", Bytes::from(body)).unwrap().body, body);
    for (body, kind) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Kind::ServerError,
        ),
        (
            r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#,
            Kind::Auth,
        ),
        (r#"{"type":"error"}"#, Kind::ServerError),
        (
            r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            Kind::ContextLength,
        ),
        (r#"{"id":"msg_1"}"#, Kind::BadAnswer),
        ("<html>", Kind::BadAnswer),
    ] {
        let error = wire(&[]).decode(&call, "m", Bytes::from(body)).unwrap_err();
        assert_eq!((error.kind, error.status), (kind, Some(200)), "{body}");
    }
}

#[test]
fn the_vendors_words_for_failures_are_known() {
    for (status, word, message, kind) in [
        (400, "invalid_request_error", "messages: too few", Kind::Refused),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 209353 tokens > 200000 maximum",
            Kind::ContextLength,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
            Kind::Quota,
        ),
        (401, "authentication_error", "invalid x-api-key", Kind::Auth),
        (402, "billing_error", "pay", Kind::Quota),
        (403, "permission_error", "no", Kind::Auth),
        (404, "not_found_error", "model: claude-9", Kind::NotFound),
        (
            413,
            "request_too_large",
            "Request exceeds the maximum size",
            Kind::ContextLength,
        ),
        (429, "rate_limit_error", "slow", Kind::RateLimit),
        (500, "api_error", "Internal server error", Kind::ServerError),
        (504, "timeout_error", "slow", Kind::Timeout),
        (529, "overloaded_error", "Overloaded", Kind::ServerError),
    ] {
        let body = json!({"type": "error", "error": {"type": word, "message": message}, "request_id": "req_1"});
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_static("3"));
        let status = StatusCode::from_u16(status).unwrap();
        let error = wire(&[]).failure(status, &headers, body.to_string().as_bytes(), SystemTime::UNIX_EPOCH);
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{word}");
        assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
        let (end, ..) = relayed(&format!("event: error\ndata: {body}\n\n"), &[]);
        let End::Failed(streamed) = end else { panic!() };
        assert_eq!(streamed.kind, kind, "in a stream: {word}");
    }
}

const STREAM: &str = concat!(
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-x\",\"content\":[],",
    "\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hé\"}}\n\n",
    "data: {oops\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: news\ndata: {\"type\":\"news\",\"x\":1.50}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn relayed(stream: &str, ends: &[usize]) -> (End, String, Usage) {
    let call = call(
        &json!({"model": "mine", "stream": true, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}),
    );
    let mut decoder = wire(&[]).decoder(&call, "claude-x");
    let (mut out, mut from, mut end) = (Vec::new(), 0, None);
    for at in ends.iter().copied().chain([stream.len()]) {
        let piece = stream.as_bytes().get(from..at).unwrap_or_default();
        let progress = decoder.push(Bytes::copy_from_slice(piece));
        out.extend(progress.out.concat());
        end = end.or(progress.end);
        from = from.max(at);
    }
    let progress = decoder.finish();
    out.extend(progress.out.concat());
    end = end.or(progress.end);
    (end.unwrap(), String::from_utf8(out).unwrap(), decoder.usage())
}

#[test]
fn a_stream_comes_down_as_it_is_but_for_its_model() {
    let (end, out, usage) = relayed(STREAM, &[]);
    let want = STREAM
        .replacen("event: ping\ndata: {\"type\": \"ping\"}\n\n", "", 1)
        .replace("event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\n", "")
        .replace("data: {oops\n\n", "")
        .replace("claude-x", "mine");
    assert_eq!((end, out), (End::Complete, want));
    assert_eq!(
        (usage.prompt, usage.completion, usage.cached),
        (Some(15), Some(7), Some(5))
    );
    assert!(!usage.estimated);
}

#[test]
fn a_cut_is_told_and_what_came_is_counted() {
    let cut = STREAM.split("event: content_block_stop").next().unwrap();
    let (end, _, usage) = relayed(cut, &[]);
    assert!(matches!(end, End::Failed(Error { kind: Kind::Cut, .. })));
    assert_eq!(
        (usage.prompt, usage.completion, usage.estimated),
        (Some(15), Some(1), true)
    );
    // The reason for the end is the end, and the last blank line may be missing.
    let end = STREAM.split("event: message_stop").next().unwrap().trim_end();
    let (end, out, _) = relayed(end, &[]);
    assert_eq!(end, End::Complete);
    assert!(out.ends_with("\"output_tokens\":7}}\n\n"), "{out}");
    let (end, ..) = relayed(r#"{"error":{"type":"overloaded_error","message":"x"}}"#, &[]);
    assert!(matches!(
        end,
        End::Failed(Error {
            kind: Kind::ServerError,
            ..
        })
    ));
}

proptest! {
    #[test]
    fn any_split_is_relayed_the_same(mut ends in prop::collection::vec(0..STREAM.len(), 0..16)) {
        ends.sort_unstable();
        prop_assert_eq!(relayed(STREAM, &ends), relayed(STREAM, &[]));
    }
}
