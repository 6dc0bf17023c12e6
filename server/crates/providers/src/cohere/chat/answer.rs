//! Whole answers, and what streams have in common with them.

use super::count;
use crate::bedrock::common::Tools;
use crate::cohere::failed;
use crate::failure::bad_answer;
use crate::ir::{Answer, Call, Choice, Citation, Finish, Part, Thought};
use crate::{Origin, ids};
use serde::Deserialize;
use serde_json::{Value, json};
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;

#[derive(Deserialize)]
struct ReplyView {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    finish_reason: Option<String>,
    /// Of a failure it is a text.
    #[serde(default)]
    message: Option<SaidView>,
    #[serde(default)]
    usage: Option<UsageView>,
    #[serde(default)]
    logprobs: Option<Vec<LogprobView>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SaidView {
    Failure(String),
    Message(MessageView),
}

#[derive(Deserialize)]
struct MessageView {
    #[serde(default)]
    content: Option<ContentView>,
    #[serde(default)]
    tool_plan: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallView>>,
    #[serde(default)]
    citations: Option<Vec<CitationView>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ContentView {
    Text(String),
    Pieces(Vec<PieceView>),
}

#[derive(Deserialize)]
struct PieceView {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
}

#[derive(Deserialize)]
struct CallView {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: FunctionView,
}

#[derive(Default, Deserialize)]
struct FunctionView {
    #[serde(default)]
    name: String,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CitationView {
    #[serde(default)]
    start: Option<u64>,
    #[serde(default)]
    end: Option<u64>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    sources: Vec<SourceView>,
    #[serde(default)]
    content_index: Option<u64>,
    /// `TEXT_CONTENT`, `THINKING_CONTENT`, `PLAN`.
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct SourceView {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    document: Option<Value>,
    #[serde(default)]
    tool_output: Option<Value>,
}

impl CitationView {
    /// Whether it is of the answer, and not of what the model thought or planned.
    pub(super) fn is_of_text(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind == "TEXT_CONTENT")
    }

    pub(super) const fn content_index(&self) -> Option<u64> {
        self.content_index
    }

    /// The first source is told of; most have no other.
    pub(super) fn into_citation(self) -> Citation {
        let source = self.sources.into_iter().next();
        let (id, about) = source.map_or((None, None), |source| {
            (source.id, source.document.or(source.tool_output))
        });
        let of = |names: [&str; 3]| {
            let about = about.as_ref()?;
            let found = names.into_iter().find_map(|name| about.get(name)?.as_str());
            found.map(str::to_owned)
        };
        Citation {
            url: of(["url", "link", "uri"]),
            title: of(["title", "name", "id"]).or(id.clone()),
            quoted: of(["snippet", "text", "content"]).or(self.text),
            // Ours were numbered when they were sent.
            document: id.and_then(|id| id.strip_prefix("doc")?.parse().ok()),
            start: self.start,
            end: self.end,
            raw: None,
        }
    }
}

/// What is charged may be less than what was used.
#[derive(Deserialize)]
pub(super) struct UsageView {
    #[serde(default)]
    tokens: Option<CountView>,
    #[serde(default)]
    billed_units: Option<CountView>,
    #[serde(default)]
    cached_tokens: Option<f64>,
}

#[derive(Default, Deserialize)]
struct CountView {
    #[serde(default)]
    input_tokens: Option<f64>,
    #[serde(default)]
    output_tokens: Option<f64>,
}

impl UsageView {
    pub(super) fn usage(self) -> Usage {
        let (tokens, billed) = (self.tokens.unwrap_or_default(), self.billed_units.unwrap_or_default());
        let prompt = count(tokens.input_tokens.or(billed.input_tokens));
        let completion = count(tokens.output_tokens.or(billed.output_tokens));
        Usage {
            prompt,
            completion,
            total: prompt.zip(completion).map(|(a, b)| a.saturating_add(b)),
            cached: count(self.cached_tokens),
            ..Usage::default()
        }
    }
}

/// Of one piece of text, which may be several tokens.
#[derive(Deserialize)]
pub(super) struct LogprobView {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    logprobs: Option<Vec<f64>>,
}

impl LogprobView {
    /// As OpenAI writes it. Where a piece is several tokens, which of its letters are whose is not told: it is one, and as
    /// likely as all of them together.
    pub(super) fn written(&self) -> Option<Value> {
        let logprob: f64 = self
            .logprobs
            .as_ref()
            .filter(|logprobs| !logprobs.is_empty())?
            .iter()
            .sum();
        let token = self.text.as_deref().unwrap_or_default();
        Some(json!({"token": token, "logprob": logprob, "bytes": token.as_bytes(), "top_logprobs": []}))
    }
}

pub(super) fn all_logprobs<'a>(views: impl IntoIterator<Item = &'a LogprobView>) -> Option<Value> {
    let written: Vec<Value> = views.into_iter().filter_map(LogprobView::written).collect();
    (!written.is_empty()).then(|| json!({"content": written, "refusal": null}))
}

/// Why an answer ended.
///
/// # Errors
/// When it is a failure.
pub(super) fn finish(reason: Option<&str>, status: Option<u16>) -> Result<Finish, Error> {
    Ok(match reason {
        None | Some("COMPLETE") => Finish::Stop,
        Some("STOP_SEQUENCE") => Finish::StopSequence(None),
        Some("MAX_TOKENS") => Finish::Length,
        Some("TOOL_CALL") => Finish::ToolCalls,
        Some("ERROR_TOXIC") => Finish::ContentFilter,
        Some("ERROR_LIMIT") => Finish::ContextWindow,
        Some("ERROR") => return Err(failed("the upstream's model failed while it answered", status)),
        Some("TIMEOUT") => {
            let error = failed("the upstream's model took too long to answer", status);
            return Err(Error {
                kind: switchyard_core::error::Kind::Timeout,
                ..error
            });
        }
        Some(other) => Finish::Other(other.to_owned()),
    })
}

pub(super) fn read(body: &[u8], tools: &Tools, origin: &Origin) -> Result<Answer, Error> {
    let view: ReplyView = serde_json::from_slice(body)
        .map_err(|error| bad_answer(format!("the upstream's answer is not what Cohere answers: {error}")))?;
    let message = match view.message {
        Some(SaidView::Message(message)) => message,
        Some(SaidView::Failure(message)) => return Err(failed(&message, Some(200))),
        None => return Err(bad_answer("the upstream's answer has no `message`")),
    };
    let mut finish = finish(view.finish_reason.as_deref(), Some(200))?;
    let mut parts = Vec::new();
    parts.extend(message.tool_plan.and_then(thought));
    match message.content {
        None => {}
        Some(ContentView::Text(text)) => parts.extend(said(text)),
        Some(ContentView::Pieces(pieces)) => {
            for piece in pieces {
                parts.extend(piece.thinking.and_then(thought));
                parts.extend(piece.text.and_then(said));
            }
        }
    }
    let citations = message
        .citations
        .unwrap_or_default()
        .into_iter()
        .filter(CitationView::is_of_text);
    let text = parts.iter_mut().find_map(|part| match part {
        Part::Text { citations, .. } => Some(citations),
        _ => None,
    });
    if let Some(of_text) = text {
        of_text.extend(citations.map(CitationView::into_citation));
    }
    let calls = message.tool_calls.unwrap_or_default();
    if !calls.is_empty() && finish == Finish::Stop {
        finish = Finish::ToolCalls;
    }
    for (n, call) in calls.into_iter().enumerate() {
        let arguments = call.function.arguments.filter(|arguments| !arguments.is_empty());
        let arguments = arguments.unwrap_or_else(|| "{}".to_owned());
        parts.push(Part::Call(Call {
            id: call
                .id
                .filter(|id| !id.is_empty())
                .unwrap_or_else(|| ids::made(origin, n)),
            name: tools.name(call.function.name),
            arguments,
            ..Call::default()
        }));
    }
    Ok(Answer {
        id: view.id,
        choices: vec![Choice {
            parts,
            finish,
            logprobs: view.logprobs.as_ref().and_then(all_logprobs),
        }],
        usage: view.usage.map(UsageView::usage).unwrap_or_default(),
        ..Answer::default()
    })
}

fn said(text: String) -> Option<Part> {
    (!text.is_empty()).then(|| Part::text(text))
}

fn thought(text: String) -> Option<Part> {
    (!text.is_empty()).then(|| {
        Part::Thought(Thought {
            text,
            ..Thought::default()
        })
    })
}
