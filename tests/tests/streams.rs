//! Streams: committed at their first content, honest about their end.

use futures_util::StreamExt;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchyard_tests::app::{chat_body, two_providers};
use switchyard_tests::mock::{MockUpstream, Reply};
use switchyard_tests::{Answer, TestApp};

/// The data of each frame.
fn frames(answer: &Answer) -> Vec<String> {
    answer
        .text()
        .split("\n\n")
        .filter_map(|frame| frame.strip_prefix("data: "))
        .map(str::to_owned)
        .collect()
}

/// The chunks of a stream, without its end.
fn chunks(answer: &Answer) -> Vec<Value> {
    frames(answer)
        .iter()
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn text(chunks: &[Value]) -> String {
    chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect()
}

#[tokio::test]
async fn usage_is_always_asked_for_and_passed_on_only_to_who_asked() {
    let mock = MockUpstream::start().await;
    let app = TestApp::in_front_of(&mock.url()).await;
    for asked in [false, true] {
        mock.script([Reply::chat("one two three")]);
        let options = if asked {
            json!({ "stream": true, "stream_options": { "include_usage": true } })
        } else {
            json!({ "stream": true })
        };
        let answer = app.chat(options).await;
        assert_eq!(
            mock.requests().pop().unwrap().json["stream_options"],
            json!({ "include_usage": true })
        );
        assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
        assert_eq!(frames(&answer).pop().unwrap(), "[DONE]");
        let chunks = chunks(&answer);
        assert_eq!(text(&chunks), "one two three");
        let with_usage: Vec<bool> = chunks.iter().map(|chunk| chunk.get("usage").is_some()).collect();
        if asked {
            assert!(
                with_usage.iter().all(|has| *has),
                "the upstream's own frames, untouched"
            );
            assert_eq!(chunks.last().unwrap()["choices"], json!([]));
        } else {
            assert!(with_usage.iter().all(|has| !has), "no trace of what was not asked for");
        }
        let log = app.logged(&answer).await;
        assert_eq!(
            (&log["outcome"], &log["stream"], &log["usage_estimated"]),
            (&json!("success"), &json!(true), &json!(false))
        );
        assert!(log["total_tokens"].as_u64().unwrap() > 0);
        assert!(log["ttft_ms"].as_f64().unwrap() > 0.0);
    }
}

#[tokio::test]
async fn a_stream_that_fails_before_content_moves_on_unseen() {
    let second = MockUpstream::start().await;
    for first_reply in [
        Reply::chat("never seen").close_after(0),
        Reply::chat("never seen").reset_after(0),
        Reply::chat("never seen").end_after(0),
        Reply::chat("never seen").error_event_after(0),
        Reply::sse(["data: {\"error\":{\"message\":\"overloaded\"}}\n\n"]),
        Reply::error(503, "overloaded", "Later."),
    ] {
        let first = MockUpstream::start().await;
        first.set_default(first_reply.clone());
        second.script([Reply::chat("from the second")]);
        let app = TestApp::start(Some(&two_providers(&first.url(), &second.url(), "")), &[]).await;
        let answer = app.chat(json!({ "stream": true })).await;
        assert_eq!(answer.status, StatusCode::OK, "{first_reply:?}: {}", answer.text());
        assert_eq!(text(&chunks(&answer)), "from the second", "{first_reply:?}");
        assert_eq!(
            (answer.header("x-gateway-target"), answer.header("x-gateway-attempts")),
            ("second", "2")
        );
        let log = app.logged(&answer).await;
        assert_eq!(log["attempts"].as_array().unwrap().len(), 2);
        assert_eq!(log["verdicts"][0]["state"], "failed");
        assert_eq!(log["verdicts"][1]["state"], "chosen");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_after_content_says_so() {
    for reply in [
        Reply::chat("one two three four").close_after(3),
        Reply::chat("one two three four").reset_after(3),
        Reply::chat("one two three four").end_after(3),
        Reply::chat("one two three four").error_event_after(3),
    ] {
        let mock = MockUpstream::start().await;
        mock.script([reply.clone()]);
        let second = MockUpstream::start().await;
        let app = TestApp::start(Some(&two_providers(&mock.url(), &second.url(), "")), &[]).await;
        let answer = app.chat(json!({ "stream": true })).await;
        assert_eq!(answer.status, StatusCode::OK);
        let all = frames(&answer);
        assert_eq!(all.last().unwrap(), "[DONE]", "{reply:?}: {all:?}");
        let error: Value = serde_json::from_str(&all[all.len() - 2]).unwrap();
        assert!(error["error"]["message"].is_string(), "{reply:?}: {error}");
        assert!(text(&chunks(&answer)).starts_with("one"), "what came is kept");
        let log = app.logged(&answer).await;
        assert_eq!(
            (&log["outcome"], &log["status"]),
            (&json!("partial"), &json!(200)),
            "{reply:?}"
        );
        assert_eq!(log["usage_estimated"], true);
        assert!(log["completion_tokens"].as_u64().unwrap() > 0);
        assert!(second.requests().is_empty(), "content was sent: nobody else is asked");
    }
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_upstreams_work() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::chat("one two three four five").gate("words")]);
    let app = TestApp::in_front_of(&mock.url()).await;
    let request = app.request(Method::POST, "/v1/chat/completions").bearer_auth(&app.key);
    mock.gate("words").release(3);
    let mut response = request
        .json(&chat_body(json!({ "stream": true })))
        .send()
        .await
        .unwrap();
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert!(response.chunk().await.unwrap().is_some());
    drop(response);
    mock.wait_cancelled().await;
    app.idle().await;
    let log = app.logged_by_id(&id).await;
    assert_eq!(
        (&log["outcome"], &log["usage_estimated"]),
        (&json!("client_cancelled"), &json!(true))
    );
    assert_eq!(log["attempts"][0]["outcome"], "client_cancelled");
    assert!(
        log["completion_tokens"].as_u64().unwrap() > 0,
        "what was used is recorded"
    );
}

#[tokio::test]
async fn a_client_that_goes_away_before_an_answer_ends_the_upstreams_work_too() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::hang()]);
    let app = TestApp::in_front_of(&mock.url()).await;
    let id = "0123456789abcdef0123456789abcdef";
    let request = app
        .request(Method::POST, "/v1/chat/completions")
        .bearer_auth(&app.key)
        .header("x-request-id", id);
    let call = tokio::spawn(request.json(&chat_body(json!({}))).send());
    mock.wait_for_requests(1).await;
    call.abort();
    mock.wait_cancelled().await;
    app.idle().await;
    let log = app.logged_by_id(id).await;
    assert_eq!(
        (&log["outcome"], &log["status"]),
        (&json!("client_cancelled"), &json!(499))
    );
    assert_eq!(log["attempts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn frames_reach_the_client_as_they_arrive() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::chat("one two three").gate("words")]);
    let app = TestApp::in_front_of(&mock.url()).await;
    let request = app.request(Method::POST, "/v1/chat/completions").bearer_auth(&app.key);
    mock.gate("words").release(2);
    let response = request
        .json(&chat_body(json!({ "stream": true })))
        .send()
        .await
        .unwrap();
    let mut body = response.bytes_stream();
    // The role and the first word are out; the rest is held back by the upstream.
    let first = body.next().await.unwrap().unwrap();
    assert!(first.starts_with(b"data: "));
    mock.gate("words").open();
    let mut rest = Vec::new();
    while let Some(bytes) = body.next().await {
        rest.extend_from_slice(&bytes.unwrap());
    }
    assert!(rest.ends_with(b"data: [DONE]\n\n"));
}
