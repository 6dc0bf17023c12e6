//! The sentence under the title: whether every target can be used, and if not, where calls go.

use super::state::{is_out, takes_calls, word};
use crate::ui::format;
use switchyard_api::{TargetState, Targets};

/// Targets that are named one by one; of more, only their number is said.
const NAMED: usize = 3;

pub fn finding(targets: &Targets) -> String {
    let all = targets.data.len();
    let troubled: Vec<_> = targets.data.iter().filter(|target| target.state != "ready").collect();
    match (&targets.data[..], troubled.is_empty()) {
        ([], _) => "No target is configured, so no call can be answered.".to_owned(),
        ([only], true) => format!("The only target, {}, is ready.", only.target),
        (_, true) => format!("All {all} targets are ready."),
        _ => format!("{}; {}.", troubles(&troubled, targets), rest(targets, &troubled)),
    }
}

fn troubles(troubled: &[&TargetState], targets: &Targets) -> String {
    let mut parts: Vec<_> = troubled
        .iter()
        .take(NAMED)
        .map(|target| trouble(target, targets))
        .collect();
    if let Some(more) = troubled.len().checked_sub(NAMED).filter(|more| *more > 0) {
        parts.push(format!("{more} more not ready"));
    }
    parts.join(", ")
}

fn trouble(target: &TargetState, targets: &Targets) -> String {
    let (name, (_, word)) = (&target.target, word(&target.state));
    if !is_out(target) {
        return format!("{name} is {}", word.replace("breaker ", ""));
    }
    match target.until {
        Some(until) if until > targets.as_of => format!("{name} is out until {} ({word})", format::clock(until)),
        _ => format!("{name} is out ({word})"),
    }
}

/// Who takes the calls. Only of a pool it is known that a failure moves on to its other targets.
fn rest(targets: &Targets, troubled: &[&TargetState]) -> String {
    let (all, ready) = (targets.data.len(), targets.data.len() - troubled.len());
    if !targets.data.iter().any(takes_calls) {
        return "no target takes calls now".to_owned();
    }
    let default = targets.routes.first().filter(|route| route.family == "pool");
    let takers: Vec<&str> = default
        .into_iter()
        .flat_map(|route| &route.targets)
        .filter(|place| {
            targets
                .data
                .iter()
                .any(|target| target.target == place.name && takes_calls(target))
        })
        .map(|place| place.name.as_str())
        .collect();
    let out = troubled.iter().any(|target| is_out(target));
    match takers.len() {
        1..=NAMED if out => format!("traffic goes to {}", format::listed(&takers)),
        _ => format!(
            "{ready} of {all} targets {} ready",
            if ready == 1 { "is" } else { "are" }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::routing::view::tests::targets;
    use switchyard_api::Timestamp;

    fn of(states: &[&str]) -> String {
        let mut all = targets();
        let sample = all.data[0].clone();
        let named = |(state, name): (&&str, &str)| TargetState {
            target: name.to_owned(),
            state: (*state).to_owned(),
            until: (*state == "open").then_some(Timestamp(all.as_of.0 + 24_000)),
            ..sample.clone()
        };
        all.data = states
            .iter()
            .zip(["openai", "anthropic", "groq", "mistral", "ollama"])
            .map(named)
            .collect();
        finding(&all)
    }

    #[test]
    fn all_is_well_or_it_says_what_is_not_and_who_steps_in() {
        assert_eq!(of(&[]), "No target is configured, so no call can be answered.");
        assert_eq!(of(&["ready"]), "The only target, openai, is ready.");
        assert_eq!(of(&["ready"; 4]), "All 4 targets are ready.");
        assert_eq!(
            of(&["open", "ready"]),
            "openai is out until 03:14:31 UTC (breaker open); traffic goes to anthropic."
        );
        assert_eq!(of(&["parked"]), "openai is out (parked); no target takes calls now.");
        assert_eq!(
            of(&["probing", "ready", "ready"]),
            "openai is half-open; 2 of 3 targets are ready."
        );
        assert_eq!(
            of(&["recovering", "saturated"]),
            "openai is recovering, anthropic is saturated; 0 of 2 targets are ready."
        );
        assert!(of(&["open", "quota", "parked", "unavailable", "ready"]).contains(", 1 more not ready; "));
    }

    #[test]
    fn where_a_rule_names_the_target_nobody_is_said_to_step_in() {
        let mut named = targets();
        named.routes[0].family = "named".to_owned();
        named.data[0].state = "open".to_owned();
        named.data[0].until = None;
        assert_eq!(
            finding(&named),
            "openai is out (breaker open); 1 of 2 targets is ready."
        );
    }
}
