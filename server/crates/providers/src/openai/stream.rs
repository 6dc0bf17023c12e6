//! A chat stream in OpenAI's dialect, relayed in the same dialect.
//!
//! Frames go out as they came in, whole runs of them as one slice, but for three things: the usage chunk that the caller
//! did not ask for is kept back, the `usage: null` that came with asking for it is taken out, and the model's name is
//! spliced where the caller knows it by another. One frame that is not valid JSON is skipped and counted; an error event
//! ends the stream; so does its close, and only a finish reason for every choice makes it a whole answer.
//!
//! The chunks of a stream are the same bytes over and over, around a word or two. So they are not read over and over: one
//! that differs from an earlier one in nothing but such a text says the same but for that text, see [`Mould`].

use super::chat::failed_choice;
use super::{UsageView, usage_of_groq};
use crate::failure::Said;
use crate::json::{member, quoted};
use crate::relay;
use crate::skim::{Skim, Span, Written, end_of_text};
use crate::sse::{self, Block, Frame, Framer};
use crate::{Call, End, Progress, StreamDecoder};
use bytes::Bytes;
use std::mem;
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
    mould: Mould,
    skipped: u32,
    ended: bool,
}

/// Which choices have begun and which have ended, by their index.
#[derive(Clone, Copy, Default)]
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

    const fn and(self, others: Self) -> Self {
        Self {
            begun: self.begun | others.begun,
            ended: self.ended | others.ended,
        }
    }

    const fn all_ended(&self) -> bool {
        self.begun != 0 && self.begun == self.ended
    }
}

/// What a chunk says, and where its members stand that may have to change.
#[derive(Default)]
struct Chunk {
    model: Option<Span>,
    usage: UsageView,
    error: Option<Span>,
    /// It calls itself an error.
    is_error: bool,
    /// One of its choices has failed,
    has_failed: bool,
    /// and says how.
    choice_error: Option<Span>,
    /// Groq's own report of usage.
    groq: Option<Span>,
    choices: Choices,
    content_bytes: usize,
}

/// The members of a delta that are content.
const CONTENT: [&str; 8] = [
    "content",
    "reasoning_content",
    "reasoning",
    "refusal",
    "tool_calls",
    "function_call",
    "audio",
    "images",
];

/// Reads one chunk. Each of its steps is `None` if this is no chunk: no JSON, or something stands in it where a chunk has
/// something else.
struct Reader<'a> {
    data: &'a [u8],
    skim: Skim<'a>,
    chunk: Chunk,
    holes: Vec<Hole>,
}

impl<'a> Reader<'a> {
    fn new(data: &'a [u8]) -> Self {
        Self {
            data,
            skim: Skim::new(data),
            chunk: Chunk::default(),
            holes: Vec::new(),
        }
    }

    fn read(&mut self) -> Option<()> {
        let (mut object, mut has_choices) = (None, false);
        self.skim.enter_object().ok()?;
        while let Some(key) = self.skim.key().ok()? {
            match key {
                b"model" => self.skim.fill(&mut self.chunk.model, "model").ok()?,
                b"usage" => self.chunk.usage.read(&mut self.skim).ok()?,
                b"error" => self.skim.fill(&mut self.chunk.error, "error").ok()?,
                b"x_groq" => self.chunk.groq = usage_of_groq(&mut self.skim).ok()?.or(self.chunk.groq),
                b"object" => self.skim.fill(&mut object, "object").ok()?,
                b"choices" => {
                    self.skim.once(&mut has_choices, "choices").ok()?;
                    self.read_choices()?;
                }
                // Noise of some length against those who look at lengths.
                b"obfuscation" => {
                    let noise = self.skim.value().ok()?;
                    self.note(noise, Text::Noise);
                }
                _ => self.skim.skip().ok()?,
            }
        }
        self.skim.finish().ok()?;
        if let Some(object) = there(object, self.data) {
            self.chunk.is_error = object.says("error")?;
        }
        Some(())
    }

    fn read_choices(&mut self) -> Option<()> {
        if self.skim.enter(b'[').ok()? {
            while self.skim.item().ok()? {
                self.read_choice()?;
            }
        }
        Some(())
    }

    fn read_choice(&mut self) -> Option<()> {
        let (mut index, mut has_delta, mut has_text, mut reason, mut error) = (None, false, false, None, None);
        self.skim.enter_object().ok()?;
        while let Some(key) = self.skim.key().ok()? {
            match key {
                b"index" => self.skim.fill(&mut index, "index").ok()?,
                b"delta" => {
                    self.skim.once(&mut has_delta, "delta").ok()?;
                    self.read_delta()?;
                }
                // Of a completion, which has no messages.
                b"text" => {
                    self.skim.once(&mut has_text, "text").ok()?;
                    let text = self.skim.value().ok()?;
                    self.note(text, Text::Content);
                    if !text.of(self.data).is_empty() {
                        self.chunk.content_bytes += text.range().len();
                    }
                }
                b"finish_reason" => self.skim.fill(&mut reason, "finish_reason").ok()?,
                b"error" => self.skim.fill(&mut error, "error").ok()?,
                _ => self.skim.skip().ok()?,
            }
        }
        let index = there(index, self.data).map_or(Some(0), Written::count)?;
        let reason = match there(reason, self.data) {
            Some(reason) => reason.text()?,
            None => "".into(),
        };
        if let Some(error) = error.filter(|error| !error.of(self.data).is_empty()) {
            self.chunk.has_failed = true;
            self.chunk.choice_error.get_or_insert(error);
        }
        self.chunk.has_failed |= reason == "error";
        self.chunk.choices.note(index, !reason.is_empty());
        Some(())
    }

    fn read_delta(&mut self) -> Option<()> {
        let mut found = [false; CONTENT.len()];
        if self.skim.enter(b'{').ok()? {
            while let Some(key) = self.skim.key().ok()? {
                let Some(which) = CONTENT.iter().position(|name| name.as_bytes() == key) else {
                    self.skim.skip().ok()?;
                    continue;
                };
                self.skim.once(&mut found[which], CONTENT[which]).ok()?;
                let start = self.skim.value_start();
                if CONTENT[which] == "tool_calls" {
                    self.read_calls()?;
                } else {
                    self.skim.skip().ok()?;
                    self.note(self.skim.span_from(start), Text::Content);
                }
                let value = self.skim.written_from(start);
                if !value.is_empty() {
                    self.chunk.content_bytes += value.bytes().len();
                }
            }
        }
        Some(())
    }

    /// Looks in calls of tools for what grows there from chunk to chunk. They may be anything: that is the client's to judge.
    fn read_calls(&mut self) -> Option<()> {
        if self.skim.enter_if(b'[').ok()? {
            while self.skim.item().ok()? {
                if self.skim.enter_if(b'{').ok()? {
                    self.read_call()?;
                }
            }
        }
        Some(())
    }

    fn read_call(&mut self) -> Option<()> {
        while let Some(key) = self.skim.any_key().ok()? {
            if key != Some(b"function") {
                self.skim.skip().ok()?;
            } else if self.skim.enter_if(b'{').ok()? {
                self.read_function()?;
            }
        }
        Some(())
    }

    fn read_function(&mut self) -> Option<()> {
        while let Some(key) = self.skim.any_key().ok()? {
            if key == Some(b"arguments") {
                let arguments = self.skim.value().ok()?;
                self.note(arguments, Text::PartOfContent);
            } else {
                self.skim.skip().ok()?;
            }
        }
        Some(())
    }

    /// Notes a text that is likely to be another one in the next chunk.
    fn note(&mut self, span: Span, text: Text) {
        if span.of(self.data).is_text() {
            self.holes.push(Hole::new(span, text));
        }
    }
}

/// A value that is there and not `null`.
fn there(span: Option<Span>, data: &[u8]) -> Option<Written<'_>> {
    span.map(|span| span.of(data)).filter(|value| !value.is_null())
}

/// A chunk that was read, with holes in it where its texts were.
///
/// The chunks of a stream have the same id, time and model, in the same order, and differ in a text or two. Whatever fits
/// into the mould is a chunk too, and says the same but for those texts: to see that takes a comparison, and a look for the
/// end of each text.
#[derive(Default)]
struct Mould {
    data: Vec<u8>,
    holes: Vec<Hole>,
    /// Bytes of content that is in none of the holes.
    content_bytes: usize,
    model: Option<Span>,
    usage: Option<Span>,
}

/// A chunk that is longer makes no mould: it is no word or two, and would be kept for as long as the stream.
const LONGEST_MOULD: usize = 4096;

/// The inside of a text.
struct Hole {
    start: usize,
    end: usize,
    text: Text,
    /// Where it ends in what was last found to fit.
    fitted_end: usize,
}

/// What a text is to those who count content.
#[derive(Clone, Copy)]
enum Text {
    /// All of it, with its quotes. Nothing, if there is nothing between them.
    Content,
    /// Inside of something that is content, whatever the text is.
    PartOfContent,
    Noise,
}

impl Text {
    /// How much content it is if there are so many bytes between its quotes.
    const fn content_bytes(self, length: usize) -> usize {
        match self {
            Self::Content if length > 0 => length + 2,
            Self::PartOfContent => length,
            Self::Content | Self::Noise => 0,
        }
    }
}

impl Hole {
    const fn new(quoted: Span, text: Text) -> Self {
        Self {
            start: quoted.start + 1,
            end: quoted.end - 1,
            text,
            fitted_end: quoted.end - 1,
        }
    }
}

impl Mould {
    /// How many bytes of content are in `data`, if it fits.
    fn fit(&mut self, data: &[u8]) -> Option<usize> {
        let mut content_bytes = self.content_bytes;
        // Up to here the mould and the data are the same, but for what is in the holes.
        let (mut from, mut at) = (0, 0);
        for hole in &mut self.holes {
            let solid = self.data.get(from..hole.start)?;
            if !data.get(at..)?.starts_with(solid) {
                return None;
            }
            let start = at + solid.len();
            at = end_of_text(data, start)?;
            content_bytes += hole.text.content_bytes(at - start);
            hole.fitted_end = at;
            from = hole.end;
        }
        (data.get(at..)? == self.data.get(from..)?).then_some(content_bytes)
    }

    /// Where a member stands in what was last found to fit.
    fn fitted(&self, member: Span) -> Span {
        let before = self.holes.iter().rfind(|hole| hole.end <= member.start);
        before.map_or(member, |hole| Span {
            start: member.start - hole.end + hole.fitted_end,
            end: member.end - hole.end + hole.fitted_end,
        })
    }

    /// Makes it of a chunk that was read, if there are texts in that.
    fn cast(&mut self, reader: Reader<'_>) {
        let Reader { data, chunk, holes, .. } = reader;
        if holes.is_empty() || data.len() > LONGEST_MOULD {
            return;
        }
        let in_holes = holes.iter().map(|hole| hole.text.content_bytes(hole.end - hole.start));
        self.content_bytes = chunk.content_bytes - in_holes.sum::<usize>();
        self.data.clear();
        self.data.extend_from_slice(data);
        (self.holes, self.model, self.usage) = (holes, chunk.model, chunk.usage.span);
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
            mould: Mould::default(),
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
            let fate = self.judge(frame, bytes, progress);
            if matches!(fate, Fate::Pass | Fate::Done) {
                run = if run.start == run.end {
                    frame.range.clone()
                } else {
                    run.start..frame.range.end
                };
            } else {
                flush(bytes, &mut run, progress);
            }
            match fate {
                Fate::Pass | Fate::Drop => {}
                Fate::Replace(bytes) => send(bytes, progress),
                Fate::Done => self.end(End::Complete, progress),
                Fate::End(end) => self.end(end, progress),
            }
        }
        if run == (0..bytes.len()) && !run.is_empty() {
            send(mem::take(bytes), progress);
        } else {
            flush(bytes, &mut run, progress);
        }
    }

    fn end(&mut self, end: End, progress: &mut Progress) {
        self.ended = true;
        progress.end = Some(end);
    }

    fn judge(&mut self, frame: &Frame, block: &[u8], progress: &mut Progress) -> Fate {
        if let Some(line) = frame.only_line(block) {
            return match sse::value(line) {
                Some(data) => self.judge_data(data.trim_ascii(), progress),
                None => self.judge_comment(),
            };
        }
        let frame = block.get(frame.range.clone()).unwrap_or_default();
        let Some(data) = sse::data(frame) else {
            return self.judge_comment();
        };
        let data = data.trim_ascii();
        if sse::event(frame) == Some(b"error") && data != DONE && !data.is_empty() {
            let said = Said::of_stray(data).unwrap_or_else(|| Said::of(&String::from_utf8_lossy(data)));
            return Fate::End(End::Failed(said.into_error(None)));
        }
        self.judge_data(data, progress)
    }

    /// Before content a comment only keeps a connection alive, and that is done here already.
    const fn judge_comment(&self) -> Fate {
        if self.content_bytes > 0 { Fate::Pass } else { Fate::Drop }
    }

    fn judge_data(&mut self, data: &[u8], progress: &mut Progress) -> Fate {
        if let Some(content_bytes) = self.mould.fit(data) {
            self.content_bytes += content_bytes;
            progress.content |= content_bytes > 0;
            let Mould { model, usage, .. } = self.mould;
            if !self.may_change(model, usage) {
                return Fate::Pass;
            }
            let fitted = |member: Option<Span>| member.map(|member| self.mould.fitted(member));
            return self.changed(data, fitted(model), fitted(usage));
        }
        if data == DONE {
            return self.done();
        }
        if data.is_empty() {
            return Fate::Pass;
        }
        let mut reader = Reader::new(data);
        if reader.read().is_none() {
            return self.judge_stray(data);
        }
        let chunk = &reader.chunk;
        if let Some(error) = there(chunk.error, data) {
            return Fate::End(End::Failed(Said::of(error.as_str()).into_error(None)));
        }
        if chunk.is_error {
            return self.judge_stray(data);
        }
        let groq = || UsageView::usage_of(chunk.groq?.of(data).bytes());
        let reported = chunk.usage.usage(data).or_else(groq);
        self.usage = reported.or(self.usage);
        if chunk.has_failed {
            let error = chunk.choice_error.map(|error| error.of(data).as_str());
            return Fate::End(End::Failed(failed_choice(error, None)));
        }
        self.choices = self.choices.and(chunk.choices);
        self.content_bytes += chunk.content_bytes;
        progress.content |= chunk.content_bytes > 0;
        if !self.wants_usage && reported.is_some() && chunk.choices.begun == 0 {
            return Fate::Drop;
        }
        let (model, usage) = (chunk.model, chunk.usage.span);
        // What fits is taken for another chunk with the same choices, and has nothing to say of usage.
        if reported.is_none() {
            self.mould.cast(reader);
        }
        if self.may_change(model, usage) {
            self.changed(data, model, usage)
        } else {
            Fate::Pass
        }
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
        if self.choices.begun > 0 {
            return Fate::Done;
        }
        let message = "the upstream ended its stream without an answer";
        Fate::End(End::Failed(Error::new(Kind::BadAnswer, message)))
    }

    fn unreadable(&self) -> Option<Error> {
        (self.skipped > 0 && self.content_bytes == 0).then(|| relay::unreadable(self.skipped))
    }

    const fn may_change(&self, model: Option<Span>, usage: Option<Span>) -> bool {
        self.rename.is_some() && model.is_some() || !self.wants_usage && usage.is_some()
    }

    /// The frame with another name in it, and without the `null` of a usage that nobody asked for.
    fn changed(&self, data: &[u8], model: Option<Span>, usage: Option<Span>) -> Fate {
        let model = model.filter(|_| self.rename.is_some()).map(Span::range);
        let name = self.rename.as_deref().unwrap_or_default();
        let usage = usage
            .filter(|usage| !self.wants_usage && usage.of(data).is_null())
            .and_then(|usage| member(data, "usage", usage.range()));
        let rename = model.map(|at| (at, name));
        let removal = usage.map(|at| (at, &b""[..]));
        let none = (data.len()..data.len(), &b""[..]);
        let (first, second) = match (rename, removal) {
            (None, None) => return Fate::Pass,
            (Some(edit), None) | (None, Some(edit)) => (edit, none),
            (Some(rename), Some(removal)) if rename.0.start < removal.0.start => (rename, removal),
            (Some(rename), Some(removal)) => (removal, rename),
        };
        Fate::Replace(sse::frame_of(&[
            &data[..first.0.start],
            first.1,
            &data[first.0.end..second.0.start],
            second.1,
            &data[second.0.end..],
        ]))
    }
}

/// Sends the frames of a run as the one slice that they are.
fn flush(block: &Bytes, run: &mut Range<usize>, progress: &mut Progress) {
    if run.start < run.end {
        send(block.slice(run.clone()), progress);
    }
    *run = 0..0;
}

/// Mostly there is one piece to send, and room for one is what is asked for.
fn send(bytes: Bytes, progress: &mut Progress) {
    if progress.out.is_empty() {
        progress.out = vec![bytes];
    } else {
        progress.out.push(bytes);
    }
}

impl StreamDecoder for Decoder {
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
            Err(sse::Endless) => self.end(End::Failed(relay::endless()), &mut progress),
        }
        progress
    }

    fn finish(&mut self) -> Progress {
        let mut progress = Progress::default();
        if self.ended {
            return progress;
        }
        let mut rest = self.framer.finish();
        // An error may stand there as a whole document, over several lines.
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
        self.usage
            .unwrap_or_else(|| relay::estimate(self.prompt_bytes, self.content_bytes))
    }
}

fn cut(skipped: u32) -> Error {
    let mut error = relay::cut();
    if skipped > 0 {
        error.message = format!("{}; {skipped} of its frames were not valid JSON", error.message);
    }
    error
}

#[cfg(test)]
mod tests;
