//! `GET /v1/models` and `GET /v1/models/{id}`, and the same as Gemini's clients know it below `/v1beta`.

use crate::http::Refusal;
use crate::state::AppState;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use switchyard_api::{Model, Timestamp};
use switchyard_providers::Dialect;

/// OpenAI's list, unless the caller's headers say that it reads another.
pub(super) async fn list(State(state): State<AppState>, headers: HeaderMap) -> Response {
    match reads(&headers) {
        Dialect::OpenAi => Json(state.services.models().await).into_response(),
        Dialect::Gemini => gemini_list(State(state)).await.into_response(),
        Dialect::Anthropic => {
            let models: Vec<Value> = state.services.models().await.data.iter().map(anthropic).collect();
            let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
            let (first, last) = (id(models.first()), id(models.last()));
            Json(json!({ "data": models, "has_more": false, "first_id": first, "last_id": last })).into_response()
        }
    }
}

pub(super) async fn one(State(state): State<AppState>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let dialect = reads(&headers);
    match find(&state, &id).await {
        Ok(model) => match dialect {
            Dialect::OpenAi => Json(model).into_response(),
            Dialect::Anthropic => Json(anthropic(&model)).into_response(),
            Dialect::Gemini => Json(gemini(&model)).into_response(),
        },
        Err(refusal) => refusal.in_dialect(dialect),
    }
}

/// Whose client asks: all of them do so at the same path.
fn reads(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") {
        Dialect::Anthropic
    } else if headers.contains_key("x-goog-api-key") || headers.contains_key("x-goog-api-client") {
        Dialect::Gemini
    } else {
        Dialect::OpenAi
    }
}

fn anthropic(model: &Model) -> Value {
    json!({
        "type": "model",
        "id": model.id,
        "display_name": model.id,
        "created_at": Timestamp(model.created.saturating_mul(1000)),
    })
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
