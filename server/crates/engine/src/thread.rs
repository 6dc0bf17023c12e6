//! A call that goes on from an earlier answer.
//!
//! In OpenAI's Responses a caller may name an answer instead of repeating what was said until then. Who made that answer in the
//! same dialect still has it, and gets the call as it came. Everybody else gets it with what was said in it. Whoever keeps
//! answers (the server does) says both here, and is told here who answered.

use bytes::Bytes;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use switchyard_core::error::Error;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub struct Thread {
    /// What a new answer is named after. A request's id may be its caller's, and come twice.
    pub name: Arc<str>,
    /// The target that made the earlier answer, if it is one that keeps its answers. It is asked first.
    pub target: Option<Arc<str>>,
    /// The call with what was said before in it, if that is known.
    pub merged: Option<Bytes>,
    /// Set where the call means something only to a vendor who speaks its dialect.
    pub native_only: Option<NativeOnly>,
    /// When whoever keeps answers began to look for this one: from then on the request's time runs.
    pub since: Option<Instant>,
    answered: OnceLock<Answered>,
}

/// Why nobody else is asked.
#[derive(Clone, Debug)]
pub struct NativeOnly {
    /// For the verdict on a target: a sentence without its full stop.
    pub why: Cow<'static, str>,
    /// For the caller, when nobody is left.
    pub error: Error,
}

/// Who answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub target: Arc<str>,
    /// In the caller's own dialect: the answer's id is one of the target's own.
    pub is_native: bool,
}

impl Thread {
    /// One that goes on from nothing.
    #[must_use]
    pub fn named(name: Arc<str>) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    pub(crate) fn answer_from(&self, target: Arc<str>, is_native: bool) {
        // There is one answer.
        let _ = self.answered.set(Answered { target, is_native });
    }

    /// Known as soon as there is an answer, which for a stream is its first content.
    #[must_use]
    pub fn answered(&self) -> Option<&Answered> {
        self.answered.get()
    }
}
