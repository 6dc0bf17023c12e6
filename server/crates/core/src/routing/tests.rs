//! One `check`, a table of worlds.
//!
//! A world is a line: `a=m,n b=* c=+` are three targets, of which `a` lists the models m and n, `b` takes what it is
//! asked for and is known for others, and `c` takes what it is asked for. What follows a target tells of it: `w70` its weight, `40ms` its median latency, `$3/15` its prices in and
//! out per million tokens, `90%` its success rate and `90%/40ms` with an average latency, `!header` or `!project` that
//! this request may not use it.
//!
//! A request is a line: the model, and then what else is known of it, as in `m user=ann stream at=22:30`.

#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is handed over"
)]

mod draws;
mod modes;
mod nested;
mod properties;
mod rules;

use super::{Facts, LeftOut, Order, RouteId, Router, Serves, TargetId, World};
use crate::catalog::{Work, WorkKind, cost_at};
use crate::config::Config;
use crate::health::Health;
use expect_test::Expect;
use rand::{SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

#[derive(Default)]
struct Row {
    name: String,
    models: Vec<String>,
    weight: Option<String>,
    p50: Option<Duration>,
    price: Option<(f64, f64)>,
    health: Health,
    denied: Option<LeftOut>,
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(text.strip_suffix("ms").unwrap().parse().unwrap())
}

impl Row {
    fn parse(world: &str) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for word in world.split_whitespace() {
            if let Some((name, models)) = word.split_once('=') {
                rows.push(Self {
                    name: name.to_owned(),
                    models: models.split(',').map(str::to_owned).collect(),
                    ..Self::default()
                });
                continue;
            }
            let row = rows.last_mut().unwrap();
            if let Some(weight) = word.strip_prefix('w') {
                row.weight = Some(weight.to_owned());
            } else if let Some(prices) = word.strip_prefix('$') {
                let (input, output) = prices.split_once('/').unwrap_or((prices, "0"));
                row.price = Some((input.parse().unwrap(), output.parse().unwrap()));
            } else if let Some((rate, average)) = word.split_once('%') {
                row.health = Health {
                    success_rate: rate.parse::<f64>().unwrap() / 100.0,
                    average_latency: average.strip_prefix('/').map(millis),
                    samples: 10,
                };
            } else if let Some(denied) = word.strip_prefix('!') {
                row.denied = Some(match denied {
                    "header" => LeftOut::Header,
                    "project" => LeftOut::Project,
                    other => panic!("{other}"),
                });
            } else {
                row.p50 = Some(millis(word));
            }
        }
        rows
    }
}

/// A configuration and what is known of its targets.
struct Bench {
    config: Config,
    router: Router,
    rows: Vec<Row>,
}

impl Bench {
    /// `document` is a configuration, or only what stands in its `strategy`. Without `targets` those of the world hold, in
    /// the order of the world.
    fn new(document: &str, world: &str) -> Self {
        let rows = Row::parse(world);
        let mut text = String::new();
        match document.contains('\n') || document.starts_with("strategy:") {
            true => writeln!(text, "{document}").unwrap(),
            false => writeln!(text, "strategy: {{{document}}}").unwrap(),
        }
        let list = |item: &dyn Fn(&Row) -> String| rows.iter().map(item).collect::<Vec<_>>().join(", ");
        if !text.lines().any(|line| line.starts_with("targets:")) {
            let target = |row: &Row| match &row.weight {
                Some(weight) => format!("{{virtual_key: {}, weight: {weight}}}", row.name),
                None => row.name.clone(),
            };
            writeln!(text, "targets: [{}]", list(&target)).unwrap();
        }
        let provider = |row: &Row| format!("{{id: {}, kind: demo}}", row.name);
        writeln!(text, "providers: [{}]", list(&provider)).unwrap();
        let config = Config::parse(&text).unwrap_or_else(|issues| panic!("{text}\n{issues:?}"));
        Self {
            router: Router::new(&config),
            config,
            rows,
        }
    }

    fn name(&self, target: TargetId) -> &str {
        &self.config.targets[target.0].virtual_key
    }

    fn row(&self, target: TargetId) -> &Row {
        self.rows.iter().find(|row| row.name == self.name(target)).unwrap()
    }

    fn order(&self, request: &Request, rng: &mut StdRng) -> Order {
        self.router.order(request.route(self), &request.facts(), self, rng)
    }

    /// `a` is asked, as its place in route `fast` says: `fast/a`, and there for model n: `fast/a:n`.
    fn render(&self, request: &Request, order: &Order) -> String {
        let leg = |leg: &super::Leg| {
            let route = match leg.route {
                RouteId::DEFAULT => String::new(),
                RouteId(route) => format!("{}/", self.config.routes[route].name),
            };
            let model = match *leg.model == *request.model {
                true => String::new(),
                false => format!(":{}", leg.model),
            };
            format!("{route}{}{model}", self.name(leg.target))
        };
        let left_out = |(target, why): (TargetId, LeftOut)| {
            let why = match why {
                LeftOut::Model => "model",
                LeftOut::NoModel => "no model",
                LeftOut::NotNamed => "not named",
                LeftOut::NotInRoute => "not in route",
                LeftOut::Unpriced => "unpriced",
                LeftOut::Header => "header",
                LeftOut::Project => "project",
            };
            format!("-{}({why})", self.name(target))
        };
        let mut words: Vec<String> = order.legs.iter().map(leg).collect();
        words.extend(order.left_out().map(left_out));
        words.extend(order.variant.as_ref().map(|label| format!("[{label}]")));
        words.join(" ")
    }
}

impl World for Bench {
    fn targets(&self) -> usize {
        self.config.targets.len()
    }

    fn serves(&self, target: TargetId, model: &str) -> Serves {
        let own = &self.config.targets[target.0];
        let row = self.row(target);
        let listed = row.models.iter().chain(&own.models).chain(own.model_map.keys());
        if listed.into_iter().any(|listed| listed == model) {
            Serves::Listed
        } else if row.models.iter().any(|model| model == "+") {
            Serves::Open
        } else if row.models.iter().any(|model| model == "*") {
            Serves::Anything
        } else {
            Serves::No
        }
    }

    fn upstream<'a>(&'a self, target: TargetId, model: &'a str) -> &'a str {
        let own = &self.config.targets[target.0];
        own.model_map.get(model).map_or(model, String::as_str)
    }

    fn p50(&self, target: TargetId, _: &str) -> Option<Duration> {
        self.row(target).p50
    }

    fn price(&self, target: TargetId, _: &str, work: &Work) -> Option<f64> {
        let (input, output) = self.row(target).price?;
        cost_at(input, output, work)
    }

    fn health(&self, target: TargetId) -> Health {
        self.row(target).health
    }

    fn denies(&self, target: TargetId) -> Option<LeftOut> {
        self.row(target).denied
    }
}

/// Owns what [`Facts`] borrows.
struct Request {
    model: String,
    route: Option<String>,
    kind: WorkKind,
    input: u64,
    output: Option<u64>,
    user: Option<String>,
    session: Option<String>,
    stream: bool,
    has_tools: bool,
    key: Option<(String, String)>,
    project: Option<String>,
    headers: BTreeMap<String, String>,
    metadata: BTreeMap<String, String>,
    prompt: Option<String>,
    now_ms: i64,
}

impl Request {
    fn parse(text: &str) -> Self {
        let (text, prompt) = match text.split_once(" prompt=") {
            Some((text, prompt)) => (text, Some(prompt.to_owned())),
            None => (text, Some(String::new())),
        };
        let mut words = text.split_whitespace();
        let mut request = Self {
            model: words.next().unwrap().to_owned(),
            route: None,
            kind: WorkKind::Chat,
            input: 1,
            output: None,
            user: None,
            session: None,
            stream: false,
            has_tools: false,
            key: None,
            project: None,
            headers: BTreeMap::new(),
            metadata: BTreeMap::new(),
            prompt,
            now_ms: 0,
        };
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let owned = value.to_owned();
            match key.split_once(':').unwrap_or((key, "")) {
                ("in", _) => request.input = value.parse().unwrap(),
                ("out", _) => request.output = Some(value.parse().unwrap()),
                ("route", _) => request.route = Some(owned),
                ("user", _) => request.user = Some(owned),
                ("session", _) => request.session = Some(owned),
                ("stream", _) => request.stream = true,
                ("tools", _) => request.has_tools = true,
                ("project", _) => request.project = Some(owned),
                ("key", _) => {
                    let (id, name) = value.split_once('/').unwrap();
                    request.key = Some((id.to_owned(), name.to_owned()));
                }
                ("h", name) => {
                    request.headers.insert(name.to_owned(), owned);
                }
                ("meta", field) => {
                    request.metadata.insert(field.to_owned(), owned);
                }
                ("embed", _) => {
                    request.kind = WorkKind::Embeddings;
                    request.prompt = None;
                }
                ("at", _) => {
                    let (hours, minutes) = value.split_once(':').unwrap();
                    let minutes = hours.parse::<i64>().unwrap() * 60 + minutes.parse::<i64>().unwrap();
                    request.now_ms = minutes * 60_000;
                }
                other => panic!("{other:?}"),
            }
        }
        request
    }

    fn route(&self, bench: &Bench) -> RouteId {
        let named = self.route.as_deref().or_else(|| super::is_virtual(&self.model));
        named.map_or(RouteId::DEFAULT, |name| bench.router.find(name).unwrap())
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            model: &self.model,
            work: Work {
                kind: self.kind,
                input_tokens: self.input,
                output_tokens: self.output,
            },
            user: self.user.as_deref(),
            session: self.session.as_deref(),
            stream: self.stream,
            has_tools: self.has_tools,
            key: self.key.as_ref().map(|(id, name)| (id.as_str(), name.as_str())),
            project: self.project.as_deref(),
            headers: &self.headers,
            metadata: &self.metadata,
            prompt: self.prompt.as_deref(),
            now_ms: self.now_ms,
        }
    }
}

/// The order in which the targets of a world are asked, and why the others are not.
#[track_caller]
fn check(document: &str, world: &str, request: &str, want: Expect) {
    let (bench, request) = (Bench::new(document, world), Request::parse(request));
    let order = bench.order(&request, &mut StdRng::seed_from_u64(1));
    want.assert_eq(&bench.render(&request, &order));
}
