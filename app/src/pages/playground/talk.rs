//! The conversation: what was said, what is being said, and what is set.

use super::{
    ask::{Said, Settings},
    chunk::{CallPart, Chunk, Usage},
    dialect::Dialect,
    wire::Wire,
};
use crate::ui::format;
use leptos::prelude::*;

/// How an answer ends when its model has said all, in each dialect's word.
const NATURAL: [&str; 4] = ["stop", "completed", "end_turn", "STOP"];

/// The state of the playground. Kept by the frame, so that it outlives a look at another page.
#[derive(Clone, Copy)]
pub struct Talk {
    pub turns: RwSignal<Vec<Turn>>,
    pub draft: RwSignal<String>,
    /// The model that was typed or linked to; before that, the first one on offer.
    pub model: RwSignal<Option<String>>,
    pub settings: RwSignal<Settings>,
    pub dialect: RwSignal<Dialect>,
    /// The last call as it went over the line.
    pub wire: RwSignal<Wire>,
    /// What kept the last message from being answered.
    pub problem: RwSignal<Option<String>>,
    pub busy: RwSignal<bool>,
    /// Ends the answer that is coming in.
    pub stop: StoredValue<Option<super::send::Stop>>,
}

impl Default for Talk {
    fn default() -> Self {
        Self {
            turns: RwSignal::new(Vec::new()),
            draft: RwSignal::new(String::new()),
            model: RwSignal::new(None),
            settings: RwSignal::new(Settings::default()),
            dialect: RwSignal::new(Dialect::default()),
            wire: RwSignal::new(Wire::default()),
            problem: RwSignal::new(None),
            busy: RwSignal::new(false),
            stop: StoredValue::new(None),
        }
    }
}

impl Talk {
    /// Forgets the conversation; the settings stay.
    pub fn clear(self) {
        self.turns.set(Vec::new());
        self.problem.set(None);
        self.wire.set(Wire::default());
    }
}

/// One turn, by who speaks. An answer grows while it arrives, so it is in a signal of its own; a counted one, because it
/// lives as long as the conversation and not as long as the page that began it.
#[derive(Clone, Debug)]
pub enum Turn {
    User(String),
    Model { name: String, answer: ArcRwSignal<Answer> },
}

/// An answer, as far as it has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<CallPart>,
    pub facts: Facts,
    /// What ended it early.
    pub cut: Option<String>,
    pub done: bool,
}

/// What is known about an answer beside its words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The dialect that was spoken.
    pub dialect: Option<&'static str>,
    pub target: Option<String>,
    pub attempts: Option<String>,
    /// How many fields were dropped, approximated, … on the way to the upstream's dialect.
    pub translation: Option<String>,
    pub request_id: Option<String>,
    pub finish: Option<String>,
    pub usage: Usage,
    pub first_token_ms: Option<f64>,
    pub whole_ms: Option<f64>,
}

impl Answer {
    /// Adds what a chunk says. `elapsed_ms` is the time since the request was sent.
    pub fn add(&mut self, chunk: Chunk, elapsed_ms: f64) {
        if chunk.has_content() {
            self.facts.first_token_ms.get_or_insert(elapsed_ms);
        }
        self.text.push_str(&chunk.text);
        self.reasoning.push_str(&chunk.reasoning);
        for part in chunk.calls {
            let begun = self
                .calls
                .iter_mut()
                .find(|call| part.index.is_some() && call.index == part.index);
            match begun {
                Some(call) => {
                    call.name.push_str(&part.name);
                    call.arguments.push_str(&part.arguments);
                }
                None => self.calls.push(part),
            }
        }
        self.facts.finish = chunk.finish.or(self.facts.finish.take());
        self.facts.usage = self.facts.usage.and(chunk.usage);
    }

    /// Whether there is anything to keep.
    pub const fn has_content(&self) -> bool {
        !(self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty())
    }
}

impl Facts {
    /// The facts in the order one asks for them.
    pub fn words(&self) -> Vec<String> {
        let dialect = self.dialect.map(|name| format!("in {name}"));
        let target = self.target.clone();
        let attempts = self
            .attempts
            .as_ref()
            .filter(|n| *n != "1")
            .map(|n| format!("{n} attempts"));
        let translation = self.translation.as_ref().map(|counts| format!("translated: {counts}"));
        let first = self
            .first_token_ms
            .map(|ms| format!("first token {}", format::millis(ms)));
        let usage = self.usage;
        let (read, written) = (usage.all_in(), usage.tokens_out);
        let tokens = (read.is_some() || written.is_some()).then(|| {
            format!(
                "{} in, {} out",
                format::count_or_absent(read),
                format::count_or_absent(written)
            )
        });
        let some = |n: Option<u64>, what: &str| n.filter(|n| *n > 0).map(|n| format!("{} {what}", format::count(n)));
        let speed = self.speed().map(|speed| format!("{speed:.0} tokens a second"));
        let finish = self
            .finish
            .as_ref()
            .filter(|reason| !NATURAL.contains(&reason.as_str()))
            .map(|reason| format!("ended by {reason}"));
        [
            target,
            dialect,
            attempts,
            translation,
            first,
            tokens,
            some(usage.cached, "from cache"),
            some(usage.cache_write, "written to cache"),
            some(usage.reasoning, "for reasoning"),
            speed,
            finish,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Tokens a second from the first to the last. Too short a time tells nothing.
    fn speed(&self) -> Option<f64> {
        let seconds = (self.whole_ms? - self.first_token_ms?) / 1e3;
        (seconds >= 0.05).then(|| self.usage.tokens_out.map(|tokens| tokens as f64 / seconds))?
    }
}

/// The conversation as the next request repeats it. Tool calls are left out: there is no result to follow them with, and
/// upstreams refuse a call without one.
pub fn said(turns: &[(Turn, String)]) -> Vec<Said<'_>> {
    let said = turns.iter().map(|(turn, text)| match turn {
        Turn::User(text) => Said::User(text),
        Turn::Model { .. } => Said::Assistant(text),
    });
    said.filter(|said| *said != Said::Assistant("")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(events: &[(&str, f64)]) -> Answer {
        let mut answer = Answer::default();
        for (data, at) in events {
            answer.add(Chunk::read(Dialect::Chat, data), *at);
        }
        answer
    }

    #[test]
    fn an_answer_grows_and_its_first_token_is_timed_once() {
        let mut answer = answer(&[
            (r#"{"choices":[{"delta":{"role":"assistant"}}]}"#, 90.0),
            (r#"{"choices":[{"delta":{"content":"Har"}}]}"#, 318.0),
            (
                r#"{"choices":[{"delta":{"content":"bour."},"finish_reason":"stop"}]}"#,
                1_318.0,
            ),
            (
                r#"{"choices":[],"usage":{"prompt_tokens":42,"completion_tokens":71}}"#,
                1_320.0,
            ),
        ]);
        answer.facts.whole_ms = Some(1_318.0);
        answer.facts.target = Some("openai".to_owned());
        answer.facts.attempts = Some("2".to_owned());
        assert_eq!(answer.text, "Harbour.");
        assert_eq!(
            answer.facts.words(),
            [
                "openai",
                "2 attempts",
                "first token 318 ms",
                "42 in, 71 out",
                "71 tokens a second"
            ]
        );
    }

    #[test]
    fn tool_calls_are_put_together_by_their_index() {
        let answer = answer(&[
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"stock","arguments":""}}]}}]}"#,
                1.0,
            ),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}},{"index":1,"function":{"name":"x"}}]}}]}"#,
                2.0,
            ),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":"tool_calls"}]}"#,
                3.0,
            ),
        ]);
        let calls: Vec<_> = answer
            .calls
            .iter()
            .map(|call| format!("{}({})", call.name, call.arguments))
            .collect();
        assert_eq!(calls, ["stock({\"a\":1})", "x()"]);
        assert!(answer.facts.words().contains(&"ended by tool_calls".to_owned()));
    }

    #[test]
    fn calls_without_a_number_do_not_run_into_each_other() {
        let mut answer = Answer::default();
        for name in ["stock", "stock"] {
            let data =
                format!(r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"{name}"}}}}]}}}}]}}"#);
            answer.add(Chunk::read(Dialect::Gemini, &data), 1.0);
        }
        assert_eq!(answer.calls.len(), 2);
    }

    #[test]
    fn usage_of_both_ends_is_one() {
        let mut answer = Answer::default();
        for data in [
            r#"{"type":"message_start","message":{"usage":{"input_tokens":2,"cache_read_input_tokens":40,"output_tokens":1}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":71}}"#,
        ] {
            answer.add(Chunk::read(Dialect::Messages, data), 1.0);
        }
        answer.facts.dialect = Some(Dialect::Messages.name());
        answer.facts.translation = Some("dropped=1, kept=3".to_owned());
        assert_eq!(
            answer.facts.words(),
            [
                "in Messages",
                "translated: dropped=1, kept=3",
                "42 in, 71 out",
                "40 from cache"
            ]
        );
    }
}
