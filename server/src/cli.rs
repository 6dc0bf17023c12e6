//! The command line.
//!
//! Exit codes: 0 done, 1 failed, 64 the configuration is wrong.

mod serve;
mod validate;

use crate::boot::{ProcessEnv, Settings, recover};
use clap::{Parser, Subcommand};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `sysexits.h` calls `EX_USAGE`.
const WRONG_CONFIG: u8 = 64;

/// An AI gateway in one binary.
#[derive(Parser)]
#[command(name = "switchyard", version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("SWITCHYARD_COMMIT"), ")"))]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Start the gateway (the default)
    Serve,
    /// Check a configuration file and say everything that is wrong with it
    Validate {
        /// A YAML or JSON file
        file: PathBuf,
    },
    /// What only somebody on this machine may do
    Admin {
        #[command(subcommand)]
        command: Admin,
    },
}

#[derive(Subcommand)]
enum Admin {
    /// Make a new key of scope admin, when the first one is lost
    Recover,
}

/// Runs the command that the arguments name.
#[must_use]
pub fn main() -> ExitCode {
    match Cli::parse().command.unwrap_or(Command::Serve) {
        Command::Serve => serve::run(),
        Command::Validate { file } => validate::run(&file),
        Command::Admin {
            command: Admin::Recover,
        } => run_recover(),
    }
}

/// What goes to a person goes through here.
fn say(text: &str) {
    // Whoever listened may have gone, as `head` does: that is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn fail(error: &anyhow::Error) -> ExitCode {
    say(&format!("switchyard: {error:#}"));
    ExitCode::FAILURE
}

fn wrong(faults: &[String]) -> ExitCode {
    for fault in faults {
        say(&format!("switchyard: {fault}"));
    }
    ExitCode::from(WRONG_CONFIG)
}

fn run_recover() -> ExitCode {
    let settings = match Settings::read(&ProcessEnv) {
        Ok(settings) => settings,
        Err(faults) => return wrong(&faults),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(recover(&settings.database())) {
        Ok(key) => {
            say(&format!(
                "A new key of scope admin, shown this once:\n\n    {}\n\nSign in with it, then revoke the key that was lost.",
                key.secret.expose()
            ));
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
