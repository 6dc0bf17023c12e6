//! The mock's remote control, for tests that are no Rust program.
//!
//! | route | does |
//! |---|---|
//! | `POST /_script` | `{"match": {"model"?, "path"?}?, "replies": [reply]?, "default": reply?}`: appends replies, sets the default |
//! | `POST /_release` | `{"gate": name, "count"?: 1}` lets that many pass; `{"gate": name, "open": true}` lets all |
//! | `GET /_requests` | what arrived: `[{method, path, query, headers: [[name, value]], body, json, cancelled}]` |
//! | `POST /_reset` | forgets everything |
//!
//! A reply is described at [`Reply`]. A script with an unknown field is refused with 400: a misspelt `delay_ms` should
//! not look like a fast server.

use super::{Matcher, Recorded, Reply, state::Shared};
use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

type Refused = (StatusCode, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default, rename = "match")]
    matcher: Matcher,
    #[serde(default)]
    replies: Vec<Value>,
    #[serde(default)]
    default: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    gate: String,
    #[serde(default = "Release::one")]
    count: usize,
    #[serde(default)]
    open: bool,
}

impl Release {
    const fn one() -> usize {
        1
    }
}

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/_script", post(script))
        .route("/_release", post(release))
        .route("/_requests", get(requests))
        .route("/_reset", post(reset))
}

async fn script(State(shared): State<Arc<Shared>>, body: Bytes) -> Result<StatusCode, Refused> {
    let script: Script = parse(&body)?;
    let replies = script.replies.iter().map(reply).collect::<Result<Vec<_>, _>>()?;
    let default = script.default.as_ref().map(reply).transpose()?;
    if default.is_some() {
        shared.set_default(script.matcher.clone(), default);
    }
    shared.script(script.matcher, replies);
    Ok(StatusCode::NO_CONTENT)
}

async fn release(State(shared): State<Arc<Shared>>, body: Bytes) -> Result<StatusCode, Refused> {
    let release: Release = parse(&body)?;
    let gate = shared.gate(&release.gate);
    if release.open {
        gate.open();
    } else {
        gate.release(release.count);
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn requests(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.requests().iter().map(shown).collect())
}

async fn reset(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.reset();
    StatusCode::NO_CONTENT
}

fn parse<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
}

/// A flattened structure cannot refuse unknown fields by itself. Written out again, it has all that it knows.
fn reply(value: &Value) -> Result<Reply, Refused> {
    let reply: Reply = parse(value.to_string().as_bytes())?;
    let known = serde_json::to_value(&reply).unwrap_or_default();
    let mut names = value.as_object().into_iter().flat_map(|object| object.keys());
    match names.find(|name| known.get(name.as_str()).is_none()) {
        Some(name) => Err((StatusCode::BAD_REQUEST, format!("unknown field `{name}` in a reply"))),
        None => Ok(reply),
    }
}

fn shown(request: &Recorded) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), text(value.as_bytes())))
        .collect();
    json!({
        "method": request.method.as_str(),
        "path": request.path,
        "query": request.query,
        "headers": headers,
        "body": text(&request.body),
        "json": request.json,
        "cancelled": request.cancelled,
    })
}
