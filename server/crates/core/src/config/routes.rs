//! `targets`, `routes` and `projects`: who may be asked, and in which arrangements.
//!
//! The file's own `strategy` and `targets` are the default route. A named route has the same two keys, and its targets may
//! be targets of the file, targets of its own, or other routes. A target is one thing however many routes name it: its
//! breaker, its limits and its health are shared, so those keys stand in one place. What only says how it is asked
//! (weight, model, retries, bounds) may differ from route to route.

use super::Notices;
use super::providers::Provider;
use super::reader::{Block, Faults, as_text};
use super::strategy::{self, Strategy};
use super::targets::{self, Asking, Bounds, Entry, ROUTE, Surroundings, Target};
use super::tree::Node;
use std::collections::BTreeMap;

/// Longest chain of routes that name each other.
const DEEPEST: usize = 8;
/// Most targets that a route comes to with all the routes it names, each counted as often as it is named.
const LARGEST: usize = 1_000;
/// The name of the file's own route.
pub const DEFAULT: &str = "default";

/// An arrangement of targets under a strategy.
#[derive(Clone, Debug)]
pub struct Route {
    /// `default`, or its name.
    pub name: String,
    /// What a call of `route/<name>` means, unless a place says its own.
    pub model: Option<String>,
    pub strategy: Strategy,
    pub places: Vec<Place>,
}

/// One entry of a route's targets.
#[derive(Clone, Debug)]
pub struct Place {
    pub to: To,
    /// Absent where none is written.
    pub weight: Option<f64>,
    /// Asked for whatever the caller named.
    pub model: Option<String>,
    /// Name that clients use -> the upstream's id, before the target's own.
    pub model_map: BTreeMap<String, String>,
    pub asking: Asking,
}

impl Place {
    /// A target with every default.
    #[must_use]
    pub fn plain(target: usize) -> Self {
        Self {
            to: To::Target(target),
            weight: None,
            model: None,
            model_map: BTreeMap::new(),
            asking: Asking::default(),
        }
    }
}

/// Positions in [`super::Config::targets`] and [`super::Config::routes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Target(usize),
    Route(usize),
}

/// A project that keys belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// The route its calls take unless they name another.
    pub route: Option<String>,
    /// Targets that its calls may use; absent: all.
    pub only: Option<Vec<String>>,
}

/// A place as rules name it.
pub(super) struct Named {
    /// `openai`, or `route/fast`.
    pub(super) name: String,
    pub(super) weight: Option<f64>,
}

pub(super) struct Routing {
    pub(super) targets: Vec<Target>,
    pub(super) routes: Vec<Route>,
    pub(super) projects: BTreeMap<String, Project>,
}

/// A route whose places still name each other by name.
struct Draft {
    name: String,
    model: Option<String>,
    entries: Vec<Entry>,
    strategy: Strategy,
    /// Of its `targets`.
    path: String,
    line: u64,
}

pub(super) fn read(
    root: &mut Block<'_>,
    known: &[Provider],
    aliases: &BTreeMap<String, String>,
    faults: &mut Faults,
    notices: &mut Notices,
) -> Routing {
    let bounds = Bounds::read(root, faults);
    let aliases: Vec<&str> = aliases.keys().map(String::as_str).collect();
    let named = root
        .take("routes")
        .and_then(|node| Block::of(node, &root.path_of("routes"), faults));
    let mut names: Vec<&str> = vec![DEFAULT];
    names.extend(named.iter().flat_map(|block| block.all().map(|(name, _)| name)));
    let mut reading = Reading {
        around: Surroundings {
            providers: known,
            routes: &names,
            aliases: &aliases,
            bounds,
        },
        targets: Vec::new(),
    };
    let mut drafts = vec![reading.route(root, DEFAULT.to_owned(), None, faults, notices)];
    if let Some(block) = named {
        drafts.extend(reading.named(&block, faults, notices));
    }
    let targets = reading.targets;
    let places: Vec<(String, u64)> = drafts.iter().map(|draft| (draft.path.clone(), draft.line)).collect();
    let routes = resolve(drafts, &targets, faults);
    Trees {
        routes: &routes,
        places: &places,
        known: vec![None; routes.len()],
    }
    .check(faults);
    let projects = read_projects(root, &routes, &targets, faults);
    Routing {
        targets,
        routes,
        projects,
    }
}

struct Reading<'r> {
    around: Surroundings<'r>,
    targets: Vec<Target>,
}

impl Reading<'_> {
    /// `routes: {name: {strategy, targets, model}}`.
    fn named(&mut self, block: &Block<'_>, faults: &mut Faults, notices: &mut Notices) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for (name, node) in block.all() {
            let path = block.path_of(name);
            let valid = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            if !valid {
                let message = "is no name for a route: letters, digits, \"-\", \"_\" and \".\"";
                faults.add(&path, node.line, message);
            } else if name == DEFAULT {
                let message = "is the name of the file's own `strategy` and `targets`; give this route another";
                faults.add(&path, node.line, message);
            }
            let Some(mut route) = Block::of(node, &path, faults) else {
                continue;
            };
            let model = route.text("model", faults).filter(|model| !model.trim().is_empty());
            if model.as_deref().is_some_and(|model| model.starts_with(ROUTE)) {
                let message = "must be a model, not a route; name the other route among the targets";
                faults.add(&route.path_of("model"), route.line_of("model"), message);
            }
            drafts.push(self.route(&mut route, name.to_owned(), model, faults, notices));
            route.finish(faults);
        }
        drafts
    }

    /// `strategy` and `targets`, of the file or of a route.
    fn route(
        &mut self,
        owner: &mut Block<'_>,
        name: String,
        model: Option<String>,
        faults: &mut Faults,
        notices: &mut Notices,
    ) -> Draft {
        let (path, line) = (owner.path_of("targets"), owner.line_of("targets"));
        if owner.is_bare("targets") {
            let message = "at least one target is required, for example `targets: [{virtual_key: openai}]`";
            faults.add(&path, line, message);
        }
        let mut entries: Vec<Entry> = Vec::new();
        for (node, path) in owner.list("targets", faults) {
            let Some(entry) = self.entry(node, &path, &name, faults, notices) else {
                continue;
            };
            if !entry.name.is_empty() && entries.iter().any(|other| other.name == entry.name) {
                let message = format!("\"{}\" is a target already; keep one of them", entry.name);
                faults.add(&entry.path, entry.line, message);
            }
            entries.push(entry);
        }
        let places: Vec<Named> = entries
            .iter()
            .map(|entry| Named {
                name: entry.name.clone(),
                weight: entry.weight,
            })
            .collect();
        let strategy = strategy::read(owner, &places, self.around.aliases, faults, notices);
        if strategy.mode.draws_by_weight() {
            warn_of_missing_weights(&entries, notices);
        }
        Draft {
            name,
            model,
            entries,
            strategy,
            path,
            line,
        }
    }

    /// One entry. A target that is not known yet is declared by it.
    fn entry(
        &mut self,
        node: &Node,
        path: &str,
        route: &str,
        faults: &mut Faults,
        notices: &mut Notices,
    ) -> Option<Entry> {
        let is_new = |name: &str| !self.targets.iter().any(|target| target.virtual_key == name);
        let entry = targets::read_entry(node, path, &self.around, is_new, faults, notices)?;
        if entry.is_route() || entry.name.is_empty() {
            return Some(entry);
        }
        match self.targets.iter().find(|target| target.virtual_key == entry.name) {
            None => self.targets.push(entry.target(path)),
            Some(declared) if route != DEFAULT => {
                for (key, line) in &entry.stateful {
                    let message = format!(
                        "belongs to the target itself, which is shared by all routes; write it at {}",
                        declared.path
                    );
                    faults.add(&format!("{path}.{key}"), *line, message);
                }
            }
            Some(_) => {}
        }
        Some(entry)
    }
}

fn warn_of_missing_weights(entries: &[Entry], notices: &mut Notices) {
    if entries.iter().all(|entry| entry.weight.is_none()) {
        return;
    }
    for entry in entries.iter().filter(|entry| entry.weight.is_none()) {
        let message = format!(
            "\"{}\" has no weight while others have one, which counts as 0: it is drained; write its weight",
            entry.name
        );
        notices.warn(&entry.path, entry.line, message);
    }
}

/// Names become positions.
fn resolve(drafts: Vec<Draft>, targets: &[Target], faults: &mut Faults) -> Vec<Route> {
    let names: Vec<String> = drafts.iter().map(|draft| draft.name.clone()).collect();
    let resolve = |draft: Draft| {
        let mut places = Vec::with_capacity(draft.entries.len());
        for entry in draft.entries.into_iter().filter(|entry| !entry.name.is_empty()) {
            let to = match entry.route() {
                Some(route) => names.iter().position(|name| name == route).map(To::Route),
                None => targets
                    .iter()
                    .position(|target| target.virtual_key == entry.name)
                    .map(To::Target),
            };
            if let Some(to) = to {
                places.push(entry.place(to));
            } else {
                let message = format!("\"{}\" names no route; there are {}", entry.name, names.join(", "));
                faults.add(&entry.path, entry.line, message);
            }
        }
        Route {
            name: draft.name,
            model: draft.model,
            strategy: draft.strategy,
            places,
        }
    };
    drafts.into_iter().map(resolve).collect()
}

/// Whether what hangs on each route is a tree, and one that can be unrolled for every request.
struct Trees<'t> {
    routes: &'t [Route],
    /// Path and line of each route's targets.
    places: &'t [(String, u64)],
    known: Vec<Option<Tree>>,
}

#[derive(Clone, Copy, Default)]
struct Tree {
    /// Routes one below the other, this one included.
    depth: usize,
    /// The route that the longest chain goes on with.
    next: Option<usize>,
    /// Targets in all.
    size: usize,
}

impl Trees<'_> {
    fn check(mut self, faults: &mut Faults) {
        for route in 0..self.routes.len() {
            self.measure(route, &mut Vec::new(), faults);
        }
    }

    /// `trail` is the way from where the walk began.
    fn measure(&mut self, route: usize, trail: &mut Vec<usize>, faults: &mut Faults) -> Tree {
        if let Some(begin) = trail.iter().position(|passed| *passed == route) {
            let circle = trail.iter().skip(begin).copied().chain([route]);
            let message = format!("{} goes round in a circle; take one of them out", self.chain(circle));
            self.fault(route, message, faults);
            return Tree::default();
        }
        if let Some(Some(tree)) = self.known.get(route) {
            return *tree;
        }
        let mut tree = Tree {
            depth: 1,
            ..Tree::default()
        };
        let (mut is_deep, mut is_large) = (false, false);
        trail.push(route);
        let routes = self.routes;
        for place in routes.get(route).map(|route| &route.places[..]).unwrap_or_default() {
            let To::Route(inner) = place.to else {
                tree.size += 1;
                continue;
            };
            let below = self.measure(inner, trail, faults);
            tree.size = tree.size.saturating_add(below.size);
            (is_deep, is_large) = (is_deep || below.depth > DEEPEST, is_large || below.size > LARGEST);
            if below.depth >= tree.depth {
                (tree.depth, tree.next) = (below.depth + 1, Some(inner));
            }
        }
        trail.pop();
        if let Some(known) = self.known.get_mut(route) {
            *known = Some(tree);
        }
        // Those that name this one are too deep and too large as well, and need not be told.
        if tree.depth > DEEPEST && !is_deep {
            let next = |route: &usize| self.known.get(*route).copied().flatten()?.next;
            let names = self.chain(std::iter::successors(Some(route), next));
            self.fault(
                route,
                format!("{names} is longer than {DEEPEST} routes; make it shorter"),
                faults,
            );
        }
        if tree.size > LARGEST && !is_large {
            let message = format!("comes to {} targets with its routes; {LARGEST} is the most", tree.size);
            self.fault(route, message, faults);
        }
        tree
    }

    fn chain(&self, routes: impl Iterator<Item = usize>) -> String {
        let names: Vec<&str> = routes
            .filter_map(|route| Some(self.routes.get(route)?.name.as_str()))
            .collect();
        names.join(" -> ")
    }

    fn fault(&self, route: usize, message: String, faults: &mut Faults) {
        if let Some((path, line)) = self.places.get(route) {
            faults.add(path, *line, message);
        }
    }
}

fn read_projects(
    root: &mut Block<'_>,
    routes: &[Route],
    targets: &[Target],
    faults: &mut Faults,
) -> BTreeMap<String, Project> {
    let mut projects = BTreeMap::new();
    let Some(block) = root
        .take("projects")
        .and_then(|node| Block::of(node, &root.path_of("projects"), faults))
    else {
        return projects;
    };
    for (name, node) in block.all() {
        let path = block.path_of(name);
        if name.is_empty() || name.trim() != name {
            let message = "is no name for a project, and no key could belong to it; write one without spaces around it";
            faults.add(&path, node.line, message);
        }
        let Some(mut entry) = Block::of(node, &path, faults) else {
            continue;
        };
        let line = entry.line_of("route");
        let route = entry.text("route", faults);
        if let Some(route) = route
            .as_ref()
            .filter(|route| !routes.iter().any(|known| known.name == **route))
        {
            let names: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
            let message = format!("\"{route}\" names no route; there are {}", names.join(", "));
            faults.add(&entry.path_of("route"), line, message);
        }
        let is_limited = entry.is_written("only");
        if is_limited && entry.is_bare("only") {
            let message = "allows nothing; name a target, or leave it out to allow all";
            faults.add(&entry.path_of("only"), entry.line_of("only"), message);
        }
        let only = read_only(&mut entry, targets, faults);
        let only = is_limited.then_some(only);
        entry.finish(faults);
        projects.insert(name.to_owned(), Project { route, only });
    }
    projects
}

fn read_only(entry: &mut Block<'_>, targets: &[Target], faults: &mut Faults) -> Vec<String> {
    let mut only = Vec::new();
    for (node, path) in entry.list("only", faults) {
        let Some(name) = as_text(node, &path, faults) else {
            continue;
        };
        if !targets.iter().any(|target| target.virtual_key == name) {
            let declared: Vec<&str> = targets.iter().map(|target| target.virtual_key.as_str()).collect();
            let message = format!(
                "\"{name}\" names no configured target; declared targets: {}",
                declared.join(", ")
            );
            faults.add(&path, node.line, message);
        }
        only.push(name);
    }
    only
}
