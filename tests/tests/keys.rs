//! The life of a key.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchyard_tests::TestApp;

#[tokio::test]
async fn a_key_is_shown_once_and_revoked_at_once() {
    let app = TestApp::start(None, &[]).await;
    let (id, key) = app.create_key(json!({ "name": " web-app " })).await;
    assert!(key.starts_with("sy_") && key.len() == 46, "{key}");
    assert_eq!(
        app.send_as(&key, Method::GET, "/v1/models", None).await.status,
        StatusCode::OK
    );

    let listed = app.get("/admin/keys").await;
    assert!(
        !listed.text().contains(&key),
        "the secret is nowhere but in the answer that made it"
    );
    let shown = listed.json()[0].clone();
    assert_eq!(
        (&shown["name"], &shown["scopes"], &shown["state"]),
        (&json!("web-app"), &json!(["invoke"]), &json!("live"))
    );

    let revoked = app.post(&format!("/admin/keys/{id}/revoke"), &json!({})).await;
    assert_eq!(revoked.json()["state"], "revoked");
    assert_eq!(
        app.send_as(&key, Method::GET, "/v1/models", None).await.refusal(),
        "401 invalid_api_key"
    );
    let again = app.post(&format!("/admin/keys/{id}/revoke"), &json!({})).await;
    assert_eq!(
        again.json()["revoked_at"],
        revoked.json()["revoked_at"],
        "revoking twice changes nothing"
    );
}

#[tokio::test]
async fn a_key_expires_by_itself() {
    let app = TestApp::start(None, &[]).await;
    let past = app
        .post(
            "/admin/keys",
            &json!({ "name": "x", "expires_at": "2020-01-01T00:00:00Z" }),
        )
        .await;
    assert_eq!(
        (past.refusal().as_str(), &past.json()["error"]["param"]),
        ("400 invalid_request", &json!("expires_at"))
    );

    let (id, key) = app
        .create_key(json!({ "name": "short", "expires_at": "2999-01-01T00:00:00+01:00" }))
        .await;
    assert_eq!(
        app.get(&format!("/admin/keys/{id}")).await.json()["expires_at"],
        "2998-12-31T23:00:00.000Z"
    );
    assert_eq!(
        app.send_as(&key, Method::GET, "/v1/models", None).await.status,
        StatusCode::OK
    );

    let soon = switchyard_api::Timestamp(chrono_now_ms() + 300).rfc3339();
    let changed = app
        .send(
            Method::PUT,
            &format!("/admin/keys/{id}"),
            Some(&json!({ "expires_at": soon })),
        )
        .await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.text());
    while app.get(&format!("/admin/keys/{id}")).await.json()["state"] == "live" {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        app.send_as(&key, Method::GET, "/v1/models", None).await.refusal(),
        "401 invalid_api_key",
        "no cache outlives it"
    );
    let cleared = app
        .send(
            Method::PUT,
            &format!("/admin/keys/{id}"),
            Some(&json!({ "clear_expiration": true })),
        )
        .await;
    assert_eq!(cleared.json()["expires_at"], Value::Null);
    assert_eq!(
        app.send_as(&key, Method::GET, "/v1/models", None).await.status,
        StatusCode::OK
    );
}

fn chrono_now_ms() -> i64 {
    use switchyard_engine::ports::{Clock, SystemClock};
    SystemClock.now_ms()
}

#[tokio::test]
async fn nobody_locks_everyone_out() {
    let app = TestApp::start(None, &[]).await;
    let own = app.get("/admin/session").await.json()["credential_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        app.post(&format!("/admin/keys/{own}/revoke"), &json!({}))
            .await
            .refusal(),
        "409 self_mutation_forbidden"
    );
    let (other, other_key) = app.create_key(json!({ "name": "second", "scopes": ["admin"] })).await;
    let revoke = format!("/admin/keys/{own}/revoke");
    assert_eq!(
        app.send_as(&other_key, Method::POST, &revoke, None).await.status,
        StatusCode::OK
    );
    let demote = json!({ "scopes": ["read_only"] });
    let answer = app
        .send_as(&other_key, Method::PUT, &format!("/admin/keys/{other}"), Some(&demote))
        .await;
    assert_eq!(answer.refusal(), "409 self_mutation_forbidden");
}

#[tokio::test]
async fn wrong_input_is_named() {
    let app = TestApp::start(None, &[]).await;
    for (body, want, says) in [
        (json!({}), "400 invalid_request", "missing field `name`"),
        (
            json!({ "name": "" }),
            "400 invalid_request",
            "name must have 1 to 80 characters",
        ),
        (
            json!({ "name": "x".repeat(81) }),
            "400 invalid_request",
            "name must have 1 to 80 characters",
        ),
        (
            json!({ "name": "x", "scopes": ["root"] }),
            "400 invalid_scope",
            "unknown variant `root`",
        ),
        (
            json!({ "name": "x", "budget": 1 }),
            "400 invalid_request",
            "unknown field `budget`",
        ),
        (
            json!({ "name": "x", "expires_at": "soon" }),
            "400 invalid_request",
            "`soon` is no RFC 3339 time",
        ),
    ] {
        let answer = app.post("/admin/keys", &body).await;
        assert_eq!(answer.refusal(), want, "{body}");
        assert!(answer.text().contains(says), "{body}: {}", answer.text());
    }
    assert_eq!(app.get("/admin/keys/nope").await.refusal(), "404 resource_not_found");
    assert_eq!(
        app.post("/admin/keys/nope/revoke", &json!({})).await.refusal(),
        "404 resource_not_found"
    );
}

#[tokio::test]
async fn use_of_a_key_is_counted() {
    let app = TestApp::start(None, &[]).await;
    let (id, key) = app.create_key(json!({ "name": "counted" })).await;
    let body = switchyard_tests::app::chat_body(json!({ "model": "demo" }));
    let mut last = None;
    for _ in 0..3 {
        last = Some(
            app.send_as(&key, Method::POST, "/v1/chat/completions", Some(&body))
                .await,
        );
    }
    let log = app.logged(&last.unwrap()).await;
    assert_eq!(log["api_key_id"], id);
    let listed = app.get(&format!("/admin/keys/{id}")).await.json();
    assert_eq!(listed["usage_count"], 3);
    assert!(listed["last_used_at"].is_string());
}
