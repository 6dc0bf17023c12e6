//! `POST /v1/route/explain`: what a call with this body would do now. Nothing is sent and nothing is recorded.

use super::surface::read_body;
use crate::auth::Principal;
use crate::http::error::failed;
use crate::http::request_id::RequestId;
use crate::state::AppState;
use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use std::time::Duration;
use switchyard_core::error::Error;
use switchyard_engine::{Attribution, Failure};
use switchyard_providers::Dialect;

pub(super) async fn explain(State(state): State<AppState>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let principal = parts
        .extensions
        .get::<Principal>()
        .cloned()
        .unwrap_or_else(Principal::nobody);
    let id = parts
        .extensions
        .get::<RequestId>()
        .map(|id| id.0.clone())
        .unwrap_or_else(|| "".into());
    let most = state.engine.snapshot().max_request_bytes;
    let explained = match read_body(&parts.headers, body, most).await {
        Ok(body) => state.services.explain(&principal, id, parts.headers, body).await,
        Err(error) => Err(error),
    };
    match explained {
        Ok(explained) => Json(explained).into_response(),
        Err(error) => refuse(error),
    }
}

fn refuse(error: Error) -> Response {
    let failure = Failure {
        error,
        attribution: Attribution::default(),
        overhead: Duration::ZERO,
        waited: Duration::ZERO,
        headers: HeaderMap::new(),
    };
    failed(&failure, Dialect::OpenAi)
}
