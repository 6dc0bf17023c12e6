//! What surrounds every answer, whoever gives it:
//!
//! 1. a request id: even a panic's answer carries it
//! 2. the client's address
//! 3. the access log
//! 4. a panic becomes a 500, and the connection lives on
//! 5. security headers
//! 6. unknown verbs
//! 7. CORS, before anyone is asked who they are
//! 8. the limit per address, where it is switched on
//!
//! Authentication follows inside, per route.
//!
//! All of it is one function and no stack of layers. A layer clones the service inside it and boxes a future, for every
//! request; eight of them cost a third of what the gateway spent on a call. For the same reason the paths that calls take
//! are told apart here, and everything else goes through the router.

use super::client_ip::Client;
use super::headers::secure;
use super::request_id::{self, RequestId};
use super::{Refusal, cors, fallback};
use crate::data;
use crate::observe::access;
use crate::state::AppState;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use hyper::body::Incoming;
use std::any::Any;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use switchyard_providers::Dialect;
use tower::ServiceExt;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// The one door. Clones are one.
#[derive(Clone)]
pub(crate) struct Front(Arc<Inner>);

struct Inner {
    state: AppState,
    /// Where whatever is no call goes.
    router: Router,
}

/// Who comes in, and under which id.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) id: RequestId,
    pub(crate) client: Client,
}

impl Front {
    pub(crate) fn new(state: AppState, router: Router) -> Self {
        Self(Arc::new(Inner { state, router }))
    }

    /// The answer to a request from `peer`, the other end of the connection.
    pub(crate) async fn answer(self, peer: SocketAddr, request: http::Request<Incoming>) -> Response {
        let Inner { state, .. } = &*self.0;
        let visit = Visit {
            id: RequestId::of(request.headers()),
            client: state.proxies.client_of(peer.ip(), request.headers()),
        };
        let id = visit.id.clone();
        let https = visit.client.https;
        let line = access::Line::begin(&request, &visit);
        let origin = request.headers().get(header::ORIGIN).cloned();
        let wanted =
            preflight(&request).then(|| request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned());
        // In a box, so that a connection that waits for its next request does not keep room for it.
        let dialect = data::dialect_at(request.uri().path());
        let inside = Box::pin(self.0.inside(request, visit, wanted.is_some()));
        let mut response = match AssertUnwindSafe(inside).catch_unwind().await {
            Ok(response) => response,
            Err(payload) => panicked(&*payload, dialect),
        };
        let headers = response.headers_mut();
        if let Some(origin) = origin {
            cors::answer(&state.settings.cors, headers, origin, wanted);
        }
        secure(headers, https);
        if let Ok(value) = HeaderValue::from_str(&id.0) {
            headers.insert(request_id::HEADER, value);
        }
        if let Some(line) = line {
            line.end(&id, response.status());
        }
        response
    }
}

impl Inner {
    async fn inside(&self, request: http::Request<Incoming>, visit: Visit, preflight: bool) -> Response {
        let state = &self.state;
        let mut request = request;
        if is_googles(&request) {
            take_google_key(&mut request);
        }
        let (method, path) = (request.method(), request.uri().path());
        if !fallback::is_known(method) {
            return fallback::unknown_verb(method);
        }
        // It only asks whether it might ask.
        if preflight {
            return StatusCode::NO_CONTENT.into_response();
        }
        if !is_probe(path) && state.auth.throttles.refuses(visit.client.ip) {
            state.metrics.rejected_by_limit("ip");
            return Refusal::throttled(1).in_dialect(data::dialect_at(path));
        }
        if let Some(door) = data::door_at(path) {
            return data::call(state, door, visit, request).await;
        }
        let mut request: Request = request.map(Body::new);
        let extensions = request.extensions_mut();
        extensions.insert(visit.client);
        extensions.insert(visit.id);
        self.router
            .clone()
            .oneshot(request)
            .await
            .unwrap_or_else(|never| match never {})
    }
}

/// Google's clients show their key in a header of their own, or in the query. It is read as any other key is.
fn take_google_key<B>(request: &mut http::Request<B>) {
    if request.headers().contains_key(header::AUTHORIZATION) || request.headers().contains_key(&API_KEY) {
        return;
    }
    let in_query = || {
        let query = form_urlencoded::parse(request.uri().query()?.as_bytes());
        let (_, key) = query.into_iter().find(|(name, _)| name == "key")?;
        HeaderValue::from_str(&key).ok()
    };
    let key = request.headers().get(&GOOGLE_KEY).cloned().or_else(in_query);
    if let Some(mut key) = key {
        key.set_sensitive(true);
        request.headers_mut().insert(API_KEY, key);
    }
}

/// Whether a browser asks what it may send to another origin.
fn preflight(request: &http::Request<Incoming>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ORIGIN)
}

/// Whether Google's clients call so. The list of models is where OpenAI's is too; there the header tells.
fn is_googles<B>(request: &http::Request<B>) -> bool {
    let path = request.uri().path();
    let lists = path == "/v1/models" || path.starts_with("/v1/models/");
    data::dialect_at(path) == Dialect::Gemini || lists && request.headers().contains_key(&GOOGLE_KEY)
}

/// Probes are never refused.
fn is_probe(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/health")
}

/// The payload goes into the log, never to the caller.
fn panicked(payload: &(dyn Any + Send), dialect: Dialect) -> Response {
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    tracing::error!(panic = message.unwrap_or("without a message"), "a request panicked");
    Refusal::internal().in_dialect(dialect)
}
