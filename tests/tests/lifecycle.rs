//! Starting, stopping, starting again.

use futures_util::StreamExt;
use http::{Method, StatusCode};
use serde_json::json;
use switchyard_tests::TestApp;
use switchyard_tests::app::{chat_body, one_provider};
use switchyard_tests::mock::{MockUpstream, Reply};

#[tokio::test]
async fn what_was_kept_is_there_after_a_restart() {
    let app = TestApp::start(None, &[]).await;
    let key = app.key.clone();
    let answer = app.chat(json!({ "model": "demo" })).await;
    let id = answer.header("x-request-id").to_owned();
    let dir = app.stop().await;

    let app = TestApp::start_in(dir, None, &[]).await;
    assert_eq!(app.key, "", "no second first key");
    let log = app.send_as(&key, Method::GET, &format!("/admin/logs/{id}"), None).await;
    assert_eq!(
        (log.status, &log.json()["outcome"]),
        (StatusCode::OK, &json!("success"))
    );
}

#[tokio::test]
async fn a_stream_finishes_while_the_gateway_drains() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::chat("one two three").gate("words")]);
    let mut app = TestApp::in_front_of(&mock.url()).await;
    mock.gate("words").release(2);
    let request = app.request(Method::POST, "/v1/chat/completions").bearer_auth(&app.key);
    let response = request
        .json(&chat_body(json!({ "stream": true })))
        .send()
        .await
        .unwrap();
    let mut body = response.bytes_stream();
    assert!(body.next().await.unwrap().is_ok());

    let running = app.take();
    let address = running.address;
    let stopping = tokio::spawn(running.stop());
    // The listener closes first; nobody new comes in.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    mock.gate("words").open();
    let mut rest = Vec::new();
    while let Some(bytes) = body.next().await {
        rest.extend_from_slice(&bytes.unwrap());
    }
    assert!(
        rest.ends_with(b"data: [DONE]\n\n"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
    stopping.await.unwrap();
}

#[tokio::test]
async fn what_outlasts_the_drain_is_cut_and_recorded() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::chat("one two three").stall_after(2));
    let config = one_provider(&mock.url());
    let mut app = TestApp::start(Some(&config), &[("DRAIN_TIMEOUT", "0")]).await;
    let request = app.request(Method::POST, "/v1/chat/completions").bearer_auth(&app.key);
    let response = request
        .json(&chat_body(json!({ "stream": true })))
        .send()
        .await
        .unwrap();
    let mut body = response.bytes_stream();
    assert!(body.next().await.unwrap().is_ok());
    app.take().stop().await;
    while let Some(Ok(_)) = body.next().await {}
    mock.wait_cancelled().await;

    let key = app.key.clone();
    let app = TestApp::start_in(app.stop().await, Some(&config), &[]).await;
    let page = app.send_as(&key, Method::GET, "/admin/logs", None).await.json();
    let row = &page["data"][0];
    assert_eq!(
        (&row["outcome"], &row["error_code"]),
        (&serde_json::json!("partial"), &serde_json::json!("routing_error")),
        "not the client's fault: {page}"
    );
    assert!(page["data"][0]["completion_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn two_gateways_do_not_share_a_folder() {
    let app = TestApp::start(None, &[]).await;
    let env = app.environment();
    let settings = switchyard::boot::Settings::read(&env).unwrap();
    let plan = switchyard::boot::Plan {
        settings,
        config: None,
        env: &env,
        pace: switchyard_engine::demo::Pace::Instant,
    };
    let Err(error) = switchyard::boot::start(plan).await else {
        panic!("refused")
    };
    assert!(error.to_string().starts_with("another gateway uses "), "{error}");
}

#[tokio::test]
async fn a_lost_key_is_replaced_on_the_machine_itself() {
    let app = TestApp::start(None, &[]).await;
    let dir = app.stop().await;
    let key = switchyard::boot::recover(&dir.path().join("switchyard.db"))
        .await
        .unwrap();
    let app = TestApp::start_in(dir, None, &[]).await;
    let me = app
        .send_as(key.secret.expose(), Method::GET, "/admin/session", None)
        .await;
    assert_eq!(
        (&me.json()["subject"], &me.json()["scopes"]),
        (&json!("recovered key"), &json!(["admin"]))
    );
    assert!(
        switchyard::boot::recover(std::path::Path::new("/nowhere/switchyard.db"))
            .await
            .is_err()
    );
}
