//! A server that a test writes by hand, one closure for each connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// An answer after which the connection can be used again.
pub(super) const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";

pub(super) struct Server {
    pub(super) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    /// `serve` is given each connection and its number, from 0.
    pub(super) async fn start<F>(serve: impl Fn(usize, TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(count.fetch_add(1, Ordering::SeqCst), socket));
            }
        });
        Self { address, accepted }
    }

    /// Answers every request with these bytes.
    pub(super) async fn answering(answer: &'static str) -> Self {
        Self::start(move |_, mut socket| async move {
            while request(&mut socket).await.is_some() {
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        })
        .await
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/path?q=1", self.address)
    }

    /// Connections so far.
    pub(super) fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// Reads one request, head and body; `None` when the other side has hung up.
pub(super) async fn request(socket: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut all = Vec::new();
    let end = loop {
        all.push(socket.read_u8().await.ok()?);
        if all.ends_with(b"\r\n\r\n") {
            break all.len();
        }
    };
    let head = String::from_utf8(all).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    socket.read_exact(&mut body).await.ok()?;
    debug_assert_eq!(end, head.len());
    Some(head + &String::from_utf8(body).unwrap())
}

/// Waits until the other side has hung up.
pub(super) async fn gone(socket: &mut (impl AsyncRead + Unpin)) {
    let mut bytes = [0; 64];
    while socket.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
}

/// Something that a server tells its test.
pub(super) fn news<T>() -> (mpsc::UnboundedSender<T>, mpsc::UnboundedReceiver<T>) {
    mpsc::unbounded_channel()
}
