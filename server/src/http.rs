//! What holds for every plane: the front, probes, and the one place that turns errors into responses.

pub(crate) mod client_ip;
pub(crate) mod cors;
pub(crate) mod error;
pub(crate) mod fallback;
pub(crate) mod front;
pub(crate) mod headers;
pub(crate) mod probes;
pub(crate) mod request_id;

pub(crate) use error::Refusal;
