//! A target that keeps failing is left alone, whoever asks for it.

use super::upstreams::*;
use super::{Rig, a_then_b, ask, config, only_a, seconds, settle};
use crate::record::Outcome;

const AT_ONCE: &str = "circuit_breaker: {failure_threshold: 1, timeout: 30s, ramp: 0s}";

#[tokio::test(start_paused = true)]
async fn every_attempt_counts_and_nobody_waits_for_a_retry_that_would_be_refused() {
    let rig = Rig::new(&a_then_b(
        "circuit_breaker: {failure_threshold: 3, ramp: 0s}, retry: {attempts: 2, initial_backoff_ms: 0}",
    ));
    rig.upstreams.on("a", status(503));
    assert_eq!(rig.tell(ask()).await, "200 by b after 3");
    assert_eq!(
        (rig.hosts().as_str(), rig.circuit("a").as_str()),
        ("a a b", "closed, 2 failed")
    );

    rig.upstreams.on("a", status(503).header("retry-after", "20"));
    let began = rig.began.elapsed();
    assert_eq!(rig.tell(ask()).await, "200 by b after 2");
    assert_eq!(rig.hosts(), "a b", "the third failure opens it: its retry is not made");
    assert_eq!(rig.began.elapsed(), began, "and not waited for");
    assert_eq!(rig.circuit("a"), "open for 30s");

    seconds(10).await;
    assert_eq!(rig.tell(ask()).await, "200 by b after 1");
    assert_eq!(rig.hosts(), "b");
    assert_eq!(
        rig.verdicts(),
        ["a excluded: its circuit breaker is open, for 20s", "b chosen: answered"]
    );
    assert_eq!(
        rig.standing("a"),
        "Open: its circuit breaker opened after 3 failures in a row, for 20s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_waited_for_when_the_breaker_lets_it_through_by_then() {
    let rig = Rig::new(&only_a(
        "circuit_breaker: {failure_threshold: 1, timeout: 5s, ramp: 0s}, retry: {attempts: 2}",
    ));
    rig.upstreams.next("a", [status(503).header("retry-after", "7")]);
    assert_eq!(rig.tell(ask()).await, "200 by a after 2");
    assert_eq!(rig.began.elapsed().as_secs(), 7);
    assert_eq!(rig.circuit("a"), "closed, 0 failed", "the retry was its probe");
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_about_its_health_neither_counts_nor_resets() {
    let rig = Rig::new(&only_a("circuit_breaker: {failure_threshold: 2, ramp: 0s}"));
    rig.upstreams.next("a", [status(503)]);
    assert_eq!(rig.tell(ask()).await, "502 upstream_error by a after 1");
    for (reply, told) in [
        (limited(None), "429 rate_limit_exceeded by a after 1"),
        (status(402), "429 rate_limit_exceeded by a after 1"),
        (status(401), "502 upstream_auth_error by a after 1"),
        (status(403), "502 upstream_auth_error by a after 1"),
        (
            refusal(400, "context_length_exceeded"),
            "400 context_length_exceeded by a after 1",
        ),
    ] {
        rig.upstreams.next("a", [reply]);
        assert_eq!(rig.tell(ask()).await, told);
        assert_eq!(rig.circuit("a"), "closed, 1 failed", "{told}");
    }
    rig.upstreams.next("a", [hangs()]);
    let call = rig.begin(ask()).await;
    call.abort();
    settle().await;
    assert_eq!(rig.last().outcome, Outcome::ClientCancelled);
    assert_eq!(rig.circuit("a"), "closed, 1 failed", "a client that goes away");

    for refused in [400, 404, 422] {
        rig.upstreams.next("a", [status(refused), status(503)]);
        rig.tell(ask()).await;
        assert_eq!(
            rig.circuit("a"),
            "closed, 0 failed",
            "who refuses a request lives: {refused}"
        );
        rig.tell(ask()).await;
    }
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn every_way_to_bring_no_answer_counts() {
    for reply in [
        status(500),
        status(408),
        unreachable(),
        hangs(),
        says(200, "<html>"),
        says(200, "{}"),
        status(302),
        says(200, r#"{"error":"overloaded"}"#),
    ] {
        let rig = Rig::new(&only_a(&format!("timeout: 5s, {AT_ONCE}")));
        rig.upstreams.next("a", [reply]);
        rig.tell(ask()).await;
        assert_eq!(rig.circuit("a"), "open for 30s", "{:?}", rig.outcomes());
    }
}

#[tokio::test(start_paused = true)]
async fn with_nobody_else_an_open_breaker_is_the_answer() {
    let rig = Rig::new(&only_a(AT_ONCE));
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    rig.calls();
    seconds(12).await;
    for _ in 0..2 {
        assert_eq!(
            rig.tell(ask()).await,
            "503 upstream_unavailable by a after 0, retry in 18s"
        );
    }
    assert_eq!(rig.hosts(), "", "no call was made");
    let record = rig.last();
    assert_eq!(
        (record.outcome, record.status, record.attempts.len()),
        (Outcome::Error, 503, 0)
    );
    assert_eq!(
        rig.verdicts(),
        ["a excluded: the circuit breaker of a is open, for 18s"]
    );
    seconds(18).await;
    assert_eq!(rig.circuit("a"), "half-open");
    assert_eq!(
        rig.standing("a"),
        "Probing: its circuit breaker is half-open: its calls are probes, a few at a time"
    );
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(rig.circuit("a"), "closed, 0 failed");
}

#[tokio::test(start_paused = true)]
async fn when_all_are_open_the_first_to_come_back_says_when() {
    let rig = Rig::new(&config(
        &["a", "b"],
        &format!(
            "strategy: {{mode: fallback}}\ntargets: [{{virtual_key: a, {AT_ONCE}}}, {{virtual_key: b, {AT_ONCE}}}]"
        ),
    ));
    rig.upstreams.on("a", status(500));
    assert_eq!(rig.tell(ask()).await, "200 by b after 2");
    seconds(10).await;
    rig.upstreams.on("b", status(500));
    assert_eq!(rig.tell(ask()).await, "502 upstream_error by b after 1");
    rig.calls();
    seconds(2).await;
    assert_eq!(
        rig.tell(ask()).await,
        "503 upstream_unavailable by a after 0, retry in 18s"
    );
    assert_eq!(rig.hosts(), "");
    let explained = rig.explain(ask()).unwrap();
    assert_eq!(explained.order, [], "nobody would be asked");
    assert_eq!(
        rig.words(&explained.verdicts),
        [
            "a excluded: its circuit breaker is open, for 18s",
            "b excluded: its circuit breaker is open, for 28s"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn half_open_lets_so_many_through_and_no_more() {
    let rig = Rig::new(&a_then_b(
        "circuit_breaker: {failure_threshold: 1, success_threshold: 2, max_half_threshold: 2, timeout: 30s, ramp: 0s}",
    ));
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    seconds(30).await;
    rig.calls();
    let gate = Gate::closed();
    rig.upstreams.on("a", ok().held(&gate));
    let probes = [rig.begin(ask()).await, rig.begin(ask()).await];
    assert_eq!(rig.tell(ask()).await, "200 by b after 1");
    assert_eq!(rig.hosts(), "a a b");
    assert_eq!(
        rig.verdicts()[0],
        "a excluded: its circuit breaker is half-open and lets no more calls through until its probe has ended"
    );
    gate.let_one_through();
    settle().await;
    assert_eq!(rig.circuit("a"), "half-open", "two have to succeed");
    gate.open();
    for probe in probes {
        assert_eq!(probe.await.unwrap(), "200 by a after 1");
    }
    assert_eq!(rig.circuit("a"), "closed, 0 failed");

    rig.upstreams.on("a", status(503));
    rig.tell(ask()).await;
    seconds(30).await;
    rig.tell(ask()).await;
    assert_eq!(rig.circuit("a"), "open for 30s", "one failed probe is enough");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_its_client_gives_up_leaves_its_place_to_the_next() {
    let rig = Rig::new(&only_a(AT_ONCE));
    rig.upstreams.next("a", [status(503), hangs()]);
    rig.tell(ask()).await;
    seconds(30).await;
    let probe = rig.begin(ask()).await;
    assert_eq!(
        rig.tell(ask()).await,
        "503 upstream_unavailable by a after 0, retry in 1s"
    );
    probe.abort();
    settle().await;
    assert_eq!(rig.circuit("a"), "half-open");
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_at_its_end() {
    let rig = Rig::new(&only_a(AT_ONCE));
    rig.upstreams.next(
        "a",
        [
            status(503),
            streams([say(WORD), wait(40), say(STOP)]),
            streams([say(WORD), wait(5)]),
        ],
    );
    rig.tell(ask()).await;
    seconds(30).await;
    let probe = rig.begin(ask().stream()).await;
    assert_eq!(
        rig.circuit("a"),
        "half-open",
        "content has come, and the stream goes on"
    );
    assert_eq!(probe.await.unwrap(), "200 by a after 1");
    assert_eq!(rig.circuit("a"), "closed, 0 failed");

    assert_eq!(rig.tell(ask().stream()).await, "cut (cut) by a after 1");
    assert_eq!(rig.circuit("a"), "open for 30s", "a cut is a failure");
    assert_eq!(rig.last().outcome, Outcome::Partial);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_its_client_drops_says_nothing() {
    let rig = Rig::new(&only_a("circuit_breaker: {failure_threshold: 2, ramp: 0s}"));
    rig.upstreams
        .next("a", [status(503), streams([say(WORD), wait(90), say(STOP)])]);
    rig.tell(ask()).await;
    let call = rig.begin(ask().stream()).await;
    call.abort();
    settle().await;
    assert_eq!(rig.circuit("a"), "closed, 1 failed");
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn chat_and_embeddings_share_it() {
    let rig = Rig::new(&only_a("circuit_breaker: {failure_threshold: 2, ramp: 0s}"));
    rig.upstreams.on("a", status(503));
    rig.tell(ask()).await;
    rig.tell(ask().embeddings()).await;
    let paths: Vec<String> = rig.calls().into_iter().map(|call| call.path).collect();
    assert_eq!(paths, ["/chat/completions", "/embeddings"]);
    for refused in [ask(), ask().embeddings(), ask().stream()] {
        assert_eq!(
            rig.tell(refused).await,
            "503 upstream_unavailable by a after 0, retry in 30s"
        );
    }
}

/// The share of requests that `a` would lead, over many ids.
fn led_by_a(rig: &Rig) -> f64 {
    let led = (0..1_000)
        .filter(|id| rig.explain(ask().id(*id)).unwrap().order[0].0 == "a")
        .count();
    f64::from(u32::try_from(led).unwrap()) / 1_000.0
}

#[tokio::test(start_paused = true)]
async fn after_its_recovery_its_share_grows() {
    let rig = Rig::new(&a_then_b(
        "circuit_breaker: {failure_threshold: 1, timeout: 30s, ramp: 10s}",
    ));
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    seconds(30).await;
    assert_eq!(rig.tell(ask()).await, "200 by a after 1", "its probe");
    for (after, share) in [(0, 0.1), (1, 0.19), (4, 0.55), (4, 0.91)] {
        seconds(after).await;
        let led = led_by_a(&rig);
        assert!((led - share).abs() < 0.04, "{led}, not about {share}");
        assert_eq!(
            rig.standing("a"),
            "Recovering: it has just recovered: its share of the traffic grows back"
        );
    }
    for id in 0..20 {
        let first = rig.explain(ask().id(id)).unwrap().order.remove(0).0;
        assert_eq!(rig.tell(ask().id(id)).await, format!("200 by {first} after 1"));
    }
    seconds(1).await;
    assert!((led_by_a(&rig) - 1.0).abs() < f64::EPSILON);
    assert_eq!(rig.standing("a"), "Ready");
}

#[tokio::test(start_paused = true)]
async fn a_recovering_target_still_answers_alone() {
    let rig = Rig::new(&only_a(
        "circuit_breaker: {failure_threshold: 1, timeout: 30s, ramp: 1h}",
    ));
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    seconds(30).await;
    for id in 0..20 {
        assert_eq!(rig.tell(ask().id(id)).await, "200 by a after 1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_and_frees_everything() {
    for (reply, streamed) in [
        (panics(), ask()),
        (streams([Step::Panic]), ask()),
        (panics(), ask().stream()),
        (streams([Step::Panic]), ask().stream()),
    ] {
        let rig = Rig::new(&only_a(&format!(
            "concurrency: {{max_concurrency: 1, queue_size: 0}}, {AT_ONCE}"
        )));
        rig.upstreams.next("a", [reply]);
        assert!(rig.begin(streamed.clone()).await.await.unwrap_err().is_panic());
        assert_eq!(rig.circuit("a"), "open for 30s");
        rig.assert_idle();
        let record = rig.last();
        assert_eq!((record.outcome, record.status), (Outcome::Error, 500));
        assert_eq!(rig.records().len(), 1);
        seconds(30).await;
        assert_eq!(
            rig.tell(streamed).await,
            "200 by a after 1",
            "its slot and its probe's place are free"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_middle_of_a_stream_is_a_cut() {
    let rig = Rig::new(&only_a(AT_ONCE));
    rig.upstreams.next("a", [streams([say(WORD), wait(1), Step::Panic])]);
    assert!(rig.begin(ask().stream()).await.await.unwrap_err().is_panic());
    assert_eq!(rig.circuit("a"), "open for 30s");
    let record = rig.last();
    assert_eq!(
        (record.outcome, record.status),
        (Outcome::Partial, 200),
        "what its caller saw"
    );
    assert_eq!(record.error_code.as_deref(), Some("routing_error"));
    assert_eq!(rig.verdicts(), ["a chosen: answered"]);
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_slot_does_not_call_what_has_opened_meanwhile() {
    let rig = Rig::new(&a_then_b(&format!("concurrency: {{max_concurrency: 1}}, {AT_ONCE}")));
    let gate = Gate::closed();
    rig.upstreams.on("a", status(503).held(&gate));
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(rig.begin(ask()).await);
    }
    assert_eq!((rig.hosts().as_str(), rig.target("a").queued), ("a", 3));
    gate.open();
    let mut told = Vec::new();
    for call in calls {
        told.push(call.await.unwrap());
    }
    assert_eq!(told[0], "200 by b after 2");
    assert_eq!(told[1..], ["200 by b after 1"; 3]);
    assert_eq!(rig.hosts(), "b b b b");
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn the_walk_goes_on_where_it_opens() {
    let rig = Rig::new(&config(
        &["a", "b", "c"],
        &format!(
            "strategy: {{mode: conditional, conditions: [{{key: model, value: m, target_keys: [b, c]}}]}}\n\
             targets: [{{virtual_key: a}}, {{virtual_key: b, {AT_ONCE}}}, {{virtual_key: c}}]"
        ),
    ));
    rig.upstreams.on("b", status(503));
    assert_eq!(rig.tell(ask()).await, "200 by c after 2");
    assert_eq!(rig.tell(ask()).await, "200 by c after 1");
    assert_eq!(rig.hosts(), "b c c");
    assert_eq!(
        rig.verdicts(),
        [
            "a excluded: mode conditional names others for this request",
            "b excluded: its circuit breaker is open, for 30s",
            "c chosen: answered"
        ]
    );
}
