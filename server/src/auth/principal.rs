//! Who is calling, once that is known.

use super::sessions::Session;
use crate::http::Refusal;
use switchyard_core::scope::{Scope, Scopes};
use switchyard_engine::Caller;

/// A caller that has shown a credential.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    pub(crate) credential: Credential,
    /// Of the virtual key, or a synthetic one for the master key.
    pub(crate) credential_id: String,
    /// Name of the key, for people.
    pub(crate) subject: String,
    pub(crate) scopes: Scopes,
    /// The key's project.
    pub(crate) project: Option<String>,
    /// The route that the key's calls take unless they name another.
    pub(crate) route: Option<String>,
    /// Set when it came with a session instead of the key itself.
    pub(crate) session: Option<Session>,
    /// The browser sent the credential by itself: changes need a same-origin check.
    pub(crate) by_cookie: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    Key,
    Master,
    /// None was asked for.
    Nobody,
}

impl Principal {
    pub(crate) fn nobody() -> Self {
        Self {
            credential: Credential::Nobody,
            credential_id: "anonymous".to_owned(),
            subject: "anonymous".to_owned(),
            scopes: Scopes::INVOKE,
            project: None,
            route: None,
            session: None,
            by_cookie: false,
        }
    }

    pub(super) fn by_cookie(self) -> Self {
        Self {
            by_cookie: true,
            ..self
        }
    }

    pub(crate) fn must(&self, scope: Scope) -> Result<(), Refusal> {
        if self.scopes.allow(scope) {
            return Ok(());
        }
        let has: Vec<&str> = self.scopes.iter().map(Scope::as_str).collect();
        let message = format!(
            "this needs a key of scope {}; \"{}\" has {}",
            scope.as_str(),
            self.subject,
            has.join(", ")
        );
        Err(Refusal::forbidden("insufficient_scope", message))
    }

    /// On whose account its calls run.
    pub(crate) fn caller(&self) -> Caller {
        match self.credential {
            Credential::Key => Caller {
                key_id: Some(self.credential_id.clone()),
                key_name: Some(self.subject.clone()),
                project: self.project.clone(),
                route: self.route.clone(),
            },
            Credential::Master => Caller {
                key_name: Some(self.subject.clone()),
                ..Caller::default()
            },
            Credential::Nobody => Caller::default(),
        }
    }
}
