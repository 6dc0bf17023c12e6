//! The pure part of the gateway.

pub mod scope;
pub mod usage;
