//! What the overview shows.

use crate::{
    pages::requests::table::LogTable,
    ui::{
        chart::Chart,
        format,
        note::{Empty, Failure, Note, Stale, Tone},
        panel::{Head, Panel},
        scroll::Scroll,
        tile::{Tile, Tiles},
    },
};
use leptos::prelude::*;
use switchyard_api::{ApiError, Dashboard, LogRow, Range, Summary, Timestamp};

/// The upper part: the finding, the figures, the chart. The range can be changed even when the figures failed.
pub fn figures(range: Range, dashboard: Result<(Dashboard, Option<ApiError>), ApiError>) -> AnyView {
    let finding = dashboard
        .as_ref()
        .map(|(dashboard, _)| dashboard.finding.clone())
        .unwrap_or_default();
    let body = match dashboard {
        Ok((dashboard, fault)) => view! { <Stale fault=fault/>{body(dashboard)} }.into_any(),
        Err(fault) => view! { <Failure what="The overview" fault=fault/> }.into_any(),
    };
    view! {
        <Head title="Overview" finding=move || view! { <p>{finding.clone()}</p> }.into_any()>
            <Ranges range=range/>
        </Head>
        {body}
    }
    .into_any()
}

/// The ranges as links: the choice is in the address, and works without code.
#[component]
fn Ranges(range: Range) -> impl IntoView {
    let chip = move |this: Range| {
        let current = (this == range).then_some("true");
        view! { <a class="chip" href=format!("/?range={}", this.as_str()) aria-current=current data-noscroll="">{format::range_name(this)}</a> }.into_any()
    };
    view! { <nav class="chips" aria-label="Time range">{Range::ALL.map(chip).collect_view()}</nav> }
}

fn body(dashboard: Dashboard) -> AnyView {
    let traffic = dashboard.traffic.clone();
    let age = format!("as of {}", format::clock(traffic.as_of));
    let unit = match traffic.bucket_minutes {
        1 => "a minute".to_owned(),
        minutes if minutes % 60 == 0 => format!("in {} h", minutes / 60),
        minutes => format!("in {minutes} min"),
    };
    let aside = view! {
        <div class="legend"><span class="k c1">"answered"</span><span class="k bad">"failed"</span><span>{unit}</span></div>
        <span class="age">{age}</span>
    };
    let unlogged = (!dashboard.request_logs.enabled).then(|| {
        view! { <Note tone=Tone::Warn>"The request log is off, so there is nothing to count. Switch it on in the configuration to see traffic here."</Note> }.into_any()
    });
    view! {
        {unlogged}
        <TrafficTiles range=traffic.range now=traffic.now.clone() before=traffic.before.clone()/>
        <Panel title="Requests" aside=aside.into_any()><Chart traffic=traffic/></Panel>
        <StockTiles dashboard=dashboard/>
    }
    .into_any()
}

#[component]
fn TrafficTiles(range: Range, now: Summary, before: Summary) -> impl IntoView {
    let was = move |value: String| {
        if value == format::ABSENT {
            String::new()
        } else {
            format!("{value} {}", format::range_before(range))
        }
    };
    let answered = |of: &Summary| format::share(of.requests.saturating_sub(of.failed), of.requests);
    let failed = match now.failed {
        0 => String::new(),
        failed => format!("{} failed", format::count(failed)),
    };
    let sampled = (now.sampled > 0 && now.sampled < now.requests).then(|| {
        view! { <p class="dim">"Median and p99 are those of the newest "{format::counted(now.sampled, "request", "requests")}"."</p> }.into_any()
    });
    view! {
        <Tiles label="Traffic">
            <Tile label="Requests" value=format::count(now.requests) unit=format::rate(now.requests, range) was=was(format::count(before.requests))/>
            <Tile label="Answered" value=answered(&now) unit=failed was=was(answered(&before))/>
            <Tile label="First token, median" value=format::millis_or_absent(now.first_token_p50_ms) was=was(format::millis_or_absent(before.first_token_p50_ms))/>
            <Tile label="Gateway adds, p99" value=format::millis_or_absent(now.overhead_p99_ms) was=was(format::millis_or_absent(before.overhead_p99_ms))/>
            <Tile label="Tokens in" value=format::short(now.prompt_tokens) was=was(format::short(before.prompt_tokens))/>
            <Tile label="Tokens out" value=format::short(now.completion_tokens) was=was(format::short(before.completion_tokens))/>
        </Tiles>
        {sampled}
    }
}

/// What there is at this moment, whatever the range.
#[component]
fn StockTiles(dashboard: Dashboard) -> impl IntoView {
    let (providers, keys) = (dashboard.providers, dashboard.keys);
    let away = match providers.total.saturating_sub(providers.available) {
        0 => "all of them".to_owned(),
        away => format!("{} cannot be used", format::count(away)),
    };
    let expired = if keys.expired == 0 {
        "none expired".to_owned()
    } else {
        format!("{} expired", format::count(keys.expired))
    };
    view! {
        <Tiles label="Now">
            <Tile label="Providers available" value=format::count(providers.available) unit=format!("of {}", format::count(providers.total)) was=away/>
            <Tile label="Keys live" value=format::count(keys.active) unit=format!("of {}", format::count(keys.total)) was=expired/>
            <Tile label="Requests in the log" value=format::count(dashboard.request_logs.total) was="since it began"/>
        </Tiles>
    }
}

/// The newest rows of the request log.
#[component]
pub fn RecentRequests(as_of: Timestamp, rows: Vec<LogRow>, fault: Option<ApiError>) -> impl IntoView {
    let aside = view! { <a class="age" href="/requests">"all requests"</a> }.into_any();
    let body = if rows.is_empty() {
        view! {
            <Empty title="No requests yet">
                "Call "<code>"/v1/chat/completions"</code>" with a key of this gateway, or try the "<a href="/playground">"playground"</a>"."
            </Empty>
        }
        .into_any()
    } else {
        view! { <Scroll label="Newest requests"><LogTable as_of=as_of rows=rows/></Scroll> }.into_any()
    };
    view! { <Stale fault=fault/><Panel title="Newest requests" aside=aside flush=true>{body}</Panel> }
}
