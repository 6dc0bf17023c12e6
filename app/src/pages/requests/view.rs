//! What the request log shows.

use super::{filter::Filter, table::LogTable};
use crate::{
    browser,
    ui::{
        field::{Field, Select},
        format,
        note::{Empty, Stale},
        scroll::Scroll,
        surface,
        typed::typed,
    },
};
use leptos::{ev::SubmitEvent, prelude::*};
use switchyard_api::{ApiError, Key, LogPage, LogSummary, Range, Timestamp};

/// The sentence under the title.
pub fn finding(summary: &LogSummary, narrowed: bool) -> AnyView {
    let at_least = if summary.capped { "At least " } else { "" };
    let matching = if narrowed { " match" } else { "" };
    let text = match summary.total_entries {
        0 if narrowed => "No request matches.".to_owned(),
        0 => "No request has been recorded yet.".to_owned(),
        n => format!(
            "{at_least}{}{matching}, newest first. Every filter runs on the server and is in the address.",
            format::counted(n, "request", "requests")
        ),
    };
    view! { <p>{text}</p> }.into_any()
}

/// The filters: a plain form that sends itself to this page. Code only keeps empty fields out of the address and the page
/// from loading anew.
#[component]
pub fn FilterForm(filter: Memo<Filter>, keys: Vec<Key>, search: Callback<Filter>) -> impl IntoView {
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        search.run(Filter::from_fields(|name| browser::field(&event, name)));
    };
    let of = move |field: fn(&Filter) -> &Option<String>| {
        Signal::derive(move || filter.with(|filter| field(filter).clone().unwrap_or_default()))
    };
    let (q, model, target) = (of(|f| &f.q), of(|f| &f.model), of(|f| &f.target));
    let clear = move || {
        filter
            .with(Filter::narrows)
            .then(|| view! { <a class="btn bare" href="/requests">"Clear"</a> }.into_any())
    };
    view! {
        <form class="filters" method="get" action="/requests" role="search" aria-label="Requests" on:submit=submit>
            <Field label="Search"><input class="input" type="search" name="q" placeholder="Request id, model, error" value=q use:typed=q/></Field>
            <Field label="Surface"><Select name="surface" options=surfaces(filter) value=of(|f| &f.surface)/></Field>
            <Field label="Model"><input class="input" name="model" placeholder="any" value=model use:typed=model/></Field>
            <Field label="Target"><input class="input" name="target" placeholder="any" value=target use:typed=target/></Field>
            <Field label="Key"><Select name="api_key_id" options=key_options(keys, filter) value=of(|f| &f.api_key_id)/></Field>
            <Field label="Outcome"><Select name="outcome" options=outcomes() value=of(|f| &f.outcome)/></Field>
            <Field label="Since"><Select name="since" options=ranges(filter) value=of(|f| &f.since)/></Field>
            <div class="row"><button class="btn">"Filter"</button>{clear}</div>
        </form>
    }
}

fn option(value: &str, text: &str) -> (String, String) {
    (value.to_owned(), text.to_owned())
}

/// Every key by name. A key in the address that is not in the list stays choosable: the filter must not change by itself.
fn key_options(keys: Vec<Key>, filter: Memo<Filter>) -> Vec<(String, String)> {
    let mut options = vec![option("", "any"), option("none", "no key")];
    options.extend(keys.into_iter().map(|key| (key.id, key.name)));
    keep(filter.get_untracked().api_key_id, options)
}

/// Where calls come in. A surface in the address that is newer than this page stays choosable.
fn surfaces(filter: Memo<Filter>) -> Vec<(String, String)> {
    let mut options = vec![option("", "any")];
    options.extend(surface::ALL.map(|word| option(word, surface::title(word))));
    keep(filter.get_untracked().surface, options)
}

fn outcomes() -> Vec<(String, String)> {
    [
        ("", "any"),
        ("success", "answered"),
        ("failed", "not answered"),
        ("error", "failed"),
        ("rejected", "refused by the gateway"),
        ("partial", "cut off"),
        ("client_cancelled", "cancelled by the client"),
    ]
    .map(|(value, text)| option(value, text))
    .into()
}

fn ranges(filter: Memo<Filter>) -> Vec<(String, String)> {
    let mut options = vec![option("", "any time")];
    options.extend(Range::ALL.map(|range| option(range.as_str(), &format!("the last {}", format::range_name(range)))));
    keep(filter.get_untracked().since, options)
}

fn keep(chosen: Option<String>, mut options: Vec<(String, String)>) -> Vec<(String, String)> {
    if let Some(chosen) = chosen.filter(|chosen| options.iter().all(|(value, _)| value != chosen)) {
        options.push((chosen.clone(), chosen));
    }
    options
}

/// The rows and the way to older ones.
#[component]
pub fn Rows(filter: Filter, as_of: Timestamp, page: LogPage, fault: Option<ApiError>) -> impl IntoView {
    let shown = page.data.len() as u64;
    let of = if page.summary.capped { "at least " } else { "" };
    let newer = filter
        .before
        .is_some()
        .then(|| view! { <a class="btn" href=filter.newest()>"Newest"</a> }.into_any());
    let older = page
        .next
        .map(|next| view! { <a class="btn" href=filter.older(next)>"Older"</a> }.into_any());
    let rows = if page.data.is_empty() {
        view! { <Empty title="Nothing here">{empty(&filter)}</Empty> }.into_any()
    } else {
        view! { <Scroll label="Requests"><LogTable as_of=as_of rows=page.data/></Scroll> }.into_any()
    };
    view! {
        <Stale fault=fault/>
        <section class="panel">{rows}</section>
        <nav class="row" aria-label="Paging">
            <span class="dim">{format::count(shown)}" of "{of}{format::count(page.summary.total_entries)}" shown, as of "{format::clock(as_of)}</span>
            <span class="grow"></span>
            {newer}{older}
        </nav>
    }
}

fn empty(filter: &Filter) -> AnyView {
    if filter.narrows() {
        view! { "No request matches these filters. "<a href="/requests">"Clear them"</a>" to see all." }.into_any()
    } else if filter.before.is_some() {
        view! { "There is nothing older. "<a href="/requests">"To the newest"</a>"." }.into_any()
    } else {
        view! { "Requests appear here as soon as an application calls the gateway. Try the "<a href="/playground">"playground"</a>"." }.into_any()
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::testing::html;

    #[test]
    fn a_count_that_stopped_says_at_least() {
        let summary = LogSummary {
            total_entries: 10_000,
            capped: true,
        };
        assert!(html(finding(&summary, true)).contains("At least 10,000 requests match, newest first."));
        let none = LogSummary {
            total_entries: 0,
            capped: false,
        };
        assert!(html(finding(&none, true)).contains("No request matches."));
    }

    #[test]
    fn a_filter_that_is_not_offered_is_kept() {
        let kept = keep(Some("gone".to_owned()), outcomes());
        assert_eq!(kept.last(), Some(&option("gone", "gone")));
        assert_eq!(keep(Some("failed".to_owned()), outcomes()), outcomes());
    }
}
