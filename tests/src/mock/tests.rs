//! The mock, seen through a plain socket: what matters here is the difference between an end and a reset, and where the
//! bytes are split, and an HTTP client hides both.

use super::*;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A connection with one request on it.
struct Wire {
    socket: TcpStream,
    received: Vec<u8>,
}

impl Wire {
    async fn send(mock: &MockUpstream, method: &str, path: &str, body: &str) -> Self {
        let mut socket = TcpStream::connect(mock.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: mock\r\nx-test: yes\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        Self {
            socket,
            received: Vec::new(),
        }
    }

    async fn chat(mock: &MockUpstream, body: Value) -> Self {
        Self::send(mock, "POST", "/v1/chat/completions", &body.to_string()).await
    }

    /// Reads on until `text` has come.
    async fn until(&mut self, text: &str) {
        while !self.text().contains(text) {
            let count = self.socket.read_buf(&mut self.received).await.unwrap();
            assert_ne!(count, 0, "ended before {text:?}: {}", self.text());
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// Reads until the server is done; says how that was.
    async fn end(&mut self) -> io::Result<()> {
        self.socket.read_to_end(&mut self.received).await.map(drop)
    }

    /// Status, head and body of a complete answer.
    async fn answer(mut self) -> (u16, String, Vec<u8>) {
        self.end().await.unwrap();
        let split = self.received.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(self.received[..split].to_vec()).unwrap();
        let body = self.received.split_off(split + 4);
        let body = if head.contains("transfer-encoding: chunked") {
            joined(&body)
        } else {
            body
        };
        (head[9..12].parse().unwrap(), head, body)
    }

    async fn json(self) -> (u16, Value) {
        let (status, _, body) = self.answer().await;
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// The events of a complete stream.
    async fn events(self) -> Vec<String> {
        let body = String::from_utf8(self.answer().await.2).unwrap();
        let events = body.strip_suffix("\n\n").unwrap().split("\n\n");
        events
            .map(|event| event.strip_prefix("data: ").unwrap().to_owned())
            .collect()
    }
}

/// Undoes the chunked encoding, which must be complete.
fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let line = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&body[line + 2..line + 2 + length]);
        body = &body[line + 2 + length + 2..];
    }
}

fn streaming() -> Value {
    json!({"model": "m", "stream": true, "messages": []})
}

#[tokio::test]
async fn unscripted_it_answers_as_asked() {
    let mock = MockUpstream::start().await;
    let (status, answer) = Wire::chat(&mock, json!({"model": "m"})).await.json().await;
    assert_eq!(status, 200);
    assert_eq!(answer["model"], "m");
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "Hello from the mock upstream."
    );
    assert_eq!(answer["usage"]["total_tokens"], 14);

    let events = Wire::chat(&mock, streaming()).await.events().await;
    // A role, five words, the finish, [DONE].
    assert_eq!(events.len(), 8);
    assert_eq!(events[7], "[DONE]");
    assert!(!events[1].contains("usage"), "{}", events[1]);

    let (_, list) = Wire::send(&mock, "GET", "/v1/models", "").await.json().await;
    assert_eq!(list["data"][0]["id"], "mock-small");
    let (_, list) = Wire::send(&mock, "POST", "/v1/embeddings", r#"{"input": ["a", "b"]}"#)
        .await
        .json()
        .await;
    assert_eq!(list["data"][1]["embedding"], json!([0.0, 1.0, 0.0, 0.0]));
}

#[tokio::test]
async fn usage_comes_when_it_is_asked_for() {
    let mock = MockUpstream::start().await;
    let usage = Usage {
        prompt: 20,
        completion: None,
        cached: 16,
    };
    mock.set_default(Reply::chat("one two").usage(usage));
    let mut body = streaming();
    body["stream_options"] = json!({"include_usage": true});
    let events = Wire::chat(&mock, body).await.events().await;
    let chunks: Vec<Value> = events
        .iter()
        .filter_map(|event| serde_json::from_str(event).ok())
        .collect();
    let (last, earlier) = chunks.split_last().unwrap();
    assert!(
        earlier
            .iter()
            .all(|chunk| chunk.as_object().unwrap().get("usage") == Some(&Value::Null))
    );
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 2);
    assert_eq!(last["usage"]["prompt_tokens_details"]["cached_tokens"], 16);

    mock.set_default(Reply::chat("one two").report(Report::Never));
    let (_, answer) = Wire::chat(&mock, json!({})).await.json().await;
    assert!(answer.get("usage").is_none());
}

#[tokio::test]
async fn a_script_is_used_up_and_specific_ones_go_first() {
    let mock = MockUpstream::start().await;
    mock.script([
        Reply::chat("first"),
        Reply::error(503, "overloaded", "Later").retry_after("2"),
    ]);
    mock.set_default(Reply::chat("default"));
    mock.script_for(
        Matcher::model("special"),
        [Reply::error(200, "odd", "An error that claims success")],
    );

    let (status, odd) = Wire::chat(&mock, json!({"model": "special"})).await.json().await;
    assert_eq!((status, &odd["error"]["code"]), (200, &json!("odd")));
    let (_, first) = Wire::chat(&mock, json!({})).await.json().await;
    assert_eq!(first["choices"][0]["message"]["content"], "first");
    let (status, head, _) = Wire::chat(&mock, json!({})).await.answer().await;
    assert_eq!(status, 503);
    assert!(head.contains("retry-after: 2"), "{head}");
    let (_, default) = Wire::chat(&mock, json!({"model": "special"})).await.json().await;
    assert_eq!(default["choices"][0]["message"]["content"], "default");
}

#[tokio::test]
async fn requests_are_recorded_byte_for_byte() {
    let mock = MockUpstream::start().await;
    let body = "{\"model\":\"m\",  \"unknown\": 1.10}";
    let wire = Wire::send(&mock, "POST", "/v1/chat/completions?beta=1", body).await;
    let seen = mock.wait_for_requests(1).await.remove(0);
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str(), seen.query.as_deref()),
        ("POST", "/v1/chat/completions", Some("beta=1"))
    );
    assert_eq!(seen.body, body);
    assert_eq!(seen.json["unknown"], 1.1);
    assert_eq!(seen.header("x-test"), Some("yes"));
    wire.json().await;
    assert!(!mock.requests()[0].cancelled);
}

#[tokio::test]
async fn a_gate_holds_each_word_until_it_is_released() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::chat("one two three").gate("words"));
    let mut wire = Wire::chat(&mock, streaming()).await;
    wire.until("assistant").await;
    mock.gate("words").release(1);
    wire.until("one").await;
    assert!(
        tokio::time::timeout(Duration::from_millis(30), wire.until("two"))
            .await
            .is_err()
    );
    mock.gate("words").open();
    wire.until("[DONE]").await;
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed() {
    for reply in [
        Reply::hang(),
        Reply::chat("never").head_gate("shut"),
        Reply::chat("one two").stall_after(1),
    ] {
        let mock = MockUpstream::start().await;
        mock.set_default(reply);
        let wire = Wire::chat(&mock, streaming()).await;
        assert!(!mock.wait_for_requests(1).await[0].cancelled);
        drop(wire);
        assert!(mock.wait_cancelled().await.cancelled);
    }
}

#[tokio::test]
async fn a_body_breaks_off_where_it_should() {
    let mock = MockUpstream::start().await;
    mock.script([
        Reply::chat("one two three").reset_after(2),
        Reply::chat("one two three").close_after(2),
        Reply::chat("one two three").end_after(0),
        Reply::chat("one two three").error_event_after(1),
        Reply::chat("one two three").close_after(3),
    ]);
    let mut wire = Wire::chat(&mock, streaming()).await;
    assert_eq!(wire.end().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert!(
        wire.text().contains("two") && !wire.text().contains("three"),
        "{}",
        wire.text()
    );

    let mut wire = Wire::chat(&mock, streaming()).await;
    wire.end().await.unwrap();
    assert!(
        wire.text().contains("two") && !wire.text().contains("three"),
        "{}",
        wire.text()
    );
    assert!(
        !wire.text().ends_with("0\r\n\r\n"),
        "the chunked encoding is not complete"
    );

    let events = Wire::chat(&mock, streaming()).await.events().await;
    assert_eq!(events.len(), 1, "a role alone: {events:?}");

    let events = Wire::chat(&mock, streaming()).await.events().await;
    assert_eq!(events.len(), 3);
    assert!(events[2].starts_with("{\"error\":"), "{events:?}");

    let mut wire = Wire::chat(&mock, streaming()).await;
    wire.end().await.unwrap();
    assert!(
        wire.text().contains("three") && !wire.text().contains("\"stop\""),
        "{}",
        wire.text()
    );
    assert!(
        mock.requests().iter().all(|request| !request.cancelled),
        "it was the mock that hung up"
    );
}

#[tokio::test]
async fn an_answer_in_one_piece_breaks_in_its_middle() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::chat("one two three").close_after(1));
    let mut wire = Wire::chat(&mock, json!({})).await;
    wire.end().await.unwrap();
    let (head, body) = wire
        .text()
        .split_once("\r\n\r\n")
        .map(|(head, body)| (head.to_owned(), body.to_owned()))
        .unwrap();
    let length: usize = head
        .split_once("content-length: ")
        .unwrap()
        .1
        .split("\r\n")
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(body.len(), length / 2);
}

#[tokio::test]
async fn a_connection_breaks_before_its_head() {
    let mock = MockUpstream::start().await;
    mock.script([Reply::abort(Cut::Reset), Reply::abort(Cut::Close)]);
    let mut wire = Wire::chat(&mock, json!({})).await;
    assert_eq!(wire.end().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    let mut wire = Wire::chat(&mock, json!({})).await;
    wire.end().await.unwrap();
    assert_eq!(wire.text(), "");
}

#[tokio::test]
async fn raw_bytes_come_as_given_and_split_as_given() {
    let mock = MockUpstream::start().await;
    mock.script([
        Reply::raw(418, [Chunk::Bytes(vec![0, 255]), "tea".into()])
            .header("content-type", "application/x-tea")
            .header("x-pot", "1"),
        Reply::sse(["data: a", "\n", "\ndata: [DONE]\n\n"]),
        Reply::bad_utf8(),
        Reply::malformed_json(),
    ]);
    let (status, head, body) = Wire::chat(&mock, json!({})).await.answer().await;
    assert_eq!((status, body.as_slice()), (418, b"\x00\xfftea".as_slice()));
    assert!(
        head.contains("content-type: application/x-tea") && !head.contains("application/json"),
        "{head}"
    );
    assert_eq!(Wire::chat(&mock, streaming()).await.events().await, ["a", "[DONE]"]);
    let (_, _, body) = Wire::chat(&mock, streaming()).await.answer().await;
    assert!(body.windows(3).any(|three| three == [0xe2, 0xff, 0x80]));
    let (_, _, body) = Wire::chat(&mock, json!({})).await.answer().await;
    assert!(serde_json::from_slice::<Value>(&body).is_err());
}

#[tokio::test]
async fn tool_calls_come_whole_or_in_fragments() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::tools([("get_weather", json!({"city": "Oslo"}))]));
    let (_, answer) = Wire::chat(&mock, json!({})).await.json().await;
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(
        call["function"],
        json!({"name": "get_weather", "arguments": "{\"city\":\"Oslo\"}"})
    );
    let events = Wire::chat(&mock, streaming()).await.events().await;
    let chunks: Vec<Value> = events
        .iter()
        .filter_map(|event| serde_json::from_str(event).ok())
        .collect();
    let arguments = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str());
    assert_eq!(arguments.collect::<String>(), "{\"city\":\"Oslo\"}");
}

#[tokio::test]
async fn it_is_scripted_over_http() {
    let mock = MockUpstream::start().await;
    let script = json!({"match": {"path": "/chat/completions"}, "replies": [{"kind": "chat", "text": "scripted", "gate": "g"}],
        "default": {"kind": "error", "status": 500, "message": "No more"}});
    let (status, _, _) = Wire::send(&mock, "POST", "/_script", &script.to_string())
        .await
        .answer()
        .await;
    assert_eq!(status, 204);
    let (status, _, _) = Wire::send(&mock, "POST", "/_release", r#"{"gate": "g"}"#)
        .await
        .answer()
        .await;
    assert_eq!(status, 204);
    let (_, answer) = Wire::chat(&mock, json!({"model": "m"})).await.json().await;
    assert_eq!(answer["choices"][0]["message"]["content"], "scripted");
    assert_eq!(Wire::chat(&mock, json!({})).await.json().await.0, 500);

    let (_, seen) = Wire::send(&mock, "GET", "/_requests", "").await.json().await;
    assert_eq!(seen.as_array().unwrap().len(), 2, "its own routes are not recorded");
    assert_eq!(seen[0]["json"], json!({"model": "m"}));
    Wire::send(&mock, "POST", "/_reset", "").await.answer().await;
    assert!(mock.requests().is_empty());

    let misspelt = json!({"replies": [{"kind": "chat", "text": "x", "dealy_ms": 5}]}).to_string();
    let (status, _, body) = Wire::send(&mock, "POST", "/_script", &misspelt).await.answer().await;
    assert_eq!(
        (status, body.as_slice()),
        (400, b"unknown field `dealy_ms` in a reply".as_slice())
    );
}

#[tokio::test]
async fn nobody_listens_at_the_refused_url() {
    let url = MockUpstream::refused_url();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    assert_eq!(
        TcpStream::connect(address).await.unwrap_err().kind(),
        io::ErrorKind::ConnectionRefused
    );
}

#[tokio::test]
async fn dropping_it_breaks_what_is_open() {
    let mock = MockUpstream::start().await;
    mock.set_default(Reply::hang());
    let mut wire = Wire::chat(&mock, json!({})).await;
    mock.wait_for_requests(1).await;
    let address = mock.address;
    drop(mock);
    wire.end().await.unwrap();
    assert_eq!(wire.text(), "");
    // The listener is gone as soon as its task is.
    tokio::task::yield_now().await;
    assert!(TcpStream::connect(address).await.is_err());
}
