//! A start drawn by weight, then the others in rotation.
//!
//! A weight of 0 drains: such a place is never drawn, and still reached when the others fail.

use super::{Facts, Pool, Ranking, Sticky, Strategy, dice};
use rand::RngCore;

pub(super) struct LoadBalance {
    pub(super) sticky: Option<Sticky>,
}

impl Strategy for LoadBalance {
    fn rank(&self, facts: &Facts<'_>, pool: &dyn Pool, rng: &mut dyn RngCore) -> Ranking {
        let at = self.sticky.as_ref().and_then(|sticky| sticky.point(facts, pool.name()));
        let mut rotate = |mut class: Vec<usize>| {
            let weights: Vec<f64> = class.iter().map(|place| pool.weight(*place)).collect();
            let start = dice::draw(&weights, at.unwrap_or_else(|| dice::roll(rng)));
            class.rotate_left(start.unwrap_or(0));
            class
        };
        pool.classes().map(&mut rotate).into()
    }
}
