//! OpenAI's wire: chat completions, embeddings, and where the upstream has them completions and Responses. Hundreds of upstreams
//! speak it, each with its own accent.

mod chat;
mod completions;
pub(crate) mod embeddings;
pub(crate) mod responses;
mod stream;

use crate::call::StreamOptions;
use crate::codec::Back;
use crate::failure::{Said, bad_answer, classify};
use crate::json::{quoted, splice};
use crate::notes::Notes;
use crate::params::WireKind;
use crate::relay::Relay;
use crate::site::{self, Unusable, accepting, own_headers, secret_value};
use crate::skim::{Skim, Span, Written, Wrong};
use crate::{Call, Dialect, Encoded, Reply, StreamDecoder, Surface, Takes, Task, Terms, Wire, translate};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use std::mem;
use std::time::SystemTime;
use switchyard_core::error::Error;
use switchyard_core::secret::Secret;
use switchyard_core::usage::Usage;

pub(crate) use chat::Chat;
pub(crate) use completions::Completions;
pub(crate) use responses::Responses;

/// The client's headers that go up. Everything else stays here: credentials and cookies above all.
const CLIENT_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
];

/// What is the same in every request is made once: the addresses, and all headers that are not the client's.
pub struct OpenAi {
    /// The API's, without a slash at its end.
    root: String,
    chat: Option<Uri>,
    completions: Option<Uri>,
    embeddings: Option<Uri>,
    responses: Option<Uri>,
    models: Option<Uri>,
    /// Surfaces that the upstream has itself, besides chat and embeddings.
    serves: Vec<Surface>,
    /// `Bearer …` and the operator's own, marked sensitive.
    headers: HeaderMap,
    headers_for_answers: HeaderMap,
    headers_for_streams: HeaderMap,
}

impl OpenAi {
    /// # Errors
    /// When the credential or a header holds a character that no header may hold.
    pub fn new(base_url: &str, key: Option<&Secret>, headers: &[(String, String)]) -> Result<Self, Unusable> {
        let mut own = HeaderMap::new();
        if let Some(key) = key {
            own.insert(header::AUTHORIZATION, secret_value("Bearer ", key)?);
        }
        own.extend(own_headers(headers)?);
        let base_url = base_url.trim_end_matches('/');
        let address = |path: &str| format!("{base_url}{path}").parse().ok();
        Ok(Self {
            root: base_url.to_owned(),
            chat: address(Surface::Chat.path()),
            completions: address(Surface::Completions.path()),
            embeddings: address(Surface::Embeddings.path()),
            responses: address(Surface::Responses.path()),
            models: address("/models"),
            serves: Vec::new(),
            headers_for_answers: accepting(&own, "application/json"),
            headers_for_streams: accepting(&own, "text/event-stream"),
            headers: own,
        })
    }

    /// Says which surfaces the upstream has itself, besides chat and embeddings. Calls of others are translated.
    #[must_use]
    pub fn serving(mut self, surfaces: &[Surface]) -> Self {
        self.serves = surfaces.to_vec();
        self
    }

    /// The surface by which the upstream is asked, which is the call's own if it has that.
    fn asked_by(&self, surface: Surface, model: &str) -> Surface {
        match surface {
            Surface::Chat | Surface::Embeddings => surface,
            Surface::Completions if completes(model) => surface,
            surface if self.serves.contains(&surface) => surface,
            _ => Surface::Chat,
        }
    }

    /// The same for one call, and the back that writes it if it is translated.
    fn asked(&self, call: &Call, model: &str) -> (Surface, Option<&'static dyn Back>) {
        let surface = self.asked_by(call.surface, model);
        if surface == call.surface {
            return (surface, None);
        }
        let is_foreign = call.surface.dialect() != Dialect::OpenAi && call.surface.task() == Task::Converse;
        if is_foreign
            && self.serves.contains(&Surface::Responses)
            && call.prompt().is_ok_and(|prompt| responses::suits(&prompt, model))
        {
            return (Surface::Responses, Some(&Responses));
        }
        (surface, Some(&Chat))
    }

    fn post(
        &self,
        surface: Surface,
        stream: bool,
        client: &HeaderMap,
        body: Bytes,
    ) -> Result<http::Request<Bytes>, Error> {
        let address = match surface {
            Surface::Embeddings => &self.embeddings,
            Surface::Completions => &self.completions,
            Surface::Responses => &self.responses,
            _ => &self.chat,
        };
        let headers = if stream {
            &self.headers_for_streams
        } else {
            &self.headers_for_answers
        };
        site::post(address.clone(), headers, client, &CLIENT_HEADERS, body)
    }
}

/// Models that have nothing but completions.
fn completes(model: &str) -> bool {
    model.ends_with("-instruct") || model.starts_with("davinci-") || model.starts_with("babbage-")
}

/// Where the parts of an answer stand that are looked at.
#[derive(Default)]
struct ReplyView {
    model: Option<Span>,
    usage: UsageView,
    groq: Option<Span>,
    error: Option<Span>,
    choices: Option<Choices>,
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
                b"choices" => {
                    skim.once(&mut self.choices.is_some(), "choices")?;
                    self.choices = Some(Choices::read(skim)?);
                }
                b"x_groq" => self.groq = usage_of_groq(skim)?.or(self.groq),
                b"data" => skim.fill(&mut self.data, "data")?,
                _ => skim.skip()?,
            }
        }
        skim.finish()
    }
}

/// What has to be known of a list of choices.
#[derive(Default)]
struct Choices {
    is_list: bool,
    is_empty: bool,
    /// One of them says that it failed,
    has_failed: bool,
    /// and how.
    error: Option<Span>,
}

impl Choices {
    fn read(skim: &mut Skim<'_>) -> Result<Self, Wrong> {
        let mut choices = Self {
            is_list: skim.enter_if(b'[')?,
            is_empty: true,
            ..Self::default()
        };
        while choices.is_list && skim.item()? {
            choices.is_empty = false;
            if skim.enter_if(b'{')? {
                choices.read_one(skim)?;
            }
        }
        Ok(choices)
    }

    fn read_one(&mut self, skim: &mut Skim<'_>) -> Result<(), Wrong> {
        while let Some(key) = skim.any_key()? {
            let (is_reason, is_error) = (key == Some(b"finish_reason"), key == Some(b"error"));
            let start = skim.value_start();
            skim.skip()?;
            let value = skim.written_from(start);
            if is_reason && value.says("error") == Some(true) {
                self.has_failed = true;
            } else if is_error && !value.is_empty() {
                self.has_failed = true;
                self.error.get_or_insert(skim.span_from(start));
            }
        }
        Ok(())
    }
}

/// Where Groq's own report of usage stands, in the `x_groq` of a stream's last chunk.
fn usage_of_groq(skim: &mut Skim<'_>) -> Result<Option<Span>, Wrong> {
    let mut usage = None;
    if skim.enter_if(b'{')? {
        while let Some(key) = skim.any_key()? {
            if key == Some(b"usage") {
                usage = Some(skim.value()?);
            } else {
                skim.skip()?;
            }
        }
    }
    Ok(usage)
}

/// Where the value of a `usage` field stands, and its counts. Whatever it is, it makes no answer wrong.
#[derive(Default)]
struct UsageView {
    span: Option<Span>,
    prompt: Option<Span>,
    completion: Option<Span>,
    total: Option<Span>,
    cached: Option<Span>,
    cache_write: Option<Span>,
    audio_prompt: Option<Span>,
    reasoning: Option<Span>,
    audio_completion: Option<Span>,
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
                        let details = &mut [
                            (&b"cached_tokens"[..], &mut self.cached),
                            (b"cache_write_tokens", &mut self.cache_write),
                            (b"audio_tokens", &mut self.audio_prompt),
                        ];
                        self.is_odd |= !read_details(skim, details)?;
                    }
                    Some(b"completion_tokens_details") => {
                        self.is_odd |= mem::replace(&mut has_output, true);
                        let details = &mut [
                            (&b"reasoning_tokens"[..], &mut self.reasoning),
                            (b"audio_tokens", &mut self.audio_completion),
                        ];
                        self.is_odd |= !read_details(skim, details)?;
                    }
                    // DeepSeek's and Moonshot's, and that of proxies before Anthropic.
                    Some(b"prompt_cache_hit_tokens" | b"cached_tokens" | b"cache_read_input_tokens")
                        if self.cached.is_none() =>
                    {
                        self.is_odd |= !skim.fill_first(&mut self.cached)?;
                    }
                    Some(b"cache_creation_input_tokens") if self.cache_write.is_none() => {
                        self.is_odd |= !skim.fill_first(&mut self.cache_write)?;
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

    /// What a document says that is such a value.
    fn usage_of(document: &[u8]) -> Option<Usage> {
        let mut view = Self::default();
        view.read(&mut Skim::new(document)).ok()?;
        view.usage(document)
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
        let (prompt, mut completion, total) = (count(self.prompt)?, count(self.completion)?, count(self.total)?);
        let (cached, reasoning) = (count(self.cached)?, count(self.reasoning)?);
        // xAI counts reasoning beside the completion, and the total tells.
        if let (Some(input), Some(output), Some(thought), Some(all)) = (prompt, completion, reasoning, total) {
            let beside = output.saturating_add(thought);
            if thought > 0 && all == input.saturating_add(beside) {
                completion = Some(beside);
            }
        }
        if prompt.is_none() && completion.is_none() && total.is_none() {
            return None;
        }
        Some(Usage {
            prompt,
            completion,
            total: total.or_else(|| Some(prompt?.saturating_add(completion?))),
            cached,
            cache_write: count(self.cache_write)?,
            audio_prompt: count(self.audio_prompt)?,
            reasoning,
            audio_completion: count(self.audio_completion)?,
            estimated: false,
        })
    }
}

/// Reads the details that count, of an object or `null`. `false` if that makes no sense.
fn read_details(skim: &mut Skim<'_>, details: &mut [(&[u8], &mut Option<Span>)]) -> Result<bool, Wrong> {
    let start = skim.value_start();
    if !skim.enter_if(b'{')? {
        return Ok(skim.written_from(start).is_null());
    }
    let mut makes_sense = true;
    while let Some(key) = skim.any_key()? {
        match details.iter_mut().find(|(name, _)| key == Some(*name)) {
            Some((_, slot)) => makes_sense &= skim.fill_first(slot)?,
            None => {
                makes_sense &= key.is_some();
                skim.skip()?;
            }
        }
    }
    Ok(makes_sense)
}

impl Wire for OpenAi {
    fn kind(&self) -> WireKind {
        WireKind::OpenAi
    }

    fn takes(&self, surface: Surface) -> Takes {
        match surface {
            Surface::Chat | Surface::Embeddings => Takes::Native,
            surface if self.serves.contains(&surface) => Takes::Native,
            _ => Takes::Translated,
        }
    }

    fn encode(&self, call: &Call, model: &str, client: &HeaderMap, terms: &Terms) -> Result<Encoded, Error> {
        let (surface, back) = self.asked(call, model);
        if let Some(back) = back {
            let mut notes = Notes::default();
            let body = translate::conversation(call, model, WireKind::OpenAi, back, terms.on_unsupported, &mut notes)?;
            let request = self.post(surface, call.stream, client, body.into())?;
            return Ok(Encoded { request, notes });
        }
        let mut edits = Vec::new();
        if let Some(at) = call.model_at.clone().filter(|_| model != call.model) {
            edits.push((at, quoted(model)));
        }
        if call.stream {
            edits.extend(ask_for_usage(call));
        }
        if surface == Surface::Responses {
            edits.extend(responses::foreign(call));
        }
        let mut body = splice(&call.body, edits);
        let mut notes = Notes::default();
        if surface == Surface::Chat {
            // An earlier turn may have been answered elsewhere.
            let kept = chat::without_foreign_seals(&body);
            if kept.len() < body.len() {
                notes.dropped("messages[].reasoning_details[].signature", "signed by another vendor");
            }
            body = kept;
        }
        let request = self.post(surface, call.stream, client, body)?;
        Ok(Encoded { request, notes })
    }

    fn pass_on(
        &self,
        method: http::Method,
        path: &str,
        client: &HeaderMap,
        body: Bytes,
    ) -> Option<Result<http::Request<Bytes>, Error>> {
        let address = format!("{}{path}", self.root).parse().ok();
        Some(site::foreign(method, address, &self.headers, client, body))
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

    fn decode(&self, call: &Call, model: &str, body: Bytes) -> Result<Reply, Error> {
        if let (_, Some(back)) = self.asked(call, model) {
            return translate::answer(call, back, &body);
        }
        if call.surface == Surface::Responses {
            return responses::relay(call, model, &body);
        }
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
        let choices = view.choices.unwrap_or_default();
        let is_there = match call.surface.task() {
            Task::Embed => written(view.data).is_some_and(Written::is_list),
            Task::Converse | Task::Count => choices.is_list,
        };
        if !is_there {
            let field = call.surface.output_field();
            return Err(bad_answer(format!("the upstream's answer has no `{field}`")));
        }
        if choices.has_failed {
            let error = written(choices.error).map(Written::as_str);
            return Err(chat::failed_choice(error, Some(200)));
        }
        if choices.is_list && choices.is_empty {
            return Err(bad_answer(chat::NO_CHOICE));
        }
        let groq = || UsageView::usage_of(written(view.groq)?.bytes());
        let usage = view.usage.usage(&body).or_else(groq).unwrap_or_default();
        let edits = match view.model {
            Some(at) if model != call.model => vec![(at.range(), quoted(&call.model))],
            _ => Vec::new(),
        };
        Ok(Reply {
            body: splice(&body, edits),
            usage,
            notes: Notes::default(),
        })
    }

    fn decoder(&self, call: &Call, model: &str) -> Box<dyn StreamDecoder> {
        if let (_, Some(back)) = self.asked(call, model) {
            return translate::stream(call, back);
        }
        let renamed = model != call.model;
        match call.surface {
            Surface::Responses => Box::new(Relay::new(call, responses::Judge::new(call, renamed))),
            _ => Box::new(stream::Decoder::new(call, renamed)),
        }
    }

    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Error {
        classify(status, headers, body, now)
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
