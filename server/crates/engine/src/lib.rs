//! The pipeline.

pub mod ports;
pub mod record;
