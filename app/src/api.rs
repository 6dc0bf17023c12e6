//! What pages may ask for. One trait, two implementations: in-process on the server, fetch in the browser.
//! A page takes [`api`] from the context and never knows which one it got.

pub mod asked;
#[cfg(target_arch = "wasm32")]
pub mod browser;
mod explain;
pub mod query;
pub mod read;

pub use explain::ExplainCall;

use leptos::prelude::expect_context;
use std::{future::Future, pin::Pin, sync::Arc};
use switchyard_api::{
    ApiError, Dashboard, Explained, Key, LogDetail, LogPage, LogQuery, Me, ModelList, NewKey, Range, Targets,
};

/// Boxed and `Send`, because a leptos `Resource` asks for it on both sides.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>> + Send>>;

/// The admin API in the caller's name.
pub trait AdminApi: Send + Sync {
    /// `GET /admin/session`.
    fn me(&self) -> Answer<Me>;
    /// `GET /admin/dashboard?range=`.
    fn dashboard(&self, range: Range) -> Answer<Dashboard>;
    /// `GET /admin/logs`.
    fn logs(&self, query: LogQuery) -> Answer<LogPage>;
    /// `GET /admin/logs/{id}`, by row id or request id.
    fn log(&self, id: String) -> Answer<LogDetail>;
    /// `GET /admin/keys`.
    fn keys(&self) -> Answer<Vec<Key>>;
    /// `POST /admin/keys`. The answer's `key` is the secret, this once.
    fn create_key(&self, key: NewKey) -> Answer<Key>;
    /// `POST /admin/keys/{id}/revoke`.
    fn revoke_key(&self, id: String) -> Answer<Key>;
    /// `GET /v1/models`.
    fn models(&self) -> Answer<ModelList>;
    /// `GET /admin/targets`.
    fn targets(&self) -> Answer<Targets>;
    /// `POST /v1/route/explain`.
    fn explain(&self, call: ExplainCall) -> Answer<Explained>;
}

/// Shared handle to the admin API.
pub type Api = Arc<dyn AdminApi>;

/// The admin API of this page.
#[must_use]
pub fn api() -> Api {
    expect_context::<Api>()
}

/// An answer that comes within two seconds, if only to say that it did not.
///
/// A page is rendered when all of its answers are there, so one that hangs would hold all of it back. In the browser the
/// page is there already, and the answer may take its time.
#[must_use]
pub fn bounded<T: Send + 'static>(answer: Answer<T>) -> Answer<T> {
    #[cfg(feature = "ssr")]
    return Box::pin(async move {
        let limit = std::time::Duration::from_secs(2);
        tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
            let message = "The database did not answer within 2 s. Load the page again in a moment.";
            Err(ApiError::new(504, "timeout", message))
        })
    });
    #[cfg(not(feature = "ssr"))]
    answer
}
