//! Answering: takes the request down, picks the reply, and plays it.

use super::{
    Content, Cut, Ending, Recorded, Reply,
    connection::Handle,
    openai::{self, Answer, Frame, Part},
    state::{Gate, RequestId, Shared},
    vendors::{self, Vendor},
};
use axum::{
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request, State},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;
use std::{collections::VecDeque, future::pending, io, sync::Arc, time::Duration};

pub(super) async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<Handle>,
    request: Request,
) -> Response {
    let Ok(request) = read(request).await else {
        // The client broke off its own request. Nobody is there to read this.
        return Response::new(Body::empty());
    };
    let reply = shared
        .next_reply(&request)
        .unwrap_or_else(|| openai::usual_reply(&request));
    let vendor = Vendor::of(&request.path);
    let mut presence = Presence {
        request: shared.record(request.clone()),
        shared: Arc::clone(&shared),
        over: false,
    };

    if let Some(gate) = &reply.head_gate {
        shared.gate(gate).pass().await;
    }
    pause(reply.head_delay_ms).await;
    let Some(answer) = openai::encode(&reply, &request) else {
        if let Content::Abort { how } = reply.content
            && how != Cut::Stall
        {
            presence.over = true;
            connection.abort(how);
        }
        return pending().await;
    };
    let answer = if reply.ending.is_some() {
        answer.halved()
    } else {
        answer
    };
    let mut response = head(&answer, &reply);
    *response.body_mut() = Body::from_stream(body(Play {
        frames: answer.frames.into(),
        sent: 0,
        ending: reply.ending,
        delay_ms: reply.delay_ms,
        gate: reply.gate.map(|name| shared.gate(&name)),
        connection,
        presence,
        vendor,
    }));
    response
}

async fn read(request: Request) -> Result<Recorded, axum::Error> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await?;
    Ok(Recorded {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers,
        json: serde_json::from_slice(&body).unwrap_or(Value::Null),
        body,
        cancelled: false,
    })
}

/// A head without its body. What a script gets wrong in it (a status of 42, a header name with a space) becomes a 500
/// that says so, rather than a connection that breaks for no visible reason.
fn head(answer: &Answer, reply: &Reply) -> Response {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    if !answer.streams {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(answer.length()));
    }
    let retry_after = reply.retry_after.iter().map(|value| ("retry-after", value.as_str()));
    let own = reply
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let mut wrong = None;
    let mut fresh = Vec::new();
    for (name, value) in retry_after.chain(own) {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) if fresh.contains(&name) => drop(headers.append(name, value)),
            (Ok(name), Ok(value)) => {
                headers.insert(name.clone(), value);
                fresh.push(name);
            }
            _ => wrong = Some(HeaderValue::from_static("bad header in the script")),
        }
    }
    match StatusCode::from_u16(answer.status) {
        Ok(status) => *response.status_mut() = status,
        Err(_) => wrong = Some(HeaderValue::from_static("bad status in the script")),
    }
    if let Some(problem) = wrong {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response.headers_mut().insert("x-mock-problem", problem);
    }
    response
}

async fn pause(delay_ms: u64) {
    if delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
    }
}

/// Lives as long as the client waits for this answer. Dropped before the end, it says that the client has gone: the
/// server drops whatever it was doing for a connection that was closed.
struct Presence {
    shared: Arc<Shared>,
    request: RequestId,
    over: bool,
}

impl Drop for Presence {
    fn drop(&mut self) {
        if !self.over {
            self.shared.mark_cancelled(self.request);
        }
    }
}

struct Play {
    frames: VecDeque<Frame>,
    /// Content frames so far.
    sent: usize,
    ending: Option<Ending>,
    delay_ms: u64,
    gate: Option<Gate>,
    connection: Handle,
    presence: Presence,
    vendor: Vendor,
}

fn body(play: Play) -> impl stream::Stream<Item = io::Result<Bytes>> {
    stream::unfold(
        play,
        |mut play| async move { play.next().await.map(|frame| (frame, play)) },
    )
}

impl Play {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let Some(frame) = self.frames.pop_front() else {
            self.presence.over = true;
            return None;
        };
        if let Some(ending) = self.ending
            && frame.part != Part::Opening
            && self.sent >= ending.after
        {
            return self.end(ending.how).await;
        }
        if frame.part == Part::Content {
            if let Some(gate) = &self.gate {
                gate.pass().await;
            }
            pause(self.delay_ms).await;
            self.sent += 1;
        }
        // With a length in the head, the server asks for nothing after the last byte.
        self.presence.over = self.frames.is_empty();
        Some(Ok(frame.bytes))
    }

    async fn end(&mut self, how: Cut) -> Option<io::Result<Bytes>> {
        self.frames.clear();
        self.ending = None;
        if how == Cut::Stall {
            return pending().await;
        }
        self.presence.over = true;
        match how {
            Cut::ErrorEvent => Some(Ok(vendors::error_event(self.vendor))),
            Cut::End => None,
            Cut::Stall | Cut::Reset | Cut::Close => {
                // The server writes out what it has when a body makes it wait.
                tokio::task::yield_now().await;
                self.connection.abort(how);
                Some(Err(io::ErrorKind::ConnectionAborted.into()))
            }
        }
    }
}
