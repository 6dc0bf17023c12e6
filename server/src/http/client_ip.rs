//! Who is really calling, when proxies stand between.
//!
//! `X-Forwarded-For` is believed only as far as trusted proxies wrote it: all its lines are one chain, walked from the
//! right, and the first address that is no trusted proxy is the client. A client that writes the header itself only adds
//! to the left of that.

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The client behind the proxies, and whether it came by https.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub(crate) ip: IpAddr,
    pub(crate) https: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    /// Reads a list of networks or single addresses, separated by commas.
    ///
    /// # Errors
    /// The entry that is neither.
    pub(crate) fn parse(list: &str) -> Result<Self, String> {
        let network = |entry: &str| {
            let entry = entry.trim();
            entry
                .parse::<IpNet>()
                .or_else(|_| entry.parse::<IpAddr>().map(IpNet::from))
                .map_err(|_| entry.to_owned())
        };
        list.split(',')
            .filter(|entry| !entry.trim().is_empty())
            .map(network)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn trusts(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&ip.to_canonical()))
    }

    /// Who sent these headers, when the other end of the connection is `peer`.
    pub(crate) fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            return Client { ip: peer, https: false };
        }
        let header = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let https = header(FORWARDED_PROTO).is_some_and(|proto| {
            proto
                .split(',')
                .next()
                .unwrap_or_default()
                .trim()
                .eq_ignore_ascii_case("https")
        });
        let lines = headers.get_all(FORWARDED_FOR);
        let chain: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .collect();
        let mut ip = peer;
        for hop in chain.iter().rev() {
            let Some(hop) = address(hop.trim()) else { break };
            ip = hop.to_canonical();
            if !self.trusts(ip) {
                return Client { ip, https };
            }
        }
        if chain.is_empty()
            && let Some(real) = header(REAL_IP).and_then(|ip| ip.parse::<IpAddr>().ok())
        {
            ip = real.to_canonical();
        }
        Client { ip, https }
    }
}

/// An address as proxies write it: alone, in brackets, or with a port.
fn address(hop: &str) -> Option<IpAddr> {
    let bare = hop.trim_start_matches('[').trim_end_matches(']');
    bare.parse()
        .ok()
        .or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::TrustedProxies;
    use std::net::SocketAddr;

    #[track_caller]
    fn check(peer: &str, headers: &[(&str, &str)], want: &str) {
        let proxies = TrustedProxies::parse("127.0.0.0/8, ::1/128, 10.0.0.0/8").unwrap();
        let request = headers
            .iter()
            .fold(http::Request::builder(), |b, (n, v)| b.header(*n, *v))
            .body(())
            .unwrap();
        let peer: SocketAddr = peer.parse().unwrap();
        let client = proxies.client_of(peer.ip(), request.headers());
        assert_eq!(
            format!("{}{}", client.ip, if client.https { " https" } else { "" }),
            want,
            "{peer} {headers:?}"
        );
    }

    #[test]
    fn only_what_trusted_proxies_wrote_is_believed() {
        check("1.2.3.4:1", &[("x-forwarded-for", "9.9.9.9")], "1.2.3.4");
        check(
            "127.0.0.1:1",
            &[("x-forwarded-for", "9.9.9.9, 8.8.8.8, 10.0.0.1")],
            "8.8.8.8",
        );
        check(
            "127.0.0.1:1",
            &[("x-forwarded-for", "9.9.9.9"), ("x-forwarded-for", "10.1.1.1")],
            "9.9.9.9",
        );
        check(
            "127.0.0.1:1",
            &[("x-forwarded-for", "forged, 10.1.1.1"), ("x-real-ip", "9.9.9.9")],
            "10.1.1.1",
        );
        check(
            "[::ffff:127.0.0.1]:1",
            &[("x-real-ip", "9.9.9.9"), ("x-forwarded-proto", "https")],
            "9.9.9.9 https",
        );
        check(
            "127.0.0.1:1",
            &[
                ("x-forwarded-for", "9.9.9.9:4711, [::1]:80"),
                ("x-forwarded-proto", "https, http"),
            ],
            "9.9.9.9 https",
        );
        check("1.2.3.4:1", &[("x-forwarded-proto", "https")], "1.2.3.4");
        check("127.0.0.1:1", &[], "127.0.0.1");
        assert_eq!(TrustedProxies::parse("10.0.0.0/8, here").unwrap_err(), "here");
    }
}
