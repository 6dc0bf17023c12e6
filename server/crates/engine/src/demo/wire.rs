//! The objects of OpenAI's wire that the simulated upstream sends, fields in the order in which the vendor has them.

use crate::ports::UpstreamBody;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, header};
use serde::Serialize;

/// Marks every object as what it is.
pub(super) const FINGERPRINT: &str = "simulated";

// === Chat ===

#[derive(Serialize)]
pub(super) struct Completion<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: i64,
    pub(super) model: &'a str,
    pub(super) choices: Vec<Choice<'a>>,
    pub(super) usage: Usage,
    pub(super) system_fingerprint: &'static str,
}

#[derive(Serialize)]
pub(super) struct Choice<'a> {
    pub(super) index: usize,
    pub(super) message: Message<'a>,
    pub(super) logprobs: Option<()>,
    pub(super) finish_reason: &'static str,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall<'a>>,
    pub(super) refusal: Option<()>,
}

/// A whole call in a message, or a part of one in a chunk, which then has an index.
#[derive(Serialize)]
pub(super) struct ToolCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) r#type: Option<&'static str>,
    pub(super) function: Function<'a>,
}

#[derive(Serialize)]
pub(super) struct Function<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    pub(super) arguments: &'a str,
}

#[derive(Serialize)]
pub(super) struct Chunk<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: i64,
    pub(super) model: &'a str,
    pub(super) system_fingerprint: &'static str,
    pub(super) choices: Vec<ChunkChoice<'a>>,
    /// Absent unless the caller asked for usage; then `null` until the last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Option<Usage>>,
}

#[derive(Serialize)]
pub(super) struct ChunkChoice<'a> {
    pub(super) index: usize,
    pub(super) delta: Delta<'a>,
    pub(super) logprobs: Option<()>,
    pub(super) finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
pub(super) struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    /// A stream of calls begins with `content: null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<[ToolCall<'a>; 1]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct PromptDetails {
    cached_tokens: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct CompletionDetails {
    reasoning_tokens: usize,
}

impl Usage {
    pub(super) fn of(prompt_tokens: usize, completion_tokens: usize) -> Self {
        Self {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens + completion_tokens,
            prompt_tokens_details: PromptDetails { cached_tokens: 0 },
            completion_tokens_details: CompletionDetails { reasoning_tokens: 0 },
        }
    }
}

// === Models ===

#[derive(Serialize)]
pub(super) struct ModelList {
    object: &'static str,
    data: Vec<ModelEntry>,
}

#[derive(Serialize)]
struct ModelEntry {
    id: &'static str,
    object: &'static str,
    created: i64,
    owned_by: &'static str,
}

impl ModelList {
    pub(super) fn of(ids: &[&'static str], created: i64) -> Self {
        let entry = |id: &&'static str| ModelEntry {
            id,
            object: "model",
            created,
            owned_by: FINGERPRINT,
        };
        Self {
            object: "list",
            data: ids.iter().map(entry).collect(),
        }
    }
}

// === Responses ===

/// A 200 with one JSON body.
pub(super) fn json_response(body: &impl Serialize) -> Response<UpstreamBody> {
    let body = Bytes::from(to_json(body));
    let length = HeaderValue::from(body.len());
    let mut response = with_type("application/json", Box::pin(stream::iter([Ok(body)])));
    response.headers_mut().insert(header::CONTENT_LENGTH, length);
    response
}

pub(super) fn with_type(content_type: &'static str, body: UpstreamBody) -> Response<UpstreamBody> {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Only a map with keys that are no strings, or a failing `Serialize`, can fail here, and the types above have neither.
pub(super) fn to_json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}
