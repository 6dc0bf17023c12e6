//! OpenAI's older completions: a prompt and no messages. A front only.
//!
//! A prompt becomes one message of the user. What was made for models that go on with a text has no counterpart in a
//! conversation: of several prompts, and of prompts in tokens, only an upstream with completions of its own can make anything;
//! `suffix` and `best_of` are noted. `echo` is done here, because it takes nothing but the prompt.

use super::chat::{At, Object, answer_id, body, is_usage_known, json, stop, write_usage};
use crate::Call;
use crate::codec::{Front, Writer};
use crate::ir::{Answer, Delta, Event, Finish, Message, Part, Place, Prompt, Role};
use crate::notes::Notes;
use serde_json::{Map, Value};
use switchyard_core::error::{Error, Kind};
use switchyard_core::usage::Usage;

/// OpenAI's older completions: a prompt and no messages. A front only.
pub(crate) struct Completions;

impl Front for Completions {
    fn read(&self, call: &Call) -> Result<Prompt, Error> {
        let mut prompt = Prompt {
            stream: call.stream,
            ..Prompt::default()
        };
        let mut best_of = None;
        for (name, value) in body(call)? {
            let at = &At::top(&name);
            let sampling = &mut prompt.sampling;
            match name.as_str() {
                _ if value.is_null() => {}
                "model" | "stream" => {}
                "prompt" => prompt.messages.push(message(text(at, value)?)),
                "max_tokens" => prompt.max_tokens = Some(at.count(&value)?),
                "temperature" => sampling.temperature = Some(at.number(&value)?),
                "top_p" => sampling.top_p = Some(at.number(&value)?),
                "top_k" => sampling.top_k = Some(at.count(&value)?),
                "n" => sampling.n = Some(at.count(&value)?),
                "seed" => sampling.seed = Some(at.integer(&value)?),
                "presence_penalty" => sampling.presence_penalty = Some(at.number(&value)?),
                "frequency_penalty" => sampling.frequency_penalty = Some(at.number(&value)?),
                "stop" => sampling.stop = stop(at, value)?,
                "logit_bias" => sampling.logit_bias = Some(Value::Object(at.object(value)?)),
                "logprobs" => {
                    sampling.logprobs = Some(true);
                    sampling.top_logprobs = Some(at.count(&value)?);
                }
                "user" => prompt.user = Some(at.text(value)?),
                "echo" => drop(at.flag(&value)?),
                "best_of" => best_of = Some(at.count(&value)?),
                "stream_options" => {
                    for (key, value) in at.object(value)? {
                        if key != "include_usage" && !value.is_null() {
                            prompt.strangers.push(at.key(&key).stranger(value));
                        }
                    }
                }
                _ => prompt.strangers.push(at.stranger(value)),
            }
        }
        let wanted = prompt.sampling.n.unwrap_or(1);
        if let Some(best_of) = best_of.filter(|best_of| *best_of != wanted) {
            prompt.strangers.push(At::top("best_of").stranger(best_of.into()));
        }
        if prompt.max_tokens == Some(0) {
            let message = "`max_tokens` of 0 scores a prompt, which a model for conversations cannot; ask a model for completions";
            return Err(Error::new(Kind::Unsupported, message).with_param("max_tokens"));
        }
        Ok(prompt)
    }

    fn write(&self, answer: Answer, call: &Call, notes: &mut Notes) -> Vec<u8> {
        let echo = echoed(call);
        let mut out = Vec::with_capacity(512);
        let mut body = Object::open(&mut out);
        body.put("id", &answer_id("cmpl-", &call.origin));
        body.put("object", "text_completion");
        body.put("created", &answer.created.unwrap_or(call.origin.at));
        body.put("model", answer.model.as_ref().unwrap_or(&call.model));
        let mut choices = body.list("choices");
        for (index, choice) in answer.choices.iter().enumerate() {
            let mut text = echo.clone();
            for part in &choice.parts {
                match part {
                    Part::Text {
                        text: said, citations, ..
                    } => {
                        text.push_str(said);
                        if !citations.is_empty() {
                            notes.dropped("choices[].text", CITED);
                        }
                    }
                    Part::Refusal(said) => refused(&mut text, said, notes),
                    Part::Thought(_) => notes.dropped("choices[].text", THOUGHT),
                    _ => notes.dropped("choices[].text", MORE),
                }
            }
            let mut out = choices.object();
            out.put("text", &text);
            out.put("index", &index);
            let logprobs = choice.logprobs.as_ref();
            out.put("logprobs", &logprobs.map(|value| legacy(value, &mut characters(&echo))));
            out.put("finish_reason", word(&choice.finish, notes));
            out.close();
        }
        choices.close();
        if is_usage_known(&answer.usage) {
            write_usage(body.name("usage"), &answer.usage);
        }
        body.close();
        out
    }

    fn writer(&self, call: &Call, model: &str) -> Box<dyn Writer> {
        let mut head = b"data: ".to_vec();
        let mut chunk = Object::open(&mut head);
        chunk.put("id", &answer_id("cmpl-", &call.origin));
        chunk.put("object", "text_completion");
        chunk.put("created", &call.origin.at);
        chunk.put("model", model);
        chunk.name("choices").push(b'[');
        Box::new(Speaker {
            head,
            tail: if call.wants_usage {
                b"],\"usage\":null}\n\n"
            } else {
                b"]}\n\n"
            },
            wants_usage: call.wants_usage,
            echo: echoed(call),
            usage: Usage::default(),
            voices: Vec::new(),
        })
    }
}

/// What a text alone leaves out.
const THOUGHT: &str = "the model's reasoning";
const CITED: &str = "where the text has things from";
const MORE: &str = "the answer holds more than a text";

fn message(text: String) -> Message {
    Message {
        role: Role::User,
        name: None,
        parts: vec![Part::text(text)],
        at: Place::new("prompt"),
    }
}

/// One prompt, in words.
fn text(at: &At<'_>, value: Value) -> Result<String, Error> {
    let unsupported = |what: &str| Err(Error::new(Kind::Unsupported, what).with_param("prompt"));
    let mut list = match value {
        Value::String(text) => return Ok(text),
        Value::Array(list) => list,
        _ => return Err(at.wrong("must be a text or a list of texts")),
    };
    let is_tokens = |value: &Value| value.is_number() || value.is_array();
    if list.iter().any(is_tokens) {
        return unsupported(
            "`prompt` is a list of tokens, which mean nothing to a model of another maker; send it as text",
        );
    }
    match (list.len(), list.pop()) {
        (1, Some(Value::String(text))) => Ok(text),
        (1, Some(_)) => Err(at.item(0).wrong("must be a text")),
        (0, _) | (_, None) => Err(at.wrong("must hold a prompt")),
        _ => unsupported(
            "`prompt` holds several prompts, which a model for conversations cannot answer in one call; send one a call",
        ),
    }
}

/// What goes before every answer.
fn echoed(call: &Call) -> String {
    // Nearly nobody wants it, and to see that takes no reading.
    if memchr::memmem::find(&call.body, br#""echo""#).is_none() {
        return String::new();
    }
    let wants_echo = |body: &Map<String, Value>| body.get("echo") == Some(&Value::Bool(true));
    let Some(mut body) = body(call).ok().filter(wants_echo) else {
        return String::new();
    };
    let prompt = body.get_mut("prompt").map(Value::take).unwrap_or_default();
    text(&At::top("prompt"), prompt).unwrap_or_default()
}

fn refused(text: &mut String, said: &str, notes: &mut Notes) {
    notes.approximated("choices[].text", "the model declined, and says so in the text");
    text.push_str(said);
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn word(finish: &Finish, notes: &mut Notes) -> &'static str {
    match finish {
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Stop | Finish::StopSequence(_) => "stop",
        Finish::ContextWindow => {
            notes.approximated("finish_reason", "it came to the end of the model's context window");
            "length"
        }
        Finish::Refusal => {
            notes.approximated("finish_reason", "the model declined to go on");
            "content_filter"
        }
        Finish::ToolCalls | Finish::Pause | Finish::Other(_) => {
            notes.approximated("finish_reason", "the vendor's reason has no word here");
            "stop"
        }
    }
}

/// Log probabilities as completions had them: a list of each kind. `offset` is where the text is that they belong to.
fn legacy(logprobs: &Value, offset: &mut usize) -> Value {
    let (mut tokens, mut values, mut tops, mut offsets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let content = logprobs.get("content").and_then(Value::as_array);
    for entry in content.into_iter().flatten() {
        let token = entry.get("token").and_then(Value::as_str).unwrap_or_default();
        let pair = |entry: &Value| Some((entry.get("token")?.as_str()?.to_owned(), entry.get("logprob")?.clone()));
        let top = entry.get("top_logprobs").and_then(Value::as_array);
        let top: Map<String, Value> = top.into_iter().flatten().filter_map(pair).collect();
        offsets.push(Value::from(*offset));
        *offset += characters(token);
        tokens.push(Value::from(token));
        values.push(entry.get("logprob").cloned().unwrap_or_default());
        tops.push(Value::Object(top));
    }
    serde_json::json!({"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets})
}

/// Writes one stream.
struct Speaker {
    head: Vec<u8>,
    tail: &'static [u8],
    wants_usage: bool,
    echo: String,
    usage: Usage,
    voices: Vec<Voice>,
}

struct Voice {
    index: u32,
    /// Where the next token begins whose probability is told.
    offset: usize,
    has_finished: bool,
}

impl Speaker {
    fn chunk(&self, choice: u32, text: &str, logprobs: Option<&Value>, finish: Option<&str>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        let mut chunk = Object::open(out);
        chunk.put("text", text);
        chunk.put("index", &choice);
        chunk.put("logprobs", &logprobs);
        chunk.put("finish_reason", &finish);
        chunk.close();
        out.extend_from_slice(self.tail);
    }

    fn voice(&mut self, choice: u32, out: &mut Vec<u8>) -> Option<&mut Voice> {
        if !self.voices.iter().any(|voice| voice.index == choice) {
            if !self.echo.is_empty() {
                self.chunk(choice, &self.echo, None, None, out);
            }
            self.voices.push(Voice {
                index: choice,
                offset: characters(&self.echo),
                has_finished: false,
            });
        }
        let mut voices = self.voices.iter_mut();
        voices.find(|voice| voice.index == choice && !voice.has_finished)
    }

    fn end(&mut self, choice: u32, finish: &Finish, out: &mut Vec<u8>, notes: &mut Notes) {
        if let Some(voice) = self.voice(choice, out) {
            voice.has_finished = true;
            self.chunk(choice, "", None, Some(word(finish, notes)), out);
        }
    }
}

impl Writer for Speaker {
    fn write(&mut self, event: Event, out: &mut Vec<u8>, notes: &mut Notes) {
        match event {
            Event::Delta { choice, delta, .. } => match delta {
                Delta::Text(text) if text.is_empty() => {}
                Delta::Text(text) => {
                    if self.voice(choice, out).is_some() {
                        self.chunk(choice, &text, None, None, out);
                    }
                }
                Delta::Refusal(said) => {
                    let mut text = String::new();
                    refused(&mut text, &said, notes);
                    if self.voice(choice, out).is_some() {
                        self.chunk(choice, &text, None, None, out);
                    }
                }
                Delta::Thought { .. } | Delta::Redacted => notes.dropped("choices[].text", THOUGHT),
                Delta::Citation(_) => notes.dropped("choices[].text", CITED),
                Delta::Call { .. } | Delta::Audio { .. } => notes.dropped("choices[].text", MORE),
                // They are of something that was told of.
                Delta::Arguments(_) | Delta::Seal(_) => {}
            },
            Event::Logprobs { choice, value } => {
                if let Some(voice) = self.voice(choice, out) {
                    let value = legacy(&value, &mut voice.offset);
                    self.chunk(choice, "", Some(&value), None, out);
                }
            }
            Event::Finish { choice, finish } => self.end(choice, &finish, out, notes),
            Event::Start { usage, .. } | Event::Usage(usage) => self.usage = usage,
            Event::Stranger(_) => notes.dropped("choices[].text", MORE),
            Event::End { .. } | Event::Ping => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>, notes: &mut Notes) {
        let mut unfinished: Vec<u32> = self
            .voices
            .iter()
            .filter(|voice| !voice.has_finished)
            .map(|voice| voice.index)
            .collect();
        if self.voices.is_empty() {
            unfinished.push(0);
        }
        for choice in unfinished {
            self.end(choice, &Finish::Stop, out, notes);
        }
        if self.wants_usage {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(br#"],"usage":"#);
            if is_usage_known(&self.usage) {
                write_usage(out, &self.usage);
            } else {
                json(out, &Value::Null);
            }
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::Completions;
    use crate::codec::Front;
    use crate::ir::{Answer, Choice, Delta, Event, Finish, Part, Prompt};
    use crate::notes::Notes;
    use crate::{Call, Origin, Surface};
    use serde_json::{Value, json};
    use switchyard_core::error::{Error, Kind};
    use switchyard_core::usage::Usage;

    fn call(members: &str) -> Call {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        let origin = Origin { id: "r1".into(), at: 7 };
        Call::read(Surface::Completions, body.into(), None, origin).unwrap()
    }

    fn reading(members: &str) -> Result<Prompt, Error> {
        Completions.read(&call(members))
    }

    #[test]
    fn a_prompt_is_a_message_and_several_are_none() {
        for members in [r#""prompt":"Hi""#, r#""prompt":["Hi"]"#] {
            let prompt = reading(members).unwrap();
            assert_eq!(prompt.messages.len(), 1);
            assert_eq!(prompt.messages[0].parts, [Part::text("Hi")]);
        }
        for (members, kind) in [
            (r#""prompt":["a","b"]"#, Kind::Unsupported),
            (r#""prompt":[1,2]"#, Kind::Unsupported),
            (r#""prompt":[[1,2]]"#, Kind::Unsupported),
            (r#""prompt":[]"#, Kind::InvalidRequest),
            (r#""prompt":{}"#, Kind::InvalidRequest),
        ] {
            let error = reading(members).unwrap_err();
            assert_eq!(
                (error.kind, error.param.as_deref()),
                (kind, Some("prompt")),
                "{members}"
            );
        }
        assert_eq!(
            reading(r#""prompt":"a","max_tokens":0"#).unwrap_err().kind,
            Kind::Unsupported
        );
    }

    #[test]
    fn what_else_is_asked_for_is_read() {
        let prompt =
            reading(r#""prompt":"Hi","logprobs":3,"n":2,"best_of":4,"suffix":"x","stop":["a"],"echo":false"#).unwrap();
        assert_eq!(
            (prompt.sampling.logprobs, prompt.sampling.top_logprobs),
            (Some(true), Some(3))
        );
        assert_eq!((prompt.sampling.n, prompt.sampling.stop.len()), (Some(2), 1));
        let fields: Vec<&str> = prompt
            .strangers
            .iter()
            .map(|stranger| stranger.field.as_str())
            .collect();
        assert_eq!(fields, ["suffix", "best_of"]);
        assert!(reading(r#""prompt":"Hi","best_of":1"#).unwrap().strangers.is_empty());
    }

    fn logprobs() -> Value {
        json!({"content": [
            {"token": "Hé", "logprob": -0.5, "bytes": null, "top_logprobs": [{"token": "Hé", "logprob": -0.5}]},
            {"token": "!", "logprob": -1.0, "bytes": null, "top_logprobs": []},
        ]})
    }

    #[test]
    fn an_answer_has_the_old_shape() {
        let answer = Answer {
            choices: vec![Choice {
                parts: vec![Part::text("Hé!")],
                finish: Finish::Length,
                logprobs: Some(logprobs()),
            }],
            ..Answer::default()
        };
        let body = Completions.write(answer, &call(r#""prompt":"Say: ","echo":true"#), &mut Notes::default());
        let want = json!({
            "id": "cmpl-r1", "object": "text_completion", "created": 7, "model": "m",
            "choices": [{
                "text": "Say: Hé!", "index": 0,
                "logprobs": {
                    "tokens": ["Hé", "!"], "token_logprobs": [-0.5, -1.0],
                    "top_logprobs": [{"Hé": -0.5}, {}], "text_offset": [5, 7],
                },
                "finish_reason": "length",
            }],
        });
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), want);
    }

    #[test]
    fn a_stream_ends_with_its_usage_if_that_was_asked_for() {
        let call = call(r#""prompt":"Hi","stream":true,"stream_options":{"include_usage":true}"#);
        let mut writer = Completions.writer(&call, "m");
        let (mut out, mut notes) = (Vec::new(), Notes::default());
        let usage = Usage {
            prompt: Some(3),
            completion: Some(2),
            total: Some(5),
            ..Usage::default()
        };
        for event in [
            Event::Delta {
                choice: 0,
                part: 0,
                delta: Delta::Text("He".to_owned()),
            },
            Event::Usage(usage),
            Event::Finish {
                choice: 0,
                finish: Finish::Stop,
            },
        ] {
            writer.write(event, &mut out, &mut notes);
        }
        writer.finish(&mut out, &mut notes);
        let head = r#"data: {"id":"cmpl-r1","object":"text_completion","created":7,"model":"m","choices":["#;
        let want = format!(
            "{head}{{\"text\":\"He\",\"index\":0,\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null}}\n\n\
             {head}{{\"text\":\"\",\"index\":0,\"logprobs\":null,\"finish_reason\":\"stop\"}}],\"usage\":null}}\n\n\
             {head}],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}}}\n\n\
             data: [DONE]\n\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), want);
        assert!(notes.is_empty());
    }
}
