//! Routes within routes, and calls of a route by name.

use super::check;
use expect_test::expect;

/// Two fallbacks that share a target, under an experiment that always draws the second.
const EXPERIMENT: &str = "\
strategy:
  mode: ab-test
  ab_variants: [{target_key: route/old, weight: 0, label: control}, {target_key: new, weight: 1, label: trial}]
targets: [route/old, {route: new}, z]
routes:
  old: {strategy: {mode: fallback}, targets: [a, b]}
  new: {strategy: {mode: fallback}, targets: [c, b]}
";

#[test]
fn a_target_in_two_branches_is_asked_once_as_the_first_branch_says() {
    check(
        EXPERIMENT,
        "a=m b=m c=m z=m",
        "m",
        expect!["new/c new/b old/a z [trial]"],
    );
    check(
        EXPERIMENT,
        "a=m b=m c=n z=m",
        "m",
        expect!["new/b old/a z -c(model) [trial]"],
    );
    check(
        EXPERIMENT,
        "a=m b=m c=m z=m",
        "m route=old",
        expect!["old/a old/b -z(not in route) -c(not in route)"],
    );
}

#[test]
fn a_route_of_which_nobody_can_serve_is_no_variant() {
    // Nothing to draw: what is left is asked without a label.
    check(
        EXPERIMENT,
        "a=m b=n c=n z=m",
        "m",
        expect!["old/a z -b(model) -c(model)"],
    );
    let named = "\
strategy:
  mode: ab-test
  ab_variants: [{target_key: route/one, weight: 99, label: x}, {target_key: c, weight: 1, label: y}]
targets: [route/one, c]
routes:
  one: {strategy: {mode: single}, targets: [a, b]}
";
    // `b` could, and the route would never ask it.
    check(named, "a=n b=m c=m", "m", expect!["c -a(model) -b(not named) [y]"]);
    let priced = named.replace("mode: single", "mode: cost-optimized, unpriced_strategy: skip");
    check(&priced, "a=m b=n c=m", "m", expect!["c -a(unpriced) -b(model) [y]"]);
    check(
        &priced,
        "a=m b=m $1/1 c=n",
        "m",
        expect!["one/b -c(model) -a(unpriced) [x]"],
    );
}

#[test]
fn the_label_is_that_of_the_draw_nearest_to_the_first_target() {
    let inner = "\
strategy: {mode: ab-test, ab_variants: [{target_key: FIRST, weight: 1, label: outer}]}
targets: [a, route/trial]
routes:
  trial: {strategy: {mode: ab-test, ab_variants: [{target_key: b, weight: 1, label: inner}]}, targets: [c, b]}
";
    check(
        &inner.replace("FIRST", "trial"),
        "a=m b=m c=m",
        "m",
        expect!["trial/b trial/c a [inner]"],
    );
    // A draw among the stand-ins assigns nothing.
    check(
        &inner.replace("FIRST", "a"),
        "a=m b=m c=m",
        "m",
        expect!["a trial/b trial/c [outer]"],
    );
    check(
        &inner.replace("FIRST", "a"),
        "a=n b=m c=m",
        "m",
        expect!["trial/b trial/c -a(model) [inner]"],
    );
}

#[test]
fn a_named_mode_stays_inside_what_it_names() {
    let pinned = "\
strategy:
  mode: conditional
  conditions: [{key: user, value: ann, target_keys: [fast]}]
targets: [z, route/fast]
routes:
  fast: {strategy: {mode: least-latency}, targets: [a, b, z]}
";
    check(
        pinned,
        "z=m a=m 20ms b=m 10ms",
        "m user=bob",
        expect!["z -a(not named) -b(not named)"],
    );
    check(
        pinned,
        "z=m 90ms a=m 20ms b=m 10ms",
        "m user=ann",
        expect!["fast/b fast/a fast/z"],
    );
    check(
        pinned,
        "z=m a=n b=n",
        "m user=ann",
        expect!["fast/z -a(model) -b(model)"],
    );
    let single = "\
strategy: {mode: single}
targets: [route/fast, z]
routes:
  fast: {strategy: {mode: fallback}, targets: [a, b]}
";
    check(single, "z=m a=m b=m", "m", expect!["fast/a fast/b -z(not named)"]);
    check(
        single,
        "z=m a=m b=m !header",
        "m",
        expect!["fast/a -z(not named) -b(header)"],
    );
}

#[test]
fn a_route_is_as_fast_and_as_cheap_as_its_best() {
    let routed = |mode: &str| {
        format!(
            "strategy: {{mode: {mode}}}\ntargets: [z, route/pair]\n\
             routes: {{pair: {{strategy: {{mode: fallback}}, targets: [a, b]}}}}\n"
        )
    };
    check(
        &routed("least-latency"),
        "z=m 20ms a=m 90ms b=m 10ms",
        "m",
        expect!["pair/a pair/b z"],
    );
    check(
        &routed("least-latency"),
        "z=m 20ms a=m 90ms b=n 10ms",
        "m",
        expect!["z pair/a -b(model)"],
    );
    check(
        &routed("cost-optimized"),
        "z=m $2 a=m $9 b=m $1",
        "m",
        expect!["pair/a pair/b z"],
    );
    check(
        &routed("cost-optimized"),
        "z=m $2 a=m $9 b=m $1 !header",
        "m",
        expect!["z pair/a -b(header)"],
    );
    check(
        &routed("health-weighted"),
        "z=m 50%/9ms a=m 0% b=m 90%/9ms",
        "m",
        expect!["pair/a pair/b z"],
    );
    check(&routed("fallback"), "z=* a=n b=m", "m", expect!["pair/b z -a(model)"]);
}

/// `route/fast` means model `quick`; one place says its own.
const MODELS: &str = "\
strategy: {mode: fallback}
targets: [a, b]
routes:
  fast:
    model: quick
    strategy: {mode: fallback}
    targets: [a, {virtual_key: b, model: tiny}, {virtual_key: c, model_map: {quick: c-quick}}, route/deep]
  deep:
    strategy: {mode: fallback}
    targets: [d]
  bare:
    strategy: {mode: fallback}
    targets: [{virtual_key: b, model: tiny}, c, d, any]
";

#[test]
fn a_call_of_a_route_means_its_model() {
    let world = "a=quick b=none c=none d=quick any=*";
    check(
        MODELS,
        world,
        "route/fast",
        expect!["fast/a:quick fast/b:tiny fast/c:c-quick deep/d:quick -any(not in route)"],
    );
    // Without a model only places that say their own have one: the name of a route means nothing upstream.
    check(
        MODELS,
        world,
        "route/bare",
        expect!["bare/b:tiny -a(not in route) -c(no model) -d(no model) -any(no model)"],
    );
    check(
        MODELS,
        world,
        "route/deep",
        expect!["-a(not in route) -b(not in route) -c(not in route) -d(no model) -any(not in route)"],
    );
}

#[test]
fn a_model_that_is_named_goes_through_a_route_as_it_is() {
    let world = "a=quick b=none c=none d=m any=*";
    check(
        MODELS,
        world,
        "m route=fast",
        expect!["fast/b:tiny deep/d -a(model) -c(model) -any(not in route)"],
    );
    check(
        MODELS,
        world,
        "m route=bare",
        expect!["bare/b:tiny bare/d bare/any -a(not in route) -c(model)"],
    );
    check(
        MODELS,
        "a=m b=m c=m d=m any=*",
        "m",
        expect!["a b -c(not in route) -d(not in route) -any(not in route)"],
    );
}

#[test]
fn names_are_mapped_per_target_and_a_place_goes_before_its_target() {
    let mapped = "\
strategy: {mode: fallback}
targets: [{virtual_key: a, model_map: {smart: big}}, {virtual_key: b, model_map: {smart: large}}, {virtual_key: c, models: [smart]}]
routes:
  other: {strategy: {mode: fallback}, targets: [{virtual_key: a, model_map: {smart: huge}}, b, {virtual_key: c, models: [wise]}]}
";
    check(mapped, "a=big b=large c=x", "smart", expect!["a:big b:large c"]);
    check(
        mapped,
        "a=big b=large c=x",
        "smart route=other",
        expect!["other/a:huge other/b:large other/c"],
    );
    check(
        mapped,
        "a=big b=large c=x",
        "wise route=other",
        expect!["other/c -a(model) -b(model)"],
    );
    check(
        mapped,
        "a=big b=large c=x",
        "wise",
        expect!["-a(model) -b(model) -c(model)"],
    );
}
