//! Whether the page has been taken over.
//!
//! Between the server's page and the moment WebAssembly is there, a button that needs code would swallow its click.
//! Such controls are disabled until then, and stay so where JavaScript is off.

use leptos::prelude::*;

#[derive(Clone, Copy)]
struct Ready(ReadSignal<bool>);

/// Starts as not ready, on both sides alike; the first effect, which only runs in the browser, changes that.
pub fn provide() {
    let (ready, set_ready) = signal(false);
    provide_context(Ready(ready));
    Effect::new(move || set_ready.set(true));
}

/// True once handlers are attached.
pub fn ready() -> Signal<bool> {
    use_context::<Ready>().map_or_else(|| Signal::stored(false), |Ready(ready)| ready.into())
}
