//! Keeps a client's connection alive while no target has brought content yet.
//!
//! An answer that comes soon has its head wait for it, so that a failure keeps its status and headers name who answered.
//! After a while the head goes out without: comments follow until the answer begins, and a failure becomes the stream's
//! last word.

use super::Attempts;
use crate::ledger::Shared;
use crate::request::{Answer, Body, Failure, Piece};
use futures_util::stream::{BoxStream, StreamExt, unfold};
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// What follows the head.
enum State {
    Waiting(Attempts),
    Answering(BoxStream<'static, Piece>),
    Over,
}

pub(super) async fn while_waiting(
    shared: Arc<Shared>,
    mut attempts: Attempts,
    after: Duration,
) -> Result<Answer, Failure> {
    if let Ok(done) = timeout(after, &mut attempts).await {
        return done;
    }
    shared.send_head();
    let beats = unfold(State::Waiting(attempts), move |state| step(state, after)).boxed();
    let first = futures_util::stream::once(async { Piece::Heartbeat });
    Ok(Answer {
        attribution: shared.attribution(),
        overhead: Duration::ZERO,
        waited: after,
        headers: HeaderMap::new(),
        notes: None,
        body: Body::Stream(first.chain(beats).boxed()),
    })
}

async fn step(mut state: State, every: Duration) -> Option<(Piece, State)> {
    loop {
        state = match state {
            State::Waiting(mut attempts) => match timeout(every, &mut attempts).await {
                Err(_) => return Some((Piece::Heartbeat, State::Waiting(attempts))),
                Ok(Err(failure)) => return Some((Piece::Failed(Box::new(failure.error)), State::Over)),
                Ok(Ok(Answer {
                    body: Body::Stream(stream),
                    ..
                })) => State::Answering(stream),
                Ok(Ok(Answer {
                    body: Body::Whole(bytes),
                    ..
                })) => return Some((Piece::Frames(bytes), State::Over)),
            },
            State::Answering(mut stream) => return stream.next().await.map(|piece| (piece, State::Answering(stream))),
            State::Over => return None,
        };
    }
}
