//! What a call's messages say, read leniently: nothing that is written oddly may hide what stands beside it.
//!
//! Every message is looked at on its own, and every part of one. What cannot be made sense of is handed out as it is written,
//! so that a rule about content still sees it.

use crate::json::{each, inside, unescaped};
use std::borrow::Cow;

/// Kinds of parts, and fields of parts, that hold data and no text.
const DATA: [&str; 17] = [
    "image_url",
    "input_image",
    "image_file",
    "image",
    "input_audio",
    "audio_url",
    "audio",
    "video_url",
    "video",
    "file",
    "file_url",
    "input_file",
    // Anthropic's and Gemini's.
    "document",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
];

/// Whose messages to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The user's, and those of which nobody can tell whose they are.
    User,
    Everyones,
}

/// A piece of a message, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A text, still with its escapes, without its quotes.
    Text(&'a str),
    /// JSON that stands where a text should, or is of no known kind.
    Odd(&'a str),
}

impl<'a> Piece<'a> {
    fn of(value: &'a str) -> Self {
        inside(value).map_or(Self::Odd(value), Self::Text)
    }

    /// For reading. Escapes are undone in what is odd too: they must not hide a word.
    pub(crate) fn read(self) -> Cow<'a, str> {
        match self {
            Self::Text(written) | Self::Odd(written) => unescaped(written),
        }
    }
}

/// Hands out the pieces of `messages`, a JSON list, in order.
pub(crate) fn pieces<'a>(messages: &'a str, whose: Whose, with: &mut dyn FnMut(Piece<'a>)) {
    let is_list = messages.starts_with('[') && each(messages, |_, message| read_message(message, whose, with));
    if !is_list {
        with(Piece::Odd(messages));
    }
}

/// Hands out the pieces of one content: a text, a part, or a list of parts.
pub(crate) fn part<'a>(content: &'a str, with: &mut dyn FnMut(Piece<'a>)) {
    read_content(content, with);
}

fn read_message<'a>(message: &'a str, whose: Whose, with: &mut dyn FnMut(Piece<'a>)) {
    if !message.starts_with('{') {
        return with(Piece::of(message));
    }
    let (mut has_role, mut is_users, mut has_others) = (false, false, false);
    // A key that comes twice is read by some as the first one and by others as the last: so both are.
    let mut contents = Vec::new();
    each(message, |key, value| match key.map(read_key).as_deref() {
        Some("role") => {
            has_role = true;
            is_users |= may_be_user(value);
        }
        // The second is Gemini's.
        Some("content" | "parts") => contents.push(value),
        _ => has_others = true,
    });
    if whose == Whose::User && has_role && !is_users {
        return;
    }
    if contents.is_empty() && has_others {
        with(Piece::Odd(message));
    }
    for content in contents {
        read_content(content, with);
    }
}

fn read_content<'a>(content: &'a str, with: &mut dyn FnMut(Piece<'a>)) {
    if content.starts_with('[') {
        each(content, |_, part| read_part(part, with));
    } else {
        read_part(content, with);
    }
}

fn read_part<'a>(part: &'a str, with: &mut dyn FnMut(Piece<'a>)) {
    if !part.starts_with('{') {
        if part != "null" {
            with(Piece::of(part));
        }
        return;
    }
    let (mut found, mut has_data, mut is_data) = (false, false, None);
    each(part, |key, value| match key.map(read_key).as_deref() {
        Some("text") if value != "null" => {
            found = true;
            with(Piece::of(value));
        }
        Some("type") => {
            let known = DATA.contains(&&*Piece::of(value).read());
            is_data = Some(known && is_data.unwrap_or(true));
        }
        Some(key) => has_data |= DATA.contains(&key),
        None => {}
    });
    if !found && !is_data.unwrap_or(has_data) {
        with(Piece::Odd(part));
    }
}

fn read_key(key: &str) -> Cow<'_, str> {
    Piece::of(key).read()
}

/// A role that is no text may be anybody's.
fn may_be_user(role: &str) -> bool {
    serde_json::from_str::<String>(role).map_or(true, |role| role.trim().eq_ignore_ascii_case("user"))
}

#[cfg(test)]
mod tests {
    use crate::{Call, Surface};
    use bytes::Bytes;

    fn call(surface: Surface, input: &str) -> Call {
        let field = if surface == Surface::Chat { "messages" } else { "input" };
        Call::parse(surface, Bytes::from(format!(r#"{{"model":"m","{field}": {input}}}"#))).unwrap()
    }

    #[test]
    fn nothing_odd_hides_what_a_user_says() {
        for (messages, want) in [
            // Plain ones.
            (r#"[{"role":"user","content":"hi"}]"#, "hi"),
            (
                r#"[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]"#,
                "a\nc",
            ),
            (
                r#"[ {"content" : "a\n\"b\" \u00e9 \ud83d\ude00" , "role" : "user"} ]"#,
                "a\n\"b\" é 😀",
            ),
            (
                r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_text","text":"b"},{"text":"c"}]}]"#,
                "a\nb\nc",
            ),
            // No text of a user.
            (r#"[{"role":"system","content":"s"}]"#, ""),
            (
                r#"[{"role":"user"},{"role":"user","content":null},{"role":"user","content":[null]}]"#,
                "",
            ),
            (r#"[{"role":"assistant","content":5,"tool_calls":[{"id":"x"}]}]"#, ""),
            // Data.
            (
                r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}},{"input_audio":{"data":"x"}},{"type":"file","file":{}},{"type":"text","text":"a"}]}]"#,
                "a",
            ),
            (r#"[{"role":"user","content":[{"type":"image_url","text":"a"}]}]"#, "a"),
            // One message that is odd, beside one that is not.
            (
                r#"[{"role":"user","content":"secret"},{"role":null,"content":"x"}]"#,
                "secret\nx",
            ),
            (r#"[{"role":null,"content":"secret"}]"#, "secret"),
            (r#"[{"role":"us\ud83der","content":"secret"}]"#, "secret"),
            (r#"[{"role":7,"content":"secret"}]"#, "secret"),
            (r#"[{"content":"secret"}]"#, "secret"),
            (r#"[{"role":"User ","content":"secret"}]"#, "secret"),
            (r#"[{"r\u006fle":"user","cont\u0065nt":"s\u0065cret"}]"#, "secret"),
            (
                r#"[{"role":"user","content":"secret"},{"role":"assistant","content":"hi \ud83d"}]"#,
                "secret",
            ),
            (
                r#"[{"role":"user","content":"secret"},0,"b",null,["c"]]"#,
                "secret\n0\nb\nnull\n[\"c\"]",
            ),
            (r#"[{"role":"user","content":"secret","\ud83d":1}]"#, "secret"),
            (r#"[{"role":"user","content":"secret","content":"b"}]"#, "secret\nb"),
            (r#"[{"role":"user","role":"system","content":"secret"}]"#, "secret"),
            (
                r#"[{"role":"user","pieces":["s\u0065cret"]}]"#,
                r#"{"role":"user","pieces":["secret"]}"#,
            ),
            // Gemini's.
            (
                r#"[{"role":"user","parts":[{"text":"s\u0065cret"},{"inlineData":{"data":"x"}}]},{"role":"model","parts":[{"text":"b"}]}]"#,
                "secret",
            ),
            // Texts that are odd.
            (
                r#"[{"role":"user","content":"hi \ud83d secret"}]"#,
                "hi \u{fffd} secret",
            ),
            (
                r#"[{"role":"user","content":"\ude00\ud83d\u0041\ud83d\ud83d\ude00\\u0041"}]"#,
                "\u{fffd}\u{fffd}A\u{fffd}😀\\u0041",
            ),
            (r#"[{"role":"user","content":["this is secret"]}]"#, "this is secret"),
            (r#"[{"role":"user","content":5}]"#, "5"),
            (
                r#"[{"role":"user","content":{"type":"text","text":"secret"}}]"#,
                "secret",
            ),
            (r#"[{"role":"user","content":{"a":"secret"}}]"#, r#"{"a":"secret"}"#),
            // Parts that are odd.
            (
                r#"[{"role":"user","content":[{"type":"text","text":5},{"type":"text","text":"secret"}]}]"#,
                "5\nsecret",
            ),
            (
                r#"[{"role":"user","content":[{"text":5,"text":"secret"},7]}]"#,
                "5\nsecret\n7",
            ),
            (
                r#"[{"role":"user","content":[{"type":"text","text":{"value":"s\u0065cret"}}]}]"#,
                r#"{"value":"secret"}"#,
            ),
            (r#"[{"role":"user","content":[["secret"]]}]"#, r#"["secret"]"#),
            (
                r#"[{"role":"user","content":[{"type":"new","new":"secret"}]}]"#,
                r#"{"type":"new","new":"secret"}"#,
            ),
            (
                r#"[{"role":"user","content":[{"type":"file","type":"text","x":"secret"}]}]"#,
                r#"{"type":"file","type":"text","x":"secret"}"#,
            ),
        ] {
            assert_eq!(
                call(Surface::Chat, messages).user_text().as_deref(),
                Some(want),
                "{messages}"
            );
        }
        assert_eq!(call(Surface::Embeddings, r#""secret""#).user_text(), None);
    }

    #[test]
    fn messages_that_are_no_list_are_read_as_they_stand() {
        for (messages, want) in [
            (r#"{"role":"user"}"#, r#"{"role":"user"}"#),
            (r#"["a",{"b"]"#, "a\n[\"a\",{\"b\"]"),
            (r#""s\u0065cret""#, "\"secret\""),
        ] {
            let mut said = Vec::new();
            super::pieces(messages, super::Whose::User, &mut |piece| said.push(piece.read()));
            assert_eq!(said.join("\n"), want, "{messages}");
        }
    }

    #[test]
    fn tokens_are_counted_of_every_text_and_of_no_data() {
        let data = "A".repeat(4000);
        for (surface, input, want) in [
            (Surface::Chat, r#"[{"role":"user","content":"12345678"}]"#.to_owned(), 3),
            (
                Surface::Chat,
                r#"[{"role":"system","content":"1234"},{"role":"assistant","content":["1234"]},{"role":"tool","content":"1234"},{"content":"1234"}]"#.to_owned(),
                5,
            ),
            (
                Surface::Chat,
                r#"[{"role":"user","content":"1234"},{"role":null,"content":"12\ud83d4"},0,{"role":"user","content":[{"text":5},{"text":"1234"}]}]"#.to_owned(),
                4,
            ),
            (
                Surface::Chat,
                format!(
                    r#"[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:{data}"}}}},{{"type":"input_audio","input_audio":{{"data":"{data}"}}}},{{"type":"file","file":{{"file_data":"{data}"}}}},{{"type":"vendors_own","data":"{data}"}},{{"type":"text","text":"1234"}}]}}]"#
                ),
                2,
            ),
            (
                Surface::Chat,
                format!(r#"[{{"role":"assistant","content":null,"tool_calls":["{data}"]}}]"#),
                1,
            ),
            (Surface::Embeddings, r#"["1234","1234"]"#.to_owned(), 3),
            (Surface::Embeddings, "[[1,2],[3]]".to_owned(), 3),
        ] {
            assert_eq!(call(surface, &input).estimate_tokens(), want, "{input}");
        }
    }

    #[test]
    fn what_only_routing_looks_at_is_read_or_left() {
        for (fields, user, max_output) in [
            (r#""user":"ann","max_tokens":4000"#, Some("ann"), Some(4000)),
            (r#""user":"","max_tokens":4000.0"#, None, Some(4000)),
            (r#""user":7,"max_tokens":1e9"#, None, Some(1_000_000_000)),
            (r#""user":null,"max_tokens":12.9"#, None, Some(12)),
            (r#""max_tokens":0"#, None, Some(0)),
            (r#""max_tokens":-1"#, None, None),
            (r#""max_tokens":-0.5"#, None, None),
            (r#""max_tokens":1e300"#, None, None),
            (r#""max_tokens":1e999"#, None, None),
            (r#""max_tokens":18446744073709551615"#, None, None),
            (r#""max_tokens":"4000""#, None, None),
            (r#""max_tokens":null"#, None, None),
            (r#""max_completion_tokens":5.0,"max_tokens":9"#, None, Some(5)),
            (r#""max_completion_tokens":-5,"max_tokens":9"#, None, Some(9)),
        ] {
            let body = format!(r#"{{"model":"m","messages":[0],{fields}}}"#);
            let call = Call::parse(Surface::Chat, Bytes::from(body)).unwrap();
            assert_eq!((call.user.as_deref(), call.max_output), (user, max_output), "{fields}");
        }
    }
}
