//! A streamed answer, step by step.
//!
//! Parts are known by a number within their choice, given by the reader in the order in which they began, from 0 and without
//! gaps. Deltas of several parts may alternate: OpenAI's parallel calls do. Writers whose dialect has one block open at a time
//! keep back what belongs to the next.

use super::{Citation, Finish};
use serde_json::Value;
use switchyard_core::usage::Usage;

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The answer has begun. At most once, before everything else.
    Start {
        id: Option<String>,
        model: Option<String>,
        /// As far as it is known at the beginning: what the prompt took.
        usage: Usage,
    },
    /// Something of a part; the first one of a number begins the part.
    Delta { choice: u32, part: u32, delta: Delta },
    /// Nothing more of this part comes. Not all wires say it: without it a part ends with its choice, and a text or a thought
    /// also where the next part begins.
    End { choice: u32, part: u32 },
    /// Log probabilities of the choice's latest text, as OpenAI writes them.
    Logprobs { choice: u32, value: Value },
    /// The choice has ended.
    Finish { choice: u32, finish: Finish },
    /// What was used; each report holds all of it, and takes the place of the one before.
    Usage(Usage),
    /// Something that only the upstream's dialect knows, by its path there: nobody can write it, and its loss is told.
    Stranger(String),
    /// The upstream is alive and has nothing to say.
    Ping,
}

/// All deltas of one part are of one kind, but for seals and citations, which may follow a thought, a call or a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    Text(String),
    Refusal(String),
    Thought {
        text: String,
        is_summary: bool,
    },
    /// A thought whose content is the seal that follows.
    Redacted,
    /// A call begins. Its arguments follow.
    Call {
        id: String,
        name: String,
        is_custom: bool,
    },
    /// More of a call's arguments.
    Arguments(String),
    Seal(super::Seal),
    Citation(Citation),
    /// Base64 of a piece of audio.
    Audio {
        base64: String,
        transcript: Option<String>,
    },
}

impl Delta {
    /// Whether it is something that a caller would miss: a stream commits to its target at the first.
    #[must_use]
    pub fn is_content(&self) -> bool {
        match self {
            Self::Text(text) | Self::Refusal(text) | Self::Thought { text, .. } | Self::Arguments(text) => {
                !text.is_empty()
            }
            Self::Audio { base64, transcript } => {
                !base64.is_empty() || transcript.as_ref().is_some_and(|text| !text.is_empty())
            }
            Self::Redacted | Self::Call { .. } => true,
            Self::Seal(_) | Self::Citation(_) => false,
        }
    }
}
