//! Requests to the vendor.

use super::{fields, sent_to};
use crate::ir::{
    Audio, Call, Custom, Document, Effort, Format, Image, Maker, Message, Part, Prompt, Reasoning, ResultOf, Role,
    Sampling, Seal, Source, Stranger, Thought, Tool, ToolChoice, ToolKind,
};
use crate::notes::{Fate, Notes};
use serde_json::{Value, json};
use switchyard_core::error::Kind;

fn said(role: Role, text: &str) -> Message {
    Message {
        at: crate::ir::Place::default(),
        role,
        name: None,
        parts: vec![Part::text(text)],
    }
}

fn with(messages: Vec<Message>) -> Prompt {
    Prompt {
        messages,
        ..Prompt::default()
    }
}

fn hi() -> Prompt {
    with(vec![said(Role::User, "Hi")])
}

fn sent(prompt: &Prompt) -> (Value, Notes) {
    sent_to("claude-sonnet-4-5", prompt).unwrap()
}

fn tool(name: &str) -> Tool {
    Tool {
        at: crate::ir::Place::default(),
        name: name.to_owned(),
        description: Some("d".to_owned()),
        kind: ToolKind::Function {
            schema: Some(json!({"type": "object", "properties": {"z": {}, "a": {}}})),
            strict: None,
        },
        cache: None,
    }
}

fn called(id: &str) -> Part {
    Part::Call(Call {
        id: id.to_owned(),
        name: "f".to_owned(),
        arguments: r#"{"a": 1.50}"#.to_owned(),
        ..Call::default()
    })
}

fn gave(id: &str) -> Message {
    Message {
        at: crate::ir::Place::default(),
        role: Role::Tool,
        name: None,
        parts: vec![Part::Result(ResultOf {
            call_id: id.to_owned(),
            parts: vec![Part::text("ok")],
            ..ResultOf::default()
        })],
    }
}

fn thought(seal: Option<Seal>) -> Part {
    Part::Thought(Thought {
        text: "Hm.".to_owned(),
        seal,
        ..Thought::default()
    })
}

fn own_seal() -> Option<Seal> {
    Some(Seal::new(Maker::Anthropic, "EqQB"))
}

#[test]
fn the_least_is_the_least() {
    let (body, notes) = sent(&hi());
    let want =
        json!({"model": "claude-sonnet-4-5", "max_tokens": 8192, "messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(body, want);
    assert_eq!(fields(&notes, Fate::Approximated), ["max_tokens"]);
}

#[test]
fn turns_alternate_and_results_come_first() {
    let (body, notes) = sent(&with(vec![
        said(Role::System, "S"),
        said(Role::Developer, "D"),
        said(Role::User, "one"),
        said(Role::User, "two"),
        Message {
            at: crate::ir::Place::default(),
            role: Role::Assistant,
            name: None,
            parts: vec![Part::text(" "), called("a"), called("functions.f:1")],
        },
        said(Role::System, "Later"),
        gave("a"),
        gave("functions.f:1"),
        said(Role::User, "three"),
    ]));
    let id = &body["messages"][1]["content"][1]["id"];
    assert!(id.as_str().unwrap().starts_with("call_"));
    let text = |text: &str| json!({"type": "text", "text": text});
    let result = |id: &Value| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
    assert_eq!(body["system"], json!([text("S"), text("D")]));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [text("one"), text("two")]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1.5}},
                {"type": "tool_use", "id": id, "name": "f", "input": {"a": 1.5}}
            ]},
            {"role": "user", "content": [
                result(&json!("a")), result(id), text("<system>\nLater\n</system>"), text("three")
            ]}
        ])
    );
    assert_eq!(fields(&notes, Fate::Dropped), ["messages[].content"]);
    assert_eq!(fields(&notes, Fate::Approximated), ["messages[].role", "max_tokens"]);
}

#[test]
fn newer_models_hear_the_system_later() {
    let prompt = with(vec![
        said(Role::User, "one"),
        said(Role::System, "S"),
        said(Role::User, "two"),
        said(Role::Assistant, "three"),
        said(Role::User, "four"),
        said(Role::Developer, "T"),
    ]);
    let (body, _) = sent_to("claude-opus-5", &prompt).unwrap();
    let turns = body["messages"].as_array().unwrap();
    let roles: Vec<_> = turns.iter().map(|turn| turn["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "system", "assistant", "user", "system"]);
}

#[test]
fn somebody_has_to_say_something() {
    let (body, _) = sent(&with(vec![said(Role::System, "Only")]));
    assert_eq!(body["messages"], json!([{"role": "user", "content": "Only"}]));
    assert_eq!(body.get("system"), None);
    let (body, notes) = sent(&with(vec![said(Role::Assistant, "Well"), said(Role::User, "Yes")]));
    assert_eq!(body["messages"][0], json!({"role": "user", "content": "."}));
    assert!(fields(&notes, Fate::Approximated).contains(&"messages"));
    let error = sent_to("m", &with(vec![said(Role::User, "")])).unwrap_err();
    assert_eq!(
        (error.kind, error.param.as_deref()),
        (Kind::Unsupported, Some("messages"))
    );
}

#[test]
fn an_answer_that_was_begun_is_gone_on_with_or_refused() {
    let prompt = with(vec![said(Role::User, "Hi"), said(Role::Assistant, "Well, ")]);
    let (body, notes) = sent(&prompt);
    assert_eq!(body["messages"][1]["content"], "Well,");
    assert!(fields(&notes, Fate::Approximated).contains(&"messages"));
    assert_eq!(sent_to("claude-opus-4-8", &prompt).unwrap_err().kind, Kind::Unsupported);
}

#[test]
fn pictures_and_papers() {
    let data = |media_type: &str, base64: &str| Source::Data {
        media_type: media_type.to_owned(),
        base64: base64.to_owned(),
    };
    let image = |source| {
        Part::Image(Image {
            source,
            detail: Some("high".to_owned()),
            cache: None,
        })
    };
    let document = |source| {
        Part::Document(Document {
            source,
            name: Some("n".to_owned()),
            context: None,
            cite: Some(true),
            cache: Some(json!({"type": "ephemeral"})),
        })
    };
    let message = |part| {
        with(vec![Message {
            at: crate::ir::Place::default(),
            role: Role::User,
            name: None,
            parts: vec![part],
        }])
    };
    for (part, want) in [
        (
            image(Source::Url("https://x.test/a.png".to_owned())),
            json!({"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}),
        ),
        (
            image(data("image/png", "AA==")),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}),
        ),
        (
            document(data("application/pdf", "JVBE")),
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
                "title": "n", "citations": {"enabled": true}, "cache_control": {"type": "ephemeral"}}),
        ),
        (
            document(data("text/csv; charset=utf-8", "YSxi")),
            json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"},
                "title": "n", "citations": {"enabled": true}, "cache_control": {"type": "ephemeral"}}),
        ),
    ] {
        let (body, _) = sent(&message(part));
        assert_eq!(body["messages"][0]["content"], json!([want]));
    }
    let audio = |transcript: Option<&str>| {
        Part::Audio(Audio {
            source: data("audio/wav", "UklG"),
            format: None,
            transcript: transcript.map(str::to_owned),
        })
    };
    for (part, field) in [
        (image(data("image/tiff", "AA==")), "messages[].content[].image_url"),
        (
            image(Source::File("file-1".to_owned())),
            "messages[].content[].image_url",
        ),
        (document(data("application/zip", "AA==")), "messages[].content[].file"),
        (document(data("text/plain", "%%")), "messages[].content[].file"),
        (audio(None), "messages[].content[].input_audio"),
        (
            Part::Stranger(Stranger {
                field: "messages".to_owned(),
                value: json!({"type": "video"}),
            }),
            "messages",
        ),
    ] {
        let error = sent_to("m", &message(part)).unwrap_err();
        assert_eq!((error.kind, error.param.as_deref()), (Kind::Unsupported, Some(field)));
    }
    let (body, notes) = sent(&message(audio(Some("heard"))));
    assert_eq!(body["messages"][0]["content"], "heard");
    assert!(fields(&notes, Fate::Approximated).contains(&"messages[].content[].input_audio"));
}

#[test]
fn tools_are_offered_as_the_vendor_takes_them() {
    let mut strict = tool("s");
    strict.kind = ToolKind::Function {
        schema: Some(json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}})),
        strict: Some(true),
    };
    strict.cache = Some(json!({"type": "ephemeral"}));
    let mut free = tool("free");
    free.kind = ToolKind::Custom(Custom::default());
    let mut search = tool("web_search");
    search.kind = ToolKind::Vendors(Stranger {
        field: "tools[3]".to_owned(),
        value: json!({"type": "web_search"}),
    });
    let (body, notes) = sent(&Prompt {
        tools: vec![tool("f"), strict, free, search],
        ..hi()
    });
    assert_eq!(
        body["tools"],
        json!([
            {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {"z": {}, "a": {}}}},
            {"name": "s", "description": "d", "strict": true,
                "input_schema": {"type": "object", "properties": {"n": {"type": "integer", "description": "(minimum: 1)"}},
                "additionalProperties": false}, "cache_control": {"type": "ephemeral"}},
            {"name": "free", "description": "d", "input_schema": {"type": "object",
                "properties": {"input": {"type": "string"}}, "required": ["input"]}}
        ])
    );
    // In the order in which the caller wrote them.
    assert!(body["tools"][0].to_string().contains(r#"{"z":{},"a":{}}"#));
    assert_eq!(fields(&notes, Fate::Dropped), ["tools[3]"]);
    let error = sent_to(
        "m",
        &Prompt {
            tools: vec![tool("a.b")],
            ..hi()
        },
    )
    .unwrap_err();
    assert_eq!(
        (error.kind, error.param.as_deref()),
        (Kind::Unsupported, Some("tools[0]"))
    );
}

#[test]
fn a_choice_of_tools_is_told() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let among = |required| ToolChoice::Among {
        names: names(&["g"]),
        required,
    };
    for (choice, parallel, want, offered) in [
        (None, None, Value::Null, 2),
        (None, Some(true), Value::Null, 2),
        (
            None,
            Some(false),
            json!({"type": "auto", "disable_parallel_tool_use": true}),
            2,
        ),
        (Some(ToolChoice::Auto), None, json!({"type": "auto"}), 2),
        (Some(ToolChoice::None), Some(false), json!({"type": "none"}), 2),
        (
            Some(ToolChoice::Required),
            Some(false),
            json!({"type": "any", "disable_parallel_tool_use": true}),
            2,
        ),
        (
            Some(ToolChoice::Named("g".to_owned())),
            None,
            json!({"type": "tool", "name": "g"}),
            2,
        ),
        (
            Some(ToolChoice::Named("h".to_owned())),
            None,
            json!({"type": "auto"}),
            2,
        ),
        (Some(among(true)), None, json!({"type": "any"}), 1),
        (Some(among(false)), None, json!({"type": "auto"}), 1),
    ] {
        let prompt = Prompt {
            tools: vec![tool("f"), tool("g")],
            tool_choice: choice,
            parallel_tools: parallel,
            ..hi()
        };
        let (body, _) = sent(&prompt);
        assert_eq!(body["tool_choice"], want);
        assert_eq!(body["tools"].as_array().unwrap().len(), offered);
    }
    let required = Prompt {
        tools: vec![tool("f")],
        tool_choice: Some(ToolChoice::Required),
        ..hi()
    };
    let (body, notes) = sent_to("claude-opus-5-5", &required).unwrap();
    assert_eq!(
        (&body["tool_choice"]["type"], body["system"].is_string()),
        (&json!("auto"), true)
    );
    assert!(fields(&notes, Fate::Approximated).contains(&"tool_choice"));
    let (body, notes) = sent(&Prompt {
        tools: Vec::new(),
        ..required
    });
    assert_eq!(body.get("tool_choice"), None);
    assert_eq!(fields(&notes, Fate::Dropped), ["tool_choice"]);
}

fn thinking(model: &str, reasoning: Reasoning, max_tokens: Option<u64>) -> (Value, Notes) {
    let prompt = Prompt {
        reasoning: Some(reasoning),
        max_tokens,
        ..hi()
    };
    let (body, notes) = sent_to(model, &prompt).unwrap();
    let picked = json!([body["thinking"], body["output_config"]["effort"], body["max_tokens"]]);
    (picked, notes)
}

#[test]
fn thinking_is_asked_for_as_the_model_takes_it() {
    let effort = |effort| Reasoning {
        effort: Some(effort),
        ..Reasoning::default()
    };
    let budget = |tokens| Reasoning {
        budget: Some(tokens),
        show: Some(true),
        ..Reasoning::default()
    };
    let enabled = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    let shown = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens, "display": "summarized"});
    let adaptive = json!({"type": "adaptive"});
    let (old, new) = ("claude-sonnet-4-5", "claude-opus-4-8");
    for (model, reasoning, max_tokens, want) in [
        (old, effort(Effort::Medium), None, json!([enabled(8192), null, 16384])),
        (
            old,
            effort(Effort::Minimal),
            Some(4000),
            json!([enabled(1024), null, 4000]),
        ),
        (
            old,
            effort(Effort::High),
            Some(4000),
            json!([enabled(3000), null, 4000]),
        ),
        (
            old,
            effort(Effort::High),
            Some(1100),
            json!([enabled(1024), null, 1100]),
        ),
        (old, effort(Effort::High), Some(1024), json!([null, null, 1024])),
        (old, effort(Effort::None), Some(100), json!([null, null, 100])),
        (old, budget(500), Some(4000), json!([shown(1024), null, 4000])),
        (old, budget(0), Some(100), json!([null, null, 100])),
        (new, effort(Effort::Minimal), None, json!([adaptive, "low", 24576])),
        (new, effort(Effort::Max), Some(100), json!([adaptive, "max", 100])),
        (
            "claude-sonnet-4-6",
            effort(Effort::XHigh),
            Some(100),
            json!([adaptive, "high", 100]),
        ),
        (
            new,
            budget(20_000),
            Some(100),
            json!([{"type": "adaptive", "display": "summarized"}, "xhigh", 100]),
        ),
        (new, effort(Effort::None), Some(100), json!([null, null, 100])),
        (
            "claude-sonnet-5",
            effort(Effort::None),
            Some(100),
            json!([{"type": "disabled"}, null, 100]),
        ),
        (
            "claude-sonnet-5-5",
            effort(Effort::None),
            Some(100),
            json!([{"type": "between_tools"}, null, 100]),
        ),
        (
            "claude-opus-5-5",
            effort(Effort::None),
            Some(100),
            json!([null, "low", 100]),
        ),
    ] {
        let (picked, _) = thinking(model, reasoning, max_tokens);
        assert_eq!(picked, want, "{model}");
    }
    let adaptively = Reasoning {
        is_adaptive: true,
        ..Reasoning::default()
    };
    assert_eq!(thinking(new, adaptively, Some(9)).0, json!([adaptive, null, 9]));
}

#[test]
fn what_does_not_go_with_thinking_is_dropped_and_told() {
    let reasoning = Some(Reasoning {
        effort: Some(Effort::Low),
        ..Reasoning::default()
    });
    let sampling = Sampling {
        temperature: Some(0.3),
        top_p: Some(0.9),
        top_k: Some(5),
        ..Sampling::default()
    };
    let prompt = Prompt {
        reasoning: reasoning.clone(),
        sampling: sampling.clone(),
        ..hi()
    };
    let (body, notes) = sent(&prompt);
    assert!(
        ["temperature", "top_p", "top_k"]
            .iter()
            .all(|name| body.get(name).is_none())
    );
    assert_eq!(fields(&notes, Fate::Dropped), ["temperature", "top_k", "top_p"]);
    // A tool that must be called goes before.
    let (body, notes) = sent(&Prompt {
        reasoning,
        tools: vec![tool("f")],
        tool_choice: Some(ToolChoice::Required),
        ..hi()
    });
    assert_eq!(
        (body.get("thinking"), &body["tool_choice"]["type"]),
        (None, &json!("any"))
    );
    assert_eq!(fields(&notes, Fate::Dropped), ["reasoning_effort"]);
    // Without thinking, the one or the other.
    let plain = Prompt { sampling, ..hi() };
    let (body, notes) = sent(&plain);
    assert_eq!((&body["temperature"], body.get("top_p")), (&json!(0.3), None));
    assert_eq!(fields(&notes, Fate::Dropped), ["top_p"]);
    assert_eq!(sent_to("m", &plain).unwrap().0["top_p"], json!(0.9));
    let (body, notes) = sent_to("claude-opus-4-8", &plain).unwrap();
    assert_eq!(body.get("temperature"), None);
    assert_eq!(notes.count(Fate::Dropped), 3);
    let hot = Prompt {
        sampling: Sampling {
            temperature: Some(1.7),
            ..Sampling::default()
        },
        ..hi()
    };
    let (body, notes) = sent(&hot);
    assert_eq!(body["temperature"], json!(1.0));
    assert_eq!(fields(&notes, Fate::Approximated), ["max_tokens", "temperature"]);
}

#[test]
fn thoughts_go_home_only() {
    let turn = |parts| Message {
        at: crate::ir::Place::default(),
        role: Role::Assistant,
        name: None,
        parts,
    };
    let asked = Reasoning {
        effort: Some(Effort::Low),
        ..Reasoning::default()
    };
    let carried_on = |first| Prompt {
        reasoning: Some(asked.clone()),
        ..with(vec![said(Role::User, "Hi"), turn(vec![first, called("a")]), gave("a")])
    };
    let (body, notes) = sent(&carried_on(thought(own_seal())));
    let own = json!({"type": "thinking", "thinking": "Hm.", "signature": "EqQB"});
    assert_eq!(
        (&body["messages"][1]["content"][0], body["thinking"].is_object()),
        (&own, true)
    );
    assert_eq!(notes.count(Fate::Dropped), 0);
    for seal in [None, Some(Seal::new(Maker::Gemini, "x"))] {
        let (body, notes) = sent(&carried_on(thought(seal.clone())));
        assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 1);
        // A budget is refused for a turn that does not begin with a thought.
        assert_eq!(body.get("thinking"), None);
        assert_eq!(
            fields(&notes, Fate::Dropped),
            ["messages[].reasoning_content", "reasoning_effort"]
        );
        let (body, _) = sent_to("claude-opus-4-8", &carried_on(thought(seal))).unwrap();
        assert_eq!(body["thinking"]["type"], "adaptive");
    }
    let redacted = Part::Thought(Thought {
        seal: own_seal(),
        is_redacted: true,
        ..Thought::default()
    });
    let (body, _) = sent(&carried_on(redacted));
    assert_eq!(
        body["messages"][1]["content"][0],
        json!({"type": "redacted_thinking", "data": "EqQB"})
    );
}

#[test]
fn the_shape_of_an_answer_is_asked_for() {
    let schema = Format::Schema {
        name: Some("n".to_owned()),
        description: Some("what it is".to_owned()),
        schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        strict: None,
    };
    let shaped = |format: &Format| Prompt {
        format: Some(format.clone()),
        max_tokens: Some(9),
        ..hi()
    };
    let (body, notes) = sent(&shaped(&schema));
    assert_eq!(
        body["output_config"]["format"],
        json!({"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "string"}},
            "additionalProperties": false, "description": "what it is"}})
    );
    assert_eq!(fields(&notes, Fate::Dropped), ["response_format.json_schema.name"]);
    let (body, notes) = sent_to("claude-3-7-sonnet-latest", &shaped(&schema)).unwrap();
    assert!(body["system"].as_str().unwrap().contains(r#""properties""#));
    assert_eq!(fields(&notes, Fate::Approximated), ["response_format"]);
    let (body, notes) = sent(&shaped(&Format::Json));
    assert!(body["system"].as_str().unwrap().contains("JSON"));
    assert_eq!(fields(&notes, Fate::Approximated), ["response_format"]);
}

#[test]
fn the_rest_has_its_places() {
    let (body, notes) = sent(&Prompt {
        max_tokens: Some(9),
        user: Some("u".to_owned()),
        service_tier: Some("flex".to_owned()),
        verbosity: Some("low".to_owned()),
        stream: true,
        sampling: Sampling {
            stop: vec!["\n".to_owned(), "END".to_owned()],
            ..Sampling::default()
        },
        ..hi()
    });
    assert_eq!(
        body,
        json!({
            "model": "claude-sonnet-4-5", "max_tokens": 9, "system": "Keep your answer short.",
            "messages": [{"role": "user", "content": "Hi"}], "stop_sequences": ["END"],
            "metadata": {"user_id": "u"}, "stream": true
        })
    );
    assert_eq!(fields(&notes, Fate::Dropped), ["stop", "service_tier"]);
}
