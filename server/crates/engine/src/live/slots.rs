//! A limit on calls at once, with a queue that is first in, first out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use switchyard_core::config::Concurrency;
use switchyard_core::error::{Error, Kind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) struct Slots {
    pub(super) most: u32,
    pub(super) queue: u32,
    semaphore: Arc<Semaphore>,
    pub(super) waiting: AtomicU32,
}

impl Slots {
    pub(super) fn new(concurrency: Concurrency) -> Self {
        let most = usize::try_from(concurrency.most).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            most: concurrency.most,
            queue: concurrency.queue,
            semaphore: Arc::new(Semaphore::new(most)),
            waiting: AtomicU32::new(0),
        }
    }

    /// What fills it, if nobody else may wait.
    pub(super) fn full(&self) -> Option<String> {
        let full = self.semaphore.available_permits() == 0 && self.waiting.load(Ordering::Relaxed) >= self.queue;
        full.then(|| {
            format!(
                "{} calls under way and {} waiting, as many as it may have",
                self.most, self.queue
            )
        })
    }

    pub(super) async fn acquire(
        &self,
        target: &str,
        deadline: Option<tokio::time::Instant>,
    ) -> Result<OwnedSemaphorePermit, Error> {
        if let Ok(slot) = Arc::clone(&self.semaphore).try_acquire_owned() {
            return Ok(slot);
        }
        let saturated = |why: String| Error {
            retry_after: Some(Duration::from_secs(1)),
            ..Error::new(Kind::Saturated, why)
        };
        let _place = Waiting::begin(self).ok_or_else(|| {
            saturated(format!(
                "{target} has {} calls under way and {} waiting, as many as it may have",
                self.most, self.queue
            ))
        })?;
        let slot = Arc::clone(&self.semaphore).acquire_owned();
        let waited = match deadline {
            None => Ok(slot.await),
            Some(at) => tokio::time::timeout_at(at, slot).await,
        };
        match waited {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(saturated(format!(
                "no slot of {target} became free before the request's time was over"
            ))),
        }
    }
}

/// A place in the queue, given back whatever ends the wait.
struct Waiting<'s>(&'s AtomicU32);

impl<'s> Waiting<'s> {
    fn begin(slots: &'s Slots) -> Option<Self> {
        let taken = slots
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                (waiting < slots.queue).then_some(waiting + 1)
            });
        taken.ok().map(|_| Self(&slots.waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
