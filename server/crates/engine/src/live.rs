//! A target as it is now: its breaker, its slots, its quota, its credentials and what was measured of it.
//!
//! One [`Live`] per target, shared by every route, every surface and every snapshot that names it. A call enters through
//! [`Live::admit`] and holds a [`Pass`] until it has ended; whatever ends it, also a drop in the middle, gives the slot and
//! the probe's place back. The state machines themselves are pure and stand in `switchyard_core`; here they get a lock, a
//! clock and a queue. The lock is the target's own and is never held over an await.

mod pass;
mod slots;

pub(crate) use pass::{Failed, Pass};

use crate::ports::Clock;
use slots::Slots;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use switchyard_core::breaker::{Breaker, Change, Policy, Refused, State};
use switchyard_core::config::{self, Aws, Concurrency, Credential, ExtraSurface, Provider, ProviderKind};
use switchyard_core::env::Template;
use switchyard_core::error::{Error, Kind};
use switchyard_core::health::{Health, Outcomes};
use switchyard_core::hold::{Hold, Rule};
use switchyard_core::quota::{Limits, Use, Used, Windows};
use switchyard_core::ramp;
use switchyard_core::samples::Latencies;
use switchyard_core::tally::Tally;

/// When to try again while a probe is under way.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// The steady clock, as the runtime has it: tests own it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// A moment of the steady clock, as milliseconds since the Unix epoch.
pub(crate) fn wall_ms(at: Instant, now: Instant, clock: &dyn Clock) -> i64 {
    let ahead = at.saturating_duration_since(now).as_millis();
    clock.now_ms().saturating_add(i64::try_from(ahead).unwrap_or(i64::MAX))
}

/// Its parts are shared one by one with the snapshot before, so that a change of one does not forget the others.
pub(crate) struct Live {
    name: String,
    blueprint: Blueprint,
    breaker: Option<Arc<Mutex<Breaker>>>,
    quota: Option<Arc<Mutex<Windows>>>,
    slots: Option<Arc<Slots>>,
    in_flight: Arc<AtomicU32>,
    vitals: Arc<Mutex<Vitals>>,
}

/// What decides whether state survives a change of configuration.
#[derive(PartialEq)]
struct Blueprint {
    breaker: Option<config::Breaker>,
    concurrency: Option<Concurrency>,
    quota: Limits,
    upstream: Option<Upstream>,
    credentials: usize,
}

/// Of a provider, what makes it another upstream when it changes. Its models and prices do not.
#[derive(PartialEq)]
struct Upstream {
    kind: ProviderKind,
    base_url: Option<Template>,
    credentials: Vec<Credential>,
    headers: Vec<(String, Template)>,
    surfaces: Vec<ExtraSurface>,
    aws: Aws,
}

/// What is known of the upstream behind it.
#[derive(Default)]
struct Vitals {
    park: Hold,
    parked_at: Option<Instant>,
    park_reason: &'static str,
    latencies: Latencies,
    outcomes: Outcomes,
    calls: Tally,
    credentials: Vec<Bench>,
    /// When a background probe was made last.
    verified: Option<Instant>,
}

/// One credential's health.
#[derive(Default)]
struct Bench {
    hold: Hold,
    /// When it was refused last: what began before says nothing about it.
    refused_at: Option<Instant>,
    reason: String,
    /// A probe may bring it back before its time, and keeps it out for as long as it fails. Not so after a 429.
    verify: bool,
    probed: Option<Instant>,
}

/// Why a credential is benched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Benched {
    /// A listing of models may show that it works again.
    Refused,
    /// A listing says nothing about money.
    Spent,
    Limited,
}

impl Benched {
    const fn reason(self) -> &'static str {
        match self {
            Self::Refused => "the upstream refused it (401)",
            Self::Spent => "what may be spent with it is used up",
            Self::Limited => "it is parked after a 429",
        }
    }
}

/// Why a target should not be asked now.
pub(crate) struct Hindrance {
    pub(crate) kind: Hindered,
    pub(crate) reason: String,
    pub(crate) until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hindered {
    /// The operator's own limit: it is kept whatever else happens.
    Quota,
    Open,
    /// No slot is free, and the queue is full.
    Saturated,
    /// Left alone out of courtesy: it is asked nevertheless when nobody else is left.
    Parked,
    Benched,
}

/// Everything about a target at one moment.
pub(crate) struct Look {
    pub(crate) breaker: Option<(State, u32)>,
    pub(crate) recovering: bool,
    /// Until when, and why.
    pub(crate) parked: Option<(Instant, &'static str)>,
    pub(crate) in_flight: u32,
    pub(crate) most: Option<u32>,
    pub(crate) queued: u32,
    pub(crate) queue: Option<u32>,
    pub(crate) latency: Vec<(String, Duration, usize)>,
    pub(crate) health: Health,
    pub(crate) quota: Vec<Use>,
    /// Why each credential is out, and until when.
    pub(crate) credentials: Vec<Option<(String, Instant)>>,
    pub(crate) calls: u64,
}

impl Live {
    /// A fresh state, or `earlier` where nothing that decides about it has changed.
    pub(crate) fn build(
        target: &config::Target,
        provider: Option<&Provider>,
        credentials: usize,
        earlier: Option<&Arc<Self>>,
    ) -> Arc<Self> {
        let upstream = provider.map(|provider| Upstream {
            kind: provider.kind,
            base_url: provider.base_url.clone(),
            credentials: provider.credentials.clone(),
            headers: provider.headers.clone(),
            surfaces: provider.surfaces.clone(),
            aws: provider.aws.clone(),
        });
        let blueprint = Blueprint {
            breaker: target.breaker.clone(),
            concurrency: target.concurrency,
            quota: target.quota,
            upstream,
            credentials,
        };
        // Another upstream under the same name: nothing that was learned is true of it.
        let earlier = earlier.filter(|earlier| {
            earlier.blueprint.upstream == blueprint.upstream && earlier.blueprint.credentials == credentials
        });
        if let Some(earlier) = earlier.filter(|earlier| earlier.blueprint == blueprint) {
            return Arc::clone(earlier);
        }
        let policy = |breaker: &config::Breaker| Breaker::new(breaker.policy.clone());
        let fresh = || Vitals {
            credentials: (0..credentials).map(|_| Bench::default()).collect(),
            ..Vitals::default()
        };
        Arc::new(Self {
            name: target.virtual_key.clone(),
            breaker: earlier
                .filter(|earlier| earlier.blueprint.breaker == blueprint.breaker)
                .map_or_else(
                    || {
                        target
                            .breaker
                            .as_ref()
                            .map(|breaker| Arc::new(Mutex::new(policy(breaker))))
                    },
                    |earlier| earlier.breaker.clone(),
                ),
            quota: earlier
                .filter(|earlier| earlier.blueprint.quota == target.quota)
                .map_or_else(
                    || {
                        let limited = target.quota != Limits::default();
                        limited.then(|| Arc::new(Mutex::new(Windows::new(target.quota))))
                    },
                    |earlier| earlier.quota.clone(),
                ),
            slots: earlier
                .filter(|earlier| earlier.blueprint.concurrency == target.concurrency)
                .map_or_else(
                    || target.concurrency.map(|concurrency| Arc::new(Slots::new(concurrency))),
                    |earlier| earlier.slots.clone(),
                ),
            in_flight: earlier
                .map(|earlier| Arc::clone(&earlier.in_flight))
                .unwrap_or_default(),
            vitals: earlier.map_or_else(|| Arc::new(Mutex::new(fresh())), |earlier| Arc::clone(&earlier.vitals)),
            blueprint,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vitals> {
        locked(&self.vitals)
    }

    fn breaker(&self) -> Option<MutexGuard<'_, Breaker>> {
        self.breaker.as_deref().map(locked)
    }

    fn quota(&self) -> Option<MutexGuard<'_, Windows>> {
        self.quota.as_deref().map(locked)
    }

    /// Whether prompts have to be counted before a call.
    pub(crate) const fn counts_tokens(&self) -> bool {
        let Limits { tpm, tpd, .. } = self.blueprint.quota;
        tpm.is_some() || tpd.is_some()
    }

    pub(crate) fn reverify(&self) -> Option<&config::Reverify> {
        self.blueprint.breaker.as_ref()?.reverify.as_ref()
    }

    // === What a plan looks at ===

    pub(crate) fn p50(&self, model: &str, now: Instant) -> Option<Duration> {
        self.lock().latencies.p50(model, now)
    }

    pub(crate) fn health(&self, now: Instant) -> Health {
        self.lock().outcomes.health(now)
    }

    /// What keeps the target from being asked now, the hardest first.
    pub(crate) fn hindrance(&self, tokens: u64, now: Instant) -> Option<Hindrance> {
        if let Some(Err(used)) = self.quota().map(|quota| quota.check(tokens, now)) {
            return Some(Hindrance {
                kind: Hindered::Quota,
                reason: used_words(&used, tokens, "its quota"),
                until: comes_back(&used, tokens),
            });
        }
        if let Some(Err(Refused { until })) = self.breaker().map(|breaker| breaker.may_begin(now)) {
            return Some(Hindrance {
                kind: Hindered::Open,
                reason: format!("its circuit breaker {}", shut(until)),
                until,
            });
        }
        if let Some(full) = self.slots.as_deref().and_then(Slots::full) {
            return Some(Hindrance {
                kind: Hindered::Saturated,
                reason: format!("it has {full}"),
                until: None,
            });
        }
        let vitals = self.lock();
        if let Some(until) = vitals.park.until(now) {
            return Some(Hindrance {
                kind: Hindered::Parked,
                reason: vitals.park_reason.to_owned(),
                until: Some(until),
            });
        }
        let earliest = vitals.all_benched(now)?;
        Some(Hindrance {
            kind: Hindered::Benched,
            reason: "all of its credentials are benched".to_owned(),
            until: Some(earliest),
        })
    }

    /// While it recovers, the share of its traffic that it gets, below 1.
    pub(crate) fn share(&self, now: Instant) -> Option<f64> {
        let ramp = self.blueprint.breaker.as_ref()?.ramp;
        let recovered = self.breaker()?.recovered_at()?;
        let share = ramp::share(now.saturating_duration_since(recovered), ramp);
        (share < 1.0).then_some(share)
    }

    // === A call's way in ===

    /// Waits for a slot, no longer than until `deadline`.
    ///
    /// The breaker and the quota are asked twice: nobody waits in line for what would be refused at its end, and nobody
    /// who has waited calls a target that has opened meanwhile. A probe's place is taken by a call, never by a wait.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        tokens: u64,
        deadline: Option<tokio::time::Instant>,
    ) -> Result<Pass, Error> {
        self.may_enter(tokens, now())?;
        let slot = match &self.slots {
            Some(slots) => Some(slots.acquire(&self.name, deadline).await?),
            None => None,
        };
        let mut pass = Pass {
            live: Arc::clone(self),
            admission: None,
            taken: None,
            slot,
            flying: false,
            credential: 0,
            began: now(),
            model: String::new(),
            tokens: None,
        };
        // Each lock ends with its statement: a pass that is dropped takes it again.
        let admitted = self.breaker().map(|mut breaker| breaker.admit(pass.began));
        pass.admission = admitted
            .transpose()
            .map_err(|refused| self.refused(refused, pass.began))?;
        let taken = self.quota().map(|mut quota| quota.take(tokens, pass.began));
        pass.taken = taken
            .transpose()
            .map_err(|used| self.used_up(&used, tokens, pass.began))?;
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        pass.flying = true;
        self.lock().calls.add(pass.began);
        Ok(pass)
    }

    fn may_enter(&self, tokens: u64, now: Instant) -> Result<(), Error> {
        if let Some(breaker) = self.breaker() {
            breaker.may_begin(now).map_err(|refused| self.refused(refused, now))?;
        }
        if let Some(quota) = self.quota() {
            quota
                .check(tokens, now)
                .map_err(|used| self.used_up(&used, tokens, now))?;
        }
        Ok(())
    }

    fn refused(&self, Refused { until }: Refused, now: Instant) -> Error {
        // A probe that is under way may end at any moment.
        let wait = until.map_or(PROBE_WAIT, |until| until.saturating_duration_since(now));
        Error {
            retry_after: Some(wait),
            ..Error::new(
                Kind::BreakerOpen,
                format!("the circuit breaker of {} {}", self.name, shut(until)),
            )
        }
    }

    fn used_up(&self, used: &Used, tokens: u64, now: Instant) -> Error {
        Error {
            retry_after: comes_back(used, tokens).map(|until| until.saturating_duration_since(now)),
            ..Error::new(
                Kind::OverQuota,
                used_words(used, tokens, &format!("the gateway's quota for {}", self.name)),
            )
        }
    }

    /// Whether a call at that moment would be refused here, as far as it can be told now.
    pub(crate) fn refuses(&self, tokens: u64, at: Instant) -> bool {
        let hindrance = self.hindrance(tokens, at);
        hindrance
            .is_some_and(|hindrance| matches!(hindrance.kind, Hindered::Quota | Hindered::Open | Hindered::Saturated))
    }

    /// Credentials that may be used now; the one that comes back first when none may.
    pub(crate) fn usable(&self, now: Instant) -> Vec<usize> {
        let inner = self.lock();
        let benched = |i: usize| inner.credentials.get(i).and_then(|bench| bench.hold.until(now));
        let all = 0..inner.credentials.len();
        let usable: Vec<usize> = all.clone().filter(|i| benched(*i).is_none()).collect();
        if usable.is_empty() {
            return all.min_by_key(|i| benched(*i)).into_iter().collect();
        }
        usable
    }

    /// Takes a credential out for a while. Gives false, and does nothing, where it has no sibling in service: a call
    /// that fails tells more than one that is never made.
    fn bench(&self, credential: usize, hint: Option<Duration>, rule: Rule, why: Benched, now: Instant) -> bool {
        let (reason, verify) = (why.reason().to_owned(), why == Benched::Refused);
        let mut inner = self.lock();
        let has_sibling = inner
            .credentials
            .iter()
            .enumerate()
            .any(|(i, bench)| i != credential && bench.hold.until(now).is_none());
        let Some(bench) = inner.credentials.get_mut(credential).filter(|_| has_sibling) else {
            return false;
        };
        // What stands in force as something to be verified stays so when a late 429 comes in.
        let to_verify = bench.verify && bench.hold.until(now).is_some();
        bench.hold.put(rule, hint, now);
        bench.refused_at = Some(now);
        if to_verify && !verify {
            return true;
        }
        bench.reason = reason;
        bench.verify = verify;
        bench.probed = Some(now);
        true
    }

    // === Background ===

    /// Benched credentials that have not been probed for a while. Each is marked as being probed now.
    pub(crate) fn to_probe(&self, every: Duration, now: Instant) -> Vec<usize> {
        let mut due = Vec::new();
        for (i, bench) in self.lock().credentials.iter_mut().enumerate() {
            let is_due = bench
                .probed
                .is_none_or(|probed| now.saturating_duration_since(probed) >= every);
            if bench.verify && bench.hold.until(now).is_some() && is_due {
                bench.probed = Some(now);
                due.push(i);
            }
        }
        due
    }

    pub(crate) fn credential_works(&self, credential: usize) {
        if let Some(bench) = self.lock().credentials.get_mut(credential) {
            bench.hold.clear();
        }
    }

    /// It still does not: it stays out until after the next probe, but not for ever on a listing's word alone.
    pub(crate) fn credential_fails(&self, credential: usize, now: Instant) {
        if let Some(bench) = self.lock().credentials.get_mut(credential)
            && bench
                .refused_at
                .is_some_and(|at| now.saturating_duration_since(at) < Rule::BENCH.longest)
        {
            bench.hold.put(Rule::BENCH, Some(Rule::BENCH.first), now);
        }
    }

    /// Whether an open breaker should be looked behind now. Says so once per interval.
    pub(crate) fn reverify_due(&self, now: Instant) -> bool {
        let Some(every) = self.reverify().map(|reverify| reverify.every) else {
            return false;
        };
        let out = self
            .breaker()
            .is_some_and(|breaker| !matches!(breaker.state(now), State::Closed { .. }));
        let mut inner = self.lock();
        let due = inner
            .verified
            .is_none_or(|at| now.saturating_duration_since(at) >= every);
        if out && due {
            inner.verified = Some(now);
        }
        out && due
    }

    pub(crate) fn reverified(&self, ok: bool, now: Instant) {
        let change = self.breaker().and_then(|mut breaker| breaker.probed(ok, now));
        self.tell(change.as_ref());
    }

    fn tell(&self, change: Option<&Change>) {
        match change {
            Some(Change::Opened { .. }) => {
                let seconds = self.blueprint.breaker.as_ref().map(|b| b.policy.timeout.as_secs_f64());
                tracing::warn!(target.name = self.name, seconds, "a circuit breaker opened");
            }
            Some(Change::Closed) => tracing::info!(target.name = self.name, "a circuit breaker closed"),
            None => {}
        }
    }

    // === Pages ===

    pub(crate) fn circuit(&self, now: Instant) -> Option<State> {
        Some(self.breaker()?.state(now))
    }

    pub(crate) fn look(&self, now: Instant) -> Look {
        let recovering = self.share(now).is_some();
        let state = self.breaker().map(|breaker| breaker.state(now));
        let quota = self.quota().map(|quota| quota.use_of(now)).unwrap_or_default();
        let inner = self.lock();
        let threshold = |breaker: &config::Breaker| {
            let Policy { failure_threshold, .. } = breaker.policy;
            failure_threshold
        };
        let out = |bench: &Bench| Some((bench.reason.clone(), bench.hold.until(now)?));
        Look {
            breaker: state.zip(self.blueprint.breaker.as_ref().map(threshold)),
            recovering,
            parked: inner.park.until(now).map(|until| (until, inner.park_reason)),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            most: self.slots.as_ref().map(|slots| slots.most),
            queued: self
                .slots
                .as_ref()
                .map_or(0, |slots| slots.waiting.load(Ordering::Relaxed)),
            queue: self.slots.as_ref().map(|slots| slots.queue),
            latency: inner
                .latencies
                .iter(now)
                .map(|(model, p50, samples)| (model.to_owned(), p50, samples))
                .collect(),
            health: inner.outcomes.health(now),
            quota,
            credentials: inner.credentials.iter().map(out).collect(),
            calls: inner.calls.count(now),
        }
    }
}

impl Vitals {
    /// When the first comes back, if there are several and all are out.
    fn all_benched(&self, now: Instant) -> Option<Instant> {
        if self.credentials.len() < 2 {
            return None;
        }
        let holds: Option<Vec<Instant>> = self.credentials.iter().map(|bench| bench.hold.until(now)).collect();
        holds?.into_iter().min()
    }
}

/// What this call asks of the limit that refuses it.
fn wanted(used: &Used, tokens: u64) -> u64 {
    if used.limit.starts_with('t') { tokens } else { 1 }
}

fn used_words(used: &Used, tokens: u64, whose: &str) -> String {
    let Used { limit, most, .. } = used;
    let wanted = wanted(used, tokens);
    if wanted > *most {
        return format!("{whose} allows {most} {limit}, and this call alone asks for about {wanted}");
    }
    format!("{whose} is used up: {} of {most} {limit}", used.used)
}

/// When the call fits; never, when it asks for more than the whole limit.
fn comes_back(used: &Used, tokens: u64) -> Option<Instant> {
    (wanted(used, tokens) <= used.most).then_some(used.until)
}

/// Why a breaker lets nobody through.
const fn shut(until: Option<Instant>) -> &'static str {
    match until {
        Some(_) => "is open",
        None => "is half-open and lets no more calls through until its probe has ended",
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
