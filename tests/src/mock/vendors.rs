//! The same content in other vendors' wires: which one is told by the path, as it is with the vendors themselves.
//!
//! Made from the vendors' documented formats and from nothing of the gateway's. A vendor refuses what its documentation
//! forbids, so that a translation which would fail in the wild fails here: see [`refusal`].

use super::openai::{Answer, Frame, Part};
use super::{Call, Recorded, Usage};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Whose wire a path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    OpenAi,
    Responses,
    Anthropic,
    Gemini,
    Bedrock,
    Cohere,
}

impl Vendor {
    pub(super) fn of(path: &str) -> Self {
        if path.ends_with("/responses") {
            Self::Responses
        } else if path.ends_with("/messages") || path.ends_with("/messages/count_tokens") {
            Self::Anthropic
        } else if path.ends_with("/converse") || path.ends_with("/converse-stream") || path.ends_with("/invoke") {
            Self::Bedrock
        } else if path.ends_with("/v2/chat") || path.ends_with("/v2/embed") {
            Self::Cohere
        } else if path.contains("/models/") && path.contains(':') {
            Self::Gemini
        } else {
            Self::OpenAi
        }
    }
}

/// The model that a path names, where vendors put it there.
pub(super) fn model_in(path: &str) -> Option<String> {
    let decoded = |text: &str| {
        percent_encoding::percent_decode_str(text)
            .decode_utf8_lossy()
            .into_owned()
    };
    match Vendor::of(path) {
        Vendor::Gemini => {
            let rest = path.split_once("/models/")?.1;
            Some(decoded(rest.rsplit_once(':')?.0))
        }
        Vendor::Bedrock => {
            let rest = path.split_once("/model/")?.1;
            Some(decoded(rest.rsplit_once('/')?.0))
        }
        _ => None,
    }
}

/// One turn of a model, whatever the wire.
pub(super) struct Said<'a> {
    pub(super) model: &'a str,
    /// With what the vendor wants to see again.
    pub(super) reasoning: Option<(&'a str, &'a str)>,
    pub(super) text: &'a str,
    pub(super) calls: &'a [Call],
    pub(super) usage: Usage,
}

impl Said<'_> {
    fn words(&self) -> Vec<&str> {
        self.text.split_inclusive(' ').filter(|word| !word.is_empty()).collect()
    }

    fn completion(&self) -> u64 {
        let pieces = self.words().len() + 3 * self.calls.len() + usize::from(self.reasoning.is_some());
        self.usage.completion.unwrap_or(pieces as u64)
    }

    fn input_of(call: &Call) -> Value {
        serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}))
    }

    fn halves(call: &Call) -> (&str, &str) {
        let half = call.arguments.floor_char_boundary(call.arguments.len() / 2);
        call.arguments.split_at(half)
    }
}

pub(super) fn turn(request: &Recorded, said: &Said<'_>) -> Answer {
    match Vendor::of(&request.path) {
        Vendor::Anthropic => anthropic(request, said),
        Vendor::Gemini => gemini(request, said),
        Vendor::Bedrock => bedrock(request, said),
        Vendor::Cohere => cohere(request, said),
        Vendor::Responses | Vendor::OpenAi => responses(request, said),
    }
}

/// An error in the vendor's shape.
pub(super) fn error(vendor: Vendor, status: u16, message: &str) -> Answer {
    let body = match vendor {
        Vendor::Anthropic => {
            let kind = match status {
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_mock"})
        }
        Vendor::Gemini => {
            let word = match status {
                401 => "UNAUTHENTICATED",
                403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                429 => "RESOURCE_EXHAUSTED",
                503 => "UNAVAILABLE",
                500.. => "INTERNAL",
                _ => "INVALID_ARGUMENT",
            };
            json!({"error": {"code": status, "message": message, "status": word}})
        }
        Vendor::Bedrock | Vendor::Cohere => json!({"message": message}),
        Vendor::OpenAi | Vendor::Responses => {
            let kind = if status < 500 {
                "invalid_request_error"
            } else {
                "server_error"
            };
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
        }
    };
    Answer::object(status, &body)
}

/// The event by which a stream fails that has begun.
pub(super) fn error_event(vendor: Vendor) -> Bytes {
    const MESSAGE: &str = "The mock gave up";
    match vendor {
        Vendor::Anthropic => named(
            "error",
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": MESSAGE}}),
        ),
        Vendor::Gemini => data(&json!({"error": {"code": 503, "message": MESSAGE, "status": "UNAVAILABLE"}})),
        Vendor::Bedrock => event_frame(
            &[
                (":message-type", "exception"),
                (":exception-type", "internalServerException"),
            ],
            &json!({"message": MESSAGE}),
        ),
        Vendor::Cohere => data(&json!({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": MESSAGE}})),
        Vendor::Responses => named(
            "error",
            &json!({"type": "error", "code": "server_error", "message": MESSAGE, "param": null, "sequence_number": 9}),
        ),
        Vendor::OpenAi => {
            data(&json!({"error": {"message": MESSAGE, "type": "server_error", "param": null, "code": "mock_error"}}))
        }
    }
}

/// What the vendor would refuse a request for, in a sentence.
pub(super) fn refusal(request: &Recorded) -> Option<String> {
    match Vendor::of(&request.path) {
        Vendor::Anthropic => anthropic_refuses(request),
        Vendor::Gemini => gemini_refuses(request),
        Vendor::Bedrock => bedrock_refuses(request),
        Vendor::Cohere => cohere_refuses(request),
        Vendor::OpenAi if request.path.ends_with("/chat/completions") => openai_refuses(&request.json),
        Vendor::OpenAi | Vendor::Responses => None,
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn foreign(body: &Value, known: &[&str]) -> Option<String> {
    let keys = body.as_object()?.keys();
    let mut strange = keys.filter(|key| !known.contains(&key.as_str()));
    strange
        .next()
        .map(|key| format!("{key}: Extra inputs are not permitted"))
}

fn is_name(name: &str, longest: usize) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !name.is_empty() && name.len() <= longest && name.bytes().all(plain)
}

// === OpenAI's chat: what its documentation forbids ===

fn openai_refuses(body: &Value) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for (i, message) in list(&body["messages"]).enumerate() {
        match text_of(message, "role") {
            "tool" => {
                let id = text_of(message, "tool_call_id");
                let at = open.iter().position(|known| *known == id);
                let Some(at) = at else {
                    return Some(format!(
                        "messages[{i}]: tool_call_id {id:?} answers no preceding tool call"
                    ));
                };
                open.remove(at);
            }
            "system" | "developer" | "user" | "assistant" | "function" => {
                if let Some(id) = open.first() {
                    return Some(format!("messages[{i}]: tool call {id} was not answered"));
                }
            }
            role => return Some(format!("messages[{i}].role: {role:?} is not one of the roles")),
        }
        for part in list(&message["content"]) {
            let kind = text_of(part, "type");
            if !["text", "image_url", "input_audio", "file", "refusal"].contains(&kind) {
                return Some(format!("messages[{i}].content: {kind:?} is no kind of part"));
            }
        }
        open.extend(list(&message["tool_calls"]).map(|call| text_of(call, "id")));
    }
    list(&body["tools"]).find_map(|tool| {
        let name = text_of(&tool["function"], "name");
        (tool["type"] == "function" && !is_name(name, 64)).then(|| format!("tools: {name:?} is no name"))
    })
}

// === Anthropic ===

#[expect(clippy::too_many_lines, reason = "one rule of the vendor after the other")]
fn anthropic_refuses(request: &Recorded) -> Option<String> {
    let body = &request.json;
    let known = [
        "model",
        "messages",
        "max_tokens",
        "system",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "tools",
        "tool_choice",
        "metadata",
        "thinking",
        "service_tier",
        "output_config",
        "output_format",
        "container",
        "context_management",
        "mcp_servers",
        "cache_control",
    ];
    if !request.headers.contains_key("anthropic-version") {
        return Some("anthropic-version: header is required".to_owned());
    }
    if let Some(strange) = foreign(body, &known) {
        return Some(strange);
    }
    let counts = request.path.ends_with("count_tokens");
    if !counts && body["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        return Some("max_tokens: Field required".to_owned());
    }
    if body["temperature"]
        .as_f64()
        .is_some_and(|value| !(0.0..=1.0).contains(&value))
    {
        return Some("temperature: range: 0..1".to_owned());
    }
    let thinks = matches!(text_of(&body["thinking"], "type"), "enabled" | "adaptive");
    if thinks && (body["top_k"].is_number() || body["temperature"].as_f64().is_some_and(|t| t < 1.0)) {
        return Some("`temperature` may only be set to 1 and `top_k` not at all when thinking is enabled".to_owned());
    }
    if thinks && matches!(text_of(&body["tool_choice"], "type"), "any" | "tool") {
        return Some("Thinking may not be enabled when tool_choice forces tool use.".to_owned());
    }
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        if budget < 1024 {
            return Some("thinking.budget_tokens: Input should be greater than or equal to 1024".to_owned());
        }
        if body["max_tokens"].as_u64().is_some_and(|most| most <= budget) {
            return Some("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned());
        }
    }
    let mut expected: Vec<&str> = Vec::new();
    let mut before = "";
    for (i, message) in list(&body["messages"]).enumerate() {
        let role = text_of(message, "role");
        if !["user", "assistant"].contains(&role) {
            return Some(format!("messages.{i}.role: Input should be 'user' or 'assistant'"));
        }
        if i == 0 && role != "user" {
            return Some("messages: first message must use the \"user\" role".to_owned());
        }
        if role == before {
            return Some(format!("messages.{i}: roles must alternate"));
        }
        before = role;
        let mut answered: Vec<&str> = Vec::new();
        let mut others = false;
        for block in list(&message["content"]) {
            match text_of(block, "type") {
                "text" if text_of(block, "text").trim().is_empty() => {
                    return Some(format!("messages.{i}: text content blocks must be non-empty"));
                }
                "tool_result" if others => {
                    return Some(format!("messages.{i}: `tool_result` blocks must come first"));
                }
                "tool_result" => answered.push(text_of(block, "tool_use_id")),
                "thinking" if text_of(block, "signature") != SIGNATURE => {
                    return Some(format!("messages.{i}: Invalid `signature` in `thinking` block"));
                }
                "tool_use" if !is_name(text_of(block, "id"), 256) || !is_name(text_of(block, "name"), 128) => {
                    return Some(format!(
                        "messages.{i}: tool_use.id and name must match ^[a-zA-Z0-9_-]+$"
                    ));
                }
                "tool_use" if !block["input"].is_object() => {
                    return Some(format!(
                        "messages.{i}: tool_use.input: Input should be a valid dictionary"
                    ));
                }
                _ => others = true,
            }
        }
        if expected.iter().any(|id| !answered.contains(id)) {
            return Some(format!(
                "messages.{i}: `tool_use` ids were found without `tool_result` blocks"
            ));
        }
        if let Some(id) = answered.iter().find(|id| !expected.contains(id)) {
            return Some(format!(
                "messages.{i}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
            ));
        }
        expected = list(&message["content"])
            .filter(|block| block["type"] == "tool_use")
            .map(|block| text_of(block, "id"))
            .collect();
    }
    list(&body["tools"]).find_map(|tool| {
        let is_custom = matches!(text_of(tool, "type"), "" | "custom");
        (is_custom && tool["input_schema"]["type"] != "object")
            .then(|| "tools.input_schema.type: Input should be 'object'".to_owned())
    })
}

/// What it signs its thoughts with, and wants to see again.
pub(super) const SIGNATURE: &str = "EqQBCkgIARABGAIiQL2UoU0bmock";

fn anthropic(request: &Recorded, said: &Said<'_>) -> Answer {
    let cached = said.usage.cached;
    let mut usage = json!({
        "input_tokens": said.usage.prompt - cached.min(said.usage.prompt),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": said.completion(),
    });
    if request.path.ends_with("count_tokens") {
        return Answer::object(200, &json!({"input_tokens": said.usage.prompt}));
    }
    let stop = if said.calls.is_empty() { "end_turn" } else { "tool_use" };
    let message = |content: Value, stop: Value, usage: &Value| {
        json!({
            "id": "msg_mock", "type": "message", "role": "assistant", "model": said.model, "content": content,
            "stop_reason": stop, "stop_sequence": null, "usage": usage,
        })
    };
    if request.json["stream"] != true {
        let mut content = Vec::new();
        if let Some((text, signature)) = said.reasoning {
            content.push(json!({"type": "thinking", "thinking": text, "signature": signature}));
        }
        if !said.text.is_empty() {
            content.push(json!({"type": "text", "text": said.text}));
        }
        for call in said.calls {
            content.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": Said::input_of(call)}));
        }
        return Answer::object(200, &message(content.into(), stop.into(), &usage));
    }
    let output = usage["output_tokens"].take();
    usage["output_tokens"] = 1.into();
    let mut frames = vec![Frame {
        bytes: named(
            "message_start",
            &json!({"type": "message_start", "message": message(json!([]), Value::Null, &usage)}),
        ),
        part: Part::Opening,
    }];
    let mut index = 0;
    let mut block = |frames: &mut Vec<Frame>, start: Value, deltas: Vec<Value>| {
        let opening = named(
            "content_block_start",
            &json!({"type": "content_block_start", "index": index, "content_block": start}),
        );
        frames.push(Frame {
            bytes: opening,
            part: Part::Opening,
        });
        for delta in deltas {
            frames.push(Frame::content(named(
                "content_block_delta",
                &json!({"type": "content_block_delta", "index": index, "delta": delta}),
            )));
        }
        frames.push(Frame::closing(named(
            "content_block_stop",
            &json!({"type": "content_block_stop", "index": index}),
        )));
        frames.push(Frame::closing(named("ping", &json!({"type": "ping"}))));
        index += 1;
    };
    if let Some((text, signature)) = said.reasoning {
        let deltas = vec![
            json!({"type": "thinking_delta", "thinking": text}),
            json!({"type": "signature_delta", "signature": signature}),
        ];
        block(
            &mut frames,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas,
        );
    }
    if !said.text.is_empty() {
        let deltas = said
            .words()
            .iter()
            .map(|word| json!({"type": "text_delta", "text": word}))
            .collect();
        block(&mut frames, json!({"type": "text", "text": ""}), deltas);
    }
    for call in said.calls {
        let (first, second) = Said::halves(call);
        let piece = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
        let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        block(&mut frames, start, vec![piece(""), piece(first), piece(second)]);
    }
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": output}});
    frames.push(Frame::closing(named("message_delta", &delta)));
    frames.push(Frame::closing(named("message_stop", &json!({"type": "message_stop"}))));
    Answer::events(frames)
}

// === Gemini ===

fn gemini_refuses(request: &Recorded) -> Option<String> {
    let body = &request.json;
    // Older ones do not look.
    let checks_signatures = model_in(&request.path).is_some_and(|model| model.starts_with("gemini-3"));
    let known = [
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "safetySettings",
        "cachedContent",
        "labels",
        "model",
        "requests",
        "generateContentRequest",
    ];
    if let Some(strange) = foreign(body, &known) {
        return Some(format!("Invalid JSON payload received. Unknown name {strange}"));
    }
    let mut calls = 0;
    for content in list(&body["contents"]) {
        let role = text_of(content, "role");
        if !["user", "model", "function", ""].contains(&role) {
            return Some("Please use a valid role: user, model.".to_owned());
        }
        if list(&content["parts"]).next().is_none() {
            return Some("contents.parts must not be empty".to_owned());
        }
        let results = list(&content["parts"])
            .filter(|part| part["functionResponse"].is_object())
            .count();
        if results != calls && (results > 0 || calls > 0) {
            return Some(
                "the number of function response parts must equal the number of function call parts".to_owned(),
            );
        }
        if list(&content["parts"])
            .any(|part| part["functionResponse"].is_object() && text_of(&part["functionResponse"], "name").is_empty())
        {
            return Some("function_response.name: Name cannot be empty".to_owned());
        }
        calls = list(&content["parts"])
            .filter(|part| part["functionCall"].is_object())
            .count();
        let first = list(&content["parts"]).find(|part| part["functionCall"].is_object());
        if checks_signatures && first.is_some_and(|call| text_of(call, "thoughtSignature").is_empty()) {
            return Some("Function call is missing a thought_signature in functionCall parts.".to_owned());
        }
    }
    for tool in list(&body["tools"]) {
        for declaration in list(&tool["functionDeclarations"]) {
            if let Some(word) = forbidden(&declaration["parameters"]) {
                return Some(format!(
                    "Unknown name \"{word}\" at 'tools.function_declarations.parameters'"
                ));
            }
        }
    }
    forbidden(&body["generationConfig"]["responseSchema"])
        .map(|word| format!("Unknown name \"{word}\" at 'generation_config.response_schema'"))
}

/// A keyword that Google's own kind of schema does not have.
fn forbidden(schema: &Value) -> Option<String> {
    const UNKNOWN: [&str; 8] = [
        "$ref",
        "$defs",
        "additionalProperties",
        "$schema",
        "const",
        "oneOf",
        "allOf",
        "not",
    ];
    match schema {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let is_keyword = UNKNOWN.contains(&key.as_str());
            if key == "properties" {
                return value.as_object()?.values().find_map(forbidden);
            }
            is_keyword.then(|| key.clone()).or_else(|| forbidden(value))
        }),
        Value::Array(items) => items.iter().find_map(forbidden),
        _ => None,
    }
}

/// What it signs calls with.
pub(super) const THOUGHT: &str = "CpcBAVSoXO4mockThoughtSignatureA";

fn gemini(request: &Recorded, said: &Said<'_>) -> Answer {
    if request.path.ends_with(":countTokens") {
        return Answer::object(200, &json!({"totalTokens": said.usage.prompt}));
    }
    if request.path.ends_with("EmbedContents") {
        let one = |index: usize| json!({"values": [index as f64, 0.5, 0.25, 0.125]});
        let count = list(&request.json["requests"]).count();
        return Answer::object(200, &json!({"embeddings": (0..count).map(one).collect::<Vec<_>>()}));
    }
    let reasoning = u64::from(said.reasoning.is_some());
    let usage = json!({
        "promptTokenCount": said.usage.prompt,
        "candidatesTokenCount": said.completion() - reasoning,
        "thoughtsTokenCount": reasoning,
        "cachedContentTokenCount": said.usage.cached,
        "totalTokenCount": said.usage.prompt + said.completion(),
    });
    let thought = |text: &str| json!({"text": text, "thought": true});
    let call = |(nth, call): (usize, &Call)| {
        let mut part = json!({"functionCall": {"name": call.name, "args": Said::input_of(call)}});
        // Only the first of several in a turn is signed.
        if nth == 0 {
            part["thoughtSignature"] = THOUGHT.into();
        }
        part
    };
    let chunk = |parts: Vec<Value>, finish: Option<&str>, usage: Option<&Value>| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = finish.into();
        }
        let mut chunk = json!({"candidates": [candidate], "modelVersion": said.model, "responseId": "resp-mock"});
        if let Some(usage) = usage {
            chunk["usageMetadata"] = usage.clone();
        }
        chunk
    };
    let calls: Vec<Value> = said.calls.iter().enumerate().map(call).collect();
    if !request.path.ends_with(":streamGenerateContent") {
        let mut parts: Vec<Value> = said.reasoning.iter().map(|(text, _)| thought(text)).collect();
        if !said.text.is_empty() {
            parts.push(json!({"text": said.text}));
        }
        parts.extend(calls);
        return Answer::object(200, &chunk(parts, Some("STOP"), Some(&usage)));
    }
    let mut frames: Vec<Frame> = Vec::new();
    if let Some((text, _)) = said.reasoning {
        frames.push(Frame::content(data(&chunk(vec![thought(text)], None, None))));
    }
    for word in said.words() {
        frames.push(Frame::content(data(&chunk(vec![json!({"text": word})], None, None))));
    }
    for call in calls {
        frames.push(Frame::content(data(&chunk(vec![call], None, None))));
    }
    frames.push(Frame::closing(data(&chunk(
        vec![json!({"text": ""})],
        Some("STOP"),
        Some(&usage),
    ))));
    Answer::events(frames)
}

// === Bedrock ===

fn bedrock_refuses(request: &Recorded) -> Option<String> {
    if request.path.ends_with("/invoke") {
        return None;
    }
    let body = &request.json;
    let authorization = request
        .headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    if !authorization
        .is_some_and(|value| value.starts_with("Bearer ") || value.starts_with("AWS4-HMAC-SHA256 Credential="))
    {
        return Some("Missing Authentication Token".to_owned());
    }
    let known = [
        "messages",
        "system",
        "inferenceConfig",
        "toolConfig",
        "guardrailConfig",
        "additionalModelRequestFields",
        "promptVariables",
        "additionalModelResponseFieldPaths",
        "requestMetadata",
        "performanceConfig",
        "serviceTier",
        "outputConfig",
    ];
    if let Some(strange) = foreign(body, &known) {
        return Some(format!("Malformed input request: {strange}"));
    }
    let mut before = "";
    let mut expected: Vec<&str> = Vec::new();
    for (i, message) in list(&body["messages"]).enumerate() {
        let role = text_of(message, "role");
        if (i == 0 && role != "user") || role == before || !["user", "assistant"].contains(&role) {
            return Some("A conversation must start with a user message, and roles must alternate.".to_owned());
        }
        before = role;
        let answered: Vec<&str> = list(&message["content"])
            .filter(|block| block["toolResult"].is_object())
            .map(|block| text_of(&block["toolResult"], "toolUseId"))
            .collect();
        if answered.len() != expected.len() || expected.iter().any(|id| !answered.contains(id)) {
            return Some(format!(
                "Expected toolResult blocks at messages.{i}.content for the previous turn's toolUse"
            ));
        }
        expected = list(&message["content"])
            .filter(|block| block["toolUse"].is_object())
            .map(|block| text_of(&block["toolUse"], "toolUseId"))
            .collect();
        if expected.iter().any(|id| !is_name(id, 64)) {
            return Some("toolUseId must match [a-zA-Z0-9_-]+ and be at most 64 long".to_owned());
        }
        if list(&message["content"]).any(|block| block["text"].as_str().is_some_and(|text| text.trim().is_empty())) {
            return Some("The text field in the ContentBlock object is blank.".to_owned());
        }
        if !expected.is_empty() && !body["toolConfig"].is_object() {
            return Some(
                "The toolConfig field must be defined when using toolUse and toolResult content blocks.".to_owned(),
            );
        }
    }
    None
}

fn bedrock(request: &Recorded, said: &Said<'_>) -> Answer {
    if request.path.ends_with("/invoke") {
        return Answer::object(
            200,
            &json!({"embedding": [0.0, 0.5, 0.25, 0.125], "inputTextTokenCount": 3}),
        );
    }
    let cached = said.usage.cached;
    let usage = json!({
        "inputTokens": said.usage.prompt - cached.min(said.usage.prompt),
        "outputTokens": said.completion(),
        "totalTokens": said.usage.prompt + said.completion(),
        "cacheReadInputTokens": cached,
        "cacheWriteInputTokens": 0,
    });
    let stop = if said.calls.is_empty() { "end_turn" } else { "tool_use" };
    if !request.path.ends_with("/converse-stream") {
        let mut content = Vec::new();
        if let Some((text, signature)) = said.reasoning {
            content.push(json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}));
        }
        if !said.text.is_empty() {
            content.push(json!({"text": said.text}));
        }
        for call in said.calls {
            content.push(json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": Said::input_of(call)}}));
        }
        let body = json!({
            "output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop, "usage": usage,
            "metrics": {"latencyMs": 5},
        });
        return Answer::object(200, &body);
    }
    let event = |kind: &str, payload: Value| {
        event_frame(
            &[
                (":event-type", kind),
                (":content-type", "application/json"),
                (":message-type", "event"),
            ],
            &payload,
        )
    };
    let mut frames = vec![Frame {
        bytes: event("messageStart", json!({"role": "assistant"})),
        part: Part::Opening,
    }];
    let mut index = 0;
    let mut block = |frames: &mut Vec<Frame>, start: Option<Value>, deltas: Vec<Value>| {
        if let Some(start) = start {
            let bytes = event("contentBlockStart", json!({"contentBlockIndex": index, "start": start}));
            frames.push(Frame {
                bytes,
                part: Part::Opening,
            });
        }
        for delta in deltas {
            frames.push(Frame::content(event(
                "contentBlockDelta",
                json!({"contentBlockIndex": index, "delta": delta}),
            )));
        }
        frames.push(Frame::closing(event(
            "contentBlockStop",
            json!({"contentBlockIndex": index}),
        )));
        index += 1;
    };
    if let Some((text, signature)) = said.reasoning {
        let deltas = vec![
            json!({"reasoningContent": {"text": text}}),
            json!({"reasoningContent": {"signature": signature}}),
        ];
        block(&mut frames, None, deltas);
    }
    if !said.text.is_empty() {
        let deltas = said.words().iter().map(|word| json!({"text": word})).collect();
        block(&mut frames, None, deltas);
    }
    for call in said.calls {
        let (first, second) = Said::halves(call);
        let piece = |text: &str| json!({"toolUse": {"input": text}});
        let start = json!({"toolUse": {"toolUseId": call.id, "name": call.name}});
        block(&mut frames, Some(start), vec![piece(first), piece(second)]);
    }
    frames.push(Frame::closing(event("messageStop", json!({"stopReason": stop}))));
    frames.push(Frame::closing(event(
        "metadata",
        json!({"usage": usage, "metrics": {"latencyMs": 5}}),
    )));
    Answer {
        status: 200,
        content_type: "application/vnd.amazon.eventstream",
        frames,
        streams: true,
    }
}

/// One frame of AWS's event stream: lengths, headers of texts, a payload, and two checksums.
fn event_frame(headers: &[(&str, &str)], payload: &Value) -> Bytes {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = Vec::new();
    frame.extend_from_slice(&length(16 + head.len() + payload.len()));
    frame.extend_from_slice(&length(head.len()));
    frame.extend_from_slice(&crc32(&frame).to_be_bytes());
    frame.extend_from_slice(&head);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend_from_slice(&crc32(&frame).to_be_bytes());
    frame.into()
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        let mixed = crc ^ u32::from(*byte);
        (0..8).fold(mixed, |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

// === Cohere ===

fn cohere_refuses(request: &Recorded) -> Option<String> {
    let body = &request.json;
    if request.path.ends_with("/v2/embed") {
        let lacks = text_of(body, "input_type").is_empty() || list(&body["embedding_types"]).next().is_none();
        return lacks.then(|| "invalid request: input_type and embedding_types must be provided".to_owned());
    }
    let known = [
        "model",
        "messages",
        "stream",
        "tools",
        "strict_tools",
        "tool_choice",
        "documents",
        "citation_options",
        "response_format",
        "safety_mode",
        "max_tokens",
        "stop_sequences",
        "temperature",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "k",
        "p",
        "logprobs",
        "thinking",
        "priority",
    ];
    if let Some(strange) = foreign(body, &known) {
        return Some(format!("unknown field: {strange}"));
    }
    if let Some(choice) = body["tool_choice"].as_str()
        && !["REQUIRED", "NONE"].contains(&choice)
    {
        return Some("invalid request: tool_choice must be REQUIRED or NONE".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    for message in list(&body["messages"]) {
        match text_of(message, "role") {
            "tool" if open.contains(&text_of(message, "tool_call_id")) => {}
            "tool" => return Some("invalid request: tool message answers no tool call".to_owned()),
            "system" | "user" => {}
            "assistant" => open = list(&message["tool_calls"]).map(|call| text_of(call, "id")).collect(),
            role => return Some(format!("invalid request: {role:?} is no role")),
        }
    }
    None
}

fn cohere(request: &Recorded, said: &Said<'_>) -> Answer {
    if request.path.ends_with("/v2/embed") {
        let one = |index: usize| json!([index as f64, 0.5, 0.25, 0.125]);
        let texts = list(&request.json["texts"])
            .chain(list(&request.json["inputs"]))
            .count();
        let floats: Vec<Value> = (0..texts).map(one).collect();
        let body = json!({"id": "mock", "embeddings": {"float": floats}, "texts": request.json["texts"], "meta": {"billed_units": {"input_tokens": 3 * texts}}});
        return Answer::object(200, &body);
    }
    let usage = json!({
        "billed_units": {"input_tokens": said.usage.prompt, "output_tokens": said.completion()},
        "tokens": {"input_tokens": said.usage.prompt, "output_tokens": said.completion()},
        "cached_tokens": said.usage.cached,
    });
    let finish = if said.calls.is_empty() { "COMPLETE" } else { "TOOL_CALL" };
    let call = |call: &Call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
    if request.json["stream"] != true {
        let mut message = json!({"role": "assistant"});
        let mut content = Vec::new();
        if let Some((text, _)) = said.reasoning {
            content.push(json!({"type": "thinking", "thinking": text}));
        }
        if !said.text.is_empty() {
            content.push(json!({"type": "text", "text": said.text}));
        }
        if !content.is_empty() {
            message["content"] = content.into();
        }
        if !said.calls.is_empty() {
            message["tool_calls"] = said.calls.iter().map(call).collect::<Vec<_>>().into();
        }
        return Answer::object(
            200,
            &json!({"id": "mock", "finish_reason": finish, "message": message, "usage": usage}),
        );
    }
    let event = |value: Value| {
        let kind = text_of(&value, "type").to_owned();
        named(&kind, &value)
    };
    let mut frames = vec![Frame {
        bytes: event(
            json!({"type": "message-start", "id": "mock", "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}}),
        ),
        part: Part::Opening,
    }];
    let mut index = 0;
    let mut content = |frames: &mut Vec<Frame>, kind: &str, pieces: &[&str]| {
        let start = json!({"type": "content-start", "index": index, "delta": {"message": {"content": {"type": kind, kind: ""}}}});
        frames.push(Frame {
            bytes: event(start),
            part: Part::Opening,
        });
        for piece in pieces {
            frames.push(Frame::content(event(
                json!({"type": "content-delta", "index": index, "delta": {"message": {"content": {kind: piece}}}}),
            )));
        }
        frames.push(Frame::closing(event(json!({"type": "content-end", "index": index}))));
        index += 1;
    };
    if let Some((text, _)) = said.reasoning {
        content(&mut frames, "thinking", &[text]);
    }
    if !said.text.is_empty() {
        content(&mut frames, "text", &said.words());
    }
    for (nth, one) in said.calls.iter().enumerate() {
        let mut start = call(one);
        start["function"]["arguments"] = "".into();
        let opening = json!({"type": "tool-call-start", "index": nth, "delta": {"message": {"tool_calls": start}}});
        frames.push(Frame::content(event(opening)));
        let (first, second) = Said::halves(one);
        for piece in [first, second] {
            frames.push(Frame::content(event(json!({"type": "tool-call-delta", "index": nth, "delta": {"message": {"tool_calls": {"function": {"arguments": piece}}}}}))));
        }
        frames.push(Frame::closing(event(json!({"type": "tool-call-end", "index": nth}))));
    }
    frames.push(Frame::closing(event(
        json!({"type": "message-end", "id": "mock", "delta": {"finish_reason": finish, "usage": usage}}),
    )));
    frames.push(Frame::done());
    Answer::events(frames)
}

// === OpenAI's Responses ===

fn responses(request: &Recorded, said: &Said<'_>) -> Answer {
    let usage = json!({
        "input_tokens": said.usage.prompt, "input_tokens_details": {"cached_tokens": said.usage.cached},
        "output_tokens": said.completion(), "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": said.usage.prompt + said.completion(),
    });
    let mut output = Vec::new();
    if let Some((text, _)) = said.reasoning {
        output.push(json!({"id": "rs_mock", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}));
    }
    if !said.text.is_empty() {
        let part = json!({"type": "output_text", "text": said.text, "annotations": [], "logprobs": []});
        output.push(
            json!({"id": "msg_mock", "type": "message", "role": "assistant", "status": "completed", "content": [part]}),
        );
    }
    for (nth, call) in said.calls.iter().enumerate() {
        output.push(json!({
            "id": format!("fc_mock{nth}"), "type": "function_call", "status": "completed", "call_id": call.id,
            "name": call.name, "arguments": call.arguments,
        }));
    }
    static ANSWERS: AtomicU64 = AtomicU64::new(0);
    let id = format!("resp_mock{}", ANSWERS.fetch_add(1, Ordering::Relaxed));
    let object = |status: &str, output: &[Value], usage: &Value| {
        json!({
            "id": id, "object": "response", "created_at": 1_700_000_000, "status": status, "model": said.model,
            "output": output, "usage": usage, "error": null, "incomplete_details": null, "instructions": null,
            "metadata": {}, "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        })
    };
    if request.json["stream"] != true {
        return Answer::object(200, &object("completed", &output, &usage));
    }
    let mut number = 0;
    let mut event = |mut value: Value| {
        value["sequence_number"] = number.into();
        number += 1;
        let kind = text_of(&value, "type").to_owned();
        named(&kind, &value)
    };
    let begun = object("in_progress", &[], &Value::Null);
    let mut frames = Vec::new();
    for kind in ["response.created", "response.in_progress"] {
        frames.push(Frame {
            bytes: event(json!({"type": kind, "response": begun})),
            part: Part::Opening,
        });
    }
    for (index, item) in output.iter().enumerate() {
        let id = &item["id"];
        frames.push(Frame {
            bytes: event(json!({"type": "response.output_item.added", "output_index": index, "item": emptied(item)})),
            part: Part::Opening,
        });
        match text_of(item, "type") {
            "message" => {
                let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
                let added = json!({"type": "response.content_part.added", "item_id": id, "output_index": index, "content_index": 0, "part": part("")});
                frames.push(Frame {
                    bytes: event(added),
                    part: Part::Opening,
                });
                for word in said.words() {
                    frames.push(Frame::content(event(json!({"type": "response.output_text.delta", "item_id": id, "output_index": index, "content_index": 0, "delta": word, "logprobs": []}))));
                }
                frames.push(Frame::closing(event(json!({"type": "response.output_text.done", "item_id": id, "output_index": index, "content_index": 0, "text": said.text, "logprobs": []}))));
                frames.push(Frame::closing(event(json!({"type": "response.content_part.done", "item_id": id, "output_index": index, "content_index": 0, "part": part(said.text)}))));
            }
            "function_call" => {
                let arguments = &item["arguments"];
                frames.push(Frame::content(event(json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": arguments}))));
                frames.push(Frame::closing(event(json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": index, "arguments": arguments}))));
            }
            _ => {
                let text = &item["summary"][0]["text"];
                let added = json!({"type": "response.reasoning_summary_part.added", "item_id": id, "output_index": index, "summary_index": 0, "part": {"type": "summary_text", "text": ""}});
                frames.push(Frame {
                    bytes: event(added),
                    part: Part::Opening,
                });
                frames.push(Frame::content(event(json!({"type": "response.reasoning_summary_text.delta", "item_id": id, "output_index": index, "summary_index": 0, "delta": text}))));
            }
        }
        frames.push(Frame::closing(event(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        )));
    }
    frames.push(Frame::closing(event(
        json!({"type": "response.completed", "response": object("completed", &output, &usage)}),
    )));
    Answer::events(frames)
}

/// An item as it is when it begins.
fn emptied(item: &Value) -> Value {
    let mut begun = item.clone();
    for (key, nothing) in [("content", json!([])), ("arguments", json!("")), ("summary", json!([]))] {
        if begun.get(key).is_some() {
            begun[key] = nothing;
        }
    }
    begun
}

fn data(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

fn named(event: &str, value: &Value) -> Bytes {
    format!("event: {event}\ndata: {value}\n\n").into()
}
