//! Server-sent events, as frames of bytes.
//!
//! The framer never copies a frame that arrived whole. It knows the three line ends, keeps a frame that is split at any
//! byte until the rest is there, and gives what is left at the end of a stream that forgot its last blank line.

use bytes::{Buf, Bytes, BytesMut};
use std::borrow::Cow;
use std::ops::Range;

/// Longest frame that is waited for, in bytes.
const LONGEST_FRAME: usize = 16 << 20;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Cuts a byte stream into frames. A frame ends behind its blank line.
#[derive(Debug, Default)]
pub struct Framer {
    pending: BytesMut,
    /// Where the line begins that has not ended yet.
    line: usize,
    /// Up to where that line was looked at: a long one that comes in many pieces is read once.
    seen: usize,
    started: bool,
}

/// Complete frames: the bytes that hold them and where each one stands.
#[derive(Debug, Default)]
pub struct Block {
    pub bytes: Bytes,
    pub frames: Vec<Range<usize>>,
}

/// A frame that does not end. What sends it is no event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endless;

impl Framer {
    /// # Errors
    /// When a frame has grown beyond all measure.
    pub fn push(&mut self, bytes: Bytes) -> Result<Block, Endless> {
        let Some(bytes) = self.without_bom(bytes) else {
            return Ok(Block::default());
        };
        let block = if self.pending.is_empty() {
            self.cut_arrived(&bytes)
        } else {
            self.cut_pending(&bytes)
        };
        if self.pending.len() > LONGEST_FRAME {
            Err(Endless)
        } else {
            Ok(block)
        }
    }

    /// A mark at the very beginning says nothing, in however many pieces it comes.
    fn without_bom(&mut self, bytes: Bytes) -> Option<Bytes> {
        if self.started {
            return Some(bytes);
        }
        self.pending.extend_from_slice(&bytes);
        if self.pending.len() < BOM.len() && BOM.starts_with(&self.pending) {
            return None;
        }
        self.started = true;
        let mut all = self.pending.split().freeze();
        if all.starts_with(BOM) {
            all.advance(BOM.len());
        }
        Some(all)
    }

    /// Nothing waits: whole frames go on as the slice that they are.
    fn cut_arrived(&mut self, bytes: &Bytes) -> Block {
        let cut = cut(bytes, 0, 0);
        let end = cut.frames.last().map_or(0, |frame| frame.end);
        self.pending.extend_from_slice(&bytes[end..]);
        (self.line, self.seen) = (cut.line - end, cut.seen - end);
        Block {
            bytes: bytes.slice(..end),
            frames: cut.frames,
        }
    }

    fn cut_pending(&mut self, bytes: &[u8]) -> Block {
        self.pending.extend_from_slice(bytes);
        let cut = cut(&self.pending, self.line, self.seen);
        let end = cut.frames.last().map_or(0, |frame| frame.end);
        (self.line, self.seen) = (cut.line - end, cut.seen - end);
        Block {
            bytes: self.pending.split_to(end).freeze(),
            frames: cut.frames,
        }
    }

    /// The rest, as a last frame, when the stream ended without a blank line.
    pub fn finish(&mut self) -> Block {
        let bytes = self.pending.split().freeze();
        (self.line, self.seen) = (0, 0);
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Block::default();
        }
        let whole = 0..bytes.len();
        Block {
            bytes,
            frames: Vec::from([whole]),
        }
    }
}

struct Cut {
    frames: Vec<Range<usize>>,
    line: usize,
    seen: usize,
}

/// Frames that end in `bytes`. The first unfinished line begins at `line`, and was looked at up to `seen`.
fn cut(bytes: &[u8], mut line: usize, seen: usize) -> Cut {
    let mut frames = Vec::new();
    let mut start = 0;
    let mut from = seen.max(line);
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &bytes[from..]) {
        let at = from + found;
        let after = match (bytes[at], bytes.get(at + 1)) {
            (b'\n', _) => at + 1,
            (_, Some(b'\n')) => at + 2,
            (_, Some(_)) => at + 1,
            // A carriage return at the very end: the line feed that belongs to it may still come.
            (_, None) => return Cut { frames, line, seen: at },
        };
        if at == line {
            frames.push(start..after);
            start = after;
        }
        line = after;
        from = after;
    }
    Cut {
        frames,
        line,
        seen: bytes.len(),
    }
}

/// The lines of a frame, without their ends.
fn lines(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = frame;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        let skip = if rest[end..].starts_with(b"\r\n") {
            2
        } else {
            usize::from(end < rest.len())
        };
        rest = &rest[end + skip..];
        Some(line)
    })
}

/// What a frame says: the lines of `data`, joined. `None` for comments and frames without data.
///
/// Some upstreams write a bare JSON object where a `data:` line belongs, above all when they fail. It is taken for one.
#[must_use]
pub fn data(frame: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut data: Option<Cow<'_, [u8]>> = None;
    for line in lines(frame) {
        let value = if let Some(value) = line.strip_prefix(b"data:") {
            value.strip_prefix(b" ").unwrap_or(value)
        } else if line == b"data" {
            b""
        } else if line.starts_with(b"{") {
            line
        } else {
            continue;
        };
        data = Some(match data {
            None => Cow::Borrowed(value),
            Some(so_far) => {
                let mut joined = so_far.into_owned();
                joined.push(b'\n');
                joined.extend_from_slice(value);
                Cow::Owned(joined)
            }
        });
    }
    data
}

/// The frame's `event`, where it has one.
#[must_use]
pub fn event(frame: &[u8]) -> Option<&[u8]> {
    lines(frame)
        .find_map(|line| line.strip_prefix(b"event:"))
        .map(<[u8]>::trim_ascii)
}

/// One frame. Each line of the data has a line of its own.
#[must_use]
pub fn frame(data: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(data.len() + 8);
    for line in data.split(|byte| *byte == b'\n') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.extend_from_slice(b"\n");
    }
    out.extend_from_slice(b"\n");
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::{Framer, data};
    use bytes::Bytes;
    use proptest::prelude::*;

    /// The data of every frame, fed in the given pieces.
    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut framer = Framer::default();
        let mut blocks: Vec<_> = pieces
            .iter()
            .map(|piece| framer.push(Bytes::copy_from_slice(piece)).unwrap())
            .collect();
        blocks.push(framer.finish());
        let said = |block: &super::Block| {
            block
                .frames
                .iter()
                .filter_map(|range| data(&block.bytes[range.clone()]).map(|d| String::from_utf8_lossy(&d).into_owned()))
                .collect::<Vec<_>>()
        };
        blocks.iter().flat_map(said).collect()
    }

    const ALL: &str = "\u{feff}: ping\n\nevent: x\nid: 7\nretry: 100\ndata: one\n\ndata:two\r\n\r\n:\n\ndata: thr\u{00e9}e\ndata:  more\r\r{\"error\":1}\n\ndata\n\ndata: last";

    #[test]
    fn comments_names_line_ends_and_a_missing_last_blank_line() {
        assert_eq!(
            read(&[ALL.as_bytes()]),
            ["one", "two", "thrée\n more", "{\"error\":1}", "", "last"]
        );
        assert_eq!(read(&[b""]), [""; 0]);
        assert_eq!(read(&[b"\n\n\r\n"]), [""; 0]);
    }

    #[test]
    fn a_frame_without_end_is_given_up_and_a_long_one_is_not() {
        let mut framer = Framer::default();
        let piece = Bytes::from(vec![b'x'; 1 << 20]);
        assert!((0..16).all(|_| framer.push(piece.clone()).is_ok()));
        assert!(framer.push(piece).is_err());
    }

    #[test]
    fn every_split_in_two_gives_the_same() {
        let whole = read(&[ALL.as_bytes()]);
        for at in 0..ALL.len() {
            let (a, b) = ALL.as_bytes().split_at(at);
            assert_eq!(read(&[a, b]), whole, "split at {at}");
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(cuts in prop::collection::vec(0..ALL.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for at in cuts {
                pieces.push(&ALL.as_bytes()[from..at]);
                from = at;
            }
            pieces.push(&ALL.as_bytes()[from..]);
            prop_assert_eq!(read(&pieces), read(&[ALL.as_bytes()]));
        }
    }
}
