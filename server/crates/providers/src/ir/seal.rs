//! What a vendor signs or encrypts, and wants to see again in the next turn.
//!
//! It is of use to its maker alone; another vendor refuses the whole request for it. So it never travels without its maker's
//! name: in a dialect of another vendor it is written with a mark in front, and whoever reads it there knows whose it is.

/// Who made a seal. The same model behind another vendor's cloud is the same maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maker {
    OpenAi,
    Anthropic,
    Gemini,
}

impl Maker {
    const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    const fn mark(self) -> &'static str {
        match self {
            Self::OpenAi => "sy.openai.",
            Self::Anthropic => "sy.anthropic.",
            Self::Gemini => "sy.gemini.",
        }
    }
}

/// A signature, or an encrypted text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seal {
    pub maker: Maker,
    pub data: String,
}

impl Seal {
    #[must_use]
    pub fn new(maker: Maker, data: impl Into<String>) -> Self {
        Self {
            maker,
            data: data.into(),
        }
    }

    /// Reads what stands in a request of `home`'s dialect.
    #[must_use]
    pub fn read(written: &str, home: Maker) -> Self {
        let foreign = |maker: Maker| Some(Self::new(maker, written.strip_prefix(maker.mark())?));
        let found = Maker::ALL.into_iter().find_map(foreign);
        found.unwrap_or_else(|| Self::new(home, written))
    }

    /// Writes it for an answer in `home`'s dialect.
    #[must_use]
    pub fn write(&self, home: Maker) -> String {
        let mark = if self.maker == home { "" } else { self.maker.mark() };
        format!("{mark}{}", self.data)
    }

    /// What its maker is sent; nobody else is sent anything.
    #[must_use]
    pub fn for_maker(&self, maker: Maker) -> Option<&str> {
        (self.maker == maker).then_some(&*self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::{Maker, Seal};

    #[test]
    fn a_seal_comes_home_from_every_dialect_and_goes_nowhere_else() {
        for maker in Maker::ALL {
            for dialect in Maker::ALL {
                let seal = Seal::new(maker, "EqQB+/=");
                let again = Seal::read(&seal.write(dialect), dialect);
                assert_eq!(again, seal, "{dialect:?}");
                for other in Maker::ALL {
                    let sent = again.for_maker(other);
                    assert_eq!(sent, (other == maker).then_some("EqQB+/="), "{dialect:?} {other:?}");
                }
            }
        }
        assert_eq!(Seal::new(Maker::Gemini, "x").write(Maker::Gemini), "x");
    }
}
