//! Which requests a condition holds for.

use super::Request;
use crate::config::{Config, Mode};
use expect_test::{Expect, expect};

/// The condition as it is shown, and for each request whether it holds.
#[track_caller]
fn check(condition: &str, requests: &[&str], want: Expect) {
    let document =
        format!("strategy: {{mode: conditional, conditions: [{{{condition}, target_key: demo}}]}}\ntargets: [demo]");
    let config = Config::parse(&document).unwrap_or_else(|issues| panic!("{document}\n{issues:?}"));
    let Mode::Conditional { rules } = &config.routes[0].strategy.mode else {
        panic!("another mode");
    };
    let rule = &rules[0].when;
    let holds = |text: &&str| rule.holds(&Request::parse(text).facts());
    let (yes, no): (Vec<&str>, Vec<&str>) = requests.iter().partition(|text| holds(text));
    want.assert_eq(&format!("{rule} | yes: {} | no: {}", yes.join(", "), no.join(", ")));
}

#[test]
fn models_are_equal_or_begin_alike() {
    check(
        "key: model, value: gpt-4o",
        &["gpt-4o", "gpt-4o-mini", "GPT-4o"],
        expect!["model is gpt-4o | yes: gpt-4o | no: gpt-4o-mini, GPT-4o"],
    );
    check(
        "key: model_prefix, value: gpt-4o",
        &["gpt-4o", "gpt-4o-mini", "o1"],
        expect!["model begins with gpt-4o | yes: gpt-4o, gpt-4o-mini | no: o1"],
    );
}

#[test]
fn callers_are_known_by_user_key_and_project() {
    check(
        "key: user, value: ann",
        &["m user=ann", "m user=bob", "m"],
        expect!["user is ann | yes: m user=ann | no: m user=bob, m"],
    );
    check(
        "key: key, value: ci",
        &["m key=k1/ci", "m key=ci/night", "m key=k1/night", "m"],
        expect!["key is ci | yes: m key=k1/ci, m key=ci/night | no: m key=k1/night, m"],
    );
    check(
        "key: project, value: shop",
        &["m project=shop", "m project=lab", "m"],
        expect!["project is shop | yes: m project=shop | no: m project=lab, m"],
    );
}

#[test]
fn headers_and_metadata_have_names() {
    check(
        "key: header, field: X-Tenant, value: acme",
        &["m h:x-tenant=acme", "m h:x-tenant=Acme", "m h:x-other=acme", "m"],
        expect!["header x-tenant is acme | yes: m h:x-tenant=acme | no: m h:x-tenant=Acme, m h:x-other=acme, m"],
    );
    check(
        "key: metadata, field: tier, value: gold",
        &["m meta:tier=gold", "m meta:tier=tin", "m h:tier=gold"],
        expect!["metadata tier is gold | yes: m meta:tier=gold | no: m meta:tier=tin, m h:tier=gold"],
    );
}

#[test]
fn streams_and_tools_are_yes_or_no() {
    check(
        "key: stream, value: true",
        &["m stream", "m"],
        expect!["streamed | yes: m stream | no: m"],
    );
    check(
        "key: stream, value: 'false'",
        &["m stream", "m"],
        expect!["not streamed | yes: m | no: m stream"],
    );
    check(
        "key: has_tools, value: 'true'",
        &["m tools", "m"],
        expect!["has tools | yes: m tools | no: m"],
    );
    check(
        "key: has_tools, value: false",
        &["m tools", "m"],
        expect!["has no tools | yes: m | no: m tools"],
    );
}

#[test]
fn prompt_tokens_are_compared() {
    let requests = ["m in=7999", "m in=8000", "m in=8001"];
    for (value, want) in [
        (
            "< 8000",
            expect!["prompt tokens < 8000 | yes: m in=7999 | no: m in=8000, m in=8001"],
        ),
        (
            "<= 8000",
            expect!["prompt tokens <= 8000 | yes: m in=7999, m in=8000 | no: m in=8001"],
        ),
        (
            "=8000",
            expect!["prompt tokens = 8000 | yes: m in=8000 | no: m in=7999, m in=8001"],
        ),
        (
            ">= 8000",
            expect!["prompt tokens >= 8000 | yes: m in=8000, m in=8001 | no: m in=7999"],
        ),
        (
            "8000",
            expect!["prompt tokens >= 8000 | yes: m in=8000, m in=8001 | no: m in=7999"],
        ),
        (
            ">8000",
            expect!["prompt tokens > 8000 | yes: m in=8001 | no: m in=7999, m in=8000"],
        ),
    ] {
        check(&format!("key: prompt_tokens, value: '{value}'"), &requests, want);
    }
}

#[test]
fn a_time_of_day_may_go_over_midnight_and_has_a_zone() {
    let requests = ["m at=05:59", "m at=06:00", "m at=12:00", "m at=21:59", "m at=22:00"];
    check(
        "key: time, value: '22:00-06:00'",
        &requests,
        expect!["time is 22:00-06:00 UTC | yes: m at=05:59, m at=22:00 | no: m at=06:00, m at=12:00, m at=21:59"],
    );
    check(
        "key: time, value: '06:00-22:00'",
        &requests,
        expect!["time is 06:00-22:00 UTC | yes: m at=06:00, m at=12:00, m at=21:59 | no: m at=05:59, m at=22:00"],
    );
    check(
        "key: time, value: '06:00-12:00 +01:00'",
        &["m at=04:59", "m at=05:00", "m at=10:59", "m at=11:00"],
        expect!["time is 06:00-12:00 +01:00 | yes: m at=05:00, m at=10:59 | no: m at=04:59, m at=11:00"],
    );
    check(
        "key: time, value: '20:00-24:00 -05:30'",
        &["m at=01:29", "m at=01:30", "m at=05:29", "m at=05:30"],
        expect!["time is 20:00-24:00 -05:30 | yes: m at=01:30, m at=05:29 | no: m at=01:29, m at=05:30"],
    );
    // Long before 1970, and long after.
    check(
        "key: time, value: '00:00-01:00'",
        &["m at=-24:00", "m at=-24:-30", "m at=240000:30", "m at=240001:00"],
        expect!["time is 00:00-01:00 UTC | yes: m at=-24:00, m at=240000:30 | no: m at=-24:-30, m at=240001:00"],
    );
}

#[test]
fn conditions_are_combined() {
    let requests = ["m", "m stream", "m tools", "m stream tools"];
    check(
        "all: [{key: stream, value: true}, {key: has_tools, value: true}]",
        &requests,
        expect!["(streamed) and (has tools) | yes: m stream tools | no: m, m stream, m tools"],
    );
    check(
        "any: [{key: stream, value: true}, {key: has_tools, value: true}]",
        &requests,
        expect!["(streamed) or (has tools) | yes: m stream, m tools, m stream tools | no: m"],
    );
    check(
        "not: {key: stream, value: true}",
        &requests,
        expect!["not (streamed) | yes: m, m tools | no: m stream, m stream tools"],
    );
    check(
        "all: [{not: {any: [{key: stream, value: true}, {key: model, value: n}]}}, {key: has_tools, value: true}]",
        &["m tools", "n tools", "m stream tools", "m"],
        expect!["(not ((streamed) or (model is n))) and (has tools) | yes: m tools | no: n tools, m stream tools, m"],
    );
}
