//! What a rule asks of a request.

use super::Facts;
use regex::Regex;

/// A condition over a request's facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Model(String),
    ModelPrefix(String),
    User(String),
    Stream(bool),
    HasTools(bool),
    /// `X-Gateway-Metadata` has this field with this value.
    Metadata {
        field: String,
        value: String,
    },
    /// A header, by lower-case name, has this value.
    Header {
        name: String,
        value: String,
    },
    /// The key's id or its name.
    Key(String),
    Project(String),
    /// The estimate of input tokens.
    PromptTokens(Compare, u64),
    Time(TimeOfDay),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

/// From one minute of the day until another, which does not belong to it; over midnight when the second is the smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    /// Minutes since midnight.
    pub from: u16,
    pub until: u16,
    /// Of the clock it is read on, in minutes east of UTC.
    pub offset: i16,
}

/// A condition over the text of the user's messages.
#[derive(Clone, Debug)]
pub enum Content {
    /// In lower case; compared without regard to case.
    Contains(String),
    NotContains(String),
    Matches(Regex),
}

impl Condition {
    #[must_use]
    pub fn holds(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Model(model) => facts.model == model,
            Self::ModelPrefix(prefix) => facts.model.starts_with(prefix.as_str()),
            Self::User(user) => facts.user == Some(user),
            Self::Stream(stream) => facts.stream == *stream,
            Self::HasTools(has) => facts.has_tools == *has,
            Self::Metadata { field, value } => facts.metadata.value(field) == Some(value),
            Self::Header { name, value } => facts.headers.value(name) == Some(value),
            Self::Key(key) => facts.key.is_some_and(|(id, name)| id == key || name == key),
            Self::Project(project) => facts.project == Some(project),
            Self::PromptTokens(compare, bound) => compare.holds(facts.work.input_tokens, *bound),
            Self::Time(time) => time.holds(facts.now_ms),
            Self::All(all) => all.iter().all(|condition| condition.holds(facts)),
            Self::Any(any) => any.iter().any(|condition| condition.holds(facts)),
            Self::Not(condition) => !condition.holds(facts),
        }
    }
}

impl Condition {
    pub(super) fn reads_tokens(&self) -> bool {
        match self {
            Self::PromptTokens(..) => true,
            Self::All(inner) | Self::Any(inner) => inner.iter().any(Self::reads_tokens),
            Self::Not(inner) => inner.reads_tokens(),
            Self::Model(_)
            | Self::ModelPrefix(_)
            | Self::User(_)
            | Self::Stream(_)
            | Self::HasTools(_)
            | Self::Metadata { .. }
            | Self::Header { .. }
            | Self::Key(_)
            | Self::Project(_)
            | Self::Time(_) => false,
        }
    }
}

impl Compare {
    const fn holds(self, value: u64, bound: u64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::AtMost => value <= bound,
            Self::Equal => value == bound,
            Self::AtLeast => value >= bound,
            Self::More => value > bound,
        }
    }

    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::AtLeast => ">=",
            Self::More => ">",
        }
    }
}

impl TimeOfDay {
    fn holds(self, now_ms: i64) -> bool {
        let minute = (now_ms.div_euclid(60_000) + i64::from(self.offset)).rem_euclid(24 * 60);
        let (from, until) = (i64::from(self.from), i64::from(self.until));
        if from <= until {
            (from..until).contains(&minute)
        } else {
            minute >= from || minute < until
        }
    }
}

impl Content {
    /// `lower` gives the prompt in lower case, which is worth doing once for all rules.
    pub fn holds<'p>(&self, prompt: &str, lower: impl Fn() -> &'p str) -> bool {
        match self {
            Self::Contains(part) => lower().contains(part),
            Self::NotContains(part) => !lower().contains(part),
            Self::Matches(regex) => regex.is_match(prompt),
        }
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let joined = |f: &mut std::fmt::Formatter<'_>, all: &[Self], word: &str| {
            for (i, condition) in all.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { word })?;
                write!(f, "({condition})")?;
            }
            Ok(())
        };
        match self {
            Self::Model(model) => write!(f, "model is {model}"),
            Self::ModelPrefix(prefix) => write!(f, "model begins with {prefix}"),
            Self::User(user) => write!(f, "user is {user}"),
            Self::Stream(yes) => f.write_str(if *yes { "streamed" } else { "not streamed" }),
            Self::HasTools(yes) => f.write_str(if *yes { "has tools" } else { "has no tools" }),
            Self::Metadata { field, value } => write!(f, "metadata {field} is {value}"),
            Self::Header { name, value } => write!(f, "header {name} is {value}"),
            Self::Key(key) => write!(f, "key is {key}"),
            Self::Project(project) => write!(f, "project is {project}"),
            Self::PromptTokens(compare, bound) => write!(f, "prompt tokens {} {bound}", compare.sign()),
            Self::Time(time) => write!(f, "time is {time}"),
            Self::All(all) => joined(f, all, " and "),
            Self::Any(any) => joined(f, any, " or "),
            Self::Not(condition) => write!(f, "not ({condition})"),
        }
    }
}

impl std::fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let clock = |minutes: u16| (minutes / 60, minutes % 60);
        let ((from_h, from_m), (until_h, until_m)) = (clock(self.from), clock(self.until));
        write!(f, "{from_h:02}:{from_m:02}-{until_h:02}:{until_m:02} ")?;
        if self.offset == 0 {
            return f.write_str("UTC");
        }
        let sign = if self.offset < 0 { '-' } else { '+' };
        let (hours, minutes) = clock(self.offset.unsigned_abs());
        write!(f, "{sign}{hours:02}:{minutes:02}")
    }
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Contains(part) => write!(f, "prompt contains \"{part}\""),
            Self::NotContains(part) => write!(f, "prompt does not contain \"{part}\""),
            Self::Matches(regex) => write!(f, "prompt matches {regex}"),
        }
    }
}
