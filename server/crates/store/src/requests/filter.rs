//! What a list of requests is narrowed by, and how that becomes SQL.
//!
//! Every value is a bound parameter. Bounds on time become ranges of ids besides, so that they need no index of their own:
//! an id is never smaller than its request's arrival (lower bound), and `traffic_minutes` knows the greatest id that
//! arrived up to a given minute (upper bound). The exact instants are compared as well.

use crate::{
    number::minute_of,
    writer::{MOMENT_BITS, first_id_of},
};
use sqlx::{QueryBuilder, Sqlite};
use switchyard_engine::record::Outcome;

/// Which requests. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Where the call came in: the word that the log has for it.
    pub surface: Option<String>,
    pub model: Option<String>,
    pub provider: Option<String>,
    pub target: Option<String>,
    /// The route that was taken: `default`, or its name.
    pub route: Option<String>,
    pub key: Option<KeyFilter>,
    pub outcome: Option<OutcomeFilter>,
    pub stage: Option<Stage>,
    /// Arrived at this instant or later.
    pub since_ms: Option<i64>,
    /// Arrived before this instant.
    pub until_ms: Option<i64>,
    /// A whole request id, or part of a model's name, an error's code or its text. Letters match in either case.
    pub q: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFilter {
    Id(String),
    /// Requests without a virtual key.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeFilter {
    Is(Outcome),
    /// Everything but [`Outcome::Success`].
    Failed,
}

/// The older way to say how a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// [`Outcome::Success`].
    AfterRequest,
    /// Everything else.
    OnError,
}

impl LogFilter {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether no successful request can match.
    fn wants_failures(&self) -> bool {
        self.stage == Some(Stage::OnError)
            || self
                .outcome
                .is_some_and(|outcome| outcome != OutcomeFilter::Is(Outcome::Success))
    }

    /// Whether a key's rows are found by its moments, which are walked in the same direction as rows are.
    fn walks_moments(&self) -> bool {
        self.key.is_some() && !self.names_request()
    }

    fn names_request(&self) -> bool {
        self.q.as_deref().is_some_and(is_request_id)
    }

    /// Names the index to walk where SQLite, which keeps no statistics here, would choose another.
    fn index(&self) -> &'static str {
        if self.names_request() {
            " indexed by requests_by_request_id"
        } else if self.wants_failures() && self.key.is_none() {
            " indexed by requests_failed"
        } else {
            ""
        }
    }

    /// Appends ` from … where …`, to which more conditions may be added with `and`.
    pub(super) fn push_from(&self, query: &mut QueryBuilder<Sqlite>) {
        query.push(" from ");
        if self.walks_moments() {
            query.push("key_moments k cross join ");
        }
        query.push("requests r").push(self.index());
        query.push(" left join courses c on c.id = r.course");
        // The condition stands as the partial index has it, not as a parameter, or SQLite cannot see that they agree.
        query.push(if self.wants_failures() {
            " where r.outcome <> 'success'"
        } else {
            " where true"
        });
        for (column, value) in [
            ("coalesce(c.surface, r.surface)", &self.surface),
            ("coalesce(c.model, r.model)", &self.model),
            ("coalesce(c.provider, r.provider)", &self.provider),
            ("coalesce(c.target, r.target)", &self.target),
            ("coalesce(c.route, r.route)", &self.route),
        ] {
            if let Some(value) = value {
                query.push(" and ").push(column).push(" = ").push_bind(value.as_str());
            }
        }
        match &self.key {
            Some(KeyFilter::Id(id)) => {
                query.push(" and r.key_id = ").push_bind(id.as_str());
            }
            Some(KeyFilter::None) => {
                query.push(" and r.key_id is null");
            }
            None => {}
        }
        if self.walks_moments() {
            self.push_moments(query);
        }
        if let Some(OutcomeFilter::Is(outcome)) = self.outcome {
            query.push(" and r.outcome = ").push_bind(outcome.as_str());
        }
        if self.stage == Some(Stage::AfterRequest) {
            query.push(" and r.outcome = ").push_bind(Outcome::Success.as_str());
        }
        push_arrival(query, self.since_ms, self.until_ms);
        if let Some(q) = &self.q {
            push_search(query, q);
        }
    }

    /// Appends the order in which rows are listed, newest first, and where to begin.
    pub(super) fn push_order(&self, query: &mut QueryBuilder<Sqlite>, before: Option<i64>) {
        if let Some(before) = before {
            query.push(" and r.id < ").push_bind(before);
            if self.walks_moments() {
                query.push(" and k.moment <= ").push_bind(before >> MOMENT_BITS);
            }
        }
        // Both are the order of ids; but only the second is seen to be that of the walk, and needs no sorting.
        query.push(if self.walks_moments() {
            " order by k.moment desc, r.id desc"
        } else {
            " order by r.id desc"
        });
    }

    /// Appends which moments there are to walk, and which rows a moment has.
    fn push_moments(&self, query: &mut QueryBuilder<Sqlite>) {
        let id = match &self.key {
            Some(KeyFilter::Id(id)) => id.as_str(),
            _ => "",
        };
        query.push(" and k.key_id = ").push_bind(id);
        if let Some(since_ms) = self.since_ms {
            query.push(" and k.moment >= ");
            query.push_bind(first_id_of(since_ms) >> MOMENT_BITS);
        }
        if let Some(until_ms) = self.until_ms {
            query.push(" and k.moment <= ");
            push_last_id(query, until_ms);
            query.push(" >> ").push_bind(MOMENT_BITS);
        }
        query.push(" and r.id >= k.moment << ").push_bind(MOMENT_BITS);
        query.push(" and r.id < (k.moment + 1) << ").push_bind(MOMENT_BITS);
    }
}

/// Appends the bounds on arrival: from `since_ms` on, before `until_ms`.
pub(crate) fn push_arrival(query: &mut QueryBuilder<Sqlite>, since_ms: Option<i64>, until_ms: Option<i64>) {
    if let Some(since_ms) = since_ms {
        query.push(" and r.id >= ").push_bind(first_id_of(since_ms));
        query.push(" and r.arrived_at_ms >= ").push_bind(since_ms);
    }
    if let Some(until_ms) = until_ms {
        query.push(" and r.id <= ");
        push_last_id(query, until_ms);
        query.push(" and r.arrived_at_ms < ").push_bind(until_ms);
    }
}

/// Appends the greatest id of those that arrived before the end of this instant's minute.
fn push_last_id(query: &mut QueryBuilder<Sqlite>, until_ms: i64) {
    query.push("(select max(last_id) from traffic_minutes where minute <= ");
    query.push_bind(minute_of(until_ms)).push(")");
}

fn push_search(query: &mut QueryBuilder<Sqlite>, text: &str) {
    if is_request_id(text) {
        query
            .push(" and r.request_id in (")
            .push_bind(text)
            .push(", ")
            .push_bind(text.to_ascii_lowercase())
            .push(")");
        return;
    }
    let pattern = format!("%{}%", escape_like(text));
    query.push(" and (");
    for (position, column) in ["model", "error_code", "error_message"].into_iter().enumerate() {
        query
            .push(if position == 0 { "" } else { " or " })
            .push(format_args!("coalesce(c.{column}, r.{column})"))
            .push(" like ");
        query.push_bind(pattern.clone()).push(r" escape '\'");
    }
    query.push(")");
}

fn is_request_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Takes their meaning from the signs that have one in a `like` pattern.
fn escape_like(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
