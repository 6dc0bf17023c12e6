//! `routes` and `projects`.

use super::check;
use expect_test::expect;
use std::fmt::Write as _;

#[test]
fn a_route_is_named_in_one_of_three_ways() {
    check(
        "\
strategy: {mode: fallback}
targets: [route/one, {route: two, weight: 2}, three, demo]
routes:
  one: {targets: [openai]}
  two: {targets: [demo]}
  three: {strategy: {mode: load-balance}, targets: [{virtual_key: demo, weight: 3}, {route: route/one, weight: 1}]}
",
        expect![[r#"
            default: fallback route/one route/two*2 route/three demo
            one: single openai
            two: single demo
            three: load-balance demo*3 route/one*1
        "#]],
    );
    // A provider's name means the provider.
    check(
        "targets: [groq]\nroutes:\n  groq: {targets: [demo]}\n",
        expect![[r#"
            default: single groq
            groq: single demo
            inert: line 1: targets[0]: provider "groq" is accepted and does nothing in this version
        "#]],
    );
}

#[test]
fn rules_name_a_route_by_its_name() {
    check(
        "\
strategy:
  mode: conditional
  conditions:
    - {key: model, value: m, target_keys: [fast, demo]}
    - {key: model, value: n, target_key: route/fast}
    - {key: model, value: o, target_keys: [fast, route/fast]}
    - {key: model, value: p, target_key: slow}
targets: [demo, fast]
routes:
  fast: {targets: [demo]}
",
        expect![[r#"
            line 6: strategy.conditions[2].target_keys[1]: "route/fast" stands in this chain already; name it once
            line 7: strategy.conditions[3].target_key: "slow" names no configured target; declared targets: demo, route/fast
        "#]],
    );
}

#[test]
fn routes_that_are_not_there() {
    check(
        "\
targets:
  - route/fats
  - weight: 1
    route: slow
  - {virtual_key: fast}
  - {virtual_key: demo, route: fast}
  - {route: fast, model: m}
  - {route: fast}
routes:
  fast:
    targets: [demo]
    model: route/other
",
        expect![[r#"
            line 2: targets[0]: "route/fats" names no route; there are default, fast
            line 4: targets[1].route: "route/slow" names no route; there are default, fast
            line 5: targets[2].virtual_key: "fast" names no provider but a route; write `route: fast`
            line 6: targets[3]: has both `virtual_key` and `route`; keep one of them
            line 7: targets[4].model: is not a key of this block; known here: route, virtual_key, weight
            line 8: targets[5].route: "route/fast" is a target already; keep one of them
            line 12: routes.fast.model: must be a model, not a route; name the other route among the targets
        "#]],
    );
}

#[test]
fn routes_have_proper_names_and_targets() {
    check(
        "\
targets: [demo]
routes:
  'a b': {targets: [demo]}
  default: {targets: [demo]}
  none: {}
  empty:
    strategy: {mode: fallback}
    targets: []
  list: [demo]
  odd: {targets: [nobody], tagrets: []}
  inner: {strategy: {mode: conditional}, targets: [demo]}
  twice: {targets: [demo, demo]}
",
        expect![[r#"
            line 3: routes.a b: is no name for a route: letters, digits, "-", "_" and "."
            line 4: routes.default: is the name of the file's own `strategy` and `targets`; give this route another
            line 5: routes.none.targets: at least one target is required, for example `targets: [{virtual_key: openai}]`
            line 8: routes.empty.targets: at least one target is required, for example `targets: [{virtual_key: openai}]`
            line 9: routes.list: must be a block of keys, not a list
            line 10: routes.odd.targets[0]: "nobody" names no provider; providers here: openai, anthropic, gemini, vertex-ai, bedrock, cohere, demo
            line 10: routes.odd.tagrets: is not a key of this block; did you mean "targets"?
            line 11: routes.inner.strategy.conditions: is required under this mode: at least one rule
            line 12: routes.twice.targets[1]: "demo" is a target already; keep one of them
        "#]],
    );
    check(
        "targets: [demo]\nroutes: [fast]\n",
        expect![[r#"
        line 2: routes: must be a block of keys, not a list
    "#]],
    );
}

#[test]
fn routes_do_not_go_round_in_circles() {
    check(
        "targets: [demo]\nroutes:\n  a:\n    targets: [route/a]\n",
        expect![[r#"
            line 4: routes.a.targets: a -> a goes round in a circle; take one of them out
        "#]],
    );
    check(
        "\
targets: [demo, route/a]
routes:
  a: {targets: [demo, route/b]}
  b:
    strategy: {mode: fallback}
    targets: [route/c, demo]
  c: {targets: [route/b]}
  d: {targets: [route/e]}
  e: {targets: [route/d]}
",
        expect![[r#"
            line 6: routes.b.targets: b -> c -> b goes round in a circle; take one of them out
            line 8: routes.d.targets: d -> e -> d goes round in a circle; take one of them out
        "#]],
    );
    check(
        "targets: [route/a]\nroutes:\n  a: {targets: [route/default]}\n",
        expect![[r#"
            line 1: targets: default -> a -> default goes round in a circle; take one of them out
        "#]],
    );
    // Two ways to the same route are no circle.
    check(
        "targets: [route/a]\nroutes:\n  a: {strategy: {mode: fallback}, targets: [route/b, route/c]}\n  b: {targets: [route/c]}\n  c: {targets: [demo]}\n",
        expect![[r#"
            default: single route/a
            a: fallback route/b route/c
            b: single route/c
            c: single demo
        "#]],
    );
}

#[test]
fn chains_of_routes_are_bounded() {
    let chain = |long: usize| {
        let mut text = "targets: [route/r1]\nroutes:\n".to_owned();
        for i in 1..long {
            let next = if i + 1 == long {
                "demo".to_owned()
            } else {
                format!("route/r{}", i + 1)
            };
            writeln!(text, "  r{i}: {{targets: [{next}]}}").unwrap();
        }
        text
    };
    check(
        &chain(8),
        expect![[r#"
        default: single route/r1
        r1: single route/r2
        r2: single route/r3
        r3: single route/r4
        r4: single route/r5
        r5: single route/r6
        r6: single route/r7
        r7: single demo
    "#]],
    );
    check(
        &chain(9),
        expect![[r#"
        line 1: targets: default -> r1 -> r2 -> r3 -> r4 -> r5 -> r6 -> r7 -> r8 is longer than 8 routes; make it shorter
    "#]],
    );
    check(
        &chain(11),
        expect![[r#"
        line 4: routes.r2.targets: r2 -> r3 -> r4 -> r5 -> r6 -> r7 -> r8 -> r9 -> r10 is longer than 8 routes; make it shorter
    "#]],
    );
}

#[test]
fn what_a_route_comes_to_is_bounded() {
    // Each layer names three routes of the next, which have five targets in the end.
    let mut text = "targets: [demo]\nroutes:\n".to_owned();
    for layer in 0..6 {
        for i in 0..3 {
            let below: Vec<String> = match layer {
                5 => ["demo", "openai", "groq", "xai", "qwen"].map(str::to_owned).into(),
                _ => (0..3).map(|i| format!("route/l{}-{i}", layer + 1)).collect(),
            };
            let names = below.join(", ");
            writeln!(
                text,
                "  l{layer}-{i}: {{strategy: {{mode: fallback}}, targets: [{names}]}}"
            )
            .unwrap();
        }
    }
    check(
        &text,
        expect![[r#"
        line 3: routes.l0-0.targets: comes to 1215 targets with its routes; 1000 is the most
        line 4: routes.l0-1.targets: comes to 1215 targets with its routes; 1000 is the most
        line 5: routes.l0-2.targets: comes to 1215 targets with its routes; 1000 is the most
    "#]],
    );
}

#[test]
fn what_is_shared_stands_in_one_place() {
    check(
        "\
targets:
  - {virtual_key: demo, quota: {rpm: 1}}
routes:
  fast:
    strategy: {mode: fallback}
    targets:
      - virtual_key: demo
        quota: {rpm: 2}
        concurrency: {max_concurrency: 1}
        circuit_breaker: {timeout: 1s}
        retry: {attempts: 2}
        weight: 1
      - {virtual_key: openai, quota: {rpm: 2}}
  slow:
    targets: [{virtual_key: openai, circuit_breaker: {}}]
",
        expect![[r#"
            line 8: routes.fast.targets[0].quota: belongs to the target itself, which is shared by all routes; write it at targets[0]
            line 9: routes.fast.targets[0].concurrency: belongs to the target itself, which is shared by all routes; write it at targets[0]
            line 10: routes.fast.targets[0].circuit_breaker: belongs to the target itself, which is shared by all routes; write it at targets[0]
            line 15: routes.slow.targets[0].circuit_breaker: belongs to the target itself, which is shared by all routes; write it at routes.fast.targets[1]
        "#]],
    );
}

#[test]
fn aliases_and_maps_do_not_meet_in_routes_either() {
    check(
        "targets: [demo]\naliases: {fast: x}\nroutes:\n  r:\n    targets:\n      - virtual_key: demo\n        model_map: {fast: y}\n",
        expect![[r#"
            line 7: routes.r.targets[0].model_map.fast: is an alias too and would never match; remove one of them
        "#]],
    );
}

#[test]
fn projects_have_a_route_and_an_allow_list() {
    check(
        "\
targets: [demo]
routes: {fast: {targets: [openai]}}
projects:
  shop: {route: fast, only: [demo, openai]}
  lab: {only: [demo]}
  none:
",
        expect![[r#"
            default: single demo
            fast: single openai
            project lab: None Some(["demo"])
            project none: None None
            project shop: Some("fast") Some(["demo", "openai"])
            line 3: projects: calls that are passed on run in the name of the gateway's account: a key of one project can list and delete what another's has there, such as files; say with pass_through what is passed on
        "#]],
    );
    check(
        "\
targets: [demo]
projects:
  a: {route: fast}
  b: {only: []}
  c:
    only:
      - demo
      - openai
  d: {only: demo}
  e: {rout: default}
  f: []
",
        expect![[r#"
            line 3: projects.a.route: "fast" names no route; there are default
            line 4: projects.b.only: allows nothing; name a target, or leave it out to allow all
            line 8: projects.c.only[1]: "openai" names no configured target; declared targets: demo
            line 9: projects.d.only: must be a list, not a text
            line 10: projects.e.rout: is not a key of this block; did you mean "route"?
            line 11: projects.f: must be a block of keys, not a list
        "#]],
    );
}

#[test]
fn projects_have_a_name_that_a_key_can_have() {
    check(
        "\
targets: [demo]
projects:
  \" q \": {only: [demo]}
  \"\": {}
  \" \":
  \"r\\t\":
    only: [demo]
  a b: {only: [demo]}
",
        expect![[r#"
            line 3: projects. q : is no name for a project, and no key could belong to it; write one without spaces around it
            line 4: projects.: is no name for a project, and no key could belong to it; write one without spaces around it
            line 5: projects. : is no name for a project, and no key could belong to it; write one without spaces around it
            line 6: projects.r	: is no name for a project, and no key could belong to it; write one without spaces around it
        "#]],
    );
}

#[test]
fn an_allow_list_without_a_value_is_no_absence() {
    check(
        "targets: [demo]\nprojects:\n  p: {only: }\n  q:\n    route: default\n    only:\n  r: {only: null}\n  s: {only: ~}\n  t: {only: []}\n",
        expect![[r#"
            line 3: projects.p.only: allows nothing; name a target, or leave it out to allow all
            line 6: projects.q.only: allows nothing; name a target, or leave it out to allow all
            line 7: projects.r.only: allows nothing; name a target, or leave it out to allow all
            line 8: projects.s.only: allows nothing; name a target, or leave it out to allow all
            line 9: projects.t.only: allows nothing; name a target, or leave it out to allow all
        "#]],
    );
    // Elsewhere it is one.
    check(
        "targets: [demo]\nprojects:\n  p: {route: }\n",
        expect![[r#"
            default: single demo
            project p: None None
            line 2: projects: calls that are passed on run in the name of the gateway's account: a key of one project can list and delete what another's has there, such as files; say with pass_through what is passed on
        "#]],
    );
}
