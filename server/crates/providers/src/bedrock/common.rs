//! What Bedrock and Cohere have in common: both are only ever written to for callers of other dialects, and both are narrow
//! in what they take for the name of a tool, and know none that takes plain text.

use crate::Call;
use crate::ir::{Format, Prompt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

/// What a tool may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    /// Letters, digits, `_` and `-`.
    WithHyphens,
    /// Letters, digits and `_`, and no digit in front.
    Plain,
}

const LONGEST_NAME: usize = 64;

/// The name itself if a wire takes it. Otherwise one that still reads like it, and is the same every time.
pub(crate) fn fitting_name(name: &str, letters: Letters) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || (c == '-' && letters == Letters::WithHyphens);
    let begins = |c: char| letters == Letters::WithHyphens || !c.is_ascii_digit();
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(fits) && name.starts_with(begins) {
        return Cow::Borrowed(name);
    }
    let mut made = String::from(if name.starts_with(begins) { "" } else { "_" });
    made.extend(
        name.chars()
            .map(|c| if fits(c) { c } else { '_' })
            .take(LONGEST_NAME - 10),
    );
    // Two names that come to read alike are still two.
    made.push('_');
    for byte in Sha256::digest(name.as_bytes()).iter().take(4) {
        // Writing to a string does not fail.
        let _ = write!(made, "{byte:02x}");
    }
    Cow::Owned(made)
}

/// What an answer has to be told about the tools of its request.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// The caller's names, by those that were sent.
    renamed: HashMap<String, String>,
}

impl Tools {
    pub(crate) fn of(call: &Call, letters: Letters) -> Self {
        call.prompt()
            .map(|prompt| Self::of_prompt(&prompt, letters))
            .unwrap_or_default()
    }

    pub(crate) fn of_prompt(prompt: &Prompt, letters: Letters) -> Self {
        let mut tools = Self::default();
        for tool in &prompt.tools {
            if let Cow::Owned(sent) = fitting_name(&tool.name, letters) {
                tools.renamed.insert(sent, tool.name.clone());
            }
        }
        tools
    }

    /// The caller's name of a tool.
    pub(crate) fn name(&self, sent: String) -> String {
        self.renamed.get(&sent).cloned().unwrap_or(sent)
    }
}

/// What asks for a format in words, where a wire or a model has no parameter for it.
pub(crate) fn in_words(format: &Format) -> Option<String> {
    match format {
        Format::Text => None,
        Format::Json => {
            Some("Answer with one JSON object and nothing else: no text around it, no code fence.".to_owned())
        }
        Format::Schema { schema, .. } => Some(format!(
            "Answer with one JSON value that is valid by this JSON schema, and nothing else: no text around it, no code \
             fence.\n{schema}"
        )),
    }
}

/// The schema of a function, which may have none.
pub(crate) fn schema_or_empty(schema: Option<&Value>) -> Value {
    schema
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "properties": {}}))
}

#[cfg(test)]
mod tests {
    use super::{Letters, Tools, fitting_name};
    use crate::ir::{Custom, Prompt, Tool, ToolKind};

    #[test]
    fn a_name_that_fits_stays_and_another_still_reads_like_itself() {
        assert_eq!(
            fitting_name("mcp__x__get-issue", Letters::WithHyphens),
            "mcp__x__get-issue"
        );
        let plain = fitting_name("mcp__x__get-issue", Letters::Plain);
        assert!(plain.starts_with("mcp__x__get_issue_") && plain.len() == 26, "{plain}");
        assert_ne!(plain, fitting_name("mcp__x__get.issue", Letters::Plain));
        assert!(fitting_name("1up", Letters::Plain).starts_with("_1up_"));
        for name in ["", "a.b", "é", &"x".repeat(65), "9-", &"9".repeat(200)] {
            for letters in [Letters::WithHyphens, Letters::Plain] {
                let made = fitting_name(name, letters);
                assert!(made.len() <= 64, "{made}");
                assert_eq!(fitting_name(&made, letters), made);
            }
        }
    }

    #[test]
    fn tools_come_back_by_the_callers_names() {
        let custom = Tool {
            at: crate::ir::Place::default(),
            name: "apply.patch".to_owned(),
            description: None,
            kind: ToolKind::Custom(Custom::default()),
            cache: None,
        };
        let sent = fitting_name("apply.patch", Letters::WithHyphens).into_owned();
        let prompt = Prompt {
            tools: vec![custom],
            ..Prompt::default()
        };
        let tools = Tools::of_prompt(&prompt, Letters::WithHyphens);
        assert_eq!(tools.name(sent), "apply.patch");
        assert_eq!(tools.name("other".to_owned()), "other");
    }
}
