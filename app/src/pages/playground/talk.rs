//! The conversation: what was said, what is being said, and what is set.

use super::{
    ask::{Said, Settings},
    chunk::{CallPart, Chunk, Usage},
};
use crate::ui::format;
use leptos::prelude::*;

/// The state of the playground. Kept by the frame, so that it outlives a look at another page.
#[derive(Clone, Copy)]
pub struct Talk {
    pub turns: RwSignal<Vec<Turn>>,
    pub draft: RwSignal<String>,
    /// The model that was typed or linked to; before that, the first one on offer.
    pub model: RwSignal<Option<String>>,
    pub settings: RwSignal<Settings>,
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
    pub target: Option<String>,
    pub attempts: Option<String>,
    pub request_id: Option<String>,
    pub finish: Option<String>,
    pub usage: Option<Usage>,
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
            match self.calls.iter_mut().find(|call| call.index == part.index) {
                Some(call) => {
                    call.name.push_str(&part.name);
                    call.arguments.push_str(&part.arguments);
                }
                None => self.calls.push(part),
            }
        }
        self.facts.finish = chunk.finish.or(self.facts.finish.take());
        self.facts.usage = chunk.usage.or(self.facts.usage);
    }

    /// Whether there is anything to keep.
    pub const fn has_content(&self) -> bool {
        !(self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty())
    }
}

impl Facts {
    /// The facts in the order one asks for them.
    pub fn words(&self) -> Vec<String> {
        let target = self.target.clone();
        let attempts = self
            .attempts
            .as_ref()
            .filter(|n| *n != "1")
            .map(|n| format!("{n} attempts"));
        let first = self
            .first_token_ms
            .map(|ms| format!("first token {}", format::millis(ms)));
        let tokens = self.usage.map(|usage| {
            format!(
                "{} in, {} out",
                format::count(usage.tokens_in),
                format::count(usage.tokens_out)
            )
        });
        let speed = self.speed().map(|speed| format!("{speed:.0} tokens a second"));
        let finish = self
            .finish
            .as_ref()
            .filter(|reason| *reason != "stop")
            .map(|reason| format!("ended by {reason}"));
        [target, attempts, first, tokens, speed, finish]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Tokens a second from the first to the last. Too short a time tells nothing.
    fn speed(&self) -> Option<f64> {
        let seconds = (self.whole_ms? - self.first_token_ms?) / 1e3;
        (seconds >= 0.05).then(|| self.usage.map(|usage| usage.tokens_out as f64 / seconds))?
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
            answer.add(Chunk::read(data), *at);
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
}
