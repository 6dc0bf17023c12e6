//! Resolve and plan: which targets a request will try, in which order, and why not the others.
//!
//! A pure look at the snapshot, the request and the moment: the dry run makes the same plan as the real call and then stops.
//! Dice are thrown from the request's id, so that both get the same when they carry the same id.

use crate::live::{Hindered, now, wall_ms};
use crate::ports::Clock;
use crate::request::Caller;
use crate::snapshot::{Snapshot, Target};
use http::HeaderMap;
use rand::{Rng, RngCore};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::{Duration, Instant};
use switchyard_core::catalog::{Work, WorkKind};
use switchyard_core::config::Mode;
use switchyard_core::error::{Error, Kind};
use switchyard_core::health::Health;
use switchyard_core::routing::{self, Facts, Fields, LeftOut, Leg, RouteId, Serves, TargetId, World, is_virtual};
use switchyard_providers::{Call, Surface};

const ROUTE_HEADER: &str = "x-gateway-route";
const ONLY_HEADER: &str = "x-gateway-only";
const METADATA_HEADER: &str = "x-gateway-metadata";
const SESSION_HEADER: &str = "x-session-id";
const USER_HEADER: &str = "x-user-id";
/// Longest identity that a caller may assert; longer ones are ignored.
const LONGEST_IDENTITY: usize = 256;
const MOST_METADATA: usize = 32;
const LONGEST_METADATA: usize = 4 << 10;
/// When to try again where that may be at any moment.
const SOON: Duration = Duration::from_secs(1);
/// A model's window is believed to be too small only when the estimate is this many times as large: it is but an estimate.
const SURELY: u64 = 2;

/// What a plan is made for.
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a str,
    pub(crate) caller: &'a Caller,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) call: &'a Call,
}

/// What will be tried, first to last, and what became of the other targets.
pub(crate) struct Plan {
    pub(crate) route: String,
    /// `default`, `model`, `header`, `key` or `project`.
    pub(crate) route_by: &'static str,
    pub(crate) strategy: &'static str,
    /// After aliases.
    pub(crate) model: String,
    pub(crate) variant: Option<String>,
    pub(crate) legs: Vec<Leg>,
    /// How many of them, from the first, would let a call in as things stand.
    pub(crate) willing: usize,
    pub(crate) left_out: Vec<(TargetId, Reason)>,
    /// Why the call cannot be answered, as far as that is known before it is tried.
    pub(crate) error: Option<Error>,
    /// Who would be asked first if everybody could be.
    pub(crate) foremost: Option<Leg>,
    /// Estimate of what one attempt takes of a quota.
    pub(crate) tokens: u64,
    /// Where the walk through the routes began.
    pub(crate) start: RouteId,
}

/// Why a target is not in the order.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    /// A sentence without its full stop.
    pub(crate) text: String,
    pub(crate) until_ms: Option<i64>,
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self { text, until_ms: None }
    }
}

/// Makes the plan of a request.
///
/// # Errors
/// When what the request says about routing makes no sense; the header is named.
pub(crate) fn plan(snapshot: &Snapshot, asked: &Asked<'_>, clock: &dyn Clock) -> Result<Plan, Error> {
    let model = snapshot.resolve(&asked.call.model).to_owned();
    let (route, route_by) = route_of(snapshot, asked, &model)?;
    known_project(snapshot, asked.caller)?;
    let metadata = metadata(asked.headers)?;
    let now = now();
    let world = RequestWorld {
        snapshot,
        header_only: only_of(snapshot, asked.headers)?,
        project_only: project_only(snapshot, asked.caller),
        now,
    };
    let prompt = if snapshot.router.reads_prompts(route) {
        asked.call.user_text()
    } else {
        None
    };
    let estimate = LazyCell::new(|| asked.call.estimate_tokens());
    let work = work(asked.call, || {
        let exact = snapshot.counts_tokens || snapshot.router.reads_tokens(route);
        exact.then(|| *estimate)
    });
    let facts = Facts {
        model: &model,
        work,
        user: asked
            .call
            .user
            .as_deref()
            .or_else(|| identity(asked.headers, USER_HEADER)),
        session: identity(asked.headers, SESSION_HEADER),
        stream: asked.call.stream,
        has_tools: asked.call.has_tools,
        key: asked.caller.key_id.as_deref().zip(asked.caller.key_name.as_deref()),
        project: asked.caller.project.as_deref(),
        headers: &Headers(asked.headers),
        metadata: &metadata,
        prompt: prompt.as_deref(),
        now_ms: clock.now_ms(),
    };
    let mut dice = routing::dice(asked.id);
    let order = snapshot.router.order(route, &facts, &world, &mut dice);
    // Whether it is the restrictions that leave nobody, or nobody serves the model anyway.
    let unrestricted = order.legs.is_empty().then(|| {
        let world = RequestWorld {
            header_only: None,
            project_only: None,
            ..world
        };
        snapshot.router.order(route, &facts, &world, &mut dice)
    });
    let configured = snapshot.route(route);
    let mut plan = Plan {
        route: configured.map(|route| route.name.clone()).unwrap_or_default(),
        route_by,
        strategy: configured.map_or("", |route| route.strategy.mode.as_str()),
        variant: order.variant,
        legs: Vec::new(),
        willing: 0,
        left_out: Vec::new(),
        error: None,
        // Without a bound on the answer nobody can tell how long it gets: what it used is settled afterwards.
        tokens: work.input_tokens.saturating_add(work.output_tokens.unwrap_or(0)),
        foremost: order.legs.first().cloned(),
        start: route,
        model,
    };
    for (target, why) in &order.left_out {
        let text = plan.words(snapshot, route, *why, asked.caller);
        plan.left_out.push((*target, text.into()));
    }
    if let Some(free) = unrestricted {
        let left_out = if free.legs.is_empty() {
            &free.left_out
        } else {
            &order.left_out
        };
        plan.error = Some(plan.nobody(snapshot, left_out, asked.caller));
        return Ok(plan);
    }
    let moment = Moment {
        snapshot,
        call: asked.call,
        estimate: &estimate,
        clock,
        now,
    };
    sift(&mut plan, order.legs, &moment);
    if let Some(willing) = plan.legs.get_mut(..plan.willing) {
        ramp_up(willing, snapshot, now, &mut dice);
    }
    Ok(plan)
}

/// What legs are looked at with.
struct Moment<'a> {
    snapshot: &'a Snapshot,
    call: &'a Call,
    /// Of the prompt's tokens; made once, and only if somebody asks.
    estimate: &'a dyn Deref<Target = u64>,
    clock: &'a dyn Clock,
    now: Instant,
}

/// Drops the legs that cannot be asked now. What is only left alone for a while comes back when nothing else remains: the
/// answer to "everything is down" is found out by asking.
fn sift(plan: &mut Plan, legs: Vec<Leg>, moment: &Moment<'_>) {
    let Moment {
        snapshot, clock, now, ..
    } = *moment;
    let mut resting: Vec<(Leg, Hindered, Option<Instant>)> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    let mut out_of_quota: Vec<Option<Instant>> = Vec::new();
    let mut too_small_for_all = true;
    for leg in legs {
        let Some(target) = snapshot.targets.get(leg.target.0) else {
            continue;
        };
        let fixed = match &target.link {
            Err(reason) => {
                too_small_for_all = false;
                Some(reason.clone())
            }
            Ok(_) => too_small(target, &leg, moment),
        };
        if let Some(text) = fixed {
            reasons.push(format!("{}: {text}", target.name));
            plan.left_out.push((leg.target, text.into()));
            continue;
        }
        too_small_for_all = false;
        let Some(hindrance) = target.live.hindrance(plan.tokens, now) else {
            plan.legs.push(leg);
            continue;
        };
        let until_ms = hindrance.until.map(|at| wall_ms(at, now, clock));
        reasons.push(format!("{}: {}", target.name, hindrance.reason));
        let text = hindrance.reason;
        plan.left_out.push((leg.target, Reason { text, until_ms }));
        if hindrance.kind == Hindered::Quota {
            out_of_quota.push(hindrance.until);
        } else {
            resting.push((leg, hindrance.kind, hindrance.until));
        }
    }
    plan.willing = plan.legs.len();
    if plan.willing > 0 {
        return;
    }
    let wait = |until: Option<Instant>| until.map(|until| until.saturating_duration_since(now));
    let message = format!(
        "no target for model {} can be called now ({})",
        plan.model,
        reasons.join("; ")
    );
    if resting.is_empty() {
        // What comes back by itself is worth waiting for, whatever the others lack.
        let kind = match out_of_quota.is_empty() {
            false => Kind::OverQuota,
            true if too_small_for_all => Kind::ContextLength,
            true => Kind::NoTarget,
        };
        let until = out_of_quota.into_iter().flatten().min();
        plan.error = Some(Error {
            retry_after: wait(until),
            ..Error::new(kind, message)
        });
        return;
    }
    let refuses = |kind: Hindered| matches!(kind, Hindered::Open | Hindered::Saturated);
    if resting.iter().all(|(_, kind, _)| refuses(*kind)) {
        // A slot may become free at any moment, and a probe may end.
        let soon = resting.iter().any(|(_, _, until)| until.is_none());
        let until = resting.iter().filter_map(|(_, _, until)| *until).min();
        let full = resting.iter().any(|(_, kind, _)| *kind == Hindered::Saturated);
        plan.error = Some(Error {
            retry_after: if soon { Some(SOON) } else { wait(until) },
            ..Error::new(if full { Kind::Saturated } else { Kind::BreakerOpen }, message)
        });
    }
    // Those that would refuse come last: by then they may have changed their mind.
    plan.willing = resting.iter().filter(|(_, kind, _)| !refuses(*kind)).count();
    resting.sort_by_key(|(_, kind, _)| refuses(*kind));
    plan.legs = resting.into_iter().map(|(leg, ..)| leg).collect();
}

/// A target that has just recovered gets its full share little by little: until then it often stands last.
fn ramp_up(legs: &mut [Leg], snapshot: &Snapshot, now: Instant, dice: &mut dyn RngCore) {
    if legs.len() < 2 {
        return;
    }
    let mut steps_back = |leg: &Leg| {
        let target = snapshot.targets.get(leg.target.0)?;
        let share = target.live.share(now)?;
        Some(dice.random_range(0.0..1.0) >= share)
    };
    // Stable: each part keeps its order.
    legs.sort_by_cached_key(|leg| steps_back(leg).unwrap_or(false));
}

/// Whether the prompt is surely too long for the model's window.
fn too_small(target: &Target, leg: &Leg, moment: &Moment<'_>) -> Option<String> {
    let window = target.facts(&leg.model)?.context_window?;
    let at_most = u64::try_from(moment.call.prompt_bytes).ok()? / 4;
    if at_most / SURELY <= window {
        return None;
    }
    // Images and other data are part of those bytes, and no text.
    let estimate: u64 = **moment.estimate;
    (estimate / SURELY > window).then(|| {
        format!(
            "the prompt of about {estimate} tokens does not fit the {window} of {}",
            leg.model
        )
    })
}

/// What is asked for. Where nobody needs it exactly, the prompt's bytes do for its tokens.
fn work(call: &Call, exact: impl Fn() -> Option<u64>) -> Work {
    let roughly = || u64::try_from(call.prompt_bytes / 4 + 1).unwrap_or(u64::MAX);
    Work {
        kind: match call.surface {
            Surface::Chat => WorkKind::Chat,
            Surface::Embeddings => WorkKind::Embeddings,
        },
        input_tokens: exact().unwrap_or_else(roughly),
        output_tokens: call.max_output,
    }
}

// === What the request says about routing ===

fn route_of(snapshot: &Snapshot, asked: &Asked<'_>, model: &str) -> Result<(RouteId, &'static str), Error> {
    let names = || snapshot.route_names().collect::<Vec<_>>().join(", ");
    if let Some(name) = is_virtual(model) {
        return snapshot.router.find(name).map(|route| (route, "model")).ok_or_else(|| {
            let message = format!("there is no route {name}; routes here: {}", names());
            Error::new(Kind::ModelNotFound, message).with_param("model")
        });
    }
    if let Some(value) = asked.headers.get(ROUTE_HEADER) {
        let name = value.to_str().unwrap_or_default().trim();
        let name = is_virtual(name).unwrap_or(name);
        return snapshot
            .router
            .find(name)
            .map(|route| (route, "header"))
            .ok_or_else(|| {
                let message = format!("X-Gateway-Route names no route: {name:?}; routes here: {}", names());
                Error::new(Kind::InvalidRequest, message).with_param("X-Gateway-Route")
            });
    }
    let project = asked
        .caller
        .project
        .as_ref()
        .and_then(|name| snapshot.projects.get(name));
    let bound = [
        (asked.caller.route.as_ref(), "key"),
        (project.and_then(|project| project.route.as_ref()), "project"),
    ];
    for (name, by) in bound {
        let Some(name) = name else { continue };
        return snapshot.router.find(name).map(|route| (route, by)).ok_or_else(|| {
            let message = format!(
                "this key is bound to route {name}, which is not configured; routes here: {}",
                names()
            );
            Error::new(Kind::NoTarget, message)
        });
    }
    Ok((RouteId::DEFAULT, "default"))
}

/// The targets that `X-Gateway-Only` lists, by position.
fn only_of(snapshot: &Snapshot, headers: &HeaderMap) -> Result<Option<Vec<bool>>, Error> {
    let values: Vec<&str> = headers
        .get_all(ONLY_HEADER)
        .iter()
        .map(|value| value.to_str().unwrap_or_default())
        .collect();
    if values.is_empty() {
        return Ok(None);
    }
    let wrong = |message: String| Error::new(Kind::InvalidRequest, message).with_param("X-Gateway-Only");
    let mut only = vec![false; snapshot.targets.len()];
    let names = values.iter().flat_map(|value| value.split(',')).map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        let position = snapshot.targets.iter().position(|target| target.name == name);
        let Some(allowed) = position.and_then(|position| only.get_mut(position)) else {
            let known: Vec<&str> = snapshot.targets.iter().map(|target| target.name.as_str()).collect();
            let message = format!(
                "X-Gateway-Only names no configured target: {name:?}; targets here: {}",
                known.join(", ")
            );
            return Err(wrong(message));
        };
        *allowed = true;
    }
    if !only.contains(&true) {
        let message = "X-Gateway-Only is empty: list the targets that may answer, or leave it out";
        return Err(wrong(message.to_owned()));
    }
    Ok(Some(only))
}

/// Where projects are configured, a key of another one is not let through: its allow-list may just have been renamed.
fn known_project(snapshot: &Snapshot, caller: &Caller) -> Result<(), Error> {
    match &caller.project {
        Some(name) if !snapshot.takes_project(name) => {
            let message = format!("this key belongs to project {name}, which is not configured");
            Err(Error::new(Kind::NotAllowed, message))
        }
        Some(_) | None => Ok(()),
    }
}

fn project_only(snapshot: &Snapshot, caller: &Caller) -> Option<Vec<bool>> {
    let only = snapshot.projects.get(caller.project.as_ref()?)?.only.as_ref()?;
    Some(
        snapshot
            .targets
            .iter()
            .map(|target| only.contains(&target.name))
            .collect(),
    )
}

/// `X-Gateway-Metadata`: a small flat JSON object.
fn metadata(headers: &HeaderMap) -> Result<BTreeMap<String, String>, Error> {
    let Some(value) = headers.get(METADATA_HEADER) else {
        return Ok(BTreeMap::new());
    };
    let wrong = |must: &str| {
        Error::new(Kind::InvalidRequest, format!("X-Gateway-Metadata {must}")).with_param("X-Gateway-Metadata")
    };
    if value.len() > LONGEST_METADATA {
        return Err(wrong(&format!("must not be longer than {LONGEST_METADATA} bytes")));
    }
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(value.as_bytes()).map_err(|_| wrong("must be a JSON object"))?;
    if fields.len() > MOST_METADATA {
        return Err(wrong(&format!("must not have more than {MOST_METADATA} entries")));
    }
    let mut metadata = BTreeMap::new();
    for (name, value) in fields {
        let text = match value {
            serde_json::Value::String(text) => text,
            serde_json::Value::Bool(_) | serde_json::Value::Number(_) => value.to_string(),
            serde_json::Value::Null => continue,
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
                return Err(wrong(&format!("must hold plain values only; \"{name}\" is none")));
            }
        };
        metadata.insert(name, text);
    }
    Ok(metadata)
}

/// What a caller says about itself; ignored when it cannot be a name.
fn identity<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    let plain = !value.is_empty() && value.len() <= LONGEST_IDENTITY && !value.chars().any(char::is_control);
    plain.then_some(value)
}

struct Headers<'a>(&'a HeaderMap);

impl Fields for Headers<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }
}

/// The gateway, as routing may see it for one request.
struct RequestWorld<'a> {
    snapshot: &'a Snapshot,
    header_only: Option<Vec<bool>>,
    project_only: Option<Vec<bool>>,
    now: Instant,
}

impl World for RequestWorld<'_> {
    fn targets(&self) -> usize {
        self.snapshot.targets.len()
    }

    fn serves(&self, TargetId(i): TargetId, model: &str) -> Serves {
        self.snapshot
            .targets
            .get(i)
            .map_or(Serves::No, |target| target.serves(model))
    }

    fn upstream<'a>(&'a self, TargetId(i): TargetId, model: &'a str) -> &'a str {
        self.snapshot
            .targets
            .get(i)
            .map_or(model, |target| target.upstream_model(model))
    }

    fn p50(&self, TargetId(i): TargetId, upstream: &str) -> Option<Duration> {
        self.snapshot.targets.get(i)?.live.p50(upstream, self.now)
    }

    fn price(&self, TargetId(i): TargetId, upstream: &str, work: &Work) -> Option<f64> {
        self.snapshot.targets.get(i)?.price(upstream, work)
    }

    fn health(&self, TargetId(i): TargetId) -> Health {
        self.snapshot
            .targets
            .get(i)
            .map(|target| target.live.health(self.now))
            .unwrap_or_default()
    }

    fn denies(&self, TargetId(i): TargetId) -> Option<LeftOut> {
        let outside = |only: &Option<Vec<bool>>| only.as_ref().is_some_and(|only| only.get(i) != Some(&true));
        if outside(&self.project_only) {
            Some(LeftOut::Project)
        } else if outside(&self.header_only) {
            Some(LeftOut::Header)
        } else {
            None
        }
    }
}

// === Words ===

impl Plan {
    fn words(&self, snapshot: &Snapshot, route: RouteId, why: LeftOut, caller: &Caller) -> String {
        let mode = snapshot.route(route).map(|route| &route.strategy.mode);
        match why {
            LeftOut::Model => format!("does not serve model {}", self.model),
            LeftOut::NoModel => format!(
                "route {} says no model for it, and none was asked for but the route itself",
                self.route
            ),
            LeftOut::NotNamed => match mode {
                Some(Mode::Single) => "mode single uses the first target only".to_owned(),
                Some(mode) if mode.is_named() => format!("mode {} names others for this request", mode.as_str()),
                _ => "another target was named for this request".to_owned(),
            },
            LeftOut::NotInRoute => format!("is not part of route {}", self.route),
            LeftOut::Unpriced => format!("no price is known for model {}", self.model),
            LeftOut::Header => "X-Gateway-Only does not list it".to_owned(),
            LeftOut::Project => format!(
                "project {} may not use it",
                caller.project.as_deref().unwrap_or_default()
            ),
        }
    }

    /// Why routing names nobody.
    fn nobody(&self, snapshot: &Snapshot, left_out: &[(TargetId, LeftOut)], caller: &Caller) -> Error {
        let any = |what: LeftOut| left_out.iter().any(|(_, why)| *why == what);
        if any(LeftOut::Header) {
            let message = format!("X-Gateway-Only leaves no target that serves the model {}", self.model);
            return Error::new(Kind::InvalidRequest, message).with_param("X-Gateway-Only");
        }
        if any(LeftOut::Project) {
            let message = format!(
                "project {} may use no target that serves the model {}",
                caller.project.as_deref().unwrap_or_default(),
                self.model
            );
            return Error::new(Kind::NotAllowed, message);
        }
        let message = if any(LeftOut::Unpriced) {
            format!(
                "no target has a known price for the model {}, and unpriced_strategy is skip",
                self.model
            )
        } else if any(LeftOut::NoModel) {
            format!(
                "route {} does not say which model to ask for; give it or its targets a `model`, or name one and the \
                 route in X-Gateway-Route",
                self.route
            )
        } else {
            self.unknown_model(snapshot)
        };
        Error::new(Kind::ModelNotFound, message).with_param("model")
    }

    fn unknown_model(&self, snapshot: &Snapshot) -> String {
        let mut known: Vec<&str> = snapshot.targets.iter().flat_map(|target| target.names()).collect();
        known.dedup();
        let shown = known.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        let more = if known.len() > 8 { ", …" } else { "" };
        format!(
            "no configured target serves the model {}; served here: {shown}{more}",
            self.model
        )
    }
}
