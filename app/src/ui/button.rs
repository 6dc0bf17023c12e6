//! A button that needs code behind it. What works without code is a link or a form's own submit button.

use crate::ui::ready::ready;
use leptos::{ev::MouseEvent, prelude::*};

/// How a button looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Plain,
    /// The one thing to do here.
    Main,
    /// Within a table's row.
    Bare,
    /// Within a table's row, and it takes something away.
    Danger,
    /// The one thing to do here takes something away.
    Destroy,
}

impl Look {
    pub const fn class(self) -> &'static str {
        match self {
            Self::Plain => "btn",
            Self::Main => "btn main",
            Self::Bare => "btn bare",
            Self::Danger => "btn bare danger",
            Self::Destroy => "btn main destroy",
        }
    }
}

/// A button. Disabled until the page has been taken over, and while `off`.
#[component]
pub fn Button(
    look: Look,
    #[prop(optional, into)] off: Signal<bool>,
    /// Says more than the text where the text is the same in every row.
    #[prop(optional, into)]
    label: Option<String>,
    #[prop(into)] press: Callback<MouseEvent>,
    children: Children,
) -> impl IntoView {
    let ready = ready();
    view! {
        <button type="button" class=look.class() aria-label=label disabled=move || off.get() || !ready.get() on:click=move |event| press.run(event)>
            {children()}
        </button>
    }
}
