//! The dry run's answer: a plan, told as if its first target would answer.

use crate::plan::{Plan, Reason};
use crate::record::{Verdict, VerdictState};
use crate::snapshot::Snapshot;
use std::collections::HashMap;
use switchyard_core::error::Error;

/// What a call would do now.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// After aliases.
    pub model: String,
    pub route: String,
    /// `default`, `model`, `header`, `key` or `project`.
    pub route_by: &'static str,
    /// The route's mode.
    pub strategy: &'static str,
    pub variant: Option<String>,
    /// Targets that would be tried, each with the upstream's id of the model.
    pub order: Vec<(String, String)>,
    /// One per configured target.
    pub verdicts: Vec<Verdict>,
    /// Why the call would not be answered.
    pub error: Option<Error>,
}

pub(crate) fn explain(snapshot: &Snapshot, plan: Plan) -> Explanation {
    // The call itself would knock at the closed doors too, as they may open while it goes from one to the next.
    let legs = plan.legs.get(..plan.willing).unwrap_or_default();
    let places: HashMap<usize, usize> = legs
        .iter()
        .enumerate()
        .map(|(place, leg)| (leg.target.0, place))
        .collect();
    let left_out: HashMap<usize, &Reason> = plan.left_out.iter().map(|(target, why)| (target.0, why)).collect();
    let verdict = |(i, target): (usize, &crate::snapshot::Target)| {
        let place = places.get(&i);
        let out = left_out.get(&i);
        let (state, reason) = match (place, out) {
            (Some(0), None) => (VerdictState::Chosen, "would be asked first".into()),
            (Some(0), Some(why)) => (
                VerdictState::Chosen,
                format!("would be asked first, for want of others, although {}", why.text).into(),
            ),
            (Some(place), None) => (
                VerdictState::NotNeeded,
                format!("would be asked as number {}", place + 1).into(),
            ),
            (Some(place), Some(why)) => (
                VerdictState::NotNeeded,
                format!("would be asked as number {}, although {}", place + 1, why.text).into(),
            ),
            (None, Some(why)) => (VerdictState::Excluded, why.text.clone()),
            (None, None) => {
                let reason = plan.not_named.reason(i).cloned();
                (VerdictState::Excluded, reason.unwrap_or("is not in the order".into()))
            }
        };
        Verdict {
            target: target.name.clone(),
            state,
            reason,
            until_ms: out.and_then(|why| why.until_ms),
        }
    };
    let order = legs
        .iter()
        .filter_map(|leg| {
            Some((
                snapshot.targets.get(leg.target.0)?.name.to_string(),
                leg.model.to_string(),
            ))
        })
        .collect();
    Explanation {
        order,
        verdicts: snapshot.targets.iter().enumerate().map(verdict).collect(),
        model: plan.model,
        route: plan.route.to_string(),
        route_by: plan.route_by,
        strategy: plan.strategy,
        variant: plan.variant,
        error: plan.error,
    }
}
