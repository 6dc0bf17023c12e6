//! One client: a connection, the request it repeats, and what it saw of each answer.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const PATH: &str = "/v1/chat/completions";
const HELD: &[u8] = b"\"upstream_us\":";
const END: &[u8] = b"[DONE]";
/// What a prompt is made of: text as people write it, with what JSON has to escape.
const PROSE: &str = "The switchyard lies where three lines meet.\nA train is \"humped\": pushed over a low hill, it falls \
                     apart into cars, and each finds its track by gravity alone. ";

#[derive(clap::Args, Clone)]
// Its name is that of the command's own options.
#[group(skip)]
pub(crate) struct Options {
    /// Where to ask: an address and a port
    #[arg(long)]
    to: SocketAddr,
    /// What the mock is to answer
    #[arg(long, default_value = "bench")]
    pub(crate) model: String,
    #[arg(long)]
    pub(crate) stream: bool,
    /// Bytes of the prompt
    #[arg(long, default_value_t = 200)]
    prompt: usize,
    /// A file with one key a line, taken in turn
    #[arg(long)]
    keys: Option<PathBuf>,
    /// Sent along, as `name: value`
    #[arg(long = "header")]
    headers: Vec<String>,
}

/// What every client sends.
pub(crate) struct Plan {
    to: SocketAddr,
    stream: bool,
    headers: HeaderMap,
    keys: Vec<HeaderValue>,
    turn: Cell<usize>,
    body: Bytes,
}

impl Plan {
    pub(crate) fn new(options: &Options) -> anyhow::Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, options.to.to_string().parse()?);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for line in &options.headers {
            let (name, value) = line.split_once(':').context("a header is written `name: value`")?;
            headers.insert(name.trim().parse::<header::HeaderName>()?, value.trim().parse()?);
        }
        let keys = match &options.keys {
            Some(file) => fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?,
            None => String::new(),
        };
        let keys = keys.lines().map(|key| HeaderValue::from_str(&format!("Bearer {key}")));
        Ok(Self {
            to: options.to,
            stream: options.stream,
            headers,
            keys: keys.collect::<Result<_, _>>()?,
            turn: Cell::new(0),
            body: body(&options.model, options.stream, options.prompt).into(),
        })
    }

    fn request(&self) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::post(PATH).body(Full::new(self.body.clone()))?;
        *request.headers_mut() = self.headers.clone();
        if !self.keys.is_empty() {
            let turn = self.turn.replace(self.turn.get() + 1);
            let key = self.keys.get(turn % self.keys.len()).cloned();
            request
                .headers_mut()
                .extend(key.map(|key| (header::AUTHORIZATION, key)));
        }
        Ok(request)
    }
}

fn body(model: &str, stream: bool, prompt: usize) -> String {
    let mut body = serde_json::json!({
        "model": model,
        "messages": [
            { "role": "system", "content": "You are a helpful assistant." },
            { "role": "user", "content": PROSE.chars().cycle().take(prompt).collect::<String>() },
        ],
        "max_tokens": 64,
        "temperature": 0.2,
    });
    if stream {
        body["stream"] = true.into();
        body["stream_options"] = serde_json::json!({ "include_usage": true });
    }
    body.to_string()
}

pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
}

/// Times from the request's sending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Until the first byte of the body.
    pub(crate) first: Duration,
    pub(crate) whole: Duration,
    /// Of both, the mock's own share.
    pub(crate) upstream: Duration,
}

impl Client {
    pub(crate) async fn connect(plan: &Plan) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(plan.to).await.context("connect")?;
        socket.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(socket)).await.context("connect")?;
        tokio::task::spawn_local(connection);
        Ok(Self { sender })
    }

    /// Sends a request that was due at `due`, and reads its answer to the end.
    pub(crate) async fn ask(&mut self, plan: &Plan, due: Instant) -> anyhow::Result<Seen> {
        let (mut body, first) = self.begin(plan).await?;
        let mut seen = Seen {
            first: due.elapsed(),
            whole: Duration::ZERO,
            upstream: held(&first),
        };
        let mut tail = first.to_vec();
        while let Some(frame) = body.frame().await {
            let frame = frame.context("the answer broke off")?;
            if let Some(data) = frame.data_ref() {
                tail.extend_from_slice(data);
                tail.drain(..tail.len().saturating_sub(2 * END.len()));
            }
        }
        seen.whole = due.elapsed();
        ensure!(
            !plan.stream || tail.windows(END.len()).any(|window| window == END),
            "the stream has no end"
        );
        Ok(seen)
    }

    /// Sends a request and waits for the first bytes of the answer's body.
    pub(crate) async fn begin(&mut self, plan: &Plan) -> anyhow::Result<(Incoming, Bytes)> {
        self.sender.ready().await.context("the connection was closed")?;
        let response = self.sender.send_request(plan.request()?).await.context("no answer")?;
        let status = response.status();
        let mut body = response.into_body();
        ensure!(status.is_success(), "status {status}");
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame.context("the answer broke off")?.into_data()
                && !data.is_empty()
            {
                return Ok((body, data));
            }
        }
        anyhow::bail!("an empty answer")
    }
}

/// What the mock says of itself.
fn held(first: &[u8]) -> Duration {
    let at = first.windows(HELD.len()).position(|window| window == HELD);
    let digits = at.and_then(|at| first.get(at + HELD.len()..)).unwrap_or_default();
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let micros = digits.fold(0, |number: u64, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::{body, held};
    use crate::script::Script;
    use std::time::Duration;

    #[test]
    fn the_mock_understands_what_is_sent() {
        let (script, stream) = Script::of_body(body("bench-chunks=7", true, 100_000).as_bytes());
        assert_eq!((script.chunks, stream), (7, true));
        assert!(!Script::of_body(body("bench", false, 10).as_bytes()).1);
    }

    #[test]
    fn the_mocks_share_is_read_from_the_answer() {
        assert_eq!(
            held(br#"data: {"upstream_us":60123,"id":1"#),
            Duration::from_micros(60_123)
        );
        assert_eq!(held(b"{}"), Duration::ZERO);
    }
}
