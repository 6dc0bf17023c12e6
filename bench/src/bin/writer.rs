//! What a record costs on its way into the database, and how many a second get there.
//!
//! `cargo run --release -p switchyard-bench --bin writer` pushes records as a gateway with one target makes them into a real
//! writer on a database file, first as fast as it takes them, then at given rates, each time on a fresh database. A line
//! of its output says:
//!
//! - **us/record**: CPU time of this process without the thread that makes the records, per record, in microseconds. It
//!   contains everything that the gateway pays for its log after [`Records::push`]: the task, SQLite, the kernel's part of
//!   reads and writes, checkpoints, and freeing what the record held.
//! - **push us**: CPU time of the thread that makes and pushes them, per record. Most of it is making them.
//! - **spooled**: the most that waited on the spool at once; **late**: how often a record got there or was lost, so that
//!   the writer called itself degraded. At a rate that it keeps up with, both are 0.
//! - **bytes/row**: the file's size after the last checkpoint, per row.
//!
//! The database stands in a temporary folder below `--dir`: give one on the disk that is meant, and not in memory.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use anyhow::{Context as _, ensure};
use clap::Parser;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};
use switchyard_core::{
    scope::{Scope, Scopes},
    usage::Usage,
};
use switchyard_engine::{
    ports::Records as _,
    record::{AttemptRecord, Outcome, RequestRecord, Verdict, VerdictState, Verdicts},
};
use switchyard_store::{NewKeyRow, Store, Writer, WriterConfig};

/// The gateway's own: what freeing costs on another thread than the one that allocated depends on it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Records in flight when it goes as fast as it can: some batches, and far less than what has to wait too long.
const IN_FLIGHT: u64 = 2048;
/// At a rate, records come in bursts this far apart.
const TICK: Duration = Duration::from_millis(1);

#[derive(Parser)]
#[command(about = "What a record costs on its way into the database")]
struct Options {
    /// Records a second, one run each; 0 is as fast as they are taken
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1000, 5000, 20_000])]
    rates: Vec<u64>,
    /// How long each run pushes
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Virtual keys that the records are spread over
    #[arg(long, default_value_t = 8)]
    keys: usize,
    /// Of a hundred records, so many are failures with two attempts
    #[arg(long, default_value_t = 0)]
    failures: u64,
    /// Threads of the runtime
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Where the databases stand while they are written
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    dir: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    println!("    rate    rows/s  us/record   push us   written   spooled      late      shed  bytes/row");
    for (rate, nth) in options.rates.iter().zip(1..) {
        let folder = options
            .dir
            .join(format!("switchyard-writer-{}-{nth}", std::process::id()));
        let ran = run(&options, *rate, &folder);
        // Whatever happened: it may be large.
        let _ = fs::remove_dir_all(&folder);
        ran?;
    }
    Ok(())
}

fn run(options: &Options, rate: u64, folder: &Path) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.threads)
        .enable_all()
        .build()?;
    let database = folder.join("switchyard.db");
    let keys: Vec<Arc<str>> = (0..options.keys).map(key_id).collect();
    let (store, writer) = runtime.block_on(async {
        let store = Store::open(&database).await?;
        for (key, number) in keys.iter().zip(0..) {
            store.insert_key(new_key(key, number)).await?;
        }
        let writer = Writer::start(store.clone(), WriterConfig::new(folder.join("spool")));
        writer.drained().await;
        anyhow::Ok((store, writer))
    })?;

    let pushing = AtomicBool::new(true);
    let (cpu_before, began) = (cpu(Of::Process)?, Instant::now());
    let (pushed, push_cpu, worst) = thread::scope(|scope| {
        let pusher = scope.spawn(|| {
            let length = Duration::from_secs_f64(options.seconds);
            let pushed = push(&writer, &Maker::new(&keys, options.failures), rate, length);
            pushing.store(false, Ordering::Relaxed);
            Ok::<_, anyhow::Error>((pushed, cpu(Of::Thread)?))
        });
        let mut worst = Worst::default();
        while pushing.load(Ordering::Relaxed) {
            worst.look(&writer);
            thread::sleep(Duration::from_millis(20));
        }
        let (pushed, push_cpu) = pusher.join().ok().context("the pushing thread panicked")??;
        Ok::<_, anyhow::Error>((pushed, push_cpu, worst))
    })?;
    runtime.block_on(writer.drained());
    let elapsed = began.elapsed();
    runtime.block_on(async {
        ensure!(writer.close().await, "the writer did not stop in time");
        store.close().await;
        Ok(())
    })?;
    let cpu = cpu(Of::Process)?.saturating_sub(cpu_before);
    let stats = writer.stats();
    drop(runtime);

    let per_record = |cpu: Duration| cpu.as_secs_f64() * 1e6 / pushed as f64;
    let bytes = fs::metadata(&database)?.len();
    println!(
        "{rate:>8} {:>9.0} {:>10.2} {:>9.2} {:>9} {:>9} {:>9} {:>9} {:>10.0}",
        stats.written as f64 / elapsed.as_secs_f64(),
        per_record(cpu.saturating_sub(push_cpu)),
        per_record(push_cpu),
        stats.written,
        worst.spooled,
        worst.late,
        stats.shed,
        bytes as f64 / stats.written.max(1) as f64,
    );
    if let Some(sentence) = worst.sentence {
        println!("         {sentence}");
    }
    Ok(())
}

/// The worst that was seen while records came.
#[derive(Default)]
struct Worst {
    spooled: u64,
    late: u64,
    /// What the writer said of it first.
    sentence: Option<String>,
}

impl Worst {
    fn look(&mut self, writer: &Writer) {
        let stats = writer.stats();
        self.spooled = self.spooled.max(stats.spooled);
        self.late += u64::from(stats.degraded.is_some());
        self.sentence = self.sentence.take().or(stats.degraded);
    }
}

// === Pushing ===

/// Pushes at a rate, or as fast as the writer takes them, and tells how many it were.
fn push(writer: &Writer, maker: &Maker<'_>, rate: u64, length: Duration) -> u64 {
    let began = Instant::now();
    let mut pushed = 0;
    while began.elapsed() < length {
        let due = if rate == 0 {
            let room = IN_FLIGHT.saturating_sub(writer.stats().queued);
            pushed + room
        } else {
            (began.elapsed().as_secs_f64() * rate as f64) as u64
        };
        let now_ms = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis());
        let now_ms = i64::try_from(now_ms).unwrap_or(0);
        for number in pushed..due {
            writer.push(maker.make(number, now_ms));
        }
        pushed = pushed.max(due);
        thread::sleep(TICK);
    }
    pushed
}

// === Records ===

/// Makes records as the ledger does: what is named in the configuration is shared among them.
struct Maker<'a> {
    keys: &'a [Arc<str>],
    key_name: Arc<str>,
    target: Arc<str>,
    upstream_model: Arc<str>,
    route: Arc<str>,
    failures: u64,
}

impl<'a> Maker<'a> {
    fn new(keys: &'a [Arc<str>], failures: u64) -> Self {
        Self {
            keys,
            key_name: "checkout service".into(),
            target: "openai-main".into(),
            upstream_model: "gpt-4o-mini-2024-07-18".into(),
            route: "default".into(),
            failures,
        }
    }

    /// One target, which answered; or did not, twice.
    fn make(&self, number: u64, now_ms: i64) -> RequestRecord {
        let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let duration_us = 400_000 + scattered % 900_000;
        let failed = (scattered >> 32) % 100 < self.failures;
        let key = usize::try_from(number)
            .ok()
            .and_then(|number| self.keys.get(number % self.keys.len()));
        // A UUID of version 7 without hyphens: milliseconds, then what tells those of one millisecond apart.
        let id = format!("{now_ms:012x}7{:03x}8{:015x}", number & 0xfff, scattered >> 4);
        let attempts = (0..=u64::from(failed)).map(|nth| self.attempt(failed, 150 + nth, duration_us / 2));
        let target = Some(Arc::clone(&self.target));
        RequestRecord {
            request_id: id.into(),
            arrived_at_ms: now_ms - i64::try_from(duration_us / 1000).unwrap_or(0),
            surface: "chat".into(),
            stream: number.is_multiple_of(2),
            model: "gpt-4o-mini".to_owned(),
            upstream_model: Some(Arc::clone(&self.upstream_model)),
            provider: target.clone(),
            target,
            route: Arc::clone(&self.route),
            variant: None,
            status: if failed { 502 } else { 200 },
            outcome: if failed { Outcome::Error } else { Outcome::Success },
            error_code: failed.then(|| "upstream_error".to_owned()),
            error_message: failed.then(|| "the upstream answered with 503: overloaded, try again later".to_owned()),
            usage: Usage {
                prompt: Some(42 + scattered % 1000),
                completion: Some(20 + scattered % 100),
                total: Some(62 + scattered % 1100),
                ..Usage::default()
            },
            duration_us,
            first_token_us: number.is_multiple_of(2).then_some(duration_us / 4),
            overhead_us: 100 + scattered % 100,
            key_id: key.cloned(),
            key_name: key.map(|_| Arc::clone(&self.key_name)),
            simulated: false,
            attempts: attempts.collect(),
            verdicts: Verdicts::from_iter([Verdict {
                target: Arc::clone(&self.target),
                state: if failed {
                    VerdictState::Failed
                } else {
                    VerdictState::Chosen
                },
                reason: if failed {
                    "failed in 2 attempts: overloaded"
                } else {
                    "answered"
                }
                .into(),
                until_ms: None,
            }]),
            notes: Vec::new(),
        }
    }

    fn attempt(&self, failed: bool, started_us: u64, latency_us: u64) -> AttemptRecord {
        AttemptRecord {
            target: Arc::clone(&self.target),
            provider: Arc::clone(&self.target),
            model: Arc::clone(&self.upstream_model),
            outcome: if failed { "server_error" } else { "success" }.into(),
            status: Some(if failed { 503 } else { 200 }),
            started_us,
            latency_us,
            first_token_us: None,
            error: failed.then(|| "overloaded, try again later".to_owned()),
        }
    }
}

/// As long as the gateway's own.
fn key_id(number: usize) -> Arc<str> {
    format!("0197f3a0-0000-7000-8000-{number:012x}").into()
}

fn new_key(id: &str, number: u8) -> NewKeyRow {
    NewKeyRow {
        id: id.to_owned(),
        name: "checkout service".to_owned(),
        display: "sy_…".to_owned(),
        hash: [number; 32],
        scopes: [Scope::Invoke].into_iter().collect::<Scopes>(),
        created_at_ms: 0,
        expires_at_ms: None,
        project: None,
        route: None,
    }
}

// === CPU time ===

#[derive(Clone, Copy)]
enum Of {
    Process,
    Thread,
}

#[cfg(target_os = "linux")]
fn cpu(of: Of) -> anyhow::Result<Duration> {
    use nix::time::ClockId;
    let clock = match of {
        Of::Process => ClockId::CLOCK_PROCESS_CPUTIME_ID,
        Of::Thread => ClockId::CLOCK_THREAD_CPUTIME_ID,
    };
    Ok(clock.now()?.into())
}

#[cfg(not(target_os = "linux"))]
fn cpu(_: Of) -> anyhow::Result<Duration> {
    anyhow::bail!("CPU time is read on Linux only")
}
