//! A chat stream in OpenAI's dialect, relayed in the same dialect.
//!
//! Frames go out as they came in, whole runs of them as one slice, but for three things: the usage chunk that the caller
//! did not ask for is kept back, the `usage: null` that came with asking for it is taken out, and the model's name is
//! spliced where the caller knows it by another. One frame that is not valid JSON is skipped and counted; an error event
//! ends the stream; so does its close, and only a finish reason for every choice makes it a whole answer.

use super::read_usage;
use crate::failure::Said;
use crate::json::{is_empty, is_null, member, object, present, quoted, span, splice};
use crate::sse::{self, Block, Framer};
use crate::{Call, End, Progress, StreamDecoder};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

const DONE: &[u8] = b"[DONE]";

pub(super) struct Decoder {
    framer: Framer,
    wants_usage: bool,
    /// The name to put into every frame, as JSON.
    rename: Option<Vec<u8>>,
    prompt_bytes: usize,
    content_bytes: usize,
    usage: Option<Usage>,
    choices: Choices,
    skipped: u32,
    ended: bool,
}

/// Which choices have begun and which have ended, by their index.
#[derive(Default)]
struct Choices {
    begun: u128,
    ended: u128,
}

impl Choices {
    fn note(&mut self, index: u64, finished: bool) {
        let bit = 1_u128 << index.min(127);
        self.begun |= bit;
        if finished {
            self.ended |= bit;
        }
    }

    const fn all_ended(&self) -> bool {
        self.begun != 0 && self.begun == self.ended
    }
}

#[derive(Deserialize)]
struct ChunkView<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    object: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    choices: Option<Vec<ChoiceView<'a>>>,
}

#[derive(Deserialize)]
struct ChoiceView<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<DeltaView<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct DeltaView<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow, default)]
    audio: Option<&'a RawValue>,
}

impl DeltaView<'_> {
    /// Bytes of everything in it that is content.
    fn content_bytes(&self) -> usize {
        [
            self.content,
            self.reasoning_content,
            self.reasoning,
            self.refusal,
            self.tool_calls,
            self.function_call,
            self.audio,
        ]
        .into_iter()
        .flatten()
        .filter(|value| !is_empty(value))
        .map(|value| value.get().len())
        .sum()
    }
}

/// What becomes of a frame.
enum Fate {
    Pass,
    Drop,
    Replace(Bytes),
    End(End),
    /// `[DONE]`: goes out, and is the end.
    Done,
}

impl Decoder {
    pub(super) fn new(call: &Call, renamed: bool) -> Self {
        Self {
            framer: Framer::default(),
            wants_usage: call.wants_usage,
            rename: renamed.then(|| quoted(&call.model)),
            prompt_bytes: call.prompt_bytes,
            content_bytes: 0,
            usage: None,
            choices: Choices::default(),
            skipped: 0,
            ended: false,
        }
    }

    fn take(&mut self, block: &Block, progress: &mut Progress) {
        let mut run = 0..0;
        for frame in &block.frames {
            if self.ended {
                break;
            }
            let fate = self.judge(&block.bytes[frame.clone()], progress);
            if matches!(fate, Fate::Pass | Fate::Done) {
                run = if run.start == run.end {
                    frame.clone()
                } else {
                    run.start..frame.end
                };
            } else {
                flush(block, &mut run, progress);
            }
            match fate {
                Fate::Pass | Fate::Drop => {}
                Fate::Replace(bytes) => progress.out.push(bytes),
                Fate::Done => self.end(End::Complete, progress),
                Fate::End(end) => self.end(end, progress),
            }
        }
        flush(block, &mut run, progress);
    }

    fn end(&mut self, end: End, progress: &mut Progress) {
        self.ended = true;
        progress.end = Some(end);
    }

    fn judge(&mut self, frame: &[u8], progress: &mut Progress) -> Fate {
        let Some(data) = sse::data(frame) else {
            // Before content a comment only keeps a connection alive, and that is done here already.
            return if self.content_bytes > 0 { Fate::Pass } else { Fate::Drop };
        };
        let data = data.trim_ascii();
        if data == DONE {
            return self.done();
        }
        if data.is_empty() {
            return Fate::Pass;
        }
        if sse::event(frame) == Some(b"error") {
            let said = Said::of_stray(data).unwrap_or_else(|| Said::of(&String::from_utf8_lossy(data)));
            return Fate::End(End::Failed(said.into_error(None)));
        }
        let Ok(chunk) = object::<ChunkView<'_>>(data) else {
            return self.judge_stray(data);
        };
        if let Some(error) = chunk.error.filter(|error| !is_null(error)) {
            return Fate::End(End::Failed(Said::of(error.get()).into_error(None)));
        }
        if chunk.object.as_deref() == Some("error") {
            return self.judge_stray(data);
        }
        for choice in chunk.choices.iter().flatten() {
            let finished = choice.finish_reason.as_ref().is_some_and(|reason| !reason.is_empty());
            self.choices.note(choice.index.unwrap_or(0), finished);
            let bytes = choice.delta.as_ref().map_or(0, DeltaView::content_bytes);
            self.content_bytes += bytes;
            progress.content |= bytes > 0;
        }
        let reported = chunk.usage.filter(|usage| !is_null(usage)).and_then(read_usage);
        self.usage = reported.or(self.usage);
        if !self.wants_usage && reported.is_some() && chunk.choices.as_ref().is_none_or(Vec::is_empty) {
            return Fate::Drop;
        }
        let edits = self.edits(data, &chunk);
        if edits.is_empty() {
            return Fate::Pass;
        }
        Fate::Replace(sse::frame(&splice(&Bytes::copy_from_slice(data), edits)))
    }

    /// What is no chunk: an error without its usual wrapper, JSON that a later dialect may know, or no JSON at all.
    fn judge_stray(&mut self, data: &[u8]) -> Fate {
        if let Some(said) = Said::of_stray(data) {
            return Fate::End(End::Failed(said.into_error(None)));
        }
        // A parser that ignores a text does not look whether it is one.
        let is_text = std::str::from_utf8(data).is_ok();
        if is_text && serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok() {
            return Fate::Pass;
        }
        self.skipped += 1;
        Fate::Drop
    }

    /// `[DONE]` alone is no answer, and neither is one of which every piece was unreadable.
    fn done(&self) -> Fate {
        if let Some(unreadable) = self.unreadable() {
            return Fate::End(End::Failed(unreadable));
        }
        if self.choices.begun > 0 || self.usage.is_some() {
            return Fate::Done;
        }
        let message = "the upstream ended its stream without an answer";
        Fate::End(End::Failed(Error::new(Kind::BadAnswer, message)))
    }

    fn unreadable(&self) -> Option<Error> {
        (self.skipped > 0 && self.content_bytes == 0).then(|| {
            let message = format!(
                "the upstream's stream had no content but {} frames that were not valid JSON",
                self.skipped
            );
            Error::new(Kind::BadAnswer, message)
        })
    }

    fn edits(&self, data: &[u8], chunk: &ChunkView<'_>) -> Vec<(Range<usize>, Vec<u8>)> {
        let mut edits = Vec::new();
        if let (Some(name), Some(model)) = (&self.rename, chunk.model) {
            edits.push((span(data, model), name.clone()));
        }
        if let Some(usage) = chunk.usage.filter(|usage| !self.wants_usage && is_null(usage)) {
            edits.extend(member(data, "usage", span(data, usage)).map(|range| (range, Vec::new())));
        }
        edits
    }
}

/// Sends the frames of a run as the one slice that they are.
fn flush(block: &Block, run: &mut Range<usize>, progress: &mut Progress) {
    if run.start < run.end {
        progress.out.push(block.bytes.slice(run.clone()));
    }
    *run = 0..0;
}

impl StreamDecoder for Decoder {
    fn push(&mut self, bytes: Bytes) -> Progress {
        let mut progress = Progress::default();
        if self.ended {
            return progress;
        }
        match self.framer.push(bytes) {
            Ok(block) => self.take(&block, &mut progress),
            Err(sse::Endless) => {
                let message = "the upstream sent a frame without an end";
                self.end(End::Failed(Error::new(Kind::BadAnswer, message)), &mut progress);
            }
        }
        progress
    }

    fn finish(&mut self) -> Progress {
        let mut progress = Progress::default();
        if self.ended {
            return progress;
        }
        let rest = self.framer.finish();
        // An error may stand there as a whole document, over several lines.
        if let Some(said) = Said::of_stray(rest.bytes.trim_ascii()) {
            self.end(End::Failed(said.into_error(None)), &mut progress);
            return progress;
        }
        self.take(&rest, &mut progress);
        if !rest.frames.is_empty() && !progress.out.is_empty() {
            // The stream forgot its last blank line.
            progress.out.push(Bytes::from_static(b"\n\n"));
        }
        if !self.ended {
            let end = if let Some(unreadable) = self.unreadable() {
                End::Failed(unreadable)
            } else if self.choices.all_ended() {
                progress.out.push(sse::frame(DONE));
                End::Complete
            } else {
                End::Failed(cut(self.skipped))
            };
            self.end(end, &mut progress);
        }
        progress
    }

    fn usage(&self) -> Usage {
        self.usage.unwrap_or_else(|| {
            // About four bytes of JSON a token: far better than nothing, and marked as what it is.
            let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).ok();
            let (prompt, completion) = (tokens(self.prompt_bytes), tokens(self.content_bytes));
            let total = prompt.zip(completion).map(|(a, b)| a + b);
            Usage {
                prompt,
                completion,
                total,
                estimated: true,
                ..Usage::default()
            }
        })
    }
}

fn cut(skipped: u32) -> Error {
    let mut message = "the upstream closed its stream before the answer was whole".to_owned();
    if skipped > 0 {
        message = format!("{message}; {skipped} of its frames were not valid JSON");
    }
    Error::new(Kind::Cut, message)
}
