//! Live traffic split between labelled variants.
//!
//! The draw is by weight among the variants that can serve; a weight of 0 drains. The label is that of the variant drawn,
//! and stays with the request whoever answers in the end: an experiment measures what was assigned. The other places stand
//! behind it for failover.

use super::{Facts, Pool, Ranking, Sticky, Strategy, dice};
use crate::config::Variant;
use rand::RngCore;

pub(super) struct AbTest {
    pub(super) variants: Vec<Variant>,
    pub(super) sticky: Option<Sticky>,
}

impl Strategy for AbTest {
    fn rank(&self, facts: &Facts<'_>, pool: &dyn Pool, rng: &mut dyn RngCore) -> Ranking {
        let able: Vec<&Variant> = self.variants.iter().filter(|variant| pool.can(variant.place)).collect();
        let weights: Vec<f64> = able.iter().map(|variant| variant.weight).collect();
        let at = self.sticky.as_ref().and_then(|sticky| sticky.point(facts, pool.name()));
        let drawn = dice::draw(&weights, at.unwrap_or_else(|| dice::roll(rng))).and_then(|i| able.get(i));
        let first = drawn.map(|variant| variant.place);
        let rest = pool
            .classes()
            .concat()
            .into_iter()
            .filter(|place| Some(*place) != first);
        Ranking {
            places: first.into_iter().chain(rest).collect(),
            variant: drawn.map(|variant| variant.label.clone()),
            ..Ranking::default()
        }
    }
}
