//! The admin API over HTTP, with the session cookie that the browser sends by itself.

use super::{
    AdminApi, Answer, ExplainCall, query,
    read::{Read, read},
};
use crate::browser::http;
use send_wrapper::SendWrapper;
use switchyard_api::{
    ApiError, Dashboard, Explained, Key, LogDetail, LogPage, LogQuery, Me, ModelList, NewKey, Range, Targets,
};

/// Asks the gateway that served the page.
pub struct Http;

impl AdminApi for Http {
    fn me(&self) -> Answer<Me> {
        get("/admin/session".to_owned())
    }

    fn dashboard(&self, range: Range) -> Answer<Dashboard> {
        get(format!("/admin/dashboard?range={}", range.as_str()))
    }

    fn logs(&self, query: LogQuery) -> Answer<LogPage> {
        get(query::logs(&query))
    }

    fn log(&self, id: String) -> Answer<LogDetail> {
        get(format!("/admin/logs/{}", query::segment(&id)))
    }

    fn keys(&self) -> Answer<Vec<Key>> {
        get("/admin/keys".to_owned())
    }

    fn create_key(&self, key: NewKey) -> Answer<Key> {
        match serde_json::to_string(&key) {
            Ok(key) => post("/admin/keys".to_owned(), Some(key)),
            Err(fault) => Box::pin(async move { Err(ApiError::new(0, "unwritable", fault.to_string())) }),
        }
    }

    fn revoke_key(&self, id: String) -> Answer<Key> {
        post(format!("/admin/keys/{}/revoke", query::segment(&id)), None)
    }

    fn models(&self) -> Answer<ModelList> {
        get("/v1/models".to_owned())
    }

    fn targets(&self) -> Answer<Targets> {
        get("/admin/targets".to_owned())
    }

    fn explain(&self, call: ExplainCall) -> Answer<Explained> {
        let body = call.body();
        let text = text("POST", "/v1/route/explain".to_owned(), Some(body), Some(call));
        Box::pin(async move { read(&text.await?) })
    }
}

fn get<T: Read + 'static>(path: String) -> Answer<T> {
    let text = text("GET", path, None, None);
    Box::pin(async move { read(&text.await?) })
}

fn post<T: Read + 'static>(path: String, body: Option<String>) -> Answer<T> {
    let text = text("POST", path, body, None);
    Box::pin(async move { read(&text.await?) })
}

/// The browser has one thread: the wrapper says so to a bound that cannot know it.
fn text(method: &'static str, path: String, body: Option<String>, call: Option<ExplainCall>) -> Answer<String> {
    Box::pin(SendWrapper::new(async move {
        let headers = call.as_ref().map(ExplainCall::headers).unwrap_or_default();
        let response = http::send(method, &path, body.as_deref(), &headers, None).await?;
        http::text(&response).await
    }))
}
