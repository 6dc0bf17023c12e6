//! A chat answer as server-sent events.
//!
//! The frames are laid out before the first is sent, each with the step of the clock at which it is due; then the body
//! walks that list, one frame a poll. A frame is encoded when its turn comes, so that an answer which nobody reads to
//! its end costs nothing.

use super::{
    broken,
    chat::{Answer, Choice, Content},
    pace::Tempo,
    tokens, wire,
};
use crate::ports::{TransportError, UpstreamBody};
use bytes::Bytes;
use futures_util::stream;
use http::Response;
use std::collections::VecDeque;

#[derive(Clone, Copy)]
pub(super) struct Options {
    /// `stream_options.include_usage`.
    pub(super) include_usage: bool,
    /// Breaks the body off after a third of the content.
    pub(super) cut: bool,
}

/// A frame to come.
struct Event {
    /// The step at which it is due.
    step: usize,
    kind: Kind,
}

enum Kind {
    Delta { choice: usize, piece: Piece },
    Usage,
    Done,
    Cut,
}

/// A part of one choice.
enum Piece {
    Role,
    Text(String),
    CallStart { index: usize },
    Arguments { index: usize, fragment: String },
    Finish,
}

pub(super) fn response(answer: Answer, tempo: Tempo, options: Options) -> Response<UpstreamBody> {
    let body = Body {
        events: timeline(&answer, options),
        answer,
        tempo,
        include_usage: options.include_usage,
    };
    let frames = stream::unfold(
        body,
        |mut body| async move { body.next().await.map(|frame| (frame, body)) },
    );
    let mut response = wire::with_type("text/event-stream; charset=utf-8", Box::pin(frames));
    response
        .headers_mut()
        .insert(http::header::CACHE_CONTROL, http::HeaderValue::from_static("no-cache"));
    response
}

fn timeline(answer: &Answer, options: Options) -> VecDeque<Event> {
    let mut events = Vec::new();
    for (nth, choice) in answer.choices.iter().enumerate() {
        let delta = |step: usize, piece: Piece| Event {
            step,
            kind: Kind::Delta { choice: nth, piece },
        };
        events.push(delta(0, Piece::Role));
        let pieces = pieces(choice);
        let last = pieces.len();
        events.extend(
            pieces
                .into_iter()
                .enumerate()
                .map(|(before, piece)| delta(before + 1, piece)),
        );
        events.push(delta(last, Piece::Finish));
    }
    // Stable, so that a choice's own frames keep their order and choices take turns.
    events.sort_by_key(|event| event.step);
    let end = answer.steps();
    if options.cut {
        let step = end.div_ceil(3);
        events.retain(|event| {
            event.step <= step
                && !matches!(
                    event.kind,
                    Kind::Delta {
                        piece: Piece::Finish,
                        ..
                    }
                )
        });
        events.push(Event { step, kind: Kind::Cut });
        return events.into();
    }
    if options.include_usage {
        events.push(Event {
            step: end,
            kind: Kind::Usage,
        });
    }
    events.push(Event {
        step: end,
        kind: Kind::Done,
    });
    events.into()
}

/// A choice's content, one piece for each token.
fn pieces(choice: &Choice) -> Vec<Piece> {
    match &choice.content {
        Content::Text(text) => tokens::split(text).map(|token| Piece::Text(token.to_owned())).collect(),
        Content::Calls(calls) => {
            let pieces_of_call = |(index, call): (usize, &super::tools::Call)| {
                let fragments = tokens::split(&call.arguments).map(str::to_owned).collect::<Vec<_>>();
                let fragments = fragments
                    .into_iter()
                    .map(move |fragment| Piece::Arguments { index, fragment });
                std::iter::once(Piece::CallStart { index }).chain(fragments)
            };
            calls.iter().enumerate().flat_map(pieces_of_call).collect()
        }
    }
}

struct Body {
    answer: Answer,
    events: VecDeque<Event>,
    tempo: Tempo,
    include_usage: bool,
}

impl Body {
    async fn next(&mut self) -> Option<Result<Bytes, TransportError>> {
        let event = self.events.pop_front()?;
        self.tempo.reach(event.step).await;
        Some(match event.kind {
            Kind::Delta { choice, piece } => Ok(self.delta(choice, &piece)),
            Kind::Usage => Ok(self.chunk(Vec::new(), Some(self.answer.usage))),
            Kind::Done => Ok(Bytes::from_static(b"data: [DONE]\n\n")),
            Kind::Cut => Err(broken()),
        })
    }

    fn delta(&self, nth: usize, piece: &Piece) -> Bytes {
        let choice = self.answer.choices.get(nth);
        let finish_reason = choice
            .filter(|_| matches!(piece, Piece::Finish))
            .map(|choice| choice.finish_reason);
        let delta = choice.map_or_else(wire::Delta::default, |choice| delta(choice, piece));
        let choice = wire::ChunkChoice {
            index: nth,
            delta,
            logprobs: None,
            finish_reason,
        };
        self.chunk(vec![choice], None)
    }

    fn chunk(&self, choices: Vec<wire::ChunkChoice<'_>>, usage: Option<wire::Usage>) -> Bytes {
        let chunk = wire::Chunk {
            id: &self.answer.id,
            object: "chat.completion.chunk",
            created: self.answer.created,
            model: self.answer.model,
            system_fingerprint: wire::FINGERPRINT,
            choices,
            usage: self.include_usage.then_some(usage),
        };
        let json = wire::to_json(&chunk);
        Bytes::from([b"data: ", json.as_slice(), b"\n\n"].concat())
    }
}

fn delta<'a>(choice: &'a Choice, piece: &'a Piece) -> wire::Delta<'a> {
    let mut delta = wire::Delta::default();
    match (piece, &choice.content) {
        (Piece::Role, content) => {
            delta.role = Some("assistant");
            delta.content = Some(matches!(content, Content::Text(_)).then_some(""));
        }
        (Piece::Text(text), _) => delta.content = Some(Some(text)),
        (Piece::CallStart { index }, Content::Calls(calls)) => {
            delta.tool_calls = calls.get(*index).map(|call| {
                [wire::ToolCall {
                    index: Some(*index),
                    id: Some(&call.id),
                    r#type: Some("function"),
                    function: wire::Function {
                        name: Some(&call.name),
                        arguments: "",
                    },
                }]
            });
        }
        (Piece::Arguments { index, fragment }, _) => {
            let function = wire::Function {
                name: None,
                arguments: fragment,
            };
            delta.tool_calls = Some([wire::ToolCall {
                index: Some(*index),
                id: None,
                r#type: None,
                function,
            }]);
        }
        (Piece::CallStart { .. } | Piece::Finish, _) => {}
    }
    delta
}
