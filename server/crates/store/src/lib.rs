//! Everything that is kept: virtual keys, sessions, the request log, answers that callers carry on from.
//!
//! This is the only crate that knows SQL, and nothing of SQL shows outside: callers see rows as plain structs, outcomes as
//! enums and faults as [`StoreError`]. What depends on SQLite in particular stands in few places, so that another database
//! can stand beside it: `open.rs` (files, pragmas, migrations), `store.rs` (one writer at a time), `error.rs` (codes),
//! `requests/filter.rs` (`like`, `indexed by`), `responses.rs` (`iif`), `writer/` (a driver of its own, checkpoints), and the two-argument `max` in
//! sums.
//!
//! Two ways lead in. [`Store`] answers questions and makes the few changes that an operator waits for. [`Writer`] takes
//! the request log, thousands of records a second, from callers that must never wait: see there for what it promises.
//!
//! **Invariant:** a request's row, its attempts, the sums of its minute and the count of its key move in one transaction.
//! Whatever is read agrees with the rest, and no question of "how many" needs a scan.

mod error;
mod keys;
mod number;
mod open;
mod requests;
mod responses;
mod sessions;
mod store;
mod traffic;
mod writer;

pub use error::{Cause, StoreError};
pub use keys::{KeyChange, KeyCounts, KeyOutcome, KeyRow, NewKeyRow, NoAdmin};
pub use requests::{
    LogRows, Page, StoredRequest,
    filter::{KeyFilter, LogFilter, OutcomeFilter, Stage},
};
pub use responses::{Conversation, LongestConversation, ResponseRow, Turn, Whose};
pub use sessions::SessionRow;
pub use store::Store;
pub use traffic::{LatencySample, MinuteRow};
pub use writer::{Writer, WriterConfig, WriterStats};
