//! `/signin`: a key is exchanged for a session.
//!
//! A plain form, so that it works before WebAssembly is there and without it. The gateway answers with a redirect: to
//! `next`, or back here with what went wrong.

use crate::ui::{
    field::Field,
    note::{Note, Tone},
    rail::Brand,
};
use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

/// The page.
#[component]
pub fn SignIn() -> impl IntoView {
    let query = use_query_map();
    let error = move || query.with(|query| query.get("error"));
    let next = move || query.with(|query| local(query.get("next").as_deref()).to_owned());
    view! {
        <Title text="Sign in · Switchyard"/>
        <main class="signin">
            <Brand/>
            <form class="stack" method="post" action="/admin/session">
                <h1>"Sign in"</h1>
                <Field label="Gateway key">
                    <input class="input" type="password" name="key" required autofocus autocomplete="current-password" aria-describedby="help"/>
                </Field>
                <input type="hidden" name="next" value=next/>
                {move || error().map(|error| view! { <Note tone=Tone::Bad alert=true>{sentence(&error)}</Note> }.into_any())}
                <button class="btn main wide">"Sign in"</button>
                <p id="help" class="dim">
                    "An admin or read_only key; the first one was printed when the gateway first started. It is exchanged for a session and not kept in the browser."
                </p>
            </form>
        </main>
    }
}

/// What went wrong, as a sentence. Words of our own for names we know: nothing from the address reaches the page.
fn sentence(error: &str) -> &'static str {
    match error {
        "invalid" => {
            "That key is not valid here. It may be mistyped, revoked or expired, or belong to another gateway."
        }
        "throttled" => "Too many attempts failed from this address. Wait a minute, then try again.",
        "scope" => "That key may call models but not see the dashboard. Sign in with an admin or read_only key.",
        "unavailable" => "The key could not be checked, because the database did not answer. Try again in a moment.",
        _ => "Signing in failed. Try again.",
    }
}

/// Where to go afterwards: a path of this gateway, or the overview. Browsers read a backslash as a slash, so `/\` leads
/// away as `//` does. The gateway checks too; this is for what the form shows.
fn local(next: Option<&str>) -> &str {
    match next {
        Some(next) if next.starts_with('/') && !next[1..].starts_with(['/', '\\']) => next,
        _ => "/",
    }
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn no_address_leads_away_from_here() {
        let tried = [
            None,
            Some(""),
            Some("//evil.example"),
            Some("/\\evil.example"),
            Some("https://evil.example"),
            Some("keys"),
        ];
        assert_eq!(tried.map(local), ["/"; 6]);
        assert_eq!(local(Some("/requests?outcome=failed")), "/requests?outcome=failed");
    }
}
