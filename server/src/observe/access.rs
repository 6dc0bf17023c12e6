//! One line per request.
//!
//! The query is shown by its keys only: a key of ours or a vendor's may stand in its values, and logs are read by many.

use crate::http::front::Visit;
use crate::http::request_id::RequestId;
use http::{Method, Request, StatusCode};
use std::net::IpAddr;
use std::time::Instant;

/// A request's line, until it can be written.
pub(crate) struct Line {
    began: Instant,
    method: Method,
    path: String,
    ip: IpAddr,
}

impl Line {
    /// `None` when nobody would read it.
    pub(crate) fn begin<B>(request: &Request<B>, visit: &Visit) -> Option<Self> {
        tracing::enabled!(tracing::Level::INFO).then(|| Self {
            began: Instant::now(),
            method: request.method().clone(),
            path: redacted(request.uri()),
            ip: visit.client.ip,
        })
    }

    /// The answer's head is ready.
    pub(crate) fn end(self, id: &RequestId, status: StatusCode) {
        tracing::info!(
            request.id = &*id.0,
            http.method = %self.method,
            http.path = self.path,
            http.status = status.as_u16(),
            client.ip = %self.ip,
            head_ms = self.began.elapsed().as_secs_f64() * 1e3,
            "request"
        );
    }
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
