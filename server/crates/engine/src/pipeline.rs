//! Admit, resolve, plan, attempt, finish.

mod attempt;
mod heartbeat;
mod relay;

use crate::ledger::Ledger;
use crate::ports::{Clock, Records};
use crate::request::{Answer, Failure, Request};
use crate::snapshot::Snapshot;
use arc_swap::ArcSwap;
use http::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use switchyard_core::error::{Error, Kind};
use switchyard_core::routing::{Facts, TargetId};
use switchyard_providers::Call;
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
    ledger: Ledger,
    call: Call,
    /// After aliases.
    model: String,
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
        let mut ledger = Ledger::open(
            &request,
            Arc::clone(&snapshot),
            Arc::clone(&self.records),
            Arc::clone(&self.open),
        );
        let call = match Call::parse(request.surface, request.body) {
            Ok(call) => call,
            Err(error) => return Err(fail(&mut ledger, error)),
        };
        ledger.call_read(&call);
        let model = snapshot.resolve(&call.model).to_owned();
        let deadline = snapshot.request_timeout.map(|bound| Instant::now() + bound);
        let clock = Arc::clone(&self.clock);
        let mut run = Run {
            snapshot,
            ledger,
            call,
            model,
            headers: request.headers,
            deadline,
            clock,
            refusal_headers: HeaderMap::new(),
        };
        let plan = match run.plan() {
            Ok(plan) => plan,
            Err(error) => return Err(fail(&mut run.ledger, error)),
        };
        if run.call.stream {
            heartbeat::while_waiting(run.ledger.shared(), Box::pin(run.attempt_all(plan)), HEARTBEAT_AFTER).await
        } else {
            run.attempt_all(plan).await
        }
    }
}

fn fail(ledger: &mut Ledger, error: Error) -> Failure {
    ledger.close_failed(&error);
    Failure {
        attribution: ledger.shared().attribution(),
        error,
        headers: HeaderMap::new(),
    }
}

impl Run {
    /// The targets to try, in order. Everything else has its reason in the ledger.
    fn plan(&mut self) -> Result<Vec<TargetId>, Error> {
        let facts = Facts { model: &self.model };
        let order = self
            .snapshot
            .strategy
            .order(&facts, self.snapshot.as_ref(), &mut rand::rng());
        for (target, why) in order.left_out {
            self.ledger.left_out(target, why);
        }
        if order.targets.is_empty() {
            return Err(self.unknown_model());
        }
        let mut plan = Vec::with_capacity(order.targets.len());
        let mut reasons = Vec::new();
        for id in order.targets {
            let target = &self.snapshot.targets[id.0];
            match &target.link {
                Ok(_) => plan.push(id),
                Err(reason) => {
                    reasons.push(format!("{}: {reason}", target.name));
                    self.ledger.exclude(id, reason.clone());
                }
            }
        }
        if plan.is_empty() {
            let message = format!(
                "no target for model {} can be called now ({})",
                self.model,
                reasons.join("; ")
            );
            return Err(Error::new(Kind::NoTarget, message));
        }
        Ok(plan)
    }

    fn unknown_model(&self) -> Error {
        let mut known: Vec<&str> = self.snapshot.targets.iter().flat_map(|target| target.names()).collect();
        known.dedup();
        let shown = known.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        let more = if known.len() > 8 { ", …" } else { "" };
        let message = format!(
            "no configured target serves the model {}; served here: {shown}{more}",
            self.model
        );
        Error::new(Kind::ModelNotFound, message).with_param("model")
    }
}

#[cfg(test)]
mod tests;
