//! The browser's side of a streamed answer: fetch, decode, and hand over.

use super::{chunk::Chunk, sse::Reader, talk::Answer};
use crate::browser::http;
use js_sys::{Reflect, Uint8Array};
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, ReadableStreamDefaultReader, Response, TextDecodeOptions, TextDecoder};

/// Sends `body` and adds to `answer` what comes.
///
/// # Errors
/// A sentence: what the gateway or the upstream said, or that the line was cut.
pub async fn read(
    body: &str,
    stop: &AbortSignal,
    answer: &ArcRwSignal<Answer>,
    elapsed_ms: impl Fn() -> f64,
) -> Result<(), String> {
    let response = http::send("POST", "/v1/chat/completions", Some(body), &[], Some(stop))
        .await
        .map_err(|fault| fault.message)?;
    answer.update(|answer| headers(&response, answer));

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
        for event in events.push(&text) {
            if take(&event, answer, elapsed_ms())? {
                return Ok(());
            }
        }
    }
    match events.finish() {
        Some(event) => take(&event, answer, elapsed_ms()).and_then(|done| if done { Ok(()) } else { Err(cut()) }),
        None => Err(cut()),
    }
}

/// Adds an event; says whether it was the last.
fn take(event: &str, answer: &ArcRwSignal<Answer>, elapsed_ms: f64) -> Result<bool, String> {
    if event == "[DONE]" {
        return Ok(true);
    }
    let mut chunk = Chunk::read(event);
    let error = chunk.error.take();
    answer.update(|answer| answer.add(chunk, elapsed_ms));
    error.map_or(Ok(false), Err)
}

fn headers(response: &Response, answer: &mut Answer) {
    let header = |name| response.headers().get(name).ok().flatten();
    answer.facts.target = header("x-gateway-target");
    answer.facts.attempts = header("x-gateway-attempts");
    answer.facts.request_id = header("x-request-id");
}
