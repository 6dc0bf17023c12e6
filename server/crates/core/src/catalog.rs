//! What models cost and how much they take, as far as it is public.
//!
//! The facts stand in `data/catalog.tsv`, one line a model, from public price lists; its head explains the columns.
//! They are part of the binary. The first question parses them, which takes milliseconds, so it is asked before requests
//! come; every later one is a binary search. A line that does not parse is left out; a test holds that every line does.
//!
//! Two kinds of nothing are kept apart throughout. A price of zero is a price: the model is free. A price that is not
//! there is unknown, and whatever needs it answers `None`, because a request that is booked at nothing by mistake would
//! win every comparison and slip past every budget.
//!
//! Two prices can be asked for: [`cost`] guesses before a request, from what is asked for, to compare targets;
//! [`actual_cost`] settles afterwards, from the tokens that were used. Neither knows of discounts: batches, tiers of
//! service and the surcharge on long prompts are among the facts ([`Tiers`]) and not in these sums.

use std::sync::LazyLock;

/// Output tokens of a chat that states no limit.
pub const USUAL_OUTPUT: u64 = 256;
/// Seconds of a recording whose length is not known before it is sent.
pub const USUAL_SECONDS: f64 = 60.0;
/// Characters of a text to be spoken.
pub const USUAL_CHARACTERS: f64 = 1000.0;

static TEXT: &str = include_str!("../data/catalog.tsv");
/// In the file's order: by provider, then by model.
static TABLE: LazyLock<Box<[Entry]>> = LazyLock::new(|| {
    let mut entries = Vec::with_capacity(lines().count());
    entries.extend(lines().filter_map(Entry::read));
    entries.into_boxed_slice()
});

struct Entry {
    provider: &'static str,
    model: &'static str,
    facts: ModelFacts,
}

/// What a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Chat,
    /// Text goes on where the prompt ends.
    Completion,
    /// Chat that is only spoken over the responses API.
    Responses,
    /// A connection that talks both ways.
    Realtime,
    Embedding,
    Image,
    ImageEdit,
    Video,
    Rerank,
    Moderation,
    /// Speech to text.
    Transcription,
    /// Text to speech.
    Speech,
    Ocr,
    /// Search, evaluation and what else is sold by the call.
    Other,
}

/// Something a model can do beyond text in and text out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    Tools,
    ParallelTools,
    JsonSchema,
    Vision,
    Pdf,
    AudioIn,
    AudioOut,
    Reasoning,
    PromptCache,
    WebSearch,
}

/// A set of them. One that is not in the set may still be there: vendors do not say everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u16);

/// One model of one provider. `None` is unknown, zero is free. Prices are USD; `per_m` is per million tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    pub mode: Mode,
    pub input_per_m: Option<f64>,
    pub output_per_m: Option<f64>,
    /// Input that the provider's cache answered.
    pub cache_read_per_m: Option<f64>,
    /// Input that is written to the provider's cache.
    pub cache_write_per_m: Option<f64>,
    /// The part of the output that is reasoning, where it has a rate of its own.
    pub reasoning_per_m: Option<f64>,
    pub audio_input_per_m: Option<f64>,
    pub audio_output_per_m: Option<f64>,
    /// Per image made.
    pub per_image: Option<f64>,
    /// Per image given. Image models that state no other price mean an image made.
    pub per_input_image: Option<f64>,
    /// Per second of audio or video given.
    pub per_input_second: Option<f64>,
    /// Per second of audio or video made.
    pub per_output_second: Option<f64>,
    /// Per character of text given.
    pub per_input_character: Option<f64>,
    /// Per search or reranking.
    pub per_query: Option<f64>,
    /// Tokens, input and output together.
    pub context_window: Option<u64>,
    /// Tokens.
    pub max_output: Option<u64>,
    /// Length of an embedding's vector.
    pub dimensions: Option<u32>,
    pub capabilities: Capabilities,
    /// The day on which the vendor retires it: `YYYY-MM-DD`.
    pub retired_on: Option<&'static str>,
    /// A price and no model: the id names a region, a size, a commitment or a tool and cannot be sent upstream.
    pub variant: bool,
    /// Boxed, because most models are sold in one way only.
    pub tiers: Option<Box<Tiers>>,
}

/// Rates of other ways to buy the same tokens: USD per million.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tiers {
    /// Written to the provider's cache to be kept for an hour.
    pub cache_write_1h_per_m: Option<f64>,
    /// Requests with more than 200,000 input tokens.
    pub long_input_per_m: Option<f64>,
    pub long_output_per_m: Option<f64>,
    pub batch_input_per_m: Option<f64>,
    pub batch_output_per_m: Option<f64>,
    pub flex_input_per_m: Option<f64>,
    pub flex_output_per_m: Option<f64>,
    pub priority_input_per_m: Option<f64>,
    pub priority_output_per_m: Option<f64>,
}

/// What a request asks for, as far as it is known before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub kind: WorkKind,
    /// Counts for chat and embeddings.
    pub input_tokens: u64,
    /// The limit that the request states; counts for chat.
    pub output_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkKind {
    Chat,
    Embeddings,
    Image,
    /// Audio to be transcribed or translated.
    AudioIn,
    Speech,
}

/// The facts about `model`, the id that is sent upstream, at `provider`.
#[must_use]
pub fn lookup(provider: &str, model: &str) -> Option<&'static ModelFacts> {
    Vendor::named(provider).facts(model)
}

/// What the catalogue has of one provider: found once, and asked for every request.
#[derive(Clone, Copy)]
pub struct Vendor {
    entries: &'static [Entry],
    narrowest: u64,
}

impl Vendor {
    /// One that the catalogue does not know has no models.
    #[must_use]
    pub fn named(provider: &str) -> Self {
        let entries = entries_of(provider);
        let windows = entries.iter().filter_map(|entry| entry.facts.context_window);
        let narrowest = windows.min().unwrap_or(u64::MAX);
        Self { entries, narrowest }
    }

    #[must_use]
    pub const fn is_known(self) -> bool {
        !self.entries.is_empty()
    }

    /// The smallest context window that any of its models is known to have: what fits there fits everywhere.
    #[must_use]
    pub const fn narrowest_window(self) -> u64 {
        self.narrowest
    }

    /// The facts about `model`, the id that is sent upstream.
    #[must_use]
    pub fn facts(self, model: &str) -> Option<&'static ModelFacts> {
        let found = self.entries.binary_search_by(|entry| entry.model.cmp(model));
        found.ok().and_then(|at| self.entries.get(at)).map(|entry| &entry.facts)
    }
}

/// The ids that can be sent to `provider`, sorted.
pub fn models(provider: &str) -> impl Iterator<Item = &'static str> + use<> {
    let entries = entries_of(provider).iter();
    entries.filter(|entry| !entry.facts.variant).map(|entry| entry.model)
}

/// Whether the catalogue has a model of `provider`.
#[must_use]
pub fn knows(provider: &str) -> bool {
    !entries_of(provider).is_empty()
}

fn entries_of(provider: &str) -> &'static [Entry] {
    let table: &'static [Entry] = &TABLE;
    let start = table.partition_point(|entry| entry.provider < provider);
    let rest = &table[start..];
    &rest[..rest.partition_point(|entry| entry.provider == provider)]
}

/// USD that `work` will probably cost. `None`: a price that it needs is unknown.
#[must_use]
pub fn cost(facts: &ModelFacts, work: &Work) -> Option<f64> {
    match work.kind {
        WorkKind::Chat => {
            let input = tokens(work.input_tokens, facts.input_per_m?);
            let output = work.output_tokens.unwrap_or(USUAL_OUTPUT);
            Some(input + tokens(output, facts.output_per_m?))
        }
        WorkKind::Embeddings => Some(tokens(work.input_tokens, facts.input_per_m?)),
        WorkKind::Image => one_image(facts),
        WorkKind::AudioIn => Some(USUAL_SECONDS * facts.per_input_second?),
        WorkKind::Speech => Some(USUAL_CHARACTERS * facts.per_input_character?),
    }
}

/// The same at an operator's own rates, in USD per million tokens.
#[must_use]
pub fn cost_at(input_per_m: f64, output_per_m: f64, work: &Work) -> Option<f64> {
    let input = tokens(work.input_tokens, input_per_m);
    match work.kind {
        WorkKind::Chat => Some(input + tokens(work.output_tokens.unwrap_or(USUAL_OUTPUT), output_per_m)),
        WorkKind::Embeddings => Some(input),
        WorkKind::Image | WorkKind::AudioIn | WorkKind::Speech => None,
    }
}

/// Some chat models state a price per image, too: it is not one for making images.
fn one_image(facts: &ModelFacts) -> Option<f64> {
    match facts.mode {
        Mode::Image | Mode::ImageEdit => facts.per_image.or(facts.per_input_image),
        _ => None,
    }
}

/// USD that was spent. `prompt` counts all input tokens, the `cached` ones included, as [`crate::usage::Usage`] does.
///
/// Cached tokens have their own rate where it is known and are plain input otherwise. An output rate is needed only
/// where there was output: embeddings have none.
#[must_use]
pub fn actual_cost(facts: &ModelFacts, prompt: u64, cached: Option<u64>, completion: u64) -> Option<f64> {
    let rate = facts.input_per_m?;
    let cached = cached.unwrap_or(0).min(prompt);
    let input = tokens(prompt - cached, rate) + tokens(cached, facts.cache_read_per_m.unwrap_or(rate));
    let output = match completion {
        0 => 0.0,
        some => tokens(some, facts.output_per_m?),
    };
    Some(input + output)
}

fn tokens(count: u64, per_m: f64) -> f64 {
    count as f64 * per_m / 1e6
}

impl Mode {
    /// The word for the catalogue, logs and pages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completion => "completion",
            Self::Responses => "responses",
            Self::Realtime => "realtime",
            Self::Embedding => "embedding",
            Self::Image => "image",
            Self::ImageEdit => "image_edit",
            Self::Video => "video",
            Self::Rerank => "rerank",
            Self::Moderation => "moderation",
            Self::Transcription => "transcription",
            Self::Speech => "speech",
            Self::Ocr => "ocr",
            Self::Other => "other",
        }
    }

    const ALL: [Self; 14] = [
        Self::Chat,
        Self::Completion,
        Self::Responses,
        Self::Realtime,
        Self::Embedding,
        Self::Image,
        Self::ImageEdit,
        Self::Video,
        Self::Rerank,
        Self::Moderation,
        Self::Transcription,
        Self::Speech,
        Self::Ocr,
        Self::Other,
    ];

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

impl Capability {
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "tools" => Self::Tools,
            "parallel_tools" => Self::ParallelTools,
            "json_schema" => Self::JsonSchema,
            "vision" => Self::Vision,
            "pdf" => Self::Pdf,
            "audio_in" => Self::AudioIn,
            "audio_out" => Self::AudioOut,
            "reasoning" => Self::Reasoning,
            "prompt_cache" => Self::PromptCache,
            "web_search" => Self::WebSearch,
            _ => return None,
        })
    }
}

impl Capabilities {
    /// Whether the vendor says so.
    #[must_use]
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u16) != 0
    }

    fn read(words: &str) -> Option<Self> {
        words.split(',').try_fold(Self::default(), |Self(set), word| {
            Capability::from_word(word).map(|capability| Self(set | 1 << capability as u16))
        })
    }
}

/// The file without its comments.
fn lines() -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter(|line| !line.starts_with('#'))
}

fn usd(text: &str) -> Option<f64> {
    let amount: f64 = text.parse().ok()?;
    (amount.is_finite() && amount >= 0.0).then_some(amount)
}

impl Entry {
    fn read(line: &'static str) -> Option<Self> {
        let mut columns = line.split('\t');
        let (provider, model) = (columns.next()?, columns.next()?);
        let mut facts = ModelFacts::of(Mode::from_word(columns.next()?)?);
        for fact in columns.next().unwrap_or_default().split_terminator(' ') {
            facts.take(fact)?;
        }
        (columns.next().is_none() && !model.is_empty()).then_some(Self { provider, model, facts })
    }
}

impl ModelFacts {
    /// Nothing is known but the mode.
    const fn of(mode: Mode) -> Self {
        Self {
            mode,
            input_per_m: None,
            output_per_m: None,
            cache_read_per_m: None,
            cache_write_per_m: None,
            reasoning_per_m: None,
            audio_input_per_m: None,
            audio_output_per_m: None,
            per_image: None,
            per_input_image: None,
            per_input_second: None,
            per_output_second: None,
            per_input_character: None,
            per_query: None,
            context_window: None,
            max_output: None,
            dimensions: None,
            capabilities: Capabilities(0),
            retired_on: None,
            variant: false,
            tiers: None,
        }
    }

    /// One `key=value` of the last column. `None`: not understood.
    fn take(&mut self, fact: &'static str) -> Option<()> {
        if fact == "variant" {
            self.variant = true;
            return Some(());
        }
        let (key, value) = fact.split_once('=')?;
        match key {
            "context" => self.context_window = Some(value.parse().ok()?),
            "max_out" => self.max_output = Some(value.parse().ok()?),
            "dims" => self.dimensions = Some(value.parse().ok()?),
            "until" => self.retired_on = Some(value),
            "caps" => self.capabilities = Capabilities::read(value)?,
            price => *self.price(price)? = Some(usd(value)?),
        }
        Some(())
    }

    fn price(&mut self, key: &str) -> Option<&mut Option<f64>> {
        Some(match key {
            "in" => &mut self.input_per_m,
            "out" => &mut self.output_per_m,
            "cache_read" => &mut self.cache_read_per_m,
            "cache_write" => &mut self.cache_write_per_m,
            "reasoning" => &mut self.reasoning_per_m,
            "audio_in" => &mut self.audio_input_per_m,
            "audio_out" => &mut self.audio_output_per_m,
            "image" => &mut self.per_image,
            "image_in" => &mut self.per_input_image,
            "second_in" => &mut self.per_input_second,
            "second_out" => &mut self.per_output_second,
            "char_in" => &mut self.per_input_character,
            "query" => &mut self.per_query,
            other => self.tiers.get_or_insert_default().price(other)?,
        })
    }
}

impl Tiers {
    fn price(&mut self, key: &str) -> Option<&mut Option<f64>> {
        Some(match key {
            "cache_write_1h" => &mut self.cache_write_1h_per_m,
            "long_in" => &mut self.long_input_per_m,
            "long_out" => &mut self.long_output_per_m,
            "batch_in" => &mut self.batch_input_per_m,
            "batch_out" => &mut self.batch_output_per_m,
            "flex_in" => &mut self.flex_input_per_m,
            "flex_out" => &mut self.flex_output_per_m,
            "priority_in" => &mut self.priority_input_per_m,
            "priority_out" => &mut self.priority_output_per_m,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Capability, Entry, Mode, ModelFacts, TABLE, Tiers, Work, WorkKind, actual_cost, cost, knows, lines, lookup,
        models,
    };
    use std::collections::HashSet;

    /// A model that is known to be in the catalogue.
    #[track_caller]
    fn facts(provider: &str, model: &str) -> &'static ModelFacts {
        lookup(provider, model).unwrap_or_else(|| panic!("{provider}/{model}"))
    }

    #[track_caller]
    fn near(found: Option<f64>, want: Option<f64>, what: &str) {
        let same = match (found, want) {
            (Some(found), Some(want)) => (found - want).abs() <= 1e-12,
            (found, want) => found == want,
        };
        assert!(same, "{what}: {found:?}, not {want:?}");
    }

    #[test]
    fn every_line_parses_and_says_each_thing_once() {
        for line in lines() {
            assert!(Entry::read(line).is_some(), "{line}");
            let facts = line.split('\t').nth(3).unwrap_or_default();
            let keys = facts
                .split(' ')
                .map(|fact| fact.split_once('=').map_or(fact, |(key, _)| key));
            let mut seen = HashSet::new();
            assert!(keys.into_iter().all(|key| seen.insert(key)), "{line}");
        }
        assert!(TABLE.len() > 2900, "{}", TABLE.len());
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for line in [
            "",
            "openai",
            "openai\tm",
            "openai\tm\tchatter",
            "openai\t\tchat",
            "openai\tm\tchat\tin=1\tout=1",
            "openai\tm\tchat\tin",
            "openai\tm\tchat\tin=cheap",
            "openai\tm\tchat\tin=-1",
            "openai\tm\tchat\tin=inf",
            "openai\tm\tchat\tbatch_in=NaN",
            "openai\tm\tchat\tinn=1",
            "openai\tm\tchat\tcontext=1.5",
            "openai\tm\tchat\tcaps=flight",
        ] {
            assert!(Entry::read(line).is_none(), "{line:?}");
        }
        assert!(Entry::read("openai\tm\tchat").is_some(), "nothing known but the mode");
    }

    #[test]
    fn models_stand_once_and_in_order() {
        for pair in TABLE.windows(2) {
            let (one, two) = (&pair[0], &pair[1]);
            assert!(
                (one.provider, one.model) < (two.provider, two.model),
                "{} {} before {} {}",
                one.provider,
                one.model,
                two.provider,
                two.model
            );
        }
    }

    #[test]
    fn days_are_days_and_tiers_are_not_empty() {
        let pattern = |day: &str| day.replace(|c: char| c.is_ascii_digit(), "9");
        for Entry { provider, model, facts } in &TABLE[..] {
            let day = facts.retired_on;
            assert!(
                day.is_none_or(|day| pattern(day) == "9999-99-99"),
                "{provider} {model}: {day:?}"
            );
            assert_ne!(facts.tiers.as_deref(), Some(&Tiers::default()), "{provider} {model}");
        }
    }

    #[test]
    fn known_models_have_their_known_prices() {
        for (provider, model, mode, input, output, cached) in [
            ("openai", "gpt-4o-mini", Mode::Chat, Some(0.15), Some(0.6), Some(0.075)),
            ("openai", "gpt-4o", Mode::Chat, Some(2.5), Some(10.0), Some(1.25)),
            (
                "openai",
                "text-embedding-3-small",
                Mode::Embedding,
                Some(0.02),
                Some(0.0),
                None,
            ),
            (
                "openai",
                "omni-moderation-latest",
                Mode::Moderation,
                Some(0.0),
                Some(0.0),
                None,
            ),
            ("openai", "whisper-1", Mode::Transcription, None, None, None),
            (
                "anthropic",
                "claude-sonnet-4-5",
                Mode::Chat,
                Some(3.0),
                Some(15.0),
                Some(0.3),
            ),
            (
                "anthropic",
                "claude-haiku-4-5",
                Mode::Chat,
                Some(1.0),
                Some(5.0),
                Some(0.1),
            ),
            (
                "gemini",
                "gemini-2.5-pro",
                Mode::Chat,
                Some(1.25),
                Some(10.0),
                Some(0.125),
            ),
            (
                "gemini",
                "gemini-2.5-flash",
                Mode::Chat,
                Some(0.3),
                Some(2.5),
                Some(0.03),
            ),
            (
                "deepseek",
                "deepseek-chat",
                Mode::Chat,
                Some(0.28),
                Some(0.42),
                Some(0.028),
            ),
            (
                "mistral",
                "mistral-large-latest",
                Mode::Chat,
                Some(0.5),
                Some(1.5),
                Some(0.05),
            ),
            ("cohere", "rerank-v3.5", Mode::Rerank, Some(0.0), Some(0.0), None),
            ("ollama", "llama3.1", Mode::Chat, Some(0.0), Some(0.0), None),
        ] {
            let facts = facts(provider, model);
            let found = (
                facts.mode,
                facts.input_per_m,
                facts.output_per_m,
                facts.cache_read_per_m,
            );
            assert_eq!(found, (mode, input, output, cached), "{provider}/{model}");
        }
    }

    #[test]
    fn limits_tiers_and_capabilities_are_read() {
        let mini = facts("openai", "gpt-4o-mini");
        assert_eq!((mini.context_window, mini.max_output), (Some(128_000), Some(16_384)));
        assert!(mini.capabilities.has(Capability::Vision) && !mini.capabilities.has(Capability::AudioOut));
        let sonnet = facts("anthropic", "claude-sonnet-4-5");
        let tiers = sonnet.tiers.as_deref().unwrap();
        assert_eq!(
            (sonnet.cache_write_per_m, tiers.cache_write_1h_per_m),
            (Some(3.75), Some(6.0))
        );
        assert_eq!(
            (tiers.batch_input_per_m, tiers.batch_output_per_m),
            (Some(1.5), Some(7.5))
        );
        let gemini = facts("gemini", "gemini-2.5-pro").tiers.as_deref().unwrap();
        assert_eq!(
            (gemini.long_input_per_m, gemini.long_output_per_m),
            (Some(2.5), Some(15.0))
        );
        assert_eq!(facts("cohere", "rerank-v3.5").per_query, Some(0.002));
        assert_eq!(facts("openai", "text-embedding-3-small").dimensions, Some(1536));
        assert_eq!(facts("deepseek", "deepseek-chat").retired_on, Some("2026-07-24"));
    }

    #[test]
    fn a_provider_has_its_own_models_and_no_other() {
        let openai: Vec<&str> = models("openai").collect();
        assert!(openai.is_sorted() && openai.contains(&"gpt-4o-mini"));
        assert!(
            !openai.iter().any(|id| id.contains('/') || id.starts_with("ft:")),
            "prices of variants"
        );
        assert_eq!(
            facts("openai", "high/1024-x-1024/gpt-image-1").per_input_image,
            Some(0.167)
        );
        assert!(models("anthropic").all(|id| id.starts_with("claude-")));
        for (provider, known) in [
            ("openai", true),
            ("zai", true),
            ("demo", false),
            ("", false),
            ("zzz", false),
        ] {
            assert_eq!(knows(provider), known, "{provider}");
            assert_eq!(models(provider).next().is_some(), known, "{provider}");
        }
        for (provider, model) in [
            ("openai", "gpt"),
            ("openai", ""),
            ("openai", "GPT-4o"),
            ("gemini", "gpt-4o"),
        ] {
            assert!(lookup(provider, model).is_none(), "{provider}/{model}");
        }
    }

    #[test]
    fn work_is_priced_by_its_kind() {
        let chat = |input_tokens, output_tokens| Work {
            kind: WorkKind::Chat,
            input_tokens,
            output_tokens,
        };
        let other = |kind| Work {
            kind,
            input_tokens: 1000,
            output_tokens: None,
        };
        for (provider, model, work, want) in [
            ("openai", "gpt-4o-mini", chat(1000, Some(100)), Some(0.000_21)),
            ("openai", "gpt-4o-mini", chat(1000, None), Some(0.000_303_6)),
            ("openai", "gpt-4o-mini", chat(0, Some(0)), Some(0.0)),
            (
                "openai",
                "text-embedding-3-small",
                other(WorkKind::Embeddings),
                Some(0.000_02),
            ),
            ("openai", "whisper-1", other(WorkKind::AudioIn), Some(0.006)),
            ("openai", "tts-1", other(WorkKind::Speech), Some(0.015)),
            (
                "bedrock",
                "stability.sd3-large-v1:0",
                other(WorkKind::Image),
                Some(0.08),
            ),
            ("xai", "grok-imagine-image", other(WorkKind::Image), Some(0.02)),
            // Free is a price.
            ("ollama", "llama3.1", chat(1000, None), Some(0.0)),
            // Unknown is none.
            ("openai", "whisper-1", chat(1000, None), None),
            ("openai", "container", chat(1000, None), None),
            ("openai", "gpt-image-1", other(WorkKind::Image), None),
            ("openai", "gpt-4o-mini", other(WorkKind::Image), None),
            ("openai", "gpt-4o-mini", other(WorkKind::AudioIn), None),
            ("openai", "gpt-4o-mini", other(WorkKind::Speech), None),
            ("openai", "tts-1", other(WorkKind::Embeddings), None),
            // A picture in the prompt is not a picture made.
            ("vertex-ai", "gemini-3.1-pro-preview", other(WorkKind::Image), None),
        ] {
            near(
                cost(facts(provider, model), &work),
                want,
                &format!("{provider}/{model} {work:?}"),
            );
        }
    }

    #[test]
    fn tokens_that_were_used_are_settled() {
        let mini = facts("openai", "gpt-4o-mini");
        let uncached = ModelFacts {
            cache_read_per_m: None,
            ..mini.clone()
        };
        let input_only = ModelFacts {
            output_per_m: None,
            ..mini.clone()
        };
        let unknown = ModelFacts::of(Mode::Chat);
        for (facts, prompt, cached, completion, want) in [
            (mini, 1000, None, 100, Some(0.000_21)),
            (mini, 1000, Some(0), 100, Some(0.000_21)),
            (mini, 1000, Some(400), 100, Some(0.000_18)),
            (mini, 1000, Some(5000), 0, Some(0.000_075)),
            (mini, 0, None, 0, Some(0.0)),
            (&uncached, 1000, Some(400), 100, Some(0.000_21)),
            (&input_only, 1000, None, 0, Some(0.000_15)),
            (&input_only, 1000, None, 1, None),
            (&unknown, 1000, None, 100, None),
            (&unknown, 0, None, 0, None),
            (facts("ollama", "llama3.1"), 1000, Some(10), 100, Some(0.0)),
        ] {
            let what = format!("{prompt} {cached:?} {completion}");
            near(actual_cost(facts, prompt, cached, completion), want, &what);
        }
    }
}
