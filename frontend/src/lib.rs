//! Takes over the page that the server rendered.
#![cfg(target_arch = "wasm32")]

/// Called once by the page's loader, after the module is there.
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(switchyard_app::App);
}
