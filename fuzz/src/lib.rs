//! What the targets do with bytes. Nothing may panic, and what must hold for every input is asserted.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::sync::OnceLock;
use std::time::SystemTime;
use switchyard_core::secret::Secret;
use switchyard_core::usage::Usage;
use switchyard_providers::anthropic::Anthropic;
use switchyard_providers::bedrock::{AwsAuth, Bedrock};
use switchyard_providers::cohere::Cohere;
use switchyard_providers::gemini::{Gemini, GoogleAuth, GoogleService};
use switchyard_providers::openai::OpenAi;
use switchyard_providers::params::OnUnsupported;
use switchyard_providers::sse::{self, Framer};
use switchyard_providers::{Call, End, FromPath, Origin, Surface, Takes, Task, Terms, Wire};

#[path = "../../server/crates/providers/tests/golden/frames.rs"]
mod frames;

/// A list of events as Bedrock sends them.
pub fn framed(events: &serde_json::Value) -> Vec<u8> {
    frames::stream(events)
}

/// Surfaces that have streams, by the byte in front of an input.
pub const SURFACES: [Surface; 5] = [
    Surface::Chat,
    Surface::Completions,
    Surface::Responses,
    Surface::Messages,
    Surface::Generate,
];

/// What else answers are read for.
pub const OTHERS: [Surface; 3] = [Surface::Embeddings, Surface::CountTokens, Surface::GeminiCountTokens];

struct Known {
    name: &'static str,
    wire: Box<dyn Wire>,
    model: &'static str,
}

fn wires() -> &'static [Known] {
    static WIRES: OnceLock<Vec<Known>> = OnceLock::new();
    WIRES.get_or_init(|| {
        let openai = || OpenAi::new("https://up.test/v1", None, &[]).unwrap();
        let aws = AwsAuth::Bearer(Secret::new("secret".to_owned()));
        let google = |service| Gemini::new("https://up.test", service, GoogleAuth::None, &[]).unwrap();
        let known = |name, wire, model| Known { name, wire, model };
        vec![
            known("openai", Box::new(openai()) as Box<dyn Wire>, "gpt-5-mini"),
            known(
                "responses",
                Box::new(openai().serving(&[Surface::Responses, Surface::Completions])),
                "gpt-5-mini",
            ),
            known(
                "anthropic",
                Box::new(Anthropic::new("https://up.test/v1", None, &[]).unwrap()),
                "claude-sonnet-4-5",
            ),
            known("gemini", Box::new(google(GoogleService::Gemini)), "gemini-2.5-flash"),
            known("vertex", Box::new(google(GoogleService::Vertex)), "gemini-2.5-flash"),
            known(
                "bedrock",
                Box::new(Bedrock::new("https://up.test", "us-east-1", aws, &[]).unwrap()),
                "anthropic.claude-sonnet-4-20250514-v1:0",
            ),
            known(
                "cohere",
                Box::new(Cohere::new("https://up.test", None, &[]).unwrap()),
                "command-a-03-2025",
            ),
        ]
    })
}

fn wire(name: &str) -> &'static Known {
    wires().iter().find(|known| known.name == name).unwrap()
}

/// A call with a bit of everything that an answer may depend on.
fn call(surface: Surface, stream: bool) -> Call {
    let body = match surface {
        Surface::Chat => {
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"n":2,"logprobs":true,"stream_options":{"include_usage":true},
            "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}"#
        }
        Surface::Completions => r#"{"model":"m","prompt":"hi","n":2,"logprobs":1}"#,
        Surface::Embeddings => r#"{"model":"m","input":["hi"]}"#,
        Surface::Responses => {
            r#"{"model":"m","input":"hi","include":["message.output_text.logprobs","reasoning.encrypted_content"],
            "tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}"#
        }
        Surface::Messages | Surface::CountTokens => {
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],
            "tools":[{"name":"f","input_schema":{"type":"object"}}]}"#
        }
        Surface::Generate | Surface::GeminiCountTokens => r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
    };
    let is_in_path = matches!(surface, Surface::Generate | Surface::GeminiCountTokens);
    let (body, path) = if is_in_path {
        let model = "m".to_owned();
        (body.to_owned(), Some(FromPath { model, stream }))
    } else if stream {
        (body.replacen('{', r#"{"stream":true,"#, 1), None)
    } else {
        (body.to_owned(), None)
    };
    Call::read(surface, body.into(), path, origin()).unwrap()
}

fn origin() -> Origin {
    Origin {
        id: "0193f0a0b1c2d3e4f5061728394a5b6c".into(),
        at: 1_764_000_000,
    }
}

/// Takes a number and that many bytes from the front; the rest is the input.
fn cuts(data: &[u8]) -> (&[u8], &[u8]) {
    let (count, data) = data
        .split_first()
        .map_or((0, data), |(count, data)| (usize::from(*count), data));
    data.split_at(count.min(data.len()))
}

/// Cuts of these lengths, over and over.
fn pieces<'a>(data: &'a [u8], cuts: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut lengths = cuts.iter().cycle();
    let mut rest = data;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = lengths.next().map_or(rest.len(), |length| usize::from(*length) + 1);
        let (piece, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        Some(piece)
    })
}

// === targets ===

pub fn sse(data: &[u8]) {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut framer = Framer::default();
        let mut blocks: Vec<_> = pieces
            .map_while(|piece| framer.push(Bytes::copy_from_slice(piece)).ok())
            .collect();
        blocks.push(framer.finish());
        let mut said = Vec::new();
        for block in blocks {
            for frame in &block.frames {
                let bytes = &block.bytes[frame.range.clone()];
                let only = frame.only_line(&block.bytes).and_then(sse::value).map(<[u8]>::to_vec);
                let data = sse::data(bytes).map(|data| data.into_owned());
                assert!(only.is_none() || only == data);
                said.push((sse::event(bytes).map(<[u8]>::to_vec), data));
            }
        }
        said
    };
    let (cuts, data) = cuts(data);
    assert_eq!(read(&mut std::iter::once(data)), read(&mut pieces(data, cuts)));
}

/// The input is a run of frames: a byte for the kind, two for the length of the payload.
pub fn event_stream(data: &[u8]) {
    const KINDS: [(&str, &str); 12] = [
        ("event", "messageStart"),
        ("event", "contentBlockStart"),
        ("event", "contentBlockDelta"),
        ("event", "contentBlockStop"),
        ("event", "messageStop"),
        ("event", "metadata"),
        ("event", "somethingElse"),
        ("exception", "throttlingException"),
        ("exception", "modelStreamErrorException"),
        ("exception", "validationException"),
        ("exception", "internalServerException"),
        ("error", "InternalFailure"),
    ];
    let Some((surface, data)) = data.split_first() else {
        return;
    };
    let (cuts, mut data) = cuts(data);
    let mut stream = Vec::new();
    while let [kind, high, low, rest @ ..] = data {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (payload, after) = rest.split_at(length);
        let (says, name) = KINDS[usize::from(*kind) % KINDS.len()];
        let named = match says {
            "event" => ":event-type",
            "exception" => ":exception-type",
            _ => ":error-code",
        };
        let headers = [
            (":message-type", says),
            (named, name),
            (":content-type", "application/json"),
        ];
        stream.extend(frames::message(&headers, payload));
        data = after;
    }
    streamed(
        wire("bedrock"),
        SURFACES[usize::from(*surface) % SURFACES.len()],
        &stream,
        cuts,
    );
}

pub fn answers(name: &str, data: &[u8]) {
    let Some((surface, data)) = data.split_first() else {
        return;
    };
    let (which, is_stream) = (usize::from(surface / 2), surface % 2 == 0);
    let known = wire(name);
    let (cuts, data) = cuts(data);
    if is_stream {
        return streamed(known, SURFACES[which % SURFACES.len()], data, cuts);
    }
    let all: Vec<Surface> = SURFACES.into_iter().chain(OTHERS).collect();
    let surface = all[which % all.len()];
    if known.wire.takes(surface) == Takes::Not {
        return;
    }
    let call = call(surface, false);
    let read = || known.wire.decode(&call, known.model, Bytes::copy_from_slice(data));
    let read_once = read();
    assert_eq!(read_once.as_ref().ok(), read().as_ref().ok());
    if let Ok(reply) = read_once {
        std::str::from_utf8(&reply.body).expect("an answer is UTF-8");
    }
}

fn streamed(known: &Known, surface: Surface, data: &[u8], cuts: &[u8]) {
    if known.wire.takes(surface) == Takes::Not || surface.task() != Task::Converse {
        return;
    }
    let call = call(surface, true);
    let feed = |pieces: &mut dyn Iterator<Item = &[u8]>| -> (Vec<u8>, bool, Vec<End>, Usage) {
        let mut decoder = known.wire.decoder(&call, known.model);
        let (mut out, mut content, mut ends) = (Vec::new(), false, Vec::new());
        let mut steps: Vec<_> = pieces
            .map(|piece| decoder.push(Bytes::copy_from_slice(piece)))
            .collect();
        steps.push(decoder.finish());
        for step in steps {
            out.extend(step.out.iter().flatten());
            content |= step.content;
            ends.extend(step.end);
        }
        (out, content, ends, decoder.usage())
    };
    let whole = feed(&mut std::iter::once(data));
    let cut = feed(&mut pieces(data, cuts));
    assert_eq!(whole.2.len(), 1, "a stream ends once");
    if whole != cut {
        panic!(
            "cut, it is not the same\n{:?} {:?}\n{:?} {:?}",
            String::from_utf8_lossy(&whole.0),
            (whole.1, &whole.2, whole.3),
            String::from_utf8_lossy(&cut.0),
            (cut.1, &cut.2, cut.3)
        );
    }
}

pub fn failure(data: &[u8]) {
    let [a, b, body @ ..] = data else {
        return;
    };
    let status = 100 + u16::from_be_bytes([*a, *b]) % 900;
    let Ok(status) = StatusCode::from_u16(status) else {
        return;
    };
    for known in wires() {
        let error = known
            .wire
            .failure(status, &HeaderMap::new(), body, SystemTime::UNIX_EPOCH);
        assert!(error.face().status >= 400);
        assert!(!error.message.is_empty());
    }
}

pub fn calls(data: &[u8]) {
    let Some((surface, body)) = data.split_first() else {
        return;
    };
    let surface = Surface::ALL[usize::from(surface / 2) % Surface::ALL.len()];
    let is_in_path = matches!(surface, Surface::Generate | Surface::GeminiCountTokens);
    let path = is_in_path.then(|| FromPath {
        model: "m".to_owned(),
        stream: data[0] % 2 == 1 && surface == Surface::Generate,
    });
    let Ok(call) = Call::read(surface, Bytes::copy_from_slice(body), path, origin()) else {
        return;
    };
    let _ = call.user_text();
    let _ = call.estimate_tokens();
    for known in wires() {
        if known.wire.takes(surface) == Takes::Not || known.wire.answer_here(&call).is_some() {
            continue;
        }
        for on_unsupported in [OnUnsupported::Warn, OnUnsupported::Reject] {
            let terms = Terms {
                now: SystemTime::UNIX_EPOCH,
                on_unsupported,
            };
            if let Ok(encoded) = known.wire.encode(&call, known.model, &HeaderMap::new(), &terms) {
                let body = encoded.request.body();
                let is_native = known.wire.takes(surface) == Takes::Native;
                assert!(
                    is_native || serde_json::from_slice::<serde_json::Value>(body).is_ok(),
                    "{} makes no JSON: {}",
                    known.name,
                    String::from_utf8_lossy(body)
                );
            }
        }
    }
}
