//! What pages may ask for. One trait, two implementations: in-process on the server, fetch in the browser.
//! A page takes [`api`] from the context and never knows which one it got.

use leptos::prelude::expect_context;
use std::{future::Future, pin::Pin, sync::Arc};
use switchyard_api::{ApiError, Dashboard, Key, LogDetail, LogPage, LogQuery, Me, ModelList, NewKey, Range};

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
}

/// Shared handle to the admin API.
pub type Api = Arc<dyn AdminApi>;

/// The admin API of this page.
#[must_use]
pub fn api() -> Api {
    expect_context::<Api>()
}
