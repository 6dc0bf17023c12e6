//! What is remembered of a request: one record, with one entry per attempt and one verdict per configured target.
//!
//! A record is filled while the request runs and handed to [`crate::ports::Records`] exactly once, whatever happened:
//! by the pipeline when the answer has ended, or by a guard's drop when the client went away first.
//!
//! Most of its texts are names that thousands of records share, and are kept once.

mod verdicts;

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use switchyard_core::usage::Usage;
pub use switchyard_providers::notes::{Fate, Note};
pub(crate) use verdicts::{LeftOut, Said};
pub use verdicts::{Verdict, VerdictState, Verdicts};

/// How a request ended, seen from the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    /// No answer: upstreams failed, or the gateway did.
    #[default]
    Error,
    /// The gateway refused before any upstream was asked.
    Rejected,
    /// Content was sent, then the answer was cut.
    Partial,
    /// The caller went away before the end.
    ClientCancelled,
}

impl Outcome {
    pub const ALL: [Self; 5] = [
        Self::Success,
        Self::Error,
        Self::Rejected,
        Self::Partial,
        Self::ClientCancelled,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Rejected => "rejected",
            Self::Partial => "partial",
            Self::ClientCancelled => "client_cancelled",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// One request. Durations are in microseconds, counted on a steady clock from the request's arrival.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// 32 hex digits.
    pub request_id: Arc<str>,
    /// Arrival, milliseconds since the Unix epoch.
    pub arrived_at_ms: i64,
    /// Name of the surface: `chat`, `embeddings`.
    pub surface: Cow<'static, str>,
    pub stream: bool,
    pub model: String,
    pub upstream_model: Option<Arc<str>>,
    pub provider: Option<Arc<str>>,
    pub target: Option<Arc<str>>,
    /// The route that was taken: `default`, or its name. Empty when the request never got that far.
    #[serde(default)]
    pub route: Arc<str>,
    /// Label of the variant that an A/B test drew for it, kept through failover.
    #[serde(default)]
    pub variant: Option<String>,
    /// HTTP status that the caller got.
    pub status: u16,
    pub outcome: Outcome,
    pub error_code: Option<String>,
    /// Redacted: no credential stands in it.
    pub error_message: Option<String>,
    pub usage: Usage,
    pub duration_us: u64,
    /// Until the first content of a stream.
    pub first_token_us: Option<u64>,
    /// Spent in the gateway until the answer's head was ready, upstream waits not counted.
    pub overhead_us: u64,
    /// Id of the virtual key; absent for the master key and for unauthenticated calls.
    pub key_id: Option<Arc<str>>,
    pub key_name: Option<Arc<str>>,
    /// Answered by the built-in `demo` provider.
    pub simulated: bool,
    pub attempts: Vec<AttemptRecord>,
    pub verdicts: Verdicts,
    /// What became of the fields of a call that was translated; of the attempt that answered, or was the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// One call to an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    pub target: Arc<str>,
    pub provider: Arc<str>,
    pub model: Arc<str>,
    /// `success`, or the name of the failure's kind.
    pub outcome: Cow<'static, str>,
    /// Absent when the upstream never answered.
    pub status: Option<u16>,
    /// From the request's arrival to this call.
    pub started_us: u64,
    /// From this call to its end.
    pub latency_us: u64,
    /// From this call to its first content.
    pub first_token_us: Option<u64>,
    pub error: Option<String>,
}
