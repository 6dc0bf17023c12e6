//! How cost and memory grow with what there is more of.
//!
//! Each question is one table; a row is one size. Where nginx has the thing too it stands beside.

use super::{
    figures::{Figures, Spread, number, whole},
    servers::{Programs, Server, Timing, config},
    table::Table,
};
use anyhow::Result;
use serde_json::{Value, json};
use std::{fmt::Write as _, fs, path::Path};

/// What can grow, as `--only` knows it.
pub(super) const NAMES: [&str; 5] = ["targets", "keys", "routes", "prompts", "open-streams"];

/// One question, answered.
pub(super) struct Grown {
    name: &'static str,
    pub(super) table: Table,
    rows: Vec<Value>,
    /// There are to be none.
    pub(super) failures: Vec<String>,
}

impl Grown {
    fn new(name: &'static str, title: &str, head: &[&str]) -> Self {
        Self {
            name,
            table: Table::new(title, head),
            rows: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({ "name": self.name, "rows": self.rows })
    }

    fn blame(&mut self, size: &str, who: &str, rounds: &[Figures]) {
        for failure in rounds.iter().flat_map(|figures| &figures.failures) {
            println!("    FAILED: {failure}");
            self.failures.push(format!("{}, {size}, {who}: {failure}", self.name));
        }
    }

    fn row(&mut self, cells: Vec<String>, figures: Value) {
        println!("    {}", cells.join("  "));
        self.table.row(cells);
        self.rows.push(figures);
    }
}

struct Growth<'a> {
    programs: &'a Programs,
    timing: &'a Timing,
}

pub(super) fn measure(programs: &Programs, timing: &Timing, wanted: impl Fn(&str) -> bool) -> Result<Vec<Grown>> {
    let growth = Growth { programs, timing };
    let mut grown = Vec::new();
    for name in NAMES.into_iter().filter(|name| wanted(name)) {
        println!("==> growth: {name}");
        grown.push(match name {
            "targets" => growth.targets()?,
            "keys" => growth.keys()?,
            "routes" => growth.routes()?,
            "prompts" => growth.prompts()?,
            _ => growth.open_streams()?,
        });
    }
    programs.tidy();
    Ok(grown)
}

/// Keys of a large installation.
const MANY: usize = 1_000_000;

const LOAD_HEAD: [&str; 4] = ["", "CPU µs a request", "requests a second", "MB idle"];

impl Growth<'_> {
    /// A unary request of 0.2 kB. Under `single` the others are not its route's; otherwise they could be asked too.
    fn targets(&self) -> Result<Grown> {
        let mut grown = Grown::new("targets", "More targets", &LOAD_HEAD);
        for mode in ["single", "fallback", "load-balance", "least-latency"] {
            for count in [1, 10, 100, 1000] {
                let mock = self.programs.mock()?;
                let gateway = self.programs.gateway(&config(&mock, mode, count))?;
                let rounds = self.load(&gateway, 1, &[])?;
                self.row(&mut grown, format!("{}, {mode}", whole(count)), &rounds);
            }
        }
        Ok(grown)
    }

    fn keys(&self) -> Result<Grown> {
        let mut grown = Grown::new("keys", "More keys, used in turn", &LOAD_HEAD);
        for (name, count, used) in [
            ("10", 10, 10),
            ("10,000", 10_000, 10_000),
            ("1,000,000, of which 10,000 are used", MANY, 10_000),
            ("1,000,000, none used twice", MANY, MANY),
        ] {
            let mock = self.programs.mock()?;
            let config = config(&mock, "single", 1);
            let (gateway, secrets) = self.programs.gateway_with_keys(&config, count, used)?;
            let rounds = self.load_with(&gateway, &secrets, used == MANY)?;
            self.row(&mut grown, name.to_owned(), &rounds);
        }
        Ok(grown)
    }

    fn routes(&self) -> Result<Grown> {
        let mut grown = Grown::new("routes", "More routes, the last one named by the request", &LOAD_HEAD);
        for count in [10, 100, 1000, 10_000] {
            let mock = self.programs.mock()?;
            let mut text = config(&mock, "single", 1);
            text.push_str("routes:\n");
            for number in 0..count {
                writeln!(text, "  r{number}: {{strategy: {{mode: single}}, targets: [p0]}}")?;
            }
            let gateway = self.programs.gateway(&text)?;
            let header = format!("x-gateway-route: r{}", count - 1);
            let rounds = self.load(&gateway, 1, &["--header".to_owned(), header])?;
            self.row(&mut grown, whole(count), &rounds);
        }
        Ok(grown)
    }

    fn prompts(&self) -> Result<Grown> {
        let head = [
            "",
            "CPU µs a request: nginx",
            "Switchyard",
            "ratio",
            "MB under load: nginx",
            "Switchyard",
        ];
        let mut grown = Grown::new("prompts", "Longer prompts", &head);
        for (bytes, name, clients) in [
            (1_000, "1 kB, 64 clients", "64"),
            (10_000, "10 kB, 64 clients", "64"),
            (100_000, "100 kB, 64 clients", "64"),
            (1_000_000, "1 MB, 8 clients", "8"),
            (8_000_000, "8 MB, 8 clients", "8"),
        ] {
            let mock = self.programs.mock()?;
            let nginx = self.programs.nginx(&mock)?;
            let gateway = self.programs.gateway(&config(&mock, "single", 1))?;
            let args = [
                "--prompt".to_owned(),
                bytes.to_string(),
                "--connections".to_owned(),
                clients.to_owned(),
            ];
            let ours = self.load(&gateway, 1, &args)?;
            let theirs = nginx
                .as_ref()
                .map(|nginx| self.load(nginx, 0, &args))
                .transpose()?
                .unwrap_or_default();
            grown.blame(name, "nginx", &theirs);
            grown.blame(name, "Switchyard", &ours);
            let [cpu_theirs, cpu_ours] = [&theirs, &ours].map(|rounds| median(rounds, "cpu_us_per_request"));
            let [rss_theirs, rss_ours] = [&theirs, &ours].map(|rounds| median(rounds, "rss_peak_kb") / 1024.0);
            let cells = [cpu_theirs, cpu_ours, cpu_ours / cpu_theirs, rss_theirs, rss_ours].map(number);
            let cells = [name.to_owned()].into_iter().chain(cells).collect();
            grown.row(
                cells,
                json!({ "prompt_bytes": bytes, "nginx": all(&theirs), "switchyard": all(&ours) }),
            );
        }
        Ok(grown)
    }

    /// Both ends stay open and nothing is said: what is left is memory.
    fn open_streams(&self) -> Result<Grown> {
        let head = [
            "",
            "kB a stream: nginx",
            "Switchyard",
            "MB open: nginx",
            "Switchyard",
            "MB after: nginx",
            "Switchyard",
            "CPU of a core: Switchyard",
        ];
        let mut grown = Grown::new("open-streams", "Open streams without a word on them", &head);
        for count in [1_usize, 10, 100, 1000, 10_000] {
            let mock = self.programs.mock()?;
            let nginx = self.programs.nginx(&mock)?;
            let gateway = self.programs.gateway(&config(&mock, "single", 1))?;
            let keys = self.programs.keys(&gateway, 1)?;
            let args = ["--streams", &count.to_string(), "--keys", &keys.display().to_string()].map(str::to_owned);
            let hold = |server: &Server| self.programs.ask("hold", server, &args);
            let ours = hold(&gateway)?;
            let theirs = nginx.as_ref().map(hold).transpose()?.unwrap_or_default();
            let opened = ours.get("streams");
            let name = if opened < ours.get("asked_for") {
                format!("{} of {}: no more open files are allowed", number(opened), whole(count))
            } else {
                whole(count)
            };
            let each = |figures: &Figures| {
                (figures.get("rss_open_kb") - figures.get("rss_before_kb")) / figures.get("streams")
            };
            let mb = |figures: &Figures, name: &str| figures.get(name) / 1024.0;
            let cells = [
                each(&theirs),
                each(&ours),
                mb(&theirs, "rss_open_kb"),
                mb(&ours, "rss_open_kb"),
                mb(&theirs, "rss_after_kb"),
                mb(&ours, "rss_after_kb"),
                ours.get("idle_cpu_cores"),
            ];
            let cells = [name].into_iter().chain(cells.map(number)).collect();
            grown.row(
                cells,
                json!({ "streams": count, "nginx": theirs.json(), "switchyard": ours.json() }),
            );
        }
        Ok(grown)
    }

    fn timed(&self, more: &[String]) -> Vec<String> {
        let timing = self.timing;
        let times = [
            ("seconds", timing.seconds),
            ("warmup", timing.warmup),
            ("settle", timing.settle),
        ];
        let times = times
            .into_iter()
            .flat_map(|(name, value)| [format!("--{name}"), value.to_string()]);
        times.chain(more.iter().cloned()).collect()
    }

    /// 64 clients and a prompt of 200 bytes, unless told otherwise.
    fn load(&self, server: &Server, keys: usize, more: &[String]) -> Result<Vec<Figures>> {
        let mut args = self.timed(more);
        if keys > 0 {
            let file = self.programs.keys(server, keys)?;
            args.extend(["--keys".to_owned(), file.display().to_string()]);
        }
        (0..self.timing.rounds)
            .map(|_| self.programs.ask("load", server, &args))
            .collect()
    }

    /// With these secrets: with all of them in every round, or `anew` in every round with its part of them.
    fn load_with(&self, server: &Server, secrets: &Path, anew: bool) -> Result<Vec<Figures>> {
        if !anew {
            return self.load(server, 0, &["--keys".to_owned(), secrets.display().to_string()]);
        }
        let all = fs::read_to_string(secrets)?;
        let lines: Vec<&str> = all.lines().collect();
        let parts = lines.chunks(lines.len().div_ceil(self.timing.rounds.max(1)));
        let mut rounds = Vec::new();
        for part in parts {
            fs::write(secrets, part.join("\n"))?;
            let args = ["--keys".to_owned(), secrets.display().to_string()];
            rounds.push(self.programs.ask("load", server, &self.timed(&args))?);
        }
        Ok(rounds)
    }

    fn row(&self, grown: &mut Grown, name: String, rounds: &[Figures]) {
        grown.blame(&name, "Switchyard", rounds);
        let idle = rounds
            .first()
            .map_or(f64::NAN, |figures| figures.get("rss_before_kb") / 1024.0);
        let figures = [
            median(rounds, "cpu_us_per_request"),
            median(rounds, "requests_per_second"),
            idle,
        ];
        let value = json!({ "size": name, "switchyard": all(rounds) });
        grown.row([name].into_iter().chain(figures.map(number)).collect(), value);
    }
}

fn median(rounds: &[Figures], name: &str) -> f64 {
    rounds
        .iter()
        .map(|figures| figures.get(name))
        .collect::<Spread>()
        .median()
}

fn all(rounds: &[Figures]) -> Vec<Value> {
    rounds.iter().map(Figures::json).collect()
}
