//! One `check`, a table of documents.

#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is handed over"
)]

use super::{Config, Mode};
use expect_test::{Expect, expect};
use std::fmt::Write as _;

/// Renders what reading a document gave: the faults, or what holds and every notice.
#[track_caller]
fn check(document: &str, want: Expect) {
    let mut out = String::new();
    match Config::parse(document) {
        Ok(config) => {
            let targets: Vec<&str> = config.targets.iter().map(|t| t.virtual_key.as_str()).collect();
            writeln!(out, "{} {}", config.strategy.mode.as_str(), targets.join(" ")).unwrap();
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
}

#[test]
fn an_empty_document_lacks_a_target() {
    check(
        "",
        expect![[r#"
        line 1: targets: at least one target is required, for example `targets: [{virtual_key: openai}]`
    "#]],
    );
}

#[test]
fn a_literal_key_works_and_warns_and_a_reference_does_not() {
    check(
        "providers:\n  - {id: near, kind: openai, base_url: http://127.0.0.1:9/v1, api_key: sk-clear, models: [m]}\n  - {id: far, kind: openai, base_url: 'https://x.test/v1', api_key: '${KEY}'}\nstrategy: {mode: fallback}\ntargets: [{virtual_key: near}, {virtual_key: far}]\n",
        expect![[r#"
            fallback near far
            line 2: providers[0].api_key: stands in the file in clear; write `${NAME}` and set that variable
        "#]],
    );
}

#[test]
fn providers_are_checked() {
    check(
        "providers:\n  - {id: 'a b', kind: openai, base_url: 'ftp://x'}\n  - {id: b, kind: cohere, base_url: 'https://x/v1?k=1'}\n  - {id: c, kind: openai}\n  - {id: c, kind: demo, models: ['gpt-*', ' m', m, m]}\n  - {id: d, kind: openai, base_url: 'http://x', headers: {'x y': 1}}\ntargets: [{virtual_key: c}]\n",
        expect![[r#"
            line 2: providers[0].id: is required: letters, digits, "-", "_" and "."
            line 2: providers[0].base_url: must be an http:// or https:// address, such as "https://api.openai.com/v1"
            line 3: providers[1].kind: "cohere" is not a kind of this version; use "openai" for anything that speaks OpenAI's wire format
            line 3: providers[1].base_url: must not have a query or a fragment
            line 4: providers[2].base_url: is required, for example "https://api.openai.com/v1"
            line 5: providers[3].models[0]: "gpt-*" has a wildcard; write each model id in full
            line 5: providers[3].models[1]: must be a model id without spaces around it
            line 5: providers[3].models[3]: "m" is listed twice; keep one of them
            line 5: providers[3].id: "c" is a provider already; give this one another id
            line 6: providers[4].headers.x y: is not a header name: letters, digits, "-" and "_"
        "#]],
    );
}

#[test]
fn targets_are_checked() {
    check(
        "targets:\n  - {virtual_key: openai, timeout: 0s, weight: -1, model_map: {fast: ''}}\n  - {virtual_key: openai, circuit_breaker: {failure_threshold: 0}, concurrency: {max_concurrency: 20000}}\n  - {virtual_key: demo, retry: {on_status_codes: [99, '500']}}\nstrategy: {failover_on_status_codes: [404, 418]}\n",
        expect![[r#"
            line 2: targets[0].weight: must be at least 0, not -1
            line 2: targets[0].model_map: must map a name to a model id; neither may be empty
            line 2: targets[0].timeout: must be longer than zero; leave it out for no bound
            line 3: targets[1].circuit_breaker.failure_threshold: must be from 1 to 4294967295, not 0
            line 3: targets[1].concurrency.max_concurrency: must be from 1 to 10000, not 20000
            line 3: targets[1].virtual_key: "openai" is a target already; keep one of them
            line 4: targets[2].retry.on_status_codes[0]: must be an HTTP status from 100 to 599
            line 4: targets[2].retry.on_status_codes[1]: must be an HTTP status from 100 to 599
            line 5: strategy.failover_on_status_codes: 404 says that the request itself is wrong, on every target; remove it from the list
        "#]],
    );
}

#[test]
fn aliases_lead_somewhere() {
    check(
        "targets: [{virtual_key: demo, model_map: {fast: demo}}]\naliases: {a: a, b: c, c: demo, d: '', fast: demo}\n",
        expect![[r#"
            line 1: targets[0].model_map.fast: is an alias too and would never match; remove one of them
            line 2: aliases.a: names itself; remove it
            line 2: aliases.b: leads to "c", which is an alias too; name the model itself
            line 2: aliases.d: must have a name and a model
        "#]],
    );
}

#[test]
fn what_is_not_built_yet_is_said() {
    check(
        "targets:\n  - virtual_key: openai\n    circuit_breaker: {timeout: 30s}\n  - virtual_key: gemini\nplugins:\n  - {name: word-filter, type: guardrail, stage: before_request, enabled: true, config: {a: 1}}\n  - {name: off, stage: sometime}\nmcp_servers:\n  - {name: fs, url: 'http://x', command: y}\n",
        expect![[r#"
            line 7: plugins[1].stage: "sometime" is no stage; use before_request, after_request or on_error
            line 9: mcp_servers[0]: needs either `url` or `command`, and not both
        "#]],
    );
    check(
        "strategy: {mode: ab-test}\ntargets: [{virtual_key: demo}]\n",
        expect![[r#"
            line 1: strategy.mode: "ab-test" is not in this version yet; it routes "single" and "fallback"
        "#]],
    );
    check(
        "strategy: {mode: single, sticky: {on: user}}\ntargets:\n  - virtual_key: demo\n    concurrency: {queue_size: 1}\n  - virtual_key: groq\nplugins: [{name: p, stage: on_error, enabled: true}]\nobservability: {tracing: {sample_ratio: 1.0}}\nbatch_target: demo\n",
        expect![[r#"
            single demo groq
            inert: line 4: targets[0].concurrency: the concurrency limit is accepted and does nothing in this version
            inert: line 5: targets[1].virtual_key: provider "groq" is accepted and does nothing in this version
            line 1: strategy.sticky: has no effect under mode "single"
            line 1: strategy.mode: "single" uses the first target only; unused: groq
            inert: line 6: plugins[0]: plugin "p" is accepted and does nothing in this version
            inert: line 8: batch_target: batch_target is accepted and does nothing in this version
            inert: line 7: observability.tracing: tracing is accepted and does nothing in this version
        "#]],
    );
}

#[test]
fn without_a_mode_it_is_single() {
    let config = Config::parse("targets: [{virtual_key: demo}]").unwrap();
    assert_eq!(config.strategy.mode, Mode::Single);
}
