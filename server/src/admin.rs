//! `/admin`: what operators and the dashboard call.
//!
//! [`Services`] does the work and knows no HTTP; the handlers below and the pages both call it, each with the caller's own
//! principal. Looking asks for `read_only`, changing asks for `admin`, and the service that changes something checks it.

mod handlers;
mod keys;
mod logs;
mod overview;
mod session;
mod targets;

use crate::auth::{Auth, Principal, require_read};
use crate::http::headers::no_store;
use crate::http::{Refusal, fallback};
use crate::state::AppState;
use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::{get, post};
use std::sync::Arc;
use switchyard_api::{Gateway, Me, Model, ModelList, Scope, StoreState, Timestamp};
use switchyard_engine::{Engine, ports::Clock};
use switchyard_store::{Store, Writer};

pub(crate) fn router(state: &AppState) -> Router {
    let guarded = Router::new()
        .route("/admin/dashboard", get(handlers::dashboard))
        .route("/admin/keys", get(handlers::list_keys).post(handlers::create_key))
        .route("/admin/keys/{id}", get(handlers::key).put(handlers::update_key))
        .route("/admin/keys/{id}/revoke", post(handlers::revoke_key))
        .route("/admin/logs", get(handlers::list_logs))
        .route("/admin/logs/{id}", get(handlers::log))
        .route("/admin/targets", get(handlers::targets))
        .route("/metrics", get(handlers::metrics))
        .method_not_allowed_fallback(fallback::wrong_method)
        .route_layer(from_fn_with_state(state.clone(), require_read));
    let sessions = Router::new()
        .route(
            "/admin/session",
            get(session::show).post(session::begin).delete(session::end),
        )
        .route("/admin/session/end", post(session::end_from_form))
        .method_not_allowed_fallback(fallback::wrong_method);
    guarded
        .merge(sessions)
        .layer(map_response(no_store))
        .with_state(state.clone())
}

/// What the admin API does, whoever carries the answer.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) store: Store,
    pub(crate) records: Writer,
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) auth: Auth,
    /// `GATEWAY_ENV`.
    pub(crate) environment: Option<String>,
}

impl Services {
    pub(crate) fn me(&self, principal: &Principal) -> Me {
        let stats = self.records.stats();
        let store = StoreState {
            backend: self.store.backend().to_owned(),
            degraded: stats.degraded,
            queued: stats.queued,
            spooled: stats.spooled,
            shed: stats.shed,
        };
        let gateway = Gateway {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            environment: self.environment.clone(),
            simulated: self.engine.snapshot().is_simulated(),
            store,
        };
        Me {
            subject: principal.subject.clone(),
            credential_id: principal.credential_id.clone(),
            scopes: scopes_out(principal.scopes),
            expires_at: principal
                .session
                .as_ref()
                .map(|session| Timestamp(session.expires_at_ms)),
            gateway,
        }
    }

    pub(crate) async fn models(&self) -> ModelList {
        let listed = self.engine.snapshot().models().await;
        let model = |model: &switchyard_engine::ListedModel| Model {
            id: model.id.clone(),
            object: "model".to_owned(),
            created: model.created,
            owned_by: model.owned_by.clone(),
        };
        ModelList {
            object: "list".to_owned(),
            data: listed.iter().map(model).collect(),
        }
    }
}

pub(crate) fn scopes_out(scopes: switchyard_core::scope::Scopes) -> Vec<Scope> {
    let out = |scope| match scope {
        switchyard_core::scope::Scope::Admin => Scope::Admin,
        switchyard_core::scope::Scope::ReadOnly => Scope::ReadOnly,
        switchyard_core::scope::Scope::Invoke => Scope::Invoke,
    };
    scopes.iter().map(out).collect()
}

fn scopes_in(scopes: &[Scope]) -> switchyard_core::scope::Scopes {
    let within = |scope: &Scope| match scope {
        Scope::Admin => switchyard_core::scope::Scope::Admin,
        Scope::ReadOnly => switchyard_core::scope::Scope::ReadOnly,
        Scope::Invoke => switchyard_core::scope::Scope::Invoke,
    };
    scopes.iter().map(within).collect()
}

fn must_change(principal: &Principal) -> Result<(), Refusal> {
    principal.must(switchyard_core::scope::Scope::Admin)
}
