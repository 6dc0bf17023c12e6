//! How the admin API says no.

use serde::{Deserialize, Serialize};

/// A refusal or a failure as a caller of the admin API meets it. It travels with a rendered page, so that a resource that
/// failed on the server is not asked for again in the browser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// HTTP status; 0 when the gateway could not be reached at all.
    pub status: u16,
    /// Stable name of the fault, such as `insufficient_scope`.
    pub code: String,
    /// A sentence for people: what happened and what to do.
    pub message: String,
}

impl ApiError {
    #[must_use]
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
        }
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// `{"error": {"message", "type", "code"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEnvelope {
    pub error: ErrorBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    pub message: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub code: String,
    /// The field of the request that is wrong, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
}
