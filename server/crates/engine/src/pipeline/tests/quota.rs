//! What an operator allows to be sent to a target.

use super::upstreams::*;
use super::{Rig, a_then_b, ask, config, only_a, seconds, settle};
use crate::record::Outcome;

#[tokio::test(start_paused = true)]
async fn requests_beyond_it_go_to_the_next_target() {
    let rig = Rig::new(&a_then_b("quota: {rpm: 2}"));
    rig.tell(ask()).await;
    seconds(10).await;
    rig.tell(ask()).await;
    seconds(10).await;
    assert_eq!(rig.tell(ask()).await, "200 by b after 1");
    assert_eq!(rig.hosts(), "a a b");
    assert_eq!(
        rig.verdicts(),
        [
            "a excluded: its quota is used up: 2 of 2 rpm, for 40s",
            "b chosen: answered"
        ]
    );
    assert_eq!(rig.standing("a"), "Quota: its quota is used up: 2 of 2 rpm, for 40s");
    seconds(40).await;
    assert_eq!(
        rig.tell(ask()).await,
        "200 by a after 1",
        "the first has left the window"
    );
    assert_eq!(rig.tell(ask()).await, "200 by b after 1", "the second has not");
}

#[tokio::test(start_paused = true)]
async fn with_nobody_else_it_is_refused_without_a_call() {
    let rig = Rig::new(&only_a("quota: {rpm: 1}"));
    rig.tell(ask()).await;
    rig.calls();
    seconds(15).await;
    let told = "429 rate_limit_exceeded by a after 0, retry in 45s";
    for refused in [ask(), ask().stream(), ask().embeddings()] {
        assert_eq!(rig.tell(refused).await, told);
    }
    assert_eq!(rig.hosts(), "");
    let record = rig.last();
    assert_eq!((record.outcome, record.status), (Outcome::Error, 429));
    assert_eq!(
        rig.verdicts(),
        ["a excluded: its quota is used up: 1 of 1 rpm, for 45s"]
    );
    let explained = rig.explain(ask()).unwrap();
    assert_eq!(
        (explained.order.len(), explained.error.unwrap().face().status),
        (0, 429)
    );
}

#[tokio::test(start_paused = true)]
async fn of_several_the_first_to_come_back_says_when() {
    let rig = Rig::new(&config(
        &["a", "b", "c"],
        "strategy: {mode: fallback}\n\
         targets: [{virtual_key: a, quota: {rpm: 1}}, {virtual_key: b, quota: {rpd: 1, rpm: 5}}, openai]",
    ));
    rig.tell(ask()).await;
    seconds(20).await;
    rig.tell(ask()).await;
    assert_eq!(
        rig.tell(ask()).await,
        "429 rate_limit_exceeded by a after 0, retry in 40s",
        "whatever the third, which has no key, lacks"
    );
    assert_eq!(
        rig.verdicts(),
        [
            "a excluded: its quota is used up: 1 of 1 rpm, for 40s",
            "b excluded: its quota is used up: 1 of 1 rpd, for 86400s",
            "openai excluded: OPENAI_API_KEY is not set"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_quota_goes_before_courtesy() {
    let rig = Rig::new(&a_then_b("quota: {rpm: 1}"));
    rig.tell(ask()).await;
    rig.upstreams.next("b", [limited(Some(30))]);
    rig.tell(ask()).await;
    rig.calls();
    assert_eq!(rig.tell(ask()).await, "200 by b after 1");
    assert_eq!(
        rig.hosts(),
        "b",
        "the parked one is asked, the one over its quota never"
    );
}

/// About 100 tokens, and so many more for the answer.
fn long(max_tokens: u64) -> super::Ask {
    ask()
        .prompt(&"four".repeat(99))
        .with(&format!(r#""max_tokens":{max_tokens}"#))
}

fn used(rig: &Rig) -> u64 {
    rig.target("a").quota[0].used
}

#[tokio::test(start_paused = true)]
async fn tokens_are_reserved_before_a_call_and_settled_by_what_it_used() {
    let rig = Rig::new(&only_a("quota: {tpm: 300}"));
    let gate = Gate::closed();
    rig.upstreams.next("a", [uses(50).held(&gate)]);
    let first = rig.begin(long(100)).await;
    assert_eq!(used(&rig), 200, "as estimated");
    assert_eq!(
        rig.tell(long(100)).await,
        "429 rate_limit_exceeded by a after 0, retry in 60s",
        "what is under way counts"
    );
    gate.open();
    first.await.unwrap();
    assert_eq!(used(&rig), 50);
    rig.upstreams.next("a", [uses(150)]);
    assert_eq!(rig.tell(long(100)).await, "200 by a after 1");
    assert_eq!(used(&rig), 200);
    assert_eq!(
        rig.tell(long(1)).await,
        "429 rate_limit_exceeded by a after 0, retry in 60s"
    );
    assert_eq!(
        rig.tell(long(0)).await,
        "200 by a after 1",
        "exactly as much as is left"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_longer_than_expected_pushes_it_over_its_limit() {
    let rig = Rig::new(&only_a("quota: {tpm: 30}"));
    rig.upstreams.next("a", [uses(150)]);
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(
        rig.tell(ask()).await,
        "429 rate_limit_exceeded by a after 0, retry in 60s"
    );
    assert_eq!(rig.standing("a"), "Quota: its quota is used up: 150 of 30 tpm, for 60s");
}

#[tokio::test(start_paused = true)]
async fn what_is_larger_than_the_whole_limit_never_fits() {
    let rig = Rig::new(&a_then_b("quota: {tpm: 150}"));
    assert_eq!(rig.tell(long(100)).await, "200 by b after 1");
    assert_eq!(
        rig.verdicts()[0],
        "a excluded: its quota allows 150 tpm, and this call alone asks for about 200"
    );
    assert_eq!(rig.tell(long(50)).await, "200 by a after 1");
}

#[tokio::test(start_paused = true)]
async fn every_ending_settles_what_was_reserved() {
    let rig = Rig::new(&only_a("quota: {tpm: 100000}"));
    rig.upstreams.next("a", [status(503)]);
    rig.tell(long(100)).await;
    assert_eq!(used(&rig), 0, "no answer");

    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":33}}\n\n";
    rig.upstreams.next("a", [streams([say(WORD), say(usage), say(STOP)])]);
    assert_eq!(rig.tell(long(100).stream()).await, "200 by a after 1");
    assert_eq!(used(&rig), 33, "a stream says it at its end");

    rig.upstreams.next("a", [streams([say(WORD), say(usage)])]);
    rig.tell(long(100).stream()).await;
    assert_eq!(used(&rig), 66, "a cut one too");

    rig.upstreams.next("a", [streams([say(WORD), say(usage), wait(60)])]);
    let dropped = rig.begin(long(100).stream()).await;
    dropped.abort();
    settle().await;
    assert_eq!(used(&rig), 99, "and one whose client goes away");

    rig.upstreams.next("a", [hangs()]);
    let dropped = rig.begin(long(100)).await;
    dropped.abort();
    settle().await;
    assert_eq!(used(&rig), 299, "where nobody knows, the estimate stands");
}

#[tokio::test(start_paused = true)]
async fn retries_count_and_are_not_waited_for_when_they_would_be_refused() {
    let rig = Rig::new(&a_then_b(
        "quota: {rpm: 2}, retry: {attempts: 5, initial_backoff_ms: 0}",
    ));
    rig.upstreams.on("a", status(503).header("retry-after", "9"));
    assert_eq!(rig.tell(ask()).await, "200 by b after 3");
    assert_eq!(rig.hosts(), "a a b");
    assert_eq!(rig.began.elapsed().as_secs(), 9, "once, before the second");
}

#[tokio::test(start_paused = true)]
async fn a_burst_cannot_slip_through_together() {
    let rig = Rig::new(&only_a("quota: {rpm: 3}"));
    let gate = Gate::closed();
    rig.upstreams.on("a", ok().held(&gate));
    let mut calls = Vec::new();
    for _ in 0..20 {
        calls.push(rig.begin(ask()).await);
    }
    gate.open();
    let mut answered = 0;
    for call in calls {
        answered += usize::from(call.await.unwrap().starts_with("200"));
    }
    assert_eq!((answered, rig.calls().len()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_line_is_refused_at_its_end_when_it_is_used_up_by_then() {
    let rig = Rig::new(&a_then_b("quota: {rpm: 2}, concurrency: {max_concurrency: 1}"));
    let gate = Gate::closed();
    rig.upstreams.on("a", ok().held(&gate));
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(rig.begin(ask()).await);
    }
    assert_eq!(rig.target("a").queued, 3);
    gate.open();
    let mut told = Vec::new();
    for call in calls {
        told.push(call.await.unwrap());
    }
    assert_eq!(
        told,
        [
            "200 by a after 1",
            "200 by a after 1",
            "200 by b after 1",
            "200 by b after 1"
        ]
    );
    rig.assert_idle();
}
