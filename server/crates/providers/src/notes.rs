//! What a translation did to what was said.
//!
//! Every translation tells of each field of the caller whether it came through: kept as it was, mapped to what means the same,
//! approximated by what comes near it, or dropped. The counts stand in `X-Gateway-Translation`, the list on the record.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Dropped,
    /// Sent as something that comes near it, or the answer's counterpart of that.
    Approximated,
    /// Sent as something else that means the same.
    Mapped,
    Kept,
}

impl Fate {
    pub const ALL: [Self; 4] = [Self::Dropped, Self::Approximated, Self::Mapped, Self::Kept];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Approximated => "approximated",
            Self::Mapped => "mapped",
            Self::Kept => "kept",
        }
    }
}

/// What became of one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub fate: Fate,
    /// As the caller's dialect names it: `logit_bias`, `tools[0].function.strict`, `stop`.
    pub field: Cow<'static, str>,
    /// A sentence without its full stop: what it became, or why it is gone. May be empty for what was kept.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub why: Cow<'static, str>,
}

/// More are counted and not listed: a caller with ten thousand odd parts does not fill the log.
const MOST: usize = 64;

/// All of one translation, in the order in which they were made. A field has its gravest fate, told once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    list: Vec<Note>,
    counts: [u32; 4],
}

impl Notes {
    pub fn kept(&mut self, field: impl Into<Cow<'static, str>>) {
        self.add(Fate::Kept, field, "");
    }

    pub fn mapped(&mut self, field: impl Into<Cow<'static, str>>, why: impl Into<Cow<'static, str>>) {
        self.add(Fate::Mapped, field, why);
    }

    pub fn approximated(&mut self, field: impl Into<Cow<'static, str>>, why: impl Into<Cow<'static, str>>) {
        self.add(Fate::Approximated, field, why);
    }

    pub fn dropped(&mut self, field: impl Into<Cow<'static, str>>, why: impl Into<Cow<'static, str>>) {
        self.add(Fate::Dropped, field, why);
    }

    pub fn add(&mut self, fate: Fate, field: impl Into<Cow<'static, str>>, why: impl Into<Cow<'static, str>>) {
        let note = Note {
            fate,
            field: field.into(),
            why: why.into(),
        };
        // What was said of a field before may have been said too soon: the gravest holds.
        if let Some(known) = self.list.iter().position(|known| known.field == note.field) {
            let fate_known = self.list[known].fate;
            if fate < fate_known {
                self.counts[fate_known as usize] -= 1;
                self.list.remove(known);
            } else if fate > fate_known || self.list.contains(&note) || note.why.is_empty() {
                return;
            }
        }
        self.counts[fate as usize] += 1;
        if self.list.len() < MOST {
            self.list.push(note);
        }
    }

    /// Adds another translation's, that of an answer to that of its request.
    pub fn append(&mut self, other: Self) {
        let mut unlisted = other.counts;
        for note in other.list {
            unlisted[note.fate as usize] = unlisted[note.fate as usize].saturating_sub(1);
            self.add(note.fate, note.field, note.why);
        }
        for (count, more) in self.counts.iter_mut().zip(unlisted) {
            *count += more;
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    #[must_use]
    pub fn list(&self) -> &[Note] {
        &self.list
    }

    #[must_use]
    pub const fn count(&self, fate: Fate) -> u32 {
        self.counts[fate as usize]
    }
}

/// As it stands in the header: `dropped=2, approximated=1, mapped=3, kept=7`, without those that are 0.
impl Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for fate in Fate::ALL {
            let count = self.count(fate);
            if count > 0 {
                let comma = if is_first { "" } else { ", " };
                write!(f, "{comma}{}={count}", fate.as_str())?;
                is_first = false;
            }
        }
        Ok(())
    }
}

/// The path of an item: `tools[3]`.
pub(crate) fn item(list: &str, index: usize) -> String {
    let mut path = String::with_capacity(list.len() + 4);
    path.push_str(list);
    // Writing to a string does not fail.
    let _ = write!(path, "[{index}]");
    path
}

#[cfg(test)]
mod tests {
    use super::{Fate, Notes, item};

    #[test]
    fn notes_are_counted_once_each_and_told_gravest_first() {
        let mut notes = Notes::default();
        assert_eq!(notes.to_string(), "");
        notes.kept("temperature");
        notes.dropped("seed", "no such parameter there");
        notes.dropped("seed", "no such parameter there");
        notes.mapped("max_tokens", "generationConfig.maxOutputTokens");
        notes.dropped(item("tools", 3), "not a function");
        assert_eq!(notes.to_string(), "dropped=2, mapped=1, kept=1");
        let mut all = Notes::default();
        all.dropped("seed", "no such parameter there");
        all.append(notes);
        assert_eq!(all.count(Fate::Dropped), 2);
    }

    #[test]
    fn the_gravest_fate_of_a_field_holds() {
        let mut notes = Notes::default();
        notes.kept("thinking");
        notes.approximated("thinking", "an effort comes near it");
        notes.mapped("thinking", "");
        assert_eq!(notes.to_string(), "approximated=1");
        notes.dropped("thinking", "it does not think");
        notes.dropped("thinking", "nor does it tell");
        assert_eq!(notes.to_string(), "dropped=2");
    }

    #[test]
    fn what_is_too_much_for_a_list_is_counted() {
        let mut notes = Notes::default();
        for i in 0..1000 {
            notes.dropped(item("messages", i), "odd");
        }
        assert_eq!((notes.count(Fate::Dropped), notes.list().len()), (1000, 64));
    }
}
