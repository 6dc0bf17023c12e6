//! An operator's own limits on what is sent to a target: requests and tokens, per minute and per day.
//!
//! The windows slide, so that no moment is better than another: in any 60 seconds, not only from one full minute to the
//! next, no more is let through than the limit. What was counted leaves its window no earlier than the window's length
//! later, and up to a 60th later than that in the minute and a 288th (5 minutes) in the day: counts of about the same
//! time are kept as one, which bounds what is kept, and they leave together when the youngest of them is old enough.
//!
//! Tokens are known only afterwards. So an estimate is taken, and corrected once the answer says what it cost. The
//! correction counts at the time of the estimate. It may push a window over its limit, since what has been used has been
//! used; nothing more is let through until that has passed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// `None` is without a limit; 0 lets nothing through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests per minute.
    pub rpm: Option<u64>,
    /// Requests per day.
    pub rpd: Option<u64>,
    /// Tokens per minute.
    pub tpm: Option<u64>,
    /// Tokens per day.
    pub tpd: Option<u64>,
}

/// No place for this request. Where several limits say so, the one that says so for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// `rpm`, `rpd`, `tpm` or `tpd`.
    pub limit: &'static str,
    pub most: u64,
    pub used: u64,
    /// The earliest moment at which this request fits, if nothing else comes in between. One that asks for more than the
    /// whole limit never fits: a full window from now, so that whoever waits does not wait for nothing all the time.
    pub until: Instant,
}

/// How far a limit is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// `rpm`, `rpd`, `tpm` or `tpd`.
    pub limit: &'static str,
    pub most: u64,
    pub used: u64,
}

/// What one request has taken. To be handed back to the [`Windows`] it came from, with [`Windows::settle`] or
/// [`Windows::give_back`]; one that is lost stands as it was taken.
#[derive(Debug)]
pub struct Taken {
    tokens: u64,
    /// The number of the bucket it was counted in, per window.
    buckets: [u64; 4],
}

/// The limits of one target and what has been used of them.
#[derive(Debug)]
pub struct Windows(
    /// One per limit, four at most.
    Vec<Window>,
);

impl Windows {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let all = [
            ("rpm", limits.rpm, Unit::Requests, MINUTE, 60),
            ("rpd", limits.rpd, Unit::Requests, DAY, 288),
            ("tpm", limits.tpm, Unit::Tokens, MINUTE, 60),
            ("tpd", limits.tpd, Unit::Tokens, DAY, 288),
        ];
        let window = |(name, most, unit, length, parts): (_, Option<u64>, _, Duration, _)| {
            Some(Window {
                name,
                most: most?,
                unit,
                length,
                width: length / parts,
                buckets: VecDeque::new(),
                gone: 0,
                total: 0,
            })
        };
        Self(all.into_iter().filter_map(window).collect())
    }

    /// Whether a request of so many tokens fits into every window, without taking anything.
    pub fn check(&self, tokens: u64, now: Instant) -> Result<(), Used> {
        let refusals = self.0.iter().filter_map(|window| window.refusal(tokens, now));
        refusals.max_by_key(|used| used.until).map_or(Ok(()), Err)
    }

    /// Counts a request of so many tokens in every window, or in none.
    pub fn take(&mut self, tokens: u64, now: Instant) -> Result<Taken, Used> {
        self.check(tokens, now)?;
        let mut buckets = [0; 4];
        for (window, bucket) in self.0.iter_mut().zip(&mut buckets) {
            *bucket = window.add(tokens, now);
        }
        Ok(Taken { tokens, buckets })
    }

    /// Puts what a request cost in the place of what was expected, at the time when it was taken. A bucket that has left
    /// its window takes its requests' corrections with it.
    #[expect(clippy::needless_pass_by_value, reason = "used up, so that nothing is settled twice")]
    pub fn settle(&mut self, taken: Taken, actual_tokens: u64, now: Instant) {
        for (window, bucket) in self.0.iter_mut().zip(taken.buckets) {
            if window.unit == Unit::Tokens {
                window.correct(bucket, taken.tokens, actual_tokens, now);
            }
        }
    }

    /// The call was never sent: as if it had not been taken.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "used up, so that nothing is given back twice"
    )]
    pub fn give_back(&mut self, taken: Taken, now: Instant) {
        for (window, bucket) in self.0.iter_mut().zip(taken.buckets) {
            window.correct(bucket, window.unit.of(taken.tokens), 0, now);
        }
    }

    /// Every limit there is, in the order `rpm`, `rpd`, `tpm`, `tpd`.
    #[must_use]
    pub fn use_of(&self, now: Instant) -> Vec<Use> {
        let use_of = |window: &Window| Use {
            limit: window.name,
            most: window.most,
            used: window.used(now),
        };
        self.0.iter().map(use_of).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Requests,
    Tokens,
}

impl Unit {
    /// What a request of so many tokens counts for.
    const fn of(self, tokens: u64) -> u64 {
        match self {
            Self::Requests => 1,
            Self::Tokens => tokens,
        }
    }
}

/// What was counted at about the same time.
#[derive(Debug)]
struct Bucket {
    first: Instant,
    last: Instant,
    used: u64,
}

#[derive(Debug)]
struct Window {
    name: &'static str,
    most: u64,
    unit: Unit,
    length: Duration,
    /// From the first to the last in a bucket, at most.
    width: Duration,
    /// Oldest first. Those at the front may have left the window since it was last changed.
    buckets: VecDeque<Bucket>,
    /// Buckets removed so far: the number of the one at the front.
    gone: u64,
    /// Sum of `buckets`, so that a look need not add up to 289 of them.
    total: u64,
}

impl Window {
    /// The buckets at the front that have left.
    fn left(&self, now: Instant) -> impl Iterator<Item = &Bucket> {
        self.buckets
            .iter()
            .take_while(move |bucket| bucket.last + self.length <= now)
    }

    fn used(&self, now: Instant) -> u64 {
        self.left(now)
            .fold(self.total, |total, bucket| total.saturating_sub(bucket.used))
    }

    fn refusal(&self, tokens: u64, now: Instant) -> Option<Used> {
        let (mut used, wanted) = (self.used(now), self.unit.of(tokens));
        let fits = |used: u64| used.checked_add(wanted).is_some_and(|sum| sum <= self.most);
        if fits(used) {
            return None;
        }
        let mut refusal = Used {
            limit: self.name,
            most: self.most,
            used,
            until: now + self.length,
        };
        for bucket in self.buckets.iter().skip(self.left(now).count()) {
            used = used.saturating_sub(bucket.used);
            if fits(used) {
                refusal.until = bucket.last + self.length;
                break;
            }
        }
        Some(refusal)
    }

    /// Says in which bucket it is counted.
    fn add(&mut self, tokens: u64, now: Instant) -> u64 {
        self.prune(now);
        let amount = self.unit.of(tokens);
        self.total = self.total.saturating_add(amount);
        match self.buckets.back_mut() {
            // Whoever waited for the lock may hand over an older moment than the one before: it counts as that one.
            Some(bucket) if now.saturating_duration_since(bucket.first) < self.width => {
                bucket.last = bucket.last.max(now);
                bucket.used = bucket.used.saturating_add(amount);
            }
            Some(_) | None => self.buckets.push_back(Bucket {
                first: now,
                last: now,
                used: amount,
            }),
        }
        self.gone + self.buckets.len() as u64 - 1
    }

    /// Takes `old` out of a bucket and puts `new` in.
    fn correct(&mut self, bucket: u64, old: u64, new: u64, now: Instant) {
        self.prune(now);
        let place = bucket.checked_sub(self.gone).and_then(|at| usize::try_from(at).ok());
        if let Some(bucket) = place.and_then(|at| self.buckets.get_mut(at)) {
            let used = bucket.used.saturating_sub(old).saturating_add(new);
            self.total = self.total.saturating_sub(bucket.used).saturating_add(used);
            bucket.used = used;
        }
    }

    fn prune(&mut self, now: Instant) {
        let left = self.left(now).count();
        for bucket in self.buckets.drain(..left) {
            self.total = self.total.saturating_sub(bucket.used);
            self.gone += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::needless_pass_by_value,
        reason = "an expectation is written where it is handed over"
    )]

    use super::{DAY, Limits, MINUTE, Taken, Use, Used, Windows};
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::time::{Duration, Instant};

    /// `rpm=3 tpd=100`
    fn limits(text: &str) -> Limits {
        let mut limits = Limits::default();
        for part in text.split_whitespace() {
            let (name, most) = part.split_once('=').unwrap();
            let limit = match name {
                "rpm" => &mut limits.rpm,
                "rpd" => &mut limits.rpd,
                "tpm" => &mut limits.tpm,
                "tpd" => &mut limits.tpd,
                other => panic!("{other}"),
            };
            *limit = Some(most.parse().unwrap());
        }
        limits
    }

    /// `a:5` takes 5 tokens as request a; `a=7` settles it with 7, `a=back` gives it back; `@1.5` is second 1.5. The answer
    /// to each request and what is used after each step, times in seconds from the start.
    #[track_caller]
    fn check(of: &str, script: &str, want: Expect) {
        let (mut windows, start) = (Windows::new(limits(of)), Instant::now());
        let (mut now, mut taken, mut seen) = (start, BTreeMap::<&str, Taken>::new(), String::new());
        for step in script.split_whitespace() {
            let mut answer = String::new();
            if let Some(at) = step.strip_prefix('@') {
                now = start + Duration::from_secs_f64(at.parse().unwrap());
            } else if let Some((name, tokens)) = step.split_once(':') {
                let tokens = tokens.parse().unwrap();
                let expected = windows.check(tokens, now);
                let result = windows.take(tokens, now);
                assert_eq!(result.as_ref().map(|_| ()).map_err(|used| *used), expected);
                answer = match result {
                    Ok(token) => {
                        taken.insert(name, token);
                        "taken".to_owned()
                    }
                    Err(Used {
                        limit,
                        most,
                        used,
                        until,
                    }) => format!("{limit} {used}/{most} until {:?}", until.duration_since(start)),
                };
            } else if let Some(name) = step.strip_suffix("=back") {
                windows.give_back(taken.remove(name).unwrap(), now);
            } else {
                let (name, tokens) = step.split_once('=').unwrap();
                windows.settle(taken.remove(name).unwrap(), tokens.parse().unwrap(), now);
            }
            write!(seen, "{step:7} {answer:26}|").unwrap();
            for Use { limit, most, used } in windows.use_of(now) {
                write!(seen, " {limit} {used}/{most}").unwrap();
            }
            seen.push('\n');
        }
        want.assert_eq(&seen);
    }

    #[test]
    fn without_limits_everything_fits() {
        check(
            "",
            "a:18446744073709551615 b:18446744073709551615 a=0 b=back",
            expect![[r#"
                a:18446744073709551615 taken                     |
                b:18446744073709551615 taken                     |
                a=0                               |
                b=back                            |
            "#]],
        );
    }

    #[test]
    fn requests_leave_the_minute_one_by_one() {
        check(
            "rpm=3",
            "a:0 @10 b:0 @20 c:0 d:0 @59.999 d:0 @60 d:0 e:0 @70 e:0",
            expect![[r#"
                a:0     taken                     | rpm 1/3
                @10                               | rpm 1/3
                b:0     taken                     | rpm 2/3
                @20                               | rpm 2/3
                c:0     taken                     | rpm 3/3
                d:0     rpm 3/3 until 60s         | rpm 3/3
                @59.999                           | rpm 3/3
                d:0     rpm 3/3 until 60s         | rpm 3/3
                @60                               | rpm 2/3
                d:0     taken                     | rpm 3/3
                e:0     rpm 3/3 until 70s         | rpm 3/3
                @70                               | rpm 2/3
                e:0     taken                     | rpm 3/3
            "#]],
        );
    }

    #[test]
    fn requests_within_a_second_leave_together_and_never_early() {
        check(
            "rpm=2",
            "@0.2 a:0 @1.1 b:0 @60.2 c:0 @61.0 c:0 @61.1 c:0 d:0 e:0",
            expect![[r#"
                @0.2                              | rpm 0/2
                a:0     taken                     | rpm 1/2
                @1.1                              | rpm 1/2
                b:0     taken                     | rpm 2/2
                @60.2                             | rpm 2/2
                c:0     rpm 2/2 until 61.1s       | rpm 2/2
                @61.0                             | rpm 2/2
                c:0     rpm 2/2 until 61.1s       | rpm 2/2
                @61.1                             | rpm 0/2
                c:0     taken                     | rpm 1/2
                d:0     taken                     | rpm 2/2
                e:0     rpm 2/2 until 121.1s      | rpm 2/2
            "#]],
        );
        check(
            "rpm=2",
            "a:0 @1 b:0 @60 c:0 d:0",
            expect![[r#"
            a:0     taken                     | rpm 1/2
            @1                                | rpm 1/2
            b:0     taken                     | rpm 2/2
            @60                               | rpm 1/2
            c:0     taken                     | rpm 2/2
            d:0     rpm 2/2 until 61s         | rpm 2/2
        "#]],
        );
    }

    #[test]
    fn a_request_waits_for_as_many_tokens_as_it_needs() {
        check(
            "tpm=100",
            "a:50 @10 b:30 @20 c:20 d:1 d:50 d:51 d:81 d:100 e:0",
            expect![[r#"
                a:50    taken                     | tpm 50/100
                @10                               | tpm 50/100
                b:30    taken                     | tpm 80/100
                @20                               | tpm 80/100
                c:20    taken                     | tpm 100/100
                d:1     tpm 100/100 until 60s     | tpm 100/100
                d:50    tpm 100/100 until 60s     | tpm 100/100
                d:51    tpm 100/100 until 70s     | tpm 100/100
                d:81    tpm 100/100 until 80s     | tpm 100/100
                d:100   tpm 100/100 until 80s     | tpm 100/100
                e:0     taken                     | tpm 100/100
            "#]],
        );
    }

    #[test]
    fn more_than_the_whole_limit_never_fits() {
        check(
            "tpm=100",
            "a:101 a:100 @60 a:101 a:18446744073709551615",
            expect![[r#"
            a:101   tpm 0/100 until 60s       | tpm 0/100
            a:100   taken                     | tpm 100/100
            @60                               | tpm 0/100
            a:101   tpm 0/100 until 120s      | tpm 0/100
            a:18446744073709551615 tpm 0/100 until 120s      | tpm 0/100
        "#]],
        );
        check(
            "rpm=0",
            "a:0 @60 a:0",
            expect![[r#"
            a:0     rpm 0/0 until 60s         | rpm 0/0
            @60                               | rpm 0/0
            a:0     rpm 0/0 until 120s        | rpm 0/0
        "#]],
        );
    }

    #[test]
    fn an_estimate_is_corrected_where_it_was_taken() {
        check(
            "tpm=100",
            "a:50 @10 b:20 @20 a=80 c:1 @60 c:1",
            expect![[r#"
            a:50    taken                     | tpm 50/100
            @10                               | tpm 50/100
            b:20    taken                     | tpm 70/100
            @20                               | tpm 70/100
            a=80                              | tpm 100/100
            c:1     tpm 100/100 until 60s     | tpm 100/100
            @60                               | tpm 20/100
            c:1     taken                     | tpm 21/100
        "#]],
        );
        check(
            "tpm=100",
            "a:50 @30 a=10 b:90 c:1 @60 c:10",
            expect![[r#"
            a:50    taken                     | tpm 50/100
            @30                               | tpm 50/100
            a=10                              | tpm 10/100
            b:90    taken                     | tpm 100/100
            c:1     tpm 100/100 until 60s     | tpm 100/100
            @60                               | tpm 90/100
            c:10    taken                     | tpm 100/100
        "#]],
        );
        // Over the limit: even a request without tokens waits.
        check(
            "tpm=100",
            "a:50 a=300 b:0 @60 b:0",
            expect![[r#"
            a:50    taken                     | tpm 50/100
            a=300                             | tpm 300/100
            b:0     tpm 300/100 until 60s     | tpm 300/100
            @60                               | tpm 0/100
            b:0     taken                     | tpm 0/100
        "#]],
        );
        // The bucket has left, whether or not something came after.
        check(
            "tpm=100",
            "a:50 @60 a=80 b:100",
            expect![[r#"
            a:50    taken                     | tpm 50/100
            @60                               | tpm 0/100
            a=80                              | tpm 0/100
            b:100   taken                     | tpm 100/100
        "#]],
        );
        check(
            "tpm=100",
            "a:50 @61 b:10 @62 a=80 b=20",
            expect![[r#"
            a:50    taken                     | tpm 50/100
            @61                               | tpm 0/100
            b:10    taken                     | tpm 10/100
            @62                               | tpm 10/100
            a=80                              | tpm 10/100
            b=20                              | tpm 20/100
        "#]],
        );
    }

    #[test]
    fn what_was_never_sent_was_never_taken() {
        check(
            "rpm=1 rpd=2 tpm=50 tpd=100",
            "a:50 b:1 @5 a=back b:50 c:1",
            expect![[r#"
                a:50    taken                     | rpm 1/1 rpd 1/2 tpm 50/50 tpd 50/100
                b:1     tpm 50/50 until 60s       | rpm 1/1 rpd 1/2 tpm 50/50 tpd 50/100
                @5                                | rpm 1/1 rpd 1/2 tpm 50/50 tpd 50/100
                a=back                            | rpm 0/1 rpd 0/2 tpm 0/50 tpd 0/100
                b:50    taken                     | rpm 1/1 rpd 1/2 tpm 50/50 tpd 50/100
                c:1     tpm 50/50 until 65s       | rpm 1/1 rpd 1/2 tpm 50/50 tpd 50/100
            "#]],
        );
        check(
            "rpm=1 rpd=2 tpm=50 tpd=100",
            "a:50 @60 a=back",
            expect![[r#"
            a:50    taken                     | rpm 1/1 rpd 1/2 tpm 50/50 tpd 50/100
            @60                               | rpm 0/1 rpd 1/2 tpm 0/50 tpd 50/100
            a=back                            | rpm 0/1 rpd 0/2 tpm 0/50 tpd 0/100
        "#]],
        );
    }

    #[test]
    fn all_limits_hold_or_nothing_is_taken() {
        check(
            "rpm=2 rpd=3 tpm=100 tpd=150",
            "a:60 b:60 b:40 c:1 @60 c:60 c:50 d:0 @86399 d:0 @86400 d:0",
            expect![[r#"
                a:60    taken                     | rpm 1/2 rpd 1/3 tpm 60/100 tpd 60/150
                b:60    tpm 60/100 until 60s      | rpm 1/2 rpd 1/3 tpm 60/100 tpd 60/150
                b:40    taken                     | rpm 2/2 rpd 2/3 tpm 100/100 tpd 100/150
                c:1     tpm 100/100 until 60s     | rpm 2/2 rpd 2/3 tpm 100/100 tpd 100/150
                @60                               | rpm 0/2 rpd 2/3 tpm 0/100 tpd 100/150
                c:60    tpd 100/150 until 86400s  | rpm 0/2 rpd 2/3 tpm 0/100 tpd 100/150
                c:50    taken                     | rpm 1/2 rpd 3/3 tpm 50/100 tpd 150/150
                d:0     rpd 3/3 until 86460s      | rpm 1/2 rpd 3/3 tpm 50/100 tpd 150/150
                @86399                            | rpm 0/2 rpd 3/3 tpm 0/100 tpd 150/150
                d:0     rpd 3/3 until 86460s      | rpm 0/2 rpd 3/3 tpm 0/100 tpd 150/150
                @86400                            | rpm 0/2 rpd 3/3 tpm 0/100 tpd 150/150
                d:0     rpd 3/3 until 86460s      | rpm 0/2 rpd 3/3 tpm 0/100 tpd 150/150
            "#]],
        );
    }

    #[test]
    fn requests_within_five_minutes_leave_the_day_together() {
        check(
            "rpd=2",
            "a:0 @299 b:0 @86400 c:0 @86698 c:0 @86699 c:0 d:0 e:0",
            expect![[r#"
                a:0     taken                     | rpd 1/2
                @299                              | rpd 1/2
                b:0     taken                     | rpd 2/2
                @86400                            | rpd 2/2
                c:0     rpd 2/2 until 86699s      | rpd 2/2
                @86698                            | rpd 2/2
                c:0     rpd 2/2 until 86699s      | rpd 2/2
                @86699                            | rpd 0/2
                c:0     taken                     | rpd 1/2
                d:0     taken                     | rpd 2/2
                e:0     rpd 2/2 until 173099s     | rpd 2/2
            "#]],
        );
    }

    #[test]
    fn a_moment_that_comes_late_counts_as_the_latest() {
        check(
            "rpm=2",
            "@10 a:0 @5 b:0 @65 c:0 @70 c:0",
            expect![[r#"
            @10                               | rpm 0/2
            a:0     taken                     | rpm 1/2
            @5                                | rpm 1/2
            b:0     taken                     | rpm 2/2
            @65                               | rpm 2/2
            c:0     rpm 2/2 until 70s         | rpm 2/2
            @70                               | rpm 0/2
            c:0     taken                     | rpm 1/2
        "#]],
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut windows, start) = (Windows::new(limits("rpm=1000000 rpd=1000000")), Instant::now());
        for second in 0..200_000_u32 {
            windows.take(1, start + Duration::from_secs(1) * second).unwrap();
        }
        let kept: Vec<usize> = windows.0.iter().map(|window| window.buckets.len()).collect();
        assert_eq!(kept, [60, 289]);
    }

    /// What becomes of one of the requests in flight.
    #[derive(Clone, Copy, Debug)]
    enum End {
        None,
        Settled(u64),
        GivenBack,
    }

    /// How long after the one before, how many tokens, what ends after it, and which of those in flight.
    fn requests() -> impl Strategy<Value = Vec<(Duration, u64, End, usize)>> {
        let gap = prop_oneof![
            4 => 0_u64..700,
            3 => 0_u64..30_000,
            2 => 0_u64..400_000,
            1 => 0_u64..40_000_000,
        ];
        let end = prop_oneof![
            2 => Just(End::None),
            2 => (0_u64..80).prop_map(End::Settled),
            1 => Just(End::GivenBack),
        ];
        let gap = gap.prop_map(Duration::from_millis);
        prop::collection::vec((gap, 0_u64..60, end, any::<usize>()), 0..150)
    }

    proptest! {
        #[test]
        fn no_window_of_true_length_ever_lets_more_through_than_its_limit(requests in requests()) {
            let limits = limits("rpm=7 rpd=30 tpm=150 tpd=700");
            let windows = [("rpm", 7, MINUTE, 60), ("rpd", 30, DAY, 288), ("tpm", 150, MINUTE, 60), ("tpd", 700, DAY, 288)];
            let mut real = Windows::new(limits);
            // Every request that was let through with what it counts for, requests and tokens; and those in flight.
            let (mut now, mut sent, mut in_flight) = (Instant::now(), Vec::<(Instant, u64, u64)>::new(), Vec::new());
            for (gap, tokens, end, which) in requests {
                now += gap;
                let used = |limit: &str, window: Duration, sent: &[(Instant, u64, u64)]| -> u64 {
                    let within = sent.iter().filter(|(at, ..)| now.duration_since(*at) < window);
                    within.map(|&(_, requests, tokens)| if limit.starts_with('r') { requests } else { tokens }).sum()
                };
                match real.take(tokens, now) {
                    Ok(taken) => {
                        in_flight.push((sent.len(), taken));
                        sent.push((now, 1, tokens));
                        for (limit, most, window, _) in windows {
                            prop_assert!(used(limit, window, &sent) <= most, "{}", limit);
                        }
                    }
                    Err(refusal) => {
                        let (limit, most, window, parts) = *windows.iter().find(|of| of.0 == refusal.limit).unwrap();
                        let wanted = if limit.starts_with('r') { 1 } else { tokens };
                        prop_assert!(refusal.used + wanted > most);
                        prop_assert!(refusal.used >= used(limit, window, &sent));
                        prop_assert!(refusal.used <= used(limit, window + window / parts, &sent), "kept too long");
                        prop_assert!(refusal.until > now);
                        prop_assert_eq!(real.check(tokens, refusal.until), Ok(()));
                        let just_before = refusal.until.checked_sub(Duration::from_nanos(1)).unwrap();
                        prop_assert!(real.check(tokens, just_before).is_err());
                    }
                }
                if !in_flight.is_empty() && !matches!(end, End::None) {
                    let (index, taken) = in_flight.swap_remove(which % in_flight.len());
                    if let End::Settled(actual) = end {
                        real.settle(taken, actual, now);
                        sent[index].2 = actual;
                    } else {
                        real.give_back(taken, now);
                        sent[index] = (sent[index].0, 0, 0);
                    }
                }
            }
        }
    }
}
