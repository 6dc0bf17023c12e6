//! What takes too long. The clock is stopped once nothing but time is waited for.

use super::server::{FINE, Server, gone, news, request};
use super::{ask, post, transport};
use crate::upstream::pool::IDLE;
use std::time::Duration;
use switchyard_engine::ports::{Transport, TransportFault};
use tokio::io::AsyncWriteExt;
use tokio::time;

#[tokio::test]
async fn an_upstream_that_never_answers_is_given_up() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            request(&mut socket).await.unwrap();
            tell.send(()).unwrap();
            gone(&mut socket).await;
        }
    })
    .await;
    let call = tokio::spawn(transport().send(post(&server.url(), "")));
    told.recv().await.unwrap();
    time::pause();
    let Err(error) = call.await.unwrap() else {
        panic!("nobody answers");
    };
    assert_eq!(error.kind, TransportFault::Timeout);
    assert_eq!(error.message, "no answer within 600 s");
}

#[tokio::test]
async fn an_upstream_that_never_greets_is_given_up() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            tell.send(()).unwrap();
            gone(&mut socket).await;
        }
    })
    .await;
    let url = format!("https://{}/", server.address);
    let transport = super::tls::Authority::new().transport();
    let call = tokio::spawn(transport.send(post(&url, "")));
    told.recv().await.unwrap();
    time::pause();
    let Err(error) = call.await.unwrap() else {
        panic!("nobody answers");
    };
    assert_eq!(error.kind, TransportFault::Timeout);
    assert_eq!(error.message, "could not connect within 10 s");
}

#[tokio::test]
async fn what_was_idle_for_too_long_is_closed() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            while request(&mut socket).await.is_some() {
                socket.write_all(FINE.as_bytes()).await.unwrap();
            }
            tell.send(()).unwrap();
        }
    })
    .await;
    let transport = transport();
    ask(&transport, &server.url()).await.unwrap();
    time::pause();
    time::advance(IDLE / 2).await;
    time::resume();
    ask(&transport, &server.url()).await.unwrap();
    assert_eq!(server.connections(), 1);
    time::pause();
    time::advance(IDLE + Duration::from_millis(1)).await;
    time::resume();
    ask(&transport, &server.url()).await.unwrap();
    assert_eq!(server.connections(), 2);
    told.recv().await.unwrap();
    // Nobody asks any more; the clock runs on by itself to whoever sweeps.
    time::pause();
    told.recv().await.unwrap();
}

#[tokio::test]
async fn a_transport_that_is_closed_keeps_nothing() {
    let (tell, mut told) = news();
    let server = Server::start(move |_, mut socket| {
        let tell = tell.clone();
        async move {
            while request(&mut socket).await.is_some() {
                socket.write_all(FINE.as_bytes()).await.unwrap();
            }
            tell.send(()).unwrap();
        }
    })
    .await;
    let transport = transport();
    ask(&transport, &server.url()).await.unwrap();
    transport.close();
    told.recv().await.unwrap();
    assert_eq!(
        ask(&transport, &server.url()).await.unwrap(),
        "fine",
        "what is still asked is answered"
    );
    told.recv().await.unwrap();
}
