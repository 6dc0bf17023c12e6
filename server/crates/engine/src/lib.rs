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

mod aside;
mod built_in;
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
mod site;
mod snapshot;
mod thread;
mod view;
mod watch;

pub use aside::{LARGE, aside};
pub use explain::Explanation;
pub use models::ListedModel;
pub use pipeline::{Engine, Foreign, PASSED_ON, Passed};
pub use request::{Answer, Attribution, Body, Caller, Failure, Piece, Request};
pub use site::{GoogleTokens, NoGoogleTokens};
pub use snapshot::{BuildError, Capability, Parts, Snapshot};
pub use thread::{Answered, NativeOnly, Thread};
pub use view::{Callable, Circuit, CredentialView, RouteView, RoutedView, Standing, TargetView, TargetsView};
