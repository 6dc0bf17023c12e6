//! The `switchyard` command.

use std::process::ExitCode;

/// Chosen by figures. Small allocations from many threads are what a relayed request is made of; and when ten thousand
/// streams have ended, their memory goes back to the system within a second or two. SQLite's comes from here too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    switchyard::cli::main()
}
