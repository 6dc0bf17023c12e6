//! Virtual keys.
//!
//! A gateway whose last admin key is gone can only be repaired with a shell, so a change that would take it away is
//! refused, in the same transaction that would have made it: two operators who revoke each other's keys at once cannot
//! both succeed. Whoever holds a master key besides may waive that with [`NoAdmin::Allow`].

use crate::{error::StoreError, number::unsigned, store::Store};
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use switchyard_core::scope::{Scope, Scopes};

/// A key as it is stored; its hash stays in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    pub id: String,
    pub name: String,
    /// What is left to see of the secret.
    pub display: String,
    pub scopes: Scopes,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
    pub last_used_at_ms: Option<i64>,
    /// Requests recorded under this key, ever.
    pub usage_count: u64,
    /// Whose calls they are, in the words of the configuration's rules.
    pub project: Option<String>,
    /// The route its calls take unless they name another.
    pub route: Option<String>,
}

impl KeyRow {
    /// Neither revoked nor expired.
    #[must_use]
    pub fn is_live(&self, now_ms: i64) -> bool {
        self.revoked_at_ms.is_none() && self.expires_at_ms.is_none_or(|at_ms| at_ms > now_ms)
    }

    fn is_live_admin(&self, now_ms: i64) -> bool {
        self.is_live(now_ms) && self.scopes.allow(Scope::Admin)
    }
}

#[derive(Clone, Debug)]
pub struct NewKeyRow {
    pub id: String,
    pub name: String,
    pub display: String,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    pub scopes: Scopes,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
    pub project: Option<String>,
    pub route: Option<String>,
}

/// What to change of a key; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct KeyChange {
    pub name: Option<String>,
    pub scopes: Option<Scopes>,
    /// `Some(None)`: never expires.
    pub expires_at_ms: Option<Option<i64>>,
    /// `Some(None)`: none.
    pub project: Option<Option<String>>,
    /// `Some(None)`: none.
    pub route: Option<Option<String>>,
}

/// What to do when a change would leave no live key of scope `admin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAdmin {
    Refuse,
    /// A master key is configured.
    Allow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The key as it is now.
    Done(KeyRow),
    NotFound,
    /// Refused: this is the last live key of scope `admin`.
    LastAdmin,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounts {
    pub total: u64,
    /// Neither revoked nor expired.
    pub active: u64,
    /// Expired and not revoked.
    pub expired: u64,
    /// Requests recorded under any key, ever.
    pub total_usage: u64,
}

macro_rules! columns {
    () => {
        "key_id, name, display, scopes, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, usage_count, \
         project, route"
    };
}

impl Store {
    /// Adds a key. A second key with the same id or hash is a [`StoreError::Conflict`].
    pub async fn insert_key(&self, key: NewKeyRow) -> Result<KeyRow, StoreError> {
        let mut change = self.change().await?;
        insert(change.connection(), &key).await?;
        change.commit().await?;
        Ok(KeyRow {
            id: key.id,
            name: key.name,
            display: key.display,
            scopes: key.scopes,
            created_at_ms: key.created_at_ms,
            expires_at_ms: key.expires_at_ms,
            revoked_at_ms: None,
            last_used_at_ms: None,
            usage_count: 0,
            project: key.project,
            route: key.route,
        })
    }

    /// Adds all of these, or none.
    pub async fn insert_keys(&self, keys: impl IntoIterator<Item = NewKeyRow>) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        for key in keys {
            insert(change.connection(), &key).await?;
        }
        change.commit().await
    }

    /// The key whose secret has this SHA-256, live or not.
    pub async fn key_by_hash(&self, hash: &[u8; 32]) -> Result<Option<KeyRow>, StoreError> {
        let row = sqlx::query(concat!("select ", columns!(), " from keys where hash = ?"))
            .bind(hash.as_slice())
            .fetch_optional(self.lookups())
            .await?;
        row.as_ref().map(key_row).transpose()
    }

    pub async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError> {
        let mut connection = self.lookups().acquire().await?;
        find(&mut connection, id).await
    }

    /// All keys, newest first.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        let rows = sqlx::query(concat!(
            "select ",
            columns!(),
            " from keys order by created_at_ms desc, key_id desc"
        ))
        .fetch_all(self.scans())
        .await?;
        rows.iter().map(key_row).collect()
    }

    pub async fn update_key(
        &self,
        id: &str,
        wanted: KeyChange,
        now_ms: i64,
        no_admin: NoAdmin,
    ) -> Result<KeyOutcome, StoreError> {
        self.change_key(id, now_ms, no_admin, |key| {
            key.name = wanted.name.unwrap_or_else(|| std::mem::take(&mut key.name));
            key.scopes = wanted.scopes.unwrap_or(key.scopes);
            key.expires_at_ms = wanted.expires_at_ms.unwrap_or(key.expires_at_ms);
            key.project = wanted.project.unwrap_or_else(|| key.project.take());
            key.route = wanted.route.unwrap_or_else(|| key.route.take());
        })
        .await
    }

    /// Revokes a key for good. Doing it again changes nothing and tells when it was done first.
    pub async fn revoke_key(&self, id: &str, now_ms: i64, no_admin: NoAdmin) -> Result<KeyOutcome, StoreError> {
        self.change_key(id, now_ms, no_admin, |key| {
            key.revoked_at_ms.get_or_insert(now_ms);
        })
        .await
    }

    async fn change_key(
        &self,
        id: &str,
        now_ms: i64,
        no_admin: NoAdmin,
        edit: impl FnOnce(&mut KeyRow),
    ) -> Result<KeyOutcome, StoreError> {
        let mut change = self.change().await?;
        let Some(before) = find(change.connection(), id).await? else {
            return Ok(KeyOutcome::NotFound);
        };
        let mut after = before.clone();
        edit(&mut after);
        let admin_is_lost = before.is_live_admin(now_ms) && !after.is_live_admin(now_ms);
        if admin_is_lost && no_admin == NoAdmin::Refuse && !another_admin_lives(change.connection(), id, now_ms).await?
        {
            return Ok(KeyOutcome::LastAdmin);
        }
        sqlx::query(
            "update keys set name = ?, scopes = ?, expires_at_ms = ?, revoked_at_ms = ?, project = ?, route = ?
             where key_id = ?",
        )
        .bind(&after.name)
        .bind(scopes_text(after.scopes)?)
        .bind(after.expires_at_ms)
        .bind(after.revoked_at_ms)
        .bind(&after.project)
        .bind(&after.route)
        .bind(id)
        .execute(change.connection())
        .await?;
        change.commit().await?;
        Ok(KeyOutcome::Done(after))
    }

    /// Whether a key was ever created: false on a gateway that waits for its first operator.
    pub async fn has_any_key(&self) -> Result<bool, StoreError> {
        Ok(sqlx::query("select 1 from keys limit 1")
            .fetch_optional(self.lookups())
            .await?
            .is_some())
    }

    pub async fn key_counts(&self, now_ms: i64) -> Result<KeyCounts, StoreError> {
        let row = sqlx::query(
            "select count(*),
                    count(case when revoked_at_ms is null and (expires_at_ms is null or expires_at_ms > ?1) then 1 end),
                    count(case when revoked_at_ms is null and expires_at_ms <= ?1 then 1 end),
                    coalesce(sum(usage_count), 0)
             from keys",
        )
        .bind(now_ms)
        .fetch_one(self.scans())
        .await?;
        Ok(KeyCounts {
            total: unsigned(row.try_get(0)?),
            active: unsigned(row.try_get(1)?),
            expired: unsigned(row.try_get(2)?),
            total_usage: unsigned(row.try_get(3)?),
        })
    }
}

async fn insert(connection: &mut SqliteConnection, key: &NewKeyRow) -> Result<(), StoreError> {
    sqlx::query(
        "insert into keys (key_id, name, display, hash, scopes, created_at_ms, expires_at_ms, project, route)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(&key.id)
    .bind(&key.name)
    .bind(&key.display)
    .bind(key.hash.as_slice())
    .bind(scopes_text(key.scopes)?)
    .bind(key.created_at_ms)
    .bind(key.expires_at_ms)
    .bind(&key.project)
    .bind(&key.route)
    .execute(connection)
    .await?;
    Ok(())
}

async fn find(connection: &mut SqliteConnection, id: &str) -> Result<Option<KeyRow>, StoreError> {
    let row = sqlx::query(concat!("select ", columns!(), " from keys where key_id = ?"))
        .bind(id)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(key_row).transpose()
}

/// Scopes are read here and nowhere in SQL: one place knows what they mean.
async fn another_admin_lives(connection: &mut SqliteConnection, id: &str, now_ms: i64) -> Result<bool, StoreError> {
    let rows = sqlx::query(concat!(
        "select ",
        columns!(),
        " from keys where key_id <> ? and revoked_at_ms is null"
    ))
    .bind(id)
    .fetch_all(connection)
    .await?;
    for row in &rows {
        if key_row(row)?.is_live_admin(now_ms) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn key_row(row: &SqliteRow) -> Result<KeyRow, StoreError> {
    Ok(KeyRow {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        display: row.try_get(2)?,
        scopes: read_scopes(row.try_get(3)?)?,
        created_at_ms: row.try_get(4)?,
        expires_at_ms: row.try_get(5)?,
        revoked_at_ms: row.try_get(6)?,
        last_used_at_ms: row.try_get(7)?,
        usage_count: unsigned(row.try_get(8)?),
        project: row.try_get(9)?,
        route: row.try_get(10)?,
    })
}

pub(crate) fn scopes_text(scopes: Scopes) -> Result<String, StoreError> {
    serde_json::to_string(&scopes).map_err(|error| StoreError::Unexpected(error.into()))
}

pub(crate) fn read_scopes(text: &str) -> Result<Scopes, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Unexpected(error.into()))
}
