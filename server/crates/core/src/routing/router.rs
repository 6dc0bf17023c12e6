//! The routes as a tree, and how a ranking becomes an order of targets.

use super::{
    Facts, LeftOut, Pool, Ranking, Serves, Strategy, TargetId, World, reads_prompts, reads_tokens, strategy, weights,
};
use crate::config::{Config, Place, To};
use crate::health::Health;
use rand::RngCore;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A model of this form names a route instead.
const VIRTUAL: &str = "route/";

/// Position of a route in the configuration; the first is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteId(pub usize);

impl RouteId {
    pub const DEFAULT: Self = Self(0);
}

/// Every route with its strategy.
pub struct Router {
    routes: Vec<Route>,
    by_name: HashMap<String, RouteId>,
}

struct Route {
    /// It, or a route below it, looks at prompts; at the number of their tokens.
    reads_prompts: bool,
    reads_tokens: bool,
    name: String,
    model: Option<String>,
    strategy: Box<dyn Strategy>,
    places: Vec<Place>,
    weights: Vec<f64>,
}

/// One target to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    pub target: TargetId,
    /// Where it stands: its retries and bounds are those of this place.
    pub route: RouteId,
    pub place: usize,
    /// The upstream's id of the model.
    pub model: Arc<str>,
}

/// Preferred first, none twice. Every other target has its reason in `why_not`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Empty: nothing that this request may use serves the model.
    pub legs: Vec<Leg>,
    /// By target; `None` for those in the order.
    pub why_not: Vec<Option<LeftOut>>,
    /// Label of the variant that was drawn; of nested draws, the one nearest to the first target.
    pub variant: Option<String>,
}

impl Order {
    /// The targets that are not in the order.
    pub fn left_out(&self) -> impl Iterator<Item = (TargetId, LeftOut)> {
        let reasons = self.why_not.iter().enumerate();
        reasons.filter_map(|(target, why)| Some((TargetId(target), (*why)?)))
    }
}

/// Whether a model's name is that of a route.
#[must_use]
pub fn is_virtual(model: &str) -> Option<&str> {
    model.strip_prefix(VIRTUAL)
}

impl Router {
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let route = |(i, route): (usize, &crate::config::Route)| Route {
            reads_prompts: below(config, i).any(|route| reads_prompts(&route.strategy.mode)),
            reads_tokens: below(config, i).any(|route| reads_tokens(&route.strategy.mode)),
            name: route.name.clone(),
            model: route.model.clone(),
            strategy: strategy(&route.strategy.mode),
            places: route.places.clone(),
            weights: weights(&route.places),
        };
        let names = config.routes.iter().enumerate();
        Self {
            routes: config.routes.iter().enumerate().map(route).collect(),
            by_name: names.map(|(i, route)| (route.name.clone(), RouteId(i))).collect(),
        }
    }

    /// Whether a request on this route may be judged by its prompt: elsewhere nobody has to collect its text.
    #[must_use]
    pub fn reads_prompts(&self, route: RouteId) -> bool {
        self.routes.get(route.0).is_some_and(|route| route.reads_prompts)
    }

    /// The same of the number of the prompt's tokens.
    #[must_use]
    pub fn reads_tokens(&self, route: RouteId) -> bool {
        self.routes.get(route.0).is_some_and(|route| route.reads_tokens)
    }

    #[must_use]
    pub fn find(&self, name: &str) -> Option<RouteId> {
        self.by_name.get(name).copied()
    }

    /// Unrolls the route for one request.
    pub fn order(&self, start: RouteId, facts: &Facts<'_>, world: &dyn World, rng: &mut dyn RngCore) -> Order {
        let mut walk = Walk {
            order: Order::default(),
            ordered: vec![false; world.targets()],
            why: vec![None; world.targets()],
        };
        self.unroll(start, facts, world, rng, &mut walk);
        let Walk {
            mut order,
            ordered,
            mut why,
        } = walk;
        for (why, ordered) in why.iter_mut().zip(ordered) {
            *why = (!ordered).then_some(why.unwrap_or(LeftOut::NotInRoute));
        }
        order.why_not = why;
        order
    }

    fn unroll(&self, id: RouteId, facts: &Facts<'_>, world: &dyn World, rng: &mut dyn RngCore, walk: &mut Walk) {
        let Some(route) = self.routes.get(id.0) else { return };
        let facts = route.meant(facts);
        let view = View::new(self, route, &facts, world);
        let Ranking {
            places,
            unpriced,
            variant,
        } = route.strategy.rank(&facts, &view, rng);
        // Only on the way to the first target: a draw among the stand-ins assigns nothing.
        if variant.is_some() && walk.order.legs.is_empty() {
            walk.order.variant = variant;
        }
        // Rules may be long and prompts large: what could have been reached is looked at only where it matters.
        let reach = std::cell::LazyCell::new(|| route.strategy.reach(&facts, &view));
        let mut ranked = vec![false; route.places.len()];
        for place in &places {
            if let Some(ranked) = ranked.get_mut(*place) {
                *ranked = true;
            }
        }
        let passed_over = route
            .places
            .iter()
            .enumerate()
            .zip(ranked)
            .filter(|(_, ranked)| !ranked);
        for ((index, place), _) in passed_over {
            match place.to {
                _ if unpriced.contains(&index) => self.leave_out(&view, index, LeftOut::Unpriced, walk),
                // It was meant and cannot serve: unrolled, it names no target, and says why.
                To::Route(inner) if reach.contains(&index) => self.unroll(RouteId(inner), &facts, world, rng, walk),
                To::Route(_) | To::Target(_) => self.leave_out(&view, index, LeftOut::NotNamed, walk),
            }
        }
        walk.order.legs.reserve(places.len());
        for index in places {
            let Some(place) = route.places.get(index) else { continue };
            match place.to {
                To::Route(inner) => self.unroll(RouteId(inner), &facts, world, rng, walk),
                To::Target(target) => {
                    let again = walk
                        .ordered
                        .get_mut(target)
                        .is_none_or(|seen| std::mem::replace(seen, true));
                    let target = TargetId(target);
                    if !again {
                        let model = walk.name(view.upstream(place, target));
                        walk.order.legs.push(Leg {
                            target,
                            route: id,
                            place: index,
                            model,
                        });
                    }
                }
            }
        }
    }

    /// Notes why the targets below a place are not used, the nearest reason first.
    fn leave_out(&self, view: &View<'_>, index: usize, why: LeftOut, walk: &mut Walk) {
        let Some(place) = view.route.places.get(index) else {
            return;
        };
        match place.to {
            To::Target(target) => {
                let why = view.hindrance(place, TargetId(target)).unwrap_or(why);
                if let Some(known @ None) = walk.why.get_mut(target) {
                    *known = Some(why);
                }
            }
            To::Route(inner) => {
                let Some(route) = self.routes.get(inner) else { return };
                let facts = route.meant(view.facts);
                let below = View::new(self, route, &facts, view.world);
                for place in 0..route.places.len() {
                    self.leave_out(&below, place, why, walk);
                }
            }
        }
    }
}

/// A route and all that it reaches.
fn below(config: &Config, start: usize) -> impl Iterator<Item = &crate::config::Route> {
    let mut seen = vec![start];
    let mut next = 0;
    while let Some(route) = seen.get(next).and_then(|i| config.routes.get(*i)) {
        for place in &route.places {
            if let To::Route(inner) = place.to
                && !seen.contains(&inner)
            {
                seen.push(inner);
            }
        }
        next += 1;
    }
    seen.into_iter().filter_map(|i| config.routes.get(i))
}

struct Walk {
    order: Order,
    /// By target: whether it stands in the order.
    ordered: Vec<bool>,
    /// By target.
    why: Vec<Option<LeftOut>>,
}

impl Walk {
    /// Most targets know a model by the same name: it is kept once.
    fn name(&self, upstream: &str) -> Arc<str> {
        match self.order.legs.last() {
            Some(leg) if *leg.model == *upstream => Arc::clone(&leg.model),
            _ => upstream.into(),
        }
    }
}

impl Route {
    /// The request as this route reads it: a call of the route itself means the route's own model.
    fn meant<'f>(&'f self, facts: &Facts<'f>) -> Facts<'f> {
        let model = match (&self.model, is_virtual(facts.model)) {
            (Some(model), Some(_)) => model,
            _ => facts.model,
        };
        Facts { model, ..*facts }
    }
}

/// One route's places for one request.
#[derive(Clone, Copy)]
struct View<'a> {
    router: &'a Router,
    route: &'a Route,
    facts: &'a Facts<'a>,
    world: &'a dyn World,
    /// What the request may not use counts as not there.
    restricted: bool,
}

impl<'a> View<'a> {
    fn new(router: &'a Router, route: &'a Route, facts: &'a Facts<'a>, world: &'a dyn World) -> Self {
        Self {
            router,
            route,
            facts,
            world,
            restricted: true,
        }
    }

    fn upstream<'m>(&'m self, place: &'m Place, target: TargetId) -> &'m str {
        let named = place.model.as_ref().or_else(|| place.model_map.get(self.facts.model));
        named.map_or_else(|| self.world.upstream(target, self.facts.model), String::as_str)
    }

    fn denies(&self, target: TargetId) -> Option<LeftOut> {
        self.world.denies(target).filter(|_| self.restricted)
    }

    fn target_serves(&self, place: &Place, target: TargetId) -> Serves {
        if self.denies(target).is_some() {
            return Serves::No;
        }
        if place.model.is_some() || place.model_map.contains_key(self.facts.model) {
            return Serves::Listed;
        }
        match self.world.serves(target, self.facts.model) {
            // A route's name means nothing to an upstream.
            Serves::Anything | Serves::Open if is_virtual(self.facts.model).is_some() => Serves::No,
            serves => serves,
        }
    }

    /// Why the target cannot serve, if so.
    fn hindrance(&self, place: &Place, target: TargetId) -> Option<LeftOut> {
        if let Some(denied) = self.denies(target) {
            return Some(denied);
        }
        (self.target_serves(place, target) == Serves::No).then(|| {
            if is_virtual(self.facts.model).is_some() {
                LeftOut::NoModel
            } else {
                LeftOut::Model
            }
        })
    }

    /// The best of what the places of another route say, among those that it may name.
    fn below<T>(
        &self,
        inner: usize,
        ask: impl Fn(&View<'_>, usize) -> Option<T>,
        best: impl Fn(T, T) -> T,
    ) -> Option<T> {
        let route = self.router.routes.get(inner)?;
        let facts = route.meant(self.facts);
        let view = View {
            route,
            facts: &facts,
            ..*self
        };
        let named = route.strategy.reach(&facts, &view).into_iter();
        named.filter_map(|place| ask(&view, place)).reduce(best)
    }

    /// The same among those that can serve.
    fn able_below<T>(
        &self,
        inner: usize,
        ask: impl Fn(&View<'_>, usize) -> Option<T>,
        best: impl Fn(T, T) -> T,
    ) -> Option<T> {
        let ask = |view: &View<'_>, place| if view.can(place) { ask(view, place) } else { None };
        self.below(inner, ask, best)
    }
}

impl Pool for View<'_> {
    fn name(&self) -> &str {
        &self.route.name
    }

    fn len(&self) -> usize {
        self.route.places.len()
    }

    fn serves(&self, index: usize) -> Serves {
        let Some(place) = self.route.places.get(index) else {
            return Serves::No;
        };
        match place.to {
            To::Target(target) => self.target_serves(place, TargetId(target)),
            To::Route(inner) => self
                .below(inner, |view, place| Some(view.serves(place)), Ord::max)
                .unwrap_or(Serves::No),
        }
    }

    fn claims(&self, index: usize) -> Serves {
        let free = Self {
            restricted: false,
            ..*self
        };
        free.serves(index)
    }

    fn weight(&self, index: usize) -> f64 {
        self.route.weights.get(index).copied().unwrap_or_default()
    }

    fn p50(&self, index: usize) -> Option<Duration> {
        let place = self.route.places.get(index)?;
        match place.to {
            To::Target(target) => {
                let target = TargetId(target);
                self.world.p50(target, self.upstream(place, target))
            }
            To::Route(inner) => self.able_below(inner, |view, place| view.p50(place), Ord::min),
        }
    }

    fn price(&self, index: usize) -> Option<f64> {
        let place = self.route.places.get(index)?;
        match place.to {
            To::Target(target) => {
                let target = TargetId(target);
                self.world.price(target, self.upstream(place, target), &self.facts.work)
            }
            To::Route(inner) => self.able_below(inner, |view, place| view.price(place), f64::min),
        }
    }

    fn health(&self, index: usize) -> Health {
        let best = |a: Health, b: Health| if b.success_rate > a.success_rate { b } else { a };
        match self.route.places.get(index).map(|place| place.to) {
            Some(To::Target(target)) => self.world.health(TargetId(target)),
            Some(To::Route(inner)) => self
                .able_below(inner, |view, place| Some(view.health(place)), best)
                .unwrap_or_default(),
            None => Health::default(),
        }
    }
}
