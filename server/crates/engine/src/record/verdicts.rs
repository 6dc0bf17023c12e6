//! What became of every configured target.
//!
//! A record has one verdict per target, and there may be a thousand targets of which one was asked. What a record keeps is
//! therefore what it has to say. A few targets have a word of their own. Others are left out, many for one reason, such as
//! that they belong to other routes: those reasons are kept once, and by position a byte that says which. All that remain
//! were not needed. The names are those of the configuration, which its records share. Who reads the list sees every target
//! in its place.
//!
//! Written out it is the same: names, what is said of single ones, and reasons with the positions that they are for, as
//! ranges. Lists of one [`Verdict`] per target, which earlier versions wrote, can be read too.

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

/// The verdicts of a request, in the order of the configuration.
#[derive(Clone, Debug, Default, Eq)]
pub struct Verdicts {
    targets: Arc<[Arc<str>]>,
    /// By position, ascending.
    said: Vec<Said>,
    left_out: LeftOut,
}

/// What there is to say about the target in a position.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) position: usize,
    pub(crate) state: VerdictState,
    pub(crate) reason: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until_ms: Option<i64>,
}

/// Targets that are excluded for a reason that they share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LeftOut {
    /// By position, up to the last that is left out: 0, or one more than where its reason stands.
    why: Vec<u8>,
    reasons: Vec<Cow<'static, str>>,
}

impl LeftOut {
    /// `why` by position: the place of its reason, where the target is left out.
    pub(crate) fn new(why: impl Iterator<Item = Option<u8>>, reasons: Vec<Cow<'static, str>>) -> Self {
        if reasons.is_empty() {
            return Self::default();
        }
        let mut why: Vec<u8> = why.map(|why| why.map_or(0, |why| why.saturating_add(1))).collect();
        let end = why.iter().rposition(|why| *why > 0).map_or(0, |last| last + 1);
        why.truncate(end);
        Self { why, reasons }
    }

    pub(crate) fn reason(&self, position: usize) -> Option<&Cow<'static, str>> {
        let at = self.why.get(position)?.checked_sub(1)?;
        self.reasons.get(usize::from(at))
    }

    /// Each reason, and the positions it is for: first and last of every run.
    fn ranges(&self) -> Vec<Shared> {
        let mut all: Vec<Shared> = self.reasons.iter().cloned().map(Shared::new).collect();
        for (position, why) in self.why.iter().enumerate() {
            let Some(shared) = why.checked_sub(1).and_then(|at| all.get_mut(usize::from(at))) else {
                continue;
            };
            match shared.of.last_mut() {
                Some((_, last)) if *last + 1 == position => *last = position,
                _ => shared.of.push((position, position)),
            }
        }
        all
    }

    /// `None` when a range is none, or beyond so many targets, or there are more reasons than can be told apart.
    fn of_ranges(shared: Vec<Shared>, targets: usize) -> Option<Self> {
        let end = shared
            .iter()
            .flat_map(|shared| &shared.of)
            .map(|(_, last)| last.saturating_add(1))
            .max();
        let mut why = vec![0; end.filter(|end| *end <= targets).or(shared.is_empty().then_some(0))?];
        for (at, shared) in shared.iter().enumerate() {
            let at = u8::try_from(at + 1).ok()?;
            for (first, last) in &shared.of {
                let run = why.get_mut(*first..=*last).filter(|run| !run.is_empty());
                run?.fill(at);
            }
        }
        let reasons = shared.into_iter().map(|shared| shared.reason).collect();
        Some(Self { why, reasons })
    }
}

/// A reason, as it is written out.
#[derive(Serialize, Deserialize)]
struct Shared {
    reason: Cow<'static, str>,
    of: Vec<(usize, usize)>,
}

impl Shared {
    const fn new(reason: Cow<'static, str>) -> Self {
        Self { reason, of: Vec::new() }
    }
}

impl Verdicts {
    /// `said` by position, ascending. It goes before what `left_out` says.
    pub(crate) const fn new(targets: Arc<[Arc<str>]>, said: Vec<Said>, left_out: LeftOut) -> Self {
        Self {
            targets,
            said,
            left_out,
        }
    }

    /// One for every target.
    pub fn iter(&self) -> impl Iterator<Item = Verdict> {
        let mut said = self.said.iter().peekable();
        self.targets.iter().enumerate().map(move |(position, target)| {
            let (state, reason, until_ms) = match said.next_if(|said| said.position == position) {
                Some(said) => (said.state, said.reason.clone(), said.until_ms),
                None => match self.left_out.reason(position) {
                    Some(reason) => (VerdictState::Excluded, reason.clone(), None),
                    None => (VerdictState::NotNeeded, NOT_NEEDED.into(), None),
                },
            };
            Verdict {
                target: Arc::clone(target),
                state,
                reason,
                until_ms,
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

    /// For hashing: equal verdicts give the same, and of different ones those that say the same of other names.
    #[must_use]
    pub fn digest(&self) -> impl std::hash::Hash + use<'_> {
        (self.targets.len(), &self.said, &self.left_out)
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
        self.said == other.said
            && self.left_out == other.left_out
            && (Arc::ptr_eq(&self.targets, &other.targets) || self.targets == other.targets)
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
        Self::new(targets, said, LeftOut::default())
    }
}

#[derive(Serialize)]
struct Written<'a> {
    targets: &'a [Arc<str>],
    #[serde(skip_serializing_if = "<[Said]>::is_empty")]
    said: &'a [Said],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<Shared>,
}

impl Serialize for Verdicts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Written {
            targets: &self.targets,
            said: &self.said,
            left_out: self.left_out.ranges(),
        };
        written.serialize(serializer)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    List(Vec<Verdict>),
    Parts {
        targets: Arc<[Arc<str>]>,
        #[serde(default)]
        said: Vec<Said>,
        #[serde(default)]
        left_out: Vec<Shared>,
    },
}

impl<'de> Deserialize<'de> for Verdicts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (targets, said, left_out) = match Read::deserialize(deserializer)? {
            Read::List(list) => return Ok(Self::from_iter(list)),
            Read::Parts {
                targets,
                said,
                left_out,
            } => (targets, said, left_out),
        };
        let left_out = LeftOut::of_ranges(left_out, targets.len());
        let left_out = left_out.ok_or_else(|| serde::de::Error::custom("left_out names targets that are not there"))?;
        Ok(Self::new(targets, said, left_out))
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

    /// Of eight: the second was chosen; the third and fifth to seventh are left out.
    fn left_out() -> Verdicts {
        let why = [None, None, Some(0), None, Some(1), Some(1), Some(0), None];
        let reasons = vec!["elsewhere".into(), "other models".into()];
        let said = vec![Said {
            position: 1,
            state: VerdictState::Chosen,
            reason: "answered".into(),
            until_ms: None,
        }];
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"].map(Arc::from);
        Verdicts::new(names.into(), said, LeftOut::new(why.into_iter(), reasons))
    }

    #[test]
    fn a_shared_reason_is_that_of_each() {
        let verdicts = left_out();
        let said = verdicts
            .iter()
            .map(|verdict| format!("{} {:?} {}", verdict.target, verdict.state, verdict.reason));
        let wanted = [
            "a NotNeeded not needed",
            "b Chosen answered",
            "c Excluded elsewhere",
            "d NotNeeded not needed",
            "e Excluded other models",
            "f Excluded other models",
            "g Excluded elsewhere",
            "h NotNeeded not needed",
        ];
        assert_eq!(said.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn written_out_they_come_back() {
        for (verdicts, wanted) in [
            (
                left_out(),
                r#"{"targets":["a","b","c","d","e","f","g","h"],"said":[{"position":1,"state":"chosen","reason":"answered"}],"left_out":[{"reason":"elsewhere","of":[[2,2],[6,6]]},{"reason":"other models","of":[[4,5]]}]}"#,
            ),
            (Verdicts::default(), r#"{"targets":[]}"#),
        ] {
            let text = serde_json::to_string(&verdicts).unwrap();
            assert_eq!(text, wanted);
            assert_eq!(serde_json::from_str::<Verdicts>(&text).unwrap(), verdicts);
        }
        let verdicts = Verdicts::from_iter(some());
        let text = serde_json::to_string(&verdicts).unwrap();
        assert_eq!(serde_json::from_str::<Verdicts>(&text).unwrap(), verdicts);
    }

    #[test]
    fn a_list_of_an_earlier_version_is_read() {
        let text = serde_json::to_string(&some()).unwrap();
        let read: Verdicts = serde_json::from_str(&text).unwrap();
        assert_eq!(read, Verdicts::from_iter(some()));
    }

    #[test]
    fn what_is_said_of_nobody_is_an_error() {
        for ranges in ["[[1,2]]", "[[0,1],[2,2]]", "[[1,0]]", "[[0,18446744073709551615]]"] {
            let text = format!(r#"{{"targets":["a","b"],"left_out":[{{"reason":"elsewhere","of":{ranges}}}]}}"#);
            assert!(serde_json::from_str::<Verdicts>(&text).is_err(), "{ranges}");
        }
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
