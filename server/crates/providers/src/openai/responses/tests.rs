use super::{Responses, Sealed, items, merge, read_seal, references, resolve, response_id, write_seal};
use crate::codec::{Ask, Back, Front};
use crate::ir::{
    Answer, Call as CallOf, Choice, Citation, Delta, Effort, Event, Finish, Format, Maker, Message, Part, Prompt, Role,
    Seal, Source, Thought, ToolChoice, ToolKind,
};
use crate::notes::{Fate, Notes};
use crate::openai::OpenAi;
use crate::params::OnUnsupported;
use crate::{Call, End, Origin, Surface, Terms, Wire};
use bytes::Bytes;
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::SystemTime;
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

fn origin() -> Origin {
    Origin {
        id: "0193f0a0-b1c2-7def".into(),
        at: 1_700_000_000,
    }
}

fn call(body: &Value) -> Call {
    let body = Bytes::from(body.to_string());
    Call::read(Surface::Responses, body, None, origin()).unwrap()
}

fn asking(fields: &Value) -> Call {
    let mut body = json!({"model": "m", "input": "hi"});
    for (key, value) in fields.as_object().unwrap() {
        body[key] = value.clone();
    }
    call(&body)
}

fn read(fields: &Value) -> Result<Prompt, Error> {
    Front::read(&Responses, &asking(fields))
}

fn messages(input: &Value) -> Vec<Message> {
    read(&json!({ "input": input })).unwrap().messages
}

fn strangers(prompt: &Prompt) -> Vec<&str> {
    prompt
        .strangers
        .iter()
        .map(|stranger| stranger.field.as_str())
        .collect()
}

// === requests ===

#[test]
fn parameters_are_read_and_what_nobody_else_knows_is_named() {
    let prompt = read(&json!({
        "instructions": "Be brief.",
        "max_output_tokens": 100.0,
        "temperature": 0.5,
        "top_p": 1,
        "top_logprobs": 2,
        "include": ["message.output_text.logprobs", "reasoning.encrypted_content", "file_search_call.results"],
        "reasoning": {"effort": "xhigh", "summary": "detailed"},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"b": 1, "a": 2}, "strict": true}, "verbosity": "low", "x": 1},
        "metadata": {"a": "b"},
        "store": false,
        "service_tier": "flex",
        "user": "ann",
        "safety_identifier": "hash",
        "prompt_cache_key": "k",
        "truncation": "disabled",
        "background": false,
        "parallel_tool_calls": false,
        "previous_response_id": "resp_1",
        "stream_options": {"include_obfuscation": false},
        "conversation": null,
        "new_one": [1],
    }))
    .unwrap();
    assert_eq!(prompt.messages.len(), 2);
    assert_eq!(prompt.messages[0].role, Role::System);
    assert_eq!(prompt.messages[1].parts, [Part::text("hi")]);
    assert_eq!(prompt.max_tokens, Some(100));
    assert_eq!(
        (prompt.sampling.temperature, prompt.sampling.top_p),
        (Some(0.5), Some(1.0))
    );
    assert_eq!(
        (prompt.sampling.logprobs, prompt.sampling.top_logprobs),
        (Some(true), Some(2))
    );
    let reasoning = prompt.reasoning.as_ref().unwrap();
    assert_eq!((reasoning.effort, reasoning.show), (Some(Effort::XHigh), Some(true)));
    let Some(Format::Schema { schema, strict, .. }) = &prompt.format else {
        panic!("{:?}", prompt.format);
    };
    assert_eq!((schema.to_string().as_str(), *strict), (r#"{"b":1,"a":2}"#, Some(true)));
    assert_eq!(prompt.user.as_deref(), Some("hash"));
    assert_eq!((prompt.store, prompt.parallel_tools), (Some(false), Some(false)));
    assert_eq!(
        strangers(&prompt),
        [
            "include[2]",
            "reasoning.summary",
            "text.x",
            "previous_response_id",
            "new_one",
            "user"
        ]
    );
}

#[test]
fn tools_and_their_choice_are_read() {
    let prompt = read(&json!({
        "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true},
            {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}},
            {"type": "web_search", "search_context_size": "low"},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}, {"type": "mcp", "server_label": "s"}]},
    }))
    .unwrap();
    assert!(matches!(
        &prompt.tools[0].kind,
        ToolKind::Function { strict: Some(true), .. }
    ));
    let ToolKind::Custom(custom) = &prompt.tools[1].kind else {
        panic!("{:?}", prompt.tools[1]);
    };
    assert_eq!(custom.format.as_ref().unwrap()["syntax"], "lark");
    assert!(matches!(&prompt.tools[2].kind, ToolKind::Vendors(stranger) if stranger.field == "tools[2]"));
    let among = ToolChoice::Among {
        names: vec!["f".to_owned()],
        required: true,
    };
    assert_eq!(prompt.tool_choice, Some(among));
    assert_eq!(strangers(&prompt), ["tool_choice.tools[1]"]);
    for (choice, want) in [
        (json!("auto"), Some(ToolChoice::Auto)),
        (json!("none"), Some(ToolChoice::None)),
        (json!("required"), Some(ToolChoice::Required)),
        (
            json!({"type": "function", "name": "f"}),
            Some(ToolChoice::Named("f".to_owned())),
        ),
        (
            json!({"type": "custom", "name": "c"}),
            Some(ToolChoice::Named("c".to_owned())),
        ),
        (json!({"type": "web_search"}), None),
    ] {
        assert_eq!(
            read(&json!({ "tool_choice": choice })).unwrap().tool_choice,
            want,
            "{choice}"
        );
    }
}

#[test]
fn items_of_one_turn_are_one_message() {
    let said = messages(&json!([
        {"role": "developer", "content": "d"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
            {"type": "input_image", "image_url": "https://x/y.png"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"},
            {"type": "input_file", "file_id": "file-1"},
            {"type": "input_audio", "input_audio": {"data": "CCCC", "format": "mp3"}},
        ]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}], "content": null, "encrypted_content": "gAAA"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "ok", "annotations": [], "logprobs": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "g", "input": "free"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "2"}, {"type": "input_image", "image_url": "https://x/z.png"}]},
        {"role": "assistant", "content": "one"},
        {"role": "assistant", "content": "two"},
    ]));
    let roles: Vec<_> = said.iter().map(|message| message.role).collect();
    let want = [
        Role::Developer,
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
        Role::Assistant,
    ];
    assert_eq!(roles, want);
    assert_eq!(said[1].parts.len(), 6);
    let Part::Image(image) = &said[1].parts[1] else {
        panic!("{:?}", said[1]);
    };
    let png = Source::Data {
        media_type: "image/png".to_owned(),
        base64: "AAAA".to_owned(),
    };
    assert_eq!((&image.source, image.detail.as_deref()), (&png, Some("low")));
    let thought = Thought {
        text: "a\n\nb".to_owned(),
        is_summary: true,
        seal: Some(Seal::new(Maker::OpenAi, "gAAA")),
        is_redacted: false,
    };
    assert_eq!(said[2].parts[0], Part::Thought(thought));
    assert_eq!(said[2].parts.len(), 4);
    let Part::Result(result) = &said[3].parts[1] else {
        panic!("{:?}", said[3]);
    };
    assert_eq!(
        (result.name.as_deref(), result.parts.len(), result.is_custom),
        (Some("g"), 2, true)
    );
}

#[test]
fn what_only_the_vendor_does_is_a_stranger() {
    let prompt = read(&json!({"input": [
        {"role": "user", "content": [{"type": "input_text", "text": "a", "cache_control": {}}, {"type": "input_video", "x": 1}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "role": "assistant", "content": "b", "phase": "commentary"},
    ]}))
    .unwrap();
    assert!(
        matches!(&prompt.messages[0].parts[1], Part::Stranger(stranger) if stranger.field == "input[0].content[1]")
    );
    assert_eq!(
        strangers(&prompt),
        ["input[0].content[0].cache_control", "input[1]", "input[2].phase"]
    );
}

#[test]
fn what_makes_no_sense_is_refused_by_its_name() {
    for (fields, field) in [
        (json!({"input": 7}), "input"),
        (json!({"input": []}), "input"),
        (json!({"input": null}), "input"),
        (json!({"input": ["a"]}), "input[0]"),
        (json!({"input": [{"type": 5}]}), "input[0].type"),
        (json!({"input": [{}]}), "input[0].type"),
        (json!({"input": [{"role": "robot", "content": "a"}]}), "input[0].role"),
        (json!({"input": [{"role": "user"}]}), "input[0].content"),
        (
            json!({"input": [{"role": "user", "content": [{}]}]}),
            "input[0].content[0].type",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}),
            "input[0].content[0].text",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png,x"}]}]}),
            "input[0].content[0].image_url",
        ),
        (
            json!({"input": [{"type": "function_call", "name": "f"}]}),
            "input[0].call_id",
        ),
        (
            json!({"input": [{"type": "function_call_output", "call_id": "c"}]}),
            "input[0].output",
        ),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"max_output_tokens": -1}), "max_output_tokens"),
        (json!({"max_output_tokens": 1.5}), "max_output_tokens"),
        (json!({"tools": {}}), "tools"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].name"),
        (json!({"tools": [{}]}), "tools[0].type"),
        (json!({"tool_choice": "some"}), "tool_choice"),
        (json!({"tool_choice": {}}), "tool_choice"),
        (json!({"text": {"format": {"type": "xml"}}}), "text.format.type"),
        (
            json!({"text": {"format": {"type": "json_schema"}}}),
            "text.format.schema",
        ),
        (json!({"reasoning": {"effort": "much"}}), "reasoning.effort"),
        (json!({"include": [1]}), "include[0]"),
        (json!({"metadata": "a"}), "metadata"),
    ] {
        let error = read(&fields).unwrap_err();
        assert_eq!(
            (error.kind, error.param.as_deref()),
            (Kind::InvalidRequest, Some(field)),
            "{fields}"
        );
        assert!(error.message.contains(field), "{}", error.message);
    }
    for (fields, field) in [
        (json!({"background": true}), "background"),
        (json!({"conversation": "conv_1"}), "conversation"),
        (json!({"prompt": {"id": "pmpt_1"}}), "prompt"),
        (
            json!({"input": [{"type": "item_reference", "id": "msg_1"}]}),
            "input[0]",
        ),
        (json!({"input": [{"id": "msg_1"}]}), "input[0]"),
    ] {
        let error = read(&fields).unwrap_err();
        assert_eq!(
            (error.kind, error.param.as_deref()),
            (Kind::Unsupported, Some(field)),
            "{fields}"
        );
    }
}

// === answers ===

fn whole(answer: Answer, call: &Call) -> (Value, Notes) {
    let mut notes = Notes::default();
    let body = Front::write(&Responses, answer, call, &mut notes);
    (serde_json::from_slice(&body).unwrap(), notes)
}

fn thought(text: &str, is_summary: bool, seal: Option<Seal>) -> Part {
    Part::Thought(Thought {
        text: text.to_owned(),
        is_summary,
        is_redacted: text.is_empty(),
        seal,
    })
}

fn tool_call(id: &str, name: &str, arguments: &str, seal: Option<Seal>) -> Part {
    Part::Call(CallOf {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        seal,
        ..CallOf::default()
    })
}

fn rich() -> Answer {
    Answer {
        choices: vec![Choice {
            parts: vec![
                thought("hmm", false, Some(Seal::new(Maker::Anthropic, "sig=="))),
                thought("", false, Some(Seal::new(Maker::Anthropic, "dark"))),
                Part::text("Let me see."),
                tool_call("toolu_01", "f", r#"{"a":1}"#, Some(Seal::new(Maker::Gemini, "th=="))),
                tool_call("functions.g:1", "g", "{}", None),
            ],
            finish: Finish::ToolCalls,
            logprobs: None,
        }],
        usage: Usage {
            prompt: Some(10),
            completion: Some(5),
            cached: Some(4),
            reasoning: Some(2),
            ..Usage::default()
        },
        ..Answer::default()
    }
}

/// The same, step by step, without ends but for the choice's.
fn rich_events() -> Vec<Event> {
    let delta = |part, delta| Event::Delta { choice: 0, part, delta };
    let begun = |id: &str, name: &str| Delta::Call {
        id: id.to_owned(),
        name: name.to_owned(),
        is_custom: false,
    };
    let said = |text: &str| Delta::Thought {
        text: text.to_owned(),
        is_summary: false,
    };
    let more = |text: &str| Delta::Arguments(text.to_owned());
    vec![
        Event::Start {
            id: None,
            model: None,
            usage: Usage::default(),
        },
        delta(0, said("h")),
        delta(0, said("mm")),
        delta(0, Delta::Seal(Seal::new(Maker::Anthropic, "sig=="))),
        delta(1, Delta::Redacted),
        delta(1, Delta::Seal(Seal::new(Maker::Anthropic, "dark"))),
        Event::Ping,
        delta(2, Delta::Text("Let me".to_owned())),
        delta(2, Delta::Text(" see.".to_owned())),
        delta(3, begun("toolu_01", "f")),
        delta(4, begun("functions.g:1", "g")),
        delta(3, more(r#"{"a""#)),
        delta(4, more("")),
        delta(3, more(":1}")),
        delta(3, Delta::Seal(Seal::new(Maker::Gemini, "th=="))),
        Event::Finish {
            choice: 0,
            finish: Finish::ToolCalls,
        },
        Event::Usage(rich().usage),
    ]
}

fn stream(events: Vec<Event>, call: &Call) -> (Vec<Value>, Notes) {
    let mut writer = Front::writer(&Responses, call, &call.model);
    let (mut out, mut notes) = (Vec::new(), Notes::default());
    for event in events {
        writer.write(event, &mut out, &mut notes);
    }
    writer.finish(&mut out, &mut notes);
    let text = String::from_utf8(out).unwrap();
    let frames = text.split("\n\n").filter(|frame| !frame.is_empty()).map(|frame| {
        let (event, data) = frame.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], event);
        data
    });
    (frames.collect(), notes)
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    kinds.map(|kind| kind.strip_prefix("response.").unwrap()).collect()
}

#[test]
fn an_answer_has_every_field_that_the_vendors_has() {
    let call = asking(&json!({
        "instructions": "Be brief.", "temperature": 0.2, "store": false, "metadata": {"a": "b"},
        "reasoning": {"effort": "low"}, "tools": [{"type": "function", "name": "f"}],
    }));
    let (answer, notes) = whole(rich(), &call);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(
        answer,
        json!({
            "id": "resp_0193f0a0b1c27def", "object": "response", "created_at": 1_700_000_000, "status": "completed",
            "background": false, "completed_at": null, "error": null, "frequency_penalty": 0.0, "incomplete_details": null,
            "instructions": "Be brief.", "max_output_tokens": null, "max_tool_calls": null, "model": "m",
            "output": [
                {"id": "rs_sy0193f0a0b1c27def_0", "type": "reasoning", "summary": [],
                 "content": [{"type": "reasoning_text", "text": "hmm"}], "encrypted_content": "sy.anthropic.sig=="},
                {"id": "rs_sy0193f0a0b1c27def_1", "type": "reasoning", "summary": [],
                 "encrypted_content": "sy.redacted.sy.anthropic.dark"},
                {"id": "msg_sy0193f0a0b1c27def_2", "type": "message", "status": "completed", "role": "assistant",
                 "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Let me see."}]},
                {"id": "fc_sy0193f0a0b1c27def_3", "type": "function_call", "status": "completed", "arguments": "{\"a\":1}",
                 "call_id": "toolu_01", "name": "f"},
                {"id": "rs_sy0193f0a0b1c27def_4", "type": "reasoning", "summary": [],
                 "encrypted_content": "sy.call.toolu_01:sy.gemini.th=="},
                {"id": "fc_sy0193f0a0b1c27def_5", "type": "function_call", "status": "completed", "arguments": "{}",
                 "call_id": crate::ids::fitting("functions.g:1", 64), "name": "g"},
            ],
            "parallel_tool_calls": true, "presence_penalty": 0.0, "previous_response_id": null, "prompt_cache_key": null,
            "prompt_cache_retention": null, "reasoning": {"effort": "low", "summary": null}, "safety_identifier": null,
            "service_tier": null, "store": false, "temperature": 0.2,
            "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto",
            "tools": [{"type": "function", "name": "f"}], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled",
            "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}, "output_tokens": 5,
                      "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15},
            "user": null, "metadata": {"a": "b"},
        })
    );
    assert_eq!(response_id(&call.origin), answer["id"].as_str().unwrap());
}

#[test]
fn a_plain_stream_is_the_vendors_event_by_event() {
    let delta = |text: &str| Event::Delta {
        choice: 0,
        part: 0,
        delta: Delta::Text(text.to_owned()),
    };
    let finish = Event::Finish {
        choice: 0,
        finish: Finish::Length,
    };
    let (events, _) = stream(vec![delta("Hel"), delta("lo"), finish], &asking(&json!({})));
    assert_eq!(
        kinds(&events),
        [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "incomplete",
        ]
    );
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    assert_eq!(events[0]["response"]["status"], "in_progress");
    assert_eq!(
        events[4],
        json!({
            "type": "response.output_text.delta", "sequence_number": 4, "item_id": "msg_sy0193f0a0b1c27def_0",
            "output_index": 0, "content_index": 0, "delta": "Hel", "logprobs": [],
        })
    );
    assert_eq!(events[8]["item"]["status"], "incomplete");
    let last = &events[9]["response"];
    assert_eq!(last["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!(last["output"][0]["content"][0]["text"], "Hello");
}

#[test]
fn a_stream_ends_with_the_whole_answer_whatever_came_between() {
    let call = asking(&json!({}));
    let (events, notes) = stream(rich_events(), &call);
    assert!(notes.is_empty(), "{notes:?}");
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    let mut answer = whole(rich(), &call).0;
    // Two calls side by side: the first one's seal comes behind both.
    let (streamed, output) = (last["response"]["output"].clone(), answer["output"].take());
    let mut left: Vec<Value> = serde_json::from_value(streamed).unwrap();
    let mut right: Vec<Value> = serde_json::from_value(output).unwrap();
    for item in left.iter_mut().chain(&mut right) {
        item["id"] = json!(null);
    }
    right.swap(4, 5);
    assert_eq!(left, right);
    // Every item begins once and ends once, and its deltas make its whole.
    for index in 0..left.len() {
        let of = |kind: &str| {
            let is_it = |event: &&Value| event["type"] == kind && event["output_index"] == index;
            events.iter().filter(is_it).collect::<Vec<_>>()
        };
        let (added, done) = (of("response.output_item.added"), of("response.output_item.done"));
        assert_eq!((added.len(), done.len()), (1, 1), "{index}");
        assert_eq!(added[0]["item"]["id"], done[0]["item"]["id"]);
        assert_eq!(&done[0]["item"], &last["response"]["output"][index]);
        let arguments: String = of("response.function_call_arguments.delta")
            .iter()
            .map(|event| event["delta"].as_str().unwrap())
            .collect();
        if index == 3 {
            assert_eq!(arguments, r#"{"a":1}"#);
        }
    }
}

#[test]
fn summaries_are_told_as_the_vendor_tells_them() {
    let call = asking(&json!({"reasoning": {"summary": "auto"}}));
    let (events, _) = stream(rich_events().into_iter().take(4).collect(), &call);
    assert_eq!(
        kinds(&events)[2..],
        [
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
            "completed",
        ]
    );
    let item = &events[8]["item"];
    assert_eq!(item["summary"], json!([{"type": "summary_text", "text": "hmm"}]));
    assert_eq!(item["encrypted_content"], "sy.anthropic.sig==");
}

#[test]
fn the_next_turn_brings_back_what_the_answer_said() {
    let call = asking(&json!({}));
    let (answer, _) = whole(rich(), &call);
    let said = messages(&answer["output"]);
    assert_eq!(said.len(), 1);
    let mut want = rich().choices.remove(0).parts;
    // An id that the vendor would not take has become one that it takes.
    if let Some(Part::Call(call)) = want.last_mut() {
        call.id = crate::ids::fitting(&call.id, 64).into_owned();
    }
    assert_eq!(said[0].parts, want);
    // The stream's too, and without ids.
    let (events, _) = stream(rich_events(), &call);
    let mut output = events.last().unwrap()["response"]["output"].clone();
    for item in output.as_array_mut().unwrap() {
        item.as_object_mut().unwrap().shift_remove("id");
    }
    assert_eq!(messages(&output)[0].parts, want);
}

#[test]
fn seals_keep_what_they_are() {
    for maker in [Maker::OpenAi, Maker::Anthropic, Maker::Gemini] {
        for is_redacted in [false, true] {
            let seal = Seal::new(maker, "a:b=");
            let again = read_seal(&write_seal(&seal, is_redacted));
            let is_redacted = is_redacted && maker != Maker::OpenAi;
            assert_eq!(again, Sealed::Thought { seal, is_redacted });
        }
    }
}

#[test]
fn citations_logprobs_and_refusals_are_written() {
    let call = asking(&json!({"include": ["message.output_text.logprobs"]}));
    let token = json!({"token": "é", "logprob": -0.1, "bytes": [195, 169], "top_logprobs": []});
    let delta = |part, delta| Event::Delta { choice: 0, part, delta };
    let citation = Citation {
        url: Some("https://x".to_owned()),
        title: Some("X".to_owned()),
        ..Citation::default()
    };
    let logprobs = Event::Logprobs {
        choice: 0,
        value: json!({"content": [token], "refusal": null}),
    };
    let (events, notes) = stream(
        vec![
            delta(0, Delta::Citation(citation.clone())),
            delta(0, Delta::Text("é".to_owned())),
            logprobs,
            delta(0, Delta::Citation(citation)),
            delta(0, Delta::Text("a".to_owned())),
            delta(1, Delta::Refusal("No.".to_owned())),
            Event::Finish {
                choice: 0,
                finish: Finish::Refusal,
            },
        ],
        &call,
    );
    assert_eq!(
        kinds(&events)[2..],
        [
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.annotation.added",
            "output_text.done",
            "content_part.done",
            "content_part.added",
            "refusal.delta",
            "refusal.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ]
    );
    assert_eq!(events[4]["logprobs"], json!([token]));
    assert_eq!(events[6]["annotation"]["end_index"], 2);
    assert_eq!(events[7]["logprobs"], json!([token]));
    assert_eq!(notes.count(Fate::Dropped), 1);
}

#[test]
fn ends_are_told_by_status_and_reason() {
    for (finish, parts, status, reason) in [
        (Finish::Stop, vec![Part::text("a")], "completed", json!(null)),
        (
            Finish::Length,
            vec![Part::text("a")],
            "incomplete",
            json!("max_output_tokens"),
        ),
        (Finish::ContentFilter, vec![], "incomplete", json!("content_filter")),
        (
            Finish::Refusal,
            vec![Part::Refusal("no".into())],
            "completed",
            json!(null),
        ),
        (
            Finish::Refusal,
            vec![Part::text("a")],
            "incomplete",
            json!("content_filter"),
        ),
        (
            Finish::Pause,
            vec![Part::text("a")],
            "incomplete",
            json!("max_output_tokens"),
        ),
        (Finish::Other("x".into()), vec![], "completed", json!(null)),
    ] {
        let answer = Answer {
            choices: vec![Choice {
                parts,
                finish: finish.clone(),
                logprobs: None,
            }],
            ..Answer::default()
        };
        let (answer, _) = whole(answer, &asking(&json!({})));
        assert_eq!(answer["status"], status, "{finish:?}");
        assert_eq!(answer["incomplete_details"]["reason"], reason, "{finish:?}");
        assert_eq!(answer["usage"], json!(null));
    }
}

// === the back ===

fn sent(prompt: &Prompt, surface: Surface) -> (Value, Notes) {
    let ask = Ask {
        model: "gpt-5",
        surface,
        stream: true,
    };
    let mut notes = Notes::default();
    let body = Back::write(&Responses, prompt, &ask, &mut notes).unwrap();
    (serde_json::from_slice(&body).unwrap(), notes)
}

#[test]
fn a_request_written_says_what_was_read() {
    let fields = json!({
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"},
            ]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}], "encrypted_content": "gAAA"},
            {"type": "reasoning", "summary": [], "encrypted_content": "sy.anthropic.sig"},
            {"role": "assistant", "content": "ok"},
            {"type": "function_call", "call_id": "toolu:1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "toolu:1", "output": "1"},
        ],
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object"}},
            {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "d"}},
        ],
        "tool_choice": {"type": "custom", "name": "c"},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "reasoning": {"effort": "high", "summary": "auto"},
        "top_logprobs": 2,
        "seed": 1,
        "truncation": "auto",
    });
    let prompt = read(&fields).unwrap();
    let (body, notes) = sent(&prompt, Surface::Responses);
    let id = crate::ids::fitting("toolu:1", 64);
    assert_eq!(
        body,
        json!({
            "model": "gpt-5",
            "input": [
                {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"},
                ]},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}], "encrypted_content": "gAAA"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
                {"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": id, "output": "1"},
            ],
            "tools": [
                {"type": "function", "name": "f", "parameters": {"type": "object"}},
                {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "d"}},
            ],
            "tool_choice": {"type": "custom", "name": "c"},
            "text": {"format": {"type": "json_object"}, "verbosity": "low"},
            "reasoning": {"effort": "high", "summary": "auto"},
            "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
            "top_logprobs": 2,
            "store": false,
            "stream": true,
            "seed": 1,
            "truncation": "auto",
        })
    );
    // The other maker's thought.
    assert_eq!(notes.count(Fate::Dropped), 1, "{notes:?}");
    let (body, _) = sent(&prompt, Surface::Chat);
    assert_eq!(body["tools"][0]["strict"], false);
}

const ANSWER: &str = r#"{"id":"resp_1","object":"response","created_at":1700000001,"status":"completed","error":null,"incomplete_details":null,"model":"gpt-5-2025","output":[{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"gAAA"},{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi é","annotations":[{"type":"url_citation","url":"https://x","title":"X","start_index":0,"end_index":2}],"logprobs":[{"token":"Hi","logprob":-0.1,"bytes":[72,105],"top_logprobs":[]}]}]},{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f","arguments":"{\"a\":1}"},{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"g","arguments":"{}"}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15},"service_tier":"default"}"#;

const STREAM: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"in_progress\",\"model\":\"gpt-5-2025\",\"output\":[]}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]}}\n\n",
    "data: {\"type\":\"response.reasoning_summary_part.added\",\"output_index\":0,\"summary_index\":0,\"part\":{\"type\":\"summary_text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"summary_index\":0,\"delta\":\"a\"}\n\n",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"summary_index\":1,\"delta\":\"b\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"a\"},{\"type\":\"summary_text\",\"text\":\"b\"}],\"encrypted_content\":\"gAAA\"}}\n\n",
    ": keepalive\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"content\":[]}}\n\n",
    "data: {\"type\":\"response.content_part.added\",\"output_index\":1,\"content_index\":0,\"part\":{\"type\":\"output_text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"content_index\":0,\"delta\":\"Hi\",\"logprobs\":[{\"token\":\"Hi\",\"logprob\":-0.1,\"bytes\":[72,105],\"top_logprobs\":[]}]}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"content_index\":0,\"delta\":\" é\",\"logprobs\":[]}\n\n",
    "data: {\"type\":\"response.output_text.annotation.added\",\"output_index\":1,\"content_index\":0,\"annotation\":{\"type\":\"url_citation\",\"url\":\"https://x\",\"title\":\"X\",\"start_index\":0,\"end_index\":2}}\n\n",
    "data: {\"type\":\"response.output_text.done\",\"output_index\":1,\"content_index\":0,\"text\":\"Hi é\"}\n\n",
    "data: {\"type\":\"response.content_part.done\",\"output_index\":1,\"content_index\":0,\"part\":{}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":2,\"item\":{\"id\":\"fc_1\",\"type\":\"function_call\",\"call_id\":\"call_1\",\"name\":\"f\",\"arguments\":\"\"}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":3,\"item\":{\"id\":\"fc_2\",\"type\":\"function_call\",\"call_id\":\"call_2\",\"name\":\"g\",\"arguments\":\"\"}}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":2,\"delta\":\"{\\\"a\\\"\"}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":3,\"delta\":\"{}\"}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":2,\"delta\":\":1}\"}\n\n",
);

fn whole_stream() -> String {
    let last = json!({"type": "response.completed", "response": serde_json::from_str::<Value>(ANSWER).unwrap()});
    format!("{STREAM}event: response.completed\ndata: {last}\n\n")
}

/// The parts that events make.
fn gather(events: &[Event]) -> (Vec<Part>, Vec<Finish>, Vec<Usage>) {
    let (mut parts, mut finishes, mut usages): (Vec<Part>, _, _) = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::Delta { part, delta, .. } => {
                let at = usize::try_from(*part).unwrap();
                assert!(at <= parts.len(), "a gap: {events:?}");
                if at == parts.len() {
                    parts.push(match delta {
                        Delta::Text(_) => Part::text(""),
                        Delta::Refusal(_) => Part::Refusal(String::new()),
                        Delta::Thought { is_summary, .. } => Part::Thought(Thought {
                            is_summary: *is_summary,
                            ..Thought::default()
                        }),
                        Delta::Redacted => Part::Thought(Thought {
                            is_redacted: true,
                            ..Thought::default()
                        }),
                        Delta::Call { id, name, is_custom } => Part::Call(CallOf {
                            id: id.clone(),
                            name: name.clone(),
                            is_custom: *is_custom,
                            ..CallOf::default()
                        }),
                        other => panic!("{other:?} begins nothing"),
                    });
                }
                match (&mut parts[at], delta) {
                    (Part::Text { text, .. } | Part::Refusal(text), Delta::Text(piece) | Delta::Refusal(piece)) => {
                        text.push_str(piece);
                    }
                    (Part::Text { citations, .. }, Delta::Citation(citation)) => citations.push(citation.clone()),
                    (Part::Thought(thought), Delta::Thought { text, .. }) => thought.text.push_str(text),
                    (Part::Thought(thought), Delta::Seal(seal)) => thought.seal = Some(seal.clone()),
                    (Part::Call(call), Delta::Arguments(text)) => call.arguments.push_str(text),
                    _ => {}
                }
            }
            Event::Finish { finish, .. } => finishes.push(finish.clone()),
            Event::Usage(usage) => usages.push(*usage),
            _ => {}
        }
    }
    (parts, finishes, usages)
}

fn read_stream(pieces: impl IntoIterator<Item = Bytes>) -> (Vec<Event>, End) {
    let mut reader = Responses.reader(&origin());
    let mut events = Vec::new();
    let mut end = None;
    for piece in pieces {
        end = end.or(reader.push(piece, &mut events));
    }
    let end = end.unwrap_or_else(|| reader.finish(&mut events));
    (events, end)
}

#[test]
fn a_stream_and_a_whole_answer_say_the_same() {
    let answer = Back::read(&Responses, ANSWER.as_bytes(), &origin()).unwrap();
    let choice = &answer.choices[0];
    assert_eq!(choice.finish, Finish::ToolCalls);
    assert_eq!(choice.parts.len(), 4);
    assert_eq!((answer.usage.cached, answer.usage.cache_write), (Some(4), Some(3)));
    assert_eq!(choice.logprobs.as_ref().unwrap()["content"][0]["token"], "Hi");
    let last = json!({"type": "response.completed", "response": serde_json::from_str::<Value>(ANSWER).unwrap()});
    // As it comes; without a blank line at its end; and with nothing but the last event.
    for text in [
        whole_stream(),
        whole_stream().trim_end().to_owned(),
        format!("data: {last}\n\n"),
    ] {
        let (events, end) = read_stream([Bytes::from(text)]);
        assert_eq!(end, End::Complete);
        let (parts, finishes, usages) = gather(&events);
        assert_eq!(parts, choice.parts);
        assert_eq!((finishes, usages), (vec![Finish::ToolCalls], vec![answer.usage]));
    }
    let (events, _) = read_stream([Bytes::from(whole_stream())]);
    assert!(events.iter().any(|event| matches!(event, Event::Logprobs { .. })));
}

#[test]
fn failures_are_failures_wherever_they_stand() {
    let wrong = |kind: Kind, text: &str| {
        let (_, end) = read_stream([Bytes::from(text.to_owned())]);
        let End::Failed(error) = end else {
            panic!("{text}");
        };
        assert_eq!(error.kind, kind, "{text}: {error:?}");
        let call = asking(&json!({"stream": true}));
        let wire = OpenAi::new("http://x", None, &[])
            .unwrap()
            .serving(&[Surface::Responses]);
        let mut decoder = wire.decoder(&call, "m");
        let mut progress = decoder.push(Bytes::from(text.to_owned()));
        if progress.end.is_none() {
            progress = decoder.finish();
        }
        assert_eq!(progress.end, Some(End::Failed(error)), "{text}");
    };
    wrong(Kind::Cut, STREAM);
    wrong(Kind::Cut, "");
    wrong(Kind::Cut, "data: [DONE]\n\n");
    let (_, end) = read_stream([Bytes::from_static(b"data: {oops\n\n")]);
    assert!(matches!(end, End::Failed(error) if error.kind == Kind::BadAnswer));
    wrong(
        Kind::RateLimit,
        "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null,\"sequence_number\":3}\n\n",
    );
    wrong(
        Kind::ServerError,
        "data: {\"type\":\"error\",\"error\":{\"type\":\"server_error\",\"message\":\"x\"}}\n\n",
    );
    wrong(
        Kind::ContextLength,
        "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"long\"}}}\n\n",
    );
    wrong(
        Kind::Refused,
        "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"invalid_prompt\",\"message\":\"no\"}}}\n\n",
    );
    wrong(Kind::ServerError, "data: {\"error\":{\"message\":\"x\"}}\n\n");
    wrong(Kind::ServerError, "{\"error\":{\"message\":\"x\"}}");
    for (body, kind) in [
        (
            r#"{"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}"#,
            Kind::ServerError,
        ),
        (r#"{"error":{"code":"insufficient_quota","message":"x"}}"#, Kind::Quota),
        ("{}", Kind::BadAnswer),
        ("[]", Kind::BadAnswer),
        ("<html>", Kind::BadAnswer),
    ] {
        let error = Back::read(&Responses, body.as_bytes(), &origin()).unwrap_err();
        assert_eq!(error.kind, kind, "{body}");
        let relayed = super::relay(&asking(&json!({})), "m", &Bytes::from(body)).unwrap_err();
        assert_eq!((relayed.kind, relayed.status), (kind, Some(200)), "{body}");
    }
}

// === relayed ===

fn wire() -> OpenAi {
    OpenAi::new("http://x", None, &[])
        .unwrap()
        .serving(&[Surface::Responses])
}

#[test]
fn a_whole_answer_is_relayed_under_the_callers_name_of_the_model() {
    let call = asking(&json!({}));
    let reply = wire().decode(&call, "gpt-5", Bytes::from(ANSWER)).unwrap();
    assert_eq!(reply.body, ANSWER.replace("gpt-5-2025", "m").as_str());
    assert_eq!((reply.usage.prompt, reply.usage.reasoning), (Some(10), Some(2)));
    let same = wire().decode(&call, "m", Bytes::from(ANSWER)).unwrap();
    assert_eq!(same.body, ANSWER);
}

fn relayed(pieces: impl IntoIterator<Item = Bytes>, model: &str) -> (Vec<u8>, Option<End>, Usage) {
    let call = asking(&json!({"stream": true}));
    let mut decoder = wire().decoder(&call, model);
    let (mut out, mut end) = (Vec::new(), None);
    let mut has_content = false;
    for piece in pieces {
        let progress = decoder.push(piece);
        has_content |= progress.content;
        out.extend(progress.out.concat());
        end = end.or(progress.end);
    }
    if end.is_none() {
        let progress = decoder.finish();
        out.extend(progress.out.concat());
        end = progress.end;
    }
    assert!(has_content);
    (out, end, decoder.usage())
}

#[test]
fn a_stream_is_relayed_as_it_came_but_for_the_models_name() {
    let text = whole_stream();
    let (out, end, usage) = relayed([Bytes::from(text.clone())], "m");
    assert_eq!(String::from_utf8(out).unwrap(), text);
    assert_eq!(end, Some(End::Complete));
    assert_eq!(
        (usage.prompt, usage.cached, usage.estimated),
        (Some(10), Some(4), false)
    );
    let (out, ..) = relayed([Bytes::from(text.clone())], "gpt-5");
    assert_eq!(String::from_utf8(out).unwrap(), text.replace("gpt-5-2025", "m"));
}

#[test]
fn reasoning_of_other_vendors_does_not_go_to_this_one() {
    let thought = |id: &str| json!({"type": "reasoning", "id": id, "summary": []});
    let sealed = json!({"type": "reasoning", "summary": [], "encrypted_content": "sy.anthropic.x"});
    let (own, said) = (
        thought("rs_123"),
        json!({"role": "user", "content": "\"rs_sy and \"sy."}),
    );
    for (input, want) in [
        (json!([said]), json!([said])),
        (json!([thought("rs_sy1_0"), said]), json!([said])),
        (json!([said, thought("rs_sy1_0")]), json!([said])),
        (
            json!([said, sealed, thought("rs_sy1_0"), own, sealed]),
            json!([said, own]),
        ),
        (json!([sealed, said, sealed, sealed, said]), json!([said, said])),
        (json!([sealed, sealed]), json!([])),
    ] {
        let call = asking(&json!({ "input": input }));
        let terms = Terms {
            now: SystemTime::UNIX_EPOCH,
            on_unsupported: OnUnsupported::Warn,
        };
        let encoded = wire().encode(&call, "m", &HeaderMap::new(), &terms).unwrap();
        let sent: Value = serde_json::from_slice(encoded.request.body()).unwrap();
        assert_eq!(sent["input"], want, "{input}");
    }
}

proptest! {
    #[test]
    fn no_split_changes_what_a_stream_says(cuts in prop::collection::vec(0_usize..6000, 0..12), renamed: bool) {
        let text = Bytes::from(whole_stream());
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|pair| text.slice(pair[0]..pair[1])).collect();
        prop_assert_eq!(read_stream(pieces.clone()), read_stream([text.clone()]));
        let model = if renamed { "gpt-5" } else { "m" };
        prop_assert_eq!(relayed(pieces, model), relayed([text], model));
    }

    /// What a front writes, the back reads as the same answer.
    #[test]
    fn what_is_written_is_read_again(texts in prop::collection::vec("[a-z\"\\\\\n\u{e9}]{1,8}", 1..6)) {
        let parts: Vec<Part> = texts.iter().enumerate().map(|(index, text)| match index % 4 {
            0 => thought(text, true, None),
            1 => Part::text(text.clone()),
            2 => tool_call(&format!("call_{index}"), "f", &json!({ "a": text }).to_string(), None),
            _ => Part::Refusal(text.clone()),
        }).collect();
        let answer = Answer {
            choices: vec![Choice { parts: parts.clone(), ..Choice::default() }],
            ..Answer::default()
        };
        let body = Front::write(&Responses, answer, &asking(&json!({})), &mut Notes::default());
        let again = Back::read(&Responses, &body, &origin()).unwrap();
        prop_assert_eq!(&again.choices[0].parts, &parts);
        let last = format!("data: {{\"type\":\"response.completed\",\"response\":{}}}\n\n", String::from_utf8(body).unwrap());
        prop_assert_eq!(gather(&read_stream([Bytes::from(last)]).0).0, parts);
    }
}

// === history ===

#[test]
fn what_was_said_before_goes_in_front() {
    let earlier = [json!({"type": "message", "role": "user", "content": "a"})];
    let one = r#"{"type":"message","role":"user","content":"a"}"#;
    for (body, want) in [
        (
            r#"{"model":"m", "input": "b\u00e9","previous_response_id":"resp_1","temperature":1.50}"#.to_owned(),
            format!(
                r#"{{"model":"m", "input": [{one},{{"type":"message","role":"user","content":"b\u00e9"}}],"temperature":1.50}}"#
            ),
        ),
        (
            r#"{"previous_response_id":"resp_1","input":[ {"role":"user","content":"b"}],"model":"m"}"#.to_owned(),
            format!(r#"{{"input":[{one}, {{"role":"user","content":"b"}}],"model":"m"}}"#),
        ),
        (r#"{"input":[]}"#.to_owned(), format!(r#"{{"input":[{one}]}}"#)),
        (
            r#"{"input":null,"model":"m"}"#.to_owned(),
            format!(r#"{{"input":[{one}],"model":"m"}}"#),
        ),
        (
            r#"{"previous_response_id":"x","model":"m"}"#.to_owned(),
            format!(r#"{{"input":[{one}],"model":"m"}}"#),
        ),
        (
            r#"{"previous_response_id":"x"}"#.to_owned(),
            format!(r#"{{"input":[{one}]}}"#),
        ),
        (" {}".to_owned(), format!(r#" {{"input":[{one}]}}"#)),
        (
            r#"{"previous\u005fresponse_id":"x","input":[]}"#.to_owned(),
            format!(r#"{{"previous\u005fresponse_id":null,"input":[{one}]}}"#),
        ),
    ] {
        let merged = merge(&Bytes::from(body.clone()), &earlier).unwrap();
        assert_eq!(merged, want.as_bytes(), "{body}: {merged:?}");
    }
    let nothing = merge(&Bytes::from_static(br#"{"input":[1]}"#), &[]).unwrap();
    assert_eq!(nothing, &br#"{"input":[1]}"#[..]);
    for body in ["[]", "", r#"{"input":7}"#, r#"{"input":{}}"#] {
        assert_eq!(
            merge(&Bytes::from(body), &earlier).unwrap_err().kind,
            Kind::InvalidRequest,
            "{body}"
        );
    }
}

#[test]
fn every_item_of_a_request_has_an_id() {
    let body = Bytes::from(
        r#"{"input":[{"role":"user","content":"a"},{"type":"message","id":"msg_1","role":"assistant","content":"b"},{"type":"function_call_output","id":null,"call_id":"c","output":"1"}]}"#,
    );
    let listed = items(&body).unwrap();
    assert_eq!(listed, items(&body).unwrap());
    let id = |index: usize| listed[index]["id"].as_str().unwrap().to_owned();
    assert!(id(0).starts_with("msg_sy") && id(0).len() <= 64, "{}", id(0));
    assert_eq!(
        listed[0],
        json!({"id": id(0), "type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]})
    );
    assert_eq!(id(1), "msg_1");
    assert_eq!(listed[1]["content"], json!([{"type": "output_text", "text": "b"}]));
    assert!(id(2).starts_with("fco_sy"), "{}", id(2));
    let text = items(&Bytes::from_static(br#"{"input":"hi"}"#)).unwrap();
    assert_eq!(text[0]["content"][0]["text"], "hi");
    assert!(items(&Bytes::from_static(b"{}")).unwrap().is_empty());
    for body in [r#"{"input":7}"#, r#"{"input":[7]}"#, "[]"] {
        assert_eq!(
            items(&Bytes::from(body)).unwrap_err().kind,
            Kind::InvalidRequest,
            "{body}"
        );
    }
}

#[test]
fn references_become_the_items_that_they_refer_to() {
    let body = Bytes::from_static(
        br#"{"model":"m","input":[ {"type":"item_reference","id":"msg_1"} , {"role":"user","content":"item_reference"},{"id":"fc_1"},{"type":"item_reference","id":"rs_9"}],"x":1.50}"#,
    );
    assert_eq!(references(&body).unwrap(), ["msg_1", "fc_1", "rs_9"]);
    let item = |id: &str| (id.to_owned(), json!({"id": id, "type": "x"}));
    let known = std::collections::HashMap::from([item("msg_1"), item("fc_1")]);
    let want = r#"{"model":"m","input":[ {"id":"msg_1","type":"x"} , {"role":"user","content":"item_reference"},{"id":"fc_1","type":"x"},{"type":"item_reference","id":"rs_9"}],"x":1.50}"#;
    assert_eq!(resolve(&body, &known).unwrap(), want);
    for body in [r#"{"input":"item_reference"}"#, r#"{"input":[5,[],"a"]}"#, "{}"] {
        let body = Bytes::from_static(body.as_bytes());
        assert!(references(&body).unwrap().is_empty());
        assert_eq!(resolve(&body, &known).unwrap(), body);
    }
    assert_eq!(
        references(&Bytes::from_static(b"[")).unwrap_err().kind,
        Kind::InvalidRequest
    );
}
