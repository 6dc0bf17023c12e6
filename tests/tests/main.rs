//! The integration tests: one binary, because linking the gateway is what takes time.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is missing by panicking"
)]

mod architecture;
mod auth;
mod chat;
mod dialects;
mod failures;
mod faults;
mod http_layer;
mod keys;
mod lifecycle;
mod logs;
mod models;
mod responses;
mod routing;
mod streams;
