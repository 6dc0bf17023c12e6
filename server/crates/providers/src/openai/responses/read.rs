//! Reads a request.

use super::{Sealed, read_seal};
use crate::Call as Request;
use crate::ir::{
    Audio, Call, Citation, Custom, Document, Effort, Format, Image, Message, Part, Place, Prompt, Reasoning, ResultOf,
    Role, Seal, Source, Stranger, Thought, Tool, ToolChoice, ToolKind,
};
use crate::notes::item;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::mem;
use switchyard_core::error::{Error, Kind};

type Object = Map<String, Value>;

pub(super) fn read(call: &Request) -> Result<Prompt, Error> {
    let body: Object = serde_json::from_slice(&call.body).map_err(|error| {
        let message = format!("the body is not a valid JSON object: {error}");
        Error::new(Kind::InvalidRequest, message)
    })?;
    let mut prompt = Prompt {
        stream: call.stream,
        ..Prompt::default()
    };
    let mut later = Later::default();
    for (key, value) in body {
        if !value.is_null() {
            field(&mut prompt, &mut later, key, value)?;
        }
    }
    if let Some(id) = later.safety_identifier {
        // Two names for one thing, and the newer one is what vendors look at.
        let older = prompt.user.replace(id);
        prompt.strangers.extend(older.map(|user| stranger("user", user)));
    }
    let mut conversation = Conversation::default();
    if let Some(text) = later.instructions {
        conversation
            .messages
            .push(message(Role::System, vec![Part::text(text)], "instructions"));
    }
    conversation.read(later.input)?;
    if conversation.messages.is_empty() {
        return Err(wrong("input", "is required: a text, or a list of at least one item"));
    }
    prompt.messages = conversation.finish();
    prompt.strangers.append(&mut conversation.strangers);
    Ok(prompt)
}

/// What can be placed only when everything else was read.
#[derive(Default)]
struct Later {
    input: Value,
    instructions: Option<String>,
    safety_identifier: Option<String>,
}

fn field(prompt: &mut Prompt, later: &mut Later, key: String, value: Value) -> Result<(), Error> {
    let sampling = &mut prompt.sampling;
    match &*key {
        "model" | "stream" => {}
        "input" => later.input = value,
        "instructions" => later.instructions = Some(text(value, &key)?).filter(|text| !text.is_empty()),
        "tools" => prompt.tools = tools(value, &mut prompt.strangers)?,
        "tool_choice" => prompt.tool_choice = tool_choice(value, &mut prompt.strangers)?,
        "parallel_tool_calls" => prompt.parallel_tools = Some(flag(&value, &key)?),
        "text" => text_config(prompt, value)?,
        "reasoning" => prompt.reasoning = reasoning(value, &mut prompt.strangers)?,
        "max_output_tokens" => prompt.max_tokens = Some(count(&value, &key)?),
        "temperature" => sampling.temperature = Some(number(&value, &key)?),
        "top_p" => sampling.top_p = Some(number(&value, &key)?),
        "top_k" => sampling.top_k = Some(count(&value, &key)?),
        "presence_penalty" => sampling.presence_penalty = Some(number(&value, &key)?),
        "frequency_penalty" => sampling.frequency_penalty = Some(number(&value, &key)?),
        "top_logprobs" => {
            // None at all is what everybody gets who does not ask.
            let most = Some(count(&value, &key)?).filter(|most| *most > 0);
            sampling.top_logprobs = most;
            sampling.logprobs = sampling.logprobs.or(most.map(|_| true));
        }
        "include" => include(prompt, value)?,
        "metadata" => prompt.metadata = Some(Value::Object(object(value, &key)?)),
        "store" => prompt.store = Some(flag(&value, &key)?),
        "service_tier" => prompt.service_tier = Some(text(value, &key)?),
        "user" => prompt.user = Some(text(value, &key)?),
        "safety_identifier" => later.safety_identifier = Some(text(value, &key)?),
        "prompt_cache_key" => prompt.cache_key = Some(text(value, &key)?),
        // What everybody does who is not asked for something else.
        "truncation" if value == "disabled" => {}
        "background" if value == false => {}
        "background" => {
            let remedy = "is not possible with this model: leave it out and ask for a stream, or ask for a model whose \
                          provider has Responses itself";
            return Err(unsupported(&key, remedy));
        }
        "conversation" | "prompt" => {
            let remedy = "names something that only OpenAI keeps: send what it says as `input` and `instructions`, or \
                          ask for a model whose provider has Responses itself";
            return Err(unsupported(&key, remedy));
        }
        "stream_options" => {
            // Noise against those who look at lengths is never added here, which is all that may be said about it.
            let mut options = object(value, &key)?;
            options.shift_remove("include_obfuscation");
            leftovers(options, &key, &[], &mut prompt.strangers);
        }
        _ => prompt.strangers.push(stranger(key, value)),
    }
    Ok(())
}

fn text_config(prompt: &mut Prompt, value: Value) -> Result<(), Error> {
    let mut config = object(value, "text")?;
    if let Some(format) = given(&mut config, "format") {
        prompt.format = Some(read_format(format, &mut prompt.strangers)?);
    }
    if let Some(verbosity) = given(&mut config, "verbosity") {
        prompt.verbosity = Some(text(verbosity, "text.verbosity")?);
    }
    leftovers(config, "text", &[], &mut prompt.strangers);
    Ok(())
}

fn read_format(value: Value, strangers: &mut Vec<Stranger>) -> Result<Format, Error> {
    const FIELD: &str = "text.format";
    let mut format = object(value, FIELD)?;
    let kind = needed_text(&mut format, "type", FIELD)?;
    let read = match &*kind {
        "text" => Format::Text,
        "json_object" => Format::Json,
        "json_schema" => Format::Schema {
            name: given_text(&mut format, "name", FIELD)?,
            description: given_text(&mut format, "description", FIELD)?,
            schema: given(&mut format, "schema")
                .ok_or_else(|| wrong("text.format.schema", "is required: the JSON schema of the answer"))?,
            strict: given_flag(&mut format, "strict", FIELD)?,
        },
        _ => {
            return Err(wrong(
                "text.format.type",
                "must be `text`, `json_object` or `json_schema`",
            ));
        }
    };
    leftovers(format, FIELD, &[], strangers);
    Ok(read)
}

fn reasoning(value: Value, strangers: &mut Vec<Stranger>) -> Result<Option<Reasoning>, Error> {
    const FIELD: &str = "reasoning";
    let mut config = object(value, FIELD)?;
    let effort = match given_text(&mut config, "effort", FIELD)? {
        None => None,
        Some(effort) => Some(Effort::parse(&effort).ok_or_else(|| {
            wrong(
                "reasoning.effort",
                "must be `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`",
            )
        })?),
    };
    let mut show = None;
    for key in ["summary", "generate_summary"] {
        if let Some(summary) = given_text(&mut config, key, FIELD)? {
            show = Some(summary != "none");
            // Elsewhere nobody can say how long it is to be.
            if !matches!(&*summary, "auto" | "none") {
                strangers.push(stranger(format!("{FIELD}.{key}"), summary));
            }
        }
    }
    leftovers(config, FIELD, &[], strangers);
    Ok((effort.is_some() || show.is_some()).then_some(Reasoning {
        effort,
        show,
        ..Reasoning::default()
    }))
}

fn include(prompt: &mut Prompt, value: Value) -> Result<(), Error> {
    for (index, value) in list(value, "include")?.into_iter().enumerate() {
        match value.as_str() {
            Some("message.output_text.logprobs") => prompt.sampling.logprobs = Some(true),
            // It always is.
            Some("reasoning.encrypted_content") => {}
            Some(_) => prompt.strangers.push(stranger(item("include", index), value)),
            None => return Err(wrong(&item("include", index), "must be a text")),
        }
    }
    Ok(())
}

// === tools ===

fn tools(value: Value, strangers: &mut Vec<Stranger>) -> Result<Vec<Tool>, Error> {
    let tools = list(value, "tools")?.into_iter().enumerate();
    tools
        .map(|(index, value)| tool(value, &item("tools", index), strangers))
        .collect()
}

fn tool(value: Value, path: &str, strangers: &mut Vec<Stranger>) -> Result<Tool, Error> {
    let mut tool = object(value, path)?;
    let kind = tool.get("type").and_then(Value::as_str).map(str::to_owned);
    let Some(kind) = kind else {
        return Err(wrong(&format!("{path}.type"), "is required: `function`, `custom`, …"));
    };
    if !matches!(&*kind, "function" | "custom") {
        return Ok(Tool {
            name: kind,
            description: None,
            kind: ToolKind::Vendors(stranger(path, Value::Object(tool))),
            cache: None,
            at: Place::new(path),
        });
    }
    let name = needed_text(&mut tool, "name", path)?;
    let description = given_text(&mut tool, "description", path)?;
    let read = if kind == "function" {
        ToolKind::Function {
            schema: given(&mut tool, "parameters"),
            strict: given_flag(&mut tool, "strict", path)?,
        }
    } else {
        ToolKind::Custom(Custom {
            format: given(&mut tool, "format").and_then(grammar),
        })
    };
    leftovers(tool, path, &["type"], strangers);
    Ok(Tool {
        name,
        description,
        kind: read,
        cache: None,
        at: Place::new(path),
    })
}

/// A grammar as Responses has it; chat's, which is one level deeper, is taken as well. Any text is what there is without one.
pub(super) fn grammar(format: Value) -> Option<Value> {
    let Some(inner) = format.get("grammar").and_then(Value::as_object) else {
        return Some(format).filter(|format| format.get("type").is_none_or(|kind| kind != "text"));
    };
    let part = |key: &str| inner.get(key).cloned().unwrap_or_default();
    Some(json!({"type": "grammar", "syntax": part("syntax"), "definition": part("definition")}))
}

fn tool_choice(value: Value, strangers: &mut Vec<Stranger>) -> Result<Option<ToolChoice>, Error> {
    const FIELD: &str = "tool_choice";
    const MUST: &str = "must be `auto`, `none`, `required`, or an object with a `type`";
    if let Some(word) = value.as_str() {
        return Ok(Some(match word {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            _ => return Err(wrong(FIELD, MUST)),
        }));
    }
    let Value::Object(mut choice) = value else {
        return Err(wrong(FIELD, MUST));
    };
    match choice.get("type").and_then(Value::as_str) {
        Some("function" | "custom") => Ok(Some(ToolChoice::Named(needed_text(&mut choice, "name", FIELD)?))),
        Some("allowed_tools") => {
            let required = given_text(&mut choice, "mode", FIELD)?.is_some_and(|mode| mode == "required");
            let allowed = given(&mut choice, "tools").unwrap_or(Value::Array(Vec::new()));
            let mut names = Vec::new();
            for (index, value) in list(allowed, "tool_choice.tools")?.into_iter().enumerate() {
                let path = item("tool_choice.tools", index);
                let mut allowed = object(value, &path)?;
                if matches!(allowed.get("type").and_then(Value::as_str), Some("function" | "custom")) {
                    names.push(needed_text(&mut allowed, "name", &path)?);
                } else {
                    strangers.push(stranger(path, Value::Object(allowed)));
                }
            }
            Ok(Some(if names.is_empty() {
                ToolChoice::None
            } else {
                ToolChoice::Among { names, required }
            }))
        }
        // A tool that the vendor runs.
        Some(_) => {
            strangers.push(stranger(FIELD, Value::Object(choice)));
            Ok(None)
        }
        None => Err(wrong(FIELD, MUST)),
    }
}

// === items ===

#[derive(Default)]
struct Conversation {
    messages: Vec<Message>,
    strangers: Vec<Stranger>,
    /// Names of the tools that were called, by the calls' ids.
    names: HashMap<String, String>,
    /// Seals of calls.
    seals: HashMap<String, Seal>,
}

impl Conversation {
    fn read(&mut self, input: Value) -> Result<(), Error> {
        match input {
            Value::Null => {}
            Value::String(text) => self.messages.push(message(Role::User, vec![Part::text(text)], "input")),
            Value::Array(items) => {
                for (index, value) in items.into_iter().enumerate() {
                    self.item(value, &item("input", index))?;
                }
            }
            _ => return Err(wrong("input", "must be a text or a list of items")),
        }
        Ok(())
    }

    /// Everything that was said, each call with its seal.
    fn finish(&mut self) -> Vec<Message> {
        let mut messages = mem::take(&mut self.messages);
        if !self.seals.is_empty() {
            for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
                if let Part::Call(call) = part {
                    call.seal = self.seals.get(&call.id).cloned();
                }
            }
        }
        messages
    }

    fn item(&mut self, value: Value, path: &str) -> Result<(), Error> {
        let item = object(value, path)?;
        let kind = match item.get("type") {
            None | Some(Value::Null) => None,
            Some(Value::String(kind)) => Some(kind.as_str()),
            Some(_) => return Err(wrong(&format!("{path}.type"), "must be a text")),
        };
        match kind {
            Some("message") => self.message(item, path),
            None if item.contains_key("role") => self.message(item, path),
            Some("function_call") => self.call(item, path, false),
            Some("custom_tool_call") => self.call(item, path, true),
            Some("function_call_output") => self.result(item, path, false),
            Some("custom_tool_call_output") => self.result(item, path, true),
            Some("reasoning") => self.reasoning(item, path),
            Some("item_reference") => Err(reference(path)),
            None if item.contains_key("id") => Err(reference(path)),
            None => Err(wrong(
                &format!("{path}.type"),
                "is required: `message`, `function_call`, …",
            )),
            // What tools of the vendor did, or were told.
            Some(_) => {
                self.strangers.push(stranger(path, Value::Object(item)));
                Ok(())
            }
        }
    }

    fn message(&mut self, mut item: Object, path: &str) -> Result<(), Error> {
        let role = match &*needed_text(&mut item, "role", path)? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            "developer" => Role::Developer,
            _ => {
                return Err(wrong(
                    &format!("{path}.role"),
                    "must be `user`, `assistant`, `system` or `developer`",
                ));
            }
        };
        let parts = match given(&mut item, "content") {
            Some(content) => self.content(content, &format!("{path}.content"))?,
            None if role == Role::Assistant => Vec::new(),
            None => {
                return Err(wrong(
                    &format!("{path}.content"),
                    "is required: a text or a list of parts",
                ));
            }
        };
        let name = given_text(&mut item, "name", path)?;
        leftovers(item, path, &["type", "id", "status"], &mut self.strangers);
        if role == Role::Assistant && name.is_none() {
            self.assistant(parts, true, path);
        } else {
            let at = Place::new(path);
            self.messages.push(Message { role, name, parts, at });
        }
        Ok(())
    }

    /// Items of one turn of the model are one message: its thoughts, what it said, its calls. Something that was said begins
    /// another one, unless calls still wait for their results.
    fn assistant(&mut self, parts: Vec<Part>, is_said: bool, path: &str) {
        let is_open = |last: &&mut Message| {
            let has = |what: fn(&Part) -> bool| last.parts.iter().any(what);
            last.role == Role::Assistant
                && last.name.is_none()
                && (!is_said
                    || has(|part| matches!(part, Part::Call(_)))
                    || last.parts.iter().all(|part| matches!(part, Part::Thought(_))))
        };
        match self.messages.last_mut().filter(is_open) {
            Some(last) => {
                last.parts.extend(parts);
                last.at = Place::new(SEVERAL);
            }
            None => self.messages.push(message(Role::Assistant, parts, path)),
        }
    }

    fn call(&mut self, mut item: Object, path: &str, is_custom: bool) -> Result<(), Error> {
        let id = needed_text(&mut item, "call_id", path)?;
        let name = needed_text(&mut item, "name", path)?;
        let key = if is_custom { "input" } else { "arguments" };
        let mut arguments = given_text(&mut item, key, path)?.unwrap_or_default();
        if arguments.is_empty() && !is_custom {
            "{}".clone_into(&mut arguments);
        }
        leftovers(item, path, &["type", "id", "status"], &mut self.strangers);
        self.names.insert(id.clone(), name.clone());
        let call = Call {
            id,
            name,
            arguments,
            is_custom,
            ..Call::default()
        };
        self.assistant(vec![Part::Call(call)], false, path);
        Ok(())
    }

    fn result(&mut self, mut item: Object, path: &str, is_custom: bool) -> Result<(), Error> {
        let call_id = needed_text(&mut item, "call_id", path)?;
        let field = format!("{path}.output");
        let output = given(&mut item, "output").ok_or_else(|| {
            wrong(
                &field,
                "is required: what the tool gave back, a text or a list of parts",
            )
        })?;
        let parts = self.content(output, &field)?;
        leftovers(item, path, &["type", "id", "status"], &mut self.strangers);
        let result = Part::Result(ResultOf {
            name: self.names.get(&call_id).cloned(),
            call_id,
            parts,
            is_custom,
            ..ResultOf::default()
        });
        match self.messages.last_mut().filter(|last| last.role == Role::Tool) {
            Some(last) => {
                last.parts.push(result);
                last.at = Place::new(SEVERAL);
            }
            None => self.messages.push(message(Role::Tool, vec![result], path)),
        }
        Ok(())
    }

    fn reasoning(&mut self, mut item: Object, path: &str) -> Result<(), Error> {
        let sealed = given_text(&mut item, "encrypted_content", path)?.filter(|sealed| !sealed.is_empty());
        let mut said = |key: &str| -> Result<String, Error> {
            let Some(value) = given(&mut item, key) else {
                return Ok(String::new());
            };
            let field = format!("{path}.{key}");
            let mut whole = String::new();
            for (index, part) in list(value, &field)?.into_iter().enumerate() {
                let field = crate::notes::item(&field, index);
                let piece = needed_text(&mut object(part, &field)?, "text", &field)?;
                if !whole.is_empty() {
                    whole.push_str("\n\n");
                }
                whole.push_str(&piece);
            }
            Ok(whole)
        };
        let (summary, content) = (said("summary")?, said("content")?);
        let is_summary = content.is_empty();
        if !is_summary && !summary.is_empty() {
            self.strangers
                .push(stranger(format!("{path}.summary"), summary.clone()));
        }
        leftovers(item, path, &["type", "id", "status"], &mut self.strangers);
        let text = if is_summary { summary } else { content };
        let (seal, is_redacted) = match sealed.as_deref().map(read_seal) {
            Some(Sealed::Call { id, seal }) => {
                self.seals.insert(id, seal);
                return Ok(());
            }
            Some(Sealed::Thought { seal, is_redacted }) => {
                let is_hidden = text.is_empty() && seal.maker == crate::ir::Maker::OpenAi;
                (Some(seal), is_redacted || is_hidden)
            }
            None => (None, false),
        };
        if text.is_empty() && seal.is_none() {
            return Ok(());
        }
        let thought = Thought {
            is_summary: is_summary && !text.is_empty(),
            text,
            seal,
            is_redacted,
        };
        self.assistant(vec![Part::Thought(thought)], false, path);
        Ok(())
    }

    // === parts ===

    fn content(&mut self, content: Value, path: &str) -> Result<Vec<Part>, Error> {
        match content {
            Value::String(text) => Ok(vec![Part::text(text)]),
            Value::Array(parts) => {
                let parts = parts.into_iter().enumerate();
                parts.map(|(index, part)| self.part(part, &item(path, index))).collect()
            }
            _ => Err(wrong(path, "must be a text or a list of parts")),
        }
    }

    fn part(&mut self, value: Value, path: &str) -> Result<Part, Error> {
        let mut part = object(value, path)?;
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let read = match &*kind {
            "input_text" | "output_text" | "text" => {
                let text = needed_text(&mut part, "text", path)?;
                let citations = match given(&mut part, "annotations") {
                    Some(Value::Array(annotations)) => annotations.iter().map(citation).collect(),
                    _ => Vec::new(),
                };
                // What a token's odds were is nothing that anybody can be told.
                part.shift_remove("logprobs");
                Part::Text {
                    text,
                    citations,
                    cache: None,
                }
            }
            "refusal" => Part::Refusal(needed_text(&mut part, "refusal", path)?),
            "input_image" => Part::Image(image(&mut part, path)?),
            "input_file" => Part::Document(document(&mut part, path)?),
            "input_audio" => Part::Audio(audio(&mut part, path)?),
            "" => {
                return Err(wrong(
                    &format!("{path}.type"),
                    "is required: `input_text`, `input_image`, …",
                ));
            }
            _ => return Ok(Part::Stranger(stranger(path, Value::Object(part)))),
        };
        leftovers(part, path, &["type"], &mut self.strangers);
        Ok(read)
    }
}

fn image(part: &mut Object, path: &str) -> Result<Image, Error> {
    let url = given_text(part, "image_url", path)?;
    let file = given_text(part, "file_id", path)?;
    let source = match (url, file) {
        (Some(url), _) => located(url, &format!("{path}.image_url"))?,
        (None, Some(file)) => Source::File(file),
        (None, None) => {
            return Err(wrong(
                &format!("{path}.image_url"),
                "is required: a URL, with `https:` or `data:`",
            ));
        }
    };
    Ok(Image {
        source,
        detail: given_text(part, "detail", path)?,
        cache: None,
    })
}

fn document(part: &mut Object, path: &str) -> Result<Document, Error> {
    let name = given_text(part, "filename", path)?;
    let data = given_text(part, "file_data", path)?;
    let url = given_text(part, "file_url", path)?;
    let file = given_text(part, "file_id", path)?;
    let source = match (data, url, file) {
        (Some(data), ..) if data.starts_with("data:") => located(data, &format!("{path}.file_data"))?,
        (Some(base64), ..) => Source::Data {
            media_type: media_type(name.as_deref()).to_owned(),
            base64,
        },
        (None, Some(url), _) => located(url, &format!("{path}.file_url"))?,
        (None, None, Some(file)) => Source::File(file),
        (None, None, None) => {
            return Err(wrong(
                &format!("{path}.file_data"),
                "is required: a `data:` URL; or else `file_url` or `file_id`",
            ));
        }
    };
    Ok(Document {
        source,
        name,
        context: None,
        cite: None,
        cache: None,
    })
}

/// Of a file whose sender does not say it: by its name, and most are PDFs.
fn media_type(name: Option<&str>) -> &'static str {
    let ending = name
        .and_then(|name| name.rsplit_once('.'))
        .map(|(_, ending)| ending.to_ascii_lowercase());
    match ending.as_deref() {
        Some("txt" | "log") => "text/plain",
        Some("md") => "text/markdown",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        Some("html" | "htm") => "text/html",
        _ => "application/pdf",
    }
}

fn audio(part: &mut Object, path: &str) -> Result<Audio, Error> {
    let path = format!("{path}.input_audio");
    let audio = given(part, "input_audio").ok_or_else(|| wrong(&path, "is required: `data` and `format`"))?;
    let mut audio = object(audio, &path)?;
    let base64 = needed_text(&mut audio, "data", &path)?;
    let format = given_text(&mut audio, "format", &path)?;
    let media_type = match format.as_deref() {
        Some("mp3") => "audio/mpeg".to_owned(),
        Some(format) => format!("audio/{format}"),
        None => "audio/wav".to_owned(),
    };
    Ok(Audio {
        source: Source::Data { media_type, base64 },
        format,
        transcript: None,
    })
}

/// What a URL means: the data in it, or the place.
fn located(url: String, field: &str) -> Result<Source, Error> {
    let Some(data) = url.strip_prefix("data:") else {
        return Ok(Source::Url(url));
    };
    let (head, base64) = data
        .split_once(',')
        .filter(|(head, _)| head.ends_with(";base64"))
        .ok_or_else(|| wrong(field, "must be `data:<media type>;base64,<data>` if it holds data"))?;
    let media_type = head.split(';').next().unwrap_or_default();
    Ok(Source::Data {
        media_type: media_type.to_owned(),
        base64: base64.to_owned(),
    })
}

pub(super) fn citation(annotation: &Value) -> Citation {
    let text = |key: &str| annotation.get(key).and_then(Value::as_str).map(str::to_owned);
    let count = |key: &str| annotation.get(key).and_then(Value::as_u64);
    Citation {
        url: text("url"),
        title: text("title").or_else(|| text("filename")),
        start: count("start_index"),
        end: count("end_index"),
        raw: Some(annotation.clone()),
        ..Citation::default()
    }
}

// === values ===

/// The place of several items that are one message elsewhere.
const SEVERAL: &str = "input[]";

fn message(role: Role, parts: Vec<Part>, path: &str) -> Message {
    Message {
        role,
        name: None,
        parts,
        at: Place::new(path),
    }
}

fn stranger(field: impl Into<String>, value: impl Into<Value>) -> Stranger {
    Stranger {
        field: field.into(),
        value: value.into(),
    }
}

fn wrong(field: &str, must: &str) -> Error {
    Error::new(Kind::InvalidRequest, format!("`{field}` {must}")).with_param(field)
}

fn unsupported(field: &str, what: &str) -> Error {
    Error::new(Kind::Unsupported, format!("`{field}` {what}")).with_param(field)
}

fn reference(path: &str) -> Error {
    let what = "refers to an item that is not kept here: send the item itself, or name the answer that it is from in \
                `previous_response_id`";
    unsupported(path, what)
}

/// Takes a member that is there and not `null`.
fn given(object: &mut Object, key: &str) -> Option<Value> {
    object.shift_remove(key).filter(|value| !value.is_null())
}

fn given_text(object: &mut Object, key: &str, path: &str) -> Result<Option<String>, Error> {
    match given(object, key) {
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(&format!("{path}.{key}"), "must be a text")),
        None => Ok(None),
    }
}

fn needed_text(object: &mut Object, key: &str, path: &str) -> Result<String, Error> {
    given_text(object, key, path)?.ok_or_else(|| wrong(&format!("{path}.{key}"), "is required, and must be a text"))
}

fn given_flag(object: &mut Object, key: &str, path: &str) -> Result<Option<bool>, Error> {
    let value = given(object, key);
    value.map(|value| flag(&value, &format!("{path}.{key}"))).transpose()
}

/// What is left of an object of which everything known was taken.
fn leftovers(object: Object, path: &str, known: &[&str], strangers: &mut Vec<Stranger>) {
    for (key, value) in object {
        if !value.is_null() && !known.contains(&&*key) {
            strangers.push(stranger(format!("{path}.{key}"), value));
        }
    }
}

fn text(value: Value, field: &str) -> Result<String, Error> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(wrong(field, "must be a text")),
    }
}

fn object(value: Value, field: &str) -> Result<Object, Error> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(wrong(field, "must be an object")),
    }
}

fn list(value: Value, field: &str) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(list) => Ok(list),
        _ => Err(wrong(field, "must be a list")),
    }
}

fn flag(value: &Value, field: &str) -> Result<bool, Error> {
    value.as_bool().ok_or_else(|| wrong(field, "must be true or false"))
}

fn number(value: &Value, field: &str) -> Result<f64, Error> {
    value.as_f64().ok_or_else(|| wrong(field, "must be a number"))
}

fn count(value: &Value, field: &str) -> Result<u64, Error> {
    /// Beyond it not every whole number is one of floating point.
    const MOST: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a whole number, and within a range that fits"
    )]
    let whole = |number: f64| (number.fract() == 0.0 && (0.0..=MOST).contains(&number)).then_some(number as u64);
    value
        .as_u64()
        .or_else(|| value.as_f64().and_then(whole))
        .ok_or_else(|| wrong(field, "must be a whole number, and not negative"))
}
