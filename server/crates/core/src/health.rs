//! How a target has been doing: its latest outcomes, for a strategy that weighs targets by their health.
//!
//! A target of which nothing is known counts as healthy: it has to be asked to become known.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Outcomes per target. The oldest leaves first.
pub const KEPT: usize = 100;
/// How long an outcome counts.
pub const LIFE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug)]
struct Outcome {
    at: Instant,
    ok: bool,
    latency: Duration,
}

/// The latest outcomes of one target.
#[derive(Clone, Debug, Default)]
pub struct Outcomes(
    /// Oldest first.
    VecDeque<Outcome>,
);

/// What the live outcomes amount to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    /// From 0 to 1; 1 without an outcome.
    pub success_rate: f64,
    /// Of the successes: a failure that comes fast is no reason to prefer a target.
    pub average_latency: Option<Duration>,
    /// Outcomes behind these figures.
    pub samples: usize,
}

/// Nothing known.
impl Default for Health {
    fn default() -> Self {
        Self {
            success_rate: 1.0,
            average_latency: None,
            samples: 0,
        }
    }
}

impl Outcomes {
    pub fn add(&mut self, ok: bool, latency: Duration, now: Instant) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Outcome { at: now, ok, latency });
    }

    #[must_use]
    pub fn health(&self, now: Instant) -> Health {
        let (mut samples, mut successes, mut sum) = (0, 0_u32, Duration::ZERO);
        for outcome in &self.0 {
            if now.saturating_duration_since(outcome.at) < LIFE {
                samples += 1;
                if outcome.ok {
                    successes += 1;
                    sum = sum.saturating_add(outcome.latency);
                }
            }
        }
        if samples == 0 {
            return Health::default();
        }
        Health {
            success_rate: f64::from(successes) / samples as f64,
            average_latency: sum.checked_div(successes),
            samples,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Health, Outcomes};
    use std::time::{Duration, Instant};

    /// Outcomes as (second, ok, milliseconds); rate, average in milliseconds and number at second `at`.
    #[track_caller]
    fn check(outcomes: &[(u64, bool, u64)], at: u64, want: (f64, Option<u64>, usize)) {
        let (start, mut all) = (Instant::now(), Outcomes::default());
        for &(second, ok, latency) in outcomes {
            all.add(ok, Duration::from_millis(latency), start + Duration::from_secs(second));
        }
        let (success_rate, average, samples) = want;
        let want = Health {
            success_rate,
            average_latency: average.map(Duration::from_millis),
            samples,
        };
        assert_eq!(
            all.health(start + Duration::from_secs(at)),
            want,
            "{outcomes:?} at {at} s"
        );
    }

    #[test]
    fn the_rate_counts_all_and_the_latency_only_successes() {
        check(&[], 0, (1.0, None, 0));
        check(&[(0, true, 40)], 0, (1.0, Some(40), 1));
        check(&[(0, false, 40)], 0, (0.0, None, 1));
        check(
            &[(0, true, 10), (0, false, 1), (0, true, 30), (0, false, 1)],
            0,
            (0.5, Some(20), 4),
        );
        check(
            &[(0, true, 10), (0, true, 30), (0, false, 1), (0, true, 80)],
            0,
            (0.75, Some(40), 4),
        );
    }

    #[test]
    fn an_outcome_counts_for_five_minutes() {
        let outcomes = [(0, false, 5), (100, true, 10)];
        check(&outcomes, 299, (0.5, Some(10), 2));
        check(&outcomes, 300, (1.0, Some(10), 1));
        check(&outcomes, 400, (1.0, None, 0));
        // Whoever waited for the lock may hand over an older moment than the one before.
        check(&[(100, true, 10), (50, false, 5)], 350, (1.0, Some(10), 1));
    }

    #[test]
    fn the_hundred_latest_are_kept() {
        let mut outcomes = vec![(0, false, 1); 50];
        outcomes.extend(vec![(0, true, 10); 75]);
        check(&outcomes, 0, (0.75, Some(10), 100));
    }

    #[test]
    fn latencies_without_end_do_not_overflow() {
        let (now, mut all) = (Instant::now(), Outcomes::default());
        all.add(true, Duration::MAX, now);
        all.add(true, Duration::MAX, now);
        assert_eq!(all.health(now).average_latency, Some(Duration::MAX / 2));
    }
}
