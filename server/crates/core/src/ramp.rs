//! Slow ramp: a target that has just come back gets a growing share of what it would usually get.
//!
//! A target that failed under load is likely to fail again under the same load while its caches are cold. The share
//! starts at [`FLOOR`] and not at nothing, because only what arrives can show that the target is healthy, and because a
//! target that is the only one left would otherwise serve nobody.

use std::time::Duration;

/// The share at the moment of recovery.
pub const FLOOR: f64 = 0.1;

/// From [`FLOOR`] to 1 in a straight line, `since` the recovery; 1 from `ramp` on. A ramp of zero is no ramp.
#[must_use]
pub fn share(since: Duration, ramp: Duration) -> f64 {
    if since >= ramp {
        return 1.0;
    }
    since.div_duration_f64(ramp).mul_add(1.0 - FLOOR, FLOOR)
}

#[cfg(test)]
mod tests {
    use super::share;
    use std::time::Duration;

    #[track_caller]
    fn check(since_ms: u64, ramp_ms: u64, want: f64) {
        let got = share(Duration::from_millis(since_ms), Duration::from_millis(ramp_ms));
        assert!(
            (got - want).abs() < 1e-9,
            "{since_ms} of {ramp_ms} ms: {got}, not {want}"
        );
    }

    #[test]
    fn the_share_rises_in_a_straight_line_from_a_tenth_to_the_whole() {
        for (since, want) in [
            (0, 0.1),
            (1_000, 0.19),
            (2_500, 0.325),
            (5_000, 0.55),
            (9_999, 0.999_91),
            (10_000, 1.0),
            (86_400_000, 1.0),
        ] {
            check(since, 10_000, want);
        }
    }

    #[test]
    fn no_ramp_is_the_whole_share_at_once() {
        check(0, 0, 1.0);
        check(1, 0, 1.0);
    }

    #[test]
    fn extremes_stay_between_the_floor_and_the_whole() {
        let (nothing, ever) = (Duration::ZERO, Duration::MAX);
        for (since, ramp) in [(nothing, ever), (ever, nothing), (ever, ever), (nothing, nothing)] {
            let share = share(since, ramp);
            assert!((super::FLOOR..=1.0).contains(&share), "{since:?} of {ramp:?}: {share}");
        }
    }
}
