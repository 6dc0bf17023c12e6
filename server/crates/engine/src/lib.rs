//! The pipeline: one path for every request, whatever it asks for.
//!
//! ```text
//! admit    read the call once, resolve its alias
//! resolve  the strategy orders the targets
//! plan     leave out what cannot be called now, each with its reason
//! attempt  encode, send, decode or stream; on failure the same target, the next, or stop
//! finish   one record, with every attempt and one verdict per configured target
//! ```
//!
//! The engine knows no HTTP server and no database. What it needs of the world stands in [`ports`].

pub mod demo;
mod explain;
mod ledger;
mod live;
mod models;
mod pipeline;
mod plan;
pub mod ports;
pub mod record;
mod request;
mod snapshot;
mod view;
mod watch;

pub use explain::Explanation;
pub use models::ListedModel;
pub use pipeline::Engine;
pub use request::{Answer, Attribution, Body, Caller, Failure, Piece, Request};
pub use snapshot::{BuildError, Parts, Snapshot};
pub use view::{Callable, Circuit, CredentialView, RouteView, RoutedView, Standing, TargetView, TargetsView};
