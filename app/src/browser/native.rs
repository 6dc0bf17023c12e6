//! Stand-ins for the browser where there is none.

use leptos::{
    ev::SubmitEvent,
    web_sys::{Element, HtmlElement},
};
use std::time::{SystemTime, UNIX_EPOCH};
use switchyard_api::Timestamp;

/// The server's time.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

pub fn clock_ms() -> f64 {
    0.0
}

pub fn hidden() -> bool {
    false
}

pub fn origin() -> String {
    String::new()
}

pub fn go(_address: &str) {}

pub fn remembered_theme() -> Option<String> {
    None
}

pub fn remember_theme(_theme: Option<&str>) {}

pub fn wear_theme(_theme: Option<&str>) {}

pub async fn copy(_text: String, _shown: Option<HtmlElement>) -> bool {
    false
}

pub fn field(_event: &SubmitEvent, _name: &str) -> Option<String> {
    None
}

pub fn changed(_field: &Element) -> bool {
    false
}

pub fn tell_input(_field: &Element) {}

pub fn tick(_field: &Element, _on: bool) {}

pub fn write(_field: &Element, _text: &str) {}
