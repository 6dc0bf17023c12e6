//! `cargo xtask test`: every check and every test, the cheap ones first.
//!
//! The first stage that fails ends the run; what it printed stands above the summary.

use crate::{
    build::Profile,
    npm, process,
    project::Project,
    setup,
    web::{self, Mode},
};
use anyhow::Result;
use std::{
    process::Command,
    time::{Duration, Instant},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave out the browser tests
    #[arg(long)]
    no_browser: bool,
    /// Run only tests with this in their name, and no other checks
    filter: Option<String>,
}

/// The packages of the server's side, in one selection: asked for one by one, they would resolve to different features
/// and compile their dependencies again and again. The dashboard is among them with `ssr`, because the server wants it
/// so; its WASM entry is built by the web build, and this tool as `cargo xtask` builds it.
const SERVER_SIDE: [&str; 5] = ["--workspace", "--exclude", "switchyard-frontend", "--exclude", "xtask"];
const TOOL: [&str; 2] = ["--package", "xtask"];

type Stage = (&'static str, fn(&Project, &Options) -> Result<Outcome>);

const STAGES: [Stage; 7] = [
    ("formatting", formatting),
    ("web", web),
    ("lints", lints),
    ("tests", tests),
    ("debug binary", debug_binary),
    ("client SDKs", client_sdks),
    ("browser", browser),
];

enum Outcome {
    Passed,
    Skipped(&'static str),
}

use Outcome::{Passed, Skipped};

pub(crate) fn test(project: &Project, options: &Options) -> Result<()> {
    let start = Instant::now();
    let mut summary = Vec::new();
    let mut failure = None;
    for (number, (name, stage)) in STAGES.into_iter().enumerate() {
        if failure.is_some() {
            summary.push(format!("{name:<14} not run"));
            continue;
        }
        println!("==> [{}/{}] {name}", number + 1, STAGES.len());
        let begin = Instant::now();
        let outcome = stage(project, options);
        let took = seconds(begin.elapsed());
        let line = match &outcome {
            Ok(Passed) => format!("{name:<14} ok       {took}"),
            Ok(Skipped(why)) => format!("{name:<14} skipped: {why}"),
            Err(_) => format!("{name:<14} FAILED   {took}"),
        };
        println!("    {line}");
        summary.push(line);
        failure = outcome.err().map(|error| (name, error));
    }
    println!("==> summary, after {}", seconds(start.elapsed()));
    for line in summary {
        println!("    {line}");
    }
    match failure {
        Some((name, error)) => Err(error.context(format!("{name} failed"))),
        None => Ok(()),
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f32())
}

fn formatting(project: &Project, options: &Options) -> Result<Outcome> {
    if options.filter.is_some() {
        return Ok(Skipped("only some tests were asked for"));
    }
    cargo(project, &["fmt", "--all", "--check"], &[], &[])?;
    Ok(Passed)
}

fn web(project: &Project, _: &Options) -> Result<Outcome> {
    web::build(project, Mode::Shipped)?;
    Ok(Passed)
}

fn lints(project: &Project, options: &Options) -> Result<Outcome> {
    if options.filter.is_some() {
        return Ok(Skipped("only some tests were asked for"));
    }
    let deny = ["--", "--deny", "warnings"];
    cargo(project, &["clippy", "--all-targets"], &SERVER_SIDE, &deny)?;
    cargo(project, &["clippy", "--all-targets"], &TOOL, &deny)?;
    Ok(Passed)
}

fn tests(project: &Project, options: &Options) -> Result<Outcome> {
    let filter: Vec<_> = options.filter.as_deref().into_iter().collect();
    cargo(project, &["test"], &SERVER_SIDE, &filter)?;
    cargo(project, &["test"], &TOOL, &filter)?;
    Ok(Passed)
}

fn debug_binary(project: &Project, _: &Options) -> Result<Outcome> {
    // The mock upstream is what the SDKs are tested in front of.
    cargo(
        project,
        &["build", "--bin", "switchyard", "--bin", "mock-upstream"],
        &SERVER_SIDE,
        &[],
    )?;
    Ok(Passed)
}

/// A script of its own, because each SDK brings the tools of its language.
fn client_sdks(project: &Project, options: &Options) -> Result<Outcome> {
    if options.filter.is_some() {
        return Ok(Skipped("only some tests were asked for"));
    }
    let script = project.path("tests/sdk/run");
    if !script.exists() {
        return Ok(Skipped("there is no tests/sdk/run"));
    }
    let mut script = Command::new(script);
    script
        .current_dir(project.root())
        .env("SWITCHYARD_BIN", Profile::Debug.binary(project));
    process::run(&mut script)?;
    Ok(Passed)
}

fn browser(project: &Project, options: &Options) -> Result<Outcome> {
    if options.no_browser {
        return Ok(Skipped("--no-browser"));
    }
    let folder = project.path("end2end");
    npm::install(project, "end2end")?;
    let chromium = setup::chromium(project)?;
    let mut playwright = Command::new(folder.join("node_modules/.bin/playwright"));
    playwright.arg("test").current_dir(&folder);
    playwright
        .env("SWITCHYARD_BIN", Profile::Debug.binary(project))
        .env("CHROMIUM", chromium);
    if let Some(filter) = &options.filter {
        playwright.args(["--pass-with-no-tests", "--grep", filter]);
    }
    process::run(&mut playwright)?;
    Ok(Passed)
}

fn cargo(project: &Project, command: &[&str], packages: &[&str], rest: &[&str]) -> Result<()> {
    process::run(process::cargo(project).args(command).args(packages).args(rest))
}
