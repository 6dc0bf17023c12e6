//! The order of middleware, outermost first:
//!
//! 1. request id: even a panic's answer carries it
//! 2. the client's address
//! 3. access log
//! 4. a panic becomes a 500, and the connection lives on
//! 5. security headers
//! 6. unknown verbs
//! 7. CORS, before anyone is asked who they are
//! 8. the limit per address, where it is switched on
//!
//! Authentication follows inside, per route.

pub(crate) use super::cors::Origins;

use super::client_ip::Client;
use super::{Refusal, client_ip, cors, fallback, request_id};
use crate::observe::access;
use crate::state::AppState;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, header};
use tower_http::catch_panic::CatchPanicLayer;

pub(crate) fn apply(router: Router, state: &AppState) -> Router {
    router
        .layer(from_fn_with_state(state.clone(), per_address))
        .layer(from_fn_with_state(state.settings.cors.clone(), cors::layer))
        .layer(from_fn(fallback::unknown_verbs))
        .layer(from_fn(security_headers))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(access::layer))
        .layer(from_fn_with_state(state.proxies.clone(), client_ip::layer))
        .layer(from_fn(request_id::layer))
}

/// The payload goes into the log, never to the caller.
#[expect(clippy::needless_pass_by_value, reason = "this is how the layer hands it over")]
fn panicked(payload: Box<dyn std::any::Any + Send>) -> Response {
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    tracing::error!(panic = message.unwrap_or("without a message"), "a request panicked");
    Refusal::internal().into_response()
}

/// Answers about keys, requests and sessions are nobody else's to keep.
pub(crate) async fn no_store(mut response: Response) -> Response {
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Probes are never refused.
fn is_probe(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/health")
}

async fn per_address(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let client = request.extensions().get::<Client>().copied();
    if let Some(client) = client.filter(|_| !is_probe(request.uri().path()))
        && state.auth.throttles.refuses(client.ip)
    {
        state.metrics.rejected_by_limit("ip");
        return Refusal::throttled(1).into_response();
    }
    next.run(request).await
}

/// What a page without a policy of its own is sent with; rendered pages bring one with a nonce.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
                      object-src 'none'; img-src 'self' data:; style-src 'self'; script-src 'self'";

async fn security_headers(request: Request, next: Next) -> Response {
    let https = request.extensions().get::<Client>().is_some_and(|client| client.https);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(POLICY));
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "strict-origin-when-cross-origin"),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), microphone=(), geolocation=()",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if https {
        let year = HeaderValue::from_static("max-age=31536000; includeSubDomains");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
    response
}
