//! What is behind an open breaker is looked at in the background.

use super::upstreams::*;
use super::{Rig, a_then_b, ask, seconds};

fn breaker(reverify: &str) -> String {
    a_then_b(&format!(
        "circuit_breaker: {{failure_threshold: 1, timeout: 10m, ramp: 0s, reverify: {reverify}}}"
    ))
}

/// `a`'s breaker is open, and somebody looks after it.
async fn open(reverify: &str) -> Rig {
    let rig = Rig::new(&breaker(reverify));
    rig.watch();
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    rig.calls();
    rig
}

/// Paths of the calls to `a`.
fn paths(rig: &Rig) -> Vec<String> {
    let calls = rig.calls().into_iter().filter(|call| call.host == "a");
    calls.map(|call| call.path).collect()
}

#[tokio::test(start_paused = true)]
async fn a_listing_of_models_closes_it_without_a_callers_request() {
    let rig = open("models").await;
    seconds(9).await;
    assert_eq!(paths(&rig), [""; 0], "what has just failed is given a moment");
    assert_eq!(rig.circuit("a"), "open for 591s");
    seconds(2).await;
    assert_eq!(paths(&rig), ["/models"]);
    assert_eq!(rig.circuit("a"), "closed, 0 failed");
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    seconds(60).await;
    assert_eq!(paths(&rig), ["/chat/completions"], "what is well is not probed");
}

#[tokio::test(start_paused = true)]
async fn it_stays_open_for_as_long_as_the_probe_fails() {
    let rig = open("{by: models, every: 20s}").await;
    rig.upstreams.on("a/models", status(503));
    seconds(105).await;
    assert_eq!(paths(&rig), ["/models"; 5], "one every 20 s");
    assert_eq!(rig.circuit("a"), "open for 495s");
    rig.upstreams.on("a/models", hangs());
    seconds(60).await;
    rig.upstreams.on("a/models", status(200));
    seconds(25).await;
    assert_eq!(rig.circuit("a"), "closed, 0 failed");
}

#[tokio::test(start_paused = true)]
async fn as_many_probes_have_to_succeed_as_calls_would() {
    let rig = Rig::new(&a_then_b(
        "circuit_breaker: {failure_threshold: 1, success_threshold: 2, timeout: 10m, ramp: 0s, reverify: models}",
    ));
    rig.watch();
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    seconds(11).await;
    assert_eq!(rig.circuit("a"), "half-open");
    seconds(10).await;
    assert_eq!(rig.circuit("a"), "closed, 0 failed");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_without_a_listing_is_not_kept_out_by_it() {
    let rig = Rig::new(&a_then_b(
        "circuit_breaker: {failure_threshold: 1, timeout: 30s, ramp: 0s, reverify: models}",
    ));
    rig.watch();
    rig.upstreams.on("a/models", status(404));
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    seconds(29).await;
    assert_eq!(rig.circuit("a"), "open for 1s");
    seconds(60).await;
    assert_eq!(rig.circuit("a"), "half-open", "its probes say nothing: calls are asked");
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(rig.circuit("a"), "closed, 0 failed");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_one_token_does_it_where_the_operator_says_so() {
    let rig = open("{by: call, model: tiny, every: 5s}").await;
    seconds(6).await;
    let call = rig.calls().remove(0);
    assert_eq!(
        (call.path.as_str(), call.token.as_str()),
        ("/chat/completions", "key-a")
    );
    assert_eq!(
        call.body,
        r#"{"model":"tiny","messages":[{"role":"user","content":"ping"}],"max_tokens":1}"#
    );
    assert_eq!(rig.circuit("a"), "closed, 0 failed");

    let rig = open("{by: call, model: tiny, every: 5s}").await;
    rig.upstreams.next("a", [status(500), status(429), status(400)]);
    seconds(11).await;
    assert_eq!(rig.circuit("a"), "open for 589s");
    seconds(5).await;
    assert_eq!(
        rig.circuit("a"),
        "closed, 0 failed",
        "who finds fault with one token lives"
    );
    assert_eq!(rig.records().len(), 1, "a probe is nobody's request");
}

#[tokio::test(start_paused = true)]
async fn without_it_calls_alone_find_out() {
    let rig = Rig::new(&a_then_b("circuit_breaker: {failure_threshold: 1, timeout: 30s}"));
    rig.watch();
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    rig.calls();
    seconds(300).await;
    assert_eq!(paths(&rig), [""; 0]);
    assert_eq!(rig.circuit("a"), "half-open");
}
