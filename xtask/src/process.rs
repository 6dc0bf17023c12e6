//! Starting other programs, and showing that they are alive.

use crate::project::Project;
use anyhow::{Context as _, Result, bail};
use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

const POLL: Duration = Duration::from_millis(50);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What is shown of a quiet program that failed.
const TAIL_LINES: usize = 60;

/// Cargo, as the user's shell would start it.
///
/// `cargo run` describes the package it runs in variables that some build scripts watch: passed on, they would make
/// the next plain `cargo build` compile those dependencies again.
pub(crate) fn cargo(project: &Project) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(project.root())
        .env("CARGO_TARGET_DIR", project.path("target"));
    for (name, _) in env::vars_os() {
        if describes_this_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

fn describes_this_package(variable: &OsStr) -> bool {
    let Some(name) = variable.to_str() else { return false };
    name.starts_with("CARGO_PKG_")
        || name.starts_with("CARGO_MANIFEST_")
        || matches!(
            name,
            "CARGO" | "CARGO_BIN_NAME" | "CARGO_CRATE_NAME" | "CARGO_PRIMARY_PACKAGE" | "RUST_RECURSION_COUNT"
        )
}

/// Runs to the end, in this terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", line(command)))?;
    check(command, status)
}

/// What it printed, if it ran well.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Runs a program whose output is of interest only when it fails; says from time to time that it still runs.
pub(crate) fn run_quietly(project: &Project, label: &str, command: &mut Command) -> Result<()> {
    run_bounded(project, label, command, None)
}

/// The same, ended when `limit` is over.
pub(crate) fn run_bounded(
    project: &Project,
    label: &str,
    command: &mut Command,
    limit: Option<Duration>,
) -> Result<()> {
    let folder = project.state();
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let log = folder.join(format!("{label}.log"));
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", line(command)))?;
    let outcome = wait(&mut child, label, limit).and_then(|status| check(command, status));
    outcome.inspect_err(|_| print_tail(&log))
}

fn wait(child: &mut Child, label: &str, limit: Option<Duration>) -> Result<ExitStatus> {
    let start = Instant::now();
    let mut beats = 1;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let elapsed = start.elapsed();
        if limit.is_some_and(|limit| elapsed > limit) {
            child.kill()?;
            child.wait()?;
            bail!("{label} was ended after {} s", elapsed.as_secs());
        }
        if elapsed > HEARTBEAT * beats {
            println!("    {label}: still at it after {} s", elapsed.as_secs());
            beats += 1;
        }
        thread::sleep(POLL);
    }
}

fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{} failed ({status})", line(command));
    }
    Ok(())
}

fn print_tail(log: &Path) {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(TAIL_LINES)..] {
        println!("    {line}");
    }
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
