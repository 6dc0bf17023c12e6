//! `/requests/{id}`: one request, and what became of each candidate.

pub mod page;
pub mod translation;
pub mod view;
pub mod yard;
pub mod yard_view;
