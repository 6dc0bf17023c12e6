//! Requests.

use super::LETTERS;
use crate::bedrock::common::{fitting_name, in_words, schema_or_empty};
use crate::codec::Ask;
use crate::custom;
use crate::ir::{
    Document, Effort, Format, Image, Message, Part, Prompt, ResultOf, Role, Source, Tool, ToolChoice, ToolKind,
};
use crate::names::{self, OfTool, Spot, Thing};
use crate::notes::Notes;
use crate::params::Param;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use switchyard_core::error::{Error, Kind};

pub(super) struct Writing<'a> {
    prompt: &'a Prompt,
    ask: &'a Ask<'a>,
    notes: &'a mut Notes,
    /// Where the message stands that is written.
    spot: Spot,
    /// Texts that are read as documents. They stand beside the messages.
    documents: Vec<Value>,
}

const UNCACHED: &str = "cohere caches by itself";

fn is_strict(tool: &Tool) -> bool {
    matches!(tool.kind, ToolKind::Function { strict: Some(true), .. })
}

fn unsupported(field: &str, why: &str) -> Error {
    Error::new(Kind::Unsupported, format!("`{field}`: {why}")).with_param(field)
}

impl<'a> Writing<'a> {
    pub(super) fn new(prompt: &'a Prompt, ask: &'a Ask<'a>, notes: &'a mut Notes) -> Self {
        Self {
            prompt,
            ask,
            notes,
            spot: Spot::anywhere(ask.surface),
            documents: Vec::new(),
        }
    }

    fn named(&self, param: Param) -> &'static str {
        self.prompt.name(param, self.ask.surface)
    }

    /// Models that think aloud and want to see it again.
    fn thinks(&self) -> bool {
        self.ask.model.contains("reasoning")
    }

    pub(super) fn body(mut self) -> Result<Value, Error> {
        let prompt = self.prompt;
        let mut messages = Vec::new();
        for message in &prompt.messages {
            self.message(message, &mut messages)?;
        }
        let (tools, strict, choice) = self.tools();
        let format = self.format(!tools.is_empty(), &mut messages);
        let mut body = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        put("model", Some(json!(self.ask.model)));
        put("messages", Some(Value::Array(messages)));
        if self.ask.stream {
            put("stream", Some(json!(true)));
        }
        put("max_tokens", prompt.max_tokens.map(Value::from));
        for (name, value) in self.sampling() {
            put(name, value);
        }
        put("thinking", self.thinking());
        put("tools", (!tools.is_empty()).then_some(Value::Array(tools)));
        put("strict_tools", strict.then_some(json!(true)));
        put("tool_choice", choice.map(Value::from));
        put(
            "documents",
            (!self.documents.is_empty()).then_some(Value::Array(self.documents)),
        );
        put("response_format", format);
        Ok(Value::Object(body))
    }

    fn message(&mut self, message: &Message, out: &mut Vec<Value>) -> Result<(), Error> {
        self.spot = Spot::of(message, self.ask.surface);
        if message.name.is_some() {
            self.notes
                .dropped(self.spot.name(Thing::Name), "nobody has a name there");
        }
        match message.role {
            Role::Assistant => {
                let message = self.assistant(message)?;
                out.extend(message);
            }
            Role::System | Role::Developer => {
                let content = self.content(&message.parts)?;
                out.extend(content.map(|content| json!({"role": "system", "content": content})));
            }
            Role::User | Role::Tool => {
                // Results are messages of their own, and stand before what the user says with them.
                for part in &message.parts {
                    if let Part::Result(result) = part {
                        let result = self.result(result)?;
                        out.push(result);
                    }
                }
                let content = self.content(&message.parts)?;
                out.extend(content.map(|content| json!({"role": "user", "content": content})));
            }
        }
        Ok(())
    }

    /// Everything but results. One text is a text, and several pieces are a list.
    fn content(&mut self, parts: &[Part]) -> Result<Option<Value>, Error> {
        let mut pieces = Vec::new();
        for part in parts {
            match part {
                Part::Text { text, cache, .. } => {
                    self.cache(cache.as_ref());
                    if !text.is_empty() {
                        pieces.push(json!({"type": "text", "text": text}));
                    }
                }
                Part::Image(image) => pieces.push(self.image(image)?),
                Part::Document(document) => self.document(document)?,
                Part::Audio(_) => {
                    let field = self.spot.name(Thing::Audio);
                    return Err(unsupported(
                        &field,
                        "Cohere does not hear; send a transcript, or ask for another model",
                    ));
                }
                Part::Refusal(text) => {
                    self.notes.approximated(self.spot.name(Thing::Refusal), "sent as text");
                    pieces.push(json!({"type": "text", "text": text}));
                }
                Part::Stranger(stranger) => {
                    let why = "Cohere has no such part; say it as text, or ask for a model of another provider";
                    return Err(unsupported(&stranger.field, why));
                }
                Part::Result(_) | Part::Call(_) | Part::Thought(_) => {}
            }
        }
        Ok(match &mut pieces[..] {
            [] => None,
            [one] if one.get("type").is_some_and(|kind| kind == "text") => one.get_mut("text").map(Value::take),
            _ => Some(Value::Array(pieces)),
        })
    }

    fn cache(&mut self, mark: Option<&Value>) {
        if mark.is_some() {
            self.notes.dropped(self.spot.name(Thing::Cache), UNCACHED);
        }
    }

    fn image(&mut self, image: &Image) -> Result<Value, Error> {
        self.cache(image.cache.as_ref());
        let url = match &image.source {
            Source::Url(url) => url.clone(),
            Source::Data { media_type, base64 } => format!("data:{media_type};base64,{base64}"),
            Source::File(_) | Source::Text(_) => {
                let field = self.spot.name(Thing::Image);
                let why = "Cohere knows no file ids of other vendors; send the picture in base64 or by its address";
                return Err(unsupported(&field, why));
            }
        };
        let mut inner = Map::new();
        inner.insert("url".to_owned(), json!(url));
        match image.detail.as_deref() {
            None => {}
            Some(detail @ ("low" | "high" | "auto")) => {
                inner.insert("detail".to_owned(), json!(detail));
            }
            Some(_) => self
                .notes
                .dropped(self.spot.name(Thing::Detail), "cohere knows low, high and auto"),
        }
        Ok(json!({"type": "image_url", "image_url": inner}))
    }

    /// Only what is text can be a document there.
    fn document(&mut self, document: &Document) -> Result<(), Error> {
        let field = self.spot.name(Thing::File);
        self.cache(document.cache.as_ref());
        let remedy = "Cohere reads documents as text only; send its text, or ask for a model of another provider";
        let text = match &document.source {
            Source::Text(text) => Some(text.clone()),
            Source::Data { media_type, base64 } if is_text(media_type) => STANDARD
                .decode(base64)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok()),
            _ => None,
        };
        let text = text.ok_or_else(|| unsupported(&field, remedy))?;
        let mut data = Map::new();
        if let Some(name) = &document.name {
            data.insert("title".to_owned(), json!(name));
        }
        if let Some(context) = &document.context {
            data.insert("context".to_owned(), json!(context));
        }
        data.insert("text".to_owned(), json!(text));
        let id = format!("doc{}", self.documents.len());
        self.documents.push(json!({"id": id, "data": data}));
        self.notes.mapped(field, "documents");
        Ok(())
    }

    fn assistant(&mut self, message: &Message) -> Result<Option<Value>, Error> {
        let (mut calls, mut plan, mut thoughts) = (Vec::new(), Vec::new(), Vec::new());
        let has_calls = message.parts.iter().any(|part| matches!(part, Part::Call(_)));
        let field = self.spot.name(Thing::Thought);
        let mut said = Vec::new();
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    self.cache(call.cache.as_ref());
                    if call.seal.is_some() {
                        self.notes
                            .dropped(self.spot.name(Thing::CallSeal), "calls are not sealed there");
                    }
                    let arguments = match call.arguments.trim() {
                        _ if call.is_custom => custom::wrap(&call.arguments).to_string(),
                        "" => "{}".to_owned(),
                        _ => call.arguments.clone(),
                    };
                    let function = json!({"name": fitting_name(&call.name, LETTERS), "arguments": arguments});
                    calls.push(json!({"id": call.id, "type": "function", "function": function}));
                }
                Part::Thought(thought) if thought.seal.is_some() => {
                    self.notes.dropped(field.clone(), "it is sealed for another vendor");
                }
                Part::Thought(thought) if thought.text.is_empty() => {}
                Part::Thought(thought) if self.thinks() => {
                    thoughts.push(json!({"type": "thinking", "thinking": thought.text}));
                }
                Part::Thought(thought) if has_calls => plan.push(thought.text.as_str()),
                Part::Thought(_) => self
                    .notes
                    .dropped(field.clone(), "the model takes back plans for tools only"),
                Part::Stranger(stranger) => {
                    self.notes.dropped(stranger.field.clone(), "cohere has no such part");
                }
                Part::Text { text, citations, .. } => {
                    if !citations.is_empty() {
                        self.notes
                            .dropped(self.spot.name(Thing::Citations), "they are not sent back");
                    }
                    // What was said beside calls is what a plan is.
                    if has_calls && !self.thinks() {
                        plan.extend((!text.is_empty()).then_some(text.as_str()));
                    } else {
                        said.push(part.clone());
                    }
                }
                _ => said.push(part.clone()),
            }
        }
        let mut content = self.content(&said)?;
        if !thoughts.is_empty() {
            match content {
                Some(Value::Array(pieces)) => thoughts.extend(pieces),
                Some(text) => thoughts.push(json!({"type": "text", "text": text})),
                None => {}
            }
            content = Some(Value::Array(thoughts));
        }
        if content.is_none() && calls.is_empty() {
            return Ok(None);
        }
        let mut out = Map::new();
        out.insert("role".to_owned(), json!("assistant"));
        if !plan.is_empty() {
            out.insert("tool_plan".to_owned(), json!(plan.join("\n")));
        }
        if let Some(content) = content {
            out.insert("content".to_owned(), content);
        }
        if !calls.is_empty() {
            out.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        Ok(Some(Value::Object(out)))
    }

    fn result(&mut self, result: &ResultOf) -> Result<Value, Error> {
        self.cache(result.cache.as_ref());
        let mut pieces = Vec::new();
        for part in &result.parts {
            match part {
                Part::Text { text, .. } => pieces.push(json!({"type": "text", "text": text})),
                Part::Document(Document {
                    source: Source::Text(text),
                    name,
                    ..
                }) => {
                    let data = json!({"title": name.as_deref().unwrap_or("document"), "text": text});
                    pieces.push(json!({"type": "document", "document": {"data": data}}));
                }
                _ => {
                    let field = match part {
                        Part::Image(_) => self.spot.name(Thing::Image),
                        _ => self.spot.name(Thing::File),
                    };
                    let why = "Cohere takes results of tools as text only; send them as text, or ask for a model of \
                               another provider";
                    return Err(unsupported(&field, why));
                }
            }
        }
        if result.is_error {
            self.notes.approximated(
                self.spot.name(Thing::IsError),
                "said in words: results have no status there",
            );
            pieces.insert(0, json!({"type": "text", "text": "Error:"}));
        }
        let content = match &mut pieces[..] {
            [] => json!("(no output)"),
            [one] if one.get("type").is_some_and(|kind| kind == "text") => {
                let text = one.get_mut("text").map(Value::take).unwrap_or_default();
                if text == "" { json!("(no output)") } else { text }
            }
            _ => Value::Array(pieces),
        };
        Ok(json!({"role": "tool", "tool_call_id": result.call_id, "content": content}))
    }

    /// Tools, whether all are strict, and which are to be called.
    fn tools(&mut self) -> (Vec<Value>, bool, Option<&'static str>) {
        let prompt = self.prompt;
        let (mut tools, mut stricts) = (Vec::new(), 0);
        for (i, tool) in prompt.tools.iter().enumerate() {
            if let Some((function, strict)) = self.tool(tool, i) {
                stricts += usize::from(strict);
                tools.push(json!({"type": "function", "function": function}));
            }
        }
        let field = self.named(Param::ToolChoice);
        let mut offer_only = |names: &[&str], notes: &mut Notes| {
            notes.mapped(field, "only that is offered");
            let is_one = |sent: &Value| names.iter().any(|name| *sent == *fitting_name(name, LETTERS));
            tools.retain(|tool| tool.pointer("/function/name").is_none_or(is_one));
        };
        let choice = match &prompt.tool_choice {
            None | Some(ToolChoice::Auto) => None,
            Some(ToolChoice::None) => Some("NONE"),
            Some(ToolChoice::Required) => Some("REQUIRED"),
            Some(ToolChoice::Named(name)) => {
                offer_only(&[name], self.notes);
                Some("REQUIRED")
            }
            Some(ToolChoice::Among { names, required }) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                offer_only(&names, self.notes);
                required.then_some("REQUIRED")
            }
        };
        let strict = stricts > 0 && stricts == prompt.tools.len();
        if stricts > 0 && !strict {
            for (index, tool) in prompt.tools.iter().enumerate().filter(|(_, tool)| is_strict(tool)) {
                let field = names::tool(tool, index, self.ask.surface, OfTool::Strict);
                self.notes.dropped(field, "there it holds for all tools or for none");
            }
        }
        let choice = choice.filter(|_| !tools.is_empty());
        (tools, strict, choice)
    }

    fn tool(&mut self, tool: &Tool, index: usize) -> Option<(Value, bool)> {
        let surface = self.ask.surface;
        let named = |what| names::tool(tool, index, surface, what);
        if tool.cache.is_some() {
            self.notes.dropped(named(OfTool::Cache), UNCACHED);
        }
        let (schema, strict) = match &tool.kind {
            ToolKind::Function { schema, strict } => (schema_or_empty(schema.as_ref()), *strict == Some(true)),
            ToolKind::Custom(custom) => {
                self.notes.approximated(named(OfTool::Tool), custom::why(custom));
                (custom::schema(custom), false)
            }
            ToolKind::Vendors(stranger) => {
                self.notes
                    .dropped(stranger.field.clone(), "a tool that its own vendor runs");
                return None;
            }
        };
        let name = fitting_name(&tool.name, LETTERS);
        if name != tool.name {
            let why = "its name has letters that cohere does not take; it is sent as another one";
            self.notes.mapped(named(OfTool::Tool), why);
        }
        let mut function = Map::new();
        function.insert("name".to_owned(), json!(name));
        if let Some(description) = &tool.description {
            function.insert("description".to_owned(), json!(description));
        }
        function.insert("parameters".to_owned(), schema);
        Some((Value::Object(function), strict))
    }

    /// A format, said in words where there are tools or documents: both together are refused.
    fn format(&mut self, has_tools: bool, messages: &mut Vec<Value>) -> Option<Value> {
        let format = self.prompt.format.as_ref()?;
        let field = self.named(Param::ResponseFormat);
        if has_tools || !self.documents.is_empty() {
            let words = in_words(format)?;
            self.notes.approximated(
                field,
                "asked for in words: cohere takes no format beside tools and documents",
            );
            let is_system = |message: &&Value| message.get("role").is_some_and(|role| role == "system");
            let at = messages.iter().take_while(is_system).count();
            messages.insert(at, json!({"role": "system", "content": words}));
            return None;
        }
        match format {
            Format::Text => None,
            Format::Json => Some(json!({"type": "json_object"})),
            Format::Schema {
                schema,
                strict,
                description,
                ..
            } => {
                if *strict == Some(false) {
                    self.notes.approximated(field, "a schema is always kept to there");
                }
                if description.is_some() {
                    self.notes.dropped(
                        names::of_format(self.ask.surface, "description"),
                        "a schema is all there is to say there",
                    );
                }
                Some(json!({"type": "json_object", "json_schema": schema}))
            }
        }
    }

    /// A number in the wire's bounds.
    fn within(&mut self, param: Param, value: Option<f64>, least: f64, most: f64) -> Option<Value> {
        let given = value?;
        let taken = given.clamp(least, most);
        if taken.to_bits() != given.to_bits() && (taken - given).abs() > 0.0 {
            self.notes
                .approximated(self.named(param), format!("{taken}, which is the nearest there"));
        }
        Some(json!(taken))
    }

    fn sampling(&mut self) -> [(&'static str, Option<Value>); 8] {
        let sampling = &self.prompt.sampling;
        let stop = (!sampling.stop.is_empty()).then(|| {
            const MOST: usize = 5;
            if sampling.stop.len() > MOST {
                self.notes
                    .approximated(self.named(Param::Stop), "the first five of them");
            }
            json!(sampling.stop.iter().take(MOST).collect::<Vec<_>>())
        });
        let seed = sampling.seed.map(|seed| {
            if seed < 0 {
                self.notes.approximated(self.named(Param::Seed), "without its sign");
            }
            json!(seed.unsigned_abs())
        });
        let top_k = sampling.top_k.map(|top_k| {
            const MOST: u64 = 500;
            if top_k > MOST {
                self.notes
                    .approximated(self.named(Param::TopK), "500, which is the most there");
            }
            json!(top_k.min(MOST))
        });
        let presence = self.within(Param::PresencePenalty, sampling.presence_penalty, 0.0, 1.0);
        let frequency = self.within(Param::FrequencyPenalty, sampling.frequency_penalty, 0.0, 1.0);
        [
            ("temperature", sampling.temperature.map(Value::from)),
            ("p", self.within(Param::TopP, sampling.top_p, 0.01, 0.99)),
            ("k", top_k),
            ("seed", seed),
            ("stop_sequences", stop),
            ("presence_penalty", presence),
            ("frequency_penalty", frequency),
            ("logprobs", sampling.logprobs.filter(|wanted| *wanted).map(Value::from)),
        ]
    }

    fn thinking(&mut self) -> Option<Value> {
        let reasoning = self.prompt.reasoning.as_ref()?;
        let field = self.named(Param::Reasoning);
        if reasoning.effort == Some(Effort::None) || reasoning.budget == Some(0) {
            return Some(json!({"type": "disabled"}));
        }
        let budget = reasoning.budget.or_else(|| {
            let budget = reasoning.effort?.budget();
            self.notes.approximated(field, format!("a budget of {budget} tokens"));
            Some(budget)
        });
        Some(match budget {
            Some(budget) => json!({"type": "enabled", "token_budget": budget}),
            None => json!({"type": "enabled"}),
        })
    }
}

fn is_text(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    media_type.starts_with("text/") || media_type.starts_with("application/json")
}
