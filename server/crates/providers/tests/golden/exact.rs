//! Two hundred fields that nobody knows, there and back, where both sides speak the same dialect: every byte arrives, but for the
//! model's name. Numbers that no machine holds, escapes, spaces in odd places: nothing here is read and written again.

use crate::grid::WIRES;
use bytes::Bytes;
use http::HeaderMap;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::time::SystemTime;
use switchyard_core::usage::Usage;
use switchyard_providers::params::OnUnsupported;
use switchyard_providers::{Call, End, FromPath, Origin, Surface, Terms, Wire};

/// What the caller and the upstream call the model. In an answer it is more than what was asked for.
const ASKED: &str = "up-model";
const ANSWERED: &str = "\"up-model-2026-11-30\"";
const CALLED: &str = "\"the caller's \u{2728} model\"";
const CALLED_PLAIN: &str = "the caller's \u{2728} model";

/// Texts in which `#60` stands for sixty unknown fields, and `@` for the model.
struct Pair {
    surface: Surface,
    wire: &'static str,
    request: &'static str,
    /// The request for a stream.
    streamed: &'static str,
    answer: &'static str,
    /// Frames, one a line: the event's name if the dialect has names, a bar, the data.
    stream: &'static str,
    usage: (u64, u64),
}

const CHAT: Pair = Pair {
    surface: Surface::Chat,
    wire: "openai",
    request: r#" {#60,"model" : @ , #40, "messages":[ {"role":"user","content":"hi",#40} ] ,"max_tokens":1.0e2,#60}"#,
    streamed: r#"{"stream" :true,#60,"model":@,"stream_options":{ "include_usage" : true,#20},"messages":[{"role":"user","content":"hi",#60}],#60}"#,
    answer: r#"{#50,"id":"c","object":"chat.completion","created":1,"model" :@,#50,"choices":[{"index":0,"message":{"role":"assistant","content":"hi",#40},"finish_reason":"stop",#30}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,#30}} "#,
    stream: r#"|{#60,"id":"c","object":"chat.completion.chunk","created":1,"model":@,"choices":[{"index":0,"delta":{"role":"assistant","content":"h",#40},"finish_reason":null,#40}],"usage":null}
|{"id":"c","object":"chat.completion.chunk","created":1,"model": @,"choices":[{"index":0,"delta":{#20},"finish_reason":"stop"}],#20}
|{"id":"c","object":"chat.completion.chunk","created":1,"choices":[],"model":@,"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,#10},#10}
|[DONE]"#,
    usage: (3, 2),
};

const COMPLETIONS: Pair = Pair {
    surface: Surface::Completions,
    wire: "completions",
    request: r#"{#60,"prompt" : [ "hi","ho" ],#40,"model" : @,#100}"#,
    streamed: r#"{#60,"prompt":"hi","stream":true,"stream_options":{"include_usage":true},#40,"model":@,#100}"#,
    answer: r#"{"id":"c",#70,"object":"text_completion","created":1,"model":@,"choices":[{"text":"hi","index":0,"logprobs":null,"finish_reason":"stop",#100}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,#30}}"#,
    stream: r#"|{#60,"id":"c","object":"text_completion","created":1,"choices":[{"text":"h","index":0,"finish_reason":null,#40}],"model":@}
|{"id":"c","object":"text_completion","created":1,"choices":[{"text":"","index":0,"finish_reason":"stop",#40}],"model":@,#20}
|{"id":"c","object":"text_completion","created":1,"choices":[],"model":@,"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5},#40}
|[DONE]"#,
    usage: (3, 2),
};

const RESPONSES: Pair = Pair {
    surface: Surface::Responses,
    wire: "responses",
    request: r#"{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi",#30}],#30}],#70,"model":  @,#70}"#,
    streamed: r#"{"input":"hi",#100,"model":@,#100,"stream":true}"#,
    answer: r#"{"id":"resp_1","object":"response","created_at":1,"status":"completed",#80,"model":@,"output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[],#40}],#40}],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5,#40}}"#,
    stream: r#"response.created|{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":@,"output":[],#40},#20}
response.output_item.added|{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[],#20}}
response.some_event_of_tomorrow|{"type":"response.some_event_of_tomorrow","sequence_number":2,#40}
response.output_text.delta|{"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"hi",#20}
response.completed|{"type":"response.completed","sequence_number":4,"response":{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":@,"output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5,#20},#20},#20}"#,
    usage: (3, 2),
};

const MESSAGES: Pair = Pair {
    surface: Surface::Messages,
    wire: "anthropic",
    request: r#"{#60,"max_tokens":1e2,"messages":[{"role":"user","content":[{"type":"text","text":"hi",#40}],#40}],"model":@,#60}"#,
    streamed: r#"{#100,"max_tokens":100,"messages":[{"role":"user","content":"hi"}],"model":@,"stream":  true,#100}"#,
    answer: r#"{#60,"id":"msg_1","type":"message","role":"assistant","model":@,"content":[{"type":"text","text":"hi",#60}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2,#40},#40}"#,
    stream: r#"message_start|{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":@,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1,#20},#40},#20}
content_block_start|{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"",#20}}
event_of_tomorrow|{"type":"event_of_tomorrow",#20}
content_block_delta|{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi",#20},#10}
ping|{"type":"ping",#10}
content_block_stop|{"type":"content_block_stop","index":0,#10}
message_delta|{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,#10},"usage":{"output_tokens":2},#10}
message_stop|{"type":"message_stop",#10}"#,
    usage: (3, 2),
};

/// The path names the model, and the answer's version of it is not the name that was asked for.
const GENERATE: Pair = Pair {
    surface: Surface::Generate,
    wire: "gemini",
    request: r#"{#60,"contents" : [{"role":"user","parts":[{"text":"hi",#40}],#40}],#60}"#,
    streamed: r#"{#100,"contents":[{"role":"user","parts":[{"text":"hi"}]}],#100}"#,
    answer: r#"{#60,"candidates":[{"content":{"parts":[{"text":"hi",#40}],"role":"model"},"finishReason":"STOP","index":0,#40}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5,#20},#40,"modelVersion":@}"#,
    stream: r#"|{#40,"candidates":[{"content":{"parts":[{"text":"h",#40}],"role":"model"},"index":0,#20}],"modelVersion":@}
|{#20,"candidates":[{"content":{"parts":[{"text":"i"}],"role":"model",#20},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5,#20},#40,"modelVersion":@}"#,
    usage: (3, 2),
};

const EMBEDDINGS: Pair = Pair {
    surface: Surface::Embeddings,
    wire: "openai",
    request: r#"{#100,"input":["hi", "ho"],"model":@,#100}"#,
    streamed: "",
    answer: r#"{"object":"list",#80,"data":[{"object":"embedding","index":0,"embedding":[ -0.0, 1.50,1e-400 ],#60}],"model":@,"usage":{"prompt_tokens":3,"total_tokens":3,#60}}"#,
    stream: "",
    usage: (3, 0),
};

const PAIRS: [Pair; 6] = [CHAT, COMPLETIONS, RESPONSES, MESSAGES, GENERATE, EMBEDDINGS];

// === two hundred fields ===

/// Numbers as they fall.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn one_of<'a>(&mut self, these: &[&'a str]) -> &'a str {
        let at = self.throw(these.len() as u64);
        these[usize::try_from(at).unwrap()]
    }
}

const SCALARS: [&str; 26] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-0.0",
    "1.50",
    "1E+2",
    "1e400",
    "0.1e-7",
    "18446744073709551616",
    "123456789012345678901234567890",
    "3.141592653589793238462643383279",
    r#""""#,
    r#""plain""#,
    r#""naïve 世界 🦀""#,
    r#""\u00e9\ud83e\udd80""#,
    r#""a\/b\\c\"d\te\u0000""#,
    r#""half a pair: \ud83e""#,
    r#""{\"model\":\"m\"}""#,
    r#""data: [DONE]\n\nevent: x""#,
    "\"\u{2028}\u{7f}\u{a0}\"",
    r#""model""#,
    "[]",
    "{}",
    r#"[[[[{"a":[{}]}]]]]"#,
];

fn space(dice: &mut Dice, has_lines: bool) -> &'static str {
    dice.one_of(if has_lines {
        &["", "", " ", "  ", "\n", "\r\n\t"]
    } else {
        &["", "", " ", "  ", "\t"]
    })
}

fn value(dice: &mut Dice, depth: u32, has_lines: bool, out: &mut String) {
    if depth == 0 || dice.throw(4) > 0 {
        out.push_str(dice.one_of(&SCALARS));
        return;
    }
    let is_list = dice.throw(2) == 0;
    out.push(if is_list { '[' } else { '{' });
    for n in 0..=dice.throw(3) {
        if n > 0 {
            out.push(',');
        }
        out.push_str(space(dice, has_lines));
        if !is_list {
            // Names that mean something elsewhere mean nothing here.
            let name = dice.one_of(&["model", "usage", "error", "stream", "id", "content", "é", "\\u00e9"]);
            write!(out, "\"{name}{n}\":").unwrap();
        }
        value(dice, depth - 1, has_lines, out);
        out.push_str(space(dice, has_lines));
    }
    out.push(if is_list { ']' } else { '}' });
}

/// Fills a text, once with one name of the model and once with the other.
fn fill(template: &str, dice: &mut Dice, has_lines: bool, models: [&str; 2]) -> [String; 2] {
    let (mut out, mut rest, mut count) = (String::new(), template, 0);
    while let Some((before, after)) = rest.split_once('#') {
        out.push_str(before);
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let fields: u64 = after[..digits].parse().unwrap();
        for n in 0..fields {
            count += 1;
            let comma = if n > 0 { "," } else { "" };
            let (before, after) = (space(dice, has_lines), space(dice, has_lines));
            write!(out, "{comma}{before}\"x_{count}\"{after}:{before}").unwrap();
            value(dice, 3, has_lines, &mut out);
            out.push_str(after);
        }
        rest = &after[digits..];
    }
    out.push_str(rest);
    assert!(count == 200 || !has_lines, "{count} fields: {template}");
    models.map(|model| out.replace('@', model))
}

// === there and back ===

fn wire(pair: &Pair) -> Box<dyn Wire> {
    (WIRES.iter().find(|wire| wire.name == pair.wire).unwrap().make)()
}

fn call(pair: &Pair, body: String, stream: bool) -> Call {
    let path = (pair.surface == Surface::Generate).then(|| FromPath {
        model: CALLED_PLAIN.to_owned(),
        stream,
    });
    Call::read(pair.surface, body.into(), path, Origin::default()).unwrap()
}

/// A name that is spliced in is written as JSON writes it.
fn json(name: &str) -> String {
    serde_json::to_string(name).unwrap()
}

fn sent(pair: &Pair, call: &Call) -> String {
    let terms = Terms {
        now: SystemTime::UNIX_EPOCH,
        on_unsupported: OnUnsupported::Reject,
    };
    let encoded = wire(pair).encode(call, ASKED, &HeaderMap::new(), &terms).unwrap();
    assert!(encoded.notes.is_empty());
    String::from_utf8(encoded.request.into_body().into()).unwrap()
}

fn check_usage(pair: &Pair, usage: Usage) -> Outcome {
    let said = (usage.prompt.unwrap_or_default(), usage.completion.unwrap_or_default());
    prop_assert_eq!((said, usage.estimated), (pair.usage, false));
    Ok(())
}

type Outcome = Result<(), TestCaseError>;

/// Fails with the first place where the two differ, for both are long.
fn same(what: &str, made: &str, wanted: &str) -> Outcome {
    if made == wanted {
        return Ok(());
    }
    let at = made.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
    let near = |text: &str| {
        let bytes = &text.as_bytes()[at.saturating_sub(60)..text.len().min(at + 120)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    let (made, wanted) = (near(made), near(wanted));
    Err(TestCaseError::fail(format!(
        "{what} differs at byte {at}\n- {wanted:?}\n+ {made:?}"
    )))
}

fn whole(pair: &Pair, seed: u64) -> Outcome {
    let mut dice = Dice(seed);
    let [body, wanted] = fill(pair.request, &mut dice, true, [CALLED, &json(ASKED)]);
    let call = call(pair, body, false);
    same("the request", &sent(pair, &call), &wanted)?;

    let [answer, wanted] = fill(pair.answer, &mut dice, true, [ANSWERED, &json(CALLED_PLAIN)]);
    let reply = wire(pair).decode(&call, ASKED, Bytes::from(answer)).unwrap();
    same("the answer", &String::from_utf8_lossy(&reply.body), &wanted)?;
    check_usage(pair, reply.usage)
}

fn stream(pair: &Pair, seed: u64, cuts: &[usize]) -> Outcome {
    let mut dice = Dice(seed);
    let [body, wanted] = fill(pair.streamed, &mut dice, true, [CALLED, &json(ASKED)]);
    let call = call(pair, body, true);
    same("the request", &sent(pair, &call), &wanted)?;

    let models = [ANSWERED, &json(CALLED_PLAIN)];
    let [mut up, mut down] = [String::new(), String::new()];
    for frame in pair.stream.lines() {
        let (name, data) = frame.split_once('|').unwrap();
        let data = fill(data, &mut dice, false, models);
        for (stream, data) in [&mut up, &mut down].into_iter().zip(data) {
            if !name.is_empty() {
                writeln!(stream, "event: {name}").unwrap();
            }
            write!(stream, "data: {data}\n\n").unwrap();
        }
    }
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % up.len()).chain([0, up.len()]).collect();
    cuts.sort_unstable();
    let mut decoder = wire(pair).decoder(&call, ASKED);
    let (mut out, mut ends) = (Vec::new(), Vec::new());
    let mut steps: Vec<_> = cuts
        .windows(2)
        .map(|cut| decoder.push(Bytes::copy_from_slice(&up.as_bytes()[cut[0]..cut[1]])))
        .collect();
    steps.push(decoder.finish());
    for step in steps {
        out.extend(step.out.into_iter().flatten());
        ends.extend(step.end);
    }
    same("the stream", &String::from_utf8_lossy(&out), &down)?;
    prop_assert_eq!(ends, [End::Complete]);
    check_usage(pair, decoder.usage())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, max_shrink_iters: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn chat_arrives(seed: u64, cuts in cuts()) {
        whole(&CHAT, seed)?;
        stream(&CHAT, seed, &cuts)?;
    }

    #[test]
    fn completions_arrive(seed: u64, cuts in cuts()) {
        whole(&COMPLETIONS, seed)?;
        stream(&COMPLETIONS, seed, &cuts)?;
    }

    #[test]
    fn responses_arrive(seed: u64, cuts in cuts()) {
        whole(&RESPONSES, seed)?;
        stream(&RESPONSES, seed, &cuts)?;
    }

    #[test]
    fn messages_arrive(seed: u64, cuts in cuts()) {
        whole(&MESSAGES, seed)?;
        stream(&MESSAGES, seed, &cuts)?;
    }

    #[test]
    fn generate_content_arrives(seed: u64, cuts in cuts()) {
        whole(&GENERATE, seed)?;
        stream(&GENERATE, seed, &cuts)?;
    }

    #[test]
    fn embeddings_arrive(seed: u64) {
        whole(&EMBEDDINGS, seed)?;
    }
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..40_000_usize, 0..40)
}

#[test]
fn there_are_two_hundred_fields_and_they_are_json() {
    for pair in PAIRS {
        for template in [pair.request, pair.streamed, pair.answer] {
            if template.is_empty() {
                continue;
            }
            let [text, _] = fill(template, &mut Dice(7), true, ["1", "2"]);
            let read: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&text);
            assert!(read.is_ok(), "{read:?} {text}");
        }
        let sum: u32 = pair
            .stream
            .split('#')
            .skip(1)
            .map(|after| {
                after
                    .split(|c: char| !c.is_ascii_digit())
                    .next()
                    .unwrap()
                    .parse::<u32>()
                    .unwrap()
            })
            .sum();
        assert!(pair.stream.is_empty() || sum >= 200, "{sum} fields: {:?}", pair.surface);
    }
}
