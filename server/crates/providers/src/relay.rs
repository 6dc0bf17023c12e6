//! A stream in the dialect that its caller speaks, relayed.
//!
//! Frames go out as they came in, whole runs of them as one slice. What has to be known of them a [`Judge`] reads, one for each
//! dialect: whether there was content, what was used, where the stream ends, and which few bytes must differ. (OpenAI's chat,
//! which is most of what passes, has a decoder of its own.)

use crate::call::Call;
use crate::failure::Said;
use crate::sse::{self, Block, Frame, Framer};
use crate::{End, Progress, StreamDecoder};
use bytes::Bytes;
use std::mem;
use std::ops::Range;
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

/// Reads the events of one stream.
pub(crate) trait Judge: Send {
    /// Looks at one event: its name, if it has one, and its data, which is JSON as a rule.
    fn judge(&mut self, event: Option<&[u8]>, data: &[u8]) -> Look;

    /// What the upstream reported, so far.
    fn usage(&self) -> Option<Usage>;

    /// The upstream closed its stream without an event that ends it. `None` if the answer is whole all the same.
    fn closed(&mut self) -> Option<Error>;
}

/// What there is to an event.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Bytes of content: text, reasoning, refusal, call of a tool, audio.
    pub(crate) content_bytes: usize,
    /// It is the last one.
    pub(crate) end: Option<End>,
    /// What must differ in its data.
    pub(crate) edits: Vec<(Range<usize>, Vec<u8>)>,
    /// It does not go out: it is nothing that the dialect has.
    pub(crate) drop: bool,
    /// It is no JSON. It does not go out, and is counted.
    pub(crate) unreadable: bool,
}

impl Look {
    pub(crate) fn failed(error: Error) -> Self {
        Self {
            end: Some(End::Failed(error)),
            ..Self::default()
        }
    }

    pub(crate) fn unreadable() -> Self {
        Self {
            unreadable: true,
            ..Self::default()
        }
    }
}

pub(crate) struct Relay<J> {
    framer: Framer,
    judge: J,
    prompt_bytes: usize,
    content_bytes: usize,
    skipped: u32,
    ended: bool,
}

impl<J: Judge> Relay<J> {
    pub(crate) fn new(call: &Call, judge: J) -> Self {
        Self {
            framer: Framer::default(),
            judge,
            prompt_bytes: call.prompt_bytes,
            content_bytes: 0,
            skipped: 0,
            ended: false,
        }
    }

    fn take(&mut self, block: &mut Block, progress: &mut Progress) {
        let Block { bytes, frames } = block;
        let mut run = 0..0;
        for frame in frames.iter() {
            if self.ended {
                break;
            }
            let replaced = self.take_frame(frame, bytes, progress);
            if replaced == Replaced::Not {
                run = if run.start == run.end {
                    frame.range.clone()
                } else {
                    run.start..frame.range.end
                };
                continue;
            }
            flush(bytes, &mut run, progress);
            if let Replaced::By(frame) = replaced {
                progress.out.push(frame);
            }
        }
        if run == (0..bytes.len()) && !run.is_empty() {
            progress.out.push(mem::take(bytes));
        } else {
            flush(bytes, &mut run, progress);
        }
    }

    fn take_frame(&mut self, frame: &Frame, block: &[u8], progress: &mut Progress) -> Replaced {
        let frame = block.get(frame.range.clone()).unwrap_or_default();
        let Some(data) = sse::data(frame) else {
            // Before content a comment only keeps a connection alive, and that is done here already.
            return if self.content_bytes > 0 {
                Replaced::Not
            } else {
                Replaced::ByNothing
            };
        };
        let event = sse::event(frame);
        let look = self.judge.judge(event, &data);
        self.content_bytes += look.content_bytes;
        progress.content |= look.content_bytes > 0;
        if look.unreadable {
            // An error may stand there as a document of its own, over several lines.
            if let Some(said) = Said::of_stray(frame.trim_ascii()) {
                self.end(End::Failed(said.into_error(None)), progress);
            } else {
                self.skipped += 1;
            }
            return Replaced::ByNothing;
        }
        if let Some(end) = look.end {
            let failed = matches!(end, End::Failed(_));
            self.end(end, progress);
            // How a failure is told is the caller's side's to say.
            if failed {
                return Replaced::ByNothing;
            }
        }
        if look.drop {
            return Replaced::ByNothing;
        }
        if look.edits.is_empty() {
            return Replaced::Not;
        }
        let data = crate::json::splice(&Bytes::copy_from_slice(&data), look.edits);
        Replaced::By(match event {
            Some(event) => sse::event_frame(event, &data),
            None => sse::frame(&data),
        })
    }

    fn end(&mut self, end: End, progress: &mut Progress) {
        self.ended = true;
        progress.end = Some(end);
    }
}

#[derive(PartialEq, Eq)]
enum Replaced {
    Not,
    By(Bytes),
    ByNothing,
}

fn flush(block: &Bytes, run: &mut Range<usize>, progress: &mut Progress) {
    if run.start < run.end {
        progress.out.push(block.slice(run.clone()));
    }
    *run = 0..0;
}

impl<J: Judge> StreamDecoder for Relay<J> {
    fn push(&mut self, bytes: Bytes) -> Progress {
        let mut progress = Progress::default();
        if self.ended {
            return progress;
        }
        match self.framer.push(bytes) {
            Ok(mut block) => {
                self.take(&mut block, &mut progress);
                self.framer.reuse(block);
            }
            Err(sse::Endless) => self.end(End::Failed(endless()), &mut progress),
        }
        progress
    }

    fn finish(&mut self) -> Progress {
        let mut progress = Progress::default();
        if self.ended {
            return progress;
        }
        let mut rest = self.framer.finish();
        if let Some(said) = Said::of_stray(rest.bytes.trim_ascii()) {
            self.end(End::Failed(said.into_error(None)), &mut progress);
            return progress;
        }
        self.take(&mut rest, &mut progress);
        if !rest.frames.is_empty() && !progress.out.is_empty() {
            // The stream forgot its last blank line.
            progress.out.push(Bytes::from_static(b"\n\n"));
        }
        if !self.ended {
            let closed = self.judge.closed();
            let error = if self.skipped > 0 && self.content_bytes == 0 {
                Some(unreadable(self.skipped))
            } else {
                closed
            };
            self.end(error.map_or(End::Complete, End::Failed), &mut progress);
        }
        progress
    }

    fn usage(&self) -> Usage {
        self.judge
            .usage()
            .unwrap_or_else(|| estimate(self.prompt_bytes, self.content_bytes))
    }
}

/// About four bytes of JSON a token: far better than nothing, and marked as what it is.
pub(crate) fn estimate(prompt_bytes: usize, content_bytes: usize) -> Usage {
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).ok();
    let (prompt, completion) = (tokens(prompt_bytes), tokens(content_bytes));
    Usage {
        prompt,
        completion,
        total: prompt.zip(completion).map(|(a, b)| a + b),
        estimated: true,
        ..Usage::default()
    }
}

pub(crate) fn endless() -> Error {
    Error::new(Kind::BadAnswer, "the upstream sent a frame without an end")
}

pub(crate) fn cut() -> Error {
    Error::new(Kind::Cut, "the upstream closed its stream before the answer was whole")
}

pub(crate) fn unreadable(frames: u32) -> Error {
    let message = format!("the upstream's stream had no content but {frames} frames that were not valid JSON");
    Error::new(Kind::BadAnswer, message)
}
