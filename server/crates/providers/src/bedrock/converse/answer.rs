//! Whole answers, and what streams have in common with them.

use crate::bedrock::common::Tools;
use crate::bedrock::errors::Exception;
use crate::failure::{Said, bad_answer};
use crate::ir::{Answer, Call, Choice, Citation, Finish, Image, Maker, Part, Seal, Source, Stranger, Thought};
use crate::{Origin, ids};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplyView<'a> {
    #[serde(borrow, default)]
    output: Option<OutputView<'a>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<UsageView>,
    #[serde(default)]
    additional_model_response_fields: Option<Value>,
    #[serde(default)]
    service_tier: Option<TierView>,
}

#[derive(Deserialize)]
struct OutputView<'a> {
    #[serde(borrow, default)]
    message: Option<MessageView<'a>>,
}

#[derive(Deserialize)]
struct MessageView<'a> {
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct TierView {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockView<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(borrow, default)]
    tool_use: Option<CallView<'a>>,
    #[serde(default)]
    reasoning_content: Option<ReasoningView>,
    #[serde(default)]
    citations_content: Option<CitedView>,
    #[serde(default)]
    image: Option<ImageView>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallView<'a> {
    #[serde(default)]
    tool_use_id: String,
    name: String,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningView {
    #[serde(default)]
    reasoning_text: Option<ReasoningTextView>,
    #[serde(default)]
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
struct ReasoningTextView {
    #[serde(default)]
    text: String,
    #[serde(default)]
    signature: Option<String>,
}

#[derive(Deserialize)]
struct CitedView {
    #[serde(default)]
    content: Vec<TextView>,
    #[serde(default)]
    citations: Vec<CitationView>,
}

#[derive(Deserialize)]
struct TextView {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CitationView {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    source_content: Vec<TextView>,
    /// By what it is counted, and where: `{"documentChar":{"documentIndex":0,"start":1,"end":9}}`.
    #[serde(default)]
    location: Option<Value>,
}

impl CitationView {
    pub(super) fn into_citation(self) -> Citation {
        let quoted: String = self.source_content.into_iter().filter_map(|piece| piece.text).collect();
        let location = self
            .location
            .as_ref()
            .and_then(Value::as_object)
            .and_then(|ways| ways.values().next());
        let url = location.and_then(|location| location.get("url")?.as_str());
        Citation {
            url: url.map(str::to_owned),
            title: self.title,
            quoted: (!quoted.is_empty()).then_some(quoted),
            document: location.and_then(|location| location.get("documentIndex")?.as_u64()),
            ..Citation::default()
        }
    }
}

#[derive(Deserialize)]
struct ImageView {
    #[serde(default)]
    format: String,
    #[serde(default)]
    source: Option<BytesView>,
}

#[derive(Deserialize)]
struct BytesView {
    #[serde(default)]
    bytes: Option<String>,
}

/// The input is told without what the cache had and what was written to it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageView {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default, alias = "cacheReadInputTokensCount")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, alias = "cacheWriteInputTokensCount")]
    cache_write_input_tokens: Option<u64>,
}

impl UsageView {
    pub(super) fn usage(&self) -> Usage {
        let (cached, cache_write) = (self.cache_read_input_tokens, self.cache_write_input_tokens);
        let beside = cached
            .unwrap_or_default()
            .saturating_add(cache_write.unwrap_or_default());
        let prompt = self.input_tokens.map(|tokens| tokens.saturating_add(beside));
        let completion = self.output_tokens;
        Usage {
            prompt,
            completion,
            total: prompt.zip(completion).map(|(a, b)| a.saturating_add(b)),
            cached,
            cache_write,
            ..Usage::default()
        }
    }
}

/// Why an answer ended. `additional` holds what a model itself says of it.
pub(super) fn finish(reason: Option<&str>, additional: Option<&Value>) -> Finish {
    match reason {
        None | Some("end_turn") => Finish::Stop,
        Some("tool_use") => Finish::ToolCalls,
        Some("max_tokens") => Finish::Length,
        Some("stop_sequence") => {
            let which = additional.and_then(|fields| fields.get("stop_sequence")?.as_str());
            Finish::StopSequence(which.map(str::to_owned))
        }
        Some("guardrail_intervened" | "content_filtered") => Finish::ContentFilter,
        Some("model_context_window_exceeded") => Finish::ContextWindow,
        Some("refusal") => Finish::Refusal,
        Some("pause_turn") => Finish::Pause,
        Some(other) => Finish::Other(other.to_owned()),
    }
}

/// The field of a block that has no place elsewhere.
pub(super) fn block_field(index: u64) -> String {
    format!("output.message.content[{index}]")
}

/// The id of the next call: the upstream's, or one that is made.
pub(super) fn call_id(given: String, origin: &Origin, calls: &mut usize) -> String {
    let made = ids::made(origin, *calls);
    *calls += 1;
    if given.is_empty() { made } else { given }
}

pub(super) fn read(body: &[u8], tools: &Tools, origin: &Origin) -> Result<Answer, Error> {
    let view: ReplyView<'_> = match serde_json::from_slice(body) {
        Ok(view) => view,
        Err(error) => {
            return Err(bad_answer(format!(
                "the upstream's answer is not what Converse answers: {error}"
            )));
        }
    };
    let Some(message) = view.output.and_then(|output| output.message) else {
        let exception = Exception::read(body);
        return Err(if exception.is_one() {
            exception.into_error(Some(200))
        } else if let Some(said) = Said::of_stray(body) {
            said.into_error(Some(200))
        } else {
            bad_answer("the upstream's answer has no `output.message`")
        });
    };
    let (mut parts, mut calls) = (Vec::new(), 0);
    for (index, block) in (0..).zip(message.content) {
        parts.extend(read_block(block, index, tools, &mut |id| {
            call_id(id, origin, &mut calls)
        })?);
    }
    let choice = Choice {
        parts,
        finish: finish(
            view.stop_reason.as_deref(),
            view.additional_model_response_fields.as_ref(),
        ),
        logprobs: None,
    };
    Ok(Answer {
        choices: vec![choice],
        usage: view.usage.as_ref().map(UsageView::usage).unwrap_or_default(),
        service_tier: view.service_tier.map(|tier| tier.kind),
        ..Answer::default()
    })
}

fn read_block(
    raw: &RawValue,
    index: u64,
    tools: &Tools,
    id: &mut dyn FnMut(String) -> String,
) -> Result<Option<Part>, Error> {
    let block: BlockView<'_> = serde_json::from_str(raw.get())
        .map_err(|error| bad_answer(format!("the upstream's answer has an odd piece of content: {error}")))?;
    Ok(Some(if let Some(text) = block.text {
        if text.is_empty() {
            return Ok(None);
        }
        Part::text(text)
    } else if let Some(call) = block.tool_use {
        Part::Call(Call {
            id: id(call.tool_use_id),
            name: tools.name(call.name),
            arguments: call.input.map_or("{}", RawValue::get).to_owned(),
            ..Call::default()
        })
    } else if let Some(reasoning) = block.reasoning_content {
        return Ok(read_thought(reasoning));
    } else if let Some(cited) = block.citations_content {
        Part::Text {
            text: cited.content.into_iter().filter_map(|piece| piece.text).collect(),
            citations: cited.citations.into_iter().map(CitationView::into_citation).collect(),
            cache: None,
        }
    } else if let Some((format, base64)) = block.image.and_then(|image| Some((image.format, image.source?.bytes?))) {
        let media_type = format!("image/{format}");
        Part::Image(Image {
            source: Source::Data { media_type, base64 },
            detail: None,
            cache: None,
        })
    } else {
        Part::Stranger(Stranger {
            field: block_field(index),
            value: serde_json::from_str(raw.get()).unwrap_or_default(),
        })
    }))
}

fn read_thought(reasoning: ReasoningView) -> Option<Part> {
    let seal = |data: String| (!data.is_empty()).then(|| Seal::new(Maker::Anthropic, data));
    let thought = if let Some(said) = reasoning.reasoning_text {
        Thought {
            text: said.text,
            seal: said.signature.and_then(seal),
            ..Thought::default()
        }
    } else {
        Thought {
            seal: Some(seal(reasoning.redacted_content?)?),
            is_redacted: true,
            ..Thought::default()
        }
    };
    Some(Part::Thought(thought))
}
