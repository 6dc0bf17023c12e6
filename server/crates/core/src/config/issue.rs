//! One fault of a configuration, said so that it can be mended.

use std::fmt;

/// Where and what. The message names the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// `targets[1].retry.attempts`; empty for the document itself.
    pub path: String,
    /// Counted from 1.
    pub line: u64,
    pub message: String,
}

impl Issue {
    pub(crate) fn new(path: impl Into<String>, line: u64, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}
