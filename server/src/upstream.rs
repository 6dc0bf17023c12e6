//! The transport: reqwest under the engine's port.
//!
//! One client per thread. A pooled connection is driven by the runtime that opened it, and each core of the data plane has
//! a runtime of its own: with a client per thread no call waits for another core to be polled.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{StreamExt, TryStreamExt};
use std::error::Error as _;
use std::time::Duration;
use switchyard_engine::ports::{Transport, TransportError, TransportFault, UpstreamBody};
use thread_local::ThreadLocal;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// An upstream that has not begun to answer by then will not. Reasoning models think for minutes before they do.
const HEAD_TIMEOUT: Duration = Duration::from_secs(600);
const IDLE_CONNECTION: Duration = Duration::from_secs(60);
const IDLE_CONNECTIONS_PER_HOST: usize = 200;

#[derive(Default)]
pub(crate) struct Reqwest {
    clients: ThreadLocal<Result<reqwest::Client, String>>,
}

impl Reqwest {
    fn client(&self) -> Result<&reqwest::Client, TransportError> {
        self.clients
            .get_or(|| build().map_err(|error| explain(&error)))
            .as_ref()
            .map_err(|message| TransportError {
                kind: TransportFault::Connect,
                message: format!("the HTTP client could not be set up: {message}"),
            })
    }
}

fn build() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE_CONNECTION)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
        .build()
}

impl Transport for Reqwest {
    fn send(
        &self,
        request: ::http::Request<Bytes>,
    ) -> BoxFuture<'static, Result<::http::Response<UpstreamBody>, TransportError>> {
        let client = self.client().cloned();
        Box::pin(async move {
            let request = reqwest::Request::try_from(request).map_err(|error| fault(&error))?;
            let response = tokio::time::timeout(HEAD_TIMEOUT, client?.execute(request))
                .await
                .map_err(|_| TransportError {
                    kind: TransportFault::Timeout,
                    message: format!("no answer within {} s", HEAD_TIMEOUT.as_secs()),
                })?
                .map_err(|error| fault(&error))?;
            let response: ::http::Response<reqwest::Body> = response.into();
            Ok(response.map(|body| {
                http_body_util::BodyDataStream::new(body)
                    .map_err(|error| fault(&error))
                    .boxed()
            }))
        })
    }
}

fn fault(error: &reqwest::Error) -> TransportError {
    let kind = if error.is_timeout() {
        TransportFault::Timeout
    } else if error.is_connect() {
        TransportFault::Connect
    } else {
        TransportFault::Broken
    };
    TransportError {
        kind,
        message: explain(error),
    }
}

/// The innermost cause, in words. The address stays out: it may hold what nobody should read.
fn explain(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut message = if error.is_connect() {
        "could not connect"
    } else {
        "the connection failed"
    }
    .to_owned();
    while let Some(inner) = cause {
        if inner.source().is_none() {
            message = format!("{message}: {inner}");
        }
        cause = inner.source();
    }
    message
}
