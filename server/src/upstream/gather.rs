//! Frames that have arrived together go on together.
//!
//! An upstream writes a stream word by word, and its words arrive in bursts. Each frame that is passed on alone costs a
//! parse, a chunk and a write; so whatever is there already becomes one. A frame that is alone stays the bytes that it was,
//! and a large one is not copied to make it larger.

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};
use switchyard_engine::ports::TransportError;

/// About as much as goes out as one.
const ENOUGH: usize = 32 << 10;
/// A frame of this size travels alone.
const LARGE: usize = 8 << 10;

pub(super) struct Gathered<S> {
    frames: S,
    /// What came behind what has just gone out: a large frame, or an error.
    behind: Option<Result<Bytes, TransportError>>,
    over: bool,
}

impl<S> Gathered<S> {
    pub(super) fn new(frames: S) -> Self {
        Self {
            frames,
            behind: None,
            over: false,
        }
    }
}

impl<S: Stream<Item = Result<Bytes, TransportError>> + Unpin> Stream for Gathered<S> {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while !self.over || self.behind.is_some() {
            let next = match self.behind.take() {
                Some(behind) => Poll::Ready(Some(behind)),
                None => Pin::new(&mut self.frames).poll_next(cx),
            };
            let something = !first.is_empty() || !all.is_empty();
            match next {
                Poll::Ready(Some(Ok(frame))) if frame.is_empty() => {}
                Poll::Ready(Some(Ok(frame))) if frame.len() < LARGE => {
                    if !something {
                        first = frame;
                        continue;
                    }
                    if all.is_empty() {
                        all.reserve(LARGE.max(first.len() + frame.len()));
                        all.extend_from_slice(&std::mem::take(&mut first));
                    }
                    all.extend_from_slice(&frame);
                    if all.len() >= ENOUGH {
                        break;
                    }
                }
                Poll::Ready(Some(behind)) => {
                    self.over |= behind.is_err();
                    if !something {
                        return Poll::Ready(Some(behind));
                    }
                    self.behind = Some(behind);
                    break;
                }
                Poll::Ready(None) => self.over = true,
                Poll::Pending if something => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        let gathered = if all.is_empty() { first } else { all.freeze() };
        Poll::Ready((!gathered.is_empty()).then_some(Ok(gathered)))
    }
}
