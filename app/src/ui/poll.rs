//! Repeating while someone looks.

use crate::browser;
use leptos::{ev, prelude::*};
use std::time::Duration;

/// Calls `each` every `seconds` while `on` holds and the tab can be seen, and at once when it is seen again. Browser only:
/// effects do not run on the server.
pub fn every(seconds: u64, on: Signal<bool>, each: impl Fn() + Copy + Send + Sync + 'static) {
    Effect::new(move || {
        if !on.get() {
            return;
        }
        let seen = move || {
            if !browser::hidden() {
                each();
            }
        };
        if let Ok(timer) = set_interval_with_handle(seen, Duration::from_secs(seconds)) {
            on_cleanup(move || timer.clear());
        }
        let back = window_event_listener(ev::visibilitychange, move |_| seen());
        on_cleanup(move || back.remove());
    });
}
