//! What went wrong, in words for people.
//!
//! A message holds the innermost cause and nothing else: an address may carry what nobody should read.

use std::error::Error;
use std::fmt::Display;
use std::time::Duration;
use switchyard_engine::ports::{TransportError, TransportFault};

/// Nothing was sent: unknown name, refused, TLS, a proxy that would not.
pub(super) fn connect(cause: impl Display) -> TransportError {
    TransportError {
        kind: TransportFault::Connect,
        message: format!("could not connect: {cause}"),
    }
}

/// The connection broke, and what was sent may have been read.
pub(super) fn broken(error: &(dyn Error + 'static)) -> TransportError {
    TransportError {
        kind: TransportFault::Broken,
        message: format!("the connection failed: {}", innermost(error)),
    }
}

/// The same, found out by us.
pub(super) fn cut(why: &str) -> TransportError {
    TransportError {
        kind: TransportFault::Broken,
        message: format!("the connection failed: {why}"),
    }
}

pub(super) fn timeout(what: &str, after: Duration) -> TransportError {
    TransportError {
        kind: TransportFault::Timeout,
        message: format!("{what} within {} s", after.as_secs()),
    }
}

/// The cause of causes. What stands around it repeats it or says less.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
