//! The record of a request while it runs.
//!
//! A ledger is opened when a request arrives and closed exactly once. Whatever ends the request closes it: the pipeline,
//! with the outcome; or its drop, because a client that goes away drops everything it was waiting for, and code after an
//! await does not run then.

use crate::live::{Failed, Pass, now};
use crate::pipeline::Open;
use crate::plan::{Plan, Reason};
use crate::ports::Records;
use crate::record::{AttemptRecord, LeftOut, Outcome, RequestRecord, Said, VerdictState, Verdicts};
use crate::request::{Attribution, Request};
use crate::snapshot::{Snapshot, Target};
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::{BTreeMap, btree_map::Entry};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use switchyard_core::config::OnUnsupported;
use switchyard_core::error::{Error, Kind, Source};
use switchyard_core::redact::redact;
use switchyard_core::routing::{Leg, TargetId};
use switchyard_core::usage::Usage;
use switchyard_providers::notes::{Fate as NoteFate, Notes};
use switchyard_providers::{Call, Encoded};

/// Longest message of an upstream that is passed on, and longest code or field name, in characters.
const LONGEST_MESSAGE: usize = 2_000;
const LONGEST_WORD: usize = 200;
/// Longest error text that is kept, in characters.
const LONGEST_ERROR: usize = 1_000;

pub(crate) struct Ledger {
    record: RequestRecord,
    sink: Arc<dyn Records>,
    open: Arc<Open>,
    snapshot: Arc<Snapshot>,
    arrived: Instant,
    shared: Arc<Shared>,
    /// What became of targets so far, by their position. Those that are missing wait in the order, or are not in it.
    marks: BTreeMap<usize, Mark>,
    not_named: LeftOut,
    waited: Duration,
    /// The head of a stream has gone out.
    streaming: bool,
    /// What stood in it.
    head_status: u16,
    closed: bool,
    /// Of the attempt that is under way, or was the last.
    notes: Option<Box<Notes>>,
    /// The call that is under way. Dropped with the ledger, it gives back what it holds.
    pass: Option<Pass>,
}

/// What a stream's head needs to know while the attempts still go on.
#[derive(Default)]
pub(crate) struct Shared {
    attribution: Mutex<Attribution>,
    /// A 200 went out before the outcome was known.
    head_sent: AtomicBool,
}

impl Shared {
    pub(crate) fn attribution(&self) -> Attribution {
        self.attribution.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn send_head(&self) {
        self.head_sent.store(true, Ordering::Relaxed);
    }
}

/// What became of one target so far.
struct Mark {
    attempts: u32,
    fate: Fate,
}

enum Fate {
    Excluded(Reason),
    Trying,
    Failed(String),
    Chosen,
}

/// One call that has begun.
pub(crate) struct Started {
    target: TargetId,
    model: Arc<str>,
    began: Instant,
    after: Duration,
}

impl Ledger {
    pub(crate) fn open(
        request: &Request,
        snapshot: Arc<Snapshot>,
        sink: Arc<dyn Records>,
        open: Arc<Open>,
    ) -> Box<Self> {
        open.begin();
        let record = RequestRecord {
            request_id: Arc::clone(&request.id),
            arrived_at_ms: request.arrived_at_ms,
            surface: request.surface.as_str().into(),
            key_id: request.caller.key_id.clone(),
            key_name: request.caller.key_name.clone(),
            // Most calls make one. A list that grows by itself begins with room for four, in every record that waits for the log.
            attempts: Vec::with_capacity(1),
            ..RequestRecord::default()
        };
        let shared = Arc::default();
        let waited = request.upload;
        Box::new(Self {
            record,
            sink,
            open,
            snapshot,
            arrived: request.arrived,
            shared,
            marks: BTreeMap::new(),
            not_named: LeftOut::default(),
            waited,
            streaming: false,
            head_status: 200,
            closed: false,
            notes: None,
            pass: None,
        })
    }

    fn since_arrival(&self) -> Duration {
        now().saturating_duration_since(self.arrived)
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    pub(crate) fn call_read(&mut self, call: &Call) {
        self.record.model.clone_from(&call.model);
        self.record.stream = call.stream;
    }

    /// What is asked for is no surface.
    pub(crate) fn is_surface(&mut self, word: &'static str) {
        self.record.surface = word.into();
    }

    pub(crate) fn asked_for(&mut self, model: &str) {
        model.clone_into(&mut self.record.model);
    }

    /// The order is known, and why the others are not in it.
    pub(crate) fn planned(&mut self, plan: &mut Plan) {
        self.record.route.clone_from(&plan.route);
        self.record.variant.clone_from(&plan.variant);
        self.not_named = std::mem::take(&mut plan.not_named);
        for (target, reason) in plan.left_out.drain(..) {
            self.exclude(target, reason);
        }
    }

    pub(crate) fn exclude(&mut self, TargetId(i): TargetId, reason: Reason) {
        let fate = Fate::Excluded(reason);
        match self.marks.entry(i) {
            Entry::Vacant(entry) => {
                entry.insert(Mark { attempts: 0, fate });
            }
            Entry::Occupied(mut entry) if entry.get().attempts == 0 => entry.get_mut().fate = fate,
            Entry::Occupied(_) => {}
        }
    }

    /// Time was spent on purpose, between two attempts.
    pub(crate) fn slept(&mut self, wait: Duration) {
        self.waited += wait;
    }

    /// Who is spoken of when no call was made: the one that would have been asked.
    pub(crate) fn would_ask(&mut self, target: &Target, leg: &Leg) {
        if self.record.attempts.is_empty() {
            self.attribute(target, &leg.model, 0);
        }
    }

    fn attribute(&mut self, target: &Target, model: &Arc<str>, attempts: usize) {
        self.record.target = Some(Arc::clone(&target.name));
        self.record.provider = Some(Arc::clone(&target.provider));
        self.record.upstream_model = Some(Arc::clone(model));
        self.record.simulated = target.simulated;
        let attribution = Attribution {
            provider: self.record.provider.clone(),
            target: self.record.target.clone(),
            model: self.record.upstream_model.clone(),
            attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        };
        *self.shared.attribution.lock().unwrap_or_else(PoisonError::into_inner) = attribution;
    }

    pub(crate) fn begin_attempt(&mut self, target: &Target, leg: &Leg, pass: Option<Pass>) -> Started {
        let (id, model) = (leg.target, &leg.model);
        self.pass = pass;
        self.attribute(target, model, self.record.attempts.len() + 1);
        let fate = Fate::Trying;
        let mark = self.marks.entry(id.0).or_insert(Mark { attempts: 0, fate });
        (mark.attempts, mark.fate) = (mark.attempts + 1, Fate::Trying);
        // An attempt is in the record from its first moment: a client that goes away while it runs leaves it there.
        self.record.attempts.push(AttemptRecord {
            target: Arc::clone(&target.name),
            provider: Arc::clone(&target.provider),
            model: Arc::clone(model),
            outcome: Outcome::ClientCancelled.as_str().into(),
            status: None,
            started_us: micros(self.since_arrival()),
            latency_us: 0,
            first_token_us: None,
            error: None,
        });
        Started {
            target: id,
            model: Arc::clone(model),
            began: now(),
            after: self.since_arrival(),
        }
    }

    /// Takes the notes of an attempt's translation, and gives back what is to be sent.
    pub(crate) fn translated(&mut self, encoded: Encoded, policy: OnUnsupported) -> http::Request<Bytes> {
        let Encoded { request, notes } = encoded;
        self.notes = None;
        if notes.is_empty() {
            return request;
        }
        if policy == OnUnsupported::Warn && notes.count(NoteFate::Dropped) > 0 {
            let dropped = notes.list().iter().filter(|note| note.fate == NoteFate::Dropped);
            tracing::warn!(
                request.id = &*self.record.request_id,
                target.name = self.record.target.as_deref(),
                fields = dropped.map(|note| &*note.field).collect::<Vec<_>>().join(", "),
                "the upstream does not know everything that was asked for, and got the rest"
            );
        }
        self.notes = Some(Box::new(notes));
        request
    }

    /// What was lost so far, there and back.
    pub(crate) fn noted(&mut self, of_answer: Option<&Notes>) -> Option<Box<Notes>> {
        if let Some(more) = of_answer.filter(|more| !more.is_empty()) {
            let notes = self.notes.get_or_insert_default();
            notes.append(more.clone());
        }
        self.notes.clone()
    }

    /// The upstream answered with a head.
    pub(crate) fn attempt_status(&mut self, status: u16) {
        if let Some(attempt) = self.record.attempts.last_mut() {
            attempt.status = Some(status);
        }
    }

    pub(crate) fn attempt_failed(&mut self, started: &Started, error: &Error) -> Failed {
        let latency = started.latency();
        self.waited += latency;
        if let Some(attempt) = self.record.attempts.last_mut() {
            attempt.latency_us = micros(latency);
            attempt.outcome = error.kind.as_str().into();
            attempt.error = Some(shorten(&error.message));
        }
        tracing::warn!(
            request.id = &*self.record.request_id,
            target.name = self.record.target.as_deref(),
            outcome = error.kind.as_str(),
            upstream.status = error.status,
            error = error.message,
            "an attempt failed"
        );
        if let Some(mark) = self.marks.get_mut(&started.target.0) {
            mark.fate = Fate::Failed(shorten(&error.message));
        }
        // When the request's time is over, that tells something about a target only if it used most of it itself.
        let own_time = latency * 2 >= self.since_arrival();
        self.pass
            .take()
            .map_or(Failed::Plain, |pass| pass.failed(error, own_time))
    }

    /// A whole answer is there.
    pub(crate) fn attempt_succeeded(&mut self, started: &Started) {
        let latency = started.latency();
        self.waited += latency;
        if let Some(attempt) = self.record.attempts.last_mut() {
            attempt.latency_us = micros(latency);
            attempt.outcome = Outcome::Success.as_str().into();
        }
        if let Some(pass) = &mut self.pass {
            pass.answered(latency);
        }
        self.choose(started.target);
    }

    /// The head that goes out has another status than 200.
    pub(crate) const fn head_status(&mut self, status: u16) {
        self.head_status = status;
    }

    /// A stream has brought its first content, or its whole end: from here on this target answers.
    pub(crate) fn committed(&mut self, started: &Started, content: bool) {
        let latency = started.latency();
        self.waited += latency;
        // A whole answer may be an empty one: then there was no first token.
        if content {
            self.record.first_token_us = Some(micros(started.after + latency));
            if let Some(attempt) = self.record.attempts.last_mut() {
                attempt.first_token_us = Some(micros(latency));
            }
        }
        if let Some(pass) = &mut self.pass {
            pass.answered(latency);
        }
        self.streaming = true;
        self.choose(started.target);
        self.head_ready();
    }

    fn choose(&mut self, TargetId(i): TargetId) {
        if let Some(mark) = self.marks.get_mut(&i) {
            mark.fate = Fate::Chosen;
        }
    }

    /// The answer's head can go out: what was spent until now, without the waiting, is the gateway's own share.
    pub(crate) fn head_ready(&mut self) -> (Duration, Duration) {
        let overhead = self.since_arrival().saturating_sub(self.waited);
        self.record.overhead_us = micros(overhead);
        (overhead, self.waited)
    }

    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.record.usage = usage;
        if let Some(pass) = &mut self.pass {
            pass.used(tokens(usage));
        }
    }

    /// The answer is whole.
    pub(crate) fn close_complete(&mut self, usage: Usage) {
        self.close_answered(200, usage);
    }

    /// An upstream's refusal was passed on as it came.
    pub(crate) fn close_relayed(&mut self, status: u16, error: &Error) {
        self.record.status = status;
        self.fail_with(error);
        self.close(Outcome::Error);
    }

    /// The answer is whole, with a status that is some success.
    pub(crate) fn close_answered(&mut self, status: u16, usage: Usage) {
        self.record.usage = usage;
        self.record.status = status;
        if let Some(pass) = self.pass.take() {
            pass.complete(tokens(usage));
        }
        self.end_stream(Outcome::Success.as_str(), None);
        self.close(Outcome::Success);
    }

    /// The answer was cut after content had gone out.
    pub(crate) fn close_partial(&mut self, error: &Error, usage: Usage) {
        self.record.usage = usage;
        self.record.status = self.head_status;
        if let Some(mut pass) = self.pass.take() {
            pass.used(tokens(usage));
            // A stream that the gateway itself ends says nothing about its upstream.
            if error.kind == Kind::Internal {
                drop(pass);
            } else {
                pass.failed(error, true);
            }
        }
        self.end_stream(error.kind.as_str(), Some(shorten(&error.message)));
        self.fail_with(error);
        self.close(Outcome::Partial);
    }

    /// There is no answer.
    pub(crate) fn close_failed(&mut self, error: &Error) {
        if self.record.overhead_us == 0 {
            self.head_ready();
        }
        self.record.status = if self.shared.head_sent.load(Ordering::Relaxed) {
            200
        } else {
            error.face().status
        };
        self.fail_with(error);
        let refused = error.kind.source() == Source::Client && self.record.attempts.is_empty();
        self.close(if refused { Outcome::Rejected } else { Outcome::Error });
    }

    fn fail_with(&mut self, error: &Error) {
        self.record.error_code = Some(error.face().code.to_owned());
        self.record.error_message = Some(shorten(&error.message));
    }

    /// A stream's attempt lasts as long as the stream.
    fn end_stream(&mut self, outcome: &'static str, error: Option<String>) {
        let since_arrival = micros(self.since_arrival());
        if let Some(attempt) = self
            .record
            .attempts
            .last_mut()
            .filter(|_| self.record.stream || self.streaming)
        {
            attempt.latency_us = since_arrival.saturating_sub(attempt.started_us);
            attempt.outcome = outcome.into();
            attempt.error = error;
        }
    }

    fn close(&mut self, outcome: Outcome) {
        if self.closed {
            return;
        }
        self.closed = true;
        self.open.end();
        self.record.outcome = outcome;
        self.record.duration_us = micros(self.since_arrival());
        self.record.verdicts = self.verdicts();
        if let Some(notes) = self.notes.take() {
            self.record.notes = notes.list().to_vec();
        }
        self.sink.push(std::mem::take(&mut self.record));
    }

    fn verdicts(&mut self) -> Verdicts {
        let said = |(position, Mark { attempts, fate })| {
            let times = |what: &'static str| match attempts {
                0 | 1 => Cow::Borrowed(what),
                more => Cow::Owned(format!("{what} in {more} attempts")),
            };
            let mut until_ms = None;
            let (state, reason) = match fate {
                Fate::Excluded(reason) => {
                    until_ms = reason.until_ms;
                    (VerdictState::Excluded, reason.text)
                }
                Fate::Trying => (VerdictState::Failed, "was still being asked".into()),
                Fate::Failed(message) => (VerdictState::Failed, format!("{}: {message}", times("failed")).into()),
                Fate::Chosen => (VerdictState::Chosen, times("answered")),
            };
            Said {
                position,
                state,
                reason,
                until_ms,
            }
        };
        let marks = std::mem::take(&mut self.marks);
        let said = marks.into_iter().map(said).collect();
        let not_named = std::mem::take(&mut self.not_named);
        Verdicts::new(Arc::clone(&self.snapshot.names), said, not_named)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let since_arrival = micros(self.since_arrival());
        if let Some(attempt) = self
            .record
            .attempts
            .last_mut()
            .filter(|attempt| attempt.latency_us == 0)
        {
            attempt.latency_us = since_arrival.saturating_sub(attempt.started_us);
        }
        let cut = if std::thread::panicking() {
            Some("the gateway failed at this request")
        } else if self.open.is_stopping() {
            Some("the gateway was stopped before the answer was whole")
        } else {
            None
        };
        if let Some(message) = cut {
            let error = Error::new(Kind::Internal, message);
            if self.streaming {
                self.close_partial(&error, self.record.usage);
            } else {
                self.close_failed(&error);
            }
            return;
        }
        // 499: the client closed the connection. Unless a head went out, it saw no status at all.
        let head_sent = self.shared.head_sent.load(Ordering::Relaxed) || self.streaming;
        self.record.status = if head_sent { self.head_status } else { 499 };
        self.record.error_code = Some("client_cancelled".to_owned());
        self.record.error_message = Some("the client went away before the answer was whole".to_owned());
        self.close(Outcome::ClientCancelled);
    }
}

/// An upstream's failure as it may leave: without a credential of ours in it.
pub(crate) fn clean(mut error: Error, target: &Target) -> Error {
    if error.kind.source() == Source::Upstream
        && let Ok(link) = &target.link
    {
        let known: Vec<&str> = link
            .secrets
            .iter()
            .map(switchyard_core::secret::Secret::expose)
            .collect();
        let cleaned = |text: &str, longest| redact(text, &known).chars().take(longest).collect::<String>();
        error.message = cleaned(&error.message, LONGEST_MESSAGE);
        error.param = error.param.map(|param| cleaned(&param, LONGEST_WORD));
        error.upstream_code = error.upstream_code.map(|code| cleaned(&code, LONGEST_WORD));
    }
    if error.kind == Kind::Auth {
        error.message = format!("{} refused the gateway's credential: {}", target.name, error.message);
    }
    error
}

/// All that was used, where it is known.
fn tokens(usage: Usage) -> Option<u64> {
    usage
        .total
        .or_else(|| Some(usage.prompt?.saturating_add(usage.completion.unwrap_or(0))))
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn shorten(message: &str) -> String {
    message.chars().take(LONGEST_ERROR).collect()
}

impl Started {
    fn latency(&self) -> Duration {
        now().saturating_duration_since(self.began)
    }

    pub(crate) fn target(&self) -> TargetId {
        self.target
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }
}
