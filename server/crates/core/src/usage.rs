//! Tokens, as one request used them.

use serde::{Deserialize, Serialize};

/// Token counts of one answer. What the upstream did not report is `None`, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input tokens, those read from the provider's cache included.
    pub prompt: Option<u64>,
    /// All output tokens, reasoning included.
    pub completion: Option<u64>,
    pub total: Option<u64>,
    /// The part of `prompt` that the provider's cache answered.
    pub cached: Option<u64>,
    /// The part of `prompt` that was written to the provider's cache.
    #[serde(default)]
    pub cache_write: Option<u64>,
    /// The part of `prompt` that was audio.
    #[serde(default)]
    pub audio_prompt: Option<u64>,
    /// The part of `completion` that was reasoning.
    pub reasoning: Option<u64>,
    /// The part of `completion` that was audio.
    #[serde(default)]
    pub audio_completion: Option<u64>,
    /// Counted by us from the text that passed, because the upstream's report never came.
    pub estimated: bool,
}
