//! `GET /v1/models` and `GET /v1/models/{id}`.

use crate::http::Refusal;
use crate::state::AppState;
use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use switchyard_api::{Model, ModelList};

pub(super) async fn list(State(state): State<AppState>) -> Json<ModelList> {
    Json(state.services.models().await)
}

pub(super) async fn one(State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<Model>, Refusal> {
    let models = state.services.models().await.data;
    models
        .into_iter()
        .find(|model| model.id == id)
        .map(Json)
        .ok_or_else(|| {
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
