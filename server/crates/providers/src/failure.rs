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
#[expect(clippy::large_enum_variant, reason = "it is read, taken apart and gone")]
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

const CONTEXT_CODE: &str = "context_length_exceeded";

/// Codes and types that say that the prompt does not fit.
const CONTEXT_WORDS: &[&str] = &[
    CONTEXT_CODE,
    // llama.cpp.
    "exceed_context_size_error",
    // Anthropic, of a body that has too many bytes.
    "request_too_large",
];

/// The account is out of money or allowance: asking again soon does not help, another account may.
const QUOTA_WORDS: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "quota_exceeded",
    "402",
    // Anthropic, Moonshot.
    "billing_error",
    "exceeded_current_quota_error",
];

/// The number 429 is not among them: it repeats a status, and says less than a message does.
const RATE_WORDS: &[&str] = &["rate_limit_exceeded", "rate_limit_error", "too_many_requests"];

/// In small letters, as all phrases here.
const QUOTA_PHRASES: &[&str] = &["credit balance is too low", "exceeded your current quota"];

const CONTEXT_PHRASES: &[&str] = &[
    // OpenAI, DeepSeek, Mistral, OpenRouter, vLLM.
    "maximum context length",
    "context window",
    // Anthropic.
    "prompt is too long",
    "exceed context limit",
    // Cohere.
    "too many tokens",
    // Gemini.
    "exceeds the maximum number of tokens",
    // Bedrock.
    "input is too long for requested model",
    "too many input tokens",
    // Groq.
    "reduce the length of the messages",
    // xAI.
    "maximum prompt length",
    // Moonshot.
    "exceeded model token limit",
    // llama.cpp, Ollama, vLLM.
    "exceeds the available context size",
    "exceeds the context length",
    "longer than the maximum model length",
];

/// Where these stand too, "too many tokens" are too many in a span of time. The last one is Bedrock's.
const RATE_PHRASES: &[&str] = &["rate limit", "per minute", "per day", "please wait before"];

/// What an error object says of itself.
#[derive(Clone, Copy)]
struct Meaning {
    kind: Kind,
    /// By a code or a type; else by its message, which counts under fewer statuses.
    is_named: bool,
}

impl Meaning {
    const fn named(kind: Kind) -> Self {
        Self { kind, is_named: true }
    }

    const fn told(kind: Kind) -> Self {
        Self { kind, is_named: false }
    }
}

impl Said {
    /// Reads the value of an `error` field.
    pub(crate) fn of(raw: &str) -> Self {
        match serde_json::from_str(raw) {
            Ok(ErrorView::Text(message)) => Self {
                message: Some(message.into_owned()).filter(|message| !message.is_empty()),
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

    fn has_word(&self, words: &[&str]) -> bool {
        [&self.code, &self.kind]
            .into_iter()
            .flatten()
            .any(|word| words.contains(&word.as_str()))
    }

    fn speaks_of(&self, phrases: &[&str]) -> bool {
        self.message.as_ref().is_some_and(|message| {
            let message = message.to_ascii_lowercase();
            phrases.iter().any(|phrase| message.contains(phrase))
        })
    }

    /// What it means, told from what was written for machines, else from the message: a message may speak of tokens where
    /// the code says that there were too many of them per minute.
    fn meaning(&self) -> Option<Meaning> {
        let named = |words| self.has_word(words);
        let names_context = self.code.as_ref().is_some_and(|code| code.contains(CONTEXT_CODE));
        if names_context || named(CONTEXT_WORDS) {
            Some(Meaning::named(Kind::ContextLength))
        } else if named(QUOTA_WORDS) {
            Some(Meaning::named(Kind::Quota))
        } else if named(RATE_WORDS) {
            Some(Meaning::named(Kind::RateLimit))
        } else if self.speaks_of(QUOTA_PHRASES) {
            Some(Meaning::told(Kind::Quota))
        } else if named(&["429"]) {
            Some(Meaning::named(Kind::RateLimit))
        } else if !self.speaks_of(CONTEXT_PHRASES) {
            None
        } else if self.speaks_of(RATE_PHRASES) {
            Some(Meaning::told(Kind::RateLimit))
        } else {
            Some(Meaning::told(Kind::ContextLength))
        }
    }

    /// What an error means that came without a telling status: inside a stream, or under 200.
    pub(crate) fn into_error(self, status: Option<u16>) -> Error {
        let kind = match self.meaning() {
            Some(meaning) => meaning.kind,
            None => self.kind.as_deref().map_or(Kind::ServerError, kind_of_word),
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

/// What a type means where no status says it.
fn kind_of_word(word: &str) -> Kind {
    match word {
        "invalid_request_error" => Kind::Refused,
        // Anthropic.
        "authentication_error" | "permission_error" => Kind::Auth,
        "not_found_error" => Kind::NotFound,
        "timeout_error" => Kind::Timeout,
        _ => Kind::ServerError,
    }
}

/// Under a status of success there is no answer.
pub(crate) fn bad_answer(message: impl Into<String>) -> Error {
    Error {
        status: Some(200),
        ..Error::new(Kind::BadAnswer, message)
    }
}

/// What an answer with a status that is no success means.
#[must_use]
pub fn classify(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
    let said = Said::of_body(body);
    let meaning = said.meaning();
    let (meant, named) = meaning.map_or((None, false), |meaning| (Some(meaning.kind), meaning.is_named));
    let kind = match (status.as_u16(), meant) {
        (_, Some(Kind::ContextLength)) if named => Kind::ContextLength,
        // Whatever the status: the account is out of money, not the upstream out of order.
        (402, _) => Kind::Quota,
        (_, Some(Kind::Quota)) if named => Kind::Quota,
        (400 | 403 | 429, Some(Kind::Quota)) => Kind::Quota,
        (429, _) | (400 | 413 | 422, Some(Kind::RateLimit)) => Kind::RateLimit,
        (401 | 403, _) => Kind::Auth,
        (404, _) => Kind::NotFound,
        (400 | 413 | 422, Some(Kind::ContextLength)) => Kind::ContextLength,
        (400 | 422, _) => Kind::Refused,
        (408 | 504, _) => Kind::Timeout,
        (500.., _) => Kind::ServerError,
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
        // A moment that has passed here says only that the clocks differ, not that now is a good time.
        let until = httpdate::parse_http_date(written).ok()?;
        until.duration_since(now).ok().filter(|wait| !wait.is_zero())
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
    // As above: what has passed is no hint.
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    (wait <= LATEST_RESET).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::{Said, classify};
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

    #[track_caller]
    fn check_kinds(status: u16, code: &str, message: &str, kind: Kind, without_status: Kind) {
        let error = serde_json::json!({"message": message, "code": code});
        let body = serde_json::json!({ "error": error }).to_string();
        let answered = StatusCode::from_u16(status).unwrap();
        let classified = classify(answered, &HeaderMap::new(), body.as_bytes(), SystemTime::UNIX_EPOCH);
        assert_eq!(classified.kind, kind, "{status} {body}");
        let streamed = Said::of(&error.to_string()).into_error(None);
        assert_eq!(streamed.kind, without_status, "no status, {body}");
    }

    #[test]
    fn a_code_says_more_than_a_message() {
        let tpm = "Rate limit reached: too many tokens per minute";
        for (status, code, message, kind, without_status) in [
            (429, "rate_limit_exceeded", tpm, Kind::RateLimit, Kind::RateLimit),
            (400, "rate_limit_exceeded", tpm, Kind::RateLimit, Kind::RateLimit),
            (
                413,
                "rate_limit_exceeded",
                "Request too large",
                Kind::RateLimit,
                Kind::RateLimit,
            ),
            (
                413,
                "rate_limit_exceeded",
                "too many tokens",
                Kind::RateLimit,
                Kind::RateLimit,
            ),
            (422, "rate_limit_exceeded", tpm, Kind::RateLimit, Kind::RateLimit),
            (400, "", tpm, Kind::RateLimit, Kind::RateLimit),
            (
                429,
                "",
                "Too many tokens, please wait before trying again.",
                Kind::RateLimit,
                Kind::RateLimit,
            ),
            (400, "insufficient_quota", "too many tokens", Kind::Quota, Kind::Quota),
            (
                429,
                "rate_limit_exceeded",
                "exceeded your current quota",
                Kind::RateLimit,
                Kind::RateLimit,
            ),
            (
                400,
                "context_length_exceeded",
                tpm,
                Kind::ContextLength,
                Kind::ContextLength,
            ),
            (
                429,
                "context_length_exceeded",
                "",
                Kind::ContextLength,
                Kind::ContextLength,
            ),
            (
                500,
                "context_length_exceeded",
                "",
                Kind::ContextLength,
                Kind::ContextLength,
            ),
            // Words of another status change nothing there.
            (401, "rate_limit_exceeded", "", Kind::Auth, Kind::RateLimit),
            (500, "rate_limit_exceeded", "", Kind::ServerError, Kind::RateLimit),
            (413, "", "", Kind::Unexpected, Kind::ServerError),
        ] {
            check_kinds(status, code, message, kind, without_status);
        }
    }

    #[test]
    fn out_of_money_is_out_of_money_under_any_status() {
        for code in ["insufficient_quota", "billing_hard_limit_reached", "quota_exceeded"] {
            for status in [400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 504] {
                check_kinds(status, code, "", Kind::Quota, Kind::Quota);
            }
        }
        for message in [
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing",
            "You exceeded your current quota, please check your plan and billing details.",
        ] {
            for status in [400, 402, 403, 429] {
                check_kinds(status, "invalid_request_error", message, Kind::Quota, Kind::Quota);
                // Gemini's code is the status.
                check_kinds(status, "429", message, Kind::Quota, Kind::Quota);
            }
            check_kinds(500, "", message, Kind::ServerError, Kind::Quota);
        }
    }

    #[test]
    fn vendors_say_in_many_ways_that_a_prompt_is_too_long() {
        for message in [
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "Your input exceeds the context window of this model.",
            "prompt is too long: 209353 tokens > 199999 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "The request exceeds the maximum number of tokens",
            "Input is too long for requested model.",
            "Too many input tokens. Max input tokens: 8192, request input token count: 8966",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "Please reduce the length of the messages or completion.",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Invalid request: Your request exceeded model token limit: 8192",
            "the request exceeds the available context size, try increasing it",
            "the input length exceeds the context length",
            "The decoder prompt (length 2000) is longer than the maximum model length of 1024.",
        ] {
            for status in [400, 413, 422] {
                check_kinds(status, "", message, Kind::ContextLength, Kind::ContextLength);
            }
            check_kinds(429, "", message, Kind::RateLimit, Kind::ContextLength);
            check_kinds(500, "", message, Kind::ServerError, Kind::ContextLength);
        }
    }

    #[test]
    fn retry_after_comes_in_several_forms() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (name, value, want) in [
            ("retry-after", "7", Some(7.0)),
            ("retry-after", "0.5", Some(0.5)),
            ("retry-after-ms", "250", Some(0.25)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(7.0)),
            ("retry-after", "0", Some(0.0)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT", None),
            ("retry-after", "Sun, 06 Nov 1994 08:49:29 GMT", None),
            ("retry-after", "Sat, 06 Nov 1993 08:49:37 GMT", None),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "1e400", None),
            ("x-ratelimit-reset", "0", Some(0.0)),
            ("x-ratelimit-reset", "12", Some(12.0)),
            ("x-ratelimit-reset", "-12", None),
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
