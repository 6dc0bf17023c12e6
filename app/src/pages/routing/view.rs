//! What the page shows of the targets as they stand now.

use super::{finding::finding, form::offer, routes, targets};
use crate::ui::{
    note::{Failure, Stale},
    panel::Head,
};
use leptos::prelude::*;
use switchyard_api::{ApiError, Targets};

/// The finding, the targets and the routes.
pub fn live(answer: Result<(Targets, Option<ApiError>), ApiError>) -> AnyView {
    let (finding, body) = match answer {
        Ok((live, fault)) => (finding(&live), view! { <Stale fault=fault/>{body(&live)} }.into_any()),
        Err(fault) => (
            String::new(),
            view! { <Failure what="The state of the targets" fault=fault/> }.into_any(),
        ),
    };
    view! {
        <Head title="Routing" finding=move || view! { <p>{finding.clone()}</p> }.into_any()/>
        {body}
    }
    .into_any()
}

fn body(live: &Targets) -> AnyView {
    let routes = live.routes.iter().map(|route| route.name.clone()).collect();
    let names = live.data.iter().map(|target| target.target.clone()).collect();
    view! {
        {targets::view(live)}
        {routes::view(live)}
        {offer("routes", routes)}
        {offer("targets", names)}
    }
    .into_any()
}

#[cfg(test)]
#[path = "view/tests.rs"]
pub mod tests;
