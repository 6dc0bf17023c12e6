//! OpenAI's wire: chat completions and embeddings. Hundreds of upstreams speak it, each with its own accent.

mod stream;

use crate::call::StreamOptions;
use crate::failure::{Said, classify};
use crate::json::{is_null, object, present, quoted, span, splice};
use crate::{Call, Reply, StreamDecoder, Surface, Wire};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::SystemTime;
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;
use switchyard_core::usage::Usage;

/// The client's headers that go up. Everything else stays here: credentials and cookies above all.
const CLIENT_HEADERS: [&str; 3] = ["openai-beta", "openai-organization", "openai-project"];

pub struct OpenAi {
    /// Without a slash at its end.
    base_url: String,
    /// `Bearer …`, marked sensitive.
    authorization: Option<HeaderValue>,
    headers: HeaderMap,
}

/// A setting that cannot become a request.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Unusable(String);

impl OpenAi {
    /// # Errors
    /// When the credential or a header holds a character that no header may hold.
    pub fn new(base_url: &str, key: Option<&Secret>, headers: &[(String, String)]) -> Result<Self, Unusable> {
        let authorization = key
            .map(|key| {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                    .map_err(|_| Unusable("the credential holds a character that no header may hold".to_owned()))?;
                value.set_sensitive(true);
                Ok(value)
            })
            .transpose()?;
        let mut fixed = HeaderMap::new();
        for (name, value) in headers {
            let unusable = || {
                Unusable(format!(
                    "header \"{name}\" cannot be sent: wrong characters in its name or value"
                ))
            };
            let name_parsed: HeaderName = name.parse().map_err(|_| unusable())?;
            let mut value: HeaderValue = value.parse().map_err(|_| unusable())?;
            value.set_sensitive(true);
            fixed.insert(name_parsed, value);
        }
        Ok(Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            authorization,
            headers: fixed,
        })
    }

    fn request(&self, method: http::Method, path: &str, body: Bytes) -> Result<http::Request<Bytes>, Error> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base_url))
            .body(body)
            .map_err(|_| Error::new(Kind::Internal, "the provider's base_url makes no valid address"))?;
        let headers = request.headers_mut();
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        headers.extend(self.headers.clone());
        Ok(request)
    }
}

/// The parts of an answer that are looked at.
#[derive(Deserialize)]
struct ReplyView<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    choices: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    data: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UsageView {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

/// Reads a `usage` value. `None` for `null` and for what is no usage.
fn read_usage(raw: &RawValue) -> Option<Usage> {
    let view: UsageView = serde_json::from_str(raw.get()).ok()?;
    if view.prompt_tokens.is_none() && view.completion_tokens.is_none() && view.total_tokens.is_none() {
        return None;
    }
    Some(Usage {
        prompt: view.prompt_tokens,
        completion: view.completion_tokens,
        total: view
            .total_tokens
            .or_else(|| Some(view.prompt_tokens?.saturating_add(view.completion_tokens?))),
        cached: view.prompt_tokens_details.and_then(|details| details.cached_tokens),
        reasoning: view
            .completion_tokens_details
            .and_then(|details| details.reasoning_tokens),
        estimated: false,
    })
}

impl Wire for OpenAi {
    fn encode(&self, call: &Call, model: &str, client: &HeaderMap) -> Result<http::Request<Bytes>, Error> {
        let mut edits = Vec::new();
        if model != call.model {
            edits.push((call.model_at.clone(), quoted(model)));
        }
        if call.stream {
            edits.extend(ask_for_usage(call));
        }
        let mut request = self.request(http::Method::POST, call.surface.path(), splice(&call.body, edits))?;
        let headers = request.headers_mut();
        for name in CLIENT_HEADERS {
            if let Some(value) = client.get(name).filter(|_| !headers.contains_key(name)) {
                headers.insert(HeaderName::from_static(name), value.clone());
            }
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if call.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        Ok(request)
    }

    fn list_models(&self) -> Option<http::Request<Bytes>> {
        self.request(http::Method::GET, "/models", Bytes::new()).ok()
    }

    fn decode(&self, call: &Call, renamed: bool, body: Bytes) -> Result<Reply, Error> {
        let view: ReplyView<'_> =
            object(&body).map_err(|error| bad_answer(format!("the upstream's answer is not valid JSON: {error}")))?;
        if let Some(error) = view.error.filter(|error| !is_null(error)) {
            return Err(Said::of(error.get()).into_error(Some(200)));
        }
        let output = match call.surface {
            Surface::Chat => view.choices,
            Surface::Embeddings => view.data,
        };
        if output.is_none_or(|raw| !raw.get().trim_start().starts_with('[')) {
            let field = call.surface.output_field();
            return Err(bad_answer(format!("the upstream's answer has no `{field}`")));
        }
        let usage = view.usage.and_then(read_usage).unwrap_or_default();
        let edits = match view.model {
            Some(model) if renamed => vec![(span(&body, model), quoted(&call.model))],
            _ => Vec::new(),
        };
        Ok(Reply {
            body: splice(&body, edits),
            usage,
        })
    }

    fn decoder(&self, call: &Call, renamed: bool) -> Box<dyn StreamDecoder> {
        Box::new(stream::Decoder::new(call, renamed))
    }

    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
        classify(status, headers, body, now)
    }
}

fn bad_answer(message: String) -> Error {
    Error {
        status: Some(200),
        ..Error::new(Kind::BadAnswer, message)
    }
}

/// Usage is always asked of the upstream, so that every stream can be counted; the chunk that the caller did not ask for
/// is taken out again on the way back.
fn ask_for_usage(call: &Call) -> Option<(std::ops::Range<usize>, Vec<u8>)> {
    Some(match &call.stream_options {
        StreamOptions::Asked => return None,
        StreamOptions::Absent => {
            let end = call.body.iter().rposition(|b| *b == b'}')?;
            (end..end, br#","stream_options":{"include_usage":true}"#.to_vec())
        }
        StreamOptions::Value(at) => (at.clone(), br#"{"include_usage":true}"#.to_vec()),
        StreamOptions::Object(at) => (*at..*at, br#""include_usage":true,"#.to_vec()),
        StreamOptions::Flag(at) => (at.clone(), b"true".to_vec()),
    })
}

#[cfg(test)]
mod tests;
