//! What Bedrock's exceptions mean.
//!
//! The same exception comes in many ways: named by a header, by `__type` with a namespace in front, or by a frame of a stream
//! in small letters; with a `message` or a `Message`; under its own status, or under 200.

use crate::failure::{Said, classify};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use std::time::SystemTime;
use switchyard_core::error::{Error, Kind};

/// An exception as a body writes it.
#[derive(Debug, Default, Deserialize)]
struct Written {
    #[serde(default, rename = "__type")]
    kind: Option<String>,
    #[serde(default)]
    code: Option<serde_json::Value>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default, rename = "Message")]
    big_message: Option<String>,
    /// Of a path that AWS does not know.
    #[serde(default, rename = "Output")]
    output: Option<Box<Self>>,
    #[serde(default, rename = "originalStatusCode")]
    original_status: Option<u16>,
}

/// An exception, as far as it is told.
#[derive(Debug, Default)]
pub(super) struct Exception {
    name: Option<String>,
    message: Option<String>,
    original_status: Option<u16>,
}

impl Exception {
    /// Reads a body, or a frame's payload.
    pub(super) fn read(body: &[u8]) -> Self {
        let written: Written = serde_json::from_slice(body).unwrap_or_default();
        let inner = written.output.map(|output| *output).unwrap_or_default();
        let code = written
            .code
            .as_ref()
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned);
        let name = written.kind.or(inner.kind).or(code);
        let message = written.message.or(written.big_message).or(inner.message);
        Self {
            name: name.map(|name| bare(&name).to_owned()).filter(|name| !name.is_empty()),
            message: message.filter(|message| !message.is_empty()),
            original_status: written.original_status,
        }
    }

    #[must_use]
    pub(super) fn named(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name.map(bare).filter(|name| !name.is_empty()) {
            self.name = Some(name.to_owned());
        }
        self
    }

    #[must_use]
    pub(super) fn saying(mut self, message: Option<&str>) -> Self {
        if self.message.is_none() {
            self.message = message.map(str::to_owned);
        }
        self
    }

    /// Whether there is anything of an exception to it.
    pub(super) fn is_one(&self) -> bool {
        self.name.is_some() || self.message.is_some()
    }

    /// What it means where no status tells: in a stream, or under 200.
    pub(super) fn into_error(self, status: Option<u16>) -> Error {
        let message = self.message.clone();
        let message = message.unwrap_or_else(|| "the upstream reported an error without saying which".to_owned());
        let said = json!({"message": message, "code": self.name}).to_string();
        let mut error = Said::of(&said).into_error(status);
        if let Some(kind) = self.meaning(&message) {
            error.kind = kind;
        }
        error
    }

    fn meaning(&self, message: &str) -> Option<Kind> {
        let kind = kind_of(self.name.as_deref()?, message)?;
        let is_rate = self.original_status == Some(429) && kind == Kind::ServerError;
        Some(if is_rate { Kind::RateLimit } else { kind })
    }
}

/// `com.amazon.coral.service#ThrottlingException:http://…` is a `ThrottlingException`.
fn bare(name: &str) -> &str {
    let name = name.split(':').next().unwrap_or_default();
    name.rsplit('#').next().unwrap_or_default().trim()
}

/// An answer whose status is no success.
pub(super) fn failure(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
    let mut error = classify(status, headers, body, now);
    let header = headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok());
    let exception = Exception::read(body).named(header);
    if let Some(message) = &exception.message {
        error.message.clone_from(message);
    }
    if let Some(kind) = exception.meaning(&error.message) {
        error.kind = kind;
    }
    if exception.name.is_some() {
        error.upstream_code = exception.name;
    }
    error
}

fn kind_of(name: &str, message: &str) -> Option<Kind> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix("exception").unwrap_or(&name);
    Some(match name {
        "throttling" | "throttled" | "toomanyrequests" | "requestlimitexceeded" => Kind::RateLimit,
        "servicequotaexceeded" => Kind::Quota,
        "modeltimeout" | "requesttimeout" => Kind::Timeout,
        // The vendor means these to be tried again.
        "modelnotready" | "modelerror" | "modelstreamerror" | "internalserver" | "internalfailure"
        | "serviceunavailable" => Kind::ServerError,
        "accessdenied"
        | "unrecognizedclient"
        | "expiredtoken"
        | "invalidsignature"
        | "signaturedoesnotmatch"
        | "incompletesignature"
        | "missingauthenticationtoken"
        | "invalidclienttokenid"
        | "notauthorized"
        | "optinrequired"
        | "requestexpired"
        | "unauthorized" => Kind::Auth,
        "resourcenotfound" | "unknownoperation" => Kind::NotFound,
        "validation" | "validationerror" | "serialization" => validation(message),
        _ => return None,
    })
}

/// The one exception for everything that is wrong with a request.
fn validation(message: &str) -> Kind {
    let said = Said::of(&json!({ "message": message }).to_string()).into_error(None);
    let message = message.to_ascii_lowercase();
    if said.kind == Kind::ContextLength || message.contains("number of input tokens exceeds") {
        Kind::ContextLength
    } else if message.contains("model identifier is invalid") {
        Kind::NotFound
    } else {
        Kind::Refused
    }
}

#[cfg(test)]
mod tests {
    use super::{Exception, failure};
    use http::{HeaderMap, HeaderValue, StatusCode};
    use std::time::SystemTime;
    use switchyard_core::error::Kind;

    #[test]
    fn exceptions_are_known_by_header_by_type_and_by_status() {
        let long = r#"{"message":"Input is too long for requested model."}"#;
        let nova = r#"{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length."}"#;
        let busy = r#"{"message":"Too many tokens, please wait before trying again."}"#;
        for (status, name, body, kind) in [
            (
                429,
                "ThrottlingException:http://internal.amazon.com/coral/",
                busy,
                Kind::RateLimit,
            ),
            (400, "ServiceQuotaExceededException", r#"{"message":"q"}"#, Kind::Quota),
            (429, "ModelNotReadyException", r#"{"message":"m"}"#, Kind::ServerError),
            (408, "ModelTimeoutException", r#"{"message":"m"}"#, Kind::Timeout),
            (
                424,
                "ModelErrorException",
                r#"{"message":"m","originalStatusCode":500}"#,
                Kind::ServerError,
            ),
            (
                424,
                "ModelErrorException",
                r#"{"message":"m","originalStatusCode":429}"#,
                Kind::RateLimit,
            ),
            (400, "ValidationException", long, Kind::ContextLength),
            (400, "ValidationException", nova, Kind::ContextLength),
            (400, "ValidationException", r#"{"message":"bad"}"#, Kind::Refused),
            (
                400,
                "ValidationException",
                r#"{"message":"The provided model identifier is invalid."}"#,
                Kind::NotFound,
            ),
            (403, "AccessDeniedException", r#"{"Message":"no"}"#, Kind::Auth),
            (
                403,
                "",
                r#"{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"t"}"#,
                Kind::Auth,
            ),
            (
                400,
                "",
                r#"{"__type":"ExpiredTokenException","message":"t"}"#,
                Kind::Auth,
            ),
            (
                404,
                "",
                r#"{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"}}"#,
                Kind::NotFound,
            ),
            (500, "InternalServerException", "", Kind::ServerError),
            (503, "", "<html>", Kind::ServerError),
            (403, "", "", Kind::Auth),
        ] {
            let mut headers = HeaderMap::new();
            if !name.is_empty() {
                headers.insert("x-amzn-errortype", HeaderValue::from_static(name));
            }
            let status = StatusCode::from_u16(status).unwrap();
            let error = failure(status, &headers, body.as_bytes(), SystemTime::UNIX_EPOCH);
            assert_eq!(error.kind, kind, "{status} {name} {body}");
            assert_eq!(error.status, Some(status.as_u16()));
        }
    }

    #[test]
    fn what_was_said_is_kept() {
        let body = br#"{"Message":"User is not authorized","__type":"x#AccessDeniedException"}"#;
        let error = failure(StatusCode::FORBIDDEN, &HeaderMap::new(), body, SystemTime::UNIX_EPOCH);
        assert_eq!(error.message, "User is not authorized");
        assert_eq!(error.upstream_code.as_deref(), Some("AccessDeniedException"));
    }

    #[test]
    fn a_frame_names_it_in_small_letters() {
        for (name, message, kind) in [
            ("throttlingException", "slow down", Kind::RateLimit),
            ("modelStreamErrorException", "m", Kind::ServerError),
            (
                "validationException",
                "prompt is too long: 9 tokens > 8 maximum",
                Kind::ContextLength,
            ),
            ("validationException", "odd", Kind::Refused),
            ("somethingNew", "odd", Kind::ServerError),
        ] {
            let error = Exception::default()
                .named(Some(name))
                .saying(Some(message))
                .into_error(None);
            assert_eq!((error.kind, &*error.message), (kind, message));
        }
        assert!(!Exception::read(b"{}").is_one());
        assert_eq!(
            Exception::read(b"nonsense").into_error(Some(200)).kind,
            Kind::ServerError
        );
    }
}
