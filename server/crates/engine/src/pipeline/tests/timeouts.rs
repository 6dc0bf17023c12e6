//! How long is waited: for an attempt, for a first token, in silence, and for the whole request.

use super::upstreams::*;
use super::{Rig, a_then_b, ask};
use crate::record::Outcome;

/// What became of a call, and after how many seconds.
async fn timed(rig: &Rig, call: super::Ask) -> (String, u64) {
    let began = rig.began.elapsed();
    let told = rig.tell(call).await;
    (told, (rig.began.elapsed() - began).as_secs())
}

#[tokio::test(start_paused = true)]
async fn timeout_bounds_the_whole_of_a_unary_attempt() {
    let rig = Rig::new(&a_then_b("timeout: 5s, retry: {attempts: 3}"));
    for slow in [
        hangs(),
        streams([wait(60), say("{}")]).after(2),
        streams([say("{"), wait(4), say("\"choices\":[]}")]).after(2),
    ] {
        rig.upstreams.next("a", [slow]);
        assert_eq!(
            timed(&rig, ask()).await,
            ("200 by b after 2".to_owned(), 5),
            "hung: not asked again"
        );
        assert_eq!(rig.outcomes(), ["timeout", "success"]);
    }
    rig.upstreams.next("a", [ok().after(4)]);
    assert_eq!(timed(&rig, ask()).await, ("200 by a after 1".to_owned(), 4));
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn timeout_bounds_a_stream_until_its_head() {
    let rig = Rig::new(&a_then_b("timeout: 5s, retry: {attempts: 3}"));
    rig.upstreams
        .next("a", [streams([wait(9), say(WORD), wait(9), say(STOP)]).after(4)]);
    assert_eq!(timed(&rig, ask().stream()).await, ("200 by a after 1".to_owned(), 22));
    rig.upstreams.next("a", [hangs()]);
    assert_eq!(timed(&rig, ask().stream()).await, ("200 by b after 2".to_owned(), 5));
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn first_token_timeout_bounds_a_stream_until_its_first_content() {
    let rig = Rig::new(&a_then_b("first_token_timeout: 8s, retry: {attempts: 3}"));
    rig.upstreams.next(
        "a",
        [streams([say(ROLE), wait(5), say(WORD), wait(30), say(STOP)]).after(2)],
    );
    assert_eq!(timed(&rig, ask().stream()).await, ("200 by a after 1".to_owned(), 37));
    for slow in [
        hangs(),
        streams([say(ROLE), wait(7), say(WORD)]).after(2),
        // Comments and roles are no content.
        streams([say(": x\n\n"), wait(4), say(ROLE), wait(4), say(WORD)]).after(1),
    ] {
        rig.upstreams.next("a", [slow]);
        assert_eq!(timed(&rig, ask().stream()).await, ("200 by b after 2".to_owned(), 8));
    }
    rig.upstreams.next("a", [ok().after(20)]);
    assert_eq!(
        timed(&rig, ask()).await,
        ("200 by a after 1".to_owned(), 20),
        "of streams only"
    );
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn idle_timeout_bounds_silence() {
    let rig = Rig::new(&a_then_b("idle_timeout: 3s"));
    rig.upstreams
        .next("a", [streams([say(WORD), wait(2), say(WORD), wait(2), say(STOP)])]);
    assert_eq!(timed(&rig, ask().stream()).await, ("200 by a after 1".to_owned(), 4));
    rig.upstreams.next("a", [streams([say(WORD), wait(4), say(STOP)])]);
    assert_eq!(
        timed(&rig, ask().stream()).await,
        ("cut (timeout) by a after 1".to_owned(), 3)
    );
    assert_eq!(rig.last().outcome, Outcome::Partial);
    rig.upstreams.next("a", [streams([say(ROLE), wait(4), say(WORD)])]);
    assert_eq!(
        timed(&rig, ask().stream()).await,
        ("200 by b after 2".to_owned(), 3),
        "before content"
    );
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn request_timeout_ends_everything() {
    let rig = Rig::new(&format!("{}request_timeout: 10s\n", a_then_b("retry: {attempts: 5}")));
    for call in [ask(), ask().stream()] {
        rig.upstreams.next("a", [hangs()]);
        assert_eq!(
            timed(&rig, call).await,
            ("504 gateway_timeout by a after 1".to_owned(), 10),
            "nobody else is asked"
        );
        assert_eq!(rig.hosts(), "a");
    }
    rig.upstreams.next(
        "a",
        [
            status(503).header("retry-after", "4"),
            status(503).header("retry-after", "4"),
            hangs(),
        ],
    );
    assert_eq!(
        timed(&rig, ask()).await,
        ("504 gateway_timeout by a after 3".to_owned(), 10)
    );
    rig.upstreams
        .next("a", [streams([say(WORD), wait(30), say(STOP)]).after(9)]);
    assert_eq!(
        timed(&rig, ask().stream()).await,
        ("200 by a after 1".to_owned(), 39),
        "of a stream, only its start"
    );
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn nobody_sleeps_past_the_requests_end() {
    let rig = Rig::new(&format!("{}request_timeout: 10s\n", a_then_b("retry: {attempts: 5}")));
    for wait in [10, 20] {
        rig.upstreams
            .next("a", [status(503).header("retry-after", &wait.to_string())]);
        assert_eq!(timed(&rig, ask()).await, ("200 by b after 2".to_owned(), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_once_the_time_is_over() {
    let rig = Rig::new(&format!("{}request_timeout: 5s\n", a_then_b("timeout: 5s")));
    for call in [ask(), ask().stream()] {
        rig.upstreams.next("a", [hangs()]);
        assert_eq!(
            timed(&rig, call).await,
            ("504 upstream_timeout by a after 1".to_owned(), 5)
        );
        assert_eq!(rig.hosts(), "a", "both ended at the same moment");
    }
}

#[tokio::test(start_paused = true)]
async fn the_requests_end_counts_against_whoever_used_up_its_time() {
    let breaker = "circuit_breaker: {failure_threshold: 1}";
    let yaml = super::config(
        &["a", "b"],
        &format!(
            "request_timeout: 10s\nstrategy: {{mode: fallback}}\n\
             targets: [{{virtual_key: a, {breaker}}}, {{virtual_key: b, {breaker}}}]"
        ),
    );
    let rig = Rig::new(&yaml);
    rig.upstreams.next("a", [hangs()]);
    rig.tell(ask()).await;
    assert_eq!(rig.circuit("a"), "open for 30s");

    let rig = Rig::new(&yaml);
    rig.upstreams.next("a", [status(503).after(8)]);
    rig.upstreams.next("b", [hangs()]);
    assert_eq!(rig.tell(ask()).await, "504 gateway_timeout by b after 2");
    assert_eq!(rig.circuit("b"), "closed, 0 failed", "it had two seconds of ten");
}
