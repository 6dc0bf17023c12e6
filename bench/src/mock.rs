//! The upstream: hyper alone, one thread, answers made beforehand.
//!
//! Every answer says in its first bytes how long the mock itself held the request (`upstream_us`). A client takes that
//! from what it measured, and what is left is the way there and back: the mock's timers are good to a millisecond, and no
//! proxy could be seen through them.

use crate::script::Script;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// Contents made beforehand; longer streams begin again.
const WORDS: usize = 512;
/// Wait after a failed accept, as when all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What an answer begins with, up to how long it was held. The rest stands in [`WHOLE`] and [`CHUNK`].
const HELD: &str = "{\"upstream_us\":";
const WHOLE: &str = concat!(
    r#","id":"chatcmpl-bench0001","object":"chat.completion","created":1764460800,"model":"bench-2025-01-01","choices":"#,
    r#"[{"index":0,"message":{"role":"assistant","content":"The quick brown fox jumps over the lazy dog near the river "#,
    r#"bank while the sun sets slowly.","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":"#,
    r#"{"prompt_tokens":42,"completion_tokens":20,"total_tokens":62,"prompt_tokens_details":{"cached_tokens":0},"#,
    r#""completion_tokens_details":{"reasoning_tokens":0}},"service_tier":"default","system_fingerprint":"fp_bench"}"#,
);
const CHUNK: &str = concat!(
    r#""id":"chatcmpl-bench0001","object":"chat.completion.chunk","created":1764460800,"#,
    r#""model":"bench-2025-01-01","system_fingerprint":"fp_bench","choices":["#,
);

#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 9100)]
    port: u16,
}

pub(crate) async fn serve(options: &Options) -> anyhow::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port))).await?;
    let words: Words = (0..WORDS)
        .map(|number| Bytes::from(content(&format!(r#"{{"content":" word{number}"}}"#), "null")))
        .collect();
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                tokio::task::spawn_local(connection(socket, Rc::clone(&words)));
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn connection(socket: TcpStream, words: Words) {
    // Without it the last piece of a stream waits for an acknowledgement.
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Rc::clone(&words)));
    // A connection that breaks is its client's business.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

async fn answer(request: Request<Incoming>, words: Words) -> Result<Response<Answer>, Infallible> {
    let Ok(body) = request.into_body().collect().await else {
        let mut broken = Response::new(Answer::Whole(None));
        *broken.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(broken);
    };
    let arrived = Instant::now();
    let (script, stream) = Script::of_body(&body.to_bytes());
    if !script.delay.is_zero() {
        sleep(script.delay).await;
    }
    let held = arrived.elapsed().as_micros();
    let (kind, answer) = if stream {
        ("text/event-stream", Answer::Stream(Stream::new(&script, held, words)))
    } else {
        let whole = format!("{HELD}{held}{WHOLE}");
        ("application/json", Answer::Whole(Some(whole.into())))
    };
    let mut response = Response::new(answer);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert("x-request-id", HeaderValue::from_static("req_bench"));
    Ok(response)
}

// === Bodies ===

/// Frames of a stream between its first and its last.
type Words = Rc<[Bytes]>;

enum Answer {
    Whole(Option<Bytes>),
    Stream(Stream),
}

struct Stream {
    first: Option<Bytes>,
    words: Words,
    /// Contents sent, and how many there are.
    sent: usize,
    chunks: usize,
    hold: bool,
    pause: Option<(Duration, Pin<Box<Sleep>>)>,
    ended: bool,
}

impl Stream {
    fn new(script: &Script, held: u128, words: Words) -> Self {
        let role = choice(r#"{"role":"assistant","content":""}"#, "null");
        let pause = (!script.pace.is_zero()).then(|| (script.pace, Box::pin(sleep(script.pace))));
        Self {
            first: Some(format!("data: {HELD}{held},{CHUNK}{role}]}}\n\n").into()),
            words,
            sent: 0,
            chunks: if script.hold { 1 } else { script.chunks },
            hold: script.hold,
            pause,
            ended: false,
        }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if self.sent == self.chunks {
            if self.hold {
                return Poll::Pending;
            }
            let last = (!self.ended).then(|| ending(self.chunks).into());
            self.ended = true;
            return Poll::Ready(last);
        }
        // The first content stands right behind the role.
        if let Some((pace, timer)) = self.pause.as_mut().filter(|_| self.sent > 0) {
            ready!(timer.as_mut().poll(context));
            let next = timer.deadline() + *pace;
            timer.as_mut().reset(next);
        }
        let word = self.words.get(self.sent % self.words.len()).cloned();
        self.sent += 1;
        Poll::Ready(word)
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Self::Whole(whole) => whole.take(),
            Self::Stream(stream) => ready!(stream.poll_next(context)),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Whole(whole) => http_body::SizeHint::with_exact(whole.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(_) => http_body::SizeHint::default(),
        }
    }
}

fn choice(delta: &str, finish: &str) -> String {
    format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}"#)
}

fn content(delta: &str, finish: &str) -> String {
    format!("data: {{{CHUNK}{}]}}\n\n", choice(delta, finish))
}

/// Finish, usage, and the mark of the end.
fn ending(chunks: usize) -> String {
    let finish = content("{}", "\"stop\"");
    let total = chunks + 42;
    format!(
        "{finish}data: {{{CHUNK}],\"usage\":{{\"prompt_tokens\":42,\"completion_tokens\":{chunks},\"total_tokens\":{total}}}}}\n\n\
         data: [DONE]\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::{Answer, HELD, Stream, WHOLE, content};
    use crate::script::Script;
    use bytes::Bytes;
    use http_body_util::BodyExt as _;

    #[test]
    fn a_whole_answer_is_json() {
        let whole: serde_json::Value = serde_json::from_str(&format!("{HELD}7{WHOLE}")).unwrap();
        assert_eq!(whole["upstream_us"], 7);
        assert_eq!(whole["usage"]["total_tokens"], 62);
    }

    #[tokio::test]
    async fn a_stream_has_its_chunks_and_an_end() {
        let words = vec![Bytes::from(content(r#"{"content":" word"}"#, "null"))].into();
        let stream = Stream::new(&Script::parse("bench-chunks=3"), 7, words);
        let body = Answer::Stream(stream).collect().await.unwrap().to_bytes();
        let events: Vec<&str> = std::str::from_utf8(&body).unwrap().split_terminator("\n\n").collect();
        assert_eq!(events.len(), 1 + 3 + 3);
        for event in &events[..6] {
            let json: serde_json::Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
            assert!(json["choices"].is_array(), "{event}");
        }
        assert!(events[0].contains("\"upstream_us\":7"));
        assert_eq!(events[6], "data: [DONE]");
    }
}
