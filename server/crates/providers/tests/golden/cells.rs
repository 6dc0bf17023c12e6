//! What came of one place in the grid.

use std::fmt::Write as _;
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;
use switchyard_providers::notes::{Fate, Note, Notes};

/// What the page says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cell {
    /// There is no such input.
    #[default]
    Absent,
    Native,
    Translated {
        approximated: u32,
        dropped: u32,
    },
    /// The caller is told why not; another target may be able to.
    Refused,
    /// It ends in an error that the caller is told of, by the error's kind.
    Failed(&'static str),
    /// The wire fell over. This is always a fault.
    Broken,
}

impl Cell {
    pub(crate) fn of(notes: &Notes) -> Self {
        Self::Translated {
            approximated: notes.count(Fate::Approximated),
            dropped: notes.count(Fate::Dropped),
        }
    }
}

/// What there is to say of one place: for the file, for the page, and what is wrong.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) cell: Cell,
    /// What was lost, for the page.
    pub(crate) lost: Vec<Note>,
    pub(crate) faults: Vec<String>,
}

impl Told {
    pub(crate) fn broken(why: &str) -> Self {
        Self {
            text: format!("broken: {why}\n"),
            cell: Cell::Broken,
            faults: vec![why.to_owned()],
            ..Self::default()
        }
    }

    /// What was lost, in no order.
    pub(crate) fn noted(&self) -> Vec<String> {
        let of = |note: &Note| format!("{} {}: {}", note.fate.as_str(), note.field, note.why);
        let mut noted: Vec<String> = self.lost.iter().map(of).collect();
        noted.sort();
        noted
    }

    pub(crate) fn add_notes(&mut self, notes: &Notes) {
        show_notes(notes, &mut self.text);
        let is_lost = |note: &&Note| matches!(note.fate, Fate::Dropped | Fate::Approximated);
        self.lost.extend(notes.list().iter().filter(is_lost).cloned());
    }
}

pub(crate) fn show_notes(notes: &Notes, out: &mut String) {
    if notes.is_empty() {
        return;
    }
    writeln!(out, "-- notes: {notes}").unwrap();
    for note in notes.list() {
        let colon = if note.why.is_empty() { "" } else { ": " };
        writeln!(out, "{} {}{colon}{}", note.fate.as_str(), note.field, note.why).unwrap();
    }
}

pub(crate) fn show_error(error: &Error) -> String {
    let mut out = format!("{}: {}\n", error.kind.as_str(), error.message);
    if let Some(param) = &error.param {
        writeln!(out, "param: {param}").unwrap();
    }
    out
}

/// What was counted, and nothing of what was not.
pub(crate) fn show_usage(usage: Usage) -> String {
    let mut out = String::from("usage:");
    for (name, count) in [
        ("prompt", usage.prompt),
        ("completion", usage.completion),
        ("total", usage.total),
        ("cached", usage.cached),
        ("cache_write", usage.cache_write),
        ("reasoning", usage.reasoning),
        ("audio_prompt", usage.audio_prompt),
        ("audio_completion", usage.audio_completion),
    ] {
        if let Some(count) = count {
            write!(out, " {name}={count}").unwrap();
        }
    }
    if usage.estimated {
        out.push_str(" estimated");
    }
    out + "\n"
}
