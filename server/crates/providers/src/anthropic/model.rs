//! What a model of Claude takes, read from its name.
//!
//! The wire is one, but its generations disagree: newer ones refuse parameters that older ones knew (temperatures, budgets of
//! thinking, an answer that was begun for them), and refuse the whole request for it. A gateway that translates for callers who
//! never heard of these rules has to know them. What has no name of Claude, behind an address that speaks the same wire, gets
//! what all of them took for years.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Opus,
    Sonnet,
    Haiku,
    /// Fable and Mythos: they always think.
    Fable,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    family: Family,
    /// Absent where the name says none that is known here.
    version: Option<(u32, u32)>,
}

/// How thinking is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinks {
    /// By a number of tokens.
    ByBudget,
    /// By a word of effort, and as much as it sees fit.
    Adaptively,
}

/// How thinking is kept off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Off {
    /// It is, unless it is asked for.
    Already,
    /// `{"type":"disabled"}`
    Disabled,
    /// `{"type":"between_tools"}` is the least that the model does.
    BetweenTools,
    Never,
}

impl Model {
    /// Names come as `claude-opus-4-5-20251101`, `claude-3-7-sonnet-latest`, `anthropic/claude-sonnet-4.5` and more.
    pub(super) fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let mut model = Self {
            family: Family::Other,
            version: None,
        };
        let Some((_, rest)) = name.split_once("claude") else {
            return model;
        };
        let mut numbers = [None, None];
        let mut counted = 0;
        for word in rest.split(|c: char| !c.is_ascii_alphanumeric()) {
            match word {
                "opus" => model.family = Family::Opus,
                "sonnet" => model.family = Family::Sonnet,
                "haiku" => model.family = Family::Haiku,
                "fable" | "mythos" => model.family = Family::Fable,
                // A longer number is a date.
                number if number.len() <= 2 => {
                    if let (Ok(number), Some(slot)) = (number.parse(), numbers.get_mut(counted)) {
                        *slot = Some(number);
                        counted += 1;
                    }
                }
                _ => {}
            }
        }
        let [major, minor] = numbers;
        model.version = major.map(|major: u32| (major, minor.unwrap_or(0)));
        if model.family == Family::Fable && model.version.is_none() {
            // The preview had no number.
            model.version = Some((5, 0));
        }
        model
    }

    fn since(self, major: u32, minor: u32) -> bool {
        self.version.is_some_and(|version| version >= (major, minor))
    }

    /// Whether `temperature`, `top_p` and `top_k` may be set at all.
    pub(super) fn samples(self) -> bool {
        !self.since(4, 7)
    }

    /// Whether `temperature` and `top_p` may be set both.
    pub(super) fn samples_both(self) -> bool {
        !self.since(4, 1)
    }

    pub(super) fn thinks(self) -> Thinks {
        if self.since(4, 6) {
            Thinks::Adaptively
        } else {
            Thinks::ByBudget
        }
    }

    pub(super) fn thinks_by_default(self) -> bool {
        self.since(5, 0)
    }

    pub(super) fn off(self) -> Off {
        match self.family {
            _ if !self.since(5, 0) => Off::Already,
            Family::Fable => Off::Never,
            Family::Opus if self.since(5, 5) => Off::Never,
            Family::Sonnet if self.since(5, 5) => Off::BetweenTools,
            _ => Off::Disabled,
        }
    }

    /// Whether `output_config.effort` is known.
    pub(super) fn has_effort(self) -> bool {
        self.since(4, 6) || (self.family == Family::Opus && self.since(4, 5))
    }

    pub(super) fn has_xhigh(self) -> bool {
        self.since(4, 7)
    }

    pub(super) fn has_max(self) -> bool {
        self.since(4, 6)
    }

    /// Whether it can be made to call a tool.
    pub(super) fn can_be_forced(self) -> bool {
        let never = match self.family {
            Family::Fable => self.since(5, 1),
            Family::Opus | Family::Sonnet => self.since(5, 5),
            Family::Haiku | Family::Other => false,
        };
        !never
    }

    /// Whether it goes on with an answer that was begun for it.
    pub(super) fn continues(self) -> bool {
        !self.since(4, 6)
    }

    /// Whether the system may speak in the middle of a conversation.
    pub(super) fn hears_system_later(self) -> bool {
        self.since(4, 8)
    }

    /// Whether `output_config.format` and `strict` tools are known. Of strangers that is assumed.
    pub(super) fn has_schemas(self) -> bool {
        self.version.is_none() || self.since(4, 5) || (self.family == Family::Opus && self.since(4, 1))
    }

    /// Tokens of output that all models of the kind can give.
    pub(super) fn usual_output(self) -> u64 {
        let is_old = self.version.is_some_and(|version| version <= (3, 0));
        if is_old { 4096 } else { 8192 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, Model, Off, Thinks};

    #[test]
    fn names_are_read_in_every_way_they_are_written() {
        for (name, family, version) in [
            ("claude-opus-4-5-20251101", Family::Opus, Some((4, 5))),
            ("claude-opus-4-20250514", Family::Opus, Some((4, 0))),
            ("claude-3-7-sonnet-latest", Family::Sonnet, Some((3, 7))),
            ("claude-3-5-haiku@20241022", Family::Haiku, Some((3, 5))),
            ("anthropic/claude-sonnet-4.5", Family::Sonnet, Some((4, 5))),
            (
                "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                Family::Haiku,
                Some((4, 5)),
            ),
            ("Claude-Fable-5-1", Family::Fable, Some((5, 1))),
            ("claude-mythos-preview", Family::Fable, Some((5, 0))),
            ("claude-2.1", Family::Other, Some((2, 1))),
            ("glm-4.7", Family::Other, None),
        ] {
            assert_eq!(Model::of(name), Model { family, version }, "{name}");
        }
    }

    #[test]
    fn generations_differ() {
        let of = Model::of;
        assert_eq!(of("claude-sonnet-4-5").thinks(), Thinks::ByBudget);
        assert_eq!(of("claude-opus-4-6").thinks(), Thinks::Adaptively);
        assert!(of("claude-opus-4-6").samples() && !of("claude-opus-4-7").samples());
        assert!(of("kimi-k2").samples_both() && !of("claude-haiku-4-5").samples_both());
        assert_eq!(of("claude-haiku-5-5").off(), Off::Disabled);
        assert_eq!(of("claude-sonnet-5-5").off(), Off::BetweenTools);
        assert_eq!(of("claude-opus-5-5").off(), Off::Never);
        assert_eq!(of("claude-opus-4-8").off(), Off::Already);
        assert!(of("claude-opus-5").can_be_forced() && !of("claude-opus-5-5").can_be_forced());
        assert_eq!(
            (of("claude-3-haiku-20240307").usual_output(), of("m").usual_output()),
            (4096, 8192)
        );
    }
}
