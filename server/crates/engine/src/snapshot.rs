//! One immutable view of everything a request is decided by.
//!
//! Built from a configuration and the environment, swapped as a whole, loaded once per request. A provider without a
//! credential does not keep the gateway from starting: its targets are there, with the reason why they cannot be called.
//!
//! What changes while it runs stands in [`Live`], which a new snapshot takes over from the one before for every target
//! whose own block did not change.

use crate::built_in;
use crate::demo::DemoTransport;
use crate::live::Live;
use crate::models::{Discovered, Listed};
use crate::ports::Transport;
use crate::site::{GoogleTokens, Key, Other, Site};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use switchyard_core::catalog::{self, Vendor, Work};
use switchyard_core::config::{
    self, Asking, BUILT_IN, Config, OnUnsupported, PassThrough, Price, Project, Provider, ProviderKind, Route, To,
};
use switchyard_core::env::Env;
use switchyard_core::routing::{Leg, RouteId, Router, Serves};
use switchyard_core::secret::Secret;
use switchyard_providers::params::WireKind;
use switchyard_providers::{Surface, Takes, Wire};
use tokio::time::Instant;

pub struct Snapshot {
    pub(crate) router: Router,
    /// As configured; the first is the default.
    pub(crate) routes: Vec<Route>,
    pub(crate) projects: BTreeMap<String, Project>,
    pub(crate) targets: Vec<Target>,
    /// Of the targets, for the records.
    pub(crate) names: Arc<[Arc<str>]>,
    /// Where each target stands.
    positions: HashMap<Arc<str>, usize>,
    /// By project with an allow-list: whether it holds the target in a position.
    allowed: HashMap<String, Arc<[bool]>>,
    pub(crate) aliases: BTreeMap<String, String>,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) on_unsupported: OnUnsupported,
    pub(crate) pass_through: PassThrough,
    /// A quota needs the prompt's tokens before a call is made.
    pub(crate) counts_tokens: bool,
    /// `GET /v1/models`, as of a moment.
    pub(crate) listed: Listed,
    pub max_request_bytes: usize,
}

pub(crate) struct Target {
    /// `virtual_key`.
    pub(crate) name: Arc<str>,
    pub(crate) provider: Arc<str>,
    pub(crate) simulated: bool,
    /// Why it cannot be called at all.
    pub(crate) link: Result<Link, String>,
    /// Listed for it, by its provider or by itself. Empty with `serves_any`.
    pub(crate) models: Vec<String>,
    pub(crate) serves_any: bool,
    pub(crate) model_map: BTreeMap<String, String>,
    /// What the catalogue knows of its models and prices.
    vendor: Vendor,
    /// The catalogue's models are its models, as nobody lists others. They decide its place in an order, and are not
    /// listed.
    knows_catalog: bool,
    prices: BTreeMap<String, Price>,
    pub(crate) discovered: Discovered,
    pub(crate) live: Arc<Live>,
}

/// The way to an upstream.
pub(crate) struct Link {
    pub(crate) transport: Arc<dyn Transport>,
    /// At least one; one without a key where none is needed.
    pub(crate) accesses: Vec<Access>,
    /// By surface: of the accesses, the one that takes it least.
    takes: [Takes; Surface::ALL.len()],
    /// Credentials that are named and not there, each with the reason.
    pub(crate) missing: Vec<(String, String)>,
    /// Taken out of every message that leaves.
    pub(crate) secrets: Vec<Secret>,
}

/// One credential, and the wire that is spoken with it.
pub(crate) struct Access {
    /// Absent: no credential is needed.
    pub(crate) id: Option<String>,
    pub(crate) weight: f64,
    pub(crate) wire: Box<dyn Wire>,
}

/// What a snapshot is built with.
pub struct Parts<'a> {
    pub env: &'a dyn Env,
    pub transport: Arc<dyn Transport>,
    pub demo: Arc<DemoTransport>,
    pub google: &'a dyn GoogleTokens,
}

/// What one provider can be asked for.
#[derive(Clone, Debug)]
pub struct Capability {
    pub provider: Arc<str>,
    pub wire: WireKind,
    pub surfaces: [(Surface, Takes); Surface::ALL.len()],
}

/// A configuration that cannot come to life in this environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(String);

impl BuildError {
    pub(crate) const fn new(message: String) -> Self {
        Self(message)
    }
}

impl Snapshot {
    /// Uses the configuration, or what the environment offers when there is none. From `earlier` it takes over what was
    /// learned of targets that are the same as before.
    ///
    /// # Errors
    /// When a setting that came from the environment makes no sense, such as an address that is none.
    pub fn build(config: Option<&Config>, parts: &Parts<'_>, earlier: Option<&Self>) -> Result<Self, BuildError> {
        let implicit;
        let config = if let Some(config) = config {
            config
        } else {
            let mut there = built_in::offered(parts.env);
            if there.is_empty() {
                there.push("demo");
            }
            implicit = Config::implicit(there);
            &implicit
        };
        let targets: Vec<Target> = config
            .targets
            .iter()
            .map(|target| {
                let before = earlier.and_then(|earlier| earlier.target(&target.virtual_key));
                Target::build(target, config, parts, before)
            })
            .collect::<Result<_, _>>()?;
        let router = Router::new(config);
        let counts_tokens = targets.iter().any(|target| target.live.counts_tokens());
        let names = targets.iter().enumerate();
        let positions = names.map(|(i, target)| (Arc::clone(&target.name), i)).collect();
        let allowed = |(name, project): (&String, &Project)| {
            let only: HashSet<&str> = project.only.as_ref()?.iter().map(String::as_str).collect();
            let allowed = targets.iter().map(|target| only.contains(&*target.name)).collect();
            Some((name.clone(), allowed))
        };
        Ok(Self {
            router,
            routes: config.routes.clone(),
            positions,
            allowed: config.projects.iter().filter_map(allowed).collect(),
            projects: config.projects.clone(),
            names: targets.iter().map(|target| Arc::clone(&target.name)).collect(),
            targets,
            aliases: config.aliases.clone(),
            request_timeout: config.request_timeout,
            on_unsupported: config.on_unsupported,
            pass_through: config.pass_through.clone(),
            counts_tokens,
            listed: Listed::default(),
            max_request_bytes: config.max_request_bytes,
        })
    }

    /// Until when a request may take that began then; `None` if nobody bounds it.
    pub(crate) fn deadline(&self, since: Instant) -> Option<Instant> {
        self.request_timeout.and_then(|bound| since.checked_add(bound))
    }

    /// Every answer is simulated.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.targets.iter().all(|target| target.simulated)
    }

    /// Whether the configuration has a target of this name.
    #[must_use]
    pub fn has_target(&self, name: &str) -> bool {
        self.target(name).is_some()
    }

    /// Whether a request to a path that is no surface is passed on.
    #[must_use]
    pub fn passes_on(&self, path: &str) -> bool {
        self.pass_through.allows(path)
    }

    /// Whether the configuration has a route of this name.
    #[must_use]
    pub fn has_route(&self, name: &str) -> bool {
        self.router.find(name).is_some()
    }

    /// Whether a key may belong to this project: any, where none is configured.
    #[must_use]
    pub fn takes_project(&self, name: &str) -> bool {
        self.projects.is_empty() || self.projects.contains_key(name)
    }

    /// What the providers of the targets can be asked for, each once: those that can be called at all.
    #[must_use]
    pub fn capabilities(&self) -> Vec<Capability> {
        let mut all: Vec<Capability> = Vec::new();
        for target in &self.targets {
            let Some(access) = target.link.as_ref().ok().and_then(|link| link.accesses.first()) else {
                continue;
            };
            if all.iter().any(|known| known.provider == target.provider) {
                continue;
            }
            all.push(Capability {
                provider: Arc::clone(&target.provider),
                wire: access.wire.kind(),
                surfaces: Surface::ALL.map(|surface| (surface, access.wire.takes(surface))),
            });
        }
        all
    }

    /// Every route's name, the default first.
    pub fn route_names(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().map(|route| route.name.as_str())
    }

    pub(crate) fn target(&self, name: &str) -> Option<&Target> {
        self.targets.get(self.position(name)?)
    }

    /// Where the target of this name stands.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// By position, the targets that a project may use, unless it may use all.
    pub(crate) fn allowed(&self, project: &str) -> Option<Arc<[bool]>> {
        self.allowed.get(project).cloned()
    }

    pub(crate) fn route(&self, RouteId(i): RouteId) -> Option<&Route> {
        self.routes.get(i)
    }

    /// How a leg's target is asked.
    pub(crate) fn asking(&self, leg: &Leg) -> Option<&Asking> {
        Some(&self.route(leg.route)?.places.get(leg.place)?.asking)
    }

    /// Statuses that move on, besides the usual ones: those of every route on the way from where a walk began to the leg's
    /// own.
    pub(crate) fn failover_on(&self, start: RouteId, leg: &Leg) -> Vec<u16> {
        let mut statuses = Vec::new();
        self.leads_to(start, leg.route, &mut statuses);
        statuses
    }

    fn leads_to(&self, from: RouteId, to: RouteId, statuses: &mut Vec<u16>) -> bool {
        let Some(route) = self.route(from) else { return false };
        let mut leads = from == to;
        for place in &route.places {
            if let To::Route(inner) = place.to {
                leads |= self.leads_to(RouteId(inner), to, statuses);
            }
        }
        if leads {
            statuses.extend(&route.strategy.failover_on_status_codes);
        }
        leads
    }

    /// The model that an alias means, or the name itself.
    pub(crate) fn resolve<'a>(&'a self, model: &'a str) -> &'a str {
        self.aliases.get(model).map_or(model, String::as_str)
    }
}

impl Target {
    fn build(
        target: &config::Target,
        config: &Config,
        parts: &Parts<'_>,
        earlier: Option<&Self>,
    ) -> Result<Self, BuildError> {
        let from_env;
        let id = &target.virtual_key;
        let provider = match config.providers.iter().find(|provider| provider.id == *id) {
            Some(provider) => Some(provider),
            None if BUILT_IN.contains(&id.as_str()) => {
                from_env = built_in::provider(id, parts.env);
                Some(&from_env)
            }
            None => None,
        };
        let link = match provider {
            Some(provider) => Link::build(provider, parts)?,
            None => Err(format!("this version does not speak to provider {id}")),
        };
        let mut models = provider.map(|provider| provider.models.clone()).unwrap_or_default();
        let serves_any = provider.is_some() && models.is_empty();
        let knows_catalog = models.is_empty();
        let own = target.models.iter().filter(|model| !models.contains(model));
        models.extend(own.cloned().collect::<Vec<_>>());
        let credentials = link.as_ref().map_or(0, |link| link.accesses.len());
        let live = Live::build(target, provider, credentials, earlier.map(|earlier| &earlier.live));
        let catalog_id = provider.map_or(id, |provider| &provider.catalog);
        Ok(Self {
            name: id.as_str().into(),
            provider: id.as_str().into(),
            simulated: provider.is_some_and(|provider| provider.kind == ProviderKind::Demo),
            link,
            models,
            serves_any,
            model_map: target.model_map.clone(),
            vendor: Vendor::named(catalog_id),
            knows_catalog,
            prices: provider.map(|provider| provider.prices.clone()).unwrap_or_default(),
            discovered: Discovered::default(),
            live,
        })
    }

    pub(crate) fn serves(&self, model: &str) -> Serves {
        let listed = self.model_map.contains_key(model) || self.models.iter().any(|known| known == model);
        let known = || self.knows_catalog && self.facts(model).is_some_and(|facts| !facts.variant);
        match (listed || known(), self.serves_any) {
            (true, _) => Serves::Listed,
            (false, true) if self.vendor.is_known() => Serves::Anything,
            (false, true) => Serves::Open,
            (false, false) => Serves::No,
        }
    }

    /// The smallest window of the vendor's models, as far as they are known.
    pub(crate) const fn narrowest_window(&self) -> u64 {
        self.vendor.narrowest_window()
    }

    /// What the catalogue knows of an upstream model.
    pub(crate) fn facts(&self, upstream: &str) -> Option<&'static catalog::ModelFacts> {
        self.vendor.facts(upstream)
    }

    /// USD that the work would cost.
    pub(crate) fn price(&self, upstream: &str, work: &Work) -> Option<f64> {
        if let Some(own) = self.prices.get(upstream) {
            return catalog::cost_at(own.input_per_m, own.output_per_m, work);
        }
        catalog::cost(self.facts(upstream)?, work)
    }

    /// Names that clients may use, as far as they are listed.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.model_map.keys().chain(&self.models).map(String::as_str)
    }

    /// The upstream's id for a model.
    pub(crate) fn upstream_model<'a>(&'a self, model: &'a str) -> &'a str {
        self.model_map.get(model).map_or(model, String::as_str)
    }
}

impl Link {
    /// Whether it speaks the surface's dialect itself.
    pub(crate) const fn speaks(&self, surface: Surface) -> bool {
        matches!(self.how(surface), Takes::Native)
    }

    /// Whether calls of a surface can reach it at all.
    pub(crate) const fn takes(&self, surface: Surface) -> bool {
        !matches!(self.how(surface), Takes::Not)
    }

    const fn how(&self, surface: Surface) -> Takes {
        self.takes[surface as usize]
    }

    fn new(
        transport: Arc<dyn Transport>,
        accesses: Vec<Access>,
        missing: Vec<(String, String)>,
        secrets: Vec<Secret>,
    ) -> Self {
        let worst = |surface| accesses.iter().map(|access| access.wire.takes(surface)).max();
        Self {
            transport,
            takes: Surface::ALL.map(|surface| worst(surface).unwrap_or(Takes::Not)),
            accesses,
            missing,
            secrets,
        }
    }

    fn build(provider: &Provider, parts: &Parts<'_>) -> Result<Result<Self, String>, BuildError> {
        let site = match Site::of(provider, parts)? {
            Ok(site) => site,
            Err(reason) => return Ok(Err(reason)),
        };
        if provider.kind == ProviderKind::Demo {
            let accesses = vec![Access::open(site.speak(&Key::None)?)];
            return Ok(Ok(Self::new(parts.demo.clone(), accesses, Vec::new(), Vec::new())));
        }
        let (mut accesses, mut absent, mut secrets) = (Vec::new(), Vec::new(), Vec::new());
        for credential in &provider.credentials {
            let key = match site.resolve(&credential.api_key) {
                Ok(key) if key.is_empty() => Err("its API key is empty".to_owned()),
                other => other,
            };
            match key {
                Ok(key) => {
                    let key = Secret::new(key);
                    accesses.push(Access {
                        id: Some(credential.id.clone()),
                        weight: credential.weight,
                        wire: site.speak(&Key::Api(&key))?,
                    });
                    secrets.push(key);
                }
                Err(reason) => absent.push((credential.id.clone(), reason)),
            }
        }
        if accesses.is_empty() {
            if let Some((_, reason)) = absent.into_iter().next() {
                return Ok(Err(reason));
            }
            match site.other_credential() {
                Ok(key) => {
                    accesses.push(Access::open(site.speak(&key.as_ref().map_or(Key::None, Key::Other))?));
                    secrets.extend(key.map(Other::into_secrets).unwrap_or_default());
                }
                Err(reason) => return Ok(Err(reason)),
            }
            absent = Vec::new();
        }
        secrets.extend(site.headers.iter().map(|(_, value)| Secret::new(value.clone())));
        Ok(Ok(Self::new(Arc::clone(&parts.transport), accesses, absent, secrets)))
    }
}

impl Access {
    fn open(wire: Box<dyn Wire>) -> Self {
        Self {
            id: None,
            weight: 1.0,
            wire,
        }
    }
}
