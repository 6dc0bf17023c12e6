//! The pure part of the gateway: no async, no I/O, no clock. Time and randomness are arguments.

pub mod breaker;
pub mod catalog;
pub mod config;
pub mod env;
pub mod error;
pub mod health;
pub mod hold;
pub mod quota;
pub mod ramp;
pub mod redact;
pub mod retry;
pub mod routing;
pub mod samples;
pub mod scope;
pub mod secret;
pub mod tally;
pub mod usage;
