//! What is known of a model by its id.
//!
//! Converse is one wire for the models of many vendors, and what a model does not take it refuses, the whole request with it.
//! So the little that differs is known here. An ARN of an application's own profile hides whose model it is; such a model is
//! sent what the caller asked for.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Claude,
    Nova,
    OpenAi,
    Mistral,
    Cohere,
    /// A vendor that is known, and has nothing of its own here.
    Other,
    Hidden,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    id: String,
    pub(super) family: Family,
}

const FAMILIES: [(&str, Family); 8] = [
    ("claude", Family::Claude),
    ("anthropic.", Family::Claude),
    ("amazon.nova", Family::Nova),
    ("openai.", Family::OpenAi),
    ("gpt-oss", Family::OpenAi),
    ("mistral.", Family::Mistral),
    ("cohere.", Family::Cohere),
    ("application-inference-profile/", Family::Hidden),
];

impl Model {
    pub(super) fn of(id: &str) -> Self {
        let id = id.to_ascii_lowercase();
        let known = FAMILIES.into_iter().find(|(mark, _)| id.contains(mark));
        let family = match known {
            Some((_, family)) => family,
            None if id.starts_with("arn:") && !id.contains("foundation-model/") => Family::Hidden,
            None if id.contains('.') => Family::Other,
            None => Family::Hidden,
        };
        Self { id, family }
    }

    fn has_any(&self, marks: &[&str]) -> bool {
        marks.iter().any(|mark| self.id.contains(mark))
    }

    pub(super) fn is_claude(&self) -> bool {
        self.family == Family::Claude
    }

    /// Whether it may be one of Anthropic's.
    pub(super) fn may_be_claude(&self) -> bool {
        matches!(self.family, Family::Claude | Family::Hidden)
    }

    /// Claude 3 to Claude 4.1: before structured output, and with `temperature` beside `top_p`.
    fn is_early_claude(&self) -> bool {
        self.has_any(&[
            "claude-v",
            "claude-instant",
            "claude-3",
            "claude-opus-4-2025",
            "claude-sonnet-4-2025",
            "opus-4-1",
        ])
    }

    /// Claudes that are told how many tokens to think with. Later ones judge by themselves, by effort.
    pub(super) fn thinks_by_budget(&self) -> bool {
        self.is_early_claude() || self.has_any(&["-4-5"])
    }

    /// Takes a schema for its output, and `strict` for tools.
    pub(super) fn is_structured(&self) -> bool {
        match self.family {
            Family::Claude => !self.is_early_claude(),
            Family::Nova | Family::Cohere => false,
            Family::Other => !self.has_any(&["meta.", "ai21.", "amazon.", "writer.", "deepseek.r1"]),
            Family::OpenAi | Family::Mistral | Family::Hidden => true,
        }
    }

    pub(super) fn caches(&self) -> bool {
        matches!(self.family, Family::Claude | Family::Nova | Family::Hidden)
    }

    /// Takes the status of a tool's result.
    pub(super) fn knows_status(&self) -> bool {
        matches!(self.family, Family::Claude | Family::Nova | Family::Hidden)
    }

    /// Takes a temperature or a top-p, and not both.
    pub(super) fn samples_one_way(&self) -> bool {
        self.is_claude() && (!self.is_early_claude() || self.has_any(&["opus-4-1"]))
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, Model};

    #[test]
    fn families_are_told_by_ids_and_arns() {
        for (id, family) in [
            ("anthropic.claude-sonnet-4-5-20250929-v1:0", Family::Claude),
            ("us.anthropic.claude-3-7-sonnet-20250219-v1:0", Family::Claude),
            (
                "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-6-v1",
                Family::Claude,
            ),
            (
                "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0",
                Family::Nova,
            ),
            ("openai.gpt-oss-120b-1:0", Family::OpenAi),
            ("meta.llama3-3-70b-instruct-v1:0", Family::Other),
            (
                "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123",
                Family::Hidden,
            ),
            ("arn:aws:sagemaker:us-east-1:123456789012:endpoint/x", Family::Hidden),
            ("my-model", Family::Hidden),
        ] {
            assert_eq!(Model::of(id).family, family, "{id}");
        }
    }

    #[test]
    fn claudes_differ_by_age() {
        let of = |id: &str| Model::of(&format!("us.anthropic.claude-{id}"));
        for (id, budget, structured, one_way) in [
            ("3-7-sonnet-20250219-v1:0", true, false, false),
            ("opus-4-1-20250805-v1:0", true, false, true),
            ("haiku-4-5-20251001-v1:0", true, true, true),
            ("opus-4-6-v1", false, true, true),
        ] {
            let model = of(id);
            let is = (model.thinks_by_budget(), model.is_structured(), model.samples_one_way());
            assert_eq!(is, (budget, structured, one_way), "{id}");
        }
    }
}
