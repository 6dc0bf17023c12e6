//! Routing as callers and operators meet it: routes, narrowing, the dry run, live state.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchyard_core::config::Config;
use switchyard_tests::app::{chat_body, read, two_providers};
use switchyard_tests::mock::{MockUpstream, Reply};
use switchyard_tests::{Answer, TestApp};

/// Three providers `a`, `b` and `c`, and what else the file says.
fn three(urls: [&str; 3], rest: &str) -> String {
    let provider = |(id, url): (&str, &str)| {
        format!("  - {{id: {id}, kind: openai, base_url: '{url}', api_key: sk-{id}-secret-12345}}\n")
    };
    let providers: String = ["a", "b", "c"].into_iter().zip(urls).map(provider).collect();
    format!("providers:\n{providers}{rest}")
}

async fn call(app: &TestApp, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
    let mut request = app
        .request(Method::POST, path)
        .bearer_auth(&app.key)
        .json(&chat_body(body));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    read(request).await
}

async fn chat(app: &TestApp, headers: &[(&str, &str)], body: Value) -> Answer {
    call(app, "/v1/chat/completions", headers, body).await
}

async fn explain(app: &TestApp, headers: &[(&str, &str)], body: Value) -> Value {
    let answer = call(app, "/v1/route/explain", headers, body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()
}

const ROUTES: &str = "strategy: {mode: fallback}\ntargets: [a, b]\n\
    routes:\n  \
      cheap: {model: small, strategy: {mode: fallback}, targets: [{virtual_key: c, model: tiny}, b]}\n  \
      split: {strategy: {mode: ab-test, ab_variants: [{target_key: route/cheap, weight: 1, label: new}, {target_key: a, weight: 0, label: old}]}, targets: [route/cheap, a]}\n\
    projects: {batch: {route: cheap, only: [b]}}\n";

#[tokio::test]
async fn a_call_takes_the_route_that_is_named_for_it() {
    let mock = MockUpstream::start().await;
    let url = mock.url();
    let app = TestApp::start(Some(&three([&url, &url, &url], ROUTES)), &[]).await;

    let answer = chat(&app, &[], json!({})).await;
    assert_eq!(answer.header("x-gateway-target"), "a");
    assert_eq!(app.logged(&answer).await["route"], "default");

    let answer = chat(&app, &[], json!({ "model": "route/cheap" })).await;
    assert_eq!(
        (answer.header("x-gateway-target"), answer.header("x-gateway-model")),
        ("c", "tiny")
    );
    assert_eq!(answer.json()["model"], "route/cheap", "the name that was asked for");
    let log = app.logged(&answer).await;
    assert_eq!((&log["route"], &log["model"]), (&json!("cheap"), &json!("route/cheap")));
    assert_eq!(log["verdicts"][0]["reason"], "is not part of route cheap");

    let answer = chat(&app, &[("x-gateway-route", "cheap")], json!({})).await;
    assert_eq!(
        (answer.header("x-gateway-target"), answer.header("x-gateway-model")),
        ("c", "tiny")
    );

    let answer = chat(&app, &[], json!({ "model": "route/split" })).await;
    assert_eq!(answer.header("x-gateway-target"), "c", "an A/B test of a fallback");
    assert_eq!(app.logged(&answer).await["variant"], "new");

    assert_eq!(
        chat(&app, &[], json!({ "model": "route/none" })).await.refusal(),
        "404 model_not_found"
    );
    let wrong = chat(&app, &[("x-gateway-route", "none")], json!({})).await;
    assert_eq!(wrong.refusal(), "400 invalid_request");
    assert_eq!(wrong.json()["error"]["param"], "X-Gateway-Route");
    assert!(wrong.text().contains("default, cheap, split"), "{}", wrong.text());

    let listed = app.get("/v1/models").await.text();
    assert!(
        listed.contains("\"route/cheap\"") && listed.contains("\"route/split\""),
        "{listed}"
    );
}

#[tokio::test]
async fn a_key_and_its_project_choose_and_narrow() {
    let mock = MockUpstream::start().await;
    let url = mock.url();
    let app = TestApp::start(Some(&three([&url, &url, &url], ROUTES)), &[]).await;
    let (_, routed) = app.create_key(json!({ "name": "routed", "route": "split" })).await;
    let (_, member) = app.create_key(json!({ "name": "member", "project": "batch" })).await;
    let ask = async |key: &str, headers: &[(&str, &str)]| {
        let mut request = app
            .request(Method::POST, "/v1/chat/completions")
            .bearer_auth(key)
            .json(&chat_body(json!({})));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(request).await
    };
    let answer = ask(&routed, &[]).await;
    assert_eq!(answer.header("x-gateway-target"), "c");
    assert_eq!(app.logged(&answer).await["route"], "split");
    assert_eq!(
        ask(&routed, &[("x-gateway-route", "default")])
            .await
            .header("x-gateway-target"),
        "a"
    );

    let answer = ask(&member, &[]).await;
    assert_eq!(
        answer.header("x-gateway-target"),
        "b",
        "the project's route, without what it may not use"
    );
    let log = app.logged(&answer).await;
    assert_eq!(log["verdicts"][2]["reason"], "project batch may not use it");
    assert_eq!(
        ask(&member, &[("x-gateway-only", "a")]).await.refusal(),
        "400 invalid_request"
    );
}

#[tokio::test]
async fn only_narrows_and_names_what_it_does_not_know() {
    let mock = MockUpstream::start().await;
    let url = mock.url();
    let app = TestApp::start(Some(&three([&url, &url, &url], ROUTES)), &[]).await;
    let answer = chat(&app, &[("x-gateway-only", "b, c")], json!({})).await;
    assert_eq!(answer.header("x-gateway-target"), "b", "c is not part of this route");
    let log = app.logged(&answer).await;
    assert_eq!(log["verdicts"][0]["reason"], "X-Gateway-Only does not list it");
    for (only, word) in [
        ("nobody", "targets here: a, b, c"),
        (" , ", "empty"),
        ("c", "leaves no target"),
    ] {
        let answer = chat(&app, &[("x-gateway-only", only)], json!({})).await;
        assert_eq!(answer.refusal(), "400 invalid_request", "{only}");
        assert_eq!(answer.json()["error"]["param"], "X-Gateway-Only");
        assert!(answer.text().contains(word), "{only}: {}", answer.text());
    }
    let seen = mock.requests().pop().unwrap();
    assert!(seen.header("x-gateway-only").is_none(), "it never travels upstream");
}

#[tokio::test]
async fn the_dry_run_says_what_the_call_would_do_and_sends_nothing() {
    let mock = MockUpstream::start().await;
    let url = mock.url();
    let app = TestApp::start(Some(&three([&url, &url, &url], ROUTES)), &[]).await;
    let said = explain(&app, &[], json!({})).await;
    assert_eq!(said["order"], json!(["a", "b"]));
    assert_eq!(
        (&said["model"], &said["route"], &said["route_by"], &said["strategy"]),
        (&json!("m"), &json!("default"), &json!("default"), &json!("fallback"))
    );
    assert_eq!(
        said["verdicts"],
        json!([
            { "target": "a", "state": "chosen", "reason": "would be asked first" },
            { "target": "b", "state": "not_needed", "reason": "would be asked as number 2" },
            { "target": "c", "state": "excluded", "reason": "is not part of route default" },
        ])
    );
    let said = explain(&app, &[], json!({ "model": "route/cheap" })).await;
    assert_eq!(said["upstream_models"], json!(["tiny", "small"]));
    assert!(mock.requests().is_empty());
    assert_eq!(app.get("/admin/logs").await.json()["summary"]["total_entries"], 0);

    let wrong = call(&app, "/v1/route/explain", &[], json!({ "messages": [] })).await;
    assert_eq!(
        (wrong.refusal().as_str(), &wrong.json()["error"]["param"]),
        ("400 invalid_request", &json!("messages"))
    );
    let (_, reader) = app
        .create_key(json!({ "name": "reader", "scopes": ["read_only"] }))
        .await;
    let refused = app
        .send_as(&reader, Method::POST, "/v1/route/explain", Some(&chat_body(json!({}))))
        .await;
    assert_eq!(refused.refusal(), "403 insufficient_scope");
    let embedded = app
        .post("/v1/route/explain", &json!({ "model": "e", "input": "text" }))
        .await;
    assert_eq!(embedded.json()["order"], json!(["a", "b"]));
}

#[tokio::test]
async fn a_dead_target_opens_its_breaker_for_everyone_who_looks() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    first.set_default(Reply::error(500, "oops", "Oops."));
    let more = ", circuit_breaker: {failure_threshold: 2, timeout: 1h}";
    let app = TestApp::start(Some(&two_providers(&first.url(), &second.url(), more)), &[]).await;
    for attempts in ["2", "2", "1", "1"] {
        let answer = app.chat(json!({})).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("x-gateway-attempts"), attempts);
    }
    assert_eq!(first.requests().len(), 2, "nobody asks a target whose breaker is open");
    let answer = app
        .post("/v1/embeddings", &json!({ "model": "m", "input": "text" }))
        .await;
    assert_eq!(
        answer.header("x-gateway-target"),
        "second",
        "one breaker for all surfaces"
    );
    let log = app.logged(&answer).await;
    assert_eq!(log["verdicts"][0]["reason"], "its circuit breaker is open");
    assert!(log["verdicts"][0]["until"].is_string(), "{log}");
    assert_eq!(explain(&app, &[], json!({})).await["order"], json!(["second"]));

    let targets = app.get("/admin/targets").await.json();
    let state = &targets["data"][0];
    assert_eq!((&state["target"], &state["state"]), (&json!("first"), &json!("open")));
    assert_eq!(state["breaker"]["state"], "open");
    assert!(state["until"].is_string() && state["reason"].is_string(), "{state}");
    let well = &targets["data"][1];
    assert_eq!((&well["state"], &well["in_flight"]), (&json!("ready"), &json!(0)));
    assert!(well["latency"][0]["p50_ms"].as_f64().unwrap() > 0.0);
    assert_eq!((&well["calls"], &state["calls"]), (&json!(5), &json!(2)));
    let ready = app.get("/readyz").await.json();
    assert_eq!(ready["providers"][0]["circuit"], "open");
    let metrics = app.get("/metrics").await.text();
    assert!(
        metrics.contains("gateway_circuit_breaker_state{provider=\"first\"} 1"),
        "{metrics}"
    );
    let overview = app.get("/admin/dashboard").await.json();
    let finding = overview["finding"].as_str().unwrap();
    assert!(finding.starts_with("first is out of service until "), "{finding}");
}

#[tokio::test]
async fn a_target_alone_with_an_open_breaker_is_503_and_is_not_called() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::error(500, "oops", "Oops."));
    let config = format!(
        "providers: [{{id: up, kind: openai, base_url: '{}', api_key: sk-upstream-secret-1234}}]\n\
         targets: [{{virtual_key: up, circuit_breaker: {{failure_threshold: 1, timeout: 1h}}}}]",
        mock.url()
    );
    let app = TestApp::start(Some(&config), &[]).await;
    assert_eq!(app.chat(json!({})).await.refusal(), "502 upstream_error");
    for stream in [false, true] {
        let answer = app.chat(json!({ "stream": stream })).await;
        assert_eq!(answer.refusal(), "503 upstream_unavailable");
        assert_eq!(
            (answer.header("x-gateway-target"), answer.header("x-gateway-attempts")),
            ("up", "0")
        );
        let wait: u64 = answer.header("retry-after").parse().unwrap();
        assert!((3500..=3600).contains(&wait), "{wait}");
    }
    assert_eq!(mock.requests().len(), 1);
    let said = explain(&app, &[], json!({})).await;
    assert_eq!((&said["order"], &said["error"]["status"]), (&json!([]), &json!(503)));
}

#[tokio::test]
async fn one_credential_that_is_refused_leaves_the_answer_to_its_sibling() {
    let mock = MockUpstream::start().await;
    let config = format!(
        "providers:\n  - {{id: up, kind: openai, base_url: '{}', credentials: [{{id: old, api_key: sk-old-secret-12345, weight: 1000000}}, {{id: new, api_key: sk-new-secret-12345, weight: 0.000001}}]}}\n\
         targets: [{{virtual_key: up}}]",
        mock.url()
    );
    let app = TestApp::start(Some(&config), &[]).await;
    mock.script([Reply::error(401, "invalid_api_key", "Wrong key sk-old-secret-12345.")]);
    let answer = app.chat(json!({})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("x-gateway-attempts"), "2");
    let used: Vec<_> = mock
        .requests()
        .iter()
        .map(|seen| seen.header("authorization").unwrap().to_owned())
        .collect();
    assert_eq!(used, ["Bearer sk-old-secret-12345", "Bearer sk-new-secret-12345"]);
    let credentials = &app.get("/admin/targets").await.json()["data"][0]["credentials"];
    assert_eq!(
        (&credentials[0]["id"], &credentials[0]["state"]),
        (&json!("old"), &json!("benched"))
    );
    assert!(credentials[0]["until"].is_string(), "{credentials}");
    assert_eq!(credentials[1]["state"], "ready");
    let log = app.logged(&answer).await;
    assert!(!log.to_string().contains("sk-old-secret"), "{log}");
    assert_eq!(
        app.chat(json!({})).await.header("x-gateway-attempts"),
        "1",
        "it stays on the bench"
    );
}

#[tokio::test]
async fn a_new_configuration_keeps_what_was_learned_of_targets_that_did_not_change() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    first.set_default(Reply::error(500, "oops", "Oops."));
    let more = ", circuit_breaker: {failure_threshold: 1, timeout: 1h}";
    let config = two_providers(&first.url(), &second.url(), more);
    let mut app = TestApp::start(Some(&config), &[]).await;
    app.chat(json!({})).await;
    let running = app.take();
    let state = async |app: &TestApp| app.get("/admin/targets").await.json()["data"][0]["state"].clone();
    assert_eq!(state(&app).await, "open");

    let swapped = config.replace("mode: fallback", "mode: least-latency");
    running
        .reload(Some(&Config::parse(&swapped).unwrap()), &app.environment())
        .unwrap();
    assert_eq!(state(&app).await, "open", "its own block is the same");
    assert_eq!(explain(&app, &[], json!({})).await["strategy"], "least-latency");

    let changed = config.replace("timeout: 1h", "timeout: 2h");
    running
        .reload(Some(&Config::parse(&changed).unwrap()), &app.environment())
        .unwrap();
    assert_eq!(state(&app).await, "ready", "a changed block begins anew");
    running.stop().await;
}
