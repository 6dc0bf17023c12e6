//! A streamed answer.
//!
//! Blocks are numbered by the wire, and a text begins without saying so. `messageStop` tells why the answer ended, and
//! `metadata` behind it what was used; a stream that is closed before the former is cut. A failure is a frame of its own kind
//! under a status of success.

use super::answer::{CitationView, UsageView, block_field, call_id, finish};
use crate::bedrock::common::Tools;
use crate::bedrock::errors::Exception;
use crate::bedrock::frames::{Broken, Frames, header};
use crate::codec::Reader;
use crate::failure::Said;
use crate::ir::{Delta, Event, Maker, Seal};
use crate::relay::{cut, unreadable};
use crate::{End, Origin};
use aws_smithy_types::event_stream::Message;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

/// Whatever a payload may hold; its frame's header tells which of it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadView {
    #[serde(default)]
    content_block_index: u64,
    #[serde(default)]
    start: Option<StartView>,
    #[serde(default)]
    delta: Option<DeltaView>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    additional_model_response_fields: Option<Value>,
    #[serde(default)]
    usage: Option<UsageView>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartView {
    #[serde(default)]
    tool_use: Option<CallView>,
    /// What else may begin here is not known.
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallView {
    #[serde(default)]
    tool_use_id: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeltaView {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    tool_use: Option<InputView>,
    #[serde(default)]
    reasoning_content: Option<ReasoningView>,
    #[serde(default)]
    citation: Option<CitationView>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct InputView {
    #[serde(default)]
    input: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningView {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    redacted_content: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Text,
    Thought,
    Redacted,
    Call,
}

/// A part that has begun.
struct Open {
    /// The wire's number of its block.
    block: u64,
    part: u32,
    what: What,
}

pub(super) struct ConverseReader {
    frames: Frames,
    tools: Arc<Tools>,
    origin: Origin,
    began: bool,
    open: Vec<Open>,
    parts: u32,
    calls: usize,
    stopped: bool,
    has_usage: bool,
    skipped: u32,
    ended: bool,
}

impl ConverseReader {
    pub(super) fn new(tools: Arc<Tools>, origin: &Origin) -> Self {
        Self {
            frames: Frames::default(),
            tools,
            origin: origin.clone(),
            began: false,
            open: Vec::new(),
            parts: 0,
            calls: 0,
            stopped: false,
            has_usage: false,
            skipped: 0,
            ended: false,
        }
    }

    fn take(&mut self, message: &Message, out: &mut Vec<Event>) -> Option<End> {
        match header(message, ":message-type") {
            Some("exception") => {
                let name = header(message, ":exception-type");
                return Some(failed(Exception::read(message.payload()).named(name)));
            }
            Some("error") => {
                let exception = Exception::read(message.payload());
                let exception = exception.named(header(message, ":error-code"));
                return Some(failed(exception.saying(header(message, ":error-message"))));
            }
            _ => {}
        }
        let kind = header(message, ":event-type").unwrap_or_default();
        if kind.ends_with("Exception") {
            return Some(failed(Exception::read(message.payload()).named(Some(kind))));
        }
        let Ok(payload) = serde_json::from_slice::<PayloadView>(message.payload()) else {
            self.skipped += 1;
            return None;
        };
        if !self.began {
            self.began = true;
            out.push(Event::Start {
                id: None,
                model: None,
                usage: Usage::default(),
            });
        }
        match kind {
            "contentBlockStart" => self.start(payload, out),
            "contentBlockDelta" => self.delta(payload, out),
            "contentBlockStop" => self.close(payload.content_block_index, out),
            "messageStop" => self.stop(&payload, out),
            "metadata" => {
                if let Some(usage) = &payload.usage {
                    self.has_usage = true;
                    out.push(Event::Usage(usage.usage()));
                }
            }
            _ => {}
        }
        (self.stopped && self.has_usage).then_some(End::Complete)
    }

    /// The part of a block that this belongs to; begun if there is none of that kind.
    fn part(&mut self, block: u64, what: What) -> (u32, bool) {
        if let Some(open) = self.open.iter().find(|open| open.block == block && open.what == what) {
            return (open.part, false);
        }
        let part = self.parts;
        self.parts += 1;
        self.open.push(Open { block, part, what });
        (part, true)
    }

    fn start(&mut self, payload: PayloadView, out: &mut Vec<Event>) {
        let Some(start) = payload.start else {
            return;
        };
        if !start.others.is_empty() {
            out.push(Event::Stranger(block_field(payload.content_block_index)));
        }
        let Some(call) = start.tool_use else {
            return;
        };
        let (part, _) = self.part(payload.content_block_index, What::Call);
        let call = Delta::Call {
            id: call_id(call.tool_use_id, &self.origin, &mut self.calls),
            name: self.tools.name(call.name),
            is_custom: false,
        };
        out.push(delta(part, call));
    }

    fn delta(&mut self, payload: PayloadView, out: &mut Vec<Event>) {
        let block = payload.content_block_index;
        let Some(view) = payload.delta else {
            return;
        };
        if !view.others.is_empty() {
            out.push(Event::Stranger(block_field(block)));
        }
        if let Some(text) = view.text.filter(|text| !text.is_empty()) {
            let (part, _) = self.part(block, What::Text);
            out.push(delta(part, Delta::Text(text)));
        }
        if let Some(citation) = view.citation {
            let (part, is_new) = self.part(block, What::Text);
            if is_new {
                out.push(delta(part, Delta::Text(String::new())));
            }
            out.push(delta(part, Delta::Citation(citation.into_citation())));
        }
        if let Some(input) = view.tool_use.map(|call| call.input).filter(|input| !input.is_empty()) {
            self.arguments(block, input, out);
        }
        if let Some(reasoning) = view.reasoning_content {
            self.reasoning(block, reasoning, out);
        }
    }

    /// Arguments of a call that never began belong to nothing.
    fn arguments(&mut self, block: u64, input: String, out: &mut Vec<Event>) {
        let call = self
            .open
            .iter()
            .find(|open| open.block == block && open.what == What::Call);
        match call {
            Some(open) => out.push(delta(open.part, Delta::Arguments(input))),
            None => self.skipped += 1,
        }
    }

    fn reasoning(&mut self, block: u64, reasoning: ReasoningView, out: &mut Vec<Event>) {
        let thought = |text| Delta::Thought {
            text,
            is_summary: false,
        };
        if let Some(text) = reasoning.text.filter(|text| !text.is_empty()) {
            let (part, _) = self.part(block, What::Thought);
            out.push(delta(part, thought(text)));
        }
        if let Some(signature) = reasoning.signature.filter(|signature| !signature.is_empty()) {
            let (part, is_new) = self.part(block, What::Thought);
            if is_new {
                out.push(delta(part, thought(String::new())));
            }
            out.push(delta(part, Delta::Seal(Seal::new(Maker::Anthropic, signature))));
        }
        if let Some(data) = reasoning.redacted_content.filter(|data| !data.is_empty()) {
            let (part, is_new) = self.part(block, What::Redacted);
            if is_new {
                out.push(delta(part, Delta::Redacted));
            }
            out.push(delta(part, Delta::Seal(Seal::new(Maker::Anthropic, data))));
        }
    }

    /// Nothing more of a block comes.
    fn close(&mut self, block: u64, out: &mut Vec<Event>) {
        self.open.retain(|open| {
            if open.block != block {
                return true;
            }
            out.push(Event::End {
                choice: 0,
                part: open.part,
            });
            false
        });
    }

    fn stop(&mut self, payload: &PayloadView, out: &mut Vec<Event>) {
        if self.stopped {
            return;
        }
        self.stopped = true;
        while let Some(block) = self.open.first().map(|open| open.block) {
            self.close(block, out);
        }
        out.push(Event::Finish {
            choice: 0,
            finish: finish(
                payload.stop_reason.as_deref(),
                payload.additional_model_response_fields.as_ref(),
            ),
        });
    }
}

fn delta(part: u32, delta: Delta) -> Event {
    Event::Delta { choice: 0, part, delta }
}

fn failed(exception: Exception) -> End {
    End::Failed(exception.into_error(None))
}

impl Reader for ConverseReader {
    fn push(&mut self, bytes: Bytes, out: &mut Vec<Event>) -> Option<End> {
        if self.ended {
            return None;
        }
        self.frames.push(&bytes);
        loop {
            let end = match self.frames.next() {
                Ok(Some(message)) => self.take(&message, out),
                Ok(None) => return None,
                Err(Broken::Length) => Some(broken("the upstream sent a frame whose length makes no sense")),
                Err(Broken::Checksum) => Some(broken(
                    "the upstream sent a frame whose checksum is wrong, or whose headers make no sense",
                )),
            };
            if end.is_some() {
                self.ended = true;
                return end;
            }
        }
    }

    fn finish(&mut self, _out: &mut Vec<Event>) -> End {
        self.ended = true;
        if self.stopped {
            return End::Complete;
        }
        let rest = self.frames.rest();
        if !self.began && !rest.is_empty() {
            let exception = Exception::read(rest);
            if exception.is_one() {
                return failed(exception);
            }
            if let Some(said) = Said::of_stray(rest) {
                return End::Failed(said.into_error(None));
            }
            if rest.len() >= 4 && self.skipped == 0 && !is_frame_start(rest) {
                return broken("the upstream answered with something that is no event stream");
            }
        }
        match self.skipped {
            0 => End::Failed(cut()),
            frames if self.parts == 0 => End::Failed(unreadable(frames)),
            _ => End::Failed(cut()),
        }
    }
}

/// Lengths of frames begin with a zero.
fn is_frame_start(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|byte| *byte <= 1)
}

fn broken(what: &str) -> End {
    End::Failed(Error::new(Kind::BadAnswer, what))
}
