//! The routes as they are configured, with the state of each target that they name.

use super::state::word;
use crate::ui::{panel::Panel, state::Mark};
use leptos::prelude::*;
use switchyard_api::{RouteInfo, RouteTarget, Targets};

/// The default route and every named one.
pub fn view(targets: &Targets) -> AnyView {
    let route = |route: &RouteInfo| {
        let places: Vec<_> = route.targets.iter().map(|place| place_view(place, targets)).collect();
        let details: Vec<_> = route
            .details
            .iter()
            .map(|detail| view! { <li>{detail.clone()}</li> }.into_any())
            .collect();
        let details = (!details.is_empty()).then(|| view! { <ul class="dim">{details}</ul> }.into_any());
        view! {
            <section class="route">
                <h3>{route.name.clone()}" "<span class="tag">{route.strategy.clone()}</span></h3>
                <p class="dim">{about(route)}</p>
                <ol>{places}</ol>
                {details}
            </section>
        }
        .into_any()
    };
    let routes: Vec<_> = targets.routes.iter().map(route).collect();
    view! { <Panel title="Routes"><div class="routes">{routes}</div></Panel> }.into_any()
}

fn about(route: &RouteInfo) -> String {
    let family = match route.family.as_str() {
        "pool" => "A failure may move on to any of its targets.",
        "named" => "A failure stays inside what a rule names.",
        other => other,
    };
    match &route.model {
        Some(model) => format!("{family} Called as route/{}, it means {model}.", route.name),
        None => family.to_owned(),
    }
}

fn place_view(place: &RouteTarget, targets: &Targets) -> AnyView {
    let state = targets
        .data
        .iter()
        .find(|target| !place.is_route && target.target == place.name);
    let (class, trouble) = match state.map(|target| word(&target.state)) {
        Some((Mark::Ok, _)) => (Mark::Ok.class(), None),
        Some((mark, word)) => (mark.class(), Some(word.to_owned())),
        None => ("", None),
    };
    let name = if place.is_route {
        format!("route {}", place.name)
    } else {
        place.name.clone()
    };
    let weight = place.weight.map(|weight| format!("weight {weight}"));
    let model = place.model.as_ref().map(|model| format!("asked for {model}"));
    let more: Vec<_> = trouble.into_iter().chain(weight).chain(model).collect();
    view! { <li><span class=class>{name}</span>" "<span class="dim">{more.join(", ")}</span></li> }.into_any()
}
