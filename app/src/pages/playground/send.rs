//! Sending a message and taking in the answer.

use super::{
    ask,
    dialect::Dialect,
    talk::{Answer, Talk, Turn, said},
    wire::Wire,
};
use leptos::prelude::*;

/// Ends a request that is under way.
#[cfg(target_arch = "wasm32")]
pub type Stop = send_wrapper::SendWrapper<web_sys::AbortController>;
/// Nothing is ever under way on the server.
#[cfg(not(target_arch = "wasm32"))]
pub type Stop = ();

/// Sends the draft to `model`. Refused drafts stay where they are, with the reason.
pub fn send(talk: Talk, model: String) {
    let draft = talk.draft.get_untracked().trim().to_owned();
    if draft.is_empty() || talk.busy.get_untracked() {
        return;
    }
    let mut settings = talk.settings.get_untracked();
    settings.model.clone_from(&model);
    let mut before: Vec<_> = talk.turns.get_untracked().into_iter().map(with_text).collect();
    before.push((Turn::User(draft.clone()), String::new()));
    let dialect = talk.dialect.get_untracked();
    let body = match ask::body(dialect, &settings, &said(&before)) {
        Ok(body) => body,
        Err(sentence) => return talk.problem.set(Some(sentence)),
    };
    talk.wire
        .update(|wire| *wire = Wire::asked(wire.number, dialect.path(&model), body));
    talk.problem.set(None);
    talk.draft.set(String::new());
    talk.busy.set(true);
    let mut answer = Answer::default();
    answer.facts.dialect = Some(dialect.name());
    let answer = ArcRwSignal::new(answer);
    talk.turns.update(|turns| {
        turns.push(Turn::User(draft.clone()));
        turns.push(Turn::Model {
            name: model,
            answer: answer.clone(),
        });
    });
    run(talk, dialect, answer, draft);
}

/// Who spoke, and the words as far as they go back to the upstream.
fn with_text(turn: Turn) -> (Turn, String) {
    let text = match &turn {
        Turn::User(_) => String::new(),
        Turn::Model { answer, .. } => answer.with_untracked(|answer| answer.text.clone()),
    };
    (turn, text)
}

/// Ends the answer that is coming in; what has come is kept.
pub fn stop(talk: Talk) {
    #[cfg(target_arch = "wasm32")]
    talk.stop.with_value(|stop| stop.as_ref().map(|stop| stop.abort()));
    #[cfg(not(target_arch = "wasm32"))]
    let _ = talk;
}

#[cfg(target_arch = "wasm32")]
fn run(talk: Talk, dialect: Dialect, answer: ArcRwSignal<Answer>, draft: String) {
    let Ok(stop) = web_sys::AbortController::new() else {
        return end(
            talk,
            &answer,
            draft,
            Some("This browser cannot stop a request. Use a newer one.".to_owned()),
        );
    };
    let signal = stop.signal();
    talk.stop.set_value(Some(Stop::new(stop)));
    leptos::task::spawn_local(async move {
        let sent = crate::browser::clock_ms();
        let elapsed = move || crate::browser::clock_ms() - sent;
        let fault = super::stream::read(dialect, talk.wire, &signal, &answer, elapsed)
            .await
            .err();
        // A cut that was asked for is no fault.
        let fault = if signal.aborted() {
            Some("Stopped.".to_owned())
        } else {
            fault
        };
        answer.update(|answer| answer.facts.whole_ms = Some(elapsed()));
        end(talk, &answer, draft, fault);
    });
}

#[cfg(not(target_arch = "wasm32"))]
fn run(talk: Talk, _dialect: Dialect, answer: ArcRwSignal<Answer>, draft: String) {
    end(talk, &answer, draft, None);
}

/// After the answer. What ended before its first word leaves no trace but the reason, and the message returns to where it
/// was written.
fn end(talk: Talk, answer: &ArcRwSignal<Answer>, draft: String, fault: Option<String>) {
    talk.busy.set(false);
    talk.stop.set_value(None);
    if fault.is_some() && !answer.with_untracked(Answer::has_content) {
        talk.turns.update(|turns| turns.truncate(turns.len().saturating_sub(2)));
        talk.draft.update(|now| {
            if now.is_empty() {
                *now = draft;
            }
        });
        talk.problem.set(fault);
        return;
    }
    answer.update(|answer| {
        answer.cut = fault;
        answer.done = true;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(answer: Answer) -> (Talk, ArcRwSignal<Answer>) {
        let (talk, answer) = (Talk::default(), ArcRwSignal::new(answer));
        let model = Turn::Model {
            name: "smart".to_owned(),
            answer: answer.clone(),
        };
        talk.turns.set(vec![Turn::User("Hello".to_owned()), model]);
        (talk, answer)
    }

    #[test]
    fn a_message_that_got_no_answer_comes_back() {
        Owner::new().with(|| {
            let (talk, answer) = talk(Answer::default());
            end(talk, &answer, "Hello".to_owned(), Some("No target is up.".to_owned()));
            assert_eq!(talk.turns.with(Vec::len), 0);
            assert_eq!(
                (talk.draft.get(), talk.problem.get()),
                ("Hello".to_owned(), Some("No target is up.".to_owned()))
            );
        });
    }

    #[test]
    fn a_cut_answer_is_kept_with_the_reason() {
        Owner::new().with(|| {
            let (talk, answer) = talk(Answer {
                text: "Harb".to_owned(),
                ..Answer::default()
            });
            end(talk, &answer, "Hello".to_owned(), Some("Stopped.".to_owned()));
            assert_eq!((talk.turns.with(Vec::len), talk.draft.get()), (2, String::new()));
            assert_eq!(answer.get().cut.as_deref(), Some("Stopped."));
        });
    }
}
