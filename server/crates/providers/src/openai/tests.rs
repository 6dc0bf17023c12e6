//! Requests as they go up, answers as they come down.

#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is handed over"
)]

use super::{Chat, OpenAi};
use crate::codec::Back as _;
use crate::ir::Event;
use crate::params::OnUnsupported;
use crate::{Call, End, FromPath, Origin, Surface, Terms, Wire};
use bytes::Bytes;
use expect_test::{Expect, expect};
use http::HeaderMap;
use proptest::prelude::*;
use std::time::SystemTime;
use switchyard_core::error::Kind;
use switchyard_core::secret::Secret;

fn wire() -> OpenAi {
    OpenAi::new(
        "https://up.test/v1/",
        Some(&Secret::new("sk-up".into())),
        &[("X-Team".into(), "a".into())],
    )
    .unwrap()
}

fn terms() -> Terms {
    Terms {
        now: SystemTime::UNIX_EPOCH,
        on_unsupported: OnUnsupported::Warn,
    }
}

fn call(body: &str) -> Call {
    Call::parse(Surface::Chat, Bytes::copy_from_slice(body.as_bytes())).unwrap()
}

/// The body that goes up for `model`.
#[track_caller]
fn sent(body: &str, model: &str, want: Expect) {
    let request = wire()
        .encode(&call(body), model, &HeaderMap::new(), &terms())
        .unwrap()
        .request;
    want.assert_eq(std::str::from_utf8(request.body()).unwrap());
}

#[test]
fn a_request_goes_up_as_it_came_but_for_what_must_differ() {
    let plain =
        r#"{ "model": "m", "messages": [{"role":"user","content":"h\u00e9"}], "vendor_thing": {"b":1e2, "a":[]} }"#;
    sent(
        plain,
        "m",
        expect![[
            r#"{ "model": "m", "messages": [{"role":"user","content":"h\u00e9"}], "vendor_thing": {"b":1e2, "a":[]} }"#
        ]],
    );
    sent(
        plain,
        "n\"2",
        expect![[
            r#"{ "model": "n\"2", "messages": [{"role":"user","content":"h\u00e9"}], "vendor_thing": {"b":1e2, "a":[]} }"#
        ]],
    );
}

#[test]
fn usage_is_always_asked_of_a_stream() {
    let with = |options: &str| format!(r#"{{"model":"m","messages":[0],"stream":true{options}}}"#);
    sent(
        &with(""),
        "m",
        expect![[r#"{"model":"m","messages":[0],"stream":true,"stream_options":{"include_usage":true}}"#]],
    );
    sent(
        &with(r#","stream_options":null"#),
        "m",
        expect![[r#"{"model":"m","messages":[0],"stream":true,"stream_options":{"include_usage":true}}"#]],
    );
    sent(
        &with(r#","stream_options":{ }"#),
        "m",
        expect![[r#"{"model":"m","messages":[0],"stream":true,"stream_options":{"include_usage":true}}"#]],
    );
    sent(
        &with(r#","stream_options":{"x":1}"#),
        "m",
        expect![[r#"{"model":"m","messages":[0],"stream":true,"stream_options":{"include_usage":true,"x":1}}"#]],
    );
    sent(
        &with(r#","stream_options":{"include_usage": false,"x":1}"#),
        "m",
        expect![[r#"{"model":"m","messages":[0],"stream":true,"stream_options":{"include_usage": true,"x":1}}"#]],
    );
    sent(
        &with(r#","stream_options":{"include_usage":true}"#),
        "m",
        expect![[r#"{"model":"m","messages":[0],"stream":true,"stream_options":{"include_usage":true}}"#]],
    );
}

#[test]
fn only_allowed_headers_of_the_client_go_up() {
    let client: HeaderMap = [
        ("authorization", "Bearer sy_x"),
        ("cookie", "a=b"),
        ("x-api-key", "sy_x"),
        ("x-gateway-only", "a"),
        ("openai-beta", "assistants=v2"),
        ("openai-organization", "org"),
        ("user-agent", "sdk"),
    ]
    .into_iter()
    .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
    .collect();
    let request = wire()
        .encode(&call(r#"{"model":"m","messages":[0]}"#), "m", &client, &terms())
        .unwrap()
        .request;
    let mut names: Vec<String> = request
        .headers()
        .iter()
        .map(|(name, value)| {
            format!(
                "{name}: {}",
                if value.is_sensitive() {
                    "[sensitive]"
                } else {
                    value.to_str().unwrap()
                }
            )
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "accept: application/json",
            "authorization: [sensitive]",
            "content-type: application/json",
            "openai-beta: assistants=v2",
            "openai-organization: org",
            "x-team: [sensitive]"
        ]
    );
    assert_eq!(request.uri(), "https://up.test/v1/chat/completions");
    assert_eq!(request.headers()["authorization"], "Bearer sk-up");
}

#[test]
fn a_wrong_request_names_its_field() {
    for (surface, body, param, message) in [
        (
            Surface::Chat,
            "",
            None,
            "the body is not a valid JSON object: EOF while parsing a value at line 1 column 0",
        ),
        (
            Surface::Chat,
            "[]",
            None,
            "the body is not a valid JSON object: this is a list",
        ),
        (
            Surface::Chat,
            r#"{"model":"m","messages":[0]} x"#,
            None,
            "the body is not a valid JSON object: trailing characters at line 1 column 30",
        ),
        (
            Surface::Chat,
            r#"{"messages":[0]}"#,
            Some("model"),
            "`model` is required: name the model that should answer",
        ),
        (
            Surface::Chat,
            r#"{"model":7,"messages":[0]}"#,
            Some("model"),
            "`model` must be a text: the name of a model",
        ),
        (
            Surface::Chat,
            r#"{"model":" ","messages":[0]}"#,
            Some("model"),
            "`model` must not be empty: name the model that should answer",
        ),
        (
            Surface::Chat,
            r#"{"model":"m"}"#,
            Some("messages"),
            "`messages` is required",
        ),
        (
            Surface::Chat,
            r#"{"model":"m","messages":"hi"}"#,
            Some("messages"),
            "`messages` must be a list of messages",
        ),
        (
            Surface::Chat,
            r#"{"model":"m","messages":[ ]}"#,
            Some("messages"),
            "`messages` must hold at least one message",
        ),
        (
            Surface::Chat,
            r#"{"model":"m","messages":[0],"stream":"yes"}"#,
            Some("stream"),
            "`stream` must be true or false",
        ),
        (
            Surface::Embeddings,
            r#"{"model":"m"}"#,
            Some("input"),
            "`input` is required",
        ),
        (
            Surface::Embeddings,
            r#"{"model":"m","input":"a","stream":true}"#,
            Some("stream"),
            "`stream` is not possible here: the answer comes in one piece",
        ),
    ] {
        let error = Call::parse(surface, Bytes::copy_from_slice(body.as_bytes())).unwrap_err();
        assert_eq!(
            (error.kind, error.param.as_deref(), error.message.as_str()),
            (Kind::InvalidRequest, param, message),
            "{body}"
        );
    }
}

#[test]
fn an_answer_comes_down_as_it_came_but_for_a_renamed_model() {
    let body = r#"{"id":"x","model":"up-1","choices":[{"logprobs":{"a":1}}],"odd":true,"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}"#;
    let call = call(r#"{"model":"fast","messages":[0]}"#);
    let reply = wire().decode(&call, &call.model, Bytes::from(body)).unwrap();
    assert_eq!(reply.body, body);
    let usage = reply.usage;
    assert_eq!(
        (usage.prompt, usage.completion, usage.total),
        (Some(9), Some(4), Some(13))
    );
    assert_eq!(
        (usage.cached, usage.reasoning, usage.estimated),
        (Some(3), Some(2), false)
    );
    let reply = wire().decode(&call, "another", Bytes::from(body)).unwrap();
    assert_eq!(reply.body, body.replace("up-1", "fast"));
}

#[test]
fn a_failure_in_disguise_is_a_failure() {
    let call = call(r#"{"model":"m","messages":[0]}"#);
    for (body, kind, message) in [
        (
            r#"{"error":{"message":"quota","code":"insufficient_quota"}}"#,
            Kind::Quota,
            "quota",
        ),
        (r#"{"error":"overloaded"}"#, Kind::ServerError, "overloaded"),
        ("{}", Kind::BadAnswer, "the upstream's answer has no `choices`"),
        (
            r#"{"choices":null}"#,
            Kind::BadAnswer,
            "the upstream's answer has no `choices`",
        ),
        (
            "<html>",
            Kind::BadAnswer,
            "the upstream's answer is not valid JSON: expected value at line 1 column 1",
        ),
    ] {
        let error = wire().decode(&call, &call.model, Bytes::from(body)).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message), "{body}");
    }
}

/// A choice that failed, and what it means.
const FAILED_CHOICES: [(&str, Kind, &str); 5] = [
    (
        r#""finish_reason":"error""#,
        Kind::ServerError,
        "the upstream ended its answer with the reason \"error\"",
    ),
    (
        r#""finish_reason":"error","error":{"code":502,"message":"Provider returned error"}"#,
        Kind::ServerError,
        "Provider returned error",
    ),
    (
        r#""finish_reason":null,"error":{"code":429,"message":"slow down"}"#,
        Kind::RateLimit,
        "slow down",
    ),
    (r#""error":"overloaded""#, Kind::ServerError, "overloaded"),
    (
        r#""finish_reason":"\u0065rror","error":{}"#,
        Kind::ServerError,
        "the upstream ended its answer with the reason \"error\"",
    ),
];

#[test]
fn an_answer_of_no_choice_or_of_one_that_failed_is_no_answer() {
    let call = call(PLAIN.replace(r#","stream":true"#, "").as_str());
    let ended = |body: &str| {
        let native = wire().decode(&call, &call.model, Bytes::copy_from_slice(body.as_bytes()));
        let read = Chat.read(body.as_bytes(), &call.origin);
        let (native, read) = (native.unwrap_err(), read.unwrap_err());
        // Whoever asks, it is the same failure.
        assert_eq!(native, read, "{body}");
        (native.kind, native.status, native.message)
    };
    assert_eq!(
        ended(r#"{"error":null,"choices":[],"usage":{"total_tokens":3}}"#),
        (
            Kind::BadAnswer,
            Some(200),
            "the upstream's answer has no choice in `choices`".to_owned()
        )
    );
    for (choice, kind, message) in FAILED_CHOICES {
        let body = format!(
            r#"{{"choices":[{{"index":0,"message":{{"content":"a"}},"finish_reason":"stop"}},{{"index":1,"message":{{"content":"b"}},{choice}}}]}}"#
        );
        assert_eq!(ended(&body), (kind, Some(200), message.to_owned()), "{body}");
    }
    // What only looks like one.
    for choice in [
        r#""finish_reason":"stop","error":null"#,
        r#""finish_reason":"stop","error":{ }"#,
        r#""finish_reason":"errors","error":"""#,
    ] {
        let body = format!(r#"{{"choices":[{{"index":0,"message":{{"content":"a"}},{choice}}}]}}"#);
        assert!(wire().decode(&call, &call.model, body.clone().into()).is_ok(), "{body}");
        assert!(Chat.read(body.as_bytes(), &call.origin).is_ok(), "{body}");
    }
}

#[test]
fn a_choice_that_failed_ends_its_stream() {
    let text = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    for (choice, kind, message) in FAILED_CHOICES {
        let usage = "\"usage\":{\"total_tokens\":3}";
        let last =
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},{choice}}}],{usage}}}\n\ndata: [DONE]\n\n");
        for before in ["", text] {
            let stream = [before, &last].concat();
            let (out, content, end, usage) = relay(PLAIN, false, &[stream.as_bytes()]);
            assert_eq!((out.as_str(), content), (before, !before.is_empty()), "{stream}");
            assert_eq!(usage.total, Some(3), "what it used is known all the same: {stream}");
            let (mut listener, mut events) = (Chat.reader(&call(PLAIN).origin), Vec::new());
            assert_eq!(listener.push(stream.clone().into(), &mut events), end, "{stream}");
            let Some(End::Failed(error)) = end else {
                panic!("{stream}");
            };
            assert_eq!(
                (error.kind, error.status, error.message.as_str()),
                (kind, None, message)
            );
        }
    }
    // And so does usage without an answer.
    let stream = "data: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\ndata: [DONE]\n\n";
    let (_, _, end, usage) = relay(PLAIN, false, &[stream.as_bytes()]);
    assert!(matches!(end, Some(End::Failed(error)) if error.kind == Kind::BadAnswer));
    assert_eq!(usage.total, Some(3));
}

#[test]
fn groqs_own_report_of_usage_counts_where_there_is_no_other() {
    let groq =
        r#""x_groq":{"id":"r","usage":{"queue_time":0.1,"prompt_tokens":23,"completion_tokens":3,"total_tokens":26}}"#;
    let other = r#""usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}"#;
    let choice = r#""choices":[{"index":0,"message":{"content":"a"},"delta":{"content":"a"},"finish_reason":"stop"}]"#;
    let whole = call(r#"{"model":"m","messages":[0]}"#);
    for (reported, total) in [
        (groq.to_owned(), 26),
        (format!(r#"{groq},"usage":null"#), 26),
        (format!("{groq},{other}"), 8),
        (format!(r#""x_groq":{{"id":"r","usage":null}},{other}"#), 8),
        (format!(r#""x_groq":[],{other}"#), 8),
    ] {
        let body = format!("{{{choice},{reported}}}");
        let native = wire().decode(&whole, "m", body.clone().into()).unwrap().usage;
        assert_eq!((native.total, native.estimated), (Some(total), false), "{body}");
        assert_eq!(
            Chat.read(body.as_bytes(), &whole.origin).unwrap().usage,
            native,
            "{body}"
        );
        let stream = format!("data: {body}\n\ndata: [DONE]\n\n");
        for request in [PLAIN, ASKED] {
            let (out, _, end, usage) = relay(request, false, &[stream.as_bytes()]);
            assert_eq!((end, usage), (Some(End::Complete), native), "{stream}");
            // It is the vendor's own, and goes on whether or not usage was asked for.
            assert!(out.contains("x_groq"), "{out}");
        }
        let (mut listener, mut events) = (Chat.reader(&call(PLAIN).origin), Vec::new());
        listener.push(stream.into(), &mut events);
        assert!(events.contains(&Event::Usage(native)), "{events:?}");
    }
}

/// One stream through the decoder: what goes out, and how it ended.
fn relay(request: &str, renamed: bool, pieces: &[&[u8]]) -> (String, bool, Option<End>, switchyard_core::usage::Usage) {
    let call = call(request);
    let model = if renamed { "another" } else { &call.model };
    let mut decoder = wire().decoder(&call, model);
    let mut out = Vec::new();
    let (mut content, mut end) = (false, None);
    let mut steps: Vec<_> = pieces
        .iter()
        .map(|piece| decoder.push(Bytes::copy_from_slice(piece)))
        .collect();
    steps.push(decoder.finish());
    for step in steps {
        step.out.iter().for_each(|bytes| out.extend_from_slice(bytes));
        content |= step.content;
        end = end.or(step.end);
    }
    (
        String::from_utf8_lossy(&out).into_owned(),
        content,
        end,
        decoder.usage(),
    )
}

const PLAIN: &str = r#"{"model":"m","messages":[0],"stream":true}"#;
const ASKED: &str = r#"{"model":"m","messages":[0],"stream":true,"stream_options":{"include_usage":true}}"#;
const STREAM: &str = "data: {\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\n: ping\n\ndata: {\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\u{e9}\"},\"logprobs\":null}],\"usage\":null}\n\ndata: {\"model\":\"up\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"model\":\"up\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9}}\n\ndata: [DONE]\n\n";

#[test]
fn a_stream_comes_down_untouched_when_usage_was_asked_for() {
    let (out, content, end, usage) = relay(ASKED, false, &[STREAM.as_bytes()]);
    assert_eq!(
        out,
        STREAM.replace(": ping\n\n", ""),
        "but for a comment before content"
    );
    assert!(content);
    assert_eq!(end, Some(End::Complete));
    assert_eq!((usage.total, usage.estimated), (Some(9), false));
}

#[test]
fn usage_that_was_not_asked_for_stays_here_and_is_counted() {
    let (out, _, end, usage) = relay(PLAIN, false, &[STREAM.as_bytes()]);
    expect![[r#"
        data: {"model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

        data: {"model":"up","choices":[{"index":0,"delta":{"content":"hé"},"logprobs":null}]}

        data: {"model":"up","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

        data: [DONE]

    "#]]
    .assert_eq(&out);
    assert_eq!(end, Some(End::Complete));
    assert_eq!(usage.completion, Some(2));
}

#[test]
fn a_renamed_model_is_spliced_into_every_frame() {
    let (out, ..) = relay(ASKED, true, &[STREAM.as_bytes()]);
    assert_eq!(out, STREAM.replace("\"up\"", "\"m\"").replace(": ping\n\n", ""));
}

#[test]
fn streams_that_end_early_or_badly_say_so() {
    let text = r#"data: {"choices":[{"delta":{"content":"a"}}]}"#;
    let stop = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let ended = |stream: String| {
        let (out, content, end, usage) = relay(PLAIN, false, &[stream.as_bytes()]);
        let end = match end {
            Some(End::Failed(error)) => format!("{}: {}", error.kind.as_str(), error.message),
            other => format!("{other:?}"),
        };
        (out, content, end, usage.estimated)
    };
    // Cut after content, and cut before any.
    let cut = "cut: the upstream closed its stream before the answer was whole";
    assert_eq!(
        ended(format!("{text}\n\n")),
        (format!("{text}\n\n"), true, cut.to_owned(), true)
    );
    assert_eq!((ended(String::new()).1, ended(String::new()).2.as_str()), (false, cut));
    // No `[DONE]` and no last blank line, but finished.
    assert_eq!(
        ended(format!("{text}\n\n{stop}")).0,
        format!("{text}\n\n{stop}\n\ndata: [DONE]\n\n")
    );
    // One bad frame is skipped.
    let (out, _, end, _) = ended(format!("{text}\n\ndata: {{bad\n\n{stop}\n\n"));
    assert_eq!(
        (out, end.as_str()),
        (format!("{text}\n\n{stop}\n\ndata: [DONE]\n\n"), "Some(Complete)")
    );
    // Errors: an object, a text, and one without `data:`.
    assert_eq!(
        ended("data: {\"error\":{\"message\":\"x\",\"code\":\"rate_limit_exceeded\"}}\n\n".to_owned()).2,
        "rate_limit: x"
    );
    assert_eq!(
        ended(format!("{text}\n\n{{\"error\":{{\"message\":\"y\",\"code\":503}}}}")).2,
        "server_error: y"
    );
    assert_eq!(ended("data: {\"error\":\"z\"}\n\n".to_owned()).2, "server_error: z");
    // Errors without their wrapper, and one over several lines at the end.
    assert_eq!(
        ended(format!(
            "{text}\n\ndata: {{\"object\":\"error\",\"message\":\"v\",\"code\":400}}\n\n"
        ))
        .2,
        "server_error: v"
    );
    assert_eq!(
        ended("event: error\ndata: {\"type\":\"overloaded\",\"message\":\"e\"}\n\n".to_owned()).2,
        "server_error: e"
    );
    assert_eq!(
        ended("data: [{\"error\":{\"message\":\"l\"}}]\n\ndata: [DONE]\n\n".to_owned()).2,
        "server_error: l"
    );
    assert_eq!(
        ended(format!("{text}\n\n{{\n  \"error\": {{\"message\": \"p\"}}\n}}\n")).2,
        "server_error: p"
    );
    // `[DONE]` alone is no answer, and JSON of an unknown shape is nobody's to throw away.
    assert_eq!(
        ended("data: [DONE]\n\n".to_owned()).2,
        "bad_answer: the upstream ended its stream without an answer"
    );
    let odd = r#"data: {"choices":[{"index":-1,"delta":"x"}]}"#;
    assert_eq!(
        ended(format!("{text}\n\n{odd}\n\n{stop}\n\n")).0,
        format!("{text}\n\n{odd}\n\n{stop}\n\ndata: [DONE]\n\n")
    );
    // Usage without `choices` does not break anything.
    let usage = r#"data: {"usage":{"total_tokens":3}}"#;
    assert!(
        !ended(format!(
            "{text}

{stop}

{usage}

data: [DONE]

"
        ))
        .3
    );
}

#[test]
fn one_finished_choice_of_two_is_no_whole_answer() {
    let chunk = |index, finish| {
        format!(
            "data: {{\"choices\":[{{\"index\":{index},\"delta\":{{\"content\":\"a\"}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let stream = [chunk(0, "null"), chunk(1, "\"stop\"")].concat();
    assert!(matches!(
        relay(PLAIN, false, &[stream.as_bytes()]).2,
        Some(End::Failed(_))
    ));
    let stream = [chunk(0, "\"stop\""), chunk(1, "\"length\"")].concat();
    assert_eq!(relay(PLAIN, false, &[stream.as_bytes()]).2, Some(End::Complete));
}

#[test]
fn a_frame_of_several_lines_stays_one_when_it_is_changed() {
    let stream =
        "data: {\"model\":\"up\",\ndata: \"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (out, ..) = relay(PLAIN, true, &[stream.as_bytes()]);
    assert_eq!(out, format!("{}data: [DONE]\n\n", stream.replace("up", "m")));
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_same_output(cuts in prop::collection::vec(0..STREAM.len(), 0..20), renamed: bool, asked: bool) {
        let request = if asked { ASKED } else { PLAIN };
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for at in cuts {
            pieces.push(&STREAM.as_bytes()[from..at]);
            from = at;
        }
        pieces.push(&STREAM.as_bytes()[from..]);
        prop_assert_eq!(relay(request, renamed, &pieces), relay(request, renamed, &[STREAM.as_bytes()]));
    }
}

#[test]
fn reasoning_of_other_dialects_goes_by_responses_where_nothing_is_lost() {
    let both = wire().serving(&[Surface::Responses]);
    let thinking = r#""thinking":{"type":"enabled","budget_tokens":2048}"#;
    let read = |surface, more: &str| {
        let body = format!(r#"{{"model":"m","max_tokens":4096,"messages":[{{"role":"user","content":"hi"}}]{more}}}"#);
        Call::parse(surface, Bytes::from(body)).unwrap()
    };
    let path = |wire: &OpenAi, call: &Call, model: &str| {
        let sent = wire.encode(call, model, &HeaderMap::new(), &terms()).unwrap();
        sent.request.uri().path().to_owned()
    };
    let asked = read(Surface::Messages, &format!(",{thinking}"));
    assert_eq!(path(&both, &asked, "gpt-5"), "/v1/responses");
    for (wire, more, model) in [
        // The upstream does not have it; nobody asks for it; the model does not reason; or something else would be lost.
        (&wire(), format!(",{thinking}"), "gpt-5"),
        (&both, String::new(), "gpt-5"),
        (&both, r#","thinking":{"type":"disabled"}"#.to_owned(), "gpt-5"),
        (&both, format!(",{thinking}"), "gpt-4o"),
        (&both, format!(",{thinking}"), "gpt-5-chat-latest"),
        (&both, format!(r#",{thinking},"stop_sequences":["x"]"#), "gpt-5"),
    ] {
        let call = read(Surface::Messages, &more);
        assert_eq!(path(wire, &call, model), "/v1/chat/completions", "{more} {model}");
    }
    let short = r#"{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":8,"thinkingConfig":{"thinkingBudget":512}}}"#;
    let at = FromPath {
        model: "m".to_owned(),
        stream: false,
    };
    let short = Call::read(Surface::Generate, short.into(), Some(at), Origin::default()).unwrap();
    assert_eq!(
        path(&both, &short, "gpt-5"),
        "/v1/chat/completions",
        "Responses refuses so small a bound"
    );
    let chat = read(Surface::Chat, r#","reasoning_effort":"low""#);
    assert_eq!(path(&both, &chat, "gpt-5"), "/v1/chat/completions");
    // What the vendor sealed comes back, whole and streamed, and goes up again.
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"}"#;
    let said = r#"{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}]}"#;
    let whole = format!(r#"{{"id":"resp_1","object":"response","status":"completed","output":[{item},{said}]}}"#);
    let reply = both.decode(&asked, "gpt-5", whole.clone().into()).unwrap();
    let reply: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    let thought = reply["content"][0].clone();
    assert_eq!(
        (&thought["type"], &thought["thinking"]),
        (&"thinking".into(), &"hm".into())
    );
    let streamed = read(Surface::Messages, &format!(r#",{thinking},"stream":true"#));
    let mut decoder = both.decoder(&streamed, "gpt-5");
    let completed =
        format!("event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{whole}}}\n\n");
    let progress = decoder.push(completed.into());
    let out = progress.out.concat();
    assert_eq!(progress.end, Some(End::Complete));
    assert!(String::from_utf8_lossy(&out).contains(thought["signature"].as_str().unwrap()));
    let again = format!(
        r#"{{"model":"m","max_tokens":99,"messages":[{{"role":"user","content":"hi"}},{{"role":"assistant","content":[{thought},{{"type":"text","text":"Hi"}}]}},{{"role":"user","content":"more"}}]}}"#
    );
    let again = Call::parse(Surface::Messages, again.into()).unwrap();
    let sent = both
        .encode(&again, "gpt-5", &HeaderMap::new(), &terms())
        .unwrap()
        .request;
    assert_eq!(sent.uri().path(), "/v1/responses");
    assert!(String::from_utf8_lossy(sent.body()).contains(r#""encrypted_content":"gAAA""#));
}
