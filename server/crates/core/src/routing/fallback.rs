//! Every place that serves the model, in the order written.

use super::{Facts, Pool, Ranking, Strategy};
use rand::RngCore;

pub(super) struct Fallback;

impl Strategy for Fallback {
    fn rank(&self, _: &Facts<'_>, pool: &dyn Pool, _: &mut dyn RngCore) -> Ranking {
        pool.classes().into()
    }
}
