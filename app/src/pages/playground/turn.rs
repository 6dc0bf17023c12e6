//! One turn of the conversation.

use super::talk::{Answer, Turn};
use crate::api::query;
use leptos::prelude::*;

/// A turn; an answer's parts follow its signal one by one, so that a new word does not draw the old ones again.
#[component]
pub fn TurnView(turn: Turn) -> impl IntoView {
    match turn {
        Turn::User(text) => {
            view! { <div class="turn"><span class="who">"You"</span><p class="said-text">{text}</p></div> }.into_any()
        }
        Turn::Model { name, answer } => {
            view! { <div class="turn"><span class="who">{name}</span><div>{answer_view(answer.into())}</div></div> }
                .into_any()
        }
    }
}

fn answer_view(answer: RwSignal<Answer>) -> AnyView {
    let part = move |read: fn(&Answer) -> String| Memo::new(move |_| answer.with(read));
    let text = part(|answer| answer.text.clone());
    let reasoning = part(|answer| answer.reasoning.clone());
    let waiting = Memo::new(move |_| answer.with(|answer| !answer.done && !answer.has_content()));
    let calls = Memo::new(move |_| answer.with(|answer| answer.calls.clone()));
    let cut = Memo::new(move |_| answer.with(|answer| answer.cut.clone()));
    let has_reasoning = Memo::new(move |_| !reasoning.read().is_empty());
    view! {
        {move || waiting.get().then(|| view! { <p class="dim" role="status">"Waiting for the first token…"</p> }.into_any())}
        {move || has_reasoning.get().then(|| view! { <details class="dim"><summary>"Reasoning"</summary><p class="said-text">{reasoning}</p></details> }.into_any())}
        <p class="said-text">{text}</p>
        {move || calls.get().into_iter().map(|call| {
            view! { <p class="call"><span class="dim">"Tool call "</span><code>{format!("{}({})", call.name, call.arguments)}</code></p> }.into_any()
        }).collect_view()}
        {move || cut.get().map(|why| view! { <p class="state warn">{why}</p> }.into_any())}
        {move || meta(answer)}
    }
    .into_any()
}

/// What is known about the answer, once it is there.
fn meta(answer: RwSignal<Answer>) -> Option<AnyView> {
    let answer = answer.read();
    if !answer.done {
        return None;
    }
    let words: Vec<_> = answer
        .facts
        .words()
        .into_iter()
        .map(|word| view! { <span>{word}</span> }.into_any())
        .collect();
    let request = answer
        .facts
        .request_id
        .clone()
        .map(|id| view! { <a href=format!("/requests/{}", query::segment(&id))>"request"</a> }.into_any());
    Some(view! { <div class="meta">{words}{request}</div> }.into_any())
}
