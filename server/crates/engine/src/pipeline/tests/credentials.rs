//! Several credentials at one target: who is refused sits on the bench, and the others answer.

use super::upstreams::*;
use super::{Rig, ask, seconds, settle};
use crate::record::Outcome;

/// `a` with credential `one`, which is drawn all but always, and `two`; and `b`.
fn two(keys: &str) -> String {
    with_weights("1000000000", "0.000000001", keys)
}

fn with_weights(one: &str, two: &str, keys: &str) -> String {
    format!(
        "providers:\n\
         \x20 - id: a\n    kind: openai\n    base_url: 'http://a.test'\n    credentials:\n\
         \x20     - {{id: one, api_key: key-one, weight: {one}}}\n\
         \x20     - {{id: two, api_key: key-two, weight: {two}}}\n\
         \x20 - {{id: b, kind: openai, base_url: 'http://b.test', api_key: key-b}}\n\
         strategy: {{mode: fallback}}\n\
         targets: [{{virtual_key: a, {keys}}}, {{virtual_key: b}}]\n"
    )
}

fn tokens(rig: &Rig) -> String {
    let tokens: Vec<String> = rig
        .calls()
        .into_iter()
        .map(|call| call.token.replace("key-", ""))
        .collect();
    tokens.join(" ")
}

/// Which of `a`'s credentials are out, why, and for how long.
fn out(rig: &Rig) -> Vec<String> {
    let word = |credential: crate::view::CredentialView| {
        let (reason, until) = credential.out?;
        Some(format!(
            "{}: {reason}, for {}",
            credential.id,
            rig.ahead(until.unwrap())
        ))
    };
    rig.target("a").credentials.into_iter().filter_map(word).collect()
}

#[tokio::test(start_paused = true)]
async fn they_are_drawn_by_weight() {
    let rig = Rig::new(&with_weights("3", "1", "models: [m]"));
    for _ in 0..4_000 {
        rig.tell(ask()).await;
    }
    let first = rig.calls().iter().filter(|call| call.token == "key-one").count();
    assert!(
        (2_800..3_200).contains(&first),
        "{first} of 4,000, not about three quarters"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_is_refused_is_benched_and_its_sibling_answers_the_same_request() {
    for (reply, outcome, reason) in [
        (status(401), "auth", "the upstream refused it (401)"),
        (status(402), "quota", "what may be spent with it is used up"),
        (
            refusal(429, "insufficient_quota"),
            "quota",
            "what may be spent with it is used up",
        ),
        (
            refusal(403, "insufficient_quota"),
            "quota",
            "what may be spent with it is used up",
        ),
    ] {
        for call in [ask(), ask().stream(), ask().embeddings()] {
            let rig = Rig::new(&two("retry: {attempts: 1}, circuit_breaker: {failure_threshold: 1}"));
            rig.upstreams.on("key-one", reply.clone());
            assert_eq!(
                rig.tell(call.clone()).await,
                "200 by a after 2",
                "no retry, and at once"
            );
            assert_eq!((tokens(&rig).as_str(), rig.began.elapsed().as_millis()), ("one two", 0));
            assert_eq!(rig.outcomes(), [outcome, "success"]);
            assert_eq!(
                rig.verdicts(),
                ["a chosen: answered in 2 attempts", "b not needed: not needed"]
            );
            assert_eq!(out(&rig), [format!("one: {reason}, for 30s")]);
            assert_eq!(rig.standing("a"), "Ready", "the target itself is well");
            assert_eq!(rig.circuit("a"), "closed, 0 failed");
            for _ in 0..10 {
                assert_eq!(rig.tell(call.clone()).await, "200 by a after 1");
            }
            assert_eq!(tokens(&rig), ["two"; 10].join(" "));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn its_sibling_has_all_the_retries_that_there_are() {
    let rig = Rig::new(&two("retry: {attempts: 2, initial_backoff_ms: 0}"));
    rig.upstreams.on("key-one", status(401));
    rig.upstreams.next("key-two", [status(503)]);
    assert_eq!(rig.tell(ask()).await, "200 by a after 3");
    assert_eq!(tokens(&rig), "one two two");
}

#[tokio::test(start_paused = true)]
async fn an_error_event_before_content_benches_too() {
    let rig = Rig::new(&two("models: [m]"));
    let event = "data: {\"error\":{\"message\":\"broke\",\"code\":\"insufficient_quota\"}}\n\n";
    rig.upstreams.on("key-one", streams([say(ROLE), say(event)]));
    assert_eq!(rig.tell(ask().stream()).await, "200 by a after 2");
    assert_eq!(tokens(&rig), "one two");
}

#[tokio::test(start_paused = true)]
async fn a_plain_403_says_nothing_about_the_credential() {
    let rig = Rig::new(&two("models: [m]"));
    rig.upstreams.on("key-one", status(403));
    assert_eq!(rig.tell(ask()).await, "502 upstream_auth_error by a after 1");
    assert_eq!((tokens(&rig).as_str(), out(&rig).len()), ("one", 0));
}

#[tokio::test(start_paused = true)]
async fn the_last_one_is_never_benched() {
    let rig = Rig::new(&two("models: [m]"));
    rig.upstreams.on("a", status(401));
    assert_eq!(rig.tell(ask()).await, "502 upstream_auth_error by a after 2");
    assert_eq!(out(&rig), ["one: the upstream refused it (401), for 30s"]);
    seconds(5).await;
    assert_eq!(rig.tell(ask()).await, "502 upstream_auth_error by a after 1");
    assert_eq!(
        tokens(&rig),
        "one two two",
        "a call that fails tells more than one that is never made"
    );
    rig.upstreams.on("key-two", ok());
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");

    let alone = Rig::new(&super::only_a("models: [m]"));
    alone.upstreams.on("a", status(401));
    for _ in 0..3 {
        assert_eq!(alone.tell(ask()).await, "502 upstream_auth_error by a after 1");
    }
    assert_eq!(alone.standing("a"), "Ready");
}

#[tokio::test(start_paused = true)]
async fn when_the_last_one_is_used_up_the_target_is_parked_and_the_next_answers() {
    let rig = Rig::new(&two("models: [m]"));
    rig.upstreams.on("a", status(402));
    assert_eq!(rig.tell(ask()).await, "200 by b after 3");
    assert_eq!(tokens(&rig), "one two b");
    assert_eq!(
        rig.standing("a"),
        "Parked: it is parked: what may be spent there is used up, for 5s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_429_parks_only_the_one_that_got_it() {
    let rig = Rig::new(&two("models: [m]"));
    let watch = rig.watch();
    rig.upstreams.next("key-one", [limited(Some(20))]);
    assert_eq!(rig.tell(ask()).await, "200 by a after 2");
    assert_eq!(out(&rig), ["one: it is parked after a 429, for 20s"]);
    assert_eq!(rig.standing("a"), "Ready");
    seconds(19).await;
    rig.tell(ask()).await;
    assert_eq!(tokens(&rig), "one two two", "no probe: it is known when it comes back");
    seconds(1).await;
    rig.tell(ask()).await;
    assert_eq!(tokens(&rig), "one");
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn when_all_of_them_got_a_429_the_target_is_parked() {
    let rig = Rig::new(&two("models: [m]"));
    rig.upstreams.next("key-one", [limited(Some(20))]);
    rig.upstreams.next("key-two", [limited(Some(10))]);
    assert_eq!(rig.tell(ask()).await, "200 by b after 3");
    assert_eq!(rig.standing("a"), "Parked: it is parked after a 429, for 10s");
    assert_eq!(out(&rig), ["one: it is parked after a 429, for 20s"]);
    seconds(10).await;
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(tokens(&rig), "one two b two");
}

#[tokio::test(start_paused = true)]
async fn a_probe_brings_it_back_and_keeps_it_out_for_as_long_as_it_fails() {
    let rig = Rig::new(&two("models: [m]"));
    let watch = rig.watch();
    rig.upstreams.on("key-one", status(401));
    rig.upstreams.on("key-one/models", status(401));
    rig.tell(ask()).await;
    rig.calls();
    for _ in 0..20 {
        seconds(10).await;
        assert_eq!(rig.tell(ask()).await, "200 by a after 1", "no caller has to find out");
    }
    let calls = rig.calls();
    let probes = calls.iter().filter(|call| call.path == "/models").count();
    assert!(
        (18..=20).contains(&probes),
        "about every ten seconds, not {probes} in 200"
    );
    assert_eq!(calls.len() - probes, 20);
    assert!(
        calls
            .iter()
            .all(|call| (call.token == "key-one") == (call.path == "/models")),
        "only probes are made with it"
    );

    rig.upstreams.on("key-one", ok());
    rig.upstreams.on("key-one/models", says(200, r#"{"data":[]}"#));
    seconds(11).await;
    assert_eq!(out(&rig), [""; 0]);
    rig.calls();
    rig.tell(ask()).await;
    assert_eq!(tokens(&rig), "one");
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn all_of_them_come_back_one_by_one() {
    let rig = Rig::new(&two("models: [m]"));
    let watch = rig.watch();
    rig.upstreams.on("a", status(401));
    rig.upstreams.on("a/models", status(401));
    rig.tell(ask()).await;
    rig.upstreams.on("key-one", ok());
    rig.upstreams.on("key-one/models", status(200));
    seconds(11).await;
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_learns_nothing_leaves_it_its_time() {
    let rig = Rig::new(&two("models: [m]"));
    let watch = rig.watch();
    rig.upstreams.next("key-one", [status(401)]);
    rig.upstreams.on("key-one/models", status(404));
    rig.tell(ask()).await;
    seconds(29).await;
    assert_eq!(out(&rig), ["one: the upstream refused it (401), for 1s"]);
    seconds(1).await;
    rig.calls();
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(tokens(&rig), "one");
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn the_success_of_an_older_call_does_not_bring_it_back() {
    let rig = Rig::new(&two("models: [m]"));
    let gate = Gate::closed();
    rig.upstreams.next("key-one", [ok().held(&gate)]);
    let older = rig.begin(ask()).await;
    seconds(1).await;
    rig.upstreams.next("key-one", [status(401)]);
    rig.tell(ask()).await;
    seconds(1).await;
    gate.open();
    assert_eq!(older.await.unwrap(), "200 by a after 1");
    assert_eq!(out(&rig), ["one: the upstream refused it (401), for 29s"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_429_does_not_end_its_probes() {
    let rig = Rig::new(&two("models: [m]"));
    let watch = rig.watch();
    let gate = Gate::closed();
    rig.upstreams
        .next("key-one", [limited(Some(1)).held(&gate), status(401)]);
    rig.upstreams.on("key-one/models", status(401));
    let older = rig.begin(ask()).await;
    rig.tell(ask()).await;
    gate.open();
    assert_eq!(older.await.unwrap(), "200 by a after 2");
    seconds(45).await;
    assert_eq!(out(&rig).len(), 1, "its probes fail, and keep it out");
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_benches_nobody() {
    let rig = Rig::new(&two("models: [m]"));
    rig.upstreams.next("key-one", [hangs()]);
    let call = rig.begin(ask()).await;
    call.abort();
    settle().await;
    assert_eq!(rig.last().outcome, Outcome::ClientCancelled);
    assert_eq!(out(&rig), [""; 0]);
    rig.assert_idle();
}
