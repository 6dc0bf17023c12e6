//! A labelled control. The label wraps it, so no ids are needed and the whole is one target.

use crate::ui::typed::typed;
use leptos::prelude::*;

/// A control under its label.
#[component]
pub fn Field(label: &'static str, #[prop(optional)] hint: &'static str, children: Children) -> impl IntoView {
    let hint = (!hint.is_empty()).then(|| view! { <small>{hint}</small> }.into_any());
    view! { <label class="field"><span>{label}</span>{children()}{hint}</label> }
}

/// One of a few values, as a form sends it. The chosen one is marked in the markup too, for the page before hydration.
#[component]
pub fn Select(
    name: &'static str,
    /// Value and text of each option.
    options: Vec<(String, String)>,
    #[prop(into)] value: Signal<String>,
) -> impl IntoView {
    let options = options.into_iter().map(|(this, text)| {
        let own = this.clone();
        let chosen = Signal::derive(move || value.with(|value| *value == own));
        view! { <option value=this selected=chosen>{text}</option> }.into_any()
    });
    let options = options.collect_view();
    view! { <select class="input" name=name use:typed=value>{options}</select> }
}
