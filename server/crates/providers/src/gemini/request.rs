//! Writes a request for a model of Google's.
//!
//! What the system says stands apart from the conversation; all results of one turn's calls stand in one content, right behind
//! the content with the calls, and name the function besides the call. A call of a model that thinks carries a signature, and
//! from the third generation on the first call of each step is refused without one. For calls that another vendor's model made
//! Google documents a text that takes its place.
//!
//! Schemas go into `parameters` and `responseSchema`, lowered to the part of `OpenAPI` that these take, and not into
//! `parametersJsonSchema` and `responseJsonSchema`: those take JSON Schema, but only the newer models and versions of the API know
//! them, a reference may have nothing beside it there, and what they make of a keyword that they do not have is not told. A
//! lowered schema is taken everywhere, and what was lost of it is in the notes.

use super::GoogleService;
use super::address::{bare, generation, is_older};
use super::told::plain_base64;
use crate::codec::Ask;
use crate::custom;
use crate::ir::{
    Audio, Call, Document, Effort, Format, Image, Maker, Message, Part, Prompt, ResultOf, Role, Source, Thought, Tool,
    ToolChoice, ToolKind,
};
use crate::names::{self, OfTool, Spot, Thing};
use crate::notes::Notes;
use crate::params::Param;
use crate::schema::{Budget, Root, openapi};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use switchyard_core::error::{Error, Kind};

/// Stands for the signature of a call that no model of Google's made.
pub(super) const NO_SIGNATURE: &str = "skip_thought_signature_validator";
const UNCACHED: &str = "gemini decides itself what it caches";
const MOST_STOPS: usize = 5;

/// Writes a request's body.
pub(super) fn write(
    prompt: &Prompt,
    ask: &Ask<'_>,
    service: GoogleService,
    notes: &mut Notes,
) -> Result<Vec<u8>, Error> {
    let mut writer = Writer {
        ask,
        service,
        notes,
        generation: generation(ask.model),
        names: HashMap::new(),
        budget: Budget::new(),
    };
    let body = writer.body(prompt)?;
    serde_json::to_vec(&body).map_err(|wrong| Error::new(Kind::Internal, wrong.to_string()))
}

struct Writer<'a, 'n> {
    ask: &'a Ask<'a>,
    service: GoogleService,
    notes: &'n mut Notes,
    /// Of the model, if its name says it.
    generation: Option<u32>,
    /// The functions that were called, by the ids of their calls, and when.
    names: HashMap<&'a str, (&'a str, usize)>,
    budget: Budget,
}

/// A content on its way.
struct Content {
    role: &'static str,
    is_results: bool,
    parts: Vec<Value>,
}

/// A signature that has not found its place.
struct Pending {
    data: String,
    /// The thought that it came with, if that has a text.
    thought: Option<usize>,
    /// Where it stood.
    at: usize,
}

impl<'a> Writer<'a, '_> {
    fn is_older(&self) -> bool {
        is_older(self.ask.model)
    }

    fn body(&mut self, prompt: &'a Prompt) -> Result<Map<String, Value>, Error> {
        let (mut system, mut contents) = (Vec::new(), Vec::new());
        for message in &prompt.messages {
            let spot = &Spot::of(message, self.ask.surface);
            if message.name.is_some() {
                self.notes.dropped(spot.name(Thing::Name), "a turn has no name there");
            }
            match message.role {
                Role::System | Role::Developer => {
                    if !contents.is_empty() {
                        self.notes.approximated(
                            spot.name(Thing::Message),
                            "moved to the beginning, as `systemInstruction`",
                        );
                    }
                    self.said(message, spot, &mut system)?;
                }
                Role::User => {
                    let mut parts = Vec::new();
                    self.said(message, spot, &mut parts)?;
                    push(&mut contents, "user", false, parts);
                }
                Role::Assistant => {
                    let parts = self.models(message, spot)?;
                    push(&mut contents, "model", false, parts);
                }
                Role::Tool => {
                    let parts = self.results(message, spot)?;
                    push(&mut contents, "user", true, parts);
                }
            }
        }
        if contents.is_empty() && !system.is_empty() {
            self.notes.approximated(
                names::list(self.ask.surface),
                "sent as the user's: a conversation needs one turn at least",
            );
            push(&mut contents, "user", false, std::mem::take(&mut system));
        }
        let mut body = Map::new();
        let contents = contents
            .into_iter()
            .map(|content| json!({"role": content.role, "parts": content.parts}));
        body.insert("contents".to_owned(), contents.collect());
        if !system.is_empty() {
            body.insert("systemInstruction".to_owned(), json!({ "parts": system }));
        }
        self.tools(prompt, &mut body);
        self.tool_choice(prompt, &mut body);
        let config = self.config(prompt)?;
        if !config.is_empty() {
            body.insert("generationConfig".to_owned(), Value::Object(config));
        }
        Ok(body)
    }

    fn unsupported(&self, field: &str, why: &str) -> Error {
        let message = format!("`{field}` cannot be sent to {}: {why}", self.ask.model);
        Error::new(Kind::Unsupported, message).with_param(field)
    }

    /// What the system or the user says.
    fn said(&mut self, message: &Message, spot: &Spot, out: &mut Vec<Value>) -> Result<(), Error> {
        for part in &message.parts {
            self.part(part, spot, out)?;
        }
        Ok(())
    }

    fn part(&mut self, part: &Part, spot: &Spot, out: &mut Vec<Value>) -> Result<(), Error> {
        match part {
            Part::Text { text, citations, cache } => {
                self.cache(cache.as_ref(), spot);
                if !citations.is_empty() {
                    self.notes
                        .dropped(spot.name(Thing::Citations), "a text has no sources there");
                }
                if !text.is_empty() {
                    out.push(json!({ "text": text }));
                }
            }
            Part::Refusal(text) => {
                self.notes
                    .mapped(spot.name(Thing::Refusal), "a refusal is a text there");
                out.push(json!({ "text": text }));
            }
            Part::Image(image) => out.push(self.image(image, spot)?),
            Part::Document(document) => self.document(document, spot, out)?,
            Part::Audio(audio) => out.push(self.audio(audio, spot)?),
            Part::Stranger(stranger) => {
                self.notes.dropped(stranger.field.clone(), "gemini has no such part");
            }
            // These are the model's or the tools' to say.
            Part::Call(_) | Part::Result(_) | Part::Thought(_) => {
                self.notes.dropped(spot.name(Thing::Part), "not in a turn of this role");
            }
        }
        Ok(())
    }

    fn cache(&mut self, cache: Option<&Value>, spot: &Spot) {
        if cache.is_some() {
            self.notes.dropped(spot.name(Thing::Cache), UNCACHED);
        }
    }

    fn image(&mut self, image: &Image, spot: &Spot) -> Result<Value, Error> {
        self.cache(image.cache.as_ref(), spot);
        if image.detail.as_deref().is_some_and(|detail| detail != "auto") {
            self.notes
                .dropped(spot.name(Thing::Detail), "gemini has no such setting for one picture");
        }
        self.source(&image.source, "image/jpeg", &spot.name(Thing::Image))
    }

    fn audio(&mut self, audio: &Audio, spot: &Spot) -> Result<Value, Error> {
        let format = audio.format.as_deref().unwrap_or("wav");
        let guess = if format.contains('/') {
            format.to_owned()
        } else {
            format!("audio/{format}")
        };
        self.source(&audio.source, &guess, &spot.name(Thing::Audio))
    }

    fn document(&mut self, document: &Document, spot: &Spot, out: &mut Vec<Value>) -> Result<(), Error> {
        self.cache(document.cache.as_ref(), spot);
        if document.cite == Some(true) {
            self.notes.dropped(spot.name(Thing::Cite), "gemini cites no documents");
        }
        if document.name.is_some() {
            self.notes.dropped(spot.name(Thing::Title), "a file has no name there");
        }
        if let Some(context) = &document.context {
            self.notes.mapped(spot.name(Thing::Context), "a text before it");
            out.push(json!({ "text": context }));
        }
        if let Source::Text(text) = &document.source {
            out.push(json!({ "text": text }));
            return Ok(());
        }
        let guess = document
            .name
            .as_deref()
            .and_then(media_type_of)
            .unwrap_or("application/pdf");
        out.push(self.source(&document.source, guess, &spot.name(Thing::File))?);
        Ok(())
    }

    fn source(&mut self, source: &Source, guess: &str, path: &str) -> Result<Value, Error> {
        let inline = |media_type: &str, base64: &str| {
            let media_type = if media_type.is_empty() { guess } else { media_type };
            json!({"inlineData": {"mimeType": media_type, "data": base64}})
        };
        match source {
            Source::Data { media_type, base64 } => Ok(inline(media_type, base64)),
            Source::Text(text) => Ok(json!({ "text": text })),
            Source::Url(url) => {
                if let Some((media_type, base64)) = data_url(url) {
                    return Ok(inline(media_type, &plain_base64(base64)));
                }
                if !["https://", "http://", "gs://"]
                    .iter()
                    .any(|scheme| url.starts_with(scheme))
                {
                    let why = "it takes addresses that begin with https:// or gs://; send the data itself";
                    return Err(self.unsupported(path, why));
                }
                if is_video_page(url) {
                    return Ok(json!({"fileData": {"fileUri": url}}));
                }
                let media_type = media_type_of(url).unwrap_or_else(|| {
                    self.notes.approximated(
                        path.to_owned(),
                        format!("its type is not told by its address: sent as {guess}"),
                    );
                    guess
                });
                Ok(json!({"fileData": {"mimeType": media_type, "fileUri": url}}))
            }
            Source::File(id) => {
                let is_googles = id.starts_with("files/") || id.starts_with("gs://") || id.contains("googleapis.com/");
                if !is_googles {
                    let why = "the file is another vendor's; send the data itself, or an address";
                    return Err(self.unsupported(path, why));
                }
                let mut file = Map::from_iter([("fileUri".to_owned(), Value::from(id.as_str()))]);
                if let Some(media_type) = media_type_of(id) {
                    file.insert("mimeType".to_owned(), media_type.into());
                }
                Ok(json!({ "fileData": file }))
            }
        }
    }

    /// What the model said.
    fn models(&mut self, message: &'a Message, spot: &Spot) -> Result<Vec<Value>, Error> {
        let mut out: Vec<Value> = Vec::new();
        let mut pending: Option<Pending> = None;
        let mut has_calls = false;
        for part in &message.parts {
            match part {
                Part::Thought(thought) => {
                    if thought.seal.as_ref().is_some_and(|seal| seal.maker == Maker::Gemini) {
                        settle(pending.take(), &mut out);
                    }
                    if let Some(seal) = self.thought(thought, spot, &mut out) {
                        pending = Some(seal);
                    }
                }
                Part::Call(call) => {
                    self.cache(call.cache.as_ref(), spot);
                    let own = call
                        .seal
                        .as_ref()
                        .and_then(|seal| seal.for_maker(Maker::Gemini))
                        .map(str::to_owned);
                    if call.seal.is_some() && own.is_none() {
                        self.notes
                            .dropped(spot.name(Thing::CallSeal), "signed by another vendor");
                    }
                    let signature = own
                        .or_else(|| pending.take().map(|pending| pending.data))
                        .or_else(|| (!has_calls && !self.is_older()).then(|| NO_SIGNATURE.to_owned()));
                    has_calls = true;
                    let mut made = self.call(call, spot);
                    if let Some(signature) = signature {
                        made.insert("thoughtSignature".to_owned(), signature.into());
                    }
                    out.push(Value::Object(made));
                }
                Part::Result(result) => {
                    // Some dialects have results of the vendor's own tools here.
                    let result = result.text();
                    self.notes.approximated(
                        spot.name(Thing::Result),
                        "a result in the model's own turn is a text there",
                    );
                    out.push(json!({ "text": result }));
                }
                other => self.part(other, spot, &mut out)?,
            }
        }
        settle(pending, &mut out);
        Ok(out)
    }

    /// Gives back the signature: it may belong to the call that follows.
    fn thought(&mut self, thought: &Thought, spot: &Spot, out: &mut Vec<Value>) -> Option<Pending> {
        let own = thought.seal.as_ref().and_then(|seal| seal.for_maker(Maker::Gemini));
        if thought.seal.is_some() && own.is_none() {
            self.notes
                .dropped(spot.name(Thing::Thought), "a thought that another vendor signed");
            return None;
        }
        let at = out.len();
        if !thought.text.is_empty() && !thought.is_redacted {
            out.push(json!({"text": thought.text, "thought": true}));
        } else if own.is_none() {
            self.notes
                .dropped(spot.name(Thing::Thought), "a thought without text or signature");
        }
        Some(Pending {
            data: own?.to_owned(),
            thought: (out.len() > at).then_some(at),
            at,
        })
    }

    fn call(&mut self, call: &'a Call, spot: &Spot) -> Map<String, Value> {
        let order = self.names.len();
        self.names.insert(&call.id, (&call.name, order));
        let mut made = Map::new();
        if self.service == GoogleService::Gemini {
            made.insert("id".to_owned(), call.id.as_str().into());
        }
        made.insert("name".to_owned(), call.name.as_str().into());
        let (args, is_object) = custom::object(call);
        if !is_object {
            let field = spot.name(Thing::Arguments);
            self.notes
                .approximated(field, "what is no JSON object is sent as the text of one");
        }
        made.insert("args".to_owned(), args);
        Map::from_iter([("functionCall".to_owned(), Value::Object(made))])
    }

    fn results(&mut self, message: &'a Message, spot: &Spot) -> Result<Vec<Value>, Error> {
        let mut made: Vec<(usize, Vec<Value>)> = Vec::new();
        for part in &message.parts {
            let mut out = Vec::new();
            let order = if let Part::Result(result) = part {
                self.result(result, spot, &mut out)?
            } else {
                self.part(part, spot, &mut out)?;
                usize::MAX
            };
            made.push((order, out));
        }
        // Where calls have no ids, the order says which result is whose.
        if self.service == GoogleService::Vertex {
            made.sort_by_key(|(order, _)| *order);
        }
        Ok(made.into_iter().flat_map(|(_, parts)| parts).collect())
    }

    fn result(&mut self, result: &'a ResultOf, spot: &Spot, out: &mut Vec<Value>) -> Result<usize, Error> {
        self.cache(result.cache.as_ref(), spot);
        let called = self.names.get(result.call_id.as_str()).copied();
        let name = result.name.as_deref().or(called.map(|(name, _)| name)).ok_or_else(|| {
            let path = spot.name(Thing::Message);
            let message = format!(
                "`{path}` is a result of `{}`, which no message before it calls: keep the message with the call",
                result.call_id
            );
            Error::new(Kind::InvalidRequest, message).with_param(path)
        })?;
        let text = result.text();
        let response = match serde_json::from_str(&text) {
            Ok(Value::Object(object)) if !result.is_error => Value::Object(object),
            _ if result.is_error => json!({ "error": text }),
            _ => json!({ "output": text }),
        };
        let mut made = Map::new();
        if self.service == GoogleService::Gemini {
            made.insert("id".to_owned(), result.call_id.as_str().into());
        }
        made.insert("name".to_owned(), name.into());
        made.insert("response".to_owned(), response);
        let mut beside = Vec::new();
        for part in result.parts.iter().filter(|part| !matches!(part, Part::Text { .. })) {
            self.part(part, spot, &mut beside)?;
        }
        for part in &result.parts {
            if let Part::Text { cache, .. } = part {
                self.cache(cache.as_ref(), spot);
            }
        }
        if !beside.is_empty() && !self.is_older() {
            made.insert("parts".to_owned(), Value::Array(std::mem::take(&mut beside)));
        } else if !beside.is_empty() {
            self.notes.approximated(
                spot.name(Thing::Result),
                "a result is text there: what else it holds stands beside it",
            );
        }
        out.push(json!({ "functionResponse": made }));
        out.append(&mut beside);
        Ok(called.map_or(usize::MAX, |(_, order)| order))
    }

    fn tools(&mut self, prompt: &Prompt, body: &mut Map<String, Value>) {
        let mut declared = Vec::new();
        let mut searches = false;
        for (index, tool) in prompt.tools.iter().enumerate() {
            let surface = self.ask.surface;
            let named = |what| names::tool(tool, index, surface, what);
            if tool.cache.is_some() {
                self.notes.dropped(named(OfTool::Cache), UNCACHED);
            }
            match &tool.kind {
                ToolKind::Function { schema, strict } => {
                    if *strict == Some(true) {
                        self.notes
                            .dropped(named(OfTool::Strict), "gemini has no such setting for one tool");
                    }
                    declared.push(self.function(tool, schema.as_ref(), &named(OfTool::Parameters)));
                }
                ToolKind::Custom(custom) => {
                    self.notes.approximated(named(OfTool::Tool), custom::why(custom));
                    declared.push(self.function(tool, Some(&custom::schema(custom)), &named(OfTool::Parameters)));
                }
                ToolKind::Vendors(stranger) => {
                    let kind = stranger.value.get("type").and_then(Value::as_str).unwrap_or_default();
                    // Older models have either their own tools or the caller's.
                    let may_search = !self.is_older() || prompt.tools.len() == 1;
                    if kind.starts_with("web_search") && may_search {
                        searches = true;
                        self.notes
                            .approximated(stranger.field.clone(), "Google's own search, with its own settings");
                    } else {
                        self.notes
                            .dropped(stranger.field.clone(), "a tool that another vendor runs");
                    }
                }
            }
        }
        let mut tools = Vec::new();
        if !declared.is_empty() {
            tools.push(json!({ "functionDeclarations": declared }));
        }
        if searches {
            tools.push(json!({"googleSearch": {}}));
        }
        if !tools.is_empty() {
            body.insert("tools".to_owned(), Value::Array(tools));
        }
    }

    fn function(&mut self, tool: &Tool, schema: Option<&Value>, field: &str) -> Value {
        let mut made = Map::new();
        made.insert("name".to_owned(), tool.name.as_str().into());
        if let Some(description) = &tool.description {
            made.insert("description".to_owned(), description.as_str().into());
        }
        if let Some(schema) = schema {
            let lowered = openapi(schema, Root::Object, &mut self.budget);
            lowered.tell(field, self.notes);
            if !lowered.is_empty_object() {
                made.insert("parameters".to_owned(), Value::Object(lowered.schema));
            }
        }
        Value::Object(made)
    }

    fn tool_choice(&self, prompt: &Prompt, body: &mut Map<String, Value>) {
        let Some(choice) = &prompt.tool_choice else {
            return;
        };
        let config = match choice {
            ToolChoice::Auto => json!({"mode": "AUTO"}),
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
            ToolChoice::Among { names, required: true } => json!({"mode": "ANY", "allowedFunctionNames": names}),
            // The one mode besides that takes names.
            ToolChoice::Among { names, required: false } => json!({"mode": "VALIDATED", "allowedFunctionNames": names}),
        };
        body.insert("toolConfig".to_owned(), json!({ "functionCallingConfig": config }));
    }

    fn config(&mut self, prompt: &Prompt) -> Result<Map<String, Value>, Error> {
        let sampling = &prompt.sampling;
        let surface = self.ask.surface;
        let mut config = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                config.insert(name.to_owned(), value);
            }
        };
        put("temperature", sampling.temperature.map(Value::from));
        put("topP", sampling.top_p.map(Value::from));
        put("topK", sampling.top_k.map(Value::from));
        put("candidateCount", sampling.n.filter(|n| *n != 1).map(Value::from));
        put("maxOutputTokens", prompt.max_tokens.map(Value::from));
        put("presencePenalty", sampling.presence_penalty.map(Value::from));
        put("frequencyPenalty", sampling.frequency_penalty.map(Value::from));
        put("responseLogprobs", sampling.logprobs.map(Value::from));
        put("logprobs", sampling.top_logprobs.map(Value::from));
        let seed = sampling.seed.map(|seed| {
            let kept = i32::try_from(seed);
            if kept.is_err() {
                self.notes.approximated(
                    prompt.name(Param::Seed, surface),
                    "seeds have 32 bits there: cut to its lowest 31",
                );
            }
            // The mask leaves what fits.
            kept.unwrap_or_else(|_| i32::try_from(seed & i64::from(i32::MAX)).unwrap_or_default())
        });
        put("seed", seed.map(Value::from));
        let stops = &sampling.stop;
        if stops.len() > MOST_STOPS {
            let why = format!("{MOST_STOPS} are the most there: the others are left out");
            self.notes.dropped(prompt.name(Param::Stop, surface), why);
        }
        let stops: Vec<&str> = stops.iter().take(MOST_STOPS).map(String::as_str).collect();
        put("stopSequences", (!stops.is_empty()).then(|| json!(stops)));
        self.format(prompt, &mut config)?;
        if let Some(thinking) = self.thinking(prompt) {
            config.insert("thinkingConfig".to_owned(), Value::Object(thinking));
        }
        Ok(config)
    }

    fn format(&mut self, prompt: &Prompt, config: &mut Map<String, Value>) -> Result<(), Error> {
        let field = prompt.name(Param::ResponseFormat, self.ask.surface);
        let Some(format) = prompt.format.as_ref().filter(|format| **format != Format::Text) else {
            return Ok(());
        };
        if !prompt.tools.is_empty() && self.generation.is_some_and(|generation| generation < 3) {
            let why = "this model answers in JSON or calls functions, not both: leave out one of them, or ask for a newer model";
            return Err(self.unsupported(field, why));
        }
        config.insert("responseMimeType".to_owned(), "application/json".into());
        if let Format::Schema {
            description, schema, ..
        } = format
        {
            let mut lowered = openapi(schema, Root::Any, &mut self.budget);
            lowered.tell(&names::of_format(self.ask.surface, "schema"), self.notes);
            if let Some(description) = description
                && !lowered.schema.contains_key("anyOf")
            {
                let made = &mut lowered.schema;
                made.entry("description").or_insert_with(|| description.as_str().into());
            }
            if !lowered.schema.is_empty() {
                config.insert("responseSchema".to_owned(), Value::Object(lowered.schema));
            }
        }
        Ok(())
    }

    fn thinking(&mut self, prompt: &Prompt) -> Option<Map<String, Value>> {
        let reasoning = prompt.reasoning.as_ref()?;
        let field = prompt.name(Param::Reasoning, self.ask.surface);
        let model = bare(self.ask.model);
        if model.starts_with("gemini-2.0") || model.starts_with("gemini-1") || model.starts_with("gemma") {
            self.notes.dropped(field, "this model does not think");
            return None;
        }
        let mut made = Map::new();
        if self.is_older() {
            let wanted = reasoning.budget.or_else(|| reasoning.effort.map(Effort::budget));
            if let Some(wanted) = wanted {
                let (least, most) = budgets(model);
                let turned_off = wanted == 0 && least != 128;
                let budget = if turned_off { 0 } else { wanted.clamp(least, most) };
                if budget != wanted {
                    self.notes.approximated(
                        field,
                        format!("this model thinks with {least} to {most} tokens: {budget}"),
                    );
                }
                made.insert("thinkingBudget".to_owned(), budget.into());
            } else if reasoning.is_adaptive {
                made.insert("thinkingBudget".to_owned(), (-1).into());
            }
        } else {
            let effort = reasoning.effort.or_else(|| reasoning.budget.map(Effort::of_budget));
            if reasoning.effort.is_none() && reasoning.budget.is_some() {
                self.notes
                    .approximated(field, "this model knows levels of thinking, and no number of tokens");
            }
            if let Some(effort) = effort {
                let is_pro = model.contains("pro");
                let (level, is_near) = match effort {
                    Effort::None => (if is_pro { "low" } else { "minimal" }, false),
                    Effort::Minimal if is_pro => ("low", false),
                    Effort::Minimal => ("minimal", true),
                    Effort::Low => ("low", true),
                    Effort::Medium => ("medium", true),
                    Effort::High => ("high", true),
                    Effort::XHigh | Effort::Max => ("high", false),
                };
                if !is_near {
                    self.notes
                        .approximated(field, format!("the nearest level that this model has: {level}"));
                }
                made.insert("thinkingLevel".to_owned(), level.into());
            }
        }
        if let Some(show) = reasoning.show {
            made.insert("includeThoughts".to_owned(), show.into());
        }
        (!made.is_empty()).then_some(made)
    }
}

/// The least and the most tokens of thought that a model takes. The larger ones always think.
fn budgets(model: &str) -> (u64, u64) {
    if model.contains("flash-lite") {
        (512, 24_576)
    } else if model.contains("pro") {
        (128, 32_768)
    } else {
        (1, 24_576)
    }
}

/// Turns of the model that follow one another are one, and so are results: they must stand together.
fn push(contents: &mut Vec<Content>, role: &'static str, is_results: bool, mut parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    match contents.last_mut() {
        Some(last) if last.role == role && last.is_results == is_results && (is_results || role == "model") => {
            last.parts.append(&mut parts);
        }
        _ => contents.push(Content {
            role,
            is_results,
            parts,
        }),
    }
}

/// A signature that no call has taken goes to its thought, else to the text before it, else into a part of its own.
fn settle(pending: Option<Pending>, out: &mut Vec<Value>) {
    let Some(Pending { data, thought, at }) = pending else {
        return;
    };
    let before = thought.or_else(|| at.checked_sub(1));
    let place = before
        .and_then(|place| out.get_mut(place))
        .and_then(Value::as_object_mut);
    let is_free = |part: &Map<String, Value>| part.contains_key("text") && !part.contains_key("thoughtSignature");
    match place.filter(|part| is_free(part) && (thought.is_some() || !part.contains_key("thought"))) {
        Some(part) => {
            part.insert("thoughtSignature".to_owned(), data.into());
        }
        None => out.insert(at.min(out.len()), json!({"text": "", "thoughtSignature": data})),
    }
}

fn data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    Some((media_type.split(';').next().unwrap_or_default(), data))
}

/// A page of which Google takes the video.
fn is_video_page(url: &str) -> bool {
    ["https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/"]
        .iter()
        .any(|site| url.starts_with(site))
}

/// What the end of a path says of the kind of a file.
fn media_type_of(address: &str) -> Option<&'static str> {
    let path = address.split(['?', '#']).next()?;
    let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => "application/pdf",
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "xml" => "text/xml",
        "json" => "application/json",
        "mp3" => "audio/mp3",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "flac" => "audio/flac",
        "aac" => "audio/aac",
        "m4a" => "audio/m4a",
        "mp4" => "video/mp4",
        "mov" => "video/mov",
        "webm" => "video/webm",
        "mpeg" | "mpg" => "video/mpeg",
        _ => return None,
    })
}
