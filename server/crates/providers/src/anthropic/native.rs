//! Messages to Messages: what is relayed, and the little that must differ.

use super::UNSIGNED;
use super::event::{self, View};
use super::usage::Counts;
use crate::failure::Said;
use crate::json::{member, quoted};
use crate::notes::Notes;
use crate::relay::{self, Look, cut};
use crate::{Call, End};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

/// Judges a stream for a relay.
pub(super) struct Judge {
    /// The name to put into the message, as JSON.
    rename: Option<Vec<u8>>,
    counts: Option<Counts>,
    /// The last report came, and is of the whole answer.
    is_counted: bool,
    content_bytes: usize,
    is_finished: bool,
}

impl Judge {
    pub(super) fn new(call: &Call, is_renamed: bool) -> Self {
        Self {
            rename: is_renamed.then(|| quoted(&call.model)),
            counts: None,
            is_counted: false,
            content_bytes: 0,
            is_finished: false,
        }
    }

    fn count(&mut self, raw: Option<&RawValue>) {
        if let Some(counts) = Counts::read(raw) {
            self.counts.get_or_insert_default().update(counts);
        }
    }

    fn look(&mut self, view: &View<'_>, data: &[u8]) -> Look {
        let mut look = Look::default();
        match &*view.kind {
            "message_start" => {
                let message: event::Message<'_> = event::inside(view.message);
                self.count(message.usage);
                if let Some((name, at)) = self.rename.clone().zip(message.model.and_then(|raw| range(data, raw))) {
                    look.edits.push((at, name));
                }
            }
            "content_block_start" => {
                let block: event::Block<'_> = event::inside(view.content_block);
                let texts = [&block.text, &block.thinking, &block.name, &block.data];
                look.content_bytes = texts.into_iter().flatten().map(String::len).sum();
            }
            "content_block_delta" => {
                let delta: event::Delta = event::inside(view.delta);
                look.content_bytes = delta.content_bytes();
            }
            "message_delta" => {
                let delta: event::Delta = event::inside(view.delta);
                self.is_finished |= delta.stop_reason.is_some();
                self.count(view.usage);
                self.is_counted |= view.usage.is_some();
            }
            "message_stop" => look.end = Some(End::Complete),
            // Before content it only keeps a connection alive, and that is done here already.
            "ping" => look.drop = self.content_bytes == 0,
            // An event without a type is none.
            "" => look.drop = true,
            _ => {}
        }
        self.content_bytes += look.content_bytes;
        look
    }
}

impl relay::Judge for Judge {
    fn judge(&mut self, _event: Option<&[u8]>, data: &[u8]) -> Look {
        let Ok(view) = serde_json::from_slice::<View<'_>>(data) else {
            // Some upstreams end every stream as OpenAI does.
            let drop = data.trim_ascii() == b"[DONE]";
            return Look {
                drop,
                unreadable: !drop,
                ..Look::default()
            };
        };
        if matches!(&*view.kind, "error" | "")
            && let Some(said) = Said::of_stray(data)
        {
            return Look::failed(said.into_error(None));
        }
        self.look(&view, data)
    }

    fn usage(&self) -> Option<Usage> {
        let counts = self.counts?;
        Some(if self.is_counted {
            counts.usage()
        } else {
            counts.cut(self.content_bytes)
        })
    }

    fn closed(&mut self) -> Option<Error> {
        (!self.is_finished).then(cut)
    }
}

/// Where a part of a document stands in it.
fn range(document: &[u8], part: &RawValue) -> Option<Range<usize>> {
    let start = (part.get().as_ptr() as usize).checked_sub(document.as_ptr() as usize)?;
    let range = start..start + part.get().len();
    document.get(range.clone()).map(|_| range)
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    data: Option<String>,
}

impl Block<'_> {
    fn is_foreign(&self) -> bool {
        let seal = match &*self.kind {
            "thinking" => &self.signature,
            "redacted_thinking" => &self.data,
            _ => return false,
        };
        seal.as_ref().is_some_and(|seal| seal.starts_with(MARK))
    }
}

/// Begins every seal that another vendor made, and [`UNSIGNED`].
const MARK: &str = "sy.";

/// Takes out thoughts of models of other vendors, which were written into this dialect by an earlier turn: only their makers
/// know their signatures, and this vendor refuses the whole request for one.
pub(super) fn without_foreign_thoughts(call: &Call, notes: &mut Notes) -> Vec<(Range<usize>, Vec<u8>)> {
    debug_assert!(UNSIGNED.starts_with(MARK));
    let body: &[u8] = &call.body;
    if memchr::memmem::find(body, b"\"sy.").is_none() {
        return Vec::new();
    }
    let Ok(view) = serde_json::from_slice::<Body<'_>>(body) else {
        return Vec::new();
    };
    let mut messages = Vec::with_capacity(view.messages.len());
    let (mut is_changed, mut lacks_thought) = (false, false);
    for raw in &view.messages {
        let Some(message) = without_foreign(raw) else {
            // Of an assistant's turn that stays as it is, it is not known whether it has a thought. It is the vendor's to say.
            let role = serde_json::from_str::<Message<'_>>(raw.get()).map(|message| message.role);
            lacks_thought &= role.is_ok_and(|role| role != "assistant");
            messages.push(Cow::Borrowed(raw.get()));
            continue;
        };
        (is_changed, lacks_thought) = (true, true);
        if let Some(message) = message {
            messages.push(Cow::Owned(message));
        }
    }
    let first = view.messages.first().and_then(|raw| range(body, raw));
    let last = view.messages.last().and_then(|raw| range(body, raw));
    let (true, Some((first, last))) = (is_changed && !messages.is_empty(), first.zip(last)) else {
        return Vec::new();
    };
    notes.dropped(
        "messages[].content[].thinking",
        "it is another vendor's, and only its maker takes it back",
    );
    let mut edits = vec![(first.start..last.end, messages.join(",").into_bytes())];
    // A fixed budget demands that the last of the assistant's turns begins with a thought of its own.
    let budget = view
        .thinking
        .filter(|thinking| lacks_thought && event::inside::<Block<'_>>(Some(thinking)).kind == "enabled");
    let at = budget.and_then(|thinking| member(body, "thinking", range(body, thinking)?));
    if let Some(at) = at {
        notes.dropped(
            "thinking",
            "the turn that is carried on has no thoughts of this vendor's, and its models refuse to begin in the middle",
        );
        edits.push((at, Vec::new()));
    }
    edits
}

/// A message without foreign thoughts; `None` if it has none, `Some(None)` if it has nothing else.
fn without_foreign(raw: &RawValue) -> Option<Option<String>> {
    let raw = raw.get();
    let message: Message<'_> = serde_json::from_str(raw).ok()?;
    let content = message.content?;
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let is_kept = |block: &&&RawValue| !event::inside::<Block<'_>>(Some(block)).is_foreign();
    let kept: Vec<&str> = blocks.iter().filter(is_kept).map(|block| block.get()).collect();
    if kept.len() == blocks.len() {
        return None;
    }
    if kept.is_empty() {
        return Some(None);
    }
    let at = range(raw.as_bytes(), content)?;
    let (before, after) = (raw.get(..at.start)?, raw.get(at.end..)?);
    Some(Some(format!("{before}[{}]{after}", kept.join(","))))
}
