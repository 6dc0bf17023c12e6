//! Proxies of the environment: who stands between the gateway and an upstream.
//!
//! The variables are those of curl: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capitals or not. A proxy on
//! the way to `http://` is sent the request itself, with the whole address in its first line. On the way to `https://` it
//! is asked for a tunnel (`CONNECT`), and sees no more than the host's name. A user's name and password in the proxy's
//! address become `Proxy-Authorization`, toward the proxy only.

use super::stream::Stream;
use super::{fault, origin::Origin};
use bytes::Bytes;
use http::{Request, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use switchyard_core::env::Env;
use switchyard_engine::ports::TransportError;

/// `None` where no variable names one: then no request asks.
pub(super) struct Proxies(Option<Matcher>);

impl Proxies {
    pub(super) fn read(env: &dyn Env) -> Self {
        let read = |names: [&'static str; 2]| {
            let mut found = names.into_iter().filter_map(|name| Some((name, env.get(name)?)));
            found.next().unwrap_or((names[0], String::new()))
        };
        let all = read(["ALL_PROXY", "all_proxy"]);
        let http = read(["HTTP_PROXY", "http_proxy"]);
        let https = read(["HTTPS_PROXY", "https_proxy"]);
        for (name, value) in [&all, &http, &https] {
            if !value.is_empty() && !usable(value) {
                tracing::warn!(
                    "{name} is not the address of an HTTP proxy (http://host:port), and no proxy that works"
                );
            }
        }
        let no = read(["NO_PROXY", "no_proxy"]);
        let none = [&all, &http, &https].into_iter().all(|(_, value)| value.is_empty());
        // The matcher lets a star stand for names, and not for addresses.
        if none || no.1.split(',').any(|excepted| excepted.trim() == "*") {
            return Self(None);
        }
        let matcher = Matcher::builder().all(all.1).http(http.1).https(https.1).no(no.1);
        Self(Some(matcher.build()))
    }

    /// The proxy on the way to this address, if there is one.
    pub(super) fn toward(&self, uri: &http::Uri) -> Option<Intercept> {
        self.0.as_ref()?.intercept(uri)
    }
}

fn usable(value: &str) -> bool {
    let anywhere = http::Uri::from_static("http://upstream.test/");
    let matcher = Matcher::builder().all(value).build();
    matcher.intercept(&anywhere).is_some_and(|proxy| speaks_http(&proxy))
}

fn speaks_http(proxy: &Intercept) -> bool {
    matches!(proxy.uri().scheme_str(), Some("http" | "https"))
}

/// Where the proxy itself is.
pub(super) fn address(proxy: &Intercept) -> Result<Origin, TransportError> {
    if !speaks_http(proxy) {
        return Err(fault::connect("the environment names a proxy that does not speak HTTP"));
    }
    Origin::of(proxy.uri())
}

/// Asks the proxy at the other end of `stream` for a tunnel to `origin`.
pub(super) async fn tunnel(stream: Stream, proxy: &Intercept, origin: &Origin) -> Result<Stream, TransportError> {
    let failed = |error: hyper::Error| fault::connect(format_args!("the proxy failed: {}", fault::innermost(&error)));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let place = origin.with_port();
    let mut request = Request::connect(&place).header(header::HOST, &place);
    if let Some(credential) = proxy.basic_auth() {
        request = request.header(header::PROXY_AUTHORIZATION, credential);
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|_| fault::connect("the address is none that a proxy could be asked for"))?;

    let mut answer = pin!(sender.send_request(request));
    let mut connection = pin!(connection.without_shutdown());
    let mut parts = None;
    let answer = poll_fn(|cx| {
        if parts.is_none()
            && let Poll::Ready(over) = connection.as_mut().poll(cx)
        {
            parts = Some(over);
        }
        answer.as_mut().poll(cx)
    });
    let answer = answer.await.map_err(failed)?;
    if !answer.status().is_success() {
        return Err(fault::connect(format_args!("the proxy answered {}", answer.status())));
    }
    let parts = match parts {
        Some(parts) => parts,
        None => connection.await,
    };
    Ok(parts.map_err(failed)?.io.into_inner())
}
