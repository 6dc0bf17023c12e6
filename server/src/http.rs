//! What holds for every plane: layers, probes, and the one place that turns errors into responses.

pub(crate) mod client_ip;
mod cors;
pub(crate) mod error;
pub(crate) mod fallback;
pub(crate) mod layers;
pub(crate) mod probes;
pub(crate) mod request_id;

pub(crate) use error::Refusal;
