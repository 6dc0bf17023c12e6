//! A field and the text behind it.
//!
//! Whoever begins to type before the code is there must not lose a letter when it comes. `prop:value` would: its first
//! run writes what the server knew over what has been typed since.

use crate::browser;
use leptos::{prelude::*, web_sys::Element};

/// `use:typed=text` shows the text in the field, now and when it changes. A field that was changed before the code came
/// is left as it is, and tells its `on:input`, as if it were typed now.
pub fn typed(field: Element, text: Signal<String>) {
    Effect::new(move |before: Option<()>| {
        let text = text.get();
        if before.is_none() && browser::changed(&field) {
            browser::tell_input(&field);
        } else {
            browser::write(&field, &text);
        }
    });
}

/// `use:checked=on` ticks or clears a box when `on` changes. What was chosen before the code came is left as it is.
pub fn checked(field: Element, on: Signal<bool>) {
    Effect::new(move |before: Option<()>| {
        let on = on.get();
        if before.is_some() {
            browser::tick(&field, on);
        }
    });
}
