//! Admit, resolve, plan, attempt, finish.

mod attempt;
mod foreign;
mod heartbeat;
mod relay;

pub use foreign::{Foreign, PASSED_ON, Passed};

use crate::aside::{LARGE, aside};
use crate::explain::{Explanation, explain};
use crate::ledger::{Ledger, Shared};
use crate::plan::{Asked, Plan, plan};
use crate::ports::{Clock, Records};
use crate::request::{Answer, Failure, Request};
use crate::snapshot::Snapshot;
use crate::thread::Thread;
use crate::view::{Callable, TargetsView, callable, view};
use crate::watch;
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use switchyard_core::error::Error;
use switchyard_providers::{Call, Origin};
use tokio::time::Instant;

/// Silence after which a stream's head goes out and comments keep the connection alive.
const HEARTBEAT_AFTER: Duration = Duration::from_secs(15);

/// The pipeline and the snapshot it runs on.
pub struct Engine {
    snapshot: ArcSwap<Snapshot>,
    records: Arc<dyn Records>,
    clock: Arc<dyn Clock>,
    open: Arc<Open>,
}

/// What a request waits for.
type Attempts = BoxFuture<'static, Result<Answer, Failure>>;

/// What is under way.
#[derive(Default)]
pub(crate) struct Open {
    requests: AtomicUsize,
    /// The gateway is stopping: what is cut from now on is cut by it.
    stopping: AtomicBool,
}

impl Open {
    pub(crate) fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// One request on its way.
struct Run {
    snapshot: Arc<Snapshot>,
    ledger: Box<Ledger>,
    call: Call,
    /// The same as it came, where `call` has what was said before in it; or the other way round, once they have changed places.
    other: Option<Call>,
    /// What is in hand is the one as it came.
    as_it_came: bool,
    /// The target that made the earlier answer does not have it any more.
    forgotten: bool,
    thread: Option<Arc<Thread>>,
    headers: HeaderMap,
    /// Of a unary request, for all of it; of a stream, for its start.
    deadline: Option<Instant>,
    clock: Arc<dyn Clock>,
    /// What came back with the answer that was no success.
    refusal_headers: HeaderMap,
}

impl Engine {
    #[must_use]
    pub fn new(snapshot: Snapshot, records: Arc<dyn Records>, clock: Arc<dyn Clock>) -> Self {
        Self {
            snapshot: ArcSwap::from_pointee(snapshot),
            records,
            clock,
            open: Arc::default(),
        }
    }

    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Longest body that is taken, in bytes.
    #[must_use]
    pub fn max_request_bytes(&self) -> usize {
        self.snapshot.load().max_request_bytes
    }

    /// Until when a request may take that began then; `None` if nobody bounds it.
    #[must_use]
    pub fn deadline(&self, since: Instant) -> Option<Instant> {
        self.snapshot.load().deadline(since)
    }

    /// Puts another snapshot in place. Requests under way end on the one that they began with.
    pub fn swap(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
    }

    /// The dry run: what a call would do now, with nothing sent and nothing counted.
    ///
    /// # Errors
    /// When the call cannot be read, or what it says about routing makes no sense.
    pub async fn explain(&self, request: Request) -> Result<Explanation, Error> {
        let snapshot = self.snapshot();
        let (_, prepared) = self.prepare(request, &snapshot).await;
        Ok(explain(&snapshot, prepared?.1?))
    }

    /// Reads the call and makes its plan: here, or on a thread of its own where that may take a while. Other requests live
    /// on this core.
    async fn prepare(&self, request: Request, snapshot: &Arc<Snapshot>) -> (Request, Prepared) {
        let merged = request.thread.as_ref().and_then(|thread| thread.merged.as_ref());
        let bytes = request.body.len().max(merged.map_or(0, Bytes::len));
        if bytes > LARGE {
            let (snapshot, clock) = (Arc::clone(snapshot), Arc::clone(&self.clock));
            let work = move || {
                let prepared = prepare(&request, &snapshot, clock.as_ref());
                (request, prepared)
            };
            return Box::pin(aside(bytes, work)).await;
        }
        let prepared = prepare(&request, snapshot, self.clock.as_ref());
        (request, prepared)
    }

    /// What probes ask: who can be called, without figures.
    #[must_use]
    pub fn standings(&self) -> Vec<Callable> {
        callable(&self.snapshot())
    }

    /// Every target as it is now, and the routes.
    #[must_use]
    pub fn targets(&self) -> TargetsView {
        view(&self.snapshot(), self.clock.as_ref())
    }

    /// Looks after what is out of service, for ever.
    pub async fn watch(&self) {
        watch::watch(|| self.snapshot()).await;
    }

    /// Requests that have begun and not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.open.requests.load(Ordering::Relaxed)
    }

    /// What still runs when the gateway ends was not given up by its caller.
    pub fn stop(&self) {
        self.open.stopping.store(true, Ordering::Relaxed);
    }

    /// Records a request that cannot enter the pipeline: its body did not come through.
    pub fn refuse(&self, request: &Request, error: Error) -> Failure {
        let (records, open) = (Arc::clone(&self.records), Arc::clone(&self.open));
        fail(&mut Ledger::open(request, self.snapshot(), records, open), error)
    }

    /// Answers a request. Dropping the future, or the stream it gave, cancels what runs upstream and closes the record.
    ///
    /// # Errors
    /// What the caller is to be told, with the target that was asked last.
    pub async fn run(&self, request: Request) -> Result<Answer, Failure> {
        let snapshot = self.snapshot();
        let (records, open) = (Arc::clone(&self.records), Arc::clone(&self.open));
        let ledger = Ledger::open(&request, Arc::clone(&snapshot), records, open);
        let (request, prepared) = self.prepare(request, &snapshot).await;
        // Not here, where all of it would be kept for as long as the answer takes.
        let (shared, attempts) = self
            .begin(snapshot, ledger, request, prepared)
            .map_err(|failure| *failure)?;
        match shared {
            Some(shared) => heartbeat::while_waiting(shared, attempts, HEARTBEAT_AFTER).await,
            None => attempts.await,
        }
    }

    /// What makes the attempts; for a stream also what its head needs to know meanwhile.
    fn begin(
        &self,
        snapshot: Arc<Snapshot>,
        mut ledger: Box<Ledger>,
        request: Request,
        prepared: Prepared,
    ) -> Result<(Option<Arc<Shared>>, Attempts), Box<Failure>> {
        let (call, plan, other) = prepared.map_err(|error| Box::new(fail(&mut ledger, error)))?;
        ledger.call_read(&call);
        let mut plan = plan.map_err(|error| Box::new(fail(&mut ledger, error)))?;
        ledger.planned(&mut plan);
        let since = request.thread.as_ref().and_then(|thread| thread.since);
        let deadline = snapshot.deadline(since.unwrap_or_else(Instant::now));
        let shared = call.stream.then(|| ledger.shared());
        let run = Box::new(Run {
            snapshot,
            ledger,
            call,
            other,
            as_it_came: false,
            forgotten: false,
            thread: request.thread,
            headers: request.headers,
            deadline,
            clock: Arc::clone(&self.clock),
            refusal_headers: HeaderMap::new(),
        });
        Ok((shared, Box::pin(run.attempt_all(plan))))
    }
}

/// A call that was read, and its plan if what it says about routing makes sense; and the call as it came, if that is another.
type Prepared = Result<(Call, Result<Plan, Error>, Option<Call>), Error>;

fn prepare(request: &Request, snapshot: &Snapshot, clock: &dyn Clock) -> Prepared {
    let thread = request.thread.as_deref();
    let origin = Origin {
        id: Arc::clone(thread.map_or(&request.id, |thread| &thread.name)),
        at: request.arrived_at_ms.div_euclid(1000),
    };
    let read = |body: &Bytes| Call::read(request.surface, body.clone(), request.path.clone(), origin.clone());
    let (call, other) = match thread.and_then(|thread| thread.merged.as_ref()) {
        Some(merged) => (read(merged)?, Some(read(&request.body)?)),
        None => (read(&request.body)?, None),
    };
    let asked = Asked {
        id: &request.id,
        caller: &request.caller,
        headers: &request.headers,
        call: &call,
        thread,
    };
    let plan = plan(snapshot, &asked, clock);
    Ok((call, plan, other))
}

fn fail(ledger: &mut Ledger, error: Error) -> Failure {
    let (overhead, waited) = ledger.head_ready();
    ledger.close_failed(&error);
    Failure {
        attribution: ledger.shared().attribution(),
        overhead,
        waited,
        error,
        headers: HeaderMap::new(),
    }
}

#[cfg(test)]
mod tests;
