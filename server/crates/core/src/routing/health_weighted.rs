//! The healthiest first: success rate and average latency, blended.
//!
//! `score = weight * (success * success rate + latency * fastest / average)`. What nothing is known of counts as healthy
//! and fast, so that it is tried; what never succeeded has no speed. Outcomes expire, so a target that failed is tried
//! again. A weight of 0 drains: such a place comes last, however healthy.

use super::{Facts, Pool, Ranking, Strategy};
use crate::config::Blend;
use rand::RngCore;

pub(super) struct HealthWeighted {
    pub(super) blend: Blend,
}

impl Strategy for HealthWeighted {
    fn rank(&self, _: &Facts<'_>, pool: &dyn Pool, _: &mut dyn RngCore) -> Ranking {
        let by_score = |class: Vec<usize>| {
            let healths: Vec<_> = class.into_iter().map(|place| (place, pool.health(place))).collect();
            let fastest = healths.iter().filter_map(|(_, health)| health.average_latency).min();
            let mut scored: Vec<(bool, f64, usize)> = healths
                .into_iter()
                .map(|(place, health)| {
                    let speed = match (fastest, health.average_latency) {
                        (Some(fastest), Some(own)) if !own.is_zero() => fastest.as_secs_f64() / own.as_secs_f64(),
                        (_, None) if health.samples > 0 => 0.0,
                        _ => 1.0,
                    };
                    let score = self.blend.success * health.success_rate + self.blend.latency * speed;
                    let weight = pool.weight(place);
                    (weight > 0.0, weight * score, place)
                })
                .collect();
            // Stable: equals stay in the order written.
            scored.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
            scored.into_iter().map(|(.., place)| place).collect::<Vec<_>>()
        };
        pool.classes().map(by_score).into()
    }
}
