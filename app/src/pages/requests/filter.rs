//! The filters, between an address and a query.
//!
//! The address is the only place where they live: a link, the back button and a page without code all mean the same.

use crate::api::query::Query;
use leptos_router::params::ParamsMap;
use switchyard_api::{LogQuery, Range, Timestamp};

/// Rows on a page.
pub const LIMIT: u32 = 50;

/// What the address says. Empty and absent are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub q: Option<String>,
    /// Where it came in.
    pub surface: Option<String>,
    pub model: Option<String>,
    pub target: Option<String>,
    pub api_key_id: Option<String>,
    pub outcome: Option<String>,
    /// A range such as `1h`, or a moment.
    pub since: Option<String>,
    /// Where an older page begins.
    pub before: Option<i64>,
}

impl Filter {
    pub fn of(params: &ParamsMap) -> Self {
        Self::from_fields(|name| params.get(name))
    }

    /// Reads each field by its name, from an address or from a form.
    pub fn from_fields(field: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name| {
            field(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        Self {
            q: text("q"),
            surface: text("surface"),
            model: text("model"),
            target: text("target"),
            api_key_id: text("api_key_id"),
            outcome: text("outcome"),
            since: text("since"),
            before: text("before").and_then(|before| before.parse().ok()),
        }
    }

    /// The address of the newest page with these filters.
    pub fn newest(&self) -> String {
        self.address(None)
    }

    /// The address of the page whose rows are older than `before`.
    pub fn older(&self, before: i64) -> String {
        self.address(Some(before))
    }

    fn address(&self, before: Option<i64>) -> String {
        Query::default()
            .with("q", self.q.as_ref())
            .with("surface", self.surface.as_ref())
            .with("model", self.model.as_ref())
            .with("target", self.target.as_ref())
            .with("api_key_id", self.api_key_id.as_ref())
            .with("outcome", self.outcome.as_ref())
            .with("since", self.since.as_ref())
            .with("before", before.map(|before| before.to_string()))
            .on("/requests")
    }

    /// The query for the admin API. A range counts back from `now`.
    pub fn query(&self, now: Timestamp) -> LogQuery {
        let since = self.since.as_deref().and_then(|since| match Range::parse(since) {
            Some(range) => Some(Timestamp(now.0 - range.minutes() * 60_000)),
            None => Timestamp::parse(since),
        });
        LogQuery {
            limit: Some(LIMIT),
            before: self.before,
            surface: self.surface.clone(),
            model: self.model.clone(),
            target: self.target.clone(),
            api_key_id: self.api_key_id.clone(),
            outcome: self.outcome.clone(),
            q: self.q.clone(),
            since,
            ..LogQuery::default()
        }
    }

    /// Whether anything is left out, paging aside.
    pub fn narrows(&self) -> bool {
        Self {
            before: None,
            ..self.clone()
        } != Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> Filter {
        Filter::from_fields(|name| {
            fields
                .iter()
                .find(|(field, _)| *field == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_empty_form_is_no_filter() {
        let filter = of(&[("q", ""), ("model", "  "), ("outcome", ""), ("before", "x")]);
        assert_eq!(filter, Filter::default());
        assert_eq!(filter.newest(), "/requests");
        assert!(!filter.narrows() && !of(&[("before", "9")]).narrows());
    }

    #[test]
    fn the_address_keeps_the_filters_when_it_turns_a_page() {
        let filter = of(&[
            ("q", "rate limit"),
            ("surface", "messages"),
            ("outcome", "failed"),
            ("before", "900"),
        ]);
        let newest = "/requests?q=rate%20limit&surface=messages&outcome=failed";
        assert_eq!(filter.older(400), format!("{newest}&before=400"));
        assert_eq!(filter.newest(), newest);
        assert_eq!(filter.query(Timestamp(0)).surface.as_deref(), Some("messages"));
    }

    #[test]
    fn since_is_a_range_that_moves_or_a_moment_that_stays() {
        let now = Timestamp(1_796_008_447_912);
        assert_eq!(
            of(&[("since", "15m")]).query(now).since,
            Some(Timestamp(now.0 - 900_000))
        );
        let moment = of(&[("since", "2026-11-30T03:00:00Z")]).query(now).since;
        assert_eq!(
            moment.map(Timestamp::rfc3339).as_deref(),
            Some("2026-11-30T03:00:00.000Z")
        );
        assert_eq!(of(&[("since", "lately")]).query(now).since, None);
    }
}
