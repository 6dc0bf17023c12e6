//! What can go wrong, in the words an operator may read.
//!
//! The variant is the kind. `Display` is a plain sentence and never holds SQL or a driver's message; that is the
//! [`source`](std::error::Error::source), for the log.

use sqlx::migrate::MigrateError;
use std::{io, path::PathBuf};

/// What the driver said, for the log.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("{} cannot be created: {source}", path.display())]
    File { path: PathBuf, source: io::Error },

    #[error(
        "the database has migration {found}, and this build knows migrations up to {known}: a newer Switchyard has used \
         it. Start that version again, or restore the copy of the database made before the upgrade"
    )]
    NewerSchema { found: i64, known: i64 },

    #[error(
        "migration {version} of the database differs from the one in this build: the database was made by an unreleased \
         build. Use that build, or start with an empty database"
    )]
    AlteredSchema { version: i64 },

    /// Another connection or process holds the lock for longer than we wait.
    #[error("the database is locked or too busy to answer in time")]
    Busy(#[source] Cause),

    #[error("the disk that holds the database is full")]
    DiskFull(#[source] Cause),

    /// Reading or writing failed below SQL.
    #[error("the database cannot be reached")]
    Unavailable(#[source] Cause),

    #[error("a row with the same identity exists already")]
    Conflict(#[source] Cause),

    #[error("the file is damaged, or it is not a database")]
    Damaged(#[source] Cause),

    /// A statement or a stored value that this build did not expect: a fault of ours.
    #[error("the database answered in a way that this build does not understand")]
    Unexpected(#[source] Cause),
}

impl StoreError {
    /// Whether the same call may succeed later without anybody changing the call, the data or the build.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::DiskFull(_) | Self::Unavailable(_))
    }
}

impl StoreError {
    /// By SQLite's code, which may be an extended one: those carry the primary one in their low byte.
    fn of_code(code: i32, cause: Cause) -> Self {
        const PRIMARY_KEY: i32 = 1555;
        const UNIQUE: i32 = 2067;
        match code & 0xff {
            5 | 6 => Self::Busy(cause),
            13 => Self::DiskFull(cause),
            8 | 10 | 14 => Self::Unavailable(cause),
            11 | 26 => Self::Damaged(cause),
            _ if matches!(code, PRIMARY_KEY | UNIQUE) => Self::Conflict(cause),
            _ => Self::Unexpected(cause),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map_or(0, |cause| cause.extended_code);
        Self::of_code(code, error.into())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut => Self::Busy(error.into()),
            sqlx::Error::Io(_) | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
                Self::Unavailable(error.into())
            }
            sqlx::Error::Database(cause) => {
                let code = cause.code().and_then(|code| code.parse().ok()).unwrap_or(0);
                Self::of_code(code, error.into())
            }
            _ => Self::Unexpected(error.into()),
        }
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => cause.into(),
            other => Self::Unexpected(other.into()),
        }
    }
}
