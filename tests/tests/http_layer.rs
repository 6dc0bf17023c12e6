//! What holds for every route.

use http::{Method, StatusCode};
use serde_json::json;
use switchyard_tests::TestApp;
use switchyard_tests::app::read;

#[tokio::test]
async fn every_answer_has_an_id_and_security_headers() {
    let app = TestApp::start(None, &[]).await;
    for path in ["/livez", "/v1/models", "/nothing", "/admin/keys"] {
        let answer = app.get(path).await;
        assert_eq!(answer.header("x-request-id").len(), 32, "{path}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "strict-origin-when-cross-origin"),
            ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
        ] {
            assert_eq!(answer.header(name), value, "{path}");
        }
        assert!(
            answer
                .header("content-security-policy")
                .contains("frame-ancestors 'none'"),
            "{path}"
        );
        assert!(
            !answer.header("content-security-policy").contains("unsafe-inline"),
            "{path}"
        );
        assert_eq!(answer.header("strict-transport-security"), "", "only over https");
    }
    for (sent, kept) in [
        ("0123456789ABCDEF0123456789abcdef", true),
        ("short", false),
        ("0123456789abcdef0123456789abcdeg", false),
    ] {
        let answer = read(app.request(Method::GET, "/livez").header("x-request-id", sent)).await;
        assert_eq!(answer.header("x-request-id") == sent.to_lowercase(), kept, "{sent}");
    }
}

#[tokio::test]
async fn what_operators_see_is_nobody_elses_to_keep() {
    let app = TestApp::start(None, &[]).await;
    for path in [
        "/admin/keys",
        "/admin/logs",
        "/admin/dashboard",
        "/admin/session",
        "/metrics",
        "/admin/keys/none",
    ] {
        assert_eq!(app.get(path).await.header("cache-control"), "no-store", "{path}");
    }
    assert_eq!(app.get("/v1/models").await.header("cache-control"), "");
}

#[tokio::test]
async fn paths_and_methods_that_do_not_exist_say_so() {
    let app = TestApp::start(None, &[]).await;
    for (method, path, want, allow) in [
        ("GET", "/v1/chat/completions", "405 method_not_supported", "POST"),
        ("DELETE", "/v1/models", "405 method_not_supported", "GET,HEAD"),
        ("PATCH", "/admin/keys", "405 method_not_supported", "GET,HEAD,POST"),
        ("POST", "/livez", "405 method_not_supported", "GET,HEAD"),
        // An upstream may have it; but nobody says which.
        ("GET", "/v1/nothing", "400 provider_not_resolved", ""),
        ("GET", "/v2/nothing", "404 route_not_found", ""),
        ("POST", "/nothing", "404 route_not_found", ""),
        ("BREW", "/v1/nothing", "501 method_not_supported", ""),
    ] {
        let answer = app.send(method.parse().unwrap(), path, None).await;
        assert_eq!(
            (answer.refusal().as_str(), answer.header("allow")),
            (want, allow),
            "{method} {path}"
        );
    }
    assert_eq!(app.send(Method::HEAD, "/livez", None).await.status, StatusCode::OK);
}

#[tokio::test]
async fn where_get_is_possible_head_is_the_same_without_a_body() {
    let app = TestApp::start(None, &[]).await;
    let kept = app
        .post("/v1/responses", &json!({ "model": "demo", "input": "hi" }))
        .await;
    let kept = format!("/v1/responses/{}", kept.json()["id"].as_str().unwrap());
    for path in [
        "/v1/models",
        "/v1/models/demo",
        "/v1/models/nothing",
        "/v1/capabilities",
        "/v1beta/models",
        "/v1beta/models/demo",
        &kept,
        &format!("{kept}/input_items"),
        "/v1/responses/nothing",
        // Passed on, if anybody said to whom.
        "/v1/nothing",
    ] {
        let (get, head) = (app.get(path).await, app.send(Method::HEAD, path, None).await);
        assert_eq!(head.status, get.status, "{path}");
        for name in ["content-type", "content-length"] {
            assert_eq!(head.header(name), get.header(name), "{path}: {name}");
        }
        assert!(head.body.is_empty() && !get.body.is_empty(), "{path}");
    }
    for path in [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/messages",
        "/v1/models/demo:generateContent",
        "/v1/route/explain",
    ] {
        let head = app.send(Method::HEAD, path, None).await;
        assert_eq!(
            (head.status, head.header("allow")),
            (StatusCode::METHOD_NOT_ALLOWED, "POST"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn cross_origin_calls_are_for_those_on_the_list() {
    let app = TestApp::start(None, &[("CORS_ORIGINS", "https://a.test, https://b.test")]).await;
    for (origin, allowed) in [
        ("https://a.test", true),
        ("https://b.test", true),
        ("https://a.test.evil", false),
        ("null", false),
    ] {
        let preflight = read(
            app.request(Method::OPTIONS, "/v1/chat/completions")
                .header("origin", origin),
        )
        .await;
        assert_eq!(
            preflight.status,
            StatusCode::NO_CONTENT,
            "before anyone is asked for a key"
        );
        assert_eq!(
            preflight.header("access-control-allow-origin"),
            if allowed { origin } else { "" }
        );
        assert_eq!(
            preflight.header("access-control-max-age"),
            if allowed { "86400" } else { "" }
        );
        let call = read(
            app.request(Method::GET, "/v1/models")
                .bearer_auth(&app.key)
                .header("origin", origin),
        )
        .await;
        assert_eq!(
            (
                call.header("access-control-allow-origin") == origin,
                call.header("vary")
            ),
            (allowed, "Origin")
        );
    }
    let quiet = app.get("/v1/models").await;
    assert_eq!(quiet.header("access-control-allow-origin"), "");
}
