//! Answers of an upstream that has Responses itself, relayed.

use crate::failure::{Said, bad_answer};
use crate::json::{quoted, splice};
use crate::notes::Notes;
use crate::relay::{self, Look};
use crate::skim::{Skim, Span, Written, Wrong};
use crate::{Call, End, Reply};
use bytes::Bytes;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use std::ops::Range;
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

// === requests ===

/// What has to leave a request before the vendor sees it: reasoning of models behind other wires, which the gateway wrote
/// into an earlier answer. The vendor can read none of it, and refuses the whole request for it.
pub(in crate::openai) fn foreign(call: &Call) -> Vec<(Range<usize>, Vec<u8>)> {
    let input = call.input();
    let may_have = |mark: &str| memmem::find(input, mark.as_bytes()).is_some();
    if !input.starts_with(b"[") || !(may_have("\"rs_sy") || may_have("\"sy.")) {
        return Vec::new();
    }
    let mut skim = Skim::new(&call.body);
    let (mut edits, mut items) = (Vec::new(), Vec::new());
    let mut read = || {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            if key != b"input" {
                skim.skip()?;
            } else if skim.enter_if(b'[')? {
                while skim.item()? {
                    items.push(skim.value()?);
                }
            }
        }
        Ok::<_, Wrong>(())
    };
    if read().is_err() {
        return Vec::new();
    }
    // One that goes takes the comma with it that is behind it, and the last ones the comma in front of them.
    let is_foreign: Vec<bool> = items
        .iter()
        .map(|item| is_foreign(item.of(&call.body).as_str()))
        .collect();
    let last_kept = is_foreign.iter().rposition(|is_foreign| !is_foreign);
    for (index, pair) in items.windows(2).enumerate() {
        if let [item, next] = pair
            && is_foreign.get(index) == Some(&true)
            && last_kept.is_some_and(|last| index < last)
        {
            edits.push((item.start..next.start, Vec::new()));
        }
    }
    let rest = match last_kept {
        Some(last) => items.get(last).map(|item| item.end),
        None => items.first().map(|item| item.start),
    };
    if let (Some(start), Some(last)) = (rest, items.last())
        && start < last.end
    {
        edits.push((start..last.end, Vec::new()));
    }
    edits
}

fn is_foreign(item: &str) -> bool {
    #[derive(Deserialize)]
    struct Item {
        #[serde(rename = "type")]
        kind: Option<String>,
        id: Option<String>,
        encrypted_content: Option<String>,
    }
    if !item.contains("reasoning") {
        return false;
    }
    let Ok(item) = serde_json::from_str::<Item>(item) else {
        return false;
    };
    let begins = |text: &Option<String>, mark: &str| text.as_ref().is_some_and(|text| text.starts_with(mark));
    item.kind.as_deref() == Some("reasoning") && (begins(&item.id, "rs_sy") || begins(&item.encrypted_content, "sy."))
}

// === usage ===

/// As it is reported here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Reported {
    input_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<Details>,
    total_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    audio_tokens: Option<u64>,
}

/// What a `usage` says; nothing if it makes no sense.
pub(super) fn usage(json: &str) -> Option<Usage> {
    let reported: Option<Reported> = serde_json::from_str(json).ok()?;
    let reported = reported?;
    let (prompt, completion) = (reported.input_tokens, reported.output_tokens);
    if prompt.is_none() && completion.is_none() && reported.total_tokens.is_none() {
        return None;
    }
    let inputs = reported.input_tokens_details.unwrap_or_default();
    let outputs = reported.output_tokens_details.unwrap_or_default();
    Some(Usage {
        prompt,
        completion,
        total: reported
            .total_tokens
            .or_else(|| Some(prompt?.saturating_add(completion?))),
        cached: inputs.cached_tokens,
        cache_write: inputs.cache_write_tokens,
        audio_prompt: inputs.audio_tokens,
        reasoning: outputs.reasoning_tokens,
        audio_completion: outputs.audio_tokens,
        estimated: false,
    })
}

// === failures ===

/// Codes that say that the request is what is wrong.
const REFUSED: [&str; 3] = ["invalid_prompt", "invalid_request", "bio_policy"];

/// What the `error` of a failed answer means, or an event that is one.
pub(super) fn failure(mut error: Value, status: Option<u16>) -> Error {
    if let Value::Object(error) = &mut error {
        // The event's own type says nothing.
        if error.get("type").is_some_and(|kind| kind == "error") {
            error.shift_remove("type");
        }
    }
    let mut error = Said::of(&error.to_string()).into_error(status);
    let is_named = |code: &String| {
        REFUSED.contains(&code.as_str()) || code.starts_with("invalid_image") || code.starts_with("image_")
    };
    if error.kind == Kind::ServerError && error.upstream_code.as_ref().is_some_and(is_named) {
        error.kind = Kind::Refused;
    }
    error
}

// === answers ===

/// Where the members of an answer stand that are looked at.
#[derive(Default)]
struct View {
    model: Option<Span>,
    status: Option<Span>,
    usage: Option<Span>,
    error: Option<Span>,
    output: Option<Span>,
}

impl View {
    /// Into the object and to its end.
    fn read(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        while let Some(key) = skim.key()? {
            match key {
                b"model" => skim.fill(&mut self.model, "model")?,
                b"status" => skim.fill(&mut self.status, "status")?,
                b"usage" => skim.fill(&mut self.usage, "usage")?,
                b"error" => skim.fill(&mut self.error, "error")?,
                b"output" => skim.fill(&mut self.output, "output")?,
                _ => skim.skip()?,
            }
        }
        Ok(())
    }

    fn usage(&self, document: &[u8]) -> Option<Usage> {
        usage(self.usage?.of(document).as_str())
    }

    /// Why it failed, if it did.
    fn failure(&self, document: &[u8], status: Option<u16>) -> Option<Error> {
        let error = self
            .error
            .map(|error| error.of(document))
            .filter(|error| !error.is_null());
        let has_failed = self
            .status
            .is_some_and(|word| word.of(document).says("failed") == Some(true));
        (error.is_some() || has_failed).then(|| {
            let error = error.and_then(|error| serde_json::from_slice(error.bytes()).ok());
            failure(error.unwrap_or_default(), status)
        })
    }
}

/// An answer of an upstream that has Responses itself.
///
/// # Errors
/// When it is a failure in disguise, or no answer at all.
pub(in crate::openai) fn relay(call: &Call, model: &str, body: &Bytes) -> Result<Reply, Error> {
    let mut skim = Skim::new(body);
    let mut view = View::default();
    skim.enter_object()
        .and_then(|()| view.read(&mut skim))
        .and_then(|()| skim.finish())
        .map_err(|wrong| {
            let what = skim.explain(wrong);
            bad_answer(format!("the upstream's answer is not valid JSON: {what}"))
        })?;
    if let Some(error) = view.failure(body, Some(200)) {
        return Err(error);
    }
    if !view.output.is_some_and(|output| output.of(body).is_list()) {
        return Err(bad_answer("the upstream's answer has no `output`".to_owned()));
    }
    let usage = view.usage(body).unwrap_or_default();
    let edits = match view.model {
        Some(at) if model != call.model => vec![(at.range(), quoted(&call.model))],
        _ => Vec::new(),
    };
    Ok(Reply {
        body: splice(body, edits),
        usage,
        notes: Notes::default(),
    })
}

// === streams ===

/// Reads a stream of an upstream that has Responses itself.
pub(in crate::openai) struct Judge {
    /// The name to put into every event that has one, as JSON.
    rename: Option<Vec<u8>>,
    usage: Option<Usage>,
}

impl Judge {
    pub(in crate::openai) fn new(call: &Call, renamed: bool) -> Self {
        Self {
            rename: renamed.then(|| quoted(&call.model)),
            usage: None,
        }
    }
}

/// Where the members of an event stand that are looked at.
#[derive(Default)]
struct EventView {
    kind: Option<Span>,
    delta: Option<Span>,
    item: Option<Span>,
    error: Option<Span>,
    has_response: bool,
    response: View,
}

impl EventView {
    fn read(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            match key {
                b"type" => skim.fill(&mut self.kind, "type")?,
                b"delta" | b"partial_image_b64" => skim.fill(&mut self.delta, "delta")?,
                b"item" => skim.fill(&mut self.item, "item")?,
                b"error" => skim.fill(&mut self.error, "error")?,
                b"response" => {
                    skim.once(&mut self.has_response, "response")?;
                    if skim.enter_if(b'{')? {
                        self.response.read(skim)?;
                    }
                }
                _ => skim.skip()?,
            }
        }
        skim.finish()
    }
}

impl relay::Judge for Judge {
    fn judge(&mut self, event: Option<&[u8]>, data: &[u8]) -> Look {
        if data.trim_ascii() == b"[DONE]" {
            // Some end so what others end with an event. If that one was there, nobody reads this.
            return Look {
                drop: true,
                ..Look::default()
            };
        }
        let mut view = EventView::default();
        if view.read(&mut Skim::new(data)).is_err() {
            return Look::unreadable();
        }
        let written = |span: Option<Span>| span.map(|span| span.of(data)).filter(|value| !value.is_null());
        let kind = written(view.kind).and_then(Written::text);
        let kind = match &kind {
            Some(kind) => kind.as_bytes(),
            None => event.unwrap_or_default(),
        };
        self.usage = view.response.usage(data).or(self.usage);
        match kind {
            b"error" => {
                let error = match written(view.error) {
                    Some(error) => serde_json::from_slice(error.bytes()),
                    None => serde_json::from_slice(data),
                };
                return Look::failed(failure(error.unwrap_or_default(), None));
            }
            b"response.failed" => {
                let error = view.response.failure(data, None);
                return Look::failed(error.unwrap_or_else(|| failure(Value::Null, None)));
            }
            b"" if written(view.error).is_some() => {
                let error = written(view.error).and_then(|error| serde_json::from_slice(error.bytes()).ok());
                return Look::failed(failure(error.unwrap_or_default(), None));
            }
            _ => {}
        }
        let content_bytes = match kind {
            b"response.output_item.added" => written(view.item).map_or(0, call_bytes),
            b"response.image_generation_call.partial_image" => written(view.delta).map_or(0, text_bytes),
            kind if kind.ends_with(b".delta") => written(view.delta).map_or(0, text_bytes),
            _ => 0,
        };
        let is_last = matches!(
            kind,
            b"response.completed" | b"response.incomplete" | b"response.cancelled"
        );
        let edits = match (&self.rename, view.response.model) {
            (Some(name), Some(at)) => vec![(at.range(), name.clone())],
            _ => Vec::new(),
        };
        Look {
            content_bytes,
            end: is_last.then_some(End::Complete),
            edits,
            ..Look::default()
        }
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn closed(&mut self) -> Option<Error> {
        Some(relay::cut())
    }
}

fn text_bytes(value: Written<'_>) -> usize {
    if value.is_empty() { 0 } else { value.bytes().len() }
}

/// The bytes of an item that is content when it begins: a call of a tool. A message or a thought is still empty.
fn call_bytes(item: Written<'_>) -> usize {
    let mut skim = Skim::new(item.bytes());
    let mut kind = None;
    let mut read = || {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            match key {
                b"type" => skim.fill(&mut kind, "type")?,
                _ => skim.skip()?,
            }
        }
        Ok::<_, Wrong>(())
    };
    if read().is_err() {
        return 0;
    }
    let kind = kind.and_then(|kind| kind.of(item.bytes()).text());
    if kind.is_some_and(|kind| kind.ends_with("_call")) {
        item.bytes().len()
    } else {
        0
    }
}
