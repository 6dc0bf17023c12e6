//! The thread that writes, and the one transaction that may be running on it.
//!
//! Everything else of this crate asks through sqlx, whose calls are each carried to a thread and back. A batch would be some
//! ten of them, and at ordinary rates, where a batch is a few dozen records, they cost more than the rows. So the log has a
//! connection of the plainer rusqlite, on a thread of its own that gets whole batches, and gives SQLite what the records hold
//! as it stands there. Both drivers link one and the same SQLite.
//!
//! A transaction is not cancelled: when it takes longer than anybody waits for, its outcome is still wanted, and a second one
//! beside it would only make things worse (a thread each that hangs on the same disk). So there is at most one, and whoever
//! started it may come back later to see how it ended. Nothing waits for the thread itself: one that hangs on its disk keeps
//! no runtime and no process from ending.

use super::batch::{Log, Numbered, Written};
use crate::{error::StoreError, store::Store};
use std::{
    future,
    sync::{Arc, mpsc},
    thread,
};
use tokio::sync::oneshot;

pub(super) struct Database {
    store: Store,
    /// Started at the first need; gone when it panicked.
    thread: Option<Thread>,
    running: Option<oneshot::Receiver<Outcome>>,
}

type Outcome = Result<Written, StoreError>;

struct Thread {
    jobs: mpsc::Sender<Job>,
    /// Answered by nobody; closed when the thread has ended.
    ended: oneshot::Receiver<()>,
}

struct Job {
    batch: Arc<Vec<Numbered>>,
    done: oneshot::Sender<Outcome>,
}

impl Database {
    pub(super) const fn new(store: Store) -> Self {
        Self {
            store,
            thread: None,
            running: None,
        }
    }

    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts to write a batch. Only when nothing is running.
    pub(super) fn start(&mut self, batch: Arc<Vec<Numbered>>) {
        debug_assert!(!self.is_running(), "two transactions at once");
        let (done, running) = oneshot::channel();
        self.running = Some(running);
        let job = Job { batch, done };
        if let Err(error) = self.send(job) {
            // The answer to a job that nobody took.
            let (done, running) = oneshot::channel();
            self.running = Some(running);
            let _ = done.send(Err(error));
        }
    }

    fn send(&mut self, job: Job) -> Result<(), StoreError> {
        let thread = match &self.thread {
            Some(thread) => thread,
            None => self.thread.insert(Thread::start(self.store.clone())?),
        };
        thread
            .jobs
            .send(job)
            .map_err(|_| StoreError::Unexpected("the request log's thread is gone".into()))
    }

    /// Waits for the end of what is running; for ever, if nothing is. May be dropped and called again.
    pub(super) async fn ended(&mut self) -> Outcome {
        let Some(running) = &mut self.running else {
            return future::pending().await;
        };
        let outcome = running.await;
        self.running = None;
        outcome.unwrap_or_else(|_| {
            self.thread = None;
            Err(StoreError::Unexpected("the request log's thread panicked".into()))
        })
    }

    /// Closes the connection, unless a transaction still runs on it.
    pub(super) async fn close(&mut self) {
        if let Some(Thread { jobs, ended }) = self.thread.take().filter(|_| !self.is_running()) {
            drop(jobs);
            // Closed, as it always is.
            let _ = ended.await;
        }
    }
}

impl Thread {
    fn start(store: Store) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        thread::Builder::new()
            .name("request-log".to_owned())
            .spawn(move || {
                let _end = end;
                work(&store, &queue);
            })
            .map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self { jobs, ended })
    }
}

fn work(store: &Store, queue: &mpsc::Receiver<Job>) {
    let mut log = None;
    for Job { batch, done } in queue {
        let outcome = {
            let _turn = store.blocking_turn();
            write(store, &mut log, &batch)
        };
        // The connection may be broken, and what is known of the database was taken back with the transaction.
        if outcome.is_err() {
            log = None;
        }
        // Freed before anybody hears of it: whoever asked has the last copy, and frees it beside the next batch.
        drop(batch);
        // Whoever asked may have gone.
        let _ = done.send(outcome);
    }
}

fn write(store: &Store, slot: &mut Option<Log>, batch: &[Numbered]) -> Outcome {
    let log = match slot {
        Some(log) => log,
        None => slot.insert(Log::open(store)?),
    };
    log.write(batch)
}
