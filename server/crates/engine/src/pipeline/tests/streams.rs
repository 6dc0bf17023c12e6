//! Silence, heartbeats, and clients that go away.

use super::upstreams::*;
use super::{Rig, a_then_b, ask, read, settle};
use crate::ports::TransportFault;
use crate::record::Outcome;
use bytes::Bytes;
use std::time::Duration;
use switchyard_core::error::Kind;

fn rig() -> Rig {
    Rig::new(&a_then_b("retry: {attempts: 2}"))
}

#[tokio::test(start_paused = true)]
async fn a_long_silence_is_filled_with_heartbeats_until_the_answer_comes() {
    let rig = rig();
    rig.upstreams
        .next("a", [streams([say(ROLE), wait(10), say(WORD), say(STOP)]).after(40)]);
    let answer = rig.run(ask().stream()).await.unwrap();
    assert_eq!(
        (answer.attribution.target.as_deref(), answer.attribution.attempts),
        (Some("a"), 1),
        "who is being tried"
    );
    let said = read(answer).await;
    assert_eq!(said[..3], ["beat", "beat", "beat"], "at 15, 30 and 45 s");
    assert_eq!(said[3..].concat(), [ROLE, WORD, STOP].concat());
    let record = rig.last();
    assert_eq!(
        (record.outcome, record.first_token_us),
        (Outcome::Success, Some(50_000_000))
    );
    assert_eq!(record.attempts[0].first_token_us, Some(50_000_000));
}

#[tokio::test(start_paused = true)]
async fn failover_goes_on_behind_the_heartbeats_and_a_failure_is_the_last_word() {
    let rig = rig();
    rig.upstreams.on("a", status(503).after(20));
    let said = read(rig.run(ask().stream()).await.unwrap()).await;
    assert_eq!(said.last().unwrap(), STOP);
    let record = rig.last();
    assert_eq!(
        (record.target.as_deref(), record.attempts.len(), record.status),
        (Some("b"), 3, 200),
        "the final truth"
    );

    rig.upstreams.on("b", status(503));
    let said = read(rig.run(ask().stream()).await.unwrap()).await;
    assert_eq!(said.last().unwrap(), "failed: server_error");
    let record = rig.last();
    assert_eq!(
        (record.outcome, record.status),
        (Outcome::Error, 200),
        "200 is what the caller saw"
    );
}

#[tokio::test(start_paused = true)]
async fn silence_in_a_stream_is_a_cut_after_content_and_a_failure_before() {
    let rig = rig();
    rig.upstreams.next("a", [streams([say(WORD), wait(121), say(STOP)])]);
    let said = read(rig.run(ask().stream()).await.unwrap()).await;
    assert_eq!(said, [WORD, "failed: timeout"]);
    assert_eq!(rig.last().outcome, Outcome::Partial);

    rig.upstreams.next("a", [streams([wait(121), say(WORD)])]);
    let said = read(rig.run(ask().stream()).await.unwrap()).await;
    assert_eq!(
        said.iter().filter(|said| *said != "beat").cloned().collect::<String>(),
        [WORD, STOP].concat()
    );
    assert_eq!(
        rig.outcomes(),
        ["timeout", "success"],
        "what hung is not asked for again"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_leaves_one_record_at_every_stage() {
    for (reply, wait, status) in [
        (hangs(), 5, 499),
        (hangs(), 20, 200),
        (streams([say(ROLE), wait(60)]), 5, 499),
        (streams([say(WORD), wait(60), say(STOP)]), 5, 200),
    ] {
        let rig = rig();
        rig.upstreams.next("a", [reply]);
        let call = rig.begin(ask().stream()).await;
        assert_eq!(rig.upstreams.open(), 1);
        tokio::time::sleep(Duration::from_secs(wait)).await;
        call.abort();
        settle().await;
        let record = rig.last();
        assert_eq!((rig.records().len(), record.status), (1, status));
        assert_eq!((record.outcome, record.attempts.len()), (Outcome::ClientCancelled, 1));
        rig.assert_idle();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_a_unary_call_cancels_it_upstream() {
    for reply in [hangs(), streams([say("{"), wait(60)])] {
        let rig = rig();
        rig.upstreams.next("a", [reply]);
        let call = rig.begin(ask()).await;
        assert_eq!(rig.upstreams.open(), 1);
        call.abort();
        settle().await;
        assert_eq!((rig.last().outcome, rig.last().status), (Outcome::ClientCancelled, 499));
        rig.assert_idle();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_between_two_attempts_leaves_nothing() {
    let rig = rig();
    rig.upstreams.next("a", [status(503).header("retry-after", "20")]);
    let call = rig.begin(ask()).await;
    assert_eq!(rig.target("a").in_flight, 0, "a wait is no call");
    call.abort();
    settle().await;
    assert_eq!(rig.outcomes(), ["server_error"]);
    assert_eq!(rig.last().outcome, Outcome::ClientCancelled);
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_fails_over_before_content_and_cuts_after_it() {
    let broken = || Step::Break(TransportFault::Broken);
    let rig = Rig::new(&a_then_b("models: [m]"));
    rig.upstreams.next("a", [streams([say(ROLE), broken()])]);
    assert_eq!(rig.tell(ask().stream()).await, "200 by b after 2");
    rig.upstreams.next("a", [streams([say(WORD), broken()])]);
    assert_eq!(rig.tell(ask().stream()).await, "cut (cut) by a after 1");
    let record = rig.last();
    assert_eq!((record.outcome, record.status), (Outcome::Partial, 200));
    assert_eq!(record.error_code.as_deref(), Some("stream_error"));
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn one_frame_that_is_no_json_cuts_nothing() {
    let rig = Rig::new(&a_then_b("models: [m]"));
    rig.upstreams.next(
        "a",
        [streams([
            say("data: {bad\n\n"),
            say(WORD),
            say("data: {bad\n\n"),
            say(STOP),
        ])],
    );
    let said = read(rig.run(ask().stream()).await.unwrap()).await;
    assert_eq!(said.concat(), [WORD, STOP].concat());
    assert_eq!(rig.hosts(), "a");
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_one_piece_is_none_where_a_stream_was_asked_for() {
    let rig = Rig::new(&a_then_b("models: [m]"));
    rig.upstreams.next(
        "a",
        [
            says(200, r#"{"choices":[]}"#).header("content-type", "application/json"),
            says(200, r#"{"error":{"message":"x","code":"insufficient_quota"}}"#)
                .header("content-type", "application/json"),
        ],
    );
    for outcome in ["bad_answer", "quota"] {
        assert_eq!(rig.tell(ask().stream()).await, "200 by b after 2");
        assert_eq!(rig.outcomes(), [outcome, "success"]);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_falls_silent_in_one_piece_has_fallen_silent() {
    let rig = Rig::new(&a_then_b("idle_timeout: 3s"));
    let silent = streams([say("{"), wait(600)]).header("content-type", "application/json");
    rig.upstreams.next("a", [silent]);
    assert_eq!(rig.tell(ask().stream()).await, "200 by b after 2");
    assert_eq!(rig.began.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_stops_says_so_in_its_records() {
    let rig = rig();
    rig.upstreams.next("a", [hangs(), streams([say(WORD), wait(60)])]);
    let calls = [rig.begin(ask()).await, rig.begin(ask().stream()).await];
    rig.engine.stop();
    for call in calls {
        call.abort();
    }
    settle().await;
    let ended: Vec<(Outcome, u16)> = rig
        .records()
        .iter()
        .map(|record| (record.outcome, record.status))
        .collect();
    assert_eq!(ended, [(Outcome::Error, 500), (Outcome::Partial, 200)]);
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_read_is_recorded_too() {
    let rig = rig();
    let mut request = ask().request();
    request.body = Bytes::from_static(b"{");
    let Err(failure) = rig.engine.run(request).await else {
        panic!("refused")
    };
    assert_eq!(failure.error.kind, Kind::InvalidRequest);
    assert_eq!(rig.last().outcome, Outcome::Rejected);
    assert_eq!(rig.last().verdicts.len(), 2, "one per target");
}
