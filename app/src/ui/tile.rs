//! One number with its unit and what it was before.

use leptos::prelude::*;

/// A row of tiles.
#[component]
pub fn Tiles(label: &'static str, children: Children) -> impl IntoView {
    view! { <dl class="tiles" aria-label=label>{children()}</dl> }
}

/// A number. `unit` follows it in small; `was` is what to compare it with.
#[component]
pub fn Tile(
    label: &'static str,
    #[prop(into)] value: String,
    #[prop(optional, into)] unit: String,
    #[prop(optional, into)] was: String,
) -> impl IntoView {
    let unit = (!unit.is_empty()).then(|| view! { " "<small>{unit}</small> }.into_any());
    let was = (!was.is_empty()).then(|| view! { <dd class="was">{was}</dd> }.into_any());
    view! { <div class="tile"><dt>{label}</dt><dd class="value">{value}{unit}</dd>{was}</div> }
}
