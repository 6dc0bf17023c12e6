//! Query strings of the admin API and of the dashboard's own addresses.

use std::fmt::Write;
use switchyard_api::{LogQuery, Timestamp};

/// A query string under construction. Empty values are left out: absent and empty mean the same.
#[derive(Default)]
pub struct Query(String);

impl Query {
    /// Adds a pair, if there is a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        if let Some(value) = value.as_ref().map(AsRef::as_ref).filter(|value| !value.is_empty()) {
            self.0.push(if self.0.is_empty() { '?' } else { '&' });
            self.0.push_str(name);
            self.0.push('=');
            escape(value, &mut self.0);
        }
        self
    }

    /// `path?name=value`, or the path alone.
    #[must_use]
    pub fn on(self, path: &str) -> String {
        format!("{path}{}", self.0)
    }
}

/// The address of a page of logs in the admin API.
#[must_use]
pub fn logs(query: &LogQuery) -> String {
    Query::default()
        .with("limit", query.limit.map(|n| n.to_string()))
        .with("offset", query.offset.map(|n| n.to_string()))
        .with("before", query.before.map(|n| n.to_string()))
        .with("stage", query.stage.as_ref())
        .with("surface", query.surface.as_ref())
        .with("model", query.model.as_ref())
        .with("provider", query.provider.as_ref())
        .with("target", query.target.as_ref())
        .with("api_key_id", query.api_key_id.as_ref())
        .with("outcome", query.outcome.as_ref())
        .with("since", query.since.map(Timestamp::rfc3339))
        .with("until", query.until.map(Timestamp::rfc3339))
        .with("q", query.q.as_ref())
        .on("/admin/logs")
}

/// A text as one segment of a path.
#[must_use]
pub fn segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    escape(text, &mut escaped);
    escaped
}

/// Leaves RFC 3986's unreserved characters and writes every other byte as `%XX`.
fn escape(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => into.push(char::from(byte)),
            // Writing to a `String` cannot fail.
            _ => drop(write!(into, "%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_written_and_everything_odd_is_escaped() {
        let query = LogQuery {
            limit: Some(50),
            surface: Some("messages".to_owned()),
            model: Some("openai/gpt 4o&x=é".to_owned()),
            target: Some(String::new()),
            since: Some(Timestamp(1_796_008_447_912)),
            ..LogQuery::default()
        };
        assert_eq!(
            logs(&query),
            "/admin/logs?limit=50&surface=messages&model=openai%2Fgpt%204o%26x%3D%C3%A9&since=2026-11-30T03%3A14%3A07.912Z"
        );
        assert_eq!(logs(&LogQuery::default()), "/admin/logs");
    }
}
