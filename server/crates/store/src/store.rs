//! The store itself: connections, and who may use them when.
//!
//! SQLite has one writer at a time. Every write of this process therefore takes a turn on a fair lock first; left to
//! SQLite's own polling, a busy request log could keep a key's revocation waiting for seconds. Reads never wait for
//! writes. They have two pools, so that the lookups that authenticate a call do not stand in line behind somebody's
//! search through the request log.

use crate::{error::StoreError, open};
use sqlx::{Sqlite, SqliteConnection, SqlitePool, Transaction};
use std::{fmt, path::PathBuf, sync::Arc};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Keys, sessions and the request log. Clones share their connections.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// One connection.
    pub(crate) writes: SqlitePool,
    /// Single rows by key: short, and on the way of calls.
    pub(crate) lookups: SqlitePool,
    /// Lists and sums: long at worst.
    pub(crate) scans: SqlitePool,
    pub(crate) turn: Arc<Mutex<()>>,
    /// Where the writer opens connections of its own.
    pub(crate) path: PathBuf,
}

impl Store {
    /// Whether the database can be read.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("select 1 from keys limit 1")
            .fetch_optional(self.lookups())
            .await?;
        Ok(())
    }

    /// Name of the database's kind, for people.
    #[must_use]
    pub const fn backend(&self) -> &'static str {
        "SQLite"
    }

    /// Waits for running calls and closes all connections. Later calls fail.
    pub async fn close(&self) {
        self.inner.scans.close().await;
        self.inner.lookups.close().await;
        self.inner.writes.close().await;
    }

    pub(crate) fn lookups(&self) -> &SqlitePool {
        &self.inner.lookups
    }

    pub(crate) fn scans(&self) -> &SqlitePool {
        &self.inner.scans
    }

    /// Begins a change. Dropped without [`Change::commit`], it never happened.
    pub(crate) async fn change(&self) -> Result<Change, StoreError> {
        let turn = self.turn().await;
        // A deferred transaction that reads first may find, when it writes, that its snapshot is out of date.
        let transaction = self.inner.writes.begin_with("begin immediate").await?;
        Ok(Change {
            transaction,
            _turn: turn,
        })
    }

    /// Waits until this process may write.
    pub(crate) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.inner.turn).lock_owned().await
    }

    /// Waits for the same on a thread that may block.
    pub(crate) fn blocking_turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.inner.turn).blocking_lock_owned()
    }

    /// A connection for the request log alone, for a thread that may block.
    pub(crate) fn log_connection(&self) -> Result<rusqlite::Connection, StoreError> {
        open::log_connection(&self.inner.path)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("backend", &self.backend())
            .finish_non_exhaustive()
    }
}

/// A transaction that writes. The turn is given back after the transaction: fields drop in this order.
pub(crate) struct Change {
    transaction: Transaction<'static, Sqlite>,
    _turn: OwnedMutexGuard<()>,
}

impl Change {
    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit().await?)
    }
}
