//! Sessions: a key exchanged for something shorter-lived.

use crate::{Scope, Timestamp};
use serde::{Deserialize, Serialize};

/// Answer of `POST /admin/session` with a bearer key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCreated {
    pub token: String,
    pub subject: String,
    pub scopes: Vec<Scope>,
    pub expires_at: Timestamp,
}

/// Answer of `GET /admin/session`: who asks, and what they talk to. The dashboard's frame is made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Me {
    /// Name of the key behind the caller.
    pub subject: String,
    pub credential_id: String,
    pub scopes: Vec<Scope>,
    /// End of the session; absent when the caller came with a key.
    pub expires_at: Option<Timestamp>,
    pub gateway: Gateway,
}

impl Me {
    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&Scope::Admin) || self.scopes.contains(&scope)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gateway {
    pub version: String,
    /// `GATEWAY_ENV`, when set.
    pub environment: Option<String>,
    /// Answers come from the built-in `demo` provider alone: nothing here was said by a model.
    pub simulated: bool,
    pub store: StoreState,
}

/// Where records go, and whether they arrive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreState {
    /// `SQLite` or `Postgres`.
    pub backend: String,
    /// Set while records cannot be written: what happened and what it means.
    pub degraded: Option<String>,
    /// Records waiting in memory.
    pub queued: u64,
    /// Records waiting on disk for the database to come back.
    pub spooled: u64,
    /// Records lost since the start, because both the queue and the disk were full.
    pub shed: u64,
}
