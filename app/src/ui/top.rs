//! The bar above every page: which gateway this is, who looks at it, and the way out.

use crate::ui::{
    state::{Mark, State},
    theme::ThemeSwitch,
};
use leptos::prelude::*;
use switchyard_api::{ApiError, Me, Scope};

/// The bar; `children` is what the session says.
#[component]
pub fn Top(children: Children) -> impl IntoView {
    view! {
        <header class="top">
            {children()}
            <ThemeSwitch/>
            // A form, not a link: it changes something, so it must not be followed by a prefetch, and it works without code.
            <form method="post" action="/admin/session/end"><button class="btn bare">"Sign out"</button></form>
        </header>
    }
}

/// What the session says about gateway and caller.
pub fn session(me: Result<Me, ApiError>) -> AnyView {
    let Ok(me) = me else {
        return view! { <State mark=Mark::Bad text="Session unknown"/><span class="grow"></span> }.into_any();
    };
    // On a narrow screen the rail has no foot, so the sentence stands here.
    let degraded = me.gateway.store.degraded.clone().map(|why| {
        view! {
            <span class=Mark::Warn.class() title=why.clone()>"Degraded"</span>
            <p class="note warn narrow">{why}</p>
        }
        .into_any()
    });
    let environment = me
        .gateway
        .environment
        .clone()
        .map(|name| view! { <span class="tag">{name}</span> }.into_any());
    let demo = me
        .gateway
        .simulated
        .then(|| view! { <span class="tag demo">"simulated answers"</span> }.into_any());
    view! {
        {environment}{demo}{degraded}
        <span class="grow"></span>
        <span class="who">{me.subject.clone()}" · "{scope(&me)}</span>
    }
    .into_any()
}

/// The caller's scopes in a word: `admin` holds the others.
fn scope(me: &Me) -> String {
    if me.may(Scope::Admin) {
        return Scope::Admin.as_str().to_owned();
    }
    me.scopes
        .iter()
        .map(|scope| scope.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
