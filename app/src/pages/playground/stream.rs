//! The browser's side of a streamed answer: fetch, decode, and hand over.

use super::{
    chunk::Chunk,
    dialect::Dialect,
    sse::Reader,
    talk::Answer,
    wire::{Wire, is_telling},
};
use crate::{api::read::refusal, browser::http};
use js_sys::{Array, Reflect, Uint8Array};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, ReadableStreamDefaultReader, Response, TextDecodeOptions, TextDecoder};

/// Sends what stands in `wire`, keeps there what comes, and adds to `answer` what it says.
///
/// # Errors
/// A sentence: what the gateway or the upstream said, or that the line was cut.
pub async fn read(
    dialect: Dialect,
    wire: RwSignal<Wire>,
    stop: &AbortSignal,
    answer: &ArcRwSignal<Answer>,
    elapsed_ms: impl Fn() -> f64,
) -> Result<(), String> {
    let (path, sent) = wire.with_untracked(|wire| (wire.path.clone(), wire.sent.clone()));
    let response = http::fetch("POST", &path, Some(&sent), dialect.headers(), Some(stop))
        .await
        .map_err(|fault| fault.message)?;
    wire.update(|wire| {
        wire.status = response.status();
        wire.headers = headers(&response);
        answer.update(|Answer { facts, .. }| {
            facts.target = wire.header("x-gateway-target");
            facts.attempts = wire.header("x-gateway-attempts");
            facts.translation = wire.header("x-gateway-translation");
            facts.request_id = wire.header("x-request-id");
        });
    });
    if !response.ok() {
        let body = http::text(&response).await.unwrap_or_default();
        wire.update(|wire| wire.take(&body));
        let fault = refusal(response.status(), &body);
        return Err(format!("{} ({}, {})", fault.message, fault.status, fault.code));
    }

    let cut = || "The line was cut before the answer's end. What came is shown; send again for a whole one.".to_owned();
    let pieces: ReadableStreamDefaultReader = response
        .body()
        .map(|body| body.get_reader())
        .and_then(|reader| reader.dyn_into().ok())
        .ok_or_else(cut)?;
    // A piece may end inside a character: the decoder keeps the rest for the next one.
    let decoder = TextDecoder::new().map_err(|_| cut())?;
    let more = TextDecodeOptions::new();
    more.set_stream(true);

    let mut events = Reader::default();
    loop {
        let piece = JsFuture::from(pieces.read()).await.map_err(|_| cut())?;
        if Reflect::get(&piece, &"done".into()).is_ok_and(|done| done.is_truthy()) {
            break;
        }
        let bytes: Uint8Array = Reflect::get(&piece, &"value".into())
            .ok()
            .and_then(|value| value.dyn_into().ok())
            .ok_or_else(cut)?;
        let text = decoder
            .decode_with_buffer_source_and_options(&bytes, &more)
            .map_err(|_| cut())?;
        let complete = events.push(&text);
        wire.update(|wire| {
            wire.take(&text);
            wire.events += complete.len();
        });
        for event in complete {
            if take(dialect, &event, answer, elapsed_ms())? {
                return Ok(());
            }
        }
    }
    let is_last = match events.finish() {
        Some(event) => take(dialect, &event, answer, elapsed_ms())?,
        None => false,
    };
    // Nothing marks the last event of Gemini's streams, but for a reason that stands in none before it.
    let has_reason = || answer.with_untracked(|answer| answer.facts.finish.is_some());
    if is_last || (dialect == Dialect::Gemini && has_reason()) {
        return Ok(());
    }
    Err(cut())
}

/// Adds an event; says whether it was the last.
fn take(dialect: Dialect, event: &str, answer: &ArcRwSignal<Answer>, elapsed_ms: f64) -> Result<bool, String> {
    let mut chunk = Chunk::read(dialect, event);
    let (error, last) = (chunk.error.take(), chunk.last);
    answer.update(|answer| answer.add(chunk, elapsed_ms));
    error.map_or(Ok(last), Err)
}

/// Those that tell of the call, as the browser lists them: by name.
fn headers(response: &Response) -> Vec<(String, String)> {
    let headers = Array::from(&response.headers());
    let pairs = headers.iter().filter_map(|pair| {
        let pair: Array = pair.dyn_into().ok()?;
        Some((pair.get(0).as_string()?, pair.get(1).as_string()?))
    });
    pairs.filter(|(name, _)| is_telling(name)).collect()
}
