//! What the mock answers, written in the model's name.
//!
//! A proxy passes the name on and knows nothing of it, so one mock serves every case at once, and nobody has to tell it
//! anything beforehand: `bench`, `bench-delay=60`, `bench-chunks=20,pace=5,delay=60`.

use std::time::Duration;

const NAME: &str = "bench";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// From the request's last byte to the answer's first.
    pub(crate) delay: Duration,
    /// Contents of a stream.
    pub(crate) chunks: usize,
    /// Between two of them; zero: all at once.
    pub(crate) pace: Duration,
    /// A stream says one word and then nothing, until its client goes away.
    pub(crate) hold: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            chunks: 20,
            pace: Duration::ZERO,
            hold: false,
        }
    }
}

impl Script {
    /// Reads a model's name. What it does not know it leaves out: a name is no place for errors.
    pub(crate) fn parse(model: &str) -> Self {
        let mut script = Self::default();
        let words = model.strip_prefix(NAME).and_then(|rest| rest.strip_prefix('-'));
        for (key, value) in words
            .unwrap_or_default()
            .split(',')
            .filter_map(|word| word.split_once('='))
        {
            let Ok(number) = value.parse() else { continue };
            match key {
                "delay" => script.delay = Duration::from_millis(number),
                "chunks" => script.chunks = usize::try_from(number).unwrap_or(usize::MAX),
                "pace" => script.pace = Duration::from_millis(number),
                "hold" => script.hold = number > 0,
                _ => {}
            }
        }
        script
    }

    /// What a request's body asks for: its script, and whether as a stream. The model stands before the messages, as clients
    /// write it, or behind them: a long prompt is not searched unless it must be.
    pub(crate) fn of_body(body: &[u8]) -> (Self, bool) {
        let model = string_behind(body, b"\"model\":").unwrap_or_default();
        let stream = [&b"\"stream\":true"[..], b"\"stream\": true"]
            .iter()
            .any(|word| find(body, word).is_some());
        (Self::parse(model), stream)
    }
}

/// How far from either end of a body its fields are looked for.
const MARGIN: usize = 512;

fn find(body: &[u8], word: &[u8]) -> Option<usize> {
    let position = |part: &[u8]| part.windows(word.len()).position(|window| window == word);
    let tail = body.len().saturating_sub(MARGIN);
    position(&body[..body.len().min(MARGIN)]).or_else(|| position(&body[tail..]).map(|at| tail + at))
}

fn string_behind<'a>(body: &'a [u8], field: &[u8]) -> Option<&'a str> {
    let rest = &body[find(body, field)? + field.len()..];
    let mut parts = rest.split(|byte| *byte == b'"');
    parts.next()?;
    std::str::from_utf8(parts.next()?).ok()
}

#[cfg(test)]
mod tests {
    use super::Script;
    use std::time::Duration;

    #[test]
    fn a_name_is_a_script() {
        assert_eq!(Script::parse("bench"), Script::default());
        assert_eq!(Script::parse("gpt-4o"), Script::default());
        assert_eq!(
            Script::parse("bench-chunks=200,pace=5,delay=60,hold=1,other=7"),
            Script {
                delay: Duration::from_millis(60),
                chunks: 200,
                pace: Duration::from_millis(5),
                hold: true,
            }
        );
    }

    #[test]
    fn a_body_is_read_from_its_ends() {
        let prompt = "x".repeat(10_000);
        let first = format!(r#"{{"model":"bench-delay=7","stream":true,"messages":["{prompt}"]}}"#);
        let last = format!(r#"{{"messages":["{prompt}"],"stream": true,"model": "bench-delay=7"}}"#);
        for body in [first, last] {
            let (script, stream) = Script::of_body(body.as_bytes());
            assert_eq!((script.delay, stream), (Duration::from_millis(7), true), "{body:.60}");
        }
        let (_, stream) = Script::of_body(br#"{"model":"bench","messages":[]}"#);
        assert!(!stream);
    }
}
