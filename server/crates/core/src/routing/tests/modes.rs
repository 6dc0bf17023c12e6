//! Each mode alone.

use super::check;
use expect_test::expect;

#[test]
fn single_is_the_first_target_and_no_other() {
    check("mode: single", "a=m b=m", "m", expect!["a -b(not named)"]);
    check("mode: single", "a=n b=m", "m", expect!["-a(model) -b(not named)"]);
    check("mode: single", "a=*", "m", expect!["a"]);
    check("mode: single", "a=m w0 b=m w1", "m", expect!["a -b(not named)"]);
    check(
        "mode: single",
        "a=m !project b=m",
        "m",
        expect!["-a(project) -b(not named)"],
    );
    check("mode: ''", "a=m b=m", "m", expect!["a -b(not named)"]);
}

#[test]
fn fallback_is_every_target_that_serves_the_model_in_the_order_written() {
    check("mode: fallback", "a=m b=n c=*", "m", expect!["a c -b(model)"]);
    check("mode: fallback", "a=n b=n", "m", expect!["-a(model) -b(model)"]);
    check("mode: fallback", "b=m a=m", "m", expect!["b a"]);
    check("mode: fallback", "any=* a=n b=m", "m", expect!["b any -a(model)"]);
    check("mode: fallback", "one=* two=*", "m", expect!["one two"]);
    check("mode: fallback", "open=+ a=m any=*", "m", expect!["open a any"]);
    check("mode: fallback", "any=* open=+", "m", expect!["any open"]);
    check("mode: fallback", "a=m w0 b=m w9", "m", expect!["a b"]);
    check(
        "mode: fallback",
        "a=m !header b=m c=n !project",
        "m",
        expect!["b -a(header) -c(project)"],
    );
}

#[test]
fn load_balance_starts_by_weight_and_goes_round() {
    for mode in ["mode: load-balance", "mode: loadbalance"] {
        check(mode, "a=m w0 b=m w1 c=m w0", "m", expect!["b c a"]);
    }
    // Only what serves the model takes part.
    check(
        "mode: load-balance",
        "a=n w9 b=m w0 c=m w1",
        "m",
        expect!["c b -a(model)"],
    );
    // Drained, and reached all the same when nobody else is there.
    check(
        "mode: load-balance",
        "a=m w0 b=n w1 c=m w0",
        "m",
        expect!["a c -b(model)"],
    );
    // A target that lists the model goes before one that takes anything, whatever their weights.
    check("mode: load-balance", "any=* w9 a=m w1", "m", expect!["a any"]);
    check("mode: load-balance", "any=* w9 a=m w0", "m", expect!["a any"]);
    check(
        "mode: load-balance",
        "a=m w1 !header b=m w0",
        "m",
        expect!["b -a(header)"],
    );
}

#[test]
fn least_latency_asks_the_unknown_first_and_then_the_fastest() {
    // Dice that do not explore: see the distributions for those that do.
    check(
        "mode: least-latency",
        "a=m 40ms b=m 20ms c=m 30ms",
        "m",
        expect!["b c a"],
    );
    check("mode: least-latency", "a=m 40ms b=m c=m 30ms", "m", expect!["b c a"]);
    check("mode: least-latency", "a=m 20ms b=m 20ms", "m", expect!["a b"]);
    check("mode: least-latency", "a=n 1ms b=m 20ms", "m", expect!["b -a(model)"]);
    check("mode: least-latency", "any=* 1ms b=m 20ms", "m", expect!["b any"]);
    check("mode: least-latency", "dead=m 0% b=m 20ms", "m", expect!["b dead"]);
    check(
        "mode: least-latency",
        "dead=m 0% new=m b=m 20ms",
        "m",
        expect!["new b dead"],
    );
}

#[test]
fn cost_optimized_counts_input_and_output() {
    let mode = "mode: cost-optimized";
    check(
        mode,
        "a=m $3/15 b=m $1/5 c=m $2/10",
        "m in=1000 out=1000",
        expect!["b c a"],
    );
    // Cheap to read and dear to write: what wins depends on how much is written.
    check(mode, "a=m $1/20 b=m $5/5", "m in=10000 out=1", expect!["a b"]);
    check(mode, "a=m $1/20 b=m $5/5", "m in=1000 out=1000", expect!["b a"]);
    // No limit stated counts as 256 tokens: 1000 * 1 + 256 * 20 > 1000 * 6 > 1000 * 1 + 255 * 19.6
    check(mode, "a=m $1/20 b=m $6/0", "m in=1000", expect!["b a"]);
    check(mode, "a=m $1/19.5 b=m $6/0", "m in=1000", expect!["a b"]);
    check(mode, "a=m $1/20 b=m $6/0", "m in=1000 out=256", expect!["b a"]);
    // Embeddings write nothing.
    check(mode, "a=m $1/20 b=m $6/0", "m in=1000 embed", expect!["a b"]);
    check(mode, "a=n $1/1 b=m $9/9", "m", expect!["b -a(model)"]);
    check(mode, "any=* $1/1 b=m $9/9", "m", expect!["b any"]);
}

#[test]
fn without_a_price_a_target_comes_last_or_not_at_all_or_first() {
    let world = "a=m b=m $3/15 c=m d=m $1/5";
    check("mode: cost-optimized", world, "m", expect!["d b a c"]);
    check(
        "mode: cost-optimized, unpriced_strategy: fallback",
        world,
        "m",
        expect!["d b a c"],
    );
    check(
        "mode: cost-optimized, unpriced_strategy: skip",
        world,
        "m",
        expect!["d b -a(unpriced) -c(unpriced)"],
    );
    check(
        "mode: cost-optimized, unpriced_strategy: skip",
        "a=m b=n c=n $1/1 d=m !header",
        "m",
        expect!["-a(unpriced) -b(model) -c(model) -d(header)"],
    );
    check(
        "mode: cost-optimized, unpriced_strategy: allow",
        "a=m $3/15 b=m",
        "m",
        expect!["b a"],
    );
    check("mode: cost-optimized", "a=m b=m", "m", expect!["a b"]);
}

#[test]
fn equal_prices_are_drawn_by_weight() {
    let mode = "mode: cost-optimized";
    check(mode, "a=m $1/1 w0 b=m $1/1 w5 c=m $0.5/0 w0", "m", expect!["c b a"]);
    check(mode, "a=m $1/1 w0 b=m $1/1 w0", "m", expect!["a b"]);
    // Free is a price, and what has none counts as free.
    check(
        "mode: cost-optimized, unpriced_strategy: allow",
        "a=m $0/0 w0 b=m w5",
        "m",
        expect!["b a"],
    );
}

const CONDITIONAL: &str = "mode: conditional, conditions: [\
    {key: model, value: m, target_key: b}, \
    {key: model_prefix, value: n, target_keys: [c, b]}]";

#[test]
fn conditional_is_the_chain_of_the_first_rule_that_holds() {
    let world = "a=m,n,o b=m,n,o c=m,n,o";
    check(CONDITIONAL, world, "m", expect!["b -a(not named) -c(not named)"]);
    check(CONDITIONAL, world, "n", expect!["c b -a(not named)"]);
    check(CONDITIONAL, world, "nn", expect!["-a(model) -b(model) -c(model)"]);
    // None holds: the first target, and no other.
    check(CONDITIONAL, world, "o", expect!["a -b(not named) -c(not named)"]);
    // The first that holds, not the best.
    let first = "mode: conditional, conditions: [\
        {key: model_prefix, value: m, target_key: c}, {key: model, value: m, target_key: b}]";
    check(first, world, "m", expect!["c -a(not named) -b(not named)"]);
}

#[test]
fn a_chain_is_a_hard_boundary() {
    // Nobody else steps in, even where nobody in the chain can serve.
    check(
        CONDITIONAL,
        "a=m b=n c=m",
        "m",
        expect!["-a(not named) -b(model) -c(not named)"],
    );
    check(CONDITIONAL, "a=n b=n c=m", "n", expect!["b -a(not named) -c(model)"]);
    check(
        CONDITIONAL,
        "a=m b=o c=o",
        "o",
        expect!["-a(model) -b(not named) -c(not named)"],
    );
    check(
        CONDITIONAL,
        "a=m b=m !project c=m",
        "m",
        expect!["-a(not named) -b(project) -c(not named)"],
    );
    check(
        CONDITIONAL,
        "a=n b=n c=n !header",
        "n",
        expect!["b -a(not named) -c(header)"],
    );
    // A chain is asked in its own order: who lists the model is no better than who takes anything.
    check(CONDITIONAL, "a=n b=n c=*", "n", expect!["c b -a(not named)"]);
}

const CONTENT: &str = "mode: content-based, content_conditions: [\
    {type: prompt_contains, value: Translate, target_key: b}, \
    {type: prompt_regex, value: '\\bfn \\w+', target_keys: [c, a]}]";

#[test]
fn content_based_is_the_chain_of_the_first_rule_that_holds() {
    let world = "a=m b=m c=m";
    check(
        CONTENT,
        world,
        "m prompt=please TRANSLATE this",
        expect!["b -a(not named) -c(not named)"],
    );
    check(CONTENT, world, "m prompt=fn main", expect!["c a -b(not named)"]);
    check(
        CONTENT,
        world,
        "m prompt=translate fn main",
        expect!["b -a(not named) -c(not named)"],
    );
    check(
        CONTENT,
        "a=m b=n c=m",
        "m prompt=translate",
        expect!["-a(not named) -b(model) -c(not named)"],
    );
    // None holds: all, in the order written.
    check(CONTENT, world, "m prompt=hello", expect!["a b c"]);
    check(CONTENT, "a=* b=n c=m", "m prompt=hello", expect!["c a -b(model)"]);
    check(
        CONTENT,
        "a=m b=m !header c=m",
        "m prompt=hello",
        expect!["a c -b(header)"],
    );
}

#[test]
fn without_a_prompt_content_based_is_the_first_that_can_serve_alone() {
    check(
        CONTENT,
        "a=m b=m c=m",
        "m embed",
        expect!["a -b(not named) -c(not named)"],
    );
    check(CONTENT, "a=n b=m c=m", "m embed", expect!["b -a(model) -c(not named)"]);
    check(
        CONTENT,
        "a=* b=m c=m",
        "m embed",
        expect!["b -a(not named) -c(not named)"],
    );
    check(
        CONTENT,
        "a=n b=n c=n",
        "m embed",
        expect!["-a(model) -b(model) -c(model)"],
    );
    // A restriction takes it away; it does not name the next.
    check(
        CONTENT,
        "a=m !header b=m c=m",
        "m embed",
        expect!["-a(header) -b(not named) -c(not named)"],
    );
    // A rule that forbids a word does not hold for want of words.
    let unless = "mode: content-based, content_conditions: \
        [{type: prompt_not_contains, value: secret, target_key: b}]";
    check(unless, "a=m b=m", "m embed", expect!["a -b(not named)"]);
    check(unless, "a=m b=m", "m prompt=hello", expect!["b -a(not named)"]);
    check(unless, "a=m b=m", "m prompt=top SECRET", expect!["a b"]);
}

/// Control has all the weight but in one case.
const AB: &str = "mode: ab-test, ab_variants: [\
    {target_key: b, weight: 10, label: control}, \
    {target_key: a, weight: 0, label: drained}]";

#[test]
fn ab_test_leads_with_the_drawn_variant_and_keeps_its_label() {
    check(AB, "a=m b=m c=m", "m", expect!["b a c [control]"]);
    // Drawn among those that can serve. A weight of 0 is never drawn, and still reached.
    check(AB, "a=m b=n c=m", "m", expect!["a c -b(model)"]);
    check(AB, "a=n b=n c=m", "m", expect!["c -a(model) -b(model)"]);
    check(AB, "a=m b=m !project c=m", "m", expect!["a c -b(project)"]);
    let both = "mode: ab-test, ab_variants: [\
        {target_key: a, weight: 1, label: x}, {target_key: b, weight: 99, label: y}]";
    check(both, "a=m b=n", "m", expect!["a -b(model) [x]"]);
    // Behind it, those that list the model go first.
    check(AB, "a=* b=m c=m", "m", expect!["b c a [control]"]);
    check(AB, "a=m b=* c=m", "m", expect!["b a c [control]"]);
}

#[test]
fn health_weighted_blends_success_and_speed() {
    let mode = "mode: health-weighted";
    check(mode, "a=m 90%/40ms b=m 100%/40ms c=m 50%/40ms", "m", expect!["b a c"]);
    // 0.7 * 0.9 + 0.3 * 1 > 0.7 * 1 + 0.3 * 0.1
    check(mode, "a=m 100%/400ms b=m 90%/40ms", "m", expect!["b a"]);
    check(
        "mode: health-weighted, health: {success: 1, latency: 0}",
        "a=m 100%/400ms b=m 90%/40ms",
        "m",
        expect!["a b"],
    );
    // Nothing known is as good as healthy and fast.
    check(mode, "a=m 99%/40ms b=m", "m", expect!["b a"]);
    check(mode, "a=m b=m c=m", "m", expect!["a b c"]);
    // Weights multiply.
    check(mode, "a=m w1 100%/40ms b=m w2 60%/40ms", "m", expect!["b a"]);
    check(mode, "any=* 100%/1ms b=m 10%/40ms", "m", expect!["b any"]);
    check(mode, "a=n 100%/1ms b=m 10%/40ms", "m", expect!["b -a(model)"]);
}

#[test]
fn who_never_succeeded_is_not_fast_and_who_is_drained_is_last() {
    check(
        "mode: health-weighted, health: {success: 0, latency: 1}",
        "a=m 0% b=m 50%/40ms c=m 50%/400ms",
        "m",
        expect!["b c a"],
    );
    check(
        "mode: health-weighted",
        "a=m w0 100%/1ms b=m w1 0%",
        "m",
        expect!["b a"],
    );
}
