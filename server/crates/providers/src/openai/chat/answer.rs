//! Whole answers: written for callers, and read of upstreams.

use super::details;
use super::doc::{List, Object, data_url};
use super::read::{annotate, audio_type, citation, data_source, signature, thought_text};
use super::usage::{self, Had};
use crate::failure::{Said, bad_answer};
use crate::ids;
use crate::ir::{self, Answer, Audio, Choice, Citation, Finish, Image, Maker, Part, Seal, Source, Thought};
use crate::notes::Notes;
use crate::{Call, Origin};
use serde_json::{Map, Value};
use switchyard_core::error::{Error, Kind};

// === for callers ===

/// The id of an answer: the request's, so that a caller's complaint finds its way. A vendor's id is of another shape.
pub(in crate::openai) fn answer_id(prefix: &str, origin: &Origin) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    prefix.chars().chain(origin.id.chars().filter(plain)).collect()
}

/// Whether a caller offers functions as older clients do, and reads its calls so.
pub(super) fn is_legacy(call: &Call) -> bool {
    // Nearly nobody does, and to see that takes no reading.
    let mentions = memchr::memmem::find(&call.body, br#""functions""#).is_some();
    mentions
        && super::fields::body(call).is_ok_and(|body| {
            let is_there = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
            is_there("functions") && !is_there("tools")
        })
}

pub(super) fn write(answer: &Answer, call: &Call, notes: &mut Notes) -> Vec<u8> {
    let is_legacy = is_legacy(call);
    let mut out = Vec::with_capacity(1024);
    let mut body = Object::open(&mut out);
    body.put("id", &answer_id("chatcmpl-", &call.origin));
    body.put("object", "chat.completion");
    body.put("created", &answer.created.unwrap_or(call.origin.at));
    body.put("model", answer.model.as_ref().unwrap_or(&call.model));
    let mut choices = body.list("choices");
    for (index, choice) in answer.choices.iter().enumerate() {
        let mut out = choices.object();
        out.put("index", &index);
        let mut message = out.object("message");
        let had = write_message(&mut message, &choice.parts, call, is_legacy, notes);
        message.close();
        out.put("logprobs", &choice.logprobs);
        out.put("finish_reason", had.word(&choice.finish, is_legacy, notes));
        out.close();
    }
    choices.close();
    if usage::is_known(&answer.usage) {
        usage::write(body.name("usage"), &answer.usage);
    }
    body.some("service_tier", answer.service_tier.as_deref());
    body.close();
    out
}

/// What was said, sorted as this dialect has it.
#[derive(Default)]
struct Spoken<'a> {
    text: String,
    has_text: bool,
    refusal: Option<String>,
    thoughts: Vec<&'a Thought>,
    calls: Vec<&'a ir::Call>,
    images: Vec<&'a Image>,
    audio: Option<&'a Audio>,
    /// Each with where its text begins and ends, in characters.
    citations: Vec<(&'a Citation, u64, u64)>,
}

impl<'a> Spoken<'a> {
    fn of(parts: &'a [Part], notes: &mut Notes) -> Self {
        let mut spoken = Self::default();
        for part in parts {
            match part {
                Part::Text { text, citations, .. } => spoken.text(text, citations),
                Part::Refusal(text) => spoken.refusal.get_or_insert_default().push_str(text),
                Part::Thought(thought) => spoken.thoughts.push(thought),
                Part::Call(call) => spoken.calls.push(call),
                Part::Image(image) => spoken.images.push(image),
                Part::Audio(audio) => spoken.audio = Some(audio),
                Part::Document(_) => notes.dropped("choices[].message", "an answer has no place for a document"),
                Part::Result(_) => notes.dropped("choices[].message", "the result of a tool that the vendor ran"),
                Part::Stranger(stranger) => notes.dropped(stranger.field.clone(), STRANGER),
            }
        }
        spoken
    }

    fn text(&mut self, text: &str, citations: &'a [Citation]) {
        self.has_text = true;
        if citations.is_empty() {
            return self.text.push_str(text);
        }
        let start = characters(&self.text);
        self.text.push_str(text);
        let end = start + characters(text);
        self.citations
            .extend(citations.iter().map(|citation| (citation, start, end)));
    }
}

pub(super) fn characters(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

fn write_message(message: &mut Object<'_>, parts: &[Part], call: &Call, is_legacy: bool, notes: &mut Notes) -> Had {
    let spoken = Spoken::of(parts, notes);
    message.put("role", "assistant");
    let has_others = !spoken.calls.is_empty() || spoken.refusal.is_some() || spoken.audio.is_some();
    if spoken.has_text || !has_others {
        message.put("content", &spoken.text);
    } else {
        message.put("content", &Value::Null);
    }
    message.put("refusal", &spoken.refusal);
    if !spoken.citations.is_empty() {
        let mut list = message.list("annotations");
        for (citation, start, end) in &spoken.citations {
            write_citation(&mut list, citation, *start, *end, notes);
        }
        list.close();
    }
    write_thoughts(message, &spoken.thoughts);
    if !spoken.images.is_empty() {
        let mut list = message.list("images");
        for image in &spoken.images {
            write_image(&mut list, image);
        }
        list.close();
    }
    if let Some(audio) = spoken.audio {
        write_audio(message, audio, call);
    }
    write_calls(message, &spoken.calls, is_legacy, notes);
    Had {
        calls: !spoken.calls.is_empty(),
        refusal: spoken.refusal.is_some(),
    }
}

fn write_calls(message: &mut Object<'_>, calls: &[&ir::Call], is_legacy: bool, notes: &mut Notes) {
    let Some(first) = calls.first() else { return };
    if is_legacy {
        if calls.len() > 1 {
            notes.dropped(SECOND_CALL.0, SECOND_CALL.1);
        }
        let mut out = message.object("function_call");
        out.put("name", &first.name);
        out.put("arguments", &first.arguments);
        return out.close();
    }
    let mut list = message.list("tool_calls");
    for call in calls {
        let mut out = list.object();
        out.put("id", &call.id);
        let (kind, input) = if call.is_custom {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        out.put("type", kind);
        let mut inner = out.object(kind);
        inner.put("name", &call.name);
        inner.put(input, &call.arguments);
        inner.close();
        if let Some(seal) = &call.seal {
            write_signature(&mut out, seal);
        }
        out.close();
    }
    list.close();
}

pub(super) const STRANGER: &str = "chat completions have no such part in an answer";

pub(super) const SECOND_CALL: (&str, &str) = (
    "function_call",
    "it holds one call, and the model made more; offer `tools` instead of `functions`",
);

/// In the place where Gemini's own endpoint for this dialect has it.
pub(super) fn write_signature(call: &mut Object<'_>, seal: &Seal) {
    let mut extra = call.object("extra_content");
    let mut google = extra.object("google");
    google.put("thought_signature", &seal.write(Maker::Gemini));
    google.close();
    extra.close();
}

fn write_thoughts(message: &mut Object<'_>, thoughts: &[&Thought]) {
    let text: String = thoughts.iter().map(|thought| thought.text.as_str()).collect();
    if !text.is_empty() {
        message.put("reasoning_content", &text);
    }
    if details::needed(thoughts) {
        let mut list = message.list("reasoning_details");
        for (index, thought) in thoughts.iter().enumerate() {
            details::write(&mut list, index, thought);
        }
        list.close();
    }
}

/// Where a citation does not say which words of the answer it belongs to, these are the whole text in which it stands.
pub(super) fn write_citation(list: &mut List<'_>, citation: &Citation, start: u64, end: u64, notes: &mut Notes) {
    let is_ours =
        |raw: &&Value| raw.get("type").is_some_and(|kind| kind == "url_citation") && raw.get("url_citation").is_some();
    if let Some(raw) = citation.raw.as_ref().filter(is_ours) {
        return super::doc::json(list.next(), raw);
    }
    let Some(url) = &citation.url else {
        return notes.dropped(
            "choices[].message.annotations",
            "a citation of a document: only addresses have a place here",
        );
    };
    let mut out = list.object();
    out.put("type", "url_citation");
    let mut inner = out.object("url_citation");
    inner.put("start_index", &citation.start.unwrap_or(start));
    inner.put("end_index", &citation.end.unwrap_or(end));
    inner.put("url", url);
    inner.put("title", citation.title.as_deref().unwrap_or_default());
    inner.some("content", citation.quoted.as_deref());
    inner.close();
    out.close();
}

/// As `OpenRouter` has it: OpenAI's own has no pictures in an answer.
fn write_image(list: &mut List<'_>, image: &Image) {
    let mut out = list.object();
    out.put("type", "image_url");
    let mut inner = out.object("image_url");
    match &image.source {
        Source::Data { media_type, base64 } => data_url(inner.name("url"), media_type, base64),
        Source::Url(place) | Source::File(place) | Source::Text(place) => inner.put("url", place),
    }
    inner.close();
    out.close();
}

fn write_audio(message: &mut Object<'_>, audio: &Audio, call: &Call) {
    let mut out = message.object("audio");
    match &audio.source {
        Source::File(id) => out.put("id", id),
        Source::Data { base64, .. } => {
            out.put("id", &answer_id("audio_", &call.origin));
            out.put("data", base64);
        }
        Source::Url(_) | Source::Text(_) => {}
    }
    out.put("transcript", audio.transcript.as_deref().unwrap_or_default());
    // Nobody keeps it here.
    out.put("expires_at", &call.origin.at);
    out.close();
}

// === of upstreams ===

pub(super) fn read(body: &[u8], origin: &Origin) -> Result<Answer, Error> {
    let document: Value = serde_json::from_slice(body)
        .map_err(|error| bad_answer(format!("the upstream's answer is not valid JSON: {error}")))?;
    let is_error = document.get("object").is_some_and(|kind| kind == "error") || document.is_array();
    if let Some(error) = document.get("error").filter(|error| !error.is_null()) {
        return Err(Said::of(&error.to_string()).into_error(Some(200)));
    }
    let Value::Object(mut answer) = document else {
        let said = Said::of_stray(body).filter(|_| is_error);
        return Err(said.map_or_else(
            || bad_answer("the upstream's answer is no object"),
            |said| said.into_error(Some(200)),
        ));
    };
    if is_error {
        return Err(Said::of(&Value::Object(answer).to_string()).into_error(Some(200)));
    }
    let Some(Value::Array(list)) = answer.get_mut("choices").map(Value::take) else {
        return Err(bad_answer("the upstream's answer has no `choices`"));
    };
    if list.is_empty() {
        return Err(bad_answer(NO_CHOICE));
    }
    let mut choices = Vec::with_capacity(list.len());
    let mut made = 0;
    for choice in list {
        let Value::Object(choice) = choice else {
            return Err(bad_answer("the upstream's answer has a choice that is no object"));
        };
        choices.push(read_choice(choice, origin, &mut made)?);
    }
    // Their own numbers put them into order; those without one stay where they are.
    if choices.iter().all(|(index, _)| index.is_some()) {
        choices.sort_by_key(|(index, _)| *index);
    }
    let mut choices: Vec<Choice> = choices.into_iter().map(|(_, choice)| choice).collect();
    cite_all(&mut choices, &mut answer);
    let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
    Ok(Answer {
        id: text("id"),
        model: text("model"),
        created: answer.get("created").and_then(Value::as_i64),
        choices,
        usage: usage::of_answer(&answer).unwrap_or_default(),
        service_tier: text("service_tier"),
    })
}

fn read_choice(
    mut choice: Map<String, Value>,
    origin: &Origin,
    made: &mut usize,
) -> Result<(Option<u64>, Choice), Error> {
    let word = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
    let error = choice.get("error").filter(|error| !says_nothing(error));
    if word == "error" || error.is_some() {
        let error = error.map(Value::to_string);
        return Err(failed_choice(error.as_deref(), Some(200)));
    }
    let finish = usage::read_finish(word).unwrap_or_default();
    let Some(Value::Object(message)) = choice.get_mut("message").map(Value::take) else {
        return Err(bad_answer("the upstream's answer has a choice without a `message`"));
    };
    let parts = read_message(message, origin, made);
    let had = Had {
        calls: parts.iter().any(|part| matches!(part, Part::Call(_))),
        refusal: parts.iter().any(|part| matches!(part, Part::Refusal(_))),
    };
    // vLLM says which text it stopped at.
    let finish = match choice.get("stop_reason").and_then(Value::as_str) {
        Some(text) if finish == Finish::Stop => Finish::StopSequence(Some(text.to_owned())),
        _ => finish,
    };
    let index = choice.get("index").and_then(Value::as_u64);
    let read = Choice {
        parts,
        finish: had.correct(finish),
        logprobs: choice
            .get_mut("logprobs")
            .map(Value::take)
            .filter(|logprobs| !logprobs.is_null()),
    };
    Ok((index, read))
}

/// An answer of nothing.
pub(in crate::openai) const NO_CHOICE: &str = "the upstream's answer has no choice in `choices`";

/// What a choice means that has ended with the reason "error". Some upstreams say beside it what went wrong.
pub(in crate::openai) fn failed_choice(error: Option<&str>, status: Option<u16>) -> Error {
    if let Some(error) = error {
        return Said::of(error).into_error(status);
    }
    Error {
        status,
        ..Error::new(
            Kind::ServerError,
            "the upstream ended its answer with the reason \"error\"",
        )
    }
}

/// `null` and its like, which stand where there is no error.
pub(super) fn says_nothing(error: &Value) -> bool {
    match error {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn read_message(mut message: Map<String, Value>, origin: &Origin, made: &mut usize) -> Vec<Part> {
    let mut text = |key: &str| match message.get_mut(key).map(Value::take) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    let plain = text("reasoning_content").or_else(|| text("reasoning"));
    let refusal = text("refusal");
    let mut take = |key: &str| message.get_mut(key).map(Value::take).unwrap_or_default();
    let thoughts = details::thoughts(list(take("reasoning_details")), plain);
    let mut parts: Vec<Part> = thoughts.into_iter().map(Part::Thought).collect();
    match take("content") {
        Value::String(text) if !text.is_empty() => parts.push(Part::text(text)),
        Value::Array(pieces) => parts.extend(pieces.into_iter().filter_map(read_piece)),
        _ => {}
    }
    annotate(&mut parts, list(take("annotations")));
    if let Some(refusal) = refusal {
        parts.push(Part::Refusal(refusal));
    }
    parts.extend(list(take("images")).iter().filter_map(read_image));
    parts.extend(read_audio(take("audio")));
    for call in list(take("tool_calls")) {
        parts.extend(read_call(&call, origin, made).map(Part::Call));
    }
    if let Value::Object(function) = take("function_call") {
        let call = Map::from_iter([("function".to_owned(), Value::Object(function))]);
        parts.extend(read_call(&Value::Object(call), origin, made).map(Part::Call));
    }
    parts
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        _ => Vec::new(),
    }
}

/// Content comes in pieces from Mistral, whose thoughts are among them.
pub(super) fn read_piece(piece: Value) -> Option<Part> {
    let Value::Object(mut piece) = piece else {
        return piece.as_str().map(Part::text);
    };
    let kind = piece.get("type").and_then(Value::as_str).unwrap_or("text").to_owned();
    let mut take = |key: &str| piece.get_mut(key).map(Value::take).unwrap_or_default();
    match (kind.as_str(), take("text"), take("thinking"), take("refusal")) {
        ("thinking", _, thought, _) => Some(Part::Thought(Thought {
            text: thought_text(thought),
            ..Thought::default()
        })),
        ("refusal", _, _, Value::String(text)) => Some(Part::Refusal(text)),
        (_, Value::String(text), ..) if !text.is_empty() => Some(Part::text(text)),
        _ => None,
    }
}

fn read_image(image: &Value) -> Option<Part> {
    let url = image.get("image_url")?.get("url")?.as_str()?.to_owned();
    let source = data_source(url).unwrap_or_else(Source::Url);
    Some(Part::Image(Image {
        source,
        detail: None,
        cache: None,
    }))
}

fn read_audio(audio: Value) -> Option<Part> {
    let Value::Object(mut audio) = audio else {
        return None;
    };
    let mut text = |key: &str| match audio.get_mut(key).map(Value::take) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    let source = match text("data") {
        Some(base64) => Source::Data {
            media_type: audio_type("wav"),
            base64,
        },
        None => Source::File(text("id")?),
    };
    Some(Part::Audio(Audio {
        source,
        format: None,
        transcript: text("transcript"),
    }))
}

fn read_call(call: &Value, origin: &Origin, made: &mut usize) -> Option<ir::Call> {
    let is_custom = call.get("custom").is_some_and(Value::is_object);
    let (what, input) = if is_custom {
        ("custom", "input")
    } else {
        ("function", "arguments")
    };
    let inner = call.get(what)?;
    let name = inner.get("name")?.as_str()?.to_owned();
    let arguments = match inner.get(input) {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        // Some write the object itself.
        Some(value @ Value::Object(_)) => value.to_string(),
        _ if is_custom => String::new(),
        _ => "{}".to_owned(),
    };
    let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let id = id.map_or_else(|| ids::made(origin, *made), str::to_owned);
    *made += 1;
    let seal = call.get("extra_content").and_then(signature);
    Some(ir::Call {
        id,
        name,
        arguments,
        is_custom,
        seal: seal.map(|written| Seal::read(written, Maker::Gemini)),
        cache: None,
    })
}

/// Perplexity and xAI cite beside the choices: addresses, without a word of where.
fn cite_all(choices: &mut [Choice], answer: &mut Map<String, Value>) {
    let cited: Vec<Value> = list(answer.get_mut("citations").map(Value::take).unwrap_or_default());
    let results = list(answer.get_mut("search_results").map(Value::take).unwrap_or_default());
    for choice in choices {
        let has_some = choice
            .parts
            .iter()
            .any(|part| matches!(part, Part::Text { citations, .. } if !citations.is_empty()));
        if !has_some {
            annotate(&mut choice.parts, beside(&cited, &results));
        }
    }
}

/// Citations that stand beside the choices, as annotations that any text may have.
pub(super) fn beside(cited: &[Value], results: &[Value]) -> Vec<Value> {
    let title = |url: &str| {
        let of_it = |result: &&Value| result.get("url").is_some_and(|known| known == url);
        results.iter().find(of_it)?.get("title").cloned()
    };
    let annotation = |cited: &Value| {
        let url = cited.as_str().or_else(|| cited.get("url")?.as_str())?;
        let mut inner = Map::from_iter([("url".to_owned(), Value::from(url))]);
        inner.extend(title(url).map(|title| ("title".to_owned(), title)));
        Some(Value::Object(inner))
    };
    cited.iter().filter_map(annotation).collect()
}

/// One annotation, in whatever shape.
pub(super) fn read_annotation(value: Value) -> Option<Citation> {
    value.is_object().then(|| citation(value))
}
