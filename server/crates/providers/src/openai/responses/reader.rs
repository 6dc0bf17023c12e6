//! Reads a stream of an upstream that is asked by Responses though its caller is not.
//!
//! Items are known by their `output_index`: their ids are another in every event with some upstreams. What an upstream says
//! only when an item, or the whole answer, is done is taken from there.

use super::back::{finish, logprobs, output_field, read_call, read_item, read_thought};
use super::native::{failure, usage};
use super::read::citation;
use crate::End;
use crate::codec::Reader;
use crate::failure::Said;
use crate::ir::{Delta, Event, Maker, Part, Seal};
use crate::relay;
use crate::sse::{self, Block, Framer};
use bytes::Bytes;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

#[derive(Default)]
pub(super) struct Stream {
    framer: Framer,
    state: State,
    skipped: u32,
    ended: bool,
}

impl Reader for Stream {
    fn push(&mut self, bytes: Bytes, out: &mut Vec<Event>) -> Option<End> {
        if self.ended {
            return None;
        }
        let end = match self.framer.push(bytes) {
            Ok(block) => {
                let end = self.take(&block, out);
                self.framer.reuse(block);
                end
            }
            Err(sse::Endless) => Some(End::Failed(relay::endless())),
        };
        self.ended = end.is_some();
        end
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> End {
        self.ended = true;
        let rest = self.framer.finish();
        if let Some(said) = Said::of_stray(rest.bytes.trim_ascii()) {
            return End::Failed(said.into_error(None));
        }
        self.take(&rest, out).unwrap_or_else(|| {
            End::Failed(if self.skipped > 0 && !self.state.has_content {
                relay::unreadable(self.skipped)
            } else {
                relay::cut()
            })
        })
    }
}

impl Stream {
    fn take(&mut self, block: &Block, out: &mut Vec<Event>) -> Option<End> {
        for frame in &block.frames {
            let frame = block.bytes.get(frame.range.clone()).unwrap_or_default();
            let Some(data) = sse::data(frame).filter(|data| data.trim_ascii() != b"[DONE]") else {
                continue;
            };
            match serde_json::from_slice::<Value>(&data) {
                Ok(data @ Value::Object(_)) => {
                    let kind = data.get("type").and_then(Value::as_str).map(str::to_owned);
                    let named = || sse::event(frame).map(|name| String::from_utf8_lossy(name).into_owned());
                    let kind = kind.or_else(named).unwrap_or_default();
                    match self.state.event(&kind, data, out) {
                        Ok(false) => {}
                        Ok(true) => return Some(End::Complete),
                        Err(error) => return Some(End::Failed(error)),
                    }
                }
                _ => self.skipped += 1,
            }
        }
        None
    }
}

#[derive(Default)]
struct State {
    parts: u32,
    /// Parts of messages by item and content, of other items by the item.
    open: HashMap<(u64, Option<u64>), Open>,
    /// Contents that began.
    told: HashSet<(u64, Option<u64>)>,
    /// Items that were told to their end.
    done: HashSet<u64>,
    has_call: bool,
    has_refusal: bool,
    has_content: bool,
}

struct Open {
    part: u32,
    /// How many bytes of it came.
    length: usize,
    /// Of a thought: how many texts of it came.
    texts: u64,
}

fn text<'a>(data: &'a Value, key: &str) -> &'a str {
    data.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(data: &Value, key: &str) -> u64 {
    data.get(key).and_then(Value::as_u64).unwrap_or_default()
}

impl State {
    /// Takes one event. `true` if the answer is whole with it.
    fn event(&mut self, kind: &str, mut data: Value, out: &mut Vec<Event>) -> Result<bool, Error> {
        let item = number(&data, "output_index");
        let content = Some(number(&data, "content_index"));
        match kind {
            "response.created" => {
                let response = data.get("response").unwrap_or(&Value::Null);
                let said = |key: &str| Some(text(response, key).to_owned()).filter(|text| !text.is_empty());
                out.push(Event::Start {
                    id: said("id"),
                    model: said("model"),
                    usage: Usage::default(),
                });
            }
            "response.output_item.added" => self.added(item, data.get_mut("item"), out),
            "response.output_item.done" => {
                if let Some(value) = data.get_mut("item").map(Value::take) {
                    self.item_done(item, value, out);
                }
            }
            "response.output_text.delta" => {
                self.say((item, content), Delta::Text(text(&data, "delta").to_owned()), out);
                self.logprobs(data.get_mut("logprobs"), out);
            }
            "response.refusal.delta" => {
                self.say((item, content), Delta::Refusal(text(&data, "delta").to_owned()), out);
            }
            "response.output_text.annotation.added" => {
                if let Some(annotation) = data.get("annotation") {
                    self.say((item, content), Delta::Citation(citation(annotation)), out);
                }
            }
            "response.output_text.done" => self.rest((item, content), text(&data, "text"), Delta::Text, out),
            "response.refusal.done" => self.rest((item, content), text(&data, "refusal"), Delta::Refusal, out),
            "response.content_part.done" => self.end((item, content), out),
            "response.reasoning_summary_text.delta" => {
                self.think(item, number(&data, "summary_index"), text(&data, "delta"), true, out);
            }
            "response.reasoning_text.delta" => {
                self.think(item, number(&data, "content_index"), text(&data, "delta"), false, out);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let delta = Delta::Arguments(text(&data, "delta").to_owned());
                if self.open.contains_key(&(item, None)) {
                    self.say((item, None), delta, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                self.complete(data.get_mut("response").map(Value::take).unwrap_or_default(), out);
                return Ok(true);
            }
            "response.failed" => {
                let error = data.get_mut("response").and_then(|response| response.get_mut("error"));
                return Err(failure(error.map(Value::take).unwrap_or_default(), None));
            }
            "error" => {
                let error = data.get_mut("error").map(Value::take).filter(|error| !error.is_null());
                return Err(failure(error.unwrap_or(data), None));
            }
            "" if data.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(failure(
                    data.get_mut("error").map(Value::take).unwrap_or_default(),
                    None,
                ));
            }
            "keepalive" => out.push(Event::Ping),
            _ => {}
        }
        Ok(false)
    }

    /// A step of a part, which begins with it if it has not.
    fn say(&mut self, key: (u64, Option<u64>), delta: Delta, out: &mut Vec<Event>) {
        let length = match &delta {
            Delta::Text(text) | Delta::Refusal(text) | Delta::Thought { text, .. } | Delta::Arguments(text) => {
                text.len()
            }
            _ => 0,
        };
        let is_said = matches!(&delta, Delta::Text(_) | Delta::Refusal(_) | Delta::Thought { .. });
        if is_said && length == 0 && !self.open.contains_key(&key) {
            return;
        }
        self.has_content |= delta.is_content();
        self.has_refusal |= matches!(&delta, Delta::Refusal(_));
        if key.1.is_some() {
            self.told.insert(key);
        }
        let next = &mut self.parts;
        let open = self.open.entry(key).or_insert_with(|| {
            let part = *next;
            *next += 1;
            Open {
                part,
                length: 0,
                texts: 0,
            }
        });
        open.length += length;
        out.push(Event::Delta {
            choice: 0,
            part: open.part,
            delta,
        });
    }

    /// What a part says in the end and has not said yet. Most have.
    fn rest(&mut self, key: (u64, Option<u64>), whole: &str, delta: fn(String) -> Delta, out: &mut Vec<Event>) {
        let so_far = self.open.get(&key).map_or(0, |open| open.length);
        if let Some(rest) = whole.get(so_far..).filter(|rest| !rest.is_empty()) {
            self.say(key, delta(rest.to_owned()), out);
        }
    }

    fn end(&mut self, key: (u64, Option<u64>), out: &mut Vec<Event>) {
        if let Some(open) = self.open.remove(&key) {
            out.push(Event::End {
                choice: 0,
                part: open.part,
            });
        }
    }

    fn logprobs(&self, tokens: Option<&mut Value>, out: &mut Vec<Event>) {
        if let Some(Value::Array(tokens)) = tokens.map(Value::take)
            && let Some(value) = logprobs(&tokens)
            && self.parts > 0
        {
            out.push(Event::Logprobs { choice: 0, value });
        }
    }

    /// Texts of one thought are one text, with a blank line between them.
    fn think(&mut self, item: u64, index: u64, piece: &str, is_summary: bool, out: &mut Vec<Event>) {
        let key = (item, None);
        let mut text = piece.to_owned();
        if self.open.get(&key).is_some_and(|open| open.texts < index) {
            text.insert_str(0, "\n\n");
        }
        self.say(key, Delta::Thought { text, is_summary }, out);
        if let Some(open) = self.open.get_mut(&key) {
            open.texts = index;
        }
    }

    fn added(&mut self, item: u64, value: Option<&mut Value>, out: &mut Vec<Event>) {
        let Some(value) = value else {
            return;
        };
        if matches!(text(value, "type"), "function_call" | "custom_tool_call") {
            let had = [text(value, "arguments"), text(value, "input")].concat();
            let call = read_call(value);
            self.call(item, call.id, call.name, call.is_custom, out);
            if !had.is_empty() {
                self.say((item, None), Delta::Arguments(had), out);
            }
        }
    }

    fn call(&mut self, item: u64, id: String, name: String, is_custom: bool, out: &mut Vec<Event>) {
        self.has_call = true;
        self.say((item, None), Delta::Call { id, name, is_custom }, out);
    }

    fn item_done(&mut self, item: u64, mut value: Value, out: &mut Vec<Event>) {
        if !self.done.insert(item) {
            return;
        }
        let key = (item, None);
        match text(&value, "type") {
            "function_call" | "custom_tool_call" => {
                let call = read_call(&mut value);
                if !self.open.contains_key(&key) {
                    self.call(item, call.id, call.name, call.is_custom, out);
                }
                self.rest(key, &call.arguments, Delta::Arguments, out);
                self.end(key, out);
            }
            "reasoning" => {
                let Some(thought) = read_thought(&mut value) else {
                    return self.end(key, out);
                };
                if !self.open.contains_key(&key) {
                    let is_summary = thought.is_summary;
                    let delta = if thought.is_redacted {
                        Delta::Redacted
                    } else {
                        Delta::Thought {
                            text: thought.text,
                            is_summary,
                        }
                    };
                    self.say(key, delta, out);
                }
                if let Some(Seal { data, .. }) = thought.seal {
                    self.say(key, Delta::Seal(Seal::new(Maker::OpenAi, data)), out);
                }
                self.end(key, out);
            }
            "message" => self.message_done(item, value, out),
            _ => out.push(Event::Stranger(output_field(item))),
        }
    }

    /// What was told of a message's contents is told to its end, and the others as a whole.
    fn message_done(&mut self, item: u64, value: Value, out: &mut Vec<Event>) {
        let (mut parts, mut tokens) = (Vec::new(), Vec::new());
        read_item(value, 0, &mut parts, &mut tokens);
        let mut is_new = false;
        for (content, part) in (0..).zip(parts) {
            let key = (item, Some(content));
            let was_told = self.told.contains(&key);
            if was_told && !self.open.contains_key(&key) {
                continue;
            }
            is_new |= !was_told;
            match part {
                Part::Text { text, citations, .. } => {
                    self.rest(key, &text, Delta::Text, out);
                    for citation in citations.into_iter().filter(|_| !was_told) {
                        self.say(key, Delta::Citation(citation), out);
                    }
                }
                Part::Refusal(text) => self.rest(key, &text, Delta::Refusal, out),
                _ => out.push(Event::Stranger(output_field(item))),
            }
            self.end(key, out);
        }
        if is_new {
            self.logprobs(Some(&mut Value::Array(tokens)), out);
        }
    }

    fn complete(&mut self, mut response: Value, out: &mut Vec<Event>) {
        let output = response.get_mut("output").map(Value::take);
        if let Some(Value::Array(items)) = output {
            for (index, value) in (0..).zip(items) {
                self.item_done(index, value, out);
            }
        }
        let mut seen = Vec::new();
        if self.has_call {
            seen.push(Part::Call(crate::ir::Call::default()));
        }
        if self.has_refusal {
            seen.push(Part::Refusal(String::new()));
        }
        out.push(Event::Finish {
            choice: 0,
            finish: finish(&response, &seen),
        });
        let reported = response.get("usage").and_then(|reported| usage(&reported.to_string()));
        out.extend(reported.map(Event::Usage));
    }
}
