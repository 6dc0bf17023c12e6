//! Whole answers, in and out.

use super::fields::Fields;
use super::messages::Counted;
use super::read::{citation, seal_of_call};
use super::usage::{Counts, Written};
use super::{UNSIGNED, event};
use crate::failure::{Said, bad_answer};
use crate::ids::fitting;
use crate::ir::{Answer, Call as ToolCall, Choice, Citation, Finish, Maker, Part, Seal, Stranger, Thought};
use crate::notes::{Notes, item};
use crate::{Call, Origin, ids};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use switchyard_core::error::Error;

/// Longest id of a call.
pub(super) const LONGEST_ID: usize = 64;

// === in ===

#[derive(Deserialize)]
struct View<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_sequence: Option<String>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Tier {
    #[serde(default)]
    service_tier: Option<String>,
}

pub(super) fn read(body: &[u8], origin: &Origin) -> Result<Answer, Error> {
    if let Some(said) = Said::of_stray(body) {
        return Err(said.into_error(Some(200)));
    }
    let view: View<'_> = serde_json::from_slice(body)
        .map_err(|error| bad_answer(format!("the upstream's answer is not a valid message: {error}")))?;
    let content = view
        .content
        .ok_or_else(|| bad_answer("the upstream's answer has no `content`"))?;
    let (mut parts, mut calls) = (Vec::with_capacity(content.len()), 0);
    for (index, raw) in content.into_iter().enumerate() {
        parts.extend(read_part(raw, index, origin, &mut calls)?);
    }
    let tier: Tier = event::inside(view.usage);
    let has_call = parts.iter().any(|part| matches!(part, Part::Call(_)));
    let finish = view.stop_reason.map(|reason| finish(reason, view.stop_sequence));
    Ok(Answer {
        id: view.id,
        model: view.model,
        created: Some(origin.at).filter(|at| *at != 0),
        choices: vec![Choice {
            parts,
            finish: finish.unwrap_or(if has_call { Finish::ToolCalls } else { Finish::Stop }),
            logprobs: None,
        }],
        usage: Counts::read(view.usage).map(Counts::usage).unwrap_or_default(),
        service_tier: tier.service_tier.map(|tier| match tier.as_str() {
            "standard" => "default".to_owned(),
            _ => tier,
        }),
    })
}

fn read_part(raw: &RawValue, index: usize, origin: &Origin, calls: &mut usize) -> Result<Option<Part>, Error> {
    let path = item("content", index);
    let odd = |error: Error| bad_answer(format!("the upstream's answer is not a valid message: {error}"));
    let mut block = Fields::of(raw, path).map_err(odd)?;
    let kind = block.need_text("type").map_err(odd)?;
    let part = match kind.as_str() {
        "text" => {
            let text = block.need_text("text").map_err(odd)?;
            let citations: Option<Vec<Value>> = block.take("citations", "must be a list").map_err(odd)?;
            let citations = citations.unwrap_or_default();
            if text.is_empty() && citations.is_empty() {
                return Ok(None);
            }
            Part::Text {
                text,
                citations: citations.into_iter().map(citation).collect(),
                cache: None,
            }
        }
        "thinking" => {
            let signature = block.text("signature").map_err(odd)?;
            Part::Thought(Thought {
                text: block.text("thinking").map_err(odd)?.unwrap_or_default(),
                is_summary: false,
                seal: signature.filter(|signature| !signature.is_empty()).map(own_seal),
                is_redacted: false,
            })
        }
        "redacted_thinking" => Part::Thought(Thought {
            seal: block.text("data").map_err(odd)?.map(own_seal),
            is_redacted: true,
            ..Thought::default()
        }),
        "tool_use" => {
            let id = block.text("id").map_err(odd)?.filter(|id| !id.is_empty());
            let id = id.unwrap_or_else(|| ids::made(origin, *calls));
            *calls += 1;
            Part::Call(ToolCall {
                id,
                name: block.need_text("name").map_err(odd)?,
                arguments: block.raw("input").map_or("{}", RawValue::get).to_owned(),
                ..ToolCall::default()
            })
        }
        _ => Part::Stranger(Stranger {
            field: block.path().to_owned(),
            value: serde_json::from_str(raw.get()).unwrap_or_default(),
        }),
    };
    Ok(Some(part))
}

pub(super) fn own_seal(data: String) -> Seal {
    Seal::new(Maker::Anthropic, data)
}

pub(super) fn finish(reason: String, sequence: Option<String>) -> Finish {
    match reason.as_str() {
        "end_turn" => Finish::Stop,
        "stop_sequence" => Finish::StopSequence(sequence),
        "max_tokens" => Finish::Length,
        "model_context_window_exceeded" => Finish::ContextWindow,
        "tool_use" => Finish::ToolCalls,
        "refusal" => Finish::Refusal,
        "pause_turn" => Finish::Pause,
        _ => Finish::Other(reason),
    }
}

pub(super) fn read_count(body: &[u8]) -> Result<u64, Error> {
    if let Some(said) = Said::of_stray(body) {
        return Err(said.into_error(Some(200)));
    }
    let counted: Counted = serde_json::from_slice(body)
        .map_err(|error| bad_answer(format!("the upstream's answer is not a count of tokens: {error}")))?;
    Ok(counted.input_tokens)
}

// === out ===

/// A block of an answer, or of a turn of the assistant's that is sent back.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        citations: Vec<Value>,
    },
    Thinking {
        thinking: Cow<'a, str>,
        signature: Cow<'a, str>,
    },
    RedactedThinking {
        data: Cow<'a, str>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Box<RawValue>,
    },
}

#[derive(Serialize)]
struct Message<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: &'static str,
    stop_sequence: Option<&'a str>,
    usage: Written,
}

pub(super) fn write(answer: &Answer, call: &Call, notes: &mut Notes) -> Vec<u8> {
    if answer.choices.len() > 1 {
        notes.dropped("choices", "an answer has one choice only here");
    }
    let choice = answer.choices.first();
    let mut content = Vec::new();
    for part in choice.iter().flat_map(|choice| &choice.parts) {
        write_part(part, &mut content, notes);
    }
    let has_call = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    let has_refusal = choice.is_some_and(|choice| choice.parts.iter().any(|part| matches!(part, Part::Refusal(_))));
    if choice.is_some_and(|choice| choice.logprobs.is_some()) {
        notes.dropped("logprobs", "there is no place for them here");
    }
    let stop = choice.map(|choice| &choice.finish).unwrap_or(&Finish::Stop);
    let message = Message {
        id: message_id(answer.id.as_deref(), &call.origin),
        kind: "message",
        role: "assistant",
        model: answer.model.as_deref().unwrap_or(&call.model),
        content,
        stop_reason: stop_reason(stop, has_call, has_refusal, notes),
        stop_sequence: stop_sequence(stop),
        usage: Written::of(&answer.usage, answer.service_tier.as_deref()),
    };
    serde_json::to_vec(&message).unwrap_or_default()
}

/// The vendor's own id, or one that looks like one: another vendor's says nothing to anybody here.
pub(super) fn message_id(id: Option<&str>, origin: &Origin) -> String {
    let own = id.filter(|id| id.starts_with("msg_"));
    own.map_or_else(
        || {
            let made: String = origin.id.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
            format!("msg_{made}")
        },
        str::to_owned,
    )
}

pub(super) const STRANGER: &str = "there is no such thing in answers here";

fn write_part<'a>(part: &'a Part, content: &mut Vec<Block<'a>>, notes: &mut Notes) {
    match part {
        Part::Text { text, citations, .. } => {
            let citations: Vec<Value> = citations
                .iter()
                .filter_map(|citation| write_citation(citation, notes))
                .collect();
            if !text.is_empty() || !citations.is_empty() {
                let text = text.as_str().into();
                content.push(Block::Text { text, citations });
            }
        }
        Part::Refusal(text) if text.is_empty() => {}
        Part::Refusal(text) => content.push(Block::Text {
            text: text.as_str().into(),
            citations: Vec::new(),
        }),
        Part::Thought(thought) => content.extend(write_thought(thought)),
        Part::Call(call) => {
            let id = fitting(&call.id, LONGEST_ID);
            if let Some(seal) = &call.seal {
                content.push(Block::Thinking {
                    thinking: "".into(),
                    signature: seal_of_call(&id, seal).into(),
                });
            }
            content.push(Block::ToolUse {
                id,
                name: call.name.as_str().into(),
                input: input(&call.arguments, call.is_custom, "content", notes),
            });
        }
        Part::Audio(audio) => {
            notes.dropped("audio", "there is no audio in answers here");
            if let Some(text) = &audio.transcript {
                let text = text.as_str().into();
                let citations = Vec::new();
                content.push(Block::Text { text, citations });
            }
        }
        Part::Image(_) => notes.dropped("images", "there are no images in answers here"),
        Part::Document(_) => notes.dropped("documents", "there are no documents in answers here"),
        Part::Result(_) => notes.dropped("results", "there are no results of the vendor's own tools here"),
        Part::Stranger(stranger) => notes.dropped(stranger.field.clone(), STRANGER),
    }
}

pub(super) fn write_thought(thought: &Thought) -> Option<Block<'_>> {
    let seal = thought.seal.as_ref().map(|seal| seal.write(Maker::Anthropic));
    if thought.is_redacted {
        return seal.map(|seal| Block::RedactedThinking { data: seal.into() });
    }
    if thought.text.is_empty() && seal.is_none() {
        return None;
    }
    Some(Block::Thinking {
        thinking: thought.text.as_str().into(),
        signature: seal.map_or(UNSIGNED.into(), Cow::Owned),
    })
}

/// Kinds of citations that the dialect has.
const CITATIONS: [&str; 5] = [
    "char_location",
    "page_location",
    "content_block_location",
    "web_search_result_location",
    "search_result_location",
];

/// As the vendor wrote it, or what comes near it.
pub(super) fn write_citation(citation: &Citation, notes: &mut Notes) -> Option<Value> {
    if let Some(raw) = &citation.raw
        && let Some(kind) = raw.get("type").and_then(Value::as_str)
        && CITATIONS.contains(&kind)
    {
        return Some(raw.clone());
    }
    let Some(url) = &citation.url else {
        notes.dropped("citations", "one of a place in a document that the dialect cannot name");
        return None;
    };
    notes.approximated(
        "citations",
        "web_search_result_location, without where in the answer it stands",
    );
    Some(json!({
        "type": "web_search_result_location",
        "url": url,
        "title": citation.title,
        "cited_text": citation.quoted.as_deref().unwrap_or_default(),
        "encrypted_index": "",
    }))
}

/// What a tool is called with. It is an object here, whatever it was.
pub(super) fn input(
    arguments: &str,
    is_custom: bool,
    field: impl Into<Cow<'static, str>>,
    notes: &mut Notes,
) -> Box<RawValue> {
    let wrapped = |value: Value| {
        let object = json!({ "input": value });
        serde_json::value::to_raw_value(&object).unwrap_or_default()
    };
    if is_custom {
        return wrapped(Value::String(arguments.to_owned()));
    }
    let written = arguments.trim();
    if written.is_empty() {
        return wrapped_nothing();
    }
    match serde_json::from_str::<Box<RawValue>>(written) {
        Ok(raw) if written.starts_with('{') => raw,
        Ok(raw) => {
            notes.approximated(
                field,
                "the input of a call that is no object stands in an object, as `input`",
            );
            wrapped(serde_json::from_str(raw.get()).unwrap_or_default())
        }
        Err(_) => {
            notes.approximated(
                field,
                "the input of a call that is no JSON stands in an object, as `input`",
            );
            wrapped(Value::String(arguments.to_owned()))
        }
    }
}

fn wrapped_nothing() -> Box<RawValue> {
    serde_json::value::to_raw_value(&serde_json::Map::new()).unwrap_or_default()
}

pub(super) fn stop_reason(stop: &Finish, has_call: bool, has_refusal: bool, notes: &mut Notes) -> &'static str {
    match stop {
        // Some upstreams have one word for both.
        Finish::Stop if has_call => "tool_use",
        Finish::Stop if has_refusal => "refusal",
        Finish::Stop => "end_turn",
        Finish::StopSequence(_) => "stop_sequence",
        Finish::Length => "max_tokens",
        Finish::ContextWindow => "model_context_window_exceeded",
        Finish::ToolCalls => "tool_use",
        Finish::ContentFilter => {
            notes.mapped("stop_reason", "refusal, of the vendor's filter and not of the model");
            "refusal"
        }
        Finish::Refusal => "refusal",
        Finish::Pause => "pause_turn",
        Finish::Other(reason) => {
            notes.approximated("stop_reason", format!("end_turn, the upstream's word is {reason}"));
            "end_turn"
        }
    }
}

pub(super) fn stop_sequence(stop: &Finish) -> Option<&str> {
    match stop {
        Finish::StopSequence(sequence) => sequence.as_deref(),
        _ => None,
    }
}
