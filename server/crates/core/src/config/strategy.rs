//! `strategy`: how a route orders its targets.

use super::Notices;
use super::reader::{Block, Faults, as_text, closest};
use super::routes::Named;
use super::rules;
use super::targets::ROUTE;
use super::tree::Value;
use crate::routing::{Condition, Content, Sticky, StickyOn};

/// A failure with one of these is the request's own fault on every target.
const NEVER_FAILOVER: [u16; 5] = [400, 401, 403, 404, 422];

/// How a route orders its targets. Rules and variants name places of the route, by position.
#[derive(Clone, Debug)]
pub enum Mode {
    /// The first place and no other.
    Single,
    /// All places in the order written.
    Fallback,
    LoadBalance {
        sticky: Option<Sticky>,
    },
    LeastLatency,
    CostOptimized {
        unpriced: Unpriced,
    },
    Conditional {
        rules: Vec<Rule<Condition>>,
    },
    ContentBased {
        rules: Vec<Rule<Content>>,
    },
    AbTest {
        variants: Vec<Variant>,
        sticky: Option<Sticky>,
    },
    HealthWeighted {
        blend: Blend,
    },
}

/// What becomes of a place without a known price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unpriced {
    /// After all that have one.
    #[default]
    Fallback,
    /// Not at all.
    Skip,
    /// As if it were free.
    Allow,
}

/// A condition, and the chain of places that it names.
#[derive(Clone, Debug)]
pub struct Rule<C> {
    pub when: C,
    pub places: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct Variant {
    pub place: usize,
    pub weight: f64,
    pub label: String,
}

/// How much success and speed count, relative to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blend {
    pub success: f64,
    pub latency: f64,
}

impl Default for Blend {
    fn default() -> Self {
        Self {
            success: 0.7,
            latency: 0.3,
        }
    }
}

impl Mode {
    const NAMES: [&str; 9] = [
        "single",
        "fallback",
        "load-balance",
        "least-latency",
        "cost-optimized",
        "conditional",
        "content-based",
        "ab-test",
        "health-weighted",
    ];

    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Fallback => "fallback",
            Self::LoadBalance { .. } => "load-balance",
            Self::LeastLatency => "least-latency",
            Self::CostOptimized { .. } => "cost-optimized",
            Self::Conditional { .. } => "conditional",
            Self::ContentBased { .. } => "content-based",
            Self::AbTest { .. } => "ab-test",
            Self::HealthWeighted { .. } => "health-weighted",
        }
    }

    /// Somebody named who is to answer: a failure stays inside what was named.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        matches!(
            self,
            Self::Single | Self::Conditional { .. } | Self::ContentBased { .. }
        )
    }

    /// A place without a weight is out of the game, or last in it.
    #[must_use]
    pub(super) const fn draws_by_weight(&self) -> bool {
        matches!(self, Self::LoadBalance { .. } | Self::HealthWeighted { .. })
    }

    /// Weights of places mean something to it.
    #[must_use]
    pub const fn weighs(&self) -> bool {
        matches!(
            self,
            Self::LoadBalance { .. } | Self::CostOptimized { .. } | Self::HealthWeighted { .. }
        )
    }
}

#[derive(Clone, Debug)]
pub struct Strategy {
    pub mode: Mode,
    /// Statuses that move on to the next target, besides transport failures, 408, 429 and 5xx.
    pub failover_on_status_codes: Vec<u16>,
}

impl Strategy {
    #[must_use]
    pub const fn of(mode: Mode) -> Self {
        Self {
            mode,
            failover_on_status_codes: Vec::new(),
        }
    }
}

/// Reads the `strategy` of a route whose places have these names.
pub(super) fn read(
    owner: &mut Block<'_>,
    places: &[Named],
    aliases: &[&str],
    faults: &mut Faults,
    notices: &mut Notices,
) -> Strategy {
    let mut strategy = Strategy::of(Mode::Single);
    let path = owner.path_of("strategy");
    let node = owner.take("strategy");
    let mut line = node.map_or(owner.line, |node| node.line);
    if let Some(mut block) = node.and_then(|node| Block::of(node, &path, faults)) {
        let mut reader = Reader {
            places,
            aliases,
            faults: &mut *faults,
        };
        let mode_line = block.line_of("mode");
        line = mode_line;
        let mode = block.text("mode", reader.faults).unwrap_or_default();
        strategy.mode = reader.mode(&mode, mode_line, &mut block);
        let mut weights = places.iter().filter_map(|place| place.weight).peekable();
        if strategy.mode.draws_by_weight() && weights.peek().is_some() && weights.all(|weight| weight <= 0.0) {
            let message = "shares by weight, and every weight is 0; give one of the targets a positive weight";
            reader.faults.add(&block.path_of("mode"), mode_line, message);
        }
        strategy.failover_on_status_codes = read_failover_statuses(&mut block, reader.faults);
        reader.unused(&strategy.mode, &mut block, notices);
        block.finish(reader.faults);
    }
    if matches!(strategy.mode, Mode::Single) && places.len() > 1 {
        let unused: Vec<&str> = places.iter().skip(1).map(|place| place.name.as_str()).collect();
        let message = format!("\"single\" uses the first target only; unused: {}", unused.join(", "));
        notices.warn(&format!("{path}.mode"), line, message);
    }
    strategy
}

pub(super) struct Reader<'r> {
    pub(super) places: &'r [Named],
    /// Names that never reach a rule, because they are resolved before.
    pub(super) aliases: &'r [&'r str],
    pub(super) faults: &'r mut Faults,
}

impl Reader<'_> {
    fn mode(&mut self, written: &str, line: u64, block: &mut Block<'_>) -> Mode {
        match written {
            "single" | "" => Mode::Single,
            "fallback" => Mode::Fallback,
            "load-balance" | "loadbalance" => Mode::LoadBalance {
                sticky: self.sticky(block),
            },
            "least-latency" => Mode::LeastLatency,
            "cost-optimized" => Mode::CostOptimized {
                unpriced: self.unpriced(block),
            },
            "conditional" => {
                self.require("conditions", "rule", block);
                Mode::Conditional {
                    rules: self.rules(block, "conditions", rules::condition),
                }
            }
            "content-based" => {
                self.require("content_conditions", "rule", block);
                Mode::ContentBased {
                    rules: self.rules(block, "content_conditions", rules::content),
                }
            }
            "ab-test" => {
                self.require("ab_variants", "variant", block);
                Mode::AbTest {
                    variants: self.variants(block),
                    sticky: self.sticky(block),
                }
            }
            "health-weighted" => Mode::HealthWeighted {
                blend: self.blend(block),
            },
            unknown => {
                let hint = closest(unknown, &Mode::NAMES).map_or_else(
                    || format!("there are {}", Mode::NAMES.join(", ")),
                    |known| format!("did you mean \"{known}\"?"),
                );
                let message = format!("unknown strategy mode \"{unknown}\"; {hint}");
                self.faults.add(&block.path_of("mode"), line, message);
                Mode::Fallback
            }
        }
    }

    fn require(&mut self, key: &'static str, what: &str, block: &mut Block<'_>) {
        if block.is_bare(key) {
            let message = format!("is required under this mode: at least one {what}");
            self.faults.add(&block.path_of(key), block.line_of(key), message);
        }
    }

    /// Keys that belong to other modes: as strictly read as where they count.
    fn unused(&mut self, mode: &Mode, block: &mut Block<'_>, notices: &mut Notices) {
        let used: &[&str] = match mode {
            Mode::LoadBalance { .. } => &["sticky"],
            Mode::CostOptimized { .. } => &["unpriced_strategy"],
            Mode::Conditional { .. } => &["conditions"],
            Mode::ContentBased { .. } => &["content_conditions"],
            Mode::AbTest { .. } => &["ab_variants", "sticky"],
            Mode::HealthWeighted { .. } => &["health"],
            Mode::Single | Mode::Fallback | Mode::LeastLatency => &[],
        };
        let all = [
            "conditions",
            "content_conditions",
            "ab_variants",
            "unpriced_strategy",
            "sticky",
            "health",
        ];
        for key in all {
            let Some(node) = block.take(key).filter(|_| !used.contains(&key)) else {
                continue;
            };
            match key {
                "conditions" => _ = self.rules(block, key, rules::condition),
                "content_conditions" => _ = self.rules(block, key, rules::content),
                "ab_variants" => _ = self.variants(block),
                "unpriced_strategy" => _ = self.unpriced(block),
                "sticky" => _ = self.sticky(block),
                _ => _ = self.blend(block),
            }
            let message = format!("has no effect under mode \"{}\"", mode.as_str());
            notices.warn(&block.path_of(key), node.line, message);
        }
    }

    fn unpriced(&mut self, block: &mut Block<'_>) -> Unpriced {
        let Some(node) = block.take("unpriced_strategy") else {
            return Unpriced::default();
        };
        match block.text("unpriced_strategy", self.faults).as_deref() {
            Some("fallback") => Unpriced::Fallback,
            Some("skip") => Unpriced::Skip,
            Some("allow") => Unpriced::Allow,
            Some(other) => {
                let message = format!("\"{other}\" is none of fallback, skip and allow");
                self.faults.add(&block.path_of("unpriced_strategy"), node.line, message);
                Unpriced::default()
            }
            None => Unpriced::default(),
        }
    }

    fn sticky(&mut self, block: &mut Block<'_>) -> Option<Sticky> {
        let node = block.take("sticky")?;
        let path = block.path_of("sticky");
        let mut block = Block::of(node, &path, self.faults)?;
        let field = block
            .text("field", self.faults)
            .filter(|field| !field.trim().is_empty());
        let on = match (block.text("on", self.faults).as_deref(), field) {
            (Some("user"), None) => Some(StickyOn::User),
            (Some("session"), None) => Some(StickyOn::Session),
            (Some("header"), Some(name)) => Some(StickyOn::Header(rules::header(&name, &block, self))),
            (Some("header"), None) => {
                let message = "is required with `on: header`: name the header, such as \"X-Tenant\"";
                self.faults
                    .add(&format!("{path}.field"), block.line_of("field"), message);
                None
            }
            (Some("user" | "session"), Some(_)) => {
                let message = "goes with `on: header` only; remove it";
                self.faults
                    .add(&format!("{path}.field"), block.line_of("field"), message);
                None
            }
            (other, _) => {
                let found = other.map_or("is required".to_owned(), |other| format!("\"{other}\" is not known"));
                let message = format!("{found}; use user, session or header");
                self.faults.add(&format!("{path}.on"), block.line_of("on"), message);
                None
            }
        };
        let ttl = block.positive_duration("ttl", self.faults);
        block.finish(self.faults);
        on.map(|on| Sticky { on, ttl })
    }

    fn blend(&mut self, block: &mut Block<'_>) -> Blend {
        let mut blend = Blend::default();
        let path = block.path_of("health");
        let Some(mut block) = block
            .take("health")
            .and_then(|node| Block::of(node, &path, self.faults))
        else {
            return blend;
        };
        if let Some(success) = block.weight("success", self.faults) {
            blend.success = success;
        }
        if let Some(latency) = block.weight("latency", self.faults) {
            blend.latency = latency;
        }
        if blend.success + blend.latency <= 0.0 {
            self.faults.add(
                &path,
                block.line,
                "weighs neither success nor latency; give one of them more than 0",
            );
        }
        block.finish(self.faults);
        blend
    }

    fn rules<C>(
        &mut self,
        block: &mut Block<'_>,
        key: &'static str,
        condition: fn(&mut Block<'_>, &mut Self) -> Option<C>,
    ) -> Vec<Rule<C>> {
        let items = block.list(key, self.faults);
        let mut rules = Vec::new();
        for (node, path) in items {
            let Some(mut block) = Block::of(node, &path, self.faults) else {
                continue;
            };
            let when = condition(&mut block, self);
            let places = self.chain(&mut block);
            block.finish(self.faults);
            rules.extend(when.map(|when| Rule { when, places }));
        }
        rules
    }

    /// `target_key` or `target_keys`.
    fn chain(&mut self, block: &mut Block<'_>) -> Vec<usize> {
        let one = block.take("target_key");
        let many = block.take("target_keys");
        let (line, path) = (block.line, block.path.clone());
        let mut names: Vec<(String, u64, String)> = Vec::new();
        match (one, many) {
            (Some(_), Some(_)) => {
                self.faults
                    .add(&path, line, "has both `target_key` and `target_keys`; keep one of them");
            }
            (None, None) => {
                self.faults
                    .add(&path, line, "names nobody to ask; write `target_key` or `target_keys`");
            }
            (Some(node), None) => {
                let at = block.path_of("target_key");
                names.extend(as_text(node, &at, self.faults).map(|name| (name, node.line, at)));
            }
            (None, Some(node)) => {
                let items = block.list("target_keys", self.faults);
                if items.is_empty() && matches!(&node.value, Value::Seq(_)) {
                    self.faults.add(
                        &block.path_of("target_keys"),
                        node.line,
                        "must name at least one target",
                    );
                }
                for (node, at) in items {
                    names.extend(as_text(node, &at, self.faults).map(|name| (name, node.line, at)));
                }
            }
        }
        let mut places = Vec::new();
        for (name, line, path) in names {
            match self.place(&name, line, &path) {
                Some(place) if places.contains(&place) => {
                    let message = format!("\"{name}\" stands in this chain already; name it once");
                    self.faults.add(&path, line, message);
                }
                place => places.extend(place),
            }
        }
        places
    }

    fn place(&mut self, name: &str, line: u64, path: &str) -> Option<usize> {
        let named = |is: fn(&str) -> Option<&str>| self.places.iter().position(|place| is(&place.name) == Some(name));
        let found = named(|place| Some(place)).or_else(|| named(|place| place.strip_prefix(ROUTE)));
        if found.is_none() {
            let declared: Vec<&str> = self.places.iter().map(|place| place.name.as_str()).collect();
            let message = format!(
                "\"{name}\" names no configured target; declared targets: {}",
                declared.join(", ")
            );
            self.faults.add(path, line, message);
        }
        found
    }

    fn variants(&mut self, block: &mut Block<'_>) -> Vec<Variant> {
        let path = block.path_of("ab_variants");
        let line = block.line_of("ab_variants");
        let mut variants: Vec<Variant> = Vec::new();
        let mut weights: Vec<f64> = Vec::new();
        for (node, path) in block.list("ab_variants", self.faults) {
            let Some(mut block) = Block::of(node, &path, self.faults) else {
                continue;
            };
            let at = |block: &Block<'_>, key| (block.path_of(key), block.line_of(key));
            let (key_path, key_line) = at(&block, "target_key");
            let (label_path, label_line) = at(&block, "label");
            let key = block.text("target_key", self.faults).unwrap_or_default();
            let place = self.place(&key, key_line, &key_path);
            let is_written = block.take("weight").is_some();
            let weight = block.weight("weight", self.faults);
            weights.extend(weight.or((!is_written).then_some(0.0)));
            let weight = weight.unwrap_or(0.0);
            let label = block.text("label", self.faults).unwrap_or_default();
            let twin = |variant: &&Variant| variant.label.to_lowercase() == label.to_lowercase();
            if label.trim().is_empty() {
                let message = "is required: answers are told apart by it";
                self.faults.add(&label_path, label_line, message);
            } else if variants.iter().find(twin).is_some() {
                let message = format!("\"{label}\" is another variant's label; give each its own");
                self.faults.add(&label_path, label_line, message);
            }
            if place.is_some_and(|place| variants.iter().any(|other| other.place == place)) {
                let message = format!("\"{key}\" is a variant already; keep one of them");
                self.faults.add(&key_path, key_line, message);
            }
            block.finish(self.faults);
            variants.extend(place.map(|place| Variant { place, weight, label }));
        }
        if !weights.is_empty() && weights.iter().all(|weight| *weight <= 0.0) {
            let message = "has no positive weight; give at least one variant more than 0";
            self.faults.add(&path, line, message);
        }
        variants
    }
}

fn read_failover_statuses(block: &mut Block<'_>, faults: &mut Faults) -> Vec<u16> {
    let line = block
        .take("failover_on_status_codes")
        .map_or(block.line, |node| node.line);
    let statuses = block.statuses("failover_on_status_codes", faults);
    for status in statuses.iter().filter(|status| NEVER_FAILOVER.contains(status)) {
        let message =
            format!("{status} says that the request itself is wrong, on every target; remove it from the list");
        faults.add(&block.path_of("failover_on_status_codes"), line, message);
    }
    statuses
}
