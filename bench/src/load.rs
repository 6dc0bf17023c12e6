//! The load: so many clients that each wait for their answer, or so many requests a second whatever the answers do.
//!
//! Clients that wait (a closed loop) find out what a program can do and what it costs at its limit. A fixed rate (an open
//! loop) finds out how long answers take: a request that could not be sent when it was due counts from when it was due, so
//! that a program that stands still for a while does not look well because nobody asked it anything meanwhile.
//!
//! What is printed is one flat JSON object. Times are microseconds, memory is kB. `outside` is an answer's time without
//! the mock's own share; `first` is the time to the first byte of its body, `first_outside` the same without that share.

use crate::client::{Client, Options as ClientOptions, Plan, Seen};
use crate::process::Watched;
use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until, timeout};

/// Longest time that is told apart from a longer one.
const LONGEST_US: u64 = 120_000_000;
/// Wait after a failure: a server that refuses is not to be stormed.
const AFTER_FAILURE: Duration = Duration::from_millis(5);
const MEMORY_EVERY: Duration = Duration::from_millis(100);
/// What is still open after the end may take so long to come in.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    client: ClientOptions,
    /// Clients that each wait for their answer
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Requests a second instead
    #[arg(long)]
    rate: Option<f64>,
    /// Seconds that count
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds before them that do not
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Seconds behind them, before memory is read for the last time
    #[arg(long, default_value_t = 1.0)]
    settle: f64,
    /// The process whose CPU time and memory are read
    #[arg(long)]
    pid: Option<u32>,
}

pub(crate) async fn run(options: Options) -> anyhow::Result<Value> {
    let plan = Rc::new(Plan::new(&options.client)?);
    let begin = Instant::now();
    let from = begin + Duration::from_secs_f64(options.warmup);
    let until = from + Duration::from_secs_f64(options.seconds);
    let tally = Rc::new(RefCell::new(Tally::new()?));
    let watched = Watched::new(options.pid);
    let before = watched.rss_kb();
    let readings = tokio::task::spawn_local(read(watched.clone(), Rc::clone(&tally), from, until));
    if let Some(rate) = options.rate {
        at_a_rate(&plan, &tally, rate, begin, until).await;
    } else {
        one_after_the_other(&plan, &tally, options.connections, begin..from, until).await;
    }
    let mut figures = readings.await?;
    tally.borrow().report(&mut figures);
    sleep(Duration::from_secs_f64(options.settle)).await;
    figures.insert("rss_before_kb".to_owned(), before.into());
    figures.insert("rss_after_kb".to_owned(), watched.rss_kb().into());
    Ok(Value::Object(figures))
}

// === Who asks ===

/// Clients begin one after the other during the warm-up: begun together, streams of one length would stay together.
async fn one_after_the_other(
    plan: &Rc<Plan>,
    tally: &Rc<RefCell<Tally>>,
    connections: u32,
    warmup: std::ops::Range<Instant>,
    until: Instant,
) {
    let step = (warmup.end - warmup.start) / connections.max(1);
    let clients: Vec<_> = (0..connections)
        .map(|number| {
            let (plan, tally, start) = (Rc::clone(plan), Rc::clone(tally), warmup.start + step * number);
            tokio::task::spawn_local(async move {
                sleep_until(start.into()).await;
                let mut client = None;
                while Instant::now() < until {
                    let seen = ask(&plan, client.take(), Instant::now()).await;
                    client = tally.borrow_mut().count(seen);
                    if client.is_none() {
                        sleep(AFTER_FAILURE).await;
                    }
                }
            })
        })
        .collect();
    for client in clients {
        // A stream may be longer than what is left; nobody waits for its end.
        let left = until.saturating_duration_since(Instant::now());
        let _ = timeout(left + AFTER_FAILURE, client).await;
    }
}

type Asked = anyhow::Result<(Client, Seen)>;

async fn ask(plan: &Plan, client: Option<Client>, due: Instant) -> Asked {
    let mut client = match client {
        Some(client) => client,
        None => Client::connect(plan).await?,
    };
    let seen = client.ask(plan, due).await?;
    Ok((client, seen))
}

async fn at_a_rate(plan: &Rc<Plan>, tally: &Rc<RefCell<Tally>>, rate: f64, begin: Instant, until: Instant) {
    let mut due = ticks(rate, begin, until);
    // The one that was used last is taken first, so that as few as possible are open.
    let idle: Rc<RefCell<Vec<Client>>> = Rc::default();
    while let Some(due) = due.recv().await {
        let client = idle.borrow_mut().pop();
        let (plan, tally, idle) = (Rc::clone(plan), Rc::clone(tally), Rc::clone(&idle));
        tally.borrow_mut().open += 1;
        tokio::task::spawn_local(async move {
            let seen = ask(&plan, client, due).await;
            let client = {
                let mut tally = tally.borrow_mut();
                tally.open -= 1;
                tally.count(seen)
            };
            idle.borrow_mut().extend(client);
        });
    }
    let patience = Instant::now() + PATIENCE;
    while tally.borrow().open > 0 && Instant::now() < patience {
        sleep(AFTER_FAILURE).await;
    }
}

/// The moments at which requests are due. A thread of its own: a runtime's timers are good to a millisecond, a sleeping
/// thread is good to a few dozen microseconds.
fn ticks(rate: f64, begin: Instant, until: Instant) -> mpsc::UnboundedReceiver<Instant> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let times = (0_u32..).map(|number| begin + Duration::from_secs_f64(f64::from(number) / rate));
        for due in times.take_while(|due| *due < until) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if sender.send(due).is_err() {
                return;
            }
        }
    });
    receiver
}

// === What is counted ===

struct Tally {
    /// Nothing counts during the warm-up.
    counting: bool,
    open: u32,
    latency: Histogram<u64>,
    outside: Histogram<u64>,
    first: Histogram<u64>,
    first_outside: Histogram<u64>,
    failures: BTreeMap<String, u64>,
}

impl Tally {
    fn new() -> anyhow::Result<Self> {
        let empty = || Histogram::new_with_bounds(1, LONGEST_US, 3);
        Ok(Self {
            counting: false,
            open: 0,
            latency: empty()?,
            outside: empty()?,
            first: empty()?,
            first_outside: empty()?,
            failures: BTreeMap::new(),
        })
    }

    /// Gives the client back, if it can go on.
    fn count(&mut self, asked: Asked) -> Option<Client> {
        let (client, seen) = match asked {
            Ok((client, seen)) => (Some(client), seen),
            Err(error) => {
                // Failures count at any time: there are to be none.
                *self.failures.entry(error.to_string()).or_default() += 1;
                return None;
            }
        };
        if self.counting {
            let record = |histogram: &mut Histogram<u64>, time: Duration| {
                let micros = u64::try_from(time.as_micros()).unwrap_or(LONGEST_US);
                histogram.saturating_record(micros.clamp(1, LONGEST_US));
            };
            record(&mut self.latency, seen.whole);
            record(&mut self.outside, seen.whole.saturating_sub(seen.upstream));
            record(&mut self.first, seen.first);
            record(&mut self.first_outside, seen.first.saturating_sub(seen.upstream));
        }
        client
    }

    fn report(&self, figures: &mut Map<String, Value>) {
        for (name, histogram) in [
            ("latency", &self.latency),
            ("outside", &self.outside),
            ("first", &self.first),
            ("first_outside", &self.first_outside),
        ] {
            for (word, quantile) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
                figures.insert(
                    format!("{name}_{word}_us"),
                    histogram.value_at_quantile(quantile).into(),
                );
            }
        }
        let failed: u64 = self.failures.values().sum();
        figures.insert("failed".to_owned(), failed.into());
        figures.insert("failures".to_owned(), json!(self.failures));
        figures.insert("unanswered".to_owned(), self.open.into());
    }
}

/// Opens and closes the counting, with readings of the process at both ends and of its memory in between.
async fn read(watched: Watched, tally: Rc<RefCell<Tally>>, from: Instant, until: Instant) -> Map<String, Value> {
    sleep_until(from.into()).await;
    tally.borrow_mut().counting = true;
    let (begin, cpu) = (Instant::now(), watched.cpu());
    let mut peak = watched.rss_kb();
    while Instant::now() < until {
        sleep_until((Instant::now() + MEMORY_EVERY).min(until).into()).await;
        peak = peak.max(watched.rss_kb());
    }
    let (seconds, cpu) = (begin.elapsed().as_secs_f64(), watched.cpu().saturating_sub(cpu));
    tally.borrow_mut().counting = false;
    let requests = tally.borrow().latency.len();
    let per_request = |value: f64| if requests > 0 { value / requests as f64 } else { 0.0 };
    let mut figures = Map::new();
    let mut put = |name: &str, value: Value| figures.insert(name.to_owned(), value);
    put("requests", requests.into());
    put("seconds", seconds.into());
    put(
        "requests_per_second",
        (1.0 / per_request(seconds).max(f64::EPSILON)).into(),
    );
    put("cpu_us_per_request", per_request(cpu.as_secs_f64() * 1e6).into());
    put("cpu_cores", (cpu.as_secs_f64() / seconds).into());
    put("rss_peak_kb", peak.into());
    figures
}
