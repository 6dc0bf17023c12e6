//! What a key may do.
//!
//! Three scopes, and one rule that the older world did not have: reading is not spending. A key of scope `read_only` sees
//! everything that operators see and cannot make a call that costs money; `invoke` calls models and sees nothing of the
//! admin side but what concerns the call; `admin` includes both.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Admin,
    ReadOnly,
    Invoke,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Admin, Self::ReadOnly, Self::Invoke];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ReadOnly => "read_only",
            Self::Invoke => "invoke",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Admin => 1,
            Self::ReadOnly => 2,
            Self::Invoke => 4,
        }
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<&'static str>")]
pub struct Scopes(u8);

impl Scopes {
    pub const ADMIN: Self = Self(1);
    pub const INVOKE: Self = Self(4);

    /// Whether a caller with these scopes may do what asks for `scope`. `admin` may do everything.
    #[must_use]
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | scope.bit()))
    }
}

/// Names that this build does not know grant nothing.
impl From<Vec<String>> for Scopes {
    fn from(names: Vec<String>) -> Self {
        names.iter().filter_map(|name| Scope::parse(name)).collect()
    }
}

impl From<Scopes> for Vec<&'static str> {
    fn from(scopes: Scopes) -> Self {
        scopes.iter().map(Scope::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, Scopes};

    #[test]
    fn reading_is_not_spending() {
        let read_only: Scopes = [Scope::ReadOnly].into_iter().collect();
        assert!(!read_only.allow(Scope::Invoke));
        assert!(!read_only.allow(Scope::Admin));
        assert!(!Scopes::INVOKE.allow(Scope::ReadOnly));
        assert!(Scope::ALL.into_iter().all(|scope| Scopes::ADMIN.allow(scope)));
    }

    #[test]
    fn an_unknown_name_grants_nothing() {
        let scopes: Scopes = serde_json::from_str(r#"["root", "invoke"]"#).unwrap();
        assert_eq!(scopes, Scopes::INVOKE);
        assert_eq!(serde_json::to_string(&scopes).unwrap(), r#"["invoke"]"#);
    }
}
