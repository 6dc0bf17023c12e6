//! In whose words a message is sent, and where it goes.

use crate::api::query;

/// The dialects that the gateway is spoken to in, as far as they are made for conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's chat completions.
    #[default]
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Gemini's `generateContent`.
    Gemini,
}

impl Dialect {
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Gemini];

    /// As the log calls its surface.
    pub const fn surface(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Gemini => "generate_content",
        }
    }

    /// The dialect of a surface.
    pub fn of(surface: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.surface() == surface)
    }

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "Chat",
            Self::Responses => "Responses",
            Self::Messages => "Messages",
            Self::Gemini => "Gemini",
        }
    }

    /// Where a stream is asked for.
    pub fn path(self, model: &str) -> String {
        match self {
            Self::Chat => "/v1/chat/completions".to_owned(),
            Self::Responses => "/v1/responses".to_owned(),
            Self::Messages => "/v1/messages".to_owned(),
            Self::Gemini => [
                "/v1beta/models/",
                &query::segment(model.trim()),
                ":streamGenerateContent?alt=sse",
            ]
            .concat(),
        }
    }

    /// What a client of this dialect sends beside the body.
    pub const fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Messages => &[("anthropic-version", "2023-06-01")],
            _ => &[],
        }
    }

    /// The highest temperature that it knows.
    pub const fn hottest(self) -> u8 {
        match self {
            Self::Messages => 1,
            _ => 2,
        }
    }

    /// The field that bounds an answer.
    pub const fn most_tokens(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => "max_tokens",
            Self::Responses => "max_output_tokens",
            Self::Gemini => "maxOutputTokens",
        }
    }

    /// The bound where none is typed, in a dialect that cannot do without.
    pub const fn most_tokens_unsaid(self) -> Option<u32> {
        match self {
            Self::Messages => Some(4096),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect;

    #[test]
    fn a_models_name_is_one_segment_of_geminis_path() {
        assert_eq!(
            Dialect::Gemini.path(" openai/gpt-5:fast "),
            "/v1beta/models/openai%2Fgpt-5%3Afast:streamGenerateContent?alt=sse"
        );
        assert_eq!(Dialect::Messages.path("m"), "/v1/messages");
    }

    #[test]
    fn a_dialect_is_found_by_its_surface() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::of(dialect.surface()), Some(dialect));
        }
        assert_eq!(Dialect::of("embeddings"), None);
    }
}
