//! What takes longer than a test may: silence, and waits between attempts. Time is tokio's own, paused.

use super::Engine;
use crate::demo::{DemoTransport, Pace};
use crate::ports::{Records, SystemClock, Transport, TransportError, UpstreamBody};
use crate::record::{Outcome, RequestRecord};
use crate::request::{Answer, Body, Caller, Failure, Piece, Request};
use crate::snapshot::{Parts, Snapshot};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{StreamExt, iter};
use http::{HeaderMap, Response, StatusCode};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use switchyard_core::config::Config;
use switchyard_core::error::Kind;
use switchyard_providers::Surface;

/// One answer of the upstream: how long until its head, its status, and frames that come after their waits.
type Script = (u64, u16, Vec<(u64, &'static str)>);

/// Plays its answers one after the other.
struct Scripted(Mutex<VecDeque<Script>>);

impl Transport for Scripted {
    fn send(&self, _: http::Request<Bytes>) -> BoxFuture<'static, Result<Response<UpstreamBody>, TransportError>> {
        let (head, status, frames) = self.0.lock().unwrap().pop_front().unwrap();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(head)).await;
            let body = iter(frames).then(|(wait, frame)| async move {
                tokio::time::sleep(Duration::from_secs(wait)).await;
                Ok(Bytes::from_static(frame.as_bytes()))
            });
            let mut response = Response::new(body.boxed());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            Ok(response)
        })
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<RequestRecord>>);

impl Records for Kept {
    fn push(&self, record: RequestRecord) {
        self.0.lock().unwrap().push(record);
    }
}

const TWO: &str = "providers:\n  - {id: a, kind: openai, base_url: 'http://a.test'}\n  - {id: b, kind: openai, base_url: 'http://b.test'}\n\
                   strategy: {mode: fallback}\ntargets: [{virtual_key: a, retry: {attempts: 2}}, {virtual_key: b}]";
const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
const WORD: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

struct Setup {
    engine: Engine,
    kept: Arc<Kept>,
}

fn setup(scripts: impl IntoIterator<Item = Script>) -> Setup {
    let config = Config::parse(TWO).unwrap();
    let env: HashMap<String, String> = HashMap::new();
    let transport = Arc::new(Scripted(Mutex::new(scripts.into_iter().collect())));
    let parts = Parts {
        env: &env,
        transport,
        demo: Arc::new(DemoTransport::new(Pace::Instant)),
    };
    let kept = Arc::new(Kept::default());
    let engine = Engine::new(
        Snapshot::build(Some(&config), &parts).unwrap(),
        kept.clone(),
        Arc::new(SystemClock),
    );
    Setup { engine, kept }
}

impl Setup {
    async fn run(&self, stream: bool) -> Result<Answer, Failure> {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],"stream":{stream}}}"#);
        let request = Request {
            id: "0".repeat(32),
            arrived: Instant::now(),
            arrived_at_ms: 0,
            upload: Duration::ZERO,
            caller: Caller::default(),
            surface: Surface::Chat,
            headers: HeaderMap::new(),
            body: Bytes::from(body),
        };
        self.engine.run(request).await
    }

    fn record(&self) -> RequestRecord {
        let kept = self.kept.0.lock().unwrap();
        assert_eq!(kept.len(), 1, "exactly one record");
        kept[0].clone()
    }
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

#[tokio::test(start_paused = true)]
async fn a_long_silence_is_filled_with_heartbeats_until_the_answer_comes() {
    let setup = setup([(40, 200, vec![(0, ROLE), (10, WORD), (0, STOP)])]);
    let answer = setup.run(true).await.unwrap();
    assert_eq!(
        (answer.attribution.target.as_deref(), answer.attribution.attempts),
        (Some("a"), 1),
        "who is being tried"
    );
    let said = read(answer).await;
    assert_eq!(said[..3], ["beat", "beat", "beat"], "at 15, 30 and 45 s");
    assert_eq!(said[3..].concat(), [ROLE, WORD, STOP].concat());
    assert_eq!(setup.record().outcome, Outcome::Success);
}

#[tokio::test(start_paused = true)]
async fn failover_goes_on_behind_the_heartbeats_and_a_failure_is_the_last_word() {
    let dead = || (20, 503, vec![(0, "{}")]);
    let setup_ok = setup([dead(), dead(), (0, 200, vec![(0, WORD), (0, STOP)])]);
    let said = read(setup_ok.run(true).await.unwrap()).await;
    assert_eq!(said.last().unwrap(), STOP);
    let record = setup_ok.record();
    assert_eq!(
        (record.target.as_deref(), record.attempts.len(), record.status),
        (Some("b"), 3, 200),
        "the final truth"
    );

    let setup_bad = setup([dead(), dead(), dead()]);
    let said = read(setup_bad.run(true).await.unwrap()).await;
    assert_eq!(said.last().unwrap(), "failed: server_error");
    let record = setup_bad.record();
    assert_eq!(
        (record.outcome, record.status),
        (Outcome::Error, 200),
        "200 is what the caller saw"
    );
}

#[tokio::test(start_paused = true)]
async fn silence_in_a_stream_is_a_cut_after_content_and_a_failure_before() {
    let setup_cut = setup([(0, 200, vec![(0, WORD), (121, STOP)])]);
    let said = read(setup_cut.run(true).await.unwrap()).await;
    assert_eq!(said, [WORD, "failed: timeout"]);
    assert_eq!(setup_cut.record().outcome, Outcome::Partial);

    let silent = || (0, 200, vec![(121, WORD)]);
    let setup_moves = setup([silent(), silent(), (0, 200, vec![(0, WORD), (0, STOP)])]);
    let said = read(setup_moves.run(true).await.unwrap()).await;
    assert_eq!(
        said.iter().filter(|said| *said != "beat").cloned().collect::<String>(),
        [WORD, STOP].concat()
    );
    let outcomes: Vec<String> = setup_moves
        .record()
        .attempts
        .into_iter()
        .map(|attempt| attempt.outcome)
        .collect();
    assert_eq!(outcomes, ["timeout", "timeout", "success"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_leaves_one_record_at_every_stage() {
    for (scripts, wait) in [
        (vec![(60, 200, vec![])], 5),
        (vec![(60, 200, vec![])], 20),
        (vec![(0, 200, vec![(0, WORD), (60, STOP)])], 5),
    ] {
        let setup = setup(scripts);
        let _ = tokio::time::timeout(Duration::from_secs(wait), async {
            read(setup.run(true).await.unwrap()).await;
        })
        .await;
        let record = setup.record();
        assert_eq!(record.outcome, Outcome::ClientCancelled);
        assert_eq!(record.attempts.len(), 1);
        assert_eq!(setup.engine.in_flight(), 0, "nothing is left open");
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_read_is_recorded_too() {
    let setup = setup([]);
    let request = Request {
        id: "0".repeat(32),
        arrived: Instant::now(),
        arrived_at_ms: 0,
        upload: Duration::ZERO,
        caller: Caller::default(),
        surface: Surface::Chat,
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{"),
    };
    let Err(failure) = setup.engine.run(request).await else {
        panic!("refused")
    };
    assert_eq!(failure.error.kind, Kind::InvalidRequest);
    assert_eq!(setup.record().outcome, Outcome::Rejected);
}
