//! The pages: rendered here in the caller's own name, taken over by WASM in the browser.
//!
//! A page asks the admin API through a trait. On this side the trait is the services themselves, bound to the principal
//! that the auth chain found; no request of ours ever goes over the loopback.

mod assets;
mod in_process;

use crate::auth::{Principal, authenticate_page};
use crate::http::fallback;
use crate::http::headers::no_store;
use crate::state::AppState;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use in_process::InProcess;
use leptos::prelude::{LeptosOptions, provide_context, use_context};
use leptos_axum::{LeptosRoutes, generate_route_list};
use std::sync::Arc;
use switchyard_app::api::Api;
use tower::ServiceExt;
use tower_http::compression::CompressionLayer;

pub(crate) fn router(state: &AppState) -> Router {
    let assets = Router::new().route("/pkg/{build}/{*path}", get(assets::asset));
    let Some(build) = assets::build_id() else {
        return assets.fallback(not_built);
    };
    let pkg = format!("/pkg/{build}");
    let options = LeptosOptions::builder().output_name("app").build();
    let (signin, pages): (Vec<_>, Vec<_>) = generate_route_list(switchyard_app::App)
        .into_iter()
        .partition(|route| route.path() == "/signin");
    let context = {
        let services = state.services.clone();
        move || provide_api(&services)
    };
    let shell = move || switchyard_app::shell(pkg.clone());
    let public = Router::new().leptos_routes(&options, signin, shell.clone());
    let guard = from_fn_with_state(state.clone(), authenticate_page);
    let pages = Router::new()
        .leptos_routes_with_context(&options, pages, context.clone(), shell.clone())
        .route_layer(guard.clone());
    let missing = Router::new()
        .fallback(get(leptos_axum::render_app_async_with_context(context, shell)))
        .layer(guard);
    // Pages only: assets were compressed when they were built.
    let pages: Router = public.merge(pages).with_state(options).layer(CompressionLayer::new());
    let pages = pages.layer(map_response(no_store));
    let missing = missing.layer(map_response(no_store));
    assets
        .merge(pages)
        .fallback(move |request: Request| page_or_nothing(missing, request))
}

/// Whoever asks for HTML gets a page, be it the one that says that there is none. Everyone else gets JSON.
async fn page_or_nothing(missing: Router, request: Request) -> Response {
    let readable = matches!(*request.method(), Method::GET | Method::HEAD);
    if readable && wants_html(request.headers()) {
        return missing.oneshot(request).await.unwrap_or_else(|never| match never {});
    }
    fallback::no_route(request.method(), request.uri().path()).into_response()
}

fn wants_html(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

/// Runs for each page, with the request's parts in the context.
fn provide_api(services: &crate::admin::Services) {
    if let Some(principal) = use_context::<Parts>().and_then(|parts| parts.extensions.get::<Principal>().cloned()) {
        provide_context::<Api>(Arc::new(InProcess {
            services: services.clone(),
            principal,
        }));
    }
}

async fn not_built(request: Request) -> Response {
    if wants_html(request.headers()) {
        return (StatusCode::SERVICE_UNAVAILABLE, Html(assets::not_built_page())).into_response();
    }
    fallback::no_route(request.method(), request.uri().path()).into_response()
}
