//! The content of a reply in OpenAI's wire format: a status, a type, and the body's frames. Other vendors' are in `vendors`.

use super::vendors::{self, Said, Vendor};
use super::{Call, Content, Recorded, Reply, Report, Usage};
use bytes::Bytes;
use serde_json::{Value, json};

const CREATED: i64 = 1_700_000_000;
const ID: &str = "chatcmpl-mock";

/// A whole answer, ready to be sent frame by frame.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) frames: Vec<Frame>,
    /// A stream has no length in its head.
    pub(super) streams: bool,
}

pub(super) struct Frame {
    pub(super) bytes: Bytes,
    pub(super) part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Comes before all content: the role.
    Opening,
    Content,
    /// Comes after all content: the finish, the usage, `[DONE]`.
    Closing,
}

/// What of the request shapes the answer.
struct Asked {
    model: Value,
    stream: bool,
    include_usage: bool,
}

/// Encodes a reply in the wire that the path belongs to; nothing for one that never has a head.
pub(super) fn encode(reply: &Reply, request: &Recorded) -> Option<Answer> {
    let vendor = Vendor::of(&request.path);
    let is_strict = vendor != Vendor::OpenAi || matches!(reply.content, Content::Says { .. });
    let says = matches!(
        reply.content,
        Content::Chat { .. } | Content::Tools { .. } | Content::Says { .. } | Content::Embeddings { .. }
    );
    if is_strict
        && says
        && let Some(refusal) = vendors::refusal(request)
    {
        return Some(vendors::error(vendor, 400, &refusal));
    }
    if vendor == Vendor::OpenAi {
        return encode_openai(reply, request);
    }
    let model = reply
        .model
        .clone()
        .or_else(|| vendors::model_in(&request.path))
        .or_else(|| request.json["model"].as_str().map(str::to_owned))
        .unwrap_or_default();
    let said = |reasoning, text, calls, usage| {
        let said = Said {
            model: &model,
            reasoning,
            text,
            calls,
            usage,
        };
        Some(vendors::turn(request, &said))
    };
    match &reply.content {
        Content::Chat { text, usage, .. } => said(None, text, &[], *usage),
        Content::Tools { calls, usage, .. } => said(None, "", calls, *usage),
        Content::Embeddings { .. } => said(None, "", &[], Usage::default()),
        Content::Says {
            reasoning,
            text,
            calls,
            usage,
        } => {
            let reasoning = reasoning.as_deref().map(|text| (text, vendors::SIGNATURE));
            said(reasoning, text, calls, *usage)
        }
        Content::Error { status, message, .. } => Some(vendors::error(vendor, *status, message)),
        _ => encode_openai(reply, request),
    }
}

fn encode_openai(reply: &Reply, request: &Recorded) -> Option<Answer> {
    let asked = Asked {
        model: reply
            .model
            .clone()
            .map_or_else(|| request.json["model"].clone(), Value::String),
        stream: request.json["stream"] == true,
        include_usage: request.json["stream_options"]["include_usage"] == true,
    };
    Some(match &reply.content {
        Content::Hang | Content::Abort { .. } => return None,
        Content::Chat { text, usage, report } => {
            let words: Vec<_> = text.split_inclusive(' ').collect();
            let deltas = words.iter().map(|word| json!({"content": word})).collect();
            let message = json!({"role": "assistant", "content": text, "refusal": null});
            asked.chat(&Turn {
                message,
                deltas,
                finish_reason: "stop",
                usage: *usage,
                report: *report,
            })
        }
        Content::Tools { calls, usage, report } => {
            let deltas = calls.iter().enumerate().flat_map(call_deltas).collect();
            let calls: Vec<_> = calls.iter().map(whole_call).collect();
            let message = json!({"role": "assistant", "content": null, "tool_calls": calls, "refusal": null});
            asked.chat(&Turn {
                message,
                deltas,
                finish_reason: "tool_calls",
                usage: *usage,
                report: *report,
            })
        }
        Content::Says {
            reasoning,
            text,
            calls,
            usage,
        } => asked.chat(&says(reasoning.as_deref(), text, calls, *usage)),
        Content::Raw { status, chunks } => {
            let frames = chunks
                .iter()
                .map(|chunk| Frame::content(chunk.as_bytes().to_vec()))
                .collect();
            Answer {
                status: *status,
                content_type: "application/json",
                frames,
                streams: true,
            }
        }
        Content::Error {
            status,
            message,
            error_type,
            code,
            param,
        } => {
            let error = json!({"message": message, "type": error_type, "param": param, "code": code});
            Answer::object(*status, &json!({"error": error}))
        }
        Content::MalformedJson if asked.stream => Answer::events(vec![
            Frame::content("data: {\"id\": \"chatcmpl-mock\", \"choices\": [{\n\n"),
            Frame::done(),
        ]),
        Content::MalformedJson => Answer::bytes(200, "{\"id\": \"chatcmpl-mock\", \"choices\": [{"),
        Content::BadUtf8 => asked.bad_utf8(),
        Content::Embeddings { dimensions } => {
            Answer::object(200, &embeddings(&request.json, &asked.model, *dimensions))
        }
        Content::Models { ids } => {
            let entry = |id: &String| json!({"id": id, "object": "model", "created": CREATED, "owned_by": "mock"});
            Answer::object(
                200,
                &json!({"object": "list", "data": ids.iter().map(entry).collect::<Vec<_>>()}),
            )
        }
    })
}

/// What is said when no script and no default says otherwise.
pub(super) fn usual_reply(request: &Recorded) -> Reply {
    if request.path.ends_with("/embeddings") {
        Reply::embeddings(4)
    } else if request.path.ends_with("/models") {
        Reply::models(["mock-small", "mock-large"])
    } else {
        Reply::chat("Hello from the mock upstream.")
    }
}

// === Chat ===

struct Turn {
    message: Value,
    /// The same message in pieces, its role left out.
    deltas: Vec<Value>,
    finish_reason: &'static str,
    usage: Usage,
    report: Report,
}

impl Asked {
    fn chat(&self, turn: &Turn) -> Answer {
        if self.stream {
            self.stream(turn)
        } else {
            self.unary(turn)
        }
    }

    fn unary(&self, turn: &Turn) -> Answer {
        let choice =
            json!({"index": 0, "message": turn.message, "logprobs": null, "finish_reason": turn.finish_reason});
        let mut object = json!({
            "id": ID, "object": "chat.completion", "created": CREATED, "model": self.model, "choices": [choice],
        });
        if turn.report != Report::Never {
            object["usage"] = turn.usage();
        }
        Answer::object(200, &object)
    }

    fn stream(&self, turn: &Turn) -> Answer {
        let usage = turn.usage();
        let reports = match turn.report {
            Report::AsAsked => self.include_usage,
            Report::Always => true,
            Report::Never => false,
        };
        let chunk = |choices: Value, usage: Value| {
            let mut chunk = json!({
                "id": ID, "object": "chat.completion.chunk", "created": CREATED, "model": self.model, "choices": choices,
            });
            if reports {
                chunk["usage"] = usage;
            }
            event(&chunk)
        };
        let delta = |delta: &Value, finish_reason: Value| {
            let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
            chunk(json!([choice]), Value::Null)
        };
        let opening = match turn.finish_reason {
            "tool_calls" => json!({"role": "assistant", "content": null}),
            _ => json!({"role": "assistant", "content": ""}),
        };
        let mut frames = vec![Frame {
            bytes: delta(&opening, Value::Null),
            part: Part::Opening,
        }];
        frames.extend(
            turn.deltas
                .iter()
                .map(|piece| Frame::content(delta(piece, Value::Null))),
        );
        frames.push(Frame::closing(delta(&json!({}), json!(turn.finish_reason))));
        if reports {
            frames.push(Frame::closing(chunk(json!([]), usage)));
        }
        frames.push(Frame::done());
        Answer::events(frames)
    }

    fn bad_utf8(&self) -> Answer {
        const PLACEHOLDER: &str = "BAD";
        let turn = Turn {
            message: json!({"role": "assistant", "content": PLACEHOLDER, "refusal": null}),
            deltas: vec![json!({"content": PLACEHOLDER})],
            finish_reason: "stop",
            usage: Usage::default(),
            report: Report::AsAsked,
        };
        let mut answer = self.chat(&turn);
        for frame in &mut answer.frames {
            let at = frame
                .bytes
                .windows(PLACEHOLDER.len())
                .position(|window| window == PLACEHOLDER.as_bytes());
            if let Some(at) = at {
                // The first byte of a sequence, one that may stand nowhere, and a stray continuation.
                let bad = [
                    &frame.bytes[..at],
                    &[0xe2, 0xff, 0x80],
                    &frame.bytes[at + PLACEHOLDER.len()..],
                ]
                .concat();
                frame.bytes = bad.into();
            }
        }
        answer
    }
}

impl Turn {
    fn usage(&self) -> Value {
        let completion = self.usage.completion.unwrap_or(self.deltas.len() as u64);
        json!({
            "prompt_tokens": self.usage.prompt,
            "completion_tokens": completion,
            "total_tokens": self.usage.prompt + completion,
            "prompt_tokens_details": {"cached_tokens": self.usage.cached},
            "completion_tokens_details": {"reasoning_tokens": 0},
        })
    }
}

/// A turn with everything that one can have, reasoning in the field that most who have it use.
fn says(reasoning: Option<&str>, text: &str, calls: &[Call], usage: Usage) -> Turn {
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if text.is_empty() {
        message["content"] = Value::Null;
    }
    let mut deltas = Vec::new();
    if let Some(reasoning) = reasoning {
        message["reasoning_content"] = reasoning.into();
        deltas.push(json!({"reasoning_content": reasoning}));
    }
    deltas.extend(
        text.split_inclusive(' ')
            .filter(|word| !word.is_empty())
            .map(|word| json!({"content": word})),
    );
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(whole_call).collect::<Vec<_>>().into();
        deltas.extend(calls.iter().enumerate().flat_map(call_deltas));
    }
    Turn {
        message,
        deltas,
        finish_reason: if calls.is_empty() { "stop" } else { "tool_calls" },
        usage,
        report: Report::AsAsked,
    }
}

fn whole_call(call: &Call) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

/// The name, then the arguments in two halves.
fn call_deltas((index, call): (usize, &Call)) -> [Value; 3] {
    let (first, second) = call
        .arguments
        .split_at(call.arguments.floor_char_boundary(call.arguments.len() / 2));
    let start = json!({"name": call.name, "arguments": ""});
    let fragment = |text: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]});
    [
        json!({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": start}]}),
        fragment(first),
        fragment(second),
    ]
}

// === Others ===

/// One vector for each input: the number of the input, and zeroes.
fn embeddings(request: &Value, model: &Value, dimensions: usize) -> Value {
    let inputs = match &request["input"] {
        Value::Array(list) if !list.iter().all(Value::is_number) => list.len(),
        _ => 1,
    };
    let entry = |index: usize| {
        let vector: Vec<f64> = (0..dimensions)
            .map(|place| if place == index % dimensions.max(1) { 1.0 } else { 0.0 })
            .collect();
        json!({"object": "embedding", "index": index, "embedding": vector})
    };
    let data: Vec<_> = (0..inputs).map(entry).collect();
    let tokens = 3 * inputs;
    json!({"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
}

// === impl Answer, Frame ===

impl Answer {
    pub(super) fn object(status: u16, object: &Value) -> Self {
        Self::bytes(status, object.to_string())
    }

    fn bytes(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type: "application/json",
            frames: vec![Frame::content(body)],
            streams: false,
        }
    }

    pub(super) fn events(frames: Vec<Frame>) -> Self {
        Self {
            status: 200,
            content_type: "text/event-stream",
            frames,
            streams: true,
        }
    }

    /// Makes two frames of a body that is one, so that it can end in its middle.
    pub(super) fn halved(mut self) -> Self {
        if !self.streams
            && let Some(whole) = self.frames.pop()
        {
            let mut first = whole.bytes;
            let second = first.split_off(first.len() / 2);
            self.frames = vec![Frame::content(first), Frame::content(second)];
        }
        self
    }

    pub(super) fn length(&self) -> usize {
        self.frames.iter().map(|frame| frame.bytes.len()).sum()
    }
}

impl Frame {
    pub(super) fn content(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            part: Part::Content,
        }
    }

    pub(super) fn closing(bytes: Bytes) -> Self {
        Self {
            bytes,
            part: Part::Closing,
        }
    }

    pub(super) fn done() -> Self {
        Self::closing(Bytes::from_static(b"data: [DONE]\n\n"))
    }
}

fn event(data: &Value) -> Bytes {
    format!("data: {data}\n\n").into()
}
