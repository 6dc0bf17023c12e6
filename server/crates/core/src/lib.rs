//! The pure part of the gateway: no async, no I/O, no clock. Time and randomness are arguments.

pub mod config;
pub mod env;
pub mod error;
pub mod redact;
pub mod retry;
pub mod routing;
pub mod scope;
pub mod secret;
pub mod usage;
