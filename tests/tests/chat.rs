//! Calls that work: nothing is lost on the way up or down.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchyard_tests::TestApp;
use switchyard_tests::app::{chat_body, read};
use switchyard_tests::mock::{MockUpstream, Reply};

#[tokio::test]
async fn a_call_reaches_the_upstream_byte_for_byte_and_so_does_its_answer() {
    let mock = MockUpstream::start().await;
    let odd = r#"{"id":"1", "choices":[ {"message":{ },"x":[ ]}],"model":"m-2026","service_tier":"x","nested":{"b":1e3,"a":[null]},"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;
    mock.script([Reply::raw(200, [odd]).header("content-type", "application/json")]);
    let app = TestApp::in_front_of(&mock.url()).await;
    let sent = r#"{ "model":"m","messages":[{"role":"user","content":"é\n","cache_control":{}}],"reasoning_effort":"high","x":[1.50,{}] }"#;
    let request = app
        .request(Method::POST, "/v1/chat/completions")
        .bearer_auth(&app.key)
        .body(sent);
    let answer = read(request).await;

    assert_eq!((answer.status, answer.text().as_str()), (StatusCode::OK, odd));
    let seen = &mock.requests()[0];
    assert_eq!(seen.body, sent);
    assert_eq!(seen.path, "/v1/chat/completions");
    assert_eq!(seen.header("authorization"), Some("Bearer sk-upstream-secret-1234"));
    for never in ["x-api-key", "cookie", "x-request-id", "user-agent"] {
        assert_ne!(seen.header(never), Some(app.key.as_str()), "{never}");
    }
}

#[tokio::test]
async fn an_answer_says_who_gave_it_and_leaves_one_record() {
    let mock = MockUpstream::start().await;
    let reply = Reply::chat("Hello there.")
        .header("x-request-id", "up-7")
        .header("x-ratelimit-remaining-requests", "41");
    mock.script([reply]);
    let app = TestApp::in_front_of(&mock.url()).await;
    let answer = app.chat(json!({})).await;

    let headers = [
        "x-gateway-provider",
        "x-gateway-target",
        "x-gateway-model",
        "x-gateway-attempts",
    ]
    .map(|h| answer.header(h));
    assert_eq!(headers, ["up", "up", "m", "1"]);
    assert_eq!(answer.header("x-gateway-upstream-request-id"), "up-7");
    assert_eq!(answer.header("x-ratelimit-remaining-requests"), "41");
    assert!(answer.header("x-gateway-overhead-ms").parse::<f64>().is_ok());
    assert!(answer.header("server-timing").starts_with("gateway;dur="));

    let log = app.logged(&answer).await;
    for (field, want) in [
        ("status", json!(200)),
        ("outcome", json!("success")),
        ("stage", json!("after_request")),
        ("surface", json!("chat")),
        ("stream", json!(false)),
        ("model", json!("m")),
        ("target", json!("up")),
        ("attempts_count", json!(1)),
        ("api_key_name", json!("first key")),
        ("usage_estimated", json!(false)),
        ("cost_usd", Value::Null),
        ("error_code", Value::Null),
        ("ttft_ms", Value::Null),
    ] {
        assert_eq!(log[field], want, "{field}");
    }
    let usage = &answer.json()["usage"];
    assert_eq!(log["prompt_tokens"], usage["prompt_tokens"]);
    assert_eq!(log["completion_tokens"], usage["completion_tokens"]);
    assert_eq!(log["attempts"][0]["outcome"], "success");
    assert_eq!(log["attempts"][0]["status"], 200);
    assert_eq!(
        log["verdicts"],
        json!([{ "target": "up", "state": "chosen", "reason": "answered" }])
    );
}

#[tokio::test]
async fn names_are_translated_on_the_way_up_and_back_on_the_way_down() {
    let mock = MockUpstream::start().await;
    let config = format!(
        "providers: [{{id: up, kind: openai, base_url: '{}', api_key: '${{KEY}}', models: [gpt-x]}}]\n\
         targets: [{{virtual_key: up, model_map: {{smart: gpt-x}}}}]\naliases: {{clever: smart}}",
        mock.url()
    );
    let app = TestApp::start(Some(&config), &[("KEY", "sk-from-the-environment")]).await;
    for asked in ["smart", "clever", "gpt-x"] {
        mock.script([Reply::chat("Yes.").model("gpt-x")]);
        let answer = app.chat(json!({ "model": asked })).await;
        assert_eq!(answer.json()["model"], asked);
        assert_eq!(answer.header("x-gateway-model"), "gpt-x");
        let seen = mock.requests().pop().unwrap();
        assert_eq!(seen.json["model"], "gpt-x");
        assert_eq!(seen.header("authorization"), Some("Bearer sk-from-the-environment"));
        let log = app.logged(&answer).await;
        assert_eq!(
            (&log["model"], &log["upstream_model"]),
            (&json!(asked), &json!("gpt-x"))
        );
    }
}

#[tokio::test]
async fn the_upstreams_own_name_for_a_model_stands_when_nothing_was_renamed() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::chat("Yes.").model("m-2026-11-30")]);
    let app = TestApp::in_front_of(&mock.url()).await;
    assert_eq!(app.chat(json!({})).await.json()["model"], "m-2026-11-30");
}

#[tokio::test]
async fn embeddings_go_the_same_way() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::embeddings(4)]);
    let app = TestApp::in_front_of(&mock.url()).await;
    let answer = app
        .post(
            "/v1/embeddings",
            &json!({ "model": "m", "input": ["a", "b"], "encoding_format": "base64" }),
        )
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(mock.requests()[0].path, "/v1/embeddings");
    assert_eq!(app.logged(&answer).await["surface"], "embeddings");
}

#[tokio::test]
async fn without_a_credential_the_simulated_provider_answers_and_says_so() {
    let app = TestApp::start(None, &[]).await;
    let answer = app.chat(json!({ "model": "demo" })).await;
    assert_eq!(answer.json()["system_fingerprint"], "simulated");
    assert_eq!(app.logged(&answer).await["simulated"], true);
    let me = app.get("/admin/session").await.json();
    assert_eq!(me["gateway"]["simulated"], true);

    let answer = app.chat(json!({ "model": "gpt-4o" })).await;
    assert_eq!(answer.refusal(), "404 model_not_found");
    assert!(
        answer.text().contains("served here: demo, demo-slow"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn a_credential_in_the_environment_is_all_that_openai_needs() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::chat("From the environment.")]);
    let env = [
        ("OPENAI_API_KEY", "sk-env-secret-123456"),
        ("OPENAI_BASE_URL", &mock.url()),
    ];
    let app = TestApp::start(None, &env).await;
    let answer = app.chat(json!({})).await;
    assert_eq!(answer.header("x-gateway-target"), "openai");
    assert_eq!(
        mock.requests()[0].header("authorization"),
        Some("Bearer sk-env-secret-123456")
    );
}

#[tokio::test]
async fn a_target_without_its_credential_says_why_it_is_not_called() {
    let config = "providers: [{id: up, kind: openai, base_url: 'http://127.0.0.1:9/v1', api_key: '${NOT_SET}'}]\ntargets: [{virtual_key: up}]";
    let app = TestApp::start(Some(config), &[]).await;
    let answer = app.chat(json!({})).await;
    assert_eq!(answer.refusal(), "503 upstream_unavailable");
    let log = app.logged(&answer).await;
    assert_eq!(
        log["verdicts"],
        json!([{ "target": "up", "state": "excluded", "reason": "NOT_SET is not set" }])
    );
    assert_eq!(log["attempts"], json!([]));
    let ready = app.get("/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["reason"]),
        (503, &json!("no routable targets"))
    );
}

#[tokio::test]
async fn a_large_prompt_passes_and_one_too_large_is_refused_before_it_is_read() {
    let mock = MockUpstream::start().await;
    let app = TestApp::in_front_of(&mock.url()).await;
    let mut large = chat_body(json!({}));
    large["messages"][0]["content"] = json!("x".repeat(3 << 20));
    assert_eq!(app.post("/v1/chat/completions", &large).await.status, StatusCode::OK);

    large["messages"][0]["content"] = json!("x".repeat(11 << 20));
    let answer = app.post("/v1/chat/completions", &large).await;
    assert_eq!(answer.refusal(), "413 request_too_large");
    assert_eq!(mock.requests().len(), 1);
    assert_eq!(app.logged(&answer).await["outcome"], "rejected");
}
