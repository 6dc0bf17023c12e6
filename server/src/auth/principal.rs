//! Who is calling, once that is known.

use super::sessions::Session;
use crate::http::Refusal;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use switchyard_core::scope::{Scope, Scopes};
use switchyard_engine::Caller;
use switchyard_store::KeyRow;

/// A caller that has shown a credential. What is known of the credential is shared: a key that calls a thousand times a
/// second is described once.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    identity: Arc<Identity>,
    /// Set when it came with a session instead of the key itself.
    pub(crate) session: Option<Session>,
    /// The browser sent the credential by itself: changes need a same-origin check.
    pub(crate) by_cookie: bool,
}

/// Whose credential it is, and what it may do.
#[derive(Debug)]
pub(crate) struct Identity {
    /// Of the virtual key, or a synthetic one for the master key.
    pub(crate) credential_id: String,
    /// Name of the key, for people.
    pub(crate) subject: String,
    pub(crate) scopes: Scopes,
    /// On whose account its calls run.
    pub(crate) caller: Arc<Caller>,
}

static NOBODY: LazyLock<Arc<Identity>> = LazyLock::new(|| {
    Arc::new(Identity {
        credential_id: "anonymous".to_owned(),
        subject: "anonymous".to_owned(),
        scopes: Scopes::INVOKE,
        caller: Arc::default(),
    })
});

impl Identity {
    pub(super) fn of_key(key: &KeyRow) -> Arc<Self> {
        let caller = Caller {
            key_id: Some(key.id.as_str().into()),
            key_name: Some(key.name.as_str().into()),
            project: key.project.clone(),
            route: key.route.clone(),
        };
        Arc::new(Self {
            credential_id: key.id.clone(),
            subject: key.name.clone(),
            scopes: key.scopes,
            caller: Arc::new(caller),
        })
    }

    pub(super) fn of_master_key(id: String) -> Arc<Self> {
        let subject = "master key";
        let caller = Caller {
            key_name: Some(subject.into()),
            ..Caller::default()
        };
        Arc::new(Self {
            credential_id: id,
            subject: subject.to_owned(),
            scopes: Scopes::ADMIN,
            caller: Arc::new(caller),
        })
    }
}

impl Deref for Principal {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl From<Arc<Identity>> for Principal {
    fn from(identity: Arc<Identity>) -> Self {
        Self {
            identity,
            session: None,
            by_cookie: false,
        }
    }
}

impl Principal {
    pub(crate) fn nobody() -> Self {
        Self::from(Arc::clone(&NOBODY))
    }

    pub(super) fn with_session(self, session: Session) -> Self {
        Self {
            session: Some(session),
            ..self
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
    pub(crate) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller)
    }
}
