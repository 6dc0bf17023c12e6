//! Rules over the text of the user's messages: the first that holds names who is asked, as a chain that is a hard boundary.
//!
//! When none holds, every place in the order written. Where there is no prompt to look at, as in embeddings, it is the
//! first place that can serve, alone: a rule that cannot be evaluated must not send a request where it was not meant to go.

use super::{Content, Facts, Pool, Ranking, Serves, Strategy};
use crate::config::Rule;
use rand::RngCore;
use std::cell::LazyCell;
use std::cmp::Reverse;

pub(super) struct ContentBased {
    pub(super) rules: Vec<Rule<Content>>,
}

impl ContentBased {
    /// What was named on purpose; `None` when no rule holds.
    fn named(&self, facts: &Facts<'_>, pool: &dyn Pool) -> Option<Vec<usize>> {
        let Some(prompt) = facts.prompt else {
            // Judged without regard to what this request may use: a restriction must not move it on to the next.
            let able = (0..pool.len()).filter(|place| pool.claims(*place) != Serves::No);
            return Some(
                able.min_by_key(|place| Reverse(pool.claims(*place)))
                    .into_iter()
                    .collect(),
            );
        };
        let lower = LazyCell::new(|| prompt.to_lowercase());
        let rule = self
            .rules
            .iter()
            .find(|rule| rule.when.holds(prompt, || lower.as_str()))?;
        Some(rule.places.clone())
    }
}

impl Strategy for ContentBased {
    fn rank(&self, facts: &Facts<'_>, pool: &dyn Pool, _: &mut dyn RngCore) -> Ranking {
        match self.named(facts, pool) {
            Some(named) => super::able(named, pool),
            None => pool.classes().into(),
        }
    }

    fn reach(&self, facts: &Facts<'_>, pool: &dyn Pool) -> Vec<usize> {
        self.named(facts, pool).unwrap_or_else(|| (0..pool.len()).collect())
    }
}
