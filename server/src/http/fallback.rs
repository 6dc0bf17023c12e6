//! Paths and methods that do not exist.

use super::Refusal;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};

const KNOWN: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::CONNECT,
    Method::TRACE,
];

pub(crate) fn is_known(method: &Method) -> bool {
    KNOWN.contains(method)
}

/// A verb that HTTP does not have is not implemented anywhere here.
pub(crate) fn unknown_verb(method: &Method) -> Response {
    let message = format!("this server does not know the method {method}");
    Refusal::new(
        StatusCode::NOT_IMPLEMENTED,
        "invalid_request_error",
        "method_not_supported",
        message,
    )
    .into_response()
}

/// A path that exists under another method. The router adds `Allow`.
pub(crate) async fn wrong_method(request: Request) -> Response {
    not_possible(request.method(), request.uri().path()).in_dialect(crate::data::dialect_at(request.uri().path()))
}

pub(crate) fn not_possible(method: &Method, path: &str) -> Refusal {
    let message = format!("{method} is not possible on {path}");
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "invalid_request_error",
        "method_not_supported",
        message,
    )
}

pub(crate) fn no_route(method: &Method, path: &str) -> Refusal {
    let message = format!("there is no {method} {path} here");
    Refusal::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        "route_not_found",
        message,
    )
}
