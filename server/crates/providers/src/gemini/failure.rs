//! What Google's errors mean.
//!
//! An error is `{"error": {"code", "message", "status", "details"}}`, in a list where the answer would have been one. Its code
//! repeats the HTTP status; what it means is said by `status`, a word of gRPC, and by `details`, which say for how long, of what
//! quota, and for which reason. A key that is not valid comes as 400, and one message ("You exceeded your current quota")
//! is sent both to who has asked too often in this minute and to who has no money left.

use crate::failure::{Said, classify};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use std::time::{Duration, SystemTime};
use switchyard_core::error::{Error, Kind};

/// What an answer with a status that is no success means.
pub(super) fn of_answer(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
    let mut error = classify(status, headers, body, now);
    if let Some(google) = serde_json::from_slice(body).ok().as_ref().and_then(Google::of) {
        google.tell(&mut error);
    }
    error
}

/// What a piece of JSON means that stands where an answer should be, if it speaks of an error at all.
pub(super) fn of_stray(json: &[u8], status: Option<u16>) -> Option<Error> {
    memchr::memmem::find(json, b"\"error\"")?;
    let said = Said::of_stray(json)?;
    let mut error = said.into_error(status);
    let document = serde_json::from_slice(json).ok();
    if let Some(google) = document.as_ref().and_then(Google::of) {
        if let Some(code) = google.code.and_then(|code| StatusCode::from_u16(code).ok()) {
            let classified = classify(code, &HeaderMap::new(), json, SystemTime::UNIX_EPOCH);
            error.kind = classified.kind;
        }
        google.tell(&mut error);
    }
    Some(error)
}

struct Google<'a> {
    code: Option<u16>,
    message: &'a str,
    status: &'a str,
    details: &'a [Value],
}

impl<'a> Google<'a> {
    fn of(document: &'a Value) -> Option<Self> {
        let document = document.as_array().map_or(Some(document), |items| items.first())?;
        let error = document.get("error")?;
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        Some(Self {
            code: error
                .get("code")
                .and_then(Value::as_u64)
                .and_then(|code| code.try_into().ok()),
            message: text("message"),
            status: text("status"),
            details: error
                .get("details")
                .and_then(Value::as_array)
                .map_or(&[], Vec::as_slice),
        })
    }

    fn detail(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.details.iter().filter(move |detail| {
            let name = detail.get("@type").and_then(Value::as_str);
            name.is_some_and(|name| name.ends_with(kind))
        })
    }

    fn has_reason(&self, reasons: &[&str]) -> bool {
        self.detail(".ErrorInfo")
            .filter_map(|info| info.get("reason")?.as_str())
            .any(|reason| reasons.contains(&reason))
    }

    /// Puts what it says where a generic reading has said less.
    fn tell(&self, error: &mut Error) {
        if let Some(kind) = self.kind(error.kind) {
            error.kind = kind;
        }
        if !self.status.is_empty() {
            error.upstream_code = Some(self.status.to_owned());
        }
        if error.retry_after.is_none() {
            error.retry_after = self.delay();
        }
        if error.param.is_none() {
            error.param = self.field().map(str::to_owned);
        }
    }

    fn kind(&self, generic: Kind) -> Option<Kind> {
        let message = self.message.to_ascii_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
        if self.has_reason(&[
            "API_KEY_INVALID",
            "API_KEY_EXPIRED",
            "CREDENTIALS_MISSING",
            "ACCESS_TOKEN_EXPIRED",
        ]) || self.status == "UNAUTHENTICATED"
            || self.status == "INVALID_ARGUMENT" && says(&["api key not valid", "api key expired", "api key not found"])
        {
            return Some(Kind::Auth);
        }
        if self.has_reason(&["BILLING_DISABLED"])
            || self.status == "FAILED_PRECONDITION" && says(&["billing"])
            || says(&["prepayment credits are depleted"])
        {
            return Some(Kind::Quota);
        }
        if self.status == "RESOURCE_EXHAUSTED" {
            return Some(self.exhausted(generic));
        }
        if matches!(generic, Kind::Refused | Kind::ServerError) && says(&["but model only supports up to"]) {
            return Some(Kind::ContextLength);
        }
        if generic == Kind::Refused && self.status == "DEADLINE_EXCEEDED" {
            return Some(Kind::Timeout);
        }
        None
    }

    /// Asked too often, or nothing left: the quota's own name says over which time it is counted.
    fn exhausted(&self, generic: Kind) -> Kind {
        let violations = self
            .detail(".QuotaFailure")
            .filter_map(|failure| failure.get("violations")?.as_array())
            .flatten();
        let mut is_named = false;
        for violation in violations {
            let text = |name: &str| violation.get(name).and_then(Value::as_str).unwrap_or_default();
            let (id, value) = (text("quotaId"), text("quotaValue"));
            if id.contains("PerDay") || id.contains("PerMonth") || value == "0" {
                return Kind::Quota;
            }
            is_named |= id.contains("PerMinute") || id.contains("PerSecond");
        }
        match generic {
            Kind::Quota if is_named => Kind::RateLimit,
            Kind::Quota => Kind::Quota,
            _ => Kind::RateLimit,
        }
    }

    /// `RetryInfo`, or "Please retry in 12.5s." of the message.
    fn delay(&self) -> Option<Duration> {
        let info = self.detail(".RetryInfo").find_map(|info| info.get("retryDelay"));
        let told = match info {
            Some(Value::String(written)) => duration(written),
            Some(Value::Object(parts)) => {
                let seconds = parts.get("seconds").and_then(|value| match value {
                    Value::String(text) => text.parse().ok(),
                    other => other.as_u64(),
                });
                seconds.map(Duration::from_secs)
            }
            _ => None,
        };
        told.or_else(|| {
            let (_, after) = self.message.split_once("retry in ")?;
            duration(after.split_whitespace().next()?.trim_end_matches('.'))
        })
    }

    fn field(&self) -> Option<&'a str> {
        self.detail(".BadRequest")
            .filter_map(|bad| bad.get("fieldViolations")?.as_array())
            .flatten()
            .find_map(|violation| violation.get("field")?.as_str())
            .filter(|field| !field.is_empty())
    }
}

/// `37s`, `1.5s`, `800ms`.
fn duration(written: &str) -> Option<Duration> {
    let (number, scale) = match written.strip_suffix("ms") {
        Some(number) => (number, 1000.0),
        None => (written.strip_suffix('s')?, 1.0),
    };
    let seconds: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(seconds / scale).ok()
}

#[cfg(test)]
mod tests {
    use super::{of_answer, of_stray};
    use http::{HeaderMap, StatusCode};
    use serde_json::json;
    use std::time::{Duration, SystemTime};
    use switchyard_core::error::Kind;

    #[track_caller]
    fn check(code: u16, status: &str, message: &str, details: &serde_json::Value, kind: Kind) {
        let error = json!({"error": {"code": code, "message": message, "status": status, "details": details}});
        for body in [error.to_string(), json!([error]).to_string()] {
            let http = StatusCode::from_u16(code).unwrap();
            let told = of_answer(http, &HeaderMap::new(), body.as_bytes(), SystemTime::UNIX_EPOCH);
            assert_eq!(
                (told.kind, told.upstream_code.as_deref()),
                (kind, Some(status)),
                "{body}"
            );
            let stray = of_stray(body.as_bytes(), Some(200)).unwrap();
            assert_eq!((stray.kind, stray.status), (kind, Some(200)), "stray {body}");
        }
    }

    #[test]
    fn googles_words_say_more_than_its_statuses() {
        let none = json!([]);
        let reason = |reason: &str| json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]);
        let bad_key = "API key not valid. Please pass a valid API key.";
        check(400, "INVALID_ARGUMENT", bad_key, &reason("API_KEY_INVALID"), Kind::Auth);
        check(400, "INVALID_ARGUMENT", bad_key, &none, Kind::Auth);
        check(
            401,
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials.",
            &none,
            Kind::Auth,
        );
        check(403, "PERMISSION_DENIED", "no", &none, Kind::Auth);
        check(
            403,
            "PERMISSION_DENIED",
            "Billing is disabled",
            &reason("BILLING_DISABLED"),
            Kind::Quota,
        );
        check(
            404,
            "NOT_FOUND",
            "models/x is not found for API version v1beta",
            &none,
            Kind::NotFound,
        );
        check(
            400,
            "INVALID_ARGUMENT",
            "Invalid JSON payload received.",
            &none,
            Kind::Refused,
        );
        check(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            &none,
            Kind::ContextLength,
        );
        check(
            400,
            "INVALID_ARGUMENT",
            "The input token count is 1200000 but model only supports up to 1048576.",
            &none,
            Kind::ContextLength,
        );
        check(
            503,
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
            &none,
            Kind::ServerError,
        );
        check(
            500,
            "INTERNAL",
            "An internal error has occurred.",
            &none,
            Kind::ServerError,
        );
        check(504, "DEADLINE_EXCEEDED", "late", &none, Kind::Timeout);
        check(
            429,
            "RESOURCE_EXHAUSTED",
            "Resource exhausted. Please try again later.",
            &none,
            Kind::RateLimit,
        );
    }

    #[test]
    fn a_quota_is_told_by_its_name() {
        let message = "You exceeded your current quota, please check your plan and billing details.";
        let quota = |id: &str, value: &str| {
            json!([{
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": id, "quotaValue": value}],
            }])
        };
        let minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
        check(
            429,
            "RESOURCE_EXHAUSTED",
            message,
            &quota(minute, "10"),
            Kind::RateLimit,
        );
        check(429, "RESOURCE_EXHAUSTED", message, &quota(minute, "0"), Kind::Quota);
        let day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
        check(429, "RESOURCE_EXHAUSTED", message, &quota(day, "20"), Kind::Quota);
        check(429, "RESOURCE_EXHAUSTED", message, &json!([]), Kind::Quota);
    }

    #[test]
    fn how_long_to_wait_is_in_the_details_or_in_the_message() {
        for (details, message, want) in [
            (
                json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}]),
                "",
                Some(37_000),
            ),
            (
                json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]),
                "",
                Some(1500),
            ),
            (
                json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": {"seconds": "9"}}]),
                "",
                Some(9000),
            ),
            (json!([]), "No. Please retry in 12.5s.", Some(12_500)),
            (json!([]), "Please retry in 800ms.", Some(800)),
            (json!([]), "Please retry in a while.", None),
            (json!([{"@type": "RetryInfo"}, 7]), "", None),
        ] {
            let body =
                json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, "details": details}});
            let body = body.to_string();
            let error = of_answer(
                StatusCode::TOO_MANY_REQUESTS,
                &HeaderMap::new(),
                body.as_bytes(),
                SystemTime::UNIX_EPOCH,
            );
            assert_eq!(error.retry_after, want.map(Duration::from_millis), "{body}");
        }
    }

    #[test]
    fn what_is_no_error_is_none() {
        assert!(of_stray(br#"{"candidates":[]}"#, None).is_none());
        assert!(of_stray(br#"{"error":null}"#, None).is_none());
        let error = of_stray(br#"{"error":{"code":503}}"#, None).unwrap();
        assert_eq!(error.kind, Kind::ServerError);
        let html = of_answer(
            StatusCode::BAD_GATEWAY,
            &HeaderMap::new(),
            b"<html>",
            SystemTime::UNIX_EPOCH,
        );
        assert_eq!(html.kind, Kind::ServerError);
    }
}
