//! Support for the integration tests.

pub mod mock;
