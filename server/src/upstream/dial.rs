//! A new connection: name, socket, proxy, TLS.

use super::fault;
use super::origin::Origin;
use super::proxy::{self, Proxies};
use super::stream::{Probe, Socket, Stream};
use super::tls::{Peer, Protocol, Tls};
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::Uri;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use switchyard_engine::ports::TransportError;
use tokio::net::{TcpStream, lookup_host};

/// An address that has not answered by then gets company by the next one.
const HEAD_START: Duration = Duration::from_millis(250);
/// A silent connection is looked after: a model may think for minutes, and what stands in between forgets the quiet ones.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;
/// Bytes that nobody has acknowledged by then will not arrive: the other side has vanished without a word.
#[cfg(target_os = "linux")]
const UNHEARD: Duration = Duration::from_secs(30);

pub(super) struct Dialer {
    pub(super) proxies: Proxies,
    pub(super) tls: Tls,
}

/// A connection that nobody has used yet.
pub(super) struct Dialed {
    pub(super) stream: Stream,
    pub(super) probe: Probe,
    pub(super) protocol: Protocol,
}

impl Dialer {
    pub(super) async fn dial(&self, origin: &Origin, uri: &Uri) -> Result<Dialed, TransportError> {
        let probe = Probe::default();
        let proxy = self.proxies.toward(uri);
        let stream = match &proxy {
            None => reach(origin, &probe).await?,
            Some(proxy) => {
                let place = proxy::address(proxy)?;
                let mut stream = reach(&place, &probe).await?;
                if place.secure {
                    (stream, _) = self.tls.wrap(stream, place.host(), Peer::Proxy).await?;
                }
                if origin.secure {
                    stream = proxy::tunnel(stream, proxy, origin).await?;
                }
                stream
            }
        };
        let (stream, protocol) = if origin.secure {
            self.tls.wrap(stream, origin.host(), Peer::Upstream).await?
        } else {
            (stream, Protocol::Http1)
        };
        Ok(Dialed {
            stream,
            probe,
            protocol,
        })
    }
}

async fn reach(place: &Origin, probe: &Probe) -> Result<Stream, TransportError> {
    let found = lookup_host((place.host(), place.port())).await;
    let socket = race(found.map_err(fault::connect)?).await.map_err(fault::connect)?;
    // What a system does not offer is done without.
    let _ = socket.set_nodelay(true);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE)
        .with_retries(KEEPALIVE_PROBES);
    let options = SockRef::from(&socket);
    let _ = options.set_tcp_keepalive(&keepalive);
    #[cfg(target_os = "linux")]
    let _ = options.set_tcp_user_timeout(Some(UNHEARD));
    Ok(Stream::Plain(Socket::new(socket, probe.clone())))
}

/// Tries addresses in turn, the two families alternating. One that fails or keeps silent for [`HEAD_START`] starts the
/// next; the first that answers wins, and the others are let go.
async fn race(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = alternating(addresses).into_iter();
    let mut running = FuturesUnordered::new();
    let mut last = io::Error::other("the name has no address");
    loop {
        match waiting.next() {
            Some(address) => running.push(TcpStream::connect(address)),
            None if running.is_empty() => return Err(last),
            None => {}
        }
        tokio::select! {
            Some(done) = running.next() => match done {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            },
            () = tokio::time::sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

fn alternating(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses = addresses.peekable();
    let first_is_v6 = addresses.peek().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.partition(|address| address.is_ipv6() == first_is_v6);
    let (count, mut first, mut second) = (first.len() + second.len(), first.into_iter(), second.into_iter());
    let mut out = Vec::with_capacity(count);
    while out.len() < count {
        out.extend(first.next());
        out.extend(second.next());
    }
    out
}
