//! Every request has an id: 32 hex digits, on the answer, in the log and in the record.

use http::{HeaderMap, HeaderName};
use rand::RngCore;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

impl RequestId {
    /// A caller's own id is taken over when it has the right shape; any other is replaced. New ids begin with the time, so
    /// that an index over them grows at its end.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(HEADER).and_then(|value| value.to_str().ok());
        match given {
            Some(id) if id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Self(id.to_ascii_lowercase().into())
            }
            _ => Self(fresh()),
        }
    }
}

/// A UUID v7 without its hyphens. The library's own way to make one asks the kernel for randomness each time, under a lock
/// that all threads share.
pub(crate) fn fresh() -> Arc<str> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    let mut random = [0; 10];
    rand::rng().fill_bytes(&mut random);
    let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
    let mut text = uuid::Uuid::encode_buffer();
    Arc::from(&*uuid.simple().encode_lower(&mut text))
}
