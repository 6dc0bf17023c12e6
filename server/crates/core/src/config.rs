//! The gateway's configuration: read strictly, all faults at once.
//!
//! A document goes through two steps. [`tree`] turns YAML or JSON into values that know their lines; the readers below
//! turn those into types that cannot be invalid, noting every fault on the way. Nothing is resolved against the
//! environment here: a `${NAME}` stays a [`Template`](crate::env::Template) until the component that needs it is built.
//!
//! What a later version will do and this one does not is accepted where an existing file would carry it, and reported as
//! an inert [`Notice`]: never silently.

mod compatibility;
mod inert;
mod issue;
mod pass_through;
mod providers;
mod reader;
mod routes;
mod rules;
mod strategy;
mod targets;
mod tree;

pub use compatibility::OnUnsupported;
pub use issue::Issue;
pub use pass_through::PassThrough;
pub use providers::{Aws, BUILT_IN, Credential, ExtraSurface, Price, Provider, ProviderKind, validate_url};
pub use routes::{DEFAULT as DEFAULT_ROUTE, Place, Project, Route, To};
pub use strategy::{Blend, Mode, Rule, Strategy, Unpriced, Variant};
pub use targets::{Asking, Breaker, Concurrency, Retry, Reverify, Target};

use reader::{Block, Faults, as_text};
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
    /// What becomes of parameters that an upstream does not know.
    pub on_unsupported: OnUnsupported,
    /// What is passed on of what the gateway does not understand.
    pub pass_through: PassThrough,
    /// Every target that a route names, each once; those of the file's own list come first.
    pub targets: Vec<Target>,
    /// The first is the default: the file's own `strategy` and `targets`.
    pub routes: Vec<Route>,
    pub projects: BTreeMap<String, Project>,
    /// Name that clients use -> name that is routed. No chains.
    pub aliases: BTreeMap<String, String>,
    pub providers: Vec<Provider>,
    /// In the order of the document.
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
                config.notices.sort_by_key(|notice| notice.line);
                Ok(config)
            }
            _ => Err(issues),
        }
    }

    /// What holds without a file: `fallback` over the given targets.
    #[must_use]
    pub fn implicit(targets: impl IntoIterator<Item = &'static str>) -> Self {
        let targets: Vec<Target> = targets.into_iter().map(Target::named).collect();
        Self {
            max_request_bytes: DEFAULT_MAX_REQUEST_BYTES,
            request_timeout: None,
            on_unsupported: OnUnsupported::default(),
            pass_through: PassThrough::default(),
            routes: vec![Route {
                name: DEFAULT_ROUTE.to_owned(),
                model: None,
                strategy: Strategy::of(Mode::Fallback),
                places: (0..targets.len()).map(Place::plain).collect(),
            }],
            targets,
            projects: BTreeMap::new(),
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
            root.line_of("apiVersion"),
            format!("is \"{version}\"; this version reads v1 and goes on"),
        );
    }
    let max_request_bytes = root
        .integer("max_request_bytes", 1, 1 << 40, faults)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(DEFAULT_MAX_REQUEST_BYTES);
    let request_timeout = root.positive_duration("request_timeout", faults);
    let providers = providers::read(&mut root, faults, notices);
    let aliases = Aliases::read(&mut root, faults);
    let routing = routes::read(&mut root, &providers, &aliases.all, faults, notices);
    let routes::Routing {
        targets,
        routes,
        projects,
    } = routing;
    aliases.check(&routes, faults);
    let on_unsupported = compatibility::read(&mut root, faults);
    let pass_through = pass_through::read(&mut root, faults);
    if !projects.is_empty() && !root.is_written("pass_through") {
        let message = "calls that are passed on run in the name of the gateway's account: a key of one project can list \
                       and delete what another's has there, such as files; say with pass_through what is passed on";
        notices.warn("projects", root.line_of("projects"), message);
    }
    inert::read(&mut root, &targets, faults, notices);
    root.finish(faults);
    Config {
        max_request_bytes,
        request_timeout,
        on_unsupported,
        pass_through,
        targets,
        routes,
        projects,
        aliases: aliases.all,
        providers,
        notices: Vec::new(),
    }
}

#[derive(Default)]
struct Aliases {
    all: BTreeMap<String, String>,
    /// Those that lead to a route, which must be there: path, line and name of the route.
    to_routes: Vec<(String, u64, String)>,
}

impl Aliases {
    fn read(root: &mut Block<'_>, faults: &mut Faults) -> Self {
        let mut aliases = Self::default();
        let Some(block) = root.take("aliases").and_then(|node| Block::of(node, "aliases", faults)) else {
            return aliases;
        };
        for (name, node) in block.all() {
            let path = block.path_of(name);
            let Some(meant) = as_text(node, &path, faults) else {
                continue;
            };
            if name.trim().is_empty() || meant.trim().is_empty() {
                faults.add(&path, node.line, "must have a name and a model");
            } else if name == meant {
                faults.add(&path, node.line, "names itself; remove it");
            } else if block.all().any(|(other, _)| other == meant) {
                let message = format!("leads to \"{meant}\", which is an alias too; name the model itself");
                faults.add(&path, node.line, message);
            } else if let Some(route) = meant.strip_prefix(targets::ROUTE) {
                aliases.to_routes.push((path, node.line, route.to_owned()));
            }
            aliases.all.insert(name.to_owned(), meant);
        }
        aliases
    }

    fn check(&self, routes: &[Route], faults: &mut Faults) {
        for (path, line, name) in &self.to_routes {
            if !routes.iter().any(|route| route.name == *name) {
                let names: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
                let message = format!("\"{name}\" names no route; there are {}", names.join(", "));
                faults.add(path, *line, message);
            }
        }
    }
}

#[cfg(test)]
mod tests;
