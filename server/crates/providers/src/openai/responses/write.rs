//! Writes an answer, whole or as a stream.
//!
//! Both are one thing: a [`Builder`] takes the steps of an answer and builds its items; a stream is what it says on the way, and
//! a whole answer is what it has in the end. So the object in a stream's last event is the one that a caller without a stream
//! gets.

use super::{item_id, response_id, stem, write_call_seal, write_seal};
use crate::Call as Request;
use crate::codec::Writer;
use crate::ids;
use crate::ir::{Answer, Citation, Delta, Event, Finish, Part, Seal};
use crate::notes::Notes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write as _;
use std::mem;
use switchyard_core::usage::Usage;

pub(super) fn whole(answer: Answer, call: &Request, notes: &mut Notes) -> Vec<u8> {
    let model = answer.model.as_deref().unwrap_or(&call.model);
    let mut builder = Builder::new(call, model);
    builder.say.is_silent = true;
    builder.echo.created = answer.created.unwrap_or(call.origin.at);
    builder.service_tier = answer.service_tier;
    builder.usage = answer.usage;
    let mut unsaid = Vec::new();
    for (index, choice) in (0..).zip(answer.choices) {
        let texts = choice.parts.iter().rposition(|part| matches!(part, Part::Text { .. }));
        let mut logprobs = choice.logprobs;
        for (number, part) in (0..).zip(choice.parts) {
            let is_last_text = texts.is_some_and(|last| u32::try_from(last) == Ok(number));
            for delta in deltas(part, notes) {
                let event = Event::Delta {
                    choice: index,
                    part: number,
                    delta,
                };
                builder.take(event, &mut unsaid, notes);
            }
            if let Some(value) = logprobs.take_if(|_| is_last_text) {
                builder.take(Event::Logprobs { choice: index, value }, &mut unsaid, notes);
            }
            let end = Event::End {
                choice: index,
                part: number,
            };
            builder.take(end, &mut unsaid, notes);
        }
        let finish = choice.finish;
        builder.take(Event::Finish { choice: index, finish }, &mut unsaid, notes);
    }
    builder.close(&mut unsaid, notes);
    serde_json::to_vec(&builder.response()).unwrap_or_default()
}

/// A part of a whole answer, as the steps in which it could have come.
fn deltas(part: Part, notes: &mut Notes) -> Vec<Delta> {
    match part {
        Part::Text { text, citations, .. } => {
            let mut deltas = vec![Delta::Text(text)];
            deltas.extend(citations.into_iter().map(Delta::Citation));
            deltas
        }
        Part::Refusal(text) => vec![Delta::Refusal(text)],
        Part::Thought(thought) => {
            let said = if thought.is_redacted {
                Delta::Redacted
            } else {
                Delta::Thought {
                    text: thought.text,
                    is_summary: thought.is_summary,
                }
            };
            let seal = thought.seal.map(Delta::Seal);
            [Some(said), seal].into_iter().flatten().collect()
        }
        Part::Call(call) => {
            let begun = Delta::Call {
                id: call.id,
                name: call.name,
                is_custom: call.is_custom,
            };
            let seal = call.seal.map(Delta::Seal);
            let rest = [Some(Delta::Arguments(call.arguments)), seal];
            [Some(begun)].into_iter().chain(rest).flatten().collect()
        }
        Part::Audio(audio) => {
            vec![Delta::Audio {
                base64: String::new(),
                transcript: Some(audio.transcript.unwrap_or_default()),
            }]
        }
        Part::Image(_) | Part::Document(_) => {
            notes.dropped("output", "an image or a file in an answer has no place in Responses");
            Vec::new()
        }
        Part::Result(_) | Part::Stranger(_) => {
            notes.dropped("output", STRANGER);
            Vec::new()
        }
    }
}

const STRANGER: &str = "what a tool of the vendor's gave back has no place in Responses";

pub(super) struct Stream {
    builder: Builder,
    /// Text that waits for its log probabilities, which come in the next step if at all. Only where they were asked for.
    held: Option<Event>,
    holds: bool,
}

impl Stream {
    pub(super) fn new(call: &Request, model: &str) -> Self {
        let builder = Builder::new(call, model);
        Self {
            holds: builder.echo.asks_for_logprobs(),
            builder,
            held: None,
        }
    }
}

impl Writer for Stream {
    fn write(&mut self, event: Event, out: &mut Vec<u8>, notes: &mut Notes) {
        if let Some(held) = self.held.take() {
            match (&held, event) {
                (
                    Event::Delta {
                        choice,
                        part,
                        delta: Delta::Text(text),
                    },
                    Event::Logprobs { choice: of, value },
                ) if *choice == of => {
                    self.builder.begin(out);
                    return self.builder.text(*part, text, &tokens(&value), out, notes);
                }
                (_, event) => {
                    self.builder.take(held, out, notes);
                    return self.hold_or_write(event, out, notes);
                }
            }
        }
        self.hold_or_write(event, out, notes);
    }

    fn finish(&mut self, out: &mut Vec<u8>, notes: &mut Notes) {
        if let Some(held) = self.held.take() {
            self.builder.take(held, out, notes);
        }
        self.builder.begin(out);
        self.builder.close(out, notes);
        let response = self.builder.response();
        let kind = if response.status == "completed" {
            "response.completed"
        } else {
            "response.incomplete"
        };
        let body = json!({ "response": response });
        self.builder.say.event(out, kind, &body);
    }
}

impl Stream {
    fn hold_or_write(&mut self, event: Event, out: &mut Vec<u8>, notes: &mut Notes) {
        let is_text = matches!(
            &event,
            Event::Delta {
                delta: Delta::Text(_),
                ..
            }
        );
        if self.holds && is_text {
            self.held = Some(event);
        } else {
            self.builder.take(event, out, notes);
        }
    }
}

// === what the caller asked, as answers repeat it ===

#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked {
    background: Value,
    frequency_penalty: Value,
    include: Value,
    instructions: Value,
    max_output_tokens: Value,
    max_tool_calls: Value,
    metadata: Value,
    parallel_tool_calls: Value,
    presence_penalty: Value,
    previous_response_id: Value,
    prompt_cache_key: Value,
    prompt_cache_retention: Value,
    reasoning: Value,
    safety_identifier: Value,
    service_tier: Value,
    store: Value,
    temperature: Value,
    text: Value,
    tool_choice: Value,
    tools: Value,
    top_logprobs: Value,
    top_p: Value,
    truncation: Value,
    user: Value,
}

impl Asked {
    /// What holds where nothing was asked.
    fn fill(&mut self) {
        for (field, value) in [
            (&mut self.background, json!(false)),
            (&mut self.frequency_penalty, json!(0.0)),
            (&mut self.metadata, json!({})),
            (&mut self.parallel_tool_calls, json!(true)),
            (&mut self.presence_penalty, json!(0.0)),
            (&mut self.store, json!(true)),
            (&mut self.temperature, json!(1.0)),
            (&mut self.tool_choice, json!("auto")),
            (&mut self.tools, json!([])),
            (&mut self.top_logprobs, json!(0)),
            (&mut self.top_p, json!(1.0)),
            (&mut self.truncation, json!("disabled")),
        ] {
            if field.is_null() {
                *field = value;
            }
        }
        fill_object(&mut self.reasoning, [("effort", Value::Null), ("summary", Value::Null)]);
        fill_object(
            &mut self.text,
            [("format", json!({"type": "text"})), ("verbosity", json!("medium"))],
        );
    }
}

fn fill_object(value: &mut Value, members: [(&str, Value); 2]) {
    if value.is_null() {
        *value = json!({});
    }
    if let Value::Object(object) = value {
        for (key, value) in members {
            object.entry(key).or_insert(value);
        }
    }
}

struct Echo {
    id: String,
    stem: String,
    created: i64,
    model: String,
    asked: Asked,
}

impl Echo {
    fn asks_for_logprobs(&self) -> bool {
        let included = |value: &Value| value == "message.output_text.logprobs";
        let include = self.asked.include.as_array();
        include.is_some_and(|list| list.iter().any(included))
            || self.asked.top_logprobs.as_u64().is_some_and(|most| most > 0)
    }
}

/// In the vendor's order.
#[derive(Serialize)]
struct Response<'a> {
    id: &'a str,
    object: &'static str,
    created_at: i64,
    status: &'static str,
    background: &'a Value,
    /// Nobody looks at a clock here.
    completed_at: (),
    error: (),
    frequency_penalty: &'a Value,
    incomplete_details: Option<Value>,
    instructions: &'a Value,
    max_output_tokens: &'a Value,
    max_tool_calls: &'a Value,
    model: &'a str,
    output: Vec<Value>,
    parallel_tool_calls: &'a Value,
    presence_penalty: &'a Value,
    previous_response_id: &'a Value,
    prompt_cache_key: &'a Value,
    prompt_cache_retention: &'a Value,
    reasoning: &'a Value,
    safety_identifier: &'a Value,
    service_tier: Value,
    store: &'a Value,
    temperature: &'a Value,
    text: &'a Value,
    tool_choice: &'a Value,
    tools: &'a Value,
    top_logprobs: &'a Value,
    top_p: &'a Value,
    truncation: &'a Value,
    usage: Option<Value>,
    user: &'a Value,
    metadata: &'a Value,
}

fn usage_of(usage: &Usage) -> Option<Value> {
    if usage.prompt.is_none() && usage.completion.is_none() && usage.total.is_none() {
        return None;
    }
    let (input, output) = (usage.prompt.unwrap_or_default(), usage.completion.unwrap_or_default());
    // Clients take these for granted; those of audio are there where there was any.
    let mut inputs = json!({
        "cached_tokens": usage.cached.unwrap_or_default(),
        "cache_write_tokens": usage.cache_write.unwrap_or_default(),
    });
    let mut outputs = json!({"reasoning_tokens": usage.reasoning.unwrap_or_default()});
    if let Some(tokens) = usage.audio_prompt {
        inputs["audio_tokens"] = json!(tokens);
    }
    if let Some(tokens) = usage.audio_completion {
        outputs["audio_tokens"] = json!(tokens);
    }
    Some(json!({
        "input_tokens": input,
        "input_tokens_details": inputs,
        "output_tokens": output,
        "output_tokens_details": outputs,
        "total_tokens": usage.total.unwrap_or_else(|| input.saturating_add(output)),
    }))
}

// === events ===

#[derive(Default)]
struct Say {
    sequence: u64,
    /// Nobody listens: only the whole is wanted.
    is_silent: bool,
}

#[derive(Serialize)]
struct Piece<'a> {
    item_id: &'a str,
    output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<usize>,
    delta: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<&'a [Value]>,
}

impl Say {
    /// One frame. `body` is an object that has members; its type and number go in front of them.
    fn event(&mut self, out: &mut Vec<u8>, kind: &str, body: &impl Serialize) {
        if self.is_silent {
            return;
        }
        let body = serde_json::to_vec(body).unwrap_or_default();
        let members = body.strip_prefix(b"{").unwrap_or(b"}");
        // Writing to memory does not fail.
        let _ = write!(
            out,
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{},",
            self.sequence
        );
        out.extend_from_slice(members);
        out.extend_from_slice(b"\n\n");
        self.sequence += 1;
    }
}

// === items ===

struct Builder {
    echo: Echo,
    say: Say,
    items: Vec<Item>,
    /// Which part is which item's.
    slots: HashMap<u32, Slot>,
    /// The message that takes the next text.
    message: Option<usize>,
    /// The text or thought that ends where something else begins.
    soft: Option<u32>,
    latest_text: Option<u32>,
    wants_summary: bool,
    finish: Option<Finish>,
    usage: Usage,
    service_tier: Option<String>,
    has_begun: bool,
}

#[derive(Clone, Copy)]
enum Slot {
    /// A content of a message.
    Content(usize, usize),
    Item(usize),
    /// Ended, or never begun.
    Nothing,
}

struct Item {
    id: String,
    what: What,
    status: Status,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    InProgress,
    Completed,
    Incomplete,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

enum What {
    Message(Vec<Content>),
    Reasoning {
        text: String,
        is_summary: bool,
        seal: Option<String>,
    },
    Call {
        call_id: String,
        name: String,
        arguments: String,
        is_custom: bool,
        seal: Option<Seal>,
    },
}

#[derive(Default)]
struct Content {
    text: String,
    is_refusal: bool,
    /// Until the text has ended.
    citations: Vec<Citation>,
    annotations: Vec<Value>,
    logprobs: Vec<Value>,
}

impl Content {
    fn json(&self) -> Value {
        if self.is_refusal {
            return json!({"type": "refusal", "refusal": self.text});
        }
        json!({
            "type": "output_text",
            "annotations": self.annotations,
            "logprobs": self.logprobs,
            "text": self.text,
        })
    }
}

impl Item {
    /// A function that takes nothing is called with an empty object, and some vendors leave that out.
    fn lacks_arguments(&self) -> bool {
        matches!(&self.what, What::Call { arguments, is_custom: false, .. } if arguments.is_empty())
    }

    fn json(&self) -> Value {
        let status = self.status.as_str();
        match &self.what {
            What::Message(contents) => json!({
                "id": self.id,
                "type": "message",
                "status": status,
                "content": contents.iter().map(Content::json).collect::<Vec<_>>(),
                "role": "assistant",
            }),
            What::Reasoning { text, is_summary, seal } => {
                let mut item = json!({"id": self.id, "type": "reasoning", "summary": []});
                if !text.is_empty() {
                    if *is_summary {
                        item["summary"] = json!([{"type": "summary_text", "text": text}]);
                    } else {
                        item["content"] = json!([{"type": "reasoning_text", "text": text}]);
                    }
                }
                if let Some(seal) = seal {
                    item["encrypted_content"] = json!(seal);
                }
                item
            }
            What::Call {
                call_id,
                name,
                arguments,
                is_custom: false,
                ..
            } => json!({
                "id": self.id,
                "type": "function_call",
                "status": status,
                "arguments": arguments,
                "call_id": call_id,
                "name": name,
            }),
            What::Call {
                call_id,
                name,
                arguments,
                ..
            } => json!({
                "id": self.id,
                "type": "custom_tool_call",
                "status": status,
                "call_id": call_id,
                "input": arguments,
                "name": name,
            }),
        }
    }
}

/// The tokens of log probabilities as chat writes them.
fn tokens(value: &Value) -> Vec<Value> {
    let content = value.get("content").and_then(Value::as_array);
    content.cloned().unwrap_or_default()
}

impl Builder {
    fn new(call: &Request, model: &str) -> Self {
        let mut asked: Asked = serde_json::from_slice(&call.body).unwrap_or_default();
        asked.fill();
        let wants_summary = asked.reasoning.get("summary").is_some_and(Value::is_string)
            || asked.reasoning.get("generate_summary").is_some_and(Value::is_string);
        Self {
            echo: Echo {
                id: response_id(&call.origin),
                stem: stem(&call.origin),
                created: call.origin.at,
                model: model.to_owned(),
                asked,
            },
            say: Say::default(),
            items: Vec::new(),
            slots: HashMap::new(),
            message: None,
            soft: None,
            latest_text: None,
            wants_summary,
            finish: None,
            usage: Usage::default(),
            service_tier: None,
            has_begun: false,
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if mem::replace(&mut self.has_begun, true) || self.say.is_silent {
            return;
        }
        for kind in ["response.created", "response.in_progress"] {
            let mut response = self.response();
            response.status = "in_progress";
            response.incomplete_details = None;
            response.usage = None;
            let body = json!({ "response": response });
            self.say.event(out, kind, &body);
        }
    }

    fn take(&mut self, event: Event, out: &mut Vec<u8>, notes: &mut Notes) {
        if event != Event::Ping {
            self.begin(out);
        }
        match event {
            Event::Start { usage, .. } => self.usage = usage,
            Event::Usage(usage) => self.usage = usage,
            Event::Ping => {}
            Event::Stranger(_) => notes.dropped("output", STRANGER),
            Event::Delta { choice, .. }
            | Event::End { choice, .. }
            | Event::Logprobs { choice, .. }
            | Event::Finish { choice, .. }
                if choice > 0 =>
            {
                notes.dropped("output", "Responses has one answer: the others are left out");
            }
            Event::Delta { part, delta, .. } => self.delta(part, delta, out, notes),
            Event::End { part, .. } => self.end(part, Status::Completed, out),
            Event::Logprobs { value, .. } => {
                if let Some(part) = self.latest_text {
                    self.text(part, "", &tokens(&value), out, notes);
                }
            }
            Event::Finish { finish, .. } => {
                self.finish = Some(finish);
                self.close(out, notes);
            }
        }
    }

    fn delta(&mut self, part: u32, delta: Delta, out: &mut Vec<u8>, notes: &mut Notes) {
        match delta {
            Delta::Text(text) => self.text(part, &text, &[], out, notes),
            Delta::Refusal(text) => self.refusal(part, &text, out),
            Delta::Thought { text, is_summary } => self.thought(part, &text, is_summary, out),
            Delta::Redacted => {
                self.reasoning_item(part, false, out);
            }
            Delta::Call { id, name, is_custom } => self.call(part, &id, name, is_custom, out),
            Delta::Arguments(text) => self.arguments(part, &text, out),
            Delta::Seal(seal) => self.seal(part, seal, out),
            Delta::Citation(citation) => self.citation(part, citation, notes),
            Delta::Audio { transcript, .. } => {
                notes.dropped(
                    "output",
                    "audio in an answer has no place in Responses: its transcript stands for it",
                );
                if let Some(text) = transcript {
                    self.text(part, &text, &[], out, notes);
                }
            }
        }
    }

    // === messages ===

    /// The content of a part, which begins if it has not. What comes after an end begins another one.
    fn content(&mut self, part: u32, is_refusal: bool, out: &mut Vec<u8>) -> (usize, usize) {
        if let Some(Slot::Content(item, content)) = self.slots.get(&part).copied() {
            return (item, content);
        }
        self.end_soft(out);
        let item = match self.message {
            Some(item) => item,
            None => {
                let item = self.open("msg", What::Message(Vec::new()), out);
                self.message = Some(item);
                item
            }
        };
        let mut index = 0;
        if let Some(Item {
            id,
            what: What::Message(contents),
            ..
        }) = self.items.get_mut(item)
        {
            index = contents.len();
            let content = Content {
                is_refusal,
                ..Content::default()
            };
            let body = json!({
                "item_id": id, "output_index": item, "content_index": index, "part": content.json(),
            });
            self.say.event(out, "response.content_part.added", &body);
            contents.push(content);
        }
        self.slots.insert(part, Slot::Content(item, index));
        self.soft = Some(part);
        (item, index)
    }

    fn text(&mut self, part: u32, text: &str, logprobs: &[Value], out: &mut Vec<u8>, notes: &mut Notes) {
        if text.is_empty() && logprobs.is_empty() && !self.slots.contains_key(&part) {
            return;
        }
        if !logprobs.is_empty() && matches!(self.slots.get(&part), Some(Slot::Nothing)) {
            notes.dropped("output", "log probabilities came after the text that they are of");
            return;
        }
        let (item, content) = self.content(part, false, out);
        self.latest_text = Some(part);
        self.say_text(item, content, text, logprobs, out);
    }

    fn refusal(&mut self, part: u32, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() && !self.slots.contains_key(&part) {
            return;
        }
        let (item, content) = self.content(part, true, out);
        self.say_text(item, content, text, &[], out);
    }

    fn say_text(&mut self, item: usize, content: usize, text: &str, logprobs: &[Value], out: &mut Vec<u8>) {
        let Some(Item {
            id,
            what: What::Message(contents),
            ..
        }) = self.items.get_mut(item)
        else {
            return;
        };
        let Some(said) = contents.get_mut(content) else {
            return;
        };
        said.text.push_str(text);
        said.logprobs.extend_from_slice(logprobs);
        let (kind, logprobs) = if said.is_refusal {
            ("response.refusal.delta", None)
        } else {
            ("response.output_text.delta", Some(logprobs))
        };
        let body = Piece {
            item_id: id,
            output_index: item,
            content_index: Some(content),
            summary_index: None,
            delta: text,
            logprobs,
        };
        self.say.event(out, kind, &body);
    }

    fn citation(&mut self, part: u32, citation: Citation, notes: &mut Notes) {
        let Some(Slot::Content(item, content)) = self.slots.get(&part).copied() else {
            notes.dropped("output", "a citation of no text");
            return;
        };
        if citation.quoted.is_some() && raw_annotation(&citation).is_none() {
            notes.dropped("output", "an annotation has no place for the words of its source");
        }
        if let Some(Item {
            what: What::Message(contents),
            ..
        }) = self.items.get_mut(item)
            && let Some(content) = contents.get_mut(content)
        {
            content.citations.push(citation);
        }
    }

    // === reasoning ===

    fn reasoning_item(&mut self, part: u32, is_summary: bool, out: &mut Vec<u8>) -> usize {
        if let Some(Slot::Item(item)) = self.slots.get(&part).copied() {
            return item;
        }
        self.end_soft(out);
        self.end_message(Status::Completed, out);
        let what = What::Reasoning {
            text: String::new(),
            is_summary,
            seal: None,
        };
        let item = self.open("rs", what, out);
        self.slots.insert(part, Slot::Item(item));
        self.soft = Some(part);
        item
    }

    fn thought(&mut self, part: u32, piece: &str, is_summary: bool, out: &mut Vec<u8>) {
        // A client that asked for a summary looks for nothing else.
        let item = self.reasoning_item(part, is_summary || self.wants_summary, out);
        if piece.is_empty() {
            return;
        }
        let Some(Item {
            id,
            what: What::Reasoning { text, is_summary, .. },
            ..
        }) = self.items.get_mut(item)
        else {
            return;
        };
        let (index, kind, begun) = if *is_summary {
            (
                "summary_index",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_part.added",
            )
        } else {
            (
                "content_index",
                "response.reasoning_text.delta",
                "response.content_part.added",
            )
        };
        if text.is_empty() {
            let body = json!({
                "item_id": id, "output_index": item, index: 0, "part": reasoning_part("", *is_summary),
            });
            self.say.event(out, begun, &body);
        }
        text.push_str(piece);
        let body = Piece {
            item_id: id,
            output_index: item,
            content_index: (!*is_summary).then_some(0),
            summary_index: is_summary.then_some(0),
            delta: piece,
            logprobs: None,
        };
        self.say.event(out, kind, &body);
    }

    fn seal(&mut self, part: u32, new: Seal, out: &mut Vec<u8>) {
        // A seal alone is a thought of which nothing is shown.
        let item = match self.slots.get(&part).copied() {
            Some(Slot::Item(item)) => item,
            None => self.reasoning_item(part, false, out),
            Some(Slot::Content(..) | Slot::Nothing) => {
                self.open_sealed(write_seal(&new, true), out);
                return;
            }
        };
        match self.items.get_mut(item).map(|item| &mut item.what) {
            Some(What::Reasoning { text, seal, .. }) => *seal = Some(write_seal(&new, text.is_empty())),
            Some(What::Call { seal, .. }) => *seal = Some(new),
            _ => {}
        }
    }

    /// A reasoning item that is a seal and nothing else.
    fn open_sealed(&mut self, seal: String, out: &mut Vec<u8>) {
        self.end_message(Status::Completed, out);
        let what = What::Reasoning {
            text: String::new(),
            is_summary: false,
            seal: Some(seal),
        };
        let item = self.open("rs", what, out);
        self.close_item(item, Status::Completed, out);
    }

    // === calls ===

    fn call(&mut self, part: u32, id: &str, name: String, is_custom: bool, out: &mut Vec<u8>) {
        if self.slots.contains_key(&part) {
            return;
        }
        self.end_soft(out);
        self.end_message(Status::Completed, out);
        let what = What::Call {
            call_id: ids::fitting(id, 64).into_owned(),
            name,
            arguments: String::new(),
            is_custom,
            seal: None,
        };
        let item = self.open(if is_custom { "ctc" } else { "fc" }, what, out);
        self.slots.insert(part, Slot::Item(item));
    }

    fn arguments(&mut self, part: u32, piece: &str, out: &mut Vec<u8>) {
        if let Some(Slot::Item(item)) = self.slots.get(&part).copied() {
            self.say_arguments(item, piece, out);
        }
    }

    fn say_arguments(&mut self, item: usize, piece: &str, out: &mut Vec<u8>) {
        let Some(Item {
            id,
            what: What::Call {
                arguments, is_custom, ..
            },
            ..
        }) = self.items.get_mut(item)
        else {
            return;
        };
        if piece.is_empty() {
            return;
        }
        arguments.push_str(piece);
        let kind = if *is_custom {
            "response.custom_tool_call_input.delta"
        } else {
            "response.function_call_arguments.delta"
        };
        let body = Piece {
            item_id: id,
            output_index: item,
            content_index: None,
            summary_index: None,
            delta: piece,
            logprobs: None,
        };
        self.say.event(out, kind, &body);
    }

    // === beginnings and ends ===

    fn open(&mut self, kind: &str, what: What, out: &mut Vec<u8>) -> usize {
        let index = self.items.len();
        let item = Item {
            id: item_id(kind, &self.echo.stem, index),
            what,
            status: Status::InProgress,
        };
        let body = json!({"output_index": index, "item": item.json()});
        self.say.event(out, "response.output_item.added", &body);
        self.items.push(item);
        index
    }

    fn end_soft(&mut self, out: &mut Vec<u8>) {
        if let Some(part) = self.soft.take() {
            self.end(part, Status::Completed, out);
        }
    }

    fn end(&mut self, part: u32, status: Status, out: &mut Vec<u8>) {
        if self.soft == Some(part) {
            self.soft = None;
        }
        match self.slots.insert(part, Slot::Nothing) {
            Some(Slot::Content(item, content)) => self.end_content(item, content, out),
            Some(Slot::Item(item)) => self.close_item(item, status, out),
            Some(Slot::Nothing) | None => {}
        }
    }

    fn end_content(&mut self, item: usize, index: usize, out: &mut Vec<u8>) {
        let Some(Item {
            id,
            what: What::Message(contents),
            ..
        }) = self.items.get_mut(item)
        else {
            return;
        };
        let Some(content) = contents.get_mut(index) else {
            return;
        };
        let length = u64::try_from(content.text.chars().count()).unwrap_or(u64::MAX);
        let citations = mem::take(&mut content.citations);
        content.annotations = citations
            .into_iter()
            .map(|citation| annotation(citation, length))
            .collect();
        // Where a citation belongs is known only now, where its text is.
        for (number, annotation) in content.annotations.iter().enumerate() {
            let body = json!({
                "item_id": id, "output_index": item, "content_index": index, "annotation_index": number,
                "annotation": annotation,
            });
            self.say.event(out, "response.output_text.annotation.added", &body);
        }
        let (kind, body) = if content.is_refusal {
            let body = json!({
                "item_id": id, "output_index": item, "content_index": index, "refusal": content.text,
            });
            ("response.refusal.done", body)
        } else {
            let body = json!({
                "item_id": id, "output_index": item, "content_index": index, "text": content.text,
                "logprobs": content.logprobs,
            });
            ("response.output_text.done", body)
        };
        self.say.event(out, kind, &body);
        let body = json!({
            "item_id": id, "output_index": item, "content_index": index, "part": content.json(),
        });
        self.say.event(out, "response.content_part.done", &body);
    }

    fn end_message(&mut self, status: Status, out: &mut Vec<u8>) {
        if let Some(item) = self.message.take() {
            self.close_item(item, status, out);
        }
    }

    fn close_item(&mut self, index: usize, status: Status, out: &mut Vec<u8>) {
        if self.items.get(index).is_some_and(Item::lacks_arguments) {
            self.say_arguments(index, "{}", out);
        }
        let seal_after = self.last_words(index, out);
        let Some(item) = self.items.get_mut(index) else {
            return;
        };
        item.status = status;
        let body = json!({"output_index": index, "item": item.json()});
        self.say.event(out, "response.output_item.done", &body);
        if let Some(seal) = seal_after {
            self.open_sealed(seal, out);
        }
    }

    /// What ends the inside of an item. Of a call's seal, what follows it.
    fn last_words(&mut self, index: usize, out: &mut Vec<u8>) -> Option<String> {
        let item = self.items.get_mut(index)?;
        let id = &item.id;
        match &mut item.what {
            What::Message(_) => None,
            What::Reasoning { text, is_summary, .. } => {
                if !text.is_empty() {
                    let (key, done, part_done) = if *is_summary {
                        (
                            "summary_index",
                            "response.reasoning_summary_text.done",
                            "response.reasoning_summary_part.done",
                        )
                    } else {
                        (
                            "content_index",
                            "response.reasoning_text.done",
                            "response.content_part.done",
                        )
                    };
                    let body = json!({"item_id": id, "output_index": index, key: 0, "text": text});
                    self.say.event(out, done, &body);
                    let body = json!({
                        "item_id": id, "output_index": index, key: 0, "part": reasoning_part(text, *is_summary),
                    });
                    self.say.event(out, part_done, &body);
                }
                None
            }
            What::Call {
                call_id,
                name,
                arguments,
                is_custom,
                seal,
            } => {
                let (key, done) = if *is_custom {
                    ("input", "response.custom_tool_call_input.done")
                } else {
                    ("arguments", "response.function_call_arguments.done")
                };
                let mut body = json!({"item_id": id, "output_index": index, key: arguments});
                if !*is_custom {
                    body["name"] = json!(name);
                }
                self.say.event(out, done, &body);
                seal.take().map(|seal| write_call_seal(&seal, call_id))
            }
        }
    }

    /// Everything that is still open ends. What was cut short is the last of it.
    fn close(&mut self, out: &mut Vec<u8>, notes: &mut Notes) {
        let mut open: Vec<_> = self
            .slots
            .iter()
            .filter(|(_, slot)| !matches!(slot, Slot::Nothing))
            .map(|(part, _)| *part)
            .collect();
        open.sort_unstable();
        let status = match self.outcome(notes) {
            ("completed", _) => Status::Completed,
            _ => Status::Incomplete,
        };
        let last = open.last().copied();
        for part in open {
            let status = if Some(part) == last { status } else { Status::Completed };
            self.end(part, status, out);
        }
        self.end_message(status, out);
    }

    fn refuses(&self) -> bool {
        let refuses = |content: &Content| content.is_refusal && !content.text.is_empty();
        self.items.iter().any(|item| match &item.what {
            What::Message(contents) => contents.iter().any(refuses),
            _ => false,
        })
    }

    /// How the answer ended: its status, and why it is not complete.
    fn outcome(&self, notes: &mut Notes) -> (&'static str, Option<&'static str>) {
        const SHORT: (&str, Option<&str>) = ("incomplete", Some("max_output_tokens"));
        const FILTERED: (&str, Option<&str>) = ("incomplete", Some("content_filter"));
        const WHOLE: (&str, Option<&str>) = ("completed", None);
        match self.finish.as_ref() {
            None | Some(Finish::Stop | Finish::StopSequence(_) | Finish::ToolCalls) => WHOLE,
            Some(Finish::Length) => SHORT,
            Some(Finish::ContextWindow) => {
                notes.approximated("incomplete_details", "the model's own window was full");
                SHORT
            }
            Some(Finish::Pause) => {
                notes.approximated("incomplete_details", "the vendor paused a long turn, to be carried on");
                SHORT
            }
            Some(Finish::ContentFilter) => FILTERED,
            Some(Finish::Refusal) if self.refuses() => WHOLE,
            Some(Finish::Refusal) => {
                notes.approximated("incomplete_details", "the model declined");
                FILTERED
            }
            Some(Finish::Other(word)) => {
                notes.approximated("status", format!("the vendor says that it ended by {word:?}"));
                WHOLE
            }
        }
    }

    fn response(&self) -> Response<'_> {
        let (status, reason) = self.outcome(&mut Notes::default());
        let asked = &self.echo.asked;
        let tier = self.service_tier.as_ref().map(|tier| json!(tier));
        Response {
            id: &self.echo.id,
            object: "response",
            created_at: self.echo.created,
            status,
            background: &asked.background,
            completed_at: (),
            error: (),
            frequency_penalty: &asked.frequency_penalty,
            incomplete_details: reason.map(|reason| json!({ "reason": reason })),
            instructions: &asked.instructions,
            max_output_tokens: &asked.max_output_tokens,
            max_tool_calls: &asked.max_tool_calls,
            model: &self.echo.model,
            output: self.items.iter().map(Item::json).collect(),
            parallel_tool_calls: &asked.parallel_tool_calls,
            presence_penalty: &asked.presence_penalty,
            previous_response_id: &asked.previous_response_id,
            prompt_cache_key: &asked.prompt_cache_key,
            prompt_cache_retention: &asked.prompt_cache_retention,
            reasoning: &asked.reasoning,
            safety_identifier: &asked.safety_identifier,
            service_tier: tier.unwrap_or_else(|| asked.service_tier.clone()),
            store: &asked.store,
            temperature: &asked.temperature,
            text: &asked.text,
            tool_choice: &asked.tool_choice,
            tools: &asked.tools,
            top_logprobs: &asked.top_logprobs,
            top_p: &asked.top_p,
            truncation: &asked.truncation,
            usage: usage_of(&self.usage),
            user: &asked.user,
            metadata: &asked.metadata,
        }
    }
}

fn reasoning_part(text: &str, is_summary: bool) -> Value {
    let kind = if is_summary { "summary_text" } else { "reasoning_text" };
    json!({"type": kind, "text": text})
}

/// What an annotation may be. Chat writes the first one differently.
const ANNOTATIONS: [&str; 4] = ["url_citation", "file_citation", "container_file_citation", "file_path"];

fn raw_annotation(citation: &Citation) -> Option<&Value> {
    let raw = citation.raw.as_ref()?;
    let kind = raw.get("type")?.as_str()?;
    (ANNOTATIONS.contains(&kind) && raw.get(kind).is_none()).then_some(raw)
}

/// A citation as it is written here; one without a place is of the whole text.
fn annotation(citation: Citation, length: u64) -> Value {
    if let Some(raw) = raw_annotation(&citation) {
        return raw.clone();
    }
    let end = citation.end.unwrap_or(length);
    match citation.url {
        Some(url) => json!({
            "type": "url_citation",
            "end_index": end,
            "start_index": citation.start.unwrap_or_default(),
            "title": citation.title.unwrap_or_default(),
            "url": url,
        }),
        None => json!({
            "type": "file_citation",
            "file_id": citation.document.map(|number| format!("document_{number}")).unwrap_or_default(),
            "filename": citation.title.unwrap_or_default(),
            "index": end,
        }),
    }
}
