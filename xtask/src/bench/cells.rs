//! The cells: one kind of request under one kind of load, against three servers in turn.

use super::{
    figures::{Figures, Spread, number},
    servers::{Programs, Server, Timing, config},
    table::Table,
};
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) struct Cell {
    pub(crate) name: &'static str,
    /// What the mock is told.
    model: &'static str,
    prompt: usize,
    /// Contents of a stream.
    chunks: Option<u32>,
    /// How long the mock takes for an answer.
    length_ms: u32,
    load: Load,
    /// CPU of at most so many times nginx's is aimed at.
    aim: Option<f64>,
}

#[derive(Clone, Copy)]
enum Load {
    Closed(u32),
    PerSecond(u32),
}

const UNARY: Cell = Cell {
    name: "",
    model: "bench",
    prompt: 200,
    chunks: None,
    length_ms: 0,
    load: Load::Closed(64),
    aim: None,
};

const fn unary(name: &'static str, prompt: usize, aim: Option<f64>) -> Cell {
    Cell {
        name,
        prompt,
        aim,
        ..UNARY
    }
}

const fn stream(name: &'static str, model: &'static str, chunks: u32, length_ms: u32) -> Cell {
    Cell {
        name,
        model,
        chunks: Some(chunks),
        length_ms,
        aim: Some(1.0),
        ..UNARY
    }
}

pub(crate) const CELLS: [Cell; 16] = [
    Cell {
        load: Load::Closed(1),
        ..unary("one", 200, None)
    },
    unary("unary-0.2kB", 200, Some(1.5)),
    unary("unary-10kB", 10_000, None),
    unary("unary-100kB", 100_000, Some(1.25)),
    stream("stream-20", "bench-chunks=20", 20, 0),
    stream("stream-200", "bench-chunks=200", 200, 0),
    Cell {
        prompt: 10_000,
        ..stream("stream-20-10kB", "bench-chunks=20", 20, 0)
    },
    Cell {
        prompt: 100_000,
        ..stream("stream-20-100kB", "bench-chunks=20", 20, 0)
    },
    stream("paced-20", "bench-chunks=20,pace=5", 20, 95),
    Cell {
        prompt: 10_000,
        ..stream("paced-20-10kB", "bench-chunks=20,pace=5", 20, 95)
    },
    stream("paced-200", "bench-chunks=200,pace=5", 200, 995),
    Cell {
        load: Load::Closed(512),
        ..stream("open-512", "bench-chunks=20,pace=100,delay=60", 20, 1960)
    },
    Cell {
        load: Load::PerSecond(1000),
        ..unary("rate-1000", 200, None)
    },
    Cell {
        load: Load::PerSecond(3000),
        ..unary("rate-3000", 200, None)
    },
    Cell {
        load: Load::PerSecond(500),
        model: "bench-delay=60",
        length_ms: 60,
        ..unary("rate-500-60ms", 10_000, None)
    },
    Cell {
        load: Load::PerSecond(100),
        aim: None,
        ..stream("rate-100-streams", "bench-chunks=20,pace=5,delay=60", 20, 155)
    },
];

/// What the three servers gave, round by round.
pub(super) struct Measured {
    cell: &'static Cell,
    direct: Vec<Figures>,
    nginx: Vec<Figures>,
    switchyard: Vec<Figures>,
    /// Records that did not make it into the log.
    shed: f64,
}

pub(super) fn measure(programs: &Programs, timing: &Timing, wanted: impl Fn(&str) -> bool) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    let cells: Vec<&'static Cell> = CELLS.iter().filter(|cell| wanted(cell.name)).collect();
    for (index, cell) in cells.iter().enumerate() {
        println!("==> [{}/{}] {}: {}", index + 1, cells.len(), cell.name, cell.describe());
        let result = cell.measure(programs, timing)?;
        println!("    {}", result.summary());
        for failure in result.failures() {
            println!("    FAILED: {failure}");
        }
        measured.push(result);
    }
    programs.tidy();
    Ok(measured)
}

impl Cell {
    fn describe(&self) -> String {
        let what = match self.chunks {
            None => "an answer in one piece".to_owned(),
            Some(chunks) => format!("a stream of {chunks} chunks"),
        };
        let load = match self.load {
            Load::Closed(clients) => format!("{clients} clients that wait for their answer"),
            Load::PerSecond(rate) => format!("{rate} requests a second"),
        };
        let script = self
            .model
            .strip_prefix("bench-")
            .map_or(String::new(), |script| format!(" ({script})"));
        format!("{what}{script}, {} bytes of prompt, {load}", self.prompt)
    }

    /// Clients ask as fast as they can, and nothing else holds them up.
    const fn is_at_the_limit(&self) -> bool {
        matches!(self.load, Load::Closed(clients) if clients > 1) && self.length_ms == 0
    }

    /// Fresh programs for every cell: none begins with what an earlier one has left behind.
    fn measure(&'static self, programs: &Programs, timing: &Timing) -> Result<Measured> {
        let mock = programs.mock()?;
        let nginx = programs.nginx(&mock)?;
        let gateway = programs.gateway(&config(&mock, "single", 1))?;
        let keys = programs.keys(&gateway, 1)?;
        let args = self.args(timing, &keys);
        let ask = |server: &Server| programs.ask("load", server, &args);
        let mut measured = Measured {
            cell: self,
            direct: Vec::new(),
            nginx: Vec::new(),
            switchyard: Vec::new(),
            shed: 0.0,
        };
        for _ in 0..timing.rounds {
            measured.direct.push(ask(&mock)?);
            if let Some(nginx) = &nginx {
                measured.nginx.push(ask(nginx)?);
            }
            measured.switchyard.push(ask(&gateway)?);
        }
        measured.shed = programs.shed(&gateway)?;
        Ok(measured)
    }

    /// The same load for a gateway alone, whose figures are of no interest.
    pub(crate) fn ask_gateway(&self, programs: &Programs, timing: &Timing) -> Result<()> {
        let mock = programs.mock()?;
        let gateway = programs.gateway(&config(&mock, "single", 1))?;
        let keys = programs.keys(&gateway, 1)?;
        programs.ask("load", &gateway, &self.args(timing, &keys))?;
        Ok(())
    }

    fn args(&self, timing: &Timing, keys: &Path) -> Vec<String> {
        // Clients begin during the warm-up: as long as an answer takes, or what is counted is not yet the usual.
        let warmup = timing.warmup.max(f64::from(self.length_ms) / 1000.0 * 1.05);
        let mut args: Vec<String> = ["--model", self.model].map(str::to_owned).into();
        let mut option = |name: &str, value: String| args.extend([format!("--{name}"), value]);
        option("prompt", self.prompt.to_string());
        option("seconds", timing.seconds.to_string());
        option("warmup", warmup.to_string());
        option("settle", timing.settle.to_string());
        option("keys", keys.display().to_string());
        match self.load {
            Load::Closed(clients) => option("connections", clients.to_string()),
            Load::PerSecond(rate) => option("rate", rate.to_string()),
        }
        if self.chunks.is_some() {
            args.push("--stream".to_owned());
        }
        args
    }
}

const CPU: &str = "cpu_us_per_request";
const THROUGHPUT: &str = "requests_per_second";
/// Of a rate, what has to be answered in time for its figures to mean something.
const KEEPS_UP: f64 = 0.95;
const OUTSIDE: [&str; 3] = ["outside_p50_us", "outside_p99_us", "outside_p999_us"];
const FIRST_OUTSIDE: [&str; 3] = ["first_outside_p50_us", "first_outside_p99_us", "first_outside_p999_us"];

impl Measured {
    fn ratio(&self, name: &str) -> Spread {
        let rounds = self.switchyard.iter().zip(&self.nginx);
        rounds.map(|(ours, theirs)| ours.get(name) / theirs.get(name)).collect()
    }

    pub(super) fn failures(&self) -> Vec<String> {
        let of = |who: &'static str, rounds: &[Figures]| {
            let failures: Vec<String> = rounds.iter().flat_map(|figures| figures.failures.clone()).collect();
            failures
                .into_iter()
                .map(move |failure| format!("{}, {who}: {failure}", self.cell.name))
        };
        let mut all: Vec<String> = of("bare mock", &self.direct).collect();
        all.extend(of("nginx", &self.nginx));
        all.extend(of("Switchyard", &self.switchyard));
        for (who, rounds) in [("nginx", &self.nginx), ("Switchyard", &self.switchyard)] {
            let answered = median(rounds, THROUGHPUT);
            if let Load::PerSecond(rate) = self.cell.load
                && answered < f64::from(rate) * KEEPS_UP
            {
                all.push(format!(
                    "{}, {who}: {answered:.0} of {rate} requests a second were answered, so times are those of a queue",
                    self.cell.name
                ));
            }
        }
        if self.shed > 0.0 {
            all.push(format!("{}: {} records were shed", self.cell.name, self.shed));
        }
        all
    }

    fn summary(&self) -> String {
        let (ours, theirs) = (median(&self.switchyard, CPU), median(&self.nginx, CPU));
        format!(
            "CPU µs a request: nginx {}, Switchyard {}; ratio {}",
            number(theirs),
            number(ours),
            self.ratio(CPU).ratio()
        )
    }

    /// Medians, less those of the bare mock.
    fn added(&self, rounds: &[Figures]) -> Value {
        let added = |name: &str| finite(median(rounds, name) - median(&self.direct, name));
        let of = |name: &str| (name.to_owned(), Value::from(added(name)));
        OUTSIDE.into_iter().chain(FIRST_OUTSIDE).map(of).collect()
    }

    pub(super) fn json(&self) -> Value {
        let rounds = |rounds: &[Figures]| rounds.iter().map(Figures::json).collect::<Vec<_>>();
        json!({
            "name": self.cell.name,
            "what": self.cell.describe(),
            "chunks": self.cell.chunks,
            "ratio": {
                CPU: finite(self.ratio(CPU).median()),
                THROUGHPUT: finite(self.ratio(THROUGHPUT).median()),
            },
            "aim": self.cell.aim,
            "added_us": { "nginx": self.added(&self.nginx), "switchyard": self.added(&self.switchyard) },
            "direct": rounds(&self.direct),
            "nginx": rounds(&self.nginx),
            "switchyard": rounds(&self.switchyard),
            "records_shed": self.shed,
            "failures": self.failures(),
        })
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn median(rounds: &[Figures], name: &str) -> f64 {
    rounds
        .iter()
        .map(|figures| figures.get(name))
        .collect::<Spread>()
        .median()
}

// === Tables ===

pub(super) fn tables(cells: &[Measured]) -> Vec<Table> {
    if cells.is_empty() {
        return Vec::new();
    }
    vec![ratios(cells), added(cells), absolute(cells), memory(cells)]
}

fn ratios(cells: &[Measured]) -> Table {
    let mut table = Table::new("Against nginx", &["cell", "CPU a request", "aim", "requests a second"]);
    for measured in cells {
        table.row(vec![
            measured.cell.name.to_owned(),
            measured.ratio(CPU).ratio(),
            measured.cell.aim.map_or("–".to_owned(), |aim| format!("≤ {aim}")),
            if measured.cell.is_at_the_limit() {
                measured.ratio(THROUGHPUT).ratio()
            } else {
                "–".to_owned()
            },
        ]);
    }
    table
}

/// Only where the load leaves room: at a program's limit, times are those of the queue before it.
fn added(cells: &[Measured]) -> Table {
    let head = [
        "added, µs: nginx / Switchyard",
        "p50",
        "p99",
        "p99.9",
        "first token p50",
        "first token p99",
        "first token p99.9",
    ];
    let mut table = Table::new("Time added to the bare mock's", &head);
    for measured in cells {
        if measured.cell.is_at_the_limit() {
            continue;
        }
        let pair = |name: &str| {
            let direct = median(&measured.direct, name);
            let added = |rounds: &[Figures]| number(median(rounds, name) - direct);
            format!("{} / {}", added(&measured.nginx), added(&measured.switchyard))
        };
        // The end of a paced stream is the mock's timers and nothing else; of an answer in one piece it is the first of it.
        let none = ["–"; 3].map(str::to_owned);
        let (whole, first) = match measured.cell.chunks {
            None => (OUTSIDE.map(pair), none),
            Some(_) => (none, FIRST_OUTSIDE.map(pair)),
        };
        table.row(
            [measured.cell.name.to_owned()]
                .into_iter()
                .chain(whole)
                .chain(first)
                .collect(),
        );
    }
    table
}

fn absolute(cells: &[Measured]) -> Table {
    let head = [
        "nginx / Switchyard",
        "CPU µs a request",
        "CPU µs a chunk",
        "requests a second",
        "bare mock",
        "p50 ms",
        "p99 ms",
    ];
    let mut table = Table::new("Absolute", &head);
    for measured in cells {
        let pair = |name: &str, scale: f64| {
            let [theirs, ours] =
                [&measured.nginx, &measured.switchyard].map(|rounds| number(median(rounds, name) * scale));
            format!("{theirs} / {ours}")
        };
        let per_chunk = measured
            .cell
            .chunks
            .map_or("–".to_owned(), |chunks| pair(CPU, 1.0 / f64::from(chunks)));
        table.row(vec![
            measured.cell.name.to_owned(),
            pair(CPU, 1.0),
            per_chunk,
            pair(THROUGHPUT, 1.0),
            number(median(&measured.direct, THROUGHPUT)),
            pair("latency_p50_us", 1e-3),
            pair("latency_p99_us", 1e-3),
        ]);
    }
    table
}

fn memory(cells: &[Measured]) -> Table {
    let head = ["MB resident: nginx / Switchyard", "idle", "under load", "after"];
    let mut table = Table::new("Memory", &head);
    for measured in cells {
        let pair = |figure: fn(&[Figures]) -> f64| {
            let [theirs, ours] = [&measured.nginx, &measured.switchyard].map(|rounds| number(figure(rounds) / 1024.0));
            format!("{theirs} / {ours}")
        };
        let first = |rounds: &[Figures]| rounds.first().map_or(f64::NAN, |figures| figures.get("rss_before_kb"));
        let last = |rounds: &[Figures]| rounds.last().map_or(f64::NAN, |figures| figures.get("rss_after_kb"));
        let peak = |rounds: &[Figures]| {
            rounds
                .iter()
                .map(|figures| figures.get("rss_peak_kb"))
                .fold(f64::NAN, f64::max)
        };
        table.row(vec![measured.cell.name.to_owned(), pair(first), pair(peak), pair(last)]);
    }
    table
}
