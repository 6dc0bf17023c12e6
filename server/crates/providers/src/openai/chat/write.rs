//! A request, written for an upstream.
//!
//! Hundreds of upstreams speak this dialect, and its owner is one of them. Where they differ the model's name decides, for want
//! of anything else: OpenAI's own names get what OpenAI has (`developer`, `max_completion_tokens`, `allowed_tools`), and the
//! rest gets what everybody has. In particular:
//!
//! - **Most tokens**: `max_completion_tokens` for OpenAI's own models, whose reasoning ones refuse `max_tokens`; `max_tokens` for
//!   all others, many of which know no other name.
//! - **Texts** of a message are one text, with a blank line between them, unless there is something else among them: there are
//!   upstreams that take nothing but a text.
//! - **Thoughts** go up as `reasoning_content` with the calls that followed them, which `DeepSeek`, Moonshot and others want to see
//!   again; never to OpenAI, which has no such field. Seals go up as `reasoning_details` and `extra_content` to a model whose
//!   maker is the seal's: one called `…gemini…` or `…claude…`, or, for OpenAI's seals, one called `openai/…` or as OpenAI's own.
//! - **Tools that take any text** are functions with one text, `input`, for all but OpenAI.
//! - **Pictures in results of tools** follow in a message of the user: a `tool` message takes only text.
//!
//! A prompt that came in this dialect is written as it was, with its strangers where they stood.

use super::details;
use super::doc::{self, List, Object, data_url};
use super::read::{Step, path};
use crate::Surface;
use crate::codec::Ask;
use crate::ir::{
    self, Citation, Document, Effort, Format, Image, Maker, Message, Part, Prompt, Reasoning, ResultOf, Role, Source,
    Thought, Tool, ToolChoice, ToolKind,
};
use crate::names::{self, OfTool, Spot, Thing};
use crate::notes::Notes;
use crate::params::Param;
use crate::{custom, ids};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::borrow::Cow;
use switchyard_core::error::{Error, Kind};

/// OpenAI takes no longer id of a call.
const LONGEST_ID: usize = 40;

/// It takes no more texts to stop at.
const MOST_STOPS: usize = 4;

pub(super) fn write(prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
    let mut writer = Writer {
        to: To::of(ask),
        surface: ask.surface,
        spot: Spot::anywhere(ask.surface),
        notes,
    };
    let mut out = Vec::with_capacity(1024);
    let mut body = Object::open(&mut out);
    body.put("model", ask.model);
    writer.messages(&mut body, &prompt.messages)?;
    writer.tools(&mut body, prompt)?;
    writer.sampling(&mut body, prompt);
    writer.manner(&mut body, prompt);
    if ask.stream {
        body.put("stream", &true);
        body.name("stream_options")
            .extend_from_slice(br#"{"include_usage":true}"#);
    }
    let nested = writer.strangers(&mut body, prompt);
    body.close();
    Ok(if nested.is_empty() {
        out
    } else {
        writer.put_back(out, prompt, &nested)
    })
}

/// Who is written to.
#[derive(Clone, Copy, Debug)]
struct To {
    /// One of OpenAI's own models.
    is_own: bool,
    /// One of them that does not reason, and refuses to be told how hard to.
    never_reasons: bool,
    /// It came in this dialect.
    is_chat: bool,
    /// Whose seals are of use there.
    maker: Option<Maker>,
}

impl To {
    fn of(ask: &Ask<'_>) -> Self {
        let name = ask.model.to_ascii_lowercase();
        let is_own = is_own(&name);
        let maker = if name.contains("claude") {
            Some(Maker::Anthropic)
        } else if name.contains("gemini") {
            Some(Maker::Gemini)
        } else {
            // A vendor of many puts the maker in front, and `deepseek/…` can read nothing of OpenAI's.
            (is_own || name.starts_with("openai/")).then_some(Maker::OpenAi)
        };
        Self {
            is_own,
            never_reasons: never_reasons(&name),
            is_chat: ask.surface == Surface::Chat,
            maker,
        }
    }

    /// Tools that take any text are OpenAI's alone.
    const fn has_custom(self) -> bool {
        self.is_own || self.is_chat
    }

    /// Marks for a cache are written where they are understood.
    fn caches(self) -> bool {
        self.is_chat || self.maker == Some(Maker::Anthropic)
    }
}

/// One of OpenAI's own models by its name. Those whose weights are open are served by others.
fn is_own(name: &str) -> bool {
    let name = name.strip_prefix("openai/").unwrap_or(name);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let is_numbered = name
        .strip_prefix('o')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let families = ["gpt-", "chatgpt-", "codex-", "computer-use-preview"];
    (is_numbered || families.iter().any(|family| name.starts_with(family))) && !name.starts_with("gpt-oss")
}

fn never_reasons(name: &str) -> bool {
    let name = name.strip_prefix("openai/").unwrap_or(name);
    ["gpt-3.5", "gpt-4", "chatgpt-", "ft:gpt-3.5", "ft:gpt-4"]
        .iter()
        .any(|family| name.starts_with(family))
}

struct Writer<'a> {
    to: To,
    surface: Surface,
    /// Where the message stands that is written.
    spot: Spot,
    notes: &'a mut Notes,
}

impl Writer<'_> {
    fn refused(&self, thing: Thing, what: &str) -> Error {
        let field = self.spot.name(thing);
        Error::new(Kind::Unsupported, format!("`{field}`: {what}")).with_param(field)
    }

    // === messages ===

    fn messages(&mut self, body: &mut Object<'_>, messages: &[Message]) -> Result<(), Error> {
        let mut list = body.list("messages");
        // What results of tools show, until the last of them has been written: they must stand together.
        let mut shown: Vec<(&ResultOf, &Part)> = Vec::new();
        for message in messages {
            self.spot = Spot::of(message, self.surface);
            let is_result = message.parts.iter().any(|part| matches!(part, Part::Result(_)));
            if !is_result {
                self.show(&mut list, &mut shown)?;
            }
            for part in &message.parts {
                if let Part::Result(result) = part {
                    self.result(&mut list, result, &mut shown)?;
                }
            }
            if !is_result {
                self.message(&mut list, message)?;
            } else if message.parts.iter().any(|part| !matches!(part, Part::Result(_))) {
                self.show(&mut list, &mut shown)?;
                self.message(&mut list, message)?;
            }
        }
        self.show(&mut list, &mut shown)?;
        list.close();
        Ok(())
    }

    fn message(&mut self, list: &mut List<'_>, message: &Message) -> Result<(), Error> {
        if message.role == Role::Assistant {
            return self.assistant(list, message);
        }
        let role = match message.role {
            Role::System => "system",
            Role::Developer if self.to.is_own || self.to.is_chat => "developer",
            Role::Developer => "system",
            _ => "user",
        };
        let mut out = list.object();
        out.put("role", role);
        out.some("name", message.name.as_deref());
        self.content(&mut out, &message.parts)?;
        out.close();
        Ok(())
    }

    /// One text, or a list of parts.
    fn content(&mut self, out: &mut Object<'_>, parts: &[Part]) -> Result<(), Error> {
        let is_text = |part: &Part| match part {
            Part::Text { cache, .. } => cache.is_none() || !self.to.caches(),
            Part::Result(_) => true,
            _ => false,
        };
        let texts = parts.iter().filter(|part| matches!(part, Part::Text { .. })).count();
        if parts.iter().all(is_text) && (texts == 1 || !self.to.is_chat) {
            self.look_for_cache(parts);
            out.put("content", &*joined(parts, "\n\n"));
            return Ok(());
        }
        let mut list = out.list("content");
        for part in parts {
            self.part(&mut list, part)?;
        }
        list.close();
        Ok(())
    }

    /// Notes that marks for a cache are left out.
    fn look_for_cache(&mut self, parts: &[Part]) {
        for part in parts {
            if let Part::Text { cache: Some(_), .. } = part {
                self.no_cache();
            }
        }
    }

    fn no_cache(&mut self) {
        let why = "this wire has no marks for its cache: what begins alike is cached by itself";
        self.notes.dropped(self.spot.name(Thing::Cache), why);
    }

    fn cache(&mut self, out: &mut Object<'_>, cache: Option<&Value>) {
        let Some(cache) = cache else { return };
        if self.to.caches() {
            out.put("cache_control", cache);
        } else {
            self.no_cache();
        }
    }

    fn part(&mut self, list: &mut List<'_>, part: &Part) -> Result<(), Error> {
        match part {
            Part::Text { text, cache, .. } => self.text(list, text, cache.as_ref()),
            Part::Refusal(text) if !self.to.is_own && !self.to.is_chat => self.text(list, text, None),
            Part::Refusal(text) => {
                let mut out = list.object();
                out.put("type", "refusal");
                out.put("refusal", text);
                out.close();
            }
            Part::Image(image) => self.image(list, image)?,
            Part::Document(document) => self.document(list, document)?,
            Part::Audio(audio) => self.audio(list, audio)?,
            Part::Stranger(stranger) if self.to.is_chat => doc::json(list.next(), &stranger.value),
            Part::Stranger(stranger) => {
                let field = &stranger.field;
                let message = format!(
                    "`{field}` is of a kind that chat completions do not have; leave it out, or ask a model of a vendor that has it"
                );
                return Err(Error::new(Kind::Unsupported, message).with_param(field));
            }
            Part::Thought(_) => self.no_thought("nobody but the model thinks here"),
            // Written as messages of their own, or of the assistant.
            Part::Result(_) | Part::Call(_) => {}
        }
        Ok(())
    }

    fn text(&mut self, list: &mut List<'_>, text: &str, cache: Option<&Value>) {
        let mut out = list.object();
        out.put("type", "text");
        out.put("text", text);
        self.cache(&mut out, cache);
        out.close();
    }

    fn image(&mut self, list: &mut List<'_>, image: &Image) -> Result<(), Error> {
        let mut out = list.object();
        out.put("type", "image_url");
        let mut inner = out.object("image_url");
        match &image.source {
            Source::Url(url) => inner.put("url", url),
            Source::Data { media_type, base64 } => data_url(inner.name("url"), media_type, base64),
            Source::File(_) | Source::Text(_) => {
                return Err(self.refused(
                    Thing::Image,
                    "chat completions take a picture as an address or as base64, not as an uploaded file; send it as one of them",
                ));
            }
        }
        inner.some("detail", image.detail.as_deref());
        inner.close();
        self.cache(&mut out, image.cache.as_ref());
        out.close();
        Ok(())
    }

    fn document(&mut self, list: &mut List<'_>, document: &Document) -> Result<(), Error> {
        if document.cite == Some(true) {
            self.notes
                .dropped(self.spot.name(Thing::Cite), "chat completions cite no documents");
        }
        if let Some(text) = self.plain(document) {
            let why = "sent as text, which is what is in it";
            self.notes.mapped(self.spot.name(Thing::File), why);
            let heads = [document.name.as_deref(), document.context.as_deref()];
            let all: Vec<&str> = heads.into_iter().flatten().chain([&*text]).collect();
            self.text(list, &all.join("\n\n"), document.cache.as_ref());
            return Ok(());
        }
        if document.context.is_some() {
            self.notes
                .dropped(self.spot.name(Thing::Context), "a file has nothing but its name here");
        }
        let mut out = list.object();
        match &document.source {
            Source::Data { media_type, base64 } if media_type.starts_with("video/") => {
                out.put("type", "video_url");
                let mut inner = out.object("video_url");
                data_url(inner.name("url"), media_type, base64);
                inner.close();
            }
            source => {
                out.put("type", "file");
                let mut inner = out.object("file");
                match source {
                    Source::Data { media_type, base64 } => {
                        data_url(inner.name("file_data"), media_type, base64);
                        let name = document.name.as_deref().or_else(|| self.file_name(media_type));
                        inner.some("filename", name);
                    }
                    Source::File(id) if matches!(self.surface, Surface::Chat | Surface::Responses) => {
                        inner.put("file_id", id);
                        inner.some("filename", document.name.as_deref());
                    }
                    Source::Url(url) if self.to.is_chat => {
                        inner.put("file_data", url);
                        inner.some("filename", document.name.as_deref());
                    }
                    Source::Url(_) => {
                        return Err(self.refused(
                            Thing::File,
                            "chat completions take no document by its address; send it as base64",
                        ));
                    }
                    Source::File(_) | Source::Text(_) => {
                        return Err(self.refused(
                            Thing::File,
                            "a file that was uploaded to another vendor is not there; send it as base64",
                        ));
                    }
                }
                inner.close();
            }
        }
        self.cache(&mut out, document.cache.as_ref());
        out.close();
        Ok(())
    }

    /// A file has to have a name, and there it is by its type.
    fn file_name(&self, media_type: &str) -> Option<&'static str> {
        (!self.to.is_chat).then_some(match media_type {
            "application/pdf" => "document.pdf",
            _ => "document",
        })
    }

    /// The text of a document that is nothing else. Files are read as PDFs here.
    fn plain<'d>(&self, document: &'d Document) -> Option<Cow<'d, str>> {
        match &document.source {
            Source::Text(text) => Some(Cow::Borrowed(text)),
            Source::Data { media_type, base64 } if media_type.starts_with("text/") && !self.to.is_chat => {
                let bytes = STANDARD.decode(base64).ok()?;
                String::from_utf8(bytes).ok().map(Cow::Owned)
            }
            _ => None,
        }
    }

    fn audio(&mut self, list: &mut List<'_>, audio: &ir::Audio) -> Result<(), Error> {
        let Source::Data { media_type, base64 } = &audio.source else {
            return Err(self.refused(Thing::Audio, "chat completions take audio as base64 only; send it so"));
        };
        let kind = media_type.strip_prefix("audio/").unwrap_or(media_type);
        let format = audio.format.as_deref().unwrap_or(match kind {
            "mpeg" | "mp3" => "mp3",
            "wav" | "x-wav" | "wave" | "vnd.wave" => "wav",
            other => other,
        });
        let mut out = list.object();
        out.put("type", "input_audio");
        let mut inner = out.object("input_audio");
        inner.put("data", base64);
        inner.put("format", format);
        inner.close();
        out.close();
        Ok(())
    }

    // === the assistant's messages ===

    fn assistant(&mut self, list: &mut List<'_>, message: &Message) -> Result<(), Error> {
        let turn = Turn::of(&message.parts, self.to.is_chat);
        for field in &turn.strangers {
            let why = "chat completions have no such part in an answer";
            self.notes.dropped((*field).clone(), why);
        }
        let sends_thoughts = self.to.is_chat || !turn.calls.is_empty() && !self.to.is_own;
        if !sends_thoughts && !turn.thoughts.is_empty() {
            self.no_thought(if self.to.is_own {
                "OpenAI's chat completions take no reasoning back"
            } else {
                "chat completions show a model its reasoning only with the calls of tools that followed"
            });
            if turn.is_empty() {
                return Ok(());
            }
        }
        let mut out = list.object();
        out.put("role", "assistant");
        out.some("name", message.name.as_deref());
        if sends_thoughts {
            self.thoughts(&mut out, &turn.thoughts);
        }
        self.said(&mut out, &turn)?;
        if let Some(id) = turn.audio {
            let mut audio = out.object("audio");
            audio.put("id", id);
            audio.close();
        }
        if !turn.calls.is_empty() {
            let mut calls = out.list("tool_calls");
            for call in &turn.calls {
                self.call(&mut calls, call);
            }
            calls.close();
        }
        out.close();
        Ok(())
    }

    fn said(&mut self, out: &mut Object<'_>, turn: &Turn<'_>) -> Result<(), Error> {
        let citations: Vec<&Citation> = turn.said.iter().flat_map(|part| citations(part)).collect();
        if !citations.is_empty() && self.to.is_chat {
            let raws: Vec<&Value> = citations.iter().filter_map(|citation| citation.raw.as_ref()).collect();
            out.put("annotations", &raws);
        } else if !citations.is_empty() {
            self.notes
                .dropped(self.spot.name(Thing::Citations), "a request has no place for them");
        }
        let refusal = (self.to.is_own || self.to.is_chat).then_some(turn.refusal).flatten();
        out.some("refusal", refusal);
        let is_plain = |part: &Part| match part {
            Part::Text { cache, .. } => cache.is_none() || !self.to.caches(),
            _ => false,
        };
        if !turn.said.iter().all(|part| is_plain(part)) || turn.said.len() > 1 && self.to.is_chat {
            let mut list = out.list("content");
            for part in &turn.said {
                self.part(&mut list, part)?;
            }
            list.close();
            return Ok(());
        }
        for part in &turn.said {
            self.look_for_cache(std::slice::from_ref(part));
        }
        let mut text: String = turn.said.iter().filter_map(|part| text_of(part)).collect();
        if let (None, Some(words)) = (refusal, turn.refusal) {
            text.push_str(words);
        }
        if text.is_empty() && turn.said.is_empty() {
            out.put("content", &Value::Null);
        } else {
            out.put("content", &text);
        }
        Ok(())
    }

    fn no_thought(&mut self, why: &'static str) {
        self.notes.dropped(self.spot.name(Thing::Thought), why);
    }

    fn thoughts(&mut self, out: &mut Object<'_>, thoughts: &[&Thought]) {
        let is_of_use = |thought: &&&Thought| match &thought.seal {
            Some(seal) => self.to.is_chat || self.to.maker == Some(seal.maker),
            None => false,
        };
        let sealed = thoughts.iter().filter(is_of_use).count();
        let text: String = thoughts.iter().map(|thought| thought.text.as_str()).collect();
        if !text.is_empty() {
            out.put("reasoning_content", &text);
            if !self.to.is_chat {
                self.notes.mapped(self.spot.name(Thing::Thought), "reasoning_content");
            }
        }
        if sealed > 0 || self.to.is_chat && details::needed(thoughts) {
            let mut list = out.list("reasoning_details");
            for (index, thought) in thoughts.iter().enumerate() {
                if is_of_use(&thought) || thought.seal.is_none() {
                    self.detail(&mut list, index, thought);
                }
            }
            list.close();
        }
        if thoughts
            .iter()
            .any(|thought| thought.seal.is_some() && !is_of_use(&thought))
        {
            self.no_seal(Thing::Seal);
        }
    }

    fn detail(&self, list: &mut List<'_>, index: usize, thought: &Thought) {
        if self.to.is_chat {
            details::write(list, index, thought);
        } else {
            details::write_bare(list, index, thought);
        }
    }

    fn no_seal(&mut self, thing: Thing) {
        let why = "only the vendor that made it can read it";
        self.notes.dropped(self.spot.name(thing), why);
    }

    fn call(&mut self, list: &mut List<'_>, call: &ir::Call) {
        let mut out = list.object();
        out.put("id", &*fitting(&call.id));
        let is_custom = call.is_custom && self.to.has_custom();
        let (kind, input) = if is_custom {
            ("custom", "input")
        } else {
            ("function", "arguments")
        };
        out.put("type", kind);
        let mut inner = out.object(kind);
        inner.put("name", &call.name);
        if call.is_custom && !is_custom {
            inner.put(input, &custom::wrap(&call.arguments).to_string());
        } else if call.arguments.is_empty() && !is_custom {
            inner.put(input, "{}");
        } else {
            inner.put(input, &call.arguments);
        }
        inner.close();
        match &call.seal {
            Some(seal) if self.to.is_chat => signature(&mut out, &seal.write(Maker::Gemini)),
            Some(seal) => match seal
                .for_maker(Maker::Gemini)
                .filter(|_| self.to.maker == Some(Maker::Gemini))
            {
                Some(data) => signature(&mut out, data),
                None => self.no_seal(Thing::CallSeal),
            },
            None => {}
        }
        self.cache(&mut out, call.cache.as_ref());
        out.close();
    }

    // === results of tools ===

    fn result<'p>(
        &mut self,
        list: &mut List<'_>,
        result: &'p ResultOf,
        shown: &mut Vec<(&'p ResultOf, &'p Part)>,
    ) -> Result<(), Error> {
        let mut out = list.object();
        out.put("role", "tool");
        out.put("tool_call_id", &*fitting(&result.call_id));
        if self.to.is_chat {
            out.some("name", result.name.as_deref());
            self.content(&mut out, &result.parts)?;
            self.cache(&mut out, result.cache.as_ref());
            out.close();
            return Ok(());
        }
        let mut text = String::new();
        if result.is_error {
            let why = "said in the text of the result";
            self.notes.approximated(self.spot.name(Thing::IsError), why);
            text.push_str("Error: ");
        }
        text.push_str(&result.text());
        let before = shown.len();
        for part in &result.parts {
            match part {
                Part::Text { cache, .. } => {
                    if cache.is_some() && !self.to.caches() {
                        self.no_cache();
                    }
                }
                Part::Document(document) if self.plain(document).is_some() => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&self.plain(document).unwrap_or_default());
                }
                Part::Image(_) | Part::Document(_) | Part::Audio(_) => shown.push((result, part)),
                Part::Stranger(stranger) => {
                    // It is what the tool said, in whatever form: the model reads JSON too.
                    let why = "sent as JSON in the text of the result";
                    self.notes.approximated(stranger.field.clone(), why);
                    text.push_str(&stranger.value.to_string());
                }
                Part::Call(_) | Part::Result(_) | Part::Thought(_) | Part::Refusal(_) => {}
            }
        }
        if shown.len() > before {
            let why = "a `tool` message takes only text: sent in a message of the user behind it";
            self.notes.approximated(self.spot.name(Thing::Result), why);
            if text.is_empty() {
                text.push_str("The result is shown in the next message.");
            }
        }
        out.put("content", &text);
        self.cache(&mut out, result.cache.as_ref());
        out.close();
        Ok(())
    }

    /// Writes what results of tools show, as a message of the user.
    fn show(&mut self, list: &mut List<'_>, shown: &mut Vec<(&ResultOf, &Part)>) -> Result<(), Error> {
        if shown.is_empty() {
            return Ok(());
        }
        let mut out = list.object();
        out.put("role", "user");
        let mut parts = out.list("content");
        let mut last = None;
        for (result, part) in shown.drain(..) {
            if last != Some(&result.call_id) {
                let name = result.name.as_deref().unwrap_or("the tool");
                let id = fitting(&result.call_id);
                self.text(&mut parts, &format!("Result of {name} ({id}):"), None);
            }
            last = Some(&result.call_id);
            self.part(&mut parts, part)?;
        }
        parts.close();
        out.close();
        Ok(())
    }

    // === tools ===

    fn tools(&mut self, body: &mut Object<'_>, prompt: &Prompt) -> Result<(), Error> {
        let among: Option<&[String]> = match &prompt.tool_choice {
            Some(ToolChoice::Among { names, .. }) if !self.to.is_own && !self.to.is_chat => Some(names),
            _ => None,
        };
        let mut offered: Vec<(usize, &Tool)> = Vec::with_capacity(prompt.tools.len());
        for (index, tool) in prompt.tools.iter().enumerate() {
            match &tool.kind {
                ToolKind::Vendors(_) if !self.to.is_chat => {
                    let why = "a tool that a vendor runs is not there on another wire";
                    let field = names::tool(tool, index, self.surface, OfTool::Tool);
                    self.notes.dropped(field, why);
                }
                _ if among.is_some_and(|names| !names.contains(&tool.name)) => {}
                _ => offered.push((index, tool)),
            }
        }
        if offered.is_empty() && !self.to.is_chat {
            return self.no_tools(prompt);
        }
        if !offered.is_empty() {
            let mut list = body.list("tools");
            for (index, tool) in &offered {
                self.tool(&mut list, tool, *index);
            }
            list.close();
        }
        if let Some(choice) = &prompt.tool_choice {
            self.choice(body, choice, prompt);
        }
        body.some("parallel_tool_calls", prompt.parallel_tools);
        Ok(())
    }

    /// A choice between no tools is refused by OpenAI; and one that has to be made cannot be.
    fn no_tools(&mut self, prompt: &Prompt) -> Result<(), Error> {
        match &prompt.tool_choice {
            None | Some(ToolChoice::Auto | ToolChoice::None) => Ok(()),
            Some(ToolChoice::Among { required: false, .. }) => Ok(()),
            Some(ToolChoice::Required | ToolChoice::Named(_) | ToolChoice::Among { .. }) => {
                let field = prompt.name(Param::ToolChoice, self.surface);
                let message = format!("`{field}` wants a tool to be called, and none of `tools` can be offered here");
                Err(Error::new(Kind::Unsupported, message).with_param(field))
            }
        }
    }

    fn tool(&mut self, list: &mut List<'_>, tool: &Tool, index: usize) {
        let has_custom = self.to.has_custom();
        let kind = match &tool.kind {
            ToolKind::Vendors(stranger) => return doc::json(list.next(), &stranger.value),
            ToolKind::Custom(_) if has_custom => "custom",
            ToolKind::Function { .. } | ToolKind::Custom(_) => "function",
        };
        let mut out = list.object();
        out.put("type", kind);
        let mut inner = out.object(kind);
        inner.put("name", &tool.name);
        inner.some("description", tool.description.as_deref());
        match &tool.kind {
            ToolKind::Function { schema, strict } => {
                inner.some("parameters", schema.as_ref());
                inner.some("strict", *strict);
            }
            ToolKind::Custom(custom) if has_custom => {
                inner.some("format", custom.format.as_ref().map(nested));
            }
            ToolKind::Custom(custom) => {
                inner.put("parameters", &custom::schema(custom));
                let field = names::tool(tool, index, self.surface, OfTool::Tool);
                self.notes.approximated(field, custom::why(custom));
            }
            ToolKind::Vendors(_) => {}
        }
        inner.close();
        self.cache(&mut out, tool.cache.as_ref());
        out.close();
    }

    fn choice(&mut self, body: &mut Object<'_>, choice: &ToolChoice, prompt: &Prompt) {
        let has_custom = self.to.has_custom();
        let is_custom = |name: &str| {
            let mut tools = prompt.tools.iter();
            has_custom && tools.any(|tool| tool.name == name && matches!(tool.kind, ToolKind::Custom(_)))
        };
        let named = |out: &mut Object<'_>, name: &str| {
            let kind = if is_custom(name) { "custom" } else { "function" };
            out.put("type", kind);
            let mut inner = out.object(kind);
            inner.put("name", name);
            inner.close();
        };
        match choice {
            ToolChoice::Auto => body.put("tool_choice", "auto"),
            ToolChoice::None => body.put("tool_choice", "none"),
            ToolChoice::Required => body.put("tool_choice", "required"),
            ToolChoice::Named(name) => {
                let mut out = body.object("tool_choice");
                named(&mut out, name);
                out.close();
            }
            ToolChoice::Among { names, required } => {
                let mode = if *required { "required" } else { "auto" };
                if !self.to.is_own && !self.to.is_chat {
                    let why = "only the allowed tools are offered";
                    self.notes.mapped(prompt.name(Param::ToolChoice, self.surface), why);
                    return body.put("tool_choice", mode);
                }
                let mut out = body.object("tool_choice");
                out.put("type", "allowed_tools");
                let mut inner = out.object("allowed_tools");
                inner.put("mode", mode);
                let mut list = inner.list("tools");
                for name in names {
                    let mut tool = list.object();
                    named(&mut tool, name);
                    tool.close();
                }
                list.close();
                inner.close();
                out.close();
            }
        }
    }

    // === how to answer ===

    fn sampling(&mut self, body: &mut Object<'_>, prompt: &Prompt) {
        let name = if self.to.is_own || self.to.is_chat {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body.some(name, prompt.max_tokens);
        let sampling = &prompt.sampling;
        body.some("temperature", sampling.temperature);
        body.some("top_p", sampling.top_p);
        body.some("top_k", sampling.top_k);
        body.some("n", sampling.n);
        body.some("seed", sampling.seed);
        body.some("presence_penalty", sampling.presence_penalty);
        body.some("frequency_penalty", sampling.frequency_penalty);
        body.some("logprobs", sampling.logprobs);
        body.some("top_logprobs", sampling.top_logprobs);
        body.some("logit_bias", sampling.logit_bias.as_ref());
        let mut stop = &*sampling.stop;
        if self.to.is_own && !self.to.is_chat && stop.len() > MOST_STOPS {
            let field = prompt.name(Param::Stop, self.surface);
            self.notes
                .approximated(field, format!("the first {MOST_STOPS} of them: it takes no more"));
            stop = stop.get(..MOST_STOPS).unwrap_or_default();
        }
        if !stop.is_empty() {
            body.put("stop", stop);
        }
    }

    fn manner(&mut self, body: &mut Object<'_>, prompt: &Prompt) {
        if let Some(format) = &prompt.format {
            self.format(body, format, prompt);
        }
        if let Some(reasoning) = &prompt.reasoning {
            self.reasoning(body, reasoning, prompt);
        }
        body.some("verbosity", prompt.verbosity.as_deref());
        body.some("user", prompt.user.as_deref());
        body.some("metadata", prompt.metadata.as_ref());
        body.some(
            "service_tier",
            prompt.service_tier.as_deref().map(|tier| match tier {
                // Anthropic's word.
                "standard_only" => "default",
                tier => tier,
            }),
        );
        body.some("store", prompt.store);
        body.some("prompt_cache_key", prompt.cache_key.as_deref());
    }

    fn format(&mut self, body: &mut Object<'_>, format: &Format, prompt: &Prompt) {
        // Everybody's habit, which some do not know by name.
        if *format == Format::Text && !self.to.is_chat {
            return;
        }
        let mut out = body.object("response_format");
        match format {
            Format::Text => out.put("type", "text"),
            Format::Json => out.put("type", "json_object"),
            Format::Schema {
                name,
                description,
                schema,
                strict,
            } => {
                out.put("type", "json_schema");
                let mut inner = out.object("json_schema");
                let default = (!self.to.is_chat).then_some("response");
                inner.some("name", name.as_deref().or(default));
                inner.some("description", description.as_deref());
                inner.put("schema", schema);
                // Anthropic and Gemini hold to every schema; here that has to be asked for, and not every one can be.
                let by_habit = strict.is_none() && self.surface.dialect() != crate::Dialect::OpenAi;
                let strict = if by_habit && is_strict(schema) {
                    Some(true)
                } else {
                    *strict
                };
                if by_habit && strict.is_none() {
                    let field = prompt.name(Param::ResponseFormat, self.surface);
                    self.notes.approximated(
                        field,
                        "followed as well as the model can: the schema is none that can be held to",
                    );
                }
                inner.some("strict", strict);
                inner.close();
            }
        }
        out.close();
    }

    fn reasoning(&mut self, body: &mut Object<'_>, reasoning: &Reasoning, prompt: &Prompt) {
        if self.to.is_chat {
            return as_written(body, reasoning);
        }
        let field = prompt.name(Param::Reasoning, self.surface);
        if reasoning.show == Some(true) && self.to.is_own {
            self.notes.dropped(field, "OpenAI's chat completions show no reasoning");
        }
        let effort = match (reasoning.effort, reasoning.budget) {
            (Some(effort), _) => effort,
            (None, Some(budget)) => {
                let effort = Effort::of_budget(budget);
                self.notes
                    .approximated(field, format!("{budget} tokens as the effort \"{}\"", effort.as_str()));
                effort
            }
            // How much is left to the vendor.
            (None, None) => return,
        };
        if self.to.never_reasons {
            return self.notes.dropped(field, "this model does not reason");
        }
        let effort = if effort == Effort::Max {
            self.notes
                .approximated(field, "\"max\" as \"xhigh\", which is the most here");
            Effort::XHigh
        } else {
            effort
        };
        body.put("reasoning_effort", effort.as_str());
    }

    // === what only the caller's dialect knows ===

    /// Writes the strangers of the top level, and gives those that stand further in.
    fn strangers(&mut self, body: &mut Object<'_>, prompt: &Prompt) -> Vec<usize> {
        let mut nested = Vec::new();
        for (index, stranger) in prompt.strangers.iter().enumerate() {
            let field = stranger.field.as_str();
            if field.contains(['.', '[']) {
                if self.to.is_chat {
                    nested.push(index);
                } else {
                    self.notes
                        .dropped(field.to_owned(), "chat completions have no such field");
                }
            } else if self.has_place(field) {
                body.put_any(field, &stranger.value);
            } else {
                self.notes
                    .dropped(field.to_owned(), "chat completions have no such field");
            }
        }
        nested
    }

    /// Whether a field may be one of chat completions too. What nobody has documented may be a vendor's.
    fn has_place(&self, field: &str) -> bool {
        match self.surface {
            // Written already, under the newer name.
            Surface::Chat => !matches!(field, "user" | "max_tokens"),
            Surface::Completions => !matches!(field, "suffix" | "best_of" | "echo"),
            Surface::Responses => !RESPONSES_ONLY.contains(&field),
            _ => false,
        }
    }

    /// Puts strangers back where they stood. Only a prompt of this very dialect has a place for them, and such a one is relayed
    /// as a rule.
    fn put_back(&mut self, written: Vec<u8>, prompt: &Prompt, nested: &[usize]) -> Vec<u8> {
        let Ok(mut body) = serde_json::from_slice::<Value>(&written) else {
            return written;
        };
        for stranger in nested.iter().filter_map(|index| prompt.strangers.get(*index)) {
            let steps = path(stranger).unwrap_or_default();
            let Some((Step::Key(last), steps)) = steps.split_last() else {
                continue;
            };
            let place = steps.iter().try_fold(&mut body, |value, step| match step {
                Step::Key(key) => value.get_mut(key),
                Step::Item(index) => value.get_mut(index),
            });
            match place.and_then(Value::as_object_mut) {
                Some(place) => drop(place.insert((*last).to_owned(), stranger.value.clone())),
                None => self.notes.dropped(stranger.field.clone(), "its place is gone"),
            }
        }
        let mut out = Vec::with_capacity(written.len());
        doc::json(&mut out, &body);
        out
    }
}

/// What the Responses have and chat completions do not.
const RESPONSES_ONLY: [&str; 14] = [
    "background",
    "context_management",
    "conversation",
    "include",
    "instructions",
    "input",
    "max_tool_calls",
    "moderation",
    "previous_response_id",
    "prompt",
    "reasoning",
    "text",
    "truncation",
    "tool_choice",
];

/// What the model said in one turn, sorted as this dialect has it.
#[derive(Default)]
struct Turn<'a> {
    thoughts: Vec<&'a Thought>,
    said: Vec<&'a Part>,
    refusal: Option<&'a str>,
    audio: Option<&'a str>,
    calls: Vec<&'a ir::Call>,
    /// Where those stood that have no place.
    strangers: Vec<&'a String>,
}

impl<'a> Turn<'a> {
    fn of(parts: &'a [Part], takes_strangers: bool) -> Self {
        let mut turn = Self::default();
        for part in parts {
            match part {
                Part::Thought(thought) => turn.thoughts.push(thought),
                Part::Call(call) => turn.calls.push(call),
                Part::Refusal(text) if turn.refusal.is_none() => turn.refusal = Some(text),
                Part::Audio(ir::Audio {
                    source: Source::File(id),
                    ..
                }) => turn.audio = Some(id),
                Part::Stranger(stranger) if !takes_strangers => turn.strangers.push(&stranger.field),
                Part::Result(_) => {}
                _ => turn.said.push(part),
            }
        }
        turn
    }

    fn is_empty(&self) -> bool {
        self.said.is_empty() && self.refusal.is_none() && self.audio.is_none() && self.calls.is_empty()
    }
}

fn citations(part: &Part) -> &[Citation] {
    match part {
        Part::Text { citations, .. } => citations,
        _ => &[],
    }
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// All texts, as one.
fn joined<'a>(parts: &'a [Part], between: &str) -> Cow<'a, str> {
    let mut texts = parts.iter().filter_map(text_of);
    match (texts.next(), texts.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), None) => Cow::Borrowed(only),
        (Some(first), Some(second)) => {
            let all: Vec<&str> = [first, second].into_iter().chain(texts).collect();
            Cow::Owned(all.join(between))
        }
    }
}

fn signature(out: &mut Object<'_>, written: &str) {
    let mut extra = out.object("extra_content");
    let mut google = extra.object("google");
    google.put("thought_signature", written);
    google.close();
    extra.close();
}

/// An id of a call that OpenAI takes. Any letters will do, and Moonshot wants to see its own.
fn fitting(id: &str) -> Cow<'_, str> {
    if !id.is_empty() && id.len() <= LONGEST_ID {
        return Cow::Borrowed(id);
    }
    ids::fitting(id, LONGEST_ID)
}

/// A grammar as chat completions have it, one level deeper than the Responses.
fn nested(format: &Value) -> Cow<'_, Value> {
    let Some(flat) = format.as_object().filter(|format| format.contains_key("syntax")) else {
        return Cow::Borrowed(format);
    };
    let mut grammar = flat.clone();
    let kind = grammar.shift_remove("type").unwrap_or_else(|| "grammar".into());
    Cow::Owned(json!({"type": kind, "grammar": grammar}))
}

/// How much to think, for a prompt that came in this dialect.
fn as_written(body: &mut Object<'_>, reasoning: &Reasoning) {
    let is_effort_alone = reasoning.budget.is_none() && reasoning.show.is_none() && !reasoning.is_adaptive;
    if let Some(effort) = reasoning.effort.filter(|_| is_effort_alone) {
        return body.put("reasoning_effort", effort.as_str());
    }
    if reasoning.is_adaptive {
        body.name("thinking").extend_from_slice(br#"{"type":"adaptive"}"#);
    }
    let mut out = body.object("reasoning");
    out.some("effort", reasoning.effort.map(Effort::as_str));
    out.some("max_tokens", reasoning.budget);
    out.some("exclude", reasoning.show.map(|show| !show));
    out.close();
}

/// Whether OpenAI can hold to a schema: every object in it says what it has, all of which is required, and nothing else.
fn is_strict(schema: &Value) -> bool {
    let Value::Object(fields) = schema else {
        // `true`, and what stands in lists.
        return !schema.is_boolean();
    };
    let is_object = fields.get("type").is_some_and(|kind| kind == "object") || fields.contains_key("properties");
    if is_object {
        let properties = fields.get("properties").and_then(Value::as_object);
        let required = fields.get("required").and_then(Value::as_array);
        let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name.as_str()));
        let is_closed = fields.get("additionalProperties") == Some(&Value::Bool(false));
        if !is_closed || !properties.is_none_or(|properties| properties.keys().all(is_required)) {
            return false;
        }
    }
    let inner = ["properties", "$defs", "definitions"]
        .iter()
        .filter_map(|key| fields.get(*key)?.as_object());
    let lists = ["anyOf", "allOf", "oneOf"]
        .iter()
        .filter_map(|key| fields.get(*key)?.as_array());
    inner.flat_map(|all| all.values()).all(is_strict)
        && lists.flatten().all(is_strict)
        && fields.get("items").is_none_or(is_strict)
}
