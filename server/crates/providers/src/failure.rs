//! What an upstream's refusal means, whatever shape it has.

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use std::borrow::Cow;
use std::time::{Duration, SystemTime};
use switchyard_core::error::{Error, Kind};

/// The parts of an error object that mean something. Vendors agree on little: the object may be a plain text, its code a
/// number, and a list may stand around it all.
#[derive(Debug, Default)]
pub(crate) struct Said {
    message: Option<String>,
    code: Option<String>,
    kind: Option<String>,
    param: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorView<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Object {
        #[serde(default)]
        message: Option<serde_json::Value>,
        #[serde(default)]
        code: Option<serde_json::Value>,
        #[serde(default, rename = "type")]
        kind: Option<serde_json::Value>,
        #[serde(default)]
        param: Option<serde_json::Value>,
    },
}

fn text(value: Option<serde_json::Value>) -> Option<String> {
    match value? {
        serde_json::Value::String(text) if !text.is_empty() => Some(text),
        serde_json::Value::Number(number) => Some(number.to_string()),
        serde_json::Value::Object(object) => Some(serde_json::Value::Object(object).to_string()),
        _ => None,
    }
}

impl Said {
    /// Reads the value of an `error` field.
    pub(crate) fn of(raw: &str) -> Self {
        match serde_json::from_str(raw) {
            Ok(ErrorView::Text(message)) => Self {
                message: Some(message.into_owned()),
                ..Self::default()
            },
            Ok(ErrorView::Object {
                message,
                code,
                kind,
                param,
            }) => Self {
                message: text(message),
                code: text(code),
                kind: text(kind),
                param: text(param),
            },
            Err(_) => Self::default(),
        }
    }

    /// Reads a whole body: `{"error": …}`, the same in a list, or the error object itself.
    fn of_body(body: &[u8]) -> Self {
        let Ok(mut document) = serde_json::from_slice::<serde_json::Value>(body) else {
            return Self::default();
        };
        if let serde_json::Value::Array(items) = &mut document {
            document = items.first_mut().map(serde_json::Value::take).unwrap_or_default();
        }
        let error = document
            .get_mut("error")
            .map(serde_json::Value::take)
            .unwrap_or(document);
        Self::of(&error.to_string())
    }

    /// What a piece of JSON says that stands where an answer should be, if it speaks of an error at all.
    pub(crate) fn of_stray(json: &[u8]) -> Option<Self> {
        let document: serde_json::Value = serde_json::from_slice(json).ok()?;
        let object = document.as_array().map_or(Some(&document), |items| items.first())?;
        let error = match object.get("error") {
            Some(error) => error,
            None if object.get("object").is_some_and(|kind| kind == "error") => object,
            None => return None,
        };
        (!error.is_null()).then(|| Self::of(&error.to_string()))
    }

    fn is_context_length(&self) -> bool {
        let says = |text: &Option<String>, parts: &[&str]| {
            text.as_ref().is_some_and(|text| {
                let text = text.to_ascii_lowercase();
                parts.iter().any(|part| text.contains(part))
            })
        };
        says(&self.code, &["context_length_exceeded"])
            || says(
                &self.message,
                &[
                    "maximum context length",
                    "context window",
                    "prompt is too long",
                    "too many tokens",
                ],
            )
    }

    fn has_word(&self, words: &[&str]) -> bool {
        [&self.code, &self.kind]
            .into_iter()
            .flatten()
            .any(|word| words.contains(&word.as_str()))
    }

    fn is_rate_limit(&self) -> bool {
        self.has_word(&["rate_limit_exceeded", "rate_limit_error", "429", "too_many_requests"])
    }

    /// The account is out of money or allowance: asking again soon does not help, another account may.
    fn is_quota(&self) -> bool {
        self.has_word(&[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "quota_exceeded",
            "402",
        ])
    }

    /// What an error means that came without a telling status: inside a stream, or under 200.
    pub(crate) fn into_error(self, status: Option<u16>) -> Error {
        let kind = if self.is_context_length() {
            Kind::ContextLength
        } else if self.is_quota() {
            Kind::Quota
        } else if self.is_rate_limit() {
            Kind::RateLimit
        } else if self.kind.as_deref() == Some("invalid_request_error") {
            Kind::Refused
        } else {
            Kind::ServerError
        };
        let message = self
            .message
            .clone()
            .unwrap_or_else(|| "the upstream reported an error without saying which".to_owned());
        self.error(kind, &message, status)
    }

    fn error(self, kind: Kind, message: &str, status: Option<u16>) -> Error {
        Error {
            status,
            param: self.param,
            upstream_code: self.code.or(self.kind),
            ..Error::new(kind, message)
        }
    }
}

/// What an answer with a status that is no success means.
#[must_use]
pub fn classify(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
    let said = Said::of_body(body);
    let kind = match status.as_u16() {
        402 => Kind::Quota,
        400 | 403 | 429 if said.is_quota() => Kind::Quota,
        400 if said.is_rate_limit() => Kind::RateLimit,
        429 => Kind::RateLimit,
        401 | 403 => Kind::Auth,
        404 => Kind::NotFound,
        400 | 413 | 422 if said.is_context_length() => Kind::ContextLength,
        400 | 422 => Kind::Refused,
        408 | 504 => Kind::Timeout,
        500.. => Kind::ServerError,
        _ => Kind::Unexpected,
    };
    let message = said
        .message
        .clone()
        .unwrap_or_else(|| format!("the upstream answered {status}"));
    let mut error = said.error(kind, &message, Some(status.as_u16()));
    error.retry_after = retry_after(headers, now);
    error
}

/// Longer than this, a reset is no hint for anybody who waits.
const LATEST_RESET: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the upstream asks to be left alone: `retry-after-ms`; `retry-after` in seconds or as a date; or, without
/// them, `x-ratelimit-reset` in seconds or as a Unix time.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str| {
        text.parse::<f64>()
            .ok()
            .and_then(|s| Duration::try_from_secs_f64(s).ok())
    };
    if let Some(wait) = header("retry-after-ms").and_then(seconds) {
        return Some(wait / 1000);
    }
    let Some(written) = header("retry-after") else {
        return reset(header("x-ratelimit-reset")?.parse().ok()?, now);
    };
    seconds(written).or_else(|| {
        let until = httpdate::parse_http_date(written).ok()?;
        Some(until.duration_since(now).unwrap_or(Duration::ZERO))
    })
}

fn reset(written: f64, now: SystemTime) -> Option<Duration> {
    let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64();
    let seconds = match written {
        // Milliseconds, seconds since the epoch, or seconds from now.
        ms if ms > 1e12 => ms / 1e3 - since_epoch,
        at if at > 1e9 => at - since_epoch,
        wait => wait,
    };
    let wait = Duration::try_from_secs_f64(seconds.max(0.0)).ok()?;
    (wait <= LATEST_RESET).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::classify;
    use http::{HeaderMap, HeaderValue, StatusCode};
    use std::time::{Duration, SystemTime};
    use switchyard_core::error::Kind;

    #[track_caller]
    fn check(status: u16, body: &str, kind: Kind, message: &str) {
        let status = StatusCode::from_u16(status).unwrap();
        let error = classify(status, &HeaderMap::new(), body.as_bytes(), SystemTime::UNIX_EPOCH);
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{status} {body}");
    }

    #[test]
    fn every_shape_of_a_refusal_is_understood() {
        check(
            429,
            r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#,
            Kind::RateLimit,
            "slow down",
        );
        check(401, r#"{"error":"no"}"#, Kind::Auth, "no");
        check(403, "", Kind::Auth, "the upstream answered 403 Forbidden");
        check(404, r#"{"message":"gone","code":404}"#, Kind::NotFound, "gone");
        check(
            400,
            r#"[{"error":{"message":"bad","status":"INVALID"}}]"#,
            Kind::Refused,
            "bad",
        );
        check(
            400,
            r#"{"error":{"message":"long","code":"context_length_exceeded"}}"#,
            Kind::ContextLength,
            "long",
        );
        check(
            413,
            r#"{"error":{"message":"prompt is too long: 9 tokens"}}"#,
            Kind::ContextLength,
            "prompt is too long: 9 tokens",
        );
        check(
            422,
            "{}",
            Kind::Refused,
            "the upstream answered 422 Unprocessable Entity",
        );
        check(
            504,
            "<html>",
            Kind::Timeout,
            "the upstream answered 504 Gateway Timeout",
        );
        check(
            529,
            "<html>",
            Kind::ServerError,
            "the upstream answered 529 <unknown status code>",
        );
        check(302, "", Kind::Unexpected, "the upstream answered 302 Found");
    }

    #[test]
    fn retry_after_comes_in_several_forms() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (name, value, want) in [
            ("retry-after", "7", Some(7.0)),
            ("retry-after", "0.5", Some(0.5)),
            ("retry-after-ms", "250", Some(0.25)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(7.0)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("x-ratelimit-reset", "12", Some(12.0)),
            ("x-ratelimit-reset", "1784111770", None),
        ] {
            let headers: HeaderMap = [(
                name.parse::<http::HeaderName>().unwrap(),
                HeaderValue::from_static(value),
            )]
            .into_iter()
            .collect();
            let error = classify(StatusCode::TOO_MANY_REQUESTS, &headers, b"", now);
            assert_eq!(
                error.retry_after.map(|wait| wait.as_secs_f64()),
                want,
                "{name}: {value}"
            );
        }
    }
}
