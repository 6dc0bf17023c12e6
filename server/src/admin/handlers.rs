//! The routes of `/admin`: take the request apart, ask the service, shape the answer.

use crate::auth::Principal;
use crate::http::Refusal;
use crate::observe::metrics::Now;
use crate::state::AppState;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::{HeaderValue, StatusCode, header};
use serde::de::DeserializeOwned;
use switchyard_api::{Dashboard, Key, LogDetail, LogPage, NewKey, Range, Targets, UpdateKey};

/// A JSON body, with a fault that names the field.
fn body<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = error.to_string();
        let code = if message.contains("variant") {
            "invalid_scope"
        } else {
            "invalid_request"
        };
        Refusal::invalid(code, format!("the body does not say what it should: {message}"))
    })
}

pub(super) async fn dashboard(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<Json<Dashboard>, Refusal> {
    let asked = super::logs::pairs(query.as_deref().unwrap_or_default()).find(|(name, _)| name == "range");
    let range = match asked {
        None => Range::default(),
        Some((_, text)) => Range::parse(&text).ok_or_else(|| {
            Refusal::invalid(
                "invalid_request",
                format!("range is \"{text}\"; use 15m, 1h, 24h or 7d"),
            )
            .with_param("range")
        })?,
    };
    state.services.dashboard(range).await.map(Json)
}

pub(super) async fn list_keys(State(state): State<AppState>) -> Result<Json<Vec<Key>>, Refusal> {
    state.services.keys().await.map(Json)
}

pub(super) async fn key(State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<Key>, Refusal> {
    state.services.key(&id).await.map(Json)
}

pub(super) async fn create_key(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    bytes: Bytes,
) -> Result<Response, Refusal> {
    let new: NewKey = body(&bytes)?;
    let created = state.services.create_key(&principal, new).await?;
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

pub(super) async fn update_key(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Key>, Refusal> {
    let change: UpdateKey = body(&bytes)?;
    state.services.update_key(&principal, &id, change).await.map(Json)
}

pub(super) async fn revoke_key(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(id): Path<String>,
) -> Result<Json<Key>, Refusal> {
    state.services.revoke_key(&principal, &id).await.map(Json)
}

pub(super) async fn list_logs(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<Json<LogPage>, Refusal> {
    let query = super::logs::query(query.as_deref().unwrap_or_default())?;
    state.services.logs(&query).await.map(Json)
}

pub(super) async fn log(State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<LogDetail>, Refusal> {
    state.services.log(&id).await.map(Json)
}

pub(super) async fn targets(State(state): State<AppState>) -> Json<Targets> {
    Json(state.services.targets())
}

pub(super) async fn metrics(State(state): State<AppState>) -> Result<Response, Refusal> {
    let now = Now {
        in_flight: state.engine.in_flight(),
        records: state.services.records.stats(),
        responses_lost: state.kept.lost(),
        targets: state.engine.targets().targets,
    };
    let text = state.metrics.render(&now).map_err(|_| Refusal::internal())?;
    let content_type = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
}
