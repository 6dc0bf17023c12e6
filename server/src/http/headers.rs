//! Headers that answers get whatever they are about.

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// What a page without a policy of its own is sent with; rendered pages bring one with a nonce.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'; \
     img-src 'self' data:; style-src 'self'; script-src 'self'",
);
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");
/// As many as the gateway itself adds, or nearly.
const OWN: usize = 16;

pub(super) fn secure(headers: &mut HeaderMap, https: bool) {
    // Growing step by step would sort them anew each time.
    headers.reserve(OWN);
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(POLICY);
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("strict-origin-when-cross-origin"),
        ),
        (
            PERMISSIONS_POLICY,
            HeaderValue::from_static("camera=(), microphone=(), geolocation=()"),
        ),
    ] {
        headers.insert(name, value);
    }
    if https {
        let year = HeaderValue::from_static("max-age=31536000; includeSubDomains");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
}

/// Answers about keys, requests and sessions are nobody else's to keep.
pub(crate) async fn no_store(mut response: Response) -> Response {
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
