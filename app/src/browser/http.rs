//! Requests to the gateway that served the page.

use super::go;
use crate::api::{query::Query, read::refusal};
use leptos::prelude::{ReadUntracked, use_context, window};
use leptos_router::location::{BrowserUrl, LocationProvider};
use switchyard_api::ApiError;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, Request, RequestInit, Response};

/// Sends a request and hands out the answer if it is a good one. `more` are headers; an empty one is not sent.
///
/// # Errors
/// What the gateway said, or that it could not be reached.
pub async fn send(
    method: &str,
    path: &str,
    json: Option<&str>,
    more: &[(&str, &str)],
    stop: Option<&AbortSignal>,
) -> Result<Response, ApiError> {
    let response = fetch(method, path, json, more, stop).await?;
    if response.ok() {
        return Ok(response);
    }
    Err(refusal(response.status(), &text(&response).await.unwrap_or_default()))
}

/// Sends a request and hands out the answer, good or not.
///
/// # Errors
/// When the gateway could not be reached. A session that has ended is no error that a page could show: the browser goes to
/// sign in, and this never returns.
pub async fn fetch(
    method: &str,
    path: &str,
    json: Option<&str>,
    more: &[(&str, &str)],
    stop: Option<&AbortSignal>,
) -> Result<Response, ApiError> {
    let init = RequestInit::new();
    init.set_method(method);
    init.set_signal(stop);
    if let Some(json) = json {
        init.set_body(&JsValue::from_str(json));
    }
    let request = Request::new_with_str_and_init(path, &init).map_err(|_| unreachable())?;
    if json.is_some() {
        drop(request.headers().set("content-type", "application/json"));
    }
    for (name, value) in more.iter().filter(|(_, value)| !value.is_empty()) {
        drop(request.headers().set(name, value));
    }
    let answer = JsFuture::from(window().fetch_with_request(&request))
        .await
        .map_err(|_| unreachable())?;
    let response: Response = answer.dyn_into().map_err(|_| unreachable())?;
    if response.status() == 401 {
        return sign_in().await;
    }
    Ok(response)
}

/// The whole body.
///
/// # Errors
/// When the line is cut before its end.
pub async fn text(response: &Response) -> Result<String, ApiError> {
    let body = response.text().map_err(|_| unreachable())?;
    JsFuture::from(body)
        .await
        .map_err(|_| unreachable())?
        .as_string()
        .ok_or_else(unreachable)
}

fn unreachable() -> ApiError {
    ApiError::new(
        0,
        "unreachable",
        "The gateway could not be reached. Check that it runs and that you are online, then try again.",
    )
}

async fn sign_in<T>() -> T {
    go(&Query::default().with("next", Some(wanted())).on("/signin"));
    std::future::pending().await
}

/// The page that someone is on, or on the way to. The router knows the second, and what asks on behalf of a page runs
/// below it; `location` stays at the old page until the new one has its data.
fn wanted() -> String {
    if let Some(router) = use_context::<BrowserUrl>() {
        let url = router.as_url().read_untracked();
        let mark = if url.search().is_empty() { "" } else { "?" };
        return [url.path(), mark, url.search()].concat();
    }
    let here = window().location();
    here.pathname().unwrap_or_default() + &here.search().unwrap_or_default()
}
