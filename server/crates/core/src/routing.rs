//! Strategies: given a request's facts and a view of the world, which targets in which order.
//!
//! A strategy decides order and nothing else. It makes no call, retries nothing, and does not know what a breaker is; the
//! engine walks the order. Time and dice are arguments, so every strategy is tested with a table.

mod fallback;
mod single;

use crate::config::Mode;
use rand::RngCore;

/// Position of a target in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetId(pub usize);

/// What a strategy may look at in a request.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// After aliases.
    pub model: &'a str,
}

/// What a strategy may look at in the gateway.
pub trait World {
    /// Targets in the order of the configuration.
    fn targets(&self) -> usize;
    fn serves(&self, target: TargetId, model: &str) -> Serves;
}

/// Whether a target serves a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// It lists the model.
    Listed,
    /// It lists nothing, and serves whatever it is asked for: the upstream alone knows.
    Anything,
    No,
}

/// Preferred first. Targets that are not in it have their reason in `left_out`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Empty: nothing configured serves this model.
    pub targets: Vec<TargetId>,
    pub left_out: Vec<(TargetId, LeftOut)>,
}

/// Why a strategy does not name a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// The model is not among those it serves.
    Model,
    /// The strategy names another target on purpose.
    NotNamed,
}

pub trait Strategy: Send + Sync {
    fn order(&self, facts: &Facts<'_>, world: &dyn World, rng: &mut dyn RngCore) -> Order;
}

/// The strategy of a mode.
#[must_use]
pub fn strategy(mode: Mode) -> Box<dyn Strategy> {
    match mode {
        Mode::Single => Box::new(single::Single),
        Mode::Fallback => Box::new(fallback::Fallback),
    }
}

#[cfg(test)]
mod tests;
