//! `/v1/*` that is no surface: passed on as it is, see `engine::pipeline::foreign`.

use super::responses;
use super::surface::read_body;
use crate::auth::Principal;
use crate::http::error::{attribute, failed, time};
use crate::http::fallback;
use crate::http::request_id::RequestId;
use crate::state::AppState;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use std::time::Instant;
use switchyard_engine::{Foreign, Passed, Request as Call};
use switchyard_providers::{Dialect, Surface};

pub(super) async fn pass_on(State(state): State<AppState>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if responses::is_ours(parts.uri.path()) {
        return fallback::no_route(&parts.method, parts.uri.path()).into_response();
    }
    let principal = parts
        .extensions
        .get::<Principal>()
        .cloned()
        .unwrap_or_else(Principal::nobody);
    let id = parts
        .extensions
        .get::<RequestId>()
        .map_or_else(|| "".into(), |id| id.0.clone());
    let arrived = Instant::now();
    let arrived_at_ms = state.services.clock.now_ms();
    let read = read_body(&parts.headers, body, state.engine.max_request_bytes()).await;
    let whole = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let path = whole.strip_prefix("/v1").unwrap_or(whole).to_owned();
    let (body, refused) = match read {
        Ok(body) => (body, None),
        Err(error) => (bytes::Bytes::new(), Some(error)),
    };
    let request = Call {
        id,
        arrived,
        arrived_at_ms,
        upload: arrived.elapsed(),
        caller: principal.caller(),
        surface: Surface::Chat,
        path: None,
        headers: parts.headers,
        body,
        thread: None,
    };
    let result = match refused {
        Some(error) => Err(state.engine.refuse(&request, error)),
        None => {
            let foreign = Foreign {
                request,
                method: parts.method,
                path,
            };
            state.engine.pass_on(foreign).await
        }
    };
    match result {
        Ok(passed) => respond(passed),
        Err(failure) => failed(&failure, Dialect::OpenAi),
    }
}

pub(super) fn respond(passed: Passed) -> Response {
    let mut response = Response::new(Body::from_stream(passed.body));
    *response.status_mut() = passed.status;
    let headers = response.headers_mut();
    *headers = passed.headers;
    attribute(headers, &passed.attribution);
    time(headers, passed.overhead, passed.waited);
    response
}
