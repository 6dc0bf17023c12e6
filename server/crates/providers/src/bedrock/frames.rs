//! AWS's event stream: binary frames, each with headers, a payload and two checksums.
//!
//! A frame says how long it is in its first four bytes, so it is waited for as a whole, in however many pieces it comes, and
//! taken apart once. Where something else comes in place of a stream, a page or a piece of JSON, its first bytes make a length
//! that no frame has.

use aws_smithy_eventstream::frame::read_message_from;
use aws_smithy_types::event_stream::Message;
use bytes::{Bytes, BytesMut};

/// Shorter than its two lengths and its two checksums no frame is.
const SHORTEST: usize = 16;

/// The longest that is waited for, in bytes. The vendor's own bound is 16 MiB of payload and 128 KiB of headers.
const LONGEST: usize = (16 << 20) + (128 << 10) + SHORTEST;

/// As much of something else as is kept to be told.
const LONGEST_STRAY: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Frames {
    pending: BytesMut,
    /// What comes is no event stream.
    is_stray: bool,
    /// Some frames did.
    began: bool,
}

/// What is wrong with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Length,
    Checksum,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &Bytes) {
        if !self.is_stray || self.pending.len() < LONGEST_STRAY {
            self.pending.extend_from_slice(bytes);
        }
    }

    /// The next frame, if all of it is there.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Broken> {
        let Some(length) = self.pending.first_chunk().map(|length| u32::from_be_bytes(*length)) else {
            return Ok(None);
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if self.is_stray {
            return Ok(None);
        }
        if !(SHORTEST..=LONGEST).contains(&length) {
            if self.began {
                return Err(Broken::Length);
            }
            self.is_stray = true;
            return Ok(None);
        }
        if self.pending.len() < length {
            return Ok(None);
        }
        let mut frame = self.pending.split_to(length).freeze();
        self.began = true;
        read_message_from(&mut frame).map(Some).map_err(|_| Broken::Checksum)
    }

    /// What is left when the stream was closed.
    pub(super) fn rest(&self) -> &[u8] {
        &self.pending
    }
}

/// A header's text.
pub(super) fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let header = message.headers().iter().find(|header| header.name().as_str() == name)?;
    header.value().as_string().ok().map(|text| text.as_str())
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Broken, Frames, LONGEST, header};
    use aws_smithy_eventstream::frame::write_message_to;
    use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
    use bytes::Bytes;

    /// A frame with these headers.
    pub(in crate::bedrock) fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let mut message = Message::new(Bytes::copy_from_slice(payload.as_bytes()));
        for (name, value) in headers {
            let value = HeaderValue::String((*value).to_owned().into());
            message = message.add_header(Header::new((*name).to_owned(), value));
        }
        let mut out = Vec::new();
        write_message_to(&message, &mut out).unwrap();
        out
    }

    #[test]
    fn a_frame_is_waited_for_and_its_checksums_are_looked_at() {
        let whole = frame(&[(":event-type", "x")], "{}");
        for at in 0..whole.len() {
            let mut frames = Frames::default();
            frames.push(&Bytes::copy_from_slice(&whole[..at]));
            assert_eq!(frames.next(), Ok(None), "{at}");
            frames.push(&Bytes::copy_from_slice(&whole[at..]));
            let message = frames.next().unwrap().unwrap();
            assert_eq!(header(&message, ":event-type"), Some("x"));
            assert_eq!(frames.next(), Ok(None));
        }
        for at in 8..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            let mut frames = Frames::default();
            frames.push(&wrong.into());
            assert_eq!(frames.next(), Err(Broken::Checksum), "{at}");
        }
    }

    #[test]
    fn what_is_no_stream_is_kept_and_what_stops_being_one_is_broken() {
        for stray in ["{\"message\":\"no\"}", "<html>", "\0\0\0\u{1}"] {
            let mut frames = Frames::default();
            frames.push(&Bytes::from_static(stray.as_bytes()));
            assert_eq!(frames.next(), Ok(None));
            assert_eq!(frames.rest(), stray.as_bytes());
        }
        let mut frames = Frames::default();
        frames.push(&frame(&[], "{}").into());
        frames.push(&Bytes::from_static(b"{\"message\":\"no\"}"));
        assert!(frames.next().unwrap().is_some());
        assert_eq!(frames.next(), Err(Broken::Length));
        let mut endless = Frames::default();
        for _ in 0..100 {
            endless.push(&Bytes::from(vec![b'<'; 1 << 20]));
            assert_eq!(endless.next(), Ok(None));
        }
        assert!(endless.rest().len() < LONGEST);
    }
}
