//! Streams to callers.
//!
//! The dialect has one block open at a time and numbers them without gaps; its clients append what comes to the block that is
//! open and fall over anything else. So a block begins when there is something in it, and what belongs to another part waits
//! until the open one may be closed: texts and thoughts end where the next part begins, a call when its input is whole.

use super::UNSIGNED;
use super::answer::{LONGEST_ID, STRANGER, input, message_id, stop_reason, stop_sequence, write_citation};
use super::read::seal_of_call;
use super::usage::Written;
use crate::codec::Writer;
use crate::ids::fitting;
use crate::ir::{Delta, Event, Finish, Maker, Seal};
use crate::json::quoted;
use crate::notes::Notes;
use crate::{Call, Origin};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::mem;
use switchyard_core::usage::Usage;

pub(super) struct Messages {
    origin: Origin,
    model: String,
    has_started: bool,
    open: Option<Open>,
    /// What waits for the open call, in the order in which it began.
    held: Vec<Held>,
    /// Parts that are over; the ids of those that were calls.
    closed: BTreeMap<u32, Option<String>>,
    next_index: u32,
    usage: Usage,
    is_counted: bool,
    finish: Finish,
    has_call: bool,
    has_refusal: bool,
}

/// The part whose block is open, or is about to be.
struct Open {
    part: u32,
    block: Block,
    /// The beginning of the block was written.
    is_begun: bool,
    /// Written last.
    seal: Option<Seal>,
}

enum Block {
    Text,
    Thought,
    /// All of it is in its seal: it is written when it is over.
    Redacted,
    Call(OpenCall),
}

struct OpenCall {
    id: String,
    name: String,
    input: Input,
    /// An input that came in one piece. It waits for what comes next: the call's seal has to go before it.
    waiting: Option<String>,
}

/// What a call's input is, which has to become an object.
enum Input {
    /// Nothing has come yet.
    Awaited,
    Object(Braces),
    /// Of a custom tool: any text, which becomes the one member of an object.
    Custom {
        is_begun: bool,
    },
    /// It is none: all of it is collected.
    Odd(String),
}

struct Held {
    part: u32,
    deltas: Vec<Delta>,
    is_over: bool,
}

/// Tells when an object that comes in pieces is whole.
#[derive(Default)]
struct Braces {
    depth: u32,
    in_text: bool,
    is_escaped: bool,
    is_whole: bool,
}

impl Braces {
    fn feed(&mut self, json: &str) {
        for byte in json.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_text => self.is_escaped = true,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_whole |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

impl Open {
    /// A block for a part whose first delta this is. Nothing but a call has an input.
    fn with(part: u32, delta: &Delta) -> Option<Self> {
        let block = match delta {
            Delta::Text(_) | Delta::Refusal(_) | Delta::Citation(_) | Delta::Audio { .. } => Block::Text,
            Delta::Thought { .. } | Delta::Seal(_) => Block::Thought,
            Delta::Redacted => Block::Redacted,
            Delta::Call { id, name, is_custom } => Block::Call(OpenCall {
                id: fitting(id, LONGEST_ID).into_owned(),
                name: name.clone(),
                input: if *is_custom {
                    Input::Custom { is_begun: false }
                } else {
                    Input::Awaited
                },
                waiting: None,
            }),
            Delta::Arguments(_) => return None,
        };
        Some(Self {
            part,
            block,
            is_begun: false,
            seal: None,
        })
    }

    /// Whether nothing can come that belongs to it.
    fn may_close(&self) -> bool {
        match &self.block {
            Block::Text | Block::Thought | Block::Redacted => true,
            Block::Call(call) => matches!(&call.input, Input::Object(braces) if braces.is_whole),
        }
    }

    fn takes(&self, delta: &Delta) -> bool {
        matches!(
            (&self.block, delta),
            (_, Delta::Seal(_))
                | (
                    Block::Text,
                    Delta::Text(_) | Delta::Refusal(_) | Delta::Citation(_) | Delta::Audio { .. }
                )
                | (Block::Thought, Delta::Thought { .. })
                | (Block::Call(_), Delta::Arguments(_))
        )
    }
}

#[derive(Serialize)]
struct Frame<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    #[serde(flatten)]
    inside: Inside<'a, T>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Inside<'a, T> {
    Delta(&'a T),
    ContentBlock(&'a T),
    Message(&'a T),
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Piece<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
    #[serde(rename = "citations_delta")]
    Citations { citation: Value },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Begun<'a> {
    Text { text: &'a str },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Nothing },
}

/// `{}`
#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Message<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: [(); 0],
    stop_reason: Option<()>,
    stop_sequence: Option<()>,
    usage: Written,
}

#[derive(Serialize)]
struct Stop<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    delta: StopDelta<'a>,
    usage: Written,
}

#[derive(Serialize)]
struct StopDelta<'a> {
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
}

fn frame<T: Serialize>(out: &mut Vec<u8>, event: &str, data: &T) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    out.extend_from_slice(&serde_json::to_vec(data).unwrap_or_default());
    out.extend_from_slice(b"\n\n");
}

impl Messages {
    pub(super) fn new(call: &Call, model: &str) -> Self {
        Self {
            origin: call.origin.clone(),
            model: model.to_owned(),
            has_started: false,
            open: None,
            held: Vec::new(),
            closed: BTreeMap::new(),
            next_index: 0,
            usage: Usage::default(),
            is_counted: false,
            finish: Finish::Stop,
            has_call: false,
            has_refusal: false,
        }
    }

    fn start(&mut self, id: Option<&str>, out: &mut Vec<u8>) {
        if mem::replace(&mut self.has_started, true) {
            return;
        }
        let message = Message {
            id: &message_id(id, &self.origin),
            kind: "message",
            role: "assistant",
            model: &self.model,
            content: [],
            stop_reason: None,
            stop_sequence: None,
            usage: Written::of(&self.usage, None),
        };
        let inside = Inside::Message(&message);
        let kind = "message_start";
        frame(
            out,
            kind,
            &Frame {
                kind,
                index: None,
                inside,
            },
        );
    }

    fn begin_block(&self, block: &Begun<'_>, out: &mut Vec<u8>) {
        let inside = Inside::ContentBlock(block);
        let (kind, index) = ("content_block_start", Some(self.next_index));
        frame(out, kind, &Frame { kind, index, inside });
    }

    fn piece(&self, piece: &Piece<'_>, out: &mut Vec<u8>) {
        let inside = Inside::Delta(piece);
        let (kind, index) = ("content_block_delta", Some(self.next_index));
        frame(out, kind, &Frame { kind, index, inside });
    }

    fn stop(&mut self, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Stopped {
            #[serde(rename = "type")]
            kind: &'static str,
            index: u32,
        }
        let (kind, index) = ("content_block_stop", self.next_index);
        frame(out, kind, &Stopped { kind, index });
        self.next_index += 1;
    }

    /// A whole block of a thought that is not shown.
    fn seal_block(&mut self, signature: &str, out: &mut Vec<u8>) {
        let (thinking, empty) = ("", "");
        self.begin_block(
            &Begun::Thinking {
                thinking,
                signature: empty,
            },
            out,
        );
        self.piece(&Piece::Signature { signature }, out);
        self.stop(out);
    }

    // === one step ===

    fn take(&mut self, part: u32, delta: Delta, out: &mut Vec<u8>, notes: &mut Notes) {
        if says_nothing(&delta) {
            return;
        }
        if let Some(held) = self.held.iter_mut().find(|held| held.part == part) {
            held.deltas.push(delta);
            return;
        }
        if let Some(Some(call_id)) = self.closed.get(&part) {
            match delta {
                Delta::Seal(seal) if self.open.is_none() => {
                    let signature = seal_of_call(call_id, &seal);
                    self.seal_block(&signature, out);
                }
                Delta::Arguments(rest) if rest.trim().is_empty() => {}
                _ => notes.dropped("content", "something of a call came after its end"),
            }
            return;
        }
        let must_wait = self
            .open
            .as_ref()
            .is_some_and(|open| open.part != part && !open.may_close());
        if must_wait {
            self.held.push(Held {
                part,
                deltas: vec![delta],
                is_over: false,
            });
            return;
        }
        self.put(part, delta, out, notes);
    }

    /// Puts something into the block of its part, which is the open one from now on.
    fn put(&mut self, part: u32, delta: Delta, out: &mut Vec<u8>, notes: &mut Notes) {
        if !self
            .open
            .as_ref()
            .is_some_and(|open| open.part == part && open.takes(&delta))
        {
            self.close(out, notes);
            self.closed.remove(&part);
            self.open = Open::with(part, &delta);
        }
        let Some(mut open) = self.open.take() else {
            notes.dropped("content", "the input of a call came that had not begun");
            return;
        };
        match delta {
            Delta::Text(text) => self.put_text(&mut open, &text, out),
            Delta::Refusal(text) => {
                self.has_refusal = true;
                self.put_text(&mut open, &text, out);
            }
            Delta::Audio { transcript, .. } => {
                notes.dropped("audio", "there is no audio in answers here");
                self.put_text(&mut open, &transcript.unwrap_or_default(), out);
            }
            Delta::Citation(citation) => {
                if let Some(citation) = write_citation(&citation, notes) {
                    self.begin(&mut open, out);
                    self.piece(&Piece::Citations { citation }, out);
                }
            }
            Delta::Thought { text, .. } if !text.is_empty() => {
                self.begin(&mut open, out);
                self.piece(&Piece::Thinking { thinking: &text }, out);
            }
            Delta::Seal(seal) => self.put_seal(&mut open, seal, out),
            Delta::Arguments(json) => self.put_arguments(&mut open, json, out),
            Delta::Call { .. } => self.has_call = true,
            Delta::Redacted | Delta::Thought { .. } => {}
        }
        self.open = Some(open);
    }

    fn put_text(&mut self, open: &mut Open, text: &str, out: &mut Vec<u8>) {
        if !text.is_empty() {
            self.begin(open, out);
            self.piece(&Piece::Text { text }, out);
        }
    }

    fn put_seal(&mut self, open: &mut Open, seal: Seal, out: &mut Vec<u8>) {
        match &open.block {
            Block::Call(call) if !open.is_begun => {
                let signature = seal_of_call(&call.id, &seal);
                self.seal_block(&signature, out);
            }
            Block::Thought => {
                self.begin(open, out);
                open.seal = Some(seal);
            }
            Block::Call(_) | Block::Redacted | Block::Text => open.seal = Some(seal),
        }
    }

    fn put_arguments(&self, open: &mut Open, json: String, out: &mut Vec<u8>) {
        match &mut open.block {
            Block::Call(call) if !open.is_begun && matches!(call.input, Input::Awaited) && is_whole(&json) => {
                call.input = Input::Object(Braces {
                    is_whole: true,
                    ..Braces::default()
                });
                call.waiting = Some(json);
            }
            _ => {
                self.begin(open, out);
                if let Block::Call(call) = &mut open.block {
                    self.put_input(call, &json, out);
                }
            }
        }
    }

    fn put_input(&self, call: &mut OpenCall, json: &str, out: &mut Vec<u8>) {
        if matches!(call.input, Input::Awaited) {
            call.input = match json.trim_start().as_bytes().first() {
                None => return,
                Some(b'{') => Input::Object(Braces::default()),
                Some(_) => Input::Odd(String::new()),
            };
        }
        match &mut call.input {
            Input::Object(braces) => {
                braces.feed(json);
                self.piece(&Piece::InputJson { partial_json: json }, out);
            }
            Input::Custom { is_begun } => {
                let quoted = String::from_utf8(quoted(json)).unwrap_or_default();
                let inside = crate::json::inside(&quoted).unwrap_or_default();
                let before = if mem::replace(is_begun, true) {
                    ""
                } else {
                    r#"{"input":""#
                };
                let partial_json = &format!("{before}{inside}");
                self.piece(&Piece::InputJson { partial_json }, out);
            }
            Input::Odd(so_far) => so_far.push_str(json),
            Input::Awaited => {}
        }
    }

    /// Writes the beginning of a block, if that was not done.
    fn begin(&self, open: &mut Open, out: &mut Vec<u8>) {
        if mem::replace(&mut open.is_begun, true) {
            return;
        }
        match &mut open.block {
            Block::Text => self.begin_block(&Begun::Text { text: "" }, out),
            Block::Thought => self.begin_block(
                &Begun::Thinking {
                    thinking: "",
                    signature: "",
                },
                out,
            ),
            Block::Redacted => {
                let data = &open
                    .seal
                    .as_ref()
                    .map(|seal| seal.write(Maker::Anthropic))
                    .unwrap_or_default();
                self.begin_block(&Begun::RedactedThinking { data }, out);
            }
            Block::Call(call) => {
                let (id, name, input) = (&*call.id, &*call.name, Nothing {});
                self.begin_block(&Begun::ToolUse { id, name, input }, out);
                if let Some(partial_json) = &call.waiting.take() {
                    self.piece(&Piece::InputJson { partial_json }, out);
                }
            }
        }
    }

    /// The open call begins with whatever comes that is not its seal, nor all of its input: a seal goes before.
    fn announce(&mut self, event: &Event, out: &mut Vec<u8>) {
        let may_wait = match event {
            Event::Delta { delta, .. } => match delta {
                Delta::Seal(_) => true,
                Delta::Arguments(json) => is_whole(json),
                _ => false,
            },
            _ => false,
        };
        if let Some(mut open) = self
            .open
            .take_if(|open| !may_wait && matches!(open.block, Block::Call(_)))
        {
            self.begin(&mut open, out);
            self.open = Some(open);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, notes: &mut Notes) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let seal = open.seal.take();
        let mut call_id = None;
        match &mut open.block {
            Block::Text => {}
            Block::Thought if !open.is_begun => {}
            Block::Thought => {
                let signature = &seal
                    .as_ref()
                    .map_or(UNSIGNED.to_owned(), |seal| seal.write(Maker::Anthropic));
                self.piece(&Piece::Signature { signature }, out);
            }
            Block::Redacted => {
                if seal.is_some() {
                    open.seal.clone_from(&seal);
                    self.begin(&mut open, out);
                }
            }
            Block::Call(call) => {
                call_id = Some(call.id.clone());
                let input = mem::replace(&mut call.input, Input::Awaited);
                self.begin(&mut open, out);
                self.close_input(input, out, notes);
            }
        }
        if open.is_begun {
            self.stop(out);
        }
        match (&call_id, seal) {
            (Some(call_id), Some(seal)) => {
                let signature = seal_of_call(call_id, &seal);
                self.seal_block(&signature, out);
            }
            // One of a text has no place, but in a thought that is not shown.
            (None, Some(seal)) if matches!(open.block, Block::Text) => {
                self.seal_block(&seal.write(Maker::Anthropic), out);
            }
            _ => {}
        }
        self.closed.insert(open.part, call_id);
    }

    fn close_input(&self, rest: Input, out: &mut Vec<u8>, notes: &mut Notes) {
        match rest {
            Input::Custom { is_begun } => {
                let partial_json = if is_begun { "\"}" } else { r#"{"input":""}"# };
                self.piece(&Piece::InputJson { partial_json }, out);
            }
            Input::Odd(written) => {
                let object = input(&written, false, "content", notes);
                let partial_json = object.get();
                self.piece(&Piece::InputJson { partial_json }, out);
            }
            // Nothing is an empty object to everybody.
            Input::Awaited | Input::Object(_) => {}
        }
    }

    /// Lets go on what waited, as far as the open block may be closed.
    fn settle(&mut self, all: bool, out: &mut Vec<u8>, notes: &mut Notes) {
        while !self.held.is_empty() && self.open.as_ref().is_none_or(|open| all || open.may_close()) {
            self.close(out, notes);
            let held = self.held.remove(0);
            for delta in held.deltas {
                self.put(held.part, delta, out, notes);
            }
            if held.is_over {
                self.close(out, notes);
            }
        }
        if all {
            self.close(out, notes);
        }
    }
}

/// Whether this is all of an object.
fn is_whole(json: &str) -> bool {
    let mut braces = Braces::default();
    braces.feed(json);
    json.starts_with('{') && braces.is_whole
}

fn says_nothing(delta: &Delta) -> bool {
    match delta {
        Delta::Text(text) | Delta::Refusal(text) | Delta::Thought { text, .. } | Delta::Arguments(text) => {
            text.is_empty()
        }
        Delta::Audio { base64, transcript } => base64.is_empty() && transcript.as_ref().is_none_or(String::is_empty),
        Delta::Redacted | Delta::Call { .. } | Delta::Seal(_) | Delta::Citation(_) => false,
    }
}

impl Writer for Messages {
    fn write(&mut self, event: Event, out: &mut Vec<u8>, notes: &mut Notes) {
        self.announce(&event, out);
        match event {
            Event::Start { id, usage, .. } => {
                if !self.has_started {
                    self.usage = usage;
                    self.start(id.as_deref(), out);
                }
            }
            Event::Delta { choice: 0, part, delta } => {
                self.start(None, out);
                self.take(part, delta, out, notes);
                self.settle(false, out, notes);
            }
            Event::End { choice: 0, part } => {
                if self.open.as_ref().is_some_and(|open| open.part == part) {
                    self.close(out, notes);
                } else if let Some(held) = self.held.iter_mut().find(|held| held.part == part) {
                    held.is_over = true;
                }
                self.settle(false, out, notes);
            }
            Event::Finish { choice: 0, finish } => {
                self.settle(true, out, notes);
                self.finish = finish;
            }
            Event::Delta { .. } | Event::End { .. } | Event::Finish { .. } => {
                notes.dropped("choices", "an answer has one choice only here");
            }
            Event::Logprobs { .. } => notes.dropped("logprobs", "there is no place for them here"),
            Event::Usage(usage) => {
                self.usage = usage;
                self.is_counted = true;
            }
            Event::Stranger(field) => notes.dropped(field, STRANGER),
            Event::Ping if self.has_started => out.extend_from_slice(b"event: ping\ndata: {\"type\":\"ping\"}\n\n"),
            Event::Ping => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>, notes: &mut Notes) {
        self.start(None, out);
        self.settle(true, out, notes);
        if !self.is_counted {
            notes.approximated("usage", "the upstream reported none at the end");
        }
        let stop = Stop {
            kind: "message_delta",
            delta: StopDelta {
                stop_reason: stop_reason(&self.finish, self.has_call, self.has_refusal, notes),
                stop_sequence: stop_sequence(&self.finish),
            },
            usage: Written::of(&self.usage, None),
        };
        frame(out, stop.kind, &stop);
        out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    }
}
