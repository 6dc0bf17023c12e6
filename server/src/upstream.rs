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
use http1::{Frames, Line, Unsent};
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
        let mut call = self.prepare(request, &home.origin);
        loop {
            let (connection, used) = match home.take() {
                Some(found) => (found, true),
                None => self.open(&home, &call.uri).await?,
            };
            match call.over(connection, &home).await {
                Ok(response) => return Ok(response),
                Err((Some(unsent), _)) if used => call.request = *unsent,
                Err((_, error)) => return Err(error),
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
                    let line = Line::open(dialed.stream, dialed.probe).await?;
                    Ok((Found::Line(line), false))
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

    fn prepare(&self, request: Request<Bytes>, origin: &Origin) -> Call {
        let mut request = request.map(Full::new);
        let uri = request.uri().clone();
        let headers = request.headers_mut();
        if !headers.contains_key(header::ACCEPT) {
            headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        }
        let own_host = headers.contains_key(header::HOST);
        let proxy = self.dialer.proxies.toward(&uri).filter(|_| !origin.secure);
        if let Some(credential) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
            headers.insert(header::PROXY_AUTHORIZATION, credential.clone());
        }
        Call {
            request,
            uri,
            own_host,
            proxied: proxy.is_some(),
        }
    }
}

/// A request, and what it must look like on whichever connection it gets.
struct Call {
    request: Request<Full<Bytes>>,
    /// The address as it was asked for.
    uri: Uri,
    /// The caller names a host of its own.
    own_host: bool,
    /// The first line carries the whole address.
    proxied: bool,
}

impl Call {
    async fn over(
        &mut self,
        connection: Found,
        home: &Home,
    ) -> Result<Response<UpstreamBody>, (Unsent, TransportError)> {
        let mut request = std::mem::take(&mut self.request);
        let origin = &home.origin;
        match connection {
            Found::Line(line) => {
                origin.name_host(request.headers_mut());
                *request.uri_mut() = if self.proxied {
                    origin.absolute(&self.uri)
                } else {
                    origin::relative(&self.uri)
                };
                let (line, response) = line.send(request).await?;
                Ok(response.map(|body| Gathered::new(Frames::new(line, body, home.clone())).boxed()))
            }
            Found::Place(place) => {
                if !self.own_host {
                    request.headers_mut().remove(header::HOST);
                }
                *request.uri_mut() = origin.absolute(&self.uri);
                let response = place.send(request).await?;
                Ok(response.map(|frames| Gathered::new(frames).boxed()))
            }
        }
    }
}
