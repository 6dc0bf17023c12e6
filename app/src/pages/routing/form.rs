//! The call to try out, as a form.

use super::call;
use crate::{
    api::ExplainCall,
    browser,
    ui::{
        field::Field,
        panel::Panel,
        typed::{checked, typed},
    },
};
use leptos::{ev::SubmitEvent, prelude::*};

/// Longest prompt, in characters: it stands in the address.
const LONGEST: &str = "4000";

/// A plain form that sends itself to this page. Code only keeps empty fields out of the address and the page from loading
/// anew.
pub fn view(asked: Memo<ExplainCall>, try_out: Callback<ExplainCall>) -> AnyView {
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        try_out.run(call::from_fields(|name| browser::field(&event, name)));
    };
    let of = move |field: fn(&ExplainCall) -> String| Signal::derive(move || asked.with(field));
    let (model, route, only) = (of(|c| c.model.clone()), of(|c| c.route.clone()), of(|c| c.only.clone()));
    let most = of(|c| c.max_tokens.map(|most| most.to_string()).unwrap_or_default());
    let prompt = of(|c| c.prompt.clone());
    let stream = Signal::derive(move || asked.with(|call| call.stream));
    view! {
        <Panel title="Dry run" class="w4">
            <form class="stack" method="get" action="/routing" aria-label="Dry run" on:submit=submit>
                <p class="dim">"Says where a call would go. Nothing is sent to a provider."</p>
                <Field label="Model"><input class="input" name="model" required list="models" autocomplete="off" value=model use:typed=model/></Field>
                <Field label="Prompt" hint="Rules may look at it. It becomes part of this page's address.">
                    <textarea class="input" name="prompt" rows="3" maxlength=LONGEST use:typed=prompt inner_html=escaped(&prompt.get_untracked())></textarea>
                </Field>
                <label class="option"><input type="checkbox" name="stream" checked=stream.get_untracked() use:checked=stream/><span>"As a stream"</span></label>
                <div class="row pair">
                    <Field label="Route"><input class="input" name="route" list="routes" autocomplete="off" placeholder="by itself" value=route use:typed=route/></Field>
                    <Field label="Most tokens"><input class="input" name="max_tokens" type="number" min="1" max="1000000000" placeholder="default" value=most use:typed=most/></Field>
                </div>
                <Field label="Only these targets" hint="With commas between them."><input class="input" name="only" list="targets" autocomplete="off" placeholder="any" value=only use:typed=only/></Field>
                <div class="row"><button class="btn main">"Explain"</button></div>
            </form>
        </Panel>
    }
    .into_any()
}

/// The text that a text area begins with. As a child of its own it would get marks for hydration, which a text area shows.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Names to choose from, for a field that takes any text.
pub fn offer(id: &'static str, names: Vec<String>) -> AnyView {
    let options: Vec<_> = names
        .into_iter()
        .map(|name| view! { <option value=name></option> }.into_any())
        .collect();
    view! { <datalist id=id>{options}</datalist> }.into_any()
}
