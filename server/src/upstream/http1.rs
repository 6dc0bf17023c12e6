//! HTTP/1.1: a connection that is polled by whoever waits for its answer.
//!
//! A connection is no task of its own. While a call waits for its head, the call polls it; from then on the body does. So
//! what arrives is handed to nobody: the task that the client waits for is woken by the socket, reads it, and passes it on.
//! At the body's end the connection goes back to its pool, and if the body is dropped before, it is closed, which is how an
//! upstream learns that nobody listens any more.
//!
//! hyper speaks between its connection and its body through a channel, and that channel wakes. Both ends are polled here,
//! one after the other, so these wakings would be for nothing: everything is polled with a waker that does nothing, and only
//! when nothing is left to take, once more with the task's own.

use super::fault;
use super::pool::Home;
use super::stream::{Probe, Stream};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use switchyard_engine::ports::TransportError;

/// The request comes back if none of it was sent.
pub(super) type Unsent = Option<Box<Request<Full<Bytes>>>>;

pub(super) struct Line {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it is over.
    connection: Option<Connection<TokioIo<Stream>, Full<Bytes>>>,
    probe: Probe,
}

impl Line {
    pub(super) async fn open(stream: Stream, probe: Probe) -> Result<Box<Self>, TransportError> {
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(|error| fault::connect(fault::innermost(&error)))?;
        Ok(Box::new(Self {
            sender,
            connection: Some(connection),
            probe,
        }))
    }

    /// Lets the connection do what it can.
    fn turn(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(cx).is_ready()
        {
            // An error has gone to the call or to the body already. The drop closes the socket, and gives back what was
            // not sent.
            self.connection = None;
        }
    }

    /// Whether the next call may use it: the one before has ended on both sides.
    fn is_ready(&self) -> bool {
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Whether an idle connection is still one: nobody hung up, and nothing came that nobody asked for.
    pub(super) fn is_alive(&mut self) -> bool {
        let probe = self.probe.clone();
        probe.during(|| self.turn(&mut Context::from_waker(Waker::noop())));
        self.is_ready()
    }

    /// Sends a request and waits for its answer's head. Dropping the future closes the connection.
    pub(super) async fn send(
        mut self: Box<Self>,
        request: Request<Full<Bytes>>,
    ) -> Result<(Box<Self>, Response<Incoming>), (Unsent, TransportError)> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let answered = poll_fn(|cx| {
            self.turn(cx);
            // Only the connection answers, and it has just been asked.
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        });
        match answered.await {
            Ok(response) => Ok((self, response)),
            Err(mut error) => {
                let unsent = error.take_message().map(Box::new);
                Err((unsent, fault::broken(&error.into_error())))
            }
        }
    }
}

/// An answer's body, as its frames arrive.
pub(super) struct Frames {
    body: Incoming,
    /// `None` once it has gone home or broken.
    line: Option<Box<Line>>,
    home: Home,
    over: bool,
}

impl Frames {
    pub(super) fn new(line: Box<Line>, body: Incoming, home: Home) -> Self {
        let mut frames = Self {
            body,
            line: Some(line),
            home,
            over: false,
        };
        if frames.body.is_end_stream() {
            frames.end();
        } else {
            // The connection waits for somebody to want the body, and would wake us when we do.
            frames.turn(&mut Context::from_waker(Waker::noop()));
        }
        frames
    }

    fn turn(&mut self, cx: &mut Context<'_>) {
        if let Some(line) = &mut self.line {
            line.turn(cx);
        }
    }

    /// The next frame, if the connection has left one.
    fn take(&mut self) -> Poll<Option<Result<Bytes, TransportError>>> {
        let mut nobody = Context::from_waker(Waker::noop());
        loop {
            match Pin::new(&mut self.body).poll_frame(&mut nobody) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers say nothing that anybody here reads.
                    let Ok(data) = frame.into_data() else { continue };
                    if self.body.is_end_stream() {
                        self.end();
                    }
                    return Poll::Ready(Some(Ok(data)));
                }
                Poll::Ready(Some(Err(error))) => {
                    self.over = true;
                    self.line = None;
                    return Poll::Ready(Some(Err(fault::broken(&error))));
                }
                Poll::Ready(None) => {
                    self.end();
                    return Poll::Ready(None);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The body is whole: the connection goes back to where it came from, if it can be used again.
    fn end(&mut self) {
        self.over = true;
        if let Some(mut line) = self.line.take() {
            line.turn(&mut Context::from_waker(Waker::noop()));
            if line.is_ready() {
                self.home.put(line);
            }
        }
    }
}

impl futures_util::Stream for Frames {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut nobody = Context::from_waker(Waker::noop());
        for cx in [None, Some(&mut nobody), Some(cx)] {
            if let Some(cx) = cx {
                self.turn(cx);
            }
            if let Poll::Ready(frame) = self.take() {
                return Poll::Ready(frame);
            }
        }
        Poll::Pending
    }
}
