//! The lines above the bodies.
//!
//! Where an answer's body ends is said twice over in HTTP/1.1, and two who understand it differently can be made to take a
//! part of one answer for the next. So whatever is ambiguous ends the connection with its answer, and what contradicts itself
//! is no answer at all.

use super::chunks::Chunks;
use crate::upstream::fault;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use std::mem::MaybeUninit;
use switchyard_engine::ports::TransportError;

const MOST_HEADERS: usize = 128;
/// Longest head that is waited for, in bytes.
const LONGEST: usize = 256 << 10;

/// How a request names where it goes.
#[derive(Clone, Copy)]
pub(in crate::upstream) struct Address<'a> {
    /// The whole address, or path and query.
    pub(in crate::upstream) target: &'a str,
    /// For a request that names no host itself.
    pub(in crate::upstream) host: &'a str,
}

/// The lines of a request.
pub(super) fn encode(request: &Request<Bytes>, address: Address<'_>) -> Bytes {
    let (headers, length) = (request.headers(), request.body().len());
    let mut out = Vec::with_capacity(512);
    let mut write = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
    let method = request.method();
    write(&[
        method.as_str().as_bytes(),
        b" ",
        address.target.as_bytes(),
        b" HTTP/1.1\r\n",
    ]);
    if !headers.contains_key(HOST) {
        write(&[b"host: ", address.host.as_bytes(), b"\r\n"]);
    }
    for (name, value) in headers {
        // How long the body is, is known here, and nowhere else.
        if name != CONTENT_LENGTH && name != TRANSFER_ENCODING {
            write(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
    }
    if length > 0 || matches!(*method, Method::POST | Method::PUT | Method::PATCH) {
        write(&[b"content-length: ", length.to_string().as_bytes(), b"\r\n"]);
    }
    write(&[b"\r\n"]);
    out.into()
}

/// The lines of an answer.
pub(super) struct Head {
    pub(super) response: Response<()>,
    pub(super) framing: Framing,
    /// The connection may be used again afterwards.
    pub(super) keeps: bool,
}

/// Where a body ends.
pub(super) enum Framing {
    /// After so many bytes more.
    Length(u64),
    Chunked(Chunks),
    /// With the connection.
    Close {
        over: bool,
    },
}

impl Head {
    /// A head and its length in bytes; `None` when it is not whole yet.
    pub(super) fn parse(bytes: &Bytes) -> Result<Option<(Self, usize)>, TransportError> {
        let mut lines = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let mut parsed = httparse::Response::new(&mut []);
        let status = httparse::ParserConfig::default()
            .parse_response_with_uninit_headers(&mut parsed, bytes, &mut lines)
            .map_err(|error| fault::cut(&format!("what came is no HTTP: {error}")))?;
        let httparse::Status::Complete(length) = status else {
            return if bytes.len() > LONGEST {
                Err(fault::cut("the answer's head does not end"))
            } else {
                Ok(None)
            };
        };
        let code = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
        let mut headers = HeaderMap::with_capacity(parsed.headers.len());
        for line in &*parsed.headers {
            let name = HeaderName::from_bytes(line.name.as_bytes());
            let value = HeaderValue::from_maybe_shared(bytes.slice_ref(line.value));
            let (Ok(name), Ok(value)) = (name, value) else {
                return Err(fault::cut("the answer's head has a line that is no header"));
            };
            headers.append(name, value);
        }
        let is_old = parsed.version == Some(0);
        let mut response = Response::new(());
        *response.status_mut() = code.ok_or_else(|| fault::cut("the answer has no status"))?;
        *response.version_mut() = if is_old { Version::HTTP_10 } else { Version::HTTP_11 };
        *response.headers_mut() = headers;
        let (framing, ends) = Framing::of(&response, is_old)?;
        let keeps = !ends && keeps(response.headers(), is_old);
        let head = Self {
            response,
            framing,
            keeps,
        };
        Ok(Some((head, length)))
    }

    /// Something is said before the answer itself.
    pub(super) fn is_interim(&self) -> bool {
        self.response.status().is_informational()
    }
}

fn keeps(headers: &HeaderMap, is_old: bool) -> bool {
    let mut words = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    if is_old {
        return words.any(|word| word.eq_ignore_ascii_case("keep-alive"));
    }
    !words.any(|word| word.eq_ignore_ascii_case("close"))
}

impl Framing {
    /// How this answer's body ends, and whether the connection must end with it.
    fn of(response: &Response<()>, is_old: bool) -> Result<(Self, bool), TransportError> {
        let (status, headers) = (response.status(), response.headers());
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(fault::cut("the upstream wants to speak something else than HTTP"));
        }
        if status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Ok((Self::Length(0), false));
        }
        let length = length(headers)?;
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter().peekable();
        if codings.peek().is_some() {
            if is_old {
                return Err(fault::cut(
                    "the answer is in a coding that its version of HTTP does not have",
                ));
            }
            let last = codings.last().and_then(|value| value.to_str().ok()?.rsplit(',').next());
            return Ok(match last.map(str::trim) {
                // Both: somebody on the way may go by the other.
                Some(coding) if coding.eq_ignore_ascii_case("chunked") => {
                    (Self::Chunked(Chunks::default()), length.is_some())
                }
                _ => (Self::Close { over: false }, true),
            });
        }
        Ok(match length {
            Some(length) => (Self::Length(length), false),
            None => (Self::Close { over: false }, true),
        })
    }

    /// There is no body, whatever length the head tells of it.
    pub(super) fn has_none(&mut self) {
        *self = Self::Length(0);
    }

    /// What of the framing made no sense.
    pub(super) fn wrong(&self) -> Option<&'static str> {
        match self {
            Self::Chunked(chunks) => chunks.wrong(),
            Self::Length(_) | Self::Close { .. } => None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.is_over(),
            Self::Close { over } => *over,
        }
    }

    /// What of these bytes is the body's, and how many of them belong to it or to its framing.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (Bytes, usize) {
        match self {
            Self::Chunked(chunks) => chunks.take(bytes),
            Self::Length(_) | Self::Close { .. } => {
                let used = self.count(bytes.len());
                (Bytes::copy_from_slice(&bytes[..used]), used)
            }
        }
    }

    /// The same, of bytes that need not be copied.
    pub(super) fn take_shared(&mut self, bytes: &Bytes) -> (Bytes, usize) {
        match self {
            Self::Chunked(chunks) => chunks.take(bytes),
            Self::Length(_) | Self::Close { .. } => {
                let used = self.count(bytes.len());
                (bytes.slice(..used), used)
            }
        }
    }

    fn count(&mut self, came: usize) -> usize {
        let Self::Length(left) = self else { return came };
        let used = usize::try_from(*left).map_or(came, |left| left.min(came));
        *left -= used as u64;
        used
    }

    /// The connection has ended.
    pub(super) fn closed(&mut self) -> Result<(), &'static str> {
        match self {
            Self::Close { over } => {
                *over = true;
                Ok(())
            }
            Self::Length(_) | Self::Chunked(_) => Err("it was closed before the end of the answer"),
        }
    }
}

/// What `Content-Length` says, in one line or in many that say the same.
fn length(headers: &HeaderMap) -> Result<Option<u64>, TransportError> {
    let mut length = None;
    let values = headers.get_all(CONTENT_LENGTH).iter();
    for word in values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')) {
        let word = word.trim_ascii();
        let digits = std::str::from_utf8(word)
            .ok()
            .filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        let said: Option<u64> = digits.and_then(|digits| digits.parse().ok());
        let said = said.ok_or_else(|| fault::cut("the answer has a length that is no number"))?;
        if length.is_some_and(|length| length != said) {
            return Err(fault::cut("the answer has two lengths"));
        }
        length = Some(said);
    }
    Ok(length)
}
