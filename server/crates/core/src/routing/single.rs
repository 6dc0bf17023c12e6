//! The first place and no other: somebody named it on purpose.

use super::{Facts, Pool, Ranking, Strategy};
use rand::RngCore;

pub(super) struct Single;

impl Strategy for Single {
    fn rank(&self, facts: &Facts<'_>, pool: &dyn Pool, _: &mut dyn RngCore) -> Ranking {
        super::able(self.reach(facts, pool), pool)
    }

    fn reach(&self, _: &Facts<'_>, pool: &dyn Pool) -> Vec<usize> {
        (0..pool.len().min(1)).collect()
    }
}
