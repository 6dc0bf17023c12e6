//! What is wider than a phone, and scrolls by itself.

use leptos::prelude::*;

/// A part that may scroll sideways. It can have the focus, so that a keyboard can scroll it, and so it has a name.
#[component]
pub fn Scroll(label: &'static str, children: Children) -> impl IntoView {
    view! { <div class="scroll" tabindex="0" role="region" aria-label=label>{children()}</div> }
}
