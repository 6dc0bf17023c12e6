//! Against `serde_json`, which reads the same documents in a quite different way: one verdict, and the same values in the
//! same places.

use super::{DEEPEST, Skim, Span, Written, Wrong};
use proptest::prelude::*;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fmt;

/// Over the document as a whole.
fn skim(document: &[u8]) -> Result<Span, Wrong> {
    let mut skim = Skim::new(document);
    let value = skim.value()?;
    skim.finish()?;
    Ok(value)
}

/// Into everything that can be entered.
fn walk(document: &[u8]) -> Result<(), Wrong> {
    fn go(skim: &mut Skim<'_>, document: &[u8]) -> Result<(), Wrong> {
        match document.get(skim.value_start()) {
            Some(b'{') => {
                skim.enter_object()?;
                while skim.name()?.is_some() {
                    go(skim, document)?;
                }
                Ok(())
            }
            Some(b'[') => {
                assert!(skim.enter(b'[')?);
                while skim.item()? {
                    go(skim, document)?;
                }
                Ok(())
            }
            _ => skim.skip(),
        }
    }
    let mut skim = Skim::new(document);
    go(&mut skim, document)?;
    skim.finish()
}

/// What serde has to say of it. It ignores a text without looking whether it is one.
fn is_json(document: &[u8]) -> bool {
    std::str::from_utf8(document).is_ok() && serde_json::from_slice::<IgnoredAny>(document).is_ok()
}

#[track_caller]
fn same_verdict(document: &[u8]) {
    let want = is_json(document);
    let shown = String::from_utf8_lossy(document);
    assert_eq!(skim(document).is_ok(), want, "skipped: {shown:?}");
    assert_eq!(walk(document).is_ok(), want, "walked: {shown:?}");
}

/// The members of an object as serde sees them.
struct Members<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Vec<(&'de RawValue, &'de RawValue)>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                std::iter::from_fn(|| members.next_entry().transpose()).collect()
            }
        }

        deserializer.deserialize_map(All).map(Members)
    }
}

/// The same values in the same places, all the way down.
#[track_caller]
fn same_values(document: &str) {
    let place = |raw: &RawValue| {
        let start = raw.get().as_ptr().addr() - document.as_ptr().addr();
        Span {
            start,
            end: start + raw.get().len(),
        }
    };
    let bytes = document.as_bytes();
    let mut skim = Skim::new(bytes);
    let mut inside = Vec::new();
    match bytes[skim.value_start()] {
        b'{' => {
            skim.enter_object().unwrap();
            for (key, value) in serde_json::from_str::<Members<'_>>(document).unwrap().0 {
                assert_eq!(skim.name(), Ok(Some(place(key))), "{document}");
                assert_eq!(skim.value(), Ok(place(value)), "{document}");
                inside.extend([key, value]);
            }
            assert_eq!(skim.name(), Ok(None), "{document}");
        }
        b'[' => {
            assert_eq!(skim.enter(b'['), Ok(true));
            for item in serde_json::from_str::<Vec<&RawValue>>(document).unwrap() {
                assert_eq!(skim.item(), Ok(true), "{document}");
                assert_eq!(skim.value(), Ok(place(item)), "{document}");
                inside.push(item);
            }
            assert_eq!(skim.item(), Ok(false), "{document}");
        }
        _ => {
            let written = skim.value().unwrap().of(bytes);
            let text = serde_json::from_str::<String>(document).ok();
            assert_eq!(written.text().as_deref(), text.as_deref(), "{document}");
            assert_eq!(written.says("a"), text.map(|text| text == "a"), "{document}");
            assert_eq!(written.count(), serde_json::from_str(document).ok(), "{document}");
            assert_eq!(written.is_null(), document.trim_ascii() == "null");
        }
    }
    assert_eq!(skim.finish(), Ok(()), "{document}");
    for value in inside {
        same_values(value.get());
    }
}

/// A document as people and programs write them: any white space, any escape.
fn documents() -> impl Strategy<Value = String> {
    let space = || prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\n\t"), 1 => Just(" \r\n  ")];
    let character = prop_oneof![
        20 => "[a-zA-Z ,.{}:\\[\\]]",
        3 => Just("n".to_owned()),
        2 => Just("\\n".to_owned()),
        2 => Just("\\\"".to_owned()),
        1 => Just("\\\\".to_owned()),
        1 => "\\\\[/bfrt]",
        1 => "\\\\u[0-9a-fA-F]{4}",
        1 => "[\u{7f}é€😀]",
    ];
    let text = prop_oneof![
        4 => prop::collection::vec(character.clone(), 0..12),
        1 => prop::collection::vec(character, 12..200),
    ];
    let text = text
        .prop_map(|characters| format!("\"{}\"", characters.concat()))
        .boxed();
    let number = "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?";
    let leaf = prop_oneof![
        3 => text.clone(),
        2 => number,
        1 => "(null|true|false)",
    ];
    let value = leaf.prop_recursive(5, 40, 6, move |value| {
        let spaced = (space(), value, space()).prop_map(|(before, value, after)| format!("{before}{value}{after}"));
        let member = (space(), text.clone(), space(), spaced.clone())
            .prop_map(|(before, key, after, value)| format!("{before}{key}{after}:{value}"));
        prop_oneof![
            (space(), prop::collection::vec(spaced, 0..6)).prop_map(|(space, items)| format!(
                "[{}]",
                if items.is_empty() {
                    space.into()
                } else {
                    items.join(",")
                }
            )),
            (space(), prop::collection::vec(member, 0..6)).prop_map(|(space, items)| format!(
                "{{{}}}",
                if items.is_empty() {
                    space.into()
                } else {
                    items.join(",")
                }
            )),
        ]
    });
    (space_owned(), value, space_owned()).prop_map(|(before, value, after)| format!("{before}{value}{after}"))
}

fn space_owned() -> impl Strategy<Value = String> {
    "[ \n\r\t]{0,2}"
}

/// Something done to a document that it may or may not survive.
#[derive(Clone, Debug)]
enum Harm {
    Truncate(prop::sample::Index),
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    Replace(prop::sample::Index, u8),
    /// What stands at one place, again at another.
    Repeat(prop::sample::Index, usize, prop::sample::Index),
}

fn harms() -> impl Strategy<Value = Harm> {
    let at = any::<prop::sample::Index>;
    let byte = || {
        prop_oneof![
            4 => prop::sample::select(b"{}[]\",:\\nu0e-+. \n\ttfx/".to_vec()),
            1 => any::<u8>(),
        ]
    };
    prop_oneof![
        at().prop_map(Harm::Truncate),
        at().prop_map(Harm::Remove),
        (at(), byte()).prop_map(|(at, byte)| Harm::Insert(at, byte)),
        (at(), byte()).prop_map(|(at, byte)| Harm::Replace(at, byte)),
        (at(), 1..20_usize, at()).prop_map(|(from, length, to)| Harm::Repeat(from, length, to)),
    ]
}

fn harmed(mut document: Vec<u8>, harms: Vec<Harm>) -> Vec<u8> {
    for harm in harms {
        if document.is_empty() {
            break;
        }
        let length = document.len();
        match harm {
            Harm::Truncate(at) => document.truncate(at.index(length)),
            Harm::Remove(at) => drop(document.remove(at.index(length))),
            Harm::Insert(at, byte) => document.insert(at.index(length), byte),
            Harm::Replace(at, byte) => document[at.index(length)] = byte,
            Harm::Repeat(from, count, to) => {
                let from = from.index(length);
                let again = document[from..length.min(from + count)].to_vec();
                let to = to.index(length);
                document.splice(to..to, again);
            }
        }
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_json_is_read_as_serde_reads_it(document in documents()) {
        prop_assert!(is_json(document.as_bytes()), "not even serde reads {document}");
        same_verdict(document.as_bytes());
        same_values(&document);
    }

    #[test]
    fn what_came_to_harm_gets_the_same_verdict(document in documents(), harms in prop::collection::vec(harms(), 1..4)) {
        same_verdict(&harmed(document.into_bytes(), harms));
    }

    #[test]
    fn bytes_of_no_kind_get_the_same_verdict(document in prop::collection::vec(prop::sample::select(b"{}[]\",:\\nu019e-+.  truefalsn\n\x01\xc3\xa9".to_vec()), 0..24)) {
        same_verdict(&document);
    }
}

#[test]
fn documents_that_are_json_and_documents_that_are_not() {
    for (document, is_right) in [
        // Values.
        ("null", true),
        (" true ", true),
        ("\r\n\tfalse", true),
        ("nul", false),
        ("nulll", false),
        ("True", false),
        ("", false),
        (" ", false),
        ("\u{c}1", false),
        ("\u{a0}1", false),
        ("\u{feff}1", false),
        ("1 2", false),
        ("/**/1", false),
        // Numbers.
        ("0", true),
        ("-0", true),
        ("-0.0e-0", true),
        ("1E+2", true),
        ("123456789012345678901234567890", true),
        ("1e999", true),
        ("-1e-999999999999999999999", true),
        ("01", false),
        ("-01", false),
        ("+1", false),
        ("-", false),
        ("--1", false),
        (".5", false),
        ("1.", false),
        ("1.e1", false),
        ("1e", false),
        ("1e+", false),
        ("0x1", false),
        ("1_000", false),
        ("NaN", false),
        ("Infinity", false),
        // Texts.
        (r#""""#, true),
        (r#""\"\\\/\b\f\n\r\t\u0000\uABCD\uabcd""#, true),
        (r#""\ud83d\ude00""#, true),
        (r#""\ud83d""#, true),
        (r#""\ude00\ud83d""#, true),
        ("\"\u{7f}\u{80}é€😀\"", true),
        (r#"""#, false),
        (r#""\"#, false),
        (r#""\""#, false),
        (r#""\\""#, true),
        (r#""\\\""#, false),
        (r#""\a""#, false),
        (r#""\N""#, false),
        (r#""\U0041""#, false),
        (r#""\u""#, false),
        (r#""\u123""#, false),
        (r#""\u123g""#, false),
        (r#""\u+123""#, false),
        (r#""\u12 3""#, false),
        (r#""\x41""#, false),
        ("'a'", false),
        // Lists.
        ("[]", true),
        ("[ ]", true),
        ("[1 , 2]", true),
        ("[[],[[]],{}]", true),
        ("[", false),
        ("]", false),
        ("[,]", false),
        ("[1,]", false),
        ("[,1]", false),
        ("[1 2]", false),
        ("[1,,2]", false),
        ("[1}", false),
        ("[1]]", false),
        // Objects.
        ("{}", true),
        ("{ }", true),
        (r#"{"a":1}"#, true),
        (r#"{ "a" : 1 , "a" : {} }"#, true),
        (r#"{"":""}"#, true),
        (r#"{"\ud83d":1}"#, true),
        ("{", false),
        ("}", false),
        ("{,}", false),
        (r#"{"a"}"#, false),
        (r#"{"a":}"#, false),
        (r#"{"a" 1}"#, false),
        (r#"{"a":1,}"#, false),
        (r#"{,"a":1}"#, false),
        (r#"{"a":1 "b":2}"#, false),
        (r#"{"a":1;"b":2}"#, false),
        (r#"{"a"::1}"#, false),
        ("{a:1}", false),
        ("{1:1}", false),
        (r#"{"a":1]"#, false),
        (r#"{"a":1}}"#, false),
        (r#"{"a":1}{}"#, false),
    ] {
        assert_eq!(skim(document.as_bytes()).is_ok(), is_right, "{document:?}");
        same_verdict(document.as_bytes());
        // And where it has company.
        same_verdict(format!("[{document}]").as_bytes());
        same_verdict(format!(r#"{{"a":{document},"b":2}}"#).as_bytes());
        same_verdict(format!("{document},").as_bytes());
    }
}

/// Things that may stand in a text, and things that may not.
const THINGS: [&[u8]; 16] = [
    b"\"",
    b"\\",
    b"\\n",
    b"\\\"",
    b"\\\\",
    b"\\/",
    b"\\t",
    b"\\u00e9",
    b"\\u00g9",
    b"\\x",
    b"\x1f",
    b"\x7f",
    b"\xc3\xa9",
    b"\xc3",
    b"\n",
    b"{[,:n",
];

#[test]
fn it_does_not_matter_where_in_a_text_something_stands() {
    // Long enough for words, blocks, and what is left over behind them.
    for length in [0, 1, 8, 9, 33, 40, 72, 110] {
        for at in 0..=length {
            for thing in THINGS {
                let (before, after) = ("x".repeat(at), "y".repeat(length - at));
                let document = [b"[\"", before.as_bytes(), thing, after.as_bytes(), b"\",1]"].concat();
                same_verdict(&document);
                // With little behind it, where no whole word is left to look at.
                same_verdict(&document[1..document.len() - 3]);
            }
        }
    }
}

#[test]
fn it_does_not_matter_what_stands_beside_it() {
    for at in 24..=72 {
        for first in THINGS {
            for second in THINGS {
                let before = "x".repeat(at);
                let document = [
                    b"\"",
                    before.as_bytes(),
                    first,
                    second,
                    "y".repeat(80).as_bytes(),
                    b"\"",
                ]
                .concat();
                same_verdict(&document);
            }
        }
    }
}

#[test]
fn no_control_character_may_stand_in_a_text() {
    for byte in 0..=0x1f_u8 {
        for length in [0, 3, 8, 20, 50, 100] {
            let text = "x".repeat(length);
            for document in [
                [b"\"", text.as_bytes(), &[byte], text.as_bytes(), b"\""].concat(),
                [b"{\"", text.as_bytes(), &[byte], text.as_bytes(), b"\":1}"].concat(),
                [b"\"", text.as_bytes(), b"\\", &[byte], text.as_bytes(), b"\""].concat(),
            ] {
                assert!(skim(&document).is_err(), "{document:?}");
                same_verdict(&document);
            }
        }
        // Nor outside of one, but for the four that are white space.
        for document in [[b"[", &[byte][..], b"1]"].concat(), [b"1", &[byte][..]].concat()] {
            assert_eq!(skim(&document).is_ok(), b"\t\n\r".contains(&byte), "{document:?}");
            same_verdict(&document);
        }
    }
}

#[test]
fn nothing_is_right_that_is_not_whole() {
    let document = r#"{"model" : "m\u00e9\n", "messages":[{"role":"user","content":"é 😀 and more than a block of plain text, so that there is one"}, -1.5e-7, [true,false,null]],"n":{}}"#;
    same_values(document);
    for end in 0..document.len() {
        let cut = &document.as_bytes()[..end];
        assert!(skim(cut).is_err(), "{}", String::from_utf8_lossy(cut));
        same_verdict(cut);
    }
}

#[test]
fn what_is_not_utf8_is_wrong_wherever_it_is() {
    for bad in [
        &b"\xff"[..],
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xf8\x88\x80\x80\x80",
    ] {
        for length in [0, 8, 40, 90] {
            let text = "x".repeat(length);
            for document in [
                [b"\"", text.as_bytes(), bad, b"\""].concat(),
                [b"{\"", text.as_bytes(), bad, b"\":0}"].concat(),
                [b"{\"a\":[\"", text.as_bytes(), bad, text.as_bytes(), b"\"]}"].concat(),
                [b"[", bad, b"]"].concat(),
            ] {
                assert!(skim(&document).is_err(), "{document:?}");
                same_verdict(&document);
            }
        }
    }
}

#[test]
fn lists_and_objects_may_be_so_deep_and_no_deeper() {
    let deepest = DEEPEST as usize;
    let nested = |depth: usize, open: &str, inside: &str, close: &str| {
        [open.repeat(depth), inside.to_owned(), close.repeat(depth)].concat()
    };
    for (open, inside, close) in [
        ("[", "", "]"),
        ("[", "1", "]"),
        ("{\"a\":", "{}", "}"),
        ("[ {\"a\" : ", "[]", "} ] "),
    ] {
        let levels = open.matches(['[', '{']).count();
        let inner = inside.matches(['[', '{']).count();
        let depth = (deepest - inner) / levels;
        let fits = nested(depth, open, inside, close);
        assert_eq!(skim(fits.as_bytes()).map(|_| ()), Ok(()), "{open}");
        assert_eq!(walk(fits.as_bytes()), Ok(()), "{open}");
        for more in [1, 2, 5000] {
            let too_deep = nested(depth + more, open, inside, close);
            assert!(is_json(too_deep.as_bytes()));
            assert_eq!(skim(too_deep.as_bytes()), Err(Wrong::TooDeep), "{open}");
            assert_eq!(walk(too_deep.as_bytes()), Err(Wrong::TooDeep), "{open}");
        }
    }
    // Siblings are not inside one another, and what is inside counts with what is around it.
    let wide = format!("[{}1]", "[{}],".repeat(10_000));
    assert!(skim(wide.as_bytes()).is_ok());
    for (depth, want) in [(deepest - 1, Ok(())), (deepest, Err(Wrong::TooDeep))] {
        let document = format!("{{\"a\":{}}}", nested(depth, "[", "", "]"));
        let mut skim = Skim::new(document.as_bytes());
        skim.enter_object().unwrap();
        assert_eq!(skim.key(), Ok(Some(&b"a"[..])));
        assert_eq!(skim.skip(), want);
    }
    // What has no end is no reason to run out of stack.
    let brackets = "[".repeat(1 << 20);
    assert_eq!(skim(brackets.as_bytes()), Err(Wrong::TooDeep));
    assert!(
        Skim::new(brackets.as_bytes())
            .explain(Wrong::TooDeep)
            .starts_with("more than 128 lists and objects")
    );
}

/// The values of `model` and `n`, and nothing else.
fn read(document: &[u8]) -> Result<[Option<String>; 2], String> {
    fn go(skim: &mut Skim<'_>, found: &mut [Option<Span>; 2]) -> Result<(), Wrong> {
        skim.enter_object()?;
        while let Some(key) = skim.key()? {
            match key {
                b"model" => skim.fill(&mut found[0], "model")?,
                b"n" => skim.fill(&mut found[1], "n")?,
                _ => skim.skip()?,
            }
        }
        skim.finish()
    }
    let mut found = [None; 2];
    let mut skim = Skim::new(document);
    go(&mut skim, &mut found).map_err(|wrong| skim.explain(wrong))?;
    Ok(found.map(|span| Some(span?.of(document).as_str().to_owned())))
}

#[test]
fn members_are_found_by_what_their_keys_say() {
    for (document, model, n) in [
        (r#"{"model":"m","n":1}"#, Some(r#""m""#), Some("1")),
        (
            r#" { "n" : null , "x" : {"model":1} , "model" : [ 1 ] } "#,
            Some("[ 1 ]"),
            Some("null"),
        ),
        (r#"{"mod\u0065l":"m","\u006e":1}"#, Some(r#""m""#), Some("1")),
        (r#"{"\u006D\u006f\u0064\u0065\u006C":"m"}"#, Some(r#""m""#), None),
        (r#"{"mod\\u0065l":"m","\n":1,"n\u0000":1,"N":1,"model ":1}"#, None, None),
        (r#"{"x":1,"x":2,"":3}"#, None, None),
        ("{}", None, None),
    ] {
        let want = [model, n].map(|value| value.map(str::to_owned));
        assert_eq!(read(document.as_bytes()), Ok(want), "{document}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (document, want) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[1]", "this is a list"),
        (" 7", "expected an object at line 1 column 2"),
        ("<html>", "expected value at line 1 column 1"),
        ("{\"a\":1} x", "trailing characters at line 1 column 9"),
        ("{\"a\":1,\n \"b\":}", "expected value at line 2 column 6"),
        ("{\"a\":\n\n  tru}", "expected ident at line 3 column 6"),
        ("{\"a\" 1}", "expected `:` at line 1 column 6"),
        ("{\"a\":\"\\x\"}", "invalid escape at line 1 column 8"),
        ("{\"a\":01}", "invalid number at line 1 column 7"),
        (
            "{\"model\":1,\n\"n\":2, \"model\":3}",
            "duplicate field `model` at line 2 column 16",
        ),
        ("{\"n\":1,\"\\u006e\":2}", "duplicate field `n` at line 1 column 17"),
        ("{\"\\ud83d\":1}", "half of a character in a key at line 1 column 11"),
    ] {
        assert_eq!(read(document.as_bytes()), Err(want.to_owned()), "{document}");
    }
    let control = "{\"a\":\"\n\"}";
    let said = read(control.as_bytes()).unwrap_err();
    assert!(
        said.starts_with("control character") && said.ends_with("at line 1 column 6"),
        "{said}"
    );
    assert_eq!(
        read(b"{\"a\":\n\"b\xff\"}"),
        Err("invalid UTF-8 at line 2 column 3".to_owned())
    );
    let deep = format!("{{\"a\":\n{}", "[".repeat(200));
    assert_eq!(
        read(deep.as_bytes()),
        Err("more than 128 lists and objects inside one another at line 2 column 1".to_owned())
    );
}

#[test]
fn what_is_entered_must_be_there() {
    for (document, bracket, want) in [
        ("[]", b'[', Ok(true)),
        (" {}", b'{', Ok(true)),
        ("null", b'[', Ok(false)),
        ("null", b'{', Ok(false)),
        ("{}", b'[', Err(Wrong::NoList)),
        ("[]", b'{', Err(Wrong::NoObject)),
        ("nil", b'{', Err(Wrong::Json)),
        ("\"a\"", b'{', Err(Wrong::NoObject)),
        ("", b'[', Err(Wrong::NoList)),
    ] {
        assert_eq!(Skim::new(document.as_bytes()).enter(bracket), want, "{document}");
        let mut skim = Skim::new(document.as_bytes());
        assert_eq!(
            skim.enter_if(bracket).is_ok_and(|entered| entered),
            want == Ok(true),
            "{document}"
        );
    }
}

#[test]
fn keys_that_are_no_text_are_an_error_only_to_those_who_read_them() {
    let document = br#"{"\ud83d":1,"a":2}"#;
    let mut skim = Skim::new(document);
    skim.enter_object().unwrap();
    assert_eq!(skim.any_key(), Ok(Some(None)));
    assert_eq!(skim.skip(), Ok(()));
    assert_eq!(skim.any_key(), Ok(Some(Some(&b"a"[..]))));
    let mut skim = Skim::new(document);
    skim.enter_object().unwrap();
    assert_eq!(skim.key(), Err(Wrong::NoKey));
}

#[test]
fn texts_and_counts() {
    for (written, text, count) in [
        (r#""a""#, Some("a"), None),
        (r#""é\u00e9\ud83d\ude00\n""#, Some("éé😀\n"), None),
        (r#""\ud83d""#, None, None),
        (r#""7""#, Some("7"), None),
        ("7", None, Some(7)),
        ("0", None, Some(0)),
        ("18446744073709551615", None, Some(u64::MAX)),
        ("18446744073709551616", None, None),
        ("99999999999999999999999", None, None),
        ("-0", None, None),
        ("-7", None, None),
        ("7.0", None, None),
        ("7e0", None, None),
        ("null", None, None),
        ("[7]", None, None),
        ("", None, None),
    ] {
        let value = Written(written.as_bytes());
        assert_eq!(value.text().as_deref(), text, "{written}");
        assert_eq!(value.count(), count, "{written}");
    }
}

#[test]
fn empty_values_say_nothing() {
    for (text, empty) in [
        ("null", true),
        ("\"\"", true),
        ("[]", true),
        ("{ }", true),
        ("[\n]", true),
        ("\" \"", false),
        ("[1]", false),
        ("[[]]", false),
        ("{\"a\":1}", false),
        ("0", false),
    ] {
        assert_eq!(Written(text.as_bytes()).is_empty(), empty, "{text}");
    }
}
