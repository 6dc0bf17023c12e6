//! The admin API over HTTP, with the session cookie that the browser sends by itself.

use super::{AdminApi, Answer, query};
use crate::browser::http;
use send_wrapper::SendWrapper;
use serde::{Serialize, de::DeserializeOwned};
use switchyard_api::{
    ApiError, Attempt, Dashboard, Key, LogDetail, LogPage, LogQuery, Me, ModelList, NewKey, Range, Verdict,
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
        let whole = get_text(format!("/admin/logs/{}", query::segment(&id)));
        Box::pin(async move { detail(&whole.await?) })
    }

    fn keys(&self) -> Answer<Vec<Key>> {
        get("/admin/keys".to_owned())
    }

    fn create_key(&self, key: NewKey) -> Answer<Key> {
        post("/admin/keys".to_owned(), Some(&key))
    }

    fn revoke_key(&self, id: String) -> Answer<Key> {
        post(format!("/admin/keys/{}/revoke", query::segment(&id)), None::<&()>)
    }

    fn models(&self) -> Answer<ModelList> {
        get("/v1/models".to_owned())
    }
}

fn get<T: DeserializeOwned + 'static>(path: String) -> Answer<T> {
    answer("GET", path, None)
}

fn post<T: DeserializeOwned + 'static>(path: String, body: Option<&impl Serialize>) -> Answer<T> {
    match body.map(serde_json::to_string).transpose() {
        Ok(body) => answer("POST", path, body),
        Err(fault) => Box::pin(async move { Err(ApiError::new(0, "unwritable", fault.to_string())) }),
    }
}

/// A row and what happened stand in one object. Read as one type, serde would first have to keep every field as a value
/// of any kind, and the code for that is a tenth of all the code that reads answers. Two passes over the text need none.
fn detail(text: &str) -> Result<LogDetail, ApiError> {
    #[derive(serde::Deserialize)]
    struct Happened {
        attempts: Vec<Attempt>,
        verdicts: Vec<Verdict>,
    }
    let Happened { attempts, verdicts } = read(text)?;
    Ok(LogDetail {
        row: read(text)?,
        attempts,
        verdicts,
    })
}

fn answer<T: DeserializeOwned + 'static>(method: &'static str, path: String, body: Option<String>) -> Answer<T> {
    let text = text(method, path, body);
    Box::pin(async move { read(&text.await?) })
}

fn get_text(path: String) -> Answer<String> {
    text("GET", path, None)
}

/// The browser has one thread: the wrapper says so to a bound that cannot know it.
fn text(method: &'static str, path: String, body: Option<String>) -> Answer<String> {
    Box::pin(SendWrapper::new(async move {
        let response = http::send(method, &path, body.as_deref(), None).await?;
        http::text(&response).await
    }))
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|fault| {
        let message =
            format!("The gateway's answer could not be read: {fault}. If it was just updated, load the page again.");
        ApiError::new(0, "unreadable", message)
    })
}
