//! The hot functions, one by one, for callgrind: `hot CASE` runs a case and prints how many calls were counted.
//!
//! Instructions are the same on every machine and under every load, which no clock can say: a change that makes a request
//! dearer shows here before it shows in a benchmark, and against the figures of `bench/baselines.txt`. A case prepares
//! what it needs, calls once to warm up, and then calls [`CALLS`] times inside [`collected`], which is all that callgrind
//! counts.
//!
//! ```sh
//! cargo xtask bench --check
//! ```
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{StreamExt as _, iter};
use http::{HeaderMap, Request, Response};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchyard_core::catalog::{Work, WorkKind};
use switchyard_core::config::Config;
use switchyard_core::health::Health;
use switchyard_core::routing::{Facts, LeftOut, RouteId, Router, Serves, TargetId, World, dice};
use switchyard_engine::demo::{DemoTransport, Pace};
use switchyard_engine::ports::{Records, SystemClock, Transport, TransportError, UpstreamBody};
use switchyard_engine::record::RequestRecord;
use switchyard_engine::{Body, Caller, Engine, NoGoogleTokens, Parts, Request as Asked, Snapshot};
use switchyard_providers::openai::OpenAi;
use switchyard_providers::{Call, Surface, Wire as _};

/// Calls that are counted.
const CALLS: u32 = 100;
const MODEL: &str = "llama-large";
const REQUEST_ID: &str = "0123456789abcdef0123456789abcdef";

type Case = fn() -> anyhow::Result<()>;

const CASES: [(&str, Case); 12] = [
    ("parse-200b", parse_200b),
    ("parse-10kb", parse_10kb),
    ("parse-100kb", parse_100kb),
    ("fallback-1", fallback_1),
    ("fallback-10", fallback_10),
    ("fallback-100", fallback_100),
    ("load-balance-10", load_balance_10),
    ("load-balance-100", load_balance_100),
    ("decode-stream-20", decode_stream_20),
    ("decode-stream-20-in-pieces", decode_stream_20_in_pieces),
    ("engine-unary", engine_unary),
    ("engine-stream-20", engine_stream_20),
];

fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1);
    let Some(name) = name else {
        for (name, _) in CASES {
            println!("{name}");
        }
        return Ok(());
    };
    let Some((_, case)) = CASES.iter().find(|(known, _)| *known == name) else {
        bail!("there is no case {name}");
    };
    case()?;
    println!("{CALLS}");
    Ok(())
}

/// What callgrind counts: everything below this function, by whose name it knows when to begin and to end.
#[inline(never)]
fn collected(mut call: impl FnMut()) {
    for _ in 0..CALLS {
        call();
    }
}

/// Once for what is made at the first call, and then what counts.
fn measure<T>(mut call: impl FnMut() -> T) {
    black_box(call());
    collected(|| {
        black_box(call());
    });
}

// === Reading a request ===

#[inline(never)]
fn parse_200b() -> anyhow::Result<()> {
    parse(200)
}

#[inline(never)]
fn parse_10kb() -> anyhow::Result<()> {
    parse(10_000)
}

#[inline(never)]
fn parse_100kb() -> anyhow::Result<()> {
    parse(100_000)
}

fn parse(prompt: usize) -> anyhow::Result<()> {
    let body = body(prompt, false);
    Call::parse(Surface::Chat, body.clone()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    measure(|| Call::parse(Surface::Chat, black_box(body.clone())));
    Ok(())
}

fn body(prompt: usize, stream: bool) -> Bytes {
    let text: String = "A train is \"humped\":\nit falls apart into cars. "
        .chars()
        .cycle()
        .take(prompt)
        .collect();
    let mut body = serde_json::json!({
        "model": MODEL,
        "messages": [{ "role": "user", "content": text }],
        "max_tokens": 64,
        "temperature": 0.2,
    });
    if stream {
        body["stream"] = true.into();
    }
    body.to_string().into()
}

// === Ordering targets ===

#[inline(never)]
fn fallback_1() -> anyhow::Result<()> {
    order("fallback", 1)
}

#[inline(never)]
fn fallback_10() -> anyhow::Result<()> {
    order("fallback", 10)
}

#[inline(never)]
fn fallback_100() -> anyhow::Result<()> {
    order("fallback", 100)
}

#[inline(never)]
fn load_balance_10() -> anyhow::Result<()> {
    order("load-balance", 10)
}

#[inline(never)]
fn load_balance_100() -> anyhow::Result<()> {
    order("load-balance", 100)
}

fn order(mode: &str, targets: usize) -> anyhow::Result<()> {
    let router = Router::new(&config(mode, targets)?);
    let facts = Facts {
        model: MODEL,
        work: Work {
            kind: WorkKind::Chat,
            input_tokens: 50,
            output_tokens: Some(64),
        },
        user: None,
        session: None,
        stream: false,
        has_tools: false,
        key: Some(("key", "bench")),
        project: None,
        headers: &(),
        metadata: &(),
        prompt: None,
        now_ms: 0,
    };
    let world = Alike(targets);
    measure(|| router.order(RouteId::DEFAULT, black_box(&facts), &world, &mut dice(REQUEST_ID)));
    Ok(())
}

/// Providers `p0`, `p1`, … that are all targets.
fn config(mode: &str, targets: usize) -> anyhow::Result<Config> {
    let mut text = format!("strategy: {{mode: {mode}}}\nproviders:\n");
    for number in 0..targets {
        writeln!(
            text,
            "  - {{id: p{number}, kind: openai, base_url: 'http://p{number}.test/v1', api_key: sk-bench}}"
        )?;
    }
    let names: Vec<_> = (0..targets).map(|number| format!("p{number}")).collect();
    writeln!(text, "targets: [{}]", names.join(", "))?;
    Config::parse(&text).map_err(|issues| anyhow::anyhow!("{issues:?}"))
}

/// So many targets, of which all serve everything.
struct Alike(usize);

impl World for Alike {
    fn targets(&self) -> usize {
        self.0
    }

    fn serves(&self, _: TargetId, _: &str) -> Serves {
        Serves::Open
    }

    fn upstream<'a>(&'a self, _: TargetId, model: &'a str) -> &'a str {
        model
    }

    fn p50(&self, _: TargetId, _: &str) -> Option<Duration> {
        None
    }

    fn price(&self, _: TargetId, _: &str, _: &Work) -> Option<f64> {
        None
    }

    fn health(&self, _: TargetId) -> Health {
        Health::default()
    }

    fn denies(&self, _: TargetId) -> Option<LeftOut> {
        None
    }
}

// === Reading a stream ===

#[inline(never)]
fn decode_stream_20() -> anyhow::Result<()> {
    decode(&[stream_of(20).concat().into()])
}

#[inline(never)]
fn decode_stream_20_in_pieces() -> anyhow::Result<()> {
    let pieces: Vec<Bytes> = stream_of(20).into_iter().map(Bytes::from).collect();
    decode(&pieces)
}

fn decode(pieces: &[Bytes]) -> anyhow::Result<()> {
    let wire = OpenAi::new("http://p0.test/v1", None, &[])?;
    let call = Call::parse(Surface::Chat, body(200, true)).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    measure(|| {
        let mut decoder = wire.decoder(&call, &call.model);
        for piece in pieces {
            black_box(decoder.push(piece.clone()));
        }
        decoder.usage()
    });
    Ok(())
}

/// A role, so many contents, a finish, usage and the end, as a vendor sends them.
fn stream_of(contents: usize) -> Vec<String> {
    let head = r#"{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1764460800,"model":"llama-large""#;
    let chunk = |delta: &str, finish: &str| {
        format!("data: {head},\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n")
    };
    let mut events = vec![chunk(r#"{"role":"assistant","content":""}"#, "null")];
    events.extend((0..contents).map(|number| chunk(&format!(r#"{{"content":" word{number}"}}"#), "null")));
    events.push(chunk("{}", "\"stop\""));
    events.push(format!(
        "data: {head},\"choices\":[],\"usage\":{{\"prompt_tokens\":42,\"completion_tokens\":{contents},\"total_tokens\":{}}}}}\n\n",
        contents + 42
    ));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

// === The whole pipeline, between two ports ===

#[inline(never)]
fn engine_unary() -> anyhow::Result<()> {
    let answer = concat!(
        r#"{"id":"chatcmpl-bench","object":"chat.completion","created":1764460800,"model":"llama-large","choices":"#,
        r#"[{"index":0,"message":{"role":"assistant","content":"The quick brown fox."},"finish_reason":"stop"}],"usage":"#,
        r#"{"prompt_tokens":42,"completion_tokens":20,"total_tokens":62}}"#,
    );
    pipeline(&body(200, false), answer.into())
}

#[inline(never)]
fn engine_stream_20() -> anyhow::Result<()> {
    pipeline(&body(200, true), stream_of(20).concat().into())
}

fn pipeline(body: &Bytes, answer: Bytes) -> anyhow::Result<()> {
    let env: HashMap<String, String> = HashMap::new();
    let parts = Parts {
        env: &env,
        transport: Arc::new(Canned(answer)),
        demo: Arc::new(DemoTransport::new(Pace::Instant)),
        google: &NoGoogleTokens,
    };
    let snapshot = Snapshot::build(Some(&config("fallback", 3)?), &parts, None)?;
    let engine = Engine::new(snapshot, Arc::new(Forgotten), Arc::new(SystemClock));
    // No timer fires and nothing is spawned: one thread that only polls.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(ask(&engine, body.clone()))?;
    measure(|| runtime.block_on(ask(&engine, body.clone())));
    Ok(())
}

async fn ask(engine: &Engine, body: Bytes) -> anyhow::Result<usize> {
    let request = Asked {
        id: REQUEST_ID.into(),
        arrived: Instant::now(),
        arrived_at_ms: 1_764_460_800_000,
        upload: Duration::ZERO,
        caller: Caller::default().into(),
        surface: Surface::Chat,
        path: None,
        thread: None,
        headers: HeaderMap::new(),
        body,
    };
    let answer = engine.run(request).await;
    match answer.map_err(|failure| anyhow::anyhow!("{:?}", failure.error))?.body {
        Body::Whole(bytes) => Ok(bytes.len()),
        Body::Stream(pieces) => Some(pieces.count().await)
            .filter(|count| *count > 0)
            .context("an empty stream"),
    }
}

/// An upstream that always says the same.
struct Canned(Bytes);

impl Transport for Canned {
    fn send(&self, _: Request<Bytes>) -> BoxFuture<'static, Result<Response<UpstreamBody>, TransportError>> {
        let body: UpstreamBody = iter([Ok(self.0.clone())]).boxed();
        Box::pin(ready(Ok(Response::new(body))))
    }
}

struct Forgotten;

impl Records for Forgotten {
    fn push(&self, record: RequestRecord) {
        black_box(record);
    }
}
