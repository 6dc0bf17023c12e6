//! A modal dialog: the browser's own, so focus stays inside and returns to where it was.

use leptos::{
    ev::{Event, KeyboardEvent},
    html,
    prelude::*,
};

/// Shows `children` while `open`. `close` is called when the user dismisses it with Escape; with `firm` they cannot, and
/// only a button inside ends it.
#[component]
pub fn Dialog(
    /// The id of the title, which names the dialog.
    id: &'static str,
    #[prop(into)] title: Signal<String>,
    #[prop(into)] open: Signal<bool>,
    #[prop(into)] close: Callback<()>,
    #[prop(optional)] firm: bool,
    #[prop(into)] children: ViewFn,
) -> impl IntoView {
    let dialog = NodeRef::<html::Dialog>::new();
    Effect::new(move || {
        let Some(dialog) = dialog.get() else { return };
        match (open.get(), dialog.open()) {
            // Fails only for a dialog outside of the document, which a `NodeRef` never holds.
            (true, false) => drop(dialog.show_modal()),
            (false, true) => dialog.close(),
            _ => {}
        }
    });
    let closed = move |_: Event| {
        if open.get_untracked() {
            close.run(());
        }
    };
    let cancel = move |event: Event| {
        if firm {
            event.prevent_default();
        }
    };
    // Browsers let a second Escape through whatever `cancel` says; they do not if the key itself is taken.
    let key = move |event: KeyboardEvent| {
        if firm && event.key() == "Escape" {
            event.prevent_default();
        }
    };
    view! {
        <dialog node_ref=dialog aria-labelledby=id closedby=firm.then_some("none") on:close=closed on:cancel=cancel on:keydown=key>
            <div class="stack">
                <h2 id=id>{title}</h2>
                {move || open.get().then(|| children.run())}
            </div>
        </dialog>
    }
}
