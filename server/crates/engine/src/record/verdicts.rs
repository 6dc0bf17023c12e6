//! What became of every configured target.
//!
//! A record has one verdict per target, and there may be a thousand targets of which one was asked. What a record keeps is
//! therefore what it has to say: of all others it is known that they were not needed, and their names are those of the
//! configuration, which its records share. Who reads the list, or writes it out, sees every target in its place.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

const NOT_NEEDED: &str = "not needed";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictState {
    Chosen,
    Failed,
    /// Would have been tried next.
    NotNeeded,
    Excluded,
}

/// What became of one configured target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub target: Arc<str>,
    pub state: VerdictState,
    /// A sentence without its full stop.
    pub reason: Cow<'static, str>,
    /// Until when the reason holds, milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

/// The verdicts of a request, in the order of the configuration. Written as a list of [`Verdict`].
#[derive(Clone, Debug, Default, Eq)]
pub struct Verdicts {
    targets: Arc<[Arc<str>]>,
    /// By position, ascending. Those that are missing were not needed.
    said: Vec<Said>,
}

/// What there is to say about the target in a position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Said {
    pub(crate) position: usize,
    pub(crate) state: VerdictState,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) until_ms: Option<i64>,
}

impl Verdicts {
    /// `said` by position, ascending.
    pub(crate) const fn new(targets: Arc<[Arc<str>]>, said: Vec<Said>) -> Self {
        Self { targets, said }
    }

    /// One for every target.
    pub fn iter(&self) -> impl Iterator<Item = Verdict> {
        let mut said = self.said.iter().peekable();
        self.targets.iter().enumerate().map(move |(position, target)| {
            let target = Arc::clone(target);
            match said.next_if(|said| said.position == position) {
                Some(said) => Verdict {
                    target,
                    state: said.state,
                    reason: said.reason.clone(),
                    until_ms: said.until_ms,
                },
                None => Verdict {
                    target,
                    state: VerdictState::NotNeeded,
                    reason: NOT_NEEDED.into(),
                    until_ms: None,
                },
            }
        })
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// For hashing: equal verdicts give the same, and of different ones those that say the same of other names. It takes as
    /// long as there is something to say, however many targets there are.
    #[must_use]
    pub fn digest(&self) -> impl std::hash::Hash + use<'_> {
        (self.targets.len(), &self.said)
    }

    /// Takes the names from verdicts that are equal, so that the next comparison is one of two addresses.
    pub fn share_names(&mut self, equal: &Self) {
        if !Arc::ptr_eq(&self.targets, &equal.targets) {
            self.targets = Arc::clone(&equal.targets);
        }
    }
}

impl PartialEq for Verdicts {
    fn eq(&self, other: &Self) -> bool {
        self.said == other.said && (Arc::ptr_eq(&self.targets, &other.targets) || self.targets == other.targets)
    }
}

impl FromIterator<Verdict> for Verdicts {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Self {
        let mut said = Vec::new();
        let mut keep = |(position, verdict): (usize, Verdict)| {
            let Verdict {
                target,
                state,
                reason,
                until_ms,
            } = verdict;
            if state != VerdictState::NotNeeded || reason != NOT_NEEDED || until_ms.is_some() {
                said.push(Said {
                    position,
                    state,
                    reason,
                    until_ms,
                });
            }
            target
        };
        let targets = verdicts.into_iter().enumerate().map(&mut keep).collect();
        Self { targets, said }
    }
}

impl Serialize for Verdicts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Verdicts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Verdict>::deserialize(deserializer).map(Self::from_iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(target: &str, state: VerdictState, reason: &'static str) -> Verdict {
        Verdict {
            target: target.into(),
            state,
            reason: reason.into(),
            until_ms: None,
        }
    }

    fn some() -> Vec<Verdict> {
        vec![
            verdict("a", VerdictState::NotNeeded, "not needed"),
            verdict("b", VerdictState::Chosen, "answered"),
            verdict("c", VerdictState::NotNeeded, "not needed"),
            // Said by another version, or of another kind: kept as it is.
            verdict("d", VerdictState::NotNeeded, "third in order"),
            Verdict {
                until_ms: Some(7),
                ..verdict("e", VerdictState::Excluded, "parked")
            },
            verdict("f", VerdictState::NotNeeded, "not needed"),
        ]
    }

    #[test]
    fn every_target_has_its_verdict_in_its_place() {
        let verdicts = Verdicts::from_iter(some());
        assert_eq!(verdicts.iter().collect::<Vec<_>>(), some());
        assert_eq!((verdicts.len(), verdicts.said.len()), (6, 3));
    }

    #[test]
    fn written_out_they_are_a_list_and_come_back_from_it() {
        let verdicts = Verdicts::from_iter(some());
        let text = serde_json::to_string(&verdicts).unwrap();
        assert_eq!(text, serde_json::to_string(&some()).unwrap());
        let read: Verdicts = serde_json::from_str(&text).unwrap();
        assert_eq!(read, verdicts);
    }

    #[test]
    fn they_are_compared_by_what_they_say_of_whom() {
        let verdicts = Verdicts::from_iter(some());
        for (position, other) in [
            (1, verdict("b", VerdictState::Failed, "answered")),
            (1, verdict("B", VerdictState::Chosen, "answered")),
            (2, verdict("C", VerdictState::NotNeeded, "not needed")),
            (5, verdict("f", VerdictState::Excluded, "not needed")),
        ] {
            let mut list = some();
            list[position] = other;
            assert_ne!(Verdicts::from_iter(list), verdicts, "{position}");
        }
        let mut again = Verdicts::from_iter(some());
        assert_eq!(again, verdicts);
        again.share_names(&verdicts);
        assert!(Arc::ptr_eq(&again.targets, &verdicts.targets));
        assert_eq!(again, verdicts);
    }
}
