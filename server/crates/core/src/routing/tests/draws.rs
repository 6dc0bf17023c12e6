//! How often who leads. All dice are seeded, and the bounds are far wider than chance.

use super::{Bench, Request};
use crate::routing::{Router, dice};
use rand::{SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

/// Every this many draws, five times the spread of a fair share is less than 0.025.
const DRAWS: u32 = 10_000;

/// The share of requests that each target leads.
fn leaders(bench: &Bench, requests: impl Iterator<Item = Request>) -> BTreeMap<String, f64> {
    let mut rng = StdRng::seed_from_u64(7);
    let (mut counts, mut all) = (BTreeMap::<String, f64>::new(), 0.0);
    for request in requests {
        let order = bench.order(&request, &mut rng);
        let first = bench.name(order.legs[0].target);
        *counts.entry(first.to_owned()).or_default() += 1.0;
        all += 1.0;
    }
    counts.into_iter().map(|(name, count)| (name, count / all)).collect()
}

fn same(request: &str) -> impl Iterator<Item = Request> {
    (0..DRAWS).map(move |_| Request::parse(request))
}

fn users(rest: &str) -> impl Iterator<Item = Request> {
    (0..DRAWS).map(move |user| Request::parse(&format!("m user=user-{user} {rest}")))
}

/// Shares in percent, each hit within two and a half.
#[track_caller]
fn check(document: &str, world: &str, requests: impl Iterator<Item = Request>, want: &[(&str, f64)]) {
    let shares = leaders(&Bench::new(document, world), requests);
    let names: Vec<&str> = want.iter().map(|(name, _)| *name).collect();
    assert_eq!(shares.keys().map(String::as_str).collect::<Vec<_>>(), names);
    for (name, percent) in want {
        let found = shares[*name] * 100.0;
        assert!((found - percent).abs() < 2.5, "{name}: {found} %, not {percent} %");
    }
}

#[test]
fn load_is_shared_by_weight() {
    let mode = "mode: load-balance";
    check(
        mode,
        "a=m b=m c=m d=m",
        same("m"),
        &[("a", 25.0), ("b", 25.0), ("c", 25.0), ("d", 25.0)],
    );
    check(mode, "a=m w70 b=m w30 c=m w0", same("m"), &[("a", 70.0), ("b", 30.0)]);
    check(mode, "a=m w0.6 b=m w0.2 c=n w9", same("m"), &[("a", 75.0), ("b", 25.0)]);
    // A weight that is not written beside others is none.
    check(mode, "a=m b=m w1", same("m"), &[("b", 100.0)]);
}

#[test]
fn variants_share_by_weight_whatever_the_targets_weigh() {
    let mode = "mode: ab-test, ab_variants: [\
        {target_key: a, weight: 90, label: x}, {target_key: b, weight: 10, label: y}, {target_key: c, label: z}]";
    check(
        mode,
        "a=m w1 b=m w99 c=m w99 d=m w99",
        same("m"),
        &[("a", 90.0), ("b", 10.0)],
    );
}

#[test]
fn equal_prices_share_by_weight() {
    let mode = "mode: cost-optimized";
    check(
        mode,
        "a=m $1 w3 b=m $1 w1 c=m $2 w96",
        same("m"),
        &[("a", 75.0), ("b", 25.0)],
    );
    check(mode, "a=m $1 b=m $1", same("m"), &[("a", 50.0), ("b", 50.0)]);
    check(
        "mode: cost-optimized, unpriced_strategy: allow",
        "a=m b=m $0",
        same("m"),
        &[("a", 50.0), ("b", 50.0)],
    );
}

#[test]
fn one_request_in_ten_leads_with_a_runner_up() {
    let mode = "mode: least-latency";
    check(
        mode,
        "a=m 1ms b=m 2ms c=m 3ms",
        same("m"),
        &[("a", 90.0), ("b", 5.0), ("c", 5.0)],
    );
    // Nobody is left to explore.
    check(mode, "a=m 1ms b=n 2ms", same("m"), &[("a", 100.0)]);
    // The unknown lead in turns. Exploring, one in two leads with the other of them.
    check(
        mode,
        "a=m b=m c=m 3ms",
        same("m"),
        &[("a", 47.5), ("b", 47.5), ("c", 5.0)],
    );
}

#[test]
fn sticky_users_spread_evenly() {
    let mode = "mode: load-balance, sticky: {on: user}";
    check(
        mode,
        "a=m b=m c=m d=m",
        users(""),
        &[("a", 25.0), ("b", 25.0), ("c", 25.0), ("d", 25.0)],
    );
    check(mode, "a=m w80 b=m w20", users(""), &[("a", 80.0), ("b", 20.0)]);
    let mode = "mode: ab-test, sticky: {on: user, ttl: 1h}, ab_variants: [\
        {target_key: a, weight: 1, label: x}, {target_key: b, weight: 1, label: y}]";
    check(mode, "a=m b=m", users("at=10:00"), &[("a", 50.0), ("b", 50.0)]);
    check(mode, "a=m b=m", users("at=11:00"), &[("a", 50.0), ("b", 50.0)]);
}

#[test]
fn nested_routes_split_sticky_users_again() {
    let tree = "\
strategy: {mode: load-balance, sticky: {on: user}}
targets: [route/left, route/right]
routes:
  left: {strategy: {mode: load-balance, sticky: {on: user}}, targets: [a, b]}
  right: {strategy: {mode: load-balance, sticky: {on: user}}, targets: [c, d]}
";
    check(
        tree,
        "a=m b=m c=m d=m",
        users(""),
        &[("a", 25.0), ("b", 25.0), ("c", 25.0), ("d", 25.0)],
    );
}

/// The leader of each user's request.
fn pins(bench: &Bench, seed: u64, of: impl Fn(u32) -> String) -> Vec<String> {
    let mut rng = StdRng::seed_from_u64(seed);
    let lead = |i: u32| {
        let order = bench.order(&Request::parse(&of(i)), &mut rng);
        bench.name(order.legs[0].target).to_owned()
    };
    (0..200).map(lead).collect()
}

#[test]
fn a_pin_holds_for_its_window_and_moves_at_the_boundary() {
    let bench = Bench::new("mode: load-balance, sticky: {on: user, ttl: 10m}", "a=m b=m c=m");
    let at = |time: &'static str| pins(&bench, 1, move |i| format!("m user=u{i} at={time}"));
    assert_eq!(at("12:00"), at("12:09"));
    let moved = at("12:00").iter().zip(at("12:10")).filter(|(a, b)| *a != b).count();
    assert!((100..170).contains(&moved), "two in three find another place: {moved}");
    // Without a window, for ever.
    let bench = Bench::new("mode: load-balance, sticky: {on: user}", "a=m b=m c=m");
    let at = |time: &'static str| pins(&bench, 1, move |i| format!("m user=u{i} at={time}"));
    assert_eq!(at("00:00"), at("99999:00"));
}

#[test]
fn two_gateways_agree_without_talking() {
    let (mode, world) = ("mode: load-balance, sticky: {on: user}", "a=m b=m c=m");
    let (one, two) = (Bench::new(mode, world), Bench::new(mode, world));
    let user = |i| format!("m user=u{i}");
    assert_eq!(pins(&one, 1, user), pins(&two, 2, user));
    // Nothing to stick to: the dice again.
    for request in ["m", "m user="] {
        assert_ne!(
            pins(&one, 1, |_| request.to_owned()),
            pins(&two, 2, |_| request.to_owned())
        );
    }
}

#[test]
fn a_pin_may_hang_on_the_session_or_a_header() {
    for (sticky, say) in [
        ("on: session", "session"),
        ("on: header, field: X-Tenant", "h:x-tenant"),
    ] {
        let bench = Bench::new(&format!("mode: load-balance, sticky: {{{sticky}}}"), "a=m b=m c=m");
        let stuck = |i: u32| format!("m {say}=v{}", i % 5);
        assert_eq!(pins(&bench, 1, stuck), pins(&bench, 2, stuck), "{sticky}");
        let other = |i: u32| format!("m user=v{}", i % 5);
        assert_ne!(pins(&bench, 1, other), pins(&bench, 2, other), "{sticky}");
    }
}

#[test]
fn a_request_throws_the_same_dice_again() {
    let bench = Bench::new("mode: load-balance", "a=m b=m c=m d=m");
    let request = Request::parse("m");
    let router = Router::new(&bench.config);
    let mut seen = BTreeMap::<usize, u32>::new();
    for i in 0..100 {
        let id = format!("0190b5a0-0000-7000-8000-{i:012}");
        let order = |router: &Router| router.order(request.route(&bench), &request.facts(), &bench, &mut dice(&id));
        let first = order(&bench.router);
        assert_eq!(first, order(&router));
        *seen.entry(first.legs[0].target.0).or_default() += 1;
    }
    assert!(seen.len() == 4 && seen.values().all(|count| *count > 10), "{seen:?}");
}
