//! A thousand calls of every kind and every end: afterwards nothing is held.

use super::upstreams::*;
use super::{Rig, ask, config, seconds, settle};
use crate::ports::TransportFault;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

fn reply(number: usize) -> Reply {
    match number % 17 {
        0 => status(503),
        1 => limited(Some(1)),
        2 => hangs(),
        3 => unreachable(),
        4 => status(400),
        5 => status(401),
        6 => says(200, "<html>"),
        7 => streams([say(ROLE), wait(2), say(WORD), wait(1), say(STOP)]),
        8 => streams([say(WORD), wait(1)]),
        9 => streams([say(WORD), wait(1), Step::Break(TransportFault::Broken)]),
        10 => panics(),
        11 => ok().after(20),
        12 => streams([say(WORD), wait(30), say(STOP)]),
        _ => ok().after_ms(u64::try_from(number % 700).unwrap()),
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_storm_everything_is_back() {
    let rig = Rig::new(
        &config(
            &["a", "b", "c"],
            "request_timeout: 30s\nstrategy: {mode: loadbalance}\n\
             targets:\n\
             \x20 - {virtual_key: a, timeout: 5s, retry: {attempts: 2}, concurrency: {max_concurrency: 3, queue_size: 5}, \
             circuit_breaker: {failure_threshold: 3, timeout: 2s}}\n\
             \x20 - {virtual_key: b, idle_timeout: 3s, concurrency: {max_concurrency: 10}, quota: {rpm: 300, tpm: 100000}}\n\
             \x20 - {virtual_key: c, circuit_breaker: {timeout: 1s, reverify: {by: models, every: 1s}}}",
        )
        .replace("api_key: key-c", "credentials: [{id: x, api_key: x}, {id: y, api_key: y}]"),
    );
    let watch = rig.watch();
    for name in ["a", "b", "c"] {
        rig.upstreams.on_each(name, reply);
    }
    let mut dice = StdRng::seed_from_u64(7);
    let mut calls = Vec::new();
    for number in 0..1_000 {
        let asked = match dice.random_range(0..3) {
            0 => ask().id(number).stream(),
            1 => ask().id(number).embeddings(),
            _ => ask().id(number),
        };
        let patience = Duration::from_millis(dice.random_range(1..40_000));
        let gives_up = dice.random_bool(0.3);
        let rig = rig.clone();
        calls.push(tokio::spawn(async move {
            if gives_up {
                let _ = tokio::time::timeout(patience, rig.tell(asked)).await;
            } else {
                rig.tell(asked).await;
            }
        }));
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..60))).await;
    }
    let mut panicked = 0;
    for call in calls {
        panicked += usize::from(call.await.is_err());
    }
    watch.abort();
    seconds(61).await;
    rig.assert_idle();

    let records = rig.records();
    assert_eq!(records.len(), 1_000, "one record each");
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &records {
        *outcomes.entry(record.outcome.as_str()).or_default() += 1;
        assert_eq!(record.verdicts.len(), 3);
    }
    for outcome in ["success", "error", "partial", "client_cancelled"] {
        assert!(outcomes.get(outcome).is_some_and(|count| *count > 20), "{outcomes:?}");
    }
    assert!(panicked > 5, "{panicked} panicked");

    // Every slot can be had again, and not one more.
    for (name, slots) in [("a", 3), ("b", 10)] {
        let (asked, gate) = (ask().header("x-gateway-only", name), Gate::closed());
        rig.upstreams.on(name, ok());
        rig.tell(asked.clone()).await;
        rig.upstreams.on(name, ok().held(&gate));
        let mut holders = Vec::new();
        for _ in 0..=slots {
            holders.push(rig.begin(asked.clone()).await);
        }
        let target = rig.target(name);
        assert_eq!((target.in_flight, target.queued), (slots, 1), "{name}");
        gate.open();
        for holder in holders {
            assert_eq!(holder.await.unwrap(), format!("200 by {name} after 1"));
        }
    }
    assert_eq!(
        rig.target("b").quota[0].used,
        12,
        "what was counted a minute ago is gone"
    );
    settle().await;
    rig.assert_idle();
}
