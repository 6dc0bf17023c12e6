//! Connections that can be broken from above.
//!
//! An HTTP server library has no call for "pull the plug now". So the mock hands it sockets of its own kind: a
//! [`Handle`] travels with each request, and once that says so, every read and write of the socket fails. The library
//! then drops it, and the drop decides whether the peer sees an orderly end (in the middle of a body) or a reset.

use super::{Cut, state::locked};
use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, ListenerExt as _},
};
use futures_util::task::AtomicWaker;
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// Breaks one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Handle {
    plug: Arc<Plug>,
}

#[derive(Debug, Default)]
struct Plug {
    pulled: AtomicBool,
    with_reset: AtomicBool,
    reader: AtomicWaker,
}

impl Handle {
    /// What has not been written yet is lost.
    pub(super) fn abort(&self, cut: Cut) {
        self.plug.with_reset.store(cut == Cut::Reset, Ordering::Relaxed);
        self.plug.pulled.store(true, Ordering::Release);
        // The server always waits for input, if only to notice that the peer has gone.
        self.plug.reader.wake();
    }
}

impl Connected<IncomingStream<'_, Listener>> for Handle {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        stream.io().handle.clone()
    }
}

/// The open connections of one mock.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    open: Arc<Mutex<Vec<Weak<Plug>>>>,
}

impl Connections {
    fn add(&self, handle: &Handle) {
        let mut open = locked(&self.open);
        open.retain(|plug| plug.strong_count() > 0);
        open.push(Arc::downgrade(&handle.plug));
    }

    pub(super) fn abort_all(&self) {
        for plug in locked(&self.open).drain(..).filter_map(|plug| plug.upgrade()) {
            Handle { plug }.abort(Cut::Close);
        }
    }
}

pub(super) struct Listener {
    // Accepts, and goes on after errors, as axum does.
    inner: axum::serve::TapIo<TcpListener, fn(&mut TcpStream)>,
    connections: Connections,
}

impl Listener {
    pub(super) fn new(listener: TcpListener, connections: Connections) -> Self {
        let no_delay: fn(&mut TcpStream) = |socket| drop(socket.set_nodelay(true));
        Self {
            inner: listener.tap_io(no_delay),
            connections,
        }
    }
}

impl axum::serve::Listener for Listener {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        let (stream, peer) = axum::serve::Listener::accept(&mut self.inner).await;
        let handle = Handle::default();
        self.connections.add(&handle);
        (Socket { stream, handle }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        axum::serve::Listener::local_addr(&self.inner)
    }
}

pub(super) struct Socket {
    stream: TcpStream,
    handle: Handle,
}

impl Socket {
    fn check(&self) -> io::Result<()> {
        let pulled = self.handle.plug.pulled.load(Ordering::Acquire);
        if pulled {
            Err(io::ErrorKind::ConnectionAborted.into())
        } else {
            Ok(())
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.handle.plug.with_reset.load(Ordering::Relaxed) {
            // With no time to linger, closing sends a reset.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.handle.plug.reader.register(cx.waker());
        self.check()?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
