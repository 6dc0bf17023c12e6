//! The request log.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// One request. One row per request whatever its number of attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    /// Grows with time; below 2^53.
    pub id: i64,
    /// The request's `X-Request-ID`, 32 hex digits.
    pub trace_id: String,
    /// `after_request` for an answer, `on_error` for a failure or a refusal.
    pub stage: String,
    pub created_at: Timestamp,
    /// `chat`, `embeddings`, …
    pub surface: String,
    pub stream: bool,
    /// As the caller asked for it.
    pub model: String,
    /// As it was sent to the upstream that answered or was tried last.
    pub upstream_model: Option<String>,
    pub provider: Option<String>,
    pub target: Option<String>,
    /// The route that was taken: `default`, or its name. Empty when the request never got that far.
    #[serde(default)]
    pub route: String,
    /// Label of the variant that an A/B test drew for it, kept through failover.
    #[serde(default)]
    pub variant: Option<String>,
    /// HTTP status the caller got.
    pub status: u16,
    /// `success`, `error`, `rejected`, `partial` (cut after content was sent) or `client_cancelled`.
    pub outcome: String,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    /// The part of the prompt that was written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: Option<u64>,
    #[serde(default)]
    pub audio_prompt_tokens: Option<u64>,
    #[serde(default)]
    pub audio_completion_tokens: Option<u64>,
    /// The token counts are our estimate: the answer ended before the upstream reported usage.
    pub usage_estimated: bool,
    /// Absent: no price is known.
    pub cost_usd: Option<f64>,
    pub duration_ms: f64,
    /// From the request's arrival to the first content of a stream.
    pub ttft_ms: Option<f64>,
    /// Time inside the gateway, waiting for upstreams not counted.
    pub overhead_ms: f64,
    /// Calls made to upstreams, retries included.
    pub attempts_count: u32,
    pub api_key_id: Option<String>,
    pub api_key_name: Option<String>,
    /// Answered by the built-in `demo` provider.
    pub simulated: bool,
}

/// One call to an upstream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Counted from 1 over the whole request.
    pub number: u32,
    pub target: String,
    pub provider: String,
    pub model: String,
    /// `success`, or the kind of failure: `connect`, `timeout`, `rate_limit`, `server_error`, `cut`, …
    pub outcome: String,
    /// HTTP status of the upstream; absent when it never answered.
    pub status: Option<u16>,
    /// From the request's arrival to this call.
    pub started_ms: f64,
    pub latency_ms: f64,
    /// From this call to its first content.
    pub ttft_ms: Option<f64>,
    pub error: Option<String>,
}

/// What became of one configured target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub target: String,
    /// `chosen`, `failed`, `not_needed` or `excluded`.
    pub state: String,
    /// A sentence without its full stop: why.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// What a translation did to one field of the call, or of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// `dropped`, `approximated`, `mapped` or `kept`.
    pub fate: String,
    /// As the caller's dialect names it: `logit_bias`, `tools[0].function.strict`.
    pub field: String,
    /// A sentence without its full stop: what it became, or why it is gone. May be empty for what was kept.
    #[serde(default)]
    pub why: String,
}

/// `GET /admin/logs/{id}`: the row, and what happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogDetail {
    #[serde(flatten)]
    pub row: LogRow,
    pub attempts: Vec<Attempt>,
    pub verdicts: Vec<Verdict>,
    /// In the order in which they were made. Empty when nothing was translated.
    #[serde(default)]
    pub notes: Vec<Note>,
}

/// Query of `GET /admin/logs`. Empty values count as absent, so that a plain HTML form can send them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogQuery {
    /// 1 to 200; 50 when absent.
    pub limit: Option<u32>,
    /// Rows to skip. For older clients: [`LogQuery::before`] does not slow down with depth.
    pub offset: Option<u32>,
    /// Rows with a smaller id only: the `next` of the page before.
    pub before: Option<i64>,
    /// `after_request` or `on_error`; `all` is the same as absent.
    pub stage: Option<String>,
    /// Where the call came in: `chat`, `messages`, …
    pub surface: Option<String>,
    pub model: Option<String>,
    pub provider: Option<String>,
    pub target: Option<String>,
    /// `default`, or a route's name.
    pub route: Option<String>,
    /// A key's id, or `none`.
    pub api_key_id: Option<String>,
    /// An outcome, or `failed` for everything but `success`.
    pub outcome: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Request id (whole), or part of a model name, error code or error text.
    pub q: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogPage {
    pub data: Vec<LogRow>,
    pub summary: LogSummary,
    /// `before` of the next page; absent on the last.
    pub next: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSummary {
    /// Rows that match.
    pub total_entries: u64,
    /// Counting stopped at `total_entries`: there are at least that many.
    pub capped: bool,
}
