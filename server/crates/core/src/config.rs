//! The gateway's configuration: read strictly, all faults at once.
//!
//! A document goes through two steps. [`tree`] turns YAML or JSON into values that know their lines; the readers below
//! turn those into types that cannot be invalid, noting every fault on the way. Nothing is resolved against the
//! environment here: a `${NAME}` stays a [`Template`](crate::env::Template) until the component that needs it is built.
//!
//! What a later version will do and this one does not is accepted where an existing file would carry it, and reported as
//! an inert [`Notice`]: never silently.

mod inert;
mod issue;
mod providers;
mod reader;
mod strategy;
mod targets;
mod tree;

pub use issue::Issue;
pub use providers::{BUILT_IN, Provider, ProviderKind, validate_url};
pub use strategy::{Mode, Strategy};
pub use targets::{Retry, Target};

use reader::{Block, Faults};
use std::collections::BTreeMap;
use std::time::Duration;

/// Body bytes accepted on `/v1` unless `max_request_bytes` says otherwise.
pub const DEFAULT_MAX_REQUEST_BYTES: usize = 10 << 20;

/// A configuration that holds.
#[derive(Clone, Debug)]
pub struct Config {
    pub max_request_bytes: usize,
    /// Bounds a unary request with all its attempts; of a stream, the time until it starts.
    pub request_timeout: Option<Duration>,
    pub strategy: Strategy,
    /// At least one, no two alike.
    pub targets: Vec<Target>,
    /// Name that clients use -> name that is routed. No chains.
    pub aliases: BTreeMap<String, String>,
    pub providers: Vec<Provider>,
    pub notices: Vec<Notice>,
}

/// Something an operator should know about a configuration that is nevertheless accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub path: String,
    pub line: u64,
    pub message: String,
    /// The key is accepted and does nothing in this version. Refused in production.
    pub inert: bool,
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}: {}", self.line, self.path, self.message)
    }
}

#[derive(Default)]
struct Notices(Vec<Notice>);

impl Notices {
    fn warn(&mut self, path: &str, line: u64, message: impl Into<String>) {
        self.0.push(Notice {
            path: path.to_owned(),
            line,
            message: message.into(),
            inert: false,
        });
    }

    fn inert(&mut self, path: &str, line: u64, what: &str) {
        let message = format!("{what} is accepted and does nothing in this version");
        self.0.push(Notice {
            path: path.to_owned(),
            line,
            message,
            inert: true,
        });
    }
}

impl Config {
    /// Reads a YAML or JSON document.
    ///
    /// # Errors
    /// Every fault of the document, in its order.
    pub fn parse(text: &str) -> Result<Self, Vec<Issue>> {
        let document = tree::parse(text).map_err(|issue| vec![issue])?;
        let mut faults = Faults::default();
        let mut notices = Notices::default();
        let config = Block::of(&document, "", &mut faults).map(|root| read(root, &mut faults, &mut notices));
        let issues = faults.into_issues();
        match config {
            Some(mut config) if issues.is_empty() => {
                config.notices = notices.0;
                Ok(config)
            }
            _ => Err(issues),
        }
    }

    /// What holds without a file: `fallback` over the given targets.
    #[must_use]
    pub fn implicit(targets: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            max_request_bytes: DEFAULT_MAX_REQUEST_BYTES,
            request_timeout: None,
            strategy: Strategy {
                mode: Mode::Fallback,
                failover_on_status_codes: Vec::new(),
            },
            targets: targets.into_iter().map(Target::named).collect(),
            aliases: BTreeMap::new(),
            providers: Vec::new(),
            notices: Vec::new(),
        }
    }
}

fn read(mut root: Block<'_>, faults: &mut Faults, notices: &mut Notices) -> Config {
    if let Some(version) = root.text("apiVersion", faults).filter(|version| version != "v1") {
        notices.warn(
            "apiVersion",
            root.line,
            format!("is \"{version}\"; this version reads v1 and goes on"),
        );
    }
    let max_request_bytes = root
        .integer("max_request_bytes", 1, 1 << 40, faults)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(DEFAULT_MAX_REQUEST_BYTES);
    let request_timeout = root.positive_duration("request_timeout", faults);
    let providers = providers::read(&mut root, faults, notices);
    let targets = targets::read(&mut root, &providers, faults, notices);
    let strategy = strategy::read(&mut root, &targets, faults, notices);
    let aliases = read_aliases(&mut root, faults);
    check_maps(&targets, &aliases, &root, faults);
    inert::read(&mut root, &targets, faults, notices);
    root.finish(faults);
    Config {
        max_request_bytes,
        request_timeout,
        strategy,
        targets,
        aliases,
        providers,
        notices: Vec::new(),
    }
}

fn read_aliases(root: &mut Block<'_>, faults: &mut Faults) -> BTreeMap<String, String> {
    let line = root.take("aliases").map_or(root.line, |node| node.line);
    let aliases: BTreeMap<String, String> = root.text_map("aliases", faults).into_iter().collect();
    for (name, meant) in &aliases {
        let path = format!("aliases.{name}");
        if name.trim().is_empty() || meant.trim().is_empty() {
            faults.add(&path, line, "must have a name and a model");
        } else if name == meant {
            faults.add(&path, line, "names itself; remove it");
        } else if aliases.contains_key(meant) {
            faults.add(
                &path,
                line,
                format!("leads to \"{meant}\", which is an alias too; name the model itself"),
            );
        }
    }
    aliases
}

/// An alias is resolved before targets are looked at, so a `model_map` entry of the same name could never match.
fn check_maps(targets: &[Target], aliases: &BTreeMap<String, String>, root: &Block<'_>, faults: &mut Faults) {
    for (i, target) in targets.iter().enumerate() {
        for name in target.model_map.keys().filter(|name| aliases.contains_key(*name)) {
            let path = format!("targets[{i}].model_map.{name}");
            faults.add(
                &path,
                root.line,
                "is an alias too and would never match; remove one of them",
            );
        }
    }
}

#[cfg(test)]
mod tests;
