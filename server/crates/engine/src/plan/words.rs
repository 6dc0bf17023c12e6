//! A plan in words: why a target is not in it, and why nobody is.

use super::Plan;
use super::asked::some_of;
use crate::request::Caller;
use crate::snapshot::Snapshot;
use switchyard_core::config::Mode;
use switchyard_core::error::{Error, Kind};
use switchyard_core::routing::{LeftOut, RouteId};

impl Plan {
    pub(super) fn words(&self, snapshot: &Snapshot, route: RouteId, why: LeftOut, caller: &Caller) -> String {
        let mode = snapshot.route(route).map(|route| &route.strategy.mode);
        match why {
            LeftOut::Model => format!("does not serve model {}", self.model),
            LeftOut::NoModel => format!(
                "route {} says no model for it, and none was asked for but the route itself",
                self.route
            ),
            LeftOut::NotNamed => match mode {
                Some(Mode::Single) => "mode single uses the first target only".to_owned(),
                Some(mode) if mode.is_named() => format!("mode {} names others for this request", mode.as_str()),
                _ => "another target was named for this request".to_owned(),
            },
            LeftOut::NotInRoute => format!("is not part of route {}", self.route),
            LeftOut::Unpriced => format!("no price is known for model {}", self.model),
            LeftOut::Header => "X-Gateway-Only does not list it".to_owned(),
            LeftOut::Project => format!(
                "project {} may not use it",
                caller.project.as_deref().unwrap_or_default()
            ),
        }
    }

    /// Why routing names nobody.
    pub(super) fn nobody(&self, snapshot: &Snapshot, why_not: &[Option<LeftOut>], caller: &Caller) -> Error {
        let any = |what: LeftOut| why_not.contains(&Some(what));
        if any(LeftOut::Header) {
            let message = format!("X-Gateway-Only leaves no target that serves the model {}", self.model);
            return Error::new(Kind::InvalidRequest, message).with_param("X-Gateway-Only");
        }
        if any(LeftOut::Project) {
            let message = format!(
                "project {} may use no target that serves the model {}",
                caller.project.as_deref().unwrap_or_default(),
                self.model
            );
            return Error::new(Kind::NotAllowed, message);
        }
        let message = if any(LeftOut::Unpriced) {
            format!(
                "no target has a known price for the model {}, and unpriced_strategy is skip",
                self.model
            )
        } else if any(LeftOut::NoModel) {
            format!(
                "route {} does not say which model to ask for; give it or its targets a `model`, or name one and the \
                 route in X-Gateway-Route",
                self.route
            )
        } else {
            self.unknown_model(snapshot)
        };
        Error::new(Kind::ModelNotFound, message).with_param("model")
    }

    fn unknown_model(&self, snapshot: &Snapshot) -> String {
        let mut known: Vec<&str> = snapshot.targets.iter().flat_map(|target| target.names()).collect();
        known.dedup();
        format!(
            "no configured target serves the model {}; served here: {}",
            self.model,
            some_of(known.into_iter())
        )
    }
}
