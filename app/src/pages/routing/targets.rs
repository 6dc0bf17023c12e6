//! Every target, as it stands now.

use super::state::word;
use crate::ui::{
    format,
    note::Empty,
    panel::Panel,
    scroll::Scroll,
    state::State,
    table::{Column, heading},
};
use leptos::prelude::*;
use switchyard_api::{CredentialState, QuotaUse, TargetState, Targets, Timestamp};

/// The table. It is drawn anew every few seconds, in place.
pub fn view(targets: &Targets) -> AnyView {
    let (now, window) = (targets.as_of, format::span(i64::from(targets.window_s) * 1_000));
    let age = format!("calls of the last {window} · as of {}", format::clock(now));
    let aside = view! { <span class="age">{age}</span> }.into_any();
    let body = if targets.data.is_empty() {
        view! { <Empty title="No targets yet">"The configuration's "<code>"targets"</code>" say who may answer a call."</Empty> }.into_any()
    } else {
        let rows: Vec<_> = targets.data.iter().map(|target| row(target, now)).collect();
        view! { <Scroll label="Targets"><table class="table">{head()}<tbody>{rows}</tbody></table></Scroll> }.into_any()
    };
    view! { <Panel title="Targets" aside=aside flush=true>{body}</Panel> }.into_any()
}

fn head() -> AnyView {
    heading(&[
        Column::Text("Target"),
        Column::Text("State"),
        Column::Text("Why, and until when"),
        Column::Number("Calls"),
        Column::Number("Success"),
        Column::Number("Median latency"),
        Column::Number("In flight"),
        Column::Text("Breaker"),
        Column::Text("Quota used"),
        Column::Text("Credentials"),
    ])
}

fn row(target: &TargetState, now: Timestamp) -> AnyView {
    let (mark, word) = word(&target.state);
    let (name, about) = (target.target.clone(), about(target));
    view! {
        <tr>
            <th scope="row">{name}<small>{about}</small></th>
            <td><State mark=mark text=word/></td>
            {cell("wrap", why(target, now))}
            {cell("n", calls(target))}
            {cell("n", vec![target.success_rate.map_or_else(absent, percent)])}
            {cell("n", latency(target))}
            {cell("n", flight(target))}
            {cell("", breaker(target, now))}
            {quotas(&target.quota)}
            {cell("", credentials(&target.credentials, now))}
        </tr>
    }
    .into_any()
}

/// A cell of one or more lines; none at all is the dash.
fn cell(class: &'static str, mut lines: Vec<String>) -> AnyView {
    if lines.is_empty() {
        lines.push(absent());
    }
    let lines: Vec<_> = lines
        .into_iter()
        .map(|line| view! { <div>{line}</div> }.into_any())
        .collect();
    view! { <td class=class>{lines}</td> }.into_any()
}

fn absent() -> String {
    format::ABSENT.to_owned()
}

/// A part of a whole, rounded down: all of it alone is 100 %.
fn percent(part: f64) -> String {
    const WHOLE: f64 = 1e9;
    format::share((part * WHOLE).round() as u64, WHOLE as u64)
}

/// What stands below the name: who it is and what it serves.
fn about(target: &TargetState) -> String {
    let provider = match &target.provider {
        provider if *provider == target.target => String::new(),
        provider => format!("{provider}, "),
    };
    let simulated = if target.simulated { "simulated, " } else { "" };
    let serves = match &target.models[..] {
        [] => "any model".to_owned(),
        [model] => model.clone(),
        models => format!("{} models", format::count(models.len() as u64)),
    };
    format!("{provider}{simulated}{serves}")
}

fn why(target: &TargetState, now: Timestamp) -> Vec<String> {
    let until = target.until.map(|until| format!("until {}", format::when(until, now)));
    let parked = target.parked_until.filter(|parked| target.until != Some(*parked));
    let parked = parked.map(|parked| format!("parked until {}", format::when(parked, now)));
    target.reason.clone().into_iter().chain(until).chain(parked).collect()
}

fn breaker(target: &TargetState, now: Timestamp) -> Vec<String> {
    let Some(breaker) = &target.breaker else {
        return vec!["none".to_owned()];
    };
    let (state, more) = match breaker.state.as_str() {
        "closed" => (
            "closed",
            Some(format!(
                "{} of {} failures",
                breaker.failures, breaker.failure_threshold
            )),
        ),
        "half_open" => ("half-open", Some("lets probes through".to_owned())),
        // Beside the reason it stands already, unless that is another one.
        state => (
            state,
            breaker
                .until
                .filter(|until| target.until != Some(*until))
                .map(|until| format!("until {}", format::when(until, now))),
        ),
    };
    std::iter::once(state.to_owned()).chain(more).collect()
}

/// `3 of 10` and, where there is a queue, how many wait.
fn flight(target: &TargetState) -> Vec<String> {
    let of = |n: u32, most: Option<u32>| most.map_or_else(|| n.to_string(), |most| format!("{n} of {most}"));
    let mut lines = vec![of(target.in_flight, target.max_concurrency)];
    if target.queued > 0 || target.queue_size.is_some() {
        lines.push(format!("{} queued", of(target.queued, target.queue_size)));
    }
    lines
}

fn latency(target: &TargetState) -> Vec<String> {
    let line = |latency: &switchyard_api::ModelLatency| {
        let samples = format::counted(latency.samples.into(), "call", "calls");
        format!("{} {} ({samples})", latency.model, format::millis(latency.p50_ms))
    };
    target.latency.iter().map(line).collect()
}

fn calls(target: &TargetState) -> Vec<String> {
    let share = target.share.map(|share| format!("{} of all", percent(share)));
    std::iter::once(format::count(target.calls)).chain(share).collect()
}

fn quotas(quotas: &[QuotaUse]) -> AnyView {
    if quotas.is_empty() {
        return cell("", vec!["no limit".to_owned()]);
    }
    let line = |quota: &QuotaUse| {
        let limit = match quota.limit.as_str() {
            "rpm" => "requests a minute",
            "rpd" => "requests a day",
            "tpm" => "tokens a minute",
            "tpd" => "tokens a day",
            other => other,
        };
        let (used, most) = (format::short(quota.used), format::short(quota.most));
        let text = format!("{used} of {most} {limit}");
        // The text beside it says the same: to a screen reader the bar would only say it twice.
        view! { <div><meter value=quota.used.to_string() max=quota.most.to_string() aria-hidden="true"></meter>" "{text}</div> }.into_any()
    };
    view! { <td>{quotas.iter().map(line).collect_view()}</td> }.into_any()
}

fn credentials(credentials: &[CredentialState], now: Timestamp) -> Vec<String> {
    if credentials.is_empty() {
        return vec!["none needed".to_owned()];
    }
    let benched: Vec<_> = credentials.iter().filter(|one| one.state != "ready").collect();
    let (all, ready) = (credentials.len(), credentials.len() - benched.len());
    let mut lines = vec![if benched.is_empty() {
        format!("{all} ready")
    } else {
        format!("{ready} of {all} ready")
    }];
    lines.extend(benched.into_iter().map(|one| {
        let why = one.reason.as_ref().map(|why| format!(": {why}"));
        let until = one.until.map(|until| format!(", until {}", format::when(until, now)));
        [
            &one.id,
            " ",
            &one.state,
            &why.unwrap_or_default(),
            &until.unwrap_or_default(),
        ]
        .concat()
    }));
    lines
}
