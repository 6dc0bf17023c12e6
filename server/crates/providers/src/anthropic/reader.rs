//! Streams from upstreams.

use super::answer::{finish, own_seal};
use super::event::{self, Delta as DeltaView, View};
use super::read::citation;
use super::usage::Counts;
use crate::codec::Reader;
use crate::failure::Said;
use crate::ir::{Citation, Delta, Event, Finish};
use crate::notes::item;
use crate::sse::{self, Block, Framer};
use crate::{End, Origin, ids, relay};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::mem;

pub(super) struct Messages {
    framer: Framer,
    origin: Origin,
    counts: Counts,
    /// The last report came, and is of the whole answer.
    is_counted: bool,
    /// Blocks that are open, by their index on the wire.
    open: BTreeMap<u64, Open>,
    /// Parts that have begun.
    parts: u32,
    calls: usize,
    content_bytes: usize,
    has_started: bool,
    has_finished: bool,
    skipped: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Text,
    Thought,
    Call,
    /// What has no part here: tools that the vendor ran itself.
    Other,
}

struct Open {
    what: What,
    /// Given when it says something: empty blocks are none.
    part: Option<u32>,
    /// Of a call whose input came with its beginning.
    input: Option<String>,
    /// Of a text: some upstreams send them before it.
    citations: Vec<Citation>,
}

impl Messages {
    pub(super) fn new(origin: &Origin) -> Self {
        Self {
            framer: Framer::default(),
            origin: origin.clone(),
            counts: Counts::default(),
            is_counted: false,
            open: BTreeMap::new(),
            parts: 0,
            calls: 0,
            content_bytes: 0,
            has_started: false,
            has_finished: false,
            skipped: 0,
        }
    }

    fn take(&mut self, block: &Block, out: &mut Vec<Event>) -> Option<End> {
        for frame in &block.frames {
            let frame = block.bytes.get(frame.range.clone()).unwrap_or_default();
            let Some(data) = sse::data(frame) else {
                continue;
            };
            if let Some(end) = self.take_event(&data, out) {
                return Some(end);
            }
        }
        None
    }

    fn take_event(&mut self, data: &[u8], out: &mut Vec<Event>) -> Option<End> {
        let Ok(view) = serde_json::from_slice::<View<'_>>(data) else {
            if data.trim_ascii() != b"[DONE]" {
                self.skipped += 1;
            }
            return None;
        };
        if matches!(&*view.kind, "error" | "")
            && let Some(said) = Said::of_stray(data)
        {
            self.tell_of_cut(out);
            return Some(End::Failed(said.into_error(None)));
        }
        match &*view.kind {
            "message_start" => self.start(view.message, out),
            "content_block_start" => self.begin(view.index, view.content_block, out),
            "content_block_delta" => self.go_on(view.index, event::inside(view.delta), out),
            "content_block_stop" => self.end(view.index, out),
            "message_delta" => self.finish_with(event::inside(view.delta), view.usage, out),
            "message_stop" => {
                self.finish_anyway(out);
                return Some(End::Complete);
            }
            "ping" => out.push(Event::Ping),
            _ => {}
        }
        None
    }

    fn start(&mut self, message: Option<&RawValue>, out: &mut Vec<Event>) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        let message: event::Message<'_> = event::inside(message);
        if let Some(counts) = Counts::read(message.usage) {
            self.counts.update(counts);
        }
        out.push(Event::Start {
            id: message.id,
            model: message.model.and_then(|raw| serde_json::from_str(raw.get()).ok()),
            usage: self.counts.of_prompt(),
        });
    }

    fn begin(&mut self, index: u64, block: Option<&RawValue>, out: &mut Vec<Event>) {
        let block: event::Block<'_> = event::inside(block);
        let what = match &*block.kind {
            "text" => What::Text,
            "thinking" | "redacted_thinking" => What::Thought,
            "tool_use" => What::Call,
            _ => What::Other,
        };
        self.open.insert(
            index,
            Open {
                what,
                part: None,
                input: None,
                citations: Vec::new(),
            },
        );
        match what {
            What::Text | What::Thought => {
                if &*block.kind == "redacted_thinking" {
                    self.say(index, Delta::Redacted, out);
                    if let Some(data) = block.data {
                        self.say(index, Delta::Seal(own_seal(data)), out);
                    }
                    return;
                }
                let begun = DeltaView {
                    text: block.text,
                    thinking: block.thinking,
                    signature: block.signature,
                    ..DeltaView::default()
                };
                self.go_on(index, begun, out);
            }
            What::Call => {
                let id = block.id.filter(|id| !id.is_empty());
                let id = id.unwrap_or_else(|| ids::made(&self.origin, self.calls));
                self.calls += 1;
                let call = Delta::Call {
                    id,
                    name: block.name.unwrap_or_default(),
                    is_custom: false,
                };
                self.say(index, call, out);
                if let Some(open) = self.open.get_mut(&index) {
                    open.input = Some(block.input.map_or("{}", RawValue::get).to_owned());
                }
            }
            What::Other => out.push(Event::Stranger(item(
                "content",
                usize::try_from(index).unwrap_or(usize::MAX),
            ))),
        }
    }

    fn go_on(&mut self, index: u64, delta: DeltaView, out: &mut Vec<Event>) {
        let Some(open) = self.open.get_mut(&index) else {
            return;
        };
        let what = open.what;
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        if what == What::Call {
            if let Some(json) = some(delta.partial_json) {
                open.input = None;
                self.say(index, Delta::Arguments(json), out);
            }
            return;
        }
        if what == What::Text {
            open.citations.extend(delta.citation.map(citation));
            if let Some(text) = some(delta.text) {
                self.say(index, Delta::Text(text), out);
            }
        }
        if what == What::Thought {
            if let Some(text) = some(delta.thinking) {
                let is_summary = false;
                self.say(index, Delta::Thought { text, is_summary }, out);
            }
            if let Some(signature) = some(delta.signature) {
                let is_begun = self.open.get(&index).is_some_and(|open| open.part.is_some());
                if !is_begun {
                    // A thought that is not shown: its seal needs one to belong to.
                    let (text, is_summary) = (String::new(), false);
                    self.say(index, Delta::Thought { text, is_summary }, out);
                }
                self.say(index, Delta::Seal(own_seal(signature)), out);
            }
        }
    }

    /// Says something of a block, and gives it its number if it has none yet.
    fn say(&mut self, index: u64, delta: Delta, out: &mut Vec<Event>) {
        let Some(open) = self.open.get_mut(&index) else {
            return;
        };
        let part = *open.part.get_or_insert_with(|| {
            self.parts += 1;
            self.parts - 1
        });
        self.content_bytes += match &delta {
            Delta::Text(text) | Delta::Thought { text, .. } | Delta::Arguments(text) => text.len(),
            Delta::Call { name, .. } => name.len(),
            _ => 0,
        };
        out.push(Event::Delta { choice: 0, part, delta });
    }

    fn end(&mut self, index: u64, out: &mut Vec<Event>) {
        if let Some(input) = self.open.get_mut(&index).and_then(|open| open.input.take()) {
            self.say(index, Delta::Arguments(input), out);
        }
        let citations = self.open.get_mut(&index).map(|open| mem::take(&mut open.citations));
        for citation in citations.into_iter().flatten() {
            self.say(index, Delta::Citation(citation), out);
        }
        if let Some(part) = self.open.remove(&index).and_then(|open| open.part) {
            out.push(Event::End { choice: 0, part });
        }
    }

    fn finish_with(&mut self, delta: DeltaView, usage: Option<&RawValue>, out: &mut Vec<Event>) {
        if let Some(reason) = delta.stop_reason
            && !self.has_finished
        {
            self.finish_by(finish(reason, delta.stop_sequence), out);
        }
        if let Some(counts) = Counts::read(usage) {
            self.counts.update(counts);
            self.is_counted = true;
            out.push(Event::Usage(self.counts.usage()));
        }
    }

    fn finish_by(&mut self, finish: Finish, out: &mut Vec<Event>) {
        for index in self.open.keys().copied().collect::<Vec<_>>() {
            self.end(index, out);
        }
        self.has_finished = true;
        out.push(Event::Finish { choice: 0, finish });
    }

    /// The upstream says that the answer is whole, and did not say why it ended.
    fn finish_anyway(&mut self, out: &mut Vec<Event>) {
        if !self.has_finished {
            let finish = if self.calls > 0 {
                Finish::ToolCalls
            } else {
                Finish::Stop
            };
            self.finish_by(finish, out);
        }
    }

    /// What was used of an answer that broke off, as far as it can be told.
    fn tell_of_cut(&self, out: &mut Vec<Event>) {
        if self.has_started && !self.is_counted && self.content_bytes > 0 {
            out.push(Event::Usage(self.counts.cut(self.content_bytes)));
        }
    }
}

impl Reader for Messages {
    fn push(&mut self, bytes: Bytes, out: &mut Vec<Event>) -> Option<End> {
        match self.framer.push(bytes) {
            Ok(block) => {
                let end = self.take(&block, out);
                self.framer.reuse(block);
                end
            }
            Err(sse::Endless) => Some(End::Failed(relay::endless())),
        }
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> End {
        let rest = self.framer.finish();
        if let Some(said) = Said::of_stray(rest.bytes.trim_ascii()) {
            self.tell_of_cut(out);
            return End::Failed(said.into_error(None));
        }
        if let Some(end) = self.take(&rest, out) {
            return end;
        }
        if self.has_finished {
            return End::Complete;
        }
        self.tell_of_cut(out);
        if self.skipped > 0 && self.content_bytes == 0 {
            return End::Failed(relay::unreadable(self.skipped));
        }
        End::Failed(relay::cut())
    }
}
