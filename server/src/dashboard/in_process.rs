//! The admin API as the pages use it on the server: the services, in the caller's name.

use crate::admin::Services;
use crate::auth::Principal;
use crate::http::{Refusal, request_id};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use switchyard_api::{
    ApiError, Dashboard, Explained, Key, LogDetail, LogPage, LogQuery, Me, ModelList, NewKey, Range, Targets,
};
use switchyard_app::api::{AdminApi, Answer, ExplainCall};
use switchyard_core::scope::Scope;

pub(super) struct InProcess {
    pub(super) services: Services,
    pub(super) principal: Principal,
}

impl InProcess {
    /// Runs on the services and the principal of this page.
    fn ask<T, F>(&self, ask: impl FnOnce(Services, Principal) -> F + Send + 'static) -> Answer<T>
    where
        F: Future<Output = Result<T, Refusal>> + Send + 'static,
        T: 'static,
    {
        let (services, principal) = (self.services.clone(), self.principal.clone());
        Box::pin(async move { ask(services, principal).await.map_err(ApiError::from) })
    }
}

impl AdminApi for InProcess {
    fn me(&self) -> Answer<Me> {
        self.ask(|services, principal| async move { Ok(services.me(&principal)) })
    }

    fn dashboard(&self, range: Range) -> Answer<Dashboard> {
        self.ask(move |services, _| async move { services.dashboard(range).await })
    }

    fn logs(&self, query: LogQuery) -> Answer<LogPage> {
        self.ask(move |services, _| async move { services.logs(&query).await })
    }

    fn log(&self, id: String) -> Answer<LogDetail> {
        self.ask(move |services, _| async move { services.log(&id).await })
    }

    fn keys(&self) -> Answer<Vec<Key>> {
        self.ask(|services, _| async move { services.keys().await })
    }

    fn create_key(&self, key: NewKey) -> Answer<Key> {
        self.ask(move |services, principal| async move { services.create_key(&principal, key).await })
    }

    fn revoke_key(&self, id: String) -> Answer<Key> {
        self.ask(move |services, principal| async move { services.revoke_key(&principal, &id).await })
    }

    fn models(&self) -> Answer<ModelList> {
        self.ask(|services, _| async move { Ok(services.models().await) })
    }

    fn targets(&self) -> Answer<Targets> {
        self.ask(|services, _| async move { Ok(services.targets()) })
    }

    fn explain(&self, call: ExplainCall) -> Answer<Explained> {
        self.ask(move |services, principal| async move {
            principal.must(Scope::Invoke)?;
            let headers: HeaderMap = call
                .headers()
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .filter_map(|(name, value)| Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?)))
                .collect();
            let id = request_id::fresh();
            services
                .explain(&principal, id, headers, Bytes::from(call.body()))
                .await
                .map_err(|error| Refusal::from(&error))
        })
    }
}
