//! Checkpoints beside the flushes.
//!
//! SQLite appends commits to the `-wal` file and moves them into the database at a checkpoint, which waits for the disk. By
//! default that happens inside whichever commit finds the file long enough: every so many batches, one would take far longer
//! than the rest, and miss its bound. Here another connection does it. The first pass moves the bulk while flushes go on. But as long as
//! commits keep coming, some remain, and the file would grow for ever; so a second pass, a short one, holds the turn to
//! write, and the file starts again from its beginning.

use crate::{error::StoreError, store::Store};
use sqlx::SqliteConnection;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};

/// About 4 MiB of rows; several times that in pages, for indices change all over.
const ROWS_BETWEEN: u64 = 8192;
/// Until a checkpoint, commits survive the death of the process but not of the machine.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// Stops when dropped.
pub(super) struct Checkpoints {
    due: Arc<Notify>,
    rows: u64,
    task: JoinHandle<()>,
}

impl Checkpoints {
    pub(super) fn start(store: Store) -> Self {
        let due = Arc::new(Notify::new());
        let task = tokio::spawn(run(store, Arc::clone(&due)));
        Self { due, rows: 0, task }
    }

    /// Notes that rows were written.
    pub(super) fn wrote(&mut self, rows: u64) {
        self.rows += rows;
        if self.rows >= ROWS_BETWEEN {
            self.rows = 0;
            self.due.notify_one();
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(store: Store, due: Arc<Notify>) {
    let mut connection = None;
    loop {
        let _ = timeout(AT_LEAST_EVERY, due.notified()).await;
        if let Err(error) = checkpoint(&store, &mut connection).await {
            // The next one does this one's work as well.
            tracing::debug!(error = &error as &dyn std::error::Error, "no checkpoint this time");
            connection = None;
        }
    }
}

async fn checkpoint(store: &Store, slot: &mut Option<SqliteConnection>) -> Result<(), StoreError> {
    let connection = match slot {
        Some(connection) => connection,
        None => slot.insert(store.log_connection().await?),
    };
    let passive = "pragma wal_checkpoint(passive)";
    sqlx::query(passive).fetch_all(&mut *connection).await?;
    let _turn = store.turn().await;
    sqlx::query(passive).fetch_all(&mut *connection).await?;
    Ok(())
}
