//! What only a browser can do.
//!
//! Two implementations with the same names. `web` calls the browser; `native` lets the server's build and the tests
//! compile the code around it. Apart from [`now`], nothing here is called while a page is rendered: event handlers and
//! effects do not run on the server.

#[cfg(target_arch = "wasm32")]
pub mod http;
#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(target_arch = "wasm32")]
mod web;

#[cfg(not(target_arch = "wasm32"))]
pub use native::{
    changed, clock_ms, copy, field, go, hidden, now, origin, remember_theme, remembered_theme, tell_input, tick,
    wear_theme, write,
};
#[cfg(target_arch = "wasm32")]
pub use web::{
    changed, clock_ms, copy, field, go, hidden, now, origin, remember_theme, remembered_theme, tell_input, tick,
    wear_theme, write,
};
