//! Turns, as the vendor takes them: of the user and of the assistant in turn, the user's first, with what tools gave back at
//! the front of the turn behind their calls.

use super::super::answer::{LONGEST_ID, input, write_citation};
use super::super::model::Model;
use super::unsupported;
use crate::codec::Ask;
use crate::ids::fitting;
use crate::ir::{
    Audio, Call, Citation, Document, Image, Maker, Message, Part, Prompt, ResultOf, Role, Source, Stranger, Thought,
};
use crate::names::{self, Spot, Thing};
use crate::notes::Notes;
use crate::{Dialect, Surface};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use switchyard_core::error::Error;

/// Pictures that the vendor reads.
const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
pub(super) struct Turn<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        citations: Vec<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a Value>,
    },
    Image {
        source: Stored<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a Value>,
    },
    Document {
        source: Stored<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a Value>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a Value>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Stored<'a> {
    Base64 {
        media_type: &'a str,
        data: &'a str,
    },
    Url {
        url: &'a str,
    },
    File {
        file_id: &'a str,
    },
    Text {
        media_type: &'static str,
        data: Cow<'a, str>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    User,
    Assistant,
    /// In the middle, where the model hears it.
    System,
}

pub(super) struct Conversation<'a> {
    system: Vec<Block<'a>>,
    turns: Vec<(Who, Vec<Block<'a>>)>,
    model: Model,
    field: &'static str,
}

impl<'a> Conversation<'a> {
    /// `cites`: whether documents may be cited.
    pub(super) fn read(
        prompt: &'a Prompt,
        ask: &Ask<'_>,
        model: Model,
        cites: bool,
        notes: &mut Notes,
    ) -> Result<Self, Error> {
        let mut conversation = Self {
            system: Vec::new(),
            turns: Vec::new(),
            model,
            field: names::list(ask.surface),
        };
        let mut blocks = Blocks {
            surface: ask.surface,
            spot: Spot::anywhere(ask.surface),
            cites,
            notes,
        };
        // What the system says in the middle, until the user's turn is over.
        let mut later = Vec::new();
        for message in &prompt.messages {
            blocks.spot = Spot::of(message, ask.surface);
            if message.name.is_some() {
                let field = blocks.spot.name(Thing::Name);
                blocks.notes.dropped(field, "who of that role it is has no place there");
            }
            let mut said = blocks.of(message)?;
            match message.role {
                Role::System | Role::Developer if conversation.turns.is_empty() => {
                    conversation.system.append(&mut said);
                }
                Role::System | Role::Developer if model.hears_system_later() => later.append(&mut said),
                Role::System | Role::Developer => {
                    let why = "what the system says in the middle became a text of the user's, marked as the system's";
                    blocks.notes.approximated(blocks.spot.name(Thing::Role), why);
                    conversation.push(Who::User, said.into_iter().map(as_users).collect());
                }
                Role::User | Role::Tool => conversation.push(Who::User, said),
                Role::Assistant => {
                    conversation.push_system(&mut later, blocks.notes);
                    conversation.push(Who::Assistant, said);
                }
            }
        }
        conversation.push_system(&mut later, blocks.notes);
        for (who, blocks) in &mut conversation.turns {
            if *who == Who::User {
                // The vendor wants them first. The sort keeps what is equal in its order.
                blocks.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
            }
        }
        Ok(conversation)
    }

    /// Neighbours of one role are one turn.
    fn push(&mut self, who: Who, mut blocks: Vec<Block<'a>>) {
        match self.turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, so_far)) if *last == who => so_far.append(&mut blocks),
            _ => self.turns.push((who, blocks)),
        }
    }

    /// What the system says has to stand behind a turn of the user's.
    fn push_system(&mut self, later: &mut Vec<Block<'a>>, notes: &mut Notes) {
        if later.is_empty() {
            return;
        }
        let said = std::mem::take(later);
        if self.turns.last().is_some_and(|(who, _)| *who == Who::User) {
            self.turns.push((Who::System, said));
            return;
        }
        let why = "what the system says behind the assistant became a text of the user's, marked as the system's";
        notes.approximated(self.field, why);
        self.push(Who::User, said.into_iter().map(as_users).collect());
    }

    /// Whether a turn of the assistant's goes on behind results of tools, and does not begin with a thought of the vendor's.
    pub(super) fn resumes_without_thought(&self) -> bool {
        let mut turns = self.turns.iter().rev().filter(|(who, _)| *who != Who::System);
        let (Some((Who::User, last)), Some((Who::Assistant, before))) = (turns.next(), turns.next()) else {
            return false;
        };
        let is_result = |block: &Block<'_>| matches!(block, Block::ToolResult { .. });
        let is_thought = |block: &Block<'_>| matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
        last.iter().any(is_result) && !before.first().is_some_and(is_thought)
    }

    pub(super) fn finish(
        mut self,
        orders: &[Cow<'static, str>],
        notes: &mut Notes,
    ) -> Result<(Option<Content<'a>>, Vec<Turn<'a>>), Error> {
        let Some((first, _)) = self.turns.first() else {
            return self.finish_alone(orders, notes);
        };
        if *first != Who::User {
            let why = "a turn of the user's was put before the assistant's, which may not be first there";
            notes.approximated(self.field, why);
            self.turns.insert(0, (Who::User, vec![text(".")]));
        }
        self.finish_last(notes)?;
        self.system.extend(orders.iter().cloned().map(text));
        let turns = self.turns.into_iter().map(|(who, blocks)| Turn {
            role: match who {
                Who::User => "user",
                Who::Assistant => "assistant",
                Who::System => "system",
            },
            content: content(blocks),
        });
        let turns = turns.collect();
        let system = (!self.system.is_empty()).then(|| content(self.system));
        Ok((system, turns))
    }

    /// There has to be a turn of the user's: what the system says is one if it is all there is.
    fn finish_alone(
        mut self,
        orders: &[Cow<'static, str>],
        notes: &mut Notes,
    ) -> Result<(Option<Content<'a>>, Vec<Turn<'a>>), Error> {
        if self.system.is_empty() {
            return Err(unsupported(
                self.field,
                "there is no message with anything in it; send one of the user's",
            ));
        }
        let why = "what the system says is sent as the user's, who says nothing: the vendor takes no conversation without one";
        notes.approximated(self.field, why);
        let said = std::mem::take(&mut self.system);
        let turns = vec![Turn {
            role: "user",
            content: content(said),
        }];
        let orders: Vec<Block<'a>> = orders.iter().cloned().map(text).collect();
        Ok(((!orders.is_empty()).then(|| content(orders)), turns))
    }

    /// The last turn is the user's, unless the model goes on with what was begun for it.
    fn finish_last(&mut self, notes: &mut Notes) -> Result<(), Error> {
        let Some((Who::Assistant, last)) = self.turns.last_mut() else {
            return Ok(());
        };
        if !self.model.continues() {
            let what =
                "this model does not go on with an answer that was begun for it; end with a message of the user's";
            return Err(unsupported(self.field, what));
        }
        if let Some(Block::Text { text, .. }) = last.last_mut()
            && text.trim_end().len() < text.len()
        {
            notes.approximated(
                self.field,
                "white space at the end of an answer that was begun is refused there",
            );
            *text = text.trim_end().to_owned().into();
        }
        Ok(())
    }
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Block<'a> {
    Block::Text {
        text: text.into(),
        citations: Vec::new(),
        cache_control: None,
    }
}

/// A text of the system's among the user's.
fn as_users(block: Block<'_>) -> Block<'_> {
    match block {
        Block::Text {
            text,
            citations,
            cache_control,
        } => Block::Text {
            text: format!("<system>\n{text}\n</system>").into(),
            citations,
            cache_control,
        },
        other => other,
    }
}

/// One plain text needs no list around it.
fn content(mut blocks: Vec<Block<'_>>) -> Content<'_> {
    let is_plain = matches!(
        blocks.as_slice(),
        [Block::Text { citations, cache_control: None, .. }] if citations.is_empty()
    );
    match blocks.pop() {
        Some(Block::Text { text, .. }) if is_plain => Content::Text(text),
        last => {
            blocks.extend(last);
            Content::Blocks(blocks)
        }
    }
}

/// Makes blocks of parts.
struct Blocks<'n> {
    surface: Surface,
    /// Where the message stands that is written.
    spot: Spot,
    cites: bool,
    notes: &'n mut Notes,
}

impl Blocks<'_> {
    fn of<'a>(&mut self, message: &'a Message) -> Result<Vec<Block<'a>>, Error> {
        let mut blocks = Vec::with_capacity(message.parts.len());
        for part in &message.parts {
            blocks.extend(self.of_part(part, message.role)?);
        }
        Ok(blocks)
    }

    fn of_part<'a>(&mut self, part: &'a Part, role: Role) -> Result<Option<Block<'a>>, Error> {
        let is_assistant = role == Role::Assistant;
        let hears_only = matches!(role, Role::System | Role::Developer);
        Ok(match part {
            Part::Text { text, citations, cache } => self.of_text(text, citations, cache.as_ref(), is_assistant),
            Part::Refusal(refusal) if refusal.trim().is_empty() => None,
            Part::Refusal(refusal) => {
                self.notes.mapped(self.spot.name(Thing::Refusal), "a text");
                Some(text(refusal))
            }
            Part::Image(_) | Part::Document(_) if is_assistant || hears_only => {
                let what = "pictures and documents may stand in the user's messages and in results of tools only";
                let thing = if matches!(part, Part::Image(_)) {
                    Thing::Image
                } else {
                    Thing::File
                };
                return Err(unsupported(&self.spot.name(thing), what));
            }
            Part::Image(image) => Some(self.of_image(image)?),
            Part::Document(document) => Some(self.of_document(document)?),
            Part::Audio(audio) => self.of_audio(audio, is_assistant)?,
            Part::Call(call) => Some(self.of_call(call)),
            Part::Result(result) => Some(self.of_result(result)?),
            Part::Thought(thought) => self.of_thought(thought),
            Part::Stranger(stranger) => {
                self.of_stranger(stranger, is_assistant)?;
                None
            }
        })
    }

    fn of_text<'a>(
        &mut self,
        text: &'a str,
        citations: &[Citation],
        cache_control: Option<&'a Value>,
        is_assistant: bool,
    ) -> Option<Block<'a>> {
        if text.trim().is_empty() {
            if !text.is_empty() || cache_control.is_some() {
                let why = "a text of nothing but white space is refused there";
                self.notes.dropped(self.spot.name(Thing::Content), why);
            }
            return None;
        }
        let mut kept = Vec::new();
        for citation in citations.iter().filter(|_| is_assistant) {
            // The vendor takes back its own only.
            let is_own = citation.raw.as_ref().is_some_and(|raw| raw.get("cited_text").is_some());
            if is_own {
                kept.extend(write_citation(citation, self.notes));
            } else {
                let why = "the vendor takes back citations of its own only";
                self.notes.dropped(self.spot.name(Thing::Citations), why);
            }
        }
        Some(Block::Text {
            text: text.into(),
            citations: kept,
            cache_control,
        })
    }

    fn of_image<'a>(&mut self, image: &'a Image) -> Result<Block<'a>, Error> {
        if image.detail.as_deref().is_some_and(|detail| detail != "auto") {
            self.notes
                .dropped(self.spot.name(Thing::Detail), "pictures have no detail there");
        }
        let source = match &image.source {
            Source::Url(url) => Stored::Url { url },
            Source::Data { media_type, base64 } => {
                if !PICTURES.contains(&media_type.as_str()) {
                    let what = format!("a picture of type {media_type}; send it as JPEG, PNG, GIF or WebP");
                    return Err(unsupported(&self.spot.name(Thing::Image), &what));
                }
                Stored::Base64 {
                    media_type,
                    data: base64,
                }
            }
            Source::File(file_id) => self.of_file(file_id, Thing::Image)?,
            Source::Text(_) => return Err(unsupported(&self.spot.name(Thing::Image), "a picture that is a text")),
        };
        Ok(Block::Image {
            source,
            cache_control: image.cache.as_ref(),
        })
    }

    /// A file is known to the vendor that it was given to.
    fn of_file<'a>(&self, file_id: &'a str, thing: Thing) -> Result<Stored<'a>, Error> {
        if self.surface.dialect() == Dialect::Anthropic {
            return Ok(Stored::File { file_id });
        }
        let what = "a file that was uploaded to another vendor; send its content, or a URL";
        Err(unsupported(&self.spot.name(thing), what))
    }

    fn of_document<'a>(&mut self, document: &'a Document) -> Result<Block<'a>, Error> {
        let source = match &document.source {
            Source::Url(url) => Stored::Url { url },
            Source::Data { media_type, base64 } if media_type == "application/pdf" => Stored::Base64 {
                media_type,
                data: base64,
            },
            Source::Data { media_type, base64 } => Stored::Text {
                media_type: "text/plain",
                data: self.of_text_file(media_type, base64)?.into(),
            },
            Source::File(file_id) => self.of_file(file_id, Thing::File)?,
            Source::Text(text) => Stored::Text {
                media_type: "text/plain",
                data: text.into(),
            },
        };
        let cites = document.cite == Some(true);
        if cites && !self.cites {
            let why = "the vendor takes no citations together with a format";
            self.notes.dropped(self.spot.name(Thing::Cite), why);
        }
        Ok(Block::Document {
            source,
            title: document.name.as_deref(),
            context: document.context.as_deref(),
            citations: (cites && self.cites).then(|| json!({ "enabled": true })),
            cache_control: document.cache.as_ref(),
        })
    }

    /// Other files than PDFs are read if they are text.
    fn of_text_file(&mut self, media_type: &str, base64: &str) -> Result<String, Error> {
        let kind = media_type.split(';').next().unwrap_or_default().trim();
        let is_text = kind.starts_with("text/")
            || kind.ends_with("+json")
            || kind.ends_with("+xml")
            || matches!(
                kind,
                "application/json"
                    | "application/xml"
                    | "application/yaml"
                    | "application/x-yaml"
                    | "application/javascript"
            );
        let decoded = if is_text { STANDARD.decode(base64).ok() } else { None };
        let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) else {
            let what = format!("a file of type {media_type}; send it as PDF or as text");
            return Err(unsupported(&self.spot.name(Thing::File), &what));
        };
        if kind != "text/plain" {
            self.notes
                .mapped(self.spot.name(Thing::File), "a document of plain text");
        }
        Ok(text)
    }

    fn of_audio<'a>(&mut self, audio: &'a Audio, is_assistant: bool) -> Result<Option<Block<'a>>, Error> {
        match audio.transcript.as_deref().map(str::trim) {
            Some(heard) if !heard.is_empty() => {
                self.notes.approximated(self.spot.name(Thing::Audio), "its transcript");
                Ok(Some(text(heard)))
            }
            _ if is_assistant => {
                self.notes
                    .dropped(self.spot.name(Thing::Audio), "the vendor takes no audio");
                Ok(None)
            }
            _ => Err(unsupported(
                &self.spot.name(Thing::Audio),
                "audio; send its transcript, or ask a model that hears",
            )),
        }
    }

    fn of_call<'a>(&mut self, call: &'a Call) -> Block<'a> {
        if let Some(seal) = &call.seal
            && seal.for_maker(Maker::Anthropic).is_none()
        {
            let why = "the seal of a call is its maker's only";
            self.notes.dropped(self.spot.name(Thing::CallSeal), why);
        }
        Block::ToolUse {
            id: self.of_id(&call.id),
            name: &call.name,
            input: input(
                &call.arguments,
                call.is_custom,
                self.spot.name(Thing::Arguments),
                self.notes,
            ),
            cache_control: call.cache.as_ref(),
        }
    }

    fn of_id<'a>(&mut self, id: &'a str) -> Cow<'a, str> {
        let fitted = fitting(id, LONGEST_ID);
        if fitted != id {
            self.notes.mapped(
                self.spot.name(Thing::CallId),
                "a digest of it: it has other characters, or too many",
            );
        }
        fitted
    }

    fn of_result<'a>(&mut self, result: &'a ResultOf) -> Result<Block<'a>, Error> {
        let mut blocks = Vec::with_capacity(result.parts.len());
        for part in &result.parts {
            blocks.extend(self.of_part(part, Role::Tool)?);
        }
        Ok(Block::ToolResult {
            tool_use_id: self.of_id(&result.call_id),
            content: (!blocks.is_empty()).then(|| content(blocks)),
            is_error: result.is_error,
            cache_control: result.cache.as_ref(),
        })
    }

    fn of_thought<'a>(&mut self, thought: &'a Thought) -> Option<Block<'a>> {
        let seal = thought.seal.as_ref().and_then(|seal| seal.for_maker(Maker::Anthropic));
        let Some(seal) = seal.filter(|seal| !seal.is_empty()) else {
            let why = "a thought without a seal of the vendor's is refused there";
            self.notes.dropped(self.spot.name(Thing::Thought), why);
            return None;
        };
        Some(if thought.is_redacted {
            Block::RedactedThinking { data: seal }
        } else {
            Block::Thinking {
                thinking: &thought.text,
                signature: seal,
            }
        })
    }

    fn of_stranger(&mut self, stranger: &Stranger, is_assistant: bool) -> Result<(), Error> {
        if is_assistant {
            self.notes
                .dropped(stranger.field.clone(), "there is nothing like it there");
            return Ok(());
        }
        let kind = stranger.value.get("type").and_then(Value::as_str);
        let what = format!("there is nothing like {} there; leave it out", kind.unwrap_or("it"));
        Err(unsupported(&stranger.field, &what))
    }
}
