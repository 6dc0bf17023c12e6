//! Requests of callers, and answers to them.

use super::{call, origin};
use crate::anthropic::Messages;
use crate::codec::{Back, Front};
use crate::ir::{
    Answer, Call as ToolCall, Choice, Citation, Delta, Effort, Event, Finish, Format, Maker, Part, Prompt, Role, Seal,
    Source, Thought, ToolChoice, ToolKind,
};
use crate::notes::{Fate, Notes};
use crate::{Call, Surface};
use bytes::Bytes;
use serde_json::{Value, json};
use switchyard_core::error::Kind;
use switchyard_core::usage::Usage;

fn prompt(body: &Value) -> Prompt {
    Front::read(&Messages, &call(body)).unwrap()
}

/// The least of a request, and more.
fn asked(more: &Value) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

#[test]
fn everything_that_has_a_place_is_read() {
    let prompt = prompt(&asked(&json!({
        "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "temperature": 0.5, "top_p": 0.9, "top_k": 40,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u-1", "team": "x"},
        "service_tier": "standard_only",
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}, "task_budget": {"total": 9}},
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "tools": [
            {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true, "defer_loading": true},
            {"type": "web_search_20250305", "name": "web_search"}
        ],
        "container": "c-1"
    })));
    assert!(prompt.stream);
    assert_eq!((prompt.max_tokens, prompt.sampling.temperature), (Some(100), Some(0.5)));
    assert_eq!((prompt.sampling.top_p, prompt.sampling.top_k), (Some(0.9), Some(40)));
    assert_eq!(
        (prompt.user.as_deref(), prompt.service_tier.as_deref()),
        (Some("u-1"), Some("default"))
    );
    assert_eq!(
        (prompt.tool_choice, prompt.parallel_tools),
        (Some(ToolChoice::Required), Some(false))
    );
    assert_eq!(prompt.sampling.stop, ["END"]);
    let reasoning = prompt.reasoning.unwrap();
    assert_eq!(
        (reasoning.budget, reasoning.show, reasoning.effort),
        (Some(2048), Some(true), None)
    );
    assert!(matches!(prompt.format, Some(Format::Schema { strict: Some(true), .. })));
    assert_eq!(prompt.messages[0].role, Role::System);
    assert!(matches!(
        &prompt.messages[0].parts[0],
        Part::Text { cache: Some(_), .. }
    ));
    assert!(matches!(
        prompt.tools[0].kind,
        ToolKind::Function { strict: Some(true), .. }
    ));
    assert!(matches!(&prompt.tools[1].kind, ToolKind::Vendors(stranger) if stranger.field == "tools[1]"));
    let strangers: Vec<_> = prompt.strangers.iter().map(|stranger| &*stranger.field).collect();
    assert_eq!(
        strangers,
        [
            "tools[0].defer_loading",
            "output_config.task_budget",
            "metadata.team",
            "container"
        ]
    );
}

#[test]
fn results_of_tools_are_messages_of_their_own_and_know_their_tool() {
    let body = asked(&json!({"messages": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
            {"type": "tool_use", "id": "toolu_1", "name": "w", "input": {"big": 1}}
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": [
                {"type": "text", "text": "no"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
            ]},
            {"type": "text", "text": "And now?"}
        ]}
    ]}));
    let body = body
        .to_string()
        .replace(r#"{"big":1}"#, r#"{"big":12345678901234567890123,"f":1.50}"#);
    let call = Call::read(Surface::Messages, Bytes::from(body), None, origin()).unwrap();
    let prompt = Front::read(&Messages, &call).unwrap();
    let roles: Vec<_> = prompt.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
    let Part::Call(made) = &prompt.messages[1].parts[1] else {
        panic!()
    };
    // As it was written: a number that no machine holds too.
    assert_eq!(made.arguments, r#"{"big":12345678901234567890123,"f":1.50}"#);
    let Part::Result(result) = &prompt.messages[2].parts[0] else {
        panic!()
    };
    assert_eq!(
        (result.name.as_deref(), result.is_error, result.parts.len()),
        (Some("w"), true, 2)
    );
    let Part::Thought(thought) = &prompt.messages[1].parts[0] else {
        panic!()
    };
    assert_eq!(thought.seal, Some(Seal::new(Maker::Anthropic, "EqQB")));
}

#[test]
fn documents_come_from_everywhere() {
    let prompt = prompt(&asked(&json!({"messages": [{"role": "user", "content": [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}, "title": "T",
            "context": "C", "citations": {"enabled": true}},
        {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}},
        {"type": "search_result", "source": "https://x.test", "title": "S", "content": [{"type": "text", "text": "found"}]},
        {"type": "container_upload", "file_id": "file_2"}
    ]}]})));
    let sources: Vec<_> = prompt.messages[0]
        .parts
        .iter()
        .map(|part| match part {
            Part::Document(document) => document.source.clone(),
            Part::Stranger(stranger) => Source::Text(stranger.field.clone()),
            _ => panic!(),
        })
        .collect();
    let text = |text: &str| Source::Text(text.to_owned());
    assert_eq!(
        sources,
        [
            Source::Data {
                media_type: "application/pdf".to_owned(),
                base64: "JVBE".to_owned()
            },
            Source::Url("https://x.test/a.pdf".to_owned()),
            text("plain"),
            Source::File("file_1".to_owned()),
            text("a\nb"),
            text("found"),
            text("messages[0].content[6]"),
        ]
    );
}

#[test]
fn thinking_is_asked_for_in_many_ways() {
    for (thinking, effort, want) in [
        (
            json!({"type": "disabled"}),
            Value::Null,
            (Some(Effort::None), None, false),
        ),
        (
            json!({"type": "adaptive"}),
            json!("max"),
            (Some(Effort::Max), None, true),
        ),
        (
            json!({"type": "enabled", "budget_tokens": 4000}),
            json!("low"),
            (Some(Effort::Low), Some(4000), false),
        ),
        (Value::Null, json!("xhigh"), (Some(Effort::XHigh), None, false)),
    ] {
        let prompt = prompt(&asked(
            &json!({"thinking": thinking, "output_config": {"effort": effort}}),
        ));
        let reasoning = prompt.reasoning.unwrap();
        assert_eq!((reasoning.effort, reasoning.budget, reasoning.is_adaptive), want);
    }
    let prompt = prompt(&asked(
        &json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}}),
    ));
    assert_eq!(prompt.strangers[0].field, "output_config.effort");
}

#[test]
fn what_is_wrong_is_named() {
    for (more, field) in [
        (json!({"max_tokens": null}), "max_tokens"),
        (json!({"max_tokens": "many"}), "max_tokens"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"system": 7}), "system"),
        (
            json!({"messages": [{"role": "robot", "content": "x"}]}),
            "messages[0].role",
        ),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (json!({"messages": ["x"]}), "messages[0]"),
        (
            json!({"messages": [{"role": "user", "content": [{"text": "x"}]}]}),
            "messages[0].content[0].type",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image"}]}]}),
            "messages[0].content[0].source",
        ),
        (
            json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": "{}"}]}]}),
            "messages[0].content[0].input",
        ),
        (json!({"tools": {}}), "tools"),
        (json!({"tools": [{"name": "f"}]}), "tools[0].input_schema"),
        (json!({"tool_choice": {"type": "some"}}), "tool_choice.type"),
        (json!({"thinking": {"type": "enabled"}}), "thinking.budget_tokens"),
        (json!({"thinking": {"type": "dreaming"}}), "thinking.type"),
        (json!({"output_config": {"effort": "huge"}}), "output_config.effort"),
        (
            json!({"output_config": {"format": {"type": "json"}}}),
            "output_config.format.type",
        ),
    ] {
        let error = Front::read(&Messages, &call(&asked(&more))).unwrap_err();
        assert_eq!(
            (error.kind, error.param.as_deref()),
            (Kind::InvalidRequest, Some(field)),
            "{more}"
        );
        assert!(error.message.contains("must"), "{}", error.message);
    }
}

#[test]
fn a_mark_for_all_is_one_for_the_last_part() {
    let prompt = prompt(&asked(&json!({"cache_control": {"type": "ephemeral"}})));
    assert!(
        matches!(&prompt.messages[0].parts[0], Part::Text { cache: Some(mark), .. } if mark["type"] == "ephemeral")
    );
}

fn written(choice: Choice, usage: Usage) -> (Value, Notes) {
    let mut notes = Notes::default();
    let answer = Answer {
        id: Some("chatcmpl-1".to_owned()),
        model: Some("m".to_owned()),
        choices: vec![choice],
        usage,
        ..Answer::default()
    };
    let body = Front::write(&Messages, answer, &call(&asked(&json!({}))), &mut notes);
    (serde_json::from_slice(&body).unwrap(), notes)
}

#[test]
fn an_answer_is_a_message() {
    let choice = Choice {
        parts: vec![
            Part::Thought(Thought {
                text: "Hm.".to_owned(),
                seal: Some(Seal::new(Maker::OpenAi, "enc")),
                ..Thought::default()
            }),
            Part::text(""),
            Part::text("Hello"),
            Part::Call(ToolCall {
                id: "functions.f:0".to_owned(),
                name: "f".to_owned(),
                arguments: r#"{"a":1.0}"#.to_owned(),
                seal: Some(Seal::new(Maker::Gemini, "sig")),
                ..ToolCall::default()
            }),
        ],
        finish: Finish::Stop,
        logprobs: None,
    };
    let usage = Usage {
        prompt: Some(2623),
        completion: Some(5),
        cached: Some(2603),
        ..Usage::default()
    };
    let (message, _) = written(choice, usage);
    assert_eq!(message["id"], "msg_0193f0a0b1c2d3e4f5061728");
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(
        message["usage"],
        json!({"input_tokens": 20, "cache_read_input_tokens": 2603, "output_tokens": 5})
    );
    let content = message["content"].as_array().unwrap();
    let kinds: Vec<_> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "text", "thinking", "tool_use"]);
    assert_eq!(content[0]["signature"], "sy.openai.enc");
    // Sent back, all of it is what it was.
    let turn = json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]});
    let again = prompt(&asked(&turn));
    let parts = &again.messages[1].parts;
    assert_eq!(parts.len(), 3);
    assert!(matches!(&parts[0], Part::Thought(thought) if thought.seal == Some(Seal::new(Maker::OpenAi, "enc"))));
    let Part::Call(made) = &parts[2] else { panic!() };
    assert_eq!(made.seal, Some(Seal::new(Maker::Gemini, "sig")));
    assert_eq!(made.arguments, r#"{"a":1.0}"#);
}

#[test]
fn every_end_has_a_word() {
    for (finish, word, sequence) in [
        (Finish::Stop, "end_turn", Value::Null),
        (
            Finish::StopSequence(Some("END".to_owned())),
            "stop_sequence",
            json!("END"),
        ),
        (Finish::Length, "max_tokens", Value::Null),
        (Finish::ContextWindow, "model_context_window_exceeded", Value::Null),
        (Finish::ToolCalls, "tool_use", Value::Null),
        (Finish::ContentFilter, "refusal", Value::Null),
        (Finish::Refusal, "refusal", Value::Null),
        (Finish::Pause, "pause_turn", Value::Null),
        (Finish::Other("odd".to_owned()), "end_turn", Value::Null),
    ] {
        let choice = Choice {
            finish,
            ..Choice::default()
        };
        let (message, _) = written(choice, Usage::default());
        assert_eq!(
            (&message["stop_reason"], &message["stop_sequence"]),
            (&json!(word), &sequence)
        );
    }
    let refusal = Choice {
        parts: vec![Part::Refusal("No.".to_owned())],
        ..Choice::default()
    };
    assert_eq!(written(refusal, Usage::default()).0["stop_reason"], "refusal");
}

#[test]
fn citations_are_the_vendors_or_come_near() {
    let own = json!({"type": "char_location", "cited_text": "x", "document_index": 0});
    let text = |citation| Choice {
        parts: vec![Part::Text {
            text: "t".to_owned(),
            citations: vec![citation],
            cache: None,
        }],
        ..Choice::default()
    };
    let (message, notes) = written(
        text(Citation {
            raw: Some(own.clone()),
            ..Citation::default()
        }),
        Usage::default(),
    );
    assert_eq!(message["content"][0]["citations"], json!([own]));
    assert!(notes.is_empty());
    let (message, notes) = written(
        text(Citation {
            url: Some("https://x.test".to_owned()),
            raw: Some(json!({"type": "url_citation"})),
            ..Citation::default()
        }),
        Usage::default(),
    );
    assert_eq!(
        message["content"][0]["citations"][0]["type"],
        "web_search_result_location"
    );
    assert_eq!(notes.count(Fate::Approximated), 1);
}

#[test]
fn what_is_called_with_becomes_an_object() {
    for (arguments, is_custom, want) in [
        ("", false, json!({})),
        ("{}", false, json!({})),
        ("[1]", false, json!({"input": [1]})),
        ("{oops", false, json!({"input": "{oops"})),
        ("any \"text\"", true, json!({"input": "any \"text\""})),
    ] {
        let choice = Choice {
            parts: vec![Part::Call(ToolCall {
                id: "a".to_owned(),
                name: "f".to_owned(),
                arguments: arguments.to_owned(),
                is_custom,
                ..ToolCall::default()
            })],
            ..Choice::default()
        };
        let (message, _) = written(choice, Usage::default());
        assert_eq!(message["content"][0]["input"], want);
    }
}

#[test]
fn a_call_that_came_without_an_id_gets_the_same_one_whole_and_streamed() {
    for id in ["", r#""id":"","#, r#""id":null,"#] {
        let block = |n: u32| format!(r#"{{"type":"tool_use",{id}"name":"f{n}","input":{{}}}}"#);
        let body = format!(
            r#"{{"type":"message","content":[{},{}],"stop_reason":"tool_use"}}"#,
            block(0),
            block(1)
        );
        let answer = Back::read(&Messages, body.as_bytes(), &origin()).unwrap();
        let ids = answer.choices[0].parts.iter().map(|part| match part {
            Part::Call(call) => call.id.as_str(),
            other => panic!("{other:?}"),
        });
        let whole: Vec<&str> = ids.collect();
        let start = |n: u32| {
            format!(
                "data: {{\"type\":\"content_block_start\",\"index\":{n},\"content_block\":{}}}\n\n",
                block(n)
            )
        };
        let (mut reader, mut events) = (Messages.reader(&origin()), Vec::new());
        reader.push(format!("{}{}", start(0), start(1)).into(), &mut events);
        let streamed: Vec<&str> = events
            .iter()
            .filter_map(|event| match event {
                Event::Delta {
                    delta: Delta::Call { id, .. },
                    ..
                } => Some(id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(whole, streamed, "{body}");
        assert!(whole.len() == 2 && whole[0] != whole[1] && whole.iter().all(|id| !id.is_empty()));
    }
}
