//! Authentication as middleware: each route says what it asks for.

use super::{Principal, is_same_origin};
use crate::http::Refusal;
use crate::http::client_ip::Client;
use crate::state::AppState;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, Method};
use std::net::{IpAddr, Ipv4Addr};
use switchyard_core::scope::Scope;

/// Any valid credential: the parts of `/v1` that cost nothing.
pub(crate) async fn require_data(State(state): State<AppState>, request: Request, next: Next) -> Response {
    pass(&state, request, next, state.auth.open_data_plane, None).await
}

/// A credential that may spend.
pub(crate) async fn require_invoke(State(state): State<AppState>, request: Request, next: Next) -> Response {
    pass(&state, request, next, state.auth.open_data_plane, Some(Scope::Invoke)).await
}

/// A credential that may look at the admin side. Handlers that change something ask for more.
pub(crate) async fn require_read(State(state): State<AppState>, request: Request, next: Next) -> Response {
    pass(&state, request, next, false, Some(Scope::ReadOnly)).await
}

async fn pass(state: &AppState, mut request: Request, next: Next, open: bool, scope: Option<Scope>) -> Response {
    let ip = ip_of(&request);
    match admit(state, request.method(), request.headers(), ip, open, scope).await {
        Ok(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Err(refusal) => refusal.in_dialect(crate::data::dialect_at(request.uri().path())),
    }
}

/// Who calls, if they may. `open`: whoever shows no credential is let in as nobody.
pub(crate) async fn admit(
    state: &AppState,
    method: &Method,
    headers: &HeaderMap,
    ip: IpAddr,
    open: bool,
    scope: Option<Scope>,
) -> Result<Principal, Refusal> {
    let principal = match state.auth.known(headers) {
        Some(principal) => principal,
        // In a box: what it needs is large, and nearly nobody does.
        None => Box::pin(identify(state, method, headers, ip, open))
            .await
            .inspect_err(|refusal| count(state, refusal))?,
    };
    if let Some(scope) = scope {
        principal.must(scope)?;
    }
    Ok(principal)
}

/// The client's address; the layer outside has found it.
pub(crate) fn ip_of(request: &Request) -> IpAddr {
    request
        .extensions()
        .get::<Client>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |client| client.ip)
}

async fn identify(
    state: &AppState,
    method: &Method,
    headers: &HeaderMap,
    ip: IpAddr,
    open: bool,
) -> Result<Principal, Refusal> {
    match state.auth.authenticate(headers, ip).await? {
        Some(principal) if principal.by_cookie && !is_same_origin(method, headers) => {
            let message =
                "a browser may change something only from the gateway's own pages; other clients send their key";
            Err(Refusal::forbidden("cross_origin", message))
        }
        Some(principal) => Ok(principal),
        None if open => Ok(Principal::nobody()),
        None => {
            let message = "no key came with this request; send `Authorization: Bearer <key>` or `x-api-key: <key>`";
            Err(Refusal::unauthenticated("missing_api_key", message))
        }
    }
}

fn count(state: &AppState, refusal: &Refusal) {
    if refusal.status == http::StatusCode::TOO_MANY_REQUESTS {
        state.metrics.rejected_by_limit("ip");
    }
}

/// Pages: whoever may not see them is asked to sign in.
pub(crate) async fn authenticate_page(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    match state.auth.authenticate(request.headers(), ip_of(&request)).await {
        Ok(Some(principal)) if principal.scopes.allow(Scope::ReadOnly) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Ok(_) => sign_in(path, ""),
        Err(refusal) => match refusal.status {
            http::StatusCode::UNAUTHORIZED => sign_in(path, ""),
            http::StatusCode::TOO_MANY_REQUESTS => {
                count(&state, &refusal);
                refusal.into_response()
            }
            _ => sign_in(path, "&error=unavailable"),
        },
    }
}

fn sign_in(next: &str, error: &str) -> Response {
    let next: String = next.bytes().map(escape).collect();
    Redirect::to(&format!("/signin?next={next}{error}")).into_response()
}

fn escape(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}
