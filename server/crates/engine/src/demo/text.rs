//! Plausible prose without a model: a function of the prompt, and of nothing else.
//!
//! An answer is dealt from [`phrases`](super::phrases): an opener, then paragraphs, each of sentences that name the
//! prompt's own words and of sentences from one theme, then a closer. The prompt decides the theme and the length, and
//! seeds the dice; so a question gets its own answer, and gets it again tomorrow. The generator is our own few lines
//! because its sequence must never change with a library's version.

use super::phrases;

/// Stands before every simulated text.
pub(super) const LABEL: &str = "(simulated) ";

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a.
pub(super) fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(FNV_OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

/// One step of `SplitMix64`: turns near numbers into far ones.
pub(super) const fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Seeded randomness.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 when there is none.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }
}

/// Sentences in shuffled order, none twice until all were dealt.
struct Deck {
    sentences: Vec<&'static str>,
    dealt: usize,
}

impl Deck {
    fn shuffled(sentences: &[&'static str], dice: &mut Dice) -> Self {
        let mut sentences = sentences.to_vec();
        for last in (1..sentences.len()).rev() {
            sentences.swap(last, dice.below(last + 1));
        }
        Self { sentences, dealt: 0 }
    }

    fn deal(&mut self) -> &'static str {
        let nth = self.dealt % self.sentences.len().max(1);
        self.dealt += 1;
        self.sentences.get(nth).copied().unwrap_or_default()
    }
}

/// How much a prompt asks for.
#[derive(Clone, Copy)]
enum Length {
    Brief,
    Usual,
    Long,
}

impl Length {
    fn asked_by(prompt: &str) -> Self {
        let prompt = prompt.to_lowercase();
        let mentions = |words: &[&str]| words.iter().any(|word| prompt.contains(word));
        if mentions(&["brief", "short", "one sentence", "tl;dr", "in a word"]) {
            Self::Brief
        } else if mentions(&["long", "detail", "essay", "story", "report", "paragraphs"]) {
            Self::Long
        } else {
            Self::Usual
        }
    }

    const fn paragraphs(self) -> (usize, usize) {
        match self {
            Self::Brief => (1, 1),
            Self::Usual => (1, 3),
            Self::Long => (5, 7),
        }
    }

    const fn themed_sentences(self) -> (usize, usize) {
        match self {
            Self::Brief => (0, 0),
            Self::Usual | Self::Long => (1, 3),
        }
    }
}

/// Longest word of a prompt that an answer quotes, in bytes.
const LONGEST_TOPIC: usize = 40;

/// The words that a text is about, in its own spelling: the first four that are neither short nor common, nor longer than
/// anybody would quote.
pub(super) fn topics(text: &str) -> Vec<&str> {
    let mut topics: Vec<&str> = Vec::new();
    for word in text.split(|char: char| !char.is_alphanumeric() && char != '-') {
        let word = word.trim_matches('-');
        let lower = word.to_lowercase();
        let quotable = word.chars().count() > 3 && word.len() <= LONGEST_TOPIC;
        let telling = quotable && !phrases::COMMON_WORDS.contains(&lower.as_str());
        if telling && !topics.iter().any(|known| known.to_lowercase() == lower) {
            topics.push(word);
        }
        if topics.len() == 4 {
            break;
        }
    }
    topics
}

/// An answer to `prompt`.
pub(super) fn answer(prompt: &str, seed: u64) -> String {
    let mut writer = Writer::new(prompt, seed);
    let opener = writer.about(phrases::OPENERS);
    format!("{LABEL}{opener} {}", writer.body(Length::asked_by(prompt)))
}

/// An answer that uses what a tool has returned.
pub(super) fn answer_with_tool_result(prompt: &str, result: &str, seed: u64) -> String {
    const SHOWN: usize = 400;
    let shown: String = result.trim().chars().take(SHOWN).collect();
    let ellipsis = if shown.len() < result.trim().len() { " …" } else { "" };
    let mut writer = Writer::new(prompt, seed);
    format!(
        "{LABEL}The tool returned: {shown}{ellipsis}\n\n{}",
        writer.body(Length::Brief)
    )
}

struct Writer<'a> {
    topics: Vec<&'a str>,
    dice: Dice,
    topical: Deck,
    /// Most fitting theme first.
    themes: Vec<Deck>,
}

impl<'a> Writer<'a> {
    fn new(prompt: &'a str, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let lower = prompt.to_lowercase();
        let mut themes: Vec<_> = phrases::THEMES.iter().collect();
        themes.rotate_left(dice.below(phrases::THEMES.len()));
        // A stable sort: where the prompt prefers none, the dice have.
        themes.sort_by_key(|theme| {
            std::cmp::Reverse(
                theme
                    .keywords
                    .iter()
                    .filter(|keyword| lower.contains(**keyword))
                    .count(),
            )
        });
        let themes = themes
            .into_iter()
            .map(|theme| Deck::shuffled(theme.sentences, &mut dice))
            .collect();
        let topical = Deck::shuffled(phrases::TOPICAL, &mut dice);
        Self {
            topics: topics(prompt),
            dice,
            topical,
            themes,
        }
    }

    /// One of `sentences`, with one of the prompt's words in its gap.
    fn about(&mut self, sentences: &[&'static str]) -> String {
        let sentence = sentences
            .get(self.dice.below(sentences.len()))
            .copied()
            .unwrap_or_default();
        self.fill(sentence)
    }

    fn fill(&mut self, sentence: &str) -> String {
        let nth = self.dice.below(self.topics.len());
        sentence.replace("{}", self.topics.get(nth).copied().unwrap_or("your question"))
    }

    fn body(&mut self, length: Length) -> String {
        let (fewest, most) = length.paragraphs();
        let count = self.dice.between(fewest, most);
        let mut paragraphs: Vec<String> = (0..count).map(|nth| self.paragraph(nth, length)).collect();
        if let Some(last) = paragraphs.last_mut() {
            let closers = if self.dice.below(3) == 0 {
                phrases::REMINDERS
            } else {
                phrases::CLOSERS
            };
            last.push(' ');
            last.push_str(&self.about(closers));
        }
        paragraphs.join("\n\n")
    }

    fn paragraph(&mut self, nth: usize, length: Length) -> String {
        let topical = self.topical.deal();
        let mut sentences = vec![self.fill(topical)];
        let (fewest, most) = length.themed_sentences();
        let themed = self.dice.between(fewest, most);
        let themes = self.themes.len().max(1);
        if let Some(theme) = self.themes.get_mut(nth % themes) {
            sentences.extend((0..themed).map(|_| theme.deal().to_owned()));
        }
        sentences.join(" ")
    }
}
