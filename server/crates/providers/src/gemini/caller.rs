//! Reads requests of callers who write as Google's libraries do.
//!
//! The format is the JSON of protocol buffers: every name may be written in camel case or with underscores, 64-bit numbers may
//! be texts, enumerated words are taken in any case, and bytes are in either alphabet of base64. A call may have no id; then the
//! result that names its function next is its own.

use super::told::{plain_base64, read_seal};
use crate::ir::{
    Audio, Call as ToolCall, Document, Effort, Format, Image, Message, Part, Place, Prompt, Reasoning, ResultOf, Role,
    Source, Stranger, Thought, Tool, ToolChoice, ToolKind,
};
use crate::notes::item;
use crate::schema::widened;
use crate::{Call, Surface};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use switchyard_core::error::{Error, Kind};

pub(super) fn read(call: &Call) -> Result<Prompt, Error> {
    let body: Value = serde_json::from_slice(&call.body)
        .map_err(|bad| Error::new(Kind::InvalidRequest, format!("the body: {bad}")))?;
    let mut body = Fields::of(body, "")?;
    if call.surface == Surface::GeminiCountTokens
        && let Some(whole) = body.take("generateContentRequest")
    {
        body = Fields::of(whole, "generateContentRequest")?;
    }
    let mut reader = Reader::default();
    reader.body(&mut body)?;
    reader.rest(&body);
    reader.prompt.stream = call.stream;
    Ok(reader.prompt)
}

fn wrong(path: &str, must: &str) -> Error {
    Error::new(Kind::InvalidRequest, format!("`{path}` {must}")).with_param(path)
}

/// The members of an object, taken out one by one. What is left at the end nobody knows.
struct Fields {
    path: String,
    members: Map<String, Value>,
}

impl Fields {
    fn of(value: Value, path: &str) -> Result<Self, Error> {
        match value {
            Value::Object(members) => Ok(Self {
                path: path.to_owned(),
                members,
            }),
            _ => Err(wrong(path, "must be an object")),
        }
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// By either way of writing its name. `null` is not there.
    fn take(&mut self, name: &str) -> Option<Value> {
        let value = match self.members.get_mut(name) {
            Some(slot) => {
                let value = slot.take();
                self.members.shift_remove(name);
                Some(value)
            }
            None => self.members.shift_remove(&snake(name)),
        };
        value.filter(|value| !value.is_null())
    }

    fn object(&mut self, name: &str) -> Result<Option<Self>, Error> {
        let path = self.at(name);
        self.take(name).map(|value| Self::of(value, &path)).transpose()
    }

    fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(wrong(&self.at(name), "must be a list")),
        }
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(&self.at(name), "must be a text")),
        }
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, Error> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(wrong(&self.at(name), "must be true or false")),
        }
    }

    fn number(&mut self, name: &str) -> Result<Option<f64>, Error> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = match &value {
            Value::String(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            other => other.as_f64(),
        };
        number
            .map(Some)
            .ok_or_else(|| wrong(&self.at(name), "must be a number"))
    }

    fn integer(&mut self, name: &str) -> Result<Option<i64>, Error> {
        let path = self.at(name);
        let Some(number) = self.take(name) else {
            return Ok(None);
        };
        let read = match &number {
            Value::String(text) => text.parse().ok(),
            other => other.as_i64().or_else(|| whole(other.as_f64()?)),
        };
        read.map(Some).ok_or_else(|| wrong(&path, "must be a whole number"))
    }

    fn count(&mut self, name: &str) -> Result<Option<u64>, Error> {
        let path = self.at(name);
        let count = self.integer(name)?.map(u64::try_from).transpose();
        count.map_err(|_| wrong(&path, "must be a whole number that is not negative"))
    }
}

/// `40.0` is 40.
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is whole, and within a range that fits"
)]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// `systemInstruction` as `system_instruction`.
fn snake(name: &str) -> String {
    let mut made = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            made.push('_');
        }
        made.push(c.to_ascii_lowercase());
    }
    made
}

#[derive(Default)]
struct Reader {
    prompt: Prompt,
    /// Calls so far.
    calls: usize,
    /// Names by id, of all calls.
    names: HashMap<String, String>,
    /// Calls without a result, by name, in order.
    open: HashMap<String, VecDeque<String>>,
}

impl Reader {
    fn stranger(&mut self, field: String, value: Value) {
        self.prompt.strangers.push(Stranger { field, value });
    }

    /// What nobody took.
    fn rest(&mut self, fields: &Fields) {
        for name in fields.members.keys().cloned().collect::<Vec<_>>() {
            let field = fields.at(&name);
            let value = fields.members.get(&name).cloned().unwrap_or_default();
            if !value.is_null() {
                self.stranger(field, value);
            }
        }
    }

    fn body(&mut self, body: &mut Fields) -> Result<(), Error> {
        // The path says it.
        let _ = body.take("model");
        if let Some(system) = body.take("systemInstruction") {
            let path = body.at("systemInstruction");
            let parts = match system {
                Value::String(text) => vec![Part::text(text)],
                system => self.system(system, &path)?,
            };
            self.push(Role::System, parts, &path);
        }
        let path = body.at("contents");
        let contents = match body.take("contents") {
            None => return Err(wrong(&path, "is required")),
            Some(Value::Array(contents)) => contents,
            Some(one @ (Value::Object(_) | Value::String(_))) => vec![one],
            Some(_) => return Err(wrong(&path, "must be a list of turns")),
        };
        for (index, content) in contents.into_iter().enumerate() {
            self.content(content, &item(&path, index))?;
        }
        let path = body.at("tools");
        for (index, tool) in body.list("tools")?.into_iter().flatten().enumerate() {
            self.tool(tool, &item(&path, index))?;
        }
        if let Some(config) = body.object("toolConfig")? {
            self.tool_config(config)?;
        }
        if let Some(config) = body.object("generationConfig")? {
            self.config(config)?;
        }
        self.prompt.metadata = body.take("labels");
        self.prompt.service_tier = body.text("serviceTier")?.map(|tier| tier.to_ascii_lowercase());
        self.prompt.store = body.flag("store")?;
        Ok(())
    }

    fn push(&mut self, role: Role, parts: Vec<Part>, path: &str) {
        let (name, at) = (None, Place::new(path));
        self.prompt.messages.push(Message { role, name, parts, at });
    }

    fn system(&mut self, system: Value, path: &str) -> Result<Vec<Part>, Error> {
        let mut content = Fields::of(system, path)?;
        let _ = content.take("role");
        self.parts(&mut content)
    }

    fn parts(&mut self, content: &mut Fields) -> Result<Vec<Part>, Error> {
        let path = content.at("parts");
        let list = match content.take("parts") {
            None => {
                return Err(wrong(
                    &path,
                    "is required: a list of parts, such as [{\"text\": \"…\"}]",
                ));
            }
            Some(Value::Array(list)) => list,
            Some(one @ Value::Object(_)) => vec![one],
            Some(_) => return Err(wrong(&path, "must be a list")),
        };
        let mut parts = Vec::with_capacity(list.len());
        for (index, part) in list.into_iter().enumerate() {
            let path = item(&path, index);
            match part {
                Value::String(text) => parts.push(Part::text(text)),
                part => self.part(Fields::of(part, &path)?, &mut parts)?,
            }
        }
        Ok(parts)
    }

    fn content(&mut self, content: Value, path: &str) -> Result<(), Error> {
        let mut content = match content {
            Value::String(text) => {
                self.push(Role::User, vec![Part::text(text)], path);
                return Ok(());
            }
            content => Fields::of(content, path)?,
        };
        let role = match content.text("role")?.as_deref() {
            None | Some("" | "user") => Role::User,
            Some("model") => Role::Assistant,
            Some("function" | "tool") => Role::Tool,
            Some(other) => {
                let must =
                    format!("must be user or model, and is {other}; what the system says goes into systemInstruction");
                return Err(wrong(&content.at("role"), &must));
            }
        };
        let parts = self.parts(&mut content)?;
        self.rest(&content);
        if role == Role::Assistant {
            self.push(role, parts, path);
            return Ok(());
        }
        // Results and what a user says stand together there, and apart here.
        let mut run: Vec<Part> = Vec::new();
        let mut run_role = role;
        for part in parts {
            let own = if matches!(part, Part::Result(_)) {
                Role::Tool
            } else {
                Role::User
            };
            if own != run_role && !run.is_empty() {
                self.push(run_role, std::mem::take(&mut run), path);
            }
            run_role = own;
            run.push(part);
        }
        if !run.is_empty() {
            self.push(run_role, run, path);
        }
        Ok(())
    }

    fn part(&mut self, mut part: Fields, out: &mut Vec<Part>) -> Result<(), Error> {
        let is_thought = part.flag("thought")?.unwrap_or(false);
        let signature = part.text("thoughtSignature")?.filter(|signature| !signature.is_empty());
        let seal = signature.map(|signature| read_seal(&signature));
        if let Some(call) = part.object("functionCall")? {
            let mut call = self.call(call)?;
            call.seal = seal;
            out.push(Part::Call(call));
        } else if let Some(result) = part.object("functionResponse")? {
            let result = self.result(result)?;
            out.push(Part::Result(result));
        } else if let Some(text) = part.text("text")? {
            if let (true, Some(Part::Thought(before))) = (is_thought, out.last_mut())
                && before.seal.is_none()
            {
                // Pieces of a stream, sent back as they came.
                before.text.push_str(&text);
                before.seal = seal;
            } else if is_thought {
                out.push(Part::Thought(Thought {
                    text,
                    is_summary: true,
                    seal,
                    is_redacted: false,
                }));
            } else {
                if !text.is_empty() || seal.is_none() {
                    out.push(Part::text(text));
                }
                sealed(seal, out);
            }
        } else if let Some(data) = part.object("inlineData")? {
            let made = self.inline(data)?;
            out.push(made);
            sealed(seal, out);
        } else if let Some(file) = part.object("fileData")? {
            let made = self.file(file)?;
            out.push(made);
            sealed(seal, out);
        } else if let Some(name) = part.members.keys().next().cloned() {
            let value = part.members.shift_remove(&name).unwrap_or_default();
            let field = part.at(&name);
            out.push(Part::Stranger(Stranger { field, value }));
        } else if seal.is_some() {
            sealed(seal, out);
        } else {
            return Err(wrong(
                &part.path,
                "says nothing: give it a text, inlineData, fileData, functionCall or functionResponse",
            ));
        }
        self.rest(&part);
        Ok(())
    }

    fn call(&mut self, mut call: Fields) -> Result<ToolCall, Error> {
        let name = call.text("name")?.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| wrong(&call.at("name"), "is required: the function that is called"))?;
        let arguments = match call.take("args") {
            None => "{}".to_owned(),
            Some(args @ Value::Object(_)) => args.to_string(),
            Some(_) => return Err(wrong(&call.at("args"), "must be an object")),
        };
        // The same place in a conversation, the same id: the next turn brings it again.
        let id = call.text("id")?.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call_{}", self.calls));
        self.calls += 1;
        self.names.insert(id.clone(), name.clone());
        self.open.entry(name.clone()).or_default().push_back(id.clone());
        self.rest(&call);
        Ok(ToolCall {
            id,
            name,
            arguments,
            ..ToolCall::default()
        })
    }

    fn result(&mut self, mut result: Fields) -> Result<ResultOf, Error> {
        let name = result.text("name")?.filter(|name| !name.is_empty());
        let id = result.text("id")?.filter(|id| !id.is_empty());
        let name = name.or_else(|| self.names.get(id.as_deref()?).cloned());
        let name = name.ok_or_else(|| wrong(&result.at("name"), "is required: the function whose result it is"))?;
        let open = self.open.entry(name.clone()).or_default();
        let call_id = match id {
            Some(id) if self.names.contains_key(&id) => {
                open.retain(|open| *open != id);
                id
            }
            // Calls that came without an id have got one here.
            id => open
                .pop_front()
                .or(id)
                .unwrap_or_else(|| format!("call_{}", self.calls)),
        };
        let path = result.at("response");
        let (text, is_error) = match result.take("response") {
            None => (String::new(), false),
            Some(Value::Object(response)) => said(response),
            Some(_) => return Err(wrong(&path, "must be an object, such as {\"output\": …}")),
        };
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(Part::text(text));
        }
        let path = result.at("parts");
        for (index, part) in result.list("parts")?.into_iter().flatten().enumerate() {
            self.part(Fields::of(part, &item(&path, index))?, &mut parts)?;
        }
        self.rest(&result);
        Ok(ResultOf {
            call_id,
            name: Some(name),
            parts,
            is_error,
            ..ResultOf::default()
        })
    }

    fn inline(&mut self, mut data: Fields) -> Result<Part, Error> {
        let media_type = data.text("mimeType")?.filter(|kind| !kind.is_empty());
        let media_type = media_type.ok_or_else(|| wrong(&data.at("mimeType"), "is required, such as image/png"))?;
        let written = data
            .text("data")?
            .ok_or_else(|| wrong(&data.at("data"), "is required: the data in base64"))?;
        let name = data.text("displayName")?;
        self.rest(&data);
        let source = Source::Data {
            media_type: media_type.clone(),
            base64: plain_base64(&written),
        };
        Ok(of_kind(source, &media_type, name))
    }

    fn file(&mut self, mut file: Fields) -> Result<Part, Error> {
        let uri = file.text("fileUri")?.filter(|uri| !uri.is_empty());
        let uri = uri.ok_or_else(|| wrong(&file.at("fileUri"), "is required: where the file is"))?;
        let media_type = file.text("mimeType")?.unwrap_or_default();
        let name = file.text("displayName")?;
        self.rest(&file);
        let is_public = uri.starts_with("http") && !uri.contains("generativelanguage.googleapis.com/");
        let source = if is_public { Source::Url(uri) } else { Source::File(uri) };
        Ok(of_kind(source, &media_type, name))
    }

    fn tool(&mut self, tool: Value, path: &str) -> Result<(), Error> {
        let mut tool = Fields::of(tool, path)?;
        let list = tool.at("functionDeclarations");
        for (index, function) in tool.list("functionDeclarations")?.into_iter().flatten().enumerate() {
            let function = Fields::of(function, &item(&list, index))?;
            self.function(function)?;
        }
        // What is left are Google's own tools.
        for name in tool.members.keys().cloned().collect::<Vec<_>>() {
            let value = tool.members.get(&name).cloned().unwrap_or_default();
            let field = tool.at(&name);
            self.prompt.tools.push(Tool {
                name,
                description: None,
                at: Place::new(field.clone()),
                kind: ToolKind::Vendors(Stranger { field, value }),
                cache: None,
            });
        }
        Ok(())
    }

    fn function(&mut self, mut function: Fields) -> Result<(), Error> {
        let name = function.text("name")?.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| wrong(&function.at("name"), "is required"))?;
        let description = function.text("description")?;
        let (at, path) = (function.path.clone(), function.at("parameters"));
        let schema = match (function.take("parametersJsonSchema"), function.take("parameters")) {
            (Some(schema), None) => Some(schema),
            (None, Some(schema)) => Some(widened(&schema)),
            (None, None) => None,
            (Some(_), Some(_)) => {
                return Err(wrong(
                    &path,
                    "and parametersJsonSchema cannot both be given: leave out one",
                ));
            }
        };
        if schema.as_ref().is_some_and(|schema| !schema.is_object()) {
            return Err(wrong(&path, "must be an object: a schema"));
        }
        self.rest(&function);
        let strict = None;
        self.prompt.tools.push(Tool {
            name,
            description,
            kind: ToolKind::Function { schema, strict },
            cache: None,
            at: Place::new(at),
        });
        Ok(())
    }

    fn tool_config(&mut self, mut config: Fields) -> Result<(), Error> {
        if let Some(mut calling) = config.object("functionCallingConfig")? {
            let path = calling.at("allowedFunctionNames");
            let mut names = Vec::new();
            for name in calling.list("allowedFunctionNames")?.into_iter().flatten() {
                match name {
                    Value::String(name) => names.push(name),
                    _ => return Err(wrong(&path, "must be a list of names")),
                }
            }
            let mode = calling.text("mode")?.unwrap_or_default().to_ascii_uppercase();
            self.prompt.tool_choice = match (mode.as_str(), names.as_slice()) {
                ("" | "MODE_UNSPECIFIED", []) => None,
                ("AUTO" | "VALIDATED", []) => Some(ToolChoice::Auto),
                ("" | "MODE_UNSPECIFIED" | "AUTO" | "VALIDATED", _) => {
                    Some(ToolChoice::Among { names, required: false })
                }
                ("ANY", []) => Some(ToolChoice::Required),
                ("ANY", [name]) => Some(ToolChoice::Named(name.clone())),
                ("ANY", _) => Some(ToolChoice::Among { names, required: true }),
                ("NONE", _) => Some(ToolChoice::None),
                _ => return Err(wrong(&calling.at("mode"), "must be AUTO, ANY, NONE or VALIDATED")),
            };
            self.rest(&calling);
        }
        self.rest(&config);
        Ok(())
    }

    fn config(&mut self, mut config: Fields) -> Result<(), Error> {
        let sampling = &mut self.prompt.sampling;
        sampling.temperature = config.number("temperature")?;
        sampling.top_p = config.number("topP")?;
        sampling.top_k = config.count("topK")?;
        sampling.n = config.count("candidateCount")?;
        sampling.seed = config.integer("seed")?;
        sampling.presence_penalty = config.number("presencePenalty")?;
        sampling.frequency_penalty = config.number("frequencyPenalty")?;
        sampling.logprobs = config.flag("responseLogprobs")?;
        sampling.top_logprobs = config.count("logprobs")?;
        let path = config.at("stopSequences");
        for stop in config.list("stopSequences")?.into_iter().flatten() {
            match stop {
                Value::String(stop) => sampling.stop.push(stop),
                _ => return Err(wrong(&path, "must be a list of texts")),
            }
        }
        if sampling.stop.len() > 5 {
            return Err(wrong(&path, "may hold five texts at most"));
        }
        self.prompt.max_tokens = config.count("maxOutputTokens")?;
        self.format(&mut config)?;
        if let Some(thinking) = config.object("thinkingConfig")? {
            self.thinking(thinking)?;
        }
        self.rest(&config);
        Ok(())
    }

    fn format(&mut self, config: &mut Fields) -> Result<(), Error> {
        let path = config.at("responseSchema");
        let plain = config
            .take("responseJsonSchema")
            .or_else(|| config.take("_responseJsonSchema"));
        let schema = match (plain, config.take("responseSchema")) {
            (Some(schema), None) => Some(schema),
            (None, Some(schema)) => Some(widened(&schema)),
            (None, None) => None,
            (Some(_), Some(_)) => {
                return Err(wrong(
                    &path,
                    "and responseJsonSchema cannot both be given: leave out one",
                ));
            }
        };
        if schema.as_ref().is_some_and(|schema| !schema.is_object()) {
            return Err(wrong(&path, "must be an object: a schema"));
        }
        let media_type = config.text("responseMimeType")?;
        let schema = schema.map(|schema| Format::Schema {
            name: None,
            description: None,
            schema,
            strict: None,
        });
        self.prompt.format = match (media_type.as_deref(), schema) {
            (None | Some("" | "application/json"), Some(schema)) => Some(schema),
            (None | Some(""), None) => None,
            (Some("application/json"), None) => Some(Format::Json),
            (Some("text/plain"), None) => Some(Format::Text),
            (Some(other), schema) => {
                // A text that is one of some: the schema says which, in quotes.
                let field = config.at("responseMimeType");
                self.stranger(field, other.into());
                schema
            }
        };
        Ok(())
    }

    fn thinking(&mut self, mut thinking: Fields) -> Result<(), Error> {
        let mut reasoning = Reasoning {
            show: thinking.flag("includeThoughts")?,
            ..Reasoning::default()
        };
        match thinking.integer("thinkingBudget")? {
            None => {}
            Some(-1) => reasoning.is_adaptive = true,
            Some(0) => reasoning.effort = Some(Effort::None),
            Some(budget) => {
                let must = "must be -1, 0 or a number of tokens";
                let budget = u64::try_from(budget).map_err(|_| wrong(&thinking.at("thinkingBudget"), must))?;
                reasoning.budget = Some(budget);
            }
        }
        if let Some(level) = thinking.text("thinkingLevel")?
            && !level.eq_ignore_ascii_case("THINKING_LEVEL_UNSPECIFIED")
        {
            let effort = Effort::parse(&level.to_ascii_lowercase());
            let must = "must be MINIMAL, LOW, MEDIUM or HIGH";
            reasoning.effort = Some(effort.ok_or_else(|| wrong(&thinking.at("thinkingLevel"), must))?);
        }
        if reasoning != Reasoning::default() {
            self.prompt.reasoning = Some(reasoning);
        }
        self.rest(&thinking);
        Ok(())
    }
}

/// A signature of what is no call goes behind it, as a thought of which nothing is shown.
fn sealed(seal: Option<crate::ir::Seal>, out: &mut Vec<Part>) {
    if seal.is_some() {
        out.push(Part::Thought(Thought {
            seal,
            is_redacted: true,
            ..Thought::default()
        }));
    }
}

/// What a function gave back: `output` or `error`, or all of it.
fn said(mut response: Map<String, Value>) -> (String, bool) {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    if response.len() == 1 {
        for (name, is_error) in [("output", false), ("error", true)] {
            if let Some(value) = response.shift_remove(name) {
                return (text(value), is_error);
            }
        }
    }
    (Value::Object(response).to_string(), false)
}

fn of_kind(source: Source, media_type: &str, name: Option<String>) -> Part {
    if let Some(format) = media_type.strip_prefix("audio/") {
        return Part::Audio(Audio {
            source,
            format: Some(format.to_owned()),
            transcript: None,
        });
    }
    if media_type.starts_with("image/") {
        return Part::Image(Image {
            source,
            detail: None,
            cache: None,
        });
    }
    Part::Document(Document {
        source,
        name,
        context: None,
        cite: None,
        cache: None,
    })
}
