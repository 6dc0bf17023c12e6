//! A load with an accident in it: many clients, two targets, of which one dies and comes back.
//!
//! Runs the gateway's own binary as an operator would, with a breaker on the first target and `fallback` behind it, and says
//! in figures what the clients saw: no failure once the breaker has opened, no slot and no call left behind, memory flat.
//! Ends with 1 when one of these does not hold. Not a part of the tests, for it takes its time:
//!
//! ```sh
//! cargo run --release -p switchyard-tests --bin soak -- --binary target/release/switchyard
//! ```

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use clap::Parser;
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use switchyard_tests::mock::{MockUpstream, Reply};

const MASTER_KEY: &str = "soak-master-key-0123456789";

#[derive(Parser)]
struct Arguments {
    /// The gateway.
    #[arg(long, default_value = "target/release/switchyard")]
    binary: PathBuf,
    #[arg(long, default_value_t = 200)]
    clients: usize,
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Where the gateway listens.
    #[arg(long, default_value_t = 18_080)]
    port: u16,
}

/// Stops with its handle.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        // An error means that it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Default)]
struct Seen {
    /// Answers by what the clients saw: status, and the target that gave it.
    answers: BTreeMap<String, u64>,
    /// Failures after the breaker had opened.
    late_failures: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let first = MockUpstream::start().await;
    let second = MockUpstream::start().await;
    let first_port: u16 = first.origin().rsplit(':').next().unwrap_or_default().parse()?;
    for mock in [&first, &second] {
        mock.set_default(Reply::chat("one two three four").delay_ms(2));
    }
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("soak.yaml");
    std::fs::write(
        &config,
        format!(
            "providers:\n  - {{id: first, kind: openai, base_url: '{}', api_key: sk-first}}\n  \
             - {{id: second, kind: openai, base_url: '{}', api_key: sk-second}}\n\
             strategy: {{mode: fallback}}\ntargets:\n  \
             - virtual_key: first\n    timeout: 2s\n    circuit_breaker: {{failure_threshold: 5, timeout: 3s}}\n    concurrency: {{max_concurrency: 100, queue_size: 1000}}\n  \
             - virtual_key: second\n",
            first.url(),
            second.url()
        ),
    )?;
    let child = Command::new(&arguments.binary)
        .env("GATEWAY_CONFIG", &config)
        .env("DATA_DIR", folder.path())
        .env("PORT", arguments.port.to_string())
        .env("MASTER_KEY", MASTER_KEY)
        .env("LOG_LEVEL", "error")
        .stdout(Stdio::null())
        .spawn()?;
    let pid = child.id();
    let _gateway = Gateway(child);
    let base = format!("http://127.0.0.1:{}", arguments.port);
    let client = Client::builder().pool_max_idle_per_host(arguments.clients).build()?;
    ready(&client, &base).await?;

    let seen = Arc::new(Mutex::new(Seen::default()));
    let (stop, opened) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..arguments.clients)
        .map(|number| {
            let (client, base, seen) = (client.clone(), base.clone(), Arc::clone(&seen));
            let (stop, opened) = (Arc::clone(&stop), Arc::clone(&opened));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let was_open = opened.load(Ordering::Relaxed);
                    let word = ask(&client, &base, number % 2 == 0).await;
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    if was_open && !word.starts_with("200") {
                        seen.late_failures.push(word.clone());
                    }
                    *seen.answers.entry(word).or_default() += 1;
                }
            })
        })
        .collect();

    let third = Duration::from_secs(arguments.seconds) / 3;
    tokio::time::sleep(third).await;
    let before = Held::of(pid)?;
    println!("after {third:?}: {before}; the first target dies");
    drop(first);
    let died = Instant::now();
    while state(&client, &base).await?["data"][0]["state"] != "open" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    opened.store(true, Ordering::Relaxed);
    println!("its breaker opened after {:?}", died.elapsed());
    tokio::time::sleep(third).await;
    println!("{}; it comes back", Held::of(pid)?);
    let first = MockUpstream::start_on(first_port).await?;
    first.set_default(Reply::chat("one two three four").delay_ms(2));
    tokio::time::sleep(third).await;
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await?;
    }
    let after = Held::of(pid)?;
    let targets = state(&client, &base).await?;
    verdict(
        &seen.lock().unwrap_or_else(PoisonError::into_inner),
        &targets,
        arguments.clients,
        (before, after),
    )
}

fn verdict(
    seen: &Seen,
    targets: &Value,
    clients: usize,
    (before, after): (Held, Held),
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    println!("\nanswers by status, target and attempts:");
    for (word, count) in &seen.answers {
        println!("  {count:>8}  {word}");
    }
    let mut holds = true;
    let mut check = |what: &str, ok: bool| {
        println!("{} {what}", if ok { "ok  " } else { "FAIL" });
        holds &= ok;
    };
    for target in targets["data"].as_array().into_iter().flatten() {
        let name = target["target"].as_str().unwrap_or_default();
        println!(
            "  {name}: {} in flight {} queued {}",
            target["state"], target["in_flight"], target["queued"]
        );
        check(
            &format!("{name} has no call and no wait left behind"),
            target["in_flight"] == 0 && target["queued"] == 0,
        );
    }
    check("the first target is back", targets["data"][0]["state"] == "ready");
    check(
        &format!(
            "no failure reached a client after the breaker opened ({})",
            seen.late_failures.len()
        ),
        seen.late_failures.is_empty(),
    );
    check(
        &format!(
            "memory is flat: {} kB before, {} kB after",
            before.resident_kb, after.resident_kb
        ),
        after.resident_kb < before.resident_kb + before.resident_kb / 4,
    );
    check(
        &format!("threads and files are: {before} before, {after} after"),
        // A connection per client, and as many to each target that are in use or rest for a while.
        after.threads <= before.threads && after.files <= 3 * clients + 100,
    );
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(client: &Client, base: &str, stream: bool) -> String {
    let body = json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": "hi" }] });
    let request = client
        .post(format!("{base}/v1/chat/completions"))
        .bearer_auth(MASTER_KEY)
        .json(&body);
    let Ok(response) = request.send().await else {
        return "000 no answer".to_owned();
    };
    let status = response.status().as_u16();
    let header = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or("-").to_owned()
    };
    let word = format!(
        "{status} {} {}",
        header("x-gateway-target"),
        header("x-gateway-attempts")
    );
    match response.text().await {
        Ok(text) if text.contains("\"error\"") && status == 200 => format!("{status} cut in the middle"),
        Ok(_) => word,
        Err(_) => "000 broke off".to_owned(),
    }
}

async fn ready(client: &Client, base: &str) -> Result<(), Box<dyn std::error::Error>> {
    for _ in 0..200 {
        if client
            .get(format!("{base}/readyz"))
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("the gateway does not answer".into())
}

async fn state(client: &Client, base: &str) -> Result<Value, reqwest::Error> {
    let request = client.get(format!("{base}/admin/targets")).bearer_auth(MASTER_KEY);
    request.send().await?.json().await
}

/// What the gateway holds of the machine.
#[derive(Clone, Copy)]
struct Held {
    resident_kb: u64,
    threads: u64,
    files: usize,
}

impl Held {
    fn of(pid: u32) -> io::Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let number = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
                .unwrap_or_default()
        };
        Ok(Self {
            resident_kb: number("VmRSS:"),
            threads: number("Threads:"),
            files: std::fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
        })
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} kB resident, {} threads, {} open files",
            self.resident_kb, self.threads, self.files
        )
    }
}
