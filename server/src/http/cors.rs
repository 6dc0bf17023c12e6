//! Cross-origin calls: a list of origins, matched literally.

use http::{HeaderMap, HeaderValue, header};
use std::sync::Arc;

const METHODS: &str = "GET, POST, PUT, DELETE, OPTIONS";
const HEADERS: &str = "Content-Type, Authorization, X-API-Key, X-Provider, X-User-ID, X-Session-ID, Baggage, \
                       X-Gateway-Metadata, Traceparent, Tracestate, X-Request-ID";
const EXPOSED: &str = "X-Request-ID, X-Gateway-Provider, X-Gateway-Target, X-Gateway-Model, X-Gateway-Attempts, \
                       X-Gateway-Translation, \
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

/// What the answer to a request from another origin gets: only these headers tell a browser whether it may go on, or read
/// what came back. `wanted` is set for a preflight: the headers that it asks for, if it asks for any.
pub(super) fn answer(
    origins: &Origins,
    headers: &mut HeaderMap,
    origin: HeaderValue,
    wanted: Option<Option<HeaderValue>>,
) {
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if origins.allow(&origin) {
        permit(headers, origin, wanted);
    }
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
