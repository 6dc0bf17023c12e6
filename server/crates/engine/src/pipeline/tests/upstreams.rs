//! Upstreams that play what a test wrote for them, and remember what they were sent.

use crate::ports::{Transport, TransportError, TransportFault, UpstreamBody};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{StreamExt, unfold};
use http::{HeaderName, Request, Response, StatusCode};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::sleep;

pub(super) const ROLE: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
pub(super) const WORD: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n";
pub(super) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// Of chat and embeddings alike.
const WHOLE: &str = r#"{"model":"m","choices":[{"index":0}],"data":[{"index":0}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// Holds up whoever comes to it, until it is opened.
#[derive(Clone)]
pub(super) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(super) fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// For everybody, for good.
    pub(super) fn open(&self) {
        self.0.close();
    }

    /// For whoever has waited longest.
    pub(super) fn let_one_through(&self) {
        self.0.add_permits(1);
    }

    async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

#[derive(Clone)]
pub(super) enum Step {
    Wait(Duration),
    Hold(Gate),
    Say(String),
    Break(TransportFault),
    Panic,
}

impl Step {
    async fn play(self) -> Option<Result<Bytes, TransportError>> {
        match self {
            Self::Wait(wait) => {
                sleep(wait).await;
                None
            }
            Self::Hold(gate) => {
                gate.pass().await;
                None
            }
            Self::Say(text) => Some(Ok(Bytes::from(text))),
            Self::Break(kind) => Some(Err(TransportError {
                kind,
                message: "the script breaks the connection".to_owned(),
            })),
            Self::Panic => panic!("the script panics here, as it should"),
        }
    }
}

/// What an upstream does with one call.
#[derive(Clone)]
pub(super) struct Reply {
    before: Vec<Step>,
    status: u16,
    headers: Vec<(&'static str, String)>,
    /// Absent: a good answer, streamed where a stream is asked for.
    body: Option<Vec<Step>>,
}

/// A good answer, whatever was asked.
pub(super) fn ok() -> Reply {
    Reply {
        before: Vec::new(),
        status: 200,
        headers: Vec::new(),
        body: None,
    }
}

pub(super) fn says(status: u16, body: &str) -> Reply {
    Reply {
        status,
        body: Some(vec![Step::Say(body.to_owned())]),
        ..ok()
    }
}

pub(super) fn status(status: u16) -> Reply {
    says(status, "{}")
}

/// A refusal with an error object's code.
pub(super) fn refusal(status: u16, code: &str) -> Reply {
    says(
        status,
        &format!(r#"{{"error":{{"message":"said so","code":"{code}"}}}}"#),
    )
}

/// A 429, with `Retry-After` or without.
pub(super) fn limited(retry_after: Option<u64>) -> Reply {
    let reply = status(429);
    match retry_after {
        Some(seconds) => reply.header("retry-after", &seconds.to_string()),
        None => reply,
    }
}

/// A good answer that uses so many tokens in all.
pub(super) fn uses(tokens: u64) -> Reply {
    says(
        200,
        &WHOLE.replace("\"total_tokens\":2", &format!("\"total_tokens\":{tokens}")),
    )
}

/// Never answers.
pub(super) fn hangs() -> Reply {
    ok().held(&Gate::closed())
}

/// No connection.
pub(super) fn unreachable() -> Reply {
    Reply {
        before: vec![Step::Break(TransportFault::Connect)],
        ..ok()
    }
}

pub(super) fn panics() -> Reply {
    Reply {
        before: vec![Step::Panic],
        ..ok()
    }
}

/// A stream, step by step.
pub(super) fn streams(steps: impl IntoIterator<Item = Step>) -> Reply {
    Reply {
        body: Some(steps.into_iter().collect()),
        ..ok()
    }
}

pub(super) fn say(text: &str) -> Step {
    Step::Say(text.to_owned())
}

pub(super) fn wait(seconds: u64) -> Step {
    Step::Wait(Duration::from_secs(seconds))
}

impl Reply {
    /// Its head comes so many milliseconds later.
    pub(super) fn after_ms(mut self, ms: u64) -> Self {
        self.before.push(Step::Wait(Duration::from_millis(ms)));
        self
    }

    pub(super) fn after(self, seconds: u64) -> Self {
        self.after_ms(seconds * 1_000)
    }

    /// Its head waits for the gate.
    pub(super) fn held(mut self, gate: &Gate) -> Self {
        self.before.push(Step::Hold(gate.clone()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// One call as it went up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Without `.test`.
    pub(super) host: String,
    pub(super) path: String,
    /// The credential.
    pub(super) token: String,
    pub(super) body: String,
}

impl Sent {
    pub(super) fn model(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body["model"].as_str().unwrap().to_owned()
    }
}

type Standing = Arc<dyn Fn(usize) -> Reply + Send + Sync>;

/// Scripts by host, or by credential, which goes first. A listing of models has scripts of its own: `a/models`.
#[derive(Default)]
pub(super) struct Upstreams {
    scripts: Mutex<Scripts>,
    open: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Scripts {
    once: HashMap<String, VecDeque<Reply>>,
    standing: HashMap<String, Standing>,
    made: usize,
    calls: Vec<Sent>,
}

/// Counts a call for as long as it is open.
struct Opened(Arc<AtomicUsize>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Upstreams {
    /// From now on, unless there is something to be played once.
    pub(super) fn on(&self, who: &str, reply: Reply) {
        self.on_each(who, move |_| reply.clone());
    }

    /// The same, by the number of the call, counted over all hosts.
    pub(super) fn on_each(&self, who: &str, reply: impl Fn(usize) -> Reply + Send + Sync + 'static) {
        let standing: Standing = Arc::new(reply);
        self.scripts.lock().unwrap().standing.insert(who.to_owned(), standing);
    }

    /// One after the other, each once.
    pub(super) fn next(&self, who: &str, replies: impl IntoIterator<Item = Reply>) {
        let mut scripts = self.scripts.lock().unwrap();
        scripts.once.entry(who.to_owned()).or_default().extend(replies);
    }

    pub(super) fn take_calls(&self) -> Vec<Sent> {
        std::mem::take(&mut self.scripts.lock().unwrap().calls)
    }

    /// Calls that have neither ended nor been dropped.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn reply(&self, sent: Sent) -> Reply {
        let mut scripts = self.scripts.lock().unwrap();
        scripts.made += 1;
        let (number, lists) = (scripts.made, sent.path.ends_with("/models"));
        let suffix = if lists { "/models" } else { "" };
        let who = [format!("{}{suffix}", sent.token), format!("{}{suffix}", sent.host)];
        scripts.calls.push(sent);
        for who in &who {
            if let Some(reply) = scripts.once.get_mut(who).and_then(VecDeque::pop_front) {
                return reply;
            }
            if let Some(reply) = scripts.standing.get(who) {
                return reply(number);
            }
        }
        if lists { says(200, r#"{"data":[]}"#) } else { ok() }
    }
}

impl Transport for Upstreams {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<UpstreamBody>, TransportError>> {
        let token = request
            .headers()
            .get("authorization")
            .map(|value| value.to_str().unwrap());
        let sent = Sent {
            host: request.uri().host().unwrap().replace(".test", ""),
            path: request.uri().path().to_owned(),
            token: token.unwrap_or_default().replace("Bearer ", ""),
            body: String::from_utf8(request.body().to_vec()).unwrap(),
        };
        let streamed = sent.body.contains(r#""stream":true"#);
        let reply = self.reply(sent);
        self.open.fetch_add(1, Ordering::Relaxed);
        let open = Opened(Arc::clone(&self.open));
        Box::pin(async move {
            for step in reply.before {
                if let Some(Err(error)) = step.play().await {
                    return Err(error);
                }
            }
            let good = || match streamed {
                true => vec![say(WORD), say(STOP)],
                false => vec![say(WHOLE)],
            };
            let steps = VecDeque::from(reply.body.unwrap_or_else(good));
            let body = unfold((steps, open), |(mut steps, open)| async move {
                loop {
                    if let Some(frame) = steps.pop_front()?.play().await {
                        return Some((frame, (steps, open)));
                    }
                }
            });
            let mut response = Response::new(body.boxed());
            *response.status_mut() = StatusCode::from_u16(reply.status).unwrap();
            for (name, value) in reply.headers {
                response
                    .headers_mut()
                    .insert(HeaderName::from_static(name), value.parse().unwrap());
            }
            Ok(response)
        })
    }
}
