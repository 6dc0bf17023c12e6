//! The dry run says what the real call does.

use super::upstreams::*;
use super::{Ask, Rig, ask, config, seconds};
use crate::record::VerdictState;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::fmt::Write as _;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const MODELS: [&str; 4] = ["m1", "m2", "gpt-4o-mini", "odd"];
const MODES: [&str; 9] = [
    "single",
    "fallback",
    "loadbalance",
    "least-latency",
    "cost-optimized",
    "conditional",
    "content-based",
    "ab-test",
    "health-weighted",
];

/// Configurations and requests, drawn.
struct Draw(StdRng);

impl Draw {
    fn yes(&mut self, chance: f64) -> bool {
        self.0.random_bool(chance)
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of.choose(&mut self.0).copied().unwrap()
    }

    fn some<'t>(&mut self, of: &[&'t str]) -> Vec<&'t str> {
        let mut all = of.to_vec();
        all.shuffle(&mut self.0);
        all.truncate(self.0.random_range(1..=of.len()));
        all
    }

    fn providers(&mut self) -> String {
        let mut yaml = "providers:\n".to_owned();
        for name in NAMES {
            let models = if self.yes(0.5) {
                format!(", models: [{}]", self.some(&MODELS).join(", "))
            } else {
                String::new()
            };
            let catalog = if self.yes(0.5) { ", catalog: openai" } else { "" };
            let price = self.0.random_range(1..4);
            let prices = if self.yes(0.5) {
                format!(", prices: {{m1: {{input_per_m: {price}, output_per_m: 2}}}}")
            } else {
                String::new()
            };
            let credentials = if self.yes(0.3) {
                format!("credentials: [{{id: x, api_key: x-{name}}}, {{id: y, api_key: y-{name}}}]")
            } else {
                format!("api_key: key-{name}")
            };
            writeln!(
                yaml,
                "  - {{id: {name}, kind: openai, base_url: 'http://{name}.test', {credentials}{models}{catalog}{prices}}}"
            )
            .unwrap();
        }
        yaml
    }

    /// `strategy` and `targets` of a route over these places.
    fn route(&mut self, places: &[&str], shared: bool, indent: &str) -> String {
        let sticky = match self.0.random_range(0..4) {
            0 => ", sticky: {on: user}",
            1 => ", sticky: {on: session, ttl: 1h}",
            2 => ", sticky: {on: header, field: X-Tenant}",
            _ => "",
        };
        let names: Vec<&str> = places
            .iter()
            .map(|place| place.strip_prefix("route/").unwrap_or(place))
            .collect();
        let mode = self.one(&MODES);
        let rule = |draw: &mut Self| format!("target_keys: [{}]", draw.some(&names).join(", "));
        let keys = match mode {
            "loadbalance" => sticky.to_owned(),
            "cost-optimized" => format!(", unpriced_strategy: {}", self.one(&["fallback", "skip", "allow"])),
            "conditional" => format!(
                ", conditions: [{{key: model, value: m1, {}}}, {{key: stream, value: true, {}}}]",
                rule(self),
                rule(self)
            ),
            "content-based" => format!(
                ", content_conditions: [{{type: prompt_contains, value: code, {}}}]",
                rule(self)
            ),
            "ab-test" => {
                let variant =
                    |(i, name): (usize, &&str)| format!("{{target_key: {name}, weight: {}, label: v{i}}}", i + 1);
                let variants: Vec<String> = names.iter().enumerate().map(variant).collect();
                format!(", ab_variants: [{}]{sticky}", variants.join(", "))
            }
            _ => String::new(),
        };
        let mut yaml = format!("{indent}strategy: {{mode: {mode}{keys}}}\n{indent}targets:\n");
        for (place, name) in places.iter().zip(&names) {
            let weight = self.0.random_range(1..5);
            let mut entry = if place.starts_with("route/") {
                format!("route: {name}, weight: {weight}")
            } else {
                format!("virtual_key: {name}, weight: {weight}")
            };
            if !place.starts_with("route/") {
                if self.yes(0.3) {
                    write!(entry, ", model_map: {{m2: up-{name}, odd: odd-{name}}}").unwrap();
                }
                if self.yes(0.1) {
                    write!(entry, ", model: own-{name}").unwrap();
                }
                if shared && self.yes(0.5) {
                    entry.push_str(", circuit_breaker: {failure_threshold: 4, timeout: 20s, ramp: 30s}");
                }
                if shared && self.yes(0.2) {
                    entry.push_str(", quota: {rpm: 12, tpm: 4000}");
                }
            }
            writeln!(yaml, "{indent}  - {{{entry}}}").unwrap();
        }
        yaml
    }

    fn config(&mut self) -> String {
        let mut yaml = self.providers();
        let mut places = self.some(&NAMES);
        if self.yes(0.5) {
            places.insert(self.0.random_range(0..=places.len()), "route/inner");
        }
        yaml.push_str(&self.route(&places, true, ""));
        yaml.push_str("routes:\n  inner:\n    model: m1\n");
        let inner = self.some(&NAMES);
        yaml.push_str(&self.route(&inner, false, "    "));
        let known: Vec<&str> = NAMES
            .into_iter()
            .filter(|name| places.contains(name) || inner.contains(name))
            .collect();
        writeln!(
            yaml,
            "projects: {{walled: {{only: [{}]}}}}",
            self.some(&known).join(", ")
        )
        .unwrap();
        yaml
    }

    fn ask(&mut self, number: u64) -> Ask {
        let model = self.one(&["m1", "m1", "m2", "gpt-4o-mini", "odd", "route/inner"]);
        let mut asked = ask().id(number).model(model);
        if self.yes(0.3) {
            asked = asked.prompt("some code");
        }
        if self.yes(0.5) {
            asked = asked.with(&format!(r#""user":"u{}""#, self.0.random_range(0..9)));
        }
        if self.yes(0.3) {
            asked = asked.header("x-session-id", self.one(&["s1", "s2", "s3"]));
        }
        if self.yes(0.3) {
            asked = asked.header("x-tenant", self.one(&["t1", "t2", "t3"]));
        }
        if self.yes(0.1) {
            asked = asked.header("x-gateway-route", "inner");
        }
        if self.yes(0.1) {
            asked = asked.project("walled");
        }
        match self.0.random_range(0..4) {
            0 => asked.stream(),
            1 => asked.embeddings(),
            _ => asked,
        }
    }
}

/// Some upstreams answer, at different speeds, some fail and some limit: measurements, breakers and parks come of it.
async fn live(rig: &Rig, draw: &mut Draw) {
    let limits = NAMES[draw.0.random_range(0..NAMES.len())];
    let fails = NAMES[draw.0.random_range(0..NAMES.len())];
    for (i, name) in NAMES.into_iter().enumerate() {
        let speed = u64::try_from(i).unwrap() * 40 + 10;
        rig.upstreams.on(name, ok().after_ms(speed));
    }
    rig.upstreams.on(fails, status(500));
    rig.upstreams.on(limits, limited(Some(30)));
    for number in 0..8 {
        let asked = draw.ask(1_000_000 + number);
        rig.tell(asked).await;
    }
    if draw.yes(0.5) {
        seconds(draw.0.random_range(0..45)).await;
    }
    for name in NAMES {
        rig.upstreams.on(name, status(503));
    }
}

#[tokio::test(start_paused = true)]
async fn its_order_is_the_one_in_which_targets_are_asked() {
    let mut draw = Draw(StdRng::seed_from_u64(20_261_130));
    let (mut walked, mut refused, mut modes) = (0, 0, std::collections::BTreeMap::new());
    for _ in 0..100 {
        let yaml = draw.config();
        let rig = Rig::new(&yaml);
        live(&rig, &mut draw).await;
        for number in 0..10 {
            let asked = draw.ask(number);
            rig.calls();
            let explained = rig.explain(asked.clone()).unwrap();
            let outcome = rig.run(asked.clone()).await;
            let record = rig.last();
            let place = format!("{asked:?}\n{explained:?}\n{yaml}", asked = asked.model);

            let tried: Vec<(String, String)> = rig
                .calls()
                .iter()
                .map(|call| (call.host.clone(), call.model()))
                .collect();
            assert_eq!(explained.order, tried, "{place}");
            assert_eq!(
                (&*explained.route, explained.variant.as_deref()),
                (&*record.route, record.variant.as_deref()),
                "{place}"
            );
            let recorded: Vec<_> = record.verdicts.iter().collect();
            for verdicts in [&explained.verdicts, &recorded] {
                let named: Vec<&str> = verdicts.iter().map(|verdict| &*verdict.target).collect();
                let targets = rig.engine.targets().targets;
                let configured: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
                assert_eq!(named, configured, "one verdict per configured target\n{place}");
                assert!(verdicts.iter().all(|verdict| !verdict.reason.is_empty()), "{place}");
            }
            for verdict in &recorded {
                let was_tried = tried.iter().any(|(target, _)| **target == *verdict.target);
                let state = if was_tried {
                    VerdictState::Failed
                } else {
                    VerdictState::Excluded
                };
                assert_eq!(verdict.state, state, "{}: {}\n{place}", verdict.target, verdict.reason);
            }
            match (explained.error, outcome.map(|_| ()).unwrap_err().error) {
                (Some(foretold), told) if tried.is_empty() => {
                    assert_eq!(
                        (foretold.kind, foretold.retry_after),
                        (told.kind, told.retry_after),
                        "{place}"
                    );
                    refused += 1;
                }
                (None, told) => assert_eq!(told.status, Some(503), "{place}"),
                (Some(foretold), _) => panic!("foretold {foretold:?}, and yet called\n{place}"),
            }
            walked += usize::from(tried.len() > 1);
            *modes.entry(explained.strategy).or_insert(0) += 1;
            rig.assert_idle();
        }
    }
    assert!(walked > 300, "{walked} of 1,000 had a choice");
    assert!(refused > 20, "{refused} of 1,000 were refused");
    assert_eq!(modes.len(), MODES.len(), "{modes:?}");
}

#[tokio::test(start_paused = true)]
async fn it_leaves_no_trace() {
    let rig = Rig::new(&config(
        &["a", "b"],
        "strategy: {mode: fallback}\n\
         targets: [{virtual_key: a, quota: {rpm: 1}, circuit_breaker: {timeout: 30s}, concurrency: {max_concurrency: 1}}, b]",
    ));
    for _ in 0..5 {
        let explained = rig.explain(ask()).unwrap();
        assert_eq!(
            rig.words(&explained.verdicts),
            [
                "a chosen: would be asked first",
                "b not needed: would be asked as number 2"
            ]
        );
    }
    assert_eq!((rig.records().len(), rig.hosts().as_str()), (0, ""));
    let target = rig.target("a");
    assert_eq!((target.quota[0].used, target.calls), (0, 0));
    rig.assert_idle();
}

#[tokio::test(start_paused = true)]
async fn it_takes_no_probe_place() {
    let rig = Rig::new(&super::only_a("circuit_breaker: {failure_threshold: 1, timeout: 30s}"));
    rig.upstreams.next("a", [status(503)]);
    rig.tell(ask()).await;
    seconds(30).await;
    for _ in 0..3 {
        assert_eq!(rig.explain(ask()).unwrap().order.len(), 1);
    }
    assert_eq!(rig.tell(ask()).await, "200 by a after 1");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_an_error() {
    let rig = Rig::new(&config(&["a"], "targets: [a]"));
    let error = rig.explain(ask().with(r#""stream":"yes""#)).unwrap_err();
    assert_eq!(error.param.as_deref(), Some("stream"));
}
