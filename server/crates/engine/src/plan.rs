//! Resolve and plan: which targets a request will try, in which order, and why not the others.
//!
//! A pure look at the snapshot, the request and the moment: the dry run makes the same plan as the real call and then stops.
//! Dice are thrown from the request's id, so that both get the same when they carry the same id.

mod asked;
mod words;

use crate::live::{Hindered, now, wall_ms};
use crate::ports::Clock;
use crate::record;
use crate::request::Caller;
use crate::snapshot::{Snapshot, Target};
use crate::thread::{NativeOnly, Thread};
use asked::{Headers, SESSION_HEADER, USER_HEADER, identity, known_project, metadata, only_of, project_only, route_of};
use http::HeaderMap;
use rand::{Rng, RngCore};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchyard_core::catalog::{Work, WorkKind};
use switchyard_core::error::{Error, Kind};
use switchyard_core::health::Health;
use switchyard_core::routing::{self, Facts, LeftOut, Leg, RouteId, Serves, TargetId, World};
use switchyard_providers::{Call, Task};

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
    pub(crate) thread: Option<&'a Thread>,
}

/// What will be tried, first to last, and what became of the other targets.
pub(crate) struct Plan {
    pub(crate) route: Arc<str>,
    /// `default`, `model`, `header`, `key` or `project`.
    pub(crate) route_by: &'static str,
    pub(crate) strategy: &'static str,
    /// After aliases.
    pub(crate) model: String,
    pub(crate) variant: Option<String>,
    pub(crate) legs: Vec<Leg>,
    /// How many of them, from the first, would let a call in as things stand.
    pub(crate) willing: usize,
    /// Those that routing does not name.
    pub(crate) not_named: record::LeftOut,
    /// Those that it names and that cannot be asked, in its order.
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
    pub(crate) text: Cow<'static, str>,
    pub(crate) until_ms: Option<i64>,
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self {
            text: text.into(),
            until_ms: None,
        }
    }
}

/// The targets that a request may go to, by position, as its headers and its project say; each list leaves out more.
///
/// # Errors
/// When what it says makes no sense.
pub(crate) fn may_ask(snapshot: &Snapshot, headers: &HeaderMap, caller: &Caller) -> Result<Vec<Arc<[bool]>>, Error> {
    known_project(snapshot, caller)?;
    let lists = [only_of(snapshot, headers)?, project_only(snapshot, caller)];
    Ok(lists.into_iter().flatten().collect())
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
        route: configured.map_or_else(|| "".into(), |route| route.name.as_str().into()),
        route_by,
        strategy: configured.map_or("", |route| route.strategy.mode.as_str()),
        variant: order.variant,
        legs: Vec::new(),
        willing: 0,
        not_named: record::LeftOut::default(),
        left_out: Vec::new(),
        error: None,
        // Without a bound on the answer nobody can tell how long it gets: what it used is settled afterwards.
        tokens: work.input_tokens.saturating_add(work.output_tokens.unwrap_or(0)),
        foremost: order.legs.first().cloned(),
        start: route,
        model,
    };
    plan.not_named = not_named(&order.why_not, |why| plan.words(snapshot, route, why, asked.caller));
    if let Some(free) = unrestricted {
        let why_not = if free.legs.is_empty() {
            &free.why_not
        } else {
            &order.why_not
        };
        plan.error = Some(plan.nobody(snapshot, why_not, asked.caller));
        return Ok(plan);
    }
    let moment = Moment {
        snapshot,
        call: asked.call,
        native_only: asked.thread.and_then(|thread| thread.native_only.as_ref()),
        estimate: &estimate,
        clock,
        now,
    };
    sift(&mut plan, order.legs, &moment);
    if let Some(willing) = plan.legs.get_mut(..plan.willing) {
        ramp_up(willing, snapshot, now, &mut dice);
        go_on(willing, snapshot, asked.thread);
    }
    Ok(plan)
}

/// The same reason is said of many targets, and is put into `words` once.
fn not_named(why_not: &[Option<LeftOut>], words: impl Fn(LeftOut) -> String) -> record::LeftOut {
    let mut kinds: Vec<LeftOut> = Vec::new();
    let mut place = |why: LeftOut| {
        let place = kinds.iter().position(|kind| *kind == why).unwrap_or_else(|| {
            kinds.push(why);
            kinds.len() - 1
        });
        u8::try_from(place).ok()
    };
    let places: Vec<Option<u8>> = why_not.iter().map(|why| place((*why)?)).collect();
    record::LeftOut::new(
        places.into_iter(),
        kinds.into_iter().map(words).map(Cow::Owned).collect(),
    )
}

/// What legs are looked at with.
struct Moment<'a> {
    snapshot: &'a Snapshot,
    call: &'a Call,
    native_only: Option<&'a NativeOnly>,
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
    let mut out_of_quota: Vec<Option<Instant>> = Vec::new();
    let mut too_small_for_all = true;
    let mut foreign = false;
    plan.legs = legs;
    plan.legs.retain(|leg| {
        let Some(target) = snapshot.targets.get(leg.target.0) else {
            return false;
        };
        let fixed = match &target.link {
            Err(reason) => {
                too_small_for_all = false;
                Some(reason.clone())
            }
            Ok(link) if !link.takes(moment.call.surface) => {
                too_small_for_all = false;
                Some(format!("its wire has no {}", moment.call.surface.as_str()))
            }
            Ok(link) => match moment.native_only.filter(|_| !link.speaks(moment.call.surface)) {
                Some(only) => {
                    (too_small_for_all, foreign) = (false, true);
                    Some(only.why.clone().into_owned())
                }
                None => too_small(target, leg, moment),
            },
        };
        if let Some(text) = fixed {
            plan.left_out.push((leg.target, text.into()));
            return false;
        }
        too_small_for_all = false;
        let Some(hindrance) = target.live.hindrance(plan.tokens, now) else {
            return true;
        };
        let until_ms = hindrance.until.map(|at| wall_ms(at, now, clock));
        let text = hindrance.reason.into();
        plan.left_out.push((leg.target, Reason { text, until_ms }));
        if hindrance.kind == Hindered::Quota {
            out_of_quota.push(hindrance.until);
        } else {
            resting.push((leg.clone(), hindrance.kind, hindrance.until));
        }
        false
    });
    plan.willing = plan.legs.len();
    if plan.willing > 0 {
        return;
    }
    let wait = |until: Option<Instant>| until.map(|until| until.saturating_duration_since(now));
    let reason = |(TargetId(i), reason): &(TargetId, Reason)| {
        let target = snapshot.targets.get(*i)?;
        Some(format!("{}: {}", target.name, reason.text))
    };
    let message = format!(
        "no target for model {} can be called now ({})",
        plan.model,
        plan.left_out.iter().filter_map(reason).collect::<Vec<_>>().join("; ")
    );
    if resting.is_empty() {
        // What comes back by itself is worth waiting for, whatever the others lack.
        let kind = match out_of_quota.is_empty() {
            false => Kind::OverQuota,
            true if too_small_for_all => Kind::ContextLength,
            true => Kind::NoTarget,
        };
        let only = moment.native_only.filter(|_| foreign && out_of_quota.is_empty());
        let until = out_of_quota.into_iter().flatten().min();
        plan.error = Some(Error {
            retry_after: wait(until),
            ..Error::new(kind, message)
        });
        if let Some(only) = only {
            plan.error = Some(only.error.clone());
        }
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
    let share = |leg: &Leg| snapshot.targets.get(leg.target.0)?.live.share(now);
    if legs.len() < 2 || legs.iter().all(|leg| share(leg).is_none()) {
        return;
    }
    let mut steps_back = |leg: &Leg| Some(dice.random_range(0.0..1.0) >= share(leg)?);
    // Stable: each part keeps its order.
    legs.sort_by_cached_key(|leg| steps_back(leg).unwrap_or(false));
}

/// Whoever has what was said before is asked first.
fn go_on(legs: &mut [Leg], snapshot: &Snapshot, thread: Option<&Thread>) {
    let Some(name) = thread.and_then(|thread| thread.target.as_deref()) else {
        return;
    };
    let is_it = |leg: &Leg| {
        snapshot
            .targets
            .get(leg.target.0)
            .is_some_and(|target| *target.name == *name)
    };
    if let Some(at) = legs.iter().position(is_it)
        && let Some(until) = legs.get_mut(..=at)
    {
        until.rotate_right(1);
    }
}

/// Whether the prompt is surely too long for the model's window.
fn too_small(target: &Target, leg: &Leg, moment: &Moment<'_>) -> Option<String> {
    let at_most = u64::try_from(moment.call.prompt_bytes).ok()? / 4;
    // Of many targets this is asked for every call: most prompts fit everywhere.
    if at_most / SURELY <= target.narrowest_window() {
        return None;
    }
    let window = target.facts(&leg.model)?.context_window?;
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
        kind: match call.surface.task() {
            Task::Converse | Task::Count => WorkKind::Chat,
            Task::Embed => WorkKind::Embeddings,
        },
        input_tokens: exact().unwrap_or_else(roughly),
        output_tokens: call.max_output,
    }
}

/// The gateway, as routing may see it for one request.
struct RequestWorld<'a> {
    snapshot: &'a Snapshot,
    header_only: Option<Arc<[bool]>>,
    project_only: Option<Arc<[bool]>>,
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
        let outside = |only: &Option<Arc<[bool]>>| only.as_ref().is_some_and(|only| only.get(i) != Some(&true));
        if outside(&self.project_only) {
            Some(LeftOut::Project)
        } else if outside(&self.header_only) {
            Some(LeftOut::Header)
        } else {
            None
        }
    }
}
