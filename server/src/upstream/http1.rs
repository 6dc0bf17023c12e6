//! HTTP/1.1: a connection that is polled by whoever waits for its answer.
//!
//! A connection is no task of its own. While a call waits for its head, the call polls it; from then on the body does. So
//! what arrives is handed to nobody: the task that the client waits for is woken by the socket, reads it, and passes it on.
//! At the body's end the connection goes back to its pool, and if the body is dropped before, it is closed, which is how an
//! upstream learns that nobody listens any more.
//!
//! A connection has no buffers either. What is read goes through one that belongs to the thread, and leaves it at once:
//! thousands of streams that wait for their next word wait without one. Whatever is there is read in one go, and one go
//! gives one frame, so that words that arrived together go on together.
//!
//! ```text
//! head     the request's lines, the answer's lines, and where the answer's body will end
//! chunks   bodies that come in chunks
//! ```
//!
//! hyper can do all this, but between its connection and its body lie a channel, two wakings and 35 kB a stream.

mod chunks;
mod head;

use super::fault;
use super::pool::Home;
use super::stream::{Probe, Stream};
use bytes::{Buf as _, Bytes, BytesMut};
pub(super) use head::Address;
use head::{Framing, Head};
use http::{Method, Request, Response};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use switchyard_engine::ports::TransportError;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

/// As much as is read in one go.
const AT_ONCE: usize = 64 << 10;

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; AT_ONCE].into());
}

/// Reads what is there, and lends it. Nothing at all is the end.
fn poll_read<T>(stream: &mut Stream, cx: &mut Context<'_>, with: impl FnOnce(&[u8]) -> T) -> Poll<io::Result<T>> {
    READ.with_borrow_mut(|room| {
        let mut room = ReadBuf::new(room);
        ready!(Pin::new(stream).poll_read(cx, &mut room))?;
        Poll::Ready(Ok(with(room.filled())))
    })
}

/// A connection.
pub(super) struct Line {
    stream: Stream,
    probe: Probe,
    /// What is left to send.
    sending: Option<Box<Sending>>,
}

struct Sending {
    head: Bytes,
    body: Bytes,
    /// Some of it is on its way.
    begun: bool,
}

/// A call that brought no answer.
pub(super) struct Failed {
    /// None of the request has left: it may be sent on another connection.
    pub(super) unsent: bool,
    pub(super) error: TransportError,
}

impl Line {
    pub(super) fn new(stream: Stream, probe: Probe) -> Box<Self> {
        Box::new(Self {
            stream,
            probe,
            sending: None,
        })
    }

    /// Whether an idle connection is still one: nobody hung up, and nothing came that nobody asked for.
    pub(super) fn is_alive(&mut self) -> bool {
        let stream = &mut self.stream;
        let look = || poll_read(stream, &mut Context::from_waker(Waker::noop()), |_| ());
        self.probe.clone().during(look).is_pending()
    }

    /// Sends a request and waits for its answer's head. Dropping the future closes the connection.
    pub(super) async fn send(
        mut self: Box<Self>,
        request: &Request<Bytes>,
        address: Address<'_>,
    ) -> Result<(Box<Self>, Answer), Failed> {
        self.sending = Some(Box::new(Sending {
            head: head::encode(request, address),
            body: request.body().clone(),
            begun: false,
        }));
        let mut so_far = Bytes::new();
        let answered = poll_fn(|cx| self.poll_head(cx, &mut so_far)).await;
        match answered {
            Ok(mut answer) => {
                if request.method() == Method::HEAD {
                    answer.head.framing.has_none();
                }
                Ok((self, answer))
            }
            Err(error) => Err(Failed {
                unsent: self.sending.as_ref().is_some_and(|sending| !sending.begun),
                error,
            }),
        }
    }

    /// Reads before it writes: a connection that is known to have ended is sent nothing.
    fn poll_head(&mut self, cx: &mut Context<'_>, so_far: &mut Bytes) -> Poll<Result<Answer, TransportError>> {
        loop {
            let read = poll_read(&mut self.stream, cx, |arrived| {
                if so_far.is_empty() {
                    return Bytes::copy_from_slice(arrived);
                }
                let mut all = BytesMut::with_capacity(so_far.len() + arrived.len());
                all.extend_from_slice(so_far);
                all.extend_from_slice(arrived);
                all.freeze()
            });
            match read {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(fault::broken(&error))),
                Poll::Ready(Ok(all)) if all.len() == so_far.len() => {
                    return Poll::Ready(Err(fault::cut("it was closed before an answer came")));
                }
                Poll::Ready(Ok(all)) => {
                    if self.sending.as_ref().is_some_and(|sending| !sending.begun) {
                        return Poll::Ready(Err(fault::cut("an answer came before anything was asked")));
                    }
                    if let Some(answer) = Answer::parse(&all)? {
                        return Poll::Ready(Ok(answer));
                    }
                    *so_far = all;
                }
                // Whoever answers before it was told everything is heard here too, as both are polled in turn.
                Poll::Pending if self.sending.is_some() => {
                    if let Err(error) = ready!(self.poll_send(cx)) {
                        return Poll::Ready(Err(fault::broken(&error)));
                    }
                    // What has come meanwhile would wake nobody.
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends what is left of the request.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(sending) = &mut self.sending else {
            return Poll::Ready(Ok(()));
        };
        let mut stream = Pin::new(&mut self.stream);
        while !sending.head.is_empty() || !sending.body.is_empty() {
            let parts = [IoSlice::new(&sending.head), IoSlice::new(&sending.body)];
            let parts = if sending.head.is_empty() { &parts[1..] } else { &parts };
            let sent = ready!(stream.as_mut().poll_write_vectored(cx, parts))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            sending.begun = true;
            let of_head = sent.min(sending.head.len());
            sending.head.advance(of_head);
            sending.body.advance(sent - of_head);
        }
        ready!(stream.poll_flush(cx))?;
        self.sending = None;
        Poll::Ready(Ok(()))
    }
}

/// An answer's head, and what came behind it.
pub(super) struct Answer {
    head: Head,
    behind: Bytes,
}

impl Answer {
    /// `None` when there is more to come. What is said before the answer itself (`100 Continue`) is passed over.
    fn parse(all: &Bytes) -> Result<Option<Self>, TransportError> {
        let mut rest = all.clone();
        while let Some((head, length)) = Head::parse(&rest)? {
            rest.advance(length);
            if !head.is_interim() {
                return Ok(Some(Self { head, behind: rest }));
            }
        }
        Ok(None)
    }

    /// With its body, whose end gives the connection home.
    pub(super) fn with_body(self, line: Box<Line>, home: Home) -> Response<Frames> {
        let Head {
            response,
            framing,
            keeps,
        } = self.head;
        let mut frames = Frames {
            framing,
            keeps,
            behind: self.behind,
            line: Some(line),
            home,
        };
        if frames.framing.is_over() {
            frames.end();
        }
        response.map(|()| frames)
    }
}

/// An answer's body, as its frames arrive.
pub(super) struct Frames {
    framing: Framing,
    /// The connection may be used again.
    keeps: bool,
    /// Read with the head.
    behind: Bytes,
    /// `None` once it has gone home or broken.
    line: Option<Box<Line>>,
    home: Home,
}

impl Frames {
    /// The body is whole: the connection goes back to where it came from, if it can be used again. One that has said more
    /// than it should cannot.
    fn end(&mut self) {
        if let Some(line) = self.line.take()
            && self.keeps
            && self.behind.is_empty()
            && line.sending.is_none()
        {
            self.home.put(line);
        }
    }

    fn fail(&mut self, error: TransportError) -> Poll<Option<Result<Bytes, TransportError>>> {
        self.line = None;
        Poll::Ready(Some(Err(error)))
    }
}

impl futures_util::Stream for Frames {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let frames = &mut *self;
        loop {
            let Some(line) = &mut frames.line else {
                return Poll::Ready(None);
            };
            if let Some(wrong) = frames.framing.wrong() {
                return frames.fail(fault::cut(wrong));
            }
            let (frame, left) = if frames.behind.is_empty() {
                // Some answer before they have read all of the request.
                if line.sending.is_some()
                    && let Poll::Ready(Err(error)) = line.poll_send(cx)
                {
                    return frames.fail(fault::broken(&error));
                }
                let framing = &mut frames.framing;
                let read = poll_read(&mut line.stream, cx, |arrived| match arrived {
                    [] => framing.closed().map(|()| (Bytes::new(), 0)),
                    _ => Ok(framing.take(arrived)).map(|(frame, used)| (frame, arrived.len() - used)),
                });
                match ready!(read) {
                    Ok(Ok(taken)) => taken,
                    Ok(Err(wrong)) => return frames.fail(fault::cut(wrong)),
                    Err(error) => return frames.fail(fault::broken(&error)),
                }
            } else {
                let behind = std::mem::take(&mut frames.behind);
                let (frame, used) = frames.framing.take_shared(&behind);
                (frame, behind.len() - used)
            };
            if frames.framing.is_over() {
                frames.keeps &= left == 0;
                frames.end();
            }
            if !frame.is_empty() {
                return Poll::Ready(Some(Ok(frame)));
            }
        }
    }
}
