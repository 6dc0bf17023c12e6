//! Tests of the wire as a whole: what goes up, what comes back, and whose words it is in.

use super::generate::{Generate, Service};
use super::{Gemini, GoogleAuth, GoogleService, Tokens};
use crate::codec::{Ask, Back, Front};
use crate::ir::{
    Call as ToolCall, Delta, Effort, Event, Finish, Format, Image, Maker, Message, Part, Prompt, Reasoning, ResultOf,
    Role, Seal, Source, Thought, Tool, ToolChoice, ToolKind,
};
use crate::notes::{Fate, Notes};
use crate::params::OnUnsupported;
use crate::{Call, Encoded, End, FromPath, Origin, Surface, Terms, Wire};
use bytes::Bytes;
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;

const TERMS: Terms = Terms {
    now: SystemTime::UNIX_EPOCH,
    on_unsupported: OnUnsupported::Warn,
};

fn origin() -> Origin {
    Origin {
        id: "0193f0a0b1c2d3e4f5061728394a5b6c".into(),
        at: 0,
    }
}

fn gemini() -> Gemini {
    let key = GoogleAuth::Key(Secret::new("k".to_owned()));
    Gemini::new("https://x/v1beta/", GoogleService::Gemini, key, &[]).unwrap()
}

fn vertex() -> Gemini {
    struct Fixed;
    impl Tokens for Fixed {
        fn current(&self) -> Result<Secret, Error> {
            Ok(Secret::new("t".to_owned()))
        }
    }
    let auth = GoogleAuth::Token(Arc::new(Fixed));
    Gemini::new("https://x/v1/projects/p/locations/l", GoogleService::Vertex, auth, &[]).unwrap()
}

fn own(surface: Surface, body: &Value, stream: bool) -> Call {
    let model = "m".to_owned();
    let path = Some(FromPath { model, stream });
    Call::read(surface, Bytes::from(body.to_string()), path, origin()).unwrap()
}

fn generate(body: &Value) -> Prompt {
    Generate.read(&own(Surface::Generate, body, false)).unwrap()
}

fn encode(wire: &Gemini, call: &Call, model: &str) -> Encoded {
    wire.encode(call, model, &HeaderMap::new(), &TERMS).unwrap()
}

/// The body for a model, and what was noted.
fn written(prompt: &Prompt, model: &str) -> (Value, Notes) {
    let ask = Ask {
        model,
        surface: Surface::Chat,
        stream: false,
    };
    let mut notes = Notes::default();
    let body = Service::of(GoogleService::Gemini)
        .write(prompt, &ask, &mut notes)
        .unwrap();
    (serde_json::from_slice(&body).unwrap(), notes)
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    let name = None;
    Message {
        role,
        name,
        parts,
        at: crate::ir::Place::default(),
    }
}

fn user(text: &str) -> Message {
    message(Role::User, vec![Part::text(text)])
}

fn tool_call(id: &str, name: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: r#"{"z":1,"a":2}"#.to_owned(),
        ..ToolCall::default()
    }
}

fn result(id: &str, text: &str) -> Part {
    Part::Result(ResultOf {
        call_id: id.to_owned(),
        parts: vec![Part::text(text)],
        ..ResultOf::default()
    })
}

// === what goes up ===

#[test]
fn a_call_of_its_own_dialect_goes_up_as_it_came() {
    let body = json!({"contents": [{"parts": [{"text": "hi"}]}], "safetySettings": [], "x": {"y": 1.50}});
    for (stream, method) in [(false, "generateContent"), (true, "streamGenerateContent?alt=sse")] {
        let call = own(Surface::Generate, &body, stream);
        let Encoded { request, notes } = encode(&gemini(), &call, "models/gemini-2.5-pro");
        assert_eq!(
            request.uri().to_string(),
            format!("https://x/v1beta/models/gemini-2.5-pro:{method}")
        );
        assert_eq!(request.headers()["x-goog-api-key"], "k");
        assert!(request.body() == &call.body && notes.is_empty());
        let sealed = json!({"contents": [{"parts": [{"text": "hi", "thoughtSignature": "sy.openai.x"}]}]});
        let made = encode(&gemini(), &own(Surface::Generate, &sealed, stream), "gemini-2.5-pro");
        assert_eq!(made.request.body(), r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#);
        assert_eq!(made.notes.count(Fate::Dropped), 1);
        let request = encode(&vertex(), &call, "gemini-2.5-pro").request;
        let place = "https://x/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro";
        assert_eq!(request.uri().to_string(), format!("{place}:{method}"));
        assert_eq!(request.headers()["authorization"], "Bearer t");
    }
}

#[test]
fn a_count_names_the_model_that_is_asked() {
    let whole = json!({"generateContentRequest": {"model": "models/m", "contents": [{"parts": [{"text": "hi"}]}], "toolConfig": {}}});
    let call = own(Surface::GeminiCountTokens, &whole, false);
    let request = encode(&gemini(), &call, "gemini-2.5-pro").request;
    let sent: Value = serde_json::from_slice(request.body()).unwrap();
    assert_eq!(sent["generateContentRequest"]["model"], "models/gemini-2.5-pro");
    assert!(request.uri().path().ends_with("gemini-2.5-pro:countTokens"));
    let request = encode(&vertex(), &call, "gemini-2.5-pro").request;
    let sent: Value = serde_json::from_slice(request.body()).unwrap();
    assert_eq!(sent, json!({"contents": [{"parts": [{"text": "hi"}]}]}));
    let reply = gemini()
        .decode(&call, "m", Bytes::from_static(br#"{"totalTokens":31}"#))
        .unwrap();
    assert_eq!(reply.body, &br#"{"totalTokens":31}"#[..]);
}

#[test]
fn results_stand_together_and_name_their_function() {
    let prompt = Prompt {
        messages: vec![
            message(Role::System, vec![Part::text("be brief")]),
            user("go"),
            message(
                Role::Assistant,
                vec![Part::Call(tool_call("a", "one")), Part::Call(tool_call("b", "two"))],
            ),
            message(Role::Tool, vec![result("a", "22 C")]),
            message(Role::Tool, vec![result("b", r#"{"x":1}"#)]),
        ],
        ..Prompt::default()
    };
    let (body, _) = written(&prompt, "gemini-2.5-flash");
    assert_eq!(
        body,
        json!({
            "contents": [
                {"role": "user", "parts": [{"text": "go"}]},
                {"role": "model", "parts": [
                    {"functionCall": {"id": "a", "name": "one", "args": {"z": 1, "a": 2}}},
                    {"functionCall": {"id": "b", "name": "two", "args": {"z": 1, "a": 2}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "a", "name": "one", "response": {"output": "22 C"}}},
                    {"functionResponse": {"id": "b", "name": "two", "response": {"x": 1}}},
                ]},
            ],
            "systemInstruction": {"parts": [{"text": "be brief"}]},
        })
    );
    assert_eq!(
        body["contents"][1]["parts"][0]["functionCall"]["args"].to_string(),
        r#"{"z":1,"a":2}"#
    );
    // Vertex AI goes by the order.
    let mut turned = prompt;
    turned.messages.swap(3, 4);
    let ask = Ask {
        model: "gemini-2.5-flash",
        surface: Surface::Chat,
        stream: false,
    };
    turned.messages[3].parts.push(result("a", "22 C"));
    turned.messages.pop();
    let body = Service::of(GoogleService::Vertex)
        .write(&turned, &ask, &mut Notes::default())
        .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let names = [0, 1].map(|n| body["contents"][2]["parts"][n]["functionResponse"]["name"].clone());
    assert_eq!(names, ["one", "two"]);
    assert!(body["contents"][1]["parts"][0]["functionCall"].get("id").is_none());
    // One without a call is nobody's.
    turned.messages.remove(2);
    let error = Service::of(GoogleService::Vertex)
        .write(&turned, &ask, &mut Notes::default())
        .unwrap_err();
    assert_eq!(error.kind, Kind::InvalidRequest);
}

#[test]
fn signatures_find_their_calls_and_strangers_calls_get_the_documented_one() {
    let seal = |maker, data: &str| Some(Seal::new(maker, data));
    let thought = |text: &str, seal| {
        Part::Thought(Thought {
            text: text.to_owned(),
            seal,
            ..Thought::default()
        })
    };
    let call = |id: &str, seal| {
        Part::Call(ToolCall {
            seal,
            ..tool_call(id, "f")
        })
    };
    let models = |parts: Vec<Part>, model: &str| {
        let messages = vec![user("go"), message(Role::Assistant, parts)];
        let (body, notes) = written(
            &Prompt {
                messages,
                ..Prompt::default()
            },
            model,
        );
        let parts = body["contents"][1]["parts"].as_array().cloned().unwrap_or_default();
        let told = parts
            .iter()
            .map(|part| part["thoughtSignature"].as_str().unwrap_or("-").to_owned());
        (
            parts.len(),
            told.collect::<Vec<_>>().join(" "),
            notes.count(Fate::Dropped),
        )
    };
    let new = "gemini-3-pro-preview";
    let own = models(vec![call("a", seal(Maker::Gemini, "S")), call("b", None)], new);
    assert_eq!(own, (2, "S -".to_owned(), 0));
    // Dialects whose calls have no place for it keep it in a thought before.
    let moved = models(
        vec![
            thought("hm", seal(Maker::Gemini, "S")),
            Part::text("t"),
            call("a", None),
            call("b", None),
        ],
        new,
    );
    assert_eq!(moved, (4, "- - S -".to_owned(), 0));
    let two = [
        thought("", seal(Maker::Gemini, "S")),
        call("a", None),
        thought("", seal(Maker::Gemini, "T")),
        call("b", None),
    ];
    assert_eq!(models(two.to_vec(), new), (2, "S T".to_owned(), 0));
    // Without a call it belongs to the text before it.
    let text = vec![Part::text("t"), thought("", seal(Maker::Gemini, "S"))];
    assert_eq!(models(text, new), (1, "S".to_owned(), 0));
    assert_eq!(
        models(vec![thought("", seal(Maker::Gemini, "S"))], new),
        (1, "S".to_owned(), 0)
    );
    // Other vendors' are of no use.
    let foreign = vec![
        thought("hm", seal(Maker::Anthropic, "S")),
        call("a", None),
        call("b", None),
    ];
    assert_eq!(
        models(foreign.clone(), new),
        (2, "skip_thought_signature_validator -".to_owned(), 1)
    );
    assert_eq!(models(foreign, "gemini-2.5-flash"), (2, "- -".to_owned(), 1));
}

#[test]
fn tools_are_lowered_and_it_is_told() {
    let tool = |name: &str, schema: Value| Tool {
        at: crate::ir::Place::default(),
        name: name.to_owned(),
        description: None,
        kind: ToolKind::Function {
            schema: Some(schema),
            strict: None,
        },
        cache: None,
    };
    let prompt = Prompt {
        messages: vec![user("go")],
        tools: vec![
            tool(
                "a",
                json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/P"}}, "additionalProperties": false, "$defs": {"P": {"type": "string", "default": "x"}}}),
            ),
            tool("b", json!({"type": "object", "properties": {}})),
        ],
        tool_choice: Some(ToolChoice::Named("a".to_owned())),
        ..Prompt::default()
    };
    let (body, notes) = written(&prompt, "gemini-2.5-flash");
    assert_eq!(
        body["tools"],
        json!([{"functionDeclarations": [
            {"name": "a", "parameters": {"type": "object", "properties": {"p": {"type": "string"}}}},
            {"name": "b"},
        ]}])
    );
    assert_eq!(
        body["toolConfig"],
        json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a"]}})
    );
    let told: Vec<_> = notes.list().iter().map(|note| (note.fate, &*note.field)).collect();
    assert_eq!(
        told,
        [
            (Fate::Mapped, "tools[0].function.parameters.$ref"),
            (Fate::Dropped, "tools[0].function.parameters.additionalProperties"),
            (Fate::Dropped, "tools[0].function.parameters.default"),
        ]
    );
}

#[test]
fn pictures_by_address_need_one_that_google_takes() {
    let part = |source: Source| {
        let image = Image {
            source,
            detail: None,
            cache: None,
        };
        let messages = vec![message(Role::User, vec![Part::Image(image)])];
        let ask = Ask {
            model: "gemini-2.5-flash",
            surface: Surface::Chat,
            stream: false,
        };
        let prompt = Prompt {
            messages,
            ..Prompt::default()
        };
        let body = Service::of(GoogleService::Gemini).write(&prompt, &ask, &mut Notes::default())?;
        let body: Value = serde_json::from_slice(&body).unwrap();
        Ok::<Value, Error>(body["contents"][0]["parts"][0].clone())
    };
    assert_eq!(
        part(Source::Url("https://x/a.PNG?b=c".to_owned())).unwrap(),
        json!({"fileData": {"mimeType": "image/png", "fileUri": "https://x/a.PNG?b=c"}})
    );
    assert_eq!(
        part(Source::Url("data:image/png;base64,AA==".to_owned())).unwrap(),
        json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}})
    );
    for source in [
        Source::Url("file:///etc/passwd".to_owned()),
        Source::File("file-abc".to_owned()),
    ] {
        let error = part(source).unwrap_err();
        assert_eq!(
            (error.kind, error.param.as_deref()),
            (Kind::Unsupported, Some("messages[].content[].image_url"))
        );
    }
}

#[test]
fn thinking_is_asked_for_as_each_generation_knows_it() {
    let thinking = |model: &str, effort, budget| {
        let reasoning = Reasoning {
            effort,
            budget,
            ..Reasoning::default()
        };
        let prompt = Prompt {
            messages: vec![user("go")],
            reasoning: Some(reasoning),
            ..Prompt::default()
        };
        let (body, notes) = written(&prompt, model);
        (
            body["generationConfig"]["thinkingConfig"].to_string(),
            notes.to_string(),
        )
    };
    for (model, effort, budget, want, notes) in [
        (
            "gemini-2.5-flash",
            Some(Effort::None),
            None,
            r#"{"thinkingBudget":0}"#,
            "",
        ),
        (
            "gemini-2.5-pro",
            Some(Effort::None),
            None,
            r#"{"thinkingBudget":128}"#,
            "approximated=1",
        ),
        (
            "gemini-2.5-flash",
            Some(Effort::High),
            None,
            r#"{"thinkingBudget":16384}"#,
            "",
        ),
        (
            "gemini-2.5-flash",
            None,
            Some(99_999),
            r#"{"thinkingBudget":24576}"#,
            "approximated=1",
        ),
        (
            "gemini-3-pro-preview",
            Some(Effort::Low),
            None,
            r#"{"thinkingLevel":"low"}"#,
            "",
        ),
        (
            "gemini-3-pro-preview",
            Some(Effort::None),
            None,
            r#"{"thinkingLevel":"low"}"#,
            "approximated=1",
        ),
        (
            "gemini-flash-latest",
            None,
            Some(3000),
            r#"{"thinkingLevel":"medium"}"#,
            "approximated=1",
        ),
        ("gemini-2.0-flash", Some(Effort::High), None, "null", "dropped=1"),
    ] {
        assert_eq!(
            thinking(model, effort, budget),
            (want.to_owned(), notes.to_owned()),
            "{model} {effort:?} {budget:?}"
        );
    }
}

#[test]
fn limits_of_settings_are_kept_and_told() {
    let mut prompt = Prompt {
        messages: vec![user("go")],
        format: Some(Format::Json),
        ..Prompt::default()
    };
    prompt.sampling.stop = (0..7).map(|n| n.to_string()).collect();
    prompt.sampling.seed = Some(i64::MAX);
    let (body, notes) = written(&prompt, "gemini-2.5-flash");
    let config = &body["generationConfig"];
    assert_eq!(config["stopSequences"], json!(["0", "1", "2", "3", "4"]));
    assert_eq!(
        (&config["seed"], &config["responseMimeType"]),
        (&json!(i32::MAX), &json!("application/json"))
    );
    assert_eq!(notes.to_string(), "dropped=1, approximated=1");
}

// === callers ===

#[test]
fn both_ways_of_writing_names_are_read() {
    let camel = json!({
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "_-8"}}]}],
        "generationConfig": {"maxOutputTokens": "64", "topK": 40.0, "stopSequences": ["x"], "thinkingConfig": {"thinkingBudget": -1}},
        "toolConfig": {"functionCallingConfig": {"mode": "any", "allowedFunctionNames": ["a", "b"]}},
    });
    let snake = json!({
        "system_instruction": {"parts": [{"text": "s"}]},
        "contents": [{"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "_-8"}}]}],
        "generation_config": {"max_output_tokens": 64, "top_k": 40, "stop_sequences": ["x"], "thinking_config": {"thinking_budget": -1}},
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["a", "b"]}},
    });
    let prompt = generate(&camel);
    assert_eq!(prompt, generate(&snake));
    assert_eq!(prompt.max_tokens, Some(64));
    let Part::Image(image) = &prompt.messages[1].parts[0] else {
        panic!("{:?}", prompt.messages);
    };
    let Source::Data { base64, .. } = &image.source else {
        panic!("{image:?}");
    };
    assert_eq!(base64, "/+8=");
    assert!(prompt.strangers.is_empty());
}

#[test]
fn results_without_ids_belong_to_the_first_open_call_of_their_name() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let result = |name: &str, text: &str| json!({"functionResponse": {"name": name, "response": {"output": text}}});
    let prompt = generate(&json!({"contents": [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [call("f"), call("g"), call("f")]},
        {"role": "user", "parts": [result("f", "1"), result("f", "3"), result("g", "2"), {"text": "and?"}]},
    ]}));
    let roles: Vec<Role> = prompt.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
    let answered = prompt.messages[2].parts.iter().map(|part| match part {
        Part::Result(result) => (result.call_id.as_str(), result.text()),
        _ => panic!("{part:?}"),
    });
    let want = [("call_0", "1"), ("call_2", "3"), ("call_1", "2")].map(|(id, text)| (id, text.to_owned()));
    assert_eq!(answered.collect::<Vec<_>>(), want);
}

#[test]
fn what_is_wrong_is_named_and_what_is_unknown_is_kept() {
    for (body, field) in [
        (json!({"contents": [{"parts": "x"}]}), "contents[0].parts"),
        (
            json!({"contents": [{"role": "system", "parts": []}]}),
            "contents[0].role",
        ),
        (json!({"contents": [{"parts": [{}]}]}), "contents[0].parts[0]"),
        (
            json!({"contents": [{"parts": [{"text": 7}]}]}),
            "contents[0].parts[0].text",
        ),
        (
            json!({"contents": [{"parts": [{"inlineData": {"data": "x"}}]}]}),
            "contents[0].parts[0].inlineData.mimeType",
        ),
        (
            json!({"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {"topK": 1.5}}),
            "generationConfig.topK",
        ),
        (json!({"contents": [{"parts": [{"text": "x"}]}], "tools": {}}), "tools"),
        (
            json!({"contents": [{"parts": [{"text": "x"}]}], "toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}),
            "toolConfig.functionCallingConfig.mode",
        ),
    ] {
        let error = Generate.read(&own(Surface::Generate, &body, false)).unwrap_err();
        assert_eq!(
            (error.kind, error.param.as_deref()),
            (Kind::InvalidRequest, Some(field)),
            "{body}"
        );
    }
    let prompt = generate(&json!({
        "contents": [{"parts": [{"executableCode": {"code": "1"}}, {"text": "x", "mood": 1}]}],
        "safetySettings": [{}], "cachedContent": "cachedContents/1", "generationConfig": {"speechConfig": {}},
    }));
    let fields: Vec<_> = prompt
        .strangers
        .iter()
        .map(|stranger| stranger.field.as_str())
        .collect();
    let want = [
        "contents[0].parts[1].mood",
        "generationConfig.speechConfig",
        "safetySettings",
        "cachedContent",
    ];
    assert_eq!(fields, want);
    assert!(
        matches!(&prompt.messages[0].parts[0], Part::Stranger(s) if s.field == "contents[0].parts[0].executableCode")
    );
}

// === what comes back ===

const STREAM: &str = concat!(
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":8},\"modelVersion\":\"gemini-2.5\",\"responseId\":\"r\"}\r\n\r\n",
    ": ping\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hé\"}]},\"index\":0}]}\n\n",
    "data: nonsense\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"llo\"},{\"functionCall\":{\"name\":\"f\",\"args\":{\"a\":1}},\"thoughtSignature\":\"S\"},{\"functionCall\":{\"id\":\"i\",\"name\":\"g\"}}]},\"index\":0}]}\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\",\"thoughtSignature\":\"T\"}]},\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":8,\"candidatesTokenCount\":5,\"totalTokenCount\":13}}",
);

/// All events, in the pieces that the cuts make, with texts in a row put together.
fn events(stream: &str, cuts: &[usize]) -> (Vec<Event>, End) {
    let mut reader = Service::of(GoogleService::Gemini).reader(&origin());
    let mut out = Vec::new();
    let mut from = 0;
    for &at in cuts.iter().chain([&stream.len()]) {
        let piece = Bytes::copy_from_slice(&stream.as_bytes()[from..at.max(from)]);
        from = at.max(from);
        if let Some(end) = reader.push(piece, &mut out) {
            return (out, end);
        }
    }
    let end = reader.finish(&mut out);
    (out, end)
}

#[test]
fn a_stream_is_read_part_by_part() {
    let (events, end) = events(STREAM, &[]);
    assert_eq!(end, End::Complete);
    let deltas: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Delta { part, delta, .. } => Some((*part, delta.clone())),
            _ => None,
        })
        .collect();
    let call = |id: &str, name: &str| Delta::Call {
        id: id.to_owned(),
        name: name.to_owned(),
        is_custom: false,
    };
    let thought = Delta::Thought {
        text: "hm".to_owned(),
        is_summary: true,
    };
    assert_eq!(
        deltas,
        [
            (0, thought),
            (1, Delta::Text("Hé".to_owned())),
            (1, Delta::Text("llo".to_owned())),
            (2, call("call_0193f0a0b1c2d3e4f50617280", "f")),
            (2, Delta::Arguments(r#"{"a":1}"#.to_owned())),
            (2, Delta::Seal(Seal::new(Maker::Gemini, "S"))),
            (3, call("i", "g")),
            (3, Delta::Arguments("{}".to_owned())),
            (4, Delta::Redacted),
            (4, Delta::Seal(Seal::new(Maker::Gemini, "T"))),
        ]
    );
    let finish = Event::Finish {
        choice: 0,
        finish: Finish::ToolCalls,
    };
    assert!(events.contains(&finish));
    assert!(matches!(events.last(), Some(Event::Usage(usage)) if usage.completion == Some(5)));
}

#[test]
fn a_stream_that_does_not_end_well_has_failed() {
    let piece = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"index\":0}]}\n\n";
    let late = "{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\"\n  }\n}";
    for (stream, kind) in [
        (piece.to_owned(), Kind::Cut),
        (String::new(), Kind::Cut),
        ("data: x\n\n".to_owned(), Kind::BadAnswer),
        (format!("{piece}{late}"), Kind::ServerError),
        (format!("{piece}{late}\n\n"), Kind::ServerError),
        (
            format!("{piece}data: {{\"error\":{{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}}}\n\n"),
            Kind::RateLimit,
        ),
        (format!("[{late}]"), Kind::ServerError),
    ] {
        let (_, end) = events(&stream, &[]);
        let End::Failed(error) = end else {
            panic!("{stream}");
        };
        assert_eq!(error.kind, kind, "{stream}");
        let call = own(
            Surface::Generate,
            &json!({"contents": [{"parts": [{"text": "a"}]}]}),
            true,
        );
        let mut decoder = gemini().decoder(&call, "m");
        let mut end = decoder.push(Bytes::from(stream.clone())).end;
        end = end.or_else(|| decoder.finish().end);
        let Some(End::Failed(error)) = end else {
            panic!("relayed {stream}");
        };
        // A relay knows less of what is no event: that it has failed is enough.
        if matches!(kind, Kind::Cut | Kind::RateLimit) {
            assert_eq!(error.kind, kind, "relayed {stream}");
        }
    }
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n";
    let (events, end) = events(blocked, &[]);
    assert_eq!(end, End::Complete);
    let finish = Event::Finish {
        choice: 0,
        finish: Finish::ContentFilter,
    };
    assert!(events.contains(&finish));
}

#[test]
fn a_stream_of_its_own_dialect_is_relayed_as_it_came() {
    let call = own(
        Surface::Generate,
        &json!({"contents": [{"parts": [{"text": "a"}]}]}),
        true,
    );
    let whole = format!("{STREAM}\n\n")
        .replace("data: nonsense\n\n", "")
        .replace(": ping\n\n", "");
    for (model, renamed) in [("m", false), ("gemini-2.5", true)] {
        let mut decoder = gemini().decoder(&call, model);
        let mut progress = decoder.push(Bytes::from(whole.clone()));
        assert!(progress.content && progress.end.is_none());
        let last = decoder.finish();
        progress.out.extend(last.out);
        assert_eq!(last.end, Some(End::Complete));
        let out: Vec<u8> = progress.out.concat();
        let out = String::from_utf8(out).unwrap();
        if renamed {
            assert!(
                out.contains("\"modelVersion\":\"m\"") && !out.contains("gemini-2.5"),
                "{out}"
            );
        } else {
            assert_eq!(out, whole);
        }
        assert_eq!(decoder.usage().total, Some(13));
    }
}

#[test]
fn what_another_vendor_says_is_told_in_whole_calls() {
    let call = own(
        Surface::Generate,
        &json!({"contents": [{"parts": [{"text": "a"}]}]}),
        true,
    );
    let mut writer = Generate.writer(&call, "m");
    let (mut out, mut notes) = (Vec::new(), Notes::default());
    let delta = |part, delta| Event::Delta { choice: 0, part, delta };
    let begin = |id: &str| Delta::Call {
        id: id.to_owned(),
        name: "f".to_owned(),
        is_custom: false,
    };
    for event in [
        delta(0, Delta::Text("Hi".to_owned())),
        delta(1, begin("a")),
        delta(2, begin("b")),
        delta(1, Delta::Arguments("{\"x\":".to_owned())),
        delta(2, Delta::Arguments("{\"y\":2}".to_owned())),
        delta(1, Delta::Arguments("1}".to_owned())),
        Event::Finish {
            choice: 0,
            finish: Finish::ToolCalls,
        },
    ] {
        writer.write(event, &mut out, &mut notes);
    }
    writer.finish(&mut out, &mut notes);
    let out = String::from_utf8(out).unwrap();
    let pieces: Vec<Value> = out
        .split("\n\n")
        .filter_map(|frame| serde_json::from_str(frame.strip_prefix("data: ")?).ok())
        .collect();
    let parts: Vec<_> = pieces
        .iter()
        .map(|piece| piece["candidates"][0]["content"]["parts"][0].clone())
        .collect();
    assert_eq!(
        parts,
        [
            json!({"text": "Hi"}),
            json!({"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}}),
            json!({"functionCall": {"id": "b", "name": "f", "args": {"y": 2}}}),
            json!({"text": ""}),
        ]
    );
    let ends: Vec<_> = pieces
        .iter()
        .map(|piece| piece["candidates"][0]["finishReason"].clone())
        .collect();
    assert_eq!(ends, [Value::Null, Value::Null, Value::Null, json!("STOP")]);
}

#[test]
fn a_signed_thought_comes_back_as_it_was_from_pieces_of_a_stream() {
    let call = own(
        Surface::Generate,
        &json!({"contents": [{"parts": [{"text": "a"}]}]}),
        true,
    );
    let mut writer = Generate.writer(&call, "m");
    let (mut out, mut notes) = (Vec::new(), Notes::default());
    let thought = |text: &str| Delta::Thought {
        text: text.to_owned(),
        is_summary: false,
    };
    let seal = |data: &str| Delta::Seal(Seal::new(Maker::Anthropic, data));
    for (part, delta) in [
        (0, thought("so ")),
        (0, thought("then")),
        (0, seal("S")),
        (1, Delta::Redacted),
        (1, seal("R")),
        (2, Delta::Text("Yes.".to_owned())),
    ] {
        let choice = 0;
        writer.write(Event::Delta { choice, part, delta }, &mut out, &mut notes);
    }
    let out = String::from_utf8(out).unwrap();
    let pieces = out
        .split("\n\n")
        .filter_map(|frame| serde_json::from_str::<Value>(frame.strip_prefix("data: ")?).ok());
    let parts: Vec<Value> = pieces
        .map(|piece| piece["candidates"][0]["content"]["parts"][0].clone())
        .collect();
    let prompt = generate(&json!({"contents": [{"parts": [{"text": "a"}]}, {"role": "model", "parts": parts}]}));
    let sealed = |text: &str, data: &str, is_redacted: bool| {
        Part::Thought(Thought {
            text: text.to_owned(),
            is_summary: !is_redacted,
            seal: Some(Seal::new(Maker::Anthropic, data)),
            is_redacted,
        })
    };
    assert_eq!(
        prompt.messages[1].parts,
        [sealed("so then", "S", false), sealed("", "R", true), Part::text("Yes.")]
    );
}

#[test]
fn embeddings_are_asked_for_where_they_are() {
    let body = r#"{"model":"m","input":["a","b"],"dimensions":3,"input_type":"search_query"}"#;
    let Ok(call) = Call::parse(Surface::Embeddings, Bytes::from(body)) else {
        panic!("{body}");
    };
    let request = encode(&gemini(), &call, "gemini-embedding-001").request;
    assert!(
        request
            .uri()
            .path()
            .ends_with("/models/gemini-embedding-001:batchEmbedContents")
    );
    let sent: Value = serde_json::from_slice(request.body()).unwrap();
    assert_eq!(sent["requests"][1]["content"]["parts"][0]["text"], "b");
    assert_eq!(sent["requests"][0]["outputDimensionality"], 3);
    let request = encode(&vertex(), &call, "text-embedding-005").request;
    assert!(request.uri().path().ends_with("/text-embedding-005:predict"));
    let answer = br#"{"predictions":[{"embeddings":{"values":[1,0.5],"statistics":{"token_count":2}}},{"embeddings":{"values":[0,1],"statistics":{"token_count":3}}}]}"#;
    let reply = vertex()
        .decode(&call, "text-embedding-005", Bytes::from_static(answer))
        .unwrap();
    assert_eq!(reply.usage.prompt, Some(5));
    let error = vertex()
        .encode(&call, "gemini-embedding-2", &HeaderMap::new(), &TERMS)
        .unwrap_err();
    assert_eq!((error.kind, error.param.as_deref()), (Kind::Unsupported, Some("input")));
}

proptest! {
    #[test]
    fn any_split_gives_the_same(cuts in prop::collection::vec(0..STREAM.len(), 0..10)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        prop_assert_eq!(events(STREAM, &cuts), events(STREAM, &[]));
    }

    #[test]
    fn no_answer_panics(body in "\\PC{0,40}", at in 0..STREAM.len()) {
        let _ = Service::of(GoogleService::Gemini).read(body.as_bytes(), &origin());
        let cut = STREAM.as_bytes().get(..at).unwrap_or_default();
        let mut reader = Service::of(GoogleService::Gemini).reader(&origin());
        let mut out = Vec::new();
        let _ = reader.push(Bytes::copy_from_slice(cut), &mut out);
        let _ = reader.finish(&mut out);
    }
}
