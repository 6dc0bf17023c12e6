//! `targets`.

use super::{check, parse};
use crate::breaker::Policy;
use crate::config::{Asking, Breaker, Concurrency, Retry, Reverify};
use crate::quota::Limits;
use expect_test::expect;
use std::time::Duration;

#[test]
fn a_target_names_a_provider_once() {
    check(
        "\
targets:
  - virtual_key: openai
  - weight: 1
    virtual_key: openai
  - virtual_key: ''
  - virtual_key: ' '
  - {}
  - ''
  - openai
  - virtual_key: opnai
  - anthropc
  - weight: 1
    virtual_key: nobody-knows-it
  - virtual_key: demo
    model: gpt
    modell: gpt
  - [demo]
",
        expect![[r#"
            line 4: targets[1].virtual_key: "openai" is a target already; keep one of them
            line 5: targets[2].virtual_key: is required: name a provider, such as "openai"
            line 6: targets[3].virtual_key: is required: name a provider, such as "openai"
            line 7: targets[4].virtual_key: is required: name a provider, such as "openai"
            line 8: targets[5]: is required: name a provider, such as "openai"
            line 9: targets[6]: "openai" is a target already; keep one of them
            line 10: targets[7].virtual_key: "opnai" names no provider; did you mean "openai"?
            line 11: targets[8]: "anthropc" names no provider; did you mean "anthropic"?
            line 13: targets[9].virtual_key: "nobody-knows-it" names no provider; providers here: openai, anthropic, gemini, vertex-ai, bedrock, cohere, demo
            line 16: targets[10].modell: is not a key of this block; did you mean "models"?
            line 17: targets[11]: must be a block of keys, not a list
        "#]],
    );
    check(
        "targets: [openai, {virtual_key: demo}, {virtual_key: groq}]\nstrategy: {mode: fallback}\n",
        expect![[r#"
            default: fallback openai demo groq
            inert: line 1: targets[2].virtual_key: provider "groq" is accepted and does nothing in this version
        "#]],
    );
}

#[test]
fn weights_are_shares() {
    check(
        "targets:\n  - virtual_key: demo\n    weight: -0.5\n  - {virtual_key: openai, weight: .inf}\n",
        expect![[r#"
            line 4: non-finite float `.inf` rejected by the configured policy at line 4, column 35
        "#]],
    );
    for mode in ["load-balance", "health-weighted"] {
        check(
            &format!(
                "strategy:\n  mode: {mode}\ntargets:\n  - {{virtual_key: demo, weight: 0}}\n  - {{virtual_key: openai}}\n"
            ),
            expect![[r#"
                line 2: strategy.mode: shares by weight, and every weight is 0; give one of the targets a positive weight
            "#]],
        );
    }
    check(
        "strategy: {mode: load-balance}\ntargets:\n  - {virtual_key: demo, weight: 1}\n  - virtual_key: openai\n",
        expect![[r#"
            default: load-balance demo*1 openai
            line 4: targets[1].virtual_key: "openai" has no weight while others have one, which counts as 0: it is drained; write its weight
        "#]],
    );
    // A mode that does not draw by weight has nothing to say of them.
    check(
        "strategy: {mode: fallback}\ntargets:\n  - {virtual_key: demo, weight: 0}\n  - virtual_key: openai\n",
        expect![[r#"
            default: fallback demo*0 openai
        "#]],
    );
}

#[test]
fn models_are_exact_ids() {
    check(
        "targets:\n  - virtual_key: demo\n    models:\n      - gpt-*\n      - gpt-?\n      - ' m'\n      - ''\n      - m\n      - m\n      - 4\n      - [x]\n",
        expect![[r#"
            line 4: targets[0].models[0]: "gpt-*" has a wildcard; write each model id in full
            line 5: targets[0].models[1]: "gpt-?" has a wildcard; write each model id in full
            line 6: targets[0].models[2]: must be a model id without spaces around it
            line 7: targets[0].models[3]: must be a model id without spaces around it
            line 9: targets[0].models[5]: "m" is listed twice; keep one of them
            line 11: targets[0].models[7]: must be a text, not a list
        "#]],
    );
    check(
        "targets:\n  - virtual_key: demo\n    model: route/fast\n    model_map:\n      a: ''\n      '': b\n      c: [d]\n",
        expect![[r#"
            line 3: targets[0].model: must be a model, not a route; name the route as a target of its own
            line 5: targets[0].model_map.a: must map a name to a model id; neither may be empty
            line 6: targets[0].model_map.: must map a name to a model id; neither may be empty
            line 7: targets[0].model_map.c: must be a text, not a list
        "#]],
    );
    check(
        "targets:\n  - virtual_key: demo\n    model_map: [a]\n",
        expect![[r#"
            line 3: targets[0].model_map: must be a block of keys, not a list
        "#]],
    );
    let config = parse("targets: [{virtual_key: demo, model: own, models: [m, 4], model_map: {smart: big}}]");
    assert_eq!(config.targets[0].models, ["m", "4"]);
    assert_eq!(config.targets[0].model_map["smart"], "big");
    let place = &config.routes[0].places[0];
    assert_eq!(place.model.as_deref(), Some("own"));
    let map: Vec<(&str, &str)> = place.model_map.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(map, [("4", "4"), ("m", "m"), ("smart", "big")]);
}

#[test]
fn times_have_units_and_take_time() {
    check(
        "targets:\n  - virtual_key: demo\n    timeout: 0s\n    first_token_timeout: 10\n    idle_timeout: soon\n",
        expect![[r#"
            line 3: targets[0].timeout: must be longer than zero; leave it out for no bound
            line 4: targets[0].first_token_timeout: must be a time with its unit, such as "30s", "1m30s" or "500ms"
            line 5: targets[0].idle_timeout: must be a time with its unit, such as "30s", "1m30s" or "500ms"
        "#]],
    );
}

#[test]
fn bounds_of_all_targets_hold_unless_one_has_its_own() {
    let config = parse(
        "first_token_timeout: 5s\nidle_timeout: 10s\ntargets: [openai, {virtual_key: demo, timeout: 1m, first_token_timeout: 1s, idle_timeout: 2s}]\nroutes: {r: {targets: [{virtual_key: demo}]}}\n",
    );
    let seconds = Duration::from_secs;
    let all = Asking {
        timeout: None,
        first_token_timeout: Some(seconds(5)),
        idle_timeout: seconds(10),
        retry: Retry::default(),
    };
    let places = &config.routes[0].places;
    assert_eq!(places[0].asking, all);
    let own = Asking {
        timeout: Some(seconds(60)),
        first_token_timeout: Some(seconds(1)),
        idle_timeout: seconds(2),
        retry: Retry::default(),
    };
    assert_eq!(places[1].asking, own);
    // Patience is of the place, not of the target.
    assert_eq!(config.routes[1].places[0].asking, all);
    assert_eq!(parse("targets: [demo]").routes[0].places[0].asking, Asking::default());
    assert_eq!(Asking::default().idle_timeout, seconds(120));
}

#[test]
fn retries_are_counted_with_the_first() {
    check(
        "targets:\n  - virtual_key: demo\n    retry:\n      attempts: -1\n      on_status_codes: [99, 600, '500']\n      initial_backoff_ms: -5\n",
        expect![[r#"
            line 4: targets[0].retry.attempts: must be from 0 to 100, not -1
            line 5: targets[0].retry.on_status_codes[0]: must be an HTTP status from 100 to 599
            line 5: targets[0].retry.on_status_codes[1]: must be an HTTP status from 100 to 599
            line 5: targets[0].retry.on_status_codes[2]: must be an HTTP status from 100 to 599
            line 6: targets[0].retry.initial_backoff_ms: must be from 0 to 600000, not -5
        "#]],
    );
    check(
        "targets:\n  - virtual_key: demo\n    retry: 3\n",
        expect![[r#"
        line 3: targets[0].retry: must be a block of keys, not a number
    "#]],
    );
    let retry = |written: &str| {
        let config = parse(&format!("targets: [{{virtual_key: demo, retry: {{{written}}}}}]"));
        config.routes[0].places[0].asking.retry.clone()
    };
    let usual = Retry {
        attempts: 1,
        on_status_codes: Vec::new(),
        initial_backoff: Duration::from_millis(100),
    };
    assert_eq!(retry(""), usual);
    assert_eq!(retry("attempts: 0"), usual);
    let written = Retry {
        attempts: 3,
        on_status_codes: vec![429, 503],
        initial_backoff: Duration::ZERO,
    };
    assert_eq!(
        retry("attempts: 3, on_status_codes: [429, 503], initial_backoff_ms: 0"),
        written
    );
}

#[test]
fn a_breaker_has_thresholds() {
    check(
        "targets:\n  - virtual_key: demo\n    circuit_breaker:\n      failure_threshold: 0\n      success_threshold: -1\n      max_half_threshold: -1\n      timeout: -1s\n      ramp: 5\n",
        expect![[r#"
            line 4: targets[0].circuit_breaker.failure_threshold: must be from 1 to 4294967295, not 0
            line 5: targets[0].circuit_breaker.success_threshold: must be from 0 to 4294967295, not -1
            line 6: targets[0].circuit_breaker.max_half_threshold: must be from 0 to 4294967295, not -1
            line 7: targets[0].circuit_breaker.timeout: must be a time with its unit, such as "30s", "1m30s" or "500ms"
            line 8: targets[0].circuit_breaker.ramp: must be a time with its unit, such as "30s", "1m30s" or "500ms"
        "#]],
    );
    let breaker = |written: &str| {
        let config = parse(&format!(
            "targets: [{{virtual_key: demo, circuit_breaker: {{{written}}}}}]"
        ));
        config.targets[0].breaker.clone().unwrap()
    };
    let usual = Breaker {
        policy: Policy::default(),
        ramp: Duration::from_secs(5),
        reverify: None,
    };
    assert_eq!(breaker(""), usual);
    assert_eq!(
        breaker("success_threshold: 0, max_half_threshold: 0, timeout: 0s"),
        usual
    );
    let written = Breaker {
        policy: Policy {
            failure_threshold: 2,
            success_threshold: 3,
            max_half_open: 4,
            timeout: Duration::from_secs(10),
        },
        ramp: Duration::ZERO,
        reverify: None,
    };
    let text = "failure_threshold: 2, success_threshold: 3, max_half_threshold: 4, timeout: 10s, ramp: 0s";
    assert_eq!(breaker(text), written);
    assert_eq!(parse("targets: [demo]").targets[0].breaker, None);
}

#[test]
fn reverification_is_a_listing_or_a_call() {
    for (written, want) in [
        (
            "ping",
            expect![[r#"
            line 5: targets[0].circuit_breaker.reverify: must be a block of keys, not a text
        "#]],
        ),
        (
            "{}",
            expect![[r#"
            line 5: targets[0].circuit_breaker.reverify.by: must be "models" (lists the upstream's models) or "call" (a call of one token)
        "#]],
        ),
        (
            "{by: ping}",
            expect![[r#"
            line 5: targets[0].circuit_breaker.reverify.by: must be "models" (lists the upstream's models) or "call" (a call of one token)
        "#]],
        ),
        (
            "{by: call}",
            expect![[r#"
            line 5: targets[0].circuit_breaker.reverify.model: is required with `by: call`: name the model of the minimal call
        "#]],
        ),
        (
            "{by: models, model: m}",
            expect![[r#"
            line 5: targets[0].circuit_breaker.reverify.model: goes with `by: call` only; remove it
        "#]],
        ),
        (
            "{by: models, every: 0s}",
            expect![[r#"
            line 5: targets[0].circuit_breaker.reverify.every: must be longer than zero; leave it out for no bound
        "#]],
        ),
        (
            "{by: models, each: 1s}",
            expect![[r#"
            line 5: targets[0].circuit_breaker.reverify.each: is not a key of this block; known here: by, model, every
        "#]],
        ),
    ] {
        check(
            &format!(
                "targets:\n  - virtual_key: demo\n    circuit_breaker:\n      timeout: 1s\n      reverify: {written}\n"
            ),
            want,
        );
    }
    let reverify = |written: &str| {
        let text = format!("targets: [{{virtual_key: demo, circuit_breaker: {{reverify: {written}}}}}]");
        parse(&text).targets[0].breaker.clone().unwrap().reverify.unwrap()
    };
    let every = Duration::from_secs(10);
    assert_eq!(reverify("models"), Reverify { model: None, every });
    assert_eq!(reverify("{by: models}"), Reverify { model: None, every });
    let call = Reverify {
        model: Some("tiny".to_owned()),
        every: Duration::from_secs(60),
    };
    assert_eq!(reverify("{by: call, model: tiny, every: 1m}"), call);
}

#[test]
fn concurrency_and_quota_are_bounded() {
    check(
        "targets:\n  - virtual_key: demo\n    concurrency: {max_concurrency: 0, queue_size: -1}\n    quota: {rpm: 0, tpm: x}\n  - virtual_key: openai\n    concurrency: {max_concurrency: 10001, queue_size: 10001}\n    quota: {}\n  - virtual_key: groq\n    quota: {rps: 1}\n",
        expect![[r#"
            line 3: targets[0].concurrency.max_concurrency: must be from 1 to 10000, not 0
            line 3: targets[0].concurrency.queue_size: must be from 0 to 10000, not -1
            line 4: targets[0].quota.rpm: must be at least 1, not 0
            line 4: targets[0].quota.tpm: must be a whole number, not a text
            line 6: targets[1].concurrency.max_concurrency: must be from 1 to 10000, not 10001
            line 6: targets[1].concurrency.queue_size: must be from 0 to 10000, not 10001
            line 7: targets[1].quota: limits nothing; give rpm, rpd, tpm or tpd
            line 9: targets[2].quota: limits nothing; give rpm, rpd, tpm or tpd
            line 9: targets[2].quota.rps: is not a key of this block; did you mean "rpd"?
        "#]],
    );
    check(
        "targets:\n  - virtual_key: demo\n    concurrency:\n      queue_size: 1\n",
        expect![[r#"
            default: single demo
            line 3: targets[0].concurrency: has no effect without `max_concurrency`
        "#]],
    );
    let config = parse(
        "targets: [{virtual_key: demo, concurrency: {max_concurrency: 10000}, quota: {rpm: 1, rpd: 2, tpm: 3, tpd: 4}}, {virtual_key: openai, concurrency: {max_concurrency: 1, queue_size: 0}}]\nstrategy: {mode: fallback}\n",
    );
    let (first, second) = (&config.targets[0], &config.targets[1]);
    assert_eq!(
        first.concurrency,
        Some(Concurrency {
            most: 10_000,
            queue: 1_000
        })
    );
    assert_eq!(second.concurrency, Some(Concurrency { most: 1, queue: 0 }));
    let limits = Limits {
        rpm: Some(1),
        rpd: Some(2),
        tpm: Some(3),
        tpd: Some(4),
    };
    assert_eq!(first.quota, limits);
    assert_eq!(second.quota, Limits::default());
}

#[test]
fn weights_have_a_finite_sum() {
    check(
        "\
strategy: {mode: load-balance}
targets:
  - virtual_key: demo
    weight: 1.0e+308
  - {virtual_key: openai, weight: 0}
  - {virtual_key: groq, weight: 1000000000}
routes:
  r:
    targets:
      - {route: s, weight: 1e308}
      - {virtual_key: demo, weight: 1000000001}
  s: {targets: [demo]}
",
        expect![[r#"
            line 4: targets[0].weight: must be at most 1000000000; weights count only relative to each other
            line 10: routes.r.targets[0].weight: must be at most 1000000000; weights count only relative to each other
            line 11: routes.r.targets[1].weight: must be at most 1000000000; weights count only relative to each other
        "#]],
    );
    check(
        "strategy: {mode: load-balance}\ntargets: [{virtual_key: demo, weight: 1000000000}]\n",
        expect![[r#"
            default: load-balance demo*1000000000
        "#]],
    );
}
