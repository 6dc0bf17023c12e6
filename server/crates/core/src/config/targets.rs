//! Entries of `targets`: what may answer, how patiently it is asked, and when it is left alone.

use super::Notices;
use super::providers::{self, Provider};
use super::reader::{Block, Faults, as_text};
use super::routes::{Place, To};
use super::tree::{Node, Value};
use crate::breaker;
use crate::quota::Limits;
use std::collections::BTreeMap;
use std::time::Duration;

/// Silence on a stream that counts as its failure, unless `idle_timeout` says otherwise.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Calls that may wait for a slot, unless `queue_size` says otherwise.
const DEFAULT_QUEUE: u32 = 1_000;
const DEFAULT_RAMP: Duration = Duration::from_secs(5);
const DEFAULT_REVERIFY_EVERY: Duration = Duration::from_secs(10);
/// Before a route's name, where a target's could stand.
pub(super) const ROUTE: &str = "route/";

/// A target itself: what is shared by every route that names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Id of the provider that is asked; also the target's own name.
    pub virtual_key: String,
    /// Models it serves besides those that its provider lists.
    pub models: Vec<String>,
    /// Name that clients use -> the upstream's id.
    pub model_map: BTreeMap<String, String>,
    pub breaker: Option<Breaker>,
    pub concurrency: Option<Concurrency>,
    pub quota: Limits,
    /// Where it was declared: `targets[0]`.
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    pub policy: breaker::Policy,
    /// After recovery its share of traffic grows over this time.
    pub ramp: Duration,
    /// How an open target is looked at in the background; absent: not at all, real calls are the probes.
    pub reverify: Option<Reverify>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverify {
    /// A minimal call of this model; absent: the upstream's listing of models.
    pub model: Option<String>,
    pub every: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Most calls at once.
    pub most: u32,
    /// Most calls that wait for a slot.
    pub queue: u32,
}

/// How a target is asked from one place of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// Bounds one attempt; of a stream, the time until the upstream answers.
    pub timeout: Option<Duration>,
    /// Bounds a stream's time until its first content.
    pub first_token_timeout: Option<Duration>,
    /// Silence on a stream that counts as its failure.
    pub idle_timeout: Duration,
    pub retry: Retry,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, the first included; at least 1.
    pub attempts: u32,
    /// Empty: transport failures, 408, 429 and 5xx.
    pub on_status_codes: Vec<u16>,
    pub initial_backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 1,
            on_status_codes: Vec::new(),
            initial_backoff: Duration::from_millis(100),
        }
    }
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            timeout: None,
            first_token_timeout: None,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            retry: Retry::default(),
        }
    }
}

impl Target {
    /// A target with every default.
    #[must_use]
    pub fn named(virtual_key: &str) -> Self {
        Self {
            virtual_key: virtual_key.to_owned(),
            models: Vec::new(),
            model_map: BTreeMap::new(),
            breaker: None,
            concurrency: None,
            quota: Limits::default(),
            path: "targets".to_owned(),
        }
    }
}

/// Bounds that hold for all targets unless they have their own.
pub(super) struct Bounds {
    first_token_timeout: Option<Duration>,
    idle_timeout: Duration,
}

impl Bounds {
    pub(super) fn read(root: &mut Block<'_>, faults: &mut Faults) -> Self {
        Self {
            first_token_timeout: root.positive_duration("first_token_timeout", faults),
            idle_timeout: root
                .positive_duration("idle_timeout", faults)
                .unwrap_or(DEFAULT_IDLE_TIMEOUT),
        }
    }
}

/// What an entry may refer to.
pub(super) struct Surroundings<'s> {
    pub(super) providers: &'s [Provider],
    /// Names of routes.
    pub(super) routes: &'s [&'s str],
    /// Names that are resolved before a target is looked at.
    pub(super) aliases: &'s [&'s str],
    pub(super) bounds: Bounds,
}

impl Surroundings<'_> {
    /// A name alone means a provider; where there is none, the route of that name.
    fn meant(&self, name: &str) -> String {
        if self.routes.contains(&name) && !providers::is_known(name, self.providers) {
            format!("{ROUTE}{name}")
        } else {
            name.to_owned()
        }
    }
}

/// An entry of a `targets` list, before names are resolved.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// `openai`, or `route/fast`; empty when there is none, which is a fault already.
    pub(super) name: String,
    /// Where the name stands.
    pub(super) path: String,
    pub(super) line: u64,
    pub(super) weight: Option<f64>,
    /// Keys written here that belong to the target itself, each with its line.
    pub(super) stateful: Vec<(&'static str, u64)>,
    model: Option<String>,
    model_map: BTreeMap<String, String>,
    asking: Asking,
    models: Vec<String>,
    breaker: Option<Breaker>,
    concurrency: Option<Concurrency>,
    quota: Limits,
}

impl Entry {
    fn of(name: String, path: String, line: u64, bounds: &Bounds) -> Self {
        Self {
            name,
            path,
            line,
            weight: None,
            stateful: Vec::new(),
            model: None,
            model_map: BTreeMap::new(),
            asking: Asking {
                first_token_timeout: bounds.first_token_timeout,
                idle_timeout: bounds.idle_timeout,
                ..Asking::default()
            },
            models: Vec::new(),
            breaker: None,
            concurrency: None,
            quota: Limits::default(),
        }
    }

    /// The route that it names, if it names one.
    pub(super) fn route(&self) -> Option<&str> {
        self.name.strip_prefix(ROUTE)
    }

    pub(super) fn is_route(&self) -> bool {
        self.route().is_some()
    }

    /// The target that this entry declares.
    pub(super) fn target(&self, path: &str) -> Target {
        Target {
            virtual_key: self.name.clone(),
            models: self.models.clone(),
            model_map: self.model_map.clone(),
            breaker: self.breaker.clone(),
            concurrency: self.concurrency,
            quota: self.quota,
            path: path.to_owned(),
        }
    }

    pub(super) fn place(self, to: To) -> Place {
        let mut model_map = self.model_map;
        // A model listed here is served here, under its own name.
        for model in self.models {
            model_map.entry(model.clone()).or_insert(model);
        }
        Place {
            to,
            weight: self.weight,
            model: self.model,
            model_map,
            asking: self.asking,
        }
    }
}

/// A name alone, or a block. `is_new` tells whether a target of that name has yet to be declared.
pub(super) fn read_entry(
    node: &Node,
    path: &str,
    around: &Surroundings<'_>,
    is_new: impl Fn(&str) -> bool,
    faults: &mut Faults,
    notices: &mut Notices,
) -> Option<Entry> {
    let mut block = match &node.value {
        Value::Str(_) => None,
        _ => Some(Block::of(node, path, faults)?),
    };
    let mut entry = match (&node.value, &mut block) {
        (Value::Str(name), _) => Entry::of(around.meant(name.trim()), path.to_owned(), node.line, &around.bounds),
        (_, Some(block)) => read_name(block, around, faults),
        (_, None) => return None,
    };
    if entry.name.is_empty() {
        let message = "is required: name a provider, such as \"openai\"";
        // Two names at once are a fault of the block, which is noted.
        if entry.path != path || block.is_none() {
            faults.add(&entry.path, entry.line, message);
        }
    } else if !entry.is_route() && is_new(&entry.name) {
        if around.routes.contains(&entry.name.as_str()) && !providers::is_known(&entry.name, around.providers) {
            let message = format!("\"{0}\" names no provider but a route; write `route: {0}`", entry.name);
            faults.add(&entry.path, entry.line, message);
        } else {
            providers::check_reference(&entry.name, &entry.path, entry.line, around.providers, faults, notices);
        }
    }
    let Some(mut block) = block else { return Some(entry) };
    entry.weight = block.weight("weight", faults);
    if entry.is_route() {
        block.finish(faults);
        return Some(entry);
    }
    entry.model = block.text("model", faults).filter(|model| !model.trim().is_empty());
    if entry.model.as_deref().is_some_and(|model| model.starts_with(ROUTE)) {
        let message = "must be a model, not a route; name the route as a target of its own";
        faults.add(&block.path_of("model"), block.line_of("model"), message);
    }
    entry.models = read_models(&mut block, faults);
    entry.model_map = read_model_map(&mut block, around.aliases, faults);
    entry.asking = read_asking(&mut block, &around.bounds, faults);
    if let Some(node) = block.take("circuit_breaker") {
        entry.stateful.push(("circuit_breaker", node.line));
        entry.breaker = read_breaker(node, &block.path_of("circuit_breaker"), faults);
    }
    if let Some(node) = block.take("concurrency") {
        entry.stateful.push(("concurrency", node.line));
        entry.concurrency = read_concurrency(node, &block.path_of("concurrency"), faults, notices);
    }
    if let Some(node) = block.take("quota") {
        entry.stateful.push(("quota", node.line));
        entry.quota = read_quota(node, &block.path_of("quota"), faults);
    }
    block.finish(faults);
    Some(entry)
}

/// `virtual_key` or `route`.
fn read_name(block: &mut Block<'_>, around: &Surroundings<'_>, faults: &mut Faults) -> Entry {
    let is_route = block.take("route").is_some();
    let both = is_route && block.take("virtual_key").is_some();
    let route = block.text("route", faults);
    let virtual_key = block.text("virtual_key", faults);
    if both {
        let (path, line) = (block.path.clone(), block.line);
        faults.add(&path, line, "has both `virtual_key` and `route`; keep one of them");
        return Entry::of(String::new(), path, line, &around.bounds);
    }
    let key = if is_route { "route" } else { "virtual_key" };
    let name = match route {
        Some(route) => format!("{ROUTE}{}", route.strip_prefix(ROUTE).unwrap_or(&route)),
        None => virtual_key.unwrap_or_default().trim().to_owned(),
    };
    Entry::of(name, block.path_of(key), block.line_of(key), &around.bounds)
}

fn read_asking(block: &mut Block<'_>, bounds: &Bounds, faults: &mut Faults) -> Asking {
    Asking {
        timeout: block.positive_duration("timeout", faults),
        first_token_timeout: block
            .positive_duration("first_token_timeout", faults)
            .or(bounds.first_token_timeout),
        idle_timeout: block
            .positive_duration("idle_timeout", faults)
            .unwrap_or(bounds.idle_timeout),
        retry: block
            .take("retry")
            .map(|node| read_retry(node, &block.path_of("retry"), faults))
            .unwrap_or_default(),
    }
}

/// Exact ids. A wildcard would look as if it matched, and never would.
pub(super) fn read_models(block: &mut Block<'_>, faults: &mut Faults) -> Vec<String> {
    let mut models: Vec<String> = Vec::new();
    for (node, path) in block.list("models", faults) {
        let Some(model) = as_text(node, &path, faults) else {
            continue;
        };
        if model.is_empty() || model.trim() != model {
            faults.add(&path, node.line, "must be a model id without spaces around it");
        } else if model.contains(['*', '?']) {
            faults.add(
                &path,
                node.line,
                format!("\"{model}\" has a wildcard; write each model id in full"),
            );
        } else if models.contains(&model) {
            faults.add(
                &path,
                node.line,
                format!("\"{model}\" is listed twice; keep one of them"),
            );
        } else {
            models.push(model);
        }
    }
    models
}

fn read_model_map(block: &mut Block<'_>, aliases: &[&str], faults: &mut Faults) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    let path = block.path_of("model_map");
    let Some(entries) = block.take("model_map").and_then(|node| Block::of(node, &path, faults)) else {
        return map;
    };
    for (name, node) in entries.all() {
        let path = entries.path_of(name);
        let Some(upstream) = as_text(node, &path, faults) else {
            continue;
        };
        if name.trim().is_empty() || upstream.trim().is_empty() {
            let message = "must map a name to a model id; neither may be empty";
            faults.add(&path, node.line, message);
        } else if aliases.contains(&name) {
            // An alias is resolved before targets are looked at.
            let message = "is an alias too and would never match; remove one of them";
            faults.add(&path, node.line, message);
        }
        map.insert(name.to_owned(), upstream);
    }
    map
}

fn read_retry(node: &Node, path: &str, faults: &mut Faults) -> Retry {
    let mut retry = Retry::default();
    let Some(mut block) = Block::of(node, path, faults) else {
        return retry;
    };
    if let Some(attempts) = block.integer("attempts", 0, 100, faults) {
        retry.attempts = u32::try_from(attempts).unwrap_or(1).max(1);
    }
    retry.on_status_codes = block.statuses("on_status_codes", faults);
    if let Some(millis) = block.integer("initial_backoff_ms", 0, 600_000, faults) {
        retry.initial_backoff = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
    }
    block.finish(faults);
    retry
}

fn count(block: &mut Block<'_>, key: &'static str, least: i64, faults: &mut Faults) -> Option<u32> {
    let value = block.integer(key, least, i64::from(u32::MAX), faults)?;
    u32::try_from(value).ok()
}

fn read_breaker(node: &Node, path: &str, faults: &mut Faults) -> Option<Breaker> {
    let mut block = Block::of(node, path, faults)?;
    let mut policy = breaker::Policy::default();
    if let Some(threshold) = count(&mut block, "failure_threshold", 1, faults) {
        policy.failure_threshold = threshold;
    }
    if let Some(threshold) = count(&mut block, "success_threshold", 0, faults) {
        policy.success_threshold = threshold.max(1);
    }
    if let Some(most) = count(&mut block, "max_half_threshold", 0, faults) {
        policy.max_half_open = most.max(1);
    }
    if let Some(timeout) = block.duration("timeout", faults).filter(|timeout| !timeout.is_zero()) {
        policy.timeout = timeout;
    }
    let ramp = block.duration("ramp", faults).unwrap_or(DEFAULT_RAMP);
    let reverify = block
        .take("reverify")
        .and_then(|node| read_reverify(node, &block.path_of("reverify"), faults));
    block.finish(faults);
    Some(Breaker { policy, ramp, reverify })
}

/// `models`, or a block: `{by: models | call, model, every}`.
fn read_reverify(node: &Node, path: &str, faults: &mut Faults) -> Option<Reverify> {
    if let Value::Str(by) = &node.value
        && by == "models"
    {
        return Some(Reverify {
            model: None,
            every: DEFAULT_REVERIFY_EVERY,
        });
    }
    let mut block = Block::of(node, path, faults)?;
    let by = block.text("by", faults).unwrap_or_default();
    let model = block.text("model", faults).filter(|model| !model.trim().is_empty());
    let every = block
        .positive_duration("every", faults)
        .unwrap_or(DEFAULT_REVERIFY_EVERY);
    let (by_line, model_line) = (block.line_of("by"), block.line_of("model"));
    block.finish(faults);
    match (by.as_str(), model) {
        ("models", None) => Some(Reverify { model: None, every }),
        ("call", Some(model)) => Some(Reverify {
            model: Some(model),
            every,
        }),
        ("models", Some(_)) => {
            let message = "goes with `by: call` only; remove it";
            faults.add(&format!("{path}.model"), model_line, message);
            None
        }
        ("call", None) => {
            let message = "is required with `by: call`: name the model of the minimal call";
            faults.add(&format!("{path}.model"), model_line, message);
            None
        }
        _ => {
            let message = "must be \"models\" (lists the upstream's models) or \"call\" (a call of one token)";
            faults.add(&format!("{path}.by"), by_line, message);
            None
        }
    }
}

fn read_concurrency(node: &Node, path: &str, faults: &mut Faults, notices: &mut Notices) -> Option<Concurrency> {
    let mut block = Block::of(node, path, faults)?;
    let most = block.integer("max_concurrency", 1, 10_000, faults);
    let queue = block.integer("queue_size", 0, 10_000, faults);
    if most.is_none() && queue.is_some() {
        notices.warn(path, block.line, "has no effect without `max_concurrency`");
    }
    block.finish(faults);
    Some(Concurrency {
        most: u32::try_from(most?).ok()?,
        queue: queue
            .and_then(|queue| u32::try_from(queue).ok())
            .unwrap_or(DEFAULT_QUEUE),
    })
}

fn read_quota(node: &Node, path: &str, faults: &mut Faults) -> Limits {
    let mut limits = Limits::default();
    let Some(mut block) = Block::of(node, path, faults) else {
        return limits;
    };
    let mut most = |key: &'static str| {
        let most = block.integer(key, 1, i64::MAX, faults)?;
        u64::try_from(most).ok()
    };
    limits.rpm = most("rpm");
    limits.rpd = most("rpd");
    limits.tpm = most("tpm");
    limits.tpd = most("tpd");
    if ["rpm", "rpd", "tpm", "tpd"].iter().all(|key| block.take(key).is_none()) {
        faults.add(path, block.line, "limits nothing; give rpm, rpd, tpm or tpd");
    }
    block.finish(faults);
    limits
}
