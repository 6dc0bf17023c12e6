//! A stream, read of an upstream.
//!
//! Whatever can be understood is: a chunk whose `choices` are missing tells of usage; calls of tools are told apart by index, by
//! id or by name, whichever there is; a finish reason counts once, and is told at the very end, because there are upstreams that
//! go on behind it. One frame that cannot be read is skipped and counted. The answer is whole if every choice has said why it
//! ended, be there a `[DONE]` or not.

use super::answer::{beside, failed_choice, read_annotation, read_piece, says_nothing};
use super::details::{Detail, Place};
use super::read::signature;
use super::usage::{self, Had};
use crate::codec::Reader;
use crate::failure::Said;
use crate::ir::{Citation, Delta, Event, Finish, Maker, Part, Seal};
use crate::relay::{cut, endless, unreadable};
use crate::sse::{self, Block, Frame, Framer};
use crate::{End, Origin, ids};
use bytes::Bytes;
use serde::de::{MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt;
use std::mem;
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

const DONE: &[u8] = b"[DONE]";

/// Choices beyond these are nobody's.
const MOST_CHOICES: usize = 128;

// === a chunk ===

/// A value that should be a text, and may be anything.
#[derive(Debug, Default)]
enum Loose {
    #[default]
    Nothing,
    Text(String),
    Other(Value),
}

impl Loose {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    fn count(&self) -> Option<u64> {
        match self {
            Self::Other(value) => value.as_u64(),
            Self::Text(text) => text.parse().ok(),
            Self::Nothing => None,
        }
    }

    fn list(self) -> Vec<Value> {
        match self {
            Self::Other(Value::Array(list)) => list,
            _ => Vec::new(),
        }
    }

    fn value(self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::Text(text) => Some(text.into()),
            Self::Other(value) => Some(value),
        }
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
        Ok(Loose::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Loose, E> {
        Ok(Loose::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Loose, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Loose, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Loose, A::Error> {
        Value::deserialize(value::SeqAccessDeserializer::new(list)).map(Loose::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loose, A::Error> {
        Value::deserialize(value::MapAccessDeserializer::new(map)).map(Loose::Other)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk {
    id: Loose,
    model: Loose,
    object: Loose,
    choices: Option<Vec<ChunkChoice>>,
    usage: Loose,
    x_groq: Loose,
    error: Loose,
    citations: Loose,
    search_results: Loose,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChunkChoice {
    index: Loose,
    delta: Option<ChunkDelta>,
    /// Where an upstream does not stream after all.
    message: Option<ChunkDelta>,
    finish_reason: Loose,
    stop_reason: Loose,
    logprobs: Loose,
    error: Loose,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChunkDelta {
    content: Loose,
    reasoning_content: Loose,
    reasoning: Loose,
    reasoning_details: Loose,
    refusal: Loose,
    tool_calls: Option<Vec<CallDelta>>,
    function_call: Option<Named>,
    audio: Loose,
    images: Loose,
    annotations: Loose,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CallDelta {
    index: Loose,
    id: Loose,
    function: Option<Named>,
    custom: Option<Named>,
    extra_content: Loose,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: Loose,
    arguments: Loose,
    input: Loose,
}

// === a stream ===

pub(super) struct Listener {
    framer: Framer,
    origin: Origin,
    voices: Vec<Voice>,
    usage: Option<Usage>,
    /// Calls that got an id here.
    made: usize,
    cited: (Vec<Value>, Vec<Value>),
    has_started: bool,
    has_content: bool,
    has_concluded: bool,
    has_ended: bool,
    skipped: u32,
}

/// One choice.
#[derive(Default)]
struct Voice {
    choice: u32,
    /// The number of the next part.
    next: u32,
    open: Open,
    /// The open thought came as plain text: where its details follow, the text is known.
    is_plain: bool,
    calls: Vec<CallSoFar>,
    text_part: Option<u32>,
    /// Citations that came before any text.
    citations: Vec<Citation>,
    has_citations: bool,
    had: Had,
    finish: Option<Finish>,
}

/// The part that is being said, if it can go on.
#[derive(Default)]
enum Open {
    #[default]
    Nothing,
    Text(u32),
    Refusal(u32),
    Audio(u32),
    Thought {
        part: u32,
        is_summary: bool,
        place: Place,
    },
}

#[derive(Default)]
struct CallSoFar {
    index: Option<u64>,
    id: Option<String>,
    is_custom: bool,
    /// Once its name is known.
    part: Option<u32>,
    /// What came before its name.
    arguments: String,
    seal: Option<Seal>,
}

/// Where a voice's events go.
struct Out<'a> {
    events: &'a mut Vec<Event>,
    has_content: bool,
    choice: u32,
}

impl Out<'_> {
    fn delta(&mut self, part: u32, delta: Delta) {
        self.has_content |= delta.is_content();
        self.events.push(Event::Delta {
            choice: self.choice,
            part,
            delta,
        });
    }
}

impl Listener {
    pub(super) fn new(origin: &Origin) -> Self {
        Self {
            framer: Framer::default(),
            origin: origin.clone(),
            voices: Vec::new(),
            usage: None,
            made: 0,
            cited: (Vec::new(), Vec::new()),
            has_started: false,
            has_content: false,
            has_concluded: false,
            has_ended: false,
            skipped: 0,
        }
    }

    fn take(&mut self, block: &Block, out: &mut Vec<Event>) -> Option<End> {
        block
            .frames
            .iter()
            .find_map(|frame| self.frame(frame, &block.bytes, out))
    }

    fn frame(&mut self, frame: &Frame, block: &[u8], out: &mut Vec<Event>) -> Option<End> {
        if let Some(line) = frame.only_line(block) {
            return self.data(sse::value(line)?.trim_ascii(), out);
        }
        let frame = block.get(frame.range.clone()).unwrap_or_default();
        let data = sse::data(frame)?;
        let data = data.trim_ascii();
        if sse::event(frame) == Some(b"error") && data != DONE && !data.is_empty() {
            let said = Said::of_stray(data).unwrap_or_else(|| Said::of(&String::from_utf8_lossy(data)));
            return Some(End::Failed(said.into_error(None)));
        }
        self.data(data, out)
    }

    fn data(&mut self, data: &[u8], out: &mut Vec<Event>) -> Option<End> {
        if data.is_empty() {
            return None;
        }
        if data == DONE {
            return Some(self.done(out));
        }
        let Ok(chunk) = serde_json::from_slice::<Chunk>(data) else {
            return match Said::of_stray(data) {
                Some(said) => Some(End::Failed(said.into_error(None))),
                None => {
                    self.skipped += 1;
                    None
                }
            };
        };
        self.chunk(chunk, data, out)
    }

    fn chunk(&mut self, chunk: Chunk, data: &[u8], out: &mut Vec<Event>) -> Option<End> {
        if let Some(error) = chunk.error.value() {
            return Some(End::Failed(Said::of(&error.to_string()).into_error(None)));
        }
        if matches!(&chunk.object, Loose::Text(kind) if kind == "error") {
            let said = Said::of_stray(data).unwrap_or_default();
            return Some(End::Failed(said.into_error(None)));
        }
        if !self.has_started {
            self.has_started = true;
            out.push(Event::Start {
                id: chunk.id.text(),
                model: chunk.model.text(),
                usage: Usage::default(),
            });
        }
        for (whole, list) in [
            (&mut self.cited.0, chunk.citations),
            (&mut self.cited.1, chunk.search_results),
        ] {
            let list = list.list();
            if !list.is_empty() {
                *whole = list;
            }
        }
        let choices = chunk.choices.unwrap_or_default();
        let is_last = choices.is_empty();
        for choice in choices {
            if let Some(end) = self.choice(choice, out) {
                return Some(end);
            }
        }
        let groq = || chunk.x_groq.value().and_then(|groq| usage::read(groq.get("usage")?));
        let reported = chunk
            .usage
            .value()
            .and_then(|report| usage::read(&report))
            .or_else(groq);
        let has_all = !self.voices.is_empty() && self.voices.iter().all(|voice| voice.finish.is_some());
        if is_last && has_all && reported.is_some() {
            self.conclude(out);
        }
        if let Some(usage) = reported.filter(|usage| self.usage != Some(*usage)) {
            self.usage = Some(usage);
            out.push(Event::Usage(usage));
        }
        None
    }

    fn choice(&mut self, choice: ChunkChoice, out: &mut Vec<Event>) -> Option<End> {
        let index = u32::try_from(choice.index.count().unwrap_or(0)).unwrap_or(u32::MAX);
        if self.has_concluded {
            return None;
        }
        let at = self.voices.iter().position(|voice| voice.choice == index);
        let at = match at {
            Some(at) => at,
            None if self.voices.len() >= MOST_CHOICES => return None,
            None => {
                self.voices.push(Voice {
                    choice: index,
                    ..Voice::default()
                });
                self.voices.len() - 1
            }
        };
        let voice = self.voices.get_mut(at)?;
        let mut heard = Out {
            events: out,
            has_content: false,
            choice: index,
        };
        if let Some(delta) = choice.delta.or(choice.message) {
            voice.delta(delta, &self.origin, &mut self.made, &mut heard);
        }
        self.has_content |= heard.has_content;
        if let Some(value) = choice.logprobs.value().filter(has_tokens) {
            out.push(Event::Logprobs { choice: index, value });
        }
        let error = choice.error.value().filter(|error| !says_nothing(error));
        let word = choice.finish_reason.text();
        if error.is_some() || word.as_deref() == Some("error") {
            let error = error.as_ref().map(Value::to_string);
            return Some(End::Failed(failed_choice(error.as_deref(), None)));
        }
        let word = word?;
        if voice.finish.is_none() {
            let finish = usage::read_finish(&word);
            voice.finish = match choice.stop_reason.text() {
                // vLLM says which text it stopped at.
                Some(text) if finish == Some(Finish::Stop) => Some(Finish::StopSequence(Some(text))),
                _ => finish,
            };
        }
        None
    }

    /// Tells how every choice has ended. There is nothing more to hear of them.
    fn conclude(&mut self, out: &mut Vec<Event>) {
        if mem::replace(&mut self.has_concluded, true) {
            return;
        }
        let (cited, results) = mem::take(&mut self.cited);
        self.voices.sort_by_key(|voice| voice.choice);
        for voice in &mut self.voices {
            if let Some(part) = voice.text_part.filter(|_| !voice.has_citations) {
                let all = beside(&cited, &results).into_iter().filter_map(read_annotation);
                out.extend(all.map(|citation| Event::Delta {
                    choice: voice.choice,
                    part,
                    delta: Delta::Citation(citation),
                }));
            }
            out.push(Event::Finish {
                choice: voice.choice,
                finish: voice.had.correct(voice.finish.take().unwrap_or_default()),
            });
        }
    }

    fn is_whole(&self) -> bool {
        let mut voices = self.voices.iter();
        self.has_concluded || !self.voices.is_empty() && voices.all(|voice| voice.finish.is_some())
    }

    fn done(&mut self, out: &mut Vec<Event>) -> End {
        if self.skipped > 0 && !self.has_content {
            End::Failed(unreadable(self.skipped))
        } else if self.is_whole() {
            self.conclude(out);
            End::Complete
        } else if self.voices.is_empty() {
            let message = "the upstream ended its stream without an answer";
            End::Failed(Error::new(Kind::BadAnswer, message))
        } else {
            End::Failed(cut())
        }
    }

    fn close(&mut self, out: &mut Vec<Event>) -> End {
        let rest = self.framer.finish();
        // An error may stand there as a whole document, over several lines.
        if let Some(said) = Said::of_stray(rest.bytes.trim_ascii()) {
            return End::Failed(said.into_error(None));
        }
        if let Some(end) = self.take(&rest, out) {
            return end;
        }
        match self.done(out) {
            // A close without a word is a cut, and no end.
            End::Failed(_) if self.voices.is_empty() && self.skipped == 0 => End::Failed(cut()),
            end => end,
        }
    }
}

impl Reader for Listener {
    fn push(&mut self, bytes: Bytes, out: &mut Vec<Event>) -> Option<End> {
        if self.has_ended {
            return None;
        }
        let end = match self.framer.push(bytes) {
            Ok(block) => {
                let end = self.take(&block, out);
                self.framer.reuse(block);
                end
            }
            Err(sse::Endless) => Some(End::Failed(endless())),
        };
        self.has_ended = end.is_some();
        end
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> End {
        self.has_ended = true;
        self.close(out)
    }
}

/// Where a picture is, or all of it, as `OpenRouter` streams it.
fn address(image: &Value) -> Option<&str> {
    let url = image.get("image_url")?.get("url")?.as_str()?;
    (!url.is_empty()).then_some(url)
}

/// Empty lists come with the role, and say nothing.
fn has_tokens(logprobs: &Value) -> bool {
    let has = |key: &str| {
        logprobs
            .get(key)
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
    };
    has("content") || has("refusal")
}

// === what a choice says ===

impl Voice {
    const fn begin(&mut self) -> u32 {
        let part = self.next;
        self.next += 1;
        part
    }

    fn delta(&mut self, delta: ChunkDelta, origin: &Origin, made: &mut usize, out: &mut Out<'_>) {
        let details = delta.reasoning_details.list();
        let plain = delta.reasoning_content.text().or_else(|| delta.reasoning.text());
        let details: Vec<Detail> = details.into_iter().filter_map(Detail::read).collect();
        let has_words = details
            .iter()
            .any(|detail| detail.text.as_ref().is_some_and(|text| !text.is_empty()));
        let is_said_here = plain.is_some();
        if let Some(text) = plain.filter(|_| !has_words) {
            self.think(text, false, None, out);
        }
        for detail in details {
            self.detail(detail, is_said_here, out);
        }
        match delta.content {
            Loose::Text(text) => self.text(text, out),
            Loose::Other(Value::Array(pieces)) => {
                for piece in pieces.into_iter().filter_map(read_piece) {
                    self.piece(piece, out);
                }
            }
            Loose::Nothing | Loose::Other(_) => {}
        }
        if let Some(text) = delta.refusal.text() {
            self.refuse(text, out);
        }
        for image in &delta.images.list() {
            // A stream has no other place for a picture, and a caller who gets none would miss it.
            if let Some(url) = address(image) {
                self.text(format!("![]({url})"), out);
            }
        }
        if let Loose::Other(audio) = delta.audio {
            self.audio(&audio, out);
        }
        for citation in delta.annotations.list().into_iter().filter_map(read_annotation) {
            self.cite(citation, out);
        }
        let calls = delta.tool_calls.unwrap_or_default();
        let of = calls.len();
        let ids = &mut (origin, made);
        for (position, call) in calls.into_iter().enumerate() {
            self.call(call, position, of, ids, out);
        }
        if let Some(function) = delta.function_call {
            let call = CallDelta {
                function: Some(function),
                ..CallDelta::default()
            };
            self.call(call, 0, 1, ids, out);
        }
    }

    fn piece(&mut self, piece: Part, out: &mut Out<'_>) {
        match piece {
            Part::Text { text, .. } => self.text(text, out),
            Part::Thought(thought) if !thought.text.is_empty() => self.think(thought.text, false, None, out),
            Part::Refusal(text) => self.refuse(text, out),
            _ => {}
        }
    }

    fn text(&mut self, text: String, out: &mut Out<'_>) {
        if text.is_empty() {
            return;
        }
        let part = match self.open {
            Open::Text(part) => part,
            _ => self.begin(),
        };
        self.open = Open::Text(part);
        self.text_part = Some(part);
        out.delta(part, Delta::Text(text));
        for citation in mem::take(&mut self.citations) {
            out.delta(part, Delta::Citation(citation));
        }
    }

    fn refuse(&mut self, text: String, out: &mut Out<'_>) {
        let part = match self.open {
            Open::Refusal(part) => part,
            _ => self.begin(),
        };
        self.open = Open::Refusal(part);
        self.had.refusal = true;
        out.delta(part, Delta::Refusal(text));
    }

    fn cite(&mut self, citation: Citation, out: &mut Out<'_>) {
        self.has_citations = true;
        match self.text_part {
            Some(part) => out.delta(part, Delta::Citation(citation)),
            None => self.citations.push(citation),
        }
    }

    fn audio(&mut self, audio: &Value, out: &mut Out<'_>) {
        let text = |key: &str| audio.get(key).and_then(Value::as_str).map(str::to_owned);
        let (base64, transcript) = (text("data").unwrap_or_default(), text("transcript"));
        if base64.is_empty() && transcript.is_none() {
            return;
        }
        let part = match self.open {
            Open::Audio(part) => part,
            _ => self.begin(),
        };
        self.open = Open::Audio(part);
        out.delta(part, Delta::Audio { base64, transcript });
    }

    // === thoughts ===

    /// Goes on with the thought that is open, unless it is another one.
    fn think(&mut self, text: String, is_summary: bool, place: Option<Place>, out: &mut Out<'_>) {
        let part = self.thought(is_summary, place);
        out.delta(part, Delta::Thought { text, is_summary });
    }

    fn thought(&mut self, is_summary: bool, place: Option<Place>) -> u32 {
        if let Open::Thought {
            part,
            is_summary: was_summary,
            place: known,
        } = &mut self.open
        {
            let is_new = *known == Place::default();
            let is_same = place.as_ref().is_none_or(|place| {
                is_new || known.is(place) && *was_summary == is_summary || *place == Place::default()
            });
            if is_same {
                if let Some(place) = place {
                    *known = place;
                }
                return *part;
            }
        }
        let part = self.begin();
        self.is_plain = place.is_none();
        self.open = Open::Thought {
            part,
            is_summary,
            place: place.unwrap_or_default(),
        };
        part
    }

    fn detail(&mut self, detail: Detail, is_said_here: bool, out: &mut Out<'_>) {
        let Detail {
            text,
            is_summary,
            seal,
            is_encrypted,
            place,
        } = detail;
        if is_encrypted {
            let Some(seal) = seal else { return };
            let part = match &self.open {
                Open::Thought { part, place: known, .. } if known.is(&place) => *part,
                _ => {
                    let part = self.begin();
                    out.delta(part, Delta::Redacted);
                    part
                }
            };
            self.open = Open::Nothing;
            return out.delta(part, Delta::Seal(seal));
        }
        let before = self.next;
        let part = self.thought(is_summary, Some(place));
        let is_new = self.next > before;
        // What came as plain text is not said again.
        let text = text.filter(|text| !text.is_empty() && (is_new || is_said_here || !self.is_plain));
        if text.is_some() || is_new {
            let text = text.unwrap_or_default();
            out.delta(part, Delta::Thought { text, is_summary });
        }
        if let Some(seal) = seal {
            self.open = Open::Nothing;
            out.delta(part, Delta::Seal(seal));
        }
    }

    // === calls of tools ===

    fn call(
        &mut self,
        delta: CallDelta,
        position: usize,
        of: usize,
        ids: &mut (&Origin, &mut usize),
        out: &mut Out<'_>,
    ) {
        let is_custom = delta.custom.is_some();
        let Named { name, arguments, input } = delta.custom.or(delta.function).unwrap_or_default();
        let (index, id, name) = (delta.index.count(), delta.id.text(), name.text());
        let at = self.which(index, id.as_deref(), name.is_some(), (position, of));
        let next = self.next;
        let Some(call) = self.calls.get_mut(at) else { return };
        call.id = call.id.take().or(id);
        call.is_custom |= is_custom;
        if let Some(name) = name.filter(|_| call.part.is_none()) {
            let id = call.id.get_or_insert_with(|| ids::made(ids.0, *ids.1)).clone();
            *ids.1 += 1;
            call.part = Some(next);
            let is_custom = call.is_custom;
            self.next += 1;
            self.had.calls = true;
            self.open = Open::Nothing;
            out.delta(next, Delta::Call { id, name, is_custom });
            call.speak(out);
        }
        if let Some(written) = delta.extra_content.value().as_ref().and_then(signature) {
            call.seal = Some(Seal::read(written, Maker::Gemini));
        }
        match if is_custom { input } else { arguments } {
            Loose::Text(text) => call.arguments.push_str(&text),
            // Some write the object itself.
            Loose::Other(value @ Value::Object(_)) => call.arguments.push_str(&value.to_string()),
            Loose::Nothing | Loose::Other(_) => {}
        }
        call.speak(out);
    }

    /// Which call a piece belongs to: by its index, else by its id, else by what it is.
    fn which(&mut self, index: Option<u64>, id: Option<&str>, is_named: bool, place: (usize, usize)) -> usize {
        let known = |call: &CallSoFar| call.id.as_deref() == id;
        let found = match (index, id) {
            (Some(index), _) => {
                let at = self.calls.iter().rposition(|call| call.index == Some(index));
                // Some number all of their calls 0, and tell them apart by id.
                at.filter(|at| {
                    let call = self.calls.get(*at);
                    let is_other = |call: &CallSoFar| call.part.is_some() && id.is_some() && !known(call);
                    !(is_named && call.is_some_and(is_other))
                })
            }
            (None, Some(_)) => self
                .calls
                .iter()
                .rposition(known)
                .or_else(|| self.last().filter(|_| !is_named)),
            (None, None) if is_named => None,
            // Pieces of several calls without a name to them: each at its place.
            (None, None) if place.1 > 1 => Some(place.0).filter(|at| *at < self.calls.len()),
            (None, None) => self.last(),
        };
        found.unwrap_or_else(|| {
            self.calls.push(CallSoFar {
                index,
                ..CallSoFar::default()
            });
            self.calls.len() - 1
        })
    }

    fn last(&self) -> Option<usize> {
        self.calls.len().checked_sub(1)
    }
}

impl CallSoFar {
    /// Says what is to be said of it, once it has begun.
    fn speak(&mut self, out: &mut Out<'_>) {
        let Some(part) = self.part else { return };
        if !self.arguments.is_empty() {
            let arguments = mem::take(&mut self.arguments);
            out.delta(part, Delta::Arguments(arguments));
        }
        if let Some(seal) = self.seal.take() {
            out.delta(part, Delta::Seal(seal));
        }
    }
}
