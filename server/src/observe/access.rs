//! One line per request.
//!
//! The query is shown by its keys only: a key of ours or a vendor's may stand in its values, and logs are read by many.

use crate::http::client_ip::Client;
use crate::http::request_id::RequestId;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use std::time::Instant;

pub(crate) async fn layer(request: Request, next: Next) -> Response {
    if !tracing::enabled!(tracing::Level::INFO) {
        return next.run(request).await;
    }
    let began = Instant::now();
    let method = request.method().clone();
    let path = redacted(request.uri());
    let id = request
        .extensions()
        .get::<RequestId>()
        .map(|id| id.0.clone())
        .unwrap_or_default();
    let ip = request.extensions().get::<Client>().map(|client| client.ip.to_string());
    let response = next.run(request).await;
    tracing::info!(
        request.id = id,
        http.method = %method,
        http.path = path,
        http.status = response.status().as_u16(),
        client.ip = ip,
        head_ms = began.elapsed().as_secs_f64() * 1e3,
        "request"
    );
    response
}

/// `/v1/models?limit=…`.
fn redacted(uri: &http::Uri) -> String {
    let Some(query) = uri.query() else {
        return uri.path().to_owned();
    };
    let shown = |pair: &str| match pair.split_once('=') {
        Some((key, _)) => format!("{key}=…"),
        None => "…".to_owned(),
    };
    let keys: Vec<String> = query.split('&').map(shown).collect();
    format!("{}?{}", uri.path(), keys.join("&"))
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn values_of_a_query_stay_out_of_the_log() {
        assert_eq!(redacted(&"/a?key=sy_secret&x".parse().unwrap()), "/a?key=…&…");
        assert_eq!(redacted(&"/a".parse().unwrap()), "/a");
    }
}
