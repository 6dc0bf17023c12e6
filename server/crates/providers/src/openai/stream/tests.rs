//! Moulds: what fits must be read as it would have been read without one.

use super::{Decoder, Mould, Reader};
use crate::{Call, End, StreamDecoder, Surface};
use bytes::Bytes;
use proptest::prelude::*;
use switchyard_core::usage::Usage;

/// A chunk like all others.
fn chunk(delta: &str) -> String {
    format!(
        r#"{{"id":"c-1","model":"up","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}],"usage":null}}"#
    )
}

fn mould_of(data: &str) -> Mould {
    let mut reader = Reader::new(data.as_bytes());
    assert!(reader.read().is_some(), "{data}");
    let mut mould = Mould::default();
    mould.cast(reader);
    mould
}

#[test]
fn what_differs_in_its_texts_alone_fits() {
    let long = "x".repeat(300);
    for (cast, delta, content_bytes) in [
        // Texts of any length, and what is said of them.
        (r#"{"content":"a"}"#, r#"{"content":"a"}"#.to_owned(), Some(3)),
        (r#"{"content":"a"}"#, r#"{"content":"bcd"}"#.to_owned(), Some(5)),
        (r#"{"content":"a"}"#, r#"{"content":""}"#.to_owned(), Some(0)),
        (r#"{"content":""}"#, r#"{"content":"a"}"#.to_owned(), Some(3)),
        (
            r#"{"content":"a"}"#,
            r#"{"content":"\"é\\\ud83d\n"}"#.to_owned(),
            Some(16),
        ),
        (r#"{"content":"a"}"#, format!(r#"{{"content":"{long}"}}"#), Some(302)),
        (r#"{"reasoning":"a"}"#, r#"{"reasoning":"b"}"#.to_owned(), Some(3)),
        (
            r#"{"content":"a","refusal":"b"}"#,
            r#"{"content":"","refusal":"cc"}"#.to_owned(),
            Some(4),
        ),
        // Calls count whole.
        (
            r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]}"#.to_owned(),
            Some(r#"[{"index":0,"function":{"arguments":"{\"a"}}]"#.len()),
        ),
        // What is around the texts is not the same.
        (r#"{"content":"a"}"#, r#"{"refusal":"a"}"#.to_owned(), None),
        (r#"{"content":"a"}"#, r#"{"content": "a"}"#.to_owned(), None),
        (r#"{"content":"a"}"#, r#"{"content":"a" }"#.to_owned(), None),
        (
            r#"{"content":"a"}"#,
            r#"{"content":"a","refusal":"b"}"#.to_owned(),
            None,
        ),
        (r#"{"content":"a"}"#, r#"{"content":null}"#.to_owned(), None),
        (r#"{"content":"a"}"#, "{}".to_owned(), None),
        (r#"{"content":"a"}"#, r#"{"role":"a","content":"a"}"#.to_owned(), None),
        (
            r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":""}}]}"#.to_owned(),
            None,
        ),
        // No texts.
        (r#"{"content":"a"}"#, r#"{"content":"\x"}"#.to_owned(), None),
        (r#"{"content":"a"}"#, "{\"content\":\"\n\"}".to_owned(), None),
        (r#"{"content":"a"}"#, r#"{"content":"a"#.to_owned(), None),
    ] {
        let mut mould = mould_of(&chunk(cast));
        assert_eq!(mould.fit(chunk(&delta).as_bytes()), content_bytes, "{cast} and {delta}");
    }
    let mut mould = mould_of(&chunk(r#"{"content":"a"}"#));
    let not_utf8 = chunk(r#"{"content":"*"}"#).replace('*', "é").into_bytes();
    let cut: Vec<u8> = not_utf8.iter().copied().filter(|byte| *byte != 0xa9).collect();
    assert_eq!(mould.fit(&not_utf8), Some(4));
    assert_eq!(mould.fit(&cut), None);
    assert_eq!(
        mould.fit(chunk(r#"{"content":"a"}"#).replace("c-1", "c-2").as_bytes()),
        None
    );
    assert_eq!(mould.fit(b""), None);
    assert_eq!(mould.fit(b"[DONE]"), None);
}

#[test]
fn members_are_found_behind_what_became_longer_or_shorter() {
    let cast = r#"{"choices":[{"delta":{"content":"abc"}},{"index":1,"delta":{"content":""}}],"model":"up","obfuscation":"xy","usage":null}"#;
    let fits = r#"{"choices":[{"delta":{"content":""}},{"index":1,"delta":{"content":"abcde"}}],"model":"up","obfuscation":"","usage":null}"#;
    let mut mould = mould_of(cast);
    assert_eq!(mould.fit(fits.as_bytes()), Some(7));
    let (model, usage) = (mould.fitted(mould.model.unwrap()), mould.fitted(mould.usage.unwrap()));
    assert_eq!(&fits[model.range()], r#""up""#);
    assert_eq!(&fits[usage.range()], "null");
}

#[test]
fn what_has_no_text_or_is_too_long_makes_no_mould() {
    let long = format!(r#"{{"content":"{}"}}"#, "x".repeat(5000));
    for delta in ["{}", r#"{"content":null}"#, r#"{"audio":{"data":"a"}}"#, &long] {
        assert!(
            mould_of(&chunk(delta)).data.is_empty(),
            "{}",
            &delta[..delta.len().min(40)]
        );
    }
}

/// All that a decoder says of these frames; with `forgets`, it reads each of them as if it were the first.
fn relay(
    frames: &[String],
    wants_usage: bool,
    renamed: bool,
    forgets: bool,
) -> (Vec<u8>, Vec<bool>, Option<End>, Usage) {
    let asked = if wants_usage {
        r#","stream_options":{"include_usage":true}"#
    } else {
        ""
    };
    let body = format!(r#"{{"model":"m","messages":[0],"stream":true{asked}}}"#);
    let mut decoder = Decoder::new(&Call::parse(Surface::Chat, body.into()).unwrap(), renamed);
    let (mut out, mut content, mut end) = (Vec::new(), Vec::new(), None);
    for frame in frames {
        if forgets {
            decoder.mould = Mould::default();
        }
        let progress = decoder.push(Bytes::copy_from_slice(frame.as_bytes()));
        progress.out.iter().for_each(|bytes| out.extend_from_slice(bytes));
        content.push(progress.content);
        end = end.or(progress.end);
    }
    (out, content, end, decoder.usage())
}

/// Frames of a stream, most of them alike, and some of them odd.
fn frames() -> impl Strategy<Value = Vec<String>> {
    let text = r#"([a-z ,é]|\\n|\\"|\\\\|\\u00e9|\\ud83d){0,12}"#;
    let delta = prop_oneof![
        8 => text.prop_map(|text| format!(r#"{{"content":"{text}"}}"#)),
        2 => text.prop_map(|text| format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{text}"}}}}]}}"#)),
        1 => (text, text).prop_map(|(a, b)| format!(r#"{{"reasoning":"{a}","content":"{b}"}}"#)),
        1 => text.prop_map(|text| format!(r#"{{"content":"{text}","content":"{text}"}}"#)),
        1 => Just("{}".to_owned()),
        1 => Just(r#"{"content":null}"#.to_owned()),
        1 => Just(r#"{"content":"\x"}"#.to_owned()),
    ];
    let tail = prop_oneof![
        6 => Just(String::new()),
        4 => Just(r#","usage":null"#.to_owned()),
        3 => "[a-z]{0,9}".prop_map(|noise| format!(r#","usage":null,"obfuscation":"{noise}""#)),
        1 => Just(r#","usage":{"total_tokens":3}"#.to_owned()),
        1 => Just(r#","usage":{"total_tokens":"x"}"#.to_owned()),
        1 => Just(r#","error":null"#.to_owned()),
    ];
    let head = prop_oneof![
        8 => Just(r#""id":"a","model":"up""#),
        1 => Just(r#""model":"other","object":"chat.completion.chunk""#),
        1 => Just(r#""object":"error""#),
    ];
    let index = prop_oneof![6 => Just("0"), 1 => Just("1"), 1 => Just("-1")];
    let reason = prop_oneof![6 => Just("null"), 1 => Just("\"stop\""), 1 => Just("7")];
    let frame = (head, delta, index, reason, tail).prop_map(|(head, delta, index, reason, tail)| {
        format!(
            "data: {{{head},\"choices\":[{{\"index\":{index},\"delta\":{delta},\"finish_reason\":{reason}}}]{tail}}}\n\n"
        )
    });
    prop::collection::vec(frame, 0..10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_mould_changes_nothing(frames in frames(), wants_usage: bool, renamed: bool) {
        let with = relay(&frames, wants_usage, renamed, false);
        let without = relay(&frames, wants_usage, renamed, true);
        prop_assert_eq!(with, without);
    }
}
