//! Round trips, streams in any pieces, and the faults that users of others have met.

use super::Chat;
use crate::codec::{Ask, Back, Front};
use crate::ir::{
    self, Answer, Choice, Citation, Custom, Delta, Document, Effort, Event, Finish, Format, Image, Maker, Message,
    Part, Prompt, Reasoning, ResultOf, Role, Seal, Source, Thought, Tool, ToolChoice, ToolKind,
};
use crate::notes::{Fate, Notes};
use crate::{Call, End, Origin, Surface};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

fn origin() -> Origin {
    Origin {
        id: "req-1".into(),
        at: 1_700_000_000,
    }
}

fn call(body: &Value) -> Call {
    Call::read(Surface::Chat, body.to_string().into(), None, origin()).unwrap()
}

fn reading(body: &Value) -> Result<Prompt, Error> {
    Front::read(&Chat, &call(body))
}

/// Reads one user's question with some members more.
fn asking(members: &Value) -> Result<Prompt, Error> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let members = members.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    reading(&body)
}

fn writing(prompt: &Prompt, surface: Surface, model: &str) -> (Result<Value, Error>, Notes) {
    let mut notes = Notes::default();
    let ask = Ask {
        model,
        surface,
        stream: prompt.stream,
    };
    let written = Back::write(&Chat, prompt, &ask, &mut notes);
    (written.map(|body| serde_json::from_slice(&body).unwrap()), notes)
}

#[track_caller]
fn written(prompt: &Prompt, model: &str) -> Value {
    writing(prompt, Surface::Messages, model).0.unwrap()
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message {
        at: ir::Place::default(),
        role,
        name: None,
        parts,
    }
}

fn saying(messages: Vec<Message>) -> Prompt {
    Prompt {
        messages,
        ..Prompt::default()
    }
}

// === requests, read ===

#[test]
fn parts_are_taken_apart() {
    let prompt = reading(&json!({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0=", "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.com/a.png"},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        {"type": "file", "file": {"filename": "a.csv", "file_data": "YSxi"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "hologram", "hologram": 7},
    ]}]}))
    .unwrap();
    let parts = &prompt.messages[0].parts;
    let data = |media_type: &str, base64: &str| Source::Data {
        media_type: media_type.to_owned(),
        base64: base64.to_owned(),
    };
    assert!(matches!(&parts[0], Part::Text { cache: Some(_), .. }));
    assert!(
        matches!(&parts[1], Part::Image(image) if image.source == data("image/png", "iVBORw0=") && image.detail.as_deref() == Some("low"))
    );
    assert!(matches!(&parts[2], Part::Image(image) if image.source == Source::Url("https://example.com/a.png".into())));
    assert!(matches!(&parts[3], Part::Audio(audio) if audio.source == data("audio/mpeg", "UklGRg==")));
    assert!(
        matches!(&parts[4], Part::Document(file) if file.source == data("application/pdf", "JVBERi0=") && file.name.as_deref() == Some("a.pdf"))
    );
    assert!(matches!(&parts[5], Part::Document(file) if file.source == data("text/csv", "YSxi")));
    assert!(matches!(&parts[6], Part::Document(file) if file.source == Source::File("file-1".into())));
    assert!(matches!(&parts[7], Part::Stranger(part) if part.field == "messages[0].content[7]"));
}

#[test]
fn functions_of_older_clients_are_calls_with_ids_that_stay_the_same() {
    let body = json!({
        "model": "m",
        "functions": [{"name": "look_up", "parameters": {"type": "object"}}],
        "function_call": {"name": "look_up"},
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": null, "function_call": {"name": "look_up", "arguments": "{\"q\":1}"}},
            {"role": "function", "name": "look_up", "content": "one"},
            {"role": "assistant", "content": null, "function_call": {"name": "look_up", "arguments": ""}},
            {"role": "function", "name": "look_up", "content": "two"},
        ],
    });
    let prompt = reading(&body).unwrap();
    assert_eq!(prompt.tool_choice, Some(ToolChoice::Named("look_up".into())));
    let ids: Vec<&str> = prompt
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::Call(call) => Some(&*call.id),
            Part::Result(result) => Some(&*result.call_id),
            _ => None,
        })
        .collect();
    assert_eq!(
        ids,
        [
            "call_function_0",
            "call_function_0",
            "call_function_1",
            "call_function_1"
        ]
    );
    let answer = Answer {
        choices: vec![Choice {
            parts: vec![call_part("a", "look_up", "{}"), call_part("b", "look_up", "{}")],
            finish: Finish::ToolCalls,
            logprobs: None,
        }],
        ..Answer::default()
    };
    let mut notes = Notes::default();
    let body = Front::write(&Chat, answer, &call(&body), &mut notes);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "function_call");
    assert_eq!(
        body["choices"][0]["message"]["function_call"],
        json!({"name": "look_up", "arguments": "{}"})
    );
    assert_eq!(notes.count(Fate::Dropped), 1);
}

fn call_part(id: &str, name: &str, arguments: &str) -> Part {
    Part::Call(ir::Call {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        ..ir::Call::default()
    })
}

#[test]
fn how_to_think_is_said_in_many_ways() {
    let said = |members: Value| asking(&members).unwrap().reasoning.unwrap();
    let effort = |effort| Reasoning {
        effort: Some(effort),
        ..Reasoning::default()
    };
    assert_eq!(said(json!({"reasoning_effort": "xhigh"})), effort(Effort::XHigh));
    assert_eq!(said(json!({"thinking": {"type": "disabled"}})), effort(Effort::None));
    assert_eq!(said(json!({"reasoning": {"enabled": false}})), effort(Effort::None));
    let budget = said(json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}));
    assert_eq!((budget.budget, budget.is_adaptive), (Some(2048), false));
    assert!(said(json!({"thinking": {"type": "enabled"}})).is_adaptive);
    let openrouter = said(json!({"reasoning": {"max_tokens": 9, "exclude": true}}));
    assert_eq!((openrouter.budget, openrouter.show), (Some(9), Some(false)));
}

#[test]
fn what_is_wrong_is_named_with_its_remedy() {
    let user = json!({"role": "user", "content": "Hi"});
    for (members, param) in [
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"n": -1}), "n"),
        (json!({"stop": 7}), "stop"),
        (json!({"stop": ["a", 7]}), "stop[1]"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].function"),
        (
            json!({"tools": [{"type": "function", "function": {}}]}),
            "tools[0].function.name",
        ),
        (json!({"tools": [7]}), "tools[0]"),
        (json!({"tool_choice": "maybe"}), "tool_choice"),
        (
            json!({"tool_choice": {"type": "function", "function": {}}}),
            "tool_choice.function.name",
        ),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "response_format.json_schema",
        ),
        (json!({"reasoning_effort": "fierce"}), "reasoning_effort"),
        (json!({"thinking": {}}), "thinking.type"),
        (json!({"messages": [user, 7]}), "messages[1]"),
        (json!({"messages": [{"content": "Hi"}]}), "messages[0].role"),
        (
            json!({"messages": [{"role": "wizard", "content": "Hi"}]}),
            "messages[0].role",
        ),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
            "messages[0].content[0].text",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}),
            "messages[0].content[0].image_url.url",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png,x"}}]}]}),
            "messages[0].content[0].image_url.url",
        ),
        (
            json!({"messages": [{"role": "tool", "content": "x"}]}),
            "messages[0].tool_call_id",
        ),
        (
            json!({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]}),
            "messages[0].tool_calls[0].id",
        ),
    ] {
        let error = asking(&members).unwrap_err();
        assert_eq!(
            (error.kind, error.param.as_deref()),
            (Kind::InvalidRequest, Some(param)),
            "{members}"
        );
        assert!(error.message.starts_with(&format!("`{param}` ")), "{}", error.message);
    }
}

#[test]
fn fields_of_others_are_strangers_with_their_paths() {
    let prompt = reading(&json!({
        "model": "m", "prediction": {"type": "content", "content": "x"}, "modalities": ["text"], "nothing": null,
        "stream_options": {"include_obfuscation": false},
        "tools": [{"type": "web_search", "filters": {}}, {"type": "function", "function": {"name": "f", "odd": 1}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "mood": "good"}], "weight": 1}],
    }))
    .unwrap();
    let mut fields: Vec<&str> = prompt
        .strangers
        .iter()
        .map(|stranger| stranger.field.as_str())
        .collect();
    fields.sort_unstable();
    let want = [
        "messages[0].content[0].mood",
        "messages[0].weight",
        "prediction",
        "stream_options.include_obfuscation",
        "tools[1].function.odd",
    ];
    assert_eq!(fields, want);
    assert!(matches!(&prompt.tools[0].kind, ToolKind::Vendors(tool) if tool.field == "tools[0]"));
}

// === requests, written ===

#[test]
fn who_is_written_to_decides_the_words() {
    let prompt = Prompt {
        messages: vec![message(Role::Developer, vec![Part::text("Be brief.")])],
        max_tokens: Some(9),
        ..Prompt::default()
    };
    for (model, role, name) in [
        ("gpt-5.1", "developer", "max_completion_tokens"),
        ("openai/o3-mini", "developer", "max_completion_tokens"),
        ("gpt-oss-120b", "system", "max_tokens"),
        ("deepseek-chat", "system", "max_tokens"),
        ("orca-2", "system", "max_tokens"),
    ] {
        let body = written(&prompt, model);
        assert_eq!(
            (&body["messages"][0]["role"], &body[name]),
            (&json!(role), &json!(9)),
            "{model}"
        );
    }
}

#[test]
fn texts_are_one_text_and_a_stream_is_asked_for_its_usage() {
    let prompt = Prompt {
        messages: vec![message(Role::User, vec![Part::text("One."), Part::text("Two.")])],
        stream: true,
        ..Prompt::default()
    };
    let want = json!({
        "model": "m", "messages": [{"role": "user", "content": "One.\n\nTwo."}],
        "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!(written(&prompt, "m"), want);
}

fn picture() -> Part {
    Part::Image(Image {
        source: Source::Data {
            media_type: "image/png".to_owned(),
            base64: "iVBORw0=".to_owned(),
        },
        detail: None,
        cache: None,
    })
}

fn result(id: &str, parts: Vec<Part>) -> Message {
    let result = ResultOf {
        call_id: id.to_owned(),
        name: Some("look".to_owned()),
        parts,
        ..ResultOf::default()
    };
    message(Role::Tool, vec![Part::Result(result)])
}

#[test]
fn pictures_in_results_follow_the_last_of_them() {
    let prompt = saying(vec![
        message(
            Role::Assistant,
            vec![call_part("a", "look", "{}"), call_part("b", "look", "")],
        ),
        result("a", vec![Part::text("seen"), picture()]),
        result("b", vec![picture()]),
        message(Role::User, vec![Part::text("And?")]),
    ]);
    let (body, notes) = writing(&prompt, Surface::Messages, "m");
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}});
    let want = json!([
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "tool", "tool_call_id": "b", "content": "The result is shown in the next message."},
        {"role": "user", "content": [
            {"type": "text", "text": "Result of look (a):"}, url, {"type": "text", "text": "Result of look (b):"}, url,
        ]},
        {"role": "user", "content": "And?"},
    ]);
    assert_eq!(body.unwrap()["messages"], want);
    assert_eq!(notes.count(Fate::Approximated), 1);
}

#[test]
fn thoughts_go_up_with_calls_to_those_who_want_them() {
    let thought = |maker| {
        Part::Thought(Thought {
            text: "Hm.".to_owned(),
            seal: Some(Seal::new(maker, "sig")),
            ..Thought::default()
        })
    };
    let turn = |thought: Part, calls: bool| {
        let mut parts = vec![thought, Part::text("So.")];
        if calls {
            parts.push(call_part("a", "look", "{}"));
        }
        saying(vec![message(Role::Assistant, parts)])
    };
    let (body, notes) = writing(
        &turn(thought(Maker::Anthropic), true),
        Surface::Messages,
        "deepseek-reasoner",
    );
    let body = body.unwrap();
    assert_eq!(body["messages"][0]["reasoning_content"], "Hm.");
    assert_eq!(body["messages"][0].get("reasoning_details"), None);
    assert_eq!(notes.count(Fate::Dropped), 1, "its seal");
    let body = written(&turn(thought(Maker::Anthropic), true), "anthropic/claude-sonnet-4.5");
    let details = json!([{"type": "reasoning.text", "text": "Hm.", "signature": "sig", "format": "anthropic-claude-v1", "index": 0}]);
    assert_eq!(body["messages"][0]["reasoning_details"], details);
    for (model, is_sent) in [
        ("deepseek/deepseek-r1", false),
        ("x-ai/openai/grok-4", false),
        ("openai/gpt-oss-120b", true),
        ("anthropic/claude-sonnet-4.5", false),
    ] {
        let body = written(&turn(thought(Maker::OpenAi), true), model);
        let message = &body["messages"][0];
        assert_eq!(message.get("reasoning_details").is_some(), is_sent, "{model}");
        assert_eq!(message["reasoning_content"], "Hm.", "{model}");
    }
    for (prompt, model) in [
        (turn(thought(Maker::OpenAi), false), "deepseek-reasoner"),
        (turn(thought(Maker::OpenAi), true), "gpt-5"),
    ] {
        let (body, notes) = writing(&prompt, Surface::Messages, model);
        assert_eq!(body.unwrap()["messages"][0].get("reasoning_content"), None, "{model}");
        assert_eq!(notes.list()[0].field, "messages[].content[].thinking");
    }
}

#[test]
fn a_seal_of_a_call_goes_to_its_maker() {
    let mut call = ir::Call {
        id: "a".to_owned(),
        name: "look".to_owned(),
        seal: Some(Seal::new(Maker::Gemini, "sig")),
        ..ir::Call::default()
    };
    let turn = |call: &ir::Call| saying(vec![message(Role::Assistant, vec![Part::Call(call.clone())])]);
    let extra = |body: &Value| body["messages"][0]["tool_calls"][0].get("extra_content").cloned();
    let want = json!({"google": {"thought_signature": "sig"}});
    assert_eq!(extra(&written(&turn(&call), "gemini-3-pro")), Some(want));
    assert_eq!(extra(&written(&turn(&call), "gpt-5")), None);
    call.id = "x".repeat(64);
    let body = written(&turn(&call), "m");
    let id = body["messages"][0]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() <= 40, "{id}");
}

#[test]
fn what_nobody_would_see_is_refused() {
    let document = |source| {
        Part::Document(Document {
            source,
            name: None,
            context: None,
            cite: None,
            cache: None,
        })
    };
    let image = |source| {
        Part::Image(Image {
            source,
            detail: None,
            cache: None,
        })
    };
    for part in [
        document(Source::Url("https://example.com/a.pdf".into())),
        document(Source::File("file_1".into())),
        image(Source::File("file_1".into())),
    ] {
        let (body, _) = writing(&saying(vec![message(Role::User, vec![part])]), Surface::Messages, "m");
        let error = body.unwrap_err();
        assert_eq!(
            (error.kind, error.param.as_deref()),
            (Kind::Unsupported, Some("messages[].content[].source"))
        );
    }
    let text = document(Source::Text("Hello".into()));
    let body = written(&saying(vec![message(Role::User, vec![text])]), "m");
    assert_eq!(body["messages"][0]["content"][0]["text"], "Hello");
}

#[test]
fn tools_are_offered_as_far_as_they_go() {
    let tool = |name: &str| Tool {
        at: ir::Place::default(),
        name: name.to_owned(),
        description: None,
        kind: ToolKind::Function {
            schema: Some(json!({"type": "object"})),
            strict: None,
        },
        cache: None,
    };
    let mut prompt = saying(vec![message(Role::User, vec![Part::text("Hi")])]);
    prompt.tools = vec![tool("a"), tool("b")];
    prompt.tools.push(Tool {
        at: ir::Place::default(),
        kind: ToolKind::Vendors(ir::Stranger {
            field: "tools[2]".into(),
            value: json!({"type": "web_search_20250305"}),
        }),
        ..tool("web_search")
    });
    prompt.tool_choice = Some(ToolChoice::Among {
        names: vec!["b".to_owned()],
        required: true,
    });
    let (body, notes) = writing(&prompt, Surface::Messages, "m");
    let body = body.unwrap();
    assert_eq!(
        (
            body["tools"].as_array().unwrap().len(),
            &body["tools"][0]["function"]["name"]
        ),
        (1, &json!("b"))
    );
    assert_eq!(body["tool_choice"], "required");
    assert_eq!(notes.list()[0].field, "tools[2]");
    let body = written(&prompt, "gpt-5");
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    assert_eq!(
        body["tool_choice"]["allowed_tools"]["tools"][0]["function"]["name"],
        "b"
    );
    prompt.tools.clear();
    assert_eq!(
        writing(&prompt, Surface::Messages, "m").0.unwrap_err().kind,
        Kind::Unsupported
    );
    prompt.tool_choice = Some(ToolChoice::Auto);
    assert_eq!(written(&prompt, "m").get("tool_choice"), None);
}

#[test]
fn a_schema_is_held_to_where_it_can_be() {
    let mut prompt = saying(vec![message(Role::User, vec![Part::text("Hi")])]);
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    for (schema, strict) in [(closed, Some(true)), (json!({"type": "object"}), None)] {
        prompt.format = Some(Format::Schema {
            name: None,
            description: None,
            schema,
            strict: None,
        });
        let (body, notes) = writing(&prompt, Surface::Messages, "m");
        let format = &body.unwrap()["response_format"]["json_schema"];
        assert_eq!(
            (&format["name"], format.get("strict").and_then(Value::as_bool)),
            (&json!("response"), strict)
        );
        assert_eq!(notes.count(Fate::Approximated), u32::from(strict.is_none()));
    }
}

#[test]
fn strangers_of_the_family_go_up_where_they_have_a_place() {
    let mut prompt = saying(vec![message(Role::User, vec![Part::text("Hi")])]);
    for field in ["min_p", "previous_response_id", "text.odd"] {
        prompt.strangers.push(ir::Stranger {
            field: field.to_owned(),
            value: json!(1),
        });
    }
    let (body, notes) = writing(&prompt, Surface::Responses, "m");
    let body = body.unwrap();
    assert_eq!(
        (body.get("min_p"), body.get("previous_response_id")),
        (Some(&json!(1)), None)
    );
    assert_eq!(notes.count(Fate::Dropped), 2);
}

// === there and back ===

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,12}", "\\PC{1,12}", Just("\u{0}\"\\\n\u{1f600}".to_owned())]
}

/// Messages as callers write them, by number.
fn a_message(kind: usize, words: &str, id: &str) -> Value {
    let mark = json!({"type": "ephemeral"});
    let all = [
        json!({"role": "system", "content": words}),
        json!({"role": "developer", "content": [{"type": "text", "text": words, "cache_control": mark}]}),
        json!({"role": "user", "content": words, "name": "alice", "weight": 1}),
        json!({"role": "user", "content": [
            {"type": "text", "text": words}, {"type": "text", "text": words},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "high", "odd": 1}, "cache_control": mark},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": words}},
            {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA=="}},
            {"type": "hologram", "words": words},
        ]}),
        json!({"role": "assistant", "content": words, "refusal": null, "annotations": [
            {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 1, "url": "https://example.com", "title": words}},
        ]}),
        json!({"role": "assistant", "content": null, "reasoning_content": words, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "look", "arguments": words},
             "extra_content": {"google": {"thought_signature": "c2ln"}}},
            {"id": format!("{id}2"), "type": "custom", "custom": {"name": "patch", "input": words}},
        ]}),
        json!({"role": "tool", "tool_call_id": id, "content": words}),
        json!({"role": "tool", "tool_call_id": format!("{id}2"), "content": [{"type": "text", "text": words}, {"type": "text", "text": words}]}),
        json!({"role": "assistant", "content": null, "refusal": words}),
        json!({"role": "assistant", "content": words, "audio": {"id": "audio_1"}, "reasoning_details": [
            {"type": "reasoning.text", "text": words, "signature": "s", "format": "anthropic-claude-v1", "index": 0},
            {"type": "reasoning.encrypted", "data": "s", "format": "anthropic-claude-v1", "index": 1},
            {"type": "reasoning.summary", "summary": words, "index": 2},
            {"type": "reasoning.encrypted", "data": "s", "index": 2},
        ]}),
        json!({"role": "user", "content": words, "cache_control": mark}),
        json!({"role": "assistant", "content": [{"type": "text", "text": words}, {"type": "odd"}, {"type": "text", "text": words}]}),
    ];
    all[kind % all.len()].clone()
}

fn a_field(kind: usize, words: &str) -> (&'static str, Value) {
    let all = [
        ("temperature", json!(0.7)),
        ("top_p", json!(1)),
        ("top_k", json!(40)),
        ("n", json!(2)),
        ("seed", json!(-7)),
        ("presence_penalty", json!(-0.5)),
        ("frequency_penalty", json!(1.5)),
        ("stop", json!([words, "b"])),
        ("logprobs", json!(true)),
        ("top_logprobs", json!(3)),
        ("logit_bias", json!({"50256": -100})),
        ("max_completion_tokens", json!(100)),
        (
            "response_format",
            json!({"type": "json_schema", "json_schema": {"name": "n", "schema": {"b": 1, "a": words}, "strict": true}}),
        ),
        ("response_format", json!({"type": "text"})),
        ("reasoning_effort", json!("high")),
        ("thinking", json!({"type": "adaptive"})),
        ("verbosity", json!("low")),
        ("user", json!(words)),
        ("metadata", json!({"a": words})),
        ("store", json!(false)),
        ("service_tier", json!("flex")),
        ("prompt_cache_key", json!(words)),
        ("parallel_tool_calls", json!(false)),
        ("prediction", json!({"type": "content", "content": words})),
        ("tool_choice", json!({"type": "custom", "custom": {"name": "patch"}})),
        (
            "tool_choice",
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "look"}}]}}),
        ),
        ("stream", json!(true)),
    ];
    all[kind % all.len()].clone()
}

proptest! {
    #[test]
    fn a_request_comes_back_as_it_was(
        messages in prop::collection::vec((0_usize..12, text(), "[a-z]{1,8}"), 1..8),
        fields in prop::collection::vec((0_usize..27, text()), 0..8),
    ) {
        let mut body = json!({
            "model": "m",
            "tools": [
                {"type": "function", "function": {"name": "look", "description": "d", "parameters": {"z": 1, "a": 2}, "strict": true, "odd": 1}},
                {"type": "custom", "custom": {"name": "patch", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}}, "cache_control": {"type": "ephemeral"}},
                {"type": "web_search"},
            ],
        });
        body["messages"] = messages.iter().map(|(kind, words, id)| a_message(*kind, words, id)).collect();
        for (kind, words) in &fields {
            let (name, value) = a_field(*kind, words);
            body[name] = value;
        }
        let mut first = reading(&body).unwrap();
        let (written, notes) = writing(&first, Surface::Chat, "m");
        let mut again = reading(&written.unwrap()).unwrap();
        first.strangers.sort_by(|a, b| a.field.cmp(&b.field));
        again.strangers.sort_by(|a, b| a.field.cmp(&b.field));
        // Where there are several names the newest is written.
        first.called.clear();
        again.called.clear();
        prop_assert_eq!(first, again);
        prop_assert!(notes.is_empty(), "{:?}", notes);
    }
}

// === whole answers ===

fn sample_answer() -> Answer {
    let usage = Usage {
        prompt: Some(100),
        completion: Some(20),
        total: Some(120),
        cached: Some(64),
        cache_write: Some(8),
        reasoning: Some(12),
        audio_prompt: Some(1),
        audio_completion: Some(2),
        estimated: false,
    };
    let seal = |maker| Some(Seal::new(maker, "sig"));
    Answer {
        id: None,
        model: Some("m".into()),
        created: Some(1),
        choices: vec![
            Choice {
                parts: vec![
                    Part::Thought(Thought {
                        text: "Hm.".into(),
                        seal: seal(Maker::Anthropic),
                        ..Thought::default()
                    }),
                    Part::Text {
                        text: "So.".into(),
                        citations: vec![Citation {
                            url: Some("https://example.com".into()),
                            title: Some("Example".into()),
                            ..Citation::default()
                        }],
                        cache: None,
                    },
                    Part::Call(ir::Call {
                        id: "a".into(),
                        name: "look".into(),
                        arguments: "{\"b\":1}".into(),
                        seal: seal(Maker::Gemini),
                        ..ir::Call::default()
                    }),
                    Part::Call(ir::Call {
                        id: "b".into(),
                        name: "patch".into(),
                        arguments: "***".into(),
                        is_custom: true,
                        ..ir::Call::default()
                    }),
                ],
                finish: Finish::ToolCalls,
                logprobs: Some(json!({"content": []})),
            },
            Choice {
                parts: vec![Part::Refusal("No.".into())],
                finish: Finish::Refusal,
                logprobs: None,
            },
        ],
        usage,
        service_tier: Some("default".into()),
    }
}

#[test]
fn an_answer_comes_back_as_it_was() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let mut notes = Notes::default();
    let bytes = Front::write(&Chat, sample_answer(), &call(&body), &mut notes);
    let written: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(written["id"], "chatcmpl-req-1");
    assert_eq!(written["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(written["choices"][1]["finish_reason"], "stop");
    assert_eq!(written["choices"][1]["message"]["content"], Value::Null);
    let span = &written["choices"][0]["message"]["annotations"][0]["url_citation"];
    assert_eq!((&span["start_index"], &span["end_index"]), (&json!(0), &json!(3)));
    let mut again = Back::read(&Chat, &bytes, &origin()).unwrap();
    assert_eq!(again.id.take().as_deref(), Some("chatcmpl-req-1"));
    for part in &mut again.choices[0].parts {
        if let Part::Text { citations, .. } = part {
            citations[0] = Citation {
                start: None,
                end: None,
                raw: None,
                ..citations[0].clone()
            };
        }
    }
    assert_eq!(again, sample_answer());
    assert!(notes.is_empty());
}

#[test]
fn answers_with_an_accent_are_understood() {
    let read = |message: Value, finish: &str| {
        let body = json!({"choices": [{"message": message, "finish_reason": finish}]});
        Back::read(&Chat, body.to_string().as_bytes(), &origin())
            .unwrap()
            .choices
            .remove(0)
    };
    let choice = read(
        json!({"tool_calls": [{"function": {"name": "look", "arguments": {"a": 1}}}]}),
        "stop",
    );
    assert_eq!(choice.finish, Finish::ToolCalls);
    assert_eq!(choice.parts, [call_part("call_req10", "look", "{\"a\":1}")]);
    let choice = read(
        json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "So."}]}),
        "",
    );
    assert_eq!((choice.parts.len(), choice.finish), (2, Finish::Stop));
    let choice = read(json!({"content": "", "reasoning": "Hm."}), "model_length");
    assert_eq!((choice.parts.len(), choice.finish), (1, Finish::ContextWindow));
    let cited = json!({"choices": [{"message": {"content": "So."}, "finish_reason": "stop"}], "citations": ["https://example.com"]});
    let answer = Back::read(&Chat, cited.to_string().as_bytes(), &origin()).unwrap();
    assert!(matches!(&answer.choices[0].parts[0], Part::Text { citations, .. } if citations.len() == 1));
}

#[test]
fn an_answer_that_is_none_is_a_failure() {
    for (body, kind) in [
        ("<html>", Kind::BadAnswer),
        ("[]", Kind::BadAnswer),
        ("{}", Kind::BadAnswer),
        (r#"{"choices":[]}"#, Kind::BadAnswer),
        (r#"{"choices":[7]}"#, Kind::BadAnswer),
        (r#"{"choices":[{}]}"#, Kind::BadAnswer),
        (
            r#"{"error":{"message":"slow","code":"rate_limit_exceeded"}}"#,
            Kind::RateLimit,
        ),
        (
            r#"[{"error":{"message":"slow","code":"rate_limit_exceeded"}}]"#,
            Kind::RateLimit,
        ),
        (r#"{"error":"no"}"#, Kind::ServerError),
        (r#"{"object":"error","message":"no"}"#, Kind::ServerError),
        (
            r#"{"choices":[{"message":{},"finish_reason":"error"}]}"#,
            Kind::ServerError,
        ),
    ] {
        assert_eq!(
            Back::read(&Chat, body.as_bytes(), &origin()).unwrap_err().kind,
            kind,
            "{body}"
        );
    }
}

// === streams ===

fn listen(pieces: &[&[u8]]) -> (Vec<Event>, End) {
    let mut reader = Back::reader(&Chat, &origin());
    let mut events = Vec::new();
    for piece in pieces {
        if let Some(end) = reader.push(Bytes::copy_from_slice(piece), &mut events) {
            return (events, end);
        }
    }
    let end = reader.finish(&mut events);
    (events, end)
}

fn chunks(all: &[Value]) -> String {
    all.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "what is passed is written where it is passed"
)]
fn delta(delta: Value) -> Value {
    json!({"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finished(word: &str) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
}

/// What a stream said, each part in one piece.
fn parts(events: &[Event]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for event in events {
        let Event::Delta { choice: 0, part, delta } = event else {
            continue;
        };
        let at = *part as usize;
        assert!(at <= parts.len(), "a part begins out of order");
        let is_new = at == parts.len();
        if is_new {
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
                Delta::Call { id, name, is_custom } => Part::Call(ir::Call {
                    id: id.clone(),
                    name: name.clone(),
                    is_custom: *is_custom,
                    ..ir::Call::default()
                }),
                other => panic!("a part cannot begin with {other:?}"),
            });
        }
        match (&mut parts[at], delta) {
            (Part::Text { text, .. }, Delta::Text(more)) | (Part::Refusal(text), Delta::Refusal(more)) => {
                text.push_str(more)
            }
            (Part::Text { citations, .. }, Delta::Citation(citation)) => citations.push(citation.clone()),
            (Part::Thought(thought), Delta::Thought { text, is_summary }) => {
                thought.text.push_str(text);
                thought.is_summary |= is_summary;
            }
            (Part::Thought(thought), Delta::Seal(seal)) => thought.seal = Some(seal.clone()),
            (Part::Call(call), Delta::Arguments(more)) => call.arguments.push_str(more),
            (Part::Call(call), Delta::Seal(seal)) => call.seal = Some(seal.clone()),
            (Part::Thought(_), Delta::Redacted) | (Part::Call(_), Delta::Call { .. }) if is_new => {}
            (part, delta) => panic!("{delta:?} within {part:?}"),
        }
    }
    parts
}

fn finishes(events: &[Event]) -> Vec<Finish> {
    let finish = |event: &Event| match event {
        Event::Finish { finish, .. } => Some(finish.clone()),
        _ => None,
    };
    events.iter().filter_map(finish).collect()
}

#[test]
fn parallel_calls_are_told_apart_however_they_are_marked() {
    let two = [("a", "look", "{\"x\":1}"), ("b", "find", "{\"y\":2}")]
        .map(|(id, name, arguments)| call_part(id, name, arguments));
    let begin = |calls: Value| delta(json!({ "tool_calls": calls }));
    for (about, list) in [
        (
            "both in one chunk, then alternating",
            vec![
                begin(
                    json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": ""}},
                             {"index": 1, "id": "b", "type": "function", "function": {"name": "find", "arguments": ""}}]),
                ),
                begin(json!([{"index": 0, "function": {"arguments": "{\"x\""}}])),
                begin(json!([{"index": 1, "function": {"arguments": "{\"y\""}}])),
                begin(
                    json!([{"index": 0, "function": {"arguments": ":1}"}}, {"index": 1, "function": {"arguments": ":2}"}}]),
                ),
            ],
        ),
        (
            "without an index, by id",
            vec![
                begin(json!([{"id": "a", "function": {"name": "look", "arguments": "{\"x\":"}}])),
                begin(json!([{"id": "a", "function": {"arguments": "1}"}}])),
                begin(json!([{"id": "b", "function": {"name": "find", "arguments": "{\"y\":2}"}}])),
            ],
        ),
        (
            "all of them number 0",
            vec![
                begin(json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"x\":1}"}}])),
                begin(json!([{"index": 0, "id": "b", "function": {"name": "find", "arguments": "{\"y\":2}"}}])),
            ],
        ),
        (
            "an object for a text, a name that comes late",
            vec![
                begin(json!([{"index": 0, "id": "a", "function": {"arguments": "{\"x\":"}}])),
                begin(json!([{"index": 0, "function": {"name": "look", "arguments": "1}"}}])),
                begin(json!([{"index": 1, "id": "b", "function": {"name": "find", "arguments": {"y": 2}}}])),
            ],
        ),
    ] {
        let mut list = list;
        list.push(finished("stop"));
        let (events, end) = listen(&[chunks(&list).as_bytes()]);
        assert_eq!((parts(&events), end), (two.to_vec(), End::Complete), "{about}");
        assert_eq!(finishes(&events), [Finish::ToolCalls], "{about}");
    }
}

#[test]
fn calls_without_any_mark_get_ids() {
    let calls =
        json!([{"function": {"name": "look", "arguments": "{}"}}, {"function": {"name": "find", "arguments": "{}"}}]);
    let list = [delta(json!({ "tool_calls": calls })), finished("tool_calls")];
    let (events, _) = listen(&[chunks(&list).as_bytes()]);
    assert_eq!(
        parts(&events),
        [
            call_part("call_req10", "look", "{}"),
            call_part("call_req11", "find", "{}")
        ]
    );
    let older = [
        delta(json!({"function_call": {"name": "look", "arguments": ""}})),
        delta(json!({"function_call": {"arguments": "{}"}})),
        finished("function_call"),
    ];
    let (events, _) = listen(&[chunks(&older).as_bytes()]);
    assert_eq!(parts(&events), [call_part("call_req10", "look", "{}")]);
}

#[test]
fn usage_comes_in_many_places_and_never_breaks_a_stream() {
    let report =
        json!({"prompt_tokens": 2623, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2603}});
    for last in [
        json!({"id": "x", "usage": report}),
        json!({"id": "x", "choices": [], "usage": report}),
        json!({"id": "x", "choices": null, "usage": report}),
        json!({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": report}}),
    ] {
        let list = [
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"content": "Hi"})),
            finished("stop"),
            last,
        ];
        let (events, end) = listen(&[(chunks(&list) + "data: [DONE]\n\n").as_bytes()]);
        assert_eq!(end, End::Complete);
        let usage = events.iter().find_map(|event| match event {
            Event::Usage(usage) => Some(*usage),
            _ => None,
        });
        assert_eq!(usage.and_then(|usage| usage.cached), Some(2603));
        assert_eq!(
            (parts(&events), finishes(&events)),
            (vec![Part::text("Hi")], vec![Finish::Stop])
        );
    }
}

#[test]
fn a_finish_counts_once_and_an_empty_one_not_at_all() {
    let word =
        |word: Value, text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": word}]});
    let list = [
        word(json!(""), "a"),
        word(json!(null), "b"),
        word(json!("length"), "c"),
        word(json!("stop"), "d"),
    ];
    let (events, end) = listen(&[chunks(&list).as_bytes()]);
    assert_eq!(
        (parts(&events), finishes(&events), end),
        (vec![Part::text("abcd")], vec![Finish::Length], End::Complete)
    );
}

#[test]
fn how_a_stream_ends() {
    let hello = chunks(&[delta(json!({"content": "Hi"}))]);
    let stop = chunks(&[finished("stop")]);
    let failed = |text: &str| match listen(&[text.as_bytes()]).1 {
        End::Failed(error) => Some(error.kind),
        End::Complete => None,
    };
    for (text, kind) in [
        (format!("{hello}{stop}data: [DONE]\n\n"), None),
        (format!("{hello}{stop}"), None),
        (format!("{hello}data: not json\n\n{stop}"), None),
        (format!("{hello}data: [DONE]\n\n"), Some(Kind::Cut)),
        (hello.clone(), Some(Kind::Cut)),
        (String::new(), Some(Kind::Cut)),
        ("data: [DONE]\n\n".to_owned(), Some(Kind::BadAnswer)),
        ("data: not json\n\ndata: [DONE]\n\n".to_owned(), Some(Kind::BadAnswer)),
        (
            format!("{hello}data: {{\"error\":\"overloaded\"}}\n\n"),
            Some(Kind::ServerError),
        ),
        (
            format!("{hello}event: error\ndata: {{\"message\":\"x\",\"code\":\"rate_limit_exceeded\"}}\n\n"),
            Some(Kind::RateLimit),
        ),
        (
            format!("{hello}{{\"error\":\n{{\"code\":503}}}}"),
            Some(Kind::ServerError),
        ),
        (
            format!("{hello}{}", chunks(&[finished("error")])),
            Some(Kind::ServerError),
        ),
        (
            "data: {\"error\":{\"message\":\"too many tokens\",\"code\":\"context_length_exceeded\"}}\n\n".to_owned(),
            Some(Kind::ContextLength),
        ),
    ] {
        assert_eq!(failed(&text), kind, "{text}");
    }
}

#[test]
fn thoughts_and_their_seals_are_heard() {
    let sealed = |text: &str, seal: Option<&str>| {
        Part::Thought(Thought {
            text: text.into(),
            seal: seal.map(|seal| Seal::new(Maker::Anthropic, seal)),
            ..Thought::default()
        })
    };
    let piece = |value: Value| json!([value]);
    let openrouter = [
        delta(
            json!({"reasoning": "Let me ", "reasoning_details": piece(json!({"type": "reasoning.text", "text": "Let me ", "format": "anthropic-claude-v1", "index": 0}))}),
        ),
        delta(
            json!({"reasoning": "see.", "reasoning_details": piece(json!({"type": "reasoning.text", "text": "see.", "format": "anthropic-claude-v1", "index": 0}))}),
        ),
        delta(
            json!({"reasoning_details": piece(json!({"type": "reasoning.text", "signature": "sig", "format": "anthropic-claude-v1", "index": 0}))}),
        ),
        delta(json!({"content": "So."})),
        finished("stop"),
    ];
    let (events, _) = listen(&[chunks(&openrouter).as_bytes()]);
    assert_eq!(parts(&events), [sealed("Let me see.", Some("sig")), Part::text("So.")]);
    for name in ["reasoning", "reasoning_content"] {
        let mut one = delta(json!({}));
        one["choices"][0]["delta"][name] = json!("Hm.");
        let list = [one.clone(), delta(json!({"content": "So."})), one, finished("stop")];
        let (events, _) = listen(&[chunks(&list).as_bytes()]);
        assert_eq!(
            parts(&events),
            [sealed("Hm.", None), Part::text("So."), sealed("Hm.", None)]
        );
    }
    let mistral = [
        delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]})),
        delta(json!({"content": "So."})),
        finished("stop"),
    ];
    let (events, _) = listen(&[chunks(&mistral).as_bytes()]);
    assert_eq!(parts(&events), [sealed("Hm.", None), Part::text("So.")]);
}

#[test]
fn pictures_of_a_stream_are_heard() {
    let picture = |url: Value| json!({"type": "image_url", "image_url": {"url": url}});
    let url = "data:image/png;base64,iVBORw0=";
    let list = [
        delta(json!({"content": "See: ", "images": []})),
        delta(json!({"content": "", "images": [picture(json!(url)), picture(json!("")), "odd", picture(json!(7))]})),
        delta(json!({"images": [picture(json!("https://example.com/a.png"))]})),
        delta(json!({"images": null})),
        finished("stop"),
    ];
    let (events, end) = listen(&[chunks(&list).as_bytes()]);
    let want = format!("See: ![]({url})![](https://example.com/a.png)");
    assert_eq!((parts(&events), end), (vec![Part::text(want)], End::Complete));
}

fn speak(events: &[Event], wants_usage: bool) -> String {
    let body = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": wants_usage},
        "messages": [{"role": "user", "content": "Hi"}],
    });
    let mut writer = Front::writer(&Chat, &call(&body), "m");
    let (mut out, mut notes) = (Vec::new(), Notes::default());
    for event in events {
        writer.write(event.clone(), &mut out, &mut notes);
    }
    writer.finish(&mut out, &mut notes);
    String::from_utf8(out).unwrap()
}

fn frames(text: &str) -> Vec<Value> {
    let data = text.split("\n\n").filter_map(|frame| frame.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn say(part: u32, delta: Delta) -> Event {
    Event::Delta { choice: 0, part, delta }
}

fn calls(part: u32, id: &str, name: &str) -> Event {
    say(
        part,
        Delta::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            is_custom: false,
        },
    )
}

fn finish(finish: Finish) -> Event {
    Event::Finish { choice: 0, finish }
}

#[test]
fn every_delta_of_a_call_has_its_index_and_a_choice_ends_once() {
    let events = [
        calls(0, "a", "look"),
        calls(1, "b", "find"),
        say(1, Delta::Arguments("{\"y\":".into())),
        say(1, Delta::Arguments("2}".into())),
        finish(Finish::ToolCalls),
        finish(Finish::Stop),
    ];
    let frames = frames(&speak(&events, false));
    let role = &frames[0]["choices"][0]["delta"];
    assert_eq!(role, &json!({"role": "assistant", "content": null}));
    let indices: Vec<Value> = frames
        .iter()
        .filter_map(|frame| frame["choices"][0]["delta"].get("tool_calls"))
        .map(|calls| calls[0]["index"].clone())
        .collect();
    // The last one is that of the call without arguments.
    assert_eq!(indices, [json!(0), json!(1), json!(1), json!(1), json!(0)]);
    let reasons: Vec<&Value> = frames
        .iter()
        .map(|frame| &frame["choices"][0]["finish_reason"])
        .filter(|reason| !reason.is_null())
        .collect();
    assert_eq!(reasons, ["tool_calls"]);
    assert!(frames.iter().all(|frame| frame.get("usage").is_none()));
}

#[test]
fn a_choice_with_calls_ends_for_them_even_if_it_just_stopped() {
    let question = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let mut older = question.clone();
    older["functions"] = json!([{"name": "look"}]);
    let call_of = call_part("a", "look", "{}");
    for (body, said, end, want) in [
        (&question, call_of.clone(), Finish::Stop, "tool_calls"),
        (&older, call_of.clone(), Finish::Stop, "function_call"),
        (&older, call_of.clone(), Finish::ToolCalls, "function_call"),
        (&question, call_of, Finish::Length, "length"),
        (&question, Part::text("So."), Finish::Stop, "stop"),
        (&older, Part::text("So."), Finish::Stop, "stop"),
    ] {
        let mut notes = Notes::default();
        let mut events = events_of(std::slice::from_ref(&said));
        events.pop();
        events.push(finish(end.clone()));
        let (mut writer, mut out) = (Front::writer(&Chat, &call(body), "m"), Vec::new());
        for event in events {
            writer.write(event, &mut out, &mut notes);
        }
        writer.finish(&mut out, &mut notes);
        let frames = frames(&String::from_utf8(out).unwrap());
        assert_eq!(frames.last().unwrap()["choices"][0]["finish_reason"], want, "{said:?}");
        let answer = Answer {
            choices: vec![Choice {
                parts: vec![said],
                finish: end,
                logprobs: None,
            }],
            ..sample_answer()
        };
        let bytes = Front::write(&Chat, answer, &call(body), &mut notes);
        let whole: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(whole["choices"][0]["finish_reason"], want);
        assert!(notes.is_empty());
    }
}

#[test]
fn usage_is_in_the_last_chunk_and_null_before_if_it_was_asked_for() {
    let usage = Usage {
        prompt: Some(1),
        completion: Some(2),
        total: Some(3),
        ..Usage::default()
    };
    let events = [
        say(0, Delta::Text("Hi".into())),
        Event::Usage(usage),
        finish(Finish::Stop),
    ];
    let text = speak(&events, true);
    assert!(text.ends_with("}\n\ndata: [DONE]\n\n"));
    let frames = frames(&text);
    let (last, before) = frames.split_last().unwrap();
    assert_eq!(
        (&last["choices"], &last["usage"]["total_tokens"]),
        (&json!([]), &json!(3))
    );
    assert!(before.iter().all(|frame| frame.get("usage") == Some(&Value::Null)));
    assert!(
        frames
            .iter()
            .all(|frame| frame["id"] == "chatcmpl-req-1" && frame["created"] == 1_700_000_000)
    );
}

/// A script of a stream: thoughts with seals, then a text, then calls.
fn script() -> impl Strategy<Value = (Vec<Part>, Vec<usize>)> {
    let maker = prop_oneof![Just(Maker::OpenAi), Just(Maker::Anthropic), Just(Maker::Gemini)];
    let thought = (text(), any::<bool>(), maker.clone(), 0..3).prop_map(|(text, is_summary, maker, kind)| {
        Part::Thought(match kind {
            0 => Thought {
                is_redacted: true,
                seal: Some(Seal::new(maker, "s")),
                ..Thought::default()
            },
            1 => Thought {
                seal: Some(Seal::new(maker, "s")),
                ..Thought::default()
            },
            _ => Thought {
                text,
                is_summary,
                seal: Some(Seal::new(maker, "s")),
                is_redacted: false,
            },
        })
    });
    let called = ("[a-z]{1,8}", text(), any::<bool>(), prop::option::of(maker)).prop_map(
        |(name, arguments, is_custom, maker)| {
            Part::Call(ir::Call {
                id: String::new(),
                name,
                arguments,
                is_custom,
                seal: maker.map(|maker| Seal::new(maker, "s")),
                cache: None,
            })
        },
    );
    let parts = (
        prop::collection::vec(thought, 0..4),
        prop::option::of(text()),
        prop::collection::vec(called, 0..4),
    );
    (parts, prop::collection::vec(0_usize..4000, 0..6)).prop_map(|((thoughts, said, mut calls), cuts)| {
        for (index, part) in calls.iter_mut().enumerate() {
            if let Part::Call(call) = part {
                call.id = format!("call_{index}");
            }
        }
        (
            thoughts.into_iter().chain(said.map(Part::text)).chain(calls).collect(),
            cuts,
        )
    })
}

fn events_of(parts: &[Part]) -> Vec<Event> {
    let mut events = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let number = u32::try_from(index).unwrap();
        let halves = |text: &str| {
            let middle = text
                .char_indices()
                .nth(text.chars().count() / 2)
                .map_or(0, |(at, _)| at);
            let (a, b) = text.split_at(middle);
            [a.to_owned(), b.to_owned()]
        };
        match part {
            Part::Text { text, .. } => events.extend(halves(text).map(|text| say(number, Delta::Text(text)))),
            Part::Thought(thought) => {
                if thought.is_redacted {
                    events.push(say(number, Delta::Redacted));
                } else {
                    let is_summary = thought.is_summary;
                    events.extend(halves(&thought.text).map(|text| say(number, Delta::Thought { text, is_summary })));
                }
                events.extend(thought.seal.clone().map(|seal| say(number, Delta::Seal(seal))));
            }
            Part::Call(call) => {
                let (id, name, is_custom) = (call.id.clone(), call.name.clone(), call.is_custom);
                events.push(say(number, Delta::Call { id, name, is_custom }));
                events.extend(call.seal.clone().map(|seal| say(number, Delta::Seal(seal))));
                events.extend(halves(&call.arguments).map(|text| say(number, Delta::Arguments(text))));
            }
            _ => {}
        }
    }
    let has_calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
    events.push(finish(if has_calls { Finish::ToolCalls } else { Finish::Stop }));
    events
}

fn pieces<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for cut in cuts {
        pieces.push(&text[from..cut]);
        from = cut;
    }
    pieces.push(&text[from..]);
    pieces
}

proptest! {
    #[test]
    fn a_stream_comes_back_as_it_was_in_any_pieces((said, cuts) in script()) {
        let text = speak(&events_of(&said), true);
        let (whole, end) = listen(&[text.as_bytes()]);
        prop_assert_eq!(&end, &End::Complete);
        prop_assert_eq!(parts(&whole), said);
        prop_assert_eq!(listen(&pieces(text.as_bytes(), &cuts)), (whole, end));
    }

    #[test]
    fn nothing_that_arrives_makes_it_fall(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(0_usize..200, 0..4)) {
        let _ = listen(&pieces(&bytes, &cuts));
        let _ = Back::read(&Chat, &bytes, &origin());
    }
}

#[test]
fn custom_tools_keep_their_grammar() {
    let prompt = asking(&json!({"tools": [{"type": "custom", "custom": {"name": "p", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}}}]})).unwrap();
    let flat = json!({"type": "grammar", "syntax": "lark", "definition": "x"});
    assert_eq!(prompt.tools[0].kind, ToolKind::Custom(Custom { format: Some(flat) }));
    let body = written(&prompt, "gpt-5");
    assert_eq!(body["tools"][0]["custom"]["format"]["grammar"]["syntax"], "lark");
    let (body, notes) = writing(&prompt, Surface::Responses, "deepseek-chat");
    assert_eq!(
        body.unwrap()["tools"][0]["function"]["parameters"]["required"],
        json!(["input"])
    );
    assert_eq!(notes.count(Fate::Approximated), 1);
}
