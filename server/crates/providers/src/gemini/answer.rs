//! Reads what a model of Google's answers, for callers of other dialects.
//!
//! A stream is a run of answers, each with what is new. There is no event that ends it: an answer is whole when each of its
//! candidates has given a reason for its end, and the connection is closed then. A call of a function comes in one piece.

use super::failure;
use super::told::{Said, block_reason, citations, finish, logprobs, parts, usage};
use crate::codec::Reader;
use crate::failure::bad_answer;
use crate::ir::{Answer, Audio, Call, Choice, Citation, Delta, Event, Finish, Image, Part, Source, Stranger, Thought};
use crate::relay::{cut, endless, unreadable};
use crate::sse::{self, Block, Framer};
use crate::{End, Origin, ids};
use bytes::Bytes;
use serde_json::Value;
use switchyard_core::error::Error;

fn text<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn candidates(answer: &Value) -> impl Iterator<Item = (u32, &Value)> {
    let list = answer.get("candidates").and_then(Value::as_array);
    list.into_iter().flatten().enumerate().map(|(place, candidate)| {
        let index = candidate.get("index").and_then(Value::as_u64);
        let index = index.and_then(|index| u32::try_from(index).ok());
        (
            index.unwrap_or_else(|| u32::try_from(place).unwrap_or(u32::MAX)),
            candidate,
        )
    })
}

/// Reads a whole answer.
pub(super) fn read(body: &[u8], origin: &Origin) -> Result<Answer, Error> {
    if let Some(error) = failure::of_stray(body, Some(200)) {
        return Err(error);
    }
    let answer: Value = serde_json::from_slice(body)
        .map_err(|wrong| bad_answer(format!("the upstream's answer is not valid JSON: {wrong}")))?;
    let mut choices: Vec<(u32, Choice)> = Vec::new();
    let mut calls = 0;
    for (index, candidate) in candidates(&answer) {
        choices.push((index, choice(index, candidate, origin, &mut calls)));
    }
    choices.sort_by_key(|(index, _)| *index);
    let mut choices: Vec<Choice> = choices.into_iter().map(|(_, choice)| choice).collect();
    if choices.is_empty() {
        if block_reason(&answer).is_none() {
            return Err(bad_answer("the upstream's answer has no `candidates`"));
        }
        choices.push(Choice {
            finish: Finish::ContentFilter,
            ..Choice::default()
        });
    }
    Ok(Answer {
        id: text(&answer, "responseId").map(str::to_owned),
        model: text(&answer, "modelVersion").map(str::to_owned),
        created: None,
        choices,
        usage: answer.get("usageMetadata").and_then(usage).unwrap_or_default(),
        service_tier: None,
    })
}

/// What was searched for, and Google's own way to show it, are nobody else's.
const OF_SEARCHES: [&str; 2] = ["webSearchQueries", "searchEntryPoint"];

/// The field of a part that has no place elsewhere. Which part it is of is told by nothing but its place in a piece of a stream.
fn part_field(candidate: u32, name: &str) -> String {
    format!("candidates[{candidate}].content.parts[].{name}")
}

fn grounding_field(candidate: u32, name: &str) -> String {
    format!("candidates[{candidate}].groundingMetadata.{name}")
}

fn choice(index: u32, candidate: &Value, origin: &Origin, calls: &mut usize) -> Choice {
    let mut made: Vec<Part> = Vec::new();
    let mut all = String::new();
    let before = *calls;
    parts(candidate, |said| match said {
        Said::Text(text) => {
            all.push_str(text);
            if let Some(Part::Text { text: so_far, .. }) = made.last_mut() {
                so_far.push_str(text);
            } else {
                made.push(Part::text(text));
            }
        }
        Said::Thought(text) => match made.last_mut() {
            Some(Part::Thought(thought)) if thought.seal.is_none() && !thought.is_redacted => {
                thought.text.push_str(text)
            }
            _ => made.push(Part::Thought(Thought {
                text: text.to_owned(),
                is_summary: true,
                ..Thought::default()
            })),
        },
        Said::Seal(seal) => match made.last_mut() {
            Some(Part::Thought(thought)) if thought.seal.is_none() => thought.seal = Some(seal),
            _ => made.push(Part::Thought(Thought {
                seal: Some(seal),
                is_redacted: true,
                ..Thought::default()
            })),
        },
        Said::Call {
            id,
            name,
            arguments,
            seal,
        } => {
            made.push(Part::Call(Call {
                id: id.map_or_else(|| ids::made(origin, *calls), str::to_owned),
                name: name.to_owned(),
                arguments,
                seal,
                ..Call::default()
            }));
            *calls += 1;
        }
        Said::Data { media_type, base64 } => made.push(data(media_type, base64)),
        Said::Stranger(name, value) => made.push(Part::Stranger(Stranger {
            field: part_field(index, name),
            value: value.clone(),
        })),
    });
    let sources = citations(candidate, &all);
    if !sources.is_empty() {
        let texts = made.iter_mut().rev().find_map(|part| match part {
            Part::Text { citations, .. } => Some(citations),
            _ => None,
        });
        match texts {
            Some(citations) => citations.extend(sources),
            None => made.push(Part::Text {
                text: String::new(),
                citations: sources,
                cache: None,
            }),
        }
    }
    let grounding = candidate.get("groundingMetadata");
    for name in OF_SEARCHES {
        if let Some(value) = grounding.and_then(|grounding| grounding.get(name)) {
            made.push(Part::Stranger(Stranger {
                field: grounding_field(index, name),
                value: value.clone(),
            }));
        }
    }
    let has_calls = *calls > before;
    Choice {
        parts: made,
        finish: finish(text(candidate, "finishReason").unwrap_or("STOP"), has_calls),
        logprobs: logprobs(candidate),
    }
}

fn data(media_type: &str, base64: String) -> Part {
    let source = Source::Data {
        media_type: media_type.to_owned(),
        base64,
    };
    if let Some(format) = media_type.strip_prefix("audio/") {
        return Part::Audio(Audio {
            source,
            format: Some(format.to_owned()),
            transcript: None,
        });
    }
    Part::Image(Image {
        source,
        detail: None,
        cache: None,
    })
}

/// What kind of part is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Thought,
    Audio,
}

/// One candidate on its way.
struct Candidate {
    index: u32,
    open: Open,
    /// The number of the part that is open, and of the next one.
    part: u32,
    next: u32,
    /// All that was said, for the places of sources, which are counted in it.
    text: String,
    told: Vec<Citation>,
    has_calls: bool,
    has_ended: bool,
}

impl Candidate {
    const fn new(index: u32) -> Self {
        Self {
            index,
            open: Open::Nothing,
            part: 0,
            next: 0,
            text: String::new(),
            told: Vec::new(),
            has_calls: false,
            has_ended: false,
        }
    }

    fn delta(&self, delta: Delta, out: &mut Vec<Event>) {
        out.push(Event::Delta {
            choice: self.index,
            part: self.part,
            delta,
        });
    }

    fn close(&mut self, out: &mut Vec<Event>) {
        if self.open != Open::Nothing {
            out.push(Event::End {
                choice: self.index,
                part: self.part,
            });
        }
        self.open = Open::Nothing;
    }

    /// The open part is of this kind from here on.
    fn turn_to(&mut self, kind: Open, out: &mut Vec<Event>) {
        if self.open == kind {
            return;
        }
        self.begin(out);
        self.open = kind;
    }

    fn begin(&mut self, out: &mut Vec<Event>) {
        self.close(out);
        self.part = self.next;
        self.next += 1;
    }

    fn end_part(&self, out: &mut Vec<Event>) {
        out.push(Event::End {
            choice: self.index,
            part: self.part,
        });
    }

    fn take(&mut self, said: Said<'_>, origin: &Origin, calls: &mut usize, out: &mut Vec<Event>) {
        match said {
            Said::Text(text) => {
                self.turn_to(Open::Text, out);
                self.text.push_str(text);
                self.delta(Delta::Text(text.to_owned()), out);
            }
            Said::Thought(text) => {
                self.turn_to(Open::Thought, out);
                let text = text.to_owned();
                self.delta(Delta::Thought { text, is_summary: true }, out);
            }
            Said::Seal(seal) => {
                if self.open == Open::Thought {
                    self.delta(Delta::Seal(seal), out);
                    self.close(out);
                    return;
                }
                self.begin(out);
                self.delta(Delta::Redacted, out);
                self.delta(Delta::Seal(seal), out);
                self.end_part(out);
            }
            Said::Call {
                id,
                name,
                arguments,
                seal,
            } => {
                self.begin(out);
                let call = Delta::Call {
                    id: id.map_or_else(|| ids::made(origin, *calls), str::to_owned),
                    name: name.to_owned(),
                    is_custom: false,
                };
                *calls += 1;
                self.has_calls = true;
                self.delta(call, out);
                self.delta(Delta::Arguments(arguments), out);
                if let Some(seal) = seal {
                    self.delta(Delta::Seal(seal), out);
                }
                self.end_part(out);
            }
            Said::Data { media_type, base64 } if media_type.starts_with("audio/") => {
                self.turn_to(Open::Audio, out);
                let transcript = None;
                self.delta(Delta::Audio { base64, transcript }, out);
            }
            Said::Data { media_type, base64 } => {
                // A stream has no other place for a picture, and a caller who gets none would miss it.
                self.turn_to(Open::Text, out);
                self.delta(Delta::Text(format!("![](data:{media_type};base64,{base64})")), out);
            }
            Said::Stranger(name, _) => out.push(Event::Stranger(part_field(self.index, name))),
        }
    }

    fn sources(&mut self, candidate: &Value, out: &mut Vec<Event>) {
        for citation in citations(candidate, &self.text) {
            // Each piece may tell them all again.
            if self.told.contains(&citation) {
                continue;
            }
            self.told.push(citation.clone());
            // The text that they belong to may have ended: then they stand behind an empty one.
            if self.open != Open::Text {
                self.turn_to(Open::Text, out);
                self.delta(Delta::Text(String::new()), out);
            }
            self.delta(Delta::Citation(citation), out);
        }
    }
}

/// Reads one stream.
pub(super) struct Stream {
    framer: Framer,
    origin: Origin,
    candidates: Vec<Candidate>,
    calls: usize,
    has_begun: bool,
    /// The prompt was not answered, and why is said.
    is_blocked: bool,
    has_content: bool,
    skipped: u32,
}

impl Stream {
    pub(super) fn new(origin: &Origin) -> Self {
        Self {
            framer: Framer::default(),
            origin: origin.clone(),
            candidates: Vec::new(),
            calls: 0,
            has_begun: false,
            is_blocked: false,
            has_content: false,
            skipped: 0,
        }
    }

    fn take(&mut self, block: &Block, out: &mut Vec<Event>) -> Option<End> {
        for frame in &block.frames {
            let frame = block.bytes.get(frame.range.clone()).unwrap_or_default();
            let Some(data) = sse::data(frame) else {
                continue;
            };
            let data = data.trim_ascii();
            if data.is_empty() || data == b"[DONE]" {
                continue;
            }
            let Ok(answer) = serde_json::from_slice::<Value>(data) else {
                // An error may stand there as a document over several lines.
                if let Some(error) = failure::of_stray(frame.trim_ascii(), None) {
                    return Some(End::Failed(error));
                }
                self.skipped += 1;
                continue;
            };
            let is_error = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
            if (is_error(&answer) || answer.get(0).is_some_and(is_error))
                && let Some(error) = failure::of_stray(data, None)
            {
                return Some(End::Failed(error));
            }
            self.take_answer(&answer, out);
        }
        None
    }

    fn take_answer(&mut self, answer: &Value, out: &mut Vec<Event>) {
        let usage = answer.get("usageMetadata").and_then(usage);
        if !self.has_begun {
            self.has_begun = true;
            out.push(Event::Start {
                id: text(answer, "responseId").map(str::to_owned),
                model: text(answer, "modelVersion").map(str::to_owned),
                usage: usage.unwrap_or_default(),
            });
        }
        let Self {
            candidates: known,
            calls,
            origin,
            ..
        } = self;
        for (index, candidate) in candidates(answer) {
            let place = known.iter().position(|known| known.index == index).unwrap_or_else(|| {
                known.push(Candidate::new(index));
                known.len() - 1
            });
            let Some(known) = known.get_mut(place) else {
                continue;
            };
            if known.has_ended {
                continue;
            }
            parts(candidate, |said| known.take(said, origin, calls, out));
            self.has_content |= known.next > 0;
            known.sources(candidate, out);
            let grounding = candidate.get("groundingMetadata");
            for name in OF_SEARCHES {
                if grounding.is_some_and(|grounding| grounding.get(name).is_some()) {
                    out.push(Event::Stranger(grounding_field(index, name)));
                }
            }
            if let Some(value) = logprobs(candidate) {
                out.push(Event::Logprobs { choice: index, value });
            }
            if let Some(reason) = text(candidate, "finishReason") {
                known.has_ended = true;
                known.close(out);
                out.push(Event::Finish {
                    choice: index,
                    finish: finish(reason, known.has_calls),
                });
            }
        }
        if block_reason(answer).is_some() && self.candidates.is_empty() && !self.is_blocked {
            self.is_blocked = true;
            out.push(Event::Finish {
                choice: 0,
                finish: Finish::ContentFilter,
            });
        }
        out.extend(usage.map(Event::Usage));
    }

    fn is_whole(&self) -> bool {
        self.is_blocked || !self.candidates.is_empty() && self.candidates.iter().all(|candidate| candidate.has_ended)
    }
}

impl Reader for Stream {
    fn push(&mut self, bytes: Bytes, out: &mut Vec<Event>) -> Option<End> {
        let Ok(block) = self.framer.push(bytes) else {
            return Some(End::Failed(endless()));
        };
        let end = self.take(&block, out);
        self.framer.reuse(block);
        end
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> End {
        let rest = self.framer.finish();
        // An error may stand there as a whole document, over several lines.
        if let Some(error) = failure::of_stray(rest.bytes.trim_ascii(), None) {
            return End::Failed(error);
        }
        if let Some(end) = self.take(&rest, out) {
            return end;
        }
        if self.is_whole() {
            End::Complete
        } else if self.skipped > 0 && !self.has_content {
            End::Failed(unreadable(self.skipped))
        } else {
            End::Failed(cut())
        }
    }
}
