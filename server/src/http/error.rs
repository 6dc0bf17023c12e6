//! Errors become responses here and nowhere else.
//!
//! One shape for `/v1` and `/admin`: `{"error": {"message", "type", "code"}}`, with `param` where a field is to blame.
//! A fault of the gateway's own says so without its cause; the cause is in the log, under the same request id.

use axum::Json;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;
use switchyard_api::{ApiError, ErrorBody, ErrorEnvelope};
use switchyard_core::error::Error;
use switchyard_engine::{Attribution, Failure};
use switchyard_store::StoreError;

/// A request that is refused or has failed before, or outside of, the pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, kind: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code,
            message: message.into(),
            param: None,
            retry_after: None,
        }
    }

    pub(crate) fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", code, message)
    }

    pub(crate) fn unauthenticated(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication_error", code, message)
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", code, message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            "resource_not_found",
            format!("{what} does not exist"),
        )
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "invalid_request_error", code, message)
    }

    pub(crate) fn throttled(retry_after: u64) -> Self {
        let refusal = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_error",
            "rate_limit_exceeded",
            format!("too many requests from this address; try again in {retry_after} s"),
        );
        Self {
            retry_after: Some(retry_after),
            ..refusal
        }
    }

    pub(crate) fn internal() -> Self {
        let message = "the gateway failed at this request; its log has the cause under the same request id";
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "internal_error",
            message,
        )
    }

    pub(crate) fn store_unavailable() -> Self {
        let message = "the database cannot be reached at the moment; try again shortly";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            "store_unavailable",
            message,
        )
    }

    pub(crate) fn with_param(self, param: &str) -> Self {
        Self {
            param: Some(param.to_owned()),
            ..self
        }
    }
}

/// What the pipeline would have told a caller.
impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let face = error.face();
        let status = StatusCode::from_u16(face.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self {
            param: error.param.clone(),
            ..Self::new(status, face.kind, face.code, error.message.clone())
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let cause: &dyn std::error::Error = &error;
        tracing::error!(error = cause, "the database did not do what was asked");
        Self::store_unavailable()
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.status.as_u16(), refusal.code, refusal.message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = ErrorBody {
            message: self.message,
            kind: self.kind.to_owned(),
            code: self.code.to_owned(),
            param: self.param,
        };
        let mut response = (self.status, Json(ErrorEnvelope { error })).into_response();
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A failed call in OpenAI's dialect, with who was asked last.
pub(crate) fn openai(failure: &Failure) -> Response {
    let face = failure.error.face();
    let status = StatusCode::from_u16(face.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(openai_body(&failure.error))).into_response();
    let headers = response.headers_mut();
    headers.extend(failure.headers.clone());
    attribute(headers, &failure.attribution);
    time(headers, failure.overhead, failure.waited);
    if let Some(wait) = failure.error.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs_f64().ceil() as u64));
    }
    response
}

/// The same as the last frame of a stream, with the end that clients wait for.
pub(crate) fn openai_chunk(error: &Error) -> Bytes {
    Bytes::from(format!("data: {}\n\ndata: [DONE]\n\n", openai_body(error)))
}

fn openai_body(error: &Error) -> Value {
    let face = error.face();
    let mut body = json!({
        "message": error.message,
        "type": face.kind,
        "param": error.param,
        "code": face.code,
    });
    if error.status.is_some() || error.upstream_code.is_some() {
        body["upstream"] = json!({ "status": error.status, "code": error.upstream_code });
    }
    json!({ "error": body })
}

const PROVIDER: HeaderName = HeaderName::from_static("x-gateway-provider");
const TARGET: HeaderName = HeaderName::from_static("x-gateway-target");
const MODEL: HeaderName = HeaderName::from_static("x-gateway-model");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-gateway-attempts");
const OVERHEAD: HeaderName = HeaderName::from_static("x-gateway-overhead-ms");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// `X-Gateway-*`: who answered, or was asked last.
pub(crate) fn attribute(headers: &mut http::HeaderMap, attribution: &Attribution) {
    for (name, value) in [
        (PROVIDER, &attribution.provider),
        (TARGET, &attribution.target),
        (MODEL, &attribution.model),
    ] {
        if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    }
    headers.insert(ATTEMPTS, HeaderValue::from(attribution.attempts));
}

/// The gateway's own share of the time until the head, and what was waited for. Nothing is said where nothing was measured: a
/// head that went out before the outcome was known, a dry run that is refused.
pub(crate) fn time(headers: &mut http::HeaderMap, overhead: Duration, waited: Duration) {
    if overhead.is_zero() {
        return;
    }
    let overhead = millis(overhead);
    let timing = format!("gateway;dur={overhead}, upstream;dur={}", millis(waited));
    for (name, value) in [(OVERHEAD, overhead), (SERVER_TIMING, timing)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}

/// Milliseconds with three decimals. Made of whole numbers: a fraction's shortest text is long in the making.
fn millis(duration: Duration) -> String {
    // Not of 128 bits: those are long in the making too.
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

#[cfg(test)]
mod tests {
    use super::millis;
    use std::time::Duration;

    #[test]
    fn milliseconds_have_three_decimals() {
        for (micros, want) in [(0, "0.000"), (7, "0.007"), (1_050, "1.050"), (61_000_001, "61000.001")] {
            assert_eq!(millis(Duration::from_micros(micros)), want);
        }
    }
}
