//! `targets`: what may answer, and how patiently each is asked.

use super::providers::{self, Provider};
use super::reader::{Block, Faults, as_text};
use super::{Notices, tree::Node};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Id of the provider that is asked; also the target's own name.
    pub virtual_key: String,
    pub weight: f64,
    /// Models it serves besides those that its provider lists.
    pub models: Vec<String>,
    /// Name that clients use -> the upstream's id.
    pub model_map: BTreeMap<String, String>,
    /// Bounds one attempt; of a stream, the time until the upstream answers.
    pub timeout: Option<Duration>,
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

impl Target {
    /// A target with every default.
    #[must_use]
    pub fn named(virtual_key: &str) -> Self {
        Self {
            virtual_key: virtual_key.to_owned(),
            weight: 1.0,
            models: Vec::new(),
            model_map: BTreeMap::new(),
            timeout: None,
            retry: Retry::default(),
        }
    }
}

pub(super) fn read(
    root: &mut Block<'_>,
    known: &[Provider],
    faults: &mut Faults,
    notices: &mut Notices,
) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    let items = root.list("targets", faults);
    if items.is_empty() {
        faults.add(
            "targets",
            root.line,
            "at least one target is required, for example `targets: [{virtual_key: openai}]`",
        );
    }
    for (node, path) in items {
        let Some(target) = read_one(node, &path, known, faults, notices) else {
            continue;
        };
        if targets.iter().any(|other| other.virtual_key == target.virtual_key) {
            let message = format!("\"{}\" is a target already; keep one of them", target.virtual_key);
            faults.add(&format!("{path}.virtual_key"), node.line, message);
        }
        targets.push(target);
    }
    targets
}

fn read_one(node: &Node, path: &str, known: &[Provider], faults: &mut Faults, notices: &mut Notices) -> Option<Target> {
    let mut block = Block::of(node, path, faults)?;
    let line = block.line;
    let virtual_key = block.text("virtual_key", faults).unwrap_or_default();
    if virtual_key.trim().is_empty() {
        faults.add(
            &block.path_of("virtual_key"),
            line,
            "is required: name a provider, such as \"openai\"",
        );
    } else {
        providers::check_reference(
            &virtual_key,
            &block.path_of("virtual_key"),
            line,
            known,
            faults,
            notices,
        );
    }
    let mut target = Target::named(&virtual_key);
    target.weight = block.number("weight", 0.0, faults).unwrap_or(1.0);
    target.models = read_models(&mut block, faults);
    target.model_map = read_model_map(&mut block, faults);
    target.timeout = block.positive_duration("timeout", faults);
    if let Some(retry) = block.take("retry") {
        target.retry = read_retry(retry, &block.path_of("retry"), faults);
    }
    if let Some(breaker) = block.take("circuit_breaker") {
        read_breaker(breaker, &block.path_of("circuit_breaker"), faults, notices);
    }
    if let Some(concurrency) = block.take("concurrency") {
        read_concurrency(concurrency, &block.path_of("concurrency"), faults, notices);
    }
    block.finish(faults);
    Some(target)
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

fn read_model_map(block: &mut Block<'_>, faults: &mut Faults) -> BTreeMap<String, String> {
    let line = block.take("model_map").map_or(block.line, |node| node.line);
    let map: BTreeMap<String, String> = block.text_map("model_map", faults).into_iter().collect();
    for (name, upstream) in &map {
        if name.trim().is_empty() || upstream.trim().is_empty() {
            faults.add(
                &block.path_of("model_map"),
                line,
                "must map a name to a model id; neither may be empty",
            );
        }
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

fn read_breaker(node: &Node, path: &str, faults: &mut Faults, notices: &mut Notices) {
    let Some(mut block) = Block::of(node, path, faults) else {
        return;
    };
    block.integer("failure_threshold", 1, i64::from(u32::MAX), faults);
    block.integer("success_threshold", 0, i64::from(u32::MAX), faults);
    block.integer("max_half_threshold", 0, i64::from(u32::MAX), faults);
    block.duration("timeout", faults);
    notices.inert(path, block.line, "the circuit breaker");
    block.finish(faults);
}

fn read_concurrency(node: &Node, path: &str, faults: &mut Faults, notices: &mut Notices) {
    let Some(mut block) = Block::of(node, path, faults) else {
        return;
    };
    block.integer("max_concurrency", 1, 10_000, faults);
    block.integer("queue_size", 0, 10_000, faults);
    notices.inert(path, block.line, "the concurrency limit");
    block.finish(faults);
}
