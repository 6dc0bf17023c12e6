//! A stream, written for callers.
//!
//! All chunks of a stream begin alike, and that is made once; what most of them say is one text.
//!
//! A thought goes out as `reasoning_content`, piece by piece. Where a seal follows, the whole thought is told once more in
//! `reasoning_details`, with the seal: a client that keeps what it was sent has then, for every thought, its own words and its
//! own seal together, and nothing has to be guessed in the next turn. Summaries are told there from the first piece on, because
//! nothing else tells them from thoughts.

use super::answer::{SECOND_CALL, STRANGER, answer_id, characters, is_legacy, write_citation, write_signature};
use super::details;
use super::doc::{List, Object, json};
use super::usage::{self, Had};
use crate::Call;
use crate::codec::Writer;
use crate::ir::{Delta, Event, Finish, Seal, Thought};
use crate::notes::Notes;
use serde_json::Value;
use switchyard_core::usage::Usage;

const ENDS_OPEN: &[u8] = br#","logprobs":null,"finish_reason":null}"#;

pub(super) struct Speaker {
    /// What every chunk begins with, up to its choices.
    head: Vec<u8>,
    /// What every chunk ends with, from behind its choices.
    tail: &'static [u8],
    wants_usage: bool,
    is_legacy: bool,
    audio_id: String,
    /// A moment that every piece of audio has to name.
    at: i64,
    usage: Usage,
    voices: Vec<Voice>,
}

/// One choice.
struct Voice {
    index: u32,
    has_finished: bool,
    had: Had,
    /// Those that have more to say than their text.
    parts: Vec<(u32, Kind)>,
    calls: u32,
    thoughts: usize,
    has_audio: bool,
    /// Characters of text so far, and where the part began that is being said.
    characters: u64,
    text_part: Option<u32>,
    text_start: u64,
}

enum Kind {
    Thought {
        index: usize,
        thought: Thought,
    },
    Call {
        index: u32,
        is_custom: bool,
        has_arguments: bool,
    },
    /// Older clients hear of one call.
    Unheard,
}

impl Voice {
    const fn new(index: u32) -> Self {
        Self {
            index,
            has_finished: false,
            had: Had {
                calls: false,
                refusal: false,
            },
            parts: Vec::new(),
            calls: 0,
            thoughts: 0,
            has_audio: false,
            characters: 0,
            text_part: None,
            text_start: 0,
        }
    }

    fn part(&mut self, part: u32) -> Option<&mut Kind> {
        // Most often it is the last one.
        let found = self.parts.iter_mut().rev().find(|(number, _)| *number == part);
        found.map(|(_, kind)| kind)
    }

    fn thought(&mut self, part: u32) -> Option<(usize, &mut Thought)> {
        if self.part(part).is_none() {
            let index = self.thoughts;
            let thought = Thought::default();
            self.thoughts += 1;
            self.parts.push((part, Kind::Thought { index, thought }));
        }
        match self.part(part) {
            Some(Kind::Thought { index, thought }) => Some((*index, thought)),
            _ => None,
        }
    }
}

impl Speaker {
    pub(super) fn new(call: &Call, model: &str) -> Self {
        let mut head = b"data: ".to_vec();
        let mut chunk = Object::open(&mut head);
        chunk.put("id", &answer_id("chatcmpl-", &call.origin));
        chunk.put("object", "chat.completion.chunk");
        chunk.put("created", &call.origin.at);
        chunk.put("model", model);
        chunk.name("choices").push(b'[');
        Self {
            head,
            tail: if call.wants_usage {
                b"],\"usage\":null}\n\n"
            } else {
                b"]}\n\n"
            },
            wants_usage: call.wants_usage,
            is_legacy: is_legacy(call),
            audio_id: answer_id("audio_", &call.origin),
            at: call.origin.at,
            usage: Usage::default(),
            voices: Vec::new(),
        }
    }

    /// Appends a chunk of one choice. What is written is the inside of its delta.
    fn chunk(&self, choice: u32, out: &mut Vec<u8>, delta: impl FnOnce(&mut Vec<u8>)) {
        self.open(choice, out);
        delta(out);
        out.push(b'}');
        out.extend_from_slice(ENDS_OPEN);
        out.extend_from_slice(self.tail);
    }

    fn open(&self, choice: u32, out: &mut Vec<u8>) {
        out.reserve(self.head.len() + 128);
        out.extend_from_slice(&self.head);
        out.extend_from_slice(br#"{"index":"#);
        json(out, &choice);
        out.extend_from_slice(br#","delta":{"#);
    }

    /// A chunk with one text in it.
    fn text(&self, choice: u32, name: &[u8], text: &str, out: &mut Vec<u8>) {
        self.chunk(choice, out, |out| {
            out.extend_from_slice(name);
            json(out, text);
        });
    }

    /// The choice's own place, which begins with its role.
    fn voice(&mut self, choice: u32, has_text: bool, out: &mut Vec<u8>) -> usize {
        if let Some(at) = self.voices.iter().position(|voice| voice.index == choice) {
            return at;
        }
        let content: &[u8] = if has_text {
            br#""role":"assistant","content":"""#
        } else {
            br#""role":"assistant","content":null"#
        };
        self.chunk(choice, out, |out| out.extend_from_slice(content));
        self.voices.push(Voice::new(choice));
        self.voices.len() - 1
    }

    fn delta(&mut self, choice: u32, part: u32, delta: Delta, out: &mut Vec<u8>, notes: &mut Notes) {
        let at = self.voice(choice, !matches!(delta, Delta::Call { .. } | Delta::Refusal(_)), out);
        let Some(voice) = self.voices.get_mut(at).filter(|voice| !voice.has_finished) else {
            return;
        };
        match delta {
            Delta::Text(text) => {
                if voice.text_part != Some(part) {
                    voice.text_part = Some(part);
                    voice.text_start = voice.characters;
                }
                voice.characters += characters(&text);
                if !text.is_empty() {
                    self.text(choice, br#""content":"#, &text, out);
                }
            }
            Delta::Refusal(text) => {
                voice.had.refusal = true;
                self.text(choice, br#""refusal":"#, &text, out);
            }
            Delta::Thought { text, is_summary } => self.think(at, part, &text, is_summary, out),
            Delta::Redacted => {
                if let Some((_, thought)) = voice.thought(part) {
                    thought.is_redacted = true;
                }
            }
            Delta::Call { id, name, is_custom } => self.call(at, part, (&id, &name, is_custom), out, notes),
            Delta::Arguments(text) => self.arguments(at, part, &text, out),
            Delta::Seal(seal) => self.seal(at, part, seal, out),
            Delta::Citation(citation) => {
                let (start, end) = (voice.text_start, voice.characters);
                let mut list = Vec::new();
                let mut annotations = List::open(&mut list);
                write_citation(&mut annotations, &citation, start, end, notes);
                annotations.close();
                if list != b"[]" {
                    self.chunk(choice, out, |out| {
                        out.extend_from_slice(br#""annotations":"#);
                        out.extend_from_slice(&list);
                    });
                }
            }
            Delta::Audio { base64, transcript } => self.audio(at, &base64, transcript.as_deref(), out),
        }
    }

    fn think(&mut self, at: usize, part: u32, text: &str, is_summary: bool, out: &mut Vec<u8>) {
        let Some(voice) = self.voices.get_mut(at) else { return };
        let choice = voice.index;
        let Some((index, thought)) = voice.thought(part) else {
            return;
        };
        thought.is_summary |= is_summary;
        thought.text.push_str(text);
        if text.is_empty() {
            return;
        }
        if !thought.is_summary {
            return self.text(choice, br#""reasoning_content":"#, text, out);
        }
        self.chunk(choice, out, |out| {
            out.extend_from_slice(br#""reasoning_content":"#);
            json(out, text);
            out.extend_from_slice(br#","reasoning_details":[{"type":"reasoning.summary","summary":"#);
            json(out, text);
            out.extend_from_slice(br#","index":"#);
            json(out, &index);
            out.extend_from_slice(b"}]");
        });
    }

    fn call(&mut self, at: usize, part: u32, call: (&str, &str, bool), out: &mut Vec<u8>, notes: &mut Notes) {
        let Some(voice) = self.voices.get_mut(at) else { return };
        let (id, name, is_custom) = call;
        let (choice, index) = (voice.index, voice.calls);
        voice.had.calls = true;
        voice.calls += 1;
        if self.is_legacy && index > 0 {
            voice.parts.push((part, Kind::Unheard));
            return notes.dropped(SECOND_CALL.0, SECOND_CALL.1);
        }
        let kind = Kind::Call {
            index,
            is_custom,
            has_arguments: false,
        };
        voice.parts.push((part, kind));
        if self.is_legacy {
            self.chunk(choice, out, |out| {
                out.extend_from_slice(br#""function_call":{"name":"#);
                json(out, name);
                out.extend_from_slice(br#","arguments":""}"#);
            });
            return;
        }
        self.chunk(choice, out, |out| {
            out.extend_from_slice(br#""tool_calls":["#);
            let mut call = Object::open(out);
            call.put("index", &index);
            call.put("id", id);
            let (kind, input) = if is_custom {
                ("custom", "input")
            } else {
                ("function", "arguments")
            };
            call.put("type", kind);
            let mut inner = call.object(kind);
            inner.put("name", name);
            inner.put(input, "");
            inner.close();
            call.close();
            out.push(b']');
        });
    }

    fn arguments(&mut self, at: usize, part: u32, text: &str, out: &mut Vec<u8>) {
        let Some(voice) = self.voices.get_mut(at) else { return };
        let choice = voice.index;
        let Some(Kind::Call {
            index,
            is_custom,
            has_arguments,
        }) = voice.part(part)
        else {
            return;
        };
        if text.is_empty() {
            return;
        }
        *has_arguments = true;
        let (index, is_custom) = (*index, *is_custom);
        if self.is_legacy {
            self.chunk(choice, out, |out| {
                out.extend_from_slice(br#""function_call":{"arguments":"#);
                json(out, text);
                out.push(b'}');
            });
            return;
        }
        let name: &[u8] = if is_custom {
            br#","custom":{"input":"#
        } else {
            br#","function":{"arguments":"#
        };
        self.chunk(choice, out, |out| {
            out.extend_from_slice(br#""tool_calls":[{"index":"#);
            json(out, &index);
            out.extend_from_slice(name);
            json(out, text);
            out.extend_from_slice(b"}}]");
        });
    }

    fn seal(&mut self, at: usize, part: u32, seal: Seal, out: &mut Vec<u8>) {
        let Some(voice) = self.voices.get_mut(at) else { return };
        let choice = voice.index;
        match voice.part(part) {
            Some(Kind::Thought { index, thought }) => {
                thought.seal = Some(seal);
                let (index, thought) = (*index, std::mem::take(thought));
                self.chunk(choice, out, |out| {
                    out.extend_from_slice(br#""reasoning_details":"#);
                    let mut list = List::open(out);
                    match &thought.seal {
                        Some(seal) if thought.is_summary && !thought.text.is_empty() => {
                            details::write_seal(&mut list, index, seal);
                        }
                        _ => details::write(&mut list, index, &thought),
                    }
                    list.close();
                });
            }
            Some(Kind::Call { index, .. }) if !self.is_legacy => {
                let index = *index;
                self.chunk(choice, out, |out| {
                    out.extend_from_slice(br#""tool_calls":["#);
                    let mut call = Object::open(out);
                    call.put("index", &index);
                    call.name("function").extend_from_slice(br#"{"arguments":""}"#);
                    write_signature(&mut call, &seal);
                    call.close();
                    out.push(b']');
                });
            }
            _ => {}
        }
    }

    fn audio(&mut self, at: usize, base64: &str, transcript: Option<&str>, out: &mut Vec<u8>) {
        let Some(voice) = self.voices.get_mut(at) else { return };
        let is_first = !std::mem::replace(&mut voice.has_audio, true);
        let choice = voice.index;
        self.chunk(choice, out, |out| {
            out.extend_from_slice(br#""audio":"#);
            let mut audio = Object::open(out);
            if is_first {
                audio.put("id", &self.audio_id);
                audio.put("expires_at", &self.at);
            }
            audio.some("data", Some(base64).filter(|data| !data.is_empty()));
            audio.some("transcript", transcript);
            audio.close();
        });
    }

    fn end(&mut self, choice: u32, finish: &Finish, out: &mut Vec<u8>, notes: &mut Notes) {
        let at = self.voice(choice, true, out);
        let Some(voice) = self.voices.get_mut(at).filter(|voice| !voice.has_finished) else {
            return;
        };
        voice.has_finished = true;
        let had = voice.had;
        // Of a call without arguments clients read an empty text, and JSON that is not.
        let silent = voice.parts.iter().filter_map(|(part, kind)| match kind {
            Kind::Call {
                has_arguments: false,
                is_custom: false,
                ..
            } => Some(*part),
            _ => None,
        });
        for part in silent.collect::<Vec<_>>() {
            self.arguments(at, part, "{}", out);
        }
        let word = had.word(finish, self.is_legacy, notes);
        self.open(choice, out);
        out.extend_from_slice(br#"},"logprobs":null,"finish_reason":""#);
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(b"\"}");
        out.extend_from_slice(self.tail);
    }

    fn logprobs(&mut self, choice: u32, value: &Value, out: &mut Vec<u8>) {
        self.voice(choice, true, out);
        self.open(choice, out);
        out.extend_from_slice(br#"},"logprobs":"#);
        json(out, value);
        out.extend_from_slice(br#","finish_reason":null}"#);
        out.extend_from_slice(self.tail);
    }
}

impl Writer for Speaker {
    fn write(&mut self, event: Event, out: &mut Vec<u8>, notes: &mut Notes) {
        match event {
            Event::Delta { choice, part, delta } => self.delta(choice, part, delta, out, notes),
            Event::Logprobs { choice, value } => self.logprobs(choice, &value, out),
            Event::Finish { choice, finish } => self.end(choice, &finish, out, notes),
            Event::Start { usage, .. } | Event::Usage(usage) => self.usage = usage,
            Event::Stranger(field) => notes.dropped(field, STRANGER),
            Event::End { .. } | Event::Ping => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>, notes: &mut Notes) {
        if self.voices.is_empty() {
            self.end(0, &Finish::Stop, out, notes);
        }
        let unfinished = self.voices.iter().filter(|voice| !voice.has_finished);
        for (choice, had) in unfinished.map(|voice| (voice.index, voice.had)).collect::<Vec<_>>() {
            self.end(choice, &had.correct(Finish::Stop), out, notes);
        }
        if self.wants_usage {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(br#"],"usage":"#);
            if usage::is_known(&self.usage) {
                usage::write(out, &self.usage);
            } else {
                out.extend_from_slice(b"null");
            }
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}
