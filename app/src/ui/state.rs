//! A state: a word, and a mark whose shape differs as well as its colour.

use leptos::prelude::*;

/// What a state means to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// As it should be. A disc.
    Ok,
    /// Works, but look. A triangle.
    Warn,
    /// Does not work. A square.
    Bad,
    /// Not in use. A ring.
    Off,
}

impl Mark {
    pub const fn class(self) -> &'static str {
        match self {
            Self::Ok => "state ok",
            Self::Warn => "state warn",
            Self::Bad => "state bad",
            Self::Off => "state off",
        }
    }

    /// The mark of a request's outcome, and the outcome in words.
    pub fn of_outcome(outcome: &str) -> (Self, &'static str) {
        match outcome {
            "success" => (Self::Ok, "answered"),
            "partial" => (Self::Warn, "cut off"),
            "client_cancelled" => (Self::Off, "cancelled by the client"),
            "rejected" => (Self::Bad, "refused by the gateway"),
            _ => (Self::Bad, "failed"),
        }
    }
}

/// The word and its mark.
#[component]
pub fn State(mark: Mark, #[prop(into)] text: String) -> impl IntoView {
    view! { <span class=mark.class()>{text}</span> }
}
