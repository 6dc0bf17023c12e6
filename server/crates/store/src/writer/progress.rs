//! What the task tells of itself.

/// Counts since the start, and why records do not reach the database, if they do not.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Records that left the queue: for the database, for the spool, or lost.
    pub(super) settled: u64,
    pub(super) written: u64,
    pub(super) spooled: u64,
    pub(super) lost: u64,
    pub(super) trouble: Option<Trouble>,
    /// Why the spool took nothing the last time.
    pub(super) spool_fault: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The database gave an error: its sentence.
    Failed(String),
    /// It did not answer within the bound of a flush.
    Silent,
    /// Records waited in the queue for too long.
    Behind,
    /// It answers again, and the spool is being written to it.
    CatchingUp,
}

impl Progress {
    pub(super) fn sentence(&self) -> Option<String> {
        let trouble = match self.trouble.as_ref()? {
            Trouble::Failed(reason) => format!("The request log does not reach the database: {reason}"),
            Trouble::Silent => "The request log does not reach the database: it does not answer in time".to_owned(),
            Trouble::Behind => "The request log grows faster than the database takes it".to_owned(),
            Trouble::CatchingUp => "The database takes the request log again".to_owned(),
        };
        Some(match (&self.spool_fault, self.spooled) {
            (Some(fault), waiting) => format!(
                "{trouble}. New records are lost, for the spool does not take them: {fault}. Lost so far: {}; waiting on \
                 disk: {waiting}.",
                self.lost
            ),
            (None, waiting) => format!("{trouble}. Waiting on disk: {waiting}."),
        })
    }
}
