//! Streams that are open and say nothing: what one of them costs in memory, and all of them in CPU.

use crate::client::{Client, Options as ClientOptions, Plan};
use crate::process::{Watched, own_file_limit};
use anyhow::Context as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How many are being opened at once.
const AT_ONCE: usize = 32;
const SETTLE: Duration = Duration::from_millis(300);
/// Files that a process has open besides its connections.
const OTHER_FILES: u64 = 200;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    client: ClientOptions,
    /// How many to open
    #[arg(long, default_value_t = 100)]
    streams: usize,
    /// Seconds of silence after the last one was opened, and after all were closed
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The process whose CPU time and memory are read
    #[arg(long)]
    pid: Option<u32>,
}

pub(crate) async fn run(options: Options) -> anyhow::Result<Value> {
    let mut client = options.client;
    client.model = "bench-hold=1".to_owned();
    client.stream = true;
    let plan = Rc::new(Plan::new(&client)?);
    let watched = Watched::new(options.pid);
    let possible = possible(&watched).unwrap_or(usize::MAX);
    let pause = Duration::from_secs_f64(options.seconds);

    // What the first request of all brings is no stream's own.
    drop(open(&plan, 1).await?);
    sleep(SETTLE).await;
    let before = watched.rss_kb();
    let begin = Instant::now();
    let streams = open(&plan, options.streams.min(possible)).await?;
    let opening = begin.elapsed();
    sleep(pause).await;
    let (cpu, begin) = (watched.cpu(), Instant::now());
    sleep(pause).await;
    let idle = watched.cpu().saturating_sub(cpu).as_secs_f64() / begin.elapsed().as_secs_f64();
    let open = watched.rss_kb();
    let count = streams.len();
    drop(streams);
    sleep(pause).await;
    Ok(json!({
        "streams": count,
        "asked_for": options.streams,
        "opening_seconds": opening.as_secs_f64(),
        "idle_cpu_cores": idle,
        "rss_before_kb": before,
        "rss_open_kb": open,
        "rss_after_kb": watched.rss_kb(),
    }))
}

/// A proxy has two files for each stream, a client has one.
fn possible(watched: &Watched) -> Option<usize> {
    let proxy = watched.file_limit().map(|limit| limit.saturating_sub(OTHER_FILES) / 2);
    let own = own_file_limit().map(|limit| limit.saturating_sub(OTHER_FILES));
    usize::try_from(proxy.into_iter().chain(own).min()?).ok()
}

type Held = (Client, Incoming);

async fn open(plan: &Rc<Plan>, count: usize) -> anyhow::Result<Vec<Held>> {
    let mut opening = JoinSet::new();
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        if opening.len() >= AT_ONCE {
            held.push(next(&mut opening).await?);
        }
        let plan = Rc::clone(plan);
        opening.spawn_local(async move {
            let mut client = Client::connect(&plan).await?;
            let (body, _) = client.begin(&plan).await?;
            anyhow::Ok((client, body))
        });
    }
    while !opening.is_empty() {
        held.push(next(&mut opening).await?);
    }
    Ok(held)
}

async fn next(opening: &mut JoinSet<anyhow::Result<Held>>) -> anyhow::Result<Held> {
    opening.join_next().await.context("nothing is being opened")??
}
