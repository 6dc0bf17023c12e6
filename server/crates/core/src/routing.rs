//! Routing: given a request's facts and a view of the world, which targets in which order.
//!
//! Two layers. A [`Strategy`] ranks the places of one route and nothing else: it makes no call, retries nothing, and does
//! not know what a breaker is. The [`Router`] holds the routes as a tree, since a place may be another route, and unrolls a
//! ranking into an [`Order`] of targets in which none stands twice. Both are pure: time, dice and measurements are
//! arguments, so every mode is tested with a table, and a dry run gives what the real call gets.
//!
//! ```text
//! route "default": ab-test            ranking: [1, 0]       order: openai, groq, anthropic
//!   place 0: target anthropic
//!   place 1: route "fast": fallback   ranking: [0, 1]
//!     place 0: target openai
//!     place 1: target groq
//! ```
//!
//! Modes come in two families. A pool may move on to any of its places, because an operator called them
//! interchangeable; a named mode stays inside what somebody named on purpose. The pipeline needs no flag for that: what
//! must not be reached is not in the order.

mod ab_test;
mod conditional;
mod content;
mod cost;
mod dice;
mod fallback;
mod health_weighted;
mod latency;
mod load_balance;
mod router;
mod rules;
mod single;
mod sticky;

pub use router::{Leg, Order, RouteId, Router, is_virtual};
pub use rules::{Compare, Condition, Content, TimeOfDay};
pub use sticky::{Sticky, StickyOn};

use crate::catalog::Work;
use crate::config::{Mode, Place};
use crate::health::Health;
use rand::RngCore;
use std::time::Duration;

/// Position of a target in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetId(pub usize);

/// What a strategy may look at in a request.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// After aliases.
    pub model: &'a str,
    /// What is asked for and how much of it, for prices.
    pub work: Work,
    /// The body's `user`.
    pub user: Option<&'a str>,
    /// `X-Session-ID`.
    pub session: Option<&'a str>,
    pub stream: bool,
    pub has_tools: bool,
    /// The key's id and its name: a rule may use either.
    pub key: Option<(&'a str, &'a str)>,
    pub project: Option<&'a str>,
    /// The client's headers, by lower-case name.
    pub headers: &'a dyn Fields,
    /// `X-Gateway-Metadata`.
    pub metadata: &'a dyn Fields,
    /// Text of the user's messages; `None` where there are none to look at, as in embeddings.
    pub prompt: Option<&'a str>,
    /// Milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// Values by name.
pub trait Fields {
    fn value(&self, name: &str) -> Option<&str>;
}

/// No values at all.
impl Fields for () {
    fn value(&self, _: &str) -> Option<&str> {
        None
    }
}

impl Fields for std::collections::BTreeMap<String, String> {
    fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }
}

/// What routing may look at in the gateway, per target.
pub trait World {
    /// Targets in the order of the configuration.
    fn targets(&self) -> usize;
    fn serves(&self, target: TargetId, model: &str) -> Serves;
    /// The upstream's id for a model.
    fn upstream<'a>(&'a self, target: TargetId, model: &'a str) -> &'a str;
    /// Median latency of an upstream model; `None` when nothing fresh is known.
    fn p50(&self, target: TargetId, upstream: &str) -> Option<Duration>;
    /// What the work would cost there, in USD; `None` without a price.
    fn price(&self, target: TargetId, upstream: &str, work: &Work) -> Option<f64>;
    fn health(&self, target: TargetId) -> Health;
    /// Why this request may not use the target, if so.
    fn denies(&self, target: TargetId) -> Option<LeftOut>;
}

/// Whether a target serves a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Serves {
    No,
    /// It takes what it is asked for, and is known for other models: it may well not have this one.
    Anything,
    /// It lists nothing and takes what it is asked for: the operator vouches for it.
    Open,
    /// It lists the model.
    Listed,
}

/// Why routing does not name a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// The model is not among those it serves.
    Model,
    /// The request names a route and the route says no model for this target.
    NoModel,
    /// The strategy names another target on purpose.
    NotNamed,
    /// It belongs to other routes.
    NotInRoute,
    /// No price is known, and the strategy skips what has none.
    Unpriced,
    /// `X-Gateway-Only` does not list it.
    Header,
    /// The project's allow-list does not list it.
    Project,
}

/// The places of one route, as a strategy sees them for one request.
pub trait Pool {
    /// The route's name. It keeps the sticky draws of nested routes apart.
    fn name(&self) -> &str;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn serves(&self, place: usize) -> Serves;
    /// The same, of a place that this request may not use too.
    fn claims(&self, place: usize) -> Serves;
    fn weight(&self, place: usize) -> f64;
    fn p50(&self, place: usize) -> Option<Duration>;
    /// USD of this request.
    fn price(&self, place: usize) -> Option<f64>;
    fn health(&self, place: usize) -> Health;

    /// Places that can serve, likely ones first. Where one lists the model, those that are known for others come last: an
    /// upstream that does not know a model ends the walk. Where nobody lists it, all stand as they are written.
    fn classes(&self) -> [Vec<usize>; 2] {
        let mut served = Vec::with_capacity(self.len());
        let mut known_for_others = Vec::new();
        let mut somebody_lists = false;
        for place in 0..self.len() {
            let serves = self.serves(place);
            match serves {
                Serves::No => continue,
                Serves::Anything => known_for_others.push(place),
                Serves::Open => {}
                Serves::Listed => somebody_lists = true,
            }
            served.push(place);
        }
        if !somebody_lists || known_for_others.is_empty() {
            return [served, Vec::new()];
        }
        // Both ascend.
        let mut last = known_for_others.iter().peekable();
        served.retain(|place| last.next_if_eq(&place).is_none());
        [served, known_for_others]
    }

    /// Can serve, known or not.
    fn can(&self, place: usize) -> bool {
        self.serves(place) != Serves::No
    }
}

/// A strategy's answer: places of the route, preferred first, each at most once and only such that can serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    pub places: Vec<usize>,
    /// Could serve, and were passed over because they have no price.
    pub unpriced: Vec<usize>,
    /// The variant that was drawn.
    pub variant: Option<String>,
}

impl From<[Vec<usize>; 2]> for Ranking {
    fn from([mut first, mut last]: [Vec<usize>; 2]) -> Self {
        first.append(&mut last);
        first.into()
    }
}

impl From<Vec<usize>> for Ranking {
    fn from(places: Vec<usize>) -> Self {
        Self {
            places,
            ..Self::default()
        }
    }
}

pub trait Strategy: Send + Sync {
    fn rank(&self, facts: &Facts<'_>, pool: &dyn Pool, rng: &mut dyn RngCore) -> Ranking;

    /// Places that a ranking may hold whatever the dice say. A route counts as able to serve when one of these is.
    fn reach(&self, _: &Facts<'_>, pool: &dyn Pool) -> Vec<usize> {
        (0..pool.len()).collect()
    }
}

/// What a named mode names, as far as it can serve.
fn able(named: Vec<usize>, pool: &dyn Pool) -> Ranking {
    let able = named.into_iter().filter(|place| pool.can(*place));
    able.collect::<Vec<_>>().into()
}

/// The strategy of a mode.
#[must_use]
pub fn strategy(mode: &Mode) -> Box<dyn Strategy> {
    match mode.clone() {
        Mode::Single => Box::new(single::Single),
        Mode::Fallback => Box::new(fallback::Fallback),
        Mode::LoadBalance { sticky } => Box::new(load_balance::LoadBalance { sticky }),
        Mode::LeastLatency => Box::new(latency::LeastLatency),
        Mode::CostOptimized { unpriced } => Box::new(cost::CostOptimized { unpriced }),
        Mode::Conditional { rules } => Box::new(conditional::Conditional { rules }),
        Mode::ContentBased { rules } => Box::new(content::ContentBased { rules }),
        Mode::AbTest { variants, sticky } => Box::new(ab_test::AbTest { variants, sticky }),
        Mode::HealthWeighted { blend } => Box::new(health_weighted::HealthWeighted { blend }),
    }
}

/// Whether the strategy reads prompts: where none does, nobody has to collect their text.
#[must_use]
pub const fn reads_prompts(mode: &Mode) -> bool {
    matches!(mode, Mode::ContentBased { .. })
}

/// Whether the strategy reads how many tokens a prompt has.
#[must_use]
pub fn reads_tokens(mode: &Mode) -> bool {
    match mode {
        Mode::CostOptimized { .. } => true,
        Mode::Conditional { rules } => rules.iter().any(|rule| rule.when.reads_tokens()),
        Mode::Single
        | Mode::Fallback
        | Mode::LoadBalance { .. }
        | Mode::LeastLatency
        | Mode::ContentBased { .. }
        | Mode::AbTest { .. }
        | Mode::HealthWeighted { .. } => false,
    }
}

/// The dice of one request: the same id throws the same, so that a dry run under a request's id shows what it got, and
/// tests can repeat a distribution.
#[must_use]
pub fn dice(request_id: &str) -> rand::rngs::SmallRng {
    rand::SeedableRng::seed_from_u64(sticky::hash(request_id.as_bytes()))
}

/// Weights as they hold: all 1 where none is written, and 0 for those left out beside others.
#[must_use]
pub fn weights(places: &[Place]) -> Vec<f64> {
    let none = places.iter().all(|place| place.weight.is_none());
    places
        .iter()
        .map(|place| place.weight.unwrap_or(if none { 1.0 } else { 0.0 }))
        .collect()
}

#[cfg(test)]
mod tests;
