//! `GET /v1/models` and `GET /v1/models/{id}`, and the same as Gemini's clients know it below `/v1beta`.

use crate::http::Refusal;
use crate::state::AppState;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};
use switchyard_api::{Model, ModelList};
use switchyard_providers::Dialect;

pub(super) async fn list(State(state): State<AppState>) -> Json<ModelList> {
    Json(state.services.models().await)
}

pub(super) async fn one(State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<Model>, Refusal> {
    find(&state, &id).await.map(Json)
}

pub(super) async fn gemini_list(State(state): State<AppState>) -> Json<Value> {
    let models: Vec<Value> = state.services.models().await.data.iter().map(gemini).collect();
    Json(json!({ "models": models }))
}

pub(super) async fn gemini_one(State(state): State<AppState>, Path(id): Path<String>) -> Response {
    match find(&state, &id).await {
        Ok(model) => Json(gemini(&model)).into_response(),
        Err(refusal) => refusal.in_dialect(Dialect::Gemini),
    }
}

/// A model as Gemini's clients know it. What it can do nobody says here: all of it is tried.
fn gemini(model: &Model) -> Value {
    json!({
        "name": format!("models/{}", model.id),
        "displayName": model.id,
        "description": format!("served by {}", model.owned_by),
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}

async fn find(state: &AppState, id: &str) -> Result<Model, Refusal> {
    let models = state.services.models().await.data;
    models.into_iter().find(|model| model.id == id).ok_or_else(|| {
        let message = format!("no configured target lists a model {id}");
        Refusal::new(
            StatusCode::NOT_FOUND,
            "invalid_request_error",
            "model_not_found",
            message,
        )
        .with_param("model")
    })
}
