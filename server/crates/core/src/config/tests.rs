//! One `check`, a table of documents.

#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is handed over"
)]

mod inert;
mod pass_through;
mod providers;
mod reference;
mod routes;
mod strategy;
mod targets;

use super::{Config, DEFAULT_MAX_REQUEST_BYTES, To};
use expect_test::{Expect, expect};
use std::fmt::Write as _;
use std::time::Duration;

/// Renders what reading a document gave: the faults, or every route with its places, the projects, and every notice.
#[track_caller]
fn check(document: &str, want: Expect) {
    let mut out = String::new();
    match Config::parse(document) {
        Ok(config) => {
            for route in &config.routes {
                let place = |place: &super::Place| {
                    let name = match place.to {
                        To::Target(target) => config.targets[target].virtual_key.clone(),
                        To::Route(inner) => format!("route/{}", config.routes[inner].name),
                    };
                    let weight = place.weight.map(|weight| format!("*{weight}")).unwrap_or_default();
                    format!("{name}{weight}")
                };
                let places: Vec<String> = route.places.iter().map(place).collect();
                let (mode, places) = (route.strategy.mode.as_str(), places.join(" "));
                writeln!(out, "{}: {mode} {places}", route.name).unwrap();
            }
            for (name, project) in &config.projects {
                writeln!(out, "project {name}: {:?} {:?}", project.route, project.only).unwrap();
            }
            for notice in &config.notices {
                writeln!(out, "{}{notice}", if notice.inert { "inert: " } else { "" }).unwrap();
            }
        }
        Err(issues) => {
            for issue in issues {
                writeln!(out, "{issue}").unwrap();
            }
        }
    }
    want.assert_eq(&out);
}

#[track_caller]
fn parse(document: &str) -> Config {
    Config::parse(document).unwrap_or_else(|issues| panic!("{issues:?}"))
}

#[test]
fn every_fault_is_reported_at_once_with_its_line() {
    check(
        "strategy:\n  mode: falback\n  modes: x\ntargets:\n  - virtual_key: opnai\n    retry: {atempts: 3, initial_backoff_ms: -1}\n  - weight: heavy\nrequest_timeout: 30\nmax_request_bytes: 0\n",
        expect![[r#"
            line 2: strategy.mode: unknown strategy mode "falback"; did you mean "fallback"?
            line 3: strategy.modes: is not a key of this block; did you mean "mode"?
            line 5: targets[0].virtual_key: "opnai" names no provider; did you mean "openai"?
            line 6: targets[0].retry.initial_backoff_ms: must be from 0 to 600000, not -1
            line 6: targets[0].retry.atempts: is not a key of this block; did you mean "attempts"?
            line 7: targets[1].virtual_key: is required: name a provider, such as "openai"
            line 7: targets[1].weight: must be a number, not a text
            line 8: request_timeout: must be a time with its unit, such as "30s", "1m30s" or "500ms"
            line 9: max_request_bytes: must be from 1 to 1099511627776, not 0
        "#]],
    );
}

#[test]
fn json_goes_the_same_way_and_shows_duplicates() {
    check(
        "{\n  \"targets\": [{\"virtual_key\": \"openai\", \"weight\": 1,\n    \"weight\": 2}],\n  \"targets\": []\n}",
        expect![[r#"
            line 3: targets[0].weight: is written twice; keep one of them
            line 4: targets: is written twice; keep one of them
        "#]],
    );
    check(
        "{\"targets\": [{\"virtual_key\": \"openai\"}], \"strategy\": {\"mode\": \"fallback\"}}",
        expect![[r#"
            default: fallback openai
        "#]],
    );
}

#[test]
fn a_document_that_is_none_says_where() {
    check(
        "targets: [\n  {virtual_key: openai\n",
        expect![[r#"
        line 2: unclosed bracket '{' at line 2, column 3
    "#]],
    );
    check(
        "- a\n- b\n",
        expect![[r#"
        line 1: must be a block of keys, not a list
    "#]],
    );
    check(
        "targets: [demo]\n---\ntargets: [demo]\n",
        expect![[r#"
            line 3: a second document begins here; keep one
        "#]],
    );
}

#[test]
fn at_least_one_target_is_required() {
    check(
        "",
        expect![[r#"
        line 1: targets: at least one target is required, for example `targets: [{virtual_key: openai}]`
    "#]],
    );
    check(
        "max_request_bytes: 1\ntargets: []\n",
        expect![[r#"
        line 2: targets: at least one target is required, for example `targets: [{virtual_key: openai}]`
    "#]],
    );
    check(
        "max_request_bytes: 1\ntargets: demo\n",
        expect![[r#"
        line 2: targets: must be a list, not a text
    "#]],
    );
    check(
        "targets:\n",
        expect![[r#"
        line 1: targets: at least one target is required, for example `targets: [{virtual_key: openai}]`
    "#]],
    );
}

#[test]
fn the_version_is_advice() {
    check(
        "apiVersion: v1\ntargets: [demo]\n",
        expect![[r#"
        default: single demo
    "#]],
    );
    check(
        "targets: [demo]\napiVersion: v2\n",
        expect![[r#"
            default: single demo
            line 2: apiVersion: is "v2"; this version reads v1 and goes on
        "#]],
    );
}

#[test]
fn bounds_have_defaults() {
    let config = parse("targets: [demo]");
    assert_eq!(config.max_request_bytes, DEFAULT_MAX_REQUEST_BYTES);
    assert_eq!(config.request_timeout, None);
    let config = parse("targets: [demo]\nmax_request_bytes: 1024\nrequest_timeout: 1m30s\n");
    assert_eq!(config.max_request_bytes, 1024);
    assert_eq!(config.request_timeout, Some(Duration::from_secs(90)));
    check(
        "targets: [demo]\nrequest_timeout: 0s\nfirst_token_timeout: 0s\nidle_timeout: -1s\n",
        expect![[r#"
            line 2: request_timeout: must be longer than zero; leave it out for no bound
            line 3: first_token_timeout: must be longer than zero; leave it out for no bound
            line 4: idle_timeout: must be a time with its unit, such as "30s", "1m30s" or "500ms"
        "#]],
    );
}

#[test]
fn aliases_lead_somewhere() {
    check(
        "targets:\n  - virtual_key: demo\n    model_map:\n      quick: x\n      fast: demo\naliases:\n  a: a\n  b: c\n  c: demo\n  d: ''\n  fast: demo\n  '': demo\n  r: route/none\n  s: route/default\n  t: [x]\n",
        expect![[r#"
            line 5: targets[0].model_map.fast: is an alias too and would never match; remove one of them
            line 7: aliases.a: names itself; remove it
            line 8: aliases.b: leads to "c", which is an alias too; name the model itself
            line 10: aliases.d: must have a name and a model
            line 12: aliases.: must have a name and a model
            line 13: aliases.r: "none" names no route; there are default
            line 15: aliases.t: must be a text, not a list
        "#]],
    );
    let config = parse("targets: [demo]\naliases: {fast: demo-1, best: route/default}\n");
    let aliases: Vec<(&str, &str)> = config.aliases.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(aliases, [("best", "route/default"), ("fast", "demo-1")]);
}

#[test]
fn no_time_is_longer_than_a_year() {
    check(
        "\
request_timeout: 5000000000000000h
first_token_timeout: 8760h1ns
idle_timeout: 99999999999999999999h
strategy:
  mode: load-balance
  sticky:
    on: user
    ttl: 8761h
targets:
  - virtual_key: demo
    timeout: 9000h
    circuit_breaker:
      timeout: 8760h1s
      ramp: 525601m
      reverify: {by: models, every: 31536001s}
observability:
  tracing:
    shutdown_grace: 10000h
",
        expect![[r#"
            line 1: request_timeout: must be at most 365 days; write "8760h" or less
            line 2: first_token_timeout: must be at most 365 days; write "8760h" or less
            line 3: idle_timeout: must be at most 365 days; write "8760h" or less
            line 8: strategy.sticky.ttl: must be at most 365 days; write "8760h" or less
            line 11: targets[0].timeout: must be at most 365 days; write "8760h" or less
            line 13: targets[0].circuit_breaker.timeout: must be at most 365 days; write "8760h" or less
            line 14: targets[0].circuit_breaker.ramp: must be at most 365 days; write "8760h" or less
            line 15: targets[0].circuit_breaker.reverify.every: must be at most 365 days; write "8760h" or less
            line 18: observability.tracing.shutdown_grace: must be at most 365 days; write "8760h" or less
        "#]],
    );
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    let config = parse("targets: [demo]\nrequest_timeout: 8760h\n");
    assert_eq!(config.request_timeout, Some(year));
}
