//! Probes: is it up, can it serve, what stands behind it. None asks who is calling, and none is ever throttled.
//!
//! `/readyz` is 200 while requests can be answered, also with `"status": "degraded"` while their records cannot be written:
//! a balancer that took every replica out for that would turn a small fault into an outage.

use crate::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing::get};
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use switchyard_engine::Callable;
use tokio::sync::Mutex;

/// Answers younger than this are given again.
const KEPT: Duration = Duration::from_secs(1);
const STORE_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct Readiness {
    kept: Mutex<Option<(Instant, Result<(), &'static str>)>>,
    pub(crate) draining: AtomicBool,
}

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/health", get(health))
}

async fn livez() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

async fn readyz(State(state): State<AppState>) -> Response {
    if state.readiness.draining.load(Ordering::Relaxed) {
        return not_ready("shutting down");
    }
    let targets = state.engine.standings();
    if !targets.iter().any(|target| target.callable) {
        return not_ready("no routable targets");
    }
    if let Err(reason) = store_answers(&state).await {
        return not_ready(reason);
    }
    let mut body = json!({
        "status": "ready",
        "providers": targets.iter().map(|t| json!({ "name": t.provider, "circuit": t.circuit })).collect::<Vec<_>>(),
        "targets": targets.iter().map(|t| json!({ "name": t.name, "routable": t.callable })).collect::<Vec<_>>(),
        "mcp_servers": [],
    });
    if let Some(reason) = state.services.records.stats().degraded {
        body["status"] = json!("degraded");
        body["reason"] = json!(reason);
    }
    Json(body).into_response()
}

fn not_ready(reason: &str) -> Response {
    (
        StatusCode::SERVICE_UNAVAILABLE,
        Json(json!({ "status": "not_ready", "reason": reason })),
    )
        .into_response()
}

async fn store_answers(state: &AppState) -> Result<(), &'static str> {
    let mut kept = state.readiness.kept.lock().await;
    if let Some((when, answer)) = kept.filter(|(when, _)| when.elapsed() < KEPT) {
        let _ = when;
        return answer;
    }
    let answer = match tokio::time::timeout(STORE_PATIENCE, state.services.store.ping()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err("store unreachable"),
    };
    *kept = Some((Instant::now(), answer));
    answer
}

async fn health(State(state): State<AppState>) -> Response {
    let targets = state.engine.standings();
    let available: Vec<&Callable> = targets.iter().filter(|target| target.callable).collect();
    let ok = !available.is_empty();
    let provider =
        |t: &&Callable| json!({ "name": t.provider, "status": "available", "circuit": t.circuit, "models": t.models });
    let body = json!({
        "status": if ok { "ok" } else { "no_providers" },
        "providers": available.iter().map(provider).collect::<Vec<_>>(),
        "version": env!("CARGO_PKG_VERSION"),
        "commit": env!("SWITCHYARD_COMMIT"),
    });
    let status = if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(body)).into_response()
}
