//! Server-sent events, as frames of bytes.
//!
//! The framer never copies a frame that arrived whole. It knows the three line ends, keeps a frame that is split at any
//! byte until the rest is there, and gives what is left at the end of a stream that forgot its last blank line. Nearly all
//! frames are one line of data and a blank one, so the framer notes where that line ends and nobody looks for it again.

use bytes::{Buf, Bytes, BytesMut};
use std::borrow::Cow;
use std::mem;
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
    /// Room for the frames of the next block, if somebody gave it back.
    room: Vec<Frame>,
}

/// Complete frames: the bytes that hold them and where each one stands.
#[derive(Debug, Default)]
pub struct Block {
    pub bytes: Bytes,
    pub frames: Vec<Frame>,
}

/// Where a frame stands in its block, line ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub range: Range<usize>,
    /// Where the one line ends that it has besides the blank one, if the framer knows that there are no others.
    line_end: Option<usize>,
}

impl Frame {
    /// Its one line besides the blank one, if the framer knows that there are no others. Only [`value`] is to be asked of it.
    #[must_use]
    pub fn only_line<'a>(&self, block: &'a [u8]) -> Option<&'a [u8]> {
        block.get(self.range.start..self.line_end?)
    }
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
            self.cut_arrived(bytes)
        } else {
            self.cut_pending(&bytes)
        };
        if self.pending.len() > LONGEST_FRAME {
            Err(Endless)
        } else {
            Ok(block)
        }
    }

    /// Takes a block back whose frames were read, to make the next one without asking for memory.
    pub fn reuse(&mut self, block: Block) {
        self.room = block.frames;
        self.room.clear();
    }

    /// A mark at the very beginning says nothing, in however many pieces it comes.
    fn without_bom(&mut self, mut bytes: Bytes) -> Option<Bytes> {
        if self.started {
            return Some(bytes);
        }
        if !self.pending.is_empty() || bytes.len() < BOM.len() {
            self.pending.extend_from_slice(&bytes);
            if self.pending.len() < BOM.len() && BOM.starts_with(&self.pending) {
                return None;
            }
            bytes = self.pending.split().freeze();
        }
        self.started = true;
        if bytes.starts_with(BOM) {
            bytes.advance(BOM.len());
        }
        Some(bytes)
    }

    /// Nothing waits: whole frames go on as the slice that they are.
    fn cut_arrived(&mut self, mut bytes: Bytes) -> Block {
        let mut frames = mem::take(&mut self.room);
        let cut = cut(&bytes, 0, 0, &mut frames);
        (self.line, self.seen) = (cut.line - cut.end, cut.seen - cut.end);
        if cut.end < bytes.len() {
            self.pending.extend_from_slice(&bytes[cut.end..]);
            bytes.truncate(cut.end);
        }
        Block { bytes, frames }
    }

    fn cut_pending(&mut self, bytes: &[u8]) -> Block {
        self.pending.extend_from_slice(bytes);
        let mut frames = mem::take(&mut self.room);
        let cut = cut(&self.pending, self.line, self.seen, &mut frames);
        (self.line, self.seen) = (cut.line - cut.end, cut.seen - cut.end);
        Block {
            bytes: self.pending.split_to(cut.end).freeze(),
            frames,
        }
    }

    /// The rest, as a last frame, when the stream ended without a blank line.
    pub fn finish(&mut self) -> Block {
        let bytes = self.pending.split().freeze();
        (self.line, self.seen) = (0, 0);
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Block::default();
        }
        let whole = Frame {
            range: 0..bytes.len(),
            line_end: None,
        };
        Block {
            bytes,
            frames: Vec::from([whole]),
        }
    }
}

/// How far it was cut.
struct Cut {
    /// Where the last whole frame ends.
    end: usize,
    line: usize,
    seen: usize,
}

/// Frames that end in `bytes`. The first unfinished line begins at `line`, and was looked at up to `seen`.
fn cut(bytes: &[u8], mut line: usize, seen: usize, frames: &mut Vec<Frame>) -> Cut {
    if frames.capacity() == 0 {
        // A guess, and a word or two of content make frames that are longer than this.
        frames.reserve(bytes.len() / 128 + 1);
    }
    let mut end = 0;
    // Lines of the frame that ended; and where the last of them did, unless that was in an earlier piece.
    let (mut lines, mut line_end) = (usize::from(line > 0), None);
    let mut from = seen.max(line);
    while let Some(at) = line_feed(bytes, from) {
        let after = match (bytes[at], bytes.get(at + 1)) {
            (b'\n', _) => at + 1,
            (_, Some(b'\n')) => at + 2,
            (_, Some(_)) => at + 1,
            // A carriage return at the very end: the line feed that belongs to it may still come.
            (_, None) => return Cut { end, line, seen: at },
        };
        if at == line {
            frames.push(Frame {
                range: end..after,
                line_end: line_end.filter(|_| lines == 1),
            });
            end = after;
            (lines, line_end) = (0, None);
        } else {
            lines += 1;
            line_end = Some(at);
        }
        line = after;
        from = after;
    }
    Cut {
        end,
        line,
        seen: bytes.len(),
    }
}

/// Where the next line ends. Most ends of a line are followed by another one, for which nobody has to search.
fn line_feed(bytes: &[u8], from: usize) -> Option<usize> {
    match bytes.get(from)? {
        b'\n' | b'\r' => Some(from),
        _ => memchr::memchr2(b'\n', b'\r', &bytes[from..]).map(|found| from + found),
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
#[must_use]
pub fn data(frame: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut data: Option<Cow<'_, [u8]>> = None;
    for value in lines(frame).filter_map(value) {
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

/// What a line says, if it is one of data.
///
/// Some upstreams write a bare JSON object where a `data:` line belongs, above all when they fail. It is taken for one.
#[must_use]
pub fn value(line: &[u8]) -> Option<&[u8]> {
    if let Some(value) = line.strip_prefix(b"data:") {
        Some(value.strip_prefix(b" ").unwrap_or(value))
    } else if line == b"data" {
        Some(b"")
    } else {
        line.starts_with(b"{").then_some(line)
    }
}

/// The frame's `event`, where it has one.
#[must_use]
pub fn event(frame: &[u8]) -> Option<&[u8]> {
    lines(frame)
        .find_map(|line| line.strip_prefix(b"event:"))
        .map(<[u8]>::trim_ascii)
}

const NAME: &[u8] = b"data: ";

/// One frame. Each line of the data has a line of its own.
#[must_use]
pub fn frame(data: &[u8]) -> Bytes {
    frame_of(&[data])
}

/// The same, of an event that has a name.
#[must_use]
pub fn event_frame(event: &[u8], data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(event.len() + data.len() + 16);
    for piece in [b"event: ", event, b"\n", &frame(data)] {
        out.extend_from_slice(piece);
    }
    out.into()
}

/// One frame, of data that comes in pieces.
#[must_use]
pub fn frame_of(pieces: &[&[u8]]) -> Bytes {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut out = Vec::with_capacity(NAME.len() + length + 2);
    out.extend_from_slice(NAME);
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    if memchr::memchr(b'\n', &out).is_some() {
        out = with_names(&out);
    }
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// Every line after the first one begins with a name too.
fn with_names(first: &[u8]) -> Vec<u8> {
    let mut lines = first.split(|byte| *byte == b'\n');
    let mut out = lines.next().unwrap_or_default().to_vec();
    for line in lines {
        out.push(b'\n');
        out.extend_from_slice(NAME);
        out.extend_from_slice(line);
    }
    out
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
                .filter_map(|frame| {
                    data(&block.bytes[frame.range.clone()]).map(|d| String::from_utf8_lossy(&d).into_owned())
                })
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
