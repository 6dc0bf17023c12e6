//! The store, through its public door and on real files.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what cannot go on in a test should stop it"
)]

mod courses;
mod filters;
mod keys;
mod log;
mod opening;
mod outages;
mod responses;
mod sessions;
mod support;
mod writing;
