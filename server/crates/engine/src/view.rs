//! Targets and routes as probes, metrics and pages show them: one truth for all.

use crate::live::{Hindered, Look, now, wall_ms};
use crate::ports::Clock;
use crate::snapshot::{Link, Snapshot, Target};
use std::time::{Duration, Instant};
use switchyard_core::breaker::State;
use switchyard_core::config::{Mode, Route, Rule, To};
use switchyard_core::quota::Use;
use switchyard_core::routing::{Sticky, StickyOn, weights};
use switchyard_core::tally::SPAN;

#[derive(Clone, Debug)]
pub struct TargetsView {
    /// Milliseconds since the Unix epoch.
    pub as_of_ms: i64,
    /// How far back calls are counted.
    pub window: Duration,
    pub routes: Vec<RouteView>,
    pub targets: Vec<TargetView>,
}

#[derive(Clone, Debug)]
pub struct RouteView {
    pub name: String,
    pub strategy: &'static str,
    /// A failure stays inside what a rule names.
    pub named: bool,
    pub model: Option<String>,
    pub targets: Vec<RoutedView>,
    pub details: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct RoutedView {
    pub name: String,
    pub is_route: bool,
    /// Absent where the strategy looks at none.
    pub weight: Option<f64>,
    pub model: Option<String>,
}

/// In one word, how a target stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Ready,
    /// Its share grows back.
    Recovering,
    /// Half-open.
    Probing,
    Open,
    Parked,
    /// The operator's limit is used up.
    Quota,
    /// No slot is free and the queue is full.
    Saturated,
    /// Cannot be called as it is configured.
    Unavailable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    Closed { failures: u32 },
    Open { until_ms: i64 },
    HalfOpen,
}

#[derive(Clone, Debug)]
pub struct TargetView {
    pub name: String,
    pub provider: String,
    pub simulated: bool,
    pub standing: Standing,
    /// Why it is not ready.
    pub reason: Option<String>,
    pub until_ms: Option<i64>,
    pub models: Vec<String>,
    /// With the number of failures that open it. Absent: it has no breaker.
    pub breaker: Option<(Circuit, u32)>,
    pub parked_until_ms: Option<i64>,
    pub in_flight: u32,
    pub max_concurrency: Option<u32>,
    pub queued: u32,
    pub queue_size: Option<u32>,
    /// Upstream model, median, number of samples.
    pub latency: Vec<(String, Duration, usize)>,
    /// Absent: nothing is known yet.
    pub success_rate: Option<f64>,
    pub quota: Vec<Use>,
    pub credentials: Vec<CredentialView>,
    /// Begun within the window.
    pub calls: u64,
}

/// As much of a target as a probe tells.
#[derive(Clone, Debug)]
pub struct Callable {
    pub name: String,
    pub provider: String,
    /// As far as its configuration goes.
    pub callable: bool,
    /// `closed`, `open` or `half_open`.
    pub circuit: &'static str,
    /// How many it lists.
    pub models: usize,
}

#[derive(Clone, Debug)]
pub struct CredentialView {
    pub id: String,
    pub weight: f64,
    /// Why it is out, and until when.
    pub out: Option<(String, Option<i64>)>,
}

impl TargetView {
    /// Can be called as far as its configuration goes.
    #[must_use]
    pub fn is_callable(&self) -> bool {
        self.standing != Standing::Unavailable
    }

    /// `closed`, `open` or `half_open`.
    #[must_use]
    pub const fn circuit(&self) -> &'static str {
        match self.breaker {
            None | Some((Circuit::Closed { .. }, _)) => "closed",
            Some((Circuit::Open { .. }, _)) => "open",
            Some((Circuit::HalfOpen, _)) => "half_open",
        }
    }
}

pub(crate) fn callable(snapshot: &Snapshot) -> Vec<Callable> {
    let now = now();
    let callable = |target: &Target| Callable {
        name: target.name.to_string(),
        provider: target.provider.to_string(),
        callable: target.link.is_ok(),
        circuit: match target.live.circuit(now) {
            None | Some(State::Closed { .. }) => "closed",
            Some(State::Open { .. }) => "open",
            Some(State::HalfOpen { .. }) => "half_open",
        },
        models: target.names().count(),
    };
    snapshot.targets.iter().map(callable).collect()
}

pub(crate) fn view(snapshot: &Snapshot, clock: &dyn Clock) -> TargetsView {
    let now = now();
    TargetsView {
        as_of_ms: clock.now_ms(),
        window: SPAN,
        routes: snapshot
            .routes
            .iter()
            .map(|route| route_view(route, snapshot))
            .collect(),
        targets: snapshot
            .targets
            .iter()
            .map(|target| target_view(target, now, clock))
            .collect(),
    }
}

fn target_view(target: &Target, now: Instant, clock: &dyn Clock) -> TargetView {
    let look = target.live.look(now);
    let wall = |at: Instant| wall_ms(at, now, clock);
    let breaker = look.breaker.map(|(state, threshold)| {
        let circuit = match state {
            State::Closed { failures } => Circuit::Closed { failures },
            State::Open { until } => Circuit::Open { until_ms: wall(until) },
            State::HalfOpen { .. } => Circuit::HalfOpen,
        };
        (circuit, threshold)
    });
    let (standing, reason, until) = stand(target, &look, now);
    let credentials = match &target.link {
        Ok(link) => credentials(link, &look, wall),
        Err(_) => Vec::new(),
    };
    TargetView {
        name: target.name.to_string(),
        provider: target.provider.to_string(),
        simulated: target.simulated,
        until_ms: until.map(wall),
        standing,
        reason,
        models: target.names().map(str::to_owned).collect(),
        breaker,
        parked_until_ms: look.parked.map(|(until, _)| wall(until)),
        in_flight: look.in_flight,
        max_concurrency: look.most,
        queued: look.queued,
        queue_size: look.queue,
        latency: look.latency,
        success_rate: (look.health.samples > 0).then_some(look.health.success_rate),
        quota: look.quota,
        credentials,
        calls: look.calls,
    }
}

/// The word, the reason and the end of it, the gravest first.
fn stand(target: &Target, look: &Look, now: Instant) -> (Standing, Option<String>, Option<Instant>) {
    if let Err(reason) = &target.link {
        return (Standing::Unavailable, Some(reason.clone()), None);
    }
    match look.breaker {
        Some((State::Open { until }, threshold)) => {
            let reason = format!("its circuit breaker opened after {threshold} failures in a row");
            return (Standing::Open, Some(reason), Some(until));
        }
        Some((State::HalfOpen { .. }, _)) => {
            let reason = "its circuit breaker is half-open: its calls are probes, a few at a time".to_owned();
            return (Standing::Probing, Some(reason), None);
        }
        Some((State::Closed { .. }, _)) | None => {}
    }
    // The smallest call that there is.
    if let Some(hindrance) = target
        .live
        .hindrance(1, now)
        .filter(|hindrance| hindrance.kind == Hindered::Quota)
    {
        return (Standing::Quota, Some(hindrance.reason), hindrance.until);
    }
    if let Some((until, reason)) = look.parked {
        return (Standing::Parked, Some(reason.to_owned()), Some(until));
    }
    let out: Vec<Instant> = look.credentials.iter().flatten().map(|(_, until)| *until).collect();
    if look.credentials.len() > 1 && out.len() == look.credentials.len() {
        let reason = "all of its credentials are benched".to_owned();
        return (Standing::Parked, Some(reason), out.into_iter().min());
    }
    if let (Some(most), Some(queue)) = (look.most, look.queue)
        && look.in_flight >= most
        && look.queued >= queue
    {
        let reason = format!(
            "{} calls are under way and {} wait, as many as may",
            look.in_flight, look.queued
        );
        return (Standing::Saturated, Some(reason), None);
    }
    if look.recovering {
        let reason = "it has just recovered: its share of the traffic grows back".to_owned();
        return (Standing::Recovering, Some(reason), None);
    }
    (Standing::Ready, None, None)
}

fn credentials(link: &Link, look: &Look, wall: impl Fn(Instant) -> i64) -> Vec<CredentialView> {
    let there = link.accesses.iter().zip(&look.credentials).filter_map(|(access, out)| {
        Some(CredentialView {
            id: access.id.clone()?,
            weight: access.weight,
            out: out.as_ref().map(|(reason, until)| (reason.clone(), Some(wall(*until)))),
        })
    });
    let missing = link.missing.iter().map(|(id, reason)| CredentialView {
        id: id.clone(),
        weight: 0.0,
        out: Some((reason.clone(), None)),
    });
    there.chain(missing).collect()
}

fn route_view(route: &Route, snapshot: &Snapshot) -> RouteView {
    let mode = &route.strategy.mode;
    let name = |to: To| match to {
        To::Target(i) => snapshot.targets.get(i).map(|target| target.name.to_string()),
        To::Route(i) => snapshot.routes.get(i).map(|route| route.name.clone()),
    };
    let weights = weights(&route.places);
    let targets = route
        .places
        .iter()
        .zip(weights)
        .map(|(place, weight)| RoutedView {
            name: name(place.to).unwrap_or_default(),
            is_route: matches!(place.to, To::Route(_)),
            weight: mode.weighs().then_some(weight),
            model: place.model.clone(),
        })
        .collect::<Vec<_>>();
    let named = |places: &[usize]| {
        let names: Vec<&str> = places
            .iter()
            .filter_map(|place| Some(targets.get(*place)?.name.as_str()))
            .collect();
        names.join(", then ")
    };
    let mut details = details(mode, &named);
    if !route.strategy.failover_on_status_codes.is_empty() {
        let codes: Vec<String> = route
            .strategy
            .failover_on_status_codes
            .iter()
            .map(u16::to_string)
            .collect();
        details.push(format!("also moves on after {}", codes.join(", ")));
    }
    RouteView {
        name: route.name.clone(),
        strategy: mode.as_str(),
        named: mode.is_named(),
        model: route.model.clone(),
        details,
        targets,
    }
}

fn details(mode: &Mode, named: &dyn Fn(&[usize]) -> String) -> Vec<String> {
    fn rules<C: std::fmt::Display>(rules: &[Rule<C>], named: &dyn Fn(&[usize]) -> String) -> Vec<String> {
        let rule = |rule: &Rule<C>| format!("{}: {}", rule.when, named(&rule.places));
        rules.iter().map(rule).collect()
    }
    match mode {
        Mode::Single | Mode::Fallback | Mode::LeastLatency => Vec::new(),
        Mode::LoadBalance { sticky } => sticky.iter().map(sticky_words).collect(),
        Mode::CostOptimized { unpriced } => {
            let words = match unpriced {
                switchyard_core::config::Unpriced::Fallback => "without a price: after all that have one",
                switchyard_core::config::Unpriced::Skip => "without a price: not at all",
                switchyard_core::config::Unpriced::Allow => "without a price: as if free",
            };
            vec![words.to_owned()]
        }
        Mode::Conditional { rules: all } => {
            let mut words = rules(all, named);
            words.push(format!("otherwise: {}", named(&[0])));
            words
        }
        Mode::ContentBased { rules: all } => {
            let mut words = rules(all, named);
            words.push("otherwise: all, in the order written".to_owned());
            words
        }
        Mode::AbTest { variants, sticky } => {
            let variant = |variant: &switchyard_core::config::Variant| {
                format!(
                    "{}: {}, weight {}",
                    variant.label,
                    named(&[variant.place]),
                    variant.weight
                )
            };
            variants
                .iter()
                .map(variant)
                .chain(sticky.iter().map(sticky_words))
                .collect()
        }
        Mode::HealthWeighted { blend } => vec![format!("success counts {}, latency {}", blend.success, blend.latency)],
    }
}

fn sticky_words(sticky: &Sticky) -> String {
    let on = match &sticky.on {
        StickyOn::User => "user".to_owned(),
        StickyOn::Session => "session".to_owned(),
        StickyOn::Header(name) => format!("header {name}"),
    };
    match sticky.ttl {
        Some(ttl) => format!("sticky by {on}, for at most {} s", ttl.as_secs()),
        None => format!("sticky by {on}"),
    }
}
