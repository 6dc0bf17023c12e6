//! The state of OpenAI's Responses: kept here where the upstream keeps none, and nobody else's business.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use switchyard_tests::TestApp;
use switchyard_tests::app::{Answer, read};
use switchyard_tests::mock::{MockUpstream, Reply};

const MASTER: &str = "a master key of some length";

/// A call of model `m` with these fields besides.
fn body(input: &str, more: Value) -> Value {
    let mut body = json!({ "model": "m", "input": input });
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

async fn ask(app: &TestApp, input: &str, more: Value) -> Answer {
    app.post("/v1/responses", &body(input, more)).await
}

#[track_caller]
fn id_of(answer: &Answer) -> String {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// The whole answer, as it stands in a stream's last event.
#[track_caller]
fn last(answer: &Answer) -> Value {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let text = answer.text();
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let event: Value = serde_json::from_str(data.next_back().unwrap()).unwrap();
    assert_eq!(event["type"], "response.completed", "{text}");
    event["response"].clone()
}

/// Texts of a chat request's messages, in order, each behind its role's first letter.
fn messages(request: &Value) -> Vec<String> {
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            let role = message["role"].as_str().unwrap();
            format!("{}: {}", &role[..1], text(&message["content"]))
        })
        .collect()
}

/// An answer of an upstream that has Responses.
fn native(id: &str, text: &str, more: Value) -> Reply {
    let mut answer = json!({
        "id": id,
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": "m",
        "previous_response_id": null,
        "output": [{
            "type": "message",
            "id": format!("msg_{id}"),
            "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        }],
        "usage": { "input_tokens": 3, "output_tokens": 2, "total_tokens": 5 },
    });
    if let (Value::Object(answer), Value::Object(more)) = (&mut answer, more) {
        answer.extend(more);
    }
    Reply::raw(200, [answer.to_string()]).header("content-type", "application/json")
}

/// `first` has Responses, `second` has chat only; they are asked in this order, or the other way round.
fn pair(first: &str, second: &str, native_first: bool) -> String {
    let targets = if native_first {
        "  - {virtual_key: first}\n  - {virtual_key: second}\n"
    } else {
        "  - {virtual_key: second}\n  - {virtual_key: first}\n"
    };
    format!(
        "providers:\n  - {{id: first, kind: openai, base_url: '{first}', api_key: sk-first-secret-1234, surfaces: \
         [responses]}}\n  - {{id: second, kind: openai, base_url: '{second}', api_key: sk-second-secret-123, surfaces: \
         []}}\nstrategy: {{mode: fallback}}\ntargets:\n{targets}"
    )
}

fn chat_only(url: &str) -> String {
    format!(
        "providers: [{{id: up, kind: openai, base_url: '{url}', api_key: sk-upstream-secret-1234, surfaces: []}}]\n\
         targets: [{{virtual_key: up}}]"
    )
}

async fn in_front_of_chat(mock: &MockUpstream) -> TestApp {
    TestApp::start(Some(&chat_only(&mock.url())), &[]).await
}

#[tokio::test]
async fn two_turns_over_an_upstream_that_only_chats() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::chat("One."), Reply::chat("Two."), Reply::chat("Three.")]);
    let app = in_front_of_chat(&mock).await;
    let first = id_of(&ask(&app, "count", json!({ "instructions": "Be brief." })).await);
    let second = ask(&app, "go on", json!({ "previous_response_id": first })).await;
    assert_eq!(second.json()["previous_response_id"], json!(first));
    let third = json!({ "previous_response_id": id_of(&second), "stream": true });
    let third = last(&ask(&app, "and on", third).await);
    assert_eq!(third["previous_response_id"], second.json()["id"]);

    let seen = mock.requests();
    // Instructions are of one call, as the vendor has it.
    assert_eq!(messages(&seen[0].json)[1..], ["u: count"]);
    assert_eq!(messages(&seen[1].json), ["u: count", "a: One.", "u: go on"]);
    assert_eq!(
        messages(&seen[2].json),
        ["u: count", "a: One.", "u: go on", "a: Two.", "u: and on"]
    );
}

#[tokio::test]
async fn a_streamed_answer_can_be_carried_on_as_soon_as_it_ends() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::chat("One two three."));
    let app = in_front_of_chat(&mock).await;
    let mut previous = Value::Null;
    for turn in 0..20 {
        let answer = ask(
            &app,
            "more",
            json!({ "stream": true, "previous_response_id": previous }),
        )
        .await;
        previous = last(&answer)["id"].clone();
        assert_eq!(messages(&mock.requests()[turn].json).len(), 2 * turn + 1);
    }
    let kept = app.get(&format!("/v1/responses/{}", previous.as_str().unwrap())).await;
    assert_eq!(kept.json()["output"][0]["content"][0]["text"], "One two three.");
}

#[tokio::test]
async fn an_answer_is_given_again_as_it_was_and_deleted() {
    let mock = MockUpstream::start().await;
    let app = in_front_of_chat(&mock).await;
    let answer = ask(&app, "hi", json!({ "metadata": { "a": "b" } })).await;
    let path = format!("/v1/responses/{}", id_of(&answer));
    assert_eq!(app.get(&path).await.json(), answer.json());
    let streamed = app.get(&format!("{path}?stream=true")).await;
    assert_eq!(streamed.refusal(), "400 unsupported_parameter");
    let cancelled = app.send(Method::POST, &format!("{path}/cancel"), None).await;
    assert_eq!(cancelled.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        cancelled.json()["error"]["message"],
        "Cannot cancel a synchronous response."
    );

    let deleted = app.send(Method::DELETE, &path, None).await;
    let id = answer.json()["id"].clone();
    assert_eq!(
        deleted.json(),
        json!({ "id": id, "object": "response.deleted", "deleted": true })
    );
    for gone in [app.get(&path).await, app.send(Method::DELETE, &path, None).await] {
        assert_eq!(gone.refusal(), "404 resource_not_found");
    }
    let on = ask(&app, "go on", json!({ "previous_response_id": id })).await;
    assert_eq!(on.refusal(), "400 previous_response_not_found");
}

#[tokio::test]
async fn what_is_anothers_does_not_exist() {
    let mock = MockUpstream::start().await;
    // It would know the id.
    let config = pair(&mock.url(), &mock.url(), true);
    mock.script([native("resp_up_1", "Hello.", json!({}))]);
    let mut app = TestApp::start(Some(&config), &[("MASTER_KEY", MASTER)]).await;
    app.key = MASTER.to_owned();
    let (_, ann) = app.create_key(json!({ "name": "ann", "scopes": ["invoke"] })).await;
    let (_, bob) = app.create_key(json!({ "name": "bob", "scopes": ["invoke"] })).await;
    let answer = app
        .send_as(&ann, Method::POST, "/v1/responses", Some(&body("hi", json!({}))))
        .await;
    let id = id_of(&answer);
    let path = format!("/v1/responses/{id}");
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::GET, format!("{path}/input_items")),
        (Method::POST, format!("{path}/cancel")),
        (Method::DELETE, path.clone()),
    ] {
        let refused = app.send_as(&bob, method, &path, None).await;
        assert_eq!(refused.refusal(), "404 resource_not_found", "{path}");
    }
    // Nor by way of the vendor, however the path is written.
    for path in [
        format!("{path}/"),
        format!("/v1/%72esponses/{id}"),
        format!("/v1/responses%2F{id}"),
    ] {
        let request = app
            .request(Method::GET, &path)
            .bearer_auth(&bob)
            .header("x-provider", "first");
        let refused = read(request).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{path}");
    }
    let on = body("go on", json!({ "previous_response_id": id }));
    let refused = app.send_as(&bob, Method::POST, "/v1/responses", Some(&on)).await;
    assert_eq!(refused.refusal(), "400 previous_response_not_found");
    assert_eq!(mock.requests().len(), 1);

    assert_eq!(app.send_as(&ann, Method::GET, &path, None).await.status, StatusCode::OK);
    let master = app.send_as(MASTER, Method::GET, &path, None).await;
    assert_eq!(master.status, StatusCode::OK, "{}", master.text());
}

#[tokio::test]
async fn items_are_listed_page_by_page() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::chat("Yes."));
    let app = in_front_of_chat(&mock).await;
    let first = id_of(&ask(&app, "one", json!({})).await);
    let second = id_of(&ask(&app, "two", json!({ "previous_response_id": first })).await);
    let list = |query: &'static str| {
        let path = format!("/v1/responses/{second}/input_items{query}");
        let app = &app;
        async move { app.get(&path).await.json() }
    };
    let texts = |page: &Value| -> Vec<String> {
        let items = page["data"].as_array().unwrap().iter();
        items
            .map(|item| item["content"][0]["text"].as_str().unwrap_or("?").to_owned())
            .collect()
    };
    let all = list("?order=asc").await;
    assert_eq!(texts(&all), ["one", "Yes.", "two"]);
    assert_eq!((&all["object"], &all["has_more"]), (&json!("list"), &json!(false)));
    assert_eq!(all["last_id"], all["data"][2]["id"]);
    assert_eq!(texts(&list("").await), ["two", "Yes.", "one"]);
    let page = list("?order=asc&limit=2").await;
    assert_eq!((texts(&page).len(), &page["has_more"]), (2, &json!(true)));
    let after = format!(
        "/v1/responses/{second}/input_items?order=asc&limit=2&after={}",
        page["last_id"].as_str().unwrap()
    );
    let rest = app.get(&after).await.json();
    assert_eq!(
        (texts(&rest), &rest["has_more"]),
        (vec!["two".to_owned()], &json!(false))
    );
    let wrong = app.get(&format!("/v1/responses/{second}/input_items?limit=0")).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_is_not_to_be_kept_is_not_kept() {
    let mock = MockUpstream::start().await;
    let app = in_front_of_chat(&mock).await;
    for stream in [false, true] {
        let answer = ask(&app, "hi", json!({ "store": false, "stream": stream })).await;
        let id = if stream {
            last(&answer)["id"].as_str().unwrap().to_owned()
        } else {
            id_of(&answer)
        };
        assert_eq!(
            app.get(&format!("/v1/responses/{id}")).await.refusal(),
            "404 resource_not_found"
        );
        let on = ask(&app, "go on", json!({ "previous_response_id": id })).await;
        assert_eq!(on.refusal(), "400 previous_response_not_found");
    }
    assert_eq!(mock.requests().len(), 2);
}

#[tokio::test]
async fn two_calls_under_one_request_id_are_two_answers() {
    let mock = MockUpstream::start().await;
    let app = in_front_of_chat(&mock).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let request = app
            .request(Method::POST, "/v1/responses")
            .bearer_auth(&app.key)
            .header("x-request-id", "0123456789abcdef0123456789abcdef")
            .json(&body("hi", json!({})));
        ids.push(id_of(&read(request).await));
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn an_answer_that_the_gateway_does_not_know_is_a_vendors_to_know() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    first.set_default(native(
        "resp_up_2",
        "Hello again.",
        json!({ "previous_response_id": "resp_before" }),
    ));
    let app = TestApp::start(Some(&pair(&first.url(), &second.url(), false)), &[]).await;
    let answer = ask(&app, "go on", json!({ "previous_response_id": "resp_before" })).await;
    assert_eq!(answer.header("x-gateway-target"), "first", "{}", answer.text());
    assert_eq!(first.requests()[0].json["previous_response_id"], "resp_before");
    assert!(second.requests().is_empty());
    let log = app.logged(&answer).await;
    let verdict = log["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|verdict| verdict["target"] == "second");
    assert_eq!(verdict.unwrap()["state"], "excluded", "{log}");

    let app = in_front_of_chat(&second).await;
    for (field, value, code) in [
        (
            "previous_response_id",
            json!("resp_before"),
            "previous_response_not_found",
        ),
        ("conversation", json!("conv_1"), "unsupported_parameter"),
        ("background", json!(true), "unsupported_parameter"),
    ] {
        let refused = ask(&app, "go on", json!({ field: value })).await;
        assert_eq!(refused.refusal(), format!("400 {code}"), "{field}");
        assert_eq!(refused.json()["error"]["param"], field);
    }
    assert!(second.requests().is_empty());
}

#[tokio::test]
async fn whoever_made_the_answer_goes_on_and_others_get_all_that_was_said() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let app = TestApp::start(Some(&pair(&first.url(), &second.url(), true)), &[]).await;
    first.script([
        native("resp_up_1", "One.", json!({})),
        native("resp_up_2", "Two.", json!({ "previous_response_id": "resp_up_1" })),
        Reply::error(500, "server_error", "not now"),
    ]);
    first.set_default(Reply::error(500, "server_error", "not now"));
    second.set_default(Reply::chat("Three."));
    let one = id_of(&ask(&app, "count", json!({})).await);
    assert_eq!(one, "resp_up_1");
    let two = id_of(&ask(&app, "go on", json!({ "previous_response_id": one })).await);
    let sent = &first.requests()[1].json;
    assert_eq!(
        (&sent["input"], &sent["previous_response_id"]),
        (&json!("go on"), &json!("resp_up_1"))
    );

    let three = ask(&app, "and on", json!({ "previous_response_id": two })).await;
    assert_eq!(three.header("x-gateway-target"), "second", "{}", three.text());
    assert_eq!(
        messages(&second.requests()[0].json),
        ["u: count", "a: One.", "u: go on", "a: Two.", "u: and on"]
    );
    // What a chat made, nobody else knows: from here on everybody gets all of it.
    let asked = first.requests().len();
    first.script([native("resp_up_4", "Four.", json!({}))]);
    let four = ask(&app, "once more", json!({ "previous_response_id": id_of(&three) })).await;
    assert_eq!(id_of(&four), "resp_up_4");
    let sent = &first.requests()[asked].json;
    assert_eq!(sent.get("previous_response_id"), None);
    assert_eq!(sent["input"].as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn a_vendor_that_has_forgotten_is_told() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let app = TestApp::start(Some(&pair(&first.url(), &second.url(), true)), &[]).await;
    let forgotten = json!({ "error": {
        "message": "Previous response with id 'resp_up_1' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    } });
    first.script([
        native("resp_up_1", "One.", json!({})),
        Reply::raw(400, [forgotten.to_string()]).header("content-type", "application/json"),
        native("resp_up_2", "Two.", json!({})),
    ]);
    let one = id_of(&ask(&app, "count", json!({})).await);
    let two = ask(&app, "go on", json!({ "previous_response_id": one })).await;
    assert_eq!(id_of(&two), "resp_up_2");
    assert_eq!(two.json()["previous_response_id"], json!(one));
    assert_eq!(first.requests()[2].json["input"].as_array().unwrap().len(), 3);
    assert!(second.requests().is_empty());
}

#[tokio::test]
async fn what_runs_in_the_background_is_followed_at_its_vendors() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let app = TestApp::start(Some(&pair(&first.url(), &second.url(), true)), &[]).await;
    let status = |status: &str| {
        native(
            "resp_up_1",
            "",
            json!({ "status": status, "background": true, "output": [] }),
        )
    };
    first.script([
        status("queued"),
        status("in_progress"),
        native("resp_up_1", "Done.", json!({ "background": true })),
    ]);
    let id = id_of(&ask(&app, "think", json!({ "background": true })).await);
    let path = format!("/v1/responses/{id}");
    assert_eq!(app.get(&path).await.json()["status"], "in_progress");
    assert_eq!(app.get(&path).await.json()["status"], "completed");
    // It is known by now.
    let kept = app.get(&path).await.json();
    assert_eq!(kept["output"][0]["content"][0]["text"], "Done.");
    let seen = first.requests();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[1].path, "/v1/responses/resp_up_1");
    assert_eq!(seen[1].header("authorization"), Some("Bearer sk-first-secret-1234"));
}

#[tokio::test]
async fn tokens_are_counted_with_what_was_said_before() {
    let mock = MockUpstream::start().await;
    let app = in_front_of_chat(&mock).await;
    let count = |more: Value| {
        let app = &app;
        async move {
            let answer = app
                .post("/v1/responses/input_tokens", &body("go on", more))
                .await
                .json();
            assert_eq!(answer["object"], "response.input_tokens");
            answer["input_tokens"].as_u64().unwrap()
        }
    };
    let id = id_of(&ask(&app, &"a long story ".repeat(50), json!({})).await);
    let (alone, with) = (
        count(json!({})).await,
        count(json!({ "previous_response_id": id })).await,
    );
    assert!(alone > 0 && with > alone + 100, "{alone} {with}");
}

/// The data of a stream's events.
fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_that_has_the_next_number() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let event = |number: u64, delta: &str| {
        let event = json!({
            "type": "response.output_text.delta", "sequence_number": number, "item_id": "msg_1", "output_index": 0,
            "content_index": 0, "delta": delta, "logprobs": [],
        });
        format!("event: response.output_text.delta\ndata: {event}\n\n")
    };
    // The last of them says something that looks like a number and is none.
    let odd = event(7, "odd: {\"sequence_number\": 99}");
    first.set_default(Reply::sse([
        event(4, "one ") + &event(5, "two "),
        event(6, "three "),
        odd,
    ]));
    second.set_default(Reply::chat("one two three four").reset_after(3));
    for native_first in [true, false] {
        let app = TestApp::start(Some(&pair(&first.url(), &second.url(), native_first)), &[]).await;
        let answer = ask(&app, "count", json!({ "stream": true })).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let events = events(&answer);
        let [.., before, last] = &*events else {
            panic!("{events:?}")
        };
        assert_eq!(last["type"], "error", "{events:?}");
        let (before, number) = (before["sequence_number"].as_u64(), last["sequence_number"].as_u64());
        assert_eq!(number, before.map(|before| before + 1), "{events:?}");
        assert!(last["code"].is_string() && last["message"].is_string(), "{last}");
    }
}

#[tokio::test]
async fn a_database_that_stands_still_is_waited_for_no_longer_than_the_call_may_take() {
    let mock = MockUpstream::start().await;
    let config = format!("request_timeout: 3s\n{}", chat_only(&mock.url()));
    let app = TestApp::start(Some(&config), &[]).await;
    let answer = ask(&app, "hi", json!({})).await;
    let id = id_of(&answer);
    let item = answer.json()["output"][0]["id"].clone();
    let on = body("on", json!({ "previous_response_id": id }));
    let refers = json!({ "model": "m", "input": [{ "type": "item_reference", "id": item }] });
    let calls = [
        (Method::POST, "/v1/responses".to_owned(), Some(on.clone())),
        (Method::POST, "/v1/responses".to_owned(), Some(refers)),
        (Method::POST, "/v1/responses/input_tokens".to_owned(), Some(on.clone())),
        (Method::POST, "/v1/responses/compact".to_owned(), Some(on)),
        (Method::GET, format!("/v1/responses/{id}"), None),
        (Method::GET, format!("/v1/responses/{id}/input_items"), None),
        (Method::DELETE, format!("/v1/responses/{id}"), None),
    ];
    let (url, key) = (app.url.clone(), app.key.clone());
    let (ready, warm) = tokio::sync::oneshot::channel();
    let (go, gone) = std::sync::mpsc::channel();
    let asking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut asked = Vec::new();
            for (method, path, body) in calls {
                // Each has its connection before nobody takes any more.
                let client = reqwest::Client::builder()
                    .timeout(Duration::from_secs(60))
                    .build()
                    .unwrap();
                read(client.get(format!("{url}/v1/models")).bearer_auth(&key)).await;
                let mut request = client.request(method, format!("{url}{path}")).bearer_auth(&key);
                if let Some(body) = &body {
                    request = request.json(body);
                }
                asked.push(async move { (path, read(request).await) });
            }
            ready.send(()).unwrap();
            gone.recv().unwrap();
            futures_util::future::join_all(asked).await
        })
    });
    warm.await.unwrap();
    // The database is asked on this test's thread, which from here on only waits.
    go.send(()).unwrap();
    let told = asking.join().unwrap();
    for (path, answer) in told {
        assert_eq!(answer.refusal(), "504 gateway_timeout", "{path}: {}", answer.text());
        assert!(answer.text().contains("request_timeout"), "{path}: {}", answer.text());
        if path == "/v1/responses" {
            assert!(
                answer.text().contains("cannot be looked up"),
                "{path}: {}",
                answer.text()
            );
            assert_eq!(app.logged(&answer).await["error_code"], "gateway_timeout");
        }
    }
}

#[tokio::test]
async fn only_a_vendor_who_has_responses_makes_a_conversation_shorter() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let config = format!("aliases: {{short: m}}\n{}", pair(&first.url(), &second.url(), false));
    let mut app = TestApp::start(Some(&config), &[("MASTER_KEY", MASTER)]).await;
    app.key = MASTER.to_owned();
    let (_, ann) = app.create_key(json!({ "name": "ann", "scopes": ["invoke"] })).await;
    let (_, bob) = app.create_key(json!({ "name": "bob", "scopes": ["invoke"] })).await;
    let path = "/v1/responses/compact";
    let compacted = json!({ "id": "resp_c", "object": "response.compaction", "output": [] });
    let shorter = Reply::raw(200, [compacted.to_string()]).header("content-type", "application/json");
    first.set_default(shorter);

    // Not to who is asked first, but to who can do it, under the model's own name.
    let call = json!({ "model": "short", "input": "hi" });
    let answer = app.send_as(&ann, Method::POST, path, Some(&call)).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, compacted.clone()));
    assert_eq!(answer.header("x-gateway-target"), "first");
    let seen = first.requests().pop().unwrap();
    assert_eq!(
        (seen.path.as_str(), &seen.json),
        ("/v1/responses/compact", &json!({ "model": "m", "input": "hi" }))
    );
    assert!(second.requests().is_empty());

    // With what was said before, where the gateway keeps it; and to nobody else.
    let kept = app
        .send_as(&ann, Method::POST, "/v1/responses", Some(&body("count", json!({}))))
        .await;
    let on = body("go on", json!({ "previous_response_id": id_of(&kept) }));
    let answer = app.send_as(&ann, Method::POST, path, Some(&on)).await;
    assert_eq!(answer.json(), compacted);
    let seen = first.requests().pop().unwrap().json;
    assert_eq!(seen["input"].as_array().map(Vec::len), Some(3), "{seen}");
    assert!(seen.get("previous_response_id").is_none(), "{seen}");
    let before = first.requests().len();
    let others = app.send_as(&bob, Method::POST, path, Some(&on)).await;
    assert_eq!(others.refusal(), "400 previous_response_not_found");
    assert_eq!(first.requests().len(), before);

    // A route is nobody's model.
    let routed = json!({ "model": "route/default", "input": "hi" });
    let answer = app.send_as(&ann, Method::POST, path, Some(&routed)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text());
    assert_eq!(answer.json()["error"]["param"], "model");
    assert_eq!(first.requests().len(), before);

    let named = app
        .request(Method::POST, path)
        .bearer_auth(&ann)
        .header("x-provider", "second");
    let app = in_front_of_chat(&second).await;
    for refused in [
        read(named.json(&body("hi", json!({})))).await,
        app.post(path, &body("hi", json!({}))).await,
    ] {
        assert_eq!(refused.refusal(), "501 responses_not_supported");
        assert!(refused.text().contains("surfaces: [responses]"), "{}", refused.text());
    }
    assert_eq!(app.get(path).await.refusal(), "405 method_not_supported");
    assert_eq!(
        app.post(path, &json!({ "input": "hi" })).await.refusal(),
        "400 invalid_request"
    );
}

#[tokio::test]
async fn what_is_kept_at_its_vendors_is_followed_whatever_is_passed_on() {
    let (first, second) = (MockUpstream::start().await, MockUpstream::start().await);
    let config = format!("pass_through: off\n{}", pair(&first.url(), &second.url(), true));
    let app = TestApp::start(Some(&config), &[]).await;
    let more = |status: &str| json!({ "background": true, "status": status });
    first.script([
        native("resp_up_1", "", more("queued")),
        native("resp_up_1", "Done.", more("completed")),
    ]);
    let id = id_of(&ask(&app, "think", json!({ "background": true })).await);
    let answer = app.get(&format!("/v1/responses/{id}")).await;
    assert_eq!(answer.json()["status"], "completed", "{}", answer.text());
}

/// Bodies that take long to read hold up nobody else on their core: others are answered there meanwhile, one after another.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_large_is_read_beside_the_core() {
    let nowhere = MockUpstream::refused_url();
    let app = TestApp::start(Some(&chat_only(&nowhere)), &[]).await;
    let messages: Vec<Value> = (0..60_000)
        .map(|n| json!({ "role": "user", "content": format!("message {n} of a long conversation") }))
        .collect();
    let with = |item: Value| -> Vec<Value> { std::iter::once(item).chain(messages.iter().cloned()).collect() };
    let unknown = json!({ "type": "item_reference", "id": format!("msg_sy{}_0", "0".repeat(32)) });
    let said = json!({ "role": "user", "content": "hi" });
    for (what, path, body, status) in [
        (
            "state",
            "/v1/responses",
            json!({ "model": "m", "previous_response_id": 5, "input": with(said.clone()) }),
            StatusCode::BAD_REQUEST,
        ),
        (
            "references",
            "/v1/responses",
            json!({ "model": "m", "input": with(unknown) }),
            StatusCode::BAD_REQUEST,
        ),
        (
            "translation",
            "/v1/responses",
            json!({ "model": "m", "input": with(said.clone()) }),
            StatusCode::BAD_GATEWAY,
        ),
        (
            "tokens",
            "/v1/responses/input_tokens",
            json!({ "model": "m", "input": with(said) }),
            StatusCode::OK,
        ),
    ] {
        let body = body.to_string();
        assert!(body.len() > 3 << 20);
        // Its refusal is made on the core alone. Of more connections than there are cores, some are on the one in question.
        let everywhere = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        let ping = async || {
            let pings = (0..everywhere).map(|_| app.get("/v1/chat/completions"));
            futures_util::future::join_all(pings).await
        };
        let refused = |answer: &Answer| answer.status == StatusCode::METHOD_NOT_ALLOWED;
        assert!(ping().await.iter().all(refused));
        let request = app.request(Method::POST, path).bearer_auth(&app.key).body(body);
        let call = tokio::spawn(read(request));
        let mut answered = 0;
        while !call.is_finished() {
            ping().await;
            answered += 1;
        }
        let answer = call.await.unwrap();
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        // Were it read on the core, one would wait for its end, and one or two might have gone before.
        assert!(answered > 5, "{what}: {answered} others were answered meanwhile");
    }
}
