//! A titled surface, and the head of a page.

use leptos::prelude::*;

/// A titled surface. `aside` stands at the right of the title: a legend, an age, a link. `flush` is for tables, which
/// reach the edges.
#[component]
pub fn Panel(
    title: &'static str,
    #[prop(optional)] aside: Option<AnyView>,
    #[prop(optional)] flush: bool,
    #[prop(optional)] class: &'static str,
    children: Children,
) -> impl IntoView {
    view! {
        <section class=format!("panel {class}")>
            <header><h2>{title}</h2><div class="aside">{aside}</div></header>
            <div class=if flush { "flush" } else { "body" }>{children()}</div>
        </section>
    }
}

/// The head of a page: its name, the finding, and what can be done here.
#[component]
pub fn Head(
    #[prop(into)] title: String,
    #[prop(into)] finding: ViewFn,
    #[prop(optional, into)] above: ViewFn,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class="head">
            <div class="grow">{above.run()}<h1>{title}</h1>{finding.run()}</div>
            {children.map(|children| children())}
        </div>
    }
}
