//! The pipeline as its callers see it, on a clock that only moves while everybody waits.
//!
//! Upstreams are scripted ([`upstreams`]), time is tokio's own, paused, and nothing else is replaced: a test builds a
//! configuration as an operator writes it, makes calls, and looks at answers, at what went up, at records and at
//! [`Engine::targets`]. An outcome is told in one line, such as `200 by a after 1` or `503 upstream_unavailable by a after
//! 0, retry in 30s`: the status, the code of a failure, the target spoken of, and the calls made.

mod breaker;
mod credentials;
mod explain;
mod models;
mod park;
mod quota;
mod retries;
mod reverify;
mod routes;
mod slots;
mod storm;
mod streams;
mod swap;
mod timeouts;
mod upstreams;

use super::Engine;
use crate::demo::{DemoTransport, Pace};
use crate::explain::Explanation;
use crate::ports::{Clock, Records};
use crate::record::{RequestRecord, Verdict, VerdictState};
use crate::request::{Answer, Attribution, Body, Caller, Failure, Piece, Request};
use crate::snapshot::{Parts, Snapshot};
use crate::view::{Circuit, TargetView};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use switchyard_core::config::Config;
use switchyard_core::error::Error;
use switchyard_providers::Surface;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use upstreams::Upstreams;

/// The time of day when a test begins.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// The time of day, in step with the paused clock.
struct Wall(Instant);

impl Clock for Wall {
    fn now_ms(&self) -> i64 {
        EPOCH_MS + i64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<RequestRecord>>);

impl Records for Kept {
    fn push(&self, record: RequestRecord) {
        self.0.lock().unwrap().push(record);
    }
}

/// An engine with its upstreams.
#[derive(Clone)]
struct Rig {
    engine: Arc<Engine>,
    upstreams: Arc<Upstreams>,
    kept: Arc<Kept>,
    began: Instant,
}

/// Providers of these names, each at `http://<name>.test` with the key `key-<name>`, and what else the file says.
fn config(providers: &[&str], rest: &str) -> String {
    let provider =
        |id: &&str| format!("  - {{id: {id}, kind: openai, base_url: 'http://{id}.test', api_key: key-{id}}}\n");
    let providers: String = providers.iter().map(provider).collect();
    format!("providers:\n{providers}{rest}\n")
}

/// Strategy `fallback` over `a`, whose block has these keys, and `b`.
fn a_then_b(keys: &str) -> String {
    let rest = format!("strategy: {{mode: fallback}}\ntargets: [{{virtual_key: a, {keys}}}, {{virtual_key: b}}]");
    config(&["a", "b"], &rest)
}

/// `a` alone, whose block has these keys.
fn only_a(keys: &str) -> String {
    config(&["a"], &format!("targets: [{{virtual_key: a, {keys}}}]"))
}

fn build(yaml: &str, upstreams: &Arc<Upstreams>, earlier: Option<&Snapshot>) -> Snapshot {
    let config = Config::parse(yaml).unwrap_or_else(|issues| panic!("{issues:?}\n{yaml}"));
    let env: HashMap<String, String> = HashMap::new();
    let parts = Parts {
        env: &env,
        transport: upstreams.clone(),
        demo: Arc::new(DemoTransport::new(Pace::Instant)),
        google: &crate::NoGoogleTokens,
    };
    Snapshot::build(Some(&config), &parts, earlier).unwrap()
}

impl Rig {
    fn new(yaml: &str) -> Self {
        let (upstreams, kept) = (Arc::new(Upstreams::default()), Arc::new(Kept::default()));
        let began = Instant::now();
        let snapshot = build(yaml, &upstreams, None);
        Self {
            engine: Arc::new(Engine::new(snapshot, kept.clone(), Arc::new(Wall(began)))),
            upstreams,
            kept,
            began,
        }
    }

    fn swap(&self, yaml: &str) {
        let snapshot = build(yaml, &self.upstreams, Some(&self.engine.snapshot()));
        self.engine.swap(snapshot);
    }

    async fn run(&self, ask: Ask) -> Result<Answer, Failure> {
        self.engine.run(ask.request()).await
    }

    /// Makes a call and reads its answer to the end.
    async fn tell(&self, ask: Ask) -> String {
        tell(self.run(ask).await).await
    }

    /// Makes a call beside the test, and lets it get as far as it can without time passing.
    async fn begin(&self, ask: Ask) -> JoinHandle<String> {
        let rig = self.clone();
        let call = tokio::spawn(async move { rig.tell(ask).await });
        settle().await;
        call
    }

    /// Looks after what is out of service, until it is aborted.
    fn watch(&self) -> JoinHandle<()> {
        let engine = Arc::clone(&self.engine);
        tokio::spawn(async move { engine.watch().await })
    }

    fn explain(&self, ask: Ask) -> Result<Explanation, Error> {
        // A small call is explained where it is asked.
        self.engine.explain(ask.request()).now_or_never().unwrap()
    }

    /// What went up since this was last asked.
    fn calls(&self) -> Vec<upstreams::Sent> {
        self.upstreams.take_calls()
    }

    /// Which hosts were called since this was last asked.
    fn hosts(&self) -> String {
        let hosts: Vec<String> = self.calls().into_iter().map(|call| call.host).collect();
        hosts.join(" ")
    }

    fn target(&self, name: &str) -> TargetView {
        let targets = self.engine.targets().targets;
        targets.into_iter().find(|target| target.name == name).unwrap()
    }

    /// In one line: how the target stands, why, and for how long from now.
    fn standing(&self, name: &str) -> String {
        let target = self.target(name);
        let mut told = format!("{:?}", target.standing);
        if let Some(reason) = target.reason {
            told = format!("{told}: {reason}");
        }
        if let Some(until) = target.until_ms {
            told = format!("{told}, for {}", self.ahead(until));
        }
        told
    }

    fn circuit(&self, name: &str) -> String {
        match self.target(name).breaker.unwrap().0 {
            Circuit::Closed { failures } => format!("closed, {failures} failed"),
            Circuit::Open { until_ms } => format!("open for {}", self.ahead(until_ms)),
            Circuit::HalfOpen => "half-open".to_owned(),
        }
    }

    /// From now until that moment of the day.
    fn ahead(&self, until_ms: i64) -> String {
        let now = EPOCH_MS + i64::try_from(self.began.elapsed().as_millis()).unwrap();
        format!("{:?}", Duration::from_millis(u64::try_from(until_ms - now).unwrap()))
    }

    fn records(&self) -> Vec<RequestRecord> {
        self.kept.0.lock().unwrap().clone()
    }

    fn last(&self) -> RequestRecord {
        self.kept.0.lock().unwrap().last().unwrap().clone()
    }

    /// Outcomes of the last request's attempts.
    fn outcomes(&self) -> Vec<String> {
        self.last()
            .attempts
            .into_iter()
            .map(|attempt| attempt.outcome.into_owned())
            .collect()
    }

    /// The last request's verdicts.
    fn verdicts(&self) -> Vec<String> {
        let verdicts: Vec<_> = self.last().verdicts.iter().collect();
        self.words(&verdicts)
    }

    fn words(&self, verdicts: &[Verdict]) -> Vec<String> {
        let word = |verdict: &Verdict| {
            let state = match verdict.state {
                VerdictState::Chosen => "chosen",
                VerdictState::Failed => "failed",
                VerdictState::NotNeeded => "not needed",
                VerdictState::Excluded => "excluded",
            };
            let until = verdict.until_ms.map(|until| format!(", for {}", self.ahead(until)));
            format!(
                "{} {state}: {}{}",
                verdict.target,
                verdict.reason,
                until.unwrap_or_default()
            )
        };
        verdicts.iter().map(word).collect()
    }

    /// Nothing is under way, and nothing is held.
    #[track_caller]
    fn assert_idle(&self) {
        assert_eq!(self.engine.in_flight(), 0, "requests under way");
        for target in self.engine.targets().targets {
            assert_eq!(
                (target.in_flight, target.queued),
                (0, 0),
                "{} in flight, queued",
                target.name
            );
        }
        assert_eq!(self.upstreams.open(), 0, "calls that are still open");
    }
}

/// A request in the making.
#[derive(Clone)]
struct Ask {
    id: String,
    surface: Surface,
    model: String,
    prompt: String,
    /// More of the body, each with its comma.
    fields: String,
    headers: HeaderMap,
    caller: Caller,
}

/// A chat of model `m`, in one piece.
fn ask() -> Ask {
    Ask {
        id: "0".repeat(32),
        surface: Surface::Chat,
        model: "m".to_owned(),
        prompt: "hi".to_owned(),
        fields: String::new(),
        headers: HeaderMap::new(),
        caller: Caller::default(),
    }
}

impl Ask {
    fn id(mut self, number: u64) -> Self {
        self.id = format!("{number:032x}");
        self
    }

    fn model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.model);
        self
    }

    fn prompt(mut self, prompt: &str) -> Self {
        prompt.clone_into(&mut self.prompt);
        self
    }

    fn with(mut self, field: &str) -> Self {
        self.fields = format!("{},{field}", self.fields);
        self
    }

    fn stream(self) -> Self {
        self.with(r#""stream":true"#)
    }

    fn embeddings(mut self) -> Self {
        self.surface = Surface::Embeddings;
        self
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap();
        self.headers.append(HeaderName::from_static(name), value);
        self
    }

    fn project(mut self, project: &str) -> Self {
        self.caller.project = Some(project.to_owned());
        self
    }

    fn route_of_key(mut self, route: &str) -> Self {
        self.caller.route = Some(route.to_owned());
        self
    }

    fn request(self) -> Request {
        let (model, prompt) = (&self.model, &self.prompt);
        let input = match self.surface {
            Surface::Chat => format!(r#""messages":[{{"role":"user","content":"{prompt}"}}]"#),
            _ => format!(r#""input":"{prompt}""#),
        };
        Request {
            arrived: Instant::now().into_std(),
            arrived_at_ms: 0,
            upload: Duration::ZERO,
            body: Bytes::from(format!(r#"{{"model":"{model}",{input}{}}}"#, self.fields)),
            id: self.id.into(),
            caller: self.caller.into(),
            surface: self.surface,
            path: None,
            headers: self.headers,
            thread: None,
        }
    }
}

/// Lets everybody get as far as they can without time passing.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

/// Everything on a stream, in words.
async fn read(answer: Answer) -> Vec<String> {
    let Body::Stream(pieces) = answer.body else {
        panic!("a stream")
    };
    let word = |piece: Piece| match piece {
        Piece::Frames(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Piece::Heartbeat => "beat".to_owned(),
        Piece::Failed(error) => format!("failed: {}", error.kind.as_str()),
    };
    pieces.map(word).collect().await
}

/// An outcome in one line.
async fn tell(outcome: Result<Answer, Failure>) -> String {
    let by = |attribution: &Attribution| {
        let target = attribution.target.as_deref().unwrap_or("nobody");
        format!("by {target} after {}", attribution.attempts)
    };
    match outcome {
        Ok(answer) => {
            let by = by(&answer.attribution);
            if let Body::Whole(_) = answer.body {
                return format!("200 {by}");
            }
            match read(answer).await.last().and_then(|last| last.strip_prefix("failed: ")) {
                Some(kind) => format!("cut ({kind}) {by}"),
                None => format!("200 {by}"),
            }
        }
        Err(Failure { error, attribution, .. }) => {
            let face = error.face();
            let wait = error.retry_after.map(|wait| format!(", retry in {wait:?}"));
            let wait = wait.unwrap_or_default();
            format!("{} {} {}{wait}", face.status, face.code, by(&attribution))
        }
    }
}
