//! `/v1/*` that is no surface: passed on as it is, see `engine::pipeline::foreign`.

use super::surface::read_body;
use super::{dialect_at, responses};
use crate::auth::Principal;
use crate::http::error::{attribute, failed, time};
use crate::http::fallback;
use crate::http::request_id::RequestId;
use crate::state::AppState;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, header};
use std::time::Instant;
use switchyard_core::error::{Error, Kind};
use switchyard_engine::{Foreign, Passed, Request as Call};
use switchyard_providers::Surface;

/// The methods that are passed on. One that sends a request back as it came would show the gateway's credential.
const METHODS: [Method; 6] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

pub(super) async fn pass_on(State(state): State<AppState>, request: Request) -> Response {
    let dialect = dialect_at(request.uri().path());
    if !METHODS.contains(request.method()) {
        let mut response = fallback::not_possible(request.method(), request.uri().path()).in_dialect(dialect);
        let allowed = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
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
    let path = below_v1(&parts.uri);
    let (body, refused) = match read {
        Ok(body) => (body, not_on_the_list(&state, &parts.uri)),
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
        Some(error) => Err(state.engine.refuse_foreign(&request, error)),
        None => {
            let foreign = Foreign {
                request,
                method: parts.method,
                path,
                spoken: false,
            };
            state.engine.pass_on(foreign).await
        }
    };
    match result {
        Ok(passed) => respond(passed),
        Err(failure) => failed(&failure, dialect),
    }
}

fn not_on_the_list(state: &AppState, uri: &http::Uri) -> Option<Error> {
    let path = uri.path();
    (!state.engine.snapshot().passes_on(path)).then(|| {
        let message = format!(
            "{path} is nothing that the gateway does itself, and its configuration does not let it pass to a provider: whoever \
             runs it can list the path under `pass_through`"
        );
        Error::new(Kind::NotAllowed, message).told_as(403, "permission_error", "path_not_allowed")
    })
}

/// The path below `/v1` and its query, without a key that stands there.
fn below_v1(uri: &http::Uri) -> String {
    let path = uri.path();
    let mut out = path.strip_prefix("/v1").unwrap_or(path).to_owned();
    let kept = uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter(|pair| !matches!(pair.split('=').next(), Some("key" | "api_key" | "access_token")));
    for (i, pair) in kept.enumerate() {
        out.push(if i == 0 { '?' } else { '&' });
        out.push_str(pair);
    }
    out
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
