//! A call whose dialect its upstream does not speak.
//!
//! What every wire does for such a call, in one place: read the caller's front, take out what the wire does not have, write by
//! its back; and on the way home read by the back and write by the front, answer by answer or event by event.

use crate::codec::{Ask, Back, CountBack, EmbedBack, Reader, Writer};
use crate::custom::{self, Restorer};
use crate::failure::bad_answer;
use crate::front::front;
use crate::ir::{Delta, Event};
use crate::notes::Notes;
use crate::openai::embeddings;
use crate::params::{OnUnsupported, WireKind, enforce, refused};
use crate::relay::estimate;
use crate::{Call, Dialect, End, Progress, Reply, StreamDecoder, Surface, Task};
use bytes::Bytes;
use std::sync::Arc;
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

/// The body of a conversation on another wire.
///
/// # Errors
/// When the call cannot be read, or not be expressed there.
pub(crate) fn conversation(
    call: &Call,
    model: &str,
    wire: WireKind,
    back: &dyn Back,
    policy: OnUnsupported,
    notes: &mut Notes,
) -> Result<Vec<u8>, Error> {
    let mut prompt = Arc::unwrap_or_clone(call.prompt()?);
    enforce(&mut prompt, call.surface, wire, policy, notes)?;
    let is_family = wire == WireKind::OpenAi && call.surface.dialect() == Dialect::OpenAi;
    if !is_family {
        for stranger in prompt.strangers.drain(..) {
            if policy == OnUnsupported::Reject {
                return Err(refused(&stranger.field, wire));
            }
            notes.dropped(stranger.field, format!("{} has no such field", wire.as_str()));
        }
    }
    let ask = Ask {
        model,
        surface: call.surface,
        stream: call.stream,
    };
    back.write(&prompt, &ask, notes)
}

/// The body of a count of tokens on another wire.
///
/// # Errors
/// As [`conversation`].
pub(crate) fn count(
    call: &Call,
    model: &str,
    wire: WireKind,
    backs: (&dyn Back, &dyn CountBack),
    policy: OnUnsupported,
    notes: &mut Notes,
) -> Result<Vec<u8>, Error> {
    let body = conversation(call, model, wire, backs.0, policy, notes)?;
    let ask = Ask {
        model,
        surface: call.surface,
        stream: false,
    };
    backs.1.write(body, &ask)
}

/// The body of a request for embeddings on another wire.
///
/// # Errors
/// As [`conversation`].
pub(crate) fn embedding(
    call: &Call,
    model: &str,
    wire: WireKind,
    back: &dyn EmbedBack,
    policy: OnUnsupported,
    notes: &mut Notes,
) -> Result<Vec<u8>, Error> {
    let embed = embeddings::read(call)?;
    for stranger in &embed.strangers {
        if policy == OnUnsupported::Reject {
            return Err(refused(&stranger.field, wire));
        }
        notes.dropped(stranger.field.clone(), format!("{} has no such field", wire.as_str()));
    }
    let ask = Ask {
        model,
        surface: call.surface,
        stream: false,
    };
    back.write(&embed, &ask, notes)
}

/// The caller's answer of an upstream's whole one.
///
/// # Errors
/// When it is a failure in disguise, or no answer at all.
pub(crate) fn answer(call: &Call, back: &dyn Back, body: &[u8]) -> Result<Reply, Error> {
    let mut answer = back.read(body, &call.origin)?;
    custom::restore(&mut answer, call);
    answer.model = Some(call.model.clone());
    let usage = answer.usage;
    let mut notes = Notes::default();
    let body = front(call.surface).write(answer, call, &mut notes);
    Ok(Reply {
        body: body.into(),
        usage,
        notes,
    })
}

/// # Errors
/// As [`answer`].
pub(crate) fn vectors(call: &Call, back: &dyn EmbedBack, body: &[u8]) -> Result<Reply, Error> {
    let embed = embeddings::read(call)?;
    let vectors = back.read(body)?;
    if vectors.vectors.len() != embed.inputs.len() {
        let message = format!(
            "the upstream answered with {} vectors to {} inputs",
            vectors.vectors.len(),
            embed.inputs.len()
        );
        return Err(bad_answer(message));
    }
    let usage = vectors.usage;
    Ok(Reply {
        body: embeddings::write(&vectors, embed.encoding, &call.model).into(),
        usage,
        notes: Notes::default(),
    })
}

/// # Errors
/// As [`answer`].
pub(crate) fn counted(call: &Call, back: &dyn CountBack, body: &[u8]) -> Result<Reply, Error> {
    let usage = back.read(body)?;
    let tokens = usage.prompt.unwrap_or_default();
    Ok(count_reply(call, tokens, Notes::default()))
}

/// An estimate, where the vendor counts none.
pub(crate) fn count_here(call: &Call) -> Option<Reply> {
    if call.surface.task() != Task::Count {
        return None;
    }
    let mut notes = Notes::default();
    let field = if call.surface == Surface::CountTokens {
        "input_tokens"
    } else {
        "totalTokens"
    };
    notes.approximated(
        field,
        "estimated by the gateway: the upstream counts no tokens in advance",
    );
    Some(count_reply(call, call.estimate_tokens(), notes))
}

fn count_reply(call: &Call, tokens: u64, notes: Notes) -> Reply {
    let body = match call.surface.dialect() {
        Dialect::Gemini => format!(r#"{{"totalTokens":{tokens}}}"#),
        Dialect::OpenAi | Dialect::Anthropic => format!(r#"{{"input_tokens":{tokens}}}"#),
    };
    Reply {
        body: body.into(),
        // Nothing was used: it was counted.
        usage: Usage::default(),
        notes,
    }
}

/// Translates one stream.
pub(crate) fn stream(call: &Call, back: &dyn Back) -> Box<dyn StreamDecoder> {
    Box::new(Translator {
        reader: back.reader(&call.origin),
        writer: front(call.surface).writer(call, &call.model),
        custom: Restorer::new(call),
        notes: Notes::default(),
        events: Vec::new(),
        usage: None,
        prompt_bytes: call.prompt_bytes,
        content_bytes: 0,
        ended: false,
    })
}

struct Translator {
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
    custom: Restorer,
    notes: Notes,
    /// Room for the events of a step.
    events: Vec<Event>,
    usage: Option<Usage>,
    prompt_bytes: usize,
    content_bytes: usize,
    ended: bool,
}

impl Translator {
    fn step(&mut self, end: Option<End>) -> Progress {
        let mut progress = Progress::default();
        let mut out = Vec::new();
        if !self.custom.is_idle() {
            let mut restored = Vec::with_capacity(self.events.len());
            for event in self.events.drain(..) {
                self.custom.take(event, &mut restored);
            }
            if end.is_some() {
                self.custom.finish(&mut restored);
            }
            self.events = restored;
        }
        for event in self.events.drain(..) {
            match &event {
                Event::Delta { delta, .. } => {
                    progress.content |= delta.is_content();
                    self.content_bytes += length(delta);
                }
                Event::Usage(usage) => self.usage = Some(*usage),
                Event::Start { usage, .. } if usage.prompt.is_some() => self.usage = Some(*usage),
                _ => {}
            }
            self.writer.write(event, &mut out, &mut self.notes);
        }
        if let Some(end) = end {
            self.ended = true;
            if end == End::Complete {
                self.writer.finish(&mut out, &mut self.notes);
            }
            progress.end = Some(end);
        }
        if !out.is_empty() {
            progress.out.push(out.into());
        }
        progress
    }
}

fn length(delta: &Delta) -> usize {
    match delta {
        Delta::Text(text) | Delta::Refusal(text) | Delta::Thought { text, .. } | Delta::Arguments(text) => text.len(),
        Delta::Call { name, .. } => name.len(),
        Delta::Audio { transcript, .. } => transcript.as_ref().map_or(0, String::len),
        Delta::Redacted | Delta::Seal(_) | Delta::Citation(_) => 0,
    }
}

impl StreamDecoder for Translator {
    fn push(&mut self, bytes: Bytes) -> Progress {
        if self.ended {
            return Progress::default();
        }
        let end = self.reader.push(bytes, &mut self.events);
        self.step(end)
    }

    fn finish(&mut self) -> Progress {
        if self.ended {
            return Progress::default();
        }
        let end = self.reader.finish(&mut self.events);
        self.step(Some(end))
    }

    fn usage(&self) -> Usage {
        let estimated = estimate(self.prompt_bytes, self.content_bytes);
        match self.usage {
            None => estimated,
            // It was given up before its end: what the prompt took was told at the beginning.
            Some(usage) if usage.completion.is_none_or(|count| count == 0) && self.content_bytes > 0 && !self.ended => {
                Usage {
                    completion: estimated.completion,
                    total: usage.prompt.zip(estimated.completion).map(|(a, b)| a.saturating_add(b)),
                    estimated: true,
                    ..usage
                }
            }
            Some(usage) => usage,
        }
    }

    fn notes(&self) -> Option<&Notes> {
        Some(&self.notes)
    }
}
