//! Frames, however they come.

use crate::upstream::fault;
use crate::upstream::gather::Gathered;
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use switchyard_engine::ports::TransportError;

/// Frames, and in between moments with nothing.
struct Script(VecDeque<Option<Result<Bytes, TransportError>>>);

impl Stream for Script {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(Some(frame)) => Poll::Ready(Some(frame)),
            Some(None) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

fn gathered(frames: impl IntoIterator<Item = Option<Result<Bytes, TransportError>>>) -> Gathered<Script> {
    Gathered::new(Script(frames.into_iter().collect()))
}

fn error() -> TransportError {
    fault::connect("no")
}

#[test]
fn a_frame_that_is_alone_is_not_copied() {
    let (small, large) = (Bytes::from(vec![1; 10]), Bytes::from(vec![2; 20_000]));
    let frames = [
        Some(Ok(small.clone())),
        Some(Ok(large.clone())),
        Some(Ok(small.clone())),
    ];
    let mut gathered = gathered(frames);
    for expected in [&small, &large, &small] {
        let frame = gathered.next().now_or_never().unwrap().unwrap().unwrap();
        assert_eq!((frame.as_ptr(), frame.len()), (expected.as_ptr(), expected.len()));
    }
    assert!(gathered.next().now_or_never().unwrap().is_none());
}

#[test]
fn what_has_arrived_waits_for_nothing() {
    let mut gathered = gathered([
        Some(Ok(Bytes::from("a"))),
        Some(Ok(Bytes::from("b"))),
        None,
        Some(Ok(Bytes::from("c"))),
    ]);
    assert_eq!(gathered.next().now_or_never().unwrap().unwrap().unwrap(), "ab");
    assert_eq!(gathered.next().now_or_never().unwrap().unwrap().unwrap(), "c");
    assert!(gathered.next().now_or_never().unwrap().is_none());
}

#[test]
fn an_error_waits_for_what_came_before_it() {
    let mut gathered = gathered([
        Some(Ok(Bytes::from("a"))),
        Some(Err(error())),
        Some(Ok(Bytes::from("never"))),
    ]);
    assert_eq!(gathered.next().now_or_never().unwrap().unwrap().unwrap(), "a");
    assert_eq!(gathered.next().now_or_never().unwrap().unwrap().unwrap_err(), error());
    assert!(gathered.next().now_or_never().unwrap().is_none());
}

proptest! {
    #[test]
    fn any_split_gives_the_same_bytes(
        lengths in prop::collection::vec(prop::option::of(prop_oneof![0..40_usize, 0..5_000_usize, 8_000..40_000_usize]), 0..40),
        fails in any::<bool>(),
    ) {
        let mut at = 0_usize;
        let mut frames = Vec::new();
        for length in lengths {
            frames.push(length.map(|length| {
                let frame: Vec<u8> = (at..at + length).map(|i| u8::try_from(i % 251).unwrap()).collect();
                at += length;
                Ok(Bytes::from(frame))
            }));
        }
        if fails {
            frames.push(Some(Err(error())));
        }
        let mut gathered = gathered(frames);
        let (mut all, mut failed) = (Vec::new(), false);
        loop {
            match gathered.next().now_or_never() {
                None => {}
                Some(None) => break,
                Some(Some(Ok(frame))) => {
                    prop_assert!(!frame.is_empty() && !failed);
                    all.extend_from_slice(&frame);
                }
                Some(Some(Err(_))) => failed = true,
            }
        }
        prop_assert_eq!(failed, fails);
        prop_assert!(all.len() == at && all.iter().enumerate().all(|(i, byte)| usize::from(*byte) == i % 251));
    }
}
