//! The two ends that a gateway is measured between: an upstream that costs nothing, and clients that keep count.
//!
//! `cargo xtask bench` starts both, puts nginx and Switchyard in between in turn, and makes tables of what `load` and
//! `hold` print: one JSON object each. Of the programs in between only these figures are taken: CPU time by the kernel's
//! own clock of the process, resident memory, and what the clients saw.
//!
//! Each end runs on one thread, so that it takes as little as possible from a machine that it shares with what is
//! measured.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

mod client;
mod hold;
mod keys;
mod load;
mod mock;
mod process;
mod script;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "switchyard-bench", about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve answers in OpenAI's format; the model's name says what kind
    Mock(mock::Options),
    /// Ask for some seconds, and print what was seen
    Load(load::Options),
    /// Open streams, keep them open without a word on them, and print what they cost
    Hold(hold::Options),
    /// Write virtual keys into a database on which no gateway runs yet
    Keys(keys::Options),
}

fn main() -> anyhow::Result<()> {
    let command = Cli::parse().command;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Connections share what they count without locks: they never leave this thread.
    let local = tokio::task::LocalSet::new();
    match command {
        Command::Mock(options) => local.block_on(&runtime, mock::serve(&options)),
        Command::Load(options) => {
            println!("{}", local.block_on(&runtime, load::run(options))?);
            Ok(())
        }
        Command::Hold(options) => {
            println!("{}", local.block_on(&runtime, hold::run(options))?);
            Ok(())
        }
        Command::Keys(options) => local.block_on(&runtime, keys::add(&options)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_makes_sense() {
        super::Cli::command().debug_assert();
    }
}
