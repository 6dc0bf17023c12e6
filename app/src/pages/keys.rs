//! `/keys`: who may call, and what they may do.

pub mod create;
pub mod page;
pub mod reveal;
pub mod revoke;
pub mod view;
