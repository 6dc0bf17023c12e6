//! What the engine needs of the world outside, as traits.
//!
//! The engine decides; these do. Each has one real implementation (the gateway's HTTP client under [`Transport`], the store
//! under the rest), and tests put their own in.

use crate::record::RequestRecord;
use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use std::time::Duration;

/// Body of an upstream's answer, in frames as they arrived. Dropping it cancels the call.
pub type UpstreamBody = BoxStream<'static, Result<Bytes, TransportError>>;

/// The one way to an upstream.
pub trait Transport: Send + Sync {
    /// Sends a request and waits for the answer's head. Dropping the future cancels the call. Redirects are not followed.
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'static, Result<http::Response<UpstreamBody>, TransportError>>;
}

/// A call that broke below HTTP.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct TransportError {
    pub kind: TransportFault,
    /// For people; names no credential.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportFault {
    /// Refused, unreachable, unknown name, TLS.
    Connect,
    /// Took too long to connect or to answer.
    Timeout,
    /// The connection broke after the request was sent.
    Broken,
}

/// Where finished records go.
pub trait Records: Send + Sync {
    /// Never blocks and never fails: what cannot be taken is counted and shown.
    fn push(&self, record: RequestRecord);
}

/// The time of day, so that tests can own it.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
    }
}
