//! `/requests`: the request log. Every filter runs on the server and stands in the address.

pub mod filter;
pub mod page;
pub mod table;
pub mod view;
