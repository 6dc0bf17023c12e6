//! One chain for every plane.

use futures_util::future::join_all;
use http::{Method, StatusCode};
use serde_json::json;
use switchyard_tests::TestApp;
use switchyard_tests::app::{chat_body, read};

const SPENDING: [(&str, &str); 2] = [("POST", "/v1/chat/completions"), ("POST", "/v1/embeddings")];
const READING: [(&str, &str); 2] = [("GET", "/v1/models"), ("GET", "/v1/models/demo")];
const LOOKING: [(&str, &str); 7] = [
    ("GET", "/admin/dashboard"),
    ("GET", "/admin/keys"),
    ("GET", "/admin/keys/x"),
    ("GET", "/admin/logs"),
    ("GET", "/admin/logs/x"),
    ("GET", "/admin/session"),
    ("GET", "/metrics"),
];
const CHANGING: [(&str, &str); 3] = [
    ("POST", "/admin/keys"),
    ("PUT", "/admin/keys/x"),
    ("POST", "/admin/keys/x/revoke"),
];

#[tokio::test]
async fn no_route_but_the_probes_answers_without_a_key() {
    let app = TestApp::start(None, &[]).await;
    for (method, path) in SPENDING.into_iter().chain(READING).chain(LOOKING).chain(CHANGING) {
        let method: Method = method.parse().unwrap();
        let answer = read(app.request(method.clone(), path)).await;
        assert_eq!(answer.refusal(), "401 missing_api_key", "{method} {path}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        // The method is judged after the caller.
        let wrong = read(app.request(Method::PATCH, path)).await;
        assert!(
            wrong.status == StatusCode::UNAUTHORIZED || path == "/admin/session",
            "PATCH {path}: {}",
            wrong.status
        );
    }
    for path in ["/livez", "/readyz", "/health"] {
        assert_eq!(
            read(app.request(Method::GET, path)).await.status,
            StatusCode::OK,
            "{path}"
        );
    }
}

#[tokio::test]
async fn each_scope_opens_its_routes_and_no_others() {
    let app = TestApp::start(None, &[]).await;
    let (_, invoke) = app.create_key(json!({ "name": "app" })).await;
    let (_, read_only) = app
        .create_key(json!({ "name": "viewer", "scopes": ["read_only"] }))
        .await;
    let chat = chat_body(json!({ "model": "demo" }));
    let change = json!({ "name": "x" });
    let refused = |answer: &switchyard_tests::Answer| answer.status == StatusCode::FORBIDDEN;
    for (kind, key, spends, looks, changes) in [
        ("invoke", &invoke, true, false, false),
        ("read_only", &read_only, false, true, false),
        ("admin", &app.key, true, true, true),
    ] {
        for (method, path) in SPENDING {
            let answer = app.send_as(key, method.parse().unwrap(), path, Some(&chat)).await;
            assert_eq!(!refused(&answer), spends, "{kind} {path}");
        }
        for (method, path) in READING {
            assert_eq!(
                app.send_as(key, method.parse().unwrap(), path, None).await.status,
                StatusCode::OK,
                "{kind} {path}"
            );
        }
        for (method, path) in LOOKING {
            let answer = app.send_as(key, method.parse().unwrap(), path, None).await;
            assert_eq!(!refused(&answer), looks, "{kind} {path}");
        }
        for (method, path) in CHANGING {
            let answer = app.send_as(key, method.parse().unwrap(), path, Some(&change)).await;
            assert_eq!(!refused(&answer), changes, "{kind} {path}");
        }
    }
    let answer = app
        .send_as(&read_only, Method::POST, "/v1/chat/completions", Some(&chat))
        .await;
    assert_eq!(answer.refusal(), "403 insufficient_scope");
}

#[tokio::test]
async fn a_key_comes_in_three_headers_and_nonsense_in_none() {
    let app = TestApp::start(None, &[]).await;
    for (name, value) in [
        ("authorization", format!("bearer {}", app.key)),
        ("x-api-key", app.key.clone()),
        ("api-key", app.key.clone()),
    ] {
        let answer = read(app.request(Method::GET, "/v1/models").header(name, &value)).await;
        assert_eq!(answer.status, StatusCode::OK, "{name}");
    }
    let stolen_hash = "a".repeat(64);
    for value in [
        "",
        "Bearer",
        "Bearer ",
        "Basic eA==",
        "Bearer ' or 1=1 --",
        &format!("Bearer {}x", app.key),
        &format!("Bearer {stolen_hash}"),
    ] {
        let answer = read(app.request(Method::GET, "/v1/models").header("authorization", value)).await;
        assert_eq!(answer.refusal(), "401 invalid_api_key", "{value}");
        assert!(!answer.text().contains(&app.key), "no echo");
    }
}

#[tokio::test]
async fn guessing_is_throttled_and_a_known_key_goes_on() {
    let app = TestApp::start(None, &[("RATE_LIMIT_BURST", "3")]).await;
    assert_eq!(app.get("/v1/models").await.status, StatusCode::OK);
    // All at once, so that no machine is too slow for the limit.
    let guesses: Vec<String> = (0..60).map(|i| format!("sy_{i:0>43}")).collect();
    let answers = join_all(
        guesses
            .iter()
            .map(|guess| app.send_as(guess, Method::GET, "/v1/models", None)),
    )
    .await;
    let throttled = answers
        .iter()
        .filter(|answer| answer.refusal() == "429 rate_limit_exceeded")
        .count();
    assert!(throttled > 0, "60 guesses at once");
    assert!(answers.iter().all(|answer| matches!(answer.status.as_u16(), 401 | 429)));
    assert_eq!(
        app.get("/v1/models").await.status,
        StatusCode::OK,
        "a known key from the same address"
    );
}

#[tokio::test]
async fn the_limit_of_the_reference_holds_for_everyone_when_it_is_set() {
    let app = TestApp::start(None, &[("RATE_LIMIT_RPS", "1"), ("RATE_LIMIT_BURST", "3")]).await;
    let answers = join_all((0..40).map(|_| app.get("/v1/models"))).await;
    let passed = answers.iter().filter(|answer| answer.status == StatusCode::OK).count();
    assert!((3..40).contains(&passed), "{passed} passed");
    let refused = answers.iter().find(|answer| answer.status != StatusCode::OK).unwrap();
    assert_eq!(
        (refused.refusal().as_str(), refused.header("retry-after")),
        ("429 rate_limit_exceeded", "1")
    );
    for _ in 0..10 {
        assert_eq!(
            app.get("/livez").await.status,
            StatusCode::OK,
            "probes are never refused"
        );
    }
}

#[tokio::test]
async fn the_master_key_needs_no_database_and_makes_no_first_key() {
    let app = TestApp::start(None, &[("MASTER_KEY", "correct horse battery staple")]).await;
    assert_eq!(app.key, "", "no first key beside a master key");
    let answer = app
        .send_as("correct horse battery staple", Method::GET, "/admin/session", None)
        .await;
    assert_eq!(answer.json()["subject"], "master key");
    assert_eq!(
        app.send_as("correct horse battery", Method::GET, "/admin/session", None)
            .await
            .refusal(),
        "401 invalid_api_key"
    );
}

#[tokio::test]
async fn the_data_plane_can_be_opened_and_the_admin_side_cannot() {
    let app = TestApp::start(None, &[("ALLOW_UNAUTHENTICATED_PROXY", "true")]).await;
    let chat = app
        .request(Method::POST, "/v1/chat/completions")
        .json(&chat_body(json!({ "model": "demo" })));
    assert_eq!(read(chat).await.status, StatusCode::OK);
    assert_eq!(
        read(app.request(Method::GET, "/admin/keys")).await.refusal(),
        "401 missing_api_key"
    );
    let wrong = app.send_as("sy_wrong", Method::GET, "/v1/models", None).await;
    assert_eq!(
        wrong.refusal(),
        "401 invalid_api_key",
        "a wrong key is wrong, not absent"
    );
}

/// The cookie of a session, begun by the sign-in form.
async fn sign_in(app: &TestApp, key: &str) -> String {
    let form = app
        .request(Method::POST, "/admin/session")
        .header("content-type", "application/x-www-form-urlencoded");
    let answer = read(form.body(format!("key={key}&next=/requests"))).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/requests"));
    assert!(answer.body.is_empty(), "no token in the body");
    answer.header("set-cookie").to_owned()
}

#[tokio::test]
async fn the_form_gives_a_cookie_that_no_script_reads() {
    let app = TestApp::start(None, &[]).await;
    let cookie = sign_in(&app, &app.key).await;
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "plain http on a local network works");
    let cookie = cookie.split(';').next().unwrap().to_owned();

    let me = read(app.request(Method::GET, "/admin/session").header("cookie", &cookie)).await;
    assert_eq!(me.json()["subject"], "first key");

    let chat = || {
        app.request(Method::POST, "/v1/chat/completions")
            .header("cookie", &cookie)
            .json(&chat_body(json!({ "model": "demo" })))
    };
    assert_eq!(
        read(chat()).await.refusal(),
        "403 cross_origin",
        "a cookie alone changes nothing"
    );
    assert_eq!(
        read(chat().header("sec-fetch-site", "cross-site")).await.refusal(),
        "403 cross_origin"
    );
    assert_eq!(
        read(chat().header("sec-fetch-site", "same-origin")).await.status,
        StatusCode::OK
    );

    let end = app
        .request(Method::POST, "/admin/session/end")
        .header("cookie", &cookie)
        .header("sec-fetch-site", "same-origin");
    let ended = read(end).await;
    assert!(ended.header("set-cookie").contains("Max-Age=0"), "{ended:?}");
    assert_eq!(
        read(app.request(Method::GET, "/admin/session").header("cookie", &cookie))
            .await
            .refusal(),
        "401 missing_api_key"
    );
}

#[tokio::test]
async fn the_form_says_why_it_refuses_and_leads_nowhere_else() {
    let app = TestApp::start(None, &[]).await;
    let (_, invoke) = app.create_key(json!({ "name": "app" })).await;
    for (body, want) in [
        (
            "key=sy_wrong&next=/keys".to_owned(),
            "/signin?error=invalid&next=%2Fkeys",
        ),
        ("key=".to_owned(), "/signin?error=invalid&next=%2F"),
        (format!("key={invoke}&next=//evil.test"), "/signin?error=scope&next=%2F"),
    ] {
        let form = app
            .request(Method::POST, "/admin/session")
            .header("content-type", "application/x-www-form-urlencoded");
        let answer = read(form.body(body.clone())).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("location")),
            (303, want),
            "{body}"
        );
        assert_eq!(answer.header("set-cookie"), "");
    }
    let form = app
        .request(Method::POST, "/admin/session")
        .header("content-type", "application/x-www-form-urlencoded");
    let cross = read(
        form.header("sec-fetch-site", "cross-site")
            .body(format!("key={}", app.key)),
    )
    .await;
    assert_eq!(cross.header("set-cookie"), "", "nobody signs somebody else in");
}

#[tokio::test]
async fn a_cookie_over_https_is_secure() {
    let app = TestApp::start(None, &[]).await;
    let form = app
        .request(Method::POST, "/admin/session")
        .header("content-type", "application/x-www-form-urlencoded");
    let answer = read(
        form.header("x-forwarded-proto", "https")
            .body(format!("key={}", app.key)),
    )
    .await;
    assert!(
        answer.header("set-cookie").contains("Secure"),
        "{}",
        answer.header("set-cookie")
    );
    assert!(
        answer
            .header("strict-transport-security")
            .starts_with("max-age=31536000")
    );
}

#[tokio::test]
async fn a_program_gets_a_token_and_it_ends_with_its_key() {
    let app = TestApp::start(None, &[]).await;
    let (id, key) = app.create_key(json!({ "name": "cli", "scopes": ["admin"] })).await;
    let begun = app.send_as(&key, Method::POST, "/admin/session", None).await;
    assert_eq!(begun.status, StatusCode::CREATED);
    let session = begun.json();
    assert_eq!(
        (&session["subject"], &session["scopes"]),
        (&json!("cli"), &json!(["admin"]))
    );
    let token = session["token"].as_str().unwrap().to_owned();
    assert_eq!(
        app.send_as(&token, Method::GET, "/admin/keys", None).await.status,
        StatusCode::OK
    );
    assert_eq!(
        app.send_as(&token, Method::POST, "/admin/session", None).await.status,
        StatusCode::BAD_REQUEST
    );

    assert_eq!(
        app.post(&format!("/admin/keys/{id}/revoke"), &json!({})).await.status,
        StatusCode::OK
    );
    assert_eq!(
        app.send_as(&token, Method::GET, "/admin/keys", None).await.refusal(),
        "401 invalid_session"
    );

    let token = app.send(Method::POST, "/admin/session", None).await.json()["token"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        app.send_as(&token, Method::DELETE, "/admin/session", None).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        app.send_as(&token, Method::GET, "/admin/keys", None).await.refusal(),
        "401 invalid_session"
    );
    assert_eq!(
        app.send(Method::DELETE, "/admin/session", None).await.refusal(),
        "400 not_a_session"
    );
}

#[tokio::test]
async fn signing_in_has_a_limit_of_its_own() {
    let app = TestApp::start(None, &[]).await;
    let mut last = String::new();
    for _ in 0..30 {
        let form = app
            .request(Method::POST, "/admin/session")
            .header("content-type", "application/x-www-form-urlencoded");
        last = read(form.body("key=sy_guess")).await.header("location").to_owned();
    }
    assert_eq!(last, "/signin?error=throttled&next=%2F");
}
