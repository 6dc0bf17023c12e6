//! Virtual keys: what applications and operators authenticate with.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everything, the other two included.
    Admin,
    /// Reads the admin API and the dashboard. Cannot spend: calls on `/v1` that cost something are refused.
    ReadOnly,
    /// Calls models on `/v1`.
    Invoke,
}

impl Scope {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ReadOnly => "read_only",
            Self::Invoke => "invoke",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    Live,
    Expired,
    Revoked,
}

/// A key as it is listed. The secret itself stands in [`Key::key`] once, in the answer that created it; everywhere else
/// that field is a display form (`sy_7Qd4…f0aP`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub id: String,
    pub name: String,
    pub key: String,
    pub scopes: Vec<Scope>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    /// Neither revoked nor expired.
    pub active: bool,
    pub state: KeyState,
    /// Requests recorded under this key, ever.
    pub usage_count: u64,
    /// The project it belongs to: one of the configuration's `projects`, or any name that its rules know.
    #[serde(default)]
    pub project: Option<String>,
    /// The route its calls take unless they name another.
    #[serde(default)]
    pub route: Option<String>,
}

/// Body of `POST /admin/keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// 1 to 80 characters.
    pub name: String,
    /// Absent or empty: `["invoke"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<Scope>>,
    /// Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Absent or empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Absent or empty: none. Must be a route of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
}

/// Body of `PUT /admin/keys/{id}`: only what is named changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Absent or empty: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<Scope>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// `true` makes the key live for ever; not together with `expires_at`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clear_expiration: bool,
    /// Empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
}
