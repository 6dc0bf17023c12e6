//! The task: from the queue to the database, or to the spool, and from the spool to the database.
//!
//! Three things can happen to it: a record comes, a transaction that nobody waited for ends, or it is time to try the
//! database with what the spool holds. A batch's deadline is that of its oldest record, counted from the push. While the
//! database fails, new batches go straight to the spool; in growing intervals, the spool's oldest records (or an empty batch,
//! when there are none) find out whether it is back.

use super::{
    Message, WriterConfig,
    batch::{Numbered, Written},
    checkpoint::Checkpoints,
    database::Database,
    ids::Ids,
    progress::{Progress, Trouble},
    spool::{Spool, SpoolError},
};
use crate::{error::StoreError, store::Store};
use std::{
    io, mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::spawn_blocking,
    time::{Instant, sleep_until, timeout, timeout_at},
};

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a start waits for the database to tell its greatest id (it answered a moment ago, when the store was opened), and
/// an end for a transaction that is late.
const PATIENCE: Duration = Duration::from_secs(1);

/// As many records as share a commit well: more make none of them much cheaper, and wait in memory for it.
const ENOUGH: u32 = 256;

pub(super) struct Task {
    config: WriterConfig,
    inbox: mpsc::Receiver<Message>,
    progress: watch::Sender<Progress>,
    ids: Ids,
    stoppers: Vec<oneshot::Sender<()>>,

    // === The batch that gathers ===
    batch: Vec<Numbered>,
    oldest: Option<Instant>,
    /// How long it took until there were enough, to judge by the last one.
    pace: Duration,
    flushers: Vec<oneshot::Sender<()>>,

    // === The database ===
    database: Database,
    checkpoints: Checkpoints,
    /// What runs there is the spool's chunk, not a new batch.
    runs_chunk: bool,
    /// What runs there took too long: nothing new waits for it.
    is_late: bool,
    /// It is left alone until then.
    next_try: Instant,
    pause: Duration,

    // === The spool ===
    spool: Arc<Mutex<Spool>>,
    /// Read, and not yet committed.
    chunk: Option<Arc<Vec<Numbered>>>,
}

impl Task {
    pub(super) fn new(
        store: Store,
        config: WriterConfig,
        inbox: mpsc::Receiver<Message>,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let spool = Spool::new(config.spool_dir.clone(), config.spool_max_bytes);
        Self {
            config,
            inbox,
            progress,
            ids: Ids::default(),
            stoppers: Vec::new(),
            batch: Vec::new(),
            oldest: None,
            pace: Duration::MAX,
            flushers: Vec::new(),
            database: Database::new(store.clone()),
            checkpoints: Checkpoints::start(store),
            runs_chunk: false,
            is_late: false,
            next_try: Instant::now(),
            pause: FIRST_PAUSE,
            spool: Arc::new(Mutex::new(spool)),
            chunk: None,
        }
    }

    pub(super) async fn run(mut self) {
        self.begin().await;
        loop {
            let has_to_try = {
                let progress = self.progress.borrow();
                progress.spooled > 0 || progress.trouble.is_some()
            };
            tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => {
                        self.gather(message).await;
                        self.flush().await;
                    }
                    None => break,
                },
                ended = self.database.ended() => self.settle(ended).await,
                () = sleep_until(self.next_try), if has_to_try && !self.database.is_running() => self.replay().await,
            }
        }
        self.end().await;
    }

    /// Looks for what an earlier run left on the spool, and asks the database for its greatest id with an empty batch.
    async fn begin(&mut self) {
        self.on_disk(Spool::find_left_over).await;
        self.start(Arc::default(), false);
        self.settle_until(Instant::now() + PATIENCE).await;
    }

    async fn end(mut self) {
        if self.database.is_running() {
            self.settle_until(Instant::now() + PATIENCE).await;
        }
        let closed = async {
            self.database.close().await;
            self.checkpoints.close().await;
        };
        if timeout(PATIENCE, closed).await.is_err() {
            tracing::warn!("the request log's connections did not close in time");
        }
        for stopper in self.stoppers {
            // Whoever asked may have gone.
            let _ = stopper.send(());
        }
    }

    // === From the queue ===

    /// Takes a message and what comes while the first record lingers, up to a whole batch.
    ///
    /// Where many come, it does not linger for long: a commit's cost is shared by enough of them, and whatever waits takes
    /// room. When there will be enough it knows from the last batch. Looking on the way would be surer, and wake a thread once
    /// more for every batch, beside the requests that are being answered.
    async fn gather(&mut self, first: Message) {
        self.take(first);
        if let Some(oldest) = self.oldest
            && self.waiting() < ENOUGH
        {
            sleep_until(oldest + self.pace.min(self.config.linger)).await;
        }
        while self.batch.len() < self.config.batch
            && let Ok(message) = self.inbox.try_recv()
        {
            self.take(message);
        }
        if let Some(oldest) = self.oldest {
            let count = u32::try_from(self.batch.len()).unwrap_or(u32::MAX).max(1);
            self.pace = oldest.elapsed().saturating_mul(ENOUGH) / count;
        }
    }

    fn waiting(&self) -> u32 {
        u32::try_from(self.inbox.len()).unwrap_or(u32::MAX)
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Record { record, pushed_at } => {
                self.oldest.get_or_insert(pushed_at);
                self.batch.push(Numbered {
                    id: self.ids.next(&record),
                    record,
                });
            }
            Message::Flush(flusher) => self.flushers.push(flusher),
            Message::Stop(stopper) => {
                self.inbox.close();
                self.stoppers.push(stopper);
            }
        }
    }

    async fn flush(&mut self) {
        if let Some(oldest) = self.oldest.take() {
            let batch = Arc::new(mem::take(&mut self.batch));
            let count = batch.len() as u64;
            let deadline = oldest + self.config.linger + self.config.flush_bound;
            if !self.write(&batch, deadline).await {
                self.keep(Arc::clone(&batch)).await;
            }
            // Its room serves the next one, unless a late transaction still reads it.
            if let Ok(mut batch) = Arc::try_unwrap(batch) {
                batch.clear();
                self.batch = batch;
            }
            self.progress.send_modify(|progress| progress.settled += count);
        }
        for flusher in self.flushers.drain(..) {
            // Whoever asked may have gone.
            let _ = flusher.send(());
        }
    }

    // === To the database ===

    /// Whether a new batch was committed before its deadline.
    async fn write(&mut self, batch: &Arc<Vec<Numbered>>, deadline: Instant) -> bool {
        if self.database.is_running() && (self.is_late || self.settle_until(deadline).await.is_none()) {
            return false;
        }
        let now = Instant::now();
        if now < self.next_try {
            return false;
        }
        if now >= deadline {
            self.report(Trouble::Behind);
            return false;
        }
        self.start(Arc::clone(batch), false);
        self.settle_until(deadline).await == Some(true)
    }

    fn start(&mut self, batch: Arc<Vec<Numbered>>, is_chunk: bool) {
        self.runs_chunk = is_chunk;
        self.is_late = false;
        self.database.start(batch);
    }

    /// Waits for the end of what runs, and tells whether it was committed; `None` when it is late.
    async fn settle_until(&mut self, deadline: Instant) -> Option<bool> {
        let Ok(ended) = timeout_at(deadline, self.database.ended()).await else {
            self.is_late = true;
            self.report(Trouble::Silent);
            return None;
        };
        let is_committed = ended.is_ok();
        self.settle(ended).await;
        Some(is_committed)
    }

    async fn settle(&mut self, ended: Result<Written, StoreError>) {
        match ended {
            Ok(written) => {
                self.ids.raise(written.highest_id);
                self.checkpoints.wrote(written.rows);
                self.progress.send_modify(|progress| progress.written += written.rows);
                if self.runs_chunk {
                    self.chunk = None;
                    self.on_disk(Spool::committed).await;
                }
                self.pause = FIRST_PAUSE;
                self.next_try = Instant::now();
                self.recover();
            }
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "a batch of the request log was not written"
                );
                self.report(Trouble::Failed(error.to_string()));
                self.next_try = Instant::now() + self.pause;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    fn report(&self, trouble: Trouble) {
        if self.progress.borrow().trouble.is_none() {
            tracing::warn!(?trouble, "the request log goes to the spool");
        }
        self.progress.send_modify(|progress| progress.trouble = Some(trouble));
    }

    /// The database answers. Trouble is over when the spool is empty.
    fn recover(&self) {
        self.progress.send_if_modified(|progress| {
            let left = (progress.spooled > 0).then_some(Trouble::CatchingUp);
            if progress.trouble.is_none() || progress.trouble == left {
                return false;
            }
            if left.is_none() {
                tracing::info!("the request log reaches the database again");
            }
            progress.trouble = left;
            true
        });
    }

    // === To the spool and back ===

    async fn keep(&self, batch: Arc<Vec<Numbered>>) {
        let count = batch.len() as u64;
        let kept = self.on_disk(move |spool| spool.append(&batch)).await;
        let kept = kept.unwrap_or_else(|| Err(SpoolError::Io(io::Error::other("writing to it panicked"))));
        self.progress.send_modify(|progress| {
            progress.spool_fault = kept.err().map(|error| error.to_string());
            if progress.spool_fault.is_some() {
                progress.lost += count;
            }
        });
    }

    /// Starts to write the spool's oldest records to the database, or nothing, to see whether it answers.
    async fn replay(&mut self) {
        let limit = self.config.batch;
        while self.chunk.is_none() {
            let Some(chunk) = self.on_disk(move |spool| spool.read(limit)).await else {
                break;
            };
            self.progress.send_modify(|progress| progress.lost += chunk.unreadable);
            if chunk.records.is_empty() {
                self.on_disk(Spool::committed).await;
                if chunk.is_last {
                    break;
                }
            } else {
                self.chunk = Some(Arc::new(chunk.records));
            }
        }
        let chunk = self.chunk.clone();
        let is_chunk = chunk.is_some();
        self.start(chunk.unwrap_or_default(), is_chunk);
    }

    /// Does something with the spool where it may block; `None` when it panicked. Tells what waits there afterwards.
    async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce(&mut Spool) -> T + Send + 'static) -> Option<T> {
        let spool = Arc::clone(&self.spool);
        let done = spawn_blocking(move || {
            let mut spool = spool.lock().unwrap_or_else(PoisonError::into_inner);
            let result = work(&mut spool);
            (result, spool.records())
        });
        let (result, records) = done.await.ok()?;
        self.progress
            .send_if_modified(|progress| mem::replace(&mut progress.spooled, records) != records);
        Some(result)
    }
}
