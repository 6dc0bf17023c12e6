//! Walks a [`Node`] tree and collects every fault instead of stopping at the first.
//!
//! A [`Block`] hands out its keys one by one. Each reader notes what is wrong and goes on with a stand-in value; when the
//! block is finished, keys that nobody asked for are faults too. A configuration with a single fault is refused, so the
//! stand-ins never come to life.

use super::issue::Issue;
use super::tree::{Node, Value};
use std::time::Duration;

/// Longest time that a file may name. A clock can be moved on by it.
const LONGEST: Duration = Duration::from_hours(365 * 24);
/// Largest weight. Any number of these has a finite sum.
const HEAVIEST: f64 = 1e9;

#[derive(Default)]
pub(super) struct Faults(Vec<Issue>);

impl Faults {
    pub(super) fn add(&mut self, path: &str, line: u64, message: impl Into<String>) {
        self.0.push(Issue::new(path, line, message));
    }

    /// In the order of the document.
    pub(super) fn into_issues(self) -> Vec<Issue> {
        let mut issues = self.0;
        issues.sort_by_key(|issue| issue.line);
        issues
    }
}

/// A mapping that is being read.
pub(super) struct Block<'n> {
    pub(super) path: String,
    pub(super) line: u64,
    entries: Vec<(&'n str, &'n Node)>,
    asked: Vec<&'static str>,
}

impl<'n> Block<'n> {
    /// `None`, with a fault noted, when the node is no mapping. An empty node is an empty block.
    pub(super) fn of(node: &'n Node, path: &str, faults: &mut Faults) -> Option<Self> {
        let written: &[(String, Node)] = match &node.value {
            Value::Map(entries) => entries,
            Value::Null => &[],
            other @ (Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) | Value::Seq(_)) => {
                faults.add(
                    path,
                    node.line,
                    format!("must be a block of keys, not {}", other.kind()),
                );
                return None;
            }
        };
        let mut entries: Vec<(&str, &Node)> = Vec::with_capacity(written.len());
        for (key, value) in written {
            if entries.iter().any(|(seen, _)| seen == key) {
                faults.add(&join(path, key), value.line, "is written twice; keep one of them");
            } else {
                entries.push((key, value));
            }
        }
        Some(Self {
            path: path.to_owned(),
            line: node.line,
            entries,
            asked: Vec::new(),
        })
    }

    /// The value of `key`. A key written without a value counts as absent.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.entries
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, node)| *node)
            .filter(|n| !matches!(n.value, Value::Null))
    }

    /// Stands there, with a value or without. Where absence has a meaning of its own, nothing written is no absence.
    pub(super) fn is_written(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| *name == key)
    }

    /// Where `key` stands; where the block begins when it is not written.
    pub(super) fn line_of(&self, key: &str) -> u64 {
        let written = self.entries.iter().find(|(name, _)| *name == key);
        written.map_or(self.line, |(_, node)| node.line)
    }

    /// The list is not written, or holds nothing. One that is no list has its fault already.
    pub(super) fn is_bare(&mut self, key: &'static str) -> bool {
        self.take(key)
            .is_none_or(|node| matches!(&node.value, Value::Seq(items) if items.is_empty()))
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Every entry, for mappings whose keys are free.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'n str, &'n Node)> {
        self.entries.iter().copied()
    }

    pub(super) fn text(&mut self, key: &'static str, faults: &mut Faults) -> Option<String> {
        let node = self.take(key)?;
        as_text(node, &self.path_of(key), faults)
    }

    pub(super) fn boolean(&mut self, key: &'static str, faults: &mut Faults) -> Option<bool> {
        let node = self.take(key)?;
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        faults.add(
            &self.path_of(key),
            node.line,
            format!("must be true or false, not {}", node.value.kind()),
        );
        None
    }

    /// A whole number within bounds, both included.
    pub(super) fn integer(&mut self, key: &'static str, least: i64, most: i64, faults: &mut Faults) -> Option<i64> {
        let node = self.take(key)?;
        match node.value {
            Value::Int(value) if (least..=most).contains(&value) => return Some(value),
            Value::Int(value) => {
                let bounds = if most == i64::MAX {
                    format!("at least {least}")
                } else {
                    format!("from {least} to {most}")
                };
                faults.add(&self.path_of(key), node.line, format!("must be {bounds}, not {value}"));
            }
            _ => faults.add(
                &self.path_of(key),
                node.line,
                format!("must be a whole number, not {}", node.value.kind()),
            ),
        }
        None
    }

    #[expect(clippy::cast_precision_loss, reason = "weights and ratios are small")]
    pub(super) fn number(&mut self, key: &'static str, least: f64, faults: &mut Faults) -> Option<f64> {
        let node = self.take(key)?;
        let value = match node.value {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
            _ => {
                faults.add(
                    &self.path_of(key),
                    node.line,
                    format!("must be a number, not {}", node.value.kind()),
                );
                return None;
            }
        };
        if value.is_finite() && value >= least {
            return Some(value);
        }
        faults.add(
            &self.path_of(key),
            node.line,
            format!("must be at least {least}, not {value}"),
        );
        None
    }

    /// A share among siblings.
    pub(super) fn weight(&mut self, key: &'static str, faults: &mut Faults) -> Option<f64> {
        let weight = self.number(key, 0.0, faults)?;
        if weight > HEAVIEST {
            let message = format!("must be at most {HEAVIEST}; weights count only relative to each other");
            faults.add(&self.path_of(key), self.line_of(key), message);
        }
        Some(weight.min(HEAVIEST))
    }

    /// At most [`LONGEST`].
    pub(super) fn duration(&mut self, key: &'static str, faults: &mut Faults) -> Option<Duration> {
        let node = self.take(key)?;
        let parsed = match &node.value {
            Value::Str(text) => parse_duration(text),
            _ => None,
        };
        if parsed.is_none() {
            faults.add(
                &self.path_of(key),
                node.line,
                "must be a time with its unit, such as \"30s\", \"1m30s\" or \"500ms\"",
            );
        }
        if parsed.is_some_and(|duration| duration > LONGEST) {
            let message = "must be at most 365 days; write \"8760h\" or less";
            faults.add(&self.path_of(key), node.line, message);
        }
        parsed.map(|duration| duration.min(LONGEST))
    }

    pub(super) fn positive_duration(&mut self, key: &'static str, faults: &mut Faults) -> Option<Duration> {
        let line = self.take(key)?.line;
        let duration = self.duration(key, faults)?;
        if duration.is_zero() {
            faults.add(
                &self.path_of(key),
                line,
                "must be longer than zero; leave it out for no bound",
            );
            return None;
        }
        Some(duration)
    }

    /// The items of a list, each with its path. Absent means empty.
    pub(super) fn list(&mut self, key: &'static str, faults: &mut Faults) -> Vec<(&'n Node, String)> {
        let Some(node) = self.take(key) else { return Vec::new() };
        let path = self.path_of(key);
        if let Value::Seq(items) = &node.value {
            return items
                .iter()
                .enumerate()
                .map(|(i, item)| (item, format!("{path}[{i}]")))
                .collect();
        }
        faults.add(&path, node.line, format!("must be a list, not {}", node.value.kind()));
        Vec::new()
    }

    /// HTTP status codes.
    pub(super) fn statuses(&mut self, key: &'static str, faults: &mut Faults) -> Vec<u16> {
        let mut statuses = Vec::new();
        for (node, path) in self.list(key, faults) {
            match node.value {
                Value::Int(value) if (100..=599).contains(&value) => {
                    statuses.extend(u16::try_from(value));
                }
                _ => faults.add(&path, node.line, "must be an HTTP status from 100 to 599"),
            }
        }
        statuses
    }

    /// Free names with text values, such as headers.
    pub(super) fn text_map(&mut self, key: &'static str, faults: &mut Faults) -> Vec<(String, String)> {
        let Some(node) = self.take(key) else { return Vec::new() };
        let Some(block) = Block::of(node, &self.path_of(key), faults) else {
            return Vec::new();
        };
        block
            .all()
            .filter_map(|(name, value)| Some((name.to_owned(), as_text(value, &block.path_of(name), faults)?)))
            .collect()
    }

    /// Notes every key that nobody asked for.
    pub(super) fn finish(self, faults: &mut Faults) {
        for (key, node) in &self.entries {
            if self.asked.contains(key) {
                continue;
            }
            let hint = closest(key, &self.asked).map_or_else(
                || format!("known here: {}", self.asked.join(", ")),
                |known| format!("did you mean \"{known}\"?"),
            );
            faults.add(
                &join(&self.path, key),
                node.line,
                format!("is not a key of this block; {hint}"),
            );
        }
    }
}

pub(super) fn as_text(node: &Node, path: &str, faults: &mut Faults) -> Option<String> {
    match &node.value {
        Value::Str(text) => Some(text.clone()),
        // `model: 4` is a text to everyone but the parser.
        Value::Int(number) => Some(number.to_string()),
        other @ (Value::Null | Value::Bool(_) | Value::Float(_) | Value::Seq(_) | Value::Map(_)) => {
            faults.add(path, node.line, format!("must be a text, not {}", other.kind()));
            None
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// `1h2m3s`, `500ms`, `1.5s`. What is too long to count is as long as can be.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest == "0" {
        return Some(total);
    }
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let seconds = match &rest[..unit] {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        // The amount has no sign, so it can only be too large.
        let part = Duration::try_from_secs_f64(amount * seconds).unwrap_or(Duration::MAX);
        total = total.saturating_add(part);
        rest = &rest[unit..];
    }
    Some(total)
}

/// The known name that a typing mistake is nearest to.
pub(super) fn closest<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let within = (typed.len() / 3).clamp(1, 3);
    known
        .iter()
        .map(|name| (distance(typed, name), name.len().abs_diff(typed.len()), *name))
        .filter(|(d, ..)| *d <= within)
        .min()
        .map(|(.., name)| name)
}

/// Edits between two words, letter by letter. Two neighbours that changed places are one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::{closest, parse_duration};
    use std::time::Duration;

    #[test]
    fn durations_carry_their_unit() {
        let seconds = |text| parse_duration(text).map(|d: Duration| d.as_secs_f64());
        assert_eq!(seconds("30s"), Some(30.0));
        assert_eq!(seconds("1m30s"), Some(90.0));
        assert_eq!(seconds("500ms"), Some(0.5));
        assert_eq!(seconds("1.5h"), Some(5400.0));
        for bad in ["30", "", "s", "5 s", "-1s", "1d", "1e9h9"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        for long in [
            "99999999999999999999h",
            "1s18446744073709551615s",
            &format!("{}s", "9".repeat(400)),
        ] {
            assert_eq!(parse_duration(long), Some(Duration::MAX), "{long}");
        }
    }

    #[test]
    fn a_typing_mistake_finds_its_key() {
        assert_eq!(closest("atempts", &["attempts", "on_status_codes"]), Some("attempts"));
        assert_eq!(closest("modle", &["mode", "model"]), Some("model"));
        assert_eq!(closest("zzz", &["attempts"]), None);
    }
}
