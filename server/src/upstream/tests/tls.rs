//! TLS, and HTTP/2 over it, with a certificate authority of the test's own.

use super::server::{FINE, Server, news, request};
use super::{HttpTransport, ask, post, read, transport};
use crate::upstream::tls::Tls;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, HandshakeKind, RootCertStore, ServerConfig};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use switchyard_core::env::Env;
use switchyard_engine::ports::{Transport, TransportFault};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Issues certificates for 127.0.0.1 and `upstream.test`.
pub(super) struct Authority {
    root: CertificateDer<'static>,
    leaf: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1".to_owned(), "upstream.test".to_owned()];
        let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        Self {
            root: issuer.der().clone(),
            leaf: leaf.der().clone(),
            key: key.serialize_der(),
        }
    }

    /// A transport that trusts it.
    pub(super) fn transport(&self) -> HttpTransport {
        self.transport_in(&HashMap::new())
    }

    pub(super) fn transport_in(&self, env: &dyn Env) -> HttpTransport {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        HttpTransport::with(env, Tls::trusting(&config))
    }

    /// For a server that speaks these.
    pub(super) fn acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.leaf.clone()], PrivateKeyDer::Pkcs8(self.key.clone().into()))
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

fn secure(server: &Server) -> String {
    format!("https://{}/path?q=1", server.address)
}

#[tokio::test]
async fn http1_over_tls_is_used_again_and_its_death_is_noticed() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["http/1.1"]);
    let (tell, mut told) = news();
    let server = Server::start(move |_, socket| {
        let (acceptor, tell) = (acceptor.clone(), tell.clone());
        async move {
            let mut socket = acceptor.accept(socket).await.unwrap();
            for _ in 0..2 {
                request(&mut socket).await.unwrap();
                socket.write_all(FINE.as_bytes()).await.unwrap();
            }
            socket.shutdown().await.unwrap();
            let kind = socket.get_ref().1.handshake_kind();
            drop(socket);
            tell.send(kind).unwrap();
        }
    })
    .await;
    let transport = authority.transport();
    for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
        for _ in 0..2 {
            assert_eq!(ask(&transport, &secure(&server)).await.unwrap(), "fine");
        }
        assert_eq!(told.recv().await.unwrap(), Some(expected));
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn who_is_not_trusted_is_not_spoken_to() {
    let acceptor = Authority::new().acceptor(&["http/1.1"]);
    let server = Server::start(move |_, socket| {
        let acceptor = acceptor.clone();
        async move {
            assert!(acceptor.accept(socket).await.is_err());
        }
    })
    .await;
    for transport in [Authority::new().transport(), transport()] {
        let error = ask(&transport, &secure(&server)).await.unwrap_err();
        assert_eq!(error.kind, TransportFault::Connect);
        assert!(error.message.starts_with("could not connect: "), "{error}");
    }
}

/// Serves HTTP/2: `/slow` says one word, and tells when nobody listens to it any more; the rest is an echo.
async fn serve_http2(acceptor: TlsAcceptor, socket: TcpStream, most: u32, cut: mpsc::UnboundedSender<String>) {
    let socket: TlsStream<TcpStream> = acceptor.accept(socket).await.unwrap();
    let service = service_fn(move |request: Request<Incoming>| {
        let cut = cut.clone();
        async move {
            let uri = request.uri().clone();
            assert!(!request.headers().contains_key("host"));
            let sent = request.into_body().collect().await.unwrap().to_bytes();
            let (words, body) = mpsc::channel::<Bytes>(1);
            tokio::spawn(async move {
                if uri.path() == "/slow" {
                    words.send(Bytes::from("first")).await.unwrap();
                    words.closed().await;
                    cut.send(uri.to_string()).unwrap();
                } else {
                    words.send(Bytes::from(format!("{} ", uri.path()))).await.unwrap();
                    words.send(sent).await.unwrap();
                }
            });
            let words = futures_util::stream::unfold(body, |mut body| async move {
                let word = body.recv().await?;
                Some((Ok::<_, Infallible>(Frame::data(word)), body))
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(words)))
        }
    });
    let _ = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(most)
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

async fn http2_server(authority: &Authority, most: u32) -> (Server, mpsc::UnboundedReceiver<String>) {
    let acceptor = authority.acceptor(&["h2", "http/1.1"]);
    let (cut, was_cut) = news();
    let server = Server::start(move |_, socket| serve_http2(acceptor.clone(), socket, most, cut.clone())).await;
    (server, was_cut)
}

#[tokio::test]
async fn http2_shares_one_connection_from_the_first_call_on() {
    let authority = Authority::new();
    let (server, _cut) = http2_server(&authority, 250).await;
    let transport = authority.transport();
    let url = secure(&server);
    for _ in 0..2 {
        for answer in join_all((0..8).map(|_| ask(&transport, &url))).await {
            assert_eq!(answer.unwrap(), "/path hello");
        }
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_stream_of_http2_that_is_dropped_is_reset_and_the_others_go_on() {
    let authority = Authority::new();
    let (server, mut cut) = http2_server(&authority, 250).await;
    let transport = authority.transport();
    let slow = |name| format!("https://{}/slow?{name}", server.address);
    let mut one = transport.send(post(&slow("one"), "")).await.unwrap().into_body();
    let mut two = transport.send(post(&slow("two"), "")).await.unwrap().into_body();
    assert_eq!(one.next().await.unwrap().unwrap(), "first");
    assert_eq!(two.next().await.unwrap().unwrap(), "first");
    drop(one);
    assert!(cut.recv().await.unwrap().ends_with("/slow?one"));
    assert_eq!(ask(&transport, &secure(&server)).await.unwrap(), "/path hello");
    assert!(cut.try_recv().is_err(), "the other stream still runs");
    drop(two);
    assert!(cut.recv().await.unwrap().ends_with("/slow?two"));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn more_streams_than_the_other_side_allows_open_another_connection() {
    let authority = Authority::new();
    let (server, _cut) = http2_server(&authority, 2).await;
    let transport = authority.transport();
    let slow = format!("https://{}/slow", server.address);
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut body = transport.send(post(&slow, "")).await.unwrap().into_body();
        assert_eq!(body.next().await.unwrap().unwrap(), "first");
        open.push(body);
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_shared_connection_that_ended_is_replaced() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["h2"]);
    let (tell, mut told) = news::<()>();
    let server = Server::start(move |number, socket| {
        let (acceptor, tell) = (acceptor.clone(), tell.clone());
        async move {
            let (cut, _) = news();
            let served = serve_http2(acceptor, socket, 100, cut);
            if number == 0 {
                // Until the test has had its answer.
                tokio::select! { () = served => {}, () = tell.closed() => {} }
            } else {
                served.await;
            }
        }
    })
    .await;
    let transport = authority.transport();
    let mut body = transport
        .send(post(&format!("https://{}/slow", server.address), ""))
        .await
        .unwrap()
        .into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "first");
    told.close();
    let error = body.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind, TransportFault::Broken, "{error}");
    let response = transport.send(post(&secure(&server), "hello")).await.unwrap();
    assert_eq!(read(response).await.unwrap(), "/path hello");
    assert_eq!(server.connections(), 2);
}

/// The server runs beside the test's runtime, which is kept from looking at its events until the next call is made.
#[tokio::test]
async fn a_shared_connection_that_was_closed_a_moment_ago_fails_nobody() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&["h2"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://{}/path", listener.local_addr().unwrap());
    let (close, mut may_close) = news::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            for _ in 0..3 {
                let (socket, _) = listener.accept().await.unwrap();
                let (cut, _) = news();
                tokio::select! {
                    () = serve_http2(acceptor.clone(), socket, 100, cut) => {}
                    _ = may_close.recv() => {}
                }
                tell.send(()).unwrap();
            }
        });
    });
    let transport = authority.transport();
    for _ in 0..3 {
        assert_eq!(ask(&transport, &url).await.as_deref(), Ok("/path hello"));
        close.send(()).unwrap();
        told.recv().unwrap();
    }
    server.join().unwrap();
}

#[tokio::test]
async fn bodies_of_requests_are_sent_whole_over_http2() {
    let authority = Authority::new();
    let (server, _cut) = http2_server(&authority, 250).await;
    let large = "x".repeat(300_000);
    let request = Request::post(secure(&server)).body(Bytes::from(large.clone())).unwrap();
    let answer = read(authority.transport().send(request).await.unwrap()).await.unwrap();
    assert_eq!(answer, format!("/path {large}"));
}
