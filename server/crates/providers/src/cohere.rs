//! Cohere's wire, version 2: chat and embeddings.
//!
//! Nobody calls here in this dialect, so every call is translated.

mod chat;
mod embed;

use crate::bedrock::common::Tools;
use crate::failure::classify;
use crate::notes::Notes;
use crate::params::WireKind;
use crate::site::{self, Unusable, accepting, own_headers, secret_value};
use crate::{Call, Encoded, Reply, StreamDecoder, Surface, Takes, Task, Terms, Wire, translate};
use bytes::Bytes;
use chat::Chat;
use embed::Embeddings;
use http::{HeaderMap, StatusCode, Uri, header};
use std::time::SystemTime;
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;

/// Cohere's wire.
pub struct Cohere {
    chat: Option<Uri>,
    embed: Option<Uri>,
    models: Option<Uri>,
    headers: HeaderMap,
    headers_for_answers: HeaderMap,
    headers_for_streams: HeaderMap,
}

impl Cohere {
    /// # Errors
    /// When the credential or a header holds a character that no header may hold.
    pub fn new(base_url: &str, key: Option<&Secret>, headers: &[(String, String)]) -> Result<Self, Unusable> {
        let mut own = HeaderMap::new();
        if let Some(key) = key {
            own.insert(header::AUTHORIZATION, secret_value("Bearer ", key)?);
        }
        own.extend(own_headers(headers)?);
        // Chat and models stand under different versions, so an address that names one says too much.
        let base_url = base_url.trim_end_matches('/');
        let base_url = base_url
            .strip_suffix("/v2")
            .or_else(|| base_url.strip_suffix("/v1"))
            .unwrap_or(base_url);
        let address = |path: &str| format!("{base_url}{path}").parse().ok();
        Ok(Self {
            chat: address("/v2/chat"),
            embed: address("/v2/embed"),
            models: address("/v1/models?page_size=1000"),
            headers_for_answers: accepting(&own, "application/json"),
            headers_for_streams: accepting(&own, "text/event-stream"),
            headers: own,
        })
    }
}

impl Wire for Cohere {
    fn kind(&self) -> WireKind {
        WireKind::Cohere
    }

    fn takes(&self, _surface: Surface) -> Takes {
        Takes::Translated
    }

    fn encode(&self, call: &Call, model: &str, client: &HeaderMap, terms: &Terms) -> Result<Encoded, Error> {
        let mut notes = Notes::default();
        let policy = terms.on_unsupported;
        let (body, address) = match call.surface.task() {
            Task::Converse => {
                let back = Chat::default();
                (
                    translate::conversation(call, model, WireKind::Cohere, &back, policy, &mut notes)?,
                    &self.chat,
                )
            }
            Task::Embed => (
                translate::embedding(call, model, WireKind::Cohere, &Embeddings, policy, &mut notes)?,
                &self.embed,
            ),
            // They are answered here.
            Task::Count => return Err(Error::new(Kind::Unsupported, "Cohere is not asked to count tokens")),
        };
        let headers = if call.stream {
            &self.headers_for_streams
        } else {
            &self.headers_for_answers
        };
        let request = site::post(address.clone(), headers, client, &[], body.into())?;
        Ok(Encoded { request, notes })
    }

    fn answer_here(&self, call: &Call) -> Option<Reply> {
        translate::count_here(call)
    }

    fn list_models(&self) -> Option<http::Request<Bytes>> {
        let mut request = http::Request::new(Bytes::new());
        *request.uri_mut() = self.models.clone()?;
        *request.headers_mut() = self.headers.clone();
        Some(request)
    }

    fn decode(&self, call: &Call, _model: &str, body: Bytes) -> Result<Reply, Error> {
        match call.surface.task() {
            Task::Embed => translate::vectors(call, &Embeddings, &body),
            Task::Converse | Task::Count => {
                translate::answer(call, &Chat::answering(Tools::of(call, chat::LETTERS)), &body)
            }
        }
    }

    fn decoder(&self, call: &Call, _model: &str) -> Box<dyn StreamDecoder> {
        translate::stream(call, &Chat::answering(Tools::of(call, chat::LETTERS)))
    }

    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
        let mut error = classify(status, headers, body, now);
        match status.as_u16() {
            // A key for trying out has so many calls a month, and no more: waiting does not help.
            429 if error.message.contains("/ month") || error.message.contains("per month") => error.kind = Kind::Quota,
            // What was asked, or what would have been answered, is not let through.
            498 => error.kind = Kind::Refused,
            // Cancelled, which was not by us: we would not be here.
            499 => error.kind = Kind::ServerError,
            _ => {}
        }
        error
    }
}

/// A failure under a status of success: no more than a message, as all of this vendor's.
fn failed(message: &str, status: Option<u16>) -> Error {
    let said = serde_json::json!({ "message": message }).to_string();
    crate::failure::Said::of(&said).into_error(status)
}

#[cfg(test)]
mod tests;
