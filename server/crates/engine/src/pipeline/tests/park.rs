//! A target that answers 429 is left alone for a while, out of courtesy.

use super::upstreams::*;
use super::{Rig, a_then_b, ask, config, only_a, seconds};

#[tokio::test(start_paused = true)]
async fn it_is_passed_over_for_as_long_as_it_asked() {
    let rig = Rig::new(&a_then_b("models: [m]"));
    rig.upstreams.next("a", [limited(Some(7))]);
    assert_eq!(rig.tell(ask()).await, "200 by b after 2", "the same request goes on");
    assert_eq!(rig.standing("a"), "Parked: it is parked after a 429, for 7s");
    seconds(3).await;
    assert_eq!(rig.tell(ask().stream()).await, "200 by b after 1");
    assert_eq!(rig.tell(ask().embeddings()).await, "200 by b after 1");
    assert_eq!(
        rig.verdicts(),
        ["a excluded: it is parked after a 429, for 4s", "b chosen: answered"]
    );
    seconds(4).await;
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(rig.hosts(), "a b b b a");
    assert_eq!(rig.standing("a"), "Ready");
}

#[tokio::test(start_paused = true)]
async fn without_a_hint_it_grows_from_five_seconds_to_a_minute() {
    let rig = Rig::new(&a_then_b("models: [m]"));
    rig.upstreams.on("a", limited(None));
    for held in [5, 10, 20, 40, 60, 60] {
        rig.tell(ask()).await;
        assert_eq!(
            rig.standing("a"),
            format!("Parked: it is parked after a 429, for {held}s")
        );
        seconds(held).await;
    }
    rig.upstreams.next("a", [ok()]);
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    rig.tell(ask()).await;
    assert_eq!(
        rig.standing("a"),
        "Parked: it is parked after a 429, for 5s",
        "after a success the next is the first again"
    );
}

#[tokio::test(start_paused = true)]
async fn no_hint_holds_it_for_longer_than_a_minute() {
    let rig = Rig::new(&a_then_b("models: [m]"));
    rig.upstreams.next("a", [limited(Some(4_000))]);
    rig.tell(ask()).await;
    assert_eq!(rig.standing("a"), "Parked: it is parked after a 429, for 60s");
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_nevertheless_when_nobody_else_is_left() {
    let rig = Rig::new(&a_then_b("models: [m]"));
    rig.upstreams.on("a", limited(Some(30)));
    rig.upstreams.on("b", limited(Some(40)));
    assert_eq!(
        rig.tell(ask()).await,
        "429 rate_limit_exceeded by b after 2, retry in 40s"
    );
    seconds(10).await;
    rig.upstreams.on("a", ok());
    let explained = rig.explain(ask()).unwrap();
    assert_eq!(
        rig.words(&explained.verdicts),
        [
            "a chosen: would be asked first, for want of others, although it is parked after a 429, for 20s",
            "b not needed: would be asked as number 2, although it is parked after a 429, for 30s"
        ]
    );
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(
        rig.verdicts(),
        ["a chosen: answered", "b excluded: it is parked after a 429, for 30s"]
    );
    assert_eq!(rig.standing("a"), "Ready", "it answered: the hold is over");

    let alone = Rig::new(&only_a("models: [m]"));
    alone.upstreams.next("a", [limited(Some(30))]);
    alone.tell(ask()).await;
    assert_eq!(alone.tell(ask()).await, "200 by a after 1");
}

#[tokio::test(start_paused = true)]
async fn those_that_would_refuse_are_asked_after_those_that_are_parked() {
    let rig = Rig::new(&a_then_b("circuit_breaker: {failure_threshold: 1, ramp: 0s}"));
    rig.upstreams.next("a", [status(503)]);
    rig.upstreams.on("b", limited(Some(30)));
    rig.tell(ask()).await;
    rig.calls();
    assert_eq!(
        rig.tell(ask()).await,
        "429 rate_limit_exceeded by b after 1, retry in 30s",
        "what an upstream says goes before what was not asked"
    );
    assert_eq!(rig.hosts(), "b");
    assert_eq!(
        rig.verdicts(),
        [
            "a excluded: the circuit breaker of a is open, for 30s",
            "b failed: failed: the upstream answered 429 Too Many Requests"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_success_of_an_older_call_does_not_clear_it() {
    let rig = Rig::new(&a_then_b("models: [m]"));
    let gate = Gate::closed();
    rig.upstreams.next("a", [ok().held(&gate)]);
    let older = rig.begin(ask()).await;
    seconds(1).await;
    rig.upstreams.next("a", [limited(Some(30))]);
    rig.tell(ask()).await;
    seconds(1).await;
    gate.open();
    assert_eq!(older.await.unwrap(), "200 by a after 1");
    assert_eq!(rig.standing("a"), "Parked: it is parked after a 429, for 29s");
}

#[tokio::test(start_paused = true)]
async fn ten_refusals_at_once_are_one_piece_of_news() {
    let rig = Rig::new(&a_then_b("models: [m]"));
    let gate = Gate::closed();
    rig.upstreams.on("a", limited(None).held(&gate));
    let mut calls = Vec::new();
    for _ in 0..10 {
        calls.push(rig.begin(ask()).await);
    }
    gate.open();
    for call in calls {
        assert_eq!(call.await.unwrap(), "200 by b after 2");
    }
    assert_eq!(rig.standing("a"), "Parked: it is parked after a 429, for 5s");
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_used_up_says_so() {
    let rig = Rig::new(&config(&["a", "b"], "strategy: {mode: fallback}\ntargets: [a, b]"));
    rig.upstreams.next("a", [refusal(429, "insufficient_quota")]);
    assert_eq!(rig.tell(ask()).await, "200 by b after 2");
    assert_eq!(
        rig.standing("a"),
        "Parked: it is parked: what may be spent there is used up, for 5s"
    );
}
