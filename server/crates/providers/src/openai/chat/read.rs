//! A caller's request, read.
//!
//! Members are taken one by one, in their order, and moved rather than copied: a picture of five megabytes is one text from the
//! body to the prompt.

use super::details;
use super::fields::{At, body, word};
use crate::Call;
use crate::ir::{
    self, Audio, Citation, Custom, Document, Effort, Format, Image, Message, Part, Place, Prompt, Reasoning, ResultOf,
    Role, Seal, Source, Stranger, Tool, ToolChoice, ToolKind,
};
use crate::ir::{Maker, Thought};
use crate::params::Param;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::mem;
use switchyard_core::error::Error;

type Fields = Map<String, Value>;

pub(super) fn read(call: &Call) -> Result<Prompt, Error> {
    let mut reader = Reader::default();
    reader.prompt.stream = call.stream;
    for (name, value) in body(call)? {
        if !value.is_null() {
            reader.field(&name, value)?;
        }
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    prompt: Prompt,
    max_tokens: Option<u64>,
    user: Option<String>,
    /// How a function of older clients is to be chosen.
    function_choice: Option<ToolChoice>,
    /// Calls that were made so far, by id.
    calls: HashMap<String, Made>,
    /// How many functions of older clients were called: those calls have no ids.
    functions: usize,
    /// The last of them, which waits for its result.
    waiting: Option<(String, String)>,
}

struct Made {
    name: String,
    is_custom: bool,
}

impl Reader {
    fn field(&mut self, name: &str, value: Value) -> Result<(), Error> {
        let at = &At::top(name);
        let prompt = &mut self.prompt;
        let sampling = &mut prompt.sampling;
        match name {
            "model" | "stream" => {}
            "messages" => self.messages(at, value)?,
            "tools" => self.tools(at, value)?,
            "functions" => {
                prompt.called.push((Param::Tools, "functions"));
                self.functions(at, value)?;
            }
            "tool_choice" => self.choice(at, value)?,
            "function_call" => self.function_choice = Some(function_choice(at, &value)?),
            "parallel_tool_calls" => prompt.parallel_tools = Some(at.flag(&value)?),
            "temperature" => sampling.temperature = Some(at.number(&value)?),
            "top_p" => sampling.top_p = Some(at.number(&value)?),
            "top_k" => sampling.top_k = Some(at.count(&value)?),
            "n" => sampling.n = Some(at.count(&value)?),
            "seed" => sampling.seed = Some(at.integer(&value)?),
            "presence_penalty" => sampling.presence_penalty = Some(at.number(&value)?),
            "frequency_penalty" => sampling.frequency_penalty = Some(at.number(&value)?),
            "stop" => sampling.stop = stop(at, value)?,
            "logprobs" => sampling.logprobs = Some(at.flag(&value)?),
            "top_logprobs" => sampling.top_logprobs = Some(at.count(&value)?),
            "logit_bias" => sampling.logit_bias = Some(Value::Object(at.object(value)?)),
            "max_tokens" => self.max_tokens = Some(at.count(&value)?),
            "max_completion_tokens" => {
                prompt.max_tokens = Some(at.count(&value)?);
                prompt.called.push((Param::MaxTokens, "max_completion_tokens"));
            }
            "response_format" => self.format(at, value)?,
            "reasoning_effort" => self.reasoning().effort = Some(effort(at, &value)?),
            "reasoning" => {
                prompt.called.push((Param::Reasoning, "reasoning"));
                self.openrouter(at, value)?;
            }
            "thinking" => {
                prompt.called.push((Param::Reasoning, "thinking"));
                self.thinking(at, value)?;
            }
            "verbosity" => prompt.verbosity = Some(at.text(value)?),
            "user" => self.user = Some(at.text(value)?),
            "safety_identifier" => {
                prompt.user = Some(at.text(value)?);
                prompt.called.push((Param::User, "safety_identifier"));
            }
            "metadata" => prompt.metadata = Some(Value::Object(at.object(value)?)),
            "service_tier" => prompt.service_tier = Some(at.text(value)?),
            "store" => prompt.store = Some(at.flag(&value)?),
            "prompt_cache_key" => prompt.cache_key = Some(at.text(value)?),
            "stream_options" => self.stream_options(at, value)?,
            // What everybody answers with anyway.
            "modalities" if value == serde_json::json!(["text"]) => {}
            _ => prompt.strangers.push(at.stranger(value)),
        }
        Ok(())
    }

    /// Where two fields say the same, the newer one counts, and the other is a stranger unless they agree.
    fn finish(self) -> Prompt {
        let mut prompt = self.prompt;
        let mut odd = |name: &str, value: Value| prompt.strangers.push(At::top(name).stranger(value));
        match (self.max_tokens, prompt.max_tokens) {
            (Some(older), Some(newer)) if older != newer => odd("max_tokens", older.into()),
            (Some(older), None) => prompt.max_tokens = Some(older),
            _ => {}
        }
        match (self.user, &prompt.user) {
            (Some(older), Some(newer)) if older != *newer => odd("user", older.into()),
            (Some(older), None) => prompt.user = Some(older),
            _ => {}
        }
        if prompt.tool_choice.is_none() && self.function_choice.is_some() {
            prompt.tool_choice = self.function_choice;
            prompt.called.push((Param::ToolChoice, "function_call"));
        }
        prompt
    }

    fn stranger(&mut self, at: &At<'_>, value: Value) {
        if !value.is_null() {
            self.prompt.strangers.push(at.stranger(value));
        }
    }

    fn stream_options(&mut self, at: &At<'_>, value: Value) -> Result<(), Error> {
        for (key, value) in at.object(value)? {
            if key != "include_usage" {
                self.stranger(&at.key(&key), value);
            }
        }
        Ok(())
    }

    // === how to answer ===

    fn reasoning(&mut self) -> &mut Reasoning {
        self.prompt.reasoning.get_or_insert_default()
    }

    /// `OpenRouter`'s object, and OpenAI's of the Responses.
    fn openrouter(&mut self, at: &At<'_>, value: Value) -> Result<(), Error> {
        self.reasoning();
        let mut is_enabled = None;
        for (key, value) in at.object(value)? {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "effort" => self.reasoning().effort = Some(effort(at, &value)?),
                "max_tokens" => self.reasoning().budget = Some(at.count(&value)?),
                "exclude" => self.reasoning().show = Some(!at.flag(&value)?),
                "summary" => self.reasoning().show = Some(value != "none"),
                "enabled" => is_enabled = Some(at.flag(&value)?),
                _ => self.stranger(at, value),
            }
        }
        let reasoning = self.reasoning();
        match is_enabled {
            Some(false) => reasoning.effort = Some(Effort::None),
            Some(true) if reasoning.effort.is_none() && reasoning.budget.is_none() => reasoning.is_adaptive = true,
            _ => {}
        }
        Ok(())
    }

    /// Anthropic's object, which `DeepSeek`, Moonshot and Z.ai take in much the same way.
    fn thinking(&mut self, at: &At<'_>, value: Value) -> Result<(), Error> {
        let mut kind = None;
        for (key, value) in at.object(value)? {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "type" => kind = Some(at.text(value)?),
                "budget_tokens" => self.reasoning().budget = Some(at.count(&value)?),
                "display" => self.reasoning().show = Some(value != "omitted"),
                _ => self.stranger(at, value),
            }
        }
        let reasoning = self.reasoning();
        match kind.as_deref() {
            Some("disabled") => reasoning.effort = Some(Effort::None),
            Some("adaptive" | "auto") => reasoning.is_adaptive = true,
            Some("enabled") => reasoning.is_adaptive = reasoning.budget.is_none() && reasoning.effort.is_none(),
            _ => {
                return Err(at
                    .key("type")
                    .wrong("must be \"enabled\", \"adaptive\" or \"disabled\""));
            }
        }
        Ok(())
    }

    fn format(&mut self, at: &At<'_>, value: Value) -> Result<(), Error> {
        let mut format = at.object(value)?;
        match word(&format, "type") {
            Some("text") => self.prompt.format = Some(Format::Text),
            Some("json_object") => self.prompt.format = Some(Format::Json),
            Some("json_schema") => {
                let at = &at.key("json_schema");
                let Some(schema) = format.get_mut("json_schema").map(Value::take) else {
                    return Err(at.wrong("is required: give it a `name` and a `schema`"));
                };
                let schema = self.schema(at, schema)?;
                self.prompt.format = Some(schema);
            }
            Some(_) => self.stranger(at, Value::Object(format)),
            None => {
                return Err(at
                    .key("type")
                    .wrong("is required: \"text\", \"json_object\" or \"json_schema\""));
            }
        }
        Ok(())
    }

    fn schema(&mut self, at: &At<'_>, value: Value) -> Result<Format, Error> {
        let (mut name, mut description, mut strict) = (None, None, None);
        // Without a schema any object will do.
        let mut schema = Value::Object(Fields::new());
        for (key, value) in at.object(value)? {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "name" => name = Some(at.text(value)?),
                "description" => description = Some(at.text(value)?),
                "strict" => strict = Some(at.flag(&value)?),
                "schema" => schema = Value::Object(at.object(value)?),
                _ => self.stranger(at, value),
            }
        }
        Ok(Format::Schema {
            name,
            description,
            schema,
            strict,
        })
    }

    // === tools ===

    fn tools(&mut self, at: &At<'_>, value: Value) -> Result<(), Error> {
        for (index, tool) in at.list(value)?.into_iter().enumerate() {
            let tool = self.tool(&at.item(index), tool)?;
            self.prompt.tools.push(tool);
        }
        Ok(())
    }

    fn functions(&mut self, at: &At<'_>, value: Value) -> Result<(), Error> {
        for (index, function) in at.list(value)?.into_iter().enumerate() {
            let tool = self.function(&at.item(index), function)?;
            self.prompt.tools.push(tool);
        }
        Ok(())
    }

    fn tool(&mut self, at: &At<'_>, value: Value) -> Result<Tool, Error> {
        let mut tool = at.object(value)?;
        let kind = match word(&tool, "type") {
            Some(kind) => kind.to_owned(),
            None if tool.contains_key("function") => "function".to_owned(),
            None => return Err(at.key("type").wrong("is required: \"function\" or \"custom\"")),
        };
        if !matches!(kind.as_str(), "function" | "custom") {
            let cache = tool.get("cache_control").cloned();
            return Ok(Tool {
                name: kind,
                description: None,
                kind: ToolKind::Vendors(at.stranger(Value::Object(tool))),
                cache,
                at: Place::new(at.to_string()),
            });
        }
        let inner = &at.key(&kind);
        let Some(what) = tool.get_mut(&kind).map(Value::take) else {
            return Err(inner.wrong("is required: an object with a `name`"));
        };
        let mut read = match kind.as_str() {
            "custom" => self.custom(inner, what)?,
            _ => self.function(inner, what)?,
        };
        read.at = Place::new(at.to_string());
        for (key, value) in tool {
            match key.as_str() {
                "cache_control" if !value.is_null() => read.cache = Some(value),
                key if key == "type" || key == kind => {}
                _ => self.stranger(&at.key(&key), value),
            }
        }
        Ok(read)
    }

    fn function(&mut self, at: &At<'_>, value: Value) -> Result<Tool, Error> {
        let (mut name, mut description, mut schema, mut strict, mut cache) = (None, None, None, None, None);
        for (key, value) in at.object(value)? {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "name" => name = Some(at.text(value)?),
                "description" => description = Some(at.text(value)?),
                "parameters" => schema = Some(Value::Object(at.object(value)?)),
                "strict" => strict = Some(at.flag(&value)?),
                "cache_control" => cache = Some(value),
                _ => self.stranger(at, value),
            }
        }
        Ok(Tool {
            name: name.ok_or_else(|| at.key("name").wrong("is required"))?,
            description,
            kind: ToolKind::Function { schema, strict },
            cache,
            at: Place::new(at.to_string()),
        })
    }

    fn custom(&mut self, at: &At<'_>, value: Value) -> Result<Tool, Error> {
        let (mut name, mut description, mut format, mut cache) = (None, None, None, None);
        for (key, value) in at.object(value)? {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "name" => name = Some(at.text(value)?),
                "description" => description = Some(at.text(value)?),
                "format" => format = Some(flat(value)),
                "cache_control" => cache = Some(value),
                _ => self.stranger(at, value),
            }
        }
        Ok(Tool {
            name: name.ok_or_else(|| at.key("name").wrong("is required"))?,
            description,
            kind: ToolKind::Custom(Custom { format }),
            cache,
            at: Place::new(at.to_string()),
        })
    }

    fn choice(&mut self, at: &At<'_>, value: Value) -> Result<(), Error> {
        let choice = match &value {
            Value::String(word) => match word.as_str() {
                "auto" => ToolChoice::Auto,
                "none" => ToolChoice::None,
                // The second is Mistral's.
                "required" | "any" => ToolChoice::Required,
                _ => return Err(at.wrong("must be \"none\", \"auto\", \"required\", or an object that names a tool")),
            },
            Value::Object(object) => match word(object, "type") {
                Some("allowed_tools") => among(at, object)?,
                Some(kind @ ("function" | "custom")) => ToolChoice::Named(named(&at.key(kind), object.get(kind))?),
                None if object.contains_key("function") => {
                    ToolChoice::Named(named(&at.key("function"), object.get("function"))?)
                }
                // A tool that the vendor runs.
                Some(_) => {
                    self.stranger(at, value);
                    return Ok(());
                }
                None => {
                    return Err(at
                        .key("type")
                        .wrong("is required: \"function\", \"custom\" or \"allowed_tools\""));
                }
            },
            _ => return Err(at.wrong("must be a text or an object")),
        };
        self.prompt.tool_choice = Some(choice);
        Ok(())
    }

    // === messages ===

    fn messages(&mut self, at: &At<'_>, value: Value) -> Result<(), Error> {
        let list = at.list(value)?;
        self.prompt.messages.reserve(list.len());
        for (index, message) in list.into_iter().enumerate() {
            let message = self.message(&at.item(index), message)?;
            self.prompt.messages.push(message);
        }
        Ok(())
    }

    fn message(&mut self, at: &At<'_>, value: Value) -> Result<Message, Error> {
        let Value::Object(fields) = value else {
            return Err(at.wrong("must be an object with a `role` and a `content`"));
        };
        let mut said = Said::default();
        for (key, value) in fields {
            if value.is_null() {
                continue;
            }
            let at = &at.key(&key);
            match key.as_str() {
                "role" => said.role = Some(at.text(value)?),
                "content" => said.content = Some(value),
                "name" => said.name = Some(at.text(value)?),
                "tool_calls" => said.tool_calls = at.list(value)?,
                "tool_call_id" => said.tool_call_id = Some(at.text(value)?),
                "function_call" => said.function_call = Some(at.object(value)?),
                "refusal" => said.refusal = Some(at.text(value)?),
                "audio" => said.audio = Some(value),
                "reasoning_content" | "reasoning" => {
                    let text = at.text(value)?;
                    said.reasoning.get_or_insert(text);
                }
                "reasoning_details" => said.details = at.list(value)?,
                "annotations" => said.annotations = at.list(value)?,
                "cache_control" => said.cache = Some(value),
                _ => self.stranger(at, value),
            }
        }
        let role = match said.role.as_deref() {
            Some("system") => Role::System,
            Some("developer") => Role::Developer,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool") => return self.result(at, said),
            Some("function") => return self.function_result(at, said),
            Some(_) => {
                let roles = "must be one of \"system\", \"developer\", \"user\", \"assistant\", \"tool\"";
                return Err(at.key("role").wrong(roles));
            }
            None => return Err(at.key("role").wrong("is required")),
        };
        let name = said.name.take();
        let parts = if role == Role::Assistant {
            self.assistant(at, said)?
        } else {
            self.spoken(at, said)?
        };
        let at = Place::new(at.to_string());
        Ok(Message { role, name, parts, at })
    }

    /// What somebody else than the model says: all of it is in the content.
    fn spoken(&mut self, at: &At<'_>, mut said: Said) -> Result<Vec<Part>, Error> {
        let content = said.content.take();
        let content = content.ok_or_else(|| at.key("content").wrong("is required: a text or a list of parts"))?;
        let mut parts = Vec::new();
        self.content(&at.key("content"), content, &mut parts)?;
        set_cache(&mut parts, said.cache.take());
        self.rest(at, said);
        Ok(parts)
    }

    /// What is left in a message whose role has no such thing.
    fn rest(&mut self, at: &At<'_>, said: Said) {
        let mut odd = |key: &str, value: Value| self.stranger(&at.key(key), value);
        if !said.tool_calls.is_empty() {
            odd("tool_calls", said.tool_calls.into());
        }
        if let Some(call) = said.function_call {
            odd("function_call", call.into());
        }
        odd("tool_call_id", said.tool_call_id.map_or(Value::Null, Value::from));
        odd("refusal", said.refusal.map_or(Value::Null, Value::from));
        odd("audio", said.audio.unwrap_or_default());
        odd("reasoning_content", said.reasoning.map_or(Value::Null, Value::from));
        if !said.details.is_empty() {
            odd("reasoning_details", said.details.into());
        }
        if !said.annotations.is_empty() {
            odd("annotations", said.annotations.into());
        }
    }

    fn assistant(&mut self, at: &At<'_>, mut said: Said) -> Result<Vec<Part>, Error> {
        let thoughts = details::thoughts(mem::take(&mut said.details), said.reasoning.take());
        let mut parts: Vec<Part> = thoughts.into_iter().map(Part::Thought).collect();
        let has_calls = !said.tool_calls.is_empty() || said.function_call.is_some();
        match said.content.take() {
            // Many write this next to calls, and mean nothing.
            Some(Value::String(text)) if text.is_empty() && has_calls => {}
            Some(content) => self.content(&at.key("content"), content, &mut parts)?,
            None => {}
        }
        if parts.iter().any(|part| matches!(part, Part::Text { .. })) {
            annotate(&mut parts, mem::take(&mut said.annotations));
        }
        if let Some(refusal) = said.refusal.take() {
            parts.push(Part::Refusal(refusal));
        }
        if let Some(audio) = said.audio.take() {
            let at = &at.key("audio");
            let mut audio = at.object(audio)?;
            match audio.get_mut("id").map(Value::take) {
                Some(Value::String(id)) => parts.push(Part::Audio(Audio {
                    source: Source::File(id),
                    format: None,
                    transcript: None,
                })),
                _ => return Err(at.key("id").wrong("is required: the id of an earlier audio answer")),
            }
        }
        let list = &at.key("tool_calls");
        for (index, call) in mem::take(&mut said.tool_calls).into_iter().enumerate() {
            let call = self.call(&list.item(index), call)?;
            parts.push(Part::Call(call));
        }
        if let Some(call) = said.function_call.take() {
            let call = self.function_call(&at.key("function_call"), call)?;
            parts.push(Part::Call(call));
        }
        set_cache(&mut parts, said.cache.take());
        self.rest(at, said);
        Ok(parts)
    }

    fn call(&mut self, at: &At<'_>, value: Value) -> Result<ir::Call, Error> {
        let mut call = ir::Call::default();
        let (mut id, mut what) = (None, None);
        for (key, value) in at.object(value)? {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "id" => id = Some(at.text(value)?),
                // The first tells nothing that the rest does not.
                "type" | "index" => {}
                "function" => what = Some((false, at.object(value)?)),
                "custom" => what = Some((true, at.object(value)?)),
                "cache_control" => call.cache = Some(value),
                "extra_content" => match signature(&value) {
                    Some(written) => call.seal = Some(Seal::read(written, Maker::Gemini)),
                    None => self.stranger(at, value),
                },
                _ => self.stranger(at, value),
            }
        }
        let Some((is_custom, what)) = what else {
            return Err(at
                .key("function")
                .wrong("is required: an object with a `name` and `arguments`"));
        };
        call.is_custom = is_custom;
        self.called(&at.key(if is_custom { "custom" } else { "function" }), what, &mut call)?;
        call.id = match id.filter(|id| !id.is_empty()) {
            Some(id) => id,
            None => return Err(at.key("id").wrong("is required: it names the call to its result")),
        };
        let made = Made {
            name: call.name.clone(),
            is_custom,
        };
        self.calls.insert(call.id.clone(), made);
        Ok(call)
    }

    /// A call of an older client. It has no id, so it gets one that is the same in every turn.
    fn function_call(&mut self, at: &At<'_>, what: Fields) -> Result<ir::Call, Error> {
        let mut call = ir::Call {
            id: format!("call_function_{}", self.functions),
            ..ir::Call::default()
        };
        self.called(at, what, &mut call)?;
        self.functions += 1;
        self.waiting = Some((call.id.clone(), call.name.clone()));
        Ok(call)
    }

    fn called(&mut self, at: &At<'_>, what: Fields, call: &mut ir::Call) -> Result<(), Error> {
        let input = if call.is_custom { "input" } else { "arguments" };
        let mut name = None;
        for (key, value) in what {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "name" => name = Some(at.text(value)?),
                key if key == input => call.arguments = at.text(value)?,
                _ => self.stranger(at, value),
            }
        }
        call.name = name.ok_or_else(|| at.key("name").wrong("is required"))?;
        if call.arguments.is_empty() && !call.is_custom {
            "{}".clone_into(&mut call.arguments);
        }
        Ok(())
    }

    fn result(&mut self, at: &At<'_>, mut said: Said) -> Result<Message, Error> {
        let call_id = said.tool_call_id.take();
        let call_id = call_id.ok_or_else(|| {
            at.key("tool_call_id")
                .wrong("is required: the id of the call it answers")
        })?;
        let (name, is_custom) = match self.calls.get(&call_id) {
            Some(made) => (Some(made.name.clone()), made.is_custom),
            None => (None, false),
        };
        let result = ResultOf {
            call_id,
            name: said.name.take().or(name),
            is_custom,
            ..ResultOf::default()
        };
        self.result_of(at, said, result)
    }

    fn function_result(&mut self, at: &At<'_>, mut said: Said) -> Result<Message, Error> {
        let name = said.name.take();
        let name = name.ok_or_else(|| at.key("name").wrong("is required: the name of the function"))?;
        let call_id = match self.waiting.take() {
            Some((id, called)) if called == name => id,
            _ => format!("call_function_{}", self.functions),
        };
        let result = ResultOf {
            call_id,
            name: Some(name),
            ..ResultOf::default()
        };
        self.result_of(at, said, result)
    }

    fn result_of(&mut self, at: &At<'_>, mut said: Said, mut result: ResultOf) -> Result<Message, Error> {
        let place = Place::new(at.to_string());
        if let Some(content) = said.content.take() {
            self.content(&at.key("content"), content, &mut result.parts)?;
        }
        result.cache = said.cache.take();
        self.rest(at, said);
        Ok(Message {
            role: Role::Tool,
            name: None,
            parts: vec![Part::Result(result)],
            at: place,
        })
    }

    // === content ===

    fn content(&mut self, at: &At<'_>, value: Value, parts: &mut Vec<Part>) -> Result<(), Error> {
        match value {
            Value::String(text) => parts.push(Part::text(text)),
            Value::Array(list) => {
                parts.reserve(list.len());
                for (index, part) in list.into_iter().enumerate() {
                    let part = self.part(&at.item(index), part)?;
                    parts.push(part);
                }
            }
            _ => return Err(at.wrong("must be a text or a list of parts")),
        }
        Ok(())
    }

    fn part(&mut self, at: &At<'_>, value: Value) -> Result<Part, Error> {
        let mut part = match value {
            Value::Object(part) => part,
            // Some write a text where a part belongs.
            Value::String(text) => return Ok(Part::text(text)),
            _ => return Err(at.wrong("must be an object with a `type`")),
        };
        let Some(kind) = word(&part, "type") else {
            return Err(at
                .key("type")
                .wrong("is required: \"text\", \"image_url\", \"input_audio\" or \"file\""));
        };
        let field = match kind {
            "text" | "image_url" | "input_audio" | "file" | "refusal" | "thinking" | "video_url" => kind.to_owned(),
            _ => return Ok(Part::Stranger(at.stranger(Value::Object(part)))),
        };
        if field == "video_url" && !is_data(part.get("video_url")) {
            return Ok(Part::Stranger(at.stranger(Value::Object(part))));
        }
        let cache = part
            .get_mut("cache_control")
            .map(Value::take)
            .filter(|cache| !cache.is_null());
        let signature = match part.get_mut("signature").map(Value::take) {
            Some(Value::String(signature)) if field == "thinking" => Some(signature),
            _ => None,
        };
        let inner = &at.key(&field);
        let Some(what) = part.get_mut(&field).map(Value::take) else {
            return Err(inner.wrong("is required"));
        };
        for (key, value) in part {
            if key != "type" && key != field {
                self.stranger(&at.key(&key), value);
            }
        }
        match field.as_str() {
            "text" => Ok(Part::Text {
                text: inner.text(what)?,
                citations: Vec::new(),
                cache,
            }),
            "image_url" => self.image(inner, what, cache),
            "input_audio" => self.audio(inner, what),
            "file" => self.file(inner, what, cache),
            "video_url" => video(inner, what, cache),
            "refusal" => Ok(Part::Refusal(inner.text(what)?)),
            _ => Ok(Part::Thought(Thought {
                text: thought_text(what),
                seal: signature.map(|written| Seal::read(&written, Maker::Anthropic)),
                ..Thought::default()
            })),
        }
    }

    fn image(&mut self, at: &At<'_>, value: Value, cache: Option<Value>) -> Result<Part, Error> {
        let (mut url, mut detail) = (None, None);
        match value {
            // Some write the address alone.
            Value::String(text) => url = Some(text),
            value => {
                for (key, value) in at.object(value)? {
                    let at = &at.key(&key);
                    match key.as_str() {
                        _ if value.is_null() => {}
                        "url" => url = Some(at.text(value)?),
                        "detail" => detail = Some(at.text(value)?),
                        _ => self.stranger(at, value),
                    }
                }
            }
        }
        let at = &at.key("url");
        let url = url.ok_or_else(|| at.wrong("is required: an address or a data URL"))?;
        Ok(Part::Image(Image {
            source: source(at, url)?,
            detail,
            cache,
        }))
    }

    fn audio(&mut self, at: &At<'_>, value: Value) -> Result<Part, Error> {
        let (mut data, mut format) = (None, None);
        for (key, value) in at.object(value)? {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "data" => data = Some(at.text(value)?),
                "format" => format = Some(at.text(value)?),
                _ => self.stranger(at, value),
            }
        }
        let data = data.ok_or_else(|| at.key("data").wrong("is required: the audio in base64"))?;
        let source = match (&format, data.starts_with("data:")) {
            (_, true) => source(&at.key("data"), data)?,
            (Some(format), false) => Source::Data {
                media_type: audio_type(format),
                base64: data,
            },
            (None, false) => return Err(at.key("format").wrong("is required: \"wav\" or \"mp3\"")),
        };
        Ok(Part::Audio(Audio {
            source,
            format,
            transcript: None,
        }))
    }

    fn file(&mut self, at: &At<'_>, value: Value, cache: Option<Value>) -> Result<Part, Error> {
        let (mut data, mut id, mut name) = (None, None, None);
        for (key, value) in at.object(value)? {
            let at = &at.key(&key);
            match key.as_str() {
                _ if value.is_null() => {}
                "file_data" => data = Some(at.text(value)?),
                "file_id" => id = Some(at.text(value)?),
                "filename" => name = Some(at.text(value)?),
                _ => self.stranger(at, value),
            }
        }
        let source = match (data, id) {
            (Some(data), None) => file_source(&at.key("file_data"), data, name.as_deref())?,
            (None, Some(id)) => Source::File(id),
            (Some(_), Some(_)) => return Err(at.wrong("must have `file_data` or `file_id`, and not both")),
            (None, None) => return Err(at.wrong("must have `file_data` or `file_id`")),
        };
        Ok(Part::Document(Document {
            source,
            name,
            context: None,
            cite: None,
            cache,
        }))
    }
}

/// A message, member by member.
#[derive(Default)]
struct Said {
    role: Option<String>,
    content: Option<Value>,
    name: Option<String>,
    tool_calls: Vec<Value>,
    tool_call_id: Option<String>,
    function_call: Option<Fields>,
    refusal: Option<String>,
    audio: Option<Value>,
    reasoning: Option<String>,
    details: Vec<Value>,
    annotations: Vec<Value>,
    cache: Option<Value>,
}

pub(in crate::openai) fn stop(at: &At<'_>, value: Value) -> Result<Vec<String>, Error> {
    match value {
        Value::String(text) => Ok(vec![text]),
        Value::Array(list) => {
            let text = |(index, text)| at.item(index).text(text);
            list.into_iter().enumerate().map(text).collect()
        }
        _ => Err(at.wrong("must be a text or a list of texts")),
    }
}

fn effort(at: &At<'_>, value: &Value) -> Result<Effort, Error> {
    let words = "must be one of \"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\", \"max\"";
    value.as_str().and_then(Effort::parse).ok_or_else(|| at.wrong(words))
}

fn function_choice(at: &At<'_>, value: &Value) -> Result<ToolChoice, Error> {
    match value.as_str() {
        Some("auto") => Ok(ToolChoice::Auto),
        Some("none") => Ok(ToolChoice::None),
        Some(_) => Err(at.wrong("must be \"none\", \"auto\", or an object that names a function")),
        None => Ok(ToolChoice::Named(named(at, Some(value))?)),
    }
}

fn named(at: &At<'_>, value: Option<&Value>) -> Result<String, Error> {
    let name = value.and_then(|value| value.get("name")).and_then(Value::as_str);
    name.map(str::to_owned)
        .ok_or_else(|| at.key("name").wrong("is required: the name of a tool"))
}

fn among(at: &At<'_>, object: &Fields) -> Result<ToolChoice, Error> {
    let at = &at.key("allowed_tools");
    // OpenAI's reference has this object inside, its Responses have its members right here.
    let allowed = object.get("allowed_tools").and_then(Value::as_object).unwrap_or(object);
    let required = match word(allowed, "mode") {
        Some("required") => true,
        Some("auto") => false,
        _ => return Err(at.key("mode").wrong("must be \"auto\" or \"required\"")),
    };
    let at = &at.key("tools");
    let Some(tools) = allowed.get("tools").and_then(Value::as_array) else {
        return Err(at.wrong("must be a list"));
    };
    let name = |(index, tool): (usize, &Value)| {
        let inner = tool.get("function").or_else(|| tool.get("custom")).unwrap_or(tool);
        named(&at.item(index), Some(inner))
    };
    Ok(ToolChoice::Among {
        names: tools.iter().enumerate().map(name).collect::<Result<_, _>>()?,
        required,
    })
}

/// A grammar's members stand one level deeper here than in the Responses, whose way is the prompt's.
fn flat(format: Value) -> Value {
    let Value::Object(mut outer) = format else {
        return format;
    };
    if let Some(Value::Object(grammar)) = outer.get_mut("grammar").map(Value::take) {
        outer.shift_remove("grammar");
        outer.extend(grammar);
    }
    Value::Object(outer)
}

/// What Gemini wants to see again with a call, where its own endpoint for clients of this dialect puts it.
pub(super) fn signature(extra: &Value) -> Option<&str> {
    let written = extra.get("google")?.get("thought_signature")?.as_str()?;
    (!written.is_empty()).then_some(written)
}

/// A thought as a part of content: Anthropic's text, or Mistral's list of texts.
pub(super) fn thought_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(list) => {
            let texts = list.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}

fn set_cache(parts: &mut [Part], cache: Option<Value>) {
    let (Some(cache), Some(last)) = (cache, parts.last_mut()) else {
        return;
    };
    let slot = match last {
        Part::Text { cache, .. } => cache,
        Part::Image(image) => &mut image.cache,
        Part::Document(document) => &mut document.cache,
        Part::Call(call) => &mut call.cache,
        Part::Result(result) => &mut result.cache,
        Part::Audio(_) | Part::Thought(_) | Part::Refusal(_) | Part::Stranger(_) => return,
    };
    slot.get_or_insert(cache);
}

/// Puts citations to the text that they belong to.
pub(super) fn annotate(parts: &mut [Part], annotations: Vec<Value>) {
    let text = parts.iter_mut().rev().find_map(|part| match part {
        Part::Text { citations, .. } => Some(citations),
        _ => None,
    });
    if let Some(citations) = text {
        citations.extend(annotations.into_iter().map(citation));
    }
}

pub(super) fn citation(raw: Value) -> Citation {
    let inner = raw.get("url_citation").unwrap_or(&raw);
    let text = |key: &str| inner.get(key).and_then(Value::as_str).map(str::to_owned);
    let count = |key: &str| inner.get(key).and_then(Value::as_u64);
    Citation {
        url: text("url"),
        title: text("title"),
        quoted: text("content"),
        document: None,
        start: count("start_index"),
        end: count("end_index"),
        raw: Some(raw),
    }
}

fn video(at: &At<'_>, value: Value, cache: Option<Value>) -> Result<Part, Error> {
    let url = match value {
        Value::Object(mut object) => object.get_mut("url").map(Value::take).unwrap_or_default(),
        value => value,
    };
    let at = &at.key("url");
    Ok(Part::Document(Document {
        source: source(at, at.text(url)?)?,
        name: None,
        context: None,
        cite: None,
        cache,
    }))
}

fn is_data(value: Option<&Value>) -> bool {
    let url = value.and_then(|value| value.get("url").unwrap_or(value).as_str());
    url.is_some_and(|url| url.starts_with("data:"))
}

/// Where an address leads. Data in it is taken out of it.
pub(super) fn source(at: &At<'_>, url: String) -> Result<Source, Error> {
    let is_data = url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if !is_data {
        return Ok(Source::Url(url));
    }
    data_source(url).map_err(|_| at.wrong("must be an address, or a data URL such as \"data:image/png;base64,…\""))
}

/// Takes a data URL apart; gives it back where it is of another kind.
pub(super) fn data_source(mut url: String) -> Result<Source, String> {
    let Some(comma) = url.find(',') else {
        return Err(url);
    };
    let head = url.get(5..comma).unwrap_or_default();
    let media_type = head.split(';').next().unwrap_or_default().trim().to_owned();
    let is_base64 = head.rsplit(';').next().is_some_and(|last| last.trim() == "base64");
    if !is_base64 || media_type.is_empty() {
        return Err(url);
    }
    url.drain(..=comma);
    Ok(Source::Data {
        media_type,
        base64: url,
    })
}

/// The data of a file comes as a data URL, or as bare base64, of which its name tells the type.
fn file_source(at: &At<'_>, data: String, name: Option<&str>) -> Result<Source, Error> {
    if data.starts_with("data:") || data.starts_with("http://") || data.starts_with("https://") {
        return source(at, data);
    }
    let extension = name
        .and_then(|name| name.rsplit_once('.'))
        .map(|(_, extension)| extension.to_ascii_lowercase());
    let media_type = match extension.as_deref() {
        // So begins every PDF.
        _ if data.starts_with("JVBERi") => "application/pdf",
        Some("pdf") => "application/pdf",
        Some("txt") => "text/plain",
        Some("md") => "text/markdown",
        Some("csv") => "text/csv",
        Some("html" | "htm") => "text/html",
        Some("json") => "application/json",
        Some("docx") => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        _ => return Err(at.wrong("must say what it is: give a data URL, \"data:application/pdf;base64,…\"")),
    };
    Ok(Source::Data {
        media_type: media_type.to_owned(),
        base64: data,
    })
}

pub(super) fn audio_type(format: &str) -> String {
    match format {
        "mp3" => "audio/mpeg".to_owned(),
        "m4a" => "audio/mp4".to_owned(),
        "pcm16" => "audio/pcm".to_owned(),
        format => format!("audio/{format}"),
    }
}

/// The steps to a stranger's place in a body.
pub(super) fn path(stranger: &Stranger) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    for piece in stranger.field.split('.') {
        let (key, mut rest) = match piece.split_once('[') {
            Some((key, rest)) => (key, Some(rest)),
            None => (piece, None),
        };
        if !key.is_empty() {
            steps.push(Step::Key(key));
        }
        while let Some(index) = rest {
            let (number, more) = index.split_once(']')?;
            steps.push(Step::Item(number.parse().ok()?));
            rest = more.strip_prefix('[');
        }
    }
    Some(steps)
}

/// One step on a stranger's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Key(&'a str),
    Item(usize),
}
