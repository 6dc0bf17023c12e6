//! Calls at once, and the line of those that wait.

use super::upstreams::*;
use super::{Rig, a_then_b, ask, only_a, read, seconds, settle};
use crate::record::Outcome;

fn prompts(rig: &Rig) -> String {
    let prompt = |body: &str| {
        body.split("\"content\":\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    };
    let prompts: Vec<String> = rig.calls().iter().map(|call| prompt(&call.body)).collect();
    prompts.join(" ")
}

#[tokio::test(start_paused = true)]
async fn who_came_first_is_served_first() {
    let rig = Rig::new(&only_a("concurrency: {max_concurrency: 2, queue_size: 10}"));
    let gate = Gate::closed();
    rig.upstreams.on("a", ok().held(&gate));
    let mut calls = Vec::new();
    for name in ["one", "two", "three", "four", "five"] {
        calls.push(rig.begin(ask().prompt(name)).await);
    }
    let target = rig.target("a");
    assert_eq!((target.in_flight, target.queued), (2, 3));
    assert_eq!(prompts(&rig), "one two");
    for next in ["three", "four", "five"] {
        gate.let_one_through();
        settle().await;
        assert_eq!(prompts(&rig), next);
    }
    gate.open();
    for call in calls {
        assert_eq!(call.await.unwrap(), "200 by a after 1");
    }
    rig.assert_idle();
}

/// One call under way, and one in line: as many as may.
async fn full(keys: fn(&str) -> String) -> (Rig, Gate) {
    let rig = Rig::new(&keys(
        "concurrency: {max_concurrency: 1, queue_size: 1}, quota: {rpm: 100}",
    ));
    let gate = Gate::closed();
    rig.upstreams.on("a", ok().held(&gate));
    rig.begin(ask()).await;
    rig.begin(ask()).await;
    (rig, gate)
}

#[tokio::test(start_paused = true)]
async fn a_full_line_turns_the_next_away_at_once() {
    let (rig, gate) = full(only_a).await;
    assert_eq!(
        rig.standing("a"),
        "Saturated: 1 calls are under way and 1 wait, as many as may"
    );
    assert_eq!(
        rig.tell(ask()).await,
        "429 provider_saturated by a after 0, retry in 1s"
    );
    assert_eq!(
        rig.verdicts(),
        ["a excluded: a has 1 calls under way and 1 waiting, as many as it may have, for 1s"]
    );
    assert_eq!(rig.target("a").quota[0].used, 1, "who is turned away has used nothing");
    gate.open();
    settle().await;
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn a_full_line_is_passed_over_where_there_is_another_target() {
    let (rig, gate) = full(a_then_b).await;
    assert_eq!(rig.tell(ask()).await, "200 by b after 1");
    gate.open();
    settle().await;
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_requests_time_and_nobody_else_is_asked_then() {
    let yaml = a_then_b("concurrency: {max_concurrency: 1, queue_size: 5}");
    let rig = Rig::new(&format!("{yaml}request_timeout: 5s\n"));
    rig.upstreams.on("a", streams([say(WORD), wait(60), say(STOP)]));
    let holder = rig.begin(ask().stream()).await;
    rig.calls();
    let began = rig.began.elapsed();
    assert_eq!(
        rig.tell(ask()).await,
        "429 provider_saturated by a after 0, retry in 1s"
    );
    assert_eq!((rig.began.elapsed() - began).as_secs(), 5);
    assert_eq!(rig.hosts(), "", "its time is over");
    assert_eq!(rig.target("a").queued, 0);
    assert_eq!(
        holder.await.unwrap(),
        "200 by a after 1",
        "a stream's time ends with its start"
    );
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn a_stream_holds_its_slot_to_its_end() {
    let rig = Rig::new(&only_a("concurrency: {max_concurrency: 1}"));
    rig.upstreams.next("a", [streams([say(WORD), wait(30), say(STOP)])]);
    let stream = rig.begin(ask().stream()).await;
    let next = rig.begin(ask()).await;
    seconds(29).await;
    assert!(!next.is_finished());
    assert_eq!(rig.target("a").queued, 1);
    assert_eq!(stream.await.unwrap(), "200 by a after 1");
    assert_eq!(next.await.unwrap(), "200 by a after 1");
    assert_eq!(rig.began.elapsed().as_secs(), 30);
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_away_leaves_their_place() {
    let rig = Rig::new(&only_a("concurrency: {max_concurrency: 1, queue_size: 2}"));
    let gate = Gate::closed();
    rig.upstreams
        .next("a", [ok().held(&gate), streams([say(WORD), wait(60), say(STOP)])]);
    let first = rig.begin(ask()).await;
    let (second, third) = (rig.begin(ask()).await, rig.begin(ask().stream()).await);
    second.abort();
    settle().await;
    assert_eq!(rig.target("a").queued, 1, "gone while waiting in line");
    let record = rig.last();
    assert_eq!((record.outcome, record.attempts.len()), (Outcome::ClientCancelled, 0));

    first.abort();
    settle().await;
    assert_eq!(
        (rig.target("a").in_flight, rig.target("a").queued),
        (1, 0),
        "gone during a call: the third has its slot"
    );
    third.abort();
    settle().await;
    rig.assert_idle();
    assert_eq!(rig.tell(ask()).await, "200 by a after 1", "gone during a stream");
}

#[tokio::test(start_paused = true)]
async fn every_ending_frees_the_slot() {
    let rig = Rig::new(&only_a("timeout: 5s, concurrency: {max_concurrency: 1, queue_size: 0}"));
    for reply in [
        status(503),
        status(400),
        status(401),
        limited(Some(0)),
        unreachable(),
        hangs(),
        says(200, "<html>"),
        says(200, &"x".repeat(1 << 20)),
    ] {
        rig.upstreams.next("a", [reply.clone(), reply]);
        for call in [ask(), ask().stream()] {
            rig.tell(call).await;
            rig.assert_idle();
        }
    }
    rig.upstreams.next(
        "a",
        [
            streams([say(WORD)]),
            streams([say(WORD), Step::Break(crate::ports::TransportFault::Broken)]),
        ],
    );
    for _ in 0..2 {
        assert_eq!(rig.tell(ask().stream()).await, "cut (cut) by a after 1");
        rig.assert_idle();
    }
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_in_line_is_kept_alive() {
    let rig = Rig::new(&only_a("concurrency: {max_concurrency: 1}"));
    rig.upstreams.next("a", [ok().after(40)]);
    let holder = rig.begin(ask()).await;
    let answer = rig.run(ask().stream()).await.unwrap();
    assert_eq!(
        (answer.attribution.target.as_deref(), answer.attribution.attempts),
        (Some("a"), 0),
        "whose line it is"
    );
    let said = read(answer).await;
    assert_eq!(said[..2], ["beat", "beat"], "at 15 and 30 s");
    assert_eq!(said[2..].concat(), [WORD, STOP].concat());
    holder.await.unwrap();
    rig.assert_idle();
}
