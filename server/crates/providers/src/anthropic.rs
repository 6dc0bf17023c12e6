//! Anthropic's wire: Messages and the counting of tokens.
//!
//! A call that was written for it is relayed as it came, but for the model's name; one thing more is taken out of it: thoughts
//! of other vendors' models that an earlier turn brought home in this dialect, for which the vendor would refuse all of it.
//! Calls in other dialects are translated.

mod answer;
mod event;
mod fields;
mod messages;
mod model;
mod native;
mod read;
mod reader;
mod usage;
mod write;
mod writer;

use crate::failure::{Said, bad_answer, classify};
use crate::json::{quoted, splice};
use crate::notes::Notes;
use crate::params::WireKind;
use crate::relay::Relay;
use crate::site::{self, Unusable, accepting, own_headers, secret_value};
use crate::skim::{Skim, Span, Written, Wrong};
use crate::{Call, Encoded, Reply, StreamDecoder, Surface, Takes, Terms, Wire, translate};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use messages::Count;
use std::time::SystemTime;
use switchyard_core::error::Error;
use switchyard_core::secret::Secret;
use switchyard_core::usage::Usage;
use usage::Counts;

pub(crate) use messages::Messages;

const KEY: HeaderName = HeaderName::from_static("x-api-key");
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// The client's headers that go up.
const CLIENT_HEADERS: [HeaderName; 2] = [BETA, VERSION];

/// The version that all of this is written for, where nobody asks for another.
const THIS_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The signature of a thought that nobody signed. The dialect's clients expect one, and the mark says that it is none.
const UNSIGNED: &str = "sy.none";

/// Anthropic's wire.
pub struct Anthropic {
    messages: Option<Uri>,
    count: Option<Uri>,
    models: Option<Uri>,
    /// `x-api-key` and the operator's own, marked sensitive.
    headers: HeaderMap,
    headers_for_answers: HeaderMap,
    headers_for_streams: HeaderMap,
}

impl Anthropic {
    /// # Errors
    /// When the credential or a header holds a character that no header may hold.
    pub fn new(base_url: &str, key: Option<&Secret>, headers: &[(String, String)]) -> Result<Self, Unusable> {
        let mut own = HeaderMap::new();
        if let Some(key) = key {
            own.insert(KEY, secret_value("", key)?);
        }
        own.extend(own_headers(headers)?);
        let base_url = base_url.trim_end_matches('/');
        let address = |path: &str| format!("{base_url}{path}").parse().ok();
        Ok(Self {
            messages: address(Surface::Messages.path()),
            count: address(Surface::CountTokens.path()),
            models: address("/models"),
            headers_for_answers: accepting(&own, "application/json"),
            headers_for_streams: accepting(&own, "text/event-stream"),
            headers: own,
        })
    }

    fn post(&self, call: &Call, client: &HeaderMap, body: Bytes) -> Result<http::Request<Bytes>, Error> {
        let is_count = matches!(call.surface, Surface::CountTokens | Surface::GeminiCountTokens);
        let address = if is_count { &self.count } else { &self.messages };
        let own = if call.stream {
            &self.headers_for_streams
        } else {
            &self.headers_for_answers
        };
        let mut request = site::post(address.clone(), own, client, &CLIENT_HEADERS, body)?;
        let headers = request.headers_mut();
        if !own.contains_key(BETA) {
            // There may be several: each names features that the body counts on.
            for more in client.get_all(BETA).iter().skip(1) {
                headers.append(BETA, more.clone());
            }
        }
        headers.entry(VERSION).or_insert(THIS_VERSION);
        Ok(request)
    }
}

/// Where the parts of an answer stand that are looked at.
#[derive(Default)]
struct ReplyView {
    kind: Option<Span>,
    model: Option<Span>,
    content: Option<Span>,
    usage: Option<Span>,
    error: Option<Span>,
    input_tokens: Option<Span>,
}

impl ReplyView {
    fn read(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            match key {
                b"type" => skim.fill(&mut self.kind, "type")?,
                b"model" => skim.fill(&mut self.model, "model")?,
                b"content" => skim.fill(&mut self.content, "content")?,
                b"usage" => skim.fill(&mut self.usage, "usage")?,
                b"error" => skim.fill(&mut self.error, "error")?,
                b"input_tokens" => skim.fill(&mut self.input_tokens, "input_tokens")?,
                _ => skim.skip()?,
            }
        }
        skim.finish()
    }
}

/// An answer to a call of the same dialect.
fn relay(call: &Call, model: &str, body: &Bytes) -> Result<Reply, Error> {
    let mut skim = Skim::new(body);
    let mut view = ReplyView::default();
    view.read(&mut skim).map_err(|wrong| {
        let what = skim.explain(wrong);
        bad_answer(format!("the upstream's answer is not valid JSON: {what}"))
    })?;
    let written = |span: Option<Span>| span.map(|span| span.of(body));
    let is_error = written(view.kind).and_then(|kind| kind.says("error")) == Some(true);
    let error = written(view.error).filter(|error| !error.is_null());
    if is_error || error.is_some() {
        let error = error.map_or("null", Written::as_str);
        return Err(Said::of(error).into_error(Some(200)));
    }
    let is_count = call.surface == Surface::CountTokens;
    let has_output = if is_count {
        written(view.input_tokens).is_some_and(|count| count.count().is_some())
    } else {
        written(view.content).is_some_and(Written::is_list)
    };
    if !has_output {
        let field = call.surface.output_field();
        return Err(bad_answer(format!("the upstream's answer has no `{field}`")));
    }
    let counts = written(view.usage).and_then(|usage| serde_json::from_slice::<Counts>(usage.bytes()).ok());
    let edits = match view.model {
        Some(at) if model != call.model => vec![(at.range(), quoted(&call.model))],
        _ => Vec::new(),
    };
    Ok(Reply {
        body: splice(body, edits),
        usage: if is_count {
            Usage::default()
        } else {
            counts.map(Counts::usage).unwrap_or_default()
        },
        notes: Notes::default(),
    })
}

impl Wire for Anthropic {
    fn kind(&self) -> WireKind {
        WireKind::Anthropic
    }

    fn takes(&self, surface: Surface) -> Takes {
        match surface {
            Surface::Messages | Surface::CountTokens => Takes::Native,
            Surface::Embeddings => Takes::Not,
            Surface::Chat
            | Surface::Completions
            | Surface::Responses
            | Surface::Generate
            | Surface::GeminiCountTokens => Takes::Translated,
        }
    }

    fn encode(&self, call: &Call, model: &str, client: &HeaderMap, terms: &Terms) -> Result<Encoded, Error> {
        let mut notes = Notes::default();
        let (wire, policy) = (WireKind::Anthropic, terms.on_unsupported);
        let body = match call.surface {
            Surface::Messages | Surface::CountTokens => {
                let mut edits = native::without_foreign_thoughts(call, &mut notes);
                if let Some(at) = call.model_at.clone().filter(|_| model != call.model) {
                    edits.push((at, quoted(model)));
                }
                splice(&call.body, edits)
            }
            Surface::GeminiCountTokens => {
                translate::count(call, model, wire, (&Messages, &Count), policy, &mut notes)?.into()
            }
            _ => translate::conversation(call, model, wire, &Messages, policy, &mut notes)?.into(),
        };
        let request = self.post(call, client, body)?;
        Ok(Encoded { request, notes })
    }

    fn list_models(&self) -> Option<http::Request<Bytes>> {
        let mut request = http::Request::new(Bytes::new());
        *request.uri_mut() = self.models.clone()?;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().entry(VERSION).or_insert(THIS_VERSION);
        Some(request)
    }

    fn decode(&self, call: &Call, model: &str, body: Bytes) -> Result<Reply, Error> {
        match call.surface {
            Surface::Messages | Surface::CountTokens => relay(call, model, &body),
            Surface::GeminiCountTokens => translate::counted(call, &Count, &body),
            _ => translate::answer(call, &Messages, &body),
        }
    }

    fn decoder(&self, call: &Call, model: &str) -> Box<dyn StreamDecoder> {
        if call.surface == Surface::Messages {
            let judge = native::Judge::new(call, model != call.model);
            return Box::new(Relay::new(call, judge));
        }
        translate::stream(call, &Messages)
    }

    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
        classify(status, headers, body, now)
    }
}

#[cfg(test)]
mod tests;
