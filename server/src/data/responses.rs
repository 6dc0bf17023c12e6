//! The state of OpenAI's Responses, kept here for upstreams that keep none.
//!
//! A caller who names an earlier answer means all that was said until then. So each answer is kept with the items that its call
//! brought, and a call that goes on from it gets them put in front of its own: unless it is asked of the very target that made
//! the answer and speaks this dialect, which has them already. What that is to the pipeline stands in `engine::thread`.
//!
//! An answer is kept before its end goes out: a client that has the id may use it at once. But no answer waits for a database
//! that is slow or away: after [`PATIENCE`] it goes out all the same, and that it may not be found later is logged and counted.
//!
//! Whose an answer is decides the credential that asked for it. To all others, and whoever holds the master key excepted, it
//! does not exist; and an id that exists here for somebody else is never passed on to a vendor, where all of the gateway's
//! callers are one.

use super::foreign;
use super::surface::read_body;
use crate::auth::Principal;
use crate::http::Refusal;
use crate::http::error::failed;
use crate::http::request_id::{RequestId, fresh};
use crate::state::AppState;
use axum::Json;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use switchyard_core::error::{Error, Kind};
use switchyard_core::scope::Scope;
use switchyard_engine::ports::Clock;
use switchyard_engine::{
    Answer, Body, Failure, Foreign, LARGE, NativeOnly, Passed, Piece, Request as Call, Thread, aside,
};
use switchyard_providers::responses::{Item, items, merge, references, resolve, response_of_item};
use switchyard_providers::{Dialect, Origin, Surface, sse};
use switchyard_store::{Conversation, LongestConversation, ResponseRow, Store, StoreError, Turn, Whose};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// No answer waits longer to be kept.
const PATIENCE: Duration = Duration::from_millis(500);
/// Answers that are on their way into the database. What comes on top is not kept.
const MOST_AT_ONCE: usize = 256;
/// As long as the vendor keeps them.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;
const LONGEST: LongestConversation = LongestConversation {
    turns: 200,
    bytes: 16 << 20,
};
/// Longest answer about an answer that is taken from an upstream.
const LONGEST_ANSWER: usize = 50 << 20;

/// Ids of credentials that begin like this are the master key's.
const MASTER: &str = "master-key:";
const PROVIDER: HeaderName = HeaderName::from_static("x-provider");
const PREVIOUS: &str = "previous_response_id";
const NOT_FOUND: &str = "previous_response_not_found";

/// What is kept, and the way to it from a core.
#[derive(Clone)]
pub(crate) struct Kept(Arc<Inner>);

struct Inner {
    store: Store,
    /// The runtime that owns the database's connections.
    control: Handle,
    clock: Arc<dyn Clock>,
    slots: Arc<Semaphore>,
    lost: AtomicU64,
}

impl Kept {
    pub(crate) fn new(store: Store, control: Handle, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            store,
            control,
            clock,
            slots: Arc::new(Semaphore::new(MOST_AT_ONCE)),
            lost: AtomicU64::new(0),
        }))
    }

    /// Answers that should have been kept and were not, or not in time.
    pub(crate) fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Deletes what has expired.
    pub(crate) async fn sweep(&self) {
        match self.0.store.delete_expired_responses(self.0.clock.now_ms()).await {
            Ok(0) => {}
            Ok(deleted) => tracing::info!(deleted, "kept answers have expired"),
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "kept answers that have expired cannot be deleted"
            ),
        }
    }

    fn lose(&self, id: &str, why: &str) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
        tracing::error!(response.id = id, why, "an answer could not be kept for its caller");
    }

    /// Carries a question over to the runtime that may ask it, and waits for the answer no longer than the request may take.
    async fn ask<T: Send + 'static>(
        &self,
        until: Option<Instant>,
        question: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, Refusal> {
        let answer = self.0.control.spawn(question);
        let answer = match until {
            None => answer.await,
            Some(until) => tokio::time::timeout_at(until, answer).await.map_err(|_| late())?,
        };
        answer.map_err(|_| Refusal::internal())?.map_err(Refusal::from)
    }

    async fn response(&self, id: &str, principal: &Principal, until: Option<Instant>) -> Result<ResponseRow, Refusal> {
        let (inner, id, owner) = (Arc::clone(&self.0), id.to_owned(), Owner::of(principal));
        let unknown = not_found(&id);
        let question = async move { inner.store.response(&id, owner.whose(), inner.clock.now_ms()).await };
        self.ask(until, question).await?.ok_or(unknown)
    }

    /// What was said until the end of an answer, and a call with it in front, if one is given.
    async fn conversation(
        &self,
        id: &str,
        owner: &Owner,
        longest: LongestConversation,
        body: Option<Bytes>,
        until: Option<Instant>,
    ) -> Result<(Conversation, Option<Result<Bytes, Error>>), Refusal> {
        let (inner, id, owner) = (Arc::clone(&self.0), id.to_owned(), owner.clone());
        let question = async move {
            let now_ms = inner.clock.now_ms();
            let mut found = inner.store.conversation(&id, owner.whose(), now_ms, longest).await?;
            let merged = match (&mut found, body) {
                (
                    Conversation::Found {
                        turns, missing: None, ..
                    },
                    Some(body),
                ) => {
                    let turns = std::mem::take(turns);
                    let bytes = body.len() + length(&turns);
                    Some(aside(bytes, move || merge(&body, &said(&turns, true)?)).await)
                }
                _ => None,
            };
            Ok((found, merged))
        };
        self.ask(until, question).await
    }
}

/// Whose an answer is, and in whose name one is asked for.
#[derive(Clone, Debug)]
struct Owner {
    id: Arc<str>,
    is_master: bool,
}

impl Owner {
    fn of(principal: &Principal) -> Self {
        Self {
            id: principal.credential_id.as_str().into(),
            is_master: principal.credential_id.starts_with(MASTER),
        }
    }

    fn whose(&self) -> Whose<'_> {
        if self.is_master {
            Whose::Anybodys
        } else {
            Whose::Of(&self.id)
        }
    }
}

fn not_found(id: &str) -> Refusal {
    let message = format!("Response with id '{id}' not found.");
    Refusal::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        "resource_not_found",
        message,
    )
}

fn late() -> Refusal {
    let message = "the gateway's request_timeout passed before its database had answered";
    Refusal::from(&Error::new(Kind::Deadline, message))
}

/// That what a call goes on from cannot be had.
fn out_of_reach(what: &str, refusal: &Refusal) -> Error {
    let kind = if refusal.status == StatusCode::GATEWAY_TIMEOUT {
        Kind::Deadline
    } else {
        Kind::Internal
    };
    let error = Error::new(kind, format!("{what} cannot be looked up: {}", refusal.message));
    error.told_as(refusal.status.as_u16(), refusal.kind, refusal.code)
}

fn length(turns: &[Turn]) -> usize {
    turns.iter().map(|turn| turn.input.len() + turn.output.len()).sum()
}

/// The items of these turns; without those of the last one's answer, if that is what they are asked for.
fn said(turns: &[Turn], with_last_answer: bool) -> Result<Vec<Item>, Error> {
    let broken = |_| Error::new(Kind::Internal, "what was kept of the conversation cannot be read");
    let mut said = Vec::new();
    for (turn, left) in turns.iter().zip((0..turns.len()).rev()) {
        said.extend(serde_json::from_str::<Vec<Item>>(&turn.input).map_err(broken)?);
        if left > 0 || with_last_answer {
            said.extend(serde_json::from_str::<Vec<Item>>(&turn.output).map_err(broken)?);
        }
    }
    Ok(said)
}

// === A call ===

/// What a call says about state.
#[derive(Debug, Default, Deserialize)]
struct Asked {
    #[serde(default)]
    previous_response_id: Value,
    #[serde(default)]
    conversation: Value,
    #[serde(default)]
    background: Value,
    #[serde(default)]
    store: Value,
}

impl Asked {
    fn read(body: &[u8]) -> Result<Self, Error> {
        const FIELDS: [&str; 4] = [PREVIOUS, "\"conversation\"", "\"background\"", "\"store\""];
        // A key may be written with escapes. It is the same key to a vendor.
        let may_have = |name: &str| memmem::find(body, name.as_bytes()).is_some();
        if !FIELDS.into_iter().any(may_have) && !may_have("\\u") {
            return Ok(Self::default());
        }
        serde_json::from_slice(body).map_err(|error| {
            let message = format!("the body is not a valid JSON object: {error}");
            Error::new(Kind::InvalidRequest, message)
        })
    }

    fn previous(&self) -> Result<Option<&str>, Error> {
        match &self.previous_response_id {
            Value::Null => Ok(None),
            Value::String(id) => Ok(Some(id)),
            _ => {
                let message = "`previous_response_id` must be the id of an earlier answer, a text";
                Err(Error::new(Kind::InvalidRequest, message).with_param(PREVIOUS))
            }
        }
    }

    /// The conversation's id, which it may be or have.
    fn conversation(&self) -> Option<&str> {
        match &self.conversation {
            Value::Null => None,
            Value::Object(object) => Some(object.get("id").and_then(Value::as_str).unwrap_or_default()),
            other => Some(other.as_str().unwrap_or_default()),
        }
    }
}

/// A call for an answer that is, or is not, to be kept.
pub(super) struct Begun {
    kept: Kept,
    owner: Owner,
    thread: Arc<Thread>,
    /// The caller's, to be kept with the answer. Nothing if that is not to be kept.
    body: Option<Bytes>,
    previous: Option<String>,
    /// The answer is to name it.
    is_merged: bool,
    at_ms: i64,
}

/// Takes a call in: with the items themselves in the place of references to them, and what it goes on from. Its time runs
/// meanwhile.
pub(super) async fn enter(state: &AppState, principal: &Principal, body: Bytes) -> Result<(Bytes, Begun), Error> {
    let since = Instant::now();
    let until = state.engine.deadline(since);
    let body = resolved(&state.kept, principal, body, until).await?;
    let mut thread = Thread::named(fresh());
    thread.since = Some(since);
    let begun = begin(&state.kept, principal, &body, thread, until).await?;
    Ok((body, begun))
}

/// Finds out what a call goes on from.
async fn begin(
    kept: &Kept,
    principal: &Principal,
    body: &Bytes,
    mut thread: Thread,
    until: Option<Instant>,
) -> Result<Begun, Error> {
    let (kept, owner) = (kept.clone(), Owner::of(principal));
    let read = body.clone();
    let asked = aside(body.len(), move || Asked::read(&read)).await?;
    let previous = asked.previous()?;
    if let Some(id) = previous {
        go_on(&kept, &owner, id, body, &mut thread, until).await?;
    }
    if asked.conversation().is_some() {
        let message = "`conversation` names what only the vendor keeps, and the targets for this model speak other dialects; \
                       send `previous_response_id` of the last answer instead, or the whole conversation as `input`";
        thread.native_only = Some(NativeOnly {
            why: "its wire has no conversations that the vendor keeps".into(),
            error: Error::new(Kind::Unsupported, message).with_param("conversation"),
        });
    }
    if asked.background == Value::Bool(true) {
        let message = "`background` needs a vendor that goes on by itself, and the targets for this model speak other \
                       dialects; leave it out, and set `stream` if the answer takes long";
        thread.native_only = Some(NativeOnly {
            why: "its wire has no answers in the background".into(),
            error: Error::new(Kind::Unsupported, message).with_param("background"),
        });
    }
    Ok(Begun {
        at_ms: kept.0.clock.now_ms(),
        kept,
        owner,
        is_merged: thread.merged.is_some(),
        thread: Arc::new(thread),
        body: (asked.store != Value::Bool(false)).then(|| body.clone()),
        // What a conversation holds is not here either.
        previous: previous.or_else(|| asked.conversation()).map(str::to_owned),
    })
}

async fn go_on(
    kept: &Kept,
    owner: &Owner,
    id: &str,
    body: &Bytes,
    thread: &mut Thread,
    until: Option<Instant>,
) -> Result<(), Error> {
    let asked = kept.conversation(id, owner, LONGEST, Some(body.clone()), until);
    let (found, merged) = asked
        .await
        .map_err(|refusal| out_of_reach("what `previous_response_id` names", &refusal))?;
    let remedy = "send the conversation so far as `input` instead";
    let gone = |id: &str| {
        let message = format!("Previous response with id '{id}' not found; {remedy}.");
        let error = Error::new(Kind::InvalidRequest, message).with_param(PREVIOUS);
        error.told_as(400, "invalid_request_error", NOT_FOUND)
    };
    let only_who_knows = |missing: &str| NativeOnly {
        why:
            "it cannot know what the call goes on from: the gateway does not have it, and its wire has no such answers"
                .into(),
        error: gone(missing),
    };
    match found {
        Conversation::NotThere => return Err(gone(id)),
        Conversation::TooLong => {
            let message = format!(
                "the conversation that `{PREVIOUS}` names is longer than {} answers or {} MB; begin a new one, with what \
                 matters of this one as `input`",
                LONGEST.turns,
                LONGEST.bytes >> 20
            );
            return Err(Error::new(Kind::InvalidRequest, message).with_param(PREVIOUS));
        }
        // A vendor may have it from before there was a gateway.
        Conversation::Unknown => thread.native_only = Some(only_who_knows(id)),
        Conversation::Found {
            missing,
            target,
            is_native,
            ..
        } => {
            thread.target = target.filter(|_| is_native).map(Into::into);
            match (missing, &thread.target) {
                (None, _) => thread.merged = merged.transpose()?,
                (Some(missing), Some(_)) => thread.native_only = Some(only_who_knows(&missing)),
                (Some(missing), None) => return Err(gone(&missing)),
            }
        }
    }
    Ok(())
}

/// Whether an id of ours may be in there: `fc_sy`, and what a request's id is made of.
fn may_refer(body: &[u8]) -> bool {
    memmem::find_iter(body, b"_sy").any(|at| {
        let rest = body.get(at + 3..at + 35);
        rest.is_some_and(|rest| rest.iter().all(u8::is_ascii_alphanumeric))
    })
}

/// A call with the items themselves in the place of references to those of earlier answers that are kept here. A vendor's own
/// stay: it knows them.
async fn resolved(kept: &Kept, principal: &Principal, body: Bytes, until: Option<Instant>) -> Result<Bytes, Error> {
    let read = body.clone();
    let answers = aside(body.len(), move || answers_referred_to(&read)).await?;
    if answers.is_empty() {
        return Ok(body);
    }
    let (mut outputs, mut bytes) = (Vec::new(), 0);
    for id in answers {
        if bytes > LONGEST.bytes {
            let message = format!(
                "`input` refers to answers of more than {} MB; send what matters of them as items",
                LONGEST.bytes >> 20
            );
            return Err(Error::new(Kind::InvalidRequest, message).with_param("input"));
        }
        match kept.response(&id, principal, until).await {
            Ok(row) => {
                bytes += row.output.len() as u64;
                outputs.push(row.output);
            }
            // It says itself that it is not there: the reference stays, and whoever reads it names it.
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {}
            Err(refusal) => return Err(out_of_reach("an answer that `input` refers to", &refusal)),
        }
    }
    let all = outputs.iter().map(String::len).sum::<usize>() + body.len();
    aside(all, move || {
        let mut known = HashMap::new();
        for output in outputs {
            for item in serde_json::from_str::<Vec<Item>>(&output).unwrap_or_default() {
                if let Some(id) = item.get("id").and_then(Value::as_str) {
                    known.insert(id.to_owned(), item);
                }
            }
        }
        resolve(&body, &known)
    })
    .await
}

/// The answers of ours of which a call names items, each once.
fn answers_referred_to(body: &Bytes) -> Result<Vec<String>, Error> {
    if !may_refer(body) {
        return Ok(Vec::new());
    }
    let mut answers: Vec<String> = references(body)?.iter().filter_map(|id| response_of_item(id)).collect();
    answers.sort_unstable();
    answers.dedup();
    answers.truncate(LONGEST.turns as usize);
    Ok(answers)
}

impl Begun {
    pub(super) fn thread(&self) -> Arc<Thread> {
        Arc::clone(&self.thread)
    }

    /// Keeps an answer before the end of it goes out.
    pub(super) async fn keep(self, answer: Answer) -> Answer {
        if self.body.is_none() && !self.is_merged {
            return answer;
        }
        let body = match answer.body {
            Body::Whole(bytes) => Body::Whole(self.settle(bytes.clone()).await.unwrap_or(bytes)),
            Body::Stream(pieces) => {
                let begun = Arc::new(self);
                let settled = pieces.then(move |piece| {
                    let begun = Arc::clone(&begun);
                    async move {
                        match piece {
                            Piece::Frames(frames) if may_end(&frames) => {
                                Piece::Frames(Box::pin(begun.settle_frames(frames)).await)
                            }
                            piece => piece,
                        }
                    }
                });
                Body::Stream(settled.boxed())
            }
        };
        Answer { body, ..answer }
    }

    /// Keeps the answer that is in one of these frames, if it is.
    async fn settle_frames(&self, frames: Bytes) -> Bytes {
        let (bytes, read) = (frames.len(), frames.clone());
        let found = aside(bytes, move || {
            let last = Last::find(&read)?;
            let whole = Bytes::from(serde_json::to_vec(&last.response()).unwrap_or_default());
            Some((last, whole))
        });
        let Some((last, whole)) = found.await else {
            return frames;
        };
        match self.settle(whole).await {
            Some(settled) => aside(bytes, move || last.replaced(&frames, &settled).unwrap_or(frames)).await,
            None => frames,
        }
    }

    /// Keeps an answer, and waits no longer than anybody should. Gives back what is to go out instead, if that differs.
    async fn settle(&self, answer: Bytes) -> Option<Bytes> {
        let answered = self.thread.answered();
        let settling = Settling {
            owner: self.owner.id.to_string(),
            target: answered.map(|answered| answered.target.to_string()),
            is_native: answered.is_some_and(|answered| answered.is_native),
            previous: self.previous.clone(),
            is_merged: self.is_merged,
            body: self.body.clone(),
            at_ms: self.at_ms,
        };
        let Ok(slot) = Arc::clone(&self.kept.0.slots).try_acquire_owned() else {
            if settling.body.is_some() {
                self.kept.lose("", "the database has too many of them to write");
            }
            return None;
        };
        let kept = self.kept.clone();
        let bytes = answer.len() + settling.body.as_ref().map_or(0, Bytes::len);
        let (ready, mut settled) = tokio::sync::oneshot::channel();
        let work = self.kept.0.control.spawn(async move {
            let _slot = slot;
            let Made { row, instead } = aside(bytes, move || settling.make(&answer)).await;
            // It is of use even if it comes to nothing with the row.
            let _ = ready.send(instead);
            match row {
                None => {}
                Some(Err(why)) => kept.lose("", &why),
                Some(Ok(row)) => match kept.0.store.keep_response(&row).await {
                    Ok(true) => {}
                    Ok(false) => kept.lose(&row.id, "its id is that of another caller's answer"),
                    Err(error) => kept.lose(&row.id, &error.to_string()),
                },
            }
        });
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.kept.lose("", "what keeps it panicked"),
            Err(_) => self
                .kept
                .lose("", "the database took too long; it may still be kept later"),
        }
        settled.try_recv().ok().flatten()
    }
}

/// Where a stream is in its count of events.
#[derive(Default)]
pub(super) struct Count {
    /// The last frames that had numbers. They are looked into when a number is needed, which is seldom.
    last: Option<Bytes>,
}

impl Count {
    /// The number of this piece, if it is one that the gateway makes itself.
    pub(super) fn next(&mut self, piece: &Piece) -> u64 {
        match piece {
            Piece::Frames(frames) => {
                if memmem::find(frames, b"\"sequence_number\"").is_some() {
                    self.last = Some(frames.clone());
                }
                0
            }
            Piece::Heartbeat => 0,
            Piece::Failed(_) => self.last.as_ref().and_then(last_number).map_or(0, |last| last + 1),
        }
    }
}

fn last_number(frames: &Bytes) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        sequence_number: u64,
    }
    let mut framer = sse::Framer::default();
    let block = framer.push(frames.clone()).ok()?;
    let rest = framer.finish();
    let number = |block: &sse::Block, frame: &sse::Frame| {
        let data = sse::data(block.bytes.get(frame.range.clone())?)?;
        let numbered: Numbered = serde_json::from_slice(&data).ok()?;
        Some(numbered.sequence_number)
    };
    [rest, block]
        .iter()
        .find_map(|block| block.frames.iter().rev().find_map(|frame| number(block, frame)))
}

const ENDS: [&str; 2] = ["response.completed", "response.incomplete"];

/// Cheaply: whether the end of an answer may be in there.
fn may_end(bytes: &[u8]) -> bool {
    let has = |end: &[u8]| memmem::find(bytes, end).is_some();
    has(b"\"response.completed\"") || has(b"\"response.incomplete\"")
}

/// The frame with the event that has the whole answer in it.
struct Last {
    range: Range<usize>,
    name: Option<Vec<u8>>,
    event: Map<String, Value>,
}

impl Last {
    fn find(frames: &Bytes) -> Option<Self> {
        let mut framer = sse::Framer::default();
        let block = framer.push(frames.clone()).ok()?;
        // The last one may come without its blank line.
        let rest = framer.finish();
        [block, rest].iter().find_map(|block| {
            let of_frame = |frame: &sse::Frame| Self::of(block.bytes.get(frame.range.clone())?, frames);
            block.frames.iter().find_map(of_frame)
        })
    }

    fn of(frame: &[u8], frames: &[u8]) -> Option<Self> {
        let data = sse::data(frame).filter(|data| may_end(data))?;
        let event: Map<String, Value> = serde_json::from_slice(&data).ok()?;
        let kind = event.get("type")?.as_str()?;
        if !ENDS.contains(&kind) || !event.get("response")?.is_object() {
            return None;
        }
        let start = memmem::find(frames, frame)?;
        Some(Self {
            range: start..start + frame.len(),
            name: sse::event(frame).map(<[u8]>::to_vec),
            event,
        })
    }

    fn response(&self) -> Option<&Value> {
        self.event.get("response")
    }

    /// These frames with another answer in it.
    fn replaced(mut self, frames: &[u8], response: &[u8]) -> Option<Bytes> {
        let response = serde_json::from_slice(response).ok()?;
        self.event.insert("response".to_owned(), response);
        let data = serde_json::to_vec(&self.event).ok()?;
        let new = match &self.name {
            Some(name) => sse::event_frame(name, &data),
            None => sse::frame(&data),
        };
        let (before, after) = (frames.get(..self.range.start)?, frames.get(self.range.end..)?);
        Some([before, &new, after].concat().into())
    }
}

/// An answer that is to be kept.
struct Settling {
    owner: String,
    target: Option<String>,
    is_native: bool,
    previous: Option<String>,
    is_merged: bool,
    body: Option<Bytes>,
    at_ms: i64,
}

struct Made {
    /// Nothing, if it is not to be kept.
    row: Option<Result<ResponseRow, String>>,
    /// The answer as it is to go out, if that differs.
    instead: Option<Bytes>,
}

impl Settling {
    fn make(self, answer: &[u8]) -> Made {
        let mut response: Map<String, Value> = match serde_json::from_slice(answer) {
            Ok(response) => response,
            Err(error) => {
                return Made {
                    row: self.body.map(|_| Err(format!("it is no JSON object: {error}"))),
                    instead: None,
                };
            }
        };
        // Who was given the whole conversation did not know that it is one.
        let has_previous = response.get(PREVIOUS).is_some_and(|previous| !previous.is_null());
        let mut instead = None;
        if self.is_merged && !has_previous {
            response.insert(PREVIOUS.to_owned(), self.previous.clone().into());
            instead = serde_json::to_vec(&response).ok().map(Bytes::from);
        }
        let row = self.body.clone().map(|body| self.row(&body, response));
        Made { row, instead }
    }

    fn row(self, body: &Bytes, mut response: Map<String, Value>) -> Result<ResponseRow, String> {
        let text = |response: &Map<String, Value>, name: &str| {
            let text = response.get(name).and_then(Value::as_str).unwrap_or_default();
            text.to_owned()
        };
        let id = text(&response, "id");
        if id.is_empty() {
            return Err("it has no id".to_owned());
        }
        let output = match response.get_mut("output") {
            Some(output) => std::mem::replace(output, json!([])),
            None => json!([]),
        };
        let input = items(body).map_err(|error| error.message)?;
        let json = |value: Result<String, serde_json::Error>| value.map_err(|error| error.to_string());
        Ok(ResponseRow {
            id,
            owner: self.owner,
            target: self.target,
            is_native: self.is_native,
            model: text(&response, "model"),
            created_at_ms: self.at_ms,
            previous: self.previous,
            input: json(serde_json::to_string(&input))?,
            output: json(serde_json::to_string(&output))?,
            response: json(serde_json::to_string(&response))?,
            expires_at_ms: self.at_ms.saturating_add(KEPT_MS),
        })
    }
}

// === An answer that is there ===

/// A request about an answer.
struct About {
    principal: Principal,
    request_id: Arc<str>,
    /// How long the database may take.
    until: Option<Instant>,
}

/// A fresh bound: the upstream that was asked before may have taken all of the first.
fn from_now(state: &AppState) -> Option<Instant> {
    state.engine.deadline(Instant::now())
}

impl About {
    fn of(state: &AppState, request: &Request) -> Self {
        let extensions = request.extensions();
        Self {
            until: state.engine.deadline(Instant::now()),
            principal: extensions.get::<Principal>().cloned().unwrap_or_else(Principal::nobody),
            request_id: extensions
                .get::<RequestId>()
                .map_or_else(|| "".into(), |id| Arc::clone(&id.0)),
        }
    }

    /// Asks the target that made it.
    async fn ask(&self, state: &AppState, row: &ResponseRow, method: Method, path: &str) -> Result<Passed, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(target) = row.target.as_deref().and_then(|name| HeaderValue::from_str(name).ok()) {
            headers.insert(PROVIDER, target);
        }
        let request = Call {
            id: Arc::clone(&self.request_id),
            arrived: std::time::Instant::now(),
            arrived_at_ms: state.services.clock.now_ms(),
            upload: Duration::ZERO,
            caller: self.principal.caller(),
            surface: Surface::Responses,
            path: None,
            headers,
            body: Bytes::new(),
            thread: None,
        };
        let foreign = Foreign {
            request,
            method,
            path: format!("/responses/{path}"),
            spoken: false,
        };
        state.engine.pass_on(foreign).await
    }

    /// Asks the target that made it for the answer as it is now, keeps that, and gives it back.
    async fn renew(&self, state: &AppState, row: ResponseRow, method: Method, path: &str) -> Response {
        let passed = match self.ask(state, &row, method, path).await {
            Ok(passed) => passed,
            Err(failure) => return failed(&failure, Dialect::OpenAi),
        };
        if passed.status != StatusCode::OK {
            return foreign::respond(passed);
        }
        let body = axum::body::Body::from_stream(passed.body);
        let body = axum::body::to_bytes(body, LONGEST_ANSWER).await;
        let parsed = body
            .ok()
            .and_then(|body| serde_json::from_slice::<Map<String, Value>>(&body).ok());
        let Some(mut response) = parsed else {
            let message = "the upstream's answer about this response cannot be read";
            let code = "upstream_error";
            return Refusal::new(StatusCode::BAD_GATEWAY, "upstream_error", code, message).into_response();
        };
        response.insert("model".to_owned(), row.model.clone().into());
        let answer = Json(Value::Object(response.clone())).into_response();
        let output = response
            .get_mut("output")
            .map_or_else(|| json!([]), |output| std::mem::replace(output, json!([])));
        let row = ResponseRow {
            output: output.to_string(),
            response: Value::Object(response).to_string(),
            ..row
        };
        let inner = Arc::clone(&state.kept.0);
        let id = row.id.clone();
        match state
            .kept
            .ask(from_now(state), async move { inner.store.keep_response(&row).await })
            .await
        {
            Ok(_) => {}
            Err(refusal) => state.kept.lose(&id, &refusal.message),
        }
        answer
    }
}

/// The answer, whole.
fn whole(row: &ResponseRow) -> Result<Map<String, Value>, Refusal> {
    let broken = |error: serde_json::Error| {
        tracing::error!(response.id = row.id, %error, "a kept answer cannot be read");
        Refusal::internal()
    };
    let mut response: Map<String, Value> = serde_json::from_str(&row.response).map_err(broken)?;
    let output: Value = serde_json::from_str(&row.output).map_err(broken)?;
    response.insert("output".to_owned(), output);
    Ok(response)
}

/// It goes on at its vendor's.
fn is_under_way(row: &ResponseRow, response: &Map<String, Value>) -> bool {
    let status = response.get("status").and_then(Value::as_str);
    row.is_native && row.target.is_some() && matches!(status, Some("queued" | "in_progress"))
}

fn is_in_background(response: &Map<String, Value>) -> bool {
    response.get("background") == Some(&Value::Bool(true))
}

pub(super) async fn get(
    State(state): State<AppState>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refusal> {
    let about = About::of(&state, &request);
    let query = query.unwrap_or_default();
    if form_urlencoded::parse(query.as_bytes()).any(|(name, value)| name == "stream" && value == "true") {
        let message = "an answer that is kept is given whole; leave `stream` out";
        return Err(Refusal::invalid("unsupported_parameter", message).with_param("stream"));
    }
    let row = state.kept.response(&id, &about.principal, about.until).await?;
    let bytes = row.response.len() + row.output.len();
    let (row, response) = aside(bytes, move || whole(&row).map(|response| (row, response))).await?;
    if is_under_way(&row, &response) {
        let path = row.id.clone();
        return Ok(about.renew(&state, row, Method::GET, &path).await);
    }
    Ok(aside(bytes, move || Json(Value::Object(response)).into_response()).await)
}

pub(super) async fn delete(
    State(state): State<AppState>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let about = About::of(&state, &request);
    about.principal.must(Scope::Invoke)?;
    let row = state.kept.response(&id, &about.principal, about.until).await?;
    if row.is_native && row.target.is_some() {
        // There first: what is left there when it is gone here, nobody could delete any more.
        match about.ask(&state, &row, Method::DELETE, &row.id).await {
            Ok(passed) if passed.status.is_success() || passed.status == StatusCode::NOT_FOUND => {
                // Read to its end: what nobody reads counts as given up.
                let _ = axum::body::to_bytes(axum::body::Body::from_stream(passed.body), LARGE).await;
            }
            Ok(passed) => return Ok(foreign::respond(passed)),
            Err(failure) if failure.error.kind == Kind::ModelNotFound => tracing::warn!(
                response.id = row.id,
                target.name = row.target,
                "a kept answer is deleted here only: its target is no longer configured"
            ),
            Err(failure) => return Ok(failed(&failure, Dialect::OpenAi)),
        }
    }
    let (inner, owner, wanted) = (Arc::clone(&state.kept.0), Owner::of(&about.principal), id.clone());
    let question = async move {
        let now_ms = inner.clock.now_ms();
        inner.store.delete_response(&wanted, owner.whose(), now_ms).await
    };
    if !state.kept.ask(from_now(&state), question).await? {
        return Err(not_found(&id));
    }
    Ok(Json(json!({ "id": id, "object": "response.deleted", "deleted": true })).into_response())
}

pub(super) async fn cancel(
    State(state): State<AppState>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let about = About::of(&state, &request);
    about.principal.must(Scope::Invoke)?;
    let row = state.kept.response(&id, &about.principal, about.until).await?;
    let response = whole(&row)?;
    if !is_in_background(&response) {
        return Err(Refusal::invalid(
            "invalid_request",
            "Cannot cancel a synchronous response.",
        ));
    }
    if !is_under_way(&row, &response) {
        return Ok(Json(Value::Object(response)).into_response());
    }
    let path = format!("{}/cancel", row.id);
    Ok(about.renew(&state, row, Method::POST, &path).await)
}

/// Which part of a list of items.
#[derive(Debug, PartialEq, Eq)]
struct Listing {
    limit: usize,
    newest_first: bool,
    after: Option<String>,
    before: Option<String>,
}

impl Listing {
    fn read(query: &str) -> Result<Self, Refusal> {
        let wrong = |name: &str, must: &str| {
            Refusal::invalid("invalid_request", format!("`{name}` must be {must}")).with_param(name)
        };
        let mut listing = Self {
            limit: 20,
            newest_first: true,
            after: None,
            before: None,
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=100).contains(limit));
                    listing.limit = limit.ok_or_else(|| wrong("limit", "a number from 1 to 100"))?;
                }
                "order" => {
                    listing.newest_first = match &*value {
                        "asc" => false,
                        "desc" => true,
                        _ => return Err(wrong("order", "asc or desc")),
                    }
                }
                "after" => listing.after = Some(value.into_owned()),
                "before" => listing.before = Some(value.into_owned()),
                // What more is wanted of each item is in it already, if it is known.
                _ => {}
            }
        }
        Ok(listing)
    }

    fn page(self, mut items: Vec<Item>) -> Result<Value, Refusal> {
        if self.newest_first {
            items.reverse();
        }
        let id = |item: &Item| item.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let place = |name: &str, wanted: &str| {
            let unknown = || {
                let message = format!("`{name}` names no item of this list: {wanted}");
                Refusal::invalid("invalid_request", message).with_param(name)
            };
            items.iter().position(|item| id(item) == wanted).ok_or_else(unknown)
        };
        let start = self
            .after
            .as_deref()
            .map_or(Ok(0), |after| place("after", after).map(|at| at + 1))?;
        let end = self
            .before
            .as_deref()
            .map_or(Ok(items.len()), |before| place("before", before))?;
        let range = items.get(start..end.max(start)).unwrap_or_default();
        // Before something means right before it.
        let backwards = self.before.is_some() && self.after.is_none();
        let skipped = if backwards {
            range.len().saturating_sub(self.limit)
        } else {
            0
        };
        let page: Vec<&Item> = range.iter().skip(skipped).take(self.limit).collect();
        Ok(json!({
            "object": "list",
            "data": page,
            "first_id": page.first().map(|item| id(item)),
            "last_id": page.last().map(|item| id(item)),
            "has_more": page.len() < range.len(),
        }))
    }
}

pub(super) async fn input_items(
    State(state): State<AppState>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refusal> {
    let about = About::of(&state, &request);
    let query = query.unwrap_or_default();
    let listing = Listing::read(&query)?;
    let row = state.kept.response(&id, &about.principal, about.until).await?;
    // One that was still taken may be the one that makes it too long to be carried on.
    let longest = LongestConversation {
        turns: LONGEST.turns + 1,
        bytes: u64::MAX >> 1,
    };
    let (found, _) = state
        .kept
        .conversation(&id, &Owner::of(&about.principal), longest, None, about.until)
        .await?;
    let Conversation::Found { turns, missing, .. } = found else {
        return Err(not_found(&id));
    };
    if missing.is_some() && row.is_native && row.target.is_some() {
        let path = format!("{}/input_items?{query}", row.id);
        return Ok(match about.ask(&state, &row, Method::GET, &path).await {
            Ok(passed) => foreign::respond(passed),
            Err(failure) => failed(&failure, Dialect::OpenAi),
        });
    }
    aside(length(&turns), move || {
        let items = said(&turns, false).map_err(|error| Refusal::from(&error))?;
        listing.page(items).map(|page| Json(page).into_response())
    })
    .await
}

/// How many tokens a call would have, about.
pub(super) async fn input_tokens(State(state): State<AppState>, request: Request) -> Result<Response, Refusal> {
    let about = About::of(&state, &request);
    about.principal.must(Scope::Invoke)?;
    let (parts, body) = request.into_parts();
    let most = state.engine.max_request_bytes();
    let counted = async {
        let body = read_body(&parts.headers, body, most).await?;
        let (body, begun) = enter(&state, &about.principal, body).await?;
        if let Some(only) = &begun.thread.native_only {
            return Err(only.error.clone());
        }
        let body = begun.thread.merged.clone().unwrap_or(body);
        aside(body.len(), move || {
            let call = switchyard_providers::Call::read(Surface::Responses, body, None, Origin::default())?;
            Ok(call.estimate_tokens())
        })
        .await
    };
    let tokens = counted.await.map_err(|error: Error| Refusal::from(&error))?;
    let answer = json!({ "object": "response.input_tokens", "input_tokens": tokens });
    Ok(Json(answer).into_response())
}

/// A conversation made shorter, which only a vendor can do: what comes of it is sealed. So it goes to a target that has Responses
/// itself, and to the one that made the earlier answer if the call goes on from one.
pub(super) async fn compact(State(state): State<AppState>, request: Request) -> Response {
    let about = About::of(&state, &request);
    if let Err(refusal) = about.principal.must(Scope::Invoke) {
        return refusal.into_response();
    }
    let (arrived, arrived_at_ms) = (std::time::Instant::now(), state.services.clock.now_ms());
    let (parts, body) = request.into_parts();
    let most = state.engine.max_request_bytes();
    let read = read_body(&parts.headers, body, most).await;
    let upload = arrived.elapsed();
    let entered = match read {
        Ok(body) => enter(&state, &about.principal, body).await,
        Err(error) => Err(error),
    };
    let mut call = Call {
        id: Arc::clone(&about.request_id),
        arrived,
        arrived_at_ms,
        upload,
        caller: about.principal.caller(),
        surface: Surface::Responses,
        path: None,
        headers: parts.headers,
        body: Bytes::new(),
        thread: None,
    };
    let (body, begun) = match entered {
        Ok(entered) => entered,
        Err(error) => return failed(&state.engine.refuse_foreign(&call, error), Dialect::OpenAi),
    };
    // Who has what was said before must be asked, unless it goes along.
    let maker = begun.thread.target.as_deref().filter(|_| begun.thread.merged.is_none());
    if let Some(maker) = maker.filter(|maker| state.engine.snapshot().has_target(maker))
        && !call.headers.contains_key(PROVIDER)
        && let Ok(maker) = HeaderValue::from_str(maker)
    {
        call.headers.insert(PROVIDER, maker);
    }
    call.body = begun.thread.merged.clone().unwrap_or(body);
    call.thread = Some(begun.thread());
    let foreign = Foreign {
        request: call,
        method: Method::POST,
        path: "/responses/compact".to_owned(),
        spoken: true,
    };
    match state.engine.pass_on(foreign).await {
        Ok(passed) => foreign::respond(passed),
        Err(failure) => failed(&failure, Dialect::OpenAi),
    }
}

/// Whether a path is one of these, however it is written. A vendor takes all of the gateway's callers for one,
/// so no such path goes there but in the name of whoever may see the answer.
pub(super) fn is_ours(path: &str) -> bool {
    let mut plain = path.split('?').next().unwrap_or_default().to_owned();
    for _ in 0..8 {
        let decoded = percent_encoding::percent_decode_str(&plain)
            .decode_utf8_lossy()
            .into_owned();
        if decoded == plain {
            break;
        }
        plain = decoded;
    }
    let mut segments = plain.split('/').map(str::trim).filter(|segment| !segment.is_empty());
    segments.next() == Some("v1")
        && segments
            .next()
            .is_some_and(|first| first.eq_ignore_ascii_case("responses"))
}

#[cfg(test)]
mod tests;
