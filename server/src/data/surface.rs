//! A call on its way into the pipeline, and its answer on the way out.

use crate::auth::admit;
use crate::http::error::{attribute, openai, openai_chunk, time};
use crate::http::fallback;
use crate::http::front::Visit;
use crate::state::AppState;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::{Duration, Instant};
use switchyard_core::error::{Error, Kind};
use switchyard_core::scope::Scope;
use switchyard_engine::{Answer, Body as Answered, Piece, Request as Call};
use switchyard_providers::Surface;

/// A body that takes longer is not going to come.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// As much of a body that is too large is still taken from its sender, and no longer.
const MOST_DISCARDED: usize = 64 << 20;
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// A call on the path of `surface`.
pub(crate) async fn call(
    state: &AppState,
    surface: Surface,
    visit: Visit,
    request: http::Request<Incoming>,
) -> Response {
    let (parts, body) = request.into_parts();
    let (method, headers, open) = (&parts.method, &parts.headers, state.auth.open_data_plane);
    let principal = match admit(state, method, headers, visit.client.ip, open, Some(Scope::Invoke)).await {
        Ok(principal) => principal,
        Err(refusal) => return refusal.into_response(),
    };
    if parts.method != Method::POST {
        let mut response = fallback::not_possible(method, parts.uri.path());
        let allowed = HeaderValue::from_static("POST");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
    let arrived = Instant::now();
    let arrived_at_ms = state.services.clock.now_ms();
    let most = state.engine.max_request_bytes();
    let read = read_body(&parts.headers, body, most).await;
    let upload = arrived.elapsed();
    let (body, refused) = match read {
        Ok(body) => (body, None),
        Err(error) => (Bytes::new(), Some(error)),
    };
    let call = Call {
        id: visit.id.0,
        arrived,
        arrived_at_ms,
        upload,
        caller: principal.caller(),
        surface,
        headers: parts.headers,
        body,
    };
    let result = match refused {
        Some(error) => Err(state.engine.refuse(&call, error)),
        None => state.engine.run(call).await,
    };
    match result {
        Ok(answer) => respond(answer),
        Err(failure) => openai(&failure),
    }
}

/// The whole body, unless it is too large or does not come.
pub(super) async fn read_body<B>(headers: &HeaderMap, mut body: B, most: usize) -> Result<Bytes, Error>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most) {
        // A client that waits to be asked for its body is not asked.
        if !headers.contains_key(header::EXPECT) {
            discard(body).await;
        }
        return Err(too_large(most));
    }
    match tokio::time::timeout(UPLOAD_TIMEOUT, collect(&mut body, announced.unwrap_or(0), most)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => {
            discard(body).await;
            Err(too_large(most))
        }
        Ok(Err(_)) => Err(Error::new(
            Kind::InvalidRequest,
            "the request's body broke off before its end",
        )),
        Err(_) => {
            let message = format!("the request's body was not there within {} s", UPLOAD_TIMEOUT.as_secs());
            Err(Error::new(Kind::InvalidRequest, message))
        }
    }
}

fn too_large(most: usize) -> Error {
    let message = format!("the request is larger than {most} bytes; make it smaller, or raise `max_request_bytes`");
    Error::new(Kind::RequestTooLarge, message)
}

/// `None` when there is more than fits. A body of one frame stays the bytes that it is.
async fn collect<B>(body: &mut B, expected: usize, most: usize) -> Result<Option<Bytes>, B::Error>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let so_far = first.as_ref().map_or(all.len(), Bytes::len);
        if so_far + data.len() > most {
            return Ok(None);
        }
        match first.take() {
            None if all.is_empty() => first = Some(data),
            earlier => {
                all.reserve(expected.saturating_sub(all.len()));
                all.extend_from_slice(&earlier.unwrap_or_default());
                all.extend_from_slice(&data);
            }
        }
    }
    Ok(Some(first.unwrap_or_else(|| all.freeze())))
}

/// Lets a client finish what it is sending, within bounds. One whose connection is closed while it still writes may never
/// read the answer that says why.
async fn discard<B>(mut body: B)
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let mut left = MOST_DISCARDED;
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            if length > left {
                break;
            }
            left -= length;
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, read).await;
}

fn respond(answer: Answer) -> Response {
    let (body, content_type, streaming) = match answer.body {
        Answered::Whole(bytes) => (Body::from(bytes), "application/json", false),
        Answered::Stream(pieces) => {
            let frames = pieces.map(|piece| Ok::<_, std::convert::Infallible>(on_the_wire(piece)));
            (Body::from_stream(frames), "text/event-stream; charset=utf-8", true)
        }
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    *headers = answer.headers;
    // As many as come, here and on the way out: growing step by step would sort them anew each time.
    headers.reserve(24);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if streaming {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // nginx would keep small frames back otherwise.
        headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    }
    attribute(headers, &answer.attribution);
    time(headers, answer.overhead, answer.waited);
    response
}

fn on_the_wire(piece: Piece) -> Bytes {
    match piece {
        Piece::Frames(bytes) => bytes,
        Piece::Heartbeat => Bytes::from_static(b": waiting for the upstream\n\n"),
        Piece::Failed(error) => openai_chunk(&error),
    }
}
