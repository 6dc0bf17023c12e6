//! The browser itself.

use js_sys::{Function, Reflect};
use leptos::{ev::SubmitEvent, prelude::document, prelude::window};
use switchyard_api::Timestamp;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{Element, Event, FormData, HtmlElement, HtmlFormElement};

const THEME: &str = "switchyard-theme";

/// The browser's time.
pub fn now() -> Timestamp {
    Timestamp(js_sys::Date::now() as i64)
}

/// A clock for measuring, in milliseconds: it never jumps.
pub fn clock_ms() -> f64 {
    window().performance().map_or(0.0, |clock| clock.now())
}

/// Whether nobody can see the page now.
pub fn hidden() -> bool {
    document().hidden()
}

/// `https://gateway.example.com`.
pub fn origin() -> String {
    window().location().origin().unwrap_or_default()
}

/// Leaves for another address, with a full load.
pub fn go(address: &str) {
    drop(window().location().assign(address));
}

/// The theme that was chosen on this browser; none follows the system.
pub fn remembered_theme() -> Option<String> {
    window().local_storage().ok()??.get_item(THEME).ok()?
}

/// Keeps the choice for the next page. The cookie lets the server write it into the document, so that no page flashes
/// in the other colours first; it holds nothing but the word.
pub fn remember_theme(theme: Option<&str>) {
    if let Ok(Some(storage)) = window().local_storage() {
        drop(match theme {
            Some(theme) => storage.set_item(THEME, theme),
            None => storage.remove_item(THEME),
        });
    }
    let (value, age) = theme.map_or(("", 0), |theme| (theme, 31_536_000));
    let cookie = format!("{THEME}={value}; Path=/; Max-Age={age}; SameSite=Lax");
    drop(Reflect::set(&document(), &"cookie".into(), &cookie.into()));
}

/// Puts the theme on the document.
pub fn wear_theme(theme: Option<&str>) {
    if let Some(root) = document().document_element() {
        drop(match theme {
            Some(theme) => root.set_attribute("data-theme", theme),
            None => root.remove_attribute("data-theme"),
        });
    }
}

/// Copies a text; says whether it worked. On plain http the browser withholds its clipboard, so the element that shows
/// the text is selected and copied the old way; if that fails too it stays selected, ready for Ctrl+C.
pub async fn copy(text: String, shown: Option<HtmlElement>) -> bool {
    let navigator = window().navigator();
    let there = Reflect::get(&navigator, &"clipboard".into()).is_ok_and(|clipboard| clipboard.is_object());
    if there && JsFuture::from(navigator.clipboard().write_text(&text)).await.is_ok() {
        return true;
    }
    let (Some(shown), Ok(Some(selection))) = (shown, window().get_selection()) else {
        return false;
    };
    if selection.select_all_children(&shown).is_err() {
        return false;
    }
    let document: JsValue = document().into();
    Reflect::get(&document, &"execCommand".into())
        .and_then(|command| command.dyn_into::<Function>())
        .and_then(|command| command.call1(&document, &"copy".into()))
        .is_ok_and(|copied| copied.is_truthy())
}

/// What stands in a field of the form that is being sent.
pub fn field(event: &SubmitEvent, name: &str) -> Option<String> {
    let form: HtmlFormElement = event.target()?.dyn_into().ok()?;
    FormData::new_with_form(&form).ok()?.get(name).as_string()
}

/// Whether a field holds something else than what the markup put there. A choice always does: it has no such memory, and
/// its markup says what is chosen.
pub fn changed(field: &Element) -> bool {
    let of = |name: &str| Reflect::get(field, &name.into()).ok();
    of("value") != of("defaultValue")
}

/// Tells a field's handlers that something was typed.
pub fn tell_input(field: &Element) {
    if let Ok(event) = Event::new("input") {
        drop(field.dispatch_event(&event));
    }
}

/// Ticks a box, or clears it.
pub fn tick(field: &Element, on: bool) {
    drop(Reflect::set(field, &"checked".into(), &on.into()));
}

/// Puts a text into a field, or chooses it.
pub fn write(field: &Element, text: &str) {
    drop(Reflect::set(field, &"value".into(), &text.into()));
}
