//! What Gemini answers: candidates and their parts, reasons, tokens, sources. The same for a whole answer and for a piece of
//! a streamed one, which has the same shape.

use crate::ir::{Citation, Finish, Maker, Seal};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use switchyard_core::usage::Usage;

/// One thing that a candidate says.
pub(super) enum Said<'a> {
    Text(&'a str),
    Thought(&'a str),
    /// A signature that belongs to no call.
    Seal(Seal),
    Call {
        id: Option<&'a str>,
        name: &'a str,
        arguments: String,
        seal: Option<Seal>,
    },
    Data {
        media_type: &'a str,
        base64: String,
    },
    /// Of a kind that only this wire knows.
    Stranger(&'a str, &'a Value),
}

/// Goes through the parts of a candidate.
pub(super) fn parts<'a>(candidate: &'a Value, mut with: impl FnMut(Said<'a>)) {
    let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        let mut seal = text("thoughtSignature")
            .filter(|data| !data.is_empty())
            .map(|data| Seal::new(Maker::Gemini, data));
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        if let Some(call) = part.get("functionCall") {
            let text = |name: &str| call.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            let arguments = match call.get("args") {
                None | Some(Value::Null) => "{}".to_owned(),
                Some(args) => args.to_string(),
            };
            let said = Said::Call {
                id: text("id"),
                name: text("name").unwrap_or_default(),
                arguments,
                seal: seal.take(),
            };
            with(said);
        } else if let Some(said) = text("text") {
            if said.is_empty() {
            } else if is_thought {
                with(Said::Thought(said));
            } else {
                with(Said::Text(said));
            }
        } else if let Some(data) = part.get("inlineData") {
            let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
            let said = Said::Data {
                media_type: text("mimeType"),
                base64: plain_base64(text("data")),
            };
            with(said);
        } else if let Some((name, value)) = part.as_object().and_then(|part| {
            part.iter()
                .find(|(name, _)| !matches!(name.as_str(), "thought" | "thoughtSignature"))
        }) {
            with(Said::Stranger(name, value));
        }
        if let Some(seal) = seal {
            with(Said::Seal(seal));
        }
    }
}

/// Protocol buffers write bytes in either alphabet, with padding or without; everybody else wants the one with `+` and `/`.
pub(super) fn plain_base64(written: &str) -> String {
    let mut made: String = written
        .trim_end_matches('=')
        .chars()
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    while !made.len().is_multiple_of(4) {
        made.push('=');
    }
    made
}

/// The text of a seal for callers of this dialect. Their libraries take it for bytes, so one of another vendor, with its mark
/// in front, is wrapped.
pub(super) fn write_seal(seal: &Seal) -> String {
    let written = seal.write(Maker::Gemini);
    if seal.maker == Maker::Gemini {
        written
    } else {
        STANDARD.encode(written)
    }
}

/// Reads what [`write_seal`] wrote, after whatever a library did to it.
pub(super) fn read_seal(written: &str) -> Seal {
    let wrapped = STANDARD.decode(plain_base64(written)).ok();
    let inside = wrapped.and_then(|bytes| String::from_utf8(bytes).ok());
    match inside.filter(|inside| inside.starts_with("sy.")) {
        Some(inside) => Seal::read(&inside, Maker::Gemini),
        None => Seal::read(written, Maker::Gemini),
    }
}

/// Why a candidate ended.
pub(super) fn finish(reason: &str, has_calls: bool) -> Finish {
    match reason {
        "STOP" if has_calls => Finish::ToolCalls,
        "STOP" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "MODEL_ARMOR"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    }
}

/// The same in this dialect's words, and whether something is lost by it.
pub(super) fn reason(finish: &Finish) -> (&str, Option<&'static str>) {
    match finish {
        Finish::Stop | Finish::StopSequence(None) | Finish::ToolCalls => ("STOP", None),
        Finish::StopSequence(Some(_)) => ("STOP", Some("which of the stop sequences it was cannot be said")),
        Finish::Length => ("MAX_TOKENS", None),
        Finish::ContextWindow => ("MAX_TOKENS", Some("the model's window is full")),
        Finish::ContentFilter => ("SAFETY", None),
        Finish::Refusal => ("SAFETY", Some("the model itself declined")),
        Finish::Pause => (
            "OTHER",
            Some("the vendor paused a long turn: send the answer back to carry it on"),
        ),
        Finish::Other(word) if KNOWN.contains(&word.as_str()) => (word, None),
        Finish::Other(_) => ("OTHER", Some("the upstream gave a reason that has no word here")),
    }
}

/// Words for an end that mean nothing to others.
const KNOWN: [&str; 10] = [
    "OTHER",
    "LANGUAGE",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "NO_IMAGE",
    "IMAGE_OTHER",
    "FINISH_REASON_UNSPECIFIED",
];

/// Why the prompt was not answered at all.
pub(super) fn block_reason(answer: &Value) -> Option<&str> {
    answer
        .pointer("/promptFeedback/blockReason")
        .and_then(Value::as_str)
        .filter(|reason| {
            !reason.is_empty() && *reason != "BLOCK_REASON_UNSPECIFIED" && *reason != "BLOCKED_REASON_UNSPECIFIED"
        })
}

/// What a `usageMetadata` says. Tokens of thought and of what tools read are counted beside the others there.
pub(super) fn usage(metadata: &Value) -> Option<Usage> {
    let count = |name: &str| metadata.get(name).and_then(Value::as_u64);
    let audio = |name: &str| {
        let details = metadata.get(name)?.as_array()?;
        let audio = details
            .iter()
            .filter(|detail| detail.get("modality").is_some_and(|kind| kind == "AUDIO"));
        let counts = audio.filter_map(|detail| detail.get("tokenCount")?.as_u64());
        counts.reduce(u64::saturating_add)
    };
    let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    let prompt = add(count("promptTokenCount"), count("toolUsePromptTokenCount"));
    let completion = add(count("candidatesTokenCount"), count("thoughtsTokenCount"));
    let total = count("totalTokenCount");
    if prompt.is_none() && completion.is_none() && total.is_none() {
        return None;
    }
    Some(Usage {
        prompt,
        completion,
        total: total.or_else(|| add(prompt, completion)),
        cached: count("cachedContentTokenCount"),
        cache_write: None,
        audio_prompt: audio("promptTokensDetails"),
        reasoning: count("thoughtsTokenCount"),
        audio_completion: audio("candidatesTokensDetails"),
        estimated: false,
    })
}

/// The same, written.
pub(super) fn write_usage(usage: &Usage) -> Value {
    let mut made = Map::new();
    let mut put = |name: &str, count: Option<u64>| {
        if let Some(count) = count {
            made.insert(name.to_owned(), count.into());
        }
    };
    put("promptTokenCount", usage.prompt);
    let spoken = usage
        .completion
        .map(|all| all.saturating_sub(usage.reasoning.unwrap_or(0)));
    put("candidatesTokenCount", spoken);
    put("thoughtsTokenCount", usage.reasoning);
    put("cachedContentTokenCount", usage.cached);
    let sum = || Some(usage.prompt?.saturating_add(usage.completion?));
    put("totalTokenCount", usage.total.or_else(sum));
    let mut audio = |name: &str, count: Option<u64>, all: Option<u64>| {
        let Some(count) = count.filter(|count| *count > 0) else {
            return;
        };
        let mut details = vec![json!({"modality": "AUDIO", "tokenCount": count})];
        if let Some(text) = all.and_then(|all| all.checked_sub(count)).filter(|text| *text > 0) {
            details.insert(0, json!({"modality": "TEXT", "tokenCount": text}));
        }
        made.insert(name.to_owned(), Value::Array(details));
    };
    audio("promptTokensDetails", usage.audio_prompt, usage.prompt);
    audio("candidatesTokensDetails", usage.audio_completion, spoken);
    Value::Object(made)
}

/// Log probabilities as OpenAI writes them.
pub(super) fn logprobs(candidate: &Value) -> Option<Value> {
    let result = candidate.get("logprobsResult")?;
    let chosen = result.get("chosenCandidates")?.as_array()?;
    let tops = result.get("topCandidates").and_then(Value::as_array);
    let one = |token: &Value| {
        let text = token.get("token").and_then(Value::as_str).unwrap_or_default();
        let mut made = Map::new();
        made.insert("token".to_owned(), text.into());
        let value = token.get("logProbability").cloned().unwrap_or(json!(0.0));
        made.insert("logprob".to_owned(), value);
        made.insert("bytes".to_owned(), text.bytes().collect());
        made
    };
    let content = chosen.iter().enumerate().map(|(index, token)| {
        let mut made = one(token);
        let top = tops.and_then(|tops| tops.get(index)?.get("candidates")?.as_array());
        let top = top.into_iter().flatten().map(|token| Value::Object(one(token)));
        made.insert("top_logprobs".to_owned(), top.collect());
        Value::Object(made)
    });
    let content: Value = content.collect();
    Some(json!({"content": content, "refusal": null}))
}

/// The other way round.
pub(super) fn write_logprobs(logprobs: &Value) -> Option<Value> {
    let content = logprobs.get("content")?.as_array()?;
    let one = |token: &Value| {
        json!({
            "token": token.get("token").cloned().unwrap_or_default(),
            "logProbability": token.get("logprob").cloned().unwrap_or_default(),
        })
    };
    let chosen: Value = content.iter().map(one).collect();
    let tops = content.iter().map(|token| {
        let top = token.get("top_logprobs").and_then(Value::as_array);
        let top: Value = top.into_iter().flatten().map(one).collect();
        json!({ "candidates": top })
    });
    let tops: Value = tops.collect();
    Some(json!({"topCandidates": tops, "chosenCandidates": chosen}))
}

/// Where a candidate has things from: texts that it repeats, and pages that it was told of. `text` is all of what it said:
/// places are counted in bytes there, and in characters here.
pub(super) fn citations(candidate: &Value, text: &str) -> Vec<Citation> {
    let mut made = Vec::new();
    let place = |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|at| characters(text, at));
    let word = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let metadata = candidate.get("citationMetadata");
    let sources = metadata.and_then(|metadata| metadata.get("citationSources").or_else(|| metadata.get("citations")));
    for source in sources.and_then(Value::as_array).into_iter().flatten() {
        made.push(Citation {
            url: word(source, "uri"),
            title: word(source, "title"),
            start: place(source.get("startIndex").or(Some(&json!(0)))),
            end: place(source.get("endIndex")),
            raw: Some(source.clone()),
            ..Citation::default()
        });
    }
    let Some(grounding) = candidate.get("groundingMetadata") else {
        return made;
    };
    let list = |of: &Value, name: &str| of.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let chunks = list(grounding, "groundingChunks");
    for support in list(grounding, "groundingSupports") {
        let segment = support.get("segment");
        let at = |name: &str| place(segment.and_then(|segment| segment.get(name)));
        for index in list(&support, "groundingChunkIndices") {
            let chunk = index
                .as_u64()
                .and_then(|index| chunks.get(usize::try_from(index).ok()?));
            let Some(chunk) = chunk else {
                continue;
            };
            let (source, quoted) = match (chunk.get("web"), chunk.get("retrievedContext")) {
                (Some(web), _) => (web, None),
                (None, Some(context)) => (context, word(context, "text")),
                (None, None) => continue,
            };
            made.push(Citation {
                url: word(source, "uri"),
                title: word(source, "title"),
                quoted,
                document: None,
                // What is left out is 0.
                start: at("startIndex").or(Some(0)),
                end: at("endIndex"),
                raw: Some(chunk.clone()),
            });
        }
    }
    made
}

/// How many characters there are before a byte.
fn characters(text: &str, byte: u64) -> Option<u64> {
    let end = usize::try_from(byte).ok()?.min(text.len());
    let before = text.char_indices().take_while(|(at, _)| *at < end).count();
    u64::try_from(before).ok()
}

/// How many bytes there are before a character.
pub(super) fn bytes_before(text: &str, character: u64) -> u64 {
    let nth = usize::try_from(character).unwrap_or(usize::MAX);
    let at = text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    u64::try_from(at).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{citations, finish, plain_base64, read_seal, usage, write_seal, write_usage};
    use crate::ir::{Finish, Maker, Seal};
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    #[test]
    fn tokens_beside_the_others_are_counted_with_them() {
        let metadata = json!({
            "promptTokenCount": 10, "toolUsePromptTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 7,
            "cachedContentTokenCount": 4, "totalTokenCount": 25,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 4}, {"modality": "AUDIO", "tokenCount": 6}],
        });
        let told = usage(&metadata).unwrap();
        assert_eq!(
            (told.prompt, told.completion, told.total),
            (Some(13), Some(12), Some(25))
        );
        assert_eq!(
            (told.cached, told.reasoning, told.audio_prompt),
            (Some(4), Some(7), Some(6))
        );
        let written = write_usage(&told);
        assert_eq!(written["candidatesTokenCount"], 5);
        assert_eq!(written["thoughtsTokenCount"], 7);
        assert_eq!(written["promptTokensDetails"][1]["tokenCount"], 6);
        assert_eq!(usage(&json!({})), None);
    }

    #[test]
    fn a_seal_comes_back_whatever_a_library_does_to_bytes() {
        let foreign = Seal::new(Maker::Anthropic, "EqQB+/=");
        let written = write_seal(&foreign);
        assert_eq!(read_seal(&written), foreign);
        let other_alphabet =
            URL_SAFE_NO_PAD.encode(base64::engine::general_purpose::STANDARD.decode(&written).unwrap());
        assert_eq!(read_seal(&other_alphabet), foreign);
        let own = Seal::new(Maker::Gemini, "CiQB_-8");
        assert_eq!(read_seal(&write_seal(&own)), own);
        assert_eq!(plain_base64("_-8"), "/+8=");
    }

    #[test]
    fn reasons_and_places() {
        assert_eq!(finish("STOP", true), Finish::ToolCalls);
        assert_eq!(finish("MAX_TOKENS", true), Finish::Length);
        assert_eq!(finish("SPII", false), Finish::ContentFilter);
        let candidate = json!({"groundingMetadata": {
            "groundingChunks": [{"web": {"uri": "https://a", "title": "A"}}, {"maps": {}}],
            "groundingSupports": [{"segment": {"startIndex": 3, "endIndex": 5}, "groundingChunkIndices": [0, 1, 9]}],
        }});
        let made = citations(&candidate, "äb cd");
        assert_eq!(made.len(), 1);
        assert_eq!(
            (made[0].start, made[0].end, made[0].url.as_deref()),
            (Some(2), Some(4), Some("https://a"))
        );
    }
}
