use super::GoogleAccounts;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use switchyard_core::secret::Secret;
use switchyard_engine::GoogleTokens;
use switchyard_engine::ports::{Clock, Transport, TransportError, UpstreamBody};
use switchyard_providers::gemini::Tokens;

struct Still;

impl Clock for Still {
    fn now_ms(&self) -> i64 {
        0
    }
}

/// Nobody answers.
struct Silent;

impl Transport for Silent {
    fn send(&self, _: Request<Bytes>) -> BoxFuture<'static, Result<Response<UpstreamBody>, TransportError>> {
        Box::pin(std::future::pending())
    }
}

/// A person's file; the same person has another `token` after a change.
fn account(token: &str) -> String {
    let file = json!({
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "client-secret",
        "refresh_token": token,
    });
    file.to_string()
}

#[tokio::test]
async fn the_same_credential_has_one_source_and_a_changed_one_another() {
    let path = std::env::temp_dir().join(format!("switchyard-credentials-{}.json", std::process::id()));
    let in_file = HashMap::from([("GOOGLE_APPLICATION_CREDENTIALS".to_owned(), path.display().to_string())]);
    let accounts = GoogleAccounts::new(Arc::new(Still));
    let transport: Arc<dyn Transport> = Arc::new(Silent);
    let address = |source: &Arc<dyn Tokens>| Arc::as_ptr(source).cast::<()>();
    // In the environment, and in a file whose name stays.
    for is_in_file in [false, true] {
        let source = |token: &str| {
            let json = account(token);
            if is_in_file {
                std::fs::write(&path, json).unwrap();
                return accounts.source(None, &in_file, &transport).unwrap();
            }
            accounts.source(Some(&Secret::new(json)), &in_file, &transport).unwrap()
        };
        let (first, again, changed) = (source("one"), source("one"), source("two"));
        assert_eq!(address(&first), address(&again), "in a file: {is_in_file}");
        assert_ne!(address(&first), address(&changed), "in a file: {is_in_file}");
    }
    std::fs::remove_file(&path).unwrap();
}
