//! Every request has an id: 32 hex digits, on the answer, in the log and in the record.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderName, HeaderValue};

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) String);

impl RequestId {
    /// A caller's own id is taken over when it has the right shape; any other is replaced. New ids begin with the time, so
    /// that an index over them grows at its end.
    fn of(request: &Request) -> Self {
        let given = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
        match given {
            Some(id) if id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()) => Self(id.to_ascii_lowercase()),
            _ => Self(fresh()),
        }
    }
}

pub(crate) fn fresh() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

pub(crate) async fn layer(mut request: Request, next: Next) -> Response {
    let id = RequestId::of(&request);
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
