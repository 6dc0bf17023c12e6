//! A call's leave, and what its end tells.

use super::{Benched, Live, now};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use switchyard_core::breaker::{Admission, Change, Verdict};
use switchyard_core::error::{Error, Kind};
use switchyard_core::hold::Rule;
use switchyard_core::quota::Taken;
use tokio::sync::OwnedSemaphorePermit;

/// A call's leave, until it has ended. Dropped without a word (the client went away), it proves nothing for or against the
/// target, and gives everything back.
pub(crate) struct Pass {
    pub(super) live: Arc<Live>,
    pub(super) admission: Option<Admission>,
    pub(super) taken: Option<Taken>,
    pub(super) slot: Option<OwnedSemaphorePermit>,
    pub(super) flying: bool,
    pub(crate) credential: usize,
    pub(super) began: Instant,
    pub(super) model: String,
    /// Used in the end, as far as it is known.
    pub(super) tokens: Option<u64>,
}

impl Pass {
    pub(crate) fn begin(&mut self, credential: usize, model: &str) {
        self.credential = credential;
        model.clone_into(&mut self.model);
        self.began = now();
    }

    /// The call was answered, or its stream has brought content: its speed is known.
    pub(crate) fn answered(&mut self, latency: Duration) {
        let now = now();
        if let (Some(admission), Some(mut breaker)) = (&mut self.admission, self.live.breaker()) {
            breaker.yield_place(admission);
        }
        let mut inner = self.live.lock();
        inner.latencies.add(&self.model, latency, now);
        inner.outcomes.add(true, latency, now);
        // An answer to a call that began before the 429 says nothing about it.
        if inner.parked_at.is_none_or(|at| at <= self.began) {
            inner.park.clear();
            inner.parked_at = None;
        }
        let bench = inner.credentials.get_mut(self.credential);
        if let Some(bench) = bench.filter(|bench| bench.refused_at.is_none_or(|at| at <= self.began)) {
            bench.hold.clear();
        }
    }

    pub(crate) fn used(&mut self, tokens: Option<u64>) {
        self.tokens = tokens.or(self.tokens);
    }

    /// The call was never made: nothing was used, and nothing is known.
    pub(crate) fn unsent(mut self) {
        if let (Some(taken), Some(mut quota)) = (self.taken.take(), self.live.quota()) {
            quota.give_back(taken, now());
        }
    }

    /// The answer is whole.
    pub(crate) fn complete(mut self, tokens: Option<u64>) {
        self.used(tokens);
        self.settle(Verdict::Success);
    }

    /// The call failed, or its stream was cut. `own_time`: it was this call that used up the request's time.
    pub(crate) fn failed(mut self, error: &Error, own_time: bool) -> Failed {
        let now = now();
        let verdict = judge(error, own_time);
        // What brought no answer has used nothing; the request itself counts. Of one that hung nobody knows what it used.
        if !matches!(error.kind, Kind::Timeout | Kind::Deadline) {
            self.tokens = self.tokens.or(Some(0));
        }
        if verdict == Verdict::Failure || matches!(error.kind, Kind::RateLimit | Kind::Quota) {
            self.live.lock().outcomes.add(false, Duration::ZERO, now);
        }
        let (credential, hint) = (self.credential, error.retry_after);
        let benched = match (error.kind, error.status) {
            (Kind::Auth, Some(401)) => self.live.bench(credential, None, Rule::BENCH, Benched::Refused, now),
            (Kind::Quota, _) => self.live.bench(credential, hint, Rule::BENCH, Benched::Spent, now),
            (Kind::RateLimit, _) => self.live.bench(credential, hint, Rule::PARK, Benched::Limited, now),
            _ => false,
        };
        if !benched && matches!(error.kind, Kind::RateLimit | Kind::Quota) {
            let mut inner = self.live.lock();
            inner.park.put(Rule::PARK, error.retry_after, now);
            inner.parked_at = Some(now);
            inner.park_reason = if error.kind == Kind::Quota {
                "it is parked: what may be spent there is used up"
            } else {
                "it is parked after a 429"
            };
        }
        self.settle(verdict);
        if benched { Failed::Benched } else { Failed::Plain }
    }

    fn settle(&mut self, verdict: Verdict) {
        let now = now();
        let admission = self.admission.take();
        let change = admission.and_then(|admission| self.live.breaker()?.settle(admission, verdict, now));
        // It has just been seen to fail: the first look behind it is one interval away.
        if matches!(change, Some(Change::Opened { .. })) {
            self.live.lock().verified = Some(now);
        }
        // Of a call that nobody waited for it is not known what it used: the estimate stands.
        if let (Some(taken), Some(tokens)) = (self.taken.take(), self.tokens)
            && let Some(mut quota) = self.live.quota()
        {
            quota.settle(taken, tokens, now);
        }
        self.live.tell(change.as_ref());
        self.slot = None;
        if std::mem::take(&mut self.flying) {
            self.live.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.settle(if std::thread::panicking() {
            Verdict::Failure
        } else {
            Verdict::Neutral
        });
    }
}

/// What a failed call did to its credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Plain,
    /// It was taken out of service, and has a sibling that may be asked at once.
    Benched,
}

/// What a failure says about the target's health. Limits, credentials and prompts that are too long say nothing; an answer
/// that refuses the request shows that the target lives.
fn judge(error: &Error, own_time: bool) -> Verdict {
    match error.kind {
        Kind::Connect | Kind::Timeout | Kind::Broken | Kind::ServerError | Kind::BadAnswer | Kind::Cut => {
            Verdict::Failure
        }
        Kind::Deadline if own_time => Verdict::Failure,
        Kind::Unexpected if error.status.is_some_and(|status| status < 400) => Verdict::Failure,
        Kind::Refused | Kind::NotFound | Kind::Unexpected => Verdict::Success,
        Kind::Deadline
        | Kind::RateLimit
        | Kind::Quota
        | Kind::Auth
        | Kind::ContextLength
        | Kind::InvalidRequest
        | Kind::RequestTooLarge
        | Kind::ModelNotFound
        | Kind::NotAllowed
        | Kind::Unsupported
        | Kind::NoTarget
        | Kind::BreakerOpen
        | Kind::Saturated
        | Kind::OverQuota
        | Kind::Internal => Verdict::Neutral,
    }
}
