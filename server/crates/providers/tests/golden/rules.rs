//! How each dialect builds its answers, as its own clients take for granted.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use switchyard_providers::Surface;

/// An event as it was sent.
pub(crate) struct Sent {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

/// A stream read in the plainest way. Comments are none.
pub(crate) fn events(stream: &[u8]) -> Vec<Sent> {
    let text = String::from_utf8_lossy(stream)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    text.split("\n\n")
        .filter_map(|frame| {
            let said = |field: &str| -> Vec<String> {
                let values = frame.lines().filter_map(|line| line.strip_prefix(field));
                values
                    .map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
                    .collect()
            };
            let data = said("data:");
            (!data.is_empty()).then(|| Sent {
                name: said("event:").into_iter().next(),
                data: data.join("\n"),
            })
        })
        .collect()
}

/// Collects what is wrong.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn unless(&mut self, holds: bool, what: impl Into<String>) {
        if !holds {
            self.0.push(what.into());
        }
    }
}

/// What is wrong with a whole answer.
pub(crate) fn whole(surface: Surface, body: &[u8]) -> Vec<String> {
    let mut faults = Faults::default();
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return vec!["the answer is no JSON".to_owned()];
    };
    match surface {
        Surface::Chat | Surface::Completions => whole_openai(surface, &body, &mut faults),
        Surface::Embeddings => {
            faults.unless(body["object"] == "list", "object is list");
            for (n, item) in list(&body["data"]).iter().enumerate() {
                faults.unless(
                    item["index"] == n && item["object"] == "embedding",
                    format!("data[{n}] is numbered"),
                );
            }
            faults.unless(body["model"] == "m", "model is the one that was asked for");
        }
        Surface::Responses => whole_response(&body, &mut faults),
        Surface::Messages => whole_message(&body, &mut faults),
        Surface::Generate => {
            for (n, candidate) in list(&body["candidates"]).iter().enumerate() {
                faults.unless(
                    candidate["finishReason"].is_string(),
                    format!("candidates[{n}] has a finishReason"),
                );
            }
            faults.unless(
                !list(&body["candidates"]).is_empty() || body["promptFeedback"].is_object(),
                "there are candidates",
            );
        }
        Surface::CountTokens => faults.unless(body["input_tokens"].is_u64(), "input_tokens is a number"),
        Surface::GeminiCountTokens => faults.unless(body["totalTokens"].is_u64(), "totalTokens is a number"),
    }
    faults.0
}

/// What is wrong with the stream of a whole answer.
pub(crate) fn stream(surface: Surface, stream: &[u8]) -> Vec<String> {
    let mut faults = Faults::default();
    let events = events(stream);
    match surface {
        Surface::Chat | Surface::Completions => stream_openai(surface, &events, &mut faults),
        Surface::Responses => stream_responses(&events, &mut faults),
        Surface::Messages => stream_messages(&events, &mut faults),
        Surface::Generate => stream_gemini(&events, &mut faults),
        Surface::Embeddings | Surface::CountTokens | Surface::GeminiCountTokens => {}
    }
    faults.unless(
        stream.ends_with(b"\n\n") || stream.ends_with(b"\r\n\r\n"),
        "the last event has its blank line",
    );
    faults.0
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn parsed(events: &[Sent], faults: &mut Faults) -> Vec<Value> {
    let mut all = Vec::new();
    for (n, event) in events.iter().enumerate() {
        match serde_json::from_str(&event.data) {
            Ok(data) => all.push(data),
            Err(error) => faults.unless(false, format!("event {n} is no JSON ({error}): {}", event.data)),
        }
    }
    all
}

// === OpenAI's chat and completions ===

fn whole_openai(surface: Surface, body: &Value, faults: &mut Faults) {
    let (object, content) = match surface {
        Surface::Chat => ("chat.completion", "message"),
        _ => ("text_completion", "text"),
    };
    faults.unless(body["object"] == object, format!("object is {object}"));
    faults.unless(body["model"] == "m", "model is the one that was asked for");
    faults.unless(
        body["id"].is_string() && body["created"].is_u64(),
        "id and created are there",
    );
    faults.unless(!list(&body["choices"]).is_empty(), "there are choices");
    for (n, choice) in list(&body["choices"]).iter().enumerate() {
        faults.unless(choice["index"] == n, format!("choices[{n}] is numbered"));
        faults.unless(
            choice["finish_reason"].is_string(),
            format!("choices[{n}] has a finish_reason"),
        );
        faults.unless(!choice[content].is_null(), format!("choices[{n}] has a {content}"));
        let calls = list(&choice["message"]["tool_calls"]);
        for call in calls {
            let is_whole = call["id"].is_string() && call["type"].is_string();
            faults.unless(is_whole, format!("a call has its id and its type: {call}"));
            let arguments = call["function"].get("arguments").map(text);
            let is_json = arguments.is_none_or(|arguments| serde_json::from_str::<Value>(arguments).is_ok());
            faults.unless(is_json, format!("arguments are JSON: {call}"));
        }
        let says_so = choice["finish_reason"] == "tool_calls" || choice["finish_reason"] == "length";
        faults.unless(
            calls.is_empty() || says_so,
            "where tools are called the finish_reason says so",
        );
    }
    whole_usage(body, ["prompt_tokens", "completion_tokens"], faults);
}

fn whole_usage(body: &Value, names: [&str; 2], faults: &mut Faults) {
    if let Some(usage) = body.get("usage").filter(|usage| !usage.is_null()) {
        for name in names {
            faults.unless(usage[name].is_u64(), format!("usage.{name} is a number: {usage}"));
        }
    }
}

fn stream_openai(surface: Surface, events: &[Sent], faults: &mut Faults) {
    let object = match surface {
        Surface::Chat => "chat.completion.chunk",
        _ => "text_completion",
    };
    let Some((last, chunks)) = events.split_last() else {
        return faults.unless(false, "there are events");
    };
    faults.unless(last.data == "[DONE]", "[DONE] is last");
    let chunks = parsed(chunks, faults);
    let mut finished: BTreeMap<u64, u32> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut calls: BTreeMap<(u64, u64), String> = BTreeMap::new();
    for (n, chunk) in chunks.iter().enumerate() {
        let is_last = n + 1 == chunks.len();
        faults.unless(
            chunk["object"] == object,
            format!("the object of chunk {n} is {object}"),
        );
        faults.unless(
            chunk["id"] == chunks[0]["id"],
            format!("chunk {n} has the id of the first"),
        );
        faults.unless(
            chunk["model"] == "m",
            format!("chunk {n} has the model that was asked for"),
        );
        let choices = chunk["choices"].as_array();
        faults.unless(choices.is_some(), format!("chunk {n} has choices"));
        faults.unless(
            chunk["usage"].is_null() || is_last,
            format!("chunk {n} has usage, and is not the last one"),
        );
        faults.unless(
            list(&chunk["choices"]).is_empty() == is_last || chunk.get("prompt_filter_results").is_some(),
            format!("the last chunk, and it alone, has no choices: chunk {n}"),
        );
        if is_last {
            faults.unless(chunk["usage"]["prompt_tokens"].is_u64(), "the last chunk has usage");
            whole_usage(chunk, ["prompt_tokens", "completion_tokens"], faults);
        }
        for choice in list(&chunk["choices"]) {
            let Some(index) = choice["index"].as_u64() else {
                faults.unless(false, format!("a choice of chunk {n} has no index"));
                continue;
            };
            if surface == Surface::Chat && seen.insert(index) {
                faults.unless(
                    choice["delta"]["role"] == "assistant",
                    format!("choice {index} begins with a role"),
                );
            }
            faults.unless(
                !finished.contains_key(&index),
                format!("choice {index} goes on in chunk {n} after its end"),
            );
            if choice["finish_reason"].is_string() {
                *finished.entry(index).or_default() += 1;
            }
            for call in list(&choice["delta"]["tool_calls"]) {
                call_delta(index, call, &mut calls, faults);
            }
            seen.insert(index);
        }
    }
    for index in &seen {
        faults.unless(
            finished.get(index) == Some(&1),
            format!("choice {index} has its finish_reason once: {finished:?}"),
        );
    }
    let contiguous = seen.iter().copied().eq(0..seen.len() as u64);
    faults.unless(contiguous, format!("choices are numbered 0..: {seen:?}"));
    for ((choice, index), arguments) in &calls {
        let is_json = arguments.is_empty() || serde_json::from_str::<Value>(arguments).is_ok();
        faults.unless(
            is_json,
            format!("the arguments of call {index} of choice {choice} are JSON: {arguments}"),
        );
        let is_gap = *index > 0 && !calls.contains_key(&(*choice, index - 1));
        faults.unless(!is_gap, format!("calls are numbered 0..: {:?}", calls.keys()));
    }
}

fn call_delta(choice: u64, call: &Value, calls: &mut BTreeMap<(u64, u64), String>, faults: &mut Faults) {
    let Some(index) = call["index"].as_u64() else {
        return faults.unless(false, format!("a delta of a call has no index: {call}"));
    };
    let is_new = !calls.contains_key(&(choice, index));
    if is_new {
        let is_whole = !text(&call["id"]).is_empty() && call["type"].is_string();
        faults.unless(is_whole, format!("a call begins with its id and its type: {call}"));
        let name = call["function"].get("name").or_else(|| call["custom"].get("name"));
        faults.unless(
            name.is_some_and(Value::is_string),
            format!("a call begins with its name: {call}"),
        );
    }
    let arguments = calls.entry((choice, index)).or_default();
    arguments.push_str(text(&call["function"]["arguments"]));
}

// === Anthropic's Messages ===

fn whole_message(body: &Value, faults: &mut Faults) {
    faults.unless(
        body["type"] == "message" && body["role"] == "assistant",
        "it is a message of the assistant",
    );
    faults.unless(body["model"] == "m", "model is the one that was asked for");
    faults.unless(body["id"].is_string(), "id is there");
    faults.unless(body["stop_reason"].is_string(), "stop_reason is there");
    faults.unless(body["content"].is_array(), "content is a list");
    faults.unless(body["usage"]["input_tokens"].is_u64(), "usage.input_tokens is a number");
    faults.unless(
        body["usage"]["output_tokens"].is_u64(),
        "usage.output_tokens is a number",
    );
    for block in list(&body["content"]) {
        match text(&block["type"]) {
            "text" => faults.unless(block["text"].is_string(), "a text has a text"),
            "tool_use" => faults.unless(
                block["id"].is_string() && block["name"].is_string() && block["input"].is_object(),
                format!("a call is whole: {block}"),
            ),
            "thinking" => faults.unless(
                block["thinking"].is_string() && block["signature"].is_string(),
                format!("a thought has its text and its signature: {block}"),
            ),
            _ => {}
        }
    }
}

fn stream_messages(events: &[Sent], faults: &mut Faults) {
    let data = parsed(events, faults);
    for (event, data) in events.iter().zip(&data) {
        faults.unless(
            event.name.as_deref() == data["type"].as_str(),
            format!(
                "an event is called what its type says: {:?} {}",
                event.name, data["type"]
            ),
        );
    }
    let data: Vec<&Value> = data.iter().filter(|data| data["type"] != "ping").collect();
    let kinds: Vec<&str> = data.iter().map(|data| text(&data["type"])).collect();
    let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
    faults.unless(
        kinds.first() == Some(&"message_start") && count("message_start") == 1,
        "message_start is first",
    );
    faults.unless(
        kinds.last() == Some(&"message_stop") && count("message_stop") == 1,
        "message_stop is last",
    );
    faults.unless(
        count("message_delta") == 1 && kinds.iter().rev().nth(1) == Some(&"message_delta"),
        "one message_delta is last but one",
    );
    let (mut open, mut next) = (None, 0);
    for event in data {
        let index = event["index"].as_u64();
        match text(&event["type"]) {
            "message_start" => {
                let usage = &event["message"]["usage"];
                faults.unless(
                    usage["input_tokens"].is_u64() && usage["output_tokens"].is_u64(),
                    "message_start has usage",
                );
                faults.unless(
                    event["message"]["model"] == "m",
                    "message_start has the model that was asked for",
                );
                faults.unless(
                    event["message"]["content"] == serde_json::json!([]),
                    "message_start has no content yet",
                );
            }
            "content_block_start" => {
                faults.unless(open.is_none(), format!("block {index:?} begins inside of {open:?}"));
                faults.unless(index == Some(next), format!("block {index:?} should be {next}"));
                faults.unless(event["content_block"]["type"].is_string(), "a block has a type");
                open = index.map(|index| (index, text(&event["content_block"]["type"]).to_owned()));
                next += 1;
            }
            "content_block_delta" => {
                let inside = open.as_ref().map(|(open, _)| *open);
                faults.unless(
                    inside.is_some() && inside == index,
                    format!("a delta of {index:?} inside of {open:?}"),
                );
                let kind = open.as_ref().map_or("", |(_, kind)| kind.as_str());
                let fits = match text(&event["delta"]["type"]) {
                    "text_delta" | "citations_delta" => kind == "text",
                    "thinking_delta" | "signature_delta" => kind == "thinking",
                    "input_json_delta" => kind.ends_with("tool_use"),
                    _ => true,
                };
                faults.unless(fits, format!("{} inside of a block of {kind}", event["delta"]["type"]));
            }
            "content_block_stop" => {
                let inside = open.take().map(|(open, _)| open);
                faults.unless(
                    inside.is_some() && inside == index,
                    format!("block {index:?} ends inside of {inside:?}"),
                );
            }
            "message_delta" => {
                faults.unless(open.is_none(), "all blocks have ended before message_delta");
                faults.unless(
                    event["delta"]["stop_reason"].is_string(),
                    "message_delta has a stop_reason",
                );
                faults.unless(event["usage"]["output_tokens"].is_u64(), "message_delta has usage");
            }
            "message_stop" => {}
            other => faults.unless(false, format!("there is no event {other}")),
        }
    }
}

// === OpenAI's Responses ===

fn whole_response(body: &Value, faults: &mut Faults) {
    faults.unless(
        body["object"] == "response" && body["id"].is_string(),
        "it is a response with an id",
    );
    faults.unless(body["model"] == "m", "model is the one that was asked for");
    faults.unless(body["created_at"].is_number(), "created_at is a number");
    let status = text(&body["status"]);
    faults.unless(
        matches!(status, "completed" | "incomplete"),
        "status is completed or incomplete",
    );
    faults.unless(
        (status == "incomplete") == body["incomplete_details"].is_object(),
        "incomplete_details are there if it is incomplete",
    );
    faults.unless(body["output"].is_array(), "output is a list");
    for item in list(&body["output"]) {
        output_item(item, faults);
    }
    whole_usage(body, ["input_tokens", "output_tokens"], faults);
}

fn output_item(item: &Value, faults: &mut Faults) {
    faults.unless(item["id"].is_string(), format!("an item has an id: {item}"));
    match text(&item["type"]) {
        "message" => {
            faults.unless(
                item["role"] == "assistant" && item["content"].is_array(),
                format!("a message: {item}"),
            );
            for part in list(&item["content"]) {
                let is_text =
                    part["type"] != "output_text" || (part["text"].is_string() && part["annotations"].is_array());
                faults.unless(is_text, format!("a text has its annotations: {part}"));
            }
        }
        "function_call" => faults.unless(
            item["call_id"].is_string() && item["name"].is_string() && item["arguments"].is_string(),
            format!("a call is whole: {item}"),
        ),
        "reasoning" => faults.unless(item["summary"].is_array(), format!("reasoning has a summary: {item}")),
        other => faults.unless(!other.is_empty(), format!("an item has a type: {item}")),
    }
}

fn stream_responses(events: &[Sent], faults: &mut Faults) {
    let data = parsed(events, faults);
    let kinds: Vec<&str> = data.iter().map(|data| text(&data["type"])).collect();
    faults.unless(kinds.first() == Some(&"response.created"), "response.created is first");
    let end = kinds.last().copied().unwrap_or_default();
    faults.unless(
        matches!(end, "response.completed" | "response.incomplete"),
        format!("response.completed is last, not {end}"),
    );
    let mut open: BTreeMap<u64, Value> = BTreeMap::new();
    let mut parts: BTreeMap<(u64, String, u64), String> = BTreeMap::new();
    let (mut added, mut done) = (0, Vec::new());
    for (n, (event, data)) in events.iter().zip(&data).enumerate() {
        let kind = text(&data["type"]);
        faults.unless(
            data["sequence_number"] == n,
            format!("sequence_number of event {n} is {}", data["sequence_number"]),
        );
        faults.unless(
            event.name.as_deref() == Some(kind),
            format!("event {n} is called what its type says"),
        );
        let place = data["output_index"].as_u64();
        match kind {
            "response.output_item.added" => {
                faults.unless(
                    place == Some(added),
                    format!("output_index of event {n} is not {added}"),
                );
                open.insert(added, data["item"].clone());
                added += 1;
            }
            "response.output_item.done" => {
                let item = place.and_then(|place| open.remove(&place));
                faults.unless(
                    item.is_some_and(|item| item["id"] == data["item"]["id"] && item["type"] == data["item"]["type"]),
                    format!("event {n} ends an item that had begun"),
                );
                output_item(&data["item"], faults);
                done.push((place, data["item"].clone()));
            }
            "response.created" | "response.in_progress" | "response.completed" | "response.incomplete" => {
                faults.unless(
                    data["response"]["model"] == "m",
                    format!("{kind} has the model that was asked for"),
                );
            }
            _ => {
                if let Some(place) = place {
                    let item = open.get(&place);
                    faults.unless(item.is_some(), format!("event {n} ({kind}) is outside of its item"));
                    let is_its = item.is_none_or(|item| item["id"] == data["item_id"]);
                    faults.unless(is_its, format!("item_id of event {n} is that of item {place}"));
                }
                response_part(n, kind, data, &mut parts, faults);
            }
        }
    }
    faults.unless(open.is_empty(), format!("items without an end: {:?}", open.keys()));
    faults.unless(parts.is_empty(), format!("parts without an end: {:?}", parts.keys()));
    done.sort_by_key(|(place, _)| *place);
    let done: Vec<Value> = done.into_iter().map(|(_, item)| item).collect();
    let said = data
        .last()
        .map(|last| list(&last["response"]["output"]))
        .unwrap_or_default();
    faults.unless(said == done, "the output at the end is what was done");
    if let Some(last) = data.last() {
        whole_response(&last["response"], faults);
    }
}

/// Deltas add up to what the part's end says.
fn response_part(
    n: usize,
    kind: &str,
    data: &Value,
    parts: &mut BTreeMap<(u64, String, u64), String>,
    faults: &mut Faults,
) {
    let Some((what, step)) = kind.rsplit_once('.') else {
        return;
    };
    let number = ["content_index", "summary_index"]
        .iter()
        .find_map(|name| data[*name].as_u64());
    let part = |what: &str| {
        (
            data["output_index"].as_u64().unwrap_or_default(),
            what.to_owned(),
            number.unwrap_or_default(),
        )
    };
    match (what, step) {
        ("response.content_part" | "response.reasoning_summary_part", "added") => {
            let is_new = parts.insert(part(what), String::new()).is_none();
            faults.unless(is_new, format!("event {n} begins a part again"));
        }
        ("response.content_part" | "response.reasoning_summary_part", "done") => {
            faults.unless(
                parts.remove(&part(what)).is_some(),
                format!("event {n} ends a part that had begun"),
            );
        }
        ("response.output_text.annotation", "added") => {}
        (_, "delta") => parts.entry(part(what)).or_default().push_str(text(&data["delta"])),
        (_, "done") => {
            let so_far = parts.remove(&part(what)).unwrap_or_default();
            let said = ["text", "arguments", "refusal", "input"]
                .iter()
                .find_map(|name| data[*name].as_str());
            faults.unless(
                said.is_none_or(|said| said == so_far),
                format!("event {n} ({kind}) says what its deltas said: {said:?} {so_far:?}"),
            );
        }
        _ => {}
    }
}

// === Gemini ===

fn stream_gemini(events: &[Sent], faults: &mut Faults) {
    let data = parsed(events, faults);
    faults.unless(!data.is_empty(), "there are events");
    let mut finished = BTreeSet::new();
    for (n, chunk) in data.iter().enumerate() {
        for candidate in list(&chunk["candidates"]) {
            let index = candidate["index"].as_u64().unwrap_or_default();
            let says = !list(&candidate["content"]["parts"]).is_empty();
            faults.unless(
                !says || !finished.contains(&index),
                format!("candidate {index} goes on in event {n} after its end"),
            );
            if candidate["finishReason"].is_string() {
                finished.insert(index);
            }
            for part in list(&candidate["content"]["parts"]) {
                let is_call = part
                    .get("functionCall")
                    .is_none_or(|call| call["name"].is_string() && call["args"].is_object());
                faults.unless(is_call, format!("a call is whole: {part}"));
            }
        }
    }
    let last = data.last().unwrap_or(&Value::Null);
    let ends = list(&last["candidates"])
        .iter()
        .any(|candidate| candidate["finishReason"].is_string());
    let blocked = last["promptFeedback"]["blockReason"].is_string();
    faults.unless(ends || blocked, format!("the last event has a finishReason: {last}"));
    faults.unless(last["usageMetadata"].is_object(), "the last event has usageMetadata");
}
