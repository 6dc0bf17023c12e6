//! Errors become responses here and nowhere else.
//!
//! One shape for `/v1` and `/admin`: `{"error": {"message", "type", "code"}}`, with `param` where a field is to blame. Callers
//! who write as Anthropic's or Gemini's clients do are answered in the shape that those know, with the same code in it.
//! A fault of the gateway's own says so without its cause; the cause is in the log, under the same request id.

use axum::Json;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;
use switchyard_api::{ApiError, ErrorBody, ErrorEnvelope};
use switchyard_core::error::{Error, Face};
use switchyard_engine::{Attribution, Failure};
use switchyard_providers::{Dialect, Surface};
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
        let response = (self.status, Json(ErrorEnvelope { error })).into_response();
        with_hints(response, self.retry_after)
    }
}

impl Refusal {
    /// The same for a caller who writes otherwise.
    pub(crate) fn in_dialect(self, dialect: Dialect) -> Response {
        if dialect == Dialect::OpenAi {
            return self.into_response();
        }
        let face = Face {
            status: self.status.as_u16(),
            kind: self.kind,
            code: self.code,
        };
        let body = body(dialect, face, &self.message, self.param.as_deref(), None);
        with_hints((self.status, Json(body)).into_response(), self.retry_after)
    }
}

fn with_hints(mut response: Response, retry_after: Option<u64>) -> Response {
    let is_unauthorized = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if is_unauthorized {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A failed call in its caller's dialect, with who was asked last.
pub(crate) fn failed(failure: &Failure, dialect: Dialect) -> Response {
    let face = failure.error.face();
    let status = StatusCode::from_u16(face.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(body_of(&failure.error, dialect))).into_response();
    let headers = response.headers_mut();
    headers.extend(failure.headers.clone());
    attribute(headers, &failure.attribution);
    time(headers, failure.overhead, failure.waited);
    if let Some(wait) = failure.error.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs_f64().ceil() as u64));
    }
    response
}

/// The same as a stream's last word, with the end that clients wait for where their dialect has one. `number` is the event's,
/// in a dialect that counts them.
pub(crate) fn last_frame(error: &Error, surface: Surface, number: u64) -> Bytes {
    let body = body_of(error, surface.dialect());
    Bytes::from(match surface {
        Surface::Responses => {
            let face = error.face();
            let event = json!({
                "type": "error",
                "code": face.code,
                "message": error.message,
                "param": error.param,
                "sequence_number": number,
                // Its clients fail at the sight of this one.
                "error": body["error"],
            });
            format!("event: error\ndata: {event}\n\n")
        }
        _ => match surface.dialect() {
            Dialect::OpenAi => format!("data: {body}\n\ndata: [DONE]\n\n"),
            Dialect::Anthropic => format!("event: error\ndata: {body}\n\n"),
            Dialect::Gemini => format!("data: {body}\n\n"),
        },
    })
}

/// What follows the last frame of a stream of Gemini's. Google breaks a stream off with a document that is no event, and it is by
/// that that its clients for JavaScript and Go know a failure: an event with an `error` in it they take for an answer without
/// candidates. It has no blank line behind it: a client that misses it is left with a rest that it complains of.
pub(crate) fn stray_document(error: &Error) -> Bytes {
    Bytes::from(body_of(error, Dialect::Gemini).to_string())
}

fn body_of(error: &Error, dialect: Dialect) -> Value {
    let upstream = (error.status.is_some() || error.upstream_code.is_some())
        .then(|| json!({ "status": error.status, "code": error.upstream_code }));
    body(dialect, error.face(), &error.message, error.param.as_deref(), upstream)
}

fn body(dialect: Dialect, face: Face, message: &str, param: Option<&str>, upstream: Option<Value>) -> Value {
    match dialect {
        Dialect::OpenAi => {
            let mut error = json!({ "message": message, "type": face.kind, "param": param, "code": face.code });
            if let Some(upstream) = upstream {
                error["upstream"] = upstream;
            }
            json!({ "error": error })
        }
        Dialect::Anthropic => {
            let mut error = json!({ "type": anthropic_type(face.status), "message": message, "code": face.code });
            if let Some(param) = param {
                error["param"] = param.into();
            }
            if let Some(upstream) = upstream {
                error["upstream"] = upstream;
            }
            json!({ "type": "error", "error": error })
        }
        Dialect::Gemini => {
            let mut metadata = json!({});
            if let Some(param) = param {
                metadata["param"] = param.into();
            }
            // Of the vendor's own texts there only are texts.
            if let Some(Value::Object(upstream)) = upstream {
                for (name, value) in upstream.into_iter().filter(|(_, value)| !value.is_null()) {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    metadata[format!("upstream_{name}")] = text.into();
                }
            }
            json!({ "error": {
                "code": face.status,
                "message": message,
                "status": google_status(face.status),
                "details": [{
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": face.code,
                    "domain": "switchyard",
                    "metadata": metadata,
                }],
            } })
        }
    }
}

/// Anthropic's word for a status.
const fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// Google's word for a status.
const fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        501 => "UNIMPLEMENTED",
        502 | 503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
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
    let mut own = String::with_capacity(16);
    push_millis(&mut own, overhead);
    let mut timing = String::with_capacity(64);
    timing.push_str("gateway;dur=");
    timing.push_str(&own);
    timing.push_str(", upstream;dur=");
    push_millis(&mut timing, waited);
    for (name, value) in [(OVERHEAD, own), (SERVER_TIMING, timing)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
}

/// Milliseconds with three decimals. Made of whole numbers, and not by way of a formatter: both are long in the making.
fn push_millis(text: &mut String, duration: Duration) {
    // Not of 128 bits either.
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    // With a leading one, so that zeros stay.
    let (mut whole, mut part) = (itoa::Buffer::new(), itoa::Buffer::new());
    text.push_str(whole.format(micros / 1000));
    text.push('.');
    text.push_str(&part.format(1000 + micros % 1000)[1..]);
}

#[cfg(test)]
mod tests {
    use super::push_millis;
    use std::time::Duration;

    #[test]
    fn milliseconds_have_three_decimals() {
        for (micros, want) in [(0, "0.000"), (7, "0.007"), (1_050, "1.050"), (61_000_001, "61000.001")] {
            let mut text = String::new();
            push_millis(&mut text, Duration::from_micros(micros));
            assert_eq!(text, want);
        }
    }
}
