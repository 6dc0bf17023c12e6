//! A call on its way into the pipeline, and its answer on the way out.

use super::{Door, responses};
use crate::auth::admit;
use crate::http::error::{attribute, failed, last_frame, stray_document, time};
use crate::http::fallback;
use crate::http::front::Visit;
use crate::state::AppState;
use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchyard_core::error::{Error, Kind};
use switchyard_core::scope::Scope;
use switchyard_engine::{Answer, Body as Answered, Piece, Request as Call};
use switchyard_providers::{Dialect, FromPath, Surface};

/// A body that takes longer is not going to come.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// As much of a body that is too large is still taken from its sender, and no longer.
const MOST_DISCARDED: usize = 64 << 20;
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const TRANSLATION: HeaderName = HeaderName::from_static("x-gateway-translation");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// A call that comes in by `door`.
pub(crate) async fn call(state: &AppState, door: Door, visit: Visit, request: http::Request<Incoming>) -> Response {
    let Door { surface, path } = door;
    let dialect = surface.dialect();
    let (parts, body) = request.into_parts();
    let (method, headers, open) = (&parts.method, &parts.headers, state.auth.open_data_plane);
    let principal = match admit(state, method, headers, visit.client.ip, open, Some(Scope::Invoke)).await {
        Ok(principal) => principal,
        Err(refusal) => return refusal.in_dialect(dialect),
    };
    if parts.method != Method::POST {
        let mut response = fallback::not_possible(method, parts.uri.path()).in_dialect(dialect);
        let allowed = HeaderValue::from_static("POST");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
    let arrived = Instant::now();
    let arrived_at_ms = state.services.clock.now_ms();
    let most = state.engine.max_request_bytes();
    let read = read_body(&parts.headers, body, most).await;
    let upload = arrived.elapsed();
    let (mut body, mut refused) = match read {
        Ok(body) => (body, wrong_path(path.as_ref(), &parts.uri)),
        Err(error) => (Bytes::new(), Some(error)),
    };
    let mut begun = None;
    if surface == Surface::Responses && refused.is_none() {
        match Box::pin(responses::enter(state, &principal, body.clone())).await {
            Ok((resolved, found)) => (body, begun) = (resolved, Some(found)),
            Err(error) => refused = Some(error),
        }
    }
    let id = Arc::clone(&visit.id.0);
    let call = Call {
        id: visit.id.0,
        arrived,
        arrived_at_ms,
        upload,
        caller: principal.caller(),
        surface,
        path,
        headers: parts.headers,
        body,
        thread: begun.as_ref().map(responses::Begun::thread),
    };
    let result = match refused {
        Some(error) => Err(state.engine.refuse(&call, error)),
        None => state.engine.run(call).await,
    };
    let result = match (result, begun) {
        (Ok(answer), Some(begun)) => Ok(Box::pin(begun.keep(answer)).await),
        (result, _) => result,
    };
    let mut response = match result {
        Ok(answer) => respond(answer, surface),
        Err(failure) => failed(&failure, dialect),
    };
    if dialect == Dialect::Anthropic
        && let Ok(value) = HeaderValue::from_str(&id)
    {
        // Where that vendor's clients look for it.
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Without `alt=sse` a stream would be one JSON list that grows.
fn wrong_path(path: Option<&FromPath>, uri: &http::Uri) -> Option<Error> {
    let wants_stream = path.is_some_and(|path| path.stream);
    let query = uri.query().unwrap_or_default().as_bytes();
    let is_sse = || form_urlencoded::parse(query).any(|(name, value)| name == "alt" && value == "sse");
    (wants_stream && !is_sse()).then(|| {
        let message = "streams are sent as server-sent events here; add `?alt=sse` to the address";
        Error::new(Kind::InvalidRequest, message).with_param("alt")
    })
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

fn respond(answer: Answer, surface: Surface) -> Response {
    let (body, content_type, streaming) = match answer.body {
        Answered::Whole(bytes) => (Body::from(bytes), "application/json", false),
        Answered::Stream(pieces) => (frames(pieces, surface), "text/event-stream; charset=utf-8", true),
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
    if let Some(notes) = answer.notes
        && let Ok(value) = HeaderValue::try_from(notes.to_string())
    {
        headers.insert(TRANSLATION, value);
    }
    attribute(headers, &answer.attribution);
    time(headers, answer.overhead, answer.waited);
    response
}

fn frames(pieces: BoxStream<'static, Piece>, surface: Surface) -> Body {
    let sent = Ok::<Bytes, std::convert::Infallible>;
    if surface.dialect() == Dialect::Gemini {
        return Body::from_stream(pieces.flat_map(move |piece| {
            let stray = match &piece {
                Piece::Failed(error) => Some(stray_document(error)),
                _ => None,
            };
            // Two pieces: clients look for it at the beginning of what arrives.
            stream::iter(
                [Some(on_the_wire(piece, surface, 0)), stray]
                    .into_iter()
                    .flatten()
                    .map(sent),
            )
        }));
    }
    let mut count = (surface == Surface::Responses).then(responses::Count::default);
    Body::from_stream(pieces.map(move |piece| {
        let number = count.as_mut().map_or(0, |count| count.next(&piece));
        sent(on_the_wire(piece, surface, number))
    }))
}

/// `number`: of an event that is made here.
fn on_the_wire(piece: Piece, surface: Surface, number: u64) -> Bytes {
    match piece {
        Piece::Frames(bytes) => bytes,
        Piece::Heartbeat => Bytes::from_static(match surface.dialect() {
            Dialect::OpenAi => b": waiting for the upstream\n\n",
            Dialect::Anthropic => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
            // Its clients take every line that is not empty for an answer.
            Dialect::Gemini => b"\n",
        }),
        Piece::Failed(error) => last_frame(&error, surface, number),
    }
}
