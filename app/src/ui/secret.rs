//! Text to take away: shown whole, and copied with one press.

use crate::{
    browser,
    ui::button::{Button, Look},
};
use leptos::{html, prelude::*, task::spawn_local};

/// A text with a copy button. `long` keeps its lines.
#[component]
pub fn Secret(#[prop(into)] text: String, #[prop(optional)] long: bool, copy: &'static str) -> impl IntoView {
    let shown = NodeRef::<html::Code>::new();
    let said = RwSignal::new("");
    let value = StoredValue::new(text.clone());
    let press = move |_| {
        let element = shown.get_untracked();
        spawn_local(async move {
            let copied = browser::copy(value.get_value(), element).await;
            said.set(if copied { "Copied" } else { "Selected: press Ctrl+C" });
        });
    };
    view! {
        <div class="secret" class:long=long>
            <code node_ref=shown>{text}</code>
            <span class="said" role="status">{said}</span>
            <Button look=Look::Plain label=copy press=press>"Copy"</Button>
        </div>
    }
}
