//! Another configuration under way: what is the same keeps what was learned, what changed begins anew.

use super::upstreams::*;
use super::{Rig, ask, config, seconds, settle};

const BREAKER: &str = "circuit_breaker: {failure_threshold: 1, timeout: 30s, ramp: 0s}";

fn fallback(targets: &str) -> String {
    config(
        &["a", "b", "c"],
        &format!("strategy: {{mode: fallback}}\ntargets: [{targets}]"),
    )
}

fn samples(rig: &Rig, name: &str) -> Vec<(String, u128, usize)> {
    let samples = rig.target(name).latency.into_iter();
    samples
        .map(|(model, p50, samples)| (model, p50.as_millis(), samples))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_the_same_keeps_what_was_learned_of_it() {
    let a = format!("{{virtual_key: a, {BREAKER}, concurrency: {{max_concurrency: 1}}, quota: {{rpm: 10}}}}");
    let rig = Rig::new(&fallback(&format!("{a}, b")));
    rig.upstreams.next("a", [ok().after_ms(250)]);
    rig.tell(ask()).await;
    rig.upstreams.next("a", [status(500)]);
    rig.tell(ask()).await;
    rig.upstreams.next("b", [limited(Some(20))]);
    rig.tell(ask()).await;

    // Another strategy, other neighbours, another order, and how it is asked: all of that is not the target.
    rig.swap(&config(
        &["a", "b", "c"],
        &format!(
            "strategy: {{mode: load-balance}}\ntargets: [c, b, {}]",
            a.replace(BREAKER, &format!("{BREAKER}, timeout: 9s, weight: 2"))
        ),
    ));
    assert_eq!(rig.circuit("a"), "open for 30s");
    assert_eq!(rig.target("a").quota[0].used, 2);
    assert_eq!(samples(&rig, "a"), [("m".to_owned(), 250, 1)]);
    assert_eq!(rig.target("a").success_rate, Some(0.5));
    assert_eq!(rig.target("a").calls, 2);
    assert_eq!(rig.standing("b"), "Parked: it is parked after a 429, for 20s");
    assert_eq!(rig.standing("c"), "Ready");
}

#[tokio::test(start_paused = true)]
async fn slots_are_kept_with_the_calls_that_hold_them() {
    let a = "{virtual_key: a, concurrency: {max_concurrency: 1}}";
    let rig = Rig::new(&fallback(a));
    let gate = Gate::closed();
    rig.upstreams.next("a", [ok().held(&gate)]);
    let older = rig.begin(ask()).await;
    rig.swap(&fallback(&format!("{a}, c")));
    assert_eq!(rig.target("a").in_flight, 1);
    let younger = rig.begin(ask()).await;
    assert_eq!(rig.target("a").queued, 1, "one slot, whatever snapshot a call is on");
    gate.open();
    assert_eq!(older.await.unwrap(), "200 by a after 1");
    assert_eq!(younger.await.unwrap(), "200 by a after 1");
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn what_changed_begins_anew_and_nothing_else_does() {
    let with = |keys: &str| fallback(&format!("{{virtual_key: a, {keys}}}, b"));
    for (changed, circuit, used) in [
        (
            "circuit_breaker: {failure_threshold: 2}, quota: {rpm: 5}",
            "closed, 0 failed",
            2,
        ),
        (
            "circuit_breaker: {failure_threshold: 1, timeout: 30s, ramp: 0s}, quota: {rpm: 6}",
            "open for 30s",
            0,
        ),
        (
            "circuit_breaker: {failure_threshold: 1, timeout: 30s, ramp: 0s}, quota: {rpm: 5}, concurrency: {max_concurrency: 3}",
            "open for 30s",
            2,
        ),
    ] {
        let rig = Rig::new(&with(&format!("{BREAKER}, quota: {{rpm: 5}}")));
        rig.upstreams.next("a", [ok().after_ms(250), status(500)]);
        rig.tell(ask()).await;
        rig.tell(ask()).await;
        rig.swap(&with(changed));
        assert_eq!(rig.circuit("a"), circuit, "{changed}");
        assert_eq!(rig.target("a").quota[0].used, used, "{changed}");
        assert_eq!(
            samples(&rig, "a"),
            [("m".to_owned(), 250, 1)],
            "the same upstream is as fast as it was"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_provider_lists_or_costs_makes_it_no_other_upstream() {
    let yaml = fallback(&format!("{{virtual_key: a, {BREAKER}, quota: {{rpm: 5}}}}, b"));
    let rig = Rig::new(&yaml);
    rig.upstreams.next("a", [status(500)]);
    rig.tell(ask()).await;
    rig.swap(&yaml.replace(
        "id: a,",
        "id: a, models: [m], prices: {m: {input_per_m: 1, output_per_m: 2}},",
    ));
    assert_eq!(rig.circuit("a"), "open for 30s");
    assert_eq!(rig.target("a").quota[0].used, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_answers_leaves_the_probe_place_to_the_next() {
    let rig = Rig::new(&fallback(&format!("{{virtual_key: a, {BREAKER}}}")));
    rig.upstreams
        .next("a", [status(503), streams([say(WORD), wait(600), say(STOP)])]);
    rig.tell(ask()).await;
    seconds(30).await;
    let stream = rig.begin(ask().stream()).await;
    settle().await;
    assert_eq!(rig.circuit("a"), "half-open", "its verdict comes at its end");
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(rig.circuit("a"), "closed, 0 failed");
    stream.abort();
}

#[tokio::test(start_paused = true)]
async fn another_upstream_under_the_same_name_has_no_past() {
    let yaml = fallback(&format!("{{virtual_key: a, {BREAKER}}}, b"));
    let rig = Rig::new(&yaml);
    rig.upstreams.next("a", [ok().after_ms(250), status(500)]);
    rig.tell(ask()).await;
    rig.tell(ask()).await;
    rig.swap(&yaml.replace("http://a.test", "http://moved.test"));
    assert_eq!(rig.circuit("a"), "closed, 0 failed");
    assert_eq!(samples(&rig, "a"), []);
    rig.calls();
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
    assert_eq!(rig.hosts(), "moved");
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_ends_on_what_it_began_with() {
    let rig = Rig::new(&fallback("a, b"));
    let gate = Gate::closed();
    rig.upstreams
        .next("a", [status(503).held(&gate), streams([say(WORD), wait(5), say(STOP)])]);
    let (unary, stream) = (rig.begin(ask()).await, rig.begin(ask().stream()).await);
    rig.swap(&fallback("c"));
    assert_eq!(rig.tell(ask()).await, "200 by c after 1");
    gate.open();
    assert_eq!(unary.await.unwrap(), "200 by b after 2", "its own list of targets");
    assert_eq!(rig.verdicts().len(), 2);
    assert_eq!(stream.await.unwrap(), "200 by a after 1");
    settle().await;
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_in_line_when_its_target_goes_is_served() {
    let rig = Rig::new(&fallback("{virtual_key: a, concurrency: {max_concurrency: 1}}, b"));
    let gate = Gate::closed();
    rig.upstreams.next("a", [ok().held(&gate)]);
    let calls = [rig.begin(ask()).await, rig.begin(ask()).await];
    rig.swap(&fallback("c"));
    seconds(1).await;
    gate.open();
    for call in calls {
        assert_eq!(call.await.unwrap(), "200 by a after 1");
    }
    assert_eq!(rig.upstreams.open(), 0);
}
