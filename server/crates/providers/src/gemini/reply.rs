//! Writes answers for callers who read as Google's libraries do.
//!
//! A piece of a stream is an answer with what is new. A call of a function goes out in one piece, when its arguments are whole;
//! the last piece says why each candidate has ended and what was used.

use super::told::{bytes_before, reason, write_logprobs, write_seal, write_usage};
use crate::codec::Writer;
use crate::ir::{Answer, Choice, Citation, Delta, Event, Finish, Part, Source};
use crate::notes::Notes;
use crate::{Call, custom, sse};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use switchyard_core::usage::Usage;

/// Writes a whole answer.
pub(super) fn write(answer: Answer, call: &Call, notes: &mut Notes) -> Vec<u8> {
    let mut candidates = Vec::new();
    for (index, choice) in answer.choices.into_iter().enumerate() {
        candidates.push(candidate(choice, index, notes));
    }
    let mut body = Map::new();
    body.insert("candidates".to_owned(), Value::Array(candidates));
    put_usage(&answer.usage, &mut body, notes);
    let model = answer.model.unwrap_or_else(|| call.model.clone());
    body.insert("modelVersion".to_owned(), model.into());
    let id = answer.id.unwrap_or_else(|| call.origin.id.to_string());
    body.insert("responseId".to_owned(), id.into());
    serde_json::to_vec(&body).unwrap_or_default()
}

fn put_usage(usage: &Usage, body: &mut Map<String, Value>, notes: &mut Notes) {
    if usage.cache_write.is_some_and(|tokens| tokens > 0) {
        notes.dropped(
            "usageMetadata",
            "tokens that were written to a cache are in promptTokenCount, and not told apart",
        );
    }
    let usage = write_usage(usage);
    if usage.as_object().is_some_and(|usage| !usage.is_empty()) {
        body.insert("usageMetadata".to_owned(), usage);
    }
}

fn candidate(choice: Choice, index: usize, notes: &mut Notes) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    let mut sources = Vec::new();
    let all = choice.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let all: String = all.collect();
    for part in choice.parts {
        match part {
            Part::Text { text, citations, .. } => {
                sources.extend(citations.iter().filter_map(|citation| source(citation, &all, notes)));
                if !text.is_empty() {
                    parts.push(json!({ "text": text }));
                }
            }
            Part::Refusal(text) => {
                refused(notes);
                parts.push(json!({ "text": text }));
            }
            Part::Thought(thought) => {
                let seal = thought.seal.as_ref().map(write_seal);
                let mut made = Map::from_iter([("text".to_owned(), Value::from(thought.text))]);
                if !thought.is_redacted {
                    made.insert("thought".to_owned(), true.into());
                }
                if let Some(seal) = seal {
                    made.insert("thoughtSignature".to_owned(), seal.into());
                }
                parts.push(Value::Object(made));
            }
            Part::Call(call) => {
                let args = arguments(&call.arguments, call.is_custom, notes);
                let seal = call.seal.as_ref().map(write_seal);
                parts.push(function_call(&call.id, &call.name, &args, seal));
            }
            Part::Image(image) => data(image.source, notes, &mut parts),
            Part::Document(document) => data(document.source, notes, &mut parts),
            Part::Audio(audio) => data(audio.source, notes, &mut parts),
            Part::Result(_) => notes.dropped("candidates.content.parts", "a result of a tool in a model's answer"),
            Part::Stranger(stranger) => notes.dropped(stranger.field, STRANGER),
        }
    }
    let mut made = Map::new();
    made.insert("content".to_owned(), json!({"parts": parts, "role": "model"}));
    made.insert("finishReason".to_owned(), ended(&choice.finish, notes).into());
    made.insert("index".to_owned(), index.into());
    if !sources.is_empty() {
        made.insert("citationMetadata".to_owned(), json!({ "citationSources": sources }));
    }
    if let Some(logprobs) = choice.logprobs.as_ref().and_then(write_logprobs) {
        made.insert("logprobsResult".to_owned(), logprobs);
    }
    Value::Object(made)
}

const STRANGER: &str = "gemini has no such part";

fn refused(notes: &mut Notes) {
    notes.approximated("candidates.content.parts", "the model's refusal is a text here");
}

fn ended(finish: &Finish, notes: &mut Notes) -> String {
    let (word, lost) = reason(finish);
    if let Some(lost) = lost {
        notes.approximated("candidates.finishReason", lost);
    }
    word.to_owned()
}

fn function_call(id: &str, name: &str, args: &Value, seal: Option<String>) -> Value {
    let mut made = json!({"functionCall": {"id": id, "name": name, "args": args}});
    if let (Some(seal), Some(made)) = (seal, made.as_object_mut()) {
        made.insert("thoughtSignature".to_owned(), seal.into());
    }
    made
}

fn arguments(written: &str, is_custom: bool, notes: &mut Notes) -> Value {
    let (args, is_object) = custom::arguments(written, is_custom);
    if !is_object {
        notes.approximated(
            "candidates.content.parts.functionCall.args",
            "what is no JSON object stands in one, as `input`",
        );
    }
    args
}

fn data(source: Source, notes: &mut Notes, parts: &mut Vec<Value>) {
    match source {
        Source::Data { media_type, base64 } => {
            parts.push(json!({"inlineData": {"mimeType": media_type, "data": base64}}))
        }
        Source::Url(uri) => parts.push(json!({"fileData": {"fileUri": uri}})),
        Source::Text(text) => parts.push(json!({ "text": text })),
        Source::File(_) => notes.dropped("candidates.content.parts", "a file that the upstream keeps"),
    }
}

fn source(citation: &Citation, text: &str, notes: &mut Notes) -> Option<Value> {
    const FIELD: &str = "candidates.citationMetadata";
    if citation.quoted.is_some() || citation.document.is_some() {
        notes.dropped(FIELD, "which document it is, and its words, cannot be said here");
    }
    if citation.url.is_none() && citation.title.is_none() {
        return None;
    }
    let mut made = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            made.insert(name.to_owned(), value);
        }
    };
    put("startIndex", citation.start.map(|at| bytes_before(text, at).into()));
    put("endIndex", citation.end.map(|at| bytes_before(text, at).into()));
    put("uri", citation.url.as_deref().map(Value::from));
    put("title", citation.title.as_deref().map(Value::from));
    Some(Value::Object(made))
}

/// A call on its way.
#[derive(Default)]
struct Calling {
    id: String,
    name: String,
    is_custom: bool,
    arguments: String,
    seal: Option<String>,
}

#[derive(Default)]
struct Candidate {
    /// The part that is a thought with a text, if the latest one is.
    thought: Option<u32>,
    /// Calls that are not whole, by the numbers of their parts.
    calls: BTreeMap<u32, Calling>,
    /// What of the text has passed: places of sources are counted in it.
    text: String,
    finish: Option<Finish>,
}

/// Writes one stream.
pub(super) struct Stream {
    model: String,
    id: String,
    candidates: BTreeMap<u32, Candidate>,
    usage: Usage,
}

impl Stream {
    pub(super) fn new(call: &Call, model: &str) -> Self {
        Self {
            model: model.to_owned(),
            id: call.origin.id.to_string(),
            candidates: BTreeMap::new(),
            usage: Usage::default(),
        }
    }

    fn send(&self, candidates: Vec<Value>, usage: Option<(&Usage, &mut Notes)>, out: &mut Vec<u8>) {
        let mut body = Map::new();
        body.insert("candidates".to_owned(), Value::Array(candidates));
        if let Some((usage, notes)) = usage {
            put_usage(usage, &mut body, notes);
        }
        body.insert("modelVersion".to_owned(), self.model.as_str().into());
        body.insert("responseId".to_owned(), self.id.as_str().into());
        out.extend_from_slice(&sse::frame(&serde_json::to_vec(&body).unwrap_or_default()));
    }

    fn send_part(&self, choice: u32, part: &Value, out: &mut Vec<u8>) {
        let candidate = json!({"content": {"parts": [part], "role": "model"}, "index": choice});
        self.send(vec![candidate], None, out);
    }

    fn delta(&mut self, choice: u32, part: u32, delta: Delta, out: &mut Vec<u8>, notes: &mut Notes) {
        let candidate = self.candidates.entry(choice).or_default();
        match delta {
            Delta::Text(text) => {
                candidate.text.push_str(&text);
                if !text.is_empty() {
                    self.send_part(choice, &json!({ "text": text }), out);
                }
            }
            Delta::Refusal(text) => {
                refused(notes);
                if !text.is_empty() {
                    self.send_part(choice, &json!({ "text": text }), out);
                }
            }
            Delta::Thought { text, .. } => {
                candidate.thought = Some(part);
                if !text.is_empty() {
                    self.send_part(choice, &json!({"text": text, "thought": true}), out);
                }
            }
            // Says nothing before its seal.
            Delta::Redacted => {}
            Delta::Call { id, name, is_custom } => {
                let call = Calling {
                    id,
                    name,
                    is_custom,
                    ..Calling::default()
                };
                candidate.calls.insert(part, call);
            }
            Delta::Arguments(more) => candidate.calls.entry(part).or_default().arguments.push_str(&more),
            Delta::Seal(seal) => {
                let seal = write_seal(&seal);
                if let Some(call) = candidate.calls.get_mut(&part) {
                    call.seal = Some(seal);
                } else if candidate.thought == Some(part) {
                    let sealed = json!({"text": "", "thought": true, "thoughtSignature": seal});
                    self.send_part(choice, &sealed, out);
                } else {
                    self.send_part(choice, &json!({"text": "", "thoughtSignature": seal}), out);
                }
            }
            Delta::Citation(citation) => {
                if let Some(source) = source(&citation, &candidate.text, notes) {
                    let metadata = json!({"citationSources": [source]});
                    let candidate = json!({
                        "content": {"parts": [], "role": "model"},
                        "citationMetadata": metadata,
                        "index": choice,
                    });
                    self.send(vec![candidate], None, out);
                }
            }
            Delta::Audio { base64, transcript } => {
                if let Some(text) = transcript.filter(|text| !text.is_empty()) {
                    self.send_part(choice, &json!({ "text": text }), out);
                }
                if !base64.is_empty() {
                    self.send_part(
                        choice,
                        &json!({"inlineData": {"mimeType": "audio/pcm", "data": base64}}),
                        out,
                    );
                }
            }
        }
    }

    /// A call is whole.
    fn call(&mut self, choice: u32, part: u32, out: &mut Vec<u8>, notes: &mut Notes) {
        let calling = self
            .candidates
            .get_mut(&choice)
            .and_then(|candidate| candidate.calls.remove(&part));
        if let Some(call) = calling {
            let args = arguments(&call.arguments, call.is_custom, notes);
            self.send_part(choice, &function_call(&call.id, &call.name, &args, call.seal), out);
        }
    }

    /// No more of any call comes.
    fn calls(&mut self, choice: u32, out: &mut Vec<u8>, notes: &mut Notes) {
        let open = self
            .candidates
            .get(&choice)
            .map(|candidate| candidate.calls.keys().copied().collect::<Vec<_>>());
        for part in open.unwrap_or_default() {
            self.call(choice, part, out, notes);
        }
    }
}

impl Writer for Stream {
    fn write(&mut self, event: Event, out: &mut Vec<u8>, notes: &mut Notes) {
        match event {
            Event::Start { id, usage, .. } => {
                if let Some(id) = id {
                    self.id = id;
                }
                self.usage = usage;
            }
            Event::Delta { choice, part, delta } => self.delta(choice, part, delta, out, notes),
            Event::End { choice, part } => self.call(choice, part, out, notes),
            Event::Logprobs { choice, value } => {
                if let Some(logprobs) = write_logprobs(&value) {
                    let candidate = json!({
                        "content": {"parts": [], "role": "model"},
                        "logprobsResult": logprobs,
                        "index": choice,
                    });
                    self.send(vec![candidate], None, out);
                }
            }
            Event::Finish { choice, finish } => {
                self.calls(choice, out, notes);
                self.candidates.entry(choice).or_default().finish = Some(finish);
            }
            Event::Usage(usage) => self.usage = usage,
            Event::Stranger(field) => notes.dropped(field, STRANGER),
            Event::Ping => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>, notes: &mut Notes) {
        for choice in self.candidates.keys().copied().collect::<Vec<_>>() {
            self.calls(choice, out, notes);
        }
        if self.candidates.is_empty() {
            self.candidates.insert(0, Candidate::default());
        }
        let mut last = Vec::new();
        for (index, candidate) in &self.candidates {
            let finish = candidate.finish.clone().unwrap_or_default();
            last.push(json!({
                "content": {"parts": [{"text": ""}], "role": "model"},
                "finishReason": ended(&finish, notes),
                "index": index,
            }));
        }
        let usage = self.usage;
        self.send(last, Some((&usage, notes)), out);
    }
}
