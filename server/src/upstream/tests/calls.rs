//! What goes out and what comes back, over HTTP/1.1.

use super::server::{FINE, Server, gone, news, request};
use super::{HttpTransport, ask, post, read, transport};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use futures_util::{FutureExt, StreamExt};
use http::Request;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use switchyard_engine::ports::Transport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

#[tokio::test]
async fn a_request_is_whole_and_its_connection_is_used_again() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            while let Some(request) = request(&mut socket).await {
                tell.send(request).unwrap();
                socket.write_all(FINE.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let transport = transport();
    for _ in 0..3 {
        assert_eq!(ask(&transport, &server.url()).await.unwrap(), "fine");
        let request = told.recv().await.unwrap();
        assert!(request.starts_with("POST /path?q=1 HTTP/1.1\r\n"), "{request}");
        assert!(
            request.contains(&format!("\r\nhost: {}\r\n", server.address)),
            "{request}"
        );
        assert!(request.contains("\r\ncontent-length: 5\r\n"), "{request}");
        assert!(request.contains("\r\naccept: */*\r\n"), "{request}");
        assert!(request.ends_with("\r\n\r\nhello"), "{request}");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_answer_to_head_has_no_body_whatever_its_head_says() {
    let heads = ["content-length: 100", "transfer-encoding: chunked"];
    let server = Server::start(move |_, mut socket| async move {
        for head in heads {
            request(&mut socket).await.unwrap();
            let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
        gone(&mut socket).await;
    })
    .await;
    let transport = transport();
    for _ in heads {
        let request = Request::head(server.url()).body(Bytes::new()).unwrap();
        assert_eq!(read(transport.send(request).await.unwrap()).await.unwrap(), "");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn callers_name_their_own_host_and_users_stay_out_of_the_address() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            tell.send(request(&mut socket).await.unwrap()).unwrap();
            socket.write_all(FINE.as_bytes()).await.unwrap();
        }
    })
    .await;
    let mut request = post(&format!("http://user:pass@{}", server.address), "");
    request.headers_mut().insert("host", "elsewhere.test".parse().unwrap());
    read(transport().send(request).await.unwrap()).await.unwrap();
    let seen = told.recv().await.unwrap();
    assert!(seen.starts_with("POST / HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("\r\nhost: elsewhere.test\r\n"), "{seen}");
    assert!(!seen.contains("user") && !seen.contains("pass"), "{seen}");
}

#[tokio::test]
async fn calls_at_the_same_time_have_a_connection_each() {
    let server = Server::answering(FINE).await;
    let transport = transport();
    let url = server.url();
    let all = (0..5).map(|_| ask(&transport, &url));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer.unwrap(), "fine");
    }
    assert_eq!(server.connections(), 5);
    for _ in 0..5 {
        ask(&transport, &url).await.unwrap();
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn bodies_end_in_every_way_that_http_has() {
    for (name, answer, body, kept) in [
        ("length", FINE, "fine", true),
        ("empty", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "", true),
        ("no content", "HTTP/1.1 204 No Content\r\n\r\n", "", true),
        (
            "chunked",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nfi\r\n2\r\nne\r\n0\r\n\r\n",
            "fine",
            true,
        ),
        (
            "trailers",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\nx-sum: 1\r\n\r\n",
            "fine",
            true,
        ),
        (
            "told to close",
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nfine",
            "fine",
            false,
        ),
        (
            "heads that announce others",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine",
            "fine",
            true,
        ),
        (
            "one length, said twice",
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 4, 4\r\n\r\nfine",
            "fine",
            true,
        ),
        // Somebody on the way may go by the length, and take what is left for the next answer.
        (
            "chunks, and a length",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: gzip, chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",
            "fine",
            false,
        ),
        (
            "more than was announced",
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfineHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
            "fine",
            false,
        ),
        (
            "an old version that keeps its connection",
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 4\r\n\r\nfine",
            "fine",
            true,
        ),
    ] {
        let server = Server::answering(answer).await;
        let transport = transport();
        for _ in 0..2 {
            assert_eq!(ask(&transport, &server.url()).await.as_deref(), Ok(body), "{name}");
        }
        assert_eq!(server.connections(), if kept { 1 } else { 2 }, "{name}");
    }
}

#[tokio::test]
async fn a_body_may_go_on_until_the_connection_ends() {
    let server = Server::start(|_, mut socket| async move {
        request(&mut socket).await.unwrap();
        socket.write_all(b"HTTP/1.0 200 OK\r\n\r\nuntil ").await.unwrap();
        socket.write_all(b"the end").await.unwrap();
    })
    .await;
    let transport = transport();
    assert_eq!(ask(&transport, &server.url()).await.as_deref(), Ok("until the end"));
    assert_eq!(ask(&transport, &server.url()).await.as_deref(), Ok("until the end"));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_head_may_come_in_any_number_of_pieces() {
    let server = Server::start(|_, mut socket| async move {
        while request(&mut socket).await.is_some() {
            for piece in [
                "HTTP/1.1 100 Con",
                "tinue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-le",
                "ngth: 4\r\n\r",
                "\nfi",
                "ne",
            ] {
                socket.write_all(piece.as_bytes()).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
    let transport = transport();
    for _ in 0..3 {
        assert_eq!(ask(&transport, &server.url()).await.as_deref(), Ok("fine"));
    }
    assert_eq!(server.connections(), 1);
}

/// More than any socket takes at once.
fn large() -> Request<Bytes> {
    Request::post("http://placeholder.test/")
        .body(Bytes::from(vec![b'x'; 8 << 20]))
        .unwrap()
}

#[tokio::test]
async fn who_answers_before_all_was_said_is_heard() {
    let server = Server::start(|_, mut socket| async move {
        let mut some = [0; 1000];
        socket.read_exact(&mut some).await.unwrap();
        let refusal = "HTTP/1.1 413 Content Too Large\r\ncontent-length: 5\r\n\r\nlarge";
        socket.write_all(refusal.as_bytes()).await.unwrap();
        gone(&mut socket).await;
    })
    .await;
    let transport = transport();
    let mut request = large();
    *request.uri_mut() = server.url().parse().unwrap();
    let response = transport.send(request).await.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(read(response).await.as_deref(), Ok("large"));
}

#[tokio::test]
async fn an_answer_may_begin_while_the_request_still_goes_up() {
    let server = Server::start(|_, mut socket| async move {
        let mut some = vec![0; 1000];
        socket.read_exact(&mut some).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegun\r\n";
        socket.write_all(head.as_bytes()).await.unwrap();
        while !some.ends_with(b"END") {
            let mut more = vec![0; 1 << 20];
            let read = socket.read(&mut more).await.unwrap();
            some.extend_from_slice(&more[..read]);
        }
        socket.write_all(b"4\r\nover\r\n0\r\n\r\n").await.unwrap();
        assert!(request(&mut socket).await.is_some());
        socket.write_all(FINE.as_bytes()).await.unwrap();
    })
    .await;
    let transport = transport();
    let mut request = large().map(|body| Bytes::from([&body, &b"END"[..]].concat()));
    *request.uri_mut() = server.url().parse().unwrap();
    let mut body = transport.send(request).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "begun");
    assert_eq!(body.next().await.unwrap().unwrap(), "over");
    assert!(body.next().await.is_none());
    assert_eq!(ask(&transport, &server.url()).await.as_deref(), Ok("fine"));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn redirects_are_answers() {
    let server = Server::answering("HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n").await;
    let response = transport().send(post(&server.url(), "")).await.unwrap();
    assert_eq!(response.status(), 302);
    assert_eq!(response.headers()["location"], "/x");
}

#[tokio::test]
async fn frames_that_came_together_are_one() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n2\r\nef\r\n0\r\n\r\n";
    let server = Server::answering(answer).await;
    let transport = transport();
    let mut body = transport.send(post(&server.url(), "")).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "abcdef");
    assert!(
        body.next()
            .now_or_never()
            .expect("the end came with the last frame")
            .is_none(),
        "nothing follows"
    );
    ask(&transport, &server.url()).await.unwrap();
    assert_eq!(server.connections(), 1);
}

/// Counts how often a task is woken.
#[derive(Default)]
struct Woken {
    count: AtomicUsize,
    task: AtomicWaker,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.task.wake();
    }
}

#[tokio::test]
async fn who_waits_for_a_frame_is_woken_by_the_socket_and_by_nothing_else() {
    let go = Arc::new(Notify::new());
    let may_go = Arc::clone(&go);
    let server = Server::start(move |_, mut socket| {
        let may_go = Arc::clone(&may_go);
        async move {
            request(&mut socket).await.unwrap();
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            socket.write_all(head).await.unwrap();
            for _ in 0..5 {
                may_go.notified().await;
                socket.write_all(b"4\r\nword\r\n").await.unwrap();
            }
            gone(&mut socket).await;
        }
    })
    .await;
    let mut body = transport().send(post(&server.url(), "")).await.unwrap().into_body();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    for frames in 1..=5 {
        let mut polled = false;
        let next = poll_fn(|cx| {
            woken.task.register(cx.waker());
            let next = body.poll_next_unpin(&mut Context::from_waker(&waker));
            if !std::mem::replace(&mut polled, true) {
                go.notify_one();
            }
            next
        });
        assert_eq!(next.await.unwrap().unwrap(), "word");
        assert_eq!(woken.count.load(Ordering::SeqCst), frames);
    }
}

#[tokio::test]
async fn a_large_answer_arrives_whole() {
    let server = Server::start(|_, mut socket| async move {
        while request(&mut socket).await.is_some() {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 3000000\r\n\r\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            for _ in 0..30 {
                socket.write_all(&[b'x'; 100_000]).await.unwrap();
            }
        }
    })
    .await;
    let transport = transport();
    for _ in 0..2 {
        let answer = ask(&transport, &server.url()).await.unwrap();
        assert!(answer.len() == 3_000_000 && answer.bytes().all(|byte| byte == b'x'));
    }
    assert_eq!(server.connections(), 1);
}

/// Answers each request with a first word, and then says when the caller has hung up.
async fn endless(tell: tokio::sync::mpsc::UnboundedSender<()>) -> Server {
    Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            request(&mut socket).await.unwrap();
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            gone(&mut socket).await;
            tell.send(()).unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn dropping_the_body_closes_the_connection() {
    let (tell, mut told) = news();
    let server = endless(tell).await;
    let mut body = transport().send(post(&server.url(), "")).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "first");
    drop(body);
    told.recv().await.unwrap();
}

#[tokio::test]
async fn a_body_may_be_dropped_where_no_runtime_is() {
    let (tell, mut told) = news();
    let server = endless(tell).await;
    let body = transport().send(post(&server.url(), "")).await.unwrap().into_body();
    std::thread::spawn(move || drop(body)).join().unwrap();
    told.recv().await.unwrap();
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection() {
    let (asked, mut was_asked) = news();
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let (asked, tell) = (asked.clone(), tell.clone());
        async move {
            request(&mut socket).await.unwrap();
            asked.send(()).unwrap();
            gone(&mut socket).await;
            tell.send(()).unwrap();
        }
    })
    .await;
    let transport = transport();
    tokio::select! {
        _ = transport.send(post(&server.url(), "")) => panic!("nobody answers"),
        _ = was_asked.recv() => {}
    }
    told.recv().await.unwrap();
}

#[test]
fn a_body_read_on_another_runtime_gives_its_connection_back_to_its_own() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let transport: Arc<HttpTransport> = Arc::new(transport());
    let servers = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let servers = servers.unwrap();
    let server = servers.block_on(Server::answering(FINE));
    let url = server.url();
    let (hand, handed) = std::sync::mpsc::channel();
    let (done, is_done) = tokio::sync::oneshot::channel();
    let core = std::thread::spawn({
        let (transport, url) = (Arc::clone(&transport), url.clone());
        move || {
            runtime().block_on(async move {
                hand.send(transport.send(post(&url, "")).await.unwrap()).unwrap();
                is_done.await.unwrap();
                ask(&transport, &url).await.unwrap();
            });
        }
    });
    let response = handed.recv().unwrap();
    let other = runtime();
    assert_eq!(other.block_on(read(response)).unwrap(), "fine");
    done.send(()).unwrap();
    core.join().unwrap();
    assert_eq!(
        server.connections(),
        1,
        "the core took the connection that it had opened"
    );
    other.block_on(ask(&transport, &url)).unwrap();
    assert_eq!(server.connections(), 2, "the other runtime has a pool of its own");
}

#[test]
fn threads_of_one_runtime_share_their_connections() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = Server::answering(FINE).await;
        let transport = Arc::new(transport());
        let threads = Arc::new(Mutex::new(std::collections::HashSet::new()));
        for _ in 0..50 {
            let (transport, url, threads) = (Arc::clone(&transport), server.url(), Arc::clone(&threads));
            let call = async move {
                threads.lock().unwrap().insert(std::thread::current().id());
                ask(&transport, &url).await.unwrap()
            };
            assert_eq!(tokio::spawn(call).await.unwrap(), "fine");
        }
        assert_eq!(server.connections(), 1, "on {} threads", threads.lock().unwrap().len());
    });
}
