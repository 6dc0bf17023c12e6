//! TLS toward upstreams and proxies: rustls, trusting whom the operating system trusts.
//!
//! The configuration is read at the first use, so that a gateway whose upstreams speak plain HTTP needs no certificates.
//! All cores share it: a session that one has opened is resumed by the others.

use super::fault;
use super::stream::Stream;
use rustls::ClientConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::{Arc, OnceLock};
use switchyard_engine::ports::TransportError;
use tokio_rustls::TlsConnector;

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// What both sides have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// May speak HTTP/2.
    Upstream,
    /// Is spoken to in HTTP/1.1.
    Proxy,
}

#[derive(Default)]
pub(super) struct Tls(OnceLock<Result<Configs, String>>);

struct Configs {
    upstream: TlsConnector,
    proxy: TlsConnector,
}

impl Tls {
    /// With whatever is trusted instead of the operating system's list.
    #[cfg(test)]
    pub(super) fn trusting(config: &ClientConfig) -> Self {
        let tls = Self::default();
        let _ = tls.0.set(Ok(Configs::of(config)));
        tls
    }

    /// Greets the other side as `host`, and checks that it is that.
    pub(super) async fn wrap(
        &self,
        stream: Stream,
        host: &str,
        peer: Peer,
    ) -> Result<(Stream, Protocol), TransportError> {
        let configs = self
            .0
            .get_or_init(|| platform().map(|config| Configs::of(&config)).map_err(|e| e.to_string()));
        let configs = configs.as_ref().map_err(fault::connect)?;
        let connector = match peer {
            Peer::Upstream => &configs.upstream,
            Peer::Proxy => &configs.proxy,
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| fault::connect("the host's name is none that a certificate could be issued for"))?;
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|error| fault::connect(fault::innermost(&error)))?;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(HTTP2) => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((Stream::Tls(Box::new(stream)), protocol))
    }
}

impl Configs {
    fn of(config: &ClientConfig) -> Self {
        let speaking = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            TlsConnector::from(Arc::new(config))
        };
        Self {
            upstream: speaking(&[HTTP2, HTTP1]),
            proxy: speaking(&[HTTP1]),
        }
    }
}

fn platform() -> Result<ClientConfig, rustls::Error> {
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth())
}
