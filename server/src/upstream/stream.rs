//! The bytes below HTTP: a socket, or TLS over one, or TLS in a tunnel through a proxy that itself is reached by TLS.

use socket2::SockRef;
use std::io::{self, IoSlice, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// More than what may lie on an idle connection: a session ticket, a farewell.
const PROBE: usize = 1024;

/// A socket that can be asked for the truth.
///
/// A runtime learns of an upstream that hung up when it next looks at its events. Whoever is about to use an idle
/// connection cannot wait for that: while the socket is probed, a read that finds nothing asks the kernel itself.
pub(super) struct Socket {
    tcp: TcpStream,
    probing: Probe,
}

/// Shared by a socket and whoever asks: set for as long as it is probed.
#[derive(Clone, Default)]
pub(super) struct Probe(Arc<AtomicBool>);

impl Probe {
    pub(super) fn during<T>(&self, look: impl FnOnce() -> T) -> T {
        self.0.store(true, Ordering::Relaxed);
        let seen = look();
        self.0.store(false, Ordering::Relaxed);
        seen
    }
}

impl Socket {
    pub(super) fn new(tcp: TcpStream, probing: Probe) -> Self {
        Self { tcp, probing }
    }

    fn ask_kernel(&self, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut bytes = [0; PROBE];
        let most = buf.remaining().min(PROBE);
        match (&*SockRef::from(&self.tcp)).read(&mut bytes[..most]) {
            Ok(read) => {
                buf.put_slice(&bytes[..read]);
                Poll::Ready(Ok(()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.tcp).poll_read(cx, buf) {
            Poll::Pending if self.probing.0.load(Ordering::Relaxed) => self.ask_kernel(buf),
            polled => polled,
        }
    }
}

pub(super) enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Self>>),
}

/// Does the same to whichever it is.
macro_rules! either {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Plain(socket) => {
                let $inner = socket;
                $call
            }
            Stream::Tls(tls) => {
                let $inner = &mut **tls;
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, inner => Pin::new(inner).poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(&mut *self, inner => Pin::new(inner).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(&mut *self, inner => Pin::new(inner).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(socket) => socket.is_write_vectored(),
            Self::Tls(tls) => tls.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, inner => Pin::new(inner).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut *self, inner => Pin::new(inner).poll_shutdown(cx))
    }
}
