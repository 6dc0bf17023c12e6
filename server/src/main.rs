//! The `switchyard` command.

use std::process::ExitCode;

/// Chosen by figures: small allocations from many threads are what a relayed request is made of.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    switchyard::cli::main()
}
