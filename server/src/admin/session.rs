//! Signing in and out.
//!
//! One route serves two kinds of client. A program sends its key as a bearer and gets a token. A browser's form sends the
//! key as a field and gets a cookie and a page, never a token: the key stands in no address and no script can read the
//! cookie. The form works without JavaScript.

use crate::auth::{Principal, ip_of, is_same_origin, sessions::expired_cookie};
use crate::http::Refusal;
use crate::http::client_ip::Client;
use crate::state::AppState;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use std::net::IpAddr;
use switchyard_api::{Me, SessionCreated, Timestamp};
use switchyard_core::scope::Scope;

/// A key and a path fit many times.
const LONGEST_FORM: usize = 16 * 1024;

/// `GET /admin/session`: who is calling.
pub(super) async fn show(State(state): State<AppState>, request: Request) -> Result<Json<Me>, Refusal> {
    let principal = caller(&state, request.headers(), ip_of(&request)).await?;
    principal.must(Scope::ReadOnly)?;
    Ok(Json(state.services.me(&principal)))
}

async fn caller(state: &AppState, headers: &HeaderMap, ip: IpAddr) -> Result<Principal, Refusal> {
    let missing = || Refusal::unauthenticated("missing_api_key", "no key and no session came with this request");
    state.auth.authenticate(headers, ip).await?.ok_or_else(missing)
}

/// `POST /admin/session`.
pub(super) async fn begin(State(state): State<AppState>, request: Request) -> Response {
    let client = request.extensions().get::<Client>().copied();
    let throttled = client.is_some_and(|client| state.auth.throttles.refuses_sign_in(client.ip));
    if throttled {
        state.metrics.rejected_by_limit("admin_session");
    }
    let form = content_type(request.headers()).starts_with("application/x-www-form-urlencoded");
    if form {
        return begin_from_form(&state, request, throttled, client.is_some_and(|client| client.https)).await;
    }
    if throttled {
        return Refusal::throttled(6).into_response();
    }
    match begin_from_key(&state, request.headers(), ip_of(&request)).await {
        Ok(created) => (StatusCode::CREATED, Json(created)).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

async fn begin_from_key(state: &AppState, headers: &HeaderMap, ip: IpAddr) -> Result<SessionCreated, Refusal> {
    let principal = caller(state, headers, ip).await?;
    if principal.session.is_some() {
        return Err(Refusal::invalid(
            "invalid_request",
            "a session begins with a key; this request came with a session",
        ));
    }
    let begun = state.auth.sessions.begin(&principal).await?;
    Ok(SessionCreated {
        token: begun.bearer(),
        subject: principal.subject.clone(),
        scopes: super::scopes_out(principal.scopes),
        expires_at: Timestamp(begun.expires_at_ms),
    })
}

async fn begin_from_form(state: &AppState, request: Request, throttled: bool, https: bool) -> Response {
    let ip = ip_of(&request);
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, LONGEST_FORM)
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let fields: Vec<(String, String)> = super::logs::pairs(&text(body.unwrap_or_default())).collect();
    let field = |name: &str| {
        fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    };
    let next = local_path(field("next"));
    if throttled {
        return refused("throttled", &next);
    }
    // Another site must not be able to sign somebody in under a key of its own choice.
    if !comes_from_here(&parts.method, &parts.headers) {
        return refused("invalid", &next);
    }
    let principal = match state.auth.by_token(field("key").unwrap_or_default(), ip).await {
        Ok(principal) if !principal.scopes.allow(Scope::ReadOnly) => return refused("scope", &next),
        Ok(principal) if principal.session.is_some() => return refused("invalid", &next),
        Ok(principal) => principal,
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => return refused("invalid", &next),
        Err(refusal) if refusal.status == StatusCode::TOO_MANY_REQUESTS => return refused("throttled", &next),
        Err(_) => return refused("unavailable", &next),
    };
    let cookie = match state.auth.sessions.begin(&principal).await {
        Ok(begun) => begun.cookie(https),
        Err(_) => return refused("unavailable", &next),
    };
    let mut response = Redirect::to(&next).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// A program that fills the form in sends neither header, and is welcome.
fn comes_from_here(method: &Method, headers: &HeaderMap) -> bool {
    let silent = !headers.contains_key(header::ORIGIN) && !headers.contains_key("sec-fetch-site");
    silent || is_same_origin(method, headers)
}

fn text(body: Bytes) -> String {
    String::from_utf8(body.into()).unwrap_or_default()
}

/// Where to go after signing in: a path of ours, and nothing that a browser could take for another host.
fn local_path(next: Option<&str>) -> String {
    let local = next.filter(|path| {
        path.starts_with('/') && !path[1..].starts_with(['/', '\\']) && path.bytes().all(|b| b.is_ascii_graphic())
    });
    local.unwrap_or("/").to_owned()
}

fn refused(error: &str, next: &str) -> Response {
    let query: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("error", error)
        .append_pair("next", next)
        .finish();
    Redirect::to(&format!("/signin?{query}")).into_response()
}

/// `DELETE /admin/session`.
pub(super) async fn end(State(state): State<AppState>, request: Request) -> Result<Response, Refusal> {
    let principal = caller(&state, request.headers(), ip_of(&request)).await?;
    if principal.by_cookie && !is_same_origin(request.method(), request.headers()) {
        return Err(Refusal::forbidden(
            "cross_origin",
            "a browser may end its session only from the gateway's own pages",
        ));
    }
    let Some(session) = &principal.session else {
        return Err(Refusal::invalid(
            "not_a_session",
            "this request came with a key; only a session can be ended",
        ));
    };
    state.auth.sessions.end(session).await?;
    Ok(without_cookie(StatusCode::NO_CONTENT.into_response(), &request))
}

/// `POST /admin/session/end`: the same from a form.
pub(super) async fn end_from_form(State(state): State<AppState>, request: Request) -> Response {
    if !is_same_origin(request.method(), request.headers()) {
        return Refusal::forbidden(
            "cross_origin",
            "a browser may end its session only from the gateway's own pages",
        )
        .into_response();
    }
    if let Ok(Some(principal)) = state.auth.authenticate(request.headers(), ip_of(&request)).await
        && let Some(session) = &principal.session
        && let Err(refusal) = state.auth.sessions.end(session).await
    {
        return refusal.into_response();
    }
    without_cookie(Redirect::to("/signin").into_response(), &request)
}

fn without_cookie(mut response: Response, request: &Request) -> Response {
    let https = request.extensions().get::<Client>().is_some_and(|client| client.https);
    if let Some(cookie) = expired_cookie(https) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::local_path;

    #[test]
    fn signing_in_leads_nowhere_but_here() {
        for (next, want) in [
            (Some("/requests?q=a"), "/requests?q=a"),
            (None, "/"),
            (Some(""), "/"),
            (Some("//evil.test"), "/"),
            (Some("/\\evil.test"), "/"),
            (Some("https://evil.test"), "/"),
            (Some("/a\nb"), "/"),
        ] {
            assert_eq!(local_path(next), want, "{next:?}");
        }
    }
}
