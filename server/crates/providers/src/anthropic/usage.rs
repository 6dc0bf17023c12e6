//! Counts of tokens, which the wire reports in pieces: what the cache gave or took is not among `input_tokens`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchyard_core::usage::Usage;

/// As the wire writes them. What makes no sense is as good as absent: it makes no answer wrong.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens_details: Option<Details>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Details {
    thinking_tokens: Option<u64>,
}

impl Counts {
    pub(super) fn read(raw: Option<&RawValue>) -> Option<Self> {
        serde_json::from_str(raw?.get()).ok()
    }

    /// A later report. Counts are of the whole answer and never shrink, but some upstreams repeat what they do not know as 0.
    pub(super) fn update(&mut self, later: Self) {
        let inputs = [
            later.input_tokens,
            later.cache_creation_input_tokens,
            later.cache_read_input_tokens,
        ];
        if inputs.into_iter().flatten().any(|count| count > 0) {
            self.input_tokens = later.input_tokens.or(self.input_tokens);
            self.cache_creation_input_tokens = later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
            self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        }
        self.output_tokens = later.output_tokens.max(self.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// What the prompt took. At the beginning of a stream nothing else is known.
    pub(super) fn of_prompt(self) -> Usage {
        let parts = [
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
        ];
        let is_known = parts.iter().any(Option::is_some);
        let all = parts.into_iter().flatten().fold(0_u64, u64::saturating_add);
        Usage {
            prompt: is_known.then_some(all),
            cached: self.cache_read_input_tokens,
            cache_write: self.cache_creation_input_tokens,
            ..Usage::default()
        }
    }

    pub(super) fn usage(self) -> Usage {
        let prompt = self.of_prompt();
        Usage {
            completion: self.output_tokens,
            total: prompt.prompt.zip(self.output_tokens).map(|(a, b)| a.saturating_add(b)),
            reasoning: self.output_tokens_details.and_then(|details| details.thinking_tokens),
            ..prompt
        }
    }

    /// Of a stream that was cut: what came out of it is guessed by its length.
    pub(super) fn cut(self, content_bytes: usize) -> Usage {
        let prompt = self.of_prompt();
        let completion = u64::try_from(content_bytes.div_ceil(4)).ok();
        Usage {
            completion,
            total: prompt.prompt.zip(completion).map(|(a, b)| a.saturating_add(b)),
            estimated: true,
            ..prompt
        }
    }
}

/// For a caller.
#[derive(Serialize)]
pub(super) struct Written {
    input_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<u64>,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_details: Option<WrittenDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'static str>,
}

#[derive(Serialize)]
struct WrittenDetails {
    thinking_tokens: u64,
}

impl Written {
    pub(super) fn of(usage: &Usage, service_tier: Option<&str>) -> Self {
        let elsewhere = usage.cached.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
        Self {
            input_tokens: usage.prompt.unwrap_or(0).saturating_sub(elsewhere),
            cache_creation_input_tokens: usage.cache_write,
            cache_read_input_tokens: usage.cached,
            output_tokens: usage.completion.unwrap_or(0),
            output_tokens_details: usage
                .reasoning
                .map(|thinking_tokens| WrittenDetails { thinking_tokens }),
            service_tier: match service_tier {
                Some("default" | "standard") => Some("standard"),
                Some("priority") => Some("priority"),
                Some("batch") => Some("batch"),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Written};
    use serde_json::value::RawValue;
    use switchyard_core::usage::Usage;

    fn counts(json: &str) -> Option<Counts> {
        Counts::read(Some(&RawValue::from_string(json.to_owned()).unwrap()))
    }

    #[test]
    fn what_the_cache_gave_counts_and_is_told_apart() {
        let all = r#"{"input_tokens":20,"cache_read_input_tokens":2603,"cache_creation_input_tokens":7,"output_tokens":5,
            "output_tokens_details":{"thinking_tokens":3},"cache_creation":{"ephemeral_5m_input_tokens":7}}"#;
        let usage = counts(all).unwrap().usage();
        let want = Usage {
            prompt: Some(2630),
            completion: Some(5),
            total: Some(2635),
            cached: Some(2603),
            cache_write: Some(7),
            reasoning: Some(3),
            ..Usage::default()
        };
        assert_eq!(usage, want);
        let written = serde_json::to_string(&Written::of(&usage, Some("default"))).unwrap();
        assert_eq!(
            written,
            r#"{"input_tokens":20,"cache_creation_input_tokens":7,"cache_read_input_tokens":2603,"output_tokens":5,"output_tokens_details":{"thinking_tokens":3},"service_tier":"standard"}"#
        );
        assert!(counts(r#"{"input_tokens":"many"}"#).is_none());
        assert_eq!(counts("{}").unwrap().usage(), Usage::default());
    }

    #[test]
    fn later_reports_take_the_place_of_earlier_ones_but_not_with_nothing() {
        let mut so_far = counts(r#"{"input_tokens":20,"cache_read_input_tokens":3,"output_tokens":1}"#).unwrap();
        so_far.update(counts(r#"{"input_tokens":0,"output_tokens":9}"#).unwrap());
        assert_eq!((so_far.usage().prompt, so_far.usage().completion), (Some(23), Some(9)));
        so_far.update(counts(r#"{"input_tokens":5,"cache_read_input_tokens":18,"output_tokens":12}"#).unwrap());
        assert_eq!((so_far.usage().prompt, so_far.usage().cached), (Some(23), Some(18)));
    }
}
