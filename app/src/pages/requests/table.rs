//! Rows of the request log.

use crate::ui::{
    format,
    state::{Mark, State},
    surface,
    table::{Column, Moment, heading},
};
use leptos::prelude::*;
use switchyard_api::{LogRow, Timestamp};

/// The table. A time of another day than `as_of` has its date with it.
#[component]
pub fn LogTable(as_of: Timestamp, rows: Vec<LogRow>) -> impl IntoView {
    let today = as_of.date();
    let head = heading(&[
        Column::Text("Time, UTC"),
        Column::Text("Model asked"),
        Column::Text("Answered by"),
        Column::Text("Status"),
        Column::Number("Tried"),
        Column::Number("First token"),
        Column::Number("Whole"),
        Column::Number("Tokens in / out"),
        Column::Number("Cost"),
        Column::Text("Key"),
        Column::Text("Notes"),
    ]);
    let rows: Vec<_> = rows.into_iter().map(|row| row_view(row, &today)).collect();
    view! { <table class="table linked">{head}<tbody>{rows}</tbody></table> }
}

fn row_view(row: LogRow, today: &str) -> AnyView {
    let date = row.created_at.date();
    let time = row.created_at.clock();
    let time = if date == today { time } else { format!("{date} {time}") };
    let (mark, _) = Mark::of_outcome(&row.outcome);
    let notes = notes(&row);
    let target = match &row.target {
        Some(target) if row.status < 400 => target.clone(),
        _ => format::ABSENT.to_owned(),
    };
    let cost = if row.total_tokens.is_some() {
        format::usd_or_no_price(row.cost_usd)
    } else {
        format::ABSENT.to_owned()
    };
    view! {
        <tr>
            <td class="mono"><a href=address(&row)><Moment at=row.created_at text=time/></a></td>
            <td class="clip" title=row.model.clone()>{row.model.clone()}</td>
            <td>{target}</td>
            <td><State mark=mark text=row.status.to_string()/></td>
            <td class="n">{row.attempts_count}</td>
            <td class="n">{format::millis_or_absent(row.ttft_ms)}</td>
            <td class="n">{format::millis(row.duration_ms)}</td>
            <td class="n">{tokens(&row)}</td>
            <td class="n">{cost}</td>
            <td class="clip">{row.api_key_name.unwrap_or_else(|| format::ABSENT.to_owned())}</td>
            <td class="dim clip" title=notes.clone()>{notes.clone()}</td>
        </tr>
    }
    .into_any()
}

/// The page of a request. Rows from before request ids were kept are found by their number.
pub fn address(row: &LogRow) -> String {
    let id = if row.trace_id.is_empty() {
        row.id.to_string()
    } else {
        crate::api::query::segment(&row.trace_id)
    };
    format!("/requests/{id}")
}

/// Tokens in and out; an estimate says so.
fn tokens(row: &LogRow) -> String {
    let counted = format::in_out(row.prompt_tokens, row.completion_tokens);
    if row.usage_estimated {
        format!("about {counted}")
    } else {
        counted
    }
}

/// What else is worth a word: trouble first.
fn notes(row: &LogRow) -> String {
    let trouble = match (row.outcome.as_str(), &row.error_code) {
        ("success", _) => None,
        (outcome, None) => Some(Mark::of_outcome(outcome).1.to_owned()),
        ("partial" | "client_cancelled", Some(code)) => Some(format!("{}: {code}", Mark::of_outcome(&row.outcome).1)),
        (_, Some(code)) => Some(code.clone()),
    };
    let route = (!matches!(row.route.as_str(), "" | "default")).then(|| format!("route {}", row.route));
    let variant = row.variant.as_ref().map(|variant| format!("variant {variant}"));
    let surface = (row.surface != "chat").then(|| surface::name(&row.surface).to_owned());
    let stream = row.stream.then(|| "stream".to_owned());
    let simulated = row.simulated.then(|| "simulated".to_owned());
    [trouble, route, variant, surface, stream, simulated]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::{pages::request::view::tests::row, testing::html};

    #[test]
    fn what_is_not_known_is_a_dash_and_trouble_comes_first() {
        let refused = LogRow {
            outcome: "rejected".to_owned(),
            status: 429,
            error_code: Some("rate_limit_exceeded".to_owned()),
            target: None,
            prompt_tokens: None,
            completion_tokens: None,
            total_tokens: None,
            ttft_ms: None,
            ..row()
        };
        let html = html(row_view(refused, "2026-11-30"));
        assert!(html.contains(r#"<span class="state bad">429</span>"#), "{html}");
        assert!(
            html.contains("– / –") && html.contains("rate_limit_exceeded, stream"),
            "{html}"
        );
        assert!(!html.contains("no price"), "{html}");
    }

    #[test]
    fn another_days_time_has_its_date() {
        assert!(html(row_view(row(), "2026-11-30")).contains(">03:14:07.912<"));
        assert!(html(row_view(row(), "2026-12-01")).contains(">2026-11-30 03:14:07.912<"));
    }
}
