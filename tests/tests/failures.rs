//! Upstreams that fail: what the caller is told, who is asked next, and what is remembered.

use http::StatusCode;
use serde_json::{Value, json};
use switchyard_tests::TestApp;
use switchyard_tests::app::{one_provider, two_providers};
use switchyard_tests::mock::{Cut, MockUpstream, Reply};

#[tokio::test]
async fn each_failure_has_its_face_and_its_name() {
    let mock = MockUpstream::start().await;
    let app = TestApp::in_front_of(&mock.url()).await;
    for stream in [false, true] {
        for (reply, face, outcome) in [
            (
                Reply::error(400, "bad_thing", "Bad thing."),
                "400 invalid_request",
                "refused",
            ),
            (
                Reply::error(400, "context_length_exceeded", "Too long."),
                "400 context_length_exceeded",
                "context_length",
            ),
            (
                Reply::error(401, "invalid_api_key", "Wrong key sk-upstream-secret-1234."),
                "502 upstream_auth_error",
                "auth",
            ),
            (Reply::error(403, "no", "No."), "502 upstream_auth_error", "auth"),
            (
                Reply::error(404, "model_not_found", "No m."),
                "404 model_not_found",
                "not_found",
            ),
            (Reply::error(408, "slow", "Slow."), "504 upstream_timeout", "timeout"),
            (
                Reply::error(418, "teapot", "Tea."),
                "502 upstream_error",
                "unexpected_status",
            ),
            (Reply::error(422, "bad", "Bad."), "422 invalid_request", "refused"),
            (
                Reply::error(429, "rate_limit_exceeded", "Slow down."),
                "429 rate_limit_exceeded",
                "rate_limit",
            ),
            (Reply::error(500, "oops", "Oops."), "502 upstream_error", "server_error"),
            (Reply::error(503, "busy", "Busy."), "502 upstream_error", "server_error"),
            (Reply::error(504, "late", "Late."), "504 upstream_timeout", "timeout"),
            (
                Reply::raw(302, [""]).header("location", "http://127.0.0.1:1/"),
                "502 upstream_error",
                "unexpected_status",
            ),
            (Reply::abort(Cut::Reset), "502 upstream_error", "broken"),
        ] {
            mock.script([reply.clone()]);
            let answer = app.chat(json!({ "stream": stream })).await;
            assert_eq!(answer.refusal(), face, "{reply:?} stream {stream}");
            assert!(!answer.text().contains("sk-upstream-secret"), "{}", answer.text());
            assert_eq!(answer.header("x-gateway-attempts"), "1");
            let log = app.logged(&answer).await;
            assert_eq!(log["attempts"][0]["outcome"], outcome, "{reply:?} stream {stream}");
            assert_eq!(log["status"], answer.status.as_u16());
            assert_eq!(log["stage"], "on_error");
            assert!(!log.to_string().contains("sk-upstream-secret"), "{log}");
        }
    }
}

#[tokio::test]
async fn a_whole_answer_that_is_none_is_a_failure() {
    let mock = MockUpstream::start().await;
    let app = TestApp::in_front_of(&mock.url()).await;
    for (reply, face, outcome) in [
        (Reply::malformed_json(), "502 upstream_error", "bad_answer"),
        (Reply::bad_utf8(), "502 upstream_error", "bad_answer"),
        (
            Reply::raw(
                200,
                ["{\"error\":{\"message\":\"quota\",\"code\":\"insufficient_quota\"}}"],
            ),
            "429 rate_limit_exceeded",
            "quota",
        ),
        (Reply::chat("half of it").close_after(1), "502 upstream_error", "broken"),
    ] {
        mock.script([reply.clone()]);
        let answer = app.chat(json!({})).await;
        assert_eq!(answer.refusal(), face, "{reply:?}");
        assert_eq!(
            app.logged(&answer).await["attempts"][0]["outcome"],
            outcome,
            "{reply:?}"
        );
    }
}

#[tokio::test]
async fn a_dead_first_target_costs_one_attempt_and_nothing_else() {
    let second = MockUpstream::start().await;
    let app = TestApp::start(
        Some(&two_providers(&MockUpstream::refused_url(), &second.url(), "")),
        &[],
    )
    .await;
    let answer = app.chat(json!({})).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(
        (answer.header("x-gateway-target"), answer.header("x-gateway-attempts")),
        ("second", "2")
    );
    let log = app.logged(&answer).await;
    let attempts: Vec<(&Value, &Value)> = log["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (&a["target"], &a["outcome"]))
        .collect();
    assert_eq!(
        attempts,
        [
            (&json!("first"), &json!("connect")),
            (&json!("second"), &json!("success"))
        ]
    );
    let page = app.get("/admin/logs").await.json();
    assert_eq!(page["summary"]["total_entries"], 1, "one request, one row");
}

#[tokio::test]
async fn what_is_the_requests_own_fault_is_not_tried_elsewhere() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let app = TestApp::start(Some(&two_providers(&first.url(), &second.url(), "")), &[]).await;
    for status in [400, 401, 403, 404, 422] {
        first.script([Reply::error(status, "x", "X.")]);
        let answer = app.chat(json!({})).await;
        assert_eq!(answer.header("x-gateway-attempts"), "1", "{status}");
    }
    assert!(second.requests().is_empty());
    first.script([Reply::error(400, "context_length_exceeded", "Too long.")]);
    assert_eq!(
        app.chat(json!({})).await.header("x-gateway-target"),
        "second",
        "another model may have room"
    );
}

#[tokio::test]
async fn the_last_failure_is_the_answer_when_everyone_fails() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    first.set_default(Reply::error(503, "busy", "Busy."));
    second.set_default(Reply::error(429, "rate_limit_exceeded", "Slow down.").retry_after("7"));
    let app = TestApp::start(Some(&two_providers(&first.url(), &second.url(), "")), &[]).await;
    let answer = app.chat(json!({})).await;
    assert_eq!(answer.refusal(), "429 rate_limit_exceeded");
    assert_eq!(
        (answer.header("retry-after"), answer.header("x-gateway-attempts")),
        ("7", "2")
    );
    let states: Vec<Value> = app.logged(&answer).await["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["state"].clone())
        .collect();
    assert_eq!(states, ["failed", "failed"]);
}

#[tokio::test]
async fn a_target_is_asked_again_as_often_as_its_policy_says() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let retry = ", retry: {attempts: 3, initial_backoff_ms: 1}";
    let app = TestApp::start(Some(&two_providers(&first.url(), &second.url(), retry)), &[]).await;
    first.script([
        Reply::error(500, "a", "A."),
        Reply::error(502, "b", "B."),
        Reply::chat("Third time."),
    ]);
    let answer = app.chat(json!({})).await;
    assert_eq!(
        (answer.header("x-gateway-target"), answer.header("x-gateway-attempts")),
        ("first", "3")
    );
    assert_eq!(
        app.logged(&answer).await["verdicts"][0]["reason"],
        "answered in 3 attempts"
    );

    first.reset();
    first.set_default(Reply::error(500, "a", "A."));
    let answer = app.chat(json!({ "stream": true })).await;
    assert_eq!(
        (answer.header("x-gateway-target"), answer.header("x-gateway-attempts")),
        ("second", "4")
    );

    first.reset();
    first.set_default(Reply::error(429, "a", "A.").retry_after("60"));
    let answer = app.chat(json!({})).await;
    assert_eq!(
        (answer.header("x-gateway-target"), answer.header("x-gateway-attempts")),
        ("second", "2"),
        "too long to sit out"
    );
}

#[tokio::test]
async fn statuses_that_an_operator_lists_move_on() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let config = two_providers(&first.url(), &second.url(), "")
        .replace("mode: fallback", "mode: fallback, failover_on_status_codes: [418]");
    let app = TestApp::start(Some(&config), &[]).await;
    first.script([Reply::error(418, "teapot", "Tea.")]);
    assert_eq!(app.chat(json!({})).await.header("x-gateway-target"), "second");
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_left_when_its_time_is_over() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    first.set_default(Reply::hang());
    let app = TestApp::start(
        Some(&two_providers(&first.url(), &second.url(), ", timeout: 300ms")),
        &[],
    )
    .await;
    for stream in [false, true] {
        let answer = app.chat(json!({ "stream": stream })).await;
        assert_eq!(answer.header("x-gateway-target"), "second");
        let log = app.logged(&answer).await;
        assert_eq!(log["attempts"][0]["outcome"], "timeout");
    }
    cancelled(&first).await;
}

#[tokio::test]
async fn the_requests_own_deadline_ends_everything() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::hang());
    let app = TestApp::start(
        Some(&format!("request_timeout: 300ms\n{}", one_provider(&mock.url()))),
        &[],
    )
    .await;
    let answer = app.chat(json!({})).await;
    assert_eq!(answer.refusal(), "504 gateway_timeout");
    cancelled(&mock).await;
}

#[tokio::test]
async fn single_stays_with_the_first_target() {
    let second = MockUpstream::start().await;
    let config = two_providers(&MockUpstream::refused_url(), &second.url(), "").replace("fallback", "single");
    let app = TestApp::start(Some(&config), &[]).await;
    let answer = app.chat(json!({})).await;
    assert_eq!(answer.refusal(), "502 upstream_error");
    assert!(second.requests().is_empty());
    let log = app.logged(&answer).await;
    assert_eq!(log["verdicts"][1]["reason"], "mode single uses the first target only");
}

#[tokio::test]
async fn a_wrong_request_names_its_field_and_reaches_nobody() {
    let mock = MockUpstream::start().await;
    let app = TestApp::in_front_of(&mock.url()).await;
    let answer = app.post("/v1/chat/completions", &json!({ "model": "m" })).await;
    assert_eq!(answer.refusal(), "400 invalid_request");
    assert_eq!(answer.json()["error"]["param"], "messages");
    assert!(mock.requests().is_empty());
    assert_eq!(app.logged(&answer).await["outcome"], "rejected");
}

/// What reached the upstream is cancelled there. (On a busy machine the time may be over before anything does.)
async fn cancelled(mock: &MockUpstream) {
    if !mock.requests().is_empty() {
        mock.wait_cancelled().await;
    }
}
