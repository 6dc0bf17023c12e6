//! The simulated upstream, seen as the pipeline sees it: through [`Transport::send`].

mod chat;
mod embeddings;
mod failures;
mod pace;
mod tools;

use super::{DemoTransport, MODELS, Pace};
use crate::ports::{Transport, TransportError, UpstreamBody};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

async fn send(
    demo: &DemoTransport,
    method: &str,
    path: &str,
    body: impl Into<Bytes>,
) -> Result<Response<UpstreamBody>, TransportError> {
    let uri = format!("http://demo.invalid{path}");
    demo.send(Request::builder().method(method).uri(uri).body(body.into()).unwrap())
        .await
}

/// Posts to a fresh transport without pace and reads the JSON that comes back.
async fn post(path: &str, body: Value) -> (StatusCode, Value) {
    read_json(
        send(&DemoTransport::new(Pace::Instant), "POST", path, body.to_string())
            .await
            .unwrap(),
    )
    .await
}

async fn read_json(response: Response<UpstreamBody>) -> (StatusCode, Value) {
    let status = response.status();
    let frames: Vec<_> = response.into_body().collect().await;
    let body: Vec<u8> = frames.into_iter().flat_map(|frame| frame.unwrap()).collect();
    (status, serde_json::from_slice(&body).unwrap())
}

/// A stream, read to its end.
#[derive(Default)]
struct Read {
    chunks: Vec<Value>,
    done: bool,
    broken: Option<TransportError>,
}

impl Read {
    async fn of(mut response: Response<UpstreamBody>) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        let mut read = Self::default();
        while let Some(frame) = response.body_mut().next().await {
            match frame {
                Ok(frame) => read.frame(&frame),
                Err(error) => read.broken = Some(error),
            }
        }
        read
    }

    fn frame(&mut self, frame: &[u8]) {
        assert!(!self.done, "nothing follows [DONE]");
        let text = std::str::from_utf8(frame).unwrap();
        match text.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap() {
            "[DONE]" => self.done = true,
            json => self.chunks.push(serde_json::from_str(json).unwrap()),
        }
    }

    fn deltas(&self, choice: u64) -> impl Iterator<Item = &Value> {
        let choices = self
            .chunks
            .iter()
            .flat_map(|chunk| chunk["choices"].as_array().unwrap());
        choices
            .filter(move |found| found["index"] == choice)
            .map(|choice| &choice["delta"])
    }

    fn text(&self, choice: u64) -> String {
        self.deltas(choice)
            .filter_map(|delta| delta["content"].as_str())
            .collect()
    }
}

async fn stream(mut body: Value) -> Read {
    body["stream"] = json!(true);
    Read::of(
        send(&DemoTransport::new(Pace::Instant), "POST", CHAT, body.to_string())
            .await
            .unwrap(),
    )
    .await
}

fn ask(text: &str) -> Value {
    json!({"model": "demo", "messages": [{"role": "user", "content": text}]})
}

/// `ask` with more fields.
fn ask_with(text: &str, more: Value) -> Value {
    let mut body = ask(text);
    let Value::Object(more) = more else {
        panic!("an object: {more}")
    };
    body.as_object_mut().unwrap().extend(more);
    body
}

#[tokio::test]
async fn the_models_are_listed() {
    let demo = DemoTransport::new(Pace::Instant);
    let (status, list) = read_json(send(&demo, "GET", "/v1/models", "").await.unwrap()).await;
    assert_eq!(status, 200);
    let ids: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, MODELS);
}
