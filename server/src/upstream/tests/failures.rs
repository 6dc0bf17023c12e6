//! What breaks, what it is called, and what is sent again.

use super::server::{FINE, Server, news, request};
use super::{ask, post, transport};
use crate::upstream::http1::{Address, Line};
use crate::upstream::stream::{Probe, Socket, Stream};
use bytes::Bytes;
use futures_util::StreamExt;
use http::Request;
use std::io::Read as _;
use std::sync::Arc;
use switchyard_engine::ports::{Transport, TransportFault};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

#[tokio::test]
async fn what_cannot_be_reached_is_a_failure_to_connect() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused = format!("http://user:secret@{}/", closed.local_addr().unwrap());
    drop(closed);
    let unknown = format!("http://{}.test/", "a".repeat(64));
    for url in [
        refused.as_str(),
        unknown.as_str(),
        "ftp://127.0.0.1/",
        "/path",
        "https://[::1]:1/",
    ] {
        let error = ask(&transport(), url).await.unwrap_err();
        assert_eq!(error.kind, TransportFault::Connect, "{url}: {error}");
        assert!(error.message.starts_with("could not connect: "), "{error}");
        assert!(!error.message.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn idle_connections_that_were_closed_are_not_used() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            request(&mut socket).await.unwrap();
            socket.write_all(FINE.as_bytes()).await.unwrap();
            drop(socket);
            tell.send(()).unwrap();
        }
    })
    .await;
    let transport = transport();
    for call in 1..=5 {
        assert_eq!(ask(&transport, &server.url()).await.unwrap(), "fine");
        told.recv().await.unwrap();
        assert_eq!(server.connections(), call);
    }
}

/// The server runs beside the test's runtime, which is kept from looking at its events until the next call is made.
#[tokio::test]
async fn a_connection_that_was_closed_a_moment_ago_is_not_used() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (close, may_close) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        while may_close.recv().is_ok() {
            let (mut socket, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            while !all.ends_with(b"hello") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                all.extend(byte);
            }
            std::io::Write::write_all(&mut socket, FINE.as_bytes()).unwrap();
            may_close.recv().unwrap();
            drop(socket);
            tell.send(()).unwrap();
        }
    });
    let transport = transport();
    for _ in 0..3 {
        close.send(()).unwrap();
        assert_eq!(ask(&transport, &url).await.as_deref(), Ok("fine"));
        close.send(()).unwrap();
        told.recv().unwrap();
    }
    drop(close);
    server.join().unwrap();
}

#[tokio::test]
async fn nothing_that_nobody_asked_for_becomes_an_answer() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            while request(&mut socket).await.is_some() {
                socket.write_all(FINE.as_bytes()).await.unwrap();
                let unasked = "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n";
                tokio::task::yield_now().await;
                socket.write_all(unasked.as_bytes()).await.unwrap();
                tell.send(()).unwrap();
            }
        }
    })
    .await;
    let transport = transport();
    for call in 1..=3 {
        assert_eq!(ask(&transport, &server.url()).await.unwrap(), "fine");
        told.recv().await.unwrap();
        assert_eq!(server.connections(), call);
    }
}

#[tokio::test]
async fn what_was_not_sent_comes_back() {
    let server = Server::start(|_, socket| async move { drop(socket) }).await;
    let socket = TcpStream::connect(server.address).await.unwrap();
    // The runtime has noticed; the pool, which would have asked, is not here.
    socket.readable().await.unwrap();
    let probe = Probe::default();
    let stream = Stream::Plain(Socket::new(socket, probe.clone()));
    let line = Line::new(stream, probe);
    let request = Request::post("/").body(Bytes::from("hello")).unwrap();
    let address = Address { target: "/", host: "x" };
    let Err(failed) = line.send(&request, address).await else {
        panic!("nobody answers");
    };
    assert!(failed.unsent, "none of it was written");
    assert_eq!(failed.error.kind, TransportFault::Broken);
}

#[tokio::test]
async fn what_may_have_been_read_is_not_sent_again() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            for answer in [FINE, ""] {
                request(&mut socket).await.unwrap();
                tell.send(()).unwrap();
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let transport = transport();
    assert_eq!(ask(&transport, &server.url()).await.unwrap(), "fine");
    let error = ask(&transport, &server.url()).await.unwrap_err();
    assert_eq!(error.kind, TransportFault::Broken, "{error}");
    assert_eq!(server.connections(), 1);
    assert!(told.try_recv().is_ok() && told.try_recv().is_ok() && told.try_recv().is_err());
}

#[tokio::test]
async fn a_new_connection_that_is_closed_at_once_is_broken() {
    let server = Server::start(|_, socket| async move { drop(socket) }).await;
    let error = ask(&transport(), &server.url()).await.unwrap_err();
    assert_eq!(error.kind, TransportFault::Broken, "{error}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_is_no_http_or_contradicts_itself_is_broken() {
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nfine!",
        "HTTP/1.1 200 OK\r\ncontent-length: 4, 5\r\n\r\nfine!",
        "HTTP/1.1 200 OK\r\ncontent-length: +4\r\n\r\nfine",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nfine",
        "HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname : x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n folded\r\n\r\nfine",
    ] {
        let server = Server::answering(answer).await;
        let error = ask(&transport(), &server.url()).await.unwrap_err();
        assert_eq!(error.kind, TransportFault::Broken, "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn a_head_that_does_not_end_is_broken() {
    let server = Server::start(|_, mut socket| async move {
        request(&mut socket).await.unwrap();
        let mut line = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(1 << 20)).into_bytes();
        while socket.write_all(&line).await.is_ok() {
            line = vec![b'y'; 1 << 20];
        }
    })
    .await;
    let error = ask(&transport(), &server.url()).await.unwrap_err();
    assert_eq!(error.kind, TransportFault::Broken, "{error}");
}

#[tokio::test]
async fn an_answer_that_is_cut_is_what_came_and_then_broken() {
    for (head, reset) in [
        ("content-length: 100\r\n\r\nfirst", false),
        ("content-length: 100\r\n\r\nfirst", true),
        ("transfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n", false),
        ("transfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n", true),
        ("transfer-encoding: chunked\r\n\r\n5\r\nfirst\r\nno number\r\n", false),
    ] {
        for at_once in [false, true] {
            if reset && at_once {
                // Whatever a reset overtakes is lost.
                continue;
            }
            let go = Arc::new(Notify::new());
            let may_go = Arc::clone(&go);
            let server = Server::start(move |_, mut socket| {
                let may_go = Arc::clone(&may_go);
                async move {
                    request(&mut socket).await.unwrap();
                    socket
                        .write_all(format!("HTTP/1.1 200 OK\r\n{head}").as_bytes())
                        .await
                        .unwrap();
                    may_go.notified().await;
                    if reset {
                        let linger = Some(std::time::Duration::ZERO);
                        socket2::SockRef::from(&socket).set_linger(linger).unwrap();
                    }
                }
            })
            .await;
            let transport = transport();
            if at_once {
                go.notify_one();
            }
            let mut body = transport.send(post(&server.url(), "")).await.unwrap().into_body();
            assert_eq!(body.next().await.unwrap().unwrap(), "first", "{head}");
            go.notify_one();
            let error = body.next().await.unwrap().unwrap_err();
            assert_eq!(error.kind, TransportFault::Broken, "{head}: {error}");
            assert!(body.next().await.is_none(), "{head}");
        }
    }
}
