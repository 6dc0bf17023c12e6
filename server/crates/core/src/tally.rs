//! How many within the last five minutes: a ring of ten-second slots.

use std::time::{Duration, Instant};

/// How far back a tally looks.
pub const SPAN: Duration = Duration::from_secs(300);
const SLOT: Duration = Duration::from_secs(10);
const SLOTS: usize = 30;

#[derive(Clone, Debug, Default)]
pub struct Tally {
    slots: [u32; SLOTS],
    /// When the newest slot began, and its place.
    newest: Option<(Instant, usize)>,
}

impl Tally {
    pub fn add(&mut self, now: Instant) {
        let (mut began, mut at) = self.newest.unwrap_or((now, 0));
        let passed = slots_between(began, now);
        for _ in 0..passed.min(SLOTS) {
            at = (at + 1) % SLOTS;
            self.slots[at] = 0;
        }
        if passed > 0 {
            began = if passed >= SLOTS {
                now
            } else {
                began + SLOT * u32::try_from(passed).unwrap_or(u32::MAX)
            };
        }
        self.slots[at] = self.slots[at].saturating_add(1);
        self.newest = Some((began, at));
    }

    #[must_use]
    pub fn count(&self, now: Instant) -> u64 {
        let Some((began, at)) = self.newest else { return 0 };
        let left = SLOTS.saturating_sub(slots_between(began, now));
        let newest_first = (0..left).map(|back| self.slots[(at + SLOTS - back) % SLOTS]);
        newest_first.map(u64::from).sum()
    }
}

fn slots_between(began: Instant, now: Instant) -> usize {
    let passed = now.saturating_duration_since(began).as_millis() / SLOT.as_millis();
    usize::try_from(passed).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use std::time::{Duration, Instant};

    #[test]
    fn what_is_older_than_its_span_does_not_count() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut tally = Tally::default();
        assert_eq!(tally.count(start), 0);
        for seconds in [0, 5, 12, 299] {
            tally.add(at(seconds));
        }
        assert_eq!(tally.count(at(299)), 4);
        assert_eq!(tally.count(at(300)), 2, "the first slot is over");
        assert_eq!(tally.count(at(310)), 1);
        assert_eq!(tally.count(at(600)), 0);
        tally.add(at(5000));
        assert_eq!(tally.count(at(5001)), 1);
    }
}
