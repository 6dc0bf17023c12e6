//! The key check of a call, alone: what `cargo xtask bench --check` counts of this crate. Nothing else uses it.

use super::{Keys, known, token};
use http::{HeaderMap, HeaderValue, header};
use std::path::Path;
use std::sync::Arc;
use switchyard_core::scope::{Scope, Scopes};
use switchyard_engine::ports::SystemClock;
use switchyard_store::{NewKeyRow, Store};
use tokio::runtime::Handle;

/// A gateway's keys, and a call that shows one of them.
pub struct KeyCheck {
    keys: Keys,
    headers: HeaderMap,
}

impl KeyCheck {
    /// Makes `count` keys, at least one, in a database below `folder`, and calls once with the first, so that it is remembered.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn new(folder: &Path, count: usize) -> anyhow::Result<Self> {
        let store = Store::open(&folder.join("switchyard.db")).await?;
        let keys = Keys::new(store.clone(), Handle::current(), Arc::new(SystemClock));
        let mut headers = HeaderMap::new();
        for number in 0..count.max(1) {
            let made = token::generate_key()?;
            let secret = made.secret.expose();
            store.insert_key(row(number, made.display, made.hash)).await?;
            if number == 0 {
                let value = HeaderValue::try_from(format!("Bearer {secret}"))?;
                headers.insert(header::AUTHORIZATION, value);
            }
            // Remembered, as all are that have called.
            let found = keys.find(secret).await;
            anyhow::ensure!(found.is_ok_and(|key| key.is_some()), "a new key is not known");
        }
        Ok(Self { keys, headers })
    }

    /// Whether the caller is known, found out as for every call.
    #[must_use]
    pub fn is_known(&self) -> bool {
        known(&self.keys, &self.headers).is_some()
    }
}

fn row(number: usize, display: String, hash: [u8; 32]) -> NewKeyRow {
    NewKeyRow {
        id: format!("key-{number}"),
        name: format!("key {number}"),
        display,
        hash,
        scopes: [Scope::Invoke].into_iter().collect::<Scopes>(),
        created_at_ms: 0,
        expires_at_ms: None,
        project: None,
        route: None,
    }
}
