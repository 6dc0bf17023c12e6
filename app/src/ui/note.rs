//! A note says what happened, what it means and what to do; an empty place says why it is empty.

use leptos::prelude::*;
use switchyard_api::ApiError;

/// How a note is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "note",
            Self::Good => "note ok",
            Self::Warn => "note warn",
            Self::Bad => "note bad",
        }
    }
}

/// A note in the page's flow. `alert` for what was not there before and must be heard.
#[component]
pub fn Note(tone: Tone, #[prop(optional)] alert: bool, children: Children) -> impl IntoView {
    view! { <div class=tone.class() role=alert.then_some("alert")>{children()}</div> }
}

/// A part of the page that has no data, and why. `what` begins the sentence: "The recent requests".
#[component]
pub fn Failure(what: &'static str, fault: ApiError) -> impl IntoView {
    view! { <Note tone=Tone::Bad alert=true><strong>{what}" did not load. "</strong>{fault.message}</Note> }
}

/// Above figures that a refresh could not renew.
#[component]
pub fn Stale(fault: Option<ApiError>) -> impl IntoView {
    fault.map(|fault| view! { <Note tone=Tone::Warn alert=true>"These are the last figures that came; the refresh failed. " {fault.message}</Note> }.into_any())
}

/// A list without entries.
#[component]
pub fn Empty(#[prop(into)] title: String, children: Children) -> impl IntoView {
    view! { <div class="empty"><strong>{title}</strong>{children()}</div> }
}

/// Where a page's data will stand, for the moment until they come.
#[component]
pub fn Loading() -> impl IntoView {
    view! { <p class="loading" role="status">"Loading…"</p> }
}
