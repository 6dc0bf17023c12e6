//! `cargo xtask bench`: what a request costs, beside nginx in the same run.
//!
//! One mock upstream; in front of it nothing, nginx and Switchyard in turn, round after round, under the same load. Everything
//! is on that an operator would have on: a key is checked, every request is recorded in SQLite, metrics are kept. What is
//! counted and how stands in the package `bench/`; this starts the programs, takes medians over the rounds and makes the
//! tables.
//!
//! `--growth` asks how cost and memory grow with what there is more of, `--check` counts the instructions of hot functions.

mod cells;
mod check;
mod figures;
mod growth;
mod http;
mod page;
mod servers;
mod table;

use crate::{
    build::{self, Profile},
    process,
    project::Project,
    setup,
};
use anyhow::{Context as _, Result, bail};
pub(crate) use cells::CELLS;
use serde_json::json;
pub(crate) use servers::{Programs, Server, Timing, config};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// One round of a few seconds
    #[arg(long)]
    quick: bool,
    /// Only cells with this in their name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Write all figures to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure cells and growth, and write docs/performance.md
    #[arg(long, conflicts_with = "only")]
    write: bool,
    /// How cost and memory grow with targets, keys, routes, prompts and open streams
    #[arg(long)]
    growth: bool,
    /// Count the instructions of hot functions and compare them with bench/baselines.txt; with --write: write it
    #[arg(long, conflicts_with_all = ["growth", "only", "json", "quick"])]
    check: bool,
    /// How often each cell is measured [default: 3; 1 with --quick]
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds of one measurement [default: 5; 1.5 with --quick]
    #[arg(long)]
    seconds: Option<f64>,
    /// Measure the plain release binary, not the trained one, which takes twice as long to build
    #[arg(long)]
    plain: bool,
    /// Take the binaries as they are
    #[arg(long)]
    no_build: bool,
}

pub(crate) fn bench(project: &Project, options: &Options) -> Result<()> {
    if options.check {
        return check::check(project, options.write, !options.no_build);
    }
    let profile = if options.plain {
        Profile::Release
    } else {
        Profile::Trained
    };
    if !options.no_build {
        build::build(project, profile)?;
        build_tools(project)?;
    }
    let mut programs = Programs::new(project, profile.binary(project));
    programs.nginx = nginx(project);
    for program in [&programs.gateway, &programs.bench] {
        if !program.exists() {
            bail!("{} is missing: leave out --no-build", program.display());
        }
    }
    let timing = Timing::new(options.quick, options.rounds, options.seconds);
    let about = About::new(project, &programs, &timing, profile);
    println!("==> {about}");

    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let cells = if options.write || !options.growth {
        cells::measure(&programs, &timing, wanted)?
    } else {
        Vec::new()
    };
    let growth = if options.write || options.growth {
        growth::measure(&programs, &timing, wanted)?
    } else {
        Vec::new()
    };
    if cells.is_empty() && growth.is_empty() {
        bail!("nothing is named like this; there are: {}", names());
    }
    let tables = cells::tables(&cells);
    let all = tables.iter().chain(growth.iter().map(|grown| &grown.table));
    for table in all.filter(|table| !table.is_empty()) {
        println!("\n{}\n\n{table}", table.title);
    }
    if let Some(file) = &options.json {
        let all = json!({
            "about": about.to_string(),
            "cells": cells.iter().map(cells::Measured::json).collect::<Vec<_>>(),
            "growth": growth.iter().map(growth::Grown::json).collect::<Vec<_>>(),
        });
        // Relative to where the user stands.
        let path = env::current_dir()?.join(file);
        fs::write(&path, format!("{all:#}\n")).with_context(|| format!("cannot write {}", path.display()))?;
    }
    // A measurement of failures says nothing.
    let of_growth = growth.iter().flat_map(|grown| grown.failures.clone());
    let failures: Vec<String> = cells
        .iter()
        .flat_map(cells::Measured::failures)
        .chain(of_growth)
        .collect();
    if !failures.is_empty() {
        bail!("these figures cannot be trusted:\n{}", failures.join("\n"));
    }
    if options.write {
        page::write(project, &about, &tables, &growth)?;
    }
    Ok(())
}

fn names() -> String {
    let cells: Vec<_> = CELLS.iter().map(|cell| cell.name).collect();
    format!("{}; with --growth {}", cells.join(", "), growth::NAMES.join(", "))
}

pub(crate) fn tool(project: &Project, name: &str) -> PathBuf {
    project.path("target/release").join(name)
}

pub(crate) fn build_tools(project: &Project) -> Result<()> {
    println!("==> switchyard-bench");
    let mut cargo = process::cargo(project);
    cargo.args(["build", "--release", "--package", "switchyard-bench"]);
    process::run(&mut cargo).context("the measuring programs do not build")
}

/// nginx, installed if it can be. Without it there are still absolute figures.
fn nginx(project: &Project) -> Option<PathBuf> {
    // Not on every user's PATH.
    let installed =
        || setup::find("nginx").or_else(|| Some(PathBuf::from("/usr/sbin/nginx")).filter(|path| path.exists()));
    if let Some(nginx) = installed() {
        return Some(nginx);
    }
    let outcome = setup::apt_install(project, &["nginx"]);
    let nginx = installed();
    if nginx.is_none() {
        let why = outcome
            .err()
            .map_or_else(|| "it is not on the PATH".to_owned(), |error| format!("{error:#}"));
        println!("    without nginx there are no ratios: {why}");
    }
    nginx
}

/// What was measured, and on what. Figures without it say nothing.
struct About {
    commit: String,
    trained: bool,
    hardware: String,
    nginx: Option<String>,
    how: String,
}

impl About {
    fn new(project: &Project, programs: &Programs, timing: &Timing, profile: Profile) -> Self {
        let git = |args: &[&str]| process::output(Command::new("git").current_dir(project.root()).args(args));
        let changed = git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty());
        let commit = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "an unknown commit".to_owned());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let processor =
            first_line_with(Path::new("/proc/cpuinfo"), "model name").unwrap_or_else(|| "processor".to_owned());
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let kernel: Vec<&str> = kernel.split('.').take(2).collect();
        Self {
            commit: if changed {
                format!("{commit} and changes to it")
            } else {
                commit
            },
            trained: profile == Profile::Trained,
            hardware: format!("{cores} cores ({processor}), Linux {}", kernel.join(".")),
            nginx: programs.nginx.as_deref().map(version),
            how: format!("{} × {} s a cell, medians", timing.rounds, timing.seconds),
        }
    }
}

impl std::fmt::Display for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nginx = self.nginx.as_deref().unwrap_or("no nginx");
        let trained = if self.trained { ", trained" } else { "" };
        write!(
            f,
            "Switchyard at {}{trained}, {nginx}, {}; {}",
            self.commit, self.hardware, self.how
        )
    }
}

fn first_line_with(file: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// nginx says it to stderr: `nginx version: nginx/1.22.1`.
fn version(nginx: &Path) -> String {
    let output = Command::new(nginx).arg("-v").output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned())
        .unwrap_or_default();
    let version = text
        .rsplit_once('/')
        .map_or("of an unknown version", |(_, version)| version);
    format!("nginx {version}")
}
