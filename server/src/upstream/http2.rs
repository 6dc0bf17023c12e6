//! HTTP/2: one connection that many calls share.
//!
//! What arrives on it may be for anybody, so it is driven by a task of its own. Dropping a call or a body resets its stream
//! and leaves the others alone. Pings find out whether anybody is still there, whether or not anything is being said.

use super::fault;
use super::http1::Failed;
use super::stream::Stream;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use switchyard_engine::ports::TransportError;
use tokio::time::Instant;

const PING_EVERY: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(15);
/// Streams on one connection, if the other side allows them: more would share one window and one core of theirs.
const MOST_STREAMS: usize = 100;

pub(super) struct Shared {
    sender: SendRequest<Full<Bytes>>,
    /// As many as the other side allows; the driver keeps it up to date.
    allowed: Arc<AtomicUsize>,
    /// Held by each call besides the connection itself.
    users: Arc<()>,
    idle_since: Option<Instant>,
}

/// A call's place on a shared connection, held until its body has ended.
pub(super) struct Place {
    sender: SendRequest<Full<Bytes>>,
    held: Arc<()>,
    /// Nobody else uses the connection now: it may have ended without anybody's noticing.
    rested: bool,
}

impl Shared {
    pub(super) async fn open(stream: Stream) -> Result<Self, TransportError> {
        let opened = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PONG_WITHIN)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, mut connection) = opened.map_err(|error| fault::connect(fault::innermost(&error)))?;
        let allowed = Arc::new(AtomicUsize::new(MOST_STREAMS));
        let told = Arc::clone(&allowed);
        tokio::spawn(poll_fn(move |cx| {
            // What goes wrong is told to each call.
            let over = Pin::new(&mut connection).poll(cx).map(drop);
            told.store(connection.current_max_send_streams(), Ordering::Relaxed);
            over
        }));
        Ok(Self {
            sender,
            allowed,
            users: Arc::default(),
            idle_since: None,
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// A place, if there is room.
    pub(super) fn enter(&mut self) -> Option<Place> {
        let most = self.allowed.load(Ordering::Relaxed).min(MOST_STREAMS);
        let in_use = self.in_use();
        if self.is_closed() || in_use >= most {
            return None;
        }
        self.idle_since = None;
        Some(Place {
            rested: in_use == 0,
            sender: self.sender.clone(),
            held: Arc::clone(&self.users),
        })
    }

    fn in_use(&self) -> usize {
        Arc::strong_count(&self.users) - 1
    }

    /// For how long nobody has used it, as far as it was asked.
    pub(super) fn idle_for(&mut self, now: Instant) -> Duration {
        if self.in_use() > 0 {
            self.idle_since = None;
            return Duration::ZERO;
        }
        now.saturating_duration_since(*self.idle_since.get_or_insert(now))
    }
}

impl Place {
    pub(super) async fn send(mut self, request: Request<Full<Bytes>>) -> Result<Response<Frames>, Failed> {
        if self.rested {
            // The runtime looks at its events, and the driver hears of a farewell before it is given anything to send.
            tokio::task::yield_now().await;
        }
        match self.sender.try_send_request(request).await {
            Ok(response) => Ok(response.map(|body| Frames { body, _held: self.held })),
            Err(mut error) => {
                let unsent = error.take_message().is_some();
                let error = fault::broken(&error.into_error());
                Err(Failed { unsent, error })
            }
        }
    }
}

/// An answer's body, as its frames arrive.
pub(super) struct Frames {
    body: Incoming,
    _held: Arc<()>,
}

impl futures_util::Stream for Frames {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    return Poll::Ready(Some(Ok(data)));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(fault::broken(&error)))),
                None => return Poll::Ready(None),
            }
        }
    }
}
