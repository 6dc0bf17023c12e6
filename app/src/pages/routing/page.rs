//! What the page asks for.

use super::{call, form, result, view};
use crate::{
    api::{api, asked::ask, bounded},
    browser,
    pages::playground::page::models,
    ui::{kept::Kept, note::Loading, poll, ready::ready},
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::{
    NavigateOptions,
    hooks::{use_navigate, use_query_map},
};

/// Seconds between two looks at the targets.
const EVERY: u64 = 5;

/// The page. The targets refresh by themselves; a dry run is of its moment and stays until the next.
#[component]
pub fn Routing() -> impl IntoView {
    let query = use_query_map();
    let asked = Memo::new(move |_| query.with(|query| call::from_fields(|name| query.get(name))));

    let (targets_api, explain_api) = (api(), api());
    let targets = ask(|| (), move |()| bounded(targets_api.targets()));
    let explained = ask(
        move || asked.get(),
        move |call| {
            // The moment travels with the answer, so that both sides tell the same.
            let answer = (!call.model.is_empty()).then(|| (browser::now(), bounded(explain_api.explain(call))));
            async move {
                match answer {
                    Some((at, answer)) => answer.await.map(|explained| Some((at, explained))),
                    None => Ok(None),
                }
            }
        },
    );
    // Only to offer names: without them the form still works.
    let models = models();
    poll::every(EVERY, ready(), move || targets.refetch());

    let navigate = use_navigate();
    let try_out = Callback::new(move |call| {
        if asked.with_untracked(|before| *before == call) {
            return explained.refetch();
        }
        let stay = NavigateOptions {
            scroll: false,
            ..NavigateOptions::default()
        };
        navigate(&call::address(&call), stay);
    });
    let kept = Kept::default();
    view! {
        <Title text="Routing · Switchyard"/>
        <Transition fallback=|| view! { <Loading/> }.into_any()>
            {move || Suspend::new(async move { view::live(kept.settle((), targets.await)) })}
        </Transition>
        <div class="cols">
            {form::view(asked, try_out)}
            <Transition fallback=|| view! { <Loading/> }.into_any()>
                {move || {
                    let call = asked.get();
                    Suspend::new(async move { result::view(&call, explained.await) })
                }}
            </Transition>
        </div>
        <Transition>
            {move || Suspend::new(async move {
                form::offer("models", models.await.unwrap_or_default())
            })}
        </Transition>
    }
}
