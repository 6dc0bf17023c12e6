//! Against servers of the test's own, that do what servers in the wild do.

mod calls;
mod failures;
mod gathering;
mod proxies;
mod server;
mod tls;
mod waiting;

use super::HttpTransport;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::{Request, Response};
use std::collections::HashMap;
use switchyard_engine::ports::{Transport, TransportError, UpstreamBody};

fn transport() -> HttpTransport {
    HttpTransport::new(&HashMap::new())
}

fn post(url: &str, body: &'static str) -> Request<Bytes> {
    Request::post(url).body(Bytes::from_static(body.as_bytes())).unwrap()
}

/// Sends a request and reads the answer to its end.
async fn ask(transport: &HttpTransport, url: &str) -> Result<String, TransportError> {
    let response = transport.send(post(url, "hello")).await?;
    read(response).await
}

async fn read(response: Response<UpstreamBody>) -> Result<String, TransportError> {
    let mut body = response.into_body();
    let mut all = BytesMut::new();
    while let Some(frame) = body.next().await {
        all.extend_from_slice(&frame?);
    }
    Ok(String::from_utf8(all.to_vec()).unwrap())
}
