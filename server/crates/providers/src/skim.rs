//! JSON, skimmed: checked to its last byte, and read only where somebody looks.
//!
//! A gateway needs five members of a document of a hundred thousand bytes, and has to know that the rest is JSON too. So a
//! [`Skim`] walks over a document once, from left to right, and says where things stand: nothing is copied, and nothing is
//! taken apart. Who wants to know what is inside a value goes into it instead of over it:
//!
//! ```text
//! let mut skim = Skim::new(document);
//! let (mut model, mut choices) = (None, 0);
//! skim.enter_object()?;
//! while let Some(key) = skim.key()? {
//!     match key {
//!         b"model" => skim.fill(&mut model, "model")?,
//!         b"choices" => {
//!             if skim.enter(b'[')? {
//!                 while skim.item()? {
//!                     skim.skip()?;
//!                     choices += 1;
//!                 }
//!             }
//!         }
//!         _ => skim.skip()?,
//!     }
//! }
//! skim.finish()?;
//! ```
//!
//! After each key and before each item exactly one value has to be read: by going over it, or by going into it and to its
//! end. Nothing of a document is known to be right before [`Skim::finish`] says so.
//!
//! # What is right
//!
//! What `serde_json` takes for JSON, with two differences. A document is UTF-8 everywhere, also in the texts that nobody
//! reads; and it is no more than [`DEEPEST`] levels deep, also where nobody goes in. Nothing here calls itself, so a document
//! of a million brackets is an error and no overflow of the stack. Half a surrogate pair, `\ud83d` alone, is JSON but no
//! text: it passes where it is skipped, and not in the keys and texts that are read.
//!
//! What is wrong with a document is not noted on the way. `serde_json` reads it again and says so: whoever sent it can wait
//! for that, and the others need not.
//!
//! # What makes it fast
//!
//! Nearly all bytes are inside texts, and texts are taken eight bytes at a time, long ones by the block; see
//! [`pass_blocks`] for what a block may hold. All three questions about a byte (does it end the text, is it forbidden, is it
//! more than ASCII) are answered in that one look. Only a document that has more than ASCII is looked at a second time, for
//! its encoding.

use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::ops::Range;

/// Lists and objects around one another. Nobody's prompt has as many, and one bit for each fits into a number.
pub(crate) const DEEPEST: u32 = 128;

/// Where a value stands in its document, without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// What stands there. Nothing does if this is another document.
    pub(crate) fn of(self, document: &[u8]) -> Written<'_> {
        Written(document.get(self.range()).unwrap_or_default())
    }

    pub(crate) const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A value as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written<'a>(&'a [u8]);

impl<'a> Written<'a> {
    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn as_str(self) -> &'a str {
        simdutf8::basic::from_utf8(self.0).unwrap_or_default()
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == b"null"
    }

    pub(crate) fn is_text(self) -> bool {
        self.0.first() == Some(&b'"')
    }

    pub(crate) fn is_list(self) -> bool {
        self.0.first() == Some(&b'[')
    }

    /// `null`, `""`, `[]` and `{}` say nothing, with white space in them or without.
    pub(crate) fn is_empty(self) -> bool {
        match self.0 {
            b"null" | b"\"\"" => true,
            [b'[' | b'{', inside @ .., _] => inside.iter().all(u8::is_ascii_whitespace),
            _ => false,
        }
    }

    /// What a text says. `None` for everything else, and for a text with half a surrogate pair.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        let [b'"', inside @ .., b'"'] = self.0 else {
            return None;
        };
        if !inside.contains(&b'\\') {
            return std::str::from_utf8(inside).ok().map(Cow::Borrowed);
        }
        serde_json::from_slice(self.0).ok().map(Cow::Owned)
    }

    /// Whether a text says just this. `None` for what is no text.
    pub(crate) fn says(self, word: &str) -> Option<bool> {
        if self.0.contains(&b'\\') {
            return Some(self.text()? == word);
        }
        let [b'"', inside @ .., b'"'] = self.0 else {
            return None;
        };
        Some(inside == word.as_bytes())
    }

    /// A whole number that is not negative, written without a fraction or an exponent.
    pub(crate) fn count(self) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        self.0.iter().try_fold(0_u64, |so_far, byte| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            so_far.checked_mul(10)?.checked_add(digit.into())
        })
    }
}

/// Why a document was not read to its end. [`Skim::explain`] says it to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is no JSON.
    Json,
    /// There is something else where an object has to be.
    NoObject,
    /// There is something else where a list has to be.
    NoList,
    /// A key is there again that may be there once.
    Twice,
    /// A key has half a surrogate pair.
    NoKey,
    TooDeep,
    NoUtf8,
}

/// A document on its way through.
pub(crate) struct Skim<'a> {
    document: &'a [u8],
    at: usize,
    /// Lists and objects around `at`.
    depth: u32,
    /// Something was read of the innermost one: before the next there has to be a comma.
    comma: bool,
    seen: Seen,
    /// The last key as it is written, and without its escapes if there were any.
    name: Span,
    key: String,
    /// What was there [`Wrong::Twice`].
    twice: &'static str,
}

/// What was seen of the texts on the way.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// All bytes, eight over eight others: a highest bit in it is more than ASCII.
    bytes: u64,
    /// There may have been escapes. Nobody takes this back but who wants to know.
    escapes: bool,
}

impl<'a> Skim<'a> {
    pub(crate) fn new(document: &'a [u8]) -> Self {
        Self {
            document,
            at: 0,
            depth: 0,
            comma: false,
            seen: Seen::default(),
            name: Span { start: 0, end: 0 },
            key: String::new(),
            twice: "",
        }
    }

    /// Into an object, and nothing else will do.
    #[inline]
    pub(crate) fn enter_object(&mut self) -> Result<(), Wrong> {
        match self.token() {
            b'{' => self.open(),
            b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Err(Wrong::NoObject),
            _ => Err(Wrong::Json),
        }
    }

    /// Into a list (`[`) or an object (`{`); `false` if `null` is there instead, and is read.
    #[inline]
    pub(crate) fn enter(&mut self, bracket: u8) -> Result<bool, Wrong> {
        match self.token() {
            byte if byte == bracket => self.open().map(|()| true),
            b'n' => self.skip().map(|()| false),
            _ if bracket == b'[' => Err(Wrong::NoList),
            _ => Err(Wrong::NoObject),
        }
    }

    /// As [`Self::enter`], but whatever else is there is passed over.
    #[inline]
    pub(crate) fn enter_if(&mut self, bracket: u8) -> Result<bool, Wrong> {
        if self.token() == bracket {
            self.open().map(|()| true)
        } else {
            self.skip().map(|()| false)
        }
    }

    /// The next key of the object that was entered, escapes undone; `None` behind its last member.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Option<&[u8]>, Wrong> {
        self.seen.escapes = false;
        if !self.next()? {
            return Ok(None);
        }
        if self.seen.escapes {
            self.read_key()?;
            return Ok(Some(self.key.as_bytes()));
        }
        Ok(Some(self.key_inside()))
    }

    /// As [`Self::key`], but a key that is no text is no error: it is `Some(None)`.
    #[inline]
    pub(crate) fn any_key(&mut self) -> Result<Option<Option<&[u8]>>, Wrong> {
        match self.key() {
            Ok(key) => Ok(key.map(Some)),
            Err(Wrong::NoKey) => Ok(Some(None)),
            Err(wrong) => Err(wrong),
        }
    }

    fn key_inside(&self) -> &[u8] {
        self.document
            .get(self.name.start + 1..self.name.end - 1)
            .unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn read_key(&mut self) -> Result<(), Wrong> {
        self.key = self.name.of(self.document).text().ok_or(Wrong::NoKey)?.into_owned();
        Ok(())
    }

    /// The next key as it is written, with its quotes.
    pub(crate) fn name(&mut self) -> Result<Option<Span>, Wrong> {
        Ok(self.next()?.then_some(self.name))
    }

    /// To the value of the next member, whose key is then the `name`; `false` behind the last member.
    #[inline(never)]
    fn next(&mut self) -> Result<bool, Wrong> {
        let mut byte = self.token();
        if byte == b'}' {
            self.close();
            return Ok(false);
        }
        if self.comma {
            if byte != b',' {
                return Err(Wrong::Json);
            }
            self.at += 1;
            byte = self.token();
        }
        self.comma = true;
        if byte != b'"' {
            return Err(Wrong::Json);
        }
        let start = self.at;
        let end = text(self.document, start + 1, &mut self.seen).ok_or(Wrong::Json)? + 1;
        self.name = Span { start, end };
        self.at = end;
        if self.token() != b':' {
            return Err(Wrong::Json);
        }
        self.at += 1;
        Ok(true)
    }

    /// To the next item of the list that was entered; `false` behind its last one.
    #[inline]
    pub(crate) fn item(&mut self) -> Result<bool, Wrong> {
        let byte = self.token();
        if byte == b']' {
            self.close();
            return Ok(false);
        }
        if self.comma {
            if byte != b',' {
                return Err(Wrong::Json);
            }
            self.at += 1;
        }
        self.comma = true;
        Ok(true)
    }

    /// The value of a key that may be there once.
    #[inline(never)]
    pub(crate) fn fill(&mut self, slot: &mut Option<Span>, key: &'static str) -> Result<(), Wrong> {
        self.once(&mut slot.is_some(), key)?;
        *slot = Some(self.value()?);
        Ok(())
    }

    /// The value of a key of which only the first is read. `false` if there was one before.
    pub(crate) fn fill_first(&mut self, slot: &mut Option<Span>) -> Result<bool, Wrong> {
        let is_first = slot.is_none();
        let value = self.value()?;
        slot.get_or_insert(value);
        Ok(is_first)
    }

    /// Over one value, and where it stands.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Span, Wrong> {
        let first = self.token();
        let start = self.at;
        self.over(first)?;
        Ok(self.span_from(start))
    }

    /// Where the next value begins.
    pub(crate) fn value_start(&mut self) -> usize {
        self.token();
        self.at
    }

    /// The value that began there and has just been read.
    pub(crate) const fn span_from(&self, start: usize) -> Span {
        Span { start, end: self.at }
    }

    /// As [`Self::span_from`].
    pub(crate) fn written_from(&self, start: usize) -> Written<'a> {
        self.span_from(start).of(self.document)
    }

    /// For a key that may be there once, and is now.
    #[inline]
    pub(crate) fn once(&mut self, was_there: &mut bool, key: &'static str) -> Result<(), Wrong> {
        if std::mem::replace(was_there, true) {
            self.twice = key;
            return Err(Wrong::Twice);
        }
        Ok(())
    }

    /// Over one value, whatever it is.
    #[inline(never)]
    pub(crate) fn skip(&mut self) -> Result<(), Wrong> {
        let first = self.token();
        self.over(first)
    }

    #[inline]
    fn over(&mut self, first: u8) -> Result<(), Wrong> {
        let end = match first {
            b'"' => text(self.document, self.at + 1, &mut self.seen).map(|end| end + 1),
            b'{' | b'[' => {
                self.at = nested(self.document, self.at, self.depth, &mut self.seen)?;
                return Ok(());
            }
            _ => scalar(self.document, self.at, first),
        };
        self.at = end.ok_or(Wrong::Json)?;
        Ok(())
    }

    /// Behind the one value of the document: nothing more may come, and all of it has to be UTF-8.
    pub(crate) fn finish(&mut self) -> Result<(), Wrong> {
        self.token();
        if self.at < self.document.len() {
            return Err(Wrong::Json);
        }
        if self.seen.bytes & HIGHEST != 0 {
            simdutf8::basic::from_utf8(self.document).map_err(|_| Wrong::NoUtf8)?;
        }
        Ok(())
    }

    #[inline]
    fn open(&mut self) -> Result<(), Wrong> {
        if self.depth == DEEPEST {
            return Err(Wrong::TooDeep);
        }
        self.at += 1;
        self.depth += 1;
        self.comma = false;
        Ok(())
    }

    #[inline]
    fn close(&mut self) {
        self.at += 1;
        self.depth -= 1;
        self.comma = true;
    }

    #[inline]
    fn token(&mut self) -> u8 {
        token(self.document, &mut self.at)
    }

    /// For people: what is wrong, and where.
    #[cold]
    pub(crate) fn explain(&self, wrong: Wrong) -> String {
        let what = match wrong {
            Wrong::Json => match serde_json::from_slice::<IgnoredAny>(self.document) {
                Err(error) => return error.to_string(),
                Ok(_) => "this is no JSON".to_owned(),
            },
            Wrong::NoObject if self.document.get(self.at) == Some(&b'[') => return "this is a list".to_owned(),
            Wrong::NoObject => "expected an object".to_owned(),
            Wrong::NoList => "expected a list".to_owned(),
            Wrong::Twice => format!("duplicate field `{}`", self.twice),
            Wrong::NoKey => "half of a character in a key".to_owned(),
            Wrong::TooDeep => format!("more than {DEEPEST} lists and objects inside one another"),
            Wrong::NoUtf8 => "invalid UTF-8".to_owned(),
        };
        let at = match (wrong, std::str::from_utf8(self.document)) {
            (Wrong::NoUtf8, Err(error)) => error.valid_up_to(),
            _ => self.at,
        };
        let before = self.document.get(..at).unwrap_or(self.document);
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |end| end + 1) + 1;
        format!("{what} at line {line} column {column}")
    }
}

/// Where a text ends whose inside begins at `start`: at its closing quote. `None` if it is no JSON or no UTF-8.
pub(crate) fn end_of_text(document: &[u8], start: usize) -> Option<usize> {
    let mut seen = Seen::default();
    let end = text(document, start, &mut seen)?;
    let is_utf8 = seen.bytes & HIGHEST == 0 || simdutf8::basic::from_utf8(document.get(start..end)?).is_ok();
    is_utf8.then_some(end)
}

// === byte by byte ===

/// The byte at a place. Behind the end it is 0, which is right nowhere.
#[inline]
fn byte(document: &[u8], at: usize) -> u8 {
    document.get(at).copied().unwrap_or(0)
}

/// To the next byte that is no white space.
#[inline]
fn token(document: &[u8], at: &mut usize) -> u8 {
    loop {
        let byte = byte(document, *at);
        if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            return byte;
        }
        *at += 1;
    }
}

/// Over a list or an object: from its first byte to behind its last one.
#[inline(never)]
fn nested(document: &[u8], mut at: usize, floor: u32, seen: &mut Seen) -> Result<usize, Wrong> {
    let mut first = byte(document, at);
    // What is open above the floor. The lowest bit is the innermost one, and set for an object.
    let mut objects = 0_u128;
    let mut depth = floor;
    loop {
        match first {
            b'"' => at = text(document, at + 1, seen).ok_or(Wrong::Json)? + 1,
            b'{' | b'[' => {
                if depth == DEEPEST {
                    return Err(Wrong::TooDeep);
                }
                let is_object = first == b'{';
                at += 1;
                first = token(document, &mut at);
                if first == closing(is_object) {
                    at += 1;
                } else {
                    depth += 1;
                    objects = objects << 1 | u128::from(is_object);
                    if is_object {
                        at = key(document, at, seen).ok_or(Wrong::Json)?;
                        first = token(document, &mut at);
                    }
                    continue;
                }
            }
            _ => at = scalar(document, at, first).ok_or(Wrong::Json)?,
        }
        // Behind a value: what it ends ends here.
        loop {
            if depth == floor {
                return Ok(at);
            }
            let in_object = objects & 1 == 1;
            let next = token(document, &mut at);
            at += 1;
            if next == b',' {
                first = token(document, &mut at);
                if in_object {
                    at = key(document, at, seen).ok_or(Wrong::Json)?;
                    first = token(document, &mut at);
                }
                break;
            }
            if next != closing(in_object) {
                return Err(Wrong::Json);
            }
            depth -= 1;
            objects >>= 1;
        }
    }
}

#[inline]
const fn closing(is_object: bool) -> u8 {
    if is_object { b'}' } else { b']' }
}

/// Over a key and its colon.
#[inline]
fn key(document: &[u8], at: usize, seen: &mut Seen) -> Option<usize> {
    if byte(document, at) != b'"' {
        return None;
    }
    let mut at = text(document, at + 1, seen)? + 1;
    (token(document, &mut at) == b':').then_some(at + 1)
}

/// Over a number, `null`, `true` or `false`.
#[inline(never)]
fn scalar(document: &[u8], at: usize, first: u8) -> Option<usize> {
    match first {
        b'-' | b'0'..=b'9' => number(document, at, first),
        b'n' => literal(document, at, *b"null"),
        b't' => literal(document, at, *b"true"),
        b'f' => literal(document, at, *b"false"),
        _ => None,
    }
}

#[inline]
fn literal<const LENGTH: usize>(document: &[u8], at: usize, literal: [u8; LENGTH]) -> Option<usize> {
    let written = document.get(at..)?.first_chunk::<LENGTH>()?;
    (*written == literal).then_some(at + LENGTH)
}

#[inline]
fn number(document: &[u8], start: usize, first: u8) -> Option<usize> {
    let at = start + usize::from(first == b'-');
    let (mut at, mut next) = match byte(document, at) {
        b'0' => (at + 1, byte(document, at + 1)),
        _ => digits(document, at)?,
    };
    if next == b'.' {
        (at, next) = digits(document, at + 1)?;
    }
    if matches!(next, b'e' | b'E') {
        at += 1;
        at += usize::from(matches!(byte(document, at), b'+' | b'-'));
        (at, _) = digits(document, at)?;
    }
    Some(at)
}

/// Over at least one digit, and what is behind them.
#[inline]
fn digits(document: &[u8], start: usize) -> Option<(usize, u8)> {
    let (mut at, mut next) = (start, byte(document, start));
    while next.is_ascii_digit() {
        at += 1;
        next = byte(document, at);
    }
    (at > start).then_some((at, next))
}

// === eight bytes at a time, and more ===

/// One in each of eight bytes.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
/// The highest bit of each of eight bytes.
const HIGHEST: u64 = ONES << 7;
/// Bytes of a text that are looked at without a branch.
const BLOCK: usize = 32;

/// From behind a text's opening quote to its closing one.
#[inline(never)]
fn text(document: &[u8], start: usize, seen: &mut Seen) -> Option<usize> {
    match end_in_word(document, start) {
        Ok(end) => Some(end),
        Err(true) => text_of_words(document, start + 8, seen),
        Err(false) => long_text(document, start, seen),
    }
}

/// Most texts are short, and plain. For those these few instructions are all, and there are two functions of them because a
/// compiler makes less of both than of one.
#[inline(never)]
fn text_of_words(document: &[u8], mut at: usize, seen: &mut Seen) -> Option<usize> {
    for _ in 0..3 {
        match end_in_word(document, at) {
            Ok(end) => return Some(end),
            Err(true) => at += 8,
            Err(false) => break,
        }
    }
    long_text(document, at, seen)
}

/// Where a text ends within the next eight bytes. Whether to go on behind them, if it does not: that is when all of them are
/// ASCII, and nothing else is among them that has to be looked at.
#[inline]
fn end_in_word(document: &[u8], at: usize) -> Result<usize, bool> {
    let word = document.get(at..).and_then(|rest| rest.first_chunk()).ok_or(false)?;
    let stops = stops_or_high(u64::from_le_bytes(*word));
    if stops == 0 {
        return Err(true);
    }
    let end = at + first_of(stops);
    if byte(document, end) == b'"' {
        Ok(end)
    } else {
        Err(false)
    }
}

/// From anywhere in a text, but not the inside of an escape, to its closing quote.
#[inline(never)]
fn long_text(document: &[u8], mut at: usize, seen: &mut Seen) -> Option<usize> {
    // Up to here by the word, and then by the block. What stops a block is looked at by the word again.
    let mut near = at;
    let mut is_odd = false;
    loop {
        if at >= near {
            at = if is_odd {
                odd_blocks(document, at, seen)
            } else {
                plain_blocks(document, at, seen)
            };
            near = at + BLOCK;
        }
        let rest = document.get(at..)?;
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            // Behind the end there are zeros, which no text may hold.
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        seen.bytes |= word;
        let stops = stops(word);
        if stops == 0 {
            at += 8;
            continue;
        }
        at += first_of(stops);
        match byte(document, at) {
            b'"' => return Some(at),
            b'\\' => {
                seen.escapes = true;
                while byte(document, at) == b'\\' {
                    is_odd |= !matches!(byte(document, at + 1), b'n' | b'"');
                    at = escape(document, at)?;
                }
            }
            _ => return None,
        }
    }
}

/// From a backslash to behind its escape.
#[inline]
fn escape(document: &[u8], at: usize) -> Option<usize> {
    match byte(document, at + 1) {
        b'u' => {
            let digits = document.get(at + 2..)?.first_chunk::<4>()?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 6)
        }
        b'"' | b'\\' => Some(at + 2),
        letter => is_letter(letter).then_some(at + 2),
    }
}

/// What may be behind a backslash without being a mark of its own, or the beginning of a number.
#[inline]
const fn is_letter(byte: u8) -> bool {
    matches!(byte, b'/' | b'b' | b'f' | b'n' | b'r' | b't')
}

/// Marks quotes, backslashes and control characters of a word by their highest bits.
///
/// Turning over a bit makes neighbours of the quote and the control characters, below 0x21. Taking away more than a byte has
/// shows in its highest bit, and may go on into the bytes above, which are then marked for nothing: only the lowest mark
/// counts, see [`first_of`].
#[inline]
const fn stops(word: u64) -> u64 {
    stops_or_high(word) & !word
}

/// As [`stops`], and marks what is more than ASCII too.
#[inline]
const fn stops_or_high(word: u64) -> u64 {
    let quotes_and_controls = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslashes = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
    (quotes_and_controls | backslashes | word) & HIGHEST
}

/// At which byte the lowest mark stands.
#[inline]
const fn first_of(stops: u64) -> usize {
    (stops.trailing_zeros() / 8) as usize
}

/// Passes over the blocks of a text in which nothing happens, and gives where another one begins.
///
/// There may be escapes in them, as long as each is a backslash and a quote or one of the letters. Every byte is looked at
/// together with the one before it, which must not have been the end of an escape itself: a pair of backslashes is something
/// that happens. Within a block there is no branch, so that a compiler makes a handful of vector instructions of it.
#[inline(always)]
fn pass_blocks(document: &[u8], start: usize, seen: &mut Seen, is_letter: impl Fn(u8) -> bool) -> usize {
    let (mut at, mut high) = (start, false);
    if byte(document, at - 1) == b'\\' {
        return at;
    }
    while let Some((before, block)) = pairs(document, at) {
        let (mut happens, mut is_high) = (false, false);
        for (before, byte) in before.iter().zip(block) {
            let is_escaped = *before == b'\\';
            let is_quote = *byte == b'"';
            // An escape without a quote, or a quote without an escape.
            happens |= (is_escaped ^ is_quote) & !(is_escaped & is_letter(*byte)) | (*byte < b' ');
            is_high |= *byte >= 0x80;
        }
        if happens {
            break;
        }
        high |= is_high;
        at += BLOCK;
    }
    if high {
        seen.bytes |= HIGHEST;
    }
    // Nobody looked whether there are.
    seen.escapes |= at > start;
    // The first half of an escape stays with the other one.
    at - usize::from(byte(document, at - 1) == b'\\')
}

#[inline(never)]
fn plain_blocks(document: &[u8], at: usize, seen: &mut Seen) -> usize {
    pass_blocks(document, at, seen, |letter| letter == b'n')
}

#[inline(never)]
fn odd_blocks(document: &[u8], at: usize, seen: &mut Seen) -> usize {
    pass_blocks(document, at, seen, is_letter)
}

/// A block, and the bytes before each of its bytes.
#[inline]
fn pairs(document: &[u8], at: usize) -> Option<(&[u8; BLOCK], &[u8; BLOCK])> {
    let both = document.get(at - 1..)?.first_chunk::<{ BLOCK + 1 }>()?;
    Some((both.first_chunk()?, both.last_chunk()?))
}

#[cfg(test)]
mod tests;
