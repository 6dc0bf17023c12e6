//! Parameters, and which of the wires have them.
//!
//! One table, [`support`], says for every kind of upstream and every parameter whether it is sent on, sent as something else,
//! or not known there. Translation asks it before anything is written, so that a writer only meets what its wire can say, and
//! `GET /v1/capabilities` prints it.

use crate::Surface;
use crate::ir::{Format, Prompt};
use crate::notes::Notes;
use serde::{Deserialize, Serialize};
pub use switchyard_core::config::OnUnsupported;
use switchyard_core::error::{Error, Kind};

/// The wires that upstreams speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireKind {
    OpenAi,
    Anthropic,
    Gemini,
    Bedrock,
    Cohere,
}

impl WireKind {
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Bedrock, Self::Cohere];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::Cohere => "cohere",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Support {
    Forward,
    Translate,
    Unsupported,
}

impl Support {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Translate => "translate",
            Self::Unsupported => "unsupported",
        }
    }
}

macro_rules! params {
    ($($param:ident: $chat:literal, $responses:literal, $messages:literal, $generate:literal;)+) => {
        /// A parameter of a request, whatever a dialect calls it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Param { $($param),+ }

        impl Param {
            pub const ALL: &'static [Self] = &[$(Self::$param),+];

            /// What it is called where the caller wrote it.
            #[must_use]
            pub const fn name(self, surface: Surface) -> &'static str {
                match (self, surface) {
                    $(
                        (Self::$param, Surface::Responses) => $responses,
                        (Self::$param, Surface::Messages | Surface::CountTokens) => $messages,
                        (Self::$param, Surface::Generate | Surface::GeminiCountTokens) => $generate,
                        (Self::$param, _) => $chat,
                    )+
                }
            }
        }
    };
}

params! {
    Temperature: "temperature", "temperature", "temperature", "generationConfig.temperature";
    TopP: "top_p", "top_p", "top_p", "generationConfig.topP";
    TopK: "top_k", "top_k", "top_k", "generationConfig.topK";
    N: "n", "n", "n", "generationConfig.candidateCount";
    Seed: "seed", "seed", "seed", "generationConfig.seed";
    MaxTokens: "max_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens";
    MaxCompletionTokens: "max_completion_tokens", "max_output_tokens", "max_tokens", "generationConfig.maxOutputTokens";
    PresencePenalty: "presence_penalty", "presence_penalty", "presence_penalty", "generationConfig.presencePenalty";
    FrequencyPenalty: "frequency_penalty", "frequency_penalty", "frequency_penalty", "generationConfig.frequencyPenalty";
    Stop: "stop", "stop", "stop_sequences", "generationConfig.stopSequences";
    Tools: "tools", "tools", "tools", "tools";
    ToolChoice: "tool_choice", "tool_choice", "tool_choice", "toolConfig.functionCallingConfig";
    ParallelToolCalls: "parallel_tool_calls", "parallel_tool_calls", "tool_choice.disable_parallel_tool_use", "parallel_tool_calls";
    ResponseFormat: "response_format", "text.format", "output_config.format", "generationConfig.responseSchema";
    Logprobs: "logprobs", "include", "logprobs", "generationConfig.responseLogprobs";
    TopLogprobs: "top_logprobs", "top_logprobs", "top_logprobs", "generationConfig.logprobs";
    LogitBias: "logit_bias", "logit_bias", "logit_bias", "logit_bias";
    User: "user", "user", "metadata.user_id", "user";
    Reasoning: "reasoning_effort", "reasoning", "thinking", "generationConfig.thinkingConfig";
    Verbosity: "verbosity", "text.verbosity", "verbosity", "verbosity";
    Metadata: "metadata", "metadata", "metadata", "labels";
    ServiceTier: "service_tier", "service_tier", "service_tier", "service_tier";
    Store: "store", "store", "store", "store";
    CacheKey: "prompt_cache_key", "prompt_cache_key", "prompt_cache_key", "cachedContent";
}

/// The parameters that the reference's `/v1/capabilities` tells of, in its order.
pub const TRACKED: [Param; 17] = [
    Param::Temperature,
    Param::TopP,
    Param::N,
    Param::Seed,
    Param::MaxTokens,
    Param::MaxCompletionTokens,
    Param::PresencePenalty,
    Param::FrequencyPenalty,
    Param::Stop,
    Param::Tools,
    Param::ToolChoice,
    Param::ResponseFormat,
    Param::Logprobs,
    Param::TopLogprobs,
    Param::ParallelToolCalls,
    Param::User,
    Param::LogitBias,
];

/// Whether a wire has a parameter. What is not named is sent on.
#[must_use]
pub const fn support(wire: WireKind, param: Param) -> Support {
    use Param as P;
    use Support::{Forward, Translate, Unsupported};
    match (wire, param) {
        (WireKind::OpenAi, P::TopK) => Unsupported,
        (WireKind::OpenAi, _) => Forward,

        (
            WireKind::Anthropic,
            P::N
            | P::Seed
            | P::PresencePenalty
            | P::FrequencyPenalty
            | P::Logprobs
            | P::TopLogprobs
            | P::LogitBias
            | P::Metadata
            | P::Store
            | P::CacheKey,
        ) => Unsupported,
        (
            WireKind::Anthropic,
            P::MaxCompletionTokens
            | P::Stop
            | P::Tools
            | P::ToolChoice
            | P::ParallelToolCalls
            | P::ResponseFormat
            | P::User
            | P::Reasoning
            | P::Verbosity
            | P::ServiceTier,
        ) => Translate,

        (
            WireKind::Gemini,
            P::User
            | P::LogitBias
            | P::ParallelToolCalls
            | P::Verbosity
            | P::ServiceTier
            | P::Store
            | P::CacheKey
            | P::Metadata,
        ) => Unsupported,
        (WireKind::Gemini, _) => Translate,

        (
            WireKind::Bedrock,
            P::N
            | P::Seed
            | P::PresencePenalty
            | P::FrequencyPenalty
            | P::Logprobs
            | P::TopLogprobs
            | P::LogitBias
            | P::User
            | P::Verbosity
            | P::Store
            | P::CacheKey,
        ) => Unsupported,
        (WireKind::Bedrock, P::Temperature | P::TopP) => Forward,
        (WireKind::Bedrock, _) => Translate,

        (
            WireKind::Cohere,
            P::N
            | P::User
            | P::LogitBias
            | P::ParallelToolCalls
            | P::TopLogprobs
            | P::Verbosity
            | P::Metadata
            | P::ServiceTier
            | P::Store
            | P::CacheKey,
        ) => Unsupported,
        (
            WireKind::Cohere,
            P::TopP
            | P::TopK
            | P::MaxCompletionTokens
            | P::Stop
            | P::Tools
            | P::ToolChoice
            | P::ResponseFormat
            | P::Reasoning,
        ) => Translate,

        (WireKind::Anthropic | WireKind::Cohere, _) => Forward,
    }
}

/// Takes out of a prompt what the wire does not have, and notes what became of each parameter that the caller gave.
///
/// # Errors
/// Under [`OnUnsupported::Reject`], with the first parameter that is not known there.
pub(crate) fn enforce(
    prompt: &mut Prompt,
    surface: Surface,
    wire: WireKind,
    policy: OnUnsupported,
    notes: &mut Notes,
) -> Result<(), Error> {
    for param in Param::ALL {
        if !is_given(prompt, *param) {
            continue;
        }
        let field = prompt.name(*param, surface);
        match support(wire, *param) {
            Support::Forward => notes.kept(field),
            Support::Translate => notes.mapped(field, ""),
            Support::Unsupported if policy == OnUnsupported::Reject => return Err(refused(field, wire)),
            Support::Unsupported => {
                take_out(prompt, *param);
                notes.dropped(field, format!("{} has no such parameter", wire.as_str()));
            }
        }
    }
    Ok(())
}

/// What a call is refused with whose parameter the upstream does not know, where that is what the operator wants. Another
/// target may know it.
pub(crate) fn refused(field: &str, wire: WireKind) -> Error {
    let message = format!(
        "`{field}` is not supported by the upstream's wire ({}); leave it out, or ask for a model that supports it",
        wire.as_str()
    );
    Error::new(Kind::Unsupported, message).with_param(field)
}

fn is_given(prompt: &Prompt, param: Param) -> bool {
    let sampling = &prompt.sampling;
    match param {
        Param::Temperature => sampling.temperature.is_some(),
        Param::TopP => sampling.top_p.is_some(),
        Param::TopK => sampling.top_k.is_some(),
        // One is what everybody gives.
        Param::N => sampling.n.is_some_and(|n| n != 1),
        Param::Seed => sampling.seed.is_some(),
        // The same thing in a prompt: told of once, by the name that it was given.
        Param::MaxTokens => prompt.max_tokens.is_some() && !is_called(prompt, "max_completion_tokens"),
        Param::MaxCompletionTokens => prompt.max_tokens.is_some() && is_called(prompt, "max_completion_tokens"),
        Param::PresencePenalty => sampling.presence_penalty.is_some(),
        Param::FrequencyPenalty => sampling.frequency_penalty.is_some(),
        Param::Stop => !sampling.stop.is_empty(),
        Param::Tools => !prompt.tools.is_empty(),
        Param::ToolChoice => prompt.tool_choice.is_some(),
        Param::ParallelToolCalls => prompt.parallel_tools.is_some(),
        Param::ResponseFormat => prompt.format.as_ref().is_some_and(|format| *format != Format::Text),
        Param::Logprobs => sampling.logprobs == Some(true),
        Param::TopLogprobs => sampling.top_logprobs.is_some(),
        Param::LogitBias => sampling.logit_bias.is_some(),
        Param::User => prompt.user.is_some(),
        Param::Reasoning => prompt.reasoning.is_some(),
        Param::Verbosity => prompt.verbosity.is_some(),
        Param::Metadata => prompt.metadata.is_some(),
        Param::ServiceTier => prompt.service_tier.is_some(),
        // Not to keep it is what everybody else does anyway.
        Param::Store => prompt.store == Some(true),
        Param::CacheKey => prompt.cache_key.is_some(),
    }
}

fn is_called(prompt: &Prompt, name: &str) -> bool {
    prompt.called.iter().any(|(_, called)| *called == name)
}

fn take_out(prompt: &mut Prompt, param: Param) {
    let sampling = &mut prompt.sampling;
    match param {
        Param::Temperature => sampling.temperature = None,
        Param::TopP => sampling.top_p = None,
        Param::TopK => sampling.top_k = None,
        Param::N => sampling.n = None,
        Param::Seed => sampling.seed = None,
        Param::MaxTokens | Param::MaxCompletionTokens => prompt.max_tokens = None,
        Param::PresencePenalty => sampling.presence_penalty = None,
        Param::FrequencyPenalty => sampling.frequency_penalty = None,
        Param::Stop => sampling.stop.clear(),
        Param::Tools => prompt.tools.clear(),
        Param::ToolChoice => prompt.tool_choice = None,
        Param::ParallelToolCalls => prompt.parallel_tools = None,
        Param::ResponseFormat => prompt.format = None,
        Param::Logprobs => sampling.logprobs = None,
        Param::TopLogprobs => sampling.top_logprobs = None,
        Param::LogitBias => sampling.logit_bias = None,
        Param::User => prompt.user = None,
        Param::Reasoning => prompt.reasoning = None,
        Param::Verbosity => prompt.verbosity = None,
        Param::Metadata => prompt.metadata = None,
        Param::ServiceTier => prompt.service_tier = None,
        Param::Store => prompt.store = None,
        Param::CacheKey => prompt.cache_key = None,
    }
}

#[cfg(test)]
mod tests {
    use super::{OnUnsupported, WireKind, enforce};
    use crate::notes::Notes;
    use crate::{Call, Surface};
    use bytes::Bytes;

    #[test]
    fn a_parameter_is_called_what_the_caller_called_it() {
        for (given, field) in [
            (r#""max_tokens":9"#, "max_tokens"),
            (r#""max_completion_tokens":9"#, "max_completion_tokens"),
            (r#""functions":[{"name":"f"}]"#, "functions"),
            (r#""reasoning":{"effort":"low"}"#, "reasoning"),
            (r#""reasoning_effort":"low""#, "reasoning_effort"),
            (r#""thinking":{"type":"enabled","budget_tokens":2048}"#, "thinking"),
            (r#""user":"u""#, "user"),
            (r#""safety_identifier":"u""#, "safety_identifier"),
        ] {
            let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"u"}}],{given}}}"#);
            let call = Call::parse(Surface::Chat, Bytes::from(body)).unwrap();
            for wire in WireKind::ALL {
                let mut prompt = std::sync::Arc::unwrap_or_clone(call.prompt().unwrap());
                let mut notes = Notes::default();
                enforce(&mut prompt, Surface::Chat, wire, OnUnsupported::Warn, &mut notes).unwrap();
                let fields: Vec<&str> = notes.list().iter().map(|note| &*note.field).collect();
                assert_eq!(fields, [field], "{given} to {}", wire.as_str());
            }
        }
    }
}
