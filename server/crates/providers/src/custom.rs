//! Custom tools on wires that know functions alone.
//!
//! A custom tool takes any text. A wire that only has functions is offered one that takes an object with this text as its
//! `input`; and what comes back as a call of that function is the caller's custom tool again, from here on.

use crate::Call as Asked;
use crate::ir::{Answer, Call, Custom, Delta, Event, Part, ToolKind};
use serde_json::{Map, Value, json};

/// The one argument of a function that stands for a tool which takes any text.
const INPUT: &str = "input";

/// The schema of such a function.
pub(crate) fn schema(custom: &Custom) -> Value {
    let mut input = Map::new();
    input.insert("type".to_owned(), json!("string"));
    if let Some(grammar) = grammar(custom) {
        let text = |name| grammar.get(name).and_then(Value::as_str).unwrap_or_default();
        let says = format!("Must follow this {} grammar:\n{}", text("syntax"), text("definition"));
        input.insert("description".to_owned(), json!(says));
    }
    json!({"type": "object", "properties": {INPUT: input}, "required": [INPUT]})
}

/// What became of such a tool, for the caller.
pub(crate) fn why(custom: &Custom) -> &'static str {
    if grammar(custom).is_some() {
        "sent as a function of one text, `input`: the grammar is told to the model, and not kept to"
    } else {
        "sent as a function of one text, `input`"
    }
}

fn grammar(custom: &Custom) -> Option<&Value> {
    let format = custom.format.as_ref()?;
    // The older surface has the grammar one level deeper.
    let is_one = format.get("type").is_some_and(|kind| kind == "grammar");
    is_one.then(|| format.get("grammar").unwrap_or(format))
}

/// A text as that function's arguments.
pub(crate) fn wrap(text: &str) -> Value {
    json!({ INPUT: text })
}

/// A call's arguments where they have to be an object. `false` if they were to be one and are none: then their text is in it.
pub(crate) fn object(call: &Call) -> (Value, bool) {
    arguments(&call.arguments, call.is_custom)
}

/// As [`object`].
pub(crate) fn arguments(written: &str, is_custom: bool) -> (Value, bool) {
    if is_custom {
        return (wrap(written), true);
    }
    if written.trim().is_empty() {
        return (json!({}), true);
    }
    match serde_json::from_str(written) {
        Ok(object @ Value::Object(_)) => (object, true),
        Ok(Value::Null) => (json!({}), true),
        _ => (wrap(written), false),
    }
}

/// The text inside. A model that did not keep to the schema is taken at its word.
fn unwrap(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(mut object)) if object.len() == 1 => match object.get_mut(INPUT).map(Value::take) {
            Some(Value::String(text)) => text,
            _ => arguments.to_owned(),
        },
        Ok(Value::String(text)) => text,
        _ => arguments.to_owned(),
    }
}

/// Names of the call's custom tools.
fn names(call: &Asked) -> Vec<String> {
    let Ok(prompt) = call.prompt() else { return Vec::new() };
    let custom = prompt
        .tools
        .iter()
        .filter(|tool| matches!(tool.kind, ToolKind::Custom(_)));
    custom.map(|tool| tool.name.clone()).collect()
}

/// Makes custom calls of those in an answer that are.
pub(crate) fn restore(answer: &mut Answer, asked: &Asked) {
    let names = names(asked);
    if names.is_empty() {
        return;
    }
    for part in answer.choices.iter_mut().flat_map(|choice| &mut choice.parts) {
        if let Part::Call(call) = part
            && !call.is_custom
            && names.contains(&call.name)
        {
            call.arguments = unwrap(&call.arguments);
            call.is_custom = true;
        }
    }
}

/// The same for a stream: such a call's arguments are kept until they are whole.
pub(crate) struct Restorer {
    names: Vec<String>,
    open: Vec<Held>,
}

struct Held {
    choice: u32,
    part: u32,
    arguments: String,
}

impl Held {
    fn release(self, out: &mut Vec<Event>) {
        out.push(Event::Delta {
            choice: self.choice,
            part: self.part,
            delta: Delta::Arguments(unwrap(&self.arguments)),
        });
    }
}

impl Restorer {
    pub(crate) fn new(asked: &Asked) -> Self {
        Self {
            names: names(asked),
            open: Vec::new(),
        }
    }

    /// Whether there is anything to restore at all.
    pub(crate) const fn is_idle(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes one event, and gives what goes on in its place.
    pub(crate) fn take(&mut self, event: Event, out: &mut Vec<Event>) {
        match event {
            Event::Delta {
                choice,
                part,
                delta:
                    Delta::Call {
                        id,
                        name,
                        is_custom: false,
                    },
            } if self.names.contains(&name) => {
                self.open.push(Held {
                    choice,
                    part,
                    arguments: String::new(),
                });
                let delta = Delta::Call {
                    id,
                    name,
                    is_custom: true,
                };
                out.push(Event::Delta { choice, part, delta });
            }
            Event::Delta {
                choice,
                part,
                delta: Delta::Arguments(text),
            } => match self
                .open
                .iter_mut()
                .find(|held| held.choice == choice && held.part == part)
            {
                Some(held) => held.arguments.push_str(&text),
                None => out.push(Event::Delta {
                    choice,
                    part,
                    delta: Delta::Arguments(text),
                }),
            },
            Event::End { choice, part } => {
                self.release(out, |held| held.choice == choice && held.part == part);
                out.push(Event::End { choice, part });
            }
            Event::Finish { choice, finish } => {
                self.release(out, |held| held.choice == choice);
                out.push(Event::Finish { choice, finish });
            }
            event => out.push(event),
        }
    }

    /// What is still held when the stream has ended.
    pub(crate) fn finish(&mut self, out: &mut Vec<Event>) {
        self.release(out, |_| true);
    }

    fn release(&mut self, out: &mut Vec<Event>, which: impl Fn(&Held) -> bool) {
        let (released, kept) = std::mem::take(&mut self.open).into_iter().partition(which);
        self.open = kept;
        for held in released {
            held.release(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Restorer, arguments, restore, schema, unwrap, wrap};
    use crate::ir::{Answer, Call, Choice, Custom, Delta, Event, Finish, Part};
    use crate::{Call as Asked, Surface};
    use bytes::Bytes;
    use serde_json::json;

    #[test]
    fn any_text_travels_as_an_argument_and_comes_back() {
        for text in ["", "*** Begin\n\"x\"", "{\"input\":1}"] {
            assert_eq!(unwrap(&wrap(text).to_string()), text);
        }
        for odd in ["", "{\"input\":", "{\"input\":1}", "{\"a\":\"b\"}", "[1]"] {
            assert_eq!(unwrap(odd), odd);
        }
        let grammar = json!({"type": "grammar", "syntax": "lark", "definition": "start: A"});
        for format in [grammar.clone(), json!({"type": "grammar", "grammar": grammar})] {
            let schema = schema(&Custom { format: Some(format) });
            let says = schema.pointer("/properties/input/description").unwrap();
            assert_eq!(says, "Must follow this lark grammar:\nstart: A");
        }
    }

    #[test]
    fn arguments_are_an_object_whatever_they_were() {
        for (written, is_custom, object, is_one) in [
            (r#"{"b":1,"a":2}"#, false, json!({"b": 1, "a": 2}), true),
            (" ", false, json!({}), true),
            ("null", false, json!({}), true),
            ("[1]", false, json!({"input": "[1]"}), false),
            ("{\"a\":", false, json!({"input": "{\"a\":"}), false),
            ("{}", true, json!({"input": "{}"}), true),
        ] {
            assert_eq!(arguments(written, is_custom), (object, is_one), "{written}");
        }
    }

    fn asked() -> Asked {
        let body = r#"{"model":"m","input":"x","tools":[{"type":"custom","name":"patch"},{"type":"function","name":"f","parameters":{"type":"object"}}]}"#;
        Asked::parse(Surface::Responses, Bytes::from(body)).unwrap()
    }

    fn call(name: &str, arguments: &str, is_custom: bool) -> Part {
        Part::Call(Call {
            id: "c".into(),
            name: name.into(),
            arguments: arguments.into(),
            is_custom,
            ..Call::default()
        })
    }

    #[test]
    fn a_custom_tool_that_was_called_as_a_function_is_one_again() {
        let mut answer = Answer {
            choices: vec![Choice {
                parts: vec![
                    call("patch", r#"{"input":"*** a \"b\"\n"}"#, false),
                    call("patch", "no object", false),
                    call("f", r#"{"input":"x"}"#, false),
                ],
                ..Choice::default()
            }],
            ..Answer::default()
        };
        restore(&mut answer, &asked());
        let want = [
            call("patch", "*** a \"b\"\n", true),
            call("patch", "no object", true),
            call("f", r#"{"input":"x"}"#, false),
        ];
        assert_eq!(answer.choices[0].parts, want);
    }

    #[test]
    fn in_a_stream_its_text_comes_when_it_is_whole() {
        let delta = |part, delta| Event::Delta { choice: 0, part, delta };
        let begin = |name: &str, is_custom| Delta::Call {
            id: "c".into(),
            name: name.into(),
            is_custom,
        };
        let piece = |text: &str| Delta::Arguments(text.into());
        let finish = Event::Finish {
            choice: 0,
            finish: Finish::ToolCalls,
        };
        let mut restorer = Restorer::new(&asked());
        let mut out = Vec::new();
        for event in [
            delta(0, begin("patch", false)),
            delta(1, begin("f", false)),
            delta(0, piece(r#"{"inp"#)),
            delta(1, piece("{}")),
            delta(0, piece(r#"ut":"a\nb"}"#)),
            finish.clone(),
        ] {
            restorer.take(event, &mut out);
        }
        let want = [
            delta(0, begin("patch", true)),
            delta(1, begin("f", false)),
            delta(1, piece("{}")),
            delta(0, piece("a\nb")),
            finish,
        ];
        assert_eq!(out, want);
    }
}
