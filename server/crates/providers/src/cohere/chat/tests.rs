use super::{Chat, LETTERS};
use crate::bedrock::common::{Tools, fitting_name};
use crate::codec::{Ask, Back};
use crate::ir::{
    Call, Custom, Delta, Document, Effort, Event, Finish, Format, Image, Maker, Message, Part, Prompt, Reasoning,
    ResultOf, Role, Sampling, Seal, Source, Thought, Tool, ToolChoice, ToolKind,
};
use crate::notes::{Fate, Notes};
use crate::{End, Origin, Surface};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchyard_core::error::Kind;

const COMMAND: &str = "command-a-03-2025";

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

fn ask(model: &str) -> Ask<'_> {
    Ask {
        model,
        surface: Surface::Chat,
        stream: false,
    }
}

fn written(prompt: &Prompt, model: &str) -> (Value, Notes) {
    let mut notes = Notes::default();
    let body = Chat::default().write(prompt, &ask(model), &mut notes).unwrap();
    assert_eq!(
        Chat::default()
            .write(prompt, &ask(model), &mut Notes::default())
            .unwrap(),
        body
    );
    (serde_json::from_slice(&body).unwrap(), notes)
}

fn tool(name: &str, strict: Option<bool>) -> Tool {
    Tool {
        at: crate::ir::Place::default(),
        name: name.to_owned(),
        description: Some("d".to_owned()),
        kind: ToolKind::Function { schema: None, strict },
        cache: None,
    }
}

fn custom(name: &str) -> Tool {
    Tool {
        at: crate::ir::Place::default(),
        kind: ToolKind::Custom(Custom::default()),
        ..tool(name, None)
    }
}

fn call(id: &str, arguments: &str) -> Part {
    Part::Call(Call {
        id: id.to_owned(),
        name: "get-it".to_owned(),
        arguments: arguments.to_owned(),
        ..Call::default()
    })
}

fn thought(text: &str, seal: Option<Seal>) -> Part {
    Part::Thought(Thought {
        text: text.to_owned(),
        seal,
        ..Thought::default()
    })
}

fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Part {
    Part::Result(ResultOf {
        call_id: id.to_owned(),
        parts,
        is_error,
        ..ResultOf::default()
    })
}

#[test]
fn a_conversation_with_tools_is_written_as_cohere_has_it() {
    let image = Part::Image(Image {
        source: Source::Data {
            media_type: "image/png".to_owned(),
            base64: "QUJD".to_owned(),
        },
        detail: Some("low".to_owned()),
        cache: None,
    });
    let foreign = Seal::new(Maker::Anthropic, "x");
    let history = prompt(vec![
        message(Role::System, vec![Part::text("Be brief.")]),
        message(Role::User, vec![Part::text("What is it?"), image]),
        message(
            Role::Assistant,
            vec![
                thought("not mine", Some(foreign)),
                thought("I look.", None),
                call("c1", "{\"a\":1}"),
                call("c2", ""),
            ],
        ),
        message(
            Role::Tool,
            vec![
                result("c1", vec![Part::text("r1"), Part::text("r2")], false),
                result("c2", vec![], true),
            ],
        ),
        message(Role::Assistant, vec![thought("hm", None), Part::text("It is.")]),
    ]);
    let (body, notes) = written(&history, COMMAND);
    let sent = fitting_name("get-it", LETTERS);
    let want = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low"}},
        ]},
        {"role": "assistant", "tool_plan": "I look.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": sent, "arguments": "{\"a\":1}"}},
            {"id": "c2", "type": "function", "function": {"name": sent, "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r1"}, {"type": "text", "text": "r2"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "Error:"},
        {"role": "assistant", "content": "It is."},
    ]);
    assert_eq!(body.get("messages").unwrap(), &want);
    assert_eq!(notes.to_string(), "dropped=2, approximated=1");
    // A model that thinks aloud gets its thoughts back.
    let (body, _) = written(&history, "command-a-reasoning-08-2025");
    let content = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "It is."}]);
    assert_eq!(body.pointer("/messages/5/content").unwrap(), &content);
    assert_eq!(body.pointer("/messages/2/content/0/thinking").unwrap(), "I look.");
}

#[test]
fn documents_stand_beside_the_messages_if_they_are_text() {
    let document = |source| {
        Part::Document(Document {
            source,
            name: Some("n".to_owned()),
            context: None,
            cite: None,
            cache: None,
        })
    };
    let text = Source::Data {
        media_type: "text/plain".to_owned(),
        base64: "aGk=".to_owned(),
    };
    let (body, _) = written(
        &prompt(vec![message(Role::User, vec![Part::text("q"), document(text)])]),
        COMMAND,
    );
    assert_eq!(
        body.get("documents").unwrap(),
        &json!([{"id": "doc0", "data": {"title": "n", "text": "hi"}}])
    );
    assert_eq!(body.pointer("/messages/0/content").unwrap(), "q");
    let pdf = Source::Data {
        media_type: "application/pdf".to_owned(),
        base64: "aGk=".to_owned(),
    };
    let odd = prompt(vec![message(Role::User, vec![document(pdf)])]);
    let error = Chat::default()
        .write(&odd, &ask(COMMAND), &mut Notes::default())
        .unwrap_err();
    assert_eq!(
        (error.kind, error.param.as_deref()),
        (Kind::Unsupported, Some("messages[].content[].file"))
    );
}

#[test]
fn parameters_are_kept_in_cohere_bounds() {
    let full = Prompt {
        sampling: Sampling {
            temperature: Some(0.5),
            top_p: Some(1.0),
            top_k: Some(900),
            seed: Some(-3),
            presence_penalty: Some(-1.0),
            frequency_penalty: Some(0.5),
            stop: ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec(),
            logprobs: Some(true),
            ..Sampling::default()
        },
        max_tokens: Some(100),
        reasoning: Some(Reasoning {
            effort: Some(Effort::Low),
            ..Reasoning::default()
        }),
        ..hello()
    };
    let (body, notes) = written(&full, COMMAND);
    let want = json!({
        "model": COMMAND,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 100,
        "temperature": 0.5,
        "p": 0.99,
        "k": 500,
        "seed": 3,
        "stop_sequences": ["a", "b", "c", "d", "e"],
        "presence_penalty": 0.0,
        "frequency_penalty": 0.5,
        "logprobs": true,
        "thinking": {"type": "enabled", "token_budget": 2048},
    });
    assert_eq!(body.to_string(), want.to_string());
    assert_eq!(notes.to_string(), "approximated=6");
}

#[test]
fn tools_choices_and_formats() {
    let asked = |tools: Vec<Tool>, choice: Option<ToolChoice>, format: Option<Format>| {
        let prompt = Prompt {
            tools,
            tool_choice: choice,
            format,
            ..hello()
        };
        written(&prompt, COMMAND)
    };
    let (body, _) = asked(vec![tool("f", Some(true))], Some(ToolChoice::Required), None);
    let empty = json!({"type": "object", "properties": {}});
    let function = json!({"name": "f", "description": "d", "parameters": empty});
    assert_eq!(
        body.get("tools").unwrap(),
        &json!([{"type": "function", "function": function}])
    );
    assert_eq!(
        (body.get("strict_tools").unwrap(), body.get("tool_choice").unwrap()),
        (&json!(true), &json!("REQUIRED"))
    );
    let two = vec![tool("f", Some(true)), tool("g-h", None)];
    let (body, notes) = asked(two.clone(), Some(ToolChoice::Named("g-h".to_owned())), None);
    assert_eq!(
        body.pointer("/tools/0/function/name").unwrap(),
        &json!(fitting_name("g-h", LETTERS))
    );
    assert_eq!((body.pointer("/tools/1"), body.get("strict_tools")), (None, None));
    assert_eq!(body.get("tool_choice").unwrap(), "REQUIRED");
    assert_eq!((notes.count(Fate::Dropped), notes.count(Fate::Mapped)), (1, 2));
    let (body, _) = asked(two, Some(ToolChoice::None), None);
    assert_eq!(body.get("tool_choice").unwrap(), "NONE");
    let schema = Format::Schema {
        name: Some("n".to_owned()),
        description: None,
        schema: json!({"type": "object"}),
        strict: Some(true),
    };
    let (body, notes) = asked(vec![], None, Some(schema.clone()));
    let format = json!({"type": "json_object", "json_schema": {"type": "object"}});
    assert_eq!(
        (body.get("response_format").unwrap(), notes.is_empty()),
        (&format, true)
    );
    let (body, notes) = asked(vec![tool("f", None)], None, Some(schema));
    assert_eq!(
        (body.get("response_format"), notes.count(Fate::Approximated)),
        (None, 1)
    );
    assert_eq!(body.pointer("/messages/0/role").unwrap(), "system");
    let (body, _) = asked(vec![], None, Some(Format::Json));
    assert_eq!(body.get("response_format").unwrap(), &json!({"type": "json_object"}));
}

fn answering() -> Chat {
    let prompt = Prompt {
        tools: vec![tool("get-it", None), custom("patch")],
        ..Prompt::default()
    };
    Chat::answering(Tools::of_prompt(&prompt, LETTERS))
}

fn origin() -> Origin {
    Origin { id: "r1".into(), at: 0 }
}

#[test]
fn whole_answers_are_read() {
    let sent = fitting_name("get-it", LETTERS);
    let body = json!({
        "id": "x1",
        "finish_reason": "TOOL_CALL",
        "message": {
            "role": "assistant",
            "tool_plan": "I look.",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi you"}],
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": sent, "arguments": "{\"a\":1}"}},
                {"type": "function", "function": {"name": "patch", "arguments": "{\"input\":\"x\"}"}},
            ],
            "citations": [
                {"start": 0, "end": 2, "text": "Hi", "sources": [{"type": "document", "id": "doc3", "document": {"title": "t", "snippet": "q"}}], "type": "TEXT_CONTENT"},
                {"start": 0, "end": 1, "text": "I", "type": "PLAN"},
            ],
        },
        "usage": {"billed_units": {"input_tokens": 5, "output_tokens": 3}, "tokens": {"input_tokens": 71.0, "output_tokens": 9}, "cached_tokens": 64},
        "logprobs": [{"text": "Hi", "token_ids": [1, 2], "logprobs": [-0.5, -0.25]}, {"text": " you", "token_ids": [3]}],
    });
    let answer = answering().read(body.to_string().as_bytes(), &origin()).unwrap();
    let usage = answer.usage;
    assert_eq!(
        (usage.prompt, usage.completion, usage.cached),
        (Some(71), Some(9), Some(64))
    );
    assert_eq!(answer.id.as_deref(), Some("x1"));
    let choice = answer.choices.into_iter().next().unwrap();
    assert_eq!(choice.finish, Finish::ToolCalls);
    let logprobs = choice.logprobs.unwrap();
    assert_eq!(logprobs.pointer("/content/0/logprob").unwrap(), &json!(-0.75));
    assert_eq!(logprobs.pointer("/content/1"), None);
    let [plan, thinking, text, call, patch] = &choice.parts[..] else {
        panic!("{:?}", choice.parts);
    };
    assert_eq!((plan, thinking), (&thought("I look.", None), &thought("hm", None)));
    let Part::Text { citations, .. } = text else {
        panic!("{text:?}");
    };
    let [citation] = &citations[..] else {
        panic!("{citations:?}");
    };
    assert_eq!(
        (citation.start, citation.end, citation.document),
        (Some(0), Some(2), Some(3))
    );
    assert_eq!(
        (citation.title.as_deref(), citation.quoted.as_deref()),
        (Some("t"), Some("q"))
    );
    assert!(matches!(call, Part::Call(call) if call.name == "get-it" && call.id == "c1"));
    // That it is a tool which takes any text is told to the caller by whoever translates.
    assert!(
        matches!(patch, Part::Call(call) if !call.is_custom && call.arguments.contains("\"x\"") && call.id == "call_r11")
    );
}

#[test]
fn failures_under_200_are_failures() {
    for (body, kind) in [
        (r#"{"message":"too many tokens: 9"}"#, Kind::ContextLength),
        (r#"{"message":"internal server error"}"#, Kind::ServerError),
        (
            r#"{"message":{"content":[]},"finish_reason":"ERROR"}"#,
            Kind::ServerError,
        ),
        (r#"{"message":{"content":[]},"finish_reason":"TIMEOUT"}"#, Kind::Timeout),
        ("{}", Kind::BadAnswer),
        ("<html>", Kind::BadAnswer),
        (r#"{"message":7}"#, Kind::BadAnswer),
    ] {
        let error = answering().read(body.as_bytes(), &origin()).unwrap_err();
        assert_eq!((error.kind, error.status), (kind, Some(200)), "{body}");
    }
}

fn events(list: &[Value]) -> String {
    let frame = |event: &Value| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event.get("type").and_then(Value::as_str).unwrap()
        )
    };
    list.iter().map(frame).collect()
}

fn stream() -> String {
    let sent = fitting_name("get-it", LETTERS);
    let content =
        |kind: &str, n: u64, piece: Value| json!({"type": kind, "index": n, "delta": {"message": {"content": piece}}});
    let calls =
        |kind: &str, n: u64, call: Value| json!({"type": kind, "index": n, "delta": {"message": {"tool_calls": call}}});
    let function = |name: &str| json!({"name": name, "arguments": ""});
    let cited = json!({"start": 0, "end": 2, "text": "Hé", "sources": [], "content_index": 1, "type": "TEXT_CONTENT"});
    let end = json!({
        "finish_reason": "TOOL_CALL",
        "usage": {"billed_units": {"input_tokens": 1}, "tokens": {"input_tokens": 17, "output_tokens": 12}},
    });
    let mut text = content("content-delta", 1, json!({"text": "Hél"}));
    text["logprobs"] = json!({"text": "Hél", "token_ids": [1], "logprobs": [-0.5]});
    let list = [
        json!({"type": "message-start", "id": "x1", "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}}),
        json!({"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I "}}}),
        json!({"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "look."}}}),
        content("content-start", 0, json!({"type": "thinking", "thinking": ""})),
        content("content-delta", 0, json!({"thinking": "hm"})),
        json!({"type": "content-end", "index": 0}),
        content("content-start", 1, json!({"type": "text", "text": ""})),
        text,
        content("content-delta", 1, json!({"text": "lo"})),
        json!({"type": "citation-start", "index": 0, "delta": {"message": {"citations": cited}}}),
        json!({"type": "citation-end", "index": 0}),
        json!({"type": "content-end", "index": 1}),
        calls(
            "tool-call-start",
            0,
            json!({"id": "c1", "type": "function", "function": function(&sent)}),
        ),
        calls("tool-call-delta", 0, json!({"function": {"arguments": "{\"a\""}})),
        calls(
            "tool-call-start",
            1,
            json!({"id": "c2", "type": "function", "function": function("patch")}),
        ),
        calls(
            "tool-call-delta",
            1,
            json!({"function": {"arguments": "{\"input\":\"x"}}),
        ),
        calls("tool-call-delta", 0, json!({"function": {"arguments": ":1}"}})),
        json!({"type": "tool-call-end", "index": 0}),
        calls("tool-call-delta", 1, json!({"function": {"arguments": "y\"}"}})),
        json!({"type": "tool-call-end", "index": 1}),
        json!({"type": "something-new"}),
        json!({"type": "message-end", "delta": end}),
    ];
    format!(": hello\n\n{}data: [DONE]\n\n", events(&list))
}

fn read(pieces: &[&[u8]]) -> (Vec<Event>, End) {
    let mut reader = answering().reader(&origin());
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
    let (events, end) = read(&[stream().as_bytes()]);
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
    let without: Vec<Event> = events
        .iter()
        .filter(|event| !matches!(event, Event::Start { .. } | Event::Logprobs { .. } | Event::Usage(_)))
        .filter(|event| {
            !matches!(
                event,
                Event::Delta {
                    delta: Delta::Citation(_),
                    ..
                }
            )
        })
        .cloned()
        .collect();
    let want = [
        delta(0, thought("I ")),
        delta(0, thought("look.")),
        delta(1, thought("hm")),
        end(1),
        delta(2, Delta::Text("Hél".to_owned())),
        delta(2, Delta::Text("lo".to_owned())),
        end(0),
        delta(3, call("c1", "get-it")),
        delta(3, Delta::Arguments("{\"a\"".to_owned())),
        delta(4, call("c2", "patch")),
        delta(4, Delta::Arguments("{\"input\":\"x".to_owned())),
        delta(3, Delta::Arguments(":1}".to_owned())),
        end(3),
        delta(4, Delta::Arguments("y\"}".to_owned())),
        end(4),
        // Citations may come behind the end of their text.
        end(2),
        Event::Finish {
            choice: 0,
            finish: Finish::ToolCalls,
        },
    ];
    assert_eq!(without, want);
    assert!(matches!(events.first(), Some(Event::Start { id: Some(id), .. }) if id == "x1"));
    assert!(events.iter().any(|event| matches!(
        event,
        Event::Delta {
            part: 2,
            delta: Delta::Citation(_),
            ..
        }
    )));
    assert!(events.iter().any(|event| matches!(event, Event::Logprobs { .. })));
    assert!(matches!(events.last(), Some(Event::Usage(usage)) if usage.prompt == Some(17)));
}

#[test]
fn failures_and_cuts_of_a_stream_are_told() {
    let text = json!({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Hi"}}}});
    let end = |delta: Value| json!({"type": "message-end", "delta": delta});
    let kind = |stream: &str| match read(&[stream.as_bytes()]).1 {
        End::Failed(error) => Some(error.kind),
        End::Complete => None,
    };
    let with = |last: Value| kind(&events(&[text.clone(), last]));
    assert_eq!(with(end(json!({"finish_reason": "COMPLETE"}))), None);
    assert_eq!(
        with(end(json!({"finish_reason": "ERROR", "error": "oh"}))),
        Some(Kind::ServerError)
    );
    assert_eq!(
        with(end(json!({"error": "too many tokens: 9"}))),
        Some(Kind::ContextLength)
    );
    assert_eq!(with(end(json!({"finish_reason": "TIMEOUT"}))), Some(Kind::Timeout));
    assert_eq!(kind(&events(std::slice::from_ref(&text))), Some(Kind::Cut));
    assert_eq!(kind(""), Some(Kind::Cut));
    assert_eq!(kind("{\"message\":\"too many tokens: 9\"}"), Some(Kind::ContextLength));
    assert_eq!(kind("{\"error\":{\"message\":\"oh\"}}"), Some(Kind::ServerError));
    assert_eq!(kind("data: {\n\n"), Some(Kind::BadAnswer));
    let mut odd = String::from("data: {\n\n");
    odd.push_str(&events(&[text, end(json!({"finish_reason": "COMPLETE"}))]));
    assert_eq!(kind(&odd), None);
    // The last blank line was forgotten.
    assert_eq!(kind(odd.trim_end()), None);
}

#[test]
fn every_split_in_two_gives_the_same() {
    let all = stream();
    let whole = read(&[all.as_bytes()]);
    for at in 0..all.len() {
        let (a, b) = all.as_bytes().split_at(at);
        assert_eq!(read(&[a, b]), whole, "split at {at}");
    }
}

proptest! {
    #[test]
    fn any_split_gives_the_same(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let all = stream();
        let all = all.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for at in cuts {
            pieces.push(&all[from..at]);
            from = at;
        }
        pieces.push(&all[from..]);
        prop_assert_eq!(read(&pieces), read(&[all]));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), flip in any::<prop::sample::Index>()) {
        let _ = read(&[&bytes]);
        let mut all = stream().into_bytes();
        let at = flip.index(all.len());
        if let Some(byte) = all.get_mut(at) {
            *byte = byte.wrapping_add(1);
        }
        let _ = read(&[&all]);
        let _ = Chat::default().read(&bytes, &origin());
    }
}
