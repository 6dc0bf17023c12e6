//! Requests of callers who write Messages.

use super::UNSIGNED;
use super::fields::{Fields, wrong};
use crate::ir::{
    Call as ToolCall, Citation, Document, Effort, Format, Image, Maker, Message, Part, Place, Prompt, Reasoning,
    ResultOf, Role, Seal, Source, Stranger, Thought, Tool, ToolChoice, ToolKind,
};
use crate::notes::item;
use crate::{Call, Surface};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use switchyard_core::error::Error;

pub(super) fn read(call: &Call) -> Result<Prompt, Error> {
    let mut body = Fields::of_body(&call.body)?;
    let mut prompt = Prompt {
        stream: call.stream,
        ..Prompt::default()
    };
    for known in ["model", "stream"] {
        body.raw(known);
    }
    read_system(&mut body, &mut prompt)?;
    read_messages(&mut body, &mut prompt)?;
    read_tools(&mut body, &mut prompt)?;
    read_choice(&mut body, &mut prompt)?;
    read_thinking(&mut body, &mut prompt)?;
    read_output(&mut body, &mut prompt)?;
    read_sampling(&mut body, &mut prompt, call.surface)?;
    if let Some(mut metadata) = body.object("metadata")? {
        prompt.user = metadata.text("user_id")?;
        prompt.strangers.extend(metadata.strangers());
    }
    prompt.service_tier = match body.text("service_tier")?.as_deref() {
        // In the words that most wires have.
        Some("standard_only") => Some("default".to_owned()),
        other => other.map(str::to_owned),
    };
    if let Some(cache) = body.value("cache_control")? {
        mark_last(&mut prompt, cache);
    }
    prompt.strangers.extend(body.strangers());
    Ok(prompt)
}

/// A mark for the whole request is one for its last part.
fn mark_last(prompt: &mut Prompt, mark: Value) {
    let parts = prompt.messages.iter_mut().flat_map(|message| &mut message.parts);
    let slot = parts.rev().find_map(|part| match part {
        Part::Text { cache, .. } => Some(cache),
        Part::Image(image) => Some(&mut image.cache),
        Part::Document(document) => Some(&mut document.cache),
        Part::Call(call) => Some(&mut call.cache),
        Part::Result(result) => Some(&mut result.cache),
        _ => None,
    });
    if let Some(slot) = slot {
        slot.get_or_insert(mark);
    }
}

// === what is said ===

fn read_system(body: &mut Fields<'_>, prompt: &mut Prompt) -> Result<(), Error> {
    let Some(raw) = body.raw("system") else {
        return Ok(());
    };
    let mut reader = Blocks::default();
    let mut parts = Vec::new();
    reader.read(raw, "system", "must be a text or a list of blocks of text", &mut parts)?;
    prompt.strangers.append(&mut reader.strangers);
    if !parts.is_empty() {
        prompt.messages.push(Message {
            role: Role::System,
            name: None,
            parts,
            at: Place::new("system"),
        });
    }
    Ok(())
}

fn read_messages(body: &mut Fields<'_>, prompt: &mut Prompt) -> Result<(), Error> {
    let messages: Vec<&RawValue> = body.need("messages", "must be a list of messages")?;
    let mut reader = Blocks::default();
    for (index, raw) in messages.into_iter().enumerate() {
        let mut message = Fields::of(raw, item("messages", index))?;
        let role = match message.need_text("role")?.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => {
                return Err(wrong(
                    &message.field("role"),
                    "must be \"user\", \"assistant\" or \"system\"",
                ));
            }
        };
        let path = message.field("content");
        let must = "must be a text or a list of content blocks";
        let content = message
            .raw("content")
            .ok_or_else(|| wrong(&path, &format!("is required, and {must}")))?;
        let mut parts = Vec::new();
        reader.read(content, &path, must, &mut parts)?;
        reader.strangers.extend(message.strangers());
        push(&mut prompt.messages, role, parts, &Place::new(item("messages", index)));
    }
    prompt.strangers.append(&mut reader.strangers);
    Ok(())
}

/// Results of tools stand in the user's messages here, and are messages of their own elsewhere.
fn push(messages: &mut Vec<Message>, role: Role, parts: Vec<Part>, at: &Place) {
    let is_empty = parts.is_empty();
    let mut last = None;
    for part in parts {
        let role = match part {
            Part::Result(_) if role == Role::User => Role::Tool,
            _ => role,
        };
        if last != Some(role) {
            last = Some(role);
            messages.push(Message {
                role,
                name: None,
                parts: Vec::new(),
                at: at.clone(),
            });
        }
        if let Some(message) = messages.last_mut() {
            message.parts.push(part);
        }
    }
    if is_empty {
        messages.push(Message {
            role,
            name: None,
            parts: Vec::new(),
            at: at.clone(),
        });
    }
}

/// Reads blocks of content, wherever they stand.
#[derive(Default)]
struct Blocks {
    /// What the tools are called, by the ids of their calls.
    names: HashMap<String, String>,
    strangers: Vec<Stranger>,
}

impl Blocks {
    fn read(&mut self, raw: &RawValue, path: &str, must: &str, parts: &mut Vec<Part>) -> Result<(), Error> {
        if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
            parts.push(Part::text(text));
            return Ok(());
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| wrong(path, must))?;
        let first = parts.len();
        for (index, block) in blocks.into_iter().enumerate() {
            self.read_block(block, item(path, index), parts)?;
        }
        let sealed = parts.split_off(first);
        parts.append(&mut give_seals_back(sealed));
        Ok(())
    }

    fn read_block(&mut self, raw: &RawValue, path: String, parts: &mut Vec<Part>) -> Result<(), Error> {
        let mut block = Fields::of(raw, path)?;
        let kind = block.need_text("type")?;
        let part = match kind.as_str() {
            "text" => read_text(&mut block)?,
            "image" => Part::Image(self.read_image(&mut block)?),
            "document" => return self.read_document(block, parts),
            "search_result" => self.read_search_result(&mut block)?,
            "tool_use" => Part::Call(self.read_call(&mut block)?),
            "tool_result" => Part::Result(self.read_result(&mut block)?),
            "thinking" | "redacted_thinking" => Part::Thought(read_thought(&mut block, &kind)?),
            _ => {
                let value = serde_json::from_str(raw.get()).unwrap_or_default();
                let field = block.path().to_owned();
                parts.push(Part::Stranger(Stranger { field, value }));
                return Ok(());
            }
        };
        parts.push(part);
        self.strangers.extend(block.strangers());
        Ok(())
    }

    fn read_image(&mut self, block: &mut Fields<'_>) -> Result<Image, Error> {
        let path = block.field("source");
        let mut source = block
            .object("source")?
            .ok_or_else(|| wrong(&path, "is required, and must be an object"))?;
        let kind = source_kind(&mut source)?;
        let image = Image {
            source: read_source(&mut source, kind)?,
            detail: None,
            cache: block.value("cache_control")?,
        };
        self.strangers.extend(source.strangers());
        Ok(image)
    }

    fn read_document(&mut self, mut block: Fields<'_>, parts: &mut Vec<Part>) -> Result<(), Error> {
        let mut document = Document {
            source: Source::Text(String::new()),
            name: block.text("title")?,
            context: block.text("context")?,
            cite: read_cite(&mut block)?,
            cache: block.value("cache_control")?,
        };
        let path = block.field("source");
        let mut source = block
            .object("source")?
            .ok_or_else(|| wrong(&path, "is required, and must be an object"))?;
        let mut pictures = Vec::new();
        let kind = source_kind(&mut source)?;
        if kind == "content" {
            let path = source.field("content");
            let must = "must be a text or a list of content blocks";
            let content = source
                .raw("content")
                .ok_or_else(|| wrong(&path, &format!("is required, and {must}")))?;
            let mut inside = Vec::new();
            self.read(content, &path, must, &mut inside)?;
            let inside = ResultOf {
                parts: inside,
                ..ResultOf::default()
            };
            document.source = Source::Text(inside.text());
            pictures = inside.parts;
            pictures.retain(|part| !matches!(part, Part::Text { .. }));
        } else {
            document.source = read_source(&mut source, kind)?;
        }
        self.strangers.extend(source.strangers());
        self.strangers.extend(block.strangers());
        parts.push(Part::Document(document));
        parts.append(&mut pictures);
        Ok(())
    }

    /// A passage that the caller found itself is a short document.
    fn read_search_result(&mut self, block: &mut Fields<'_>) -> Result<Part, Error> {
        let path = block.field("content");
        let must = "must be a list of blocks of text";
        let content = block
            .raw("content")
            .ok_or_else(|| wrong(&path, &format!("is required, and {must}")))?;
        let mut parts = Vec::new();
        self.read(content, &path, must, &mut parts)?;
        let inside = ResultOf {
            parts,
            ..ResultOf::default()
        };
        Ok(Part::Document(Document {
            source: Source::Text(inside.text()),
            name: block.text("title")?,
            context: block.text("source")?,
            cite: read_cite(block)?,
            cache: block.value("cache_control")?,
        }))
    }

    fn read_call(&mut self, block: &mut Fields<'_>) -> Result<ToolCall, Error> {
        let call = ToolCall {
            id: block.need_text("id")?,
            name: block.need_text("name")?,
            arguments: match block.raw("input") {
                Some(input) if input.get().starts_with('{') => input.get().to_owned(),
                Some(_) => return Err(wrong(&block.field("input"), "must be an object")),
                None => "{}".to_owned(),
            },
            is_custom: false,
            seal: None,
            cache: block.value("cache_control")?,
        };
        self.names.insert(call.id.clone(), call.name.clone());
        Ok(call)
    }

    fn read_result(&mut self, block: &mut Fields<'_>) -> Result<ResultOf, Error> {
        let call_id = block.need_text("tool_use_id")?;
        let mut parts = Vec::new();
        if let Some(content) = block.raw("content") {
            let path = block.field("content");
            self.read(content, &path, "must be a text or a list of content blocks", &mut parts)?;
        }
        Ok(ResultOf {
            name: self.names.get(&call_id).cloned(),
            call_id,
            parts,
            is_error: block.take("is_error", "must be true or false")?.unwrap_or(false),
            is_custom: false,
            cache: block.value("cache_control")?,
        })
    }
}

fn read_text(block: &mut Fields<'_>) -> Result<Part, Error> {
    let citations: Option<Vec<Value>> = block.take("citations", "must be a list")?;
    Ok(Part::Text {
        text: block.need_text("text")?,
        citations: citations.unwrap_or_default().into_iter().map(citation).collect(),
        cache: block.value("cache_control")?,
    })
}

/// A citation as the vendor writes it.
pub(super) fn citation(raw: Value) -> Citation {
    let text = |key: &str| raw.get(key).and_then(Value::as_str).map(str::to_owned);
    Citation {
        url: text("url"),
        title: text("title").or_else(|| text("document_title")),
        quoted: text("cited_text"),
        document: raw.get("document_index").and_then(Value::as_u64),
        start: None,
        end: None,
        raw: Some(raw),
    }
}

fn read_cite(block: &mut Fields<'_>) -> Result<Option<bool>, Error> {
    match block.object("citations")? {
        Some(mut citations) => citations.take("enabled", "must be true or false"),
        None => Ok(None),
    }
}

fn source_kind(source: &mut Fields<'_>) -> Result<&'static str, Error> {
    let must = "is required, and must be \"base64\", \"url\", \"file\", \"text\" or \"content\"";
    let kind = source.raw("type").map(RawValue::get);
    match kind {
        Some("\"base64\"") => Ok("base64"),
        Some("\"url\"") => Ok("url"),
        Some("\"file\"") => Ok("file"),
        Some("\"text\"") => Ok("text"),
        Some("\"content\"") => Ok("content"),
        _ => Err(wrong(&source.field("type"), must)),
    }
}

/// A source whose type was read.
fn read_source(source: &mut Fields<'_>, kind: &str) -> Result<Source, Error> {
    Ok(match kind {
        "url" => Source::Url(source.need_text("url")?),
        "file" => Source::File(source.need_text("file_id")?),
        "text" => {
            // There is one type for it only.
            source.text("media_type")?;
            Source::Text(source.need_text("data")?)
        }
        "base64" => Source::Data {
            media_type: source.need_text("media_type")?,
            base64: source.need_text("data")?,
        },
        _ => {
            return Err(wrong(
                &source.field("type"),
                "must be \"base64\", \"url\" or \"file\" here",
            ));
        }
    })
}

fn read_thought(block: &mut Fields<'_>, kind: &str) -> Result<Thought, Error> {
    let seal =
        |written: String| (!written.is_empty() && written != UNSIGNED).then(|| Seal::read(&written, Maker::Anthropic));
    if kind == "redacted_thinking" {
        return Ok(Thought {
            seal: seal(block.need_text("data")?),
            is_redacted: true,
            ..Thought::default()
        });
    }
    Ok(Thought {
        text: block.need_text("thinking")?,
        is_summary: false,
        seal: block.text("signature")?.and_then(seal),
        is_redacted: false,
    })
}

/// Written before the seal of a call, whose block has no place for one: an empty thought beside it has.
const OF_CALL: &str = "sy.call.";

/// The signature of a thought that holds a call's seal.
pub(super) fn seal_of_call(call_id: &str, seal: &Seal) -> String {
    format!("{OF_CALL}{call_id}.{}", seal.write(Maker::Anthropic))
}

/// Takes the seals of calls out of the thoughts that hold them.
fn give_seals_back(parts: Vec<Part>) -> Vec<Part> {
    let mut seals: HashMap<String, Seal> = HashMap::new();
    let mut kept: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match &part {
            Part::Thought(Thought { seal: Some(seal), .. }) if seal.data.starts_with(OF_CALL) => {
                // Ids have no full stop in this dialect.
                let held = seal.data.strip_prefix(OF_CALL).and_then(|held| held.split_once('.'));
                if let Some((id, seal)) = held {
                    seals.insert(id.to_owned(), Seal::read(seal, Maker::Anthropic));
                }
            }
            _ => kept.push(part),
        }
    }
    for part in &mut kept {
        if let Part::Call(call) = part {
            call.seal = seals.remove(&call.id);
        }
    }
    kept
}

// === what is to be done ===

fn read_tools(body: &mut Fields<'_>, prompt: &mut Prompt) -> Result<(), Error> {
    let tools: Option<Vec<&RawValue>> = body.take("tools", "must be a list of tools")?;
    for (index, raw) in tools.into_iter().flatten().enumerate() {
        let mut tool = Fields::of(raw, item("tools", index))?;
        let at = Place::new(item("tools", index));
        let kind = tool.text("type")?;
        let name = tool.text("name")?;
        let cache = tool.value("cache_control")?;
        if kind.as_deref().is_some_and(|kind| kind != "custom") {
            prompt.tools.push(Tool {
                name: name.or(kind).unwrap_or_default(),
                description: None,
                kind: ToolKind::Vendors(Stranger {
                    field: tool.path().to_owned(),
                    value: serde_json::from_str(raw.get()).unwrap_or_default(),
                }),
                cache,
                at,
            });
            continue;
        }
        let path = tool.field("input_schema");
        let schema = tool
            .take::<serde_json::Map<String, Value>>("input_schema", "must be a JSON schema")?
            .ok_or_else(|| wrong(&path, "is required, and must be a JSON schema of an object"))?;
        prompt.tools.push(Tool {
            name: name.ok_or_else(|| wrong(&tool.field("name"), "is required, and must be a text"))?,
            description: tool.text("description")?,
            kind: ToolKind::Function {
                schema: Some(Value::Object(schema)),
                strict: tool.take("strict", "must be true or false")?,
            },
            cache,
            at,
        });
        prompt.strangers.extend(tool.strangers());
    }
    Ok(())
}

fn read_choice(body: &mut Fields<'_>, prompt: &mut Prompt) -> Result<(), Error> {
    let Some(mut choice) = body.object("tool_choice")? else {
        return Ok(());
    };
    let kind = choice.need_text("type")?;
    prompt.tool_choice = Some(match kind.as_str() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Named(choice.need_text("name")?),
        _ => {
            let must = "must be \"auto\", \"any\", \"tool\" or \"none\"";
            return Err(wrong(&choice.field("type"), must));
        }
    });
    let disabled: Option<bool> = choice.take("disable_parallel_tool_use", "must be true or false")?;
    prompt.parallel_tools = disabled.map(|disabled| !disabled);
    prompt.strangers.extend(choice.strangers());
    Ok(())
}

fn read_thinking(body: &mut Fields<'_>, prompt: &mut Prompt) -> Result<(), Error> {
    let Some(mut thinking) = body.object("thinking")? else {
        return Ok(());
    };
    let mut reasoning = Reasoning::default();
    let kind = thinking.need_text("type")?;
    match kind.as_str() {
        "enabled" => {
            reasoning.budget = Some(thinking.need("budget_tokens", "must be a whole number of tokens")?);
            reasoning.show = Some(true);
        }
        "adaptive" => reasoning.is_adaptive = true,
        "disabled" => reasoning.effort = Some(Effort::None),
        "between_tools" => reasoning.effort = Some(Effort::Minimal),
        _ => {
            let must = "must be \"enabled\", \"adaptive\", \"between_tools\" or \"disabled\"";
            return Err(wrong(&thinking.field("type"), must));
        }
    }
    match thinking.text("display")?.as_deref() {
        Some("omitted") => reasoning.show = Some(false),
        Some(_) => reasoning.show = Some(true),
        None => {}
    }
    prompt.strangers.extend(thinking.strangers());
    prompt.reasoning = Some(reasoning);
    Ok(())
}

fn read_output(body: &mut Fields<'_>, prompt: &mut Prompt) -> Result<(), Error> {
    let must = "must be \"low\", \"medium\", \"high\", \"xhigh\" or \"max\"";
    // The name that it had at first.
    let mut format = body.object("output_format")?;
    if let Some(mut output) = body.object("output_config")? {
        if let Some(written) = output.text("effort")? {
            let field = output.field("effort");
            let effort = Effort::parse(&written).ok_or_else(|| wrong(&field, must))?;
            let reasoning = prompt.reasoning.get_or_insert_default();
            if reasoning.effort.is_none() {
                reasoning.effort = Some(effort);
            } else {
                // Not to think goes before how hard to.
                let value = Value::String(written);
                prompt.strangers.push(Stranger { field, value });
            }
        }
        format = output.object("format")?.or(format);
        prompt.strangers.extend(output.strangers());
    }
    let Some(mut format) = format else {
        return Ok(());
    };
    if format.need_text("type")? != "json_schema" {
        return Err(wrong(&format.field("type"), "must be \"json_schema\""));
    }
    prompt.format = Some(Format::Schema {
        name: format.text("name")?,
        description: None,
        schema: format.need("schema", "must be a JSON schema")?,
        // There is no other way here.
        strict: Some(true),
    });
    prompt.strangers.extend(format.strangers());
    Ok(())
}

fn read_sampling(body: &mut Fields<'_>, prompt: &mut Prompt, surface: Surface) -> Result<(), Error> {
    let sampling = &mut prompt.sampling;
    sampling.temperature = body.take("temperature", "must be a number from 0 to 1")?;
    sampling.top_p = body.take("top_p", "must be a number from 0 to 1")?;
    sampling.top_k = body.take("top_k", "must be a whole number")?;
    let stop: Option<Vec<String>> = body.take("stop_sequences", "must be a list of texts")?;
    sampling.stop = stop.unwrap_or_default();
    let must = "must be a whole number: the most tokens that the answer may have";
    prompt.max_tokens = if surface == Surface::Messages {
        Some(body.need("max_tokens", must)?)
    } else {
        body.take("max_tokens", must)?
    };
    Ok(())
}
