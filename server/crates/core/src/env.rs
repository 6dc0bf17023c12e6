//! The environment, read through a trait so that no test ever sets a variable of its own process.

use std::collections::HashMap;

/// Where `${NAME}` and the gateway's own variables come from.
pub trait Env: Send + Sync {
    fn get(&self, name: &str) -> Option<String>;
}

impl Env for HashMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        Self::get(self, name).cloned()
    }
}

/// A text that may refer to the environment: `Bearer ${TOKEN}`.
///
/// References are resolved when the component that needs them is built, never when the configuration is read, so that no
/// secret ever enters a stored configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether the whole text stands in the configuration itself.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        references(&self.0).next().is_none()
    }

    /// The text with every reference replaced; the name of the first undefined variable otherwise.
    ///
    /// # Errors
    /// When a variable is not set.
    pub fn resolve(&self, env: &dyn Env) -> Result<String, String> {
        let mut out = String::with_capacity(self.0.len());
        let mut rest = self.0.as_str();
        for (start, end, name) in references(&self.0) {
            let offset = self.0.len() - rest.len();
            out.push_str(&rest[..start - offset]);
            out.push_str(&env.get(name).ok_or_else(|| name.to_owned())?);
            rest = &self.0[end..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// Shows references, never what a literal says.
impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_literal() { "[literal]" } else { &self.0 })
    }
}

/// Each `${NAME}`: where it starts, where it ends, and the name. `$NAME`, `$` and `${1}` are plain text.
fn references(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    text.match_indices("${").filter_map(|(start, _)| {
        let tail = &text[start + 2..];
        let name = &tail[..tail.find('}')?];
        let mut letters = name.chars();
        let first = letters.next()?;
        let valid =
            (first.is_ascii_alphabetic() || first == '_') && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
        valid.then_some((start, start + 3 + name.len(), name))
    })
}

#[cfg(test)]
mod tests {
    use super::Template;
    use std::collections::HashMap;

    #[test]
    fn references_are_resolved_late_and_only_in_their_braced_form() {
        let env: HashMap<String, String> = [("A".to_owned(), "x".to_owned())].into();
        let resolve = |text: &str| Template::new(text).resolve(&env);
        assert_eq!(resolve("Bearer ${A}-${A}!"), Ok("Bearer x-x!".to_owned()));
        assert_eq!(resolve("$A costs $5 ${1} ${"), Ok("$A costs $5 ${1} ${".to_owned()));
        assert_eq!(resolve("${A} ${MISSING}"), Err("MISSING".to_owned()));
    }
}
