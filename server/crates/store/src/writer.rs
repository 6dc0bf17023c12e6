//! The request log's way to the database.
//!
//! **Promise:** a record is in the database, or on the spool on disk, within 100 ms of [`Records::push`], whatever the
//! database does. `kill -9` loses at most what was pushed in that time, and what is lost is counted, never silent.
//!
//! How it is kept:
//!
//! - `push` puts the record on a bounded queue and returns. A full queue sheds, which is counted.
//! - One task (`task.rs`), on a thread of its own, takes what gathers in `linger` and gives it to the database as one
//!   transaction (`batch.rs`), on another that does nothing else (`database.rs`). It waits `flush_bound` for that, no longer.
//!   A transaction that takes longer is *not* cancelled: it runs on, and until it has ended nothing else is sent there. The
//!   batch goes to the spool meanwhile.
//! - The spool (`spool.rs`) is files of JSON lines. When the database answers again, or at the next start, they are written
//!   to it, oldest first, and deleted.
//! - A batch may thus reach the database twice: late, and from the spool. Each record got its row id before the first try
//!   and keeps it on the spool, so the second time is recognised, inside the transaction, and neither rows nor sums nor the
//!   usage of keys are counted again.
//! - Records that waited too long in the queue, because the database is slower than the traffic, go to the spool without a
//!   try: it is quicker than any database.
//! - Checkpoints, which are what takes SQLite long, are made beside the flushes (`checkpoint.rs`).
//!
//! What a record costs is measured by `cargo run --release -p switchyard-bench --bin writer`. Most of it is pages: each
//! commit writes every page that it touched, however little of it. So batches are as few as the promise allows, what many
//! records have in common is written once (`courses.rs`), and there is no index whose entries are scattered (`key_moments`).

mod batch;
mod checkpoint;
mod courses;
mod database;
mod ids;
mod progress;
mod spool;
mod task;

pub(crate) use ids::{MOMENT_BITS, first_id_of};

use crate::store::Store;
use progress::Progress;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use switchyard_engine::{ports::Records, record::RequestRecord};
use task::Task;
use tokio::{
    runtime::Builder,
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout},
};

/// How long [`Writer::close`] waits for the task.
const CLOSE_BOUND: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct WriterConfig {
    /// Records that may wait in memory.
    pub queue: usize,
    /// Records in one transaction.
    pub batch: usize,
    /// How long the first record of a batch waits for company: the longer, the cheaper is each.
    pub linger: Duration,
    /// How long a flush may take on top of that before its records go to the spool.
    pub flush_bound: Duration,
    /// Created at need, for its owner only.
    pub spool_dir: PathBuf,
    /// Beyond this the spool takes no more, and records are lost.
    pub spool_max_bytes: u64,
}

impl WriterConfig {
    #[must_use]
    pub const fn new(spool_dir: PathBuf) -> Self {
        Self {
            queue: 65_536,
            batch: 1024,
            linger: Duration::from_millis(40),
            flush_bound: Duration::from_millis(50),
            spool_dir,
            spool_max_bytes: 1 << 30,
        }
    }
}

/// How the writer is doing. Counts are since its start, but for what waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterStats {
    /// Waiting in memory.
    pub queued: u64,
    /// Waiting on disk, those of earlier runs included.
    pub spooled: u64,
    /// Lost: neither the queue nor the spool could take them, or the spool could not be read.
    pub shed: u64,
    /// Rows written to the database, those of earlier runs included.
    pub written: u64,
    /// A sentence for operators while records cannot reach the database.
    pub degraded: Option<String>,
}

/// Writes records to the database. Clones share one queue and one task.
#[derive(Clone)]
pub struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    inbox: mpsc::Sender<Message>,
    /// Taken by the queue.
    accepted: AtomicU64,
    /// Refused by the queue.
    refused: AtomicU64,
    progress: watch::Receiver<Progress>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "nearly every message is a record, and a box would be an allocation each"
)]
enum Message {
    Record {
        record: RequestRecord,
        pushed_at: Instant,
    },
    /// Answered when everything before it is in the database or on the spool.
    Flush(oneshot::Sender<()>),
    /// Take nothing more; answered when the task is done.
    Stop(oneshot::Sender<()>),
}

impl Writer {
    /// Starts the task, on a thread of its own: it wakes for every batch, and on a runtime that others use as well, each time
    /// would wake several of its threads. It keeps a connection of its own, and opens it by itself.
    #[must_use]
    pub fn start(store: Store, config: WriterConfig) -> Self {
        let (sender, inbox) = mpsc::channel(config.queue);
        let (progress, watched) = watch::channel(Progress::default());
        let task = Task::new(store, config, inbox, progress);
        let started = Builder::new_current_thread().enable_time().build().and_then(|runtime| {
            thread::Builder::new()
                .name("log-batches".to_owned())
                .spawn(move || runtime.block_on(task.run()))
        });
        if let Err(error) = started {
            tracing::error!(%error, "no thread for the request log: its records are lost, and counted as shed");
        }
        let shared = Shared {
            inbox: sender,
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            progress: watched,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    #[must_use]
    pub fn stats(&self) -> WriterStats {
        let progress = self.shared.progress.borrow().clone();
        WriterStats {
            queued: self
                .shared
                .accepted
                .load(Ordering::Relaxed)
                .saturating_sub(progress.settled),
            spooled: progress.spooled,
            shed: progress.lost + self.shared.refused.load(Ordering::Relaxed),
            written: progress.written,
            degraded: progress.sentence(),
        }
    }

    /// Waits until everything pushed before is in the database or on the spool.
    pub async fn flushed(&self) {
        self.ask(Message::Flush).await;
    }

    /// Waits until everything pushed before is in the database, the spool is empty and nothing is degraded.
    pub async fn drained(&self) {
        self.flushed().await;
        let is_drained = |progress: &Progress| progress.spooled == 0 && progress.trouble.is_none();
        // An error means that the task is gone, and then there is nothing to wait for.
        let _ = self.shared.progress.clone().wait_for(is_drained).await;
    }

    /// Takes no more records, puts what waits into the database or on the spool, and stops. Bounded: false when the task was
    /// not done in time.
    pub async fn close(&self) -> bool {
        timeout(CLOSE_BOUND, self.ask(Message::Stop)).await.is_ok()
    }

    async fn ask(&self, question: impl FnOnce(oneshot::Sender<()>) -> Message) {
        let (answer, answered) = oneshot::channel();
        if self.shared.inbox.send(question(answer)).await.is_ok() {
            // Dropped without an answer: the task is gone.
            let _ = answered.await;
        }
    }
}

impl Records for Writer {
    fn push(&self, record: RequestRecord) {
        // Counted first, so that the task never seems to have settled more than it was given.
        self.shared.accepted.fetch_add(1, Ordering::Relaxed);
        if self
            .shared
            .inbox
            .try_send(Message::Record {
                record,
                pushed_at: Instant::now(),
            })
            .is_err()
        {
            self.shared.accepted.fetch_sub(1, Ordering::Relaxed);
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}
