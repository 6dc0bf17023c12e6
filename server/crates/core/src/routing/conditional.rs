//! Rules over a request's facts: the first that holds names who is asked, as a chain that is a hard boundary.
//!
//! When none holds it is the route's first place, and no other.

use super::{Condition, Facts, Pool, Ranking, Strategy};
use crate::config::Rule;
use rand::RngCore;

pub(super) struct Conditional {
    pub(super) rules: Vec<Rule<Condition>>,
}

impl Strategy for Conditional {
    fn rank(&self, facts: &Facts<'_>, pool: &dyn Pool, _: &mut dyn RngCore) -> Ranking {
        super::able(self.reach(facts, pool), pool)
    }

    fn reach(&self, facts: &Facts<'_>, _: &dyn Pool) -> Vec<usize> {
        let rule = self.rules.iter().find(|rule| rule.when.holds(facts));
        rule.map_or_else(|| vec![0], |rule| rule.places.clone())
    }
}
