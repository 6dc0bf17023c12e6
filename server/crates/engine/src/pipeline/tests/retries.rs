//! After a failure: the same target, the next one, or the end.

use super::upstreams::*;
use super::{Rig, a_then_b, ask, config, only_a};

#[tokio::test(start_paused = true)]
async fn a_retry_waits_as_long_as_the_upstream_asks() {
    let rig = Rig::new(&a_then_b("retry: {attempts: 3}"));
    for refused in [429, 503] {
        let began = rig.began.elapsed();
        rig.upstreams.next("a", [status(refused).header("retry-after", "7")]);
        assert_eq!(rig.tell(ask()).await, "200 by a after 2");
        assert_eq!((rig.began.elapsed() - began).as_secs(), 7, "{refused}");
    }
    let began = rig.began.elapsed();
    rig.upstreams.next("a", [status(503).header("retry-after", "31")]);
    assert_eq!(
        rig.tell(ask()).await,
        "200 by b after 2",
        "longer than half a minute: given up"
    );
    assert_eq!(rig.began.elapsed(), began);
    assert_eq!(rig.hosts(), "a a a a a b");
}

#[tokio::test(start_paused = true)]
async fn retries_end_and_the_next_target_answers() {
    let rig = Rig::new(&a_then_b("retry: {attempts: 3}"));
    rig.upstreams.on("a", unreachable());
    assert_eq!(rig.tell(ask()).await, "200 by b after 4");
    assert_eq!(
        rig.verdicts(),
        [
            "a failed: failed in 3 attempts: the script breaks the connection",
            "b chosen: answered"
        ]
    );
    assert_eq!(rig.outcomes(), ["connect", "connect", "connect", "success"]);
}

#[tokio::test(start_paused = true)]
async fn what_moves_on_and_what_does_not() {
    for (reply, told) in [
        (unreachable(), "200 by b after 2"),
        (status(408), "200 by b after 2"),
        (status(429), "200 by b after 2"),
        (status(402), "200 by b after 2"),
        (status(500), "200 by b after 2"),
        (status(503), "200 by b after 2"),
        (says(200, "<html>"), "200 by b after 2"),
        (refusal(400, "context_length_exceeded"), "200 by b after 2"),
        (refusal(413, "context_length_exceeded"), "200 by b after 2"),
        (status(418), "200 by b after 2"),
        (status(400), "400 invalid_request by a after 1"),
        (status(401), "502 upstream_auth_error by a after 1"),
        (status(403), "502 upstream_auth_error by a after 1"),
        (status(404), "404 model_not_found by a after 1"),
        (status(422), "422 invalid_request by a after 1"),
        (status(409), "502 upstream_error by a after 1"),
    ] {
        for call in [ask(), ask().stream(), ask().embeddings()] {
            let rig = Rig::new(&config(
                &["a", "b"],
                "strategy: {mode: fallback, failover_on_status_codes: [418]}\ntargets: [a, b]",
            ));
            rig.upstreams.next("a", [reply.clone()]);
            assert_eq!(rig.tell(call).await, told);
            rig.assert_idle();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_event_before_content_moves_on_and_one_after_it_cuts() {
    let event = "data: {\"error\":{\"message\":\"overloaded\"}}\n\n";
    let rig = Rig::new(&a_then_b("models: [m]"));
    rig.upstreams
        .next("a", [streams([say(ROLE), say(event)]), streams([say(ROLE)])]);
    for _ in 0..2 {
        assert_eq!(rig.tell(ask().stream()).await, "200 by b after 2");
    }
    rig.upstreams.next("a", [streams([say(WORD), say(event)])]);
    assert_eq!(rig.tell(ask().stream()).await, "cut (server_error) by a after 1");
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn a_list_of_statuses_takes_the_usual_ones_place() {
    let rig = Rig::new(&only_a(
        "retry: {attempts: 2, on_status_codes: [503], initial_backoff_ms: 0}",
    ));
    rig.upstreams.next("a", [status(500)]);
    assert_eq!(rig.tell(ask()).await, "502 upstream_error by a after 1");
    rig.upstreams.next("a", [status(503)]);
    assert_eq!(rig.tell(ask()).await, "200 by a after 2");
}

#[tokio::test(start_paused = true)]
async fn single_stays_where_it_is() {
    let rig = Rig::new(&config(&["a", "b"], "strategy: {mode: single}\ntargets: [a, b]"));
    rig.upstreams.on("a", status(503));
    assert_eq!(rig.tell(ask()).await, "502 upstream_error by a after 1");
    assert_eq!(
        rig.verdicts(),
        [
            "a failed: failed: the upstream answered 503 Service Unavailable",
            "b excluded: mode single uses the first target only"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_rules_chain_is_walked_and_is_a_boundary() {
    let rig = Rig::new(&config(
        &["a", "b", "c", "d"],
        "strategy: {mode: conditional, conditions: [{key: model, value: m, target_keys: [c, b]}]}\n\
         targets: [a, b, c, d]",
    ));
    rig.upstreams.on("c", status(503));
    assert_eq!(rig.tell(ask()).await, "200 by b after 2");
    rig.upstreams.on("b", status(500));
    assert_eq!(
        rig.tell(ask()).await,
        "502 upstream_error by b after 2",
        "the last one's result"
    );
    assert_eq!(rig.hosts(), "c b c b");
    rig.upstreams.on("c", status(400));
    assert_eq!(rig.tell(ask()).await, "400 invalid_request by c after 1");
    assert_eq!(
        rig.tell(ask().model("other")).await,
        "200 by a after 1",
        "where no rule holds it is the first target"
    );
}

#[tokio::test(start_paused = true)]
async fn content_rules_name_on_purpose_too() {
    let rig = Rig::new(&config(
        &["a", "b", "c"],
        "strategy: {mode: content-based, content_conditions: [{type: prompt_contains, value: Code, target_key: b}]}\n\
         targets: [a, b, c]",
    ));
    rig.upstreams.on("b", status(503));
    assert_eq!(
        rig.tell(ask().prompt("some code")).await,
        "502 upstream_error by b after 1"
    );
    rig.upstreams.on("a", status(503));
    assert_eq!(rig.tell(ask()).await, "200 by c after 3");
    assert_eq!(
        rig.tell(ask().prompt("code").embeddings()).await,
        "502 upstream_error by a after 1"
    );
}

#[tokio::test(start_paused = true)]
async fn each_place_has_its_own_retries_and_bounds() {
    let rig = Rig::new(&config(
        &["a"],
        "targets: [{virtual_key: a, retry: {attempts: 1}}]\n\
         routes: {patient: {model: m, targets: [{virtual_key: a, retry: {attempts: 3, initial_backoff_ms: 0}}]}}",
    ));
    rig.upstreams.on("a", status(503));
    assert_eq!(rig.tell(ask()).await, "502 upstream_error by a after 1");
    assert_eq!(
        rig.tell(ask().model("route/patient")).await,
        "502 upstream_error by a after 3"
    );
}

#[tokio::test(start_paused = true)]
async fn a_routes_statuses_hold_for_what_hangs_on_it() {
    let rig = Rig::new(&config(
        &["a", "b", "c"],
        "strategy: {mode: fallback}\ntargets: [{route: mid}, b, c]\n\
         routes:\n\
         \x20 mid: {strategy: {mode: fallback, failover_on_status_codes: [418]}, targets: [{route: inner}]}\n\
         \x20 inner: {targets: [a]}\n",
    ));
    rig.upstreams.on("a", status(418));
    assert_eq!(rig.tell(ask()).await, "200 by b after 2", "two routes above it");
    rig.upstreams.on("b", status(418));
    assert_eq!(
        rig.tell(ask()).await,
        "502 upstream_error by b after 2",
        "and not for its siblings"
    );
    assert_eq!(rig.hosts(), "a b a b");
}
