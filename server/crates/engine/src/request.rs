//! What goes into the pipeline and what comes out.

use crate::thread::Thread;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::HeaderMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchyard_core::error::Error;
use switchyard_providers::notes::Notes;
use switchyard_providers::{FromPath, Surface};

/// A request that has passed authentication.
#[derive(Debug)]
pub struct Request {
    /// 32 hex digits.
    pub id: Arc<str>,
    pub arrived: Instant,
    /// The same moment, milliseconds since the Unix epoch.
    pub arrived_at_ms: i64,
    /// Spent on receiving the body: the client's time, not the gateway's.
    pub upload: Duration,
    pub caller: Arc<Caller>,
    pub surface: Surface,
    /// What the path says, where a dialect puts it there.
    pub path: Option<FromPath>,
    /// The client's; an allow-list of them goes up.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What is known of the conversation, where callers leave that to the gateway.
    pub thread: Option<Arc<Thread>>,
}

/// On whose account a request runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub key_id: Option<Arc<str>>,
    pub key_name: Option<Arc<str>>,
    /// The key's project.
    pub project: Option<String>,
    /// The route that the key's calls take unless they name another.
    pub route: Option<String>,
}

/// Who answered, or was asked last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    pub provider: Option<Arc<str>>,
    pub target: Option<Arc<str>>,
    /// As it was sent to the upstream.
    pub model: Option<Arc<str>>,
    /// Calls made so far, retries included.
    pub attempts: u32,
}

/// An answer whose head can go out.
pub struct Answer {
    pub attribution: Attribution,
    /// Spent in the gateway so far, waits for upstreams not counted.
    pub overhead: Duration,
    /// Waited for upstreams so far.
    pub waited: Duration,
    /// Those of the upstream's headers that come back.
    pub headers: HeaderMap,
    /// What was lost on the way there, and of a whole answer on the way back. Nothing where nothing was translated.
    pub notes: Option<Box<Notes>>,
    pub body: Body,
}

pub enum Body {
    Whole(Bytes),
    Stream(BoxStream<'static, Piece>),
}

/// One thing on a stream. How it looks on the wire is a matter of the caller's dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Frames of the answer, ready to go out.
    Frames(Bytes),
    /// Nothing yet; keeps the connection alive.
    Heartbeat,
    /// The answer ends here without being whole.
    Failed(Box<Error>),
}

/// No answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub error: Error,
    pub attribution: Attribution,
    /// Spent in the gateway, waits for upstreams not counted.
    pub overhead: Duration,
    /// Waited for upstreams.
    pub waited: Duration,
    /// Those of the upstream's headers that come back.
    pub headers: HeaderMap,
}
