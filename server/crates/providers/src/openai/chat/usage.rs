//! Counts of tokens, and why an answer ended, as chat completions say it.

use super::doc::Object;
use crate::ir::Finish;
use crate::notes::Notes;
use serde_json::{Map, Value};
use switchyard_core::usage::Usage;

/// Reads a report. What makes no sense is not there, and a report without a count is none.
pub(super) fn read(report: &Value) -> Option<Usage> {
    let count = |path: &[&str]| {
        let value = path.iter().try_fold(report, |value, key| value.get(key))?;
        value.as_u64()
    };
    let any = |paths: &[&[&str]]| paths.iter().find_map(|path| count(path));
    let prompt = any(&[&["prompt_tokens"], &["input_tokens"]]);
    let mut completion = any(&[&["completion_tokens"], &["output_tokens"]]);
    let total = count(&["total_tokens"]);
    if prompt.is_none() && completion.is_none() && total.is_none() {
        return None;
    }
    let reasoning = any(&[
        &["completion_tokens_details", "reasoning_tokens"],
        &["reasoning_tokens"],
    ]);
    // xAI counts reasoning beside the completion, and the total tells.
    if let (Some(input), Some(output), Some(thought), Some(all)) = (prompt, completion, reasoning, total) {
        let beside = input.saturating_add(output).saturating_add(thought);
        if thought > 0 && all == beside {
            completion = Some(output.saturating_add(thought));
        }
    }
    Some(Usage {
        prompt,
        completion,
        total: total.or_else(|| Some(prompt?.saturating_add(completion?))),
        // By turns everybody's, DeepSeek's, Moonshot's, and that of proxies before Anthropic.
        cached: any(&[
            &["prompt_tokens_details", "cached_tokens"],
            &["prompt_cache_hit_tokens"],
            &["cached_tokens"],
            &["cache_read_input_tokens"],
        ]),
        cache_write: any(&[
            &["prompt_tokens_details", "cache_write_tokens"],
            &["prompt_tokens_details", "cache_creation_tokens"],
            &["cache_creation_input_tokens"],
        ]),
        audio_prompt: count(&["prompt_tokens_details", "audio_tokens"]),
        reasoning,
        audio_completion: count(&["completion_tokens_details", "audio_tokens"]),
        estimated: false,
    })
}

/// The report in an answer. Groq has one of its own, in `x_groq`, and in streams no other.
pub(super) fn of_answer(answer: &Map<String, Value>) -> Option<Usage> {
    let groq = || read(answer.get("x_groq")?.get("usage")?);
    answer.get("usage").and_then(read).or_else(groq)
}

/// Writes a report: the three counts that everybody reads, and what is known of their parts.
pub(in crate::openai) fn write(out: &mut Vec<u8>, usage: &Usage) {
    let mut report = Object::open(out);
    let (prompt, completion) = (usage.prompt.unwrap_or(0), usage.completion.unwrap_or(0));
    report.put("prompt_tokens", &prompt);
    report.put("completion_tokens", &completion);
    let total = usage.total.unwrap_or_else(|| prompt.saturating_add(completion));
    report.put("total_tokens", &total);
    if usage.cached.is_some() || usage.cache_write.is_some() || usage.audio_prompt.is_some() {
        let mut details = report.object("prompt_tokens_details");
        details.put("cached_tokens", &usage.cached.unwrap_or(0));
        details.some("cache_write_tokens", usage.cache_write);
        details.some("audio_tokens", usage.audio_prompt);
        details.close();
    }
    if usage.reasoning.is_some() || usage.audio_completion.is_some() {
        let mut details = report.object("completion_tokens_details");
        details.put("reasoning_tokens", &usage.reasoning.unwrap_or(0));
        details.some("audio_tokens", usage.audio_completion);
        details.close();
    }
    report.close();
}

/// Whether there is anything to report.
pub(in crate::openai) const fn is_known(usage: &Usage) -> bool {
    usage.prompt.is_some() || usage.completion.is_some() || usage.total.is_some()
}

/// What an upstream's word for an end means. `None` for no word at all.
pub(super) fn read_finish(word: &str) -> Option<Finish> {
    Some(match word {
        "" => return None,
        "stop" | "eos" | "eos_token" | "end_turn" | "complete" => Finish::Stop,
        "stop_sequence" => Finish::StopSequence(None),
        "length" | "max_tokens" => Finish::Length,
        // Mistral's.
        "model_length" => Finish::ContextWindow,
        "tool_calls" | "function_call" | "tool_use" => Finish::ToolCalls,
        "content_filter" => Finish::ContentFilter,
        "refusal" => Finish::Refusal,
        other => Finish::Other(other.to_owned()),
    })
}

/// What there was in a choice that has ended: some upstreams say `stop` whatever it was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Had {
    pub(super) calls: bool,
    pub(super) refusal: bool,
}

impl Had {
    pub(super) fn correct(self, finish: Finish) -> Finish {
        match finish {
            Finish::Stop if self.calls => Finish::ToolCalls,
            Finish::Stop if self.refusal => Finish::Refusal,
            finish => finish,
        }
    }

    /// The word that this dialect has for an end. What has none is noted.
    pub(super) fn word(self, finish: &Finish, is_legacy: bool, notes: &mut Notes) -> &'static str {
        let mut near = |word: &'static str, why: String| {
            notes.approximated("finish_reason", why);
            word
        };
        match finish {
            Finish::Stop if !self.calls => "stop",
            Finish::StopSequence(_) => "stop",
            Finish::Refusal if self.refusal => "stop",
            Finish::Length => "length",
            // There are clients that run what was called for this reason alone, and vendors who say that they just stopped.
            Finish::Stop | Finish::ToolCalls if is_legacy => "function_call",
            Finish::Stop | Finish::ToolCalls => "tool_calls",
            Finish::ContentFilter => "content_filter",
            Finish::Refusal => near("content_filter", "the model declined to go on".to_owned()),
            Finish::ContextWindow => near("length", "it came to the end of the model's context window".to_owned()),
            Finish::Pause => near("stop", "the vendor paused a long turn, to be carried on".to_owned()),
            Finish::Other(word) => near("stop", format!("the vendor's reason is \"{word}\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use serde_json::json;

    #[test]
    fn every_accent_of_a_report_is_read() {
        let usage = read(&json!({
            "prompt_tokens": 2623, "completion_tokens": 20, "total_tokens": 2643,
            "prompt_tokens_details": {"cached_tokens": 2603, "audio_tokens": 3, "cache_write_tokens": 7},
            "completion_tokens_details": {"reasoning_tokens": 9, "audio_tokens": null},
        }))
        .unwrap();
        assert_eq!(
            (usage.prompt, usage.completion, usage.total),
            (Some(2623), Some(20), Some(2643))
        );
        assert_eq!(
            (usage.cached, usage.cache_write, usage.audio_prompt),
            (Some(2603), Some(7), Some(3))
        );
        assert_eq!((usage.reasoning, usage.audio_completion), (Some(9), None));
        let xai = json!({
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 115,
            "completion_tokens_details": {"reasoning_tokens": 100},
        });
        assert_eq!(read(&xai).unwrap().completion, Some(105));
        let deepseek = json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 8});
        let usage = read(&deepseek).unwrap();
        assert_eq!((usage.cached, usage.total), (Some(8), Some(15)));
        assert_eq!(read(&json!({"prompt_tokens": "many"})), None);
        assert_eq!(read(&json!(null)), None);
    }
}
