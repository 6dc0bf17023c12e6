//! The fault matrix: whatever an upstream does wrong, in one piece or as a stream, behind every kind of route.
//!
//! Each row says what the first target does, what its attempt is called, and whether the next may be asked. From that
//! follows everything else: who answers behind a pool and behind a named chain, and what the caller is told where nobody
//! else may be asked.

use serde_json::{Value, json};
use switchyard_tests::mock::{Cut, MockUpstream, Reply};
use switchyard_tests::{Answer, TestApp};

/// What an attempt at the faulty target is called, and what its caller is told if nobody else answers.
struct Fate {
    outcome: &'static str,
    face: &'static str,
    /// The next target may be asked.
    moves: bool,
}

const fn moves(outcome: &'static str, face: &'static str) -> Fate {
    Fate {
        outcome,
        face,
        moves: true,
    }
}

const fn stays(outcome: &'static str, face: &'static str) -> Fate {
    Fate {
        outcome,
        face,
        moves: false,
    }
}

/// Content has gone out: the answer is cut, and says so.
const CUT: &str = "200 partial";

/// The first target's fault, its name, and its fate in one piece and as a stream.
type Row = (&'static str, Reply, Fate, Fate);

fn rows() -> Vec<Row> {
    let plain = |status, code: &str| Reply::error(status, code, "No.");
    let same = |outcome, face| (moves(outcome, face), moves(outcome, face));
    let stop = |outcome, face| (stays(outcome, face), stays(outcome, face));
    let row = |name, reply, (unary, stream): (Fate, Fate)| (name, reply, unary, stream);
    vec![
        row("reset", Reply::abort(Cut::Reset), same("broken", "502 upstream_error")),
        row("408", plain(408, "slow"), same("timeout", "504 upstream_timeout")),
        row(
            "429 with Retry-After",
            plain(429, "rate_limit_exceeded").retry_after("1"),
            same("rate_limit", "429 rate_limit_exceeded"),
        ),
        row(
            "429 without Retry-After",
            plain(429, "rate_limit_exceeded"),
            same("rate_limit", "429 rate_limit_exceeded"),
        ),
        row("500", plain(500, "oops"), same("server_error", "502 upstream_error")),
        row("503", plain(503, "busy"), same("server_error", "502 upstream_error")),
        row(
            "200 with an error body",
            plain(200, "overloaded"),
            same("server_error", "502 upstream_error"),
        ),
        row(
            "200 with a quota body",
            plain(200, "insufficient_quota"),
            same("quota", "429 rate_limit_exceeded"),
        ),
        row(
            "400 with a quota body",
            plain(400, "insufficient_quota"),
            same("quota", "429 rate_limit_exceeded"),
        ),
        row("402", plain(402, "pay"), same("quota", "429 rate_limit_exceeded")),
        row(
            "context length",
            plain(400, "context_length_exceeded"),
            same("context_length", "400 context_length_exceeded"),
        ),
        row("400", plain(400, "bad"), stop("refused", "400 invalid_request")),
        row("401", plain(401, "key"), stop("auth", "502 upstream_auth_error")),
        row("403", plain(403, "no"), stop("auth", "502 upstream_auth_error")),
        row("404", plain(404, "gone"), stop("not_found", "404 model_not_found")),
        row("422", plain(422, "bad"), stop("refused", "422 invalid_request")),
        row(
            "malformed JSON",
            Reply::malformed_json(),
            same("bad_answer", "502 upstream_error"),
        ),
        row("bad UTF-8", Reply::bad_utf8(), same("bad_answer", "502 upstream_error")),
        (
            "cut before content",
            Reply::chat("never seen").close_after(0),
            moves("broken", "502 upstream_error"),
            moves("cut", "502 stream_error"),
        ),
        (
            "ended before content",
            Reply::chat("never seen").end_after(0),
            moves("broken", "502 upstream_error"),
            moves("cut", "502 stream_error"),
        ),
        (
            "cut after content",
            Reply::chat("one two three four").close_after(1),
            moves("broken", "502 upstream_error"),
            stays("cut", CUT),
        ),
        (
            "reset after content",
            Reply::chat("one two three four").reset_after(1),
            moves("broken", "502 upstream_error"),
            stays("cut", CUT),
        ),
        (
            "error event after content",
            Reply::chat("one two three four").error_event_after(1),
            moves("broken", "502 upstream_error"),
            stays("server_error", CUT),
        ),
    ]
}

/// Those that take their time. The bounds make them short.
fn slow_rows() -> Vec<Row> {
    vec![
        (
            "hang",
            Reply::hang(),
            moves("timeout", "504 upstream_timeout"),
            moves("timeout", "504 upstream_timeout"),
        ),
        (
            "stall before content",
            Reply::chat("never seen").stall_after(0),
            moves("timeout", "504 upstream_timeout"),
            moves("timeout", "504 upstream_timeout"),
        ),
        (
            "stall after content",
            Reply::chat("one two three four").stall_after(1),
            moves("timeout", "504 upstream_timeout"),
            stays("timeout", CUT),
        ),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Pool,
    Chain,
    Single,
}

/// `first` is faulty, `second` is well, behind a route of this kind.
async fn app(kind: Kind, first: &str, second: &str, more: &str) -> TestApp {
    let strategy = match kind {
        Kind::Pool => "{mode: fallback}",
        Kind::Chain => {
            "{mode: conditional, conditions: [{key: model, value: m, target_keys: [first, second]}, {key: model, value: n, target_key: third}]}"
        }
        Kind::Single => "{mode: single}",
    };
    let config = format!(
        "providers:\n  - {{id: first, kind: openai, base_url: '{first}', api_key: sk-first-secret-1234}}\n  \
         - {{id: second, kind: openai, base_url: '{second}', api_key: sk-second-secret-123}}\n  \
         - {{id: third, kind: openai, base_url: '{second}', api_key: sk-third-secret-1234}}\n\
         strategy: {strategy}\ntargets:\n  - {{virtual_key: first{more}}}\n  - {{virtual_key: second}}\n  - {{virtual_key: third}}\n"
    );
    TestApp::start(Some(&config), &[]).await
}

/// Target and outcome of each attempt; state of each verdict.
fn told(log: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let list = |field: &str| log[field].as_array().cloned().unwrap_or_default();
    let attempts = list("attempts");
    let attempts = attempts
        .iter()
        .map(|attempt| format!("{} {}", text(attempt, "target"), text(attempt, "outcome")));
    let verdicts = list("verdicts");
    let verdicts = verdicts
        .iter()
        .map(|verdict| format!("{} {}", text(verdict, "target"), text(verdict, "state")));
    (attempts.collect(), verdicts.collect())
}

async fn check(app: &TestApp, kind: Kind, name: &str, stream: bool, fate: &Fate) {
    let answer: Answer = app.chat(json!({ "stream": stream })).await;
    let place = format!("{name}, {kind:?}, stream {stream}: {}", answer.text());
    let log = app.logged(&answer).await;
    let (attempts, verdicts) = told(&log);
    let first = format!("first {}", fate.outcome);
    let others = match kind {
        Kind::Pool => "third not_needed",
        Kind::Chain | Kind::Single => "third excluded",
    };
    if fate.moves && kind != Kind::Single {
        assert_eq!(answer.status, 200, "{place}");
        assert_eq!(answer.header("x-gateway-target"), "second", "{place}");
        assert_eq!(answer.header("x-gateway-attempts"), "2", "{place}");
        assert!(!answer.text().contains("never seen"), "{place}");
        assert_eq!(attempts, [first, "second success".to_owned()], "{place}");
        assert_eq!(verdicts, ["first failed", "second chosen", others], "{place}");
        assert_eq!(
            (&log["outcome"], &log["status"]),
            (&json!("success"), &json!(200)),
            "{place}"
        );
        return;
    }
    let second = if kind == Kind::Single {
        "second excluded"
    } else {
        "second not_needed"
    };
    assert_eq!(answer.header("x-gateway-target"), "first", "{place}");
    assert_eq!(answer.header("x-gateway-attempts"), "1", "{place}");
    assert_eq!(attempts, [first], "{place}");
    if fate.face == CUT {
        assert_eq!(answer.status, 200, "{place}");
        assert!(answer.text().contains("one"), "what came is kept: {place}");
        assert!(answer.text().contains("\"error\""), "{place}");
        assert!(answer.text().ends_with("data: [DONE]\n\n"), "{place}");
        assert_eq!(log["outcome"], "partial", "{place}");
        assert_eq!(verdicts, ["first chosen", second, others], "{place}");
        return;
    }
    assert_eq!(answer.refusal(), fate.face, "{place}");
    assert_eq!(log["outcome"], "error", "{place}");
    assert_eq!(log["status"], answer.status.as_u16(), "{place}");
    assert_eq!(verdicts, ["first failed", second, others], "{place}");
}

#[tokio::test]
async fn every_fault_of_an_answer_takes_its_course_behind_every_kind_of_route() {
    for kind in [Kind::Pool, Kind::Chain, Kind::Single] {
        let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
        let app = app(kind, &first.url(), &second.url(), "").await;
        for (name, reply, unary, stream) in rows() {
            for (streamed, fate) in [(false, unary), (true, stream)] {
                // A 429 parks its target. Only a restart of the story makes the first target the first again.
                first.script([reply.clone()]);
                check(&app, kind, name, streamed, &fate).await;
                unpark(&app, &first).await;
            }
        }
    }
}

/// Asks the first target until it answers well: whatever parked it is over.
async fn unpark(app: &TestApp, first: &MockUpstream) {
    first.set_default(Reply::chat("well again"));
    let only = app
        .request(http::Method::POST, "/v1/chat/completions")
        .bearer_auth(&app.key)
        .header("x-gateway-only", "first")
        .json(&switchyard_tests::app::chat_body(json!({})));
    let answer = switchyard_tests::app::read(only).await;
    assert_eq!(
        answer.status,
        200,
        "parked targets are asked when nobody else may be: {}",
        answer.text()
    );
}

#[tokio::test]
async fn what_hangs_is_left_when_its_bound_is_over() {
    for kind in [Kind::Pool, Kind::Chain, Kind::Single] {
        let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
        let bounds = ", timeout: 1s, idle_timeout: 1s";
        let app = app(kind, &first.url(), &second.url(), bounds).await;
        for (name, reply, unary, stream) in slow_rows() {
            for (streamed, fate) in [(false, unary), (true, stream)] {
                first.script([reply.clone()]);
                check(&app, kind, name, streamed, &fate).await;
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_reached_moves_on() {
    // A label of 64 letters is one too many for any name server: it is refused without asking.
    let no_such_name = format!("http://{}.test/v1", "a".repeat(64));
    for kind in [Kind::Pool, Kind::Chain, Kind::Single] {
        for (name, url) in [("refused", MockUpstream::refused_url()), ("DNS", no_such_name.clone())] {
            let second = MockUpstream::start().await;
            let app = app(kind, &url, &second.url(), "").await;
            for stream in [false, true] {
                check(&app, kind, name, stream, &moves("connect", "502 upstream_error")).await;
            }
        }
    }
}
