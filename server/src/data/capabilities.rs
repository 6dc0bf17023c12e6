//! `GET /v1/capabilities`: what the providers behind the configured targets know.
//!
//! Printed from the table that translation itself asks, and from what each wire says of itself, so it cannot say anything
//! else than what is done.

use crate::state::AppState;
use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};
use switchyard_providers::Surface;
use switchyard_providers::Takes;
use switchyard_providers::params::{TRACKED, support};

pub(super) async fn list(State(state): State<AppState>) -> Json<Value> {
    let (mut providers, mut surfaces) = (Map::new(), Map::new());
    for known in state.engine.snapshot().capabilities() {
        let params: Map<String, Value> = TRACKED
            .iter()
            .map(|param| {
                let word = support(known.wire, *param).as_str();
                (param.name(Surface::Chat).to_owned(), word.into())
            })
            .collect();
        providers.insert(known.provider.to_string(), params.into());
        let taken: Map<String, Value> = known
            .surfaces
            .iter()
            .map(|(surface, takes)| (surface.as_str().to_owned(), word(*takes).into()))
            .collect();
        surfaces.insert(known.provider.to_string(), taken.into());
    }
    Json(json!({
        "providers": providers,
        // No provider of this version makes images.
        "image_response_formats": {},
        "surfaces": surfaces,
    }))
}

const fn word(takes: Takes) -> &'static str {
    match takes {
        Takes::Native => "native",
        Takes::Translated => "translated",
        Takes::Not => "none",
    }
}
