//! Proxies of the environment.

use super::server::{FINE, Server, news, request};
use super::tls::Authority;
use super::{HttpTransport, ask};
use std::collections::HashMap;
use switchyard_engine::ports::TransportFault;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

fn env(variables: &[(&str, String)]) -> HashMap<String, String> {
    variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

/// `user:pa ss`
const USER: &str = "user:pa%20ss";
const AUTHORIZATION: &str = "\r\nproxy-authorization: Basic dXNlcjpwYSBzcw==\r\n";

#[tokio::test]
async fn plain_http_is_sent_to_the_proxy_with_the_whole_address() {
    let (tell, mut told) = news();
    let proxy = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            while let Some(request) = request(&mut socket).await {
                tell.send(request).unwrap();
                socket.write_all(FINE.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let before = proxy.connections();
        let transport = HttpTransport::new(&env(&[(name, format!("http://{USER}@{}", proxy.address))]));
        for _ in 0..2 {
            assert_eq!(
                ask(&transport, "http://me:key@upstream.test:81/path?q=1")
                    .await
                    .unwrap(),
                "fine"
            );
            let request = told.recv().await.unwrap();
            assert!(
                request.starts_with("POST http://upstream.test:81/path?q=1 HTTP/1.1\r\n"),
                "{request}"
            );
            assert!(request.contains("\r\nhost: upstream.test:81\r\n"), "{request}");
            assert!(request.contains(AUTHORIZATION), "{request}");
        }
        assert_eq!(proxy.connections(), before + 1, "{name}");
    }
}

#[tokio::test]
async fn who_is_excepted_is_reached_directly() {
    let (proxy, upstream) = (Server::answering(FINE).await, Server::answering(FINE).await);
    let address = format!("http://{}", proxy.address);
    for (no, through_proxy) in [("127.0.0.1", 0), ("127.0.0.0/8", 0), ("*", 0), ("other.test", 1)] {
        let variables = [("HTTP_PROXY", address.clone()), ("NO_PROXY", no.to_owned())];
        let (before, directly) = (proxy.connections(), upstream.connections());
        ask(&HttpTransport::new(&env(&variables)), &upstream.url())
            .await
            .unwrap();
        assert_eq!(proxy.connections() - before, through_proxy, "{no}");
        assert_eq!(upstream.connections() - directly, 1 - through_proxy, "{no}");
    }
}

/// A proxy that makes tunnels, whatever the name, to `upstream`.
async fn tunnels(
    upstream: std::net::SocketAddr,
    tls: Option<tokio_rustls::TlsAcceptor>,
) -> (Server, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (tell, told) = news();
    let proxy = Server::start(move |_, mut socket| {
        let (tell, tls) = (tell.clone(), tls.clone());
        async move {
            let mut out = TcpStream::connect(upstream).await.unwrap();
            let fine = b"HTTP/1.1 200 Connection established\r\n\r\n";
            if let Some(tls) = tls {
                let mut socket = tls.accept(socket).await.unwrap();
                tell.send(request(&mut socket).await.unwrap()).unwrap();
                socket.write_all(fine).await.unwrap();
                let _ = copy_bidirectional(&mut socket, &mut out).await;
            } else {
                tell.send(request(&mut socket).await.unwrap()).unwrap();
                socket.write_all(fine).await.unwrap();
                let _ = copy_bidirectional(&mut socket, &mut out).await;
            }
        }
    })
    .await;
    (proxy, told)
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["http/1.1"]);
    let (tell, mut told) = news();
    let upstream = Server::start(move |_, socket| {
        let (acceptor, tell) = (acceptor.clone(), tell.clone());
        async move {
            let mut socket = acceptor.accept(socket).await.unwrap();
            while let Some(request) = request(&mut socket).await {
                tell.send(request).unwrap();
                socket.write_all(FINE.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    for scheme in ["http", "https"] {
        let tls = (scheme == "https").then(|| authority.acceptor(&[]));
        let (proxy, mut asked) = tunnels(upstream.address, tls).await;
        let variables = [("HTTPS_PROXY", format!("{scheme}://{USER}@{}", proxy.address))];
        let transport = authority.transport_in(&env(&variables));
        for _ in 0..2 {
            assert_eq!(ask(&transport, "https://upstream.test/path").await.unwrap(), "fine");
            let request = told.recv().await.unwrap();
            assert!(request.starts_with("POST /path HTTP/1.1\r\n"), "{request}");
            assert!(request.contains("\r\nhost: upstream.test\r\n"), "{request}");
            assert!(!request.contains("proxy-authorization"), "{request}");
        }
        let connect = asked.recv().await.unwrap();
        assert!(
            connect.starts_with("CONNECT upstream.test:443 HTTP/1.1\r\n"),
            "{connect}"
        );
        assert!(connect.contains(AUTHORIZATION), "{connect}");
        assert_eq!(proxy.connections(), 1, "{scheme}");
    }
}

#[tokio::test]
async fn a_proxy_that_will_not_is_a_failure_to_connect() {
    let authority = Authority::new();
    for answer in [
        "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\nno",
        "nonsense\r\n\r\n",
    ] {
        let proxy = Server::answering(answer).await;
        let variables = [("HTTPS_PROXY", format!("http://{USER}@{}", proxy.address))];
        let error = ask(&authority.transport_in(&env(&variables)), "https://upstream.test/")
            .await
            .unwrap_err();
        assert_eq!(error.kind, TransportFault::Connect);
        assert!(
            error.message.contains("proxy") && !error.message.contains("user"),
            "{error}"
        );
    }
    let socks = [("ALL_PROXY", "socks5://user:secret@127.0.0.1:1080".to_owned())];
    let error = ask(&HttpTransport::new(&env(&socks)), "http://upstream.test/")
        .await
        .unwrap_err();
    assert_eq!(error.kind, TransportFault::Connect);
    assert!(error.message.contains("does not speak HTTP"), "{error}");
}
