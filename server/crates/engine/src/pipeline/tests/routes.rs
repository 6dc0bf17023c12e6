//! What a request, its key and its project say about where it goes.

use super::upstreams::*;
use super::{Ask, Rig, ask, config};
use switchyard_core::error::Kind;

fn rig() -> Rig {
    Rig::new(&config(
        &["a", "b", "c"],
        "aliases: {quick: route/fast}\n\
         strategy: {mode: fallback}\n\
         targets: [{virtual_key: a, model_map: {shared: up-a}}, b]\n\
         routes:\n\
         \x20 fast: {model: small, strategy: {mode: single}, targets: [{virtual_key: c, models: [small, m]}]}\n\
         \x20 mapped: {model: shared, targets: [{virtual_key: b, model_map: {shared: up-b}}]}\n\
         \x20 pinned: {targets: [{virtual_key: b, model: large}]}\n\
         \x20 nested: {strategy: {mode: fallback}, targets: [{route: fast}, {virtual_key: a, model: big}]}\n\
         \x20 bare: {targets: [a]}\n\
         projects:\n\
         \x20 team: {route: fast}\n\
         \x20 walled: {only: [b]}\n\
         \x20 both: {route: nested, only: [a]}\n",
    ))
}

/// Route, who chose it, and the order with each target's model.
fn way(rig: &Rig, ask: Ask) -> String {
    match rig.explain(ask) {
        Ok(explained) => {
            let order: Vec<String> = explained
                .order
                .iter()
                .map(|(target, model)| format!("{target}:{model}"))
                .collect();
            format!("{} by {}: {}", explained.route, explained.route_by, order.join(" "))
        }
        Err(error) => format!("{} {}", error.face().status, error.message),
    }
}

#[tokio::test(start_paused = true)]
async fn the_nearest_word_decides() {
    let rig = rig();
    let keyed = || ask().project("team").route_of_key("pinned");
    for (asked, want) in [
        (ask(), "default by default: a:m b:m"),
        (ask().project("team"), "fast by project: c:m"),
        (keyed(), "pinned by key: b:large"),
        (
            keyed().header("x-gateway-route", "nested"),
            "nested by header: c:m a:big",
        ),
        (
            keyed().header("x-gateway-route", "route/nested"),
            "nested by header: c:m a:big",
        ),
        (
            keyed().header("x-gateway-route", " default "),
            "default by header: a:m b:m",
        ),
        (
            keyed().header("x-gateway-route", "nested").model("route/mapped"),
            "mapped by model: b:up-b",
        ),
        (ask().model("route/nested"), "nested by model: c:small a:big"),
        (ask().model("route/pinned"), "pinned by model: b:large"),
        (ask().model("quick"), "fast by model: c:small"),
        (ask().model("shared"), "default by default: a:up-a b:shared"),
    ] {
        assert_eq!(way(&rig, asked.clone()), want);
        let first = want.split(": ").nth(1).unwrap().split(':').next().unwrap();
        assert_eq!(rig.tell(asked).await, format!("200 by {first} after 1"));
        assert_eq!(&*rig.last().route, want.split(' ').next().unwrap());
        let sent = rig.calls().remove(0);
        assert!(
            want.contains(&format!("{}:{}", sent.host, sent.model())),
            "{want}: {sent:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn names_that_do_not_exist_are_told_with_those_that_do() {
    let rig = rig();
    let routes = "default, fast, mapped, pinned, nested, bare";
    for (asked, want) in [
        (
            ask().model("route/nowhere"),
            format!("404 there is no route nowhere; routes here: {routes}"),
        ),
        (
            ask().header("x-gateway-route", "nowhere"),
            format!("400 X-Gateway-Route names no route: \"nowhere\"; routes here: {routes}"),
        ),
        (
            ask().route_of_key("gone"),
            format!("503 this key is bound to route gone, which is not configured; routes here: {routes}"),
        ),
        (
            ask().header("x-gateway-only", "a, nobody"),
            "400 X-Gateway-Only names no configured target: \"nobody\"; targets here: a, b, c".to_owned(),
        ),
        (
            ask().header("x-gateway-only", " , "),
            "400 X-Gateway-Only is empty: list the targets that may answer, or leave it out".to_owned(),
        ),
    ] {
        assert_eq!(way(&rig, asked.clone()), want);
        let told = rig.tell(asked).await;
        assert_eq!(told.split(' ').next(), want.split(' ').next(), "{told}");
        assert_eq!(rig.last().verdicts.len(), 3);
    }
    assert_eq!(rig.hosts(), "", "nobody was asked");
}

#[tokio::test(start_paused = true)]
async fn a_route_that_says_no_model_needs_one() {
    let rig = rig();
    let explained = rig.explain(ask().model("route/bare")).unwrap();
    let error = explained.error.unwrap();
    assert_eq!(
        (error.kind, error.param.as_deref()),
        (Kind::ModelNotFound, Some("model"))
    );
    assert_eq!(
        rig.words(&explained.verdicts),
        [
            "a excluded: route bare says no model for it, and none was asked for but the route itself",
            "b excluded: is not part of route bare",
            "c excluded: is not part of route bare"
        ]
    );
    assert_eq!(
        rig.tell(ask().model("route/bare")).await,
        "404 model_not_found by nobody after 0"
    );
    assert_eq!(
        rig.tell(ask().header("x-gateway-route", "bare")).await,
        "200 by a after 1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_nested_route_fails_over_into_its_siblings() {
    let rig = rig();
    rig.upstreams.on("c", status(503));
    assert_eq!(rig.tell(ask().model("route/nested")).await, "200 by a after 2");
    assert_eq!(
        rig.tell(ask().model("route/fast")).await,
        "502 upstream_error by c after 1"
    );
    let models: Vec<String> = rig.calls().iter().map(Sent::model).collect();
    assert_eq!(models, ["small", "big", "small"]);
}

#[tokio::test(start_paused = true)]
async fn only_narrows_and_never_widens() {
    let rig = rig();
    assert_eq!(
        way(&rig, ask().header("x-gateway-only", "b")),
        "default by default: b:m"
    );
    assert_eq!(
        way(
            &rig,
            ask().header("x-gateway-only", "b, c").header("x-gateway-only", "a")
        ),
        "default by default: a:m b:m"
    );
    rig.upstreams.on("b", status(503));
    assert_eq!(
        rig.tell(ask().header("x-gateway-only", "b")).await,
        "502 upstream_error by b after 1"
    );
    assert_eq!(
        rig.verdicts(),
        [
            "a excluded: X-Gateway-Only does not list it",
            "b failed: failed: the upstream answered 503 Service Unavailable",
            "c excluded: is not part of route default"
        ]
    );
    assert_eq!(
        rig.tell(ask().header("x-gateway-only", "c")).await,
        "400 invalid_request by nobody after 0"
    );
    assert_eq!(
        rig.last().error_message.unwrap(),
        "X-Gateway-Only leaves no target that serves the model m"
    );
}

#[tokio::test(start_paused = true)]
async fn a_project_uses_what_it_may() {
    let rig = rig();
    assert_eq!(way(&rig, ask().project("walled")), "default by default: b:m");
    assert_eq!(way(&rig, ask().project("both")), "nested by project: a:big");
    assert_eq!(
        way(&rig, ask().project("unknown")),
        "403 this key belongs to project unknown, which is not configured",
        "its allow-list may just have been renamed"
    );
    let refused = ask().project("walled").model("route/fast");
    assert_eq!(rig.tell(refused).await, "403 target_not_allowed by nobody after 0");
    assert_eq!(
        rig.verdicts(),
        [
            "a excluded: is not part of route fast",
            "b excluded: is not part of route fast",
            "c excluded: project walled may not use it"
        ]
    );
    assert_eq!(
        rig.tell(ask().project("walled").header("x-gateway-only", "a")).await,
        "400 invalid_request by nobody after 0"
    );
}

#[tokio::test(start_paused = true)]
async fn what_nobody_serves_is_not_found_whatever_is_allowed() {
    let rig = Rig::new(
        &config(
            &["a", "b"],
            "strategy: {mode: fallback}\ntargets: [a, b]\nprojects: {walled: {only: [b]}}",
        )
        .replace("api_key:", "models: [m], api_key:"),
    );
    let told = "404 model_not_found by nobody after 0";
    for asked in [ask(), ask().project("walled"), ask().header("x-gateway-only", "b")] {
        assert_eq!(rig.tell(asked.model("other")).await, told);
    }
    assert_eq!(rig.tell(ask().project("walled")).await, "200 by b after 1");
}

#[tokio::test(start_paused = true)]
async fn metadata_is_a_small_flat_object() {
    let rig = Rig::new(&config(
        &["a", "b"],
        "strategy: {mode: conditional, conditions: [\
         {key: metadata, field: tier, value: gold, target_key: b}, {key: metadata, field: n, value: 7, target_key: b},\
         {key: metadata, field: on, value: true, target_key: b}]}\n\
         targets: [a, b]",
    ));
    let with = |json: &str| ask().header("x-gateway-metadata", json);
    for (json, target) in [
        (r#"{"tier":"gold"}"#, "b"),
        (r#"{"tier":"silver"}"#, "a"),
        (r#"{"n":7}"#, "b"),
        (r#"{"on":true}"#, "b"),
        (r#"{"tier":null}"#, "a"),
        ("{}", "a"),
    ] {
        assert_eq!(rig.tell(with(json)).await, format!("200 by {target} after 1"), "{json}");
    }
    assert!(rig.calls().iter().all(|call| !call.body.contains("gold")));
    let many = (0..33).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(",");
    let long = format!(r#"{{"k":"{}"}}"#, "x".repeat(4_096));
    for (json, must) in [
        ("", "must be a JSON object"),
        ("gold", "must be a JSON object"),
        (r#"["gold"]"#, "must be a JSON object"),
        (r#"{"a":{}}"#, "must hold plain values only; \"a\" is none"),
        (r#"{"a":[1]}"#, "must hold plain values only; \"a\" is none"),
        (&format!("{{{many}}}"), "must not have more than 32 entries"),
        (&long, "must not be longer than 4096 bytes"),
    ] {
        let error = rig.explain(with(json)).unwrap_err();
        assert_eq!(error.message, format!("X-Gateway-Metadata {must}"));
        assert_eq!(error.param.as_deref(), Some("X-Gateway-Metadata"));
        assert_eq!(rig.tell(with(json)).await, "400 invalid_request by nobody after 0");
    }
    assert_eq!(rig.hosts(), "");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_surely_does_not_fit_goes_where_it_may() {
    let yaml = config(&["a", "b"], "strategy: {mode: fallback}\ntargets: [a, b]");
    let rig = Rig::new(&yaml.replace("id: a,", "id: a, catalog: openai,"));
    let long = ask().model("gpt-4").prompt(&"word ".repeat(20_000));
    assert_eq!(rig.tell(long).await, "200 by b after 1");
    assert_eq!(
        rig.verdicts()[0],
        "a excluded: the prompt of about 25001 tokens does not fit the 8192 of gpt-4"
    );
    let doubtful = ask().model("gpt-4").prompt(&"word ".repeat(10_000));
    assert_eq!(
        rig.tell(doubtful).await,
        "200 by a after 1",
        "an estimate is but an estimate"
    );
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_fits_nowhere_is_the_callers_to_shorten() {
    let catalogued = config(&["a", "b"], "strategy: {mode: fallback}\ntargets: [a, b]");
    let rig = Rig::new(&catalogued.replace("api_key:", "catalog: openai, api_key:"));
    let long = ask().model("gpt-4").prompt(&"word ".repeat(20_000));
    assert_eq!(rig.tell(long).await, "400 context_length_exceeded by a after 0");
    assert_eq!(
        rig.verdicts(),
        [
            "a excluded: the prompt of about 25001 tokens does not fit the 8192 of gpt-4",
            "b excluded: the prompt of about 25001 tokens does not fit the 8192 of gpt-4"
        ]
    );
    assert_eq!(rig.hosts(), "");
    assert_eq!(rig.tell(ask().model("gpt-4")).await, "200 by a after 1");
}
