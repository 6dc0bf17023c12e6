//! What the admin API says.
//!
//! Plain data, shared by the server that answers and the dashboard that shows. Nothing here does anything: no I/O, no
//! rules. A field that is not known (never measured, not reported by the upstream) is `null` in JSON and `None` here,
//! never zero. Times are RFC 3339 in UTC with milliseconds; a name that ends in `_ms` is in milliseconds.

mod dashboard;
mod error;
mod explain;
mod key;
mod log;
mod model;
mod session;
mod target;
mod timestamp;

pub use dashboard::{Dashboard, KeyCounts, LogCounts, ProviderCounts, Range, Summary, Traffic, TrafficPoint};
pub use error::{ApiError, ErrorBody, ErrorEnvelope};
pub use explain::{Explained, WouldFail};
pub use key::{Key, KeyState, NewKey, Scope, UpdateKey};
pub use log::{Attempt, LogDetail, LogPage, LogQuery, LogRow, LogSummary, Note, Verdict};
pub use model::{Model, ModelList};
pub use session::{Gateway, Me, SessionCreated, StoreState};
pub use target::{BreakerState, CredentialState, ModelLatency, QuotaUse, RouteInfo, RouteTarget, TargetState, Targets};
pub use timestamp::Timestamp;
