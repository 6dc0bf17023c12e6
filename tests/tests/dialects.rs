//! Dialects and wires through the whole gateway: shapes of errors, keys, notes, what is passed on. What is translated into what
//! the golden files of `providers` hold; that real clients hold conversations, `tests/sdk`.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchyard_tests::TestApp;
use switchyard_tests::app::read;
use switchyard_tests::mock::{Matcher, MockUpstream, Reply};

/// One provider of each wire, all of them the mock.
fn every_wire(mock: &MockUpstream) -> String {
    let origin = mock.origin();
    format!(
        "strategy: {{mode: fallback}}
targets: [{{virtual_key: openai}}, {{virtual_key: claude}}, {{virtual_key: google}}, {{virtual_key: aws}}, {{virtual_key: co}}]
providers:
  - {{id: openai, kind: openai, base_url: '{origin}/v1', api_key: sk-openai-secret-1234}}
  - {{id: claude, kind: anthropic, base_url: '{origin}/v1', api_key: sk-claude-secret-1234}}
  - {{id: google, kind: gemini, base_url: '{origin}/v1beta', api_key: sk-google-secret-1234}}
  - {{id: aws, kind: bedrock, base_url: '{origin}', region: eu-west-1, access_key_id: AKIDMOCK, secret_access_key: aws-secret-1234}}
  - {{id: co, kind: cohere, base_url: '{origin}', api_key: sk-cohere-secret-1234}}
"
    )
}

/// Calls that say the same, in each dialect.
fn calls() -> [(&'static str, Value); 4] {
    let user = json!([{ "role": "user", "content": "hi" }]);
    [
        ("/v1/chat/completions", json!({ "model": "m", "messages": user })),
        (
            "/v1/messages",
            json!({ "model": "m", "max_tokens": 9, "messages": user }),
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }] }),
        ),
        ("/v1/responses", json!({ "model": "m", "input": "hi" })),
    ]
}

/// The shape of an error, as the dialect's clients look for it: type or status, and the gateway's code.
fn shape(path: &str, body: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let error = &body["error"];
    if path.contains(":generateContent") {
        return (text(&error["status"]), text(&error["details"][0]["reason"]));
    }
    if path == "/v1/messages" {
        assert_eq!(body["type"], "error", "{body}");
    }
    (text(&error["type"]), text(&error["code"]))
}

#[tokio::test]
async fn each_dialect_is_refused_in_its_own_shape() {
    let mock = MockUpstream::start().await;
    let app = TestApp::start(Some(&every_wire(&mock)), &[]).await;
    let kinds = [
        [
            "authentication_error",
            "authentication_error",
            "UNAUTHENTICATED",
            "authentication_error",
        ],
        [
            "rate_limit_error",
            "rate_limit_error",
            "RESOURCE_EXHAUSTED",
            "rate_limit_error",
        ],
        [
            "invalid_request_error",
            "invalid_request_error",
            "INVALID_ARGUMENT",
            "invalid_request_error",
        ],
    ];
    for (i, (path, body)) in calls().into_iter().enumerate() {
        let answer = app.send_as("sy_nobody", Method::POST, path, Some(&body)).await;
        let want = (kinds[0][i].to_owned(), "invalid_api_key".to_owned());
        assert_eq!(
            (answer.status, shape(path, &answer.json())),
            (StatusCode::UNAUTHORIZED, want),
            "{path}"
        );

        mock.set_default(Reply::error(429, "slow", "Slow down."));
        let answer = app.post(path, &body).await;
        let want = (kinds[1][i].to_owned(), "rate_limit_exceeded".to_owned());
        assert_eq!(
            (answer.status, shape(path, &answer.json())),
            (StatusCode::TOO_MANY_REQUESTS, want),
            "{path}"
        );

        let answer = app.post(path, &json!([])).await;
        let want = (kinds[2][i].to_owned(), "invalid_request".to_owned());
        assert_eq!(
            (answer.status, shape(path, &answer.json())),
            (StatusCode::BAD_REQUEST, want),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_refused_credential_stays_between_gateway_and_vendor() {
    let mock = MockUpstream::start().await;
    let app = TestApp::start(Some(&every_wire(&mock)), &[]).await;
    mock.set_default(Reply::error(
        401,
        "bad",
        "Wrong key sk-openai-secret-1234 sk-claude-secret-1234.",
    ));
    for (path, body) in calls() {
        for target in ["openai", "claude", "google", "aws", "co"] {
            let request = app.request(Method::POST, path).bearer_auth(&app.key);
            let answer = read(request.header("x-gateway-only", target).json(&body)).await;
            let (_, code) = shape(path, &answer.json());
            assert_eq!(
                (answer.status.as_u16(), code.as_str()),
                (502, "upstream_auth_error"),
                "{path} {target}"
            );
            assert!(!answer.text().contains("sk-openai-secret"), "{}", answer.text());
            assert!(
                !answer.text().contains(&format!("sk-{target}-secret")),
                "{}",
                answer.text()
            );
        }
    }
}

#[tokio::test]
async fn googles_clients_show_their_key_in_their_own_way() {
    let mock = MockUpstream::start().await;
    let app = TestApp::start(Some(&every_wire(&mock)), &[]).await;
    let [.., (path, body), _] = calls();
    let in_header = app.request(Method::POST, path).header("x-goog-api-key", &app.key);
    assert_eq!(read(in_header.json(&body)).await.status, StatusCode::OK);
    let in_query = app.request(Method::POST, &format!("{path}?key={}", app.key));
    assert_eq!(read(in_query.json(&body)).await.status, StatusCode::OK);
    for seen in mock.requests() {
        assert!(!format!("{seen:?}").contains(&app.key), "{seen:?}");
    }
    let list = read(
        app.request(Method::GET, "/v1/models")
            .header("x-goog-api-key", &app.key),
    )
    .await;
    assert!(list.json()["models"].is_array(), "{}", list.text());
    let elsewhere = app
        .request(Method::POST, "/v1/chat/completions")
        .header("x-goog-api-key", &app.key);
    assert_eq!(
        read(elsewhere.json(&calls()[0].1)).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn what_is_lost_is_told_dropped_or_refused_as_the_operator_wants() {
    let mock = MockUpstream::start().await;
    let body =
        json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "seed": 7, "logit_bias": { "1": 2 } });
    for (policy, lost) in [("warn", true), ("drop", true), ("reject", false)] {
        let config = format!(
            "compatibility: {{on_unsupported_param: {policy}}}\n{}",
            every_wire(&mock)
        );
        let app = TestApp::start(Some(&config), &[]).await;
        let request = app.request(Method::POST, "/v1/chat/completions").bearer_auth(&app.key);
        let answer = read(request.header("x-gateway-only", "claude").json(&body)).await;
        if lost {
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
            assert!(
                answer.header("x-gateway-translation").starts_with("dropped=2"),
                "{policy}"
            );
            let notes = app.logged(&answer).await["notes"].clone();
            let dropped = notes
                .as_array()
                .unwrap()
                .iter()
                .filter(|note| note["fate"] == "dropped");
            let mut fields: Vec<&str> = dropped.filter_map(|note| note["field"].as_str()).collect();
            fields.sort_unstable();
            assert_eq!(fields, ["logit_bias", "seed"], "{policy}");
        } else {
            assert_eq!(answer.refusal(), "400 unsupported_parameter");
            let log = app.logged(&answer).await;
            // It was never asked.
            assert_eq!(log["attempts_count"], 0, "{log}");
            let verdict = log["verdicts"]
                .as_array()
                .unwrap()
                .iter()
                .find(|v| v["target"] == "claude");
            assert_eq!(verdict.unwrap()["state"], "excluded", "{log}");
            // Whoever knows the parameters answers.
            let answer = app.post("/v1/chat/completions", &body).await;
            assert_eq!(answer.header("x-gateway-target"), "openai");
            assert_eq!(answer.header("x-gateway-translation"), "");
        }
    }
}

#[tokio::test]
async fn what_nobody_here_knows_is_passed_on_as_it_is() {
    let mock = MockUpstream::start().await;
    let app = TestApp::start(Some(&every_wire(&mock)), &[]).await;
    let reply = Reply::raw(201, [r#"{"made":true}"#])
        .header("x-vendor", "yes")
        .header("set-cookie", "a=b");
    mock.script_for(Matcher::path("/fine_tuning/jobs"), [reply]);
    let request = app
        .request(Method::POST, "/v1/fine_tuning/jobs?limit=2&after=a%2Fb")
        .bearer_auth(&app.key)
        .header("x-provider", "openai")
        .header("x-own", "1")
        .header("cookie", "c=d");
    let answer = read(request.json(&json!({ "n": 1 }))).await;
    assert_eq!(
        (answer.status.as_u16(), answer.text().as_str()),
        (201, r#"{"made":true}"#)
    );
    assert_eq!((answer.header("x-vendor"), answer.header("set-cookie")), ("yes", ""));
    assert_eq!(answer.header("x-gateway-target"), "openai");
    let seen = mock.requests().pop().unwrap();
    assert_eq!(
        (seen.path.as_str(), seen.query.as_deref()),
        ("/v1/fine_tuning/jobs", Some("limit=2&after=a%2Fb"))
    );
    assert_eq!(seen.json, json!({ "n": 1 }));
    let header = |name: &str| {
        seen.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("-")
            .to_owned()
    };
    assert_eq!(header("authorization"), "Bearer sk-openai-secret-1234");
    assert_eq!(
        (header("x-own"), header("cookie"), header("x-provider")),
        ("1".into(), "-".into(), "-".into())
    );
    let log = app.logged(&answer).await;
    assert_eq!(
        (&log["surface"], &log["status"], &log["outcome"]),
        (&json!("pass_through"), &json!(201), &json!("success"))
    );
    assert_eq!(log["attempts"][0]["outcome"], "success", "{log}");

    // What has no body is whole with its head.
    mock.script_for(Matcher::path("/gone"), [Reply::raw(204, Vec::<String>::new())]);
    let request = app.request(Method::DELETE, "/v1/gone").bearer_auth(&app.key);
    let answer = read(request.header("x-provider", "openai")).await;
    let log = app.logged(&answer).await;
    assert_eq!(
        (&log["status"], &log["outcome"]),
        (&json!(204), &json!("success")),
        "{log}"
    );
    let request = app.request(Method::TRACE, "/v1/things").bearer_auth(&app.key);
    let answer = read(request.header("x-provider", "openai")).await;
    assert_eq!(answer.refusal(), "405 method_not_supported");
    assert_eq!(answer.header("allow"), "GET, HEAD, POST, PUT, PATCH, DELETE");

    // HEAD goes on as HEAD, and nobody waits for a body that has only a length.
    for status in [200, 404] {
        let reply = Reply::raw(status, Vec::<String>::new())
            .header("content-length", "12345")
            .header("x-vendor", "yes");
        mock.script_for(Matcher::path("/files/a/content"), [reply]);
        let request = app.request(Method::HEAD, "/v1/files/a/content").bearer_auth(&app.key);
        let answer = read(request.header("x-provider", "openai")).await;
        assert_eq!(
            (
                answer.status.as_u16(),
                answer.header("x-vendor"),
                answer.header("content-length")
            ),
            (status, "yes", "12345")
        );
        assert_eq!(mock.requests().pop().unwrap().method, "HEAD");
        let log = app.logged(&answer).await;
        assert_eq!(log["status"], json!(status), "{log}");
        assert!(log["duration_ms"].as_f64().unwrap() < 10_000.0, "{log}");
    }

    for (path, provider, body, want) in [
        ("/v1/things", "openai", json!({}), "404 model_not_found"),
        ("/v1/things", "nobody", json!({}), "404 provider_not_found"),
        ("/v1/things", "claude", json!({}), "501 proxy_not_supported"),
        ("/v1/things", "", json!({}), "400 provider_not_resolved"),
        ("/v1/a/%252e%252e/b", "openai", json!({}), "400 invalid_proxy_path"),
        ("/v1/a/..%2fb", "openai", json!({}), "400 invalid_proxy_path"),
    ] {
        mock.script_for(
            Matcher::path("/things"),
            [Reply::error(404, "model_not_found", "No such thing.")],
        );
        let mut request = app.request(Method::POST, path).bearer_auth(&app.key);
        if !provider.is_empty() {
            request = request.header("x-provider", provider);
        }
        assert_eq!(read(request.json(&body)).await.refusal(), want, "{path} {provider}");
    }
}

#[tokio::test]
async fn capabilities_are_those_of_the_configured_targets() {
    let mock = MockUpstream::start().await;
    let app = TestApp::start(Some(&every_wire(&mock)), &[]).await;
    let known = app.get("/v1/capabilities").await.json();
    assert_eq!(known["providers"].as_object().unwrap().len(), 5);
    for (provider, param, want) in [
        ("openai", "seed", "forward"),
        ("claude", "seed", "unsupported"),
        ("claude", "stop", "translate"),
        ("google", "response_format", "translate"),
        ("aws", "temperature", "forward"),
        ("co", "logit_bias", "unsupported"),
    ] {
        assert_eq!(known["providers"][provider][param], want, "{provider} {param}");
    }
    assert_eq!(known["providers"]["openai"].as_object().unwrap().len(), 17);
    assert_eq!(known["surfaces"]["claude"]["messages"], "native");
    assert_eq!(known["surfaces"]["claude"]["embeddings"], "none");
}

#[tokio::test]
async fn a_service_account_becomes_a_token_before_it_is_needed() {
    let mock = MockUpstream::start().await;
    let granted = json!({ "access_token": "ya29.mock", "expires_in": 3600, "token_type": "Bearer" });
    mock.script_for(Matcher::path("/token"), [Reply::raw(200, [granted.to_string()])]);
    let account = json!({
        "type": "service_account",
        "client_email": "gateway@project.iam.gserviceaccount.com",
        "private_key_id": "k1",
        "private_key": include_str!("../data/service-account-key.pem"),
        "token_uri": format!("{}/token", mock.origin()),
    });
    let base_url = format!("{}/v1/projects/p/locations/eu", mock.origin());
    let env = [
        ("VERTEX_AI_PROJECT_ID", "p"),
        ("VERTEX_AI_REGION", "eu"),
        ("VERTEX_AI_BASE_URL", base_url.as_str()),
        ("VERTEX_AI_SERVICE_ACCOUNT_JSON", &account.to_string()),
    ];
    let app = TestApp::start(Some("targets: [{virtual_key: vertex-ai}]"), &env).await;
    mock.wait_for_requests(1).await;
    let asked = mock.requests().remove(0);
    let form = String::from_utf8_lossy(&asked.body).into_owned();
    assert!(
        form.contains("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="),
        "{form}"
    );
    // The answer to it may still be on its way.
    let mut answer = app.chat(json!({ "model": "gemini-2.5-flash" })).await;
    while answer.status == StatusCode::BAD_GATEWAY {
        answer = app.chat(json!({ "model": "gemini-2.5-flash" })).await;
    }
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let seen = mock.requests().pop().unwrap();
    assert_eq!(
        seen.path,
        "/v1/projects/p/locations/eu/publishers/google/models/gemini-2.5-flash:generateContent"
    );
    assert_eq!(seen.headers["authorization"], "Bearer ya29.mock");
}

#[tokio::test]
async fn what_is_passed_on_is_the_operators_to_say() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::raw(200, ["{}"]).header("content-type", "application/json"));
    let ask = async |app: &TestApp, method: Method, path: &str| {
        let request = app.request(method, path).bearer_auth(&app.key);
        read(request.header("x-provider", "openai")).await
    };
    for (rule, passed, refused) in [
        ("", &["/v1/files", "/v1/fine_tuning/jobs"][..], &[][..]),
        (
            "pass_through: [/v1/fine_tuning]\n",
            &["/v1/fine_tuning", "/v1/fine_tuning/jobs?limit=1"],
            &[
                "/v1/files",
                "/v1/files/file-1",
                "/v1/batches",
                "/v1/fine%5Ftuning/jobs",
                "/v1/fine_tunings",
            ],
        ),
        (
            "pass_through: off\n",
            &[],
            &[
                "/v1/files",
                "/v1/fine_tuning/jobs",
                "/v1/vector_stores/vs_1",
                "/v1/conversations",
            ],
        ),
    ] {
        let app = TestApp::start(Some(&format!("{rule}{}", every_wire(&mock))), &[]).await;
        for path in passed {
            assert_eq!(
                ask(&app, Method::GET, path).await.status,
                StatusCode::OK,
                "{rule}{path}"
            );
        }
        let before = mock.requests().len();
        for path in refused {
            for method in [Method::GET, Method::DELETE] {
                let answer = ask(&app, method, path).await;
                assert_eq!(answer.refusal(), "403 path_not_allowed", "{rule}{path}");
                assert!(answer.text().contains("`pass_through`"), "{}", answer.text());
                assert_eq!(app.logged(&answer).await["surface"], "pass_through");
            }
        }
        if !rule.is_empty() {
            let batches = app.post("/v1/messages/batches", &json!({})).await;
            let told = (batches.status, shape("/v1/messages", &batches.json()));
            let want = ("permission_error".to_owned(), "path_not_allowed".to_owned());
            assert_eq!(told, (StatusCode::FORBIDDEN, want));
            let disguised = ask(&app, Method::GET, "/v1/fine_tuning/..%2ffiles").await;
            assert!(disguised.status.is_client_error(), "{}", disguised.text());
            // Calls are no business of it.
            assert_ne!(
                ask(&app, Method::POST, "/v1/chat/completions").await.status,
                StatusCode::FORBIDDEN
            );
        }
        let gone_up = mock.requests().split_off(before);
        assert!(
            gone_up.iter().all(|seen| seen.path.ends_with("/completions")),
            "{gone_up:?}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_breaks_says_so_as_its_vendor_does() {
    let mock = MockUpstream::start().await;
    let config = format!(
        "providers: [{{id: up, kind: openai, base_url: '{}', api_key: sk-up-secret-1234}}]\ntargets: [up]\n",
        mock.url()
    );
    let app = TestApp::start(Some(&config), &[]).await;
    let broken = async |path: &str, body: Value| {
        mock.script([Reply::chat("one two three four").reset_after(3)]);
        let answer = app.post(path, &body).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let text = answer.text();
        assert!(text.contains("two"), "{text}");
        text
    };
    let [_, (path, mut body), (generate, contents), _] = calls();
    body["stream"] = json!(true);
    let text = broken(path, body).await;
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    let data = last.strip_prefix("event: error\ndata: ").unwrap();
    let error: Value = serde_json::from_str(data).unwrap();
    assert_eq!(
        (&error["type"], &error["error"]["type"], &error["error"]["code"]),
        (&json!("error"), &json!("api_error"), &json!("stream_error"))
    );
    assert!(error["error"]["message"].is_string());

    let path = generate.replace(":generateContent", ":streamGenerateContent?alt=sse");
    let text = broken(&path, contents).await;
    // An event for whoever reads events, and the document that Google's own clients look for, with nothing behind it.
    let (events, document) = text.rsplit_once("\n\n").unwrap();
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(
        (&document["error"]["code"], &document["error"]["status"]),
        (&json!(502), &json!("UNAVAILABLE"))
    );
    let event = events.rsplit("\n\n").next().unwrap().strip_prefix("data: ").unwrap();
    assert_eq!(serde_json::from_str::<Value>(event).unwrap(), document);
}
