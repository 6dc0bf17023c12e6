//! The dry run: `POST /v1/route/explain`, with the body of a real call. Nothing is sent.

use crate::{ErrorBody, Verdict};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// After aliases.
    pub model: String,
    /// `default`, or the name of the route that would be taken.
    pub route: String,
    /// Why this route: `default`, `model`, `header`, `key` or `project`.
    pub route_by: String,
    /// The route's mode.
    pub strategy: String,
    /// Label of the variant that an A/B test would draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Targets that would be tried, first to last. Empty: the call would be refused.
    pub order: Vec<String>,
    /// What each of `order` would be asked for, in the same order.
    pub upstream_models: Vec<String>,
    /// One for every configured target.
    pub verdicts: Vec<Verdict>,
    /// What the caller would be told when nothing is left to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WouldFail>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WouldFail {
    /// HTTP status.
    pub status: u16,
    #[serde(flatten)]
    pub error: ErrorBody,
}
