//! `strategy`.

use super::{check, parse};
use crate::config::{Blend, Mode, Unpriced};
use crate::routing::{Sticky, StickyOn};
use expect_test::expect;
use std::time::Duration;

#[test]
fn modes_are_known_by_name() {
    check(
        "strategy:\n  mode: weighted\ntargets: [demo]\n",
        expect![[r#"
        line 2: strategy.mode: unknown strategy mode "weighted"; there are single, fallback, load-balance, least-latency, cost-optimized, conditional, content-based, ab-test, health-weighted
    "#]],
    );
    check(
        "strategy:\n  mode: least-latancy\ntargets: [demo]\n",
        expect![[r#"
        line 2: strategy.mode: unknown strategy mode "least-latancy"; did you mean "least-latency"?
    "#]],
    );
    check(
        "strategy:\n  mode: [single]\ntargets: [demo]\n",
        expect![[r#"
        line 2: strategy.mode: must be a text, not a list
    "#]],
    );
    check(
        "strategy: single\ntargets: [demo]\n",
        expect![[r#"
        line 1: strategy: must be a block of keys, not a text
    "#]],
    );
    check(
        "strategy: {mode: load-balance}\ntargets: [demo]\n",
        expect![[r#"
        default: load-balance demo
    "#]],
    );
    check(
        "strategy: {mode: loadbalance}\ntargets: [demo]\n",
        expect![[r#"
        default: load-balance demo
    "#]],
    );
    check(
        "strategy: {mode: least-latency}\ntargets: [demo]\n",
        expect![[r#"
        default: least-latency demo
    "#]],
    );
    check(
        "strategy: {mode: cost-optimized}\ntargets: [demo]\n",
        expect![[r#"
        default: cost-optimized demo
    "#]],
    );
    check(
        "strategy: {mode: health-weighted}\ntargets: [demo]\n",
        expect![[r#"
        default: health-weighted demo
    "#]],
    );
    check(
        "strategy: {}\ntargets: [demo]\n",
        expect![[r#"
        default: single demo
    "#]],
    );
    check(
        "targets: [demo]\n",
        expect![[r#"
        default: single demo
    "#]],
    );
}

#[test]
fn single_names_who_is_not_used() {
    check(
        "targets: [demo, openai]\nstrategy:\n  mode: single\n",
        expect![[r#"
        default: single demo openai
        line 3: strategy.mode: "single" uses the first target only; unused: openai
    "#]],
    );
}

#[test]
fn keys_of_other_modes_are_pointed_out() {
    check(
        "targets: [demo]\nstrategy:\n  mode: fallback\n  conditions: []\n  content_conditions: []\n  ab_variants: []\n  unpriced_strategy: skip\n  sticky: {on: user}\n  health: {}\n",
        expect![[r#"
            default: fallback demo
            line 4: strategy.conditions: has no effect under mode "fallback"
            line 5: strategy.content_conditions: has no effect under mode "fallback"
            line 6: strategy.ab_variants: has no effect under mode "fallback"
            line 7: strategy.unpriced_strategy: has no effect under mode "fallback"
            line 8: strategy.sticky: has no effect under mode "fallback"
            line 9: strategy.health: has no effect under mode "fallback"
        "#]],
    );
}

#[test]
fn conditions_are_required_and_checked() {
    check(
        "targets: [demo]\nstrategy:\n  mode: conditional\n",
        expect![[r#"
        line 2: strategy.conditions: is required under this mode: at least one rule
    "#]],
    );
    check(
        "targets: [demo]\nstrategy:\n  mode: conditional\n  conditions: []\n",
        expect![[r#"
            line 4: strategy.conditions: is required under this mode: at least one rule
        "#]],
    );
    check(
        "targets: [demo]\nstrategy:\n  mode: conditional\n  conditions: {key: model}\n",
        expect![[r#"
            line 4: strategy.conditions: must be a list, not a block of keys
        "#]],
    );
    check(
        "\
targets: [demo, openai]
aliases: {fast: gpt}
strategy:
  mode: conditional
  conditions:
    - {key: modle, value: m, target_key: demo}
    - {key: temperature, value: 1, target_key: demo}
    - {key: model, value: ' m', target_key: demo}
    - {key: model, value: '', target_key: demo}
    - {key: model_prefix, value: 'm ', target_key: demo}
    - {key: user, value: '', target_key: demo}
    - {key: model, value: fast, target_key: demo}
    - {key: stream, value: 'yes', target_key: demo}
    - {key: has_tools, value: 1, target_key: demo}
    - {key: metadata, value: x, target_key: demo}
    - {key: model, field: x, value: m, target_key: demo}
    - {key: model, target_key: demo}
    - {value: m, target_key: demo}
    - {key: model, value: m}
    - {key: model, value: m, target_key: demo, target_keys: [openai]}
    - {key: model, value: m, target_keys: []}
    - {key: model, value: m, target_keys: [demo, openai, demo]}
    - {key: model, value: m, target_key: groq}
    - {key: model, value: m, target_keys: [demo, groq]}
    - {key: model, value: [m], target_key: demo}
    - {key: model, value: m, target_key: demo, then: x}
    - model
",
        expect![[r#"
            line 6: strategy.conditions[0].key: "modle" is nothing a rule can look at; did you mean "model"?
            line 7: strategy.conditions[1].key: "temperature" is nothing a rule can look at; there are model, model_prefix, user, stream, has_tools, metadata, header, key, project, prompt_tokens, time
            line 8: strategy.conditions[2].value: must not be empty or have spaces around it
            line 9: strategy.conditions[3].value: must not be empty or have spaces around it
            line 10: strategy.conditions[4].value: must not be empty or have spaces around it
            line 11: strategy.conditions[5].value: must not be empty
            line 12: strategy.conditions[6].value: "fast" is an alias and would never match: aliases are resolved before; name the model it means
            line 13: strategy.conditions[7].value: must be true or false, not "yes"
            line 14: strategy.conditions[8].value: must be true or false, not "1"
            line 15: strategy.conditions[9].field: is required with `key: metadata`: name the field to look at
            line 16: strategy.conditions[10].field: goes with `key: metadata` and `key: header` only; remove it
            line 17: strategy.conditions[11].value: is required
            line 18: strategy.conditions[12]: needs exactly one of `key`, `all`, `any` and `not`
            line 19: strategy.conditions[13]: names nobody to ask; write `target_key` or `target_keys`
            line 20: strategy.conditions[14]: has both `target_key` and `target_keys`; keep one of them
            line 21: strategy.conditions[15].target_keys: must name at least one target
            line 22: strategy.conditions[16].target_keys[2]: "demo" stands in this chain already; name it once
            line 23: strategy.conditions[17].target_key: "groq" names no configured target; declared targets: demo, openai
            line 24: strategy.conditions[18].target_keys[1]: "groq" names no configured target; declared targets: demo, openai
            line 25: strategy.conditions[19].value: must be a text, not a list
            line 26: strategy.conditions[20].then: is not a key of this block; known here: all, any, not, key, field, value, target_key, target_keys
            line 27: strategy.conditions[21]: must be a block of keys, not a text
        "#]],
    );
}

#[test]
fn conditions_look_at_headers_keys_projects_lengths_and_the_clock() {
    check(
        "\
targets: [demo]
strategy:
  mode: conditional
  conditions:
    - {key: header, value: x, target_key: demo}
    - {key: header, field: X-A, value: ' x', target_key: demo}
    - {key: key, value: '', target_key: demo}
    - {key: project, value: ' p ', target_key: demo}
    - {key: prompt_tokens, value: many, target_key: demo}
    - {key: prompt_tokens, value: '>= -1', target_key: demo}
    - {key: time, value: '8-18', target_key: demo}
    - {key: time, value: '08:00-18:00 CET', target_key: demo}
    - {key: time, value: '08:00-08:00', target_key: demo}
",
        expect![[r#"
            line 5: strategy.conditions[0].field: is required with `key: header`: name the field to look at
            line 6: strategy.conditions[1].value: must not be empty or have spaces around it
            line 7: strategy.conditions[2].value: must not be empty or have spaces around it
            line 8: strategy.conditions[3].value: must not be empty or have spaces around it
            line 9: strategy.conditions[4].value: "many" is no comparison; write such as ">= 8000" or "< 1000"
            line 10: strategy.conditions[5].value: ">= -1" is no comparison; write such as ">= 8000" or "< 1000"
            line 11: strategy.conditions[6].value: "8-18" is no time of day; write such as "22:00-06:00" (UTC) or "08:00-18:00 +01:00"
            line 12: strategy.conditions[7].value: "08:00-18:00 CET" is no time of day; write such as "22:00-06:00" (UTC) or "08:00-18:00 +01:00"
            line 13: strategy.conditions[8].value: "08:00-08:00" is no time of day; write such as "22:00-06:00" (UTC) or "08:00-18:00 +01:00"
        "#]],
    );
    check(
        "\
targets: [demo]
strategy:
  mode: conditional
  conditions:
    - {key: header, field: X-A, value: x, target_key: demo}
    - {key: key, value: ci, target_key: demo}
    - {key: project, value: shop, target_key: demo}
    - {key: prompt_tokens, value: '>= 8000', target_key: demo}
    - {key: prompt_tokens, value: 8000, target_key: demo}
    - {key: time, value: 22:00-06:00, target_key: demo}
    - {key: stream, value: true, target_key: demo}
    - {key: user, value: ' bob', target_key: demo}
",
        expect![[r#"
            default: conditional demo
        "#]],
    );
}

#[test]
fn conditions_are_nested_within_reason() {
    check(
        "\
targets: [demo]
aliases: {fast: gpt}
strategy:
  mode: conditional
  conditions:
    - {all: [], target_key: demo}
    - {any: {key: model}, target_key: demo}
    - {not: [{key: model, value: m}], target_key: demo}
    - {not: {key: model, value: m}, key: model, value: m, target_key: demo}
    - {all: [{key: model, value: m}], any: [{key: model, value: m}], target_key: demo}
    - {all: [{key: model, value: fast}, {key: modle, value: m}, {}], target_key: demo}
    - {all: [{key: model, value: m, target_key: demo}], target_key: demo}
    - {all: [{key: model, value: m}], value: m, target_key: demo}
",
        expect![[r#"
            line 6: strategy.conditions[0].all: must hold at least one condition
            line 7: strategy.conditions[1].any: must be a list, not a block of keys
            line 8: strategy.conditions[2].not: must be a block of keys, not a list
            line 9: strategy.conditions[3]: needs exactly one of `key`, `all`, `any` and `not`
            line 10: strategy.conditions[4]: needs exactly one of `key`, `all`, `any` and `not`
            line 11: strategy.conditions[5].all[0].value: "fast" is an alias and would never match: aliases are resolved before; name the model it means
            line 11: strategy.conditions[5].all[1].key: "modle" is nothing a rule can look at; did you mean "model"?
            line 11: strategy.conditions[5].all[2]: needs exactly one of `key`, `all`, `any` and `not`
            line 12: strategy.conditions[6].all[0].target_key: is not a key of this block; known here: all, any, not, key, field, value
            line 13: strategy.conditions[7].value: is not a key of this block; known here: all, any, not, key, target_key, target_keys
        "#]],
    );
    let nested = |deep: usize| {
        let (open, close) = ("{not: ".repeat(deep - 1), "}".repeat(deep - 1));
        format!(
            "targets: [demo]\nstrategy:\n  mode: conditional\n  conditions:\n    - not: {open}{{key: model, value: m}}{close}\n      target_key: demo\n"
        )
    };
    check(
        &nested(8),
        expect![[r#"
        default: conditional demo
    "#]],
    );
    check(
        &nested(9),
        expect![[r#"
        line 5: strategy.conditions[0].not.not.not.not.not.not.not.not.not: is nested more than 8 deep; make the rule simpler
    "#]],
    );
}

#[test]
fn content_conditions_are_required_and_checked() {
    check(
        "targets: [demo]\nstrategy:\n  mode: content-based\n",
        expect![[r#"
        line 2: strategy.content_conditions: is required under this mode: at least one rule
    "#]],
    );
    check(
        "\
targets: [demo]
strategy:
  mode: content-based
  content_conditions:
    - {type: prompt_contains, value: '', target_key: demo}
    - {type: prompt_not_contains, value: ' ', target_key: demo}
    - {type: prompt_regex, value: '', target_key: demo}
    - {type: prompt_regex, value: '(', target_key: demo}
    - {type: prompt_regex, value: '(?=x)', target_key: demo}
    - {type: prompt_regex, value: '(\\w{1000}){1000}', target_key: demo}
    - {type: contains, value: x, target_key: demo}
    - {type: contains, target_key: nobody}
    - {value: x, target_key: demo}
    - {type: prompt_contains, value: x}
    - {key: model, type: prompt_contains, value: x, target_key: demo}
",
        expect![[r#"
            line 5: strategy.content_conditions[0].value: must not be empty: it would match everything
            line 6: strategy.content_conditions[1].value: must not be empty: it would match everything
            line 7: strategy.content_conditions[2].value: must not be empty: it would match everything
            line 8: strategy.content_conditions[3].value: is no pattern that can be used: unclosed group
            line 9: strategy.content_conditions[4].value: is no pattern that can be used: look-around, including look-ahead and look-behind, is not supported
            line 10: strategy.content_conditions[5].value: is no pattern that can be used: Compiled regex exceeds size limit of 1048576 bytes.
            line 11: strategy.content_conditions[6].type: "contains" is not known; use prompt_contains, prompt_not_contains or prompt_regex
            line 12: strategy.content_conditions[7].value: is required
            line 12: strategy.content_conditions[7].type: "contains" is not known; use prompt_contains, prompt_not_contains or prompt_regex
            line 12: strategy.content_conditions[7].target_key: "nobody" names no configured target; declared targets: demo
            line 13: strategy.content_conditions[8].type: is required; use prompt_contains, prompt_not_contains or prompt_regex
            line 14: strategy.content_conditions[9]: names nobody to ask; write `target_key` or `target_keys`
            line 15: strategy.content_conditions[10].key: is not a key of this block; known here: type, value, target_key, target_keys
        "#]],
    );
}

#[test]
fn variants_are_required_and_checked() {
    check(
        "targets: [demo]\nstrategy:\n  mode: ab-test\n",
        expect![[r#"
        line 2: strategy.ab_variants: is required under this mode: at least one variant
    "#]],
    );
    check(
        "targets: [demo]\nstrategy:\n  mode: ab-test\n  ab_variants: []\n",
        expect![[r#"
            line 4: strategy.ab_variants: is required under this mode: at least one variant
        "#]],
    );
    check(
        "\
targets: [demo, openai]
strategy:
  mode: ab-test
  ab_variants:
    - {target_key: demo, weight: -1, label: a}
    - {target_key: demo, weight: 1, label: b}
    - target_key: openai
      weight: x
      label: B
    - {target_key: groq, weight: 1, label: c}
    - {target_key: openai, weight: 1}
    - {weight: 1, label: ' '}
",
        expect![[r#"
            line 5: strategy.ab_variants[0].weight: must be at least 0, not -1
            line 6: strategy.ab_variants[1].target_key: "demo" is a variant already; keep one of them
            line 8: strategy.ab_variants[2].weight: must be a number, not a text
            line 9: strategy.ab_variants[2].label: "B" is another variant's label; give each its own
            line 10: strategy.ab_variants[3].target_key: "groq" names no configured target; declared targets: demo, openai
            line 11: strategy.ab_variants[4].label: is required: answers are told apart by it
            line 11: strategy.ab_variants[4].target_key: "openai" is a variant already; keep one of them
            line 12: strategy.ab_variants[5].target_key: "" names no configured target; declared targets: demo, openai
            line 12: strategy.ab_variants[5].label: is required: answers are told apart by it
        "#]],
    );
    check(
        "targets: [demo, openai]\nstrategy:\n  mode: ab-test\n  ab_variants:\n    - {target_key: demo, weight: 0, label: a}\n    - {target_key: openai, label: b}\n",
        expect![[r#"
            line 4: strategy.ab_variants: has no positive weight; give at least one variant more than 0
        "#]],
    );
    check(
        "targets: [demo, openai]\nstrategy:\n  mode: ab-test\n  ab_variants:\n    - {target_key: demo, weight: 0, label: a}\n    - {target_key: openai, weight: 0.5, label: b}\n",
        expect![[r#"
            default: ab-test demo openai
        "#]],
    );
}

#[test]
fn what_has_no_price_is_treated_in_one_of_three_ways() {
    check(
        "targets: [demo]\nstrategy:\n  mode: cost-optimized\n  unpriced_strategy: ignore\n",
        expect![[r#"
            line 4: strategy.unpriced_strategy: "ignore" is none of fallback, skip and allow
        "#]],
    );
    for (written, want) in [
        ("", Unpriced::Fallback),
        (", unpriced_strategy: fallback", Unpriced::Fallback),
        (", unpriced_strategy: skip", Unpriced::Skip),
        (", unpriced_strategy: allow", Unpriced::Allow),
    ] {
        let config = parse(&format!(
            "targets: [demo]\nstrategy: {{mode: cost-optimized{written}}}\n"
        ));
        let Mode::CostOptimized { unpriced } = config.routes[0].strategy.mode else {
            panic!("{written}");
        };
        assert_eq!(unpriced, want);
    }
}

#[test]
fn statuses_of_failover_are_the_providers_fault() {
    check(
        "targets: [demo]\nstrategy:\n  failover_on_status_codes: [400, 401, 403, 404, 422, 418, 99, 600, x]\n",
        expect![[r#"
            line 3: strategy.failover_on_status_codes[6]: must be an HTTP status from 100 to 599
            line 3: strategy.failover_on_status_codes[7]: must be an HTTP status from 100 to 599
            line 3: strategy.failover_on_status_codes[8]: must be an HTTP status from 100 to 599
            line 3: strategy.failover_on_status_codes: 400 says that the request itself is wrong, on every target; remove it from the list
            line 3: strategy.failover_on_status_codes: 401 says that the request itself is wrong, on every target; remove it from the list
            line 3: strategy.failover_on_status_codes: 403 says that the request itself is wrong, on every target; remove it from the list
            line 3: strategy.failover_on_status_codes: 404 says that the request itself is wrong, on every target; remove it from the list
            line 3: strategy.failover_on_status_codes: 422 says that the request itself is wrong, on every target; remove it from the list
        "#]],
    );
    let config = parse("targets: [demo]\nstrategy: {failover_on_status_codes: [409, 100, 599]}\n");
    assert_eq!(config.routes[0].strategy.failover_on_status_codes, [409, 100, 599]);
}

#[test]
fn sticky_says_on_what_and_how_long() {
    check(
        "targets: [demo]\nstrategy:\n  mode: load-balance\n  sticky: user\n",
        expect![[r#"
            line 4: strategy.sticky: must be a block of keys, not a text
        "#]],
    );
    for (written, want) in [
        (
            "{}",
            expect![[r#"
            line 4: strategy.sticky.on: is required; use user, session or header
        "#]],
        ),
        (
            "{on: ip}",
            expect![[r#"
            line 5: strategy.sticky.on: "ip" is not known; use user, session or header
        "#]],
        ),
        (
            "{on: header}",
            expect![[r#"
            line 4: strategy.sticky.field: is required with `on: header`: name the header, such as "X-Tenant"
        "#]],
        ),
        (
            "{on: user, field: x}",
            expect![[r#"
            line 5: strategy.sticky.field: goes with `on: header` only; remove it
        "#]],
        ),
        (
            "{on: user, ttl: 0s}",
            expect![[r#"
            line 5: strategy.sticky.ttl: must be longer than zero; leave it out for no bound
        "#]],
        ),
        (
            "{on: user, ttl: 60}",
            expect![[r#"
            line 5: strategy.sticky.ttl: must be a time with its unit, such as "30s", "1m30s" or "500ms"
        "#]],
        ),
        (
            "{on: user, for: 1h}",
            expect![[r#"
            line 5: strategy.sticky.for: is not a key of this block; known here: field, on, ttl
        "#]],
        ),
    ] {
        check(
            &format!("targets: [demo]\nstrategy:\n  mode: load-balance\n  sticky:\n    {written}\n"),
            want,
        );
    }
    let hour = Some(Duration::from_secs(3600));
    for (written, on, ttl) in [
        ("on: user, ttl: 1h", StickyOn::User, hour),
        ("on: session", StickyOn::Session, None),
        (
            "on: header, field: X-Tenant",
            StickyOn::Header("x-tenant".to_owned()),
            None,
        ),
    ] {
        let config = parse(&format!(
            "targets: [demo]\nstrategy: {{mode: ab-test, sticky: {{{written}}}, ab_variants: [{{target_key: demo, weight: 1, label: x}}]}}\n"
        ));
        let Mode::AbTest { sticky, .. } = &config.routes[0].strategy.mode else {
            panic!("{written}");
        };
        assert_eq!(sticky, &Some(Sticky { on, ttl }));
    }
}

#[test]
fn health_is_a_blend() {
    check(
        "targets: [demo]\nstrategy:\n  mode: health-weighted\n  health: {success: 0, latency: 0}\n",
        expect![[r#"
            line 4: strategy.health: weighs neither success nor latency; give one of them more than 0
        "#]],
    );
    check(
        "targets: [demo]\nstrategy:\n  mode: health-weighted\n  health: {success: -1, speed: 1}\n",
        expect![[r#"
            line 4: strategy.health.success: must be at least 0, not -1
            line 4: strategy.health.speed: is not a key of this block; known here: success, latency
        "#]],
    );
    let config = parse("targets: [demo]\nstrategy: {mode: health-weighted, health: {latency: 0.5}}\n");
    let Mode::HealthWeighted { blend } = config.routes[0].strategy.mode else {
        panic!("another mode");
    };
    assert_eq!(
        blend,
        Blend {
            success: 0.7,
            latency: 0.5
        }
    );
}

#[test]
fn keys_of_other_modes_are_read_as_strictly() {
    check(
        "\
targets: [demo, openai]
aliases: {fast: gpt}
strategy:
  mode: fallback
  conditions:
    - {key: modle, value: m, target_key: demo}
    - {key: model, value: fast, target_key: groq}
    - {key: model, value: m, target_key: demo, then: x}
  content_conditions:
    - {type: prompt_regex, value: '(', target_key: demo}
    - {type: prompt_contains, value: x, target_key: groq}
  ab_variants:
    - {target_key: groq, weight: 1, label: a}
    - {target_key: demo, weight: x, label: b, share: 1}
  unpriced_strategy: ignore
  sticky:
    on: ip
    for: 1h
  health:
    success: -1
    speed: 1
",
        expect![[r#"
            line 6: strategy.conditions[0].key: "modle" is nothing a rule can look at; did you mean "model"?
            line 7: strategy.conditions[1].value: "fast" is an alias and would never match: aliases are resolved before; name the model it means
            line 7: strategy.conditions[1].target_key: "groq" names no configured target; declared targets: demo, openai
            line 8: strategy.conditions[2].then: is not a key of this block; known here: all, any, not, key, field, value, target_key, target_keys
            line 10: strategy.content_conditions[0].value: is no pattern that can be used: unclosed group
            line 11: strategy.content_conditions[1].target_key: "groq" names no configured target; declared targets: demo, openai
            line 13: strategy.ab_variants[0].target_key: "groq" names no configured target; declared targets: demo, openai
            line 14: strategy.ab_variants[1].weight: must be a number, not a text
            line 14: strategy.ab_variants[1].share: is not a key of this block; known here: target_key, weight, label
            line 15: strategy.unpriced_strategy: "ignore" is none of fallback, skip and allow
            line 17: strategy.sticky.on: "ip" is not known; use user, session or header
            line 18: strategy.sticky.for: is not a key of this block; known here: field, on, ttl
            line 20: strategy.health.success: must be at least 0, not -1
            line 21: strategy.health.speed: is not a key of this block; known here: success, latency
        "#]],
    );
    for (key, want) in [
        (
            "conditions",
            expect![[r#"
            line 4: strategy.conditions: must be a list, not a number
        "#]],
        ),
        (
            "content_conditions",
            expect![[r#"
            line 4: strategy.content_conditions: must be a list, not a number
        "#]],
        ),
        (
            "ab_variants",
            expect![[r#"
            line 4: strategy.ab_variants: must be a list, not a number
        "#]],
        ),
        (
            "unpriced_strategy",
            expect![[r#"
            line 4: strategy.unpriced_strategy: must be a text, not a number
        "#]],
        ),
        (
            "sticky",
            expect![[r#"
            line 4: strategy.sticky: must be a block of keys, not a number
        "#]],
        ),
        (
            "health",
            expect![[r#"
            line 4: strategy.health: must be a block of keys, not a number
        "#]],
        ),
    ] {
        check(
            &format!("targets: [demo]\nstrategy:\n  mode: single\n  {key}: 1.5\n"),
            want,
        );
    }
}

#[test]
fn a_mode_that_uses_a_key_reads_it_once() {
    check(
        "targets: [demo]\nstrategy:\n  mode: ab-test\n  sticky: {on: ip}\n  ab_variants: [{target_key: groq, weight: 1, label: a}]\n",
        expect![[r#"
            line 4: strategy.sticky.on: "ip" is not known; use user, session or header
            line 5: strategy.ab_variants[0].target_key: "groq" names no configured target; declared targets: demo
        "#]],
    );
    // One that is not known uses none, and all of them are read.
    check(
        "targets: [demo]\nstrategy:\n  mode: conditionl\n  conditions: [{key: model, value: m, target_key: groq}]\n  sticky: {on: ip}\n",
        expect![[r#"
            line 3: strategy.mode: unknown strategy mode "conditionl"; did you mean "conditional"?
            line 4: strategy.conditions[0].target_key: "groq" names no configured target; declared targets: demo
            line 5: strategy.sticky.on: "ip" is not known; use user, session or header
        "#]],
    );
}

#[test]
fn keys_of_other_modes_that_hold_are_pointed_out() {
    check(
        "\
targets: [demo]
strategy:
  mode: least-latency
  conditions: [{key: model, value: m, target_key: demo}]
  content_conditions: [{type: prompt_contains, value: x, target_key: demo}]
  ab_variants: [{target_key: demo, weight: 1, label: a}]
  unpriced_strategy: allow
  sticky: {on: header, field: X-Tenant}
  health: {success: 1}
",
        expect![[r#"
            default: least-latency demo
            line 4: strategy.conditions: has no effect under mode "least-latency"
            line 5: strategy.content_conditions: has no effect under mode "least-latency"
            line 6: strategy.ab_variants: has no effect under mode "least-latency"
            line 7: strategy.unpriced_strategy: has no effect under mode "least-latency"
            line 8: strategy.sticky: has no effect under mode "least-latency"
            line 9: strategy.health: has no effect under mode "least-latency"
        "#]],
    );
}

#[test]
fn headers_have_a_name_and_hold_no_credential() {
    check(
        "\
targets: [demo]
strategy:
  mode: conditional
  conditions:
    - {key: header, field: 'X Foo:', value: x, target_key: demo}
    - {key: header, field: ' X-Foo', value: x, target_key: demo}
    - {key: header, field: Größe, value: x, target_key: demo}
    - {key: header, field: Authorization, value: x, target_key: demo}
    - {key: header, field: x-api-key, value: x, target_key: demo}
    - {key: header, field: API-Key, value: x, target_key: demo}
    - {key: header, field: x-goog-api-key, value: x, target_key: demo}
    - {key: header, field: Cookie, value: x, target_key: demo}
    - {not: {key: header, field: proxy-authorization, value: x}, target_key: demo}
    - {key: header, field: cookie, value: ' x', target_key: demo}
    - {key: header, field: \"x!#$%&'*+-.^_`|~9\", value: x, target_key: demo}
    - {key: metadata, field: 'authorization', value: x, target_key: demo}
",
        expect![[r#"
            line 5: strategy.conditions[0].field: is not a header name; write it without spaces and colons, such as "X-Tenant"
            line 6: strategy.conditions[1].field: is not a header name; write it without spaces and colons, such as "X-Tenant"
            line 7: strategy.conditions[2].field: is not a header name; write it without spaces and colons, such as "X-Tenant"
            line 8: strategy.conditions[3].field: "Authorization" carries a credential, which is not to be looked at; name another header
            line 9: strategy.conditions[4].field: "x-api-key" carries a credential, which is not to be looked at; name another header
            line 10: strategy.conditions[5].field: "API-Key" carries a credential, which is not to be looked at; name another header
            line 11: strategy.conditions[6].field: "x-goog-api-key" carries a credential, which is not to be looked at; name another header
            line 12: strategy.conditions[7].field: "Cookie" carries a credential, which is not to be looked at; name another header
            line 13: strategy.conditions[8].not.field: "proxy-authorization" carries a credential, which is not to be looked at; name another header
            line 14: strategy.conditions[9].field: "cookie" carries a credential, which is not to be looked at; name another header
            line 14: strategy.conditions[9].value: must not be empty or have spaces around it
        "#]],
    );
    for (field, want) in [
        (
            "'X Foo:'",
            expect![[r#"
            line 6: strategy.sticky.field: is not a header name; write it without spaces and colons, such as "X-Tenant"
        "#]],
        ),
        (
            "'X-Tenant '",
            expect![[r#"
            line 6: strategy.sticky.field: is not a header name; write it without spaces and colons, such as "X-Tenant"
        "#]],
        ),
        (
            "Authorization",
            expect![[r#"
            line 6: strategy.sticky.field: "Authorization" carries a credential, which is not to be looked at; name another header
        "#]],
        ),
        (
            "X-API-Key",
            expect![[r#"
            line 6: strategy.sticky.field: "X-API-Key" carries a credential, which is not to be looked at; name another header
        "#]],
        ),
        (
            "api-key",
            expect![[r#"
            line 6: strategy.sticky.field: "api-key" carries a credential, which is not to be looked at; name another header
        "#]],
        ),
        (
            "x-goog-api-key",
            expect![[r#"
            line 6: strategy.sticky.field: "x-goog-api-key" carries a credential, which is not to be looked at; name another header
        "#]],
        ),
        (
            "cookie",
            expect![[r#"
            line 6: strategy.sticky.field: "cookie" carries a credential, which is not to be looked at; name another header
        "#]],
        ),
        (
            "Proxy-Authorization",
            expect![[r#"
            line 6: strategy.sticky.field: "Proxy-Authorization" carries a credential, which is not to be looked at; name another header
        "#]],
        ),
    ] {
        check(
            &format!(
                "targets: [demo]\nstrategy:\n  mode: load-balance\n  sticky:\n    on: header\n    field: {field}\n"
            ),
            want,
        );
    }
}

#[test]
fn shares_have_a_finite_sum() {
    check(
        "\
targets: [demo, openai]
strategy:
  mode: ab-test
  ab_variants:
    - {target_key: demo, weight: 1.0e+308, label: a}
    - {target_key: openai, weight: 1000000001, label: b}
",
        expect![[r#"
            line 5: strategy.ab_variants[0].weight: must be at most 1000000000; weights count only relative to each other
            line 6: strategy.ab_variants[1].weight: must be at most 1000000000; weights count only relative to each other
        "#]],
    );
    check(
        "targets: [demo]\nstrategy:\n  mode: health-weighted\n  health:\n    success: 1.0e+308\n    latency: 1.0e+308\n",
        expect![[r#"
            line 5: strategy.health.success: must be at most 1000000000; weights count only relative to each other
            line 6: strategy.health.latency: must be at most 1000000000; weights count only relative to each other
        "#]],
    );
}
