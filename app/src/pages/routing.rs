//! `/routing`: the routes, every target as it stands now, and a dry run that says where a call would go.

pub mod call;
pub mod finding;
pub mod form;
pub mod page;
pub mod plan;
pub mod result;
pub mod routes;
pub mod state;
pub mod targets;
pub mod view;
