//! What the page of one request shows.

use super::{translation::Translation, yard, yard_view::YardView};
use crate::{
    api::query::Query,
    pages::playground::dialect::Dialect,
    ui::{
        format,
        note::{Note, Tone},
        panel::{Head, Panel},
        scroll::Scroll,
        state::{Mark, State},
        surface,
        table::{Column, heading},
        tile::{Tile, Tiles},
    },
};
use leptos::prelude::*;
use switchyard_api::{Attempt, LogDetail, LogRow};

/// Characters of an error text that are shown at once.
const HEAD: usize = 400;

/// The page's content.
#[component]
pub fn RequestView(detail: LogDetail) -> impl IntoView {
    let yard = yard::yard(&detail);
    let LogDetail {
        row, attempts, notes, ..
    } = detail;
    let id = row.trace_id.clone();
    let caller = row.api_key_name.as_ref().map(|name| format!(" · key {name}"));
    let dialect = Dialect::of(&row.surface).filter(|dialect| *dialect != Dialect::default());
    let model = Query::default()
        .with("model", Some(&row.model))
        .with("dialect", dialect.map(Dialect::surface))
        .on("/playground");
    let was_sent = !attempts.is_empty();
    let legend = view! {
        <div class="legend"><span class="k ok">"answering"</span><span class="k wait">"waiting"</span><span class="k first">"first token"</span><span class="k bad">"failed"</span></div>
    };
    let route = match row.route.as_str() {
        "" | "default" => String::new(),
        route => format!(" · route {route}"),
    };
    let finding = format!(
        "{id} · {}{}{route}",
        format::moment(row.created_at),
        caller.unwrap_or_default()
    );
    let again = Query::default()
        .with("model", Some(&row.model))
        .with("stream", row.stream.then_some("on"))
        .with("route", Some(&row.route).filter(|route| *route != "default"))
        .on("/routing");
    view! {
        <Head title=title(&row) finding=move || view! { <p class="mono">{finding.clone()}</p> }.into_any() above=|| view! { <p><a href="/requests">"Requests"</a></p> }.into_any()>
            <a class="btn" href=again>"Dry run"</a>
            <a class="btn" href=model>"Open in playground"</a>
        </Head>
        {error(&row)}
        {tiles(&row)}
        <Panel title="What happened" aside=legend.into_any()><YardView yard=yard/></Panel>
        <div class="cols">
            <Panel title="Attempts" flush=true class="w8">{attempts_view(attempts)}</Panel>
            <Panel title="Facts" class="w4">{facts(&row)}</Panel>
            <Translation notes=notes was_sent=was_sent/>
        </div>
    }
}

/// The request in one line: what was asked, and who answered or why nobody did.
fn title(row: &LogRow) -> String {
    let by = row
        .target
        .as_deref()
        .map_or(String::new(), |target| format!(" by {target}"));
    match row.outcome.as_str() {
        "success" => format!("{}, answered{by}", row.model),
        "partial" => format!("{}, cut off while answered{by}", row.model),
        "client_cancelled" => format!("{}, cancelled by the client", row.model),
        "rejected" => format!("{}, refused by the gateway", row.model),
        _ => match row.attempts_count {
            0 => format!("{}, failed before any attempt", row.model),
            n => format!(
                "{}, failed after {}",
                row.model,
                format::counted(n.into(), "attempt", "attempts")
            ),
        },
    }
}

/// The error, with its end folded away if it is long.
fn error(row: &LogRow) -> Option<AnyView> {
    let (tone, message) = match row.outcome.as_str() {
        "success" => return None,
        "partial" | "client_cancelled" => (Tone::Warn, row.error_message.clone()?),
        _ => (
            Tone::Bad,
            row.error_message
                .clone()
                .unwrap_or_else(|| "No error text was recorded.".to_owned()),
        ),
    };
    let code = row
        .error_code
        .clone()
        .map(|code| view! { <strong><code>{code}</code></strong>" " }.into_any());
    Some(view! { <Note tone=tone>{code}<LongText text=message/></Note> }.into_any())
}

/// A text from elsewhere that may be long: its head, and all of it on demand.
#[component]
fn LongText(text: String) -> impl IntoView {
    let (head, cut) = format::head(&text, HEAD);
    let head = if cut { format!("{head}…") } else { head.to_owned() };
    let whole = cut
        .then(|| view! { <details><summary>"Show all of it"</summary><pre tabindex="0" role="region" aria-label="All of it">{text.clone()}</pre></details> }.into_any());
    view! { <span class="text">{head}</span>{whole} }
}

fn tiles(row: &LogRow) -> AnyView {
    let (_, outcome) = Mark::of_outcome(&row.outcome);
    let (stream, unpriced) = (row.stream, if row.cost_usd.is_some() { "" } else { "no price" });
    let cost = row.cost_usd.map_or_else(|| format::ABSENT.to_owned(), format::usd);
    let whole = format::millis(row.duration_ms);
    let kind = if row.stream { "stream, " } else { "" };
    let cached = match (row.cached_tokens.unwrap_or(0), row.usage_estimated) {
        (_, true) => "estimated: the answer ended before usage was reported".to_owned(),
        (0, false) => String::new(),
        (cached, false) => format!("{} of the input from cache", format::count(cached)),
    };
    let (status, first) = (row.status.to_string(), format::millis_or_absent(row.ttft_ms));
    let (tokens, overhead) = (
        format::in_out(row.prompt_tokens, row.completion_tokens),
        format::millis(row.overhead_ms),
    );
    view! {
        <Tiles label="The request in figures">
            <Tile label="Status" value=status was=format!("{kind}{outcome}")/>
            <Tile label="First token" value=first was=if stream { "from arrival" } else { "not a stream" }/>
            <Tile label="Whole" value=whole was=format!("{overhead} in the gateway")/>
            <Tile label="Tokens in / out" value=tokens was=cached/>
            <Tile label="Cost" value=cost was=unpriced/>
        </Tiles>
    }
    .into_any()
}

fn attempts_view(attempts: Vec<Attempt>) -> AnyView {
    if attempts.is_empty() {
        return view! { <p class="empty">"No upstream was called."</p> }.into_any();
    }
    let head = heading(&[
        Column::Number("No."),
        Column::Text("Target"),
        Column::Text("Model sent"),
        Column::Text("Outcome"),
        Column::Number("Started"),
        Column::Number("First token"),
        Column::Number("Took"),
    ]);
    let rows: Vec<_> = attempts.into_iter().map(attempt_view).collect();
    view! { <Scroll label="Attempts"><table class="table">{head}<tbody>{rows}</tbody></table></Scroll> }.into_any()
}

fn attempt_view(attempt: Attempt) -> AnyView {
    let mark = if attempt.outcome == "success" {
        Mark::Ok
    } else {
        Mark::Bad
    };
    let outcome = match attempt.status {
        Some(status) => format!("{} ({status})", attempt.outcome),
        None => attempt.outcome.clone(),
    };
    let error = attempt
        .error
        .map(|text| view! { <tr><td></td><td class="wrap dim" colspan="6"><LongText text=text/></td></tr> }.into_any());
    view! {
        <tr>
            <td class="n">{attempt.number}</td>
            <td title=attempt.provider>{attempt.target}</td>
            <td class="clip" title=attempt.model.clone()>{attempt.model.clone()}</td>
            <td><State mark=mark text=outcome/></td>
            <td class="n">{format!("+{}", format::millis(attempt.started_ms))}</td>
            <td class="n">{format::millis_or_absent(attempt.ttft_ms)}</td>
            <td class="n">{format::millis(attempt.latency_ms)}</td>
        </tr>
        {error}
    }
    .into_any()
}

fn facts(row: &LogRow) -> AnyView {
    let or_absent = |text: &Option<String>| text.clone().unwrap_or_else(|| format::ABSENT.to_owned());
    let simulated = row.simulated.then(|| {
        (
            "Simulated",
            "yes: the built-in demo provider answered, no model".to_owned(),
        )
    });
    let variant = row.variant.clone().map(|variant| ("Variant", variant));
    let route = Some(row.route.clone()).filter(|route| !route.is_empty());
    let facts = [
        ("Route", or_absent(&route)),
        ("Model asked", row.model.clone()),
        ("Model sent", or_absent(&row.upstream_model)),
        ("Provider", or_absent(&row.provider)),
        (
            "Surface",
            format!(
                "{}{}",
                surface::title(&row.surface),
                if row.stream { ", streamed" } else { "" }
            ),
        ),
        ("Key", or_absent(&row.api_key_name)),
        ("Row", row.id.to_string()),
        ("Tokens in all", format::count_or_absent(row.total_tokens)),
    ];
    // Most upstreams tell only some of these, and some none.
    let details = [
        ("Read from cache", row.cached_tokens),
        ("Written to cache", row.cache_write_tokens),
        ("Reasoning tokens", row.reasoning_tokens),
        ("Audio tokens in", row.audio_prompt_tokens),
        ("Audio tokens out", row.audio_completion_tokens),
    ];
    let details = details
        .into_iter()
        .filter_map(|(name, tokens)| Some((name, format::count(tokens?))));
    let facts = facts
        .into_iter()
        .chain(details)
        .chain(variant)
        .chain(simulated)
        .map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }.into_any());
    view! { <dl class="facts">{facts.collect_view()}</dl> }.into_any()
}

#[cfg(test)]
#[path = "view/tests.rs"]
pub mod tests;
