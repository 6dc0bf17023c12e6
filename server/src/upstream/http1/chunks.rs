//! Bodies that come in chunks.
//!
//! Read byte by byte where it is about framing, in runs where it is about content. Nothing is kept between two reads but
//! the place in the grammar, so a chunk's head may be torn anywhere.

use bytes::{Bytes, BytesMut};

/// Longest line of framing, in bytes: a chunk's extensions, or all trailers.
const LONGEST_LINE: usize = 16 << 10;

#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    place: Place,
    /// Bytes of this chunk that are still to come.
    left: u64,
    /// Bytes of framing since the last content that say nothing to us.
    skipped: usize,
    wrong: Option<&'static str>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// The first digit of a size.
    #[default]
    Size,
    Digits,
    /// Spaces behind the size.
    Padding,
    Extension,
    SizeLf,
    Content,
    ContentCr,
    ContentLf,
    /// The beginning of a line behind the last chunk.
    Trailer,
    TrailerLine,
    TrailerLf,
    EndLf,
    Over,
}

impl Chunks {
    pub(super) fn is_over(&self) -> bool {
        self.place == Place::Over
    }

    /// What made no sense. What came before it is good.
    pub(super) fn wrong(&self) -> Option<&'static str> {
        self.wrong
    }

    /// The content in these bytes, and how many of them belong to the body.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (Bytes, usize) {
        let mut content = BytesMut::new();
        let mut at = 0;
        while at < bytes.len() && !self.is_over() && self.wrong.is_none() {
            if self.place == Place::Content {
                let rest = &bytes[at..];
                let run = usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
                if content.capacity() == 0 {
                    content.reserve(rest.len());
                }
                content.extend_from_slice(&rest[..run]);
                at += run;
                self.left -= run as u64;
                if self.left == 0 {
                    self.place = Place::ContentCr;
                }
                continue;
            }
            self.wrong = self.step(bytes[at]).err();
            at += 1;
        }
        (content.freeze(), at)
    }

    fn step(&mut self, byte: u8) -> Result<(), &'static str> {
        self.place = match (self.place, byte) {
            (Place::Size | Place::Digits, digit) if digit.is_ascii_hexdigit() => {
                if self.left >> 60 != 0 {
                    return Err("a chunk of the answer is longer than anything");
                }
                self.left = self.left << 4 | u64::from(hex(digit));
                Place::Digits
            }
            (Place::Digits | Place::Padding | Place::Extension, b'\r') => Place::SizeLf,
            (Place::Digits | Place::Padding, b' ' | b'\t') => self.skip(Place::Padding)?,
            (Place::Digits | Place::Padding, b';') => self.skip(Place::Extension)?,
            // A line feed alone would end the line for some and not for others.
            (Place::Extension, byte) if byte != b'\n' => self.skip(Place::Extension)?,
            (Place::SizeLf, b'\n') => {
                self.skipped = 0;
                if self.left == 0 { Place::Trailer } else { Place::Content }
            }
            (Place::ContentCr, b'\r') => Place::ContentLf,
            (Place::ContentLf, b'\n') => Place::Size,
            (Place::Trailer, b'\r') => Place::EndLf,
            (Place::TrailerLine, b'\r') => Place::TrailerLf,
            (Place::Trailer | Place::TrailerLine, byte) if byte != b'\n' => self.skip(Place::TrailerLine)?,
            (Place::TrailerLf, b'\n') => Place::Trailer,
            (Place::EndLf, b'\n') => Place::Over,
            _ => return Err("the answer's chunks make no sense"),
        };
        Ok(())
    }

    fn skip(&mut self, place: Place) -> Result<Place, &'static str> {
        self.skipped += 1;
        if self.skipped > LONGEST_LINE {
            return Err("the framing of the answer's chunks does not end");
        }
        Ok(place)
    }
}

const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::Chunks;
    use proptest::prelude::*;

    /// Content, and what was left over.
    fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), &'static str> {
        let (mut chunks, mut content, mut left) = (Chunks::default(), Vec::new(), 0);
        for piece in pieces {
            let (some, used) = chunks.take(piece);
            if let Some(wrong) = chunks.wrong() {
                return Err(wrong);
            }
            content.extend_from_slice(&some);
            left += piece.len() - used;
        }
        Ok((content, left, chunks.is_over()))
    }

    #[test]
    fn chunks_are_read_as_the_grammar_has_them() {
        for (body, want) in [
            ("0\r\n\r\n", Ok(("", 0, true))),
            ("5\r\nhello\r\n0\r\n\r\n", Ok(("hello", 0, true))),
            ("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\nmore", Ok(("hello!", 4, true))),
            (
                "05;a=\"b;c\"\r\nhello\r\n000\r\nx-a: b\r\nx-c: d\r\n\r\n",
                Ok(("hello", 0, true)),
            ),
            ("5 \t;a\r\nhello\r\n0 \r\n\r\n", Ok(("hello", 0, true))),
            ("A\r\n0123456789\r\n0\r\n\r\n", Ok(("0123456789", 0, true))),
            ("a\r\n0123456789", Ok(("0123456789", 0, false))),
            ("5\r\nhel", Ok(("hel", 0, false))),
            ("0\r\n", Ok(("", 0, false))),
        ] {
            let got = read(&[body.as_bytes()]);
            let got = got
                .as_ref()
                .map(|(content, left, over)| (std::str::from_utf8(content).unwrap(), *left, *over));
            assert_eq!(
                got,
                want.as_ref().map(|want| *want).map_err(|error: &&str| error),
                "{body:?}"
            );
        }
        for body in [
            "\r\n",
            "g\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "-1\r\n",
            "0x5\r\nhello",
            "5 5\r\nhello",
            "5;a\nhello",
            "0\r\nx: y\n\r\n",
            "0\r\n\n",
            "10000000000000000\r\n",
            "ffffffffffffffffff\r\n",
        ] {
            assert!(read(&[body.as_bytes()]).is_err(), "{body:?}");
        }
        assert!(read(&[format!("5;{}\r\n", "a".repeat(20_000)).as_bytes()]).is_err());
        assert!(read(&[format!("0\r\n{}", "a: b\r\n".repeat(5_000)).as_bytes()]).is_err());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_they_are_torn(sizes in prop::collection::vec(1_usize..40, 0..8), cuts in prop::collection::vec(0_usize..400, 0..12)) {
            let mut body = Vec::new();
            let mut content = Vec::new();
            for (i, size) in sizes.iter().enumerate() {
                let part = vec![b'a' + u8::try_from(i).unwrap(); *size];
                body.extend_from_slice(format!("{size:x}\r\n").as_bytes());
                body.extend_from_slice(&part);
                body.extend_from_slice(b"\r\n");
                content.extend_from_slice(&part);
            }
            body.extend_from_slice(b"0\r\n\r\n");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (body.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&body[from..cut]);
                from = cut;
            }
            pieces.push(&body[from..]);
            prop_assert_eq!(read(&pieces), Ok((content, 0, true)));
        }
    }
}
