//! Streams, in and out.

use super::{call, events, origin};
use crate::anthropic::Messages;
use crate::codec::Front;
use crate::ir::{Citation, Delta, Event, Finish, Maker, Seal};
use crate::notes::{Fate, Notes};
use crate::{Call, End};
use proptest::prelude::*;
use serde_json::{Value, json};
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

// === in ===

const STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","model":"claude-x","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"Emwk"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"Hé"}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x","document_index":0,"document_title":"T"}}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: content_block_start
data: {"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":5}

event: content_block_start
data: {"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"toolu_2","name":"g","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":6}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":89}}

event: message_stop
data: {"type":"message_stop"}

"#;

fn delta(part: u32, delta: Delta) -> Event {
    Event::Delta { choice: 0, part, delta }
}

fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

fn thought(text: &str) -> Delta {
    Delta::Thought {
        text: text.to_owned(),
        is_summary: false,
    }
}

fn begins(id: &str) -> Delta {
    Delta::Call {
        id: id.to_owned(),
        name: "f".to_owned(),
        is_custom: false,
    }
}

fn arguments(json: &str) -> Delta {
    Delta::Arguments(json.to_owned())
}

fn seal(maker: Maker) -> Delta {
    Delta::Seal(Seal::new(maker, "sig"))
}

fn ended(part: u32) -> Event {
    Event::End { choice: 0, part }
}

fn finished(finish: Finish) -> Event {
    Event::Finish { choice: 0, finish }
}

#[test]
fn all_that_a_stream_says_becomes_events() {
    let (read, end) = events(STREAM.as_bytes(), &[]);
    let own = |data: &str| Delta::Seal(Seal::new(Maker::Anthropic, data));
    let usage = Usage {
        prompt: Some(15),
        cached: Some(5),
        ..Usage::default()
    };
    let call = |id: &str, name: &str| Delta::Call {
        id: id.to_owned(),
        name: name.to_owned(),
        is_custom: false,
    };
    let citation = Citation {
        title: Some("T".to_owned()),
        quoted: Some("x".to_owned()),
        document: Some(0),
        raw: Some(json!({"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": "T"})),
        ..Citation::default()
    };
    let want = [
        Event::Start {
            id: Some("msg_1".to_owned()),
            model: Some("claude-x".to_owned()),
            usage,
        },
        Event::Ping,
        delta(0, thought("Hm.")),
        delta(0, own("EqQB")),
        ended(0),
        Event::Stranger("content[2]".to_owned()),
        delta(1, Delta::Redacted),
        delta(1, own("Emwk")),
        ended(1),
        delta(2, text("Hé")),
        delta(2, Delta::Citation(citation)),
        ended(2),
        delta(3, call("toolu_1", "f")),
        delta(3, arguments("{\"a\":1}")),
        ended(3),
        delta(4, call("toolu_2", "g")),
        delta(4, arguments("{}")),
        ended(4),
        finished(Finish::ToolCalls),
        Event::Usage(Usage {
            completion: Some(89),
            total: Some(104),
            ..usage
        }),
    ];
    assert_eq!(read, want);
    assert_eq!(end, End::Complete);
}

#[test]
fn failures_and_cuts_are_told() {
    let begun = STREAM.split("event: content_block_start").next().unwrap();
    let half = STREAM.split("event: message_delta").next().unwrap();
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let stray = r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#;
    for (stream, kind) in [
        (error.to_owned(), Kind::ServerError),
        (format!("{begun}{error}"), Kind::ServerError),
        (format!("{half}{error}"), Kind::ServerError),
        (format!("{half}{stray}"), Kind::RateLimit),
        (half.to_owned(), Kind::Cut),
        (begun.to_owned(), Kind::Cut),
        ("data: {oops\n\n".to_owned(), Kind::BadAnswer),
        (String::new(), Kind::Cut),
    ] {
        let (read, end) = events(stream.as_bytes(), &[]);
        assert!(
            matches!(&end, End::Failed(Error { kind: told, .. }) if *told == kind),
            "{end:?}"
        );
        let has_content = read.iter().any(|event| matches!(event, Event::Delta { .. }));
        let guessed = read
            .iter()
            .any(|event| matches!(event, Event::Usage(usage) if usage.estimated));
        assert_eq!(has_content, guessed, "{stream}");
    }
    // The reason for the end is the end.
    let without_stop = STREAM.split("event: message_stop").next().unwrap().trim_end();
    assert_eq!(events(without_stop.as_bytes(), &[]).1, End::Complete);
    // Some say that all is well and not why.
    let without_reason = format!("{half}event: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n");
    let (read, end) = events(without_reason.as_bytes(), &[]);
    assert_eq!((read.last(), end), (Some(&finished(Finish::ToolCalls)), End::Complete));
}

proptest! {
    #[test]
    fn any_split_says_the_same(mut ends in prop::collection::vec(0..STREAM.len(), 0..16), crlf: bool) {
        let stream = if crlf { STREAM.replace('\n', "\r\n") } else { STREAM.to_owned() };
        ends.sort_unstable();
        prop_assert_eq!(events(stream.as_bytes(), &ends), events(STREAM.as_bytes(), &[]));
    }

    #[test]
    fn no_bytes_make_it_fall_over(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0..STREAM.len()) {
        let mut stream = STREAM.as_bytes()[..at].to_vec();
        stream.extend(bytes);
        events(&stream, &[at]);
    }
}

// === out ===

fn asked() -> Call {
    call(&json!({"model": "m", "stream": true, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}))
}

fn streamed(events: Vec<Event>) -> (String, Notes) {
    let mut writer = Front::writer(&Messages, &asked(), "m");
    let (mut out, mut notes) = (Vec::new(), Notes::default());
    for event in events {
        writer.write(event, &mut out, &mut notes);
    }
    writer.finish(&mut out, &mut notes);
    (String::from_utf8(out).unwrap(), notes)
}

/// What a client makes of a stream that follows the rules of the vendor's own: it falls over where one is broken.
fn understood(stream: &str) -> Value {
    let (mut message, mut blocks) = (Value::Null, Vec::<Value>::new());
    let (mut is_open, mut is_over, mut json) = (false, false, String::new());
    for frame in stream.split_terminator("\n\n") {
        assert!(!is_over, "after the end");
        let (event, data) = frame.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(event.strip_prefix("event: ").unwrap(), data["type"]);
        let is_start = data["type"] == "message_start";
        assert_eq!(is_start, message.is_null(), "begins once, and first");
        let index = data["index"].as_u64();
        match data["type"].as_str().unwrap() {
            "message_start" => {
                message = data["message"].clone();
                assert!(message["usage"]["input_tokens"].is_u64() && message["content"] == json!([]));
            }
            "content_block_start" => {
                assert!(!is_open && index == Some(blocks.len() as u64), "{data}");
                is_open = true;
                json.clear();
                blocks.push(data["content_block"].clone());
            }
            "content_block_delta" => {
                assert!(is_open && index == Some(blocks.len() as u64 - 1), "{data}");
                let block = blocks.last_mut().unwrap();
                let piece = &data["delta"];
                let (kind, of) = match piece["type"].as_str().unwrap() {
                    "text_delta" => ("text", "text"),
                    "thinking_delta" => ("thinking", "thinking"),
                    "signature_delta" => {
                        assert_eq!((&block["type"], &block["signature"]), (&json!("thinking"), &json!("")));
                        ("signature", "thinking")
                    }
                    "input_json_delta" => {
                        assert_eq!(block["type"], "tool_use");
                        json.push_str(piece["partial_json"].as_str().unwrap());
                        continue;
                    }
                    "citations_delta" => {
                        assert_eq!(block["type"], "text");
                        block["citations"] = json!([piece["citation"]]);
                        continue;
                    }
                    other => panic!("{other}"),
                };
                assert_eq!(block["type"], of);
                block[kind] = format!("{}{}", block[kind].as_str().unwrap(), piece[kind].as_str().unwrap()).into();
            }
            "content_block_stop" => {
                assert!(is_open && index == Some(blocks.len() as u64 - 1), "{data}");
                is_open = false;
                if !json.is_empty() {
                    let input = serde_json::from_str(&json).unwrap_or_else(|_| json.clone().into());
                    blocks.last_mut().unwrap()["input"] = input;
                }
            }
            "message_delta" => {
                assert!(!is_open);
                message["stop_reason"] = data["delta"]["stop_reason"].clone();
                message["usage"] = data["usage"].clone();
                assert!(message["usage"]["output_tokens"].is_u64());
            }
            "message_stop" => is_over = true,
            "ping" => {}
            other => panic!("{other}"),
        }
    }
    assert!(is_over);
    message["content"] = blocks.into();
    message
}

fn content(events: Vec<Event>) -> Value {
    understood(&streamed(events).0)["content"].clone()
}

#[test]
fn a_stream_that_came_in_goes_out_the_same() {
    let (read, _) = events(STREAM.as_bytes(), &[]);
    let message = understood(&streamed(read).0);
    assert_eq!((&message["id"], &message["model"]), (&json!("msg_1"), &json!("m")));
    assert_eq!(
        message["usage"],
        json!({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 89})
    );
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(
        message["content"],
        json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "Emwk"},
            {"type": "text", "text": "Hé", "citations": [
                {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": "T"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}}
        ])
    );
}

#[test]
fn the_first_frames_are_the_vendors_to_the_letter() {
    let (out, _) = streamed(vec![
        Event::Ping,
        Event::Start {
            id: Some("chatcmpl-1".to_owned()),
            model: Some("gpt".to_owned()),
            usage: Usage::default(),
        },
        Event::Ping,
        delta(0, text("Hi")),
        finished(Finish::Stop),
        Event::Usage(Usage {
            prompt: Some(2623),
            completion: Some(2),
            cached: Some(2603),
            ..Usage::default()
        }),
    ]);
    let want = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_0193f0a0b1c2d3e4f5061728","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":20,"cache_read_input_tokens":2603,"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

"#;
    assert_eq!(out, want);
}

#[test]
fn calls_that_alternate_are_two_calls() {
    let blocks = content(vec![
        delta(0, text("Let me see.")),
        delta(1, begins("a")),
        delta(2, begins("b")),
        delta(1, arguments("{\"x\":")),
        delta(2, arguments("{\"y\":\"}")),
        delta(1, arguments("1}")),
        delta(2, arguments("\"}")),
        delta(3, text("Done.")),
        finished(Finish::ToolCalls),
    ]);
    assert_eq!(
        blocks,
        json!([
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
            {"type": "tool_use", "id": "b", "name": "f", "input": {"y": "}"}},
            {"type": "text", "text": "Done."}
        ])
    );
}

#[test]
fn a_call_that_is_whole_makes_room_at_once() {
    let mut writer = Front::writer(&Messages, &asked(), "m");
    let (mut out, mut notes) = (Vec::new(), Notes::default());
    for event in [
        delta(0, begins("a")),
        delta(0, arguments("{}")),
        delta(1, begins("b")),
        delta(1, arguments("{\"y\"")),
    ] {
        writer.write(event, &mut out, &mut notes);
    }
    assert!(String::from_utf8(out).unwrap().contains(r#""partial_json":"{\"y\"""#));
}

#[test]
fn blocks_without_anything_in_them_are_none() {
    let blocks = content(vec![
        delta(0, thought("Hm.")),
        delta(1, text("")),
        ended(1),
        delta(2, begins("a")),
        finished(Finish::ToolCalls),
    ]);
    let unsigned = json!({"type": "thinking", "thinking": "Hm.", "signature": "sy.none"});
    assert_eq!(
        blocks,
        json!([unsigned, {"type": "tool_use", "id": "a", "name": "f", "input": {}}])
    );
    assert_eq!(content(vec![finished(Finish::Stop)]), json!([]));
}

#[test]
fn seals_find_their_place() {
    for (events, want) in [
        (
            vec![
                delta(0, thought("Hm.")),
                delta(0, seal(Maker::OpenAi)),
                delta(1, text("Hi")),
            ],
            json!([{"type": "thinking", "thinking": "Hm.", "signature": "sy.openai.sig"}, {"type": "text", "text": "Hi"}]),
        ),
        // A thought that is not shown.
        (
            vec![delta(0, thought("")), delta(0, seal(Maker::OpenAi))],
            json!([{"type": "thinking", "thinking": "", "signature": "sy.openai.sig"}]),
        ),
        // Of a call: before it, or behind it where it comes late.
        (
            vec![
                delta(0, begins("a")),
                delta(0, seal(Maker::Gemini)),
                delta(0, arguments("{}")),
            ],
            json!([{"type": "thinking", "thinking": "", "signature": "sy.call.a.sy.gemini.sig"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}}]),
        ),
        (
            vec![
                delta(0, begins("a")),
                delta(0, arguments("{\"x\":1}")),
                delta(0, seal(Maker::Gemini)),
                ended(0),
            ],
            json!([{"type": "thinking", "thinking": "", "signature": "sy.call.a.sy.gemini.sig"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]),
        ),
        (
            vec![
                delta(0, begins("a")),
                delta(0, arguments("{\"x\"")),
                delta(0, arguments(":1}")),
                delta(0, seal(Maker::Gemini)),
                ended(0),
            ],
            json!([{"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                {"type": "thinking", "thinking": "", "signature": "sy.call.a.sy.gemini.sig"}]),
        ),
        // Of a text.
        (
            vec![delta(0, text("Hi")), delta(0, seal(Maker::Gemini))],
            json!([{"type": "text", "text": "Hi"}, {"type": "thinking", "thinking": "", "signature": "sy.gemini.sig"}]),
        ),
    ] {
        assert_eq!(content(events), want);
    }
}

#[test]
fn what_is_no_object_becomes_one() {
    let custom = Delta::Call {
        id: "a".to_owned(),
        name: "f".to_owned(),
        is_custom: true,
    };
    let (out, _) = streamed(vec![
        delta(0, custom),
        delta(0, arguments("a \"b\"\n")),
        delta(0, arguments("c")),
    ]);
    assert_eq!(understood(&out)["content"][0]["input"], json!({"input": "a \"b\"\nc"}));
    assert_eq!(understood(&out)["stop_reason"], "tool_use");
    let (out, notes) = streamed(vec![
        delta(0, begins("a")),
        delta(0, arguments("[1,")),
        delta(0, arguments("2]")),
    ]);
    assert_eq!(understood(&out)["content"][0]["input"], json!({"input": [1, 2]}));
    assert_eq!(super::fields(&notes, Fate::Approximated), ["content", "usage"]);
}

#[test]
fn refusals_and_other_choices() {
    let (out, notes) = streamed(vec![
        delta(0, Delta::Refusal("No.".to_owned())),
        Event::Delta {
            choice: 1,
            part: 0,
            delta: text("other"),
        },
        finished(Finish::Stop),
    ]);
    let message = understood(&out);
    assert_eq!(
        (&message["stop_reason"], &message["content"][0]["text"]),
        (&json!("refusal"), &json!("No."))
    );
    assert_eq!(super::fields(&notes, Fate::Dropped), ["choices"]);
}

/// Some part of an answer.
#[derive(Clone, Debug)]
enum Said {
    Text,
    Thought,
    Call,
}

proptest! {
    /// Whatever parts come, and however the deltas of calls alternate: nothing is lost, mixed or out of order.
    #[test]
    fn nothing_is_lost_or_mixed(
        said in prop::collection::vec(prop_oneof![Just(Said::Text), Just(Said::Thought), Just(Said::Call)], 1..6),
        order in prop::collection::vec(0..6_usize, 0..40),
        ends: bool,
    ) {
        let whole = |part: usize| format!("{{\"n\":\"{part}}}{{\",\"l\":[{part}]}}");
        let mut pieces: Vec<Vec<Event>> = Vec::new();
        for (part, kind) in said.iter().enumerate() {
            let number = u32::try_from(part).unwrap();
            let mut events = Vec::new();
            match kind {
                Said::Text => events.push(delta(number, text(&format!("text {part}")))),
                Said::Thought => events.push(delta(number, thought(&format!("thought {part}")))),
                Said::Call => {
                    events.push(delta(number, begins(&format!("id{part}"))));
                    let json = whole(part);
                    let (one, two) = json.split_at(json.len() / 2);
                    events.extend([delta(number, arguments(one)), delta(number, arguments(two))]);
                }
            }
            if ends {
                events.push(ended(number));
            }
            events.reverse();
            pieces.push(events);
        }
        // Parts begin in their order; what follows comes in any.
        let mut events = Vec::new();
        let mut begun = 0;
        for at in order.into_iter().chain((0..6).flat_map(|part| [part; 4])) {
            if at > begun || at >= pieces.len() {
                continue;
            }
            if let Some(event) = pieces[at].pop() {
                begun = begun.max(at + 1);
                events.push(event);
            }
        }
        events.push(finished(Finish::Stop));
        let message = understood(&streamed(events).0);
        let want: Vec<Value> = said
            .iter()
            .enumerate()
            .map(|(part, kind)| match kind {
                Said::Text => json!({"type": "text", "text": format!("text {part}")}),
                Said::Thought => {
                    json!({"type": "thinking", "thinking": format!("thought {part}"), "signature": "sy.none"})
                }
                Said::Call => {
                    let input: Value = serde_json::from_str(&whole(part)).unwrap();
                    json!({"type": "tool_use", "id": format!("id{part}"), "name": "f", "input": input})
                }
            })
            .collect();
        prop_assert_eq!(&message["content"], &Value::from(want));
    }
}

#[test]
fn a_reader_that_is_done_with_nothing_says_so() {
    let mut reader = crate::codec::Back::reader(&Messages, &origin());
    let mut out = Vec::new();
    assert!(matches!(reader.finish(&mut out), End::Failed(_)));
}
