//! The cheapest for this request, input and output counted.
//!
//! Places that cost the same are ordered by a weighted draw. What has no price comes after all that have one, or is passed
//! over, or counts as free: the operator says which.

use super::{Facts, Pool, Ranking, Strategy, dice};
use crate::config::Unpriced;
use rand::RngCore;

pub(super) struct CostOptimized {
    pub(super) unpriced: Unpriced,
}

impl Strategy for CostOptimized {
    fn rank(&self, _: &Facts<'_>, pool: &dyn Pool, rng: &mut dyn RngCore) -> Ranking {
        let mut ranking = Ranking::default();
        for class in pool.classes() {
            let mut priced: Vec<(f64, usize)> = Vec::new();
            let mut unpriced = Vec::new();
            for place in class {
                match (pool.price(place), self.unpriced) {
                    (Some(price), _) => priced.push((price, place)),
                    (None, Unpriced::Allow) => priced.push((0.0, place)),
                    (None, Unpriced::Fallback | Unpriced::Skip) => unpriced.push(place),
                }
            }
            priced.sort_by(|a, b| a.0.total_cmp(&b.0));
            for run in priced.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
                let places = run.iter().map(|(_, place)| *place).collect();
                ranking
                    .places
                    .extend(dice::shuffle(places, |place| pool.weight(place), rng));
            }
            match self.unpriced {
                Unpriced::Fallback | Unpriced::Allow => ranking.places.append(&mut unpriced),
                Unpriced::Skip => ranking.unpriced.append(&mut unpriced),
            }
        }
        ranking
    }

    fn reach(&self, _: &Facts<'_>, pool: &dyn Pool) -> Vec<usize> {
        let skips = self.unpriced == Unpriced::Skip;
        (0..pool.len())
            .filter(|place| !skips || pool.price(*place).is_some())
            .collect()
    }
}
