//! Out of service for a while: a target parked after a 429, a credential benched after a 401 or 402.
//!
//! An upstream that says how long it wants to be left alone (`Retry-After`) is believed, up to the rule's longest hold.
//! One that does not is left alone for the rule's first hold, and twice as long each further time in a row.
//!
//! Ten calls in flight that all come back with a 429 are one piece of news: while a hold is in force, another refusal
//! counts for nothing, unless it carries a hint that ends later. Only [`Hold::clear`] makes a hold shorter.

use std::time::{Duration, Instant};

/// How long a hold lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Without a hint, the first time.
    pub first: Duration,
    /// No hold is longer, hint or not.
    pub longest: Duration,
}

impl Rule {
    /// A target, after a 429. The usual limits are per minute, so nothing is gained by waiting longer.
    pub const PARK: Self = Self {
        first: Duration::from_secs(5),
        longest: Duration::from_secs(60),
    };
    /// A credential, after a 401 or 402. It takes a person to mend it, so it is asked less often.
    pub const BENCH: Self = Self {
        first: Duration::from_secs(30),
        longest: Duration::from_secs(600),
    };

    /// Without a hint, the `streak`th time in a row, counted from 1.
    fn guess(self, streak: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(streak.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

/// Whether something is out of service, and until when. The default is in service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// May have passed.
    until: Option<Instant>,
    streak: u32,
}

impl Hold {
    /// Takes it out of service, and says until when: `now` where it stays in service.
    ///
    /// A hint of zero is the upstream's word that it may be asked at once: it begins no hold and is not counted. Any
    /// other hint is counted like a refusal without one, so that a later refusal without one doubles from there.
    pub fn put(&mut self, rule: Rule, hint: Option<Duration>, now: Instant) -> Instant {
        let in_force = self.until(now);
        let wait = match (hint, in_force) {
            (None, Some(until)) => return until,
            (Some(Duration::ZERO), in_force) => return in_force.unwrap_or(now),
            (Some(hint), Some(_)) => hint.min(rule.longest),
            (hint, None) => {
                self.streak = self.streak.saturating_add(1);
                hint.map_or_else(|| rule.guess(self.streak), |hint| hint.min(rule.longest))
            }
        };
        let until = after(now, wait).max(in_force.unwrap_or(now));
        self.until = Some(until);
        until
    }

    /// When it comes back; `None` where it is in service.
    #[must_use]
    pub fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|&until| until > now)
    }

    /// After a success: back in service, and the next refusal is the first again.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Holds in a row without a success in between.
    #[must_use]
    pub const fn streak(&self) -> u32 {
        self.streak
    }
}

/// `now + wait`, and a moment nobody lives to see where the clock cannot count that far.
pub(crate) fn after(now: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);
    now.checked_add(wait.min(FAR)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::{Hold, Rule};
    use std::time::{Duration, Instant};

    /// Each step: seconds from the start, the hint in milliseconds, the end of the hold in milliseconds from the start,
    /// and the streak.
    #[track_caller]
    fn check(rule: Rule, steps: &[(u64, Option<u64>, u64, u32)]) {
        let (start, mut hold) = (Instant::now(), Hold::default());
        for &(at, hint, until, streak) in steps {
            let now = start + Duration::from_secs(at);
            let got = hold.put(rule, hint.map(Duration::from_millis), now);
            assert_eq!(got.duration_since(start), Duration::from_millis(until), "at {at} s");
            assert_eq!(hold.until(now), Some(got).filter(|&got| got > now), "at {at} s");
            assert_eq!(hold.streak(), streak, "at {at} s");
        }
    }

    #[test]
    fn without_a_hint_each_hold_is_twice_as_long_up_to_the_longest() {
        check(
            Rule::PARK,
            &[
                (0, None, 5_000, 1),
                (5, None, 15_000, 2),
                (20, None, 40_000, 3),
                (40, None, 80_000, 4),
                (100, None, 160_000, 5),
                (200, None, 260_000, 6),
            ],
        );
        check(
            Rule::BENCH,
            &[
                (0, None, 30_000, 1),
                (100, None, 160_000, 2),
                (200, None, 320_000, 3),
                (400, None, 640_000, 4),
                (1_000, None, 1_480_000, 5),
                (2_000, None, 2_600_000, 6),
                (3_000, None, 3_600_000, 7),
            ],
        );
    }

    #[test]
    fn a_burst_counts_once() {
        check(
            Rule::PARK,
            &[
                (0, None, 5_000, 1),
                (0, None, 5_000, 1),
                (1, None, 5_000, 1),
                (4, None, 5_000, 1),
                (5, None, 15_000, 2),
            ],
        );
    }

    #[test]
    fn a_hint_is_believed_up_to_the_longest_and_never_shortens() {
        check(Rule::PARK, &[(0, Some(250), 250, 1)]);
        check(Rule::PARK, &[(0, Some(7_000), 7_000, 1)]);
        check(Rule::PARK, &[(0, Some(3_600_000), 60_000, 1)]);
        check(Rule::BENCH, &[(0, Some(3_600_000), 600_000, 1)]);
        check(
            Rule::PARK,
            &[
                (0, Some(20_000), 20_000, 1),
                (1, Some(2_000), 20_000, 1),
                (2, None, 20_000, 1),
                (3, Some(30_000), 33_000, 1),
                (33, None, 43_000, 2),
            ],
        );
    }

    #[test]
    fn a_hint_of_zero_begins_nothing_and_ends_nothing() {
        check(
            Rule::PARK,
            &[
                (1, Some(0), 1_000, 0),
                (1, None, 6_000, 1),
                (2, Some(0), 6_000, 1),
                (7, Some(0), 7_000, 1),
            ],
        );
    }

    #[test]
    fn a_hold_is_over_at_its_end_and_a_success_forgets_it() {
        let (start, mut hold) = (Instant::now(), Hold::default());
        assert_eq!(hold.until(start), None, "in service by default");
        let until = hold.put(Rule::PARK, None, start);
        assert_eq!(hold.until(until - Duration::from_nanos(1)), Some(until));
        assert_eq!(hold.until(until), None);
        hold.put(Rule::PARK, None, until);
        hold.clear();
        assert_eq!((hold, hold.until(until)), (Hold::default(), None));
        assert_eq!(hold.put(Rule::PARK, None, until), until + Duration::from_secs(5));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let rule = Rule {
            first: Duration::MAX,
            longest: Duration::MAX,
        };
        let (now, mut hold) = (Instant::now(), Hold::default());
        for hint in [None, Some(Duration::MAX)] {
            assert!(hold.put(rule, hint, now) > now);
        }
        for _ in 0..100 {
            hold.put(
                Rule::PARK,
                None,
                now + Duration::from_secs(u64::from(hold.streak()) * 100),
            );
        }
        assert_eq!(Rule::PARK.guess(u32::MAX), Rule::PARK.longest);
    }
}
