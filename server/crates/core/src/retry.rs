//! After a failed attempt: ask the same target again, move on, or stop.
//!
//! Pure: the dice and the time that is left are arguments. Two rules do not bend. A wait never outlasts the request's
//! deadline; and an upstream that asks to be left alone for longer than [`LONGEST_WAIT`] is left alone.

use crate::config::Retry as Policy;
use crate::error::{Error, Kind, Retry};
use rand::{Rng, RngCore};
use std::time::Duration;

/// A longer `Retry-After` gives the target up for this request.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the same target again after this wait.
    Again(Duration),
    /// Ask the next target.
    Next,
    /// The failure is the answer.
    Stop,
}

/// What a failure is looked at with.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// Of the target that failed.
    pub policy: &'a Policy,
    /// Statuses that move on although they usually would not.
    pub failover_on: &'a [u16],
    /// Until the request's deadline; `None` without one.
    pub left: Option<Duration>,
}

/// Decides after attempt number `attempt` (counted from 1, on this target) has failed.
pub fn decide(error: &Error, attempt: u32, limits: Limits<'_>, rng: &mut dyn RngCore) -> Step {
    if attempt < limits.policy.attempts && is_retryable(error, limits.policy) {
        let wait = error
            .retry_after
            .unwrap_or_else(|| backoff(limits.policy.initial_backoff, attempt, rng));
        if wait <= LONGEST_WAIT && limits.left.is_none_or(|left| wait < left) {
            return Step::Again(wait);
        }
    }
    if moves_on(error, limits.failover_on) {
        Step::Next
    } else {
        Step::Stop
    }
}

/// A list of statuses replaces the usual ones. It says nothing about failures that have no status.
///
/// An attempt that hung until its bound is not asked for again: it has cost the request enough time already.
fn is_retryable(error: &Error, policy: &Policy) -> bool {
    match error.status {
        None if error.kind == Kind::Timeout => false,
        Some(status) if !policy.on_status_codes.is_empty() => policy.on_status_codes.contains(&status),
        _ => error.kind.retry() == Retry::Same,
    }
}

/// Whether another target may be asked after this failure.
fn moves_on(error: &Error, failover_on: &[u16]) -> bool {
    error.kind.retry() != Retry::Never || error.status.is_some_and(|status| failover_on.contains(&status))
}

/// Full jitter: anything from nothing to the doubled bound.
fn backoff(initial: Duration, attempt: u32, rng: &mut dyn RngCore) -> Duration {
    let bound = initial
        .saturating_mul(2_u32.saturating_pow(attempt - 1))
        .min(LONGEST_WAIT);
    bound.mul_f64(rng.random_range(0.0..1.0))
}

#[cfg(test)]
mod tests {
    use super::{Limits, Step, decide};
    use crate::config::Retry as Policy;
    use crate::error::{Error, Kind};
    use rand::{SeedableRng, rngs::StdRng};
    use std::time::Duration;

    fn policy(attempts: u32, on: &[u16]) -> Policy {
        Policy {
            attempts,
            on_status_codes: on.to_vec(),
            initial_backoff: Duration::from_millis(100),
        }
    }

    /// `again`, `next` or `stop` after attempt `attempt` failed with `kind` and `status`.
    #[track_caller]
    fn check(kind: Kind, status: Option<u16>, attempt: u32, policy: &Policy, failover_on: &[u16], want: &str) {
        let error = Error {
            status,
            ..Error::new(kind, "")
        };
        let limits = Limits {
            policy,
            failover_on,
            left: None,
        };
        let step = match decide(&error, attempt, limits, &mut StdRng::seed_from_u64(7)) {
            Step::Again(_) => "again",
            Step::Next => "next",
            Step::Stop => "stop",
        };
        assert_eq!(step, want, "{kind:?} {status:?} attempt {attempt}");
    }

    #[test]
    fn each_kind_of_failure_takes_its_step() {
        let (once, thrice) = (policy(1, &[]), policy(3, &[]));
        for (kind, status, retried, alone) in [
            (Kind::Connect, None, "again", "next"),
            (Kind::Timeout, None, "next", "next"),
            (Kind::Timeout, Some(408), "again", "next"),
            (Kind::Broken, None, "again", "next"),
            (Kind::RateLimit, Some(429), "again", "next"),
            (Kind::ServerError, Some(503), "again", "next"),
            (Kind::ContextLength, Some(400), "next", "next"),
            (Kind::Quota, Some(402), "next", "next"),
            (Kind::BreakerOpen, None, "next", "next"),
            (Kind::Saturated, None, "next", "next"),
            (Kind::OverQuota, None, "next", "next"),
            (Kind::BadAnswer, Some(200), "next", "next"),
            (Kind::Cut, Some(200), "next", "next"),
            (Kind::Auth, Some(401), "stop", "stop"),
            (Kind::NotFound, Some(404), "stop", "stop"),
            (Kind::Refused, Some(400), "stop", "stop"),
            (Kind::Unexpected, Some(418), "stop", "stop"),
            (Kind::Deadline, None, "stop", "stop"),
        ] {
            check(kind, status, 1, &thrice, &[], retried);
            check(kind, status, 3, &thrice, &[], alone);
            check(kind, status, 1, &once, &[], alone);
        }
    }

    #[test]
    fn a_list_of_statuses_is_obeyed_in_both_directions() {
        let only_503 = policy(3, &[503]);
        check(Kind::ServerError, Some(503), 1, &only_503, &[], "again");
        check(Kind::ServerError, Some(500), 1, &only_503, &[], "next");
        check(Kind::Connect, None, 1, &only_503, &[], "again");
        check(Kind::Unexpected, Some(418), 1, &policy(1, &[]), &[418], "next");
        check(Kind::Unexpected, Some(418), 1, &policy(2, &[418]), &[], "again");
    }

    #[test]
    fn waits_are_the_upstreams_or_jittered_and_never_outlast_the_deadline() {
        let policy = policy(5, &[]);
        let wait = |retry_after: Option<u64>, attempt, left: Option<u64>| {
            let error = Error {
                retry_after: retry_after.map(Duration::from_secs),
                ..Error::new(Kind::RateLimit, "")
            };
            let limits = Limits {
                policy: &policy,
                failover_on: &[],
                left: left.map(Duration::from_secs),
            };
            decide(&error, attempt, limits, &mut StdRng::seed_from_u64(7))
        };
        assert_eq!(wait(Some(7), 1, None), Step::Again(Duration::from_secs(7)));
        assert_eq!(wait(Some(31), 1, None), Step::Next, "too long to sit out");
        assert_eq!(
            wait(Some(7), 1, Some(7)),
            Step::Next,
            "the deadline would pass while waiting"
        );
        for attempt in 1..5 {
            let Step::Again(jittered) = wait(None, attempt, None) else {
                panic!("retried")
            };
            assert!(
                jittered < Duration::from_millis(100 * 2_u64.pow(attempt - 1)),
                "{attempt}: {jittered:?}"
            );
        }
    }
}
