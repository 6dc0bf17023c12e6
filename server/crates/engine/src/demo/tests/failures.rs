use super::*;
use crate::ports::TransportFault;

fn ask_model(model: &str) -> String {
    ask_with("Tell me about yards", json!({"model": model})).to_string()
}

#[tokio::test]
async fn the_flaky_model_fails_every_second_time() {
    let demo = DemoTransport::new(Pace::Instant);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(
            send(&demo, "POST", CHAT, ask_model("demo-flaky"))
                .await
                .unwrap()
                .status()
                .as_u16(),
        );
        // Others do not take its turns.
        assert_eq!(
            send(&demo, "POST", CHAT, ask_model("demo")).await.unwrap().status(),
            200
        );
    }
    assert_eq!(statuses, [200, 500, 200, 500]);
}

#[tokio::test]
async fn the_cut_model_breaks_a_stream_after_content() {
    let whole = stream(ask("Tell me about yards")).await.text(0);
    let cut = stream(ask_with("Tell me about yards", json!({"model": "demo-cut"}))).await;
    let text = cut.text(0);
    assert!(
        !text.is_empty() && text.len() < whole.len() / 2 && whole.starts_with(&text),
        "{text}"
    );
    assert!(!cut.done);
    assert_eq!(cut.broken.unwrap().kind, TransportFault::Broken);
    let finished = cut
        .chunks
        .iter()
        .any(|chunk| !chunk["choices"][0]["finish_reason"].is_null());
    assert!(!finished);
}

#[tokio::test]
async fn the_cut_model_breaks_a_unary_call() {
    let result = send(&DemoTransport::new(Pace::Instant), "POST", CHAT, ask_model("demo-cut")).await;
    assert_eq!(result.err().unwrap().kind, TransportFault::Broken);
}

#[tokio::test]
async fn the_limited_model_says_when_to_come_back() {
    let response = send(&DemoTransport::new(Pace::Instant), "POST", CHAT, ask_model("demo-429"))
        .await
        .unwrap();
    assert_eq!(response.headers()["retry-after"], "7");
    let (status, error) = read_json(response).await;
    assert_eq!(status, 429);
    let expected = json!({"error": {
        "message": "Rate limit reached for demo-429 (simulated). Please try again in 7s.",
        "type": "requests", "param": null, "code": "rate_limit_exceeded",
    }});
    assert_eq!(error, expected);
}

#[tokio::test]
async fn unknown_models_paths_and_methods_are_refused() {
    let (status, error) = post(CHAT, ask_with("Hi", json!({"model": "gpt-9"}))).await;
    assert_eq!(
        (status.as_u16(), &error["error"]["code"]),
        (404, &json!("model_not_found"))
    );
    let (status, _) = post(CHAT, ask_with("Hi", json!({"model": "demo-embed"}))).await;
    assert_eq!(status, 404);
    let (status, _) = post("/v1/audio/speech", json!({})).await;
    assert_eq!(status, 404);
    let response = send(&DemoTransport::new(Pace::Instant), "GET", CHAT, "").await.unwrap();
    assert_eq!(response.status(), 405);
}

#[tokio::test]
async fn a_bad_request_names_the_field() {
    let user = json!([{"role": "user", "content": "Hi"}]);
    let cases = [
        (json!({"messages": user}), "model", "missing_required_parameter"),
        (json!({"model": 1, "messages": user}), "model", "invalid_type"),
        (json!({"model": "demo"}), "messages", "missing_required_parameter"),
        (json!({"model": "demo", "messages": []}), "messages", "invalid_value"),
        (json!({"model": "demo", "messages": "Hi"}), "messages", "invalid_type"),
        (
            json!({"model": "demo", "messages": [{"content": "Hi"}]}),
            "messages[0].role",
            "missing_required_parameter",
        ),
        (
            json!({"model": "demo", "messages": [{"role": "user", "content": 5}]}),
            "messages[0].content",
            "invalid_type",
        ),
        (
            json!({"model": "demo", "messages": [{"role": "user", "content": [{"type": "text"}]}]}),
            "messages[0].content[0].text",
            "missing_required_parameter",
        ),
        (
            json!({"model": "demo", "messages": user, "max_tokens": 0}),
            "max_tokens",
            "invalid_value",
        ),
        (
            json!({"model": "demo", "messages": user, "max_tokens": "9"}),
            "max_tokens",
            "invalid_type",
        ),
        (
            json!({"model": "demo", "messages": user, "n": 129}),
            "n",
            "invalid_value",
        ),
        (
            json!({"model": "demo", "messages": user, "temperature": 2.5}),
            "temperature",
            "invalid_value",
        ),
        (
            json!({"model": "demo", "messages": user, "stop": [1]}),
            "stop",
            "invalid_type",
        ),
        (
            json!({"model": "demo", "messages": user, "stream": "yes"}),
            "stream",
            "invalid_type",
        ),
        (
            json!({"model": "demo", "messages": user, "stream_options": {}}),
            "stream_options",
            "invalid_value",
        ),
        (
            json!({"model": "demo", "messages": user, "response_format": {"type": "xml"}}),
            "response_format.type",
            "invalid_value",
        ),
        (
            json!({"model": "demo", "messages": user, "tools": [{"type": "function", "function": {}}]}),
            "tools[0].function.name",
            "missing_required_parameter",
        ),
        (
            json!({"model": "demo", "messages": user, "tool_choice": "required"}),
            "tool_choice",
            "invalid_value",
        ),
    ];
    for (body, param, code) in cases {
        let (status, error) = post(CHAT, body.clone()).await;
        let error = &error["error"];
        assert_eq!(
            (status.as_u16(), &error["param"], &error["code"]),
            (400, &json!(param), &json!(code)),
            "{body}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
    for text in ["", "{", "[]", "\u{fffd}"] {
        let response = send(&DemoTransport::new(Pace::Instant), "POST", CHAT, text)
            .await
            .unwrap();
        assert_eq!(response.status(), 400, "{text}");
    }
}

#[tokio::test]
async fn null_is_the_same_as_absent() {
    let nulls = json!({"max_tokens": null, "stop": null, "n": null, "tools": null, "tool_choice": null, "seed": null,
        "stream_options": null, "response_format": null, "temperature": null, "stream": null});
    let (status, _) = post(CHAT, ask_with("Hi", nulls)).await;
    assert_eq!(status, 200);
}
