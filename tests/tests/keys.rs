//! The life of a key.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchyard_tests::app::{chat_body, read};
use switchyard_tests::{Answer, TestApp};

/// Two routes besides the default one, and a project that has the second.
const ROUTES: &str = "targets: [{virtual_key: demo}]
routes:
  fast: {targets: [{virtual_key: demo}]}
  slow: {targets: [{virtual_key: demo}]}
projects:
  shop: {route: slow}
  a team: {}
  éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé: {}";

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
    let body = chat_body(json!({ "model": "demo" }));
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

async fn change(app: &TestApp, id: &str, body: Value) -> Answer {
    app.send(Method::PUT, &format!("/admin/keys/{id}"), Some(&body)).await
}

/// The route that a call with this key takes, as the log tells it.
async fn route_of(app: &TestApp, key: &str) -> Value {
    let body = chat_body(json!({ "model": "demo" }));
    let answer = app
        .send_as(key, Method::POST, "/v1/chat/completions", Some(&body))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    app.logged(&answer).await["route"].clone()
}

#[tokio::test]
async fn a_keys_calls_take_its_route_or_its_projects_at_once() {
    let app = TestApp::start(Some(ROUTES), &[]).await;
    let (_, plain) = app.create_key(json!({ "name": "plain" })).await;
    assert_eq!(route_of(&app, &plain).await, "default");

    let new = json!({ "name": "bound", "project": " shop ", "route": " fast " });
    let (id, key) = app.create_key(new).await;
    for (body, project, route, taken) in [
        (json!({}), json!("shop"), json!("fast"), "fast"),
        (json!({ "name": "renamed" }), json!("shop"), json!("fast"), "fast"),
        (json!({ "route": "" }), json!("shop"), Value::Null, "slow"),
        (json!({ "project": " " }), Value::Null, Value::Null, "default"),
        (json!({ "project": "a team" }), json!("a team"), Value::Null, "default"),
        (json!({ "route": "slow" }), json!("a team"), json!("slow"), "slow"),
    ] {
        let changed = change(&app, &id, body.clone()).await;
        assert_eq!(changed.status, StatusCode::OK, "{body}: {}", changed.text());
        let shown = app.get(&format!("/admin/keys/{id}")).await.json();
        let listed = app.get("/admin/keys").await.json();
        let listed = listed.as_array().unwrap().iter().find(|key| key["id"] == *id).unwrap();
        for answer in [&changed.json(), &shown, listed] {
            assert_eq!((&answer["project"], &answer["route"]), (&project, &route), "{body}");
        }
        assert_eq!(route_of(&app, &key).await, taken, "{body}: no cache holds what it was");
    }
    let found = app.get("/admin/logs?route=fast").await.json();
    assert_eq!(found["summary"]["total_entries"], 2);
    assert!(
        found["data"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["route"] == "fast")
    );
}

#[tokio::test]
async fn a_session_takes_the_route_of_the_key_behind_it() {
    let app = TestApp::start(Some(ROUTES), &[]).await;
    let (id, key) = app
        .create_key(json!({ "name": "operator", "scopes": ["admin"], "route": "fast" }))
        .await;
    let begun = read(app.request(Method::POST, "/admin/session").bearer_auth(&key)).await;
    assert_eq!(begun.status, StatusCode::CREATED, "{}", begun.text());
    let token = begun.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(route_of(&app, &token).await, "fast");
    assert_eq!(
        change(&app, &id, json!({ "route": "slow" })).await.status,
        StatusCode::OK
    );
    assert_eq!(route_of(&app, &token).await, "slow");
}

#[tokio::test]
async fn a_project_or_route_that_cannot_be_is_refused_and_changes_nothing() {
    let app = TestApp::start(Some(ROUTES), &[]).await;
    let (id, _) = app
        .create_key(json!({ "name": "bound", "project": "shop", "route": "fast" }))
        .await;
    let before = app.get("/admin/keys").await.json();
    for (field, value, says) in [
        (
            "route",
            "scenic".to_owned(),
            "\\\"scenic\\\" is no route of this gateway; name one",
        ),
        (
            "project",
            "club".to_owned(),
            "\\\"club\\\" is no project of this gateway; name one",
        ),
        ("route", "r".repeat(81), "route must have at most 80 characters"),
        ("route", "fa\nst".to_owned(), "no control characters"),
        ("project", "p".repeat(81), "project must have at most 80 characters"),
        ("project", "sh\u{0}op".to_owned(), "no control characters"),
    ] {
        let change_of = json!({ field: value });
        let new = json!({ "name": "x", field: value });
        for answer in [app.post("/admin/keys", &new).await, change(&app, &id, change_of).await] {
            assert_eq!(
                (answer.refusal().as_str(), &answer.json()["error"]["param"]),
                ("400 invalid_request", &json!(field)),
                "{new}"
            );
            assert!(answer.text().contains(says), "{new}: {}", answer.text());
        }
    }
    assert_eq!(app.get("/admin/keys").await.json(), before);
    // Characters are counted, not bytes; and what is empty from the start is none.
    let (id, _) = app
        .create_key(json!({ "name": "x", "project": "é".repeat(80), "route": "" }))
        .await;
    let shown = app.get(&format!("/admin/keys/{id}")).await.json();
    assert_eq!(
        (&shown["project"], &shown["route"]),
        (&json!("é".repeat(80)), &Value::Null)
    );
}
