//! The transport: the one way to an upstream.
//!
//! ```text
//! origin     where it goes: what decides which connections it may use
//! pool       a connection that waits for its next call; there is a pool per runtime
//! dial       or a new one: name, socket, `proxy`, `tls`
//! http1      one call at a time, polled by whoever waits for its answer
//! http2      many at a time, driven by a task
//! gather     what has arrived together goes on together
//! ```
//!
//! **When a request is sent again.** An idle connection is looked at before it is used. If it breaks all the same before
//! anything of the request was written, the request comes back and takes another. Once a byte may have left, it is never
//! repeated here: an upstream may have read it, and whether to ask again is the engine's to decide.
//!
//! **What ends a call.** Dropping the future or the body does: over HTTP/1.1 the connection is closed, over HTTP/2 its
//! stream is reset.

mod dial;
mod fault;
mod gather;
pub(crate) mod google;
mod http1;
mod http2;
mod origin;
mod pool;
mod proxy;
mod stream;
mod tls;

#[cfg(test)]
mod tests;

use ::http::{HeaderValue, Request, Response, Uri, header};
use bytes::Bytes;
use dial::Dialer;
use futures_util::future::BoxFuture;
use futures_util::stream::StreamExt;
use gather::Gathered;
use http_body_util::Full;
use http1::{Address, Failed, Line};
use http2::Shared;
use origin::Origin;
use pool::{Found, Home, Pools};
use proxy::Proxies;
use std::sync::Arc;
use std::time::Duration;
use switchyard_core::env::Env;
use switchyard_engine::ports::{Transport, TransportError, UpstreamBody};
use tls::{Protocol, Tls};
use tokio::time;

/// Until a connection can be used: name, socket, proxy, TLS, and the wait for one that others open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// An upstream that has not begun to answer by then will not. Reasoning models think for minutes before they do.
const HEAD_TIMEOUT: Duration = Duration::from_secs(600);

/// HTTP/1.1 and HTTP/2 over TCP and TLS.
pub(crate) struct HttpTransport {
    shared: Arc<Client>,
}

struct Client {
    dialer: Dialer,
    pools: Pools,
}

impl HttpTransport {
    /// With the proxies that the environment names.
    pub(crate) fn new(env: &dyn Env) -> Self {
        Self::with(env, Tls::default())
    }

    fn with(env: &dyn Env, tls: Tls) -> Self {
        let proxies = Proxies::read(env);
        let dialer = Dialer { proxies, tls };
        let pools = Pools::default();
        Self {
            shared: Arc::new(Client { dialer, pools }),
        }
    }

    /// Closes the connections that wait for a call, and keeps none from now on.
    pub(crate) fn close(&self) {
        self.shared.pools.close();
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<UpstreamBody>, TransportError>> {
        let client = Arc::clone(&self.shared);
        Box::pin(async move {
            let answer = time::timeout(HEAD_TIMEOUT, client.call(request)).await;
            answer.unwrap_or_else(|_| Err(fault::timeout("no answer", HEAD_TIMEOUT)))
        })
    }
}

impl Client {
    async fn call(&self, request: Request<Bytes>) -> Result<Response<UpstreamBody>, TransportError> {
        let home = Home::new(self.pools.here()?, Origin::of(request.uri())?);
        let call = self.prepare(request, &home.origin);
        loop {
            let (connection, used) = match home.take() {
                Some(found) => (found, true),
                // Seldom, and large.
                None => Box::pin(self.open(&home, call.request.uri())).await?,
            };
            match call.over(connection, &home).await {
                Ok(response) => return Ok(response),
                Err(failed) if failed.unsent && used => {}
                Err(failed) => return Err(failed.error),
            }
        }
    }

    /// A connection for this call, and whether others have used it before.
    async fn open(&self, home: &Home, uri: &Uri) -> Result<(Found, bool), TransportError> {
        let opened = time::timeout(CONNECT_TIMEOUT, async {
            let turn = home.turn_to_open().await;
            if turn.is_some()
                && let Some(place) = home.enter()
            {
                return Ok((Found::Place(place), true));
            }
            let dialed = self.dialer.dial(&home.origin, uri).await?;
            match dialed.protocol {
                Protocol::Http1 => {
                    home.speaks_http1();
                    drop(turn);
                    Ok((Found::Line(Line::new(dialed.stream, dialed.probe)), false))
                }
                Protocol::Http2 => {
                    let place = home.share(Shared::open(dialed.stream).await?);
                    let place = place.ok_or_else(|| fault::connect("the upstream allows no stream"))?;
                    Ok((Found::Place(place), false))
                }
            }
        });
        let opened = opened.await;
        opened.unwrap_or_else(|_| Err(fault::timeout("could not connect", CONNECT_TIMEOUT)))
    }

    fn prepare(&self, mut request: Request<Bytes>, origin: &Origin) -> Call {
        let proxy = self.dialer.proxies.toward(request.uri()).filter(|_| !origin.secure);
        let headers = request.headers_mut();
        if !headers.contains_key(header::ACCEPT) {
            headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        }
        if let Some(credential) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
            headers.insert(header::PROXY_AUTHORIZATION, credential.clone());
        }
        Call {
            request,
            proxied: proxy.is_some(),
        }
    }
}

/// A request, as it looks whichever connection it gets.
struct Call {
    request: Request<Bytes>,
    /// The first line carries the whole address.
    proxied: bool,
}

impl Call {
    async fn over(&self, connection: Found, home: &Home) -> Result<Response<UpstreamBody>, Failed> {
        let (uri, origin) = (self.request.uri(), &home.origin);
        match connection {
            Found::Line(line) => {
                let whole = self.proxied.then(|| origin.absolute(uri).to_string());
                let path = uri.path_and_query().map_or("/", |path| path.as_str());
                let address = Address {
                    target: whole.as_deref().unwrap_or(path),
                    host: origin.name(),
                };
                let (line, answer) = line.send(&self.request, address).await?;
                Ok(answer.with_body(line, home.clone()).map(StreamExt::boxed))
            }
            Found::Place(place) => {
                let mut request = Request::new(Full::new(self.request.body().clone()));
                *request.method_mut() = self.request.method().clone();
                *request.headers_mut() = self.request.headers().clone();
                *request.uri_mut() = origin.absolute(uri);
                let response = place.send(request).await?;
                Ok(response.map(|frames| Gathered::new(frames).boxed()))
            }
        }
    }
}
