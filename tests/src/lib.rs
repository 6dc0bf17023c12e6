//! Support for the integration tests: a gateway in this process, and an upstream that does as it is told.

pub mod app;
pub mod mock;

pub use app::{Answer, TestApp};
