//! What a dry run says.

use super::plan;
use crate::{
    api::ExplainCall,
    pages::request::yard_view::YardView,
    ui::{
        format,
        note::{Empty, Failure, Note, Tone},
        panel::Panel,
    },
};
use leptos::prelude::*;
use switchyard_api::{ApiError, Explained, Timestamp, WouldFail};

/// The answer to `call` with the moment it was given, or why there is none.
pub fn view(call: &ExplainCall, answer: Result<Option<(Timestamp, Explained)>, ApiError>) -> AnyView {
    let (age, sentence, body) = match answer {
        Ok(Some((at, explained))) => (
            format!("as of {}", format::clock(at)),
            sentence(&explained),
            explained_view(call, &explained),
        ),
        Ok(None) => (String::new(), String::new(), nothing()),
        Err(fault) => (
            String::new(),
            String::new(),
            view! { <Failure what="The dry run" fault=fault/> }.into_any(),
        ),
    };
    let aside = view! { <span class="age">{age}</span> }.into_any();
    // Always there, so that a screen reader tells what comes into it.
    view! { <Panel title="What would happen" aside=aside class="w8"><p role="status">{sentence}</p>{body}</Panel> }
        .into_any()
}

fn nothing() -> AnyView {
    view! { <Empty title="No call has been tried">"Say what an application would ask for: this shows which targets would be called, in which order, and why the others would not."</Empty> }.into_any()
}

fn explained_view(call: &ExplainCall, explained: &Explained) -> AnyView {
    let facts = facts(call, explained)
        .into_iter()
        .map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }.into_any());
    let fails = explained.error.as_ref().map(fails);
    let yard = plan::yard(explained);
    view! {
        <div class="stack told">
            {fails}
            <dl class="facts">{facts.collect_view()}</dl>
            <YardView yard=yard/>
        </div>
    }
    .into_any()
}

/// Where the call would go.
pub fn sentence(explained: &Explained) -> String {
    let names: Vec<_> = explained.order.iter().map(String::as_str).collect();
    match &names[..] {
        [] => "No target would be called.".to_owned(),
        [only] => format!("{only} would be called; nothing stands behind it."),
        [first, rest @ ..] => format!("{first} would be called; behind it {}.", stand(rest)),
    }
}

fn stand(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "stands" } else { "stand" };
    format!("{verb} {}", format::listed(names))
}

fn fails(WouldFail { status, error }: &WouldFail) -> AnyView {
    let field = error.param.as_ref().map(|param| format!(" (field {param})"));
    let (head, message) = (format!("{status} {}", error.code), error.message.clone());
    view! { <Note tone=Tone::Bad>"The caller would be told: "<strong><code>{head}</code></strong>" "<span class="text">{message}{field}</span></Note> }.into_any()
}

fn facts(call: &ExplainCall, explained: &Explained) -> Vec<(&'static str, String)> {
    let by = match explained.route_by.as_str() {
        "default" => "as nothing names another",
        "model" => "named by the model",
        "header" => "named by the header X-Gateway-Route",
        "key" => "set on the key",
        "project" => "set on the key's project",
        other => other,
    };
    let model = match &explained.model {
        model if *model == call.model => model.clone(),
        model => format!("{model}, asked for as {}", call.model),
    };
    let mut facts = vec![
        ("Route", format!("{}, {by}", explained.route)),
        ("Strategy", explained.strategy.clone()),
        ("Model", model),
    ];
    facts.extend(explained.variant.clone().map(|variant| ("Variant", variant)));
    facts
}
