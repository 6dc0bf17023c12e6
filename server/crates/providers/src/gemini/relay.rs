//! Answers for callers who read as Google's models write: looked at, and passed on as they are.

use super::failure;
use super::told::usage;
use crate::failure::bad_answer;
use crate::json::{quoted, splice};
use crate::notes::Notes;
use crate::relay::{self, Look, cut};
use crate::skim::{Skim, Span, Wrong};
use crate::{Call, Reply, Surface};
use bytes::Bytes;
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

/// Where that stands which is looked at, of an answer or a piece of one.
#[derive(Default)]
struct View {
    has_candidates: bool,
    /// Candidates, by their indices, that have ended, and all that were seen.
    ended: u64,
    seen: u64,
    content_bytes: usize,
    usage: Option<Span>,
    model: Option<Span>,
    error: Option<Span>,
    feedback: Option<Span>,
    total_tokens: Option<Span>,
}

impl View {
    fn read(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            match key {
                b"candidates" => self.candidates(skim)?,
                b"usageMetadata" => skim.fill(&mut self.usage, "usageMetadata")?,
                b"modelVersion" => skim.fill(&mut self.model, "modelVersion")?,
                b"error" => skim.fill(&mut self.error, "error")?,
                b"promptFeedback" => skim.fill(&mut self.feedback, "promptFeedback")?,
                b"totalTokens" => skim.fill(&mut self.total_tokens, "totalTokens")?,
                _ => skim.skip()?,
            }
        }
        skim.finish()
    }

    fn candidates(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        if !skim.enter_if(b'[')? {
            return Ok(());
        }
        let mut place = 0;
        while skim.item()? {
            self.candidate(skim, place)?;
            place += 1;
        }
        self.has_candidates |= place > 0;
        Ok(())
    }

    fn candidate(&mut self, skim: &mut Skim<'_>, place: u64) -> Result<(), Wrong> {
        if !skim.enter_if(b'{')? {
            return Ok(());
        }
        let (mut index, mut has_ended) = (place, false);
        while let Some(key) = skim.any_key()? {
            match key {
                Some(b"content") => self.content(skim)?,
                Some(b"finishReason") => {
                    let start = skim.value_start();
                    skim.skip()?;
                    has_ended |= !skim.written_from(start).is_empty();
                }
                Some(b"index") => {
                    let start = skim.value_start();
                    skim.skip()?;
                    index = skim.written_from(start).count().unwrap_or(place);
                }
                _ => skim.skip()?,
            }
        }
        // Nobody asks for so many.
        let bit = 1_u64 << index.min(63);
        self.seen |= bit;
        if has_ended {
            self.ended |= bit;
        }
        Ok(())
    }

    fn content(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        if !skim.enter_if(b'{')? {
            return Ok(());
        }
        while let Some(key) = skim.any_key()? {
            if key != Some(b"parts") {
                skim.skip()?;
                continue;
            }
            if !skim.enter_if(b'[')? {
                continue;
            }
            while skim.item()? {
                self.part(skim)?;
            }
        }
        Ok(())
    }

    /// Whatever a part says is content, but for marks and signatures.
    fn part(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        if !skim.enter_if(b'{')? {
            return Ok(());
        }
        while let Some(key) = skim.any_key()? {
            let is_mark = matches!(key, Some(b"thought" | b"thoughtSignature"));
            let start = skim.value_start();
            skim.skip()?;
            let written = skim.written_from(start);
            if !is_mark && !written.is_empty() {
                self.content_bytes += written.bytes().len();
            }
        }
        Ok(())
    }

    fn usage(&self, document: &[u8]) -> Option<Usage> {
        let written = self.usage?.of(document).bytes();
        // Member by member: what else stands there may be no text that can be read.
        let mut skim = Skim::new(written);
        let mut counts = serde_json::Map::new();
        if !skim.enter_if(b'{').ok()? {
            return None;
        }
        while let Some(key) = skim.any_key().ok()? {
            let name = key.filter(|key| key.ends_with(b"TokenCount") || key.ends_with(b"TokensDetails"));
            let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
            let start = skim.value_start();
            skim.skip().ok()?;
            let value = serde_json::from_slice(skim.written_from(start).bytes());
            if let (Some(name), Ok(value)) = (name, value) {
                counts.insert(name, value);
            }
        }
        usage(&serde_json::Value::Object(counts))
    }

    fn is_error(&self, document: &[u8]) -> bool {
        self.error.is_some_and(|error| !error.of(document).is_null())
    }

    fn is_blocked(&self, document: &[u8]) -> bool {
        let feedback = self.feedback.map(|feedback| feedback.of(document).bytes());
        feedback.is_some_and(|feedback| memchr::memmem::find(feedback, b"\"blockReason\"").is_some())
    }
}

/// A whole answer, with the caller's name for the model where that is another.
pub(super) fn answer(call: &Call, is_renamed: bool, body: &Bytes) -> Result<Reply, Error> {
    let mut view = View::default();
    let mut skim = Skim::new(body);
    if let Err(wrong) = view.read(&mut skim) {
        // An error may stand in a list.
        let error = failure::of_stray(body, Some(200));
        let told = || {
            bad_answer(format!(
                "the upstream's answer is not valid JSON: {}",
                skim.explain(wrong)
            ))
        };
        return Err(error.unwrap_or_else(told));
    }
    if view.is_error(body)
        && let Some(error) = failure::of_stray(body, Some(200))
    {
        return Err(error);
    }
    let is_answer = match call.surface {
        Surface::GeminiCountTokens => view.total_tokens.is_some(),
        _ => view.has_candidates || view.is_blocked(body),
    };
    if !is_answer {
        let field = call.surface.output_field();
        return Err(bad_answer(format!("the upstream's answer has no `{field}`")));
    }
    let edits = view
        .model
        .filter(|_| is_renamed)
        .map(|at| (at.range(), quoted(&call.model)));
    Ok(Reply {
        usage: view.usage(body).unwrap_or_default(),
        body: splice(body, edits.into_iter().collect()),
        notes: Notes::default(),
    })
}

/// Reads the events of one stream.
pub(super) struct Judge {
    rename: Option<Vec<u8>>,
    usage: Option<Usage>,
    ended: u64,
    seen: u64,
    is_blocked: bool,
}

impl Judge {
    pub(super) fn new(call: &Call, is_renamed: bool) -> Self {
        Self {
            rename: is_renamed.then(|| quoted(&call.model)),
            usage: None,
            ended: 0,
            seen: 0,
            is_blocked: false,
        }
    }
}

impl relay::Judge for Judge {
    fn judge(&mut self, _event: Option<&[u8]>, data: &[u8]) -> Look {
        if data.trim_ascii().is_empty() {
            return Look::default();
        }
        let mut view = View::default();
        if view.read(&mut Skim::new(data)).is_err() {
            return match failure::of_stray(data, None) {
                Some(error) => Look::failed(error),
                None if serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok() => Look::default(),
                None => Look::unreadable(),
            };
        }
        if view.is_error(data)
            && let Some(error) = failure::of_stray(data, None)
        {
            return Look::failed(error);
        }
        self.seen |= view.seen;
        self.ended |= view.ended;
        self.is_blocked |= view.is_blocked(data);
        self.usage = view.usage(data).or(self.usage);
        let edit = self
            .rename
            .as_ref()
            .and_then(|name| Some((view.model?.range(), name.clone())));
        Look {
            content_bytes: view.content_bytes,
            edits: edit.into_iter().collect(),
            ..Look::default()
        }
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn closed(&mut self) -> Option<Error> {
        let is_whole = self.is_blocked && self.seen == 0 || self.seen != 0 && self.seen == self.ended;
        (!is_whole).then(cut)
    }
}
