//! Cross-origin calls: a list of origins, matched literally.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::sync::Arc;

const METHODS: &str = "GET, POST, PUT, DELETE, OPTIONS";
const HEADERS: &str = "Content-Type, Authorization, X-API-Key, X-Provider, X-User-ID, X-Session-ID, Baggage, \
                       X-Gateway-Metadata, Traceparent, Tracestate, X-Request-ID";
const EXPOSED: &str = "X-Request-ID, X-Gateway-Provider, X-Gateway-Target, X-Gateway-Model, X-Gateway-Attempts, \
                       X-Gateway-Overhead-Ms, X-Gateway-Upstream-Request-ID, Retry-After, Server-Timing";

/// `CORS_ORIGINS`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(Arc<[String]>);

impl Origins {
    pub(crate) fn parse(list: &str) -> Self {
        Self(
            list.split(',')
                .map(str::trim)
                .filter(|origin| !origin.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|origin| origin == "*")
    }

    fn allow(&self, origin: &HeaderValue) -> bool {
        self.any() || self.0.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes())
    }
}

/// A preflight is answered before anyone is asked who they are; only the headers tell a browser whether it may go on.
pub(crate) async fn layer(State(origins): State<Origins>, request: Request, next: Next) -> Response {
    let Some(origin) = request.headers().get(header::ORIGIN).cloned() else {
        return next.run(request).await;
    };
    let preflight = request.method() == Method::OPTIONS;
    let wanted = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let mut response = if preflight {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if origins.allow(&origin) {
        permit(headers, origin, preflight.then_some(wanted));
    }
    response
}

/// An origin on the list may send what it likes: client libraries bring headers of their own, and the list is the decision.
fn permit(headers: &mut HeaderMap, origin: HeaderValue, preflight: Option<Option<HeaderValue>>) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    if let Some(wanted) = preflight {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            wanted.unwrap_or(HeaderValue::from_static(HEADERS)),
        );
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    }
}
