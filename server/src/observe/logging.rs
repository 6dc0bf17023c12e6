//! Logs: one JSON object a line, or a readable line where a person looks on.
//!
//! Written by a thread of its own, so that a slow terminal or a full pipe never holds a request up.

use std::io::IsTerminal;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Lines that may wait; more are dropped rather than waited for.
const QUEUE: usize = 64 * 1024;

/// Starts logging. What waits is written when the guard is dropped.
pub(crate) fn start(level: &str) -> WorkerGuard {
    let stdout = std::io::stdout();
    let readable = stdout.is_terminal();
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(QUEUE)
        .lossy(true)
        .finish(stdout);
    let registry = tracing_subscriber::registry().with(filter(level));
    let started = if readable {
        registry
            .with(fmt::layer().with_writer(writer).with_target(false))
            .try_init()
    } else {
        registry
            .with(
                fmt::layer()
                    .json()
                    .flatten_event(true)
                    .with_current_span(true)
                    .with_span_list(false)
                    .with_writer(writer),
            )
            .try_init()
    };
    // An error means that a subscriber is there already, as in tests.
    let _ = started;
    guard
}

/// Libraries are quiet unless they warn: an upstream's address in a debug line of a client is one too many.
fn filter(level: &str) -> EnvFilter {
    EnvFilter::new(format!(
        "warn,switchyard={level},switchyard_engine={level},switchyard_store={level}"
    ))
}
