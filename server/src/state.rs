//! What the handlers share: components, each documented where it lives.

use crate::admin::Services;
use crate::auth::Auth;
use crate::boot::Settings;
use crate::data::Kept;
use crate::http::client_ip::TrustedProxies;
use crate::http::probes::Readiness;
use crate::observe::metrics::Metrics;
use std::sync::Arc;
use switchyard_engine::Engine;

#[derive(Clone)]
pub(crate) struct AppState(Arc<Components>);

pub(crate) struct Components {
    pub(crate) settings: Settings,
    pub(crate) engine: Arc<Engine>,
    pub(crate) auth: Auth,
    pub(crate) services: Services,
    pub(crate) kept: Kept,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Readiness,
    pub(crate) proxies: TrustedProxies,
}

impl AppState {
    pub(crate) fn new(components: Components) -> Self {
        Self(Arc::new(components))
    }
}

impl std::ops::Deref for AppState {
    type Target = Components;

    fn deref(&self) -> &Components {
        &self.0
    }
}
