//! Reading what the admin API wrote.
//!
//! serde's derive writes a parser for each type: together they were a fifteenth of all the code a browser loads. Here one
//! parser makes a [`Value`], and each type picks its fields out of it. The lists below cannot drift from the types: a
//! field that is missing does not compile, and its name is its name on the wire.
//!
//! The server writes with serde; the tests hold the two together.

use serde_json::Value;
use switchyard_api::{
    ApiError, Attempt, BreakerState, CredentialState, Dashboard, ErrorBody, Explained, Gateway, Key, KeyCounts,
    KeyState, LogCounts, LogDetail, LogPage, LogRow, LogSummary, Me, Model, ModelLatency, ModelList, Note,
    ProviderCounts, QuotaUse, Range, RouteInfo, RouteTarget, Scope, StoreState, Summary, TargetState, Targets,
    Timestamp, Traffic, TrafficPoint, Verdict, WouldFail,
};

/// What stands for nothing where a field is absent.
const NOTHING: &Value = &Value::Null;

/// The first field that was not what its type wants. Reading goes on with a stand-in, so that no type has to undo what it
/// has read so far.
#[derive(Debug, Default)]
pub struct Fault(Option<&'static str>, bool);

impl Fault {
    fn note<T: Default>(&mut self) -> T {
        self.1 = true;
        T::default()
    }

    fn field<T: Read>(&mut self, of: &Value, name: &'static str) -> T {
        let read = T::read(of.get(name).unwrap_or(NOTHING), self);
        if self.1 {
            self.0.get_or_insert(name);
        }
        read
    }
}

/// A type that can be read out of JSON.
pub trait Read: Sized {
    fn read(value: &Value, fault: &mut Fault) -> Self;
}

/// Reads a whole answer.
///
/// # Errors
/// Which field is not as this page expects it.
pub fn read<T: Read>(text: &str) -> Result<T, ApiError> {
    let value = value(text)?;
    let mut fault = Fault::default();
    let read = T::read(&value, &mut fault);
    if fault.1 {
        return Err(unreadable(fault.0.unwrap_or("the whole of it")));
    }
    Ok(read)
}

fn value(text: &str) -> Result<Value, ApiError> {
    serde_json::from_str(text).map_err(|_| unreadable("not JSON"))
}

/// Why a request was refused. Errors have another shape in each dialect; all of them have an `error` with a `message`.
#[must_use]
pub fn refusal(status: u16, body: &str) -> ApiError {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let error = &body["error"];
    // OpenAI has a word in `code`. Gemini has a number there and the word in `status`, Anthropic has it in `type`.
    let code = ["code", "status", "type"]
        .into_iter()
        .find_map(|field| error[field].as_str())
        .unwrap_or("unknown");
    let message = match error["message"].as_str().or_else(|| error.as_str()) {
        Some(message) => message.to_owned(),
        None => format!("The gateway answered {status} and did not say why."),
    };
    ApiError::new(status, code, message)
}

fn unreadable(what: &str) -> ApiError {
    let message =
        format!("The gateway's answer could not be read ({what}). If it was just updated, load the page again.");
    ApiError::new(0, "unreadable", message)
}

/// Fields by name.
macro_rules! objects {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Read for $name {
            fn read(value: &Value, fault: &mut Fault) -> Self {
                Self { $($field: fault.field(value, stringify!($field))),* }
            }
        }
    )*};
}

objects! {
    Attempt { number, target, provider, model, outcome, status, started_ms, latency_ms, ttft_ms, error }
    Verdict { target, state, reason, until }
    Note { fate, field, why }
    LogRow {
        id, trace_id, stage, created_at, surface, stream, model, upstream_model, provider, target, route, variant, status,
        outcome, error_code, error_message, prompt_tokens, completion_tokens, total_tokens, cached_tokens,
        reasoning_tokens, cache_write_tokens, audio_prompt_tokens, audio_completion_tokens, usage_estimated, cost_usd, duration_ms, ttft_ms, overhead_ms, attempts_count, api_key_id,
        api_key_name, simulated
    }
    LogPage { data, summary, next }
    LogSummary { total_entries, capped }
    Key {
        id, name, key, scopes, created_at, expires_at, revoked_at, last_used_at, active, state, usage_count, project, route
    }
    Model { id, object, created, owned_by }
    ModelList { object, data }
    Me { subject, credential_id, scopes, expires_at, gateway }
    Gateway { version, environment, simulated, store }
    StoreState { backend, degraded, queued, spooled, shed }
    Dashboard { providers, keys, request_logs, traffic, finding }
    ApiError { status, code, message }
    Targets { as_of, window_s, routes, data }
    RouteInfo { name, strategy, family, model, targets, details }
    RouteTarget { name, is_route, weight, model }
    TargetState {
        target, provider, simulated, state, reason, until, models, breaker, parked_until, in_flight, max_concurrency,
        queued, queue_size, latency, success_rate, quota, credentials, calls, share
    }
    BreakerState { state, failures, failure_threshold, until }
    ModelLatency { model, p50_ms, samples }
    QuotaUse { limit, most, used }
    CredentialState { id, weight, state, reason, until }
    Explained { model, route, route_by, strategy, variant, order, upstream_models, verdicts, error }
    ProviderCounts { total, available }
    KeyCounts { total, active, expired, total_usage }
    LogCounts { enabled, total }
    Traffic { range, as_of, bucket_minutes, points, now, before }
    TrafficPoint { start, answered, failed, prompt_tokens, completion_tokens }
    Summary { requests, failed, prompt_tokens, completion_tokens, first_token_p50_ms, overhead_p99_ms, sampled }
}

/// The row's fields and what happened stand in one object.
impl Read for LogDetail {
    fn read(value: &Value, fault: &mut Fault) -> Self {
        Self {
            row: Read::read(value, fault),
            attempts: fault.field(value, "attempts"),
            verdicts: fault.field(value, "verdicts"),
            notes: fault.field(value, "notes"),
        }
    }
}

impl Read for ErrorBody {
    fn read(value: &Value, fault: &mut Fault) -> Self {
        Self {
            message: fault.field(value, "message"),
            kind: fault.field(value, "type"),
            code: fault.field(value, "code"),
            param: fault.field(value, "param"),
        }
    }
}

/// The status stands beside the error's own fields.
impl Read for WouldFail {
    fn read(value: &Value, fault: &mut Fault) -> Self {
        Self {
            status: fault.field(value, "status"),
            error: Read::read(value, fault),
        }
    }
}

/// What stands in JSON as one value.
macro_rules! values {
    ($($name:ty: $read:expr;)*) => {$(
        impl Read for $name {
            fn read(value: &Value, fault: &mut Fault) -> Self {
                let read: fn(&Value) -> Option<Self> = $read;
                read(value).unwrap_or_else(|| fault.note())
            }
        }
    )*};
}

values! {
    bool: Value::as_bool;
    u16: |value| value.as_u64()?.try_into().ok();
    u32: |value| value.as_u64()?.try_into().ok();
    u64: Value::as_u64;
    i64: Value::as_i64;
    f64: Value::as_f64;
    String: |value| value.as_str().map(str::to_owned);
}

/// What stands in JSON as a word.
macro_rules! words {
    ($($name:ty, $stand_in:expr, $read:expr;)*) => {$(
        impl Read for $name {
            fn read(value: &Value, fault: &mut Fault) -> Self {
                let read: fn(&str) -> Option<Self> = $read;
                value.as_str().and_then(read).unwrap_or_else(|| {
                    fault.note::<()>();
                    $stand_in
                })
            }
        }
    )*};
}

words! {
    Timestamp, Self(0), Self::parse;
    Range, Self::Hour1, Self::parse;
    Scope, Self::Invoke, |word| [Self::Admin, Self::ReadOnly, Self::Invoke].into_iter().find(|scope| scope.as_str() == word);
    KeyState, Self::Revoked, |word| match word {
        "live" => Some(Self::Live),
        "expired" => Some(Self::Expired),
        "revoked" => Some(Self::Revoked),
        _ => None,
    };
}

impl<T: Read> Read for Option<T> {
    fn read(value: &Value, fault: &mut Fault) -> Self {
        (!value.is_null()).then(|| T::read(value, fault))
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: &Value, fault: &mut Fault) -> Self {
        let Some(values) = value.as_array() else {
            return fault.note();
        };
        values.iter().map(|value| T::read(value, fault)).collect()
    }
}

/// As serde writes it: `{"Ok": …}` or `{"Err": …}`.
impl<T: Read, E: Read> Read for Result<T, E> {
    fn read(value: &Value, fault: &mut Fault) -> Self {
        match value.get("Ok") {
            Some(good) => Ok(T::read(good, fault)),
            None => Err(fault.field(value, "Err")),
        }
    }
}

impl<A: Read, B: Read> Read for (A, B) {
    fn read(value: &Value, fault: &mut Fault) -> Self {
        let at = |place| value.get(place).unwrap_or(NOTHING);
        let (first, second): (&Value, &Value) = (at(0), at(1));
        (A::read(first, fault), B::read(second, fault))
    }
}

#[cfg(test)]
#[path = "read/tests.rs"]
mod tests;
