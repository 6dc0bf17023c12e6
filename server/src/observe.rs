//! What the gateway says about itself: logs on stdout, metrics at `/metrics`.

pub(crate) mod access;
pub(crate) mod logging;
pub(crate) mod metrics;
mod requests;
