//! Gemini's wire, of Google's Gemini API and of Vertex AI.
//!
//! The model and what is asked of it are in the path, so a call in this dialect goes up as the bytes that came in, but for
//! signatures of other vendors. The two services speak the same format in other places: they differ in addresses, in how they
//! know their caller, in embeddings and in how a count of tokens is asked for.

mod address;
mod answer;
mod caller;
mod count;
mod embed;
mod failure;
mod generate;
mod native;
mod relay;
mod reply;
mod request;
mod told;

use crate::json::splice;
use crate::notes::Notes;
use crate::params::WireKind;
use crate::relay::Relay;
use crate::site::{self, Unusable, accepting, own_headers, secret_value};
use crate::skim::{Skim, Span};
use crate::{Call, Encoded, Reply, StreamDecoder, Surface, Takes, Task, Terms, Wire, translate};
use bytes::Bytes;
use count::Count;
use embed::Embedding;
use generate::Service;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, StatusCode, Uri};
use std::sync::Arc;
use std::time::SystemTime;
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;

pub(crate) use generate::Generate;

const API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// How Google knows whose call it is.
#[derive(Clone)]
pub enum GoogleAuth {
    /// Sent as `x-goog-api-key`.
    Key(Secret),
    /// A token that is good for an hour or so, and is fetched elsewhere.
    Token(Arc<dyn Tokens>),
    None,
}

/// Where a token comes from.
pub trait Tokens: Send + Sync {
    /// One that is good now.
    ///
    /// # Errors
    /// When there is none: why.
    fn current(&self) -> Result<Secret, Error>;
}

/// Which of Google's services it is: they differ in paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoogleService {
    /// `{base}/models/{model}:generateContent`
    Gemini,
    /// `{base}/publishers/google/models/{model}:generateContent`, below `…/projects/{project}/locations/{region}`.
    Vertex,
}

/// Gemini's wire, at one address. What is the same in every request is made once.
pub struct Gemini {
    base_url: String,
    service: GoogleService,
    tokens: Option<Arc<dyn Tokens>>,
    models: Option<Uri>,
    /// The key and the operator's own, marked sensitive.
    headers: HeaderMap,
    headers_for_answers: HeaderMap,
    headers_for_streams: HeaderMap,
}

impl Gemini {
    /// # Errors
    /// When the credential or a header holds a character that no header may hold.
    pub fn new(
        base_url: &str,
        service: GoogleService,
        auth: GoogleAuth,
        headers: &[(String, String)],
    ) -> Result<Self, Unusable> {
        let mut own = HeaderMap::new();
        let tokens = match auth {
            GoogleAuth::Key(key) => {
                own.insert(API_KEY, secret_value("", &key)?);
                None
            }
            GoogleAuth::Token(tokens) => Some(tokens),
            GoogleAuth::None => None,
        };
        own.extend(own_headers(headers)?);
        let base_url = base_url.trim_end_matches('/').to_owned();
        Ok(Self {
            models: address::of_listing(&base_url, service),
            headers_for_answers: accepting(&own, "application/json"),
            headers_for_streams: accepting(&own, "text/event-stream"),
            headers: own,
            tokens,
            service,
            base_url,
        })
    }

    fn post(&self, model: &str, method: &str, stream: bool, body: Bytes) -> Result<http::Request<Bytes>, Error> {
        let address = address::of_method(&self.base_url, self.service, model, method)?;
        let headers = if stream {
            &self.headers_for_streams
        } else {
            &self.headers_for_answers
        };
        // None of the client's headers means anything there but its credential, which stays here.
        let mut request = site::post(Some(address), headers, &HeaderMap::new(), &[], body)?;
        self.sign(request.headers_mut())?;
        Ok(request)
    }

    /// The operator's own header goes before a token.
    fn sign(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        let Some(tokens) = self.tokens.as_ref().filter(|_| !headers.contains_key(AUTHORIZATION)) else {
            return Ok(());
        };
        let token = tokens.current()?;
        let value = secret_value("Bearer ", &token).map_err(|wrong| Error::new(Kind::Internal, wrong.to_string()))?;
        headers.insert(AUTHORIZATION, value);
        Ok(())
    }

    /// The body of a count in the caller's own words. It may name the model inside, and then it has to be the same as in the
    /// path; and Vertex AI knows no request within a request.
    fn count_body(&self, call: &Call, model: &str) -> Bytes {
        let Some((whole, named)) = inner_request(&call.body) else {
            return call.body.clone();
        };
        if self.service == GoogleService::Vertex {
            let request = call.body.slice(whole.range());
            let parsed = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&request);
            return parsed.map_or(request, |mut parsed| {
                let known = [
                    "contents",
                    "systemInstruction",
                    "system_instruction",
                    "tools",
                    "generationConfig",
                    "generation_config",
                ];
                parsed.retain(|name, _| known.contains(&name.as_str()));
                serde_json::to_vec(&parsed).unwrap_or_default().into()
            });
        }
        let edit = named.filter(|_| model != call.model).map(|named| {
            let model = model.strip_prefix("models/").unwrap_or(model);
            (named.range(), crate::json::quoted(&format!("models/{model}")))
        });
        splice(&call.body, edit.into_iter().collect())
    }
}

/// Where a request within a request stands, and its model.
fn inner_request(body: &[u8]) -> Option<(Span, Option<Span>)> {
    let mut skim = Skim::new(body);
    let mut found = None;
    skim.enter_object().ok()?;
    while let Some(key) = skim.key().ok()? {
        if !matches!(key, b"generateContentRequest" | b"generate_content_request") {
            skim.skip().ok()?;
            continue;
        }
        let start = skim.value_start();
        let mut model = None;
        if skim.enter_if(b'{').ok()? {
            while let Some(key) = skim.any_key().ok()? {
                if key == Some(b"model") {
                    skim.fill_first(&mut model).ok()?;
                } else {
                    skim.skip().ok()?;
                }
            }
            found = Some((skim.span_from(start), model));
        }
    }
    found
}

impl Wire for Gemini {
    fn kind(&self) -> WireKind {
        WireKind::Gemini
    }

    fn takes(&self, surface: Surface) -> Takes {
        match surface {
            Surface::Generate | Surface::GeminiCountTokens => Takes::Native,
            _ => Takes::Translated,
        }
    }

    fn encode(&self, call: &Call, model: &str, _client: &HeaderMap, terms: &Terms) -> Result<Encoded, Error> {
        let mut notes = Notes::default();
        let back = Service::of(self.service);
        let policy = terms.on_unsupported;
        let (method, body) = match (call.surface, call.surface.task()) {
            (Surface::Generate, _) => {
                let body = native::without_foreign_seals(&call.body, model, &mut notes);
                (generate_method(call.stream), body)
            }
            (Surface::GeminiCountTokens, _) => ("countTokens", self.count_body(call, model)),
            (_, Task::Converse) => {
                let body = translate::conversation(call, model, WireKind::Gemini, back, policy, &mut notes)?;
                (generate_method(call.stream), body.into())
            }
            (_, Task::Count) => {
                let backs = (back as _, Count::at(self.service) as _);
                let body = translate::count(call, model, WireKind::Gemini, backs, policy, &mut notes)?;
                ("countTokens", body.into())
            }
            (_, Task::Embed) => {
                let back = Embedding::of(self.service, model);
                let body = translate::embedding(call, model, WireKind::Gemini, back, policy, &mut notes)?;
                (back.method(), body.into())
            }
        };
        let request = self.post(model, method, call.stream, body)?;
        Ok(Encoded { request, notes })
    }

    fn list_models(&self) -> Option<http::Request<Bytes>> {
        let mut request = http::Request::new(Bytes::new());
        *request.uri_mut() = self.models.clone()?;
        *request.headers_mut() = self.headers.clone();
        self.sign(request.headers_mut()).ok()?;
        Some(request)
    }

    fn decode(&self, call: &Call, model: &str, body: Bytes) -> Result<Reply, Error> {
        match (call.surface, call.surface.task()) {
            (Surface::Generate | Surface::GeminiCountTokens, _) => relay::answer(call, model != call.model, &body),
            (_, Task::Converse) => translate::answer(call, Service::of(self.service), &body),
            (_, Task::Count) => translate::counted(call, Count::at(self.service), &body),
            (_, Task::Embed) => translate::vectors(call, Embedding::of(self.service, model), &body),
        }
    }

    fn decoder(&self, call: &Call, model: &str) -> Box<dyn StreamDecoder> {
        if self.takes(call.surface) == Takes::Native {
            Box::new(Relay::new(call, relay::Judge::new(call, model != call.model)))
        } else {
            translate::stream(call, Service::of(self.service))
        }
    }

    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
        failure::of_answer(status, headers, body, now)
    }
}

const fn generate_method(stream: bool) -> &'static str {
    if stream {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    }
}

#[cfg(test)]
mod tests;
