//! A committed stream on its way to the client.
//!
//! The upstream's body is polled from the client's body: nothing is spawned, and a client that goes away drops the one with
//! the other. What was used is then taken from the decoder, by a drop that runs whatever happened.

use super::attempt::{Opened, next};
use crate::ledger::{Ledger, clean};
use crate::ports::UpstreamBody;
use crate::request::Piece;
use crate::snapshot::Snapshot;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use switchyard_core::error::Error;
use switchyard_core::routing::TargetId;
use switchyard_providers::{End, StreamDecoder};

/// How long an upstream may take from its last frame to its body's end.
const LINGER: Duration = Duration::from_millis(200);

struct Relay {
    body: UpstreamBody,
    decoder: Box<dyn StreamDecoder>,
    ledger: Box<Ledger>,
    ready: VecDeque<Piece>,
    over: bool,
    target: TargetId,
    idle: Duration,
    snapshot: Arc<Snapshot>,
}

pub(super) fn relay(
    opened: Opened,
    ledger: Box<Ledger>,
    target: TargetId,
    idle: Duration,
    snapshot: Arc<Snapshot>,
) -> BoxStream<'static, Piece> {
    let Opened {
        body,
        decoder,
        ready,
        end,
        ..
    } = opened;
    let mut relay = Relay {
        body,
        decoder,
        ledger,
        ready: VecDeque::new(),
        over: false,
        target,
        idle,
        snapshot,
    };
    relay.queue(ready, end);
    unfold(Box::new(relay), |mut relay| async move {
        relay.next().await.map(|piece| (piece, relay))
    })
    .boxed()
}

impl Relay {
    async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.over {
                self.let_go();
                return None;
            }
            match next(&mut self.body, self.idle).await {
                Ok(Some(bytes)) => {
                    let progress = self.decoder.push(bytes);
                    self.queue(progress.out, progress.end);
                }
                Ok(None) => {
                    let progress = self.decoder.finish();
                    self.queue(progress.out, progress.end);
                }
                Err(error) => self.queue(Vec::new(), Some(End::Failed(error))),
            }
        }
    }

    /// An upstream's last word and the end of its body are two things. Waiting a moment for the second keeps the connection.
    fn let_go(&mut self) {
        let mut body = std::mem::replace(&mut self.body, futures_util::stream::empty().boxed());
        let ended = |frame: Option<Option<_>>| frame.is_some_and(|frame: Option<_>| frame.is_none());
        if !ended(body.next().now_or_never()) {
            tokio::spawn(tokio::time::timeout(LINGER, async move {
                while let Some(Ok(_)) = body.next().await {}
            }));
        }
    }

    /// Takes what is ready to go out. At the end the record is closed at once: a whole answer stays whole even if the
    /// client hangs up on its last byte.
    fn queue(&mut self, frames: Vec<Bytes>, end: Option<End>) {
        self.ready.extend(frames.into_iter().map(Piece::Frames));
        match end {
            None => {}
            Some(End::Complete) => {
                self.over = true;
                self.ledger.noted(self.decoder.notes());
                self.ledger.close_complete(self.decoder.usage());
            }
            Some(End::Failed(error)) => {
                self.over = true;
                let error = self.cleaned(error);
                self.ledger.noted(self.decoder.notes());
                self.ledger.close_partial(&error, self.decoder.usage());
                self.ready.push_back(Piece::Failed(Box::new(error)));
            }
        }
    }

    fn cleaned(&self, error: Error) -> Error {
        match self.snapshot.targets.get(self.target.0) {
            Some(target) => clean(error, target),
            None => error,
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if !self.over {
            self.ledger.noted(self.decoder.notes());
            self.ledger.set_usage(self.decoder.usage());
        }
    }
}
