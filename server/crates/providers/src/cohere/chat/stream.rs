//! A streamed answer.
//!
//! Every event says its type, and its number where there are several of a kind: contents are numbered by themselves, calls by
//! themselves. `message-end` is the last one and tells why, and what was used.

use super::answer::{CitationView, LogprobView, UsageView, all_logprobs, finish};
use crate::bedrock::common::Tools;
use crate::codec::Reader;
use crate::cohere::failed;
use crate::failure::Said;
use crate::ir::{Delta, Event};
use crate::relay::{cut, endless, unreadable};
use crate::sse::{self, Block, Framer};
use crate::{End, Origin, ids};
use bytes::Bytes;
use serde::Deserialize;
use std::sync::Arc;
use switchyard_core::usage::Usage;

#[derive(Deserialize)]
struct EventView {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    index: u64,
    #[serde(default)]
    delta: Option<DeltaView>,
    #[serde(default)]
    logprobs: Option<LogprobView>,
    /// A failure in place of an event.
    #[serde(default)]
    message: Option<String>,
}

#[derive(Deserialize)]
struct DeltaView {
    #[serde(default)]
    message: Option<MessageView>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    usage: Option<UsageView>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
struct MessageView {
    #[serde(default)]
    content: Option<OneOrMany<PieceView>>,
    #[serde(default)]
    tool_plan: Option<String>,
    #[serde(default)]
    tool_calls: Option<OneOrMany<CallView>>,
    #[serde(default)]
    citations: Option<OneOrMany<CitationView>>,
}

/// In `message-start` they are empty lists, and one of them everywhere else.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    Many(Vec<T>),
    One(T),
}

impl<T> OneOrMany<T> {
    fn into_first(self) -> Option<T> {
        match self {
            Self::Many(many) => many.into_iter().next(),
            Self::One(one) => Some(one),
        }
    }
}

#[derive(Deserialize)]
struct PieceView {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
}

#[derive(Deserialize)]
struct CallView {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionView>,
}

#[derive(Deserialize)]
struct FunctionView {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Plan,
    Thought(u64),
    Text(u64),
    Call(u64),
}

/// A part that has begun.
struct Open {
    what: What,
    part: u32,
    is_closed: bool,
}

pub(super) struct ChatReader {
    framer: Framer,
    tools: Arc<Tools>,
    origin: Origin,
    began: bool,
    parts: Vec<Open>,
    calls: usize,
    skipped: u32,
    ended: bool,
}

impl ChatReader {
    pub(super) fn new(tools: Arc<Tools>, origin: Origin) -> Self {
        Self {
            framer: Framer::default(),
            tools,
            origin,
            began: false,
            parts: Vec::new(),
            calls: 0,
            skipped: 0,
            ended: false,
        }
    }

    fn take(&mut self, block: &Block, out: &mut Vec<Event>) -> Option<End> {
        for frame in &block.frames {
            let Some(data) = sse::data(block.bytes.get(frame.range.clone()).unwrap_or_default()) else {
                continue;
            };
            let data = data.trim_ascii();
            if data.is_empty() || data == b"[DONE]" {
                continue;
            }
            let end = match serde_json::from_slice::<EventView>(data) {
                Ok(event) => self.event(event, data, out),
                Err(_) => {
                    self.skipped += 1;
                    Said::of_stray(data).map(|said| End::Failed(said.into_error(None)))
                }
            };
            if end.is_some() {
                self.ended = true;
                return end;
            }
        }
        None
    }

    fn event(&mut self, event: EventView, data: &[u8], out: &mut Vec<Event>) -> Option<End> {
        let Some(kind) = event.kind else {
            let said = Said::of_stray(data).map(|said| said.into_error(None));
            let error = said.or_else(|| event.message.map(|message| failed(&message, None)));
            return error.map(End::Failed);
        };
        if kind == "error" {
            let message = event
                .message
                .unwrap_or_else(|| "the upstream reported an error".to_owned());
            let said = Said::of_stray(data).map(|said| said.into_error(None));
            return Some(End::Failed(said.unwrap_or_else(|| failed(&message, None))));
        }
        if !self.began {
            self.began = true;
            out.push(Event::Start {
                id: event.id,
                model: None,
                usage: Usage::default(),
            });
        }
        let index = event.index;
        if kind == "message-end" {
            return Some(self.end(event.delta, out));
        }
        let message = event.delta.and_then(|delta| delta.message);
        match kind.as_str() {
            "content-start" | "content-delta" => {
                if let Some(piece) = message.and_then(|message| message.content?.into_first()) {
                    self.say(What::Thought(index), piece.thinking, out);
                    self.say(What::Text(index), piece.text, out);
                }
                if let Some(value) = event.logprobs.as_ref().and_then(|one| all_logprobs([one])) {
                    out.push(Event::Logprobs { choice: 0, value });
                }
            }
            // A text is left open: what it has from where comes behind its end.
            "content-end" => self.close(What::Thought(index), out),
            "tool-plan-delta" => self.say(What::Plan, message.and_then(|message| message.tool_plan), out),
            "tool-call-start" => {
                if let Some(call) = message.and_then(|message| message.tool_calls?.into_first()) {
                    self.call(index, call, out);
                }
            }
            "tool-call-delta" => {
                let call = message.and_then(|message| message.tool_calls?.into_first());
                let arguments = call.and_then(|call| call.function?.arguments);
                self.arguments(index, arguments, out);
            }
            "tool-call-end" => self.close(What::Call(index), out),
            "citation-start" => {
                if let Some(citation) = message.and_then(|message| message.citations?.into_first()) {
                    self.cite(citation, out);
                }
            }
            _ => {}
        }
        None
    }

    fn part(&mut self, what: What) -> u32 {
        if let Some(open) = self.parts.iter().find(|open| open.what == what && !open.is_closed) {
            return open.part;
        }
        let part = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        self.parts.push(Open {
            what,
            part,
            is_closed: false,
        });
        part
    }

    /// Something of a text, a thought or a plan; it begins with what is not empty.
    fn say(&mut self, what: What, text: Option<String>, out: &mut Vec<Event>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return;
        };
        let part = self.part(what);
        out.push(delta(
            part,
            match what {
                What::Text(_) => Delta::Text(text),
                _ => Delta::Thought {
                    text,
                    is_summary: false,
                },
            },
        ));
    }

    fn call(&mut self, index: u64, call: CallView, out: &mut Vec<Event>) {
        self.close(What::Plan, out);
        let (name, arguments) = call
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        let name = self.tools.name(name.unwrap_or_default());
        let made = ids::made(&self.origin, self.calls);
        self.calls += 1;
        let part = self.part(What::Call(index));
        out.push(delta(
            part,
            Delta::Call {
                id: call.id.filter(|id| !id.is_empty()).unwrap_or(made),
                name,
                is_custom: false,
            },
        ));
        self.arguments(index, arguments, out);
    }

    /// Arguments of a call that never began belong to nothing.
    fn arguments(&mut self, index: u64, arguments: Option<String>, out: &mut Vec<Event>) {
        let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) else {
            return;
        };
        let is_it = |open: &&Open| open.what == What::Call(index) && !open.is_closed;
        match self.parts.iter().find(is_it) {
            Some(open) => out.push(delta(open.part, Delta::Arguments(arguments))),
            None => self.skipped += 1,
        }
    }

    /// Citations come when their text is there, or has ended.
    fn cite(&mut self, citation: CitationView, out: &mut Vec<Event>) {
        if !citation.is_of_text() {
            return;
        }
        let index = citation.content_index();
        let is_text = |open: &&Open| match open.what {
            What::Text(of) => index.is_none_or(|index| index == of),
            _ => false,
        };
        if let Some(open) = self.parts.iter().rev().find(is_text) {
            out.push(delta(open.part, Delta::Citation(citation.into_citation())));
        }
    }

    fn close(&mut self, what: What, out: &mut Vec<Event>) {
        let is_it = |open: &&mut Open| open.what == what && !open.is_closed;
        if let Some(open) = self.parts.iter_mut().find(is_it) {
            close(open, out);
        }
    }

    fn end(&mut self, last: Option<DeltaView>, out: &mut Vec<Event>) -> End {
        for open in self.parts.iter_mut().filter(|open| !open.is_closed) {
            close(open, out);
        }
        let (reason, usage, error) =
            last.map_or((None, None, None), |last| (last.finish_reason, last.usage, last.error));
        if let Some(message) = error.filter(|message| !message.is_empty()) {
            return End::Failed(failed(&message, None));
        }
        match finish(reason.as_deref(), None) {
            Ok(finish) => out.push(Event::Finish { choice: 0, finish }),
            Err(error) => return End::Failed(error),
        }
        if let Some(usage) = usage {
            out.push(Event::Usage(usage.usage()));
        }
        End::Complete
    }
}

fn close(open: &mut Open, out: &mut Vec<Event>) {
    open.is_closed = true;
    out.push(Event::End {
        choice: 0,
        part: open.part,
    });
}

fn delta(part: u32, delta: Delta) -> Event {
    Event::Delta { choice: 0, part, delta }
}

impl Reader for ChatReader {
    fn push(&mut self, bytes: Bytes, out: &mut Vec<Event>) -> Option<End> {
        if self.ended {
            return None;
        }
        let Ok(block) = self.framer.push(bytes) else {
            self.ended = true;
            return Some(End::Failed(endless()));
        };
        let end = self.take(&block, out);
        self.framer.reuse(block);
        end
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> End {
        if self.ended {
            return End::Complete;
        }
        let rest = self.framer.finish();
        if let Some(said) = Said::of_stray(rest.bytes.trim_ascii()) {
            self.ended = true;
            return End::Failed(said.into_error(None));
        }
        if let Some(end) = self.take(&rest, out) {
            return end;
        }
        self.ended = true;
        match self.skipped {
            frames if frames > 0 && self.parts.is_empty() => End::Failed(unreadable(frames)),
            _ => End::Failed(cut()),
        }
    }
}
