//! A scriptable upstream: a real HTTP server that misbehaves on request.
//!
//! A gateway is judged by what it does when an upstream does not do its part, so the mock must be able to do everything
//! that upstreams do: answer in one piece or word by word, stall, break off in the middle of a chunk, reset the
//! connection, send an error under 200 or bytes that are no text. It listens on a port of its own on 127.0.0.1 and
//! speaks HTTP/1.1 through the same library as real servers, so that what a client sees on the socket is what it would
//! see in the wild.
//!
//! A test says what comes next with [`Reply`]s, looks at what arrived with [`MockUpstream::requests`], and waits for
//! events ([`wait_for_requests`](MockUpstream::wait_for_requests), [`wait_cancelled`](MockUpstream::wait_cancelled),
//! a [`Gate`]) rather than for time to pass:
//!
//! ```no_run
//! # use switchyard_tests::mock::{Matcher, MockUpstream, Reply};
//! # async fn example() {
//! let mock = MockUpstream::start().await;
//! mock.script([Reply::error(503, "overloaded", "Come back later").retry_after("2"), Reply::chat("Better now.")]);
//! mock.set_default(Reply::chat("Always this.").gate("words"));
//! mock.script_for(Matcher::model("gpt-4o"), [Reply::chat("one two three").reset_after(2)]);
//! // … send requests to `mock.url()` …
//! mock.gate("words").release(2);
//! let seen = mock.wait_cancelled().await;
//! assert_eq!(seen.json["model"], "gpt-4o");
//! # }
//! ```
//!
//! A program that is not written in Rust scripts the same server over HTTP: see [`control`] and the binary
//! `mock-upstream`.

pub mod control;

mod connection;
mod openai;
mod play;
mod reply;
mod state;
mod vendors;

#[cfg(test)]
mod tests;

pub use reply::{Call, Chunk, Content, Cut, Ending, Reply, Report, Usage};
pub use state::{Gate, Matcher, Recorded};

use connection::Connections;
use state::Shared;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};
use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinHandle,
};

/// A running mock. Stops, and breaks what is still open, when it is dropped.
#[derive(Debug)]
pub struct MockUpstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    connections: Connections,
    server: JoinHandle<()>,
}

impl MockUpstream {
    /// Starts a mock on a free port.
    ///
    /// # Panics
    /// When there is none: a test cannot go on without.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its upstream")]
    pub async fn start() -> Self {
        Self::start_on(0).await.expect("a free port on 127.0.0.1")
    }

    /// Starts a mock on `port`; 0 is any free one.
    pub async fn start_on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let connections = Connections::default();
        let router = control::router().fallback(play::answer).with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<connection::Handle>();
        let listener = connection::Listener::new(listener, connections.clone());
        let server = tokio::spawn(async move {
            // Runs until it is aborted.
            let _ = axum::serve(listener, service).await;
        });
        Ok(Self {
            address,
            shared,
            connections,
            server,
        })
    }

    /// What a provider's base URL is set to: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A base URL where connecting is refused.
    ///
    /// # Panics
    /// When no socket can be had.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test cannot go on without its port")]
    pub fn refused_url() -> String {
        // Bound, never listening, and kept: a port that was merely closed again may belong to another test by now.
        static BOUND: OnceLock<(TcpSocket, String)> = OnceLock::new();
        let bind = || {
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
            let url = format!("http://{}/v1", socket.local_addr()?);
            io::Result::Ok((socket, url))
        };
        BOUND.get_or_init(|| bind().expect("a port on 127.0.0.1")).1.clone()
    }

    // === What it says ===

    /// Appends replies, each for one request. When they are used up, the default holds.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.script_for(Matcher::default(), replies);
    }

    /// Appends replies for the requests that match. A more specific matcher goes before a general one.
    pub fn script_for(&self, matcher: Matcher, replies: impl IntoIterator<Item = Reply>) {
        self.shared.script(matcher, replies);
    }

    /// What is said to every request that has no scripted reply. Unless it is set: a short chat, in a stream if the
    /// request wants one; embeddings at `/embeddings`; two models at `/models`.
    pub fn set_default(&self, reply: Reply) {
        self.set_default_for(Matcher::default(), reply);
    }

    pub fn set_default_for(&self, matcher: Matcher, reply: Reply) {
        self.shared.set_default(matcher, Some(reply));
    }

    /// The gate of that name; replies wait at it before each word ([`Reply::gate`]) or before the head
    /// ([`Reply::head_gate`]).
    #[must_use]
    pub fn gate(&self, name: &str) -> Gate {
        self.shared.gate(name)
    }

    /// Forgets scripts, defaults, gates and recorded requests. Requests that are being answered go on.
    pub fn reset(&self) {
        self.shared.reset();
    }

    // === What it saw ===

    /// Every request so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests()
    }

    /// Waits until at least `count` requests have arrived, and returns all there are.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Recorded> {
        self.shared
            .wait_for(|requests| (requests.len() >= count).then(|| requests.to_vec()))
            .await
    }

    /// Waits until a client has gone away before its answer was complete, and returns that request.
    pub async fn wait_cancelled(&self) -> Recorded {
        self.shared
            .wait_for(|requests| requests.iter().find(|request| request.cancelled).cloned())
            .await
    }
}

impl Drop for MockUpstream {
    fn drop(&mut self) {
        self.server.abort();
        self.connections.abort_all();
    }
}
