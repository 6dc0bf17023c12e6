//! Circuit breaker: a target that keeps failing is left alone, and then tried with care.
//!
//! ```text
//! closed ── failures in a row ──> open ── timeout ──> half-open ── successes in a row ──> closed
//!                                  ^                      │
//!                                  └────── a failure ─────┘
//! ```
//!
//! A call is admitted, and settled once it has ended. Each change of state begins a new generation, and an [`Admission`]
//! carries the one it was given in. A call that began before the last change tells of a target as it was then: it moves
//! nothing, and it holds no probe place that it could free. A burst of ten failures therefore opens the breaker once, and
//! the five stragglers do not disturb the probe that comes later.
//!
//! A breaker has no timer. Once the timeout has passed it is half-open to everybody who looks, and the first call that is
//! admitted makes it so.

use crate::hold::after;
use std::time::{Duration, Instant};

/// When to open, and how to find the way back. Zero counts as one wherever a number is asked for: a breaker that never
/// opens is no breaker, and one without probes would never close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Failures in a row that open it.
    pub failure_threshold: u32,
    /// Successes in a row that close it when half-open.
    pub success_threshold: u32,
    /// Calls in flight at once when half-open.
    pub max_half_open: u32,
    /// From opening to half-open.
    pub timeout: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            failure_threshold: 5,
            success_threshold: 1,
            max_half_open: 1,
            timeout: Duration::from_secs(30),
        }
    }
}

/// Leave to make one call. To be handed back with [`Breaker::settle`] whatever became of the call: one that is lost may
/// take a probe place with it for good.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an admission that is not settled keeps its probe place"]
pub struct Admission {
    generation: u64,
    /// It has given its probe place to the next already.
    yielded: bool,
}

/// No call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When the next call may be made. `None` when half-open with every probe place taken: it depends on the probes.
    pub until: Option<Instant>,
}

/// What a call says about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Success,
    Failure,
    /// Nothing about its health: a 429, a prompt too long, a client that went away.
    Neutral,
}

/// A change worth telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Also when a probe failed and it opened again.
    Opened {
        until: Instant,
    },
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Closed {
        /// In a row.
        failures: u32,
    },
    Open {
        until: Instant,
    },
    HalfOpen {
        /// Calls in flight that hold a place.
        probing: u32,
        /// In a row.
        successes: u32,
    },
}

#[derive(Clone, Debug)]
pub struct Breaker {
    policy: Policy,
    /// As of the last call: open for longer than the timeout is half-open, which [`Self::state`] knows.
    state: State,
    generation: u64,
    recovered_at: Option<Instant>,
}

impl Breaker {
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: State::Closed { failures: 0 },
            generation: 0,
            recovered_at: None,
        }
    }

    /// Asks for leave to make a call. Takes a probe place when half-open.
    pub fn admit(&mut self, now: Instant) -> Result<Admission, Refused> {
        self.may_begin(now)?;
        self.ripen(now);
        if let State::HalfOpen { probing, .. } = &mut self.state {
            *probing += 1;
        }
        Ok(Admission {
            generation: self.generation,
            yielded: false,
        })
    }

    /// The call has shown a sign of life and goes on: its probe place is free for the next, and its result still counts.
    ///
    /// A stream may last for an hour; held until its end, the place would keep everybody else away from a target that
    /// answers.
    pub fn yield_place(&mut self, admission: &mut Admission) {
        if admission.generation != self.generation || std::mem::replace(&mut admission.yielded, true) {
            return;
        }
        if let State::HalfOpen { probing, .. } = &mut self.state {
            *probing = probing.saturating_sub(1);
        }
    }

    /// What [`Self::admit`] would say, without taking anything.
    pub fn may_begin(&self, now: Instant) -> Result<(), Refused> {
        match self.state(now) {
            State::Closed { .. } => Ok(()),
            State::Open { until } => Err(Refused { until: Some(until) }),
            State::HalfOpen { probing, .. } if probing < self.policy.max_half_open.max(1) => Ok(()),
            State::HalfOpen { .. } => Err(Refused { until: None }),
        }
    }

    /// Takes a call's result in.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an admission is used up, so that no call is settled twice"
    )]
    pub fn settle(&mut self, admission: Admission, verdict: Verdict, now: Instant) -> Option<Change> {
        if admission.generation != self.generation {
            return None;
        }
        if let State::HalfOpen { probing, .. } = &mut self.state
            && !admission.yielded
        {
            *probing = probing.saturating_sub(1);
        }
        match verdict {
            Verdict::Success => self.succeeded(now),
            Verdict::Failure => self.failed(now),
            Verdict::Neutral => None,
        }
    }

    /// Takes in the result of a probe that is no caller's request, and for which nobody was asked for leave.
    ///
    /// While open, a success counts as the first one when half-open, even before the timeout. A failure leaves the timeout
    /// as it is: were it to begin again each time, a probe that can never succeed, such as one of a path that the upstream
    /// does not have, would keep the target out for good. While closed, calls alone decide.
    pub fn probed(&mut self, ok: bool, now: Instant) -> Option<Change> {
        self.ripen(now);
        match (self.state, ok) {
            (State::Closed { .. }, _) | (State::Open { .. }, false) => None,
            (State::Open { .. }, true) => {
                self.half_open();
                self.succeeded(now)
            }
            (State::HalfOpen { .. }, true) => self.succeeded(now),
            (State::HalfOpen { .. }, false) => self.failed(now),
        }
    }

    /// Looks, and takes nothing.
    #[must_use]
    pub fn state(&self, now: Instant) -> State {
        match self.state {
            State::Open { until } if until <= now => HALF_OPEN,
            state @ (State::Closed { .. } | State::Open { .. } | State::HalfOpen { .. }) => state,
        }
    }

    /// When it last closed after having been open, for a slow ramp. It may have opened again since.
    #[must_use]
    pub const fn recovered_at(&self) -> Option<Instant> {
        self.recovered_at
    }

    /// Makes it half-open where the timeout has passed.
    fn ripen(&mut self, now: Instant) {
        if self.state(now) != self.state {
            self.half_open();
        }
    }

    fn succeeded(&mut self, now: Instant) -> Option<Change> {
        match &mut self.state {
            State::Closed { failures } => {
                *failures = 0;
                None
            }
            State::Open { .. } => None,
            State::HalfOpen { successes, .. } => {
                *successes += 1;
                if *successes < self.policy.success_threshold.max(1) {
                    return None;
                }
                self.enter(State::Closed { failures: 0 });
                self.recovered_at = Some(now);
                Some(Change::Closed)
            }
        }
    }

    fn failed(&mut self, now: Instant) -> Option<Change> {
        match &mut self.state {
            State::Closed { failures } => {
                *failures += 1;
                if *failures < self.policy.failure_threshold.max(1) {
                    return None;
                }
            }
            State::Open { .. } => return None,
            State::HalfOpen { .. } => {}
        }
        let until = after(now, self.policy.timeout);
        self.enter(State::Open { until });
        Some(Change::Opened { until })
    }

    fn half_open(&mut self) {
        self.enter(HALF_OPEN);
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.generation += 1;
    }
}

const HALF_OPEN: State = State::HalfOpen {
    probing: 0,
    successes: 0,
};

#[cfg(test)]
mod tests {
    #![expect(
        clippy::needless_pass_by_value,
        reason = "an expectation is written where it is handed over"
    )]

    use super::{Admission, Breaker, Change, Policy, Refused, State, Verdict};
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::time::{Duration, Instant};

    fn policy(failure_threshold: u32, success_threshold: u32, max_half_open: u32) -> Policy {
        Policy {
            failure_threshold,
            success_threshold,
            max_half_open,
            timeout: Duration::from_secs(30),
        }
    }

    /// `a` begins call a; `a=ok`, `a=bad` and `a=neutral` settle it; `probe=ok` and `probe=bad` come from outside; `@7` is
    /// second 7. The answer and the state after each step, times in seconds from the start.
    #[track_caller]
    fn check(policy: Policy, script: &str, want: Expect) {
        let start = Instant::now();
        let seconds = |at: Instant| at.duration_since(start).as_secs();
        let (mut breaker, mut now, mut calls, mut seen) = (Breaker::new(policy), start, BTreeMap::new(), String::new());
        let told = |change: Option<Change>| match change {
            None => "-".to_owned(),
            Some(Change::Opened { until }) => format!("opened until {}", seconds(until)),
            Some(Change::Closed) => "closed".to_owned(),
        };
        for step in script.split_whitespace() {
            let answer = if let Some(at) = step.strip_prefix('@') {
                now = start + Duration::from_secs(at.parse().unwrap());
                "-".to_owned()
            } else if let Some(ok) = step.strip_prefix("probe=") {
                told(breaker.probed(ok == "ok", now))
            } else if let Some((call, verdict)) = step.split_once('=') {
                let verdict = match verdict {
                    "ok" => Verdict::Success,
                    "bad" => Verdict::Failure,
                    "neutral" => Verdict::Neutral,
                    other => panic!("{other}"),
                };
                told(breaker.settle(calls.remove(call).unwrap(), verdict, now))
            } else {
                let expected = breaker.may_begin(now);
                let admitted = breaker.admit(now);
                assert_eq!(admitted.as_ref().map(|_| ()).map_err(|refused| *refused), expected);
                match admitted {
                    Ok(admission) => {
                        calls.insert(step, admission);
                        "admitted".to_owned()
                    }
                    Err(Refused { until: Some(until) }) => format!("refused until {}", seconds(until)),
                    Err(Refused { until: None }) => "refused, probes full".to_owned(),
                }
            };
            let state = match breaker.state(now) {
                State::Closed { failures } => format!("closed, {failures} failed"),
                State::Open { until } => format!("open until {}", seconds(until)),
                State::HalfOpen { probing, successes } => format!("half-open, {probing} probing, {successes} ok"),
            };
            writeln!(seen, "{step:9} {answer:20} | {state}").unwrap();
        }
        if let Some(at) = breaker.recovered_at() {
            writeln!(seen, "recovered at {}", seconds(at)).unwrap();
        }
        want.assert_eq(&seen);
    }

    #[test]
    fn failures_in_a_row_open_it() {
        check(
            policy(3, 1, 1),
            "a a=bad b b=bad c c=ok d d=bad e e=bad f f=neutral g g=bad h @29 i",
            expect![[r#"
                a         admitted             | closed, 0 failed
                a=bad     -                    | closed, 1 failed
                b         admitted             | closed, 1 failed
                b=bad     -                    | closed, 2 failed
                c         admitted             | closed, 2 failed
                c=ok      -                    | closed, 0 failed
                d         admitted             | closed, 0 failed
                d=bad     -                    | closed, 1 failed
                e         admitted             | closed, 1 failed
                e=bad     -                    | closed, 2 failed
                f         admitted             | closed, 2 failed
                f=neutral -                    | closed, 2 failed
                g         admitted             | closed, 2 failed
                g=bad     opened until 30      | open until 30
                h         refused until 30     | open until 30
                @29       -                    | open until 30
                i         refused until 30     | open until 30
            "#]],
        );
    }

    #[test]
    fn a_probe_that_succeeds_closes_it() {
        check(
            policy(1, 1, 1),
            "a @5 a=bad @34 b @35 c d @40 c=ok e e=bad",
            expect![[r#"
                a         admitted             | closed, 0 failed
                @5        -                    | closed, 0 failed
                a=bad     opened until 35      | open until 35
                @34       -                    | open until 35
                b         refused until 35     | open until 35
                @35       -                    | half-open, 0 probing, 0 ok
                c         admitted             | half-open, 1 probing, 0 ok
                d         refused, probes full | half-open, 1 probing, 0 ok
                @40       -                    | half-open, 1 probing, 0 ok
                c=ok      closed               | closed, 0 failed
                e         admitted             | closed, 0 failed
                e=bad     opened until 70      | open until 70
                recovered at 40
            "#]],
        );
    }

    #[test]
    fn a_probe_that_fails_opens_it_for_the_whole_timeout_again() {
        check(
            policy(1, 1, 1),
            "a a=bad @30 b @37 b=bad @66 c @67 d",
            expect![[r#"
            a         admitted             | closed, 0 failed
            a=bad     opened until 30      | open until 30
            @30       -                    | half-open, 0 probing, 0 ok
            b         admitted             | half-open, 1 probing, 0 ok
            @37       -                    | half-open, 1 probing, 0 ok
            b=bad     opened until 67      | open until 67
            @66       -                    | open until 67
            c         refused until 67     | open until 67
            @67       -                    | half-open, 0 probing, 0 ok
            d         admitted             | half-open, 1 probing, 0 ok
        "#]],
        );
    }

    #[test]
    fn as_many_successes_as_asked_for_close_it() {
        check(
            policy(1, 3, 2),
            "a a=bad @30 b c d b=ok d c=ok e d=ok e=bad",
            expect![[r#"
                a         admitted             | closed, 0 failed
                a=bad     opened until 30      | open until 30
                @30       -                    | half-open, 0 probing, 0 ok
                b         admitted             | half-open, 1 probing, 0 ok
                c         admitted             | half-open, 2 probing, 0 ok
                d         refused, probes full | half-open, 2 probing, 0 ok
                b=ok      -                    | half-open, 1 probing, 1 ok
                d         admitted             | half-open, 2 probing, 1 ok
                c=ok      -                    | half-open, 1 probing, 2 ok
                e         admitted             | half-open, 2 probing, 2 ok
                d=ok      closed               | closed, 0 failed
                e=bad     -                    | closed, 0 failed
                recovered at 30
            "#]],
        );
    }

    #[test]
    fn a_neutral_result_frees_its_place_and_moves_nothing() {
        check(
            policy(2, 1, 1),
            "a a=bad b b=neutral c c=bad @30 d e d=neutral f f=ok",
            expect![[r#"
                a         admitted             | closed, 0 failed
                a=bad     -                    | closed, 1 failed
                b         admitted             | closed, 1 failed
                b=neutral -                    | closed, 1 failed
                c         admitted             | closed, 1 failed
                c=bad     opened until 30      | open until 30
                @30       -                    | half-open, 0 probing, 0 ok
                d         admitted             | half-open, 1 probing, 0 ok
                e         refused, probes full | half-open, 1 probing, 0 ok
                d=neutral -                    | half-open, 0 probing, 0 ok
                f         admitted             | half-open, 1 probing, 0 ok
                f=ok      closed               | closed, 0 failed
                recovered at 30
            "#]],
        );
    }

    #[test]
    fn a_call_from_before_the_last_change_moves_nothing_and_frees_nothing() {
        check(
            policy(1, 1, 1),
            "a b c d e a=bad b=bad c=ok @30 f d=neutral g e=bad f=ok",
            expect![[r#"
                a         admitted             | closed, 0 failed
                b         admitted             | closed, 0 failed
                c         admitted             | closed, 0 failed
                d         admitted             | closed, 0 failed
                e         admitted             | closed, 0 failed
                a=bad     opened until 30      | open until 30
                b=bad     -                    | open until 30
                c=ok      -                    | open until 30
                @30       -                    | half-open, 0 probing, 0 ok
                f         admitted             | half-open, 1 probing, 0 ok
                d=neutral -                    | half-open, 1 probing, 0 ok
                g         refused, probes full | half-open, 1 probing, 0 ok
                e=bad     -                    | half-open, 1 probing, 0 ok
                f=ok      closed               | closed, 0 failed
                recovered at 30
            "#]],
        );
        // Both began half-open, one of them before it opened again.
        check(
            policy(1, 2, 2),
            "a a=bad @30 b c b=bad @60 d e c=ok f d=ok e=ok",
            expect![[r#"
                a         admitted             | closed, 0 failed
                a=bad     opened until 30      | open until 30
                @30       -                    | half-open, 0 probing, 0 ok
                b         admitted             | half-open, 1 probing, 0 ok
                c         admitted             | half-open, 2 probing, 0 ok
                b=bad     opened until 60      | open until 60
                @60       -                    | half-open, 0 probing, 0 ok
                d         admitted             | half-open, 1 probing, 0 ok
                e         admitted             | half-open, 2 probing, 0 ok
                c=ok      -                    | half-open, 2 probing, 0 ok
                f         refused, probes full | half-open, 2 probing, 0 ok
                d=ok      -                    | half-open, 1 probing, 1 ok
                e=ok      closed               | closed, 0 failed
                recovered at 60
            "#]],
        );
        // A failure from before the recovery.
        check(
            policy(1, 1, 1),
            "a b a=bad @30 c c=ok b=bad d",
            expect![[r#"
            a         admitted             | closed, 0 failed
            b         admitted             | closed, 0 failed
            a=bad     opened until 30      | open until 30
            @30       -                    | half-open, 0 probing, 0 ok
            c         admitted             | half-open, 1 probing, 0 ok
            c=ok      closed               | closed, 0 failed
            b=bad     -                    | closed, 0 failed
            d         admitted             | closed, 0 failed
            recovered at 30
        "#]],
        );
    }

    #[test]
    fn a_probe_from_outside_shortens_the_way_back() {
        check(
            policy(1, 1, 1),
            "probe=bad probe=ok a a=bad @3 probe=bad @5 probe=ok",
            expect![[r#"
                probe=bad -                    | closed, 0 failed
                probe=ok  -                    | closed, 0 failed
                a         admitted             | closed, 0 failed
                a=bad     opened until 30      | open until 30
                @3        -                    | open until 30
                probe=bad -                    | open until 30
                @5        -                    | open until 30
                probe=ok  closed               | closed, 0 failed
                recovered at 5
            "#]],
        );
        check(
            policy(1, 2, 1),
            "a a=bad @5 probe=ok b @6 probe=ok c b=bad",
            expect![[r#"
                a         admitted             | closed, 0 failed
                a=bad     opened until 30      | open until 30
                @5        -                    | open until 30
                probe=ok  -                    | half-open, 0 probing, 1 ok
                b         admitted             | half-open, 1 probing, 1 ok
                @6        -                    | half-open, 1 probing, 1 ok
                probe=ok  closed               | closed, 0 failed
                c         admitted             | closed, 0 failed
                b=bad     -                    | closed, 0 failed
                recovered at 6
            "#]],
        );
        check(
            policy(1, 3, 1),
            "a a=bad @5 probe=ok b @6 probe=bad b=ok @36 probe=bad",
            expect![[r#"
                a         admitted             | closed, 0 failed
                a=bad     opened until 30      | open until 30
                @5        -                    | open until 30
                probe=ok  -                    | half-open, 0 probing, 1 ok
                b         admitted             | half-open, 1 probing, 1 ok
                @6        -                    | half-open, 1 probing, 1 ok
                probe=bad opened until 36      | open until 36
                b=ok      -                    | open until 36
                @36       -                    | half-open, 0 probing, 0 ok
                probe=bad opened until 66      | open until 66
            "#]],
        );
        // Nobody has looked since the timeout passed.
        check(
            policy(1, 2, 1),
            "a a=bad @40 probe=ok",
            expect![[r#"
            a         admitted             | closed, 0 failed
            a=bad     opened until 30      | open until 30
            @40       -                    | half-open, 0 probing, 0 ok
            probe=ok  -                    | half-open, 0 probing, 1 ok
        "#]],
        );
    }

    #[test]
    fn zero_counts_as_one() {
        check(
            policy(0, 0, 0),
            "a a=bad @30 b c b=ok",
            expect![[r#"
            a         admitted             | closed, 0 failed
            a=bad     opened until 30      | open until 30
            @30       -                    | half-open, 0 probing, 0 ok
            b         admitted             | half-open, 1 probing, 0 ok
            c         refused, probes full | half-open, 1 probing, 0 ok
            b=ok      closed               | closed, 0 failed
            recovered at 30
        "#]],
        );
    }

    #[test]
    fn the_usual_policy() {
        let want = Policy {
            timeout: Duration::from_secs(30),
            ..policy(5, 1, 1)
        };
        assert_eq!(Policy::default(), want);
    }

    #[test]
    fn a_timeout_without_end_does_not_overflow() {
        let endless = Policy {
            timeout: Duration::MAX,
            ..policy(1, 1, 1)
        };
        let (mut breaker, now) = (Breaker::new(endless), Instant::now());
        let call = breaker.admit(now).unwrap();
        breaker.settle(call, Verdict::Failure, now);
        assert!(breaker.admit(now + Duration::from_secs(1_000_000_000)).is_err());
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Begin,
        /// Settles the call at this place among those in flight, counted round.
        Settle(usize, Verdict),
        Probe(bool),
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let verdict = prop_oneof![
            2 => Just(Verdict::Success),
            3 => Just(Verdict::Failure),
            1 => Just(Verdict::Neutral),
        ];
        let step = prop_oneof![
            8 => Just(Step::Begin),
            6 => (any::<usize>(), verdict).prop_map(|(which, verdict)| Step::Settle(which, verdict)),
            1 => any::<bool>().prop_map(Step::Probe),
            3 => (0_u64..40).prop_map(Step::Wait),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn probes_in_flight_never_exceed_their_places(
            numbers in (1_u32..4, 1_u32..4, 1_u32..4),
            steps in steps(),
        ) {
            let policy = policy(numbers.0, numbers.1, numbers.2);
            let (mut breaker, mut now) = (Breaker::new(policy.clone()), Instant::now());
            let mut in_flight: Vec<Admission> = Vec::new();
            for step in steps {
                let before = breaker.state(now);
                match step {
                    Step::Begin => {
                        let expected = breaker.may_begin(now);
                        prop_assert_eq!(breaker.state(now), before);
                        let admitted = breaker.admit(now);
                        prop_assert_eq!(admitted.as_ref().map(|_| ()).map_err(|refused| *refused), expected);
                        in_flight.extend(admitted);
                        if let State::Open { until } = before {
                            prop_assert_eq!(expected, Err(Refused { until: Some(until) }));
                        }
                    }
                    Step::Settle(_, _) if in_flight.is_empty() => {}
                    Step::Settle(which, verdict) => {
                        let call = in_flight.swap_remove(which % in_flight.len());
                        let late = call.generation != breaker.generation;
                        let change = breaker.settle(call, verdict, now);
                        prop_assert!(!late || (change.is_none() && breaker.state(now) == before), "a late result moved it");
                    }
                    Step::Probe(ok) => {
                        breaker.probed(ok, now);
                        if let (State::Open { until }, State::Open { until: after }) = (before, breaker.state(now)) {
                            prop_assert!(after >= until);
                        }
                    }
                    Step::Wait(seconds) => now += Duration::from_secs(seconds),
                }
                let held = in_flight.iter().filter(|call| call.generation == breaker.generation).count();
                match breaker.state(now) {
                    State::Closed { failures } => prop_assert!(failures < policy.failure_threshold),
                    State::Open { until } => prop_assert!(until > now && until <= now + policy.timeout && held == 0),
                    State::HalfOpen { probing, successes } => {
                        prop_assert!(probing <= policy.max_half_open && successes < policy.success_threshold);
                        prop_assert_eq!(probing as usize, held);
                    }
                }
            }
        }
    }
}
