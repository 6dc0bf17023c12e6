//! Sessions of the dashboard and of older clients.
//!
//! The store keeps what it is given. Whether a session still holds (its own end, idleness, its key's revocation) is for
//! the caller to judge on every use; the sweeps here only keep the table small and cut sessions off when their key goes.

use crate::{
    error::StoreError,
    keys::{read_scopes, scopes_text},
    store::Store,
};
use sqlx::{Row, sqlite::SqliteRow};
use switchyard_core::scope::Scopes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// SHA-256 of the session's token.
    pub id_hash: [u8; 32],
    /// Id of the key it was opened with, or what stands for the master key.
    pub credential_id: String,
    /// Whom the dashboard greets.
    pub subject: String,
    pub scopes: Scopes,
    /// JSON object of the session's own values.
    pub data: String,
    pub created_at_ms: i64,
    pub last_seen_at_ms: i64,
    pub expires_at_ms: i64,
}

impl Store {
    pub async fn insert_session(&self, session: &SessionRow) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query(
            "insert into sessions
             (id_hash, credential_id, subject, scopes, data, created_at_ms, last_seen_at_ms, expires_at_ms)
             values (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(session.id_hash.as_slice())
        .bind(&session.credential_id)
        .bind(&session.subject)
        .bind(scopes_text(session.scopes)?)
        .bind(&session.data)
        .bind(session.created_at_ms)
        .bind(session.last_seen_at_ms)
        .bind(session.expires_at_ms)
        .execute(change.connection())
        .await?;
        change.commit().await
    }

    pub async fn session(&self, id_hash: &[u8; 32]) -> Result<Option<SessionRow>, StoreError> {
        let row = sqlx::query(
            "select credential_id, subject, scopes, data, created_at_ms, last_seen_at_ms, expires_at_ms
             from sessions where id_hash = ?",
        )
        .bind(id_hash.as_slice())
        .fetch_optional(self.lookups())
        .await?;
        row.map(|row| session_row(*id_hash, &row)).transpose()
    }

    /// Notes that a session was used. An older instant than the noted one changes nothing.
    pub async fn touch_session(&self, id_hash: &[u8; 32], now_ms: i64) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        sqlx::query("update sessions set last_seen_at_ms = ?1 where id_hash = ?2 and last_seen_at_ms < ?1")
            .bind(now_ms)
            .bind(id_hash.as_slice())
            .execute(change.connection())
            .await?;
        change.commit().await
    }

    /// Whether there was such a session.
    pub async fn delete_session(&self, id_hash: &[u8; 32]) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let deleted = sqlx::query("delete from sessions where id_hash = ?")
            .bind(id_hash.as_slice())
            .execute(change.connection())
            .await?
            .rows_affected();
        change.commit().await?;
        Ok(deleted > 0)
    }

    /// Deletes sessions that have ended or were not used for `idle_ms`, and tells how many.
    pub async fn delete_expired_sessions(&self, now_ms: i64, idle_ms: i64) -> Result<u64, StoreError> {
        let mut change = self.change().await?;
        let deleted = sqlx::query("delete from sessions where expires_at_ms <= ? or last_seen_at_ms <= ?")
            .bind(now_ms)
            .bind(now_ms.saturating_sub(idle_ms))
            .execute(change.connection())
            .await?
            .rows_affected();
        change.commit().await?;
        Ok(deleted)
    }

    /// Ends every session that was opened with a credential, and tells how many.
    pub async fn delete_sessions_of(&self, credential_id: &str) -> Result<u64, StoreError> {
        let mut change = self.change().await?;
        let deleted = sqlx::query("delete from sessions where credential_id = ?")
            .bind(credential_id)
            .execute(change.connection())
            .await?
            .rows_affected();
        change.commit().await?;
        Ok(deleted)
    }
}

fn session_row(id_hash: [u8; 32], row: &SqliteRow) -> Result<SessionRow, StoreError> {
    Ok(SessionRow {
        id_hash,
        credential_id: row.try_get(0)?,
        subject: row.try_get(1)?,
        scopes: read_scopes(row.try_get(2)?)?,
        data: row.try_get(3)?,
        created_at_ms: row.try_get(4)?,
        last_seen_at_ms: row.try_get(5)?,
        expires_at_ms: row.try_get(6)?,
    })
}
