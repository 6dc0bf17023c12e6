//! The cores: one thread and one single-threaded runtime each, where connections live.
//!
//! One listener, bound exclusively, so that a second gateway started by mistake fails instead of taking half the traffic.
//! The acceptor deals each connection to the core with the fewest open ones: one hand-over per connection, none per request.

use crate::http::Refusal;
use crate::http::front::Front;
use crate::http::request_id::RequestId;
use crate::observe::metrics::Metrics;
use crate::state::AppState;
use anyhow::Context;
use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use futures_util::future::join_all;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tower::ServiceExt;
use tracing::Instrument;

/// A connection without a whole request head for this long is closed: a new one that says nothing, and one kept alive. Pools
/// of clients keep theirs for about as long.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Wait after a failed accept, as when all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Cores {
    acceptor: JoinHandle<()>,
    stage: watch::Sender<Stage>,
    done: Vec<oneshot::Receiver<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// Open requests may finish, and no others begin.
    Draining,
    /// What is still open is cut.
    Over,
}

type Dealt = (std::net::TcpStream, SocketAddr);

struct Core {
    open: Arc<AtomicUsize>,
    deal: mpsc::UnboundedSender<Dealt>,
}

/// Carries a request over to the ordinary runtime: its handler, and all that the handler spawns or connects, lives there.
pub(super) fn bridge(control: Handle, service: Router) -> Router {
    Router::new().fallback(move |request: Request| {
        let id = request.extensions().get::<RequestId>().map(|id| Arc::clone(&id.0));
        let span = tracing::info_span!("bridged", request.id = id.as_deref());
        let answer = control.spawn(service.clone().oneshot(request).instrument(span));
        async move {
            match answer.await {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(_) => Refusal::internal().into_response(),
            }
        }
    })
}

impl Cores {
    pub(super) fn start(count: usize, listener: TcpListener, front: &Front, state: &AppState) -> anyhow::Result<Self> {
        let (stage, staged) = watch::channel(Stage::Serving);
        let mut cores = Vec::with_capacity(count);
        let mut done = Vec::with_capacity(count);
        for number in 0..count.max(1) {
            let (core, ended) = Core::start(number, front.clone(), Arc::clone(&state.metrics), staged.clone())?;
            cores.push(core);
            done.push(ended);
        }
        let acceptor = tokio::spawn(accept(listener, cores));
        Ok(Self { acceptor, stage, done })
    }

    /// Closes the listener and waits for open requests, no longer than `bound`. Says when that is over, before it cuts.
    pub(super) async fn drain(self, bound: Duration, over: impl FnOnce()) {
        self.acceptor.abort();
        let _ = self.acceptor.await;
        let _ = self.stage.send(Stage::Draining);
        let mut done = std::pin::pin!(join_all(self.done));
        if tokio::time::timeout(bound, &mut done).await.is_err() {
            // In this order: what the cores cut from now on is known to be cut by us.
            over();
            let _ = self.stage.send(Stage::Over);
            done.await;
        }
    }
}

async fn accept(listener: TcpListener, cores: Vec<Core>) {
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let _ = socket.set_nodelay(true);
        let fewest = cores.iter().min_by_key(|core| core.open.load(Ordering::Relaxed));
        if let (Some(core), Ok(socket)) = (fewest, socket.into_std()) {
            core.open.fetch_add(1, Ordering::Relaxed);
            let _ = core.deal.send((socket, peer));
        }
    }
}

impl Core {
    fn start(
        number: usize,
        front: Front,
        metrics: Arc<Metrics>,
        staged: watch::Receiver<Stage>,
    ) -> anyhow::Result<(Self, oneshot::Receiver<()>)> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("a core's runtime cannot start")?;
        let (deal, dealt) = mpsc::unbounded_channel();
        let (ended, done) = oneshot::channel();
        let open = Arc::new(AtomicUsize::new(0));
        let serving = Serving {
            front,
            metrics,
            open: Arc::clone(&open),
        };
        std::thread::Builder::new()
            .name(format!("core-{number}"))
            .spawn(move || {
                runtime.block_on(serving.run(dealt, staged));
                // What was cut is dropped with the runtime, and its records are pushed before anyone closes the writer.
                drop(runtime);
                let _ = ended.send(());
            })
            .context("a core's thread cannot start")?;
        Ok((Self { open, deal }, done))
    }
}

/// What a core does.
struct Serving {
    front: Front,
    metrics: Arc<Metrics>,
    open: Arc<AtomicUsize>,
}

/// Counts a connection for as long as it lives.
struct Open {
    metrics: Arc<Metrics>,
    open: Arc<AtomicUsize>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.metrics.connection_closed();
    }
}

impl Serving {
    async fn run(self, mut dealt: mpsc::UnboundedReceiver<Dealt>, mut staged: watch::Receiver<Stage>) {
        let graceful = GracefulShutdown::new();
        loop {
            tokio::select! {
                _ = staged.wait_for(|stage| *stage != Stage::Serving) => break,
                Some((socket, peer)) = dealt.recv() => self.serve(socket, peer, &graceful),
            }
        }
        // Dealt before the listener closed, and not looked at yet.
        while let Ok((socket, peer)) = dealt.try_recv() {
            self.serve(socket, peer, &graceful);
        }
        tokio::select! {
            biased;
            () = graceful.shutdown() => {}
            _ = staged.wait_for(|stage| *stage == Stage::Over) => {
                tracing::warn!("requests were still open when the time to drain was over; they are cut");
            }
        }
    }

    fn serve(&self, socket: std::net::TcpStream, peer: SocketAddr, graceful: &GracefulShutdown) {
        self.metrics.connection_opened();
        let counted = Open {
            metrics: Arc::clone(&self.metrics),
            open: Arc::clone(&self.open),
        };
        let Ok(socket) = TcpStream::from_std(socket) else {
            return;
        };
        let front = self.front.clone();
        let service = service_fn(move |request| {
            let answer = front.clone().answer(peer, request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(socket), service);
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that hangs up is no error of ours.
            let _ = watched.await;
            drop(counted);
        });
    }
}
