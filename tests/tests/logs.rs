//! The request log, the overview and the metrics: what is told of what happened.

use http::Method;
use serde_json::{Value, json};
use switchyard_tests::TestApp;
use switchyard_tests::app::chat_body;

/// A gateway that has answered three calls and failed one.
async fn busy() -> TestApp {
    let app = TestApp::start(None, &[]).await;
    let (_, key) = app.create_key(json!({ "name": "app" })).await;
    for _ in 0..2 {
        app.chat(json!({ "model": "demo" })).await;
    }
    app.send_as(
        &key,
        Method::POST,
        "/v1/chat/completions",
        Some(&chat_body(json!({ "model": "demo", "stream": true }))),
    )
    .await;
    let failed = app.chat(json!({ "model": "demo-429" })).await;
    app.logged(&failed).await;
    app
}

#[tokio::test]
async fn filters_run_on_the_server_and_paging_holds() {
    let app = busy().await;
    let models = |page: &Value| -> Vec<String> {
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["model"].as_str().unwrap().to_owned())
            .collect()
    };
    let page = app.get("/admin/logs?limit=3").await.json();
    assert_eq!(models(&page), ["demo-429", "demo", "demo"], "newest first");
    assert_eq!(page["summary"], json!({ "total_entries": 4, "capped": false }));
    let next = page["next"].as_i64().unwrap();
    let rest = app.get(&format!("/admin/logs?limit=3&before={next}")).await.json();
    assert_eq!((models(&rest), &rest["next"]), (vec!["demo".to_owned()], &Value::Null));

    for (query, want) in [
        ("outcome=failed", 1),
        ("outcome=success", 3),
        ("stage=on_error", 1),
        ("surface=chat", 4),
        ("surface=&model=demo", 3),
        ("surface=messages", 0),
        ("surface=pass_through", 0),
        ("model=demo", 3),
        ("model=&target=demo&q=", 4),
        ("q=rate_limit", 1),
        ("api_key_id=none", 0),
        ("since=2999-01-01T00:00:00Z", 0),
        ("until=2999-01-01T00:00:00Z", 4),
    ] {
        let page = app.get(&format!("/admin/logs?{query}")).await.json();
        assert_eq!(page["data"].as_array().map(Vec::len), Some(want), "{query}: {page}");
    }
    for query in [
        "limit=0",
        "limit=201",
        "limit=x",
        "stage=before",
        "outcome=odd",
        "surface=odd",
        "since=today",
        "colour=red",
    ] {
        let answer = app.get(&format!("/admin/logs?{query}")).await;
        let field = query.split('=').next().unwrap();
        assert_eq!(
            (answer.refusal().as_str(), &answer.json()["error"]["param"]),
            ("400 invalid_request", &json!(field)),
            "{query}"
        );
    }
    let unknown = app.get("/admin/logs?surface=chats").await.json();
    let known = "must be one of chat, completions, embeddings, responses, messages, count_tokens, generate_content, \
                 gemini_count_tokens, pass_through";
    assert_eq!(unknown["error"]["message"], format!("surface {known}"));
    assert_eq!(app.get("/admin/logs/nothing").await.refusal(), "404 resource_not_found");
}

#[tokio::test]
async fn the_overview_agrees_with_the_log() {
    let app = busy().await;
    let overview = app.get("/admin/dashboard?range=15m").await.json();
    assert_eq!(overview["providers"], json!({ "total": 1, "available": 1 }));
    assert_eq!(
        (&overview["keys"]["total"], &overview["keys"]["active"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(overview["request_logs"], json!({ "enabled": true, "total": 4 }));
    let now = &overview["traffic"]["now"];
    assert_eq!((&now["requests"], &now["failed"]), (&json!(4), &json!(1)));
    assert!(now["first_token_p50_ms"].is_number() && now["overhead_p99_ms"].is_number());
    assert_eq!(
        overview["traffic"]["before"]["first_token_p50_ms"],
        Value::Null,
        "nothing measured is nothing said"
    );
    let points = overview["traffic"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 15, "a point for every minute");
    let sum = |field: &str| points.iter().map(|point| point[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("answered"), sum("failed")), (3, 1));
    let finding = overview["finding"].as_str().unwrap();
    assert!(
        finding.starts_with("1 of 4 requests of the last 15 minutes failed, the latest at "),
        "{finding}"
    );
    assert!(finding.ends_with("rate_limit_exceeded at demo."), "{finding}");
    assert_eq!(
        app.get("/admin/dashboard?range=1y").await.refusal(),
        "400 invalid_request"
    );
}

#[tokio::test]
async fn metrics_are_named_as_before_and_count_what_ended() {
    let app = busy().await;
    let text = app.get("/metrics").await.text();
    for line in [
        "gateway_requests_total{provider=\"demo\",model=\"demo\",status=\"success\"} 3",
        "gateway_requests_total{provider=\"demo\",model=\"other\",status=\"error\"} 1",
        "gateway_request_duration_seconds_count{provider=\"demo\",model=\"demo\"} 3",
        "gateway_first_token_seconds_count{provider=\"demo\",model=\"demo\"} 1",
        "gateway_provider_errors_total{provider=\"demo\",error_type=\"provider_error\"} 1",
        "gateway_attempts_total{target=\"demo\",outcome=\"success\"} 3",
        "gateway_attempts_total{target=\"demo\",outcome=\"rate_limit\"} 1",
        "gateway_requests_inflight 0",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
    }
    for family in [
        "gateway_tokens_input_total",
        "gateway_tokens_output_total",
        "gateway_overhead_seconds_bucket",
        "gateway_records_shed",
    ] {
        assert!(text.contains(family), "{family}");
    }
}
