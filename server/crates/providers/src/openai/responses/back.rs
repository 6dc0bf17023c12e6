//! Writes requests for an upstream that is asked by Responses though its caller is not, and reads its whole answers.

use super::native::{failure, usage};
use super::read::{citation, grammar};
use crate::codec::Ask;
use crate::failure::bad_answer;
use crate::ids;
use crate::ir::{
    Answer, Call, Choice, Document, Effort, Finish, Format, Image, Maker, Message, Part, Prompt, Reasoning, ResultOf,
    Role, Seal, Source, Stranger, Thought, Tool, ToolChoice, ToolKind,
};
use crate::names::{Spot, Thing};
use crate::notes::Notes;
use crate::params::Param;
use crate::{Dialect, Surface};
use serde_json::{Map, Value, json};
use switchyard_core::error::{Error, Kind};

type Object = Map<String, Value>;

pub(super) fn write(prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<u8>, Error> {
    let mut body = Object::new();
    let mut put = |key: &str, value: Value| body.insert(key.to_owned(), value);
    put("model", json!(ask.model));
    put("input", Value::Array(input(prompt, ask, notes)?));
    let tools: Vec<Value> = prompt
        .tools
        .iter()
        .filter_map(|tool| write_tool(tool, ask, notes))
        .collect();
    if !tools.is_empty() {
        put("tools", json!(tools));
    }
    if let Some(choice) = &prompt.tool_choice {
        put("tool_choice", write_choice(choice, prompt));
    }
    if let Some(parallel) = prompt.parallel_tools {
        put("parallel_tool_calls", json!(parallel));
    }
    if let Some(most) = prompt.max_tokens {
        put("max_output_tokens", json!(most));
    }
    for (key, value) in [
        ("temperature", prompt.sampling.temperature),
        ("top_p", prompt.sampling.top_p),
    ] {
        if let Some(value) = value {
            put(key, json!(value));
        }
    }
    if let Some(text) = write_text(prompt) {
        put("text", text);
    }
    if let Some(reasoning) = write_reasoning(prompt, ask, notes) {
        put("reasoning", reasoning);
    }
    let include = write_include(prompt, ask.model);
    if !include.is_empty() {
        put("include", json!(include));
    }
    if let Some(most) = prompt.sampling.top_logprobs {
        put("top_logprobs", json!(most));
    }
    for (key, text) in [
        ("user", &prompt.user),
        ("service_tier", &prompt.service_tier),
        ("prompt_cache_key", &prompt.cache_key),
    ] {
        if let Some(text) = text {
            put(key, json!(text));
        }
    }
    if let Some(metadata) = &prompt.metadata {
        put("metadata", metadata.clone());
    }
    // The vendor keeps every answer that nobody says this of, and the caller's dialect keeps none.
    put("store", json!(prompt.store.unwrap_or(false)));
    if ask.stream {
        put("stream", json!(true));
    }
    unsaid(prompt, ask, notes);
    for stranger in &prompt.strangers {
        // Of the same dialect: it knows what it means.
        if ask.surface == Surface::Responses && !stranger.field.contains(['.', '[']) {
            body.insert(stranger.field.clone(), stranger.value.clone());
        } else {
            notes.dropped(stranger.field.clone(), "Responses has no such field");
        }
    }
    serde_json::to_vec(&body).map_err(|error| Error::new(Kind::Internal, error.to_string()))
}

/// Parameters that chat has and Responses has not, and whether they are given.
fn only_in_chat(prompt: &Prompt) -> [(Param, bool); 7] {
    let sampling = &prompt.sampling;
    [
        (Param::TopK, sampling.top_k.is_some()),
        (Param::N, sampling.n.is_some_and(|n| n > 1)),
        (Param::Seed, sampling.seed.is_some()),
        (Param::PresencePenalty, sampling.presence_penalty.is_some()),
        (Param::FrequencyPenalty, sampling.frequency_penalty.is_some()),
        (Param::Stop, !sampling.stop.is_empty()),
        (Param::LogitBias, sampling.logit_bias.is_some()),
    ]
}

fn unsaid(prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) {
    for (param, is_given) in only_in_chat(prompt) {
        if is_given {
            notes.dropped(prompt.name(param, ask.surface), "Responses has no such parameter");
        }
    }
}

fn write_text(prompt: &Prompt) -> Option<Value> {
    let mut text = Object::new();
    match &prompt.format {
        None => {}
        Some(Format::Text) => drop(text.insert("format".to_owned(), json!({"type": "text"}))),
        Some(Format::Json) => drop(text.insert("format".to_owned(), json!({"type": "json_object"}))),
        Some(Format::Schema {
            name,
            description,
            schema,
            strict,
        }) => {
            let mut format = json!({"type": "json_schema", "name": name.as_deref().unwrap_or("answer")});
            if let Some(description) = description {
                format["description"] = json!(description);
            }
            format["schema"] = schema.clone();
            if let Some(strict) = strict {
                format["strict"] = json!(strict);
            }
            text.insert("format".to_owned(), format);
        }
    }
    if let Some(verbosity) = &prompt.verbosity {
        text.insert("verbosity".to_owned(), json!(verbosity));
    }
    (!text.is_empty()).then_some(Value::Object(text))
}

fn write_reasoning(prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Option<Value> {
    let asked = prompt.reasoning.as_ref()?;
    let mut reasoning = Object::new();
    let effort = asked.effort.or_else(|| {
        let effort = Effort::of_budget(asked.budget?);
        let field = prompt.name(Param::Reasoning, ask.surface);
        notes.approximated(field, format!("`reasoning.effort` {}", effort.as_str()));
        Some(effort)
    });
    if let Some(effort) = effort {
        reasoning.insert("effort".to_owned(), json!(effort.as_str()));
    }
    if asked.show == Some(true) {
        reasoning.insert("summary".to_owned(), json!("auto"));
    }
    (!reasoning.is_empty()).then_some(Value::Object(reasoning))
}

fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let known = ["gpt-5", "gpt-oss", "o1", "o3", "o4", "codex"];
    // Beside those that reason there are some of the same name that talk or search.
    let plain = ["-chat", "-search"];
    known.iter().any(|known| name.starts_with(known)) && !plain.iter().any(|plain| name.contains(plain))
}

/// Whether it holds reasoning that only OpenAI can read.
fn has_seal(prompt: &Prompt) -> bool {
    let is_sealed = |part: &Part| matches!(part, Part::Thought(Thought { seal: Some(seal), .. }) if seal.for_maker(Maker::OpenAi).is_some());
    prompt.messages.iter().flat_map(|message| &message.parts).any(is_sealed)
}

/// A bound below this is refused by Responses, and by chat completions it is not.
const LEAST_OUTPUT: u64 = 16;

/// Whether a call is better asked by Responses than by chat completions, which take no reasoning back and show none. Only where
/// nothing else is lost by it.
pub(in crate::openai) fn suits(prompt: &Prompt, model: &str) -> bool {
    let asks = |reasoning: &Reasoning| reasoning.effort != Some(Effort::None);
    let has_media = |part: &Part| match part {
        Part::Audio(_) => true,
        Part::Document(document) => {
            matches!(&document.source, Source::Data { media_type, .. } if media_type.starts_with("video/"))
        }
        _ => false,
    };
    reasons(model)
        && prompt.max_tokens.is_none_or(|most| most >= LEAST_OUTPUT)
        && (prompt.reasoning.as_ref().is_some_and(asks) || has_seal(prompt))
        && !only_in_chat(prompt).iter().any(|(_, is_given)| *is_given)
        && !prompt.messages.iter().flat_map(|message| &message.parts).any(has_media)
}

/// Models that do not reason refuse to be asked for what they encrypt.
fn write_include(prompt: &Prompt, model: &str) -> Vec<&'static str> {
    let mut include = Vec::new();
    if prompt.reasoning.is_some() || reasons(model) || has_seal(prompt) {
        include.push("reasoning.encrypted_content");
    }
    if prompt.sampling.logprobs == Some(true) {
        include.push("message.output_text.logprobs");
    }
    include
}

// === tools ===

fn write_tool(tool: &Tool, ask: &Ask<'_>, notes: &mut Notes) -> Option<Value> {
    let mut written = match &tool.kind {
        ToolKind::Function { schema, strict } => {
            let empty = || json!({"type": "object", "properties": {}});
            let mut written = json!({
                "type": "function",
                "name": tool.name,
                "parameters": schema.clone().unwrap_or_else(empty),
            });
            // What is not said means the opposite of what it means elsewhere.
            let strict = strict.or((ask.surface != Surface::Responses).then_some(false));
            if let Some(strict) = strict {
                written["strict"] = json!(strict);
            }
            written
        }
        ToolKind::Custom(custom) => {
            let mut written = json!({"type": "custom", "name": tool.name});
            if let Some(format) = custom.format.clone().and_then(grammar) {
                written["format"] = format;
            }
            written
        }
        ToolKind::Vendors(stranger) if ask.surface.dialect() == Dialect::OpenAi => return Some(stranger.value.clone()),
        ToolKind::Vendors(stranger) => {
            notes.dropped(stranger.field.clone(), "a tool that another vendor runs");
            return None;
        }
    };
    if let Some(description) = &tool.description {
        written["description"] = json!(description);
    }
    Some(written)
}

fn write_choice(choice: &ToolChoice, prompt: &Prompt) -> Value {
    let named = |name: &str| {
        let is_custom = |tool: &Tool| tool.name == name && matches!(tool.kind, ToolKind::Custom(_));
        let kind = if prompt.tools.iter().any(is_custom) {
            "custom"
        } else {
            "function"
        };
        json!({"type": kind, "name": name})
    };
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => named(name),
        ToolChoice::Among { names, required } => json!({
            "type": "allowed_tools",
            "mode": if *required { "required" } else { "auto" },
            "tools": names.iter().map(|name| named(name)).collect::<Vec<_>>(),
        }),
    }
}

// === items ===

fn input(prompt: &Prompt, ask: &Ask<'_>, notes: &mut Notes) -> Result<Vec<Value>, Error> {
    let mut items = Vec::new();
    for message in &prompt.messages {
        write_message(message, &Spot::of(message, ask.surface), &mut items, notes)?;
    }
    Ok(items)
}

fn write_message(message: &Message, spot: &Spot, items: &mut Vec<Value>, notes: &mut Notes) -> Result<(), Error> {
    let role = match message.role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    if message.name.is_some() {
        notes.dropped(spot.name(Thing::Name), "Responses has no names of speakers");
    }
    // Parts of what is said together stay together; what is an item of its own stands between.
    let mut said = Vec::new();
    for part in &message.parts {
        match part {
            Part::Thought(thought) => {
                flush(role, &mut said, items);
                items.extend(write_thought(thought, spot, notes));
            }
            Part::Call(call) => {
                flush(role, &mut said, items);
                items.push(write_call(call));
            }
            Part::Result(result) => {
                flush(role, &mut said, items);
                items.push(write_result(result, spot, notes)?);
            }
            part => said.extend(write_part(part, message.role, spot, notes)?),
        }
    }
    flush(role, &mut said, items);
    Ok(())
}

fn flush(role: &str, said: &mut Vec<Value>, items: &mut Vec<Value>) {
    if !said.is_empty() {
        let content = std::mem::take(said);
        items.push(json!({"type": "message", "role": role, "content": content}));
    }
}

fn write_thought(thought: &Thought, spot: &Spot, notes: &mut Notes) -> Option<Value> {
    let sealed = thought.seal.as_ref().and_then(|seal| seal.for_maker(Maker::OpenAi));
    let Some(sealed) = sealed else {
        notes.dropped(
            spot.name(Thing::Thought),
            "the vendor takes no reasoning that it did not seal itself",
        );
        return None;
    };
    let summary = if thought.text.is_empty() {
        json!([])
    } else {
        json!([{"type": "summary_text", "text": thought.text}])
    };
    Some(json!({"type": "reasoning", "summary": summary, "encrypted_content": sealed}))
}

fn write_call(call: &Call) -> Value {
    let id = ids::fitting(&call.id, 64);
    if call.is_custom {
        json!({"type": "custom_tool_call", "call_id": id, "name": call.name, "input": call.arguments})
    } else {
        json!({"type": "function_call", "call_id": id, "name": call.name, "arguments": call.arguments})
    }
}

fn write_result(result: &ResultOf, spot: &Spot, notes: &mut Notes) -> Result<Value, Error> {
    if result.is_error {
        notes.dropped(
            spot.name(Thing::IsError),
            "Responses has no such field: the result's text says it",
        );
    }
    let is_text = |part: &Part| matches!(part, Part::Text { .. });
    let output = if result.parts.iter().all(is_text) {
        json!(result.text())
    } else {
        let mut parts = Vec::new();
        for part in &result.parts {
            parts.extend(write_part(part, Role::User, spot, notes)?);
        }
        json!(parts)
    };
    let kind = if result.is_custom {
        "custom_tool_call_output"
    } else {
        "function_call_output"
    };
    Ok(json!({"type": kind, "call_id": ids::fitting(&result.call_id, 64), "output": output}))
}

fn write_part(part: &Part, role: Role, spot: &Spot, notes: &mut Notes) -> Result<Option<Value>, Error> {
    let unsupported = |what: &str| {
        let field = spot.name(Thing::Audio);
        Err(Error::new(Kind::Unsupported, format!("`{field}` {what}")).with_param(field))
    };
    Ok(Some(match part {
        Part::Text { text, .. } if role == Role::Assistant => json!({"type": "output_text", "text": text}),
        Part::Text { text, .. } => json!({"type": "input_text", "text": text}),
        Part::Refusal(text) => json!({"type": "refusal", "refusal": text}),
        Part::Image(image) => write_image(image),
        Part::Document(document) => return write_document(document, spot, notes).map(Some),
        Part::Audio(audio) => match &audio.source {
            Source::Data { base64, media_type } => {
                let format = audio.format.clone().unwrap_or_else(|| {
                    let subtype = media_type.rsplit('/').next().unwrap_or_default();
                    if subtype == "mpeg" {
                        "mp3".to_owned()
                    } else {
                        subtype.to_owned()
                    }
                });
                json!({"type": "input_audio", "input_audio": {"data": base64, "format": format}})
            }
            _ => return unsupported("has audio by reference, which Responses does not take: send it as base64"),
        },
        Part::Stranger(stranger) => {
            notes.dropped(stranger.field.clone(), "Responses has no such part");
            return Ok(None);
        }
        Part::Call(_) | Part::Result(_) | Part::Thought(_) => return Ok(None),
    }))
}

fn write_image(image: &Image) -> Value {
    let mut part = json!({"type": "input_image"});
    match &image.source {
        Source::Url(url) | Source::Text(url) => part["image_url"] = json!(url),
        Source::Data { media_type, base64 } => part["image_url"] = json!(format!("data:{media_type};base64,{base64}")),
        Source::File(id) => part["file_id"] = json!(id),
    }
    if let Some(detail) = &image.detail {
        part["detail"] = json!(detail);
    }
    part
}

fn write_document(document: &Document, spot: &Spot, notes: &mut Notes) -> Result<Value, Error> {
    let mut part = json!({"type": "input_file"});
    match &document.source {
        Source::Url(url) => part["file_url"] = json!(url),
        Source::File(id) => part["file_id"] = json!(id),
        Source::Data { media_type, .. } if media_type.starts_with("video/") => {
            let path = spot.name(Thing::File);
            let message = format!("`{path}` has a video, which Responses does not take: leave it out");
            return Err(Error::new(Kind::Unsupported, message).with_param(path));
        }
        Source::Data { media_type, base64 } => {
            part["filename"] = json!(document.name.as_deref().unwrap_or("document.pdf"));
            part["file_data"] = json!(format!("data:{media_type};base64,{base64}"));
        }
        // A text is a text.
        Source::Text(text) => part = json!({"type": "input_text", "text": text}),
    }
    if document.cite == Some(true) || document.context.is_some() {
        notes.dropped(
            spot.name(Thing::File),
            "Responses takes no context of a file, and cites none",
        );
    }
    Ok(part)
}

// === answers ===

pub(super) fn read(body: &[u8]) -> Result<Answer, Error> {
    let mut answer: Object = serde_json::from_slice(body)
        .map_err(|error| bad_answer(format!("the upstream's answer is not valid JSON: {error}")))?;
    let error = answer.remove("error").filter(|error| !error.is_null());
    if error.is_some() || answer.get("status").is_some_and(|status| status == "failed") {
        return Err(failure(error.unwrap_or_default(), Some(200)));
    }
    let Some(Value::Array(output)) = answer.remove("output") else {
        return Err(bad_answer("the upstream's answer has no `output`".to_owned()));
    };
    let (mut parts, mut tokens) = (Vec::new(), Vec::new());
    for (index, value) in output.into_iter().enumerate() {
        read_item(value, index, &mut parts, &mut tokens);
    }
    let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
    let usage = answer.get("usage").and_then(|reported| usage(&reported.to_string()));
    Ok(Answer {
        id: text("id"),
        model: text("model"),
        created: answer.get("created_at").and_then(created),
        usage: usage.unwrap_or_default(),
        service_tier: text("service_tier"),
        choices: vec![Choice {
            finish: finish(&Value::Object(answer), &parts),
            parts,
            logprobs: logprobs(&tokens),
        }],
    })
}

/// Some write it with a fraction.
fn created(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "a time in seconds, rounded down")]
    let rounded = |seconds: f64| seconds as i64;
    value.as_i64().or_else(|| value.as_f64().map(rounded))
}

pub(super) fn logprobs(tokens: &[Value]) -> Option<Value> {
    (!tokens.is_empty()).then(|| json!({"content": tokens, "refusal": null}))
}

/// Why an answer ended.
pub(super) fn finish(response: &Value, parts: &[Part]) -> Finish {
    let reason = response.pointer("/incomplete_details/reason").and_then(Value::as_str);
    let has = |what: fn(&Part) -> bool| parts.iter().any(what);
    match (response.get("status").and_then(Value::as_str), reason) {
        (Some("incomplete"), Some("max_output_tokens")) => Finish::Length,
        (Some("incomplete"), Some("content_filter")) => Finish::ContentFilter,
        (Some("incomplete"), reason) => Finish::Other(reason.unwrap_or("incomplete").to_owned()),
        (Some(status @ ("cancelled" | "queued" | "in_progress")), _) => Finish::Other(status.to_owned()),
        _ if has(|part| matches!(part, Part::Call(_))) => Finish::ToolCalls,
        _ if has(|part| matches!(part, Part::Refusal(_))) => Finish::Refusal,
        _ => Finish::Stop,
    }
}

fn string(item: &mut Value, key: &str) -> String {
    match item.get_mut(key).map(Value::take) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn array(item: &mut Value, key: &str) -> Vec<Value> {
    match item.get_mut(key).map(Value::take) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The parts of an item of an answer, and the odds of its tokens.
pub(super) fn read_item(mut item: Value, index: usize, parts: &mut Vec<Part>, tokens: &mut Vec<Value>) {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match &*kind {
        "message" => {
            for mut content in array(&mut item, "content") {
                match content.get("type").and_then(Value::as_str) {
                    Some("output_text" | "text") => {
                        tokens.extend(array(&mut content, "logprobs"));
                        let citations = array(&mut content, "annotations");
                        parts.push(Part::Text {
                            text: string(&mut content, "text"),
                            citations: citations.iter().map(citation).collect(),
                            cache: None,
                        });
                    }
                    Some("refusal") => parts.push(Part::Refusal(string(&mut content, "refusal"))),
                    _ => parts.push(stranger(index, content)),
                }
            }
        }
        "reasoning" => parts.extend(read_thought(&mut item).map(Part::Thought)),
        "function_call" | "custom_tool_call" => parts.push(Part::Call(read_call(&mut item))),
        _ => parts.push(stranger(index, item)),
    }
}

fn stranger(index: usize, value: Value) -> Part {
    Part::Stranger(Stranger {
        field: output_field(index as u64),
        value,
    })
}

pub(super) fn output_field(index: u64) -> String {
    format!("output[{index}]")
}

/// `None` if there is nothing of it.
pub(super) fn read_thought(item: &mut Value) -> Option<Thought> {
    let mut said = |key: &str| {
        let texts = array(item, key).into_iter().map(|mut part| string(&mut part, "text"));
        texts.collect::<Vec<_>>().join("\n\n")
    };
    let (summary, content) = (said("summary"), said("content"));
    let sealed = string(item, "encrypted_content");
    let is_summary = content.is_empty() && !summary.is_empty();
    let text = if content.is_empty() { summary } else { content };
    let seal = (!sealed.is_empty()).then(|| Seal::new(Maker::OpenAi, sealed));
    (!text.is_empty() || seal.is_some()).then_some(Thought {
        is_redacted: text.is_empty(),
        is_summary,
        text,
        seal,
    })
}

pub(super) fn read_call(item: &mut Value) -> Call {
    let is_custom = item.get("type").is_some_and(|kind| kind == "custom_tool_call");
    let mut arguments = string(item, if is_custom { "input" } else { "arguments" });
    if arguments.is_empty() && !is_custom {
        "{}".clone_into(&mut arguments);
    }
    let id = string(item, "call_id");
    Call {
        id: if id.is_empty() { string(item, "id") } else { id },
        name: string(item, "name"),
        arguments,
        is_custom,
        ..Call::default()
    }
}
