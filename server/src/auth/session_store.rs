//! Sessions in our own store.
//!
//! `tower-sessions` makes the ids and keeps the data; the store keeps a hash of the id, so that a copy of the database lets
//! nobody in.

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use switchyard_core::scope::Scopes;
use switchyard_engine::ports::Clock;
use switchyard_store::{SessionRow, Store};
use time::OffsetDateTime;
use tower_sessions::SessionStore;
use tower_sessions::session::{Id, Record};
use tower_sessions::session_store::{Error, Result};

/// Names of what a session holds.
pub(super) const CREDENTIAL_ID: &str = "credential_id";
pub(super) const SUBJECT: &str = "subject";
pub(super) const SCOPES: &str = "scopes";

#[derive(Clone)]
pub(super) struct SessionsInStore {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for SessionsInStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionsInStore")
    }
}

pub(super) fn hash(id: Id) -> [u8; 32] {
    Sha256::digest(id.to_string().as_bytes()).into()
}

fn backend(error: &impl std::fmt::Display) -> Error {
    Error::Backend(error.to_string())
}

impl SessionsInStore {
    fn row(&self, record: &Record) -> Result<SessionRow> {
        let text = |name| {
            record
                .data
                .get(name)
                .and_then(|value| value.as_str())
                .unwrap_or_default()
                .to_owned()
        };
        let scopes: Option<Scopes> = record
            .data
            .get(SCOPES)
            .and_then(|value| serde_json::from_value(value.clone()).ok());
        let now_ms = self.clock.now_ms();
        Ok(SessionRow {
            id_hash: hash(record.id),
            credential_id: text(CREDENTIAL_ID),
            subject: text(SUBJECT),
            scopes: scopes.unwrap_or_default(),
            data: serde_json::to_string(&record.data).map_err(|error| Error::Encode(error.to_string()))?,
            created_at_ms: now_ms,
            last_seen_at_ms: now_ms,
            expires_at_ms: record.expiry_date.unix_timestamp() * 1000,
        })
    }
}

#[async_trait]
impl SessionStore for SessionsInStore {
    async fn create(&self, record: &mut Record) -> Result<()> {
        self.store
            .insert_session(&self.row(record)?)
            .await
            .map_err(|error| backend(&error))
    }

    async fn save(&self, record: &Record) -> Result<()> {
        self.store
            .delete_session(&hash(record.id))
            .await
            .map_err(|error| backend(&error))?;
        self.store
            .insert_session(&self.row(record)?)
            .await
            .map_err(|error| backend(&error))
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let Some(row) = self.store.session(&hash(*id)).await.map_err(|error| backend(&error))? else {
            return Ok(None);
        };
        let data = serde_json::from_str(&row.data).map_err(|error| Error::Decode(error.to_string()))?;
        let expiry_date = OffsetDateTime::from_unix_timestamp(row.expires_at_ms / 1000)
            .map_err(|error| Error::Decode(error.to_string()))?;
        Ok(Some(Record {
            id: *id,
            data,
            expiry_date,
        }))
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        self.store
            .delete_session(&hash(*id))
            .await
            .map(|_| ())
            .map_err(|error| backend(&error))
    }
}
