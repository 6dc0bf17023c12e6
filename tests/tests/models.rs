//! Which models there are.

use http::StatusCode;
use serde_json::Value;
use switchyard_tests::TestApp;
use switchyard_tests::mock::{MockUpstream, Reply};

fn ids(list: &Value) -> Vec<&str> {
    list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn lists_come_from_the_configuration_and_from_upstreams_without_one() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::models(["org/big-model", "small"]));
    let config = format!(
        "providers:\n  - {{id: near, kind: openai, base_url: 'http://127.0.0.1:9/v1', api_key: sk-near-secret-1234, models: [local, small]}}\n  \
         - {{id: far, kind: openai, base_url: '{}', api_key: sk-far-secret-12345}}\n\
         strategy: {{mode: fallback}}\ntargets: [{{virtual_key: near, model_map: {{fast: local}}}}, {{virtual_key: far}}]\naliases: {{quick: small}}",
        mock.url()
    );
    let app = TestApp::start(Some(&config), &[]).await;
    let list = app.get("/v1/models").await.json();
    assert_eq!(list["object"], "list");
    assert_eq!(ids(&list), ["fast", "local", "small", "org/big-model", "quick"]);
    let owners: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["owned_by"].as_str().unwrap())
        .collect();
    assert_eq!(
        owners,
        ["near", "near", "near", "far", "near"],
        "the first target that serves it"
    );

    let one = app.get("/v1/models/org/big-model").await;
    assert_eq!(
        (one.status, &one.json()["object"]),
        (StatusCode::OK, &Value::from("model"))
    );
    assert_eq!(app.get("/v1/models/none").await.refusal(), "404 model_not_found");
    assert_eq!(mock.requests().len(), 1, "a listing is kept for a while");
}

#[tokio::test]
async fn an_upstream_that_does_not_list_leaves_the_rest_alone() {
    let config = "providers: [{id: far, kind: openai, base_url: 'http://127.0.0.1:9/v1', api_key: sk-far-secret-12345}]\n\
                  strategy: {mode: fallback}\ntargets: [{virtual_key: far}, {virtual_key: demo}]";
    let app = TestApp::start(Some(config), &[]).await;
    assert!(ids(&app.get("/v1/models").await.json()).contains(&"demo"));
}
