use super::{Converse, LETTERS};
use crate::bedrock::common::{Tools, fitting_name};
use crate::bedrock::frames::tests::frame;
use crate::codec::{Ask, Back};
use crate::ir::{
    Audio, Call, Custom, Delta, Document, Effort, Event, Finish, Format, Image, Maker, Message, Part, Prompt,
    Reasoning, ResultOf, Role, Sampling, Seal, Source, Stranger, Thought, Tool, ToolChoice, ToolKind,
};
use crate::notes::{Fate, Notes};
use crate::{End, Origin, Surface};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use switchyard_core::error::Kind;

const SONNET: &str = "anthropic.claude-sonnet-4-5-20250929-v1:0";

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message {
        at: crate::ir::Place::default(),
        role,
        name: None,
        parts,
    }
}

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt {
        messages,
        ..Prompt::default()
    }
}

fn hello() -> Prompt {
    prompt(vec![message(Role::User, vec![Part::text("Hello")])])
}

fn written(prompt: &Prompt, model: &str) -> (Value, Notes) {
    let ask = Ask {
        model,
        surface: Surface::Chat,
        stream: false,
    };
    let mut notes = Notes::default();
    let body = Converse::default().write(prompt, &ask, &mut notes).unwrap();
    assert_eq!(
        Converse::default().write(prompt, &ask, &mut Notes::default()).unwrap(),
        body
    );
    (serde_json::from_slice(&body).unwrap(), notes)
}

fn refused(part: Part) -> (Kind, String) {
    let ask = Ask {
        model: SONNET,
        surface: Surface::Chat,
        stream: false,
    };
    let prompt = prompt(vec![message(Role::User, vec![part])]);
    let error = Converse::default()
        .write(&prompt, &ask, &mut Notes::default())
        .unwrap_err();
    (error.kind, error.param.unwrap_or_default())
}

fn tool(name: &str) -> Tool {
    Tool {
        at: crate::ir::Place::default(),
        name: name.to_owned(),
        description: Some("d".to_owned()),
        kind: ToolKind::Function {
            schema: Some(json!({"type": "object", "properties": {"b": {}, "a": {}}})),
            strict: None,
        },
        cache: None,
    }
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::Call(Call {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        ..Call::default()
    })
}

fn result(id: &str, text: &str) -> Part {
    Part::Result(ResultOf {
        call_id: id.to_owned(),
        parts: vec![Part::text(text)],
        ..ResultOf::default()
    })
}

#[test]
fn turns_alternate_and_the_system_stands_in_front() {
    let prompt = prompt(vec![
        message(Role::System, vec![Part::text("Be brief.")]),
        message(Role::User, vec![Part::text("a")]),
        message(Role::User, vec![Part::text("b"), Part::text(" ")]),
        message(Role::Developer, vec![Part::text("Be kind.")]),
        message(
            Role::Assistant,
            vec![call("c1", "f", "{\"b\":1,\"a\":2}"), call("odd.id", "f", "")],
        ),
        message(Role::Tool, vec![result("c1", "r1")]),
        message(Role::Tool, vec![result("odd.id", "")]),
        message(Role::Assistant, vec![Part::text("done ")]),
    ]);
    let (body, notes) = written(&prompt, SONNET);
    assert_eq!(
        body.get("system").unwrap(),
        &json!([{"text": "Be brief."}, {"text": "Be kind."}])
    );
    let odd = crate::ids::fitting("odd.id", 64).into_owned();
    let want = json!([
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"b": 1, "a": 2}}},
            {"toolUse": {"toolUseId": odd, "name": "f", "input": {}}},
        ]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "c1", "content": [{"text": "r1"}]}},
            {"toolResult": {"toolUseId": odd, "content": [{"text": "(no output)"}]}},
        ]},
        {"role": "assistant", "content": [{"text": "done"}]},
    ]);
    assert_eq!(body.get("messages").unwrap(), &want);
    // What was called has to be offered, though the caller does not offer it any more.
    assert_eq!(body.pointer("/toolConfig/tools/0/toolSpec/name").unwrap(), "f");
    assert_eq!(notes.to_string(), "dropped=1, approximated=2");
}

#[test]
fn media_travel_as_bytes_and_addresses_do_not() {
    let data = |media_type: &str| Source::Data {
        media_type: media_type.to_owned(),
        base64: "QUJD".to_owned(),
    };
    let image = |source| {
        Part::Image(Image {
            source,
            detail: None,
            cache: None,
        })
    };
    let document = |source, name: Option<&str>| {
        Part::Document(Document {
            source,
            name: name.map(str::to_owned),
            context: None,
            cite: Some(true),
            cache: None,
        })
    };
    let audio = |source, format: Option<&str>| {
        Part::Audio(Audio {
            source,
            format: format.map(str::to_owned),
            transcript: None,
        })
    };
    let parts = vec![
        image(data("image/png")),
        image(Source::Url("s3://bucket/a.webp".to_owned())),
        document(data("application/pdf"), Some("q3_report.pdf")),
        document(Source::Text("plain".to_owned()), Some("q3_report.pdf")),
        document(data("video/mp4"), None),
        audio(data("audio/wav"), Some("wav")),
    ];
    let (body, _) = written(&prompt(vec![message(Role::User, parts)]), SONNET);
    let want = json!([
        {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
        {"image": {"format": "webp", "source": {"s3Location": {"uri": "s3://bucket/a.webp"}}}},
        {"document": {"format": "pdf", "name": "q3-report", "source": {"bytes": "QUJD"}, "citations": {"enabled": true}}},
        {"document": {"format": "txt", "name": "q3-report (2)", "source": {"text": "plain"}, "citations": {"enabled": true}}},
        {"video": {"format": "mp4", "source": {"bytes": "QUJD"}}},
        {"audio": {"format": "wav", "source": {"bytes": "QUJD"}}},
        {"text": "See the document."},
    ]);
    assert_eq!(body.pointer("/messages/0/content").unwrap(), &want);
    let field = |media: &str| (Kind::Unsupported, format!("messages[].content[].{media}"));
    assert_eq!(
        refused(image(Source::Url("https://x/a.png".to_owned()))),
        field("image_url")
    );
    assert_eq!(
        refused(image(Source::Url("https://x/a".to_owned()))),
        field("image_url")
    );
    assert_eq!(refused(image(data("image/svg+xml"))), field("image_url"));
    assert_eq!(
        refused(document(Source::File("file-1".to_owned()), None)),
        field("file")
    );
    assert_eq!(refused(document(data("application/zip"), None)), field("file"));
    let odd = Stranger {
        field: "messages[0].content[0].odd".to_owned(),
        value: Value::Null,
    };
    assert_eq!(refused(Part::Stranger(odd.clone())), (Kind::Unsupported, odd.field));
}

#[test]
fn only_what_its_model_signed_is_taken_back() {
    let thought = |maker| {
        Part::Thought(Thought {
            text: "hm".to_owned(),
            seal: Some(Seal::new(maker, "c2ln")),
            ..Thought::default()
        })
    };
    let redacted = Part::Thought(Thought {
        seal: Some(Seal::new(Maker::Anthropic, "cmVk")),
        is_redacted: true,
        ..Thought::default()
    });
    let said = |model: &str| {
        let parts = vec![
            thought(Maker::Anthropic),
            redacted.clone(),
            thought(Maker::OpenAi),
            Part::text("x"),
        ];
        let (body, notes) = written(&prompt(vec![message(Role::Assistant, parts)]), model);
        (
            body.pointer("/messages/0/content").unwrap().clone(),
            notes.count(Fate::Dropped),
        )
    };
    let text = json!({"text": "hm", "signature": "c2ln"});
    let want = json!([
        {"reasoningContent": {"reasoningText": text}},
        {"reasoningContent": {"redactedContent": "cmVk"}},
        {"text": "x"},
    ]);
    assert_eq!(said(SONNET), (want, 1));
    assert_eq!(said("meta.llama3-3-70b-instruct-v1:0"), (json!([{"text": "x"}]), 1));
}

#[test]
fn parameters_go_where_their_model_takes_them() {
    let full = Prompt {
        sampling: Sampling {
            temperature: Some(1.5),
            top_p: Some(0.5),
            top_k: Some(40),
            stop: vec!["END".to_owned()],
            ..Sampling::default()
        },
        max_tokens: Some(100),
        metadata: Some(json!({"team": "a", "n": 1, "odd": "é", "deep": {}})),
        service_tier: Some("flex".to_owned()),
        parallel_tools: Some(false),
        tools: vec![tool("f")],
        ..hello()
    };
    let (body, notes) = written(&full, SONNET);
    let inference = json!({"maxTokens": 100, "temperature": 1.0, "stopSequences": ["END"]});
    assert_eq!(body.get("inferenceConfig").unwrap(), &inference);
    let choice = json!({"type": "auto", "disable_parallel_tool_use": true});
    let additional = json!({"top_k": 40, "tool_choice": choice});
    assert_eq!(body.get("additionalModelRequestFields").unwrap(), &additional);
    assert_eq!(
        body.get("additionalModelResponseFieldPaths").unwrap(),
        &json!(["/stop_sequence"])
    );
    assert_eq!(body.get("requestMetadata").unwrap(), &json!({"team": "a", "n": "1"}));
    assert_eq!(body.get("serviceTier").unwrap(), &json!({"type": "flex"}));
    assert_eq!(notes.to_string(), "dropped=3, approximated=1");
    let (body, _) = written(&full, "amazon.nova-pro-v1:0");
    let inference = json!({"maxTokens": 100, "temperature": 1.0, "topP": 0.5, "stopSequences": ["END"]});
    assert_eq!(body.get("inferenceConfig").unwrap(), &inference);
    assert_eq!(
        body.get("additionalModelRequestFields").unwrap(),
        &json!({"inferenceConfig": {"topK": 40}})
    );
    let (body, _) = written(&hello(), SONNET);
    assert_eq!(
        body,
        json!({"messages": [{"role": "user", "content": [{"text": "Hello"}]}]})
    );
}

#[test]
fn reasoning_is_asked_for_in_the_models_way() {
    let asked = |reasoning: Reasoning, model: &str, max_tokens: Option<u64>| {
        let prompt = Prompt {
            reasoning: Some(reasoning),
            max_tokens,
            ..hello()
        };
        let (body, _) = written(&prompt, model);
        body.get("additionalModelRequestFields").cloned().unwrap_or_default()
    };
    let effort = |effort| Reasoning {
        effort: Some(effort),
        ..Reasoning::default()
    };
    let budget = |tokens| Reasoning {
        budget: Some(tokens),
        ..Reasoning::default()
    };
    let enabled = |tokens: u64| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    assert_eq!(asked(effort(Effort::Medium), SONNET, None), enabled(8192));
    assert_eq!(asked(budget(5000), SONNET, Some(8000)), enabled(5000));
    assert_eq!(asked(budget(5000), SONNET, Some(3000)), enabled(2999));
    assert_eq!(asked(budget(10), SONNET, None), enabled(1024));
    assert_eq!(asked(budget(5000), SONNET, Some(100)), Value::Null);
    assert_eq!(
        asked(effort(Effort::None), SONNET, None),
        json!({"thinking": {"type": "disabled"}})
    );
    let opus = "global.anthropic.claude-opus-4-6-v1";
    let adaptive = json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}});
    assert_eq!(asked(effort(Effort::High), opus, None), adaptive);
    let nova = json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}});
    assert_eq!(asked(effort(Effort::High), "amazon.nova-2-lite-v1:0", Some(100)), nova);
    let gpt = json!({"reasoning_effort": "low"});
    assert_eq!(asked(effort(Effort::Minimal), "openai.gpt-oss-20b-1:0", None), gpt);
    assert_eq!(
        asked(effort(Effort::High), "meta.llama3-1-8b-instruct-v1:0", None),
        Value::Null
    );
}

#[test]
fn a_model_does_not_begin_to_think_between_a_call_and_its_result() {
    let with = |parts| {
        let asked = Prompt {
            messages: vec![
                message(Role::User, vec![Part::text("a")]),
                message(Role::Assistant, parts),
                message(Role::Tool, vec![result("c1", "r")]),
            ],
            tools: vec![tool("f")],
            reasoning: Some(Reasoning {
                budget: Some(2000),
                ..Reasoning::default()
            }),
            ..Prompt::default()
        };
        written(&asked, SONNET).0.get("additionalModelRequestFields").is_some()
    };
    let thought = Part::Thought(Thought {
        text: "hm".to_owned(),
        seal: Some(Seal::new(Maker::Anthropic, "c2ln")),
        ..Thought::default()
    });
    assert!(!with(vec![call("c1", "f", "{}")]));
    assert!(with(vec![thought, call("c1", "f", "{}")]));
}

#[test]
fn tools_and_choices_are_what_converse_has() {
    let custom = Tool {
        at: crate::ir::Place::default(),
        kind: ToolKind::Custom(Custom::default()),
        ..tool("patch")
    };
    let vendors = Tool {
        at: crate::ir::Place::default(),
        kind: ToolKind::Vendors(Stranger {
            field: "tools[2]".to_owned(),
            value: Value::Null,
        }),
        ..tool("web_search")
    };
    let asked = |choice: Option<ToolChoice>| {
        let prompt = Prompt {
            tools: vec![tool("get.it"), custom.clone(), vendors.clone()],
            tool_choice: choice,
            ..hello()
        };
        let (body, notes) = written(&prompt, SONNET);
        (body.get("toolConfig").cloned().unwrap_or_default(), notes)
    };
    let (config, notes) = asked(None);
    let sent = fitting_name("get.it", LETTERS);
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    let text = json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]});
    let want = json!({"tools": [
        {"toolSpec": {"name": sent, "description": "d", "inputSchema": {"json": schema}}},
        {"toolSpec": {"name": "patch", "description": "d", "inputSchema": {"json": text}}},
    ]});
    assert_eq!(config.to_string(), want.to_string());
    assert_eq!(notes.to_string(), "dropped=1, approximated=1, mapped=1");
    let choice = |choice| asked(Some(choice)).0.get("toolChoice").cloned().unwrap_or_default();
    assert_eq!(choice(ToolChoice::Auto), json!({"auto": {}}));
    assert_eq!(choice(ToolChoice::Required), json!({"any": {}}));
    assert_eq!(
        choice(ToolChoice::Named("get.it".to_owned())),
        json!({"tool": {"name": sent}})
    );
    assert_eq!(asked(Some(ToolChoice::None)).0, Value::Null);
    let among = ToolChoice::Among {
        names: vec!["patch".to_owned()],
        required: true,
    };
    let (config, _) = asked(Some(among));
    assert_eq!(config.pointer("/tools/0/toolSpec/name").unwrap(), "patch");
    assert_eq!(config.pointer("/tools/1"), None);
}

#[test]
fn a_schema_is_sent_or_told_in_words() {
    let asked = Prompt {
        format: Some(Format::Schema {
            name: Some("person".to_owned()),
            description: None,
            schema: json!({"type": "object"}),
            strict: Some(true),
        }),
        ..hello()
    };
    let (body, notes) = written(&asked, SONNET);
    let schema = json!({"jsonSchema": {"schema": "{\"type\":\"object\"}", "name": "person"}});
    let want = json!({"textFormat": {"type": "json_schema", "structure": schema}});
    assert_eq!((body.get("outputConfig").unwrap(), body.get("system")), (&want, None));
    assert!(notes.is_empty());
    let (body, notes) = written(&asked, "amazon.nova-pro-v1:0");
    assert!(
        body.pointer("/system/0/text")
            .unwrap()
            .as_str()
            .unwrap()
            .ends_with("{\"type\":\"object\"}")
    );
    assert_eq!((body.get("outputConfig"), notes.count(Fate::Approximated)), (None, 1));
}

#[test]
fn marks_for_the_cache_become_points() {
    let marked = |cache: Value| Part::Text {
        text: "long".to_owned(),
        citations: Vec::new(),
        cache: Some(cache),
    };
    let asked = Prompt {
        tools: vec![Tool {
            at: crate::ir::Place::default(),
            cache: Some(json!({"type": "ephemeral"})),
            ..tool("f")
        }],
        messages: vec![
            message(Role::System, vec![marked(json!({"type": "ephemeral", "ttl": "1h"}))]),
            message(Role::User, vec![marked(json!({"type": "ephemeral", "ttl": "5m"}))]),
        ],
        ..Prompt::default()
    };
    let (body, _) = written(&asked, SONNET);
    assert_eq!(
        body.pointer("/system/1").unwrap(),
        &json!({"cachePoint": {"type": "default", "ttl": "1h"}})
    );
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(body.pointer("/messages/0/content/1").unwrap(), &point);
    assert_eq!(body.pointer("/toolConfig/tools/1").unwrap(), &point);
    let (body, notes) = written(&asked, "meta.llama3-1-8b-instruct-v1:0");
    // One of the messages and one of the tool.
    assert_eq!((body.pointer("/system/1"), notes.count(Fate::Dropped)), (None, 2));
}

/// The answer to a request that had a tool of an odd name and one that takes any text.
fn answering() -> Converse {
    let prompt = Prompt {
        tools: vec![
            tool("get.it"),
            Tool {
                at: crate::ir::Place::default(),
                kind: ToolKind::Custom(Custom::default()),
                ..tool("patch")
            },
        ],
        ..Prompt::default()
    };
    Converse {
        tools: Arc::new(Tools::of_prompt(&prompt, LETTERS)),
    }
}

#[test]
fn whole_answers_are_read() {
    let sent = fitting_name("get.it", LETTERS);
    let body = json!({
        "output": {"message": {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
            {"reasoningContent": {"redactedContent": "cmVk"}},
            {"text": "Hi"},
            {"citationsContent": {
                "content": [{"text": "cited"}],
                "citations": [{"title": "t", "sourceContent": [{"text": "q"}], "location": {"documentChar": {"documentIndex": 1, "start": 0, "end": 4}}}],
            }},
            {"toolUse": {"toolUseId": "t1", "name": sent, "input": {"id": 12_345_678_901_234_567_890_u64}}},
            {"toolUse": {"toolUseId": "t2", "name": "patch", "input": {"input": "*** x"}}},
            {"guardContent": {}},
        ]}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 3, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 3},
        "metrics": {"latencyMs": 1},
        "serviceTier": {"type": "default"},
    });
    let answer = answering()
        .read(body.to_string().as_bytes(), &Origin::default())
        .unwrap();
    let usage = answer.usage;
    assert_eq!(
        (usage.prompt, usage.completion, usage.total),
        (Some(10), Some(5), Some(15))
    );
    assert_eq!((usage.cached, usage.cache_write), (Some(4), Some(3)));
    let choice = answer.choices.into_iter().next().unwrap();
    assert_eq!(choice.finish, Finish::ToolCalls);
    let [thought, redacted, text, cited, call, custom, odd] = &choice.parts[..] else {
        panic!("{:?}", choice.parts);
    };
    assert!(
        matches!(thought, Part::Thought(thought) if thought.text == "hm" && thought.seal.as_ref().unwrap().data == "c2ln")
    );
    assert!(matches!(redacted, Part::Thought(thought) if thought.is_redacted));
    assert_eq!(text, &Part::text("Hi"));
    assert!(
        matches!(cited, Part::Text { text, citations, .. } if text == "cited" && citations.first().unwrap().document == Some(1))
    );
    assert!(
        matches!(call, Part::Call(call) if call.name == "get.it" && call.arguments == "{\"id\":12345678901234567890}")
    );
    // That it is a tool which takes any text is told to the caller by whoever translates.
    assert!(matches!(custom, Part::Call(call) if !call.is_custom && call.arguments.contains("*** x")));
    assert!(matches!(odd, Part::Stranger(stranger) if stranger.field == "output.message.content[6]"));
}

#[test]
fn reasons_to_end_are_told_apart() {
    for (reason, finish) in [
        ("end_turn", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("guardrail_intervened", Finish::ContentFilter),
        ("content_filtered", Finish::ContentFilter),
        ("model_context_window_exceeded", Finish::ContextWindow),
        ("malformed_tool_use", Finish::Other("malformed_tool_use".to_owned())),
    ] {
        let body = json!({"output": {"message": {"content": []}}, "stopReason": reason});
        let answer = Converse::default()
            .read(body.to_string().as_bytes(), &Origin::default())
            .unwrap();
        assert_eq!(answer.choices.first().unwrap().finish, finish);
    }
    let body = json!({
        "output": {"message": {"content": []}},
        "stopReason": "stop_sequence",
        "additionalModelResponseFields": {"stop_sequence": "END"},
    });
    let answer = Converse::default()
        .read(body.to_string().as_bytes(), &Origin::default())
        .unwrap();
    assert_eq!(
        answer.choices.first().unwrap().finish,
        Finish::StopSequence(Some("END".to_owned()))
    );
}

#[test]
fn failures_under_200_are_failures() {
    for (body, kind) in [
        (
            r#"{"__type":"x#ThrottlingException","message":"slow"}"#,
            Kind::RateLimit,
        ),
        (
            r#"{"message":"Input is too long for requested model."}"#,
            Kind::ContextLength,
        ),
        (r#"{"Message":"no"}"#, Kind::ServerError),
        (
            r#"{"error":{"message":"m","code":"rate_limit_exceeded"}}"#,
            Kind::RateLimit,
        ),
        ("{}", Kind::BadAnswer),
        ("<html>", Kind::BadAnswer),
        ("[]", Kind::BadAnswer),
        (r#"{"output":{"message":{"content":[1]}}}"#, Kind::BadAnswer),
    ] {
        let error = Converse::default()
            .read(body.as_bytes(), &Origin::default())
            .unwrap_err();
        assert_eq!((error.kind, error.status), (kind, Some(200)), "{body}");
    }
}

fn event(kind: &str, payload: &Value) -> Vec<u8> {
    frame(
        &[
            (":message-type", "event"),
            (":event-type", kind),
            (":content-type", "application/json"),
        ],
        &payload.to_string(),
    )
}

/// A thought, a text, a call whose arguments come in pieces between those of another one, and one of any text.
fn stream() -> Vec<u8> {
    let sent = fitting_name("get.it", LETTERS).into_owned();
    let start = |n: u64, id: &str, name: &str| json!({"contentBlockIndex": n, "start": {"toolUse": {"toolUseId": id, "name": name}}});
    let delta = |n: u64, delta: Value| {
        (
            "contentBlockDelta",
            json!({"contentBlockIndex": n, "delta": delta, "p": "abc"}),
        )
    };
    let stop = |n: u64| ("contentBlockStop", json!({"contentBlockIndex": n}));
    let usage = json!({"inputTokens": 3, "outputTokens": 5, "totalTokens": 12, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 0});
    [
        ("messageStart", json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"text": "h"}})),
        delta(0, json!({"reasoningContent": {"text": "m"}})),
        delta(0, json!({"reasoningContent": {"signature": "c2ln"}})),
        stop(0),
        // An empty block leaves no gap.
        delta(1, json!({"text": ""})),
        stop(1),
        delta(2, json!({"text": "Hél"})),
        delta(2, json!({"text": "lo"})),
        delta(2, json!({"citation": {"title": "t"}})),
        stop(2),
        ("contentBlockStart", start(3, "t1", &sent)),
        delta(3, json!({"toolUse": {"input": "{\"a\""}})),
        ("contentBlockStart", start(4, "t2", "patch")),
        delta(4, json!({"toolUse": {"input": "{\"input\":\"x"}})),
        delta(3, json!({"toolUse": {"input": ":1}"}})),
        delta(4, json!({"toolUse": {"input": "y\"}"}})),
        stop(3),
        stop(4),
        ("somethingNew", json!({"x": 1})),
        ("messageStop", json!({"stopReason": "tool_use"})),
        ("metadata", json!({"usage": usage, "metrics": {"latencyMs": 7}})),
    ]
    .iter()
    .flat_map(|(kind, payload)| event(kind, payload))
    .collect()
}

fn read(pieces: &[&[u8]]) -> (Vec<Event>, End) {
    let mut reader = answering().reader(&Origin::default());
    let mut events = Vec::new();
    let mut end = None;
    for piece in pieces {
        let now = reader.push(Bytes::copy_from_slice(piece), &mut events);
        assert!(end.is_none() || now.is_none());
        end = end.or(now);
    }
    let end = end.unwrap_or_else(|| reader.finish(&mut events));
    (events, end)
}

#[test]
fn a_stream_is_read_step_by_step() {
    let (events, end) = read(&[&stream()]);
    assert_eq!(end, End::Complete);
    let delta = |part, delta| Event::Delta { choice: 0, part, delta };
    let thought = |text: &str| Delta::Thought {
        text: text.to_owned(),
        is_summary: false,
    };
    let call = |id: &str, name: &str| Delta::Call {
        id: id.to_owned(),
        name: name.to_owned(),
        is_custom: false,
    };
    let end = |part| Event::End { choice: 0, part };
    let citation = crate::ir::Citation {
        title: Some("t".to_owned()),
        ..crate::ir::Citation::default()
    };
    let want = [
        delta(0, thought("h")),
        delta(0, thought("m")),
        delta(0, Delta::Seal(Seal::new(Maker::Anthropic, "c2ln"))),
        end(0),
        delta(1, Delta::Text("Hél".to_owned())),
        delta(1, Delta::Text("lo".to_owned())),
        delta(1, Delta::Citation(citation)),
        end(1),
        delta(2, call("t1", "get.it")),
        delta(2, Delta::Arguments("{\"a\"".to_owned())),
        delta(3, call("t2", "patch")),
        delta(3, Delta::Arguments("{\"input\":\"x".to_owned())),
        delta(2, Delta::Arguments(":1}".to_owned())),
        delta(3, Delta::Arguments("y\"}".to_owned())),
        end(2),
        end(3),
        Event::Finish {
            choice: 0,
            finish: Finish::ToolCalls,
        },
    ];
    assert_eq!(events.get(1..events.len() - 1).unwrap(), want);
    assert!(matches!(events.first(), Some(Event::Start { .. })));
    let Some(Event::Usage(usage)) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(
        (usage.prompt, usage.completion, usage.cached),
        (Some(7), Some(5), Some(4))
    );
}

#[test]
fn failures_and_cuts_of_a_stream_are_told() {
    let begun = event("messageStart", &json!({"role": "assistant"}));
    let text = event(
        "contentBlockDelta",
        &json!({"contentBlockIndex": 0, "delta": {"text": "Hi"}}),
    );
    let stop = event("messageStop", &json!({"stopReason": "end_turn"}));
    let exception = |name: &str, message: &str| {
        let payload = json!({ "message": message }).to_string();
        frame(&[(":message-type", "exception"), (":exception-type", name)], &payload)
    };
    let error = frame(
        &[
            (":message-type", "error"),
            (":error-code", "InternalFailure"),
            (":error-message", "oh"),
        ],
        "",
    );
    let kind = |pieces: &[&[u8]]| match read(&[&pieces.concat()]).1 {
        End::Failed(error) => Some(error.kind),
        End::Complete => None,
    };
    for (name, message, want) in [
        ("throttlingException", "slow down", Kind::RateLimit),
        ("modelStreamErrorException", "oh", Kind::ServerError),
        ("serviceUnavailableException", "oh", Kind::ServerError),
        (
            "validationException",
            "Input is too long for requested model.",
            Kind::ContextLength,
        ),
        ("validationException", "odd", Kind::Refused),
    ] {
        assert_eq!(kind(&[&begun, &text, &exception(name, message)]), Some(want), "{name}");
        assert_eq!(kind(&[&exception(name, message)]), Some(want), "{name}");
    }
    assert_eq!(kind(&[&begun, &text, &error]), Some(Kind::ServerError));
    assert_eq!(kind(&[]), Some(Kind::Cut));
    assert_eq!(kind(&[&begun, &text]), Some(Kind::Cut));
    assert_eq!(kind(&[&begun, &text, &stop[..9]]), Some(Kind::Cut));
    // What was used is missing, and the answer is whole.
    assert_eq!(kind(&[&begun, &text, &stop]), None);
    let mut wrong = text.clone();
    *wrong.last_mut().unwrap() ^= 1;
    assert_eq!(kind(&[&begun, &wrong, &stop]), Some(Kind::BadAnswer));
    let odd = frame(&[(":message-type", "event"), (":event-type", "contentBlockDelta")], "{");
    assert_eq!(kind(&[&odd]), Some(Kind::BadAnswer));
    assert_eq!(kind(&[&begun, &odd, &text, &stop]), None);
    assert_eq!(
        kind(&[b"{\"message\":\"Too many tokens, please wait before trying again.\"}"]),
        Some(Kind::RateLimit)
    );
    assert_eq!(kind(&[b"<html>no</html>"]), Some(Kind::BadAnswer));
}

#[test]
fn every_split_in_two_gives_the_same() {
    let all = stream();
    let whole = read(&[&all]);
    for at in 0..all.len() {
        let (a, b) = all.split_at(at);
        assert_eq!(read(&[a, b]), whole, "split at {at}");
    }
}

proptest! {
    #[test]
    fn any_split_gives_the_same(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let all = stream();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for at in cuts {
            pieces.push(&all[from..at]);
            from = at;
        }
        pieces.push(&all[from..]);
        prop_assert_eq!(read(&pieces), read(&[&all]));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), flip in any::<prop::sample::Index>()) {
        let _ = read(&[&bytes]);
        let mut all = stream();
        let at = flip.index(all.len());
        if let Some(byte) = all.get_mut(at) {
            *byte = byte.wrapping_add(1);
        }
        let _ = read(&[&all]);
        let _ = Converse::default().read(&bytes, &Origin::default());
    }
}
