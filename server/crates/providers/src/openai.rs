//! OpenAI's wire: chat completions and embeddings. Hundreds of upstreams speak it, each with its own accent.

mod stream;

use crate::call::StreamOptions;
use crate::failure::{Said, classify};
use crate::json::{quoted, splice};
use crate::skim::{Skim, Span, Written, Wrong};
use crate::{Call, Reply, StreamDecoder, Surface, Wire};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::mem;
use std::time::SystemTime;
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;
use switchyard_core::usage::Usage;

/// The client's headers that go up. Everything else stays here: credentials and cookies above all.
const CLIENT_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
];

/// What is the same in every request is made once: the addresses, and all headers that are not the client's.
pub struct OpenAi {
    chat: Option<Uri>,
    embeddings: Option<Uri>,
    models: Option<Uri>,
    /// `Bearer …` and the operator's own, marked sensitive.
    headers: HeaderMap,
    headers_for_answers: HeaderMap,
    headers_for_streams: HeaderMap,
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
        let mut own = HeaderMap::new();
        own.extend(authorization.map(|authorization| (header::AUTHORIZATION, authorization)));
        for (name, value) in headers {
            let unusable = || {
                Unusable(format!(
                    "header \"{name}\" cannot be sent: wrong characters in its name or value"
                ))
            };
            let name_parsed: HeaderName = name.parse().map_err(|_| unusable())?;
            let mut value: HeaderValue = value.parse().map_err(|_| unusable())?;
            value.set_sensitive(true);
            own.insert(name_parsed, value);
        }
        let base_url = base_url.trim_end_matches('/');
        let address = |path: &str| format!("{base_url}{path}").parse().ok();
        let accepting = |accept| {
            let mut headers = own.clone();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            headers
        };
        Ok(Self {
            chat: address(Surface::Chat.path()),
            embeddings: address(Surface::Embeddings.path()),
            models: address("/models"),
            headers_for_answers: accepting("application/json"),
            headers_for_streams: accepting("text/event-stream"),
            headers: own,
        })
    }
}

/// Where the parts of an answer stand that are looked at.
#[derive(Default)]
struct ReplyView {
    model: Option<Span>,
    usage: UsageView,
    error: Option<Span>,
    choices: Option<Span>,
    data: Option<Span>,
}

impl ReplyView {
    fn read(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            match key {
                b"model" => skim.fill(&mut self.model, "model")?,
                b"usage" => self.usage.read(skim)?,
                b"error" => skim.fill(&mut self.error, "error")?,
                b"choices" => skim.fill(&mut self.choices, "choices")?,
                b"data" => skim.fill(&mut self.data, "data")?,
                _ => skim.skip()?,
            }
        }
        skim.finish()
    }
}

/// Where the value of a `usage` field stands, and its counts. Whatever it is, it makes no answer wrong.
#[derive(Default)]
struct UsageView {
    span: Option<Span>,
    prompt: Option<Span>,
    completion: Option<Span>,
    total: Option<Span>,
    cached: Option<Span>,
    reasoning: Option<Span>,
    /// Something in it makes no sense, and so none of the rest is to be believed.
    is_odd: bool,
}

impl UsageView {
    fn read(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        skim.once(&mut self.span.is_some(), "usage")?;
        let start = skim.value_start();
        if skim.enter_if(b'{')? {
            let (mut has_input, mut has_output) = (false, false);
            while let Some(key) = skim.any_key()? {
                match key {
                    Some(b"prompt_tokens") => self.is_odd |= !skim.fill_first(&mut self.prompt)?,
                    Some(b"completion_tokens") => self.is_odd |= !skim.fill_first(&mut self.completion)?,
                    Some(b"total_tokens") => self.is_odd |= !skim.fill_first(&mut self.total)?,
                    Some(b"prompt_tokens_details") => {
                        self.is_odd |= mem::replace(&mut has_input, true);
                        self.is_odd |= !read_detail(skim, b"cached_tokens", &mut self.cached)?;
                    }
                    Some(b"completion_tokens_details") => {
                        self.is_odd |= mem::replace(&mut has_output, true);
                        self.is_odd |= !read_detail(skim, b"reasoning_tokens", &mut self.reasoning)?;
                    }
                    key => {
                        self.is_odd |= key.is_none();
                        skim.skip()?;
                    }
                }
            }
        }
        self.span = Some(skim.span_from(start));
        Ok(())
    }

    /// What it says. `None` for `null` and for what is no usage.
    fn usage(&self, document: &[u8]) -> Option<Usage> {
        let count = |span: Option<Span>| match span.map(|span| span.of(document)) {
            Some(count) if !count.is_null() => count.count().map(Some),
            _ => Some(None),
        };
        if self.is_odd || self.span.is_none() {
            return None;
        }
        let (prompt, completion, total) = (count(self.prompt)?, count(self.completion)?, count(self.total)?);
        let (cached, reasoning) = (count(self.cached)?, count(self.reasoning)?);
        if prompt.is_none() && completion.is_none() && total.is_none() {
            return None;
        }
        Some(Usage {
            prompt,
            completion,
            total: total.or_else(|| Some(prompt?.saturating_add(completion?))),
            cached,
            reasoning,
            estimated: false,
        })
    }
}

/// Reads the one detail that counts, of an object or `null`. `false` if that makes no sense.
fn read_detail(skim: &mut Skim<'_>, name: &[u8], slot: &mut Option<Span>) -> Result<bool, Wrong> {
    let start = skim.value_start();
    if !skim.enter_if(b'{')? {
        return Ok(skim.written_from(start).is_null());
    }
    let mut makes_sense = true;
    while let Some(key) = skim.any_key()? {
        if key == Some(name) {
            makes_sense &= skim.fill_first(slot)?;
        } else {
            makes_sense &= key.is_some();
            skim.skip()?;
        }
    }
    Ok(makes_sense)
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
        let address = match call.surface {
            Surface::Chat => &self.chat,
            Surface::Embeddings => &self.embeddings,
        };
        let headers = if call.stream {
            &self.headers_for_streams
        } else {
            &self.headers_for_answers
        };
        let address = address
            .clone()
            .ok_or_else(|| Error::new(Kind::Internal, "the provider's base_url makes no valid address"))?;
        let mut request = http::Request::new(splice(&call.body, edits));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = address;
        *request.headers_mut() = headers.clone();
        let headers = request.headers_mut();
        for name in &CLIENT_HEADERS {
            if let Some(value) = client.get(name).filter(|_| !headers.contains_key(name)) {
                headers.insert(name.clone(), value.clone());
            }
        }
        Ok(request)
    }

    fn list_models(&self) -> Option<http::Request<Bytes>> {
        let mut request = http::Request::new(Bytes::new());
        *request.uri_mut() = self.models.clone()?;
        *request.headers_mut() = self.headers.clone();
        Some(request)
    }

    fn decode(&self, call: &Call, renamed: bool, body: Bytes) -> Result<Reply, Error> {
        let mut skim = Skim::new(&body);
        let mut view = ReplyView::default();
        view.read(&mut skim).map_err(|wrong| {
            let what = skim.explain(wrong);
            bad_answer(format!("the upstream's answer is not valid JSON: {what}"))
        })?;
        let written = |span: Option<Span>| span.map(|span| span.of(&body));
        if let Some(error) = written(view.error).filter(|error| !error.is_null()) {
            return Err(Said::of(error.as_str()).into_error(Some(200)));
        }
        let output = match call.surface {
            Surface::Chat => view.choices,
            Surface::Embeddings => view.data,
        };
        if !written(output).is_some_and(Written::is_list) {
            let field = call.surface.output_field();
            return Err(bad_answer(format!("the upstream's answer has no `{field}`")));
        }
        let usage = view.usage.usage(&body).unwrap_or_default();
        let edits = match view.model {
            Some(model) if renamed => vec![(model.range(), quoted(&call.model))],
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
            let end = memchr::memrchr(b'}', &call.body)?;
            (end..end, br#","stream_options":{"include_usage":true}"#.to_vec())
        }
        StreamOptions::Value(at) => (at.clone(), br#"{"include_usage":true}"#.to_vec()),
        StreamOptions::Object(at) => (*at..*at, br#""include_usage":true,"#.to_vec()),
        StreamOptions::Flag(at) => (at.clone(), b"true".to_vec()),
    })
}

#[cfg(test)]
mod tests;
