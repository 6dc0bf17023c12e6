//! The built-in provider that needs nobody: an upstream inside the binary, speaking OpenAI's wire.
//!
//! A gateway without a credential has nothing to show. `demo` lets everything above the transport be seen and tested
//! without one: routing, failover, streams, limits, the log. It stands *below* [`Transport`], not beside the pipeline,
//! so that what is shown is the real pipeline: a request goes in as bytes, a response comes out with a status, headers
//! and a body of paced frames, and the pipeline cannot tell it from a vendor.
//!
//! It never pretends. Every answer begins with `(simulated)`, every object carries `system_fingerprint: "simulated"`,
//! every error message says so.
//!
//! Each model is one behaviour that an operator wants to see the gateway cope with:
//!
//! | model | behaviour |
//! |---|---|
//! | `demo` | answers |
//! | `demo-slow` | answers, its first token after five seconds |
//! | `demo-flaky` | the second, fourth, … request fails with 500 |
//! | `demo-cut` | a stream breaks after some content; a unary call breaks instead of answering |
//! | `demo-429` | is over its rate limit: 429, `retry-after: 7` |
//! | `demo-embed` | embeds |
//!
//! The same request gets the same words at the same tempo. Only ids, `created` and `demo-flaky`'s turn differ between
//! two calls. Nothing is spawned: a body advances when it is polled, so dropping it is all there is to cancelling.

mod chat;
mod embeddings;
mod fields;
mod pace;
mod phrases;
mod refusal;
mod request;
mod schema;
mod stream;
mod text;
mod tokens;
mod tools;
mod wire;

#[cfg(test)]
mod tests;

pub use pace::Pace;

use crate::ports::{Clock, SystemClock, Transport, TransportError, TransportFault, UpstreamBody};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use refusal::Refusal;
use request::{ChatRequest, Model};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Names of the demo models, as `/models` lists them.
pub const MODELS: [&str; 6] = ["demo", "demo-slow", "demo-flaky", "demo-cut", "demo-429", "demo-embed"];

/// A simulated upstream. Answers by the end of the request's path, whatever the host: `/chat/completions`,
/// `/embeddings`, `/models`.
#[derive(Debug)]
pub struct DemoTransport {
    upstream: Arc<Upstream>,
}

#[derive(Debug)]
struct Upstream {
    pace: Pace,
    /// Requests so far; makes ids unique.
    requests: AtomicU64,
    /// Requests to `demo-flaky` so far.
    flaky: AtomicU64,
}

/// Why there is no ordinary answer.
enum Stop {
    Refused(Refusal),
    Broken,
}

/// What is not a function of the request: it tells two answers to the same question apart.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    serial: u64,
    /// Unix seconds.
    created: i64,
}

impl DemoTransport {
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        Self {
            upstream: Arc::new(Upstream {
                pace,
                requests: AtomicU64::new(0),
                flaky: AtomicU64::new(0),
            }),
        }
    }
}

impl Transport for DemoTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<UpstreamBody>, TransportError>> {
        let upstream = Arc::clone(&self.upstream);
        Box::pin(async move {
            match upstream.answer(&request).await {
                Ok(response) => Ok(response),
                Err(Stop::Refused(refusal)) => Ok(refusal.into_response()),
                Err(Stop::Broken) => Err(broken()),
            }
        })
    }
}

impl Upstream {
    async fn answer(&self, request: &Request<Bytes>) -> Result<Response<UpstreamBody>, Stop> {
        let path = request.uri().path();
        let served = [
            ("/chat/completions", Method::POST),
            ("/embeddings", Method::POST),
            ("/models", Method::GET),
        ];
        let Some((endpoint, method)) = served.into_iter().find(|(suffix, _)| path.ends_with(suffix)) else {
            return Err(Refusal::unknown_path(request.method(), path).into());
        };
        if request.method() != method {
            return Err(Refusal::wrong_method(request.method(), path).into());
        }
        let stamp = Stamp {
            serial: self.requests.fetch_add(1, Ordering::Relaxed) + 1,
            created: SystemClock.now_ms().div_euclid(1000),
        };
        match endpoint {
            "/chat/completions" => self.chat(request.body(), stamp).await,
            "/embeddings" => Ok(wire::json_response(&embeddings::answer(request.body())?)),
            _ => Ok(wire::json_response(&wire::ModelList::of(&MODELS, stamp.created))),
        }
    }

    async fn chat(&self, body: &[u8], stamp: Stamp) -> Result<Response<UpstreamBody>, Stop> {
        let request = ChatRequest::parse(body)?;
        self.refuse_by_model(request.model)?;
        let answer = chat::Answer::compose(&request, stamp);
        let mut tempo = self.pace.tempo(request.model, request.seed);
        let cut = request.model == Model::Cut;
        if request.stream {
            return Ok(stream::response(
                answer,
                tempo,
                stream::Options {
                    include_usage: request.include_usage,
                    cut,
                },
            ));
        }
        tempo.reach(answer.steps()).await;
        if cut {
            Err(Stop::Broken)
        } else {
            Ok(wire::json_response(&answer.unary()))
        }
    }

    /// The models that fail before they answer.
    fn refuse_by_model(&self, model: Model) -> Result<(), Refusal> {
        match model {
            Model::RateLimited => Err(Refusal::rate_limited()),
            Model::Flaky if self.flaky.fetch_add(1, Ordering::Relaxed) % 2 == 1 => Err(Refusal::server_error()),
            Model::Normal | Model::Slow | Model::Flaky | Model::Cut => Ok(()),
        }
    }
}

fn broken() -> TransportError {
    TransportError {
        kind: TransportFault::Broken,
        message: "connection reset (simulated)".to_owned(),
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
