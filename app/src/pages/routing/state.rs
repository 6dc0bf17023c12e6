//! A target's state in words.

use crate::ui::state::Mark;
use switchyard_api::TargetState;

/// The mark of a state, and its word. A state that this page does not know yet is shown by its own name.
pub fn word(state: &str) -> (Mark, &str) {
    match state {
        "ready" => (Mark::Ok, "ready"),
        "recovering" => (Mark::Warn, "recovering"),
        "probing" => (Mark::Warn, "breaker half-open"),
        "saturated" => (Mark::Warn, "saturated"),
        "open" => (Mark::Bad, "breaker open"),
        "parked" => (Mark::Bad, "parked"),
        "quota" => (Mark::Bad, "quota used up"),
        "unavailable" => (Mark::Off, "unavailable"),
        other => (Mark::Warn, other),
    }
}

/// Calls go there.
pub fn takes_calls(target: &TargetState) -> bool {
    matches!(target.state.as_str(), "ready" | "recovering")
}

/// No call goes there at all.
pub fn is_out(target: &TargetState) -> bool {
    matches!(word(&target.state).0, Mark::Bad | Mark::Off)
}
