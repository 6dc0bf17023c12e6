//! `/`: how the gateway is doing.

pub mod page;
pub mod view;
