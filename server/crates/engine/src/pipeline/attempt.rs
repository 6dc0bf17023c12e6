//! Attempts: one call after the other, until one answers or the last failure is the answer.

use super::{Run, fail, relay};
use crate::ledger::{Started, clean};
use crate::ports::{TransportError, TransportFault, UpstreamBody};
use crate::request::{Answer, Body, Failure};
use crate::snapshot::{Link, Target};
use bytes::{Bytes, BytesMut};
use futures_util::stream::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::time::{Duration, SystemTime};
use switchyard_core::error::{Error, Kind};
use switchyard_core::retry::{Limits, Step, decide};
use switchyard_core::routing::TargetId;
use switchyard_core::usage::Usage;
use switchyard_providers::{End, StreamDecoder};
use tokio::time::{Instant, timeout, timeout_at};

/// Longest whole answer that is taken from an upstream, in bytes.
const LONGEST_ANSWER: usize = 50 << 20;
/// As much of a refusal as is read.
const LONGEST_REFUSAL: usize = 256 << 10;
/// Silence on a stream that counts as its failure.
pub(super) const IDLE: Duration = Duration::from_secs(120);

/// An attempt that brought an answer.
enum Success {
    Whole {
        body: Bytes,
        usage: Usage,
        headers: HeaderMap,
    },
    Stream {
        stream: Box<Opened>,
        headers: HeaderMap,
    },
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
    pub(super) async fn attempt_all(mut self, plan: Vec<TargetId>) -> Result<Answer, Failure> {
        let snapshot = std::sync::Arc::clone(&self.snapshot);
        let mut last = Error::new(Kind::NoTarget, "no target was left to try");
        'walk: for id in plan {
            let target = &snapshot.targets[id.0];
            let Ok(link) = &target.link else { continue };
            let mut number = 0;
            loop {
                number += 1;
                let model = target.upstream_model(&self.model);
                self.refusal_headers.clear();
                let started = self.ledger.begin_attempt(id, target, model);
                last = match self.attempt(target, link, &started).await {
                    Ok(success) => return Ok(self.answer(success, &started, target)),
                    Err(error) => clean(error, target),
                };
                self.ledger.attempt_failed(&started, &last);
                let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
                let limits = Limits {
                    policy: &target.retry,
                    failover_on: &snapshot.failover_on,
                    left,
                };
                let step = decide(&last, number, limits, &mut rand::rng());
                match step {
                    Step::Again(wait) => {
                        tokio::time::sleep(wait).await;
                        self.ledger.slept(wait);
                    }
                    Step::Next => break,
                    Step::Stop => break 'walk,
                }
            }
        }
        let headers = std::mem::take(&mut self.refusal_headers);
        Err(Failure {
            headers,
            ..fail(&mut self.ledger, last)
        })
    }

    /// One call. The request's deadline holds over it; the target's own bound holds inside.
    async fn attempt(&mut self, target: &Target, link: &Link, started: &Started) -> Result<Success, Error> {
        let deadline = self.deadline;
        let call = self.call_upstream(target, link, started);
        match deadline {
            None => call.await,
            Some(at) => timeout_at(at, call).await.unwrap_or_else(|_| {
                Err(Error::new(
                    Kind::Deadline,
                    "the gateway's request_timeout passed before an answer was there",
                ))
            }),
        }
    }

    async fn call_upstream(&mut self, target: &Target, link: &Link, started: &Started) -> Result<Success, Error> {
        let request = link.wire.encode(&self.call, started.model(), &self.headers)?;
        let renamed = started.model() != self.call.model;
        let bound = target.timeout;
        if self.call.stream {
            // Until its first content: a stream that has begun cannot be asked for elsewhere.
            return bounded(bound, target, async {
                let response = link.transport.send(request).await.map_err(broken)?;
                let whole = is_json(response.headers());
                let (headers, body) = self.head(link, response).await?;
                if whole {
                    let body = collect(body, LONGEST_ANSWER).await?;
                    link.wire.decode(&self.call, renamed, body)?;
                    return Err(Error::new(
                        Kind::BadAnswer,
                        "the upstream answered in one piece, and a stream was asked for",
                    ));
                }
                let stream = open(link.wire.decoder(&self.call, renamed), body).await?;
                Ok(Success::Stream {
                    stream: Box::new(stream),
                    headers,
                })
            })
            .await;
        }
        bounded(bound, target, async {
            let response = link.transport.send(request).await.map_err(broken)?;
            let (headers, body) = self.head(link, response).await?;
            let body = collect(body, LONGEST_ANSWER).await?;
            let reply = link.wire.decode(&self.call, renamed, body)?;
            Ok(Success::Whole {
                body: reply.body,
                usage: reply.usage,
                headers,
            })
        })
        .await
    }

    /// Takes the head; a status that is no success becomes what it means.
    async fn head(
        &mut self,
        link: &Link,
        response: http::Response<UpstreamBody>,
    ) -> Result<(HeaderMap, UpstreamBody), Error> {
        let (parts, body) = response.into_parts();
        self.ledger.attempt_status(parts.status.as_u16());
        if parts.status == StatusCode::OK {
            return Ok((come_back(&parts.headers), body));
        }
        self.refusal_headers = come_back(&parts.headers);
        let said = timeout(Duration::from_secs(15), collect_some(body))
            .await
            .unwrap_or_default();
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(self.clock.now_ms()).unwrap_or(0));
        Err(link.wire.failure(parts.status, &parts.headers, &said, now))
    }

    fn answer(mut self, success: Success, started: &Started, target: &Target) -> Answer {
        let attribution = self.ledger.shared().attribution();
        match success {
            Success::Whole { body, usage, headers } => {
                self.ledger.attempt_succeeded(started);
                let (overhead, waited) = self.ledger.head_ready();
                self.ledger.close_complete(usage);
                Answer {
                    attribution,
                    overhead,
                    waited,
                    headers,
                    body: Body::Whole(body),
                }
            }
            Success::Stream { stream, headers } => {
                self.ledger.committed(started, stream.content);
                let (overhead, waited) = self.ledger.head_ready();
                let name = target.name.clone();
                let body = Body::Stream(relay::relay(
                    *stream,
                    self.ledger,
                    name,
                    std::sync::Arc::clone(&self.snapshot),
                ));
                Answer {
                    attribution,
                    overhead,
                    waited,
                    headers,
                    body,
                }
            }
        }
    }
}

/// Reads until the stream brings content or ends well. Everything that fails before is a failed attempt.
async fn open(mut decoder: Box<dyn StreamDecoder>, mut body: UpstreamBody) -> Result<Opened, Error> {
    let mut ready = Vec::new();
    loop {
        let progress = match next(&mut body).await? {
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
pub(super) async fn next(body: &mut UpstreamBody) -> Result<Option<Bytes>, Error> {
    match timeout(IDLE, body.next()).await {
        Ok(frame) => frame
            .transpose()
            .map_err(|error| Error::new(Kind::Cut, format!("the stream broke off: {error}"))),
        Err(_) => Err(Error::new(
            Kind::Timeout,
            format!("the upstream said nothing for {} s", IDLE.as_secs()),
        )),
    }
}

async fn bounded<T>(
    bound: Option<Duration>,
    target: &Target,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let Some(bound) = bound else { return call.await };
    timeout(bound, call).await.unwrap_or_else(|_| {
        let message = format!(
            "{} did not answer within {:.1} s, as its target's timeout says",
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
async fn collect_some(mut body: UpstreamBody) -> Vec<u8> {
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

fn broken(error: TransportError) -> Error {
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
fn come_back(headers: &HeaderMap) -> HeaderMap {
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
