//! Checkpoints beside the flushes.
//!
//! SQLite appends commits to the `-wal` file and moves them into the database at a checkpoint, which waits for the disk. By
//! default that happens inside whichever commit finds the file long enough: every so many batches, one would take far longer
//! than the rest, and miss its bound. Here another connection does it, on a thread of its own. A pass moves the bulk
//! while flushes go on. But as long as commits keep coming, some remain, and the file would grow for ever; so when it has
//! grown long, a last pass, a short one, holds the turn to write, and the file starts again from its beginning. Flushes wait
//! for that one, and on a busy disk it may take them beyond their bound: that is why it is not made each time.

use crate::{error::StoreError, store::Store};
use std::{
    sync::mpsc::{self, RecvTimeoutError, SyncSender},
    thread,
    time::Duration,
};
use tokio::sync::oneshot;

/// About 4 MiB of rows; several times that in pages, for each batch begins with pages that the last one has not filled.
const ROWS_BETWEEN: u64 = 16_384;
/// Pages in the `-wal` file from which on it has to start again: 32 MiB.
const LONG: i64 = 8192;
/// Each moves what came during the one before. The first that no commit runs into waits until the disk has all that was
/// moved; were it left to the last pass, the flushes would wait with it, for a tenth of a second.
const SHORT_PASSES: usize = 3;
/// Until a checkpoint, commits survive the death of the process but not of the machine.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

pub(super) struct Checkpoints {
    /// The thread ends when this is dropped.
    due: SyncSender<()>,
    /// Answered by nobody; closed when the thread has ended.
    ended: oneshot::Receiver<()>,
    rows: u64,
}

impl Checkpoints {
    pub(super) fn start(store: Store) -> Self {
        let (due, is_due) = mpsc::sync_channel(1);
        let (end, ended) = oneshot::channel();
        let started = thread::Builder::new().name("checkpoints".to_owned()).spawn(move || {
            let _end = end;
            run(&store, &is_due);
        });
        if let Err(error) = started {
            tracing::error!(%error, "no thread for checkpoints: the database's log of changes grows until the next start");
        }
        Self { due, ended, rows: 0 }
    }

    /// Notes that rows were written.
    pub(super) fn wrote(&mut self, rows: u64) {
        self.rows += rows;
        if self.rows >= ROWS_BETWEEN {
            self.rows = 0;
            // Full: one is due already.
            let _ = self.due.try_send(());
        }
    }

    /// Waits for the one that is being made, and closes the connection.
    pub(super) async fn close(self) {
        let Self { due, ended, .. } = self;
        drop(due);
        // Closed, as it always is.
        let _ = ended.await;
    }
}

fn run(store: &Store, is_due: &mpsc::Receiver<()>) {
    let mut connection = None;
    while is_due.recv_timeout(AT_LEAST_EVERY) != Err(RecvTimeoutError::Disconnected) {
        if let Err(error) = checkpoint(store, &mut connection) {
            // The next one does this one's work as well.
            tracing::debug!(error = &error as &dyn std::error::Error, "no checkpoint this time");
            connection = None;
        }
    }
}

fn checkpoint(store: &Store, slot: &mut Option<rusqlite::Connection>) -> Result<(), StoreError> {
    let connection = match slot {
        Some(connection) => connection,
        None => slot.insert(store.log_connection()?),
    };
    if pass(connection)? > LONG {
        for _ in 0..SHORT_PASSES {
            pass(connection)?;
        }
        let _turn = store.blocking_turn();
        pass(connection)?;
    }
    Ok(())
}

/// Moves what was in the `-wal` file when it began, and tells how many pages that file had.
fn pass(connection: &rusqlite::Connection) -> rusqlite::Result<i64> {
    connection.query_row("pragma wal_checkpoint(passive)", (), |row| row.get(1))
}
