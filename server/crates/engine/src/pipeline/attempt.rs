//! Attempts: one call after the other, until one answers or the last failure is the answer.

use super::{Run, fail, relay};
use crate::aside::{LARGE, aside};
use crate::ledger::{Started, clean};
use crate::live::{Failed, Pass, now};
use crate::plan::{Plan, Reason};
use crate::ports::{TransportError, TransportFault, UpstreamBody};
use crate::request::{Answer, Body, Failure};
use crate::snapshot::{Access, Link, Target};
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{StreamExt, empty};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rand::Rng;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use switchyard_core::config::Asking;
use switchyard_core::error::{Error, Kind, Retry};
use switchyard_core::retry::{Limits, Step, decide};
use switchyard_core::routing::Leg;
use switchyard_providers::{Encoded, End, Reply, StreamDecoder, Task, Terms};
use tokio::time::{Instant, timeout, timeout_at};

/// Longest whole answer that is taken from an upstream, in bytes.
const LONGEST_ANSWER: usize = 50 << 20;
/// As much of a refusal as is read.
const LONGEST_REFUSAL: usize = 256 << 10;

/// A call that is on its way.
type Answering = BoxFuture<'static, Result<http::Response<UpstreamBody>, TransportError>>;

/// An attempt that brought an answer.
enum Success {
    Whole { reply: Reply, headers: HeaderMap },
    Stream { stream: Box<Opened>, headers: HeaderMap },
}

/// A stream that has brought its first content.
pub(super) struct Opened {
    pub(super) body: UpstreamBody,
    pub(super) decoder: Box<dyn StreamDecoder>,
    /// Frames that came before and with the first content.
    pub(super) ready: Vec<Bytes>,
    /// Set when the stream is over already.
    pub(super) end: Option<End>,
    /// There was content: not so in an answer that is whole and empty.
    pub(super) content: bool,
}

impl Run {
    /// Walks the plan until a target answers, or nobody is left, or a failure is the answer.
    #[expect(clippy::too_many_lines, reason = "one walk; its steps share what it knows so far")]
    pub(super) async fn attempt_all(mut self: Box<Self>, plan: Plan) -> Result<Answer, Failure> {
        let snapshot = Arc::clone(&self.snapshot);
        let mut last: Option<Error> = None;
        // The first that was not asked, and why not.
        let mut refused: Option<(&Leg, Error)> = None;
        'walk: for leg in &plan.legs {
            let target = &snapshot.targets[leg.target.0];
            let (Ok(link), Some(asking)) = (&target.link, snapshot.asking(leg)) else {
                continue;
            };
            let mut number = 0;
            // Credentials that this request has used up here.
            let mut spent: Vec<usize> = Vec::new();
            loop {
                // What is asked for after the time is over is asked for nobody.
                if self.left() == Some(Duration::ZERO) {
                    refused.get_or_insert_with(|| (leg, late()));
                    break 'walk;
                }
                self.ledger.would_ask(target, leg);
                let pass = match self.enter(target, link, leg, plan.tokens, &spent).await {
                    Ok(pass) => pass,
                    Err(error) => {
                        self.ledger.exclude(leg.target, self.reason(&error));
                        refused.get_or_insert((leg, error));
                        break;
                    }
                };
                let credential = pass.credential;
                let access = &link.accesses[credential];
                self.take_in_hand(target, link);
                if self.call.surface.task() == Task::Count
                    && let Some(reply) = access.wire.answer_here(&self.call)
                {
                    // Nobody is asked, so nothing is learned of the target.
                    pass.unsent();
                    let started = self.ledger.begin_attempt(target, leg, None);
                    let headers = HeaderMap::new();
                    return Ok(self.answer(Success::Whole { reply, headers }, &started, asking));
                }
                let encoded = if self.call.body.len() > LARGE {
                    Box::pin(self.encode_aside(leg, credential)).await
                } else {
                    access.wire.encode(&self.call, &leg.model, &self.headers, &self.terms())
                };
                let encoded = match encoded {
                    Ok(encoded) => encoded,
                    // It was never asked: its wire cannot say this, or has no token yet. Another's may.
                    Err(error) if error.kind.retry() != Retry::Never => {
                        pass.unsent();
                        self.ledger.exclude(leg.target, self.reason(&error));
                        refused.get_or_insert((leg, error));
                        break;
                    }
                    Err(error) => {
                        pass.unsent();
                        refused = Some((leg, error));
                        break 'walk;
                    }
                };
                number += 1;
                self.refusal_headers.clear();
                let started = self.ledger.begin_attempt(target, leg, Some(pass));
                let request = self.ledger.translated(encoded, self.snapshot.on_unsupported);
                let answer = link.transport.send(request);
                let error = match self.attempt(target, asking, access, &started, answer).await {
                    Ok(success) => return Ok(self.answer(success, &started, asking)),
                    Err(error) => clean(error, target),
                };
                let failed = self.ledger.attempt_failed(&started, &error);
                spent.push(credential);
                // A credential was at fault, and it has siblings: they are asked at once, and that is no retry. Nor is it one when
                // the target does not have what the call goes on from, and gets it told.
                let has_siblings = failed == Failed::Benched && spent.len() < link.accesses.len();
                if has_siblings || self.was_forgotten(&error) {
                    last = Some(error);
                    number -= 1;
                    continue;
                }
                let limits = Limits {
                    policy: &asking.retry,
                    failover_on: &snapshot.failover_on(plan.start, leg),
                    left: self.left(),
                };
                let mut step = decide(&error, number, limits, &mut rand::rng());
                // Nobody waits for a retry that would be refused here: it is as if the last one had been made.
                if matches!(step, Step::Again(wait) if target.live.refuses(plan.tokens, now() + wait)) {
                    step = decide(&error, u32::MAX, limits, &mut rand::rng());
                }
                last = Some(error);
                match step {
                    Step::Again(wait) => {
                        tokio::time::sleep(wait).await;
                        self.ledger.slept(wait);
                        spent.clear();
                    }
                    Step::Next => break,
                    Step::Stop => break 'walk,
                }
            }
        }
        let headers = std::mem::take(&mut self.refusal_headers);
        if let Some(leg) = refused.as_ref().map(|(leg, _)| *leg).or(plan.foremost.as_ref()) {
            self.ledger.would_ask(&snapshot.targets[leg.target.0], leg);
        }
        // What an upstream said goes before what the gateway would not ask.
        let error = last
            .or(plan.error)
            .or(refused.map(|(_, error)| error))
            .unwrap_or_else(|| Error::new(Kind::NoTarget, "no target was left to try"));
        Err(Failure {
            headers,
            ..fail(&mut self.ledger, error)
        })
    }

    /// Leave for one call: breaker, slot, quota, credential.
    async fn enter(
        &mut self,
        target: &Target,
        link: &Link,
        leg: &Leg,
        tokens: u64,
        spent: &[usize],
    ) -> Result<Pass, Error> {
        let began = Instant::now();
        let entered = target.live.admit(tokens, self.deadline).await;
        let waited = began.elapsed();
        // What was spent in a queue was waited for; the admission itself is the gateway's own work.
        if waited >= Duration::from_millis(1) {
            self.ledger.slept(waited);
        }
        let mut pass = entered?;
        if link.accesses.len() == 1 {
            pass.begin(0, &leg.model);
            return Ok(pass);
        }
        let usable = target.live.usable(now());
        let fresh: Vec<usize> = usable.iter().copied().filter(|i| !spent.contains(i)).collect();
        let credential = draw(link, if fresh.is_empty() { &usable } else { &fresh });
        pass.begin(credential, &leg.model);
        Ok(pass)
    }

    /// Until the request's deadline; `None` without one.
    fn left(&self) -> Option<Duration> {
        Some(self.deadline?.saturating_duration_since(Instant::now()))
    }

    /// Of the call as it came and the one with what was said before in it, the one that this target is to get.
    fn take_in_hand(&mut self, target: &Target, link: &Link) {
        let (Some(thread), Some(other)) = (&self.thread, &mut self.other) else {
            return;
        };
        let has_it = thread.target.as_deref() == Some(&*target.name) && link.speaks(self.call.surface);
        if (has_it && !self.forgotten) != self.as_it_came {
            std::mem::swap(&mut self.call, other);
            self.as_it_came = !self.as_it_came;
        }
    }

    /// Whether the target no longer has the answer that the call names. It may have been deleted there, or never been kept.
    fn was_forgotten(&mut self, error: &Error) -> bool {
        const NOT_FOUND: &str = "previous_response_not_found";
        if self.as_it_came && error.upstream_code.as_deref() == Some(NOT_FOUND) {
            self.forgotten = true;
            return true;
        }
        false
    }

    /// Writes the call for a target where that may take a while. It keeps what was read of it on the way.
    async fn encode_aside(&mut self, leg: &Leg, credential: usize) -> Result<Encoded, Error> {
        let (snapshot, model, target) = (Arc::clone(&self.snapshot), Arc::clone(&leg.model), leg.target);
        let (call, headers, terms) = (self.call.clone(), self.headers.clone(), self.terms());
        let work = move || {
            let link = snapshot
                .targets
                .get(target.0)
                .and_then(|target| target.link.as_ref().ok());
            let encoded = match link.and_then(|link| link.accesses.get(credential)) {
                Some(access) => access.wire.encode(&call, &model, &headers, &terms),
                None => Err(Error::new(Kind::Internal, "a credential is gone")),
            };
            (call, encoded)
        };
        let (call, encoded) = aside(self.call.body.len(), work).await;
        self.call = call;
        encoded
    }

    fn terms(&self) -> Terms {
        Terms {
            now: self.wall(),
            on_unsupported: self.snapshot.on_unsupported,
        }
    }

    /// The time of day.
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(self.clock.now_ms()).unwrap_or(0))
    }

    fn reason(&self, error: &Error) -> Reason {
        let ahead = error.retry_after.and_then(|wait| i64::try_from(wait.as_millis()).ok());
        Reason {
            text: error.message.clone().into(),
            until_ms: ahead.map(|ahead| self.clock.now_ms().saturating_add(ahead)),
        }
    }

    /// One call. The request's deadline holds over it; the target's own bounds hold inside.
    async fn attempt(
        &mut self,
        target: &Target,
        asking: &Asking,
        access: &Access,
        started: &Started,
        answer: Answering,
    ) -> Result<Success, Error> {
        let deadline = self.deadline;
        let call = pin!(self.call_upstream(target, asking, access, started, answer));
        match deadline {
            None => call.await,
            Some(at) => timeout_at(at, call).await.unwrap_or_else(|_| Err(late())),
        }
    }

    // Futures are pinned where they are made and lent from there: handed on by value, each would be copied at every step,
    // and would keep room at every step.

    async fn call_upstream(
        &mut self,
        target: &Target,
        asking: &Asking,
        access: &Access,
        started: &Started,
        answer: Answering,
    ) -> Result<Success, Error> {
        let model = started.model();
        if self.call.stream {
            // Until its first content: a stream that has begun cannot be asked for elsewhere.
            let begun = pin!(self.begin_stream(target, asking, access, model, answer));
            return bounded(asking.first_token_timeout, target, "first_token_timeout", begun).await;
        }
        let fetched = pin!(self.fetch(access, model, answer));
        bounded(asking.timeout, target, "timeout", fetched).await
    }

    /// A whole answer.
    async fn fetch(&mut self, access: &Access, model: &str, answer: Answering) -> Result<Success, Error> {
        let response = answer.await.map_err(broken)?;
        let (headers, body) = self.head(access, response).await?;
        let body = collect(body, LONGEST_ANSWER).await?;
        let reply = access.wire.decode(&self.call, model, body)?;
        Ok(Success::Whole { reply, headers })
    }

    /// A stream up to its first content.
    async fn begin_stream(
        &mut self,
        target: &Target,
        asking: &Asking,
        access: &Access,
        model: &str,
        answer: Answering,
    ) -> Result<Success, Error> {
        let (whole, headers, body) = {
            let head = pin!(async {
                let response = answer.await.map_err(broken)?;
                let whole = is_json(response.headers());
                let (headers, body) = self.head(access, response).await?;
                Ok((whole, headers, body))
            });
            bounded(asking.timeout, target, "timeout", head).await?
        };
        if whole {
            let body = Box::pin(collect(body, LONGEST_ANSWER));
            let body = bounded(Some(asking.idle_timeout), target, "idle_timeout", body).await?;
            access.wire.decode(&self.call, model, body)?;
            return Err(Error::new(
                Kind::BadAnswer,
                "the upstream answered in one piece, and a stream was asked for",
            ));
        }
        let stream = open(access.wire.decoder(&self.call, model), body, asking.idle_timeout).await?;
        Ok(Success::Stream {
            stream: Box::new(stream),
            headers,
        })
    }

    /// Takes the head; a status that is no success becomes what it means.
    async fn head(
        &mut self,
        access: &Access,
        response: http::Response<UpstreamBody>,
    ) -> Result<(HeaderMap, UpstreamBody), Error> {
        let (parts, body) = response.into_parts();
        self.ledger.attempt_status(parts.status.as_u16());
        if parts.status == StatusCode::OK {
            return Ok((come_back(&parts.headers), body));
        }
        self.refusal_headers = come_back(&parts.headers);
        let said = Box::pin(timeout(Duration::from_secs(15), collect_some(body)))
            .await
            .unwrap_or_default();
        Err(access.wire.failure(parts.status, &parts.headers, &said, self.wall()))
    }

    fn answer(mut self: Box<Self>, success: Success, started: &Started, asking: &Asking) -> Answer {
        let attribution = self.ledger.shared().attribution();
        if let (Some(thread), Some(target)) = (&self.thread, self.snapshot.targets.get(started.target().0)) {
            let is_native = target.link.as_ref().is_ok_and(|link| link.speaks(self.call.surface));
            thread.answer_from(Arc::clone(&target.name), is_native);
        }
        match success {
            Success::Whole { reply, headers } => {
                self.ledger.attempt_succeeded(started);
                let (overhead, waited) = self.ledger.head_ready();
                let notes = self.ledger.noted(Some(&reply.notes));
                self.ledger.close_complete(reply.usage);
                Answer {
                    attribution,
                    overhead,
                    waited,
                    headers,
                    notes,
                    body: Body::Whole(reply.body),
                }
            }
            Success::Stream { stream, headers } => {
                self.ledger.committed(started, stream.content);
                let (overhead, waited) = self.ledger.head_ready();
                let notes = self.ledger.noted(stream.decoder.notes());
                let body = Body::Stream(relay::relay(
                    *stream,
                    self.ledger,
                    started.target(),
                    asking.idle_timeout,
                    self.snapshot,
                ));
                Answer {
                    attribution,
                    overhead,
                    waited,
                    headers,
                    notes,
                    body,
                }
            }
        }
    }
}

fn late() -> Error {
    let message = "the gateway's request_timeout passed before an answer was there";
    Error::new(Kind::Deadline, message)
}

/// One of these credentials, drawn by weight.
fn draw(link: &Link, among: &[usize]) -> usize {
    if let [one] = among {
        return *one;
    }
    let weight = |i: &usize| link.accesses.get(*i).map_or(0.0, |access| access.weight);
    let total: f64 = among.iter().map(weight).sum();
    let mut at = rand::rng().random_range(0.0..1.0) * total;
    for i in among {
        at -= weight(i);
        if at < 0.0 {
            return *i;
        }
    }
    among.last().copied().unwrap_or(0)
}

/// Reads until the stream brings content or ends well. Everything that fails before is a failed attempt.
async fn open(mut decoder: Box<dyn StreamDecoder>, mut body: UpstreamBody, idle: Duration) -> Result<Opened, Error> {
    let mut ready = Vec::new();
    loop {
        let progress = match next(&mut body, idle).await? {
            Some(bytes) => decoder.push(bytes),
            None => decoder.finish(),
        };
        ready.extend(progress.out);
        match progress.end {
            Some(End::Failed(error)) if !progress.content => return Err(error),
            end @ Some(_) => {
                return Ok(Opened {
                    body,
                    decoder,
                    ready,
                    end,
                    content: progress.content,
                });
            }
            None if progress.content => {
                return Ok(Opened {
                    body,
                    decoder,
                    ready,
                    end: None,
                    content: true,
                });
            }
            None => {}
        }
    }
}

/// The next bytes of a stream; `None` at its end.
pub(super) async fn next(body: &mut UpstreamBody, idle: Duration) -> Result<Option<Bytes>, Error> {
    let Ok(frame) = timeout(idle, body.next()).await else {
        let message = format!("the upstream said nothing for {} s", idle.as_secs_f64());
        return Err(Error::new(Kind::Timeout, message));
    };
    if !matches!(frame, Some(Ok(_))) {
        // It is over, and may not be asked again.
        *body = empty().boxed();
    }
    frame
        .transpose()
        .map_err(|error| Error::new(Kind::Cut, format!("the stream broke off: {error}")))
}

async fn bounded<T>(
    bound: Option<Duration>,
    target: &Target,
    name: &str,
    call: impl Future<Output = Result<T, Error>> + Unpin,
) -> Result<T, Error> {
    let Some(bound) = bound else { return call.await };
    timeout(bound, call).await.unwrap_or_else(|_| {
        let message = format!(
            "{} did not answer within the {:.1} s of its {name}",
            target.name,
            bound.as_secs_f64()
        );
        Err(Error::new(Kind::Timeout, message))
    })
}

async fn collect(mut body: UpstreamBody, most: usize) -> Result<Bytes, Error> {
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    while let Some(frame) = body.next().await {
        let frame = frame.map_err(broken)?;
        if all.len() + frame.len() > most {
            return Err(Error::new(
                Kind::BadAnswer,
                format!("the upstream's answer is larger than {} MiB", most >> 20),
            ));
        }
        match first.take() {
            None if all.is_empty() => first = Some(frame),
            earlier => {
                all.extend_from_slice(&earlier.unwrap_or_default());
                all.extend_from_slice(&frame);
            }
        }
    }
    // Most answers come in one frame, and stay the bytes that they were.
    Ok(first.unwrap_or_else(|| all.freeze()))
}

/// As much of a refusal as comes.
pub(super) async fn collect_some(mut body: UpstreamBody) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(Ok(frame)) = body.next().await {
        let room = LONGEST_REFUSAL - all.len();
        all.extend_from_slice(&frame[..frame.len().min(room)]);
        if all.len() == LONGEST_REFUSAL {
            break;
        }
    }
    all
}

pub(super) fn broken(error: TransportError) -> Error {
    let kind = match error.kind {
        TransportFault::Connect => Kind::Connect,
        TransportFault::Timeout => Kind::Timeout,
        TransportFault::Broken => Kind::Broken,
    };
    Error::new(kind, error.message)
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    content_type.is_some_and(|content_type| content_type.starts_with("application/json"))
}

/// The upstream's headers that come back: its rate limits, and its own id for the request under a name of ours.
pub(super) fn come_back(headers: &HeaderMap) -> HeaderMap {
    const UPSTREAM_ID: HeaderName = HeaderName::from_static("x-gateway-upstream-request-id");
    let mut out = HeaderMap::new();
    for (name, value) in headers {
        if name.as_str().starts_with("x-ratelimit-") || name == http::header::RETRY_AFTER {
            out.append(name.clone(), value.clone());
        } else if name == "x-request-id" || name == "request-id" {
            out.insert(UPSTREAM_ID, HeaderValue::clone(value));
        }
    }
    out
}
