//! How fast each model answers: the latest latencies, and their median.
//!
//! The median is asked for on every request and a latency is added once per answer. So the sorting happens where one is
//! added: the samples are kept twice, by age and by latency, and the median is one look at the middle. Only where
//! samples have expired since the last one was added are they stepped over, at most [`KEPT`] of them.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Samples per model. The oldest leaves first.
pub const KEPT: usize = 100;
/// How long a sample counts: what a model did longer ago says little about now.
pub const LIFE: Duration = Duration::from_secs(300);
/// Models with samples. Names come from callers, so their number is bounded.
pub const MODELS: usize = 256;

/// Ordered by latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sample {
    latency: Duration,
    at: Instant,
}

impl Sample {
    fn is_live(self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < LIFE
    }
}

/// The latest latencies of one model.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Oldest first.
    by_age: VecDeque<Sample>,
    /// The same, fastest first.
    by_latency: Vec<Sample>,
}

impl Samples {
    pub fn add(&mut self, latency: Duration, now: Instant) {
        // Whoever waited for the lock may hand over an older moment than the one before.
        let at = self.by_age.back().map_or(now, |last| last.at.max(now));
        while self.by_age.len() >= KEPT || self.by_age.front().is_some_and(|oldest| !oldest.is_live(at)) {
            if let Some(oldest) = self.by_age.pop_front()
                && let Ok(place) = self.by_latency.binary_search(&oldest)
            {
                self.by_latency.remove(place);
            }
        }
        let sample = Sample { latency, at };
        let place = self.by_latency.partition_point(|other| *other < sample);
        self.by_latency.insert(place, sample);
        self.by_age.push_back(sample);
    }

    /// The median of what is live; of an even number, the upper of the two in the middle.
    #[must_use]
    pub fn p50(&self, now: Instant) -> Option<Duration> {
        let live = self.len(now);
        if live == self.by_latency.len() {
            return self.by_latency.get(live / 2).map(|sample| sample.latency);
        }
        let mut by_latency = self.by_latency.iter().filter(|sample| sample.is_live(now));
        by_latency.nth(live / 2).map(|sample| sample.latency)
    }

    /// How many are live.
    #[must_use]
    pub fn len(&self, now: Instant) -> usize {
        match self.by_age.front() {
            Some(oldest) if !oldest.is_live(now) => {
                self.by_age.len() - self.by_age.partition_point(|sample| !sample.is_live(now))
            }
            Some(_) | None => self.by_age.len(),
        }
    }

    #[must_use]
    pub fn is_empty(&self, now: Instant) -> bool {
        self.len(now) == 0
    }
}

#[derive(Clone, Debug, Default)]
struct Entry {
    samples: Samples,
    /// Of the last sample, on a clock that ticks once per sample.
    touched: u64,
}

/// The latencies of every upstream model that answered lately, [`MODELS`] at most: a new one takes the place of the one
/// that has not answered for longest.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    models: BTreeMap<String, Entry>,
    ticks: u64,
}

impl Latencies {
    pub fn add(&mut self, model: &str, latency: Duration, now: Instant) {
        self.ticks += 1;
        if !self.models.contains_key(model) {
            if self.models.len() >= MODELS {
                self.evict();
            }
            self.models.insert(model.to_owned(), Entry::default());
        }
        if let Some(entry) = self.models.get_mut(model) {
            entry.touched = self.ticks;
            entry.samples.add(latency, now);
        }
    }

    /// `None` where the model has not answered lately.
    #[must_use]
    pub fn p50(&self, model: &str, now: Instant) -> Option<Duration> {
        self.models.get(model)?.samples.p50(now)
    }

    /// Model, median and number of samples, in the order of the names. Models without a live sample are left out.
    pub fn iter(&self, now: Instant) -> impl Iterator<Item = (&str, Duration, usize)> {
        self.models.iter().filter_map(move |(model, Entry { samples, .. })| {
            Some((model.as_str(), samples.p50(now)?, samples.len(now)))
        })
    }

    fn evict(&mut self) {
        let longest_ago = self.models.iter().min_by_key(|(_, entry)| entry.touched);
        if let Some(model) = longest_ago.map(|(model, _)| model.clone()) {
            self.models.remove(&model);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, LIFE, Latencies, MODELS, Samples};
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// Samples as (second, milliseconds); the median in milliseconds and the number at second `at`.
    #[track_caller]
    fn check(samples: &[(u64, u64)], at: u64, p50: Option<u64>, len: usize) {
        let (start, mut all) = (Instant::now(), Samples::default());
        for &(second, latency) in samples {
            all.add(ms(latency), start + secs(second));
        }
        let now = start + secs(at);
        assert_eq!(
            (all.p50(now), all.len(now)),
            (p50.map(ms), len),
            "{samples:?} at {at} s"
        );
        assert_eq!(all.is_empty(now), len == 0);
    }

    #[test]
    fn the_median_is_the_upper_middle() {
        check(&[], 0, None, 0);
        check(&[(0, 7)], 0, Some(7), 1);
        check(&[(0, 7), (0, 3)], 0, Some(7), 2);
        check(&[(0, 9), (0, 1), (0, 5)], 0, Some(5), 3);
        check(&[(0, 4), (0, 1), (0, 3), (0, 2)], 0, Some(3), 4);
        check(&[(0, 5), (0, 5), (0, 5), (0, 1)], 0, Some(5), 4);
    }

    #[test]
    fn a_sample_counts_for_five_minutes() {
        check(&[(0, 7)], 299, Some(7), 1);
        check(&[(0, 7)], 300, None, 0);
        // Nothing was added since the slow ones expired.
        check(&[(0, 90), (1, 80), (200, 3), (200, 2)], 299, Some(80), 4);
        check(&[(0, 90), (1, 80), (200, 3), (200, 2)], 300, Some(3), 3);
        check(&[(0, 90), (1, 80), (200, 3), (200, 2)], 301, Some(3), 2);
        // Something was.
        check(&[(0, 90), (1, 80), (200, 3), (301, 2)], 301, Some(3), 2);
        // A moment that comes late does not hide what is older.
        check(&[(100, 9), (50, 8)], 399, Some(9), 2);
        check(&[(100, 9), (50, 8)], 400, None, 0);
    }

    #[test]
    fn the_hundred_latest_are_kept() {
        let samples: Vec<(u64, u64)> = (0..250).map(|i| (0, i)).collect();
        check(&samples, 0, Some(200), KEPT);
    }

    proptest! {
        #[test]
        fn the_median_is_that_of_sorting_what_is_live(
            added in prop::collection::vec((0_u64..20, 0_u64..50), 0..250),
            later in 0_u64..400,
        ) {
            let (start, mut samples, mut all, mut at) = (Instant::now(), Samples::default(), Vec::new(), 0);
            for (gap, latency) in added {
                at += gap;
                samples.add(ms(latency), start + secs(at));
                all.push((at, latency));
            }
            let now = at + later;
            let latest = all.iter().rev().take(KEPT);
            let mut live: Vec<u64> = latest.filter(|(at, _)| secs(now - at) < LIFE).map(|(_, latency)| *latency).collect();
            live.sort_unstable();
            prop_assert_eq!(samples.len(start + secs(now)), live.len());
            prop_assert_eq!(samples.p50(start + secs(now)), live.get(live.len() / 2).copied().map(ms));
        }
    }

    #[test]
    fn models_are_kept_apart_and_listed_by_name() {
        let (now, mut all) = (Instant::now(), Latencies::default());
        for (model, latency) in [("b", 4), ("a", 1), ("b", 6)] {
            all.add(model, ms(latency), now);
        }
        all.add("c", ms(9), now + secs(10));
        let list = |at| all.iter(now + secs(at)).collect::<Vec<_>>();
        assert_eq!(list(10), [("a", ms(1), 1), ("b", ms(6), 2), ("c", ms(9), 1)]);
        assert_eq!(list(300), [("c", ms(9), 1)], "the others have expired");
        assert_eq!(all.p50("b", now), Some(ms(6)));
        assert_eq!(all.p50("b", now + LIFE), None);
        assert_eq!(all.p50("d", now), None);
    }

    #[test]
    fn a_new_model_takes_the_place_of_the_one_silent_for_longest() {
        let (now, mut all) = (Instant::now(), Latencies::default());
        for i in 0..MODELS {
            all.add(&format!("m{i}"), ms(1), now);
        }
        all.add("m0", ms(1), now);
        assert_eq!(all.models.len(), MODELS);
        all.add("new", ms(1), now);
        assert_eq!(all.models.len(), MODELS);
        assert_eq!(all.p50("m1", now), None, "m0 answered again, so m1 was next");
        for kept in ["m0", "m2", "m255", "new"] {
            assert_eq!(all.p50(kept, now), Some(ms(1)), "{kept}");
        }
    }
}
