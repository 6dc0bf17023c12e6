use super::Cohere;
use crate::Wire as _;
use http::{HeaderMap, StatusCode};
use std::time::SystemTime;
use switchyard_core::error::Kind;
use switchyard_core::secret::Secret;

#[test]
fn addresses_are_made_of_any_base() {
    for base in [
        "https://api.cohere.com",
        "https://api.cohere.com/",
        "https://api.cohere.com/v2",
        "https://api.cohere.com/v1/",
    ] {
        let key = Secret::new("k".to_owned());
        let wire = Cohere::new(base, Some(&key), &[]).unwrap();
        assert_eq!(wire.chat.as_ref().unwrap(), "https://api.cohere.com/v2/chat");
        assert_eq!(wire.embed.as_ref().unwrap(), "https://api.cohere.com/v2/embed");
        let models = wire.list_models().unwrap();
        assert_eq!(models.uri(), "https://api.cohere.com/v1/models?page_size=1000");
        assert_eq!(models.headers().get("authorization").unwrap(), "Bearer k");
    }
}

#[test]
fn failures_are_of_the_right_kind() {
    let wire = Cohere::new("https://x", None, &[]).unwrap();
    for (status, message, kind) in [
        (
            400,
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.",
            Kind::ContextLength,
        ),
        (
            400,
            "invalid request: message must be at least 1 token long",
            Kind::Refused,
        ),
        (401, "invalid api token", Kind::Auth),
        (402, "Please add or update your payment method", Kind::Quota),
        (404, "model 'x' not found", Kind::NotFound),
        (422, "odd", Kind::Refused),
        (
            429,
            "You are using a Trial key, which is limited to 40 API calls / minute.",
            Kind::RateLimit,
        ),
        (
            429,
            "You are using a Trial key, which is limited to 1000 API calls / month.",
            Kind::Quota,
        ),
        (
            429,
            "trial token rate limit exceeded, limit is 100000 tokens per minute",
            Kind::RateLimit,
        ),
        (498, "blocked", Kind::Refused),
        (499, "request cancelled", Kind::ServerError),
        (500, "internal server error", Kind::ServerError),
        (504, "timeout", Kind::Timeout),
    ] {
        let body = serde_json::json!({ "message": message }).to_string();
        let status = StatusCode::from_u16(status).unwrap();
        let error = wire.failure(status, &HeaderMap::new(), body.as_bytes(), SystemTime::UNIX_EPOCH);
        assert_eq!((error.kind, &*error.message), (kind, message), "{status}");
    }
}
