//! Whoever answers fastest now.
//!
//! What nothing is known of comes first, shuffled, so that it gets measured; then by median. What has only failed lately
//! has no median either, and comes last: it is no unknown. One request in ten leads with a runner-up: a target that has
//! become faster, or has come back, would never be asked otherwise.

use super::{Facts, Pool, Ranking, Strategy, dice};
use rand::{Rng, RngCore};

/// Share of requests that lead with a runner-up.
const EXPLORE: f64 = 0.1;

pub(super) struct LeastLatency;

impl Strategy for LeastLatency {
    fn rank(&self, _: &Facts<'_>, pool: &dyn Pool, rng: &mut dyn RngCore) -> Ranking {
        let mut by_speed = |class: Vec<usize>| {
            let measured = |place: usize| pool.p50(place).map(|p50| (p50, place));
            let (seen, unseen): (Vec<_>, Vec<_>) = class.into_iter().partition(|place| measured(*place).is_some());
            let mut seen: Vec<_> = seen.into_iter().filter_map(measured).collect();
            seen.sort_unstable();
            let (fresh, failing): (Vec<_>, Vec<_>) = unseen
                .into_iter()
                .partition(|place| pool.health(*place).success_rate >= 1.0);
            let mut order = dice::shuffle(fresh, |_| 1.0, rng);
            order.extend(seen.into_iter().map(|(_, place)| place));
            order.extend(failing);
            if order.len() > 1 && dice::roll(rng) < EXPLORE {
                let other = rng.random_range(1..order.len());
                order.swap(0, other);
            }
            order
        };
        pool.classes().map(&mut by_speed).into()
    }
}
