//! What the project's commands do: `cargo xtask run`, `build`, `test`, `dev`, `bench`.
//!
//! They start from a clean clone on a machine that has Rust and Node. What else is needed is installed by the step
//! that needs it, and each such step says so in one line.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its terminal"
)]

mod bench;
mod build;
mod dev;
mod npm;
mod process;
mod project;
mod run;
mod setup;
mod test;
mod train;
mod web;

use clap::{Parser, Subcommand};
use project::Project;
use std::{ffi::OsString, process::ExitCode};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build everything and serve on 127.0.0.1:8080
    Run {
        /// Passed on to `switchyard`
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Build the dashboard, then the binary that embeds it
    Build {
        /// A debug binary, which reads the dashboard from target/site
        #[arg(long)]
        dev: bool,
        /// A release binary that was compiled knowing what it does under load, in target/trained: takes twice as long
        #[arg(long, conflicts_with = "dev")]
        trained: bool,
    },
    /// Build the dashboard alone, into target/site
    Web,
    /// Run every check and every test
    Test(test::Options),
    /// Serve a debug build; rebuild and restart when a source file changes
    Dev {
        /// Passed on to `switchyard`
        #[arg(last = true)]
        args: Vec<OsString>,
    },
    /// Measure what a request costs, beside nginx
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let project = Project::locate();
    let outcome = match Cli::parse().command {
        Command::Run { args } => run::run(&project, &args),
        Command::Build { dev, trained } => build::build(
            &project,
            match (dev, trained) {
                (true, _) => build::Profile::Debug,
                (_, true) => build::Profile::Trained,
                _ => build::Profile::Release,
            },
        ),
        Command::Web => web::build(&project, web::Mode::Shipped),
        Command::Test(options) => test::test(&project, &options),
        Command::Dev { args } => dev::dev(&project, &args),
        Command::Bench(options) => bench::bench(&project, &options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
