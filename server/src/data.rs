//! `/v1`: what applications call.
//!
//! A surface is a path and a word. Every one of them goes through [`surface::answer`] into the same pipeline.

mod explain;
mod models;
mod surface;

use crate::auth::{require_data, require_invoke};
use crate::http::fallback;
use crate::state::AppState;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
pub(crate) use surface::call;
use switchyard_providers::Surface;

/// The paths where calls are made. They are on their own, because every request passes here.
const SURFACES: [(&str, Surface); 2] = [
    ("/v1/chat/completions", Surface::Chat),
    ("/v1/embeddings", Surface::Embeddings),
];

/// The surface that lives there.
pub(crate) fn surface_at(path: &str) -> Option<Surface> {
    SURFACES.iter().find(|(at, _)| *at == path).map(|(_, surface)| *surface)
}

/// Everything but the calls themselves. Runs on the cores, where its connections live.
pub(crate) fn router(state: &AppState) -> Router {
    let spending = Router::new()
        // Nothing is spent, and whoever may call may ask what a call would do.
        .route("/v1/route/explain", post(explain::explain))
        .method_not_allowed_fallback(fallback::wrong_method)
        .route_layer(from_fn_with_state(state.clone(), require_invoke));
    let reading = Router::new()
        .route("/v1/models", get(models::list))
        // A model's id may hold slashes.
        .route("/v1/models/{*id}", get(models::one))
        .method_not_allowed_fallback(fallback::wrong_method)
        .route_layer(from_fn_with_state(state.clone(), require_data));
    spending.merge(reading).with_state(state.clone())
}
