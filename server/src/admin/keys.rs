//! Keys: create, list, change, revoke.
//!
//! Two guards hold on every change. Nobody takes away the credential they are calling with, and the last live key of scope
//! `admin` stays, unless a master key is configured: the store decides the latter in the transaction that changes the key.

use super::{Services, must_change, scopes_in, scopes_out};
use crate::auth::{Principal, generate_key};
use crate::http::Refusal;
use switchyard_api::{Key, KeyState, NewKey, Timestamp, UpdateKey};
use switchyard_core::scope::Scopes;
use switchyard_store::{KeyChange, KeyOutcome, KeyRow, NewKeyRow, NoAdmin};

/// Of a key's name, its project's and its route's.
const LONGEST_NAME: usize = 80;

impl Services {
    pub(crate) async fn keys(&self) -> Result<Vec<Key>, Refusal> {
        let now = self.clock.now_ms();
        Ok(self
            .store
            .keys()
            .await?
            .into_iter()
            .map(|row| key_out(row, now))
            .collect())
    }

    pub(crate) async fn key(&self, id: &str) -> Result<Key, Refusal> {
        let row = self.store.key(id).await?.ok_or_else(|| no_such_key(id))?;
        Ok(key_out(row, self.clock.now_ms()))
    }

    /// The answer's `key` is the secret, this once.
    pub(crate) async fn create_key(&self, principal: &Principal, new: NewKey) -> Result<Key, Refusal> {
        must_change(principal)?;
        let name = check_name(&new.name)?;
        let scopes = match new.scopes.as_deref() {
            None | Some([]) => Scopes::INVOKE,
            Some(scopes) => scopes_in(scopes),
        };
        let now = self.clock.now_ms();
        let expires_at_ms = new.expires_at.map(|at| check_expiry(at, now)).transpose()?;
        let project = new
            .project
            .as_deref()
            .map(|project| self.check_project(project))
            .transpose()?
            .flatten();
        let route = new
            .route
            .as_deref()
            .map(|route| self.check_route(route))
            .transpose()?
            .flatten();
        let generated = generate_key().map_err(|error| {
            tracing::error!(error = %error, "the system gave no randomness");
            Refusal::internal()
        })?;
        let row = NewKeyRow {
            id: uuid::Uuid::now_v7().to_string(),
            name,
            display: generated.display,
            hash: generated.hash,
            scopes,
            created_at_ms: now,
            expires_at_ms,
            project,
            route,
        };
        let row = self.store.insert_key(row).await?;
        self.auth.keys.forget();
        tracing::info!(
            key.id = row.id,
            key.name = row.name,
            by = principal.subject,
            "key created"
        );
        let mut key = key_out(row, now);
        generated.secret.expose().clone_into(&mut key.key);
        Ok(key)
    }

    pub(crate) async fn update_key(&self, principal: &Principal, id: &str, change: UpdateKey) -> Result<Key, Refusal> {
        must_change(principal)?;
        if change.clear_expiration && change.expires_at.is_some() {
            let message = "expires_at and clear_expiration contradict each other; send one of them";
            return Err(Refusal::invalid("invalid_request", message).with_param("expires_at"));
        }
        let now = self.clock.now_ms();
        let scopes = change
            .scopes
            .filter(|scopes| !scopes.is_empty())
            .map(|scopes| scopes_in(&scopes));
        let expires_at_ms = match change.expires_at {
            Some(at) => Some(Some(check_expiry(at, now)?)),
            None => change.clear_expiration.then_some(None),
        };
        if principal.credential_id == id && (scopes.is_some() || expires_at_ms.is_some()) {
            return Err(own_key());
        }
        let name = change.name.map(|name| check_name(&name)).transpose()?;
        let change = KeyChange {
            name,
            scopes,
            expires_at_ms,
            project: change
                .project
                .as_deref()
                .map(|project| self.check_project(project))
                .transpose()?,
            route: change
                .route
                .as_deref()
                .map(|route| self.check_route(route))
                .transpose()?,
        };
        let outcome = self.store.update_key(id, change, now, self.no_admin()).await?;
        self.changed(outcome, id, principal, "key changed")
    }

    /// Sessions that were made from the key end with it.
    pub(crate) async fn revoke_key(&self, principal: &Principal, id: &str) -> Result<Key, Refusal> {
        must_change(principal)?;
        if principal.credential_id == id {
            return Err(own_key());
        }
        let outcome = self.store.revoke_key(id, self.clock.now_ms(), self.no_admin()).await?;
        self.changed(outcome, id, principal, "key revoked")
    }

    /// Empty is none. Where projects are configured, the calls of a key of another one would be refused.
    fn check_project(&self, project: &str) -> Result<Option<String>, Refusal> {
        let project = check_label("project", project)?;
        if let Some(project) = &project
            && !self.engine.snapshot().takes_project(project)
        {
            let message = format!(
                "\"{project}\" is no project of this gateway; name one that stands under `projects` in its configuration, or \
                 leave it empty for none"
            );
            return Err(Refusal::invalid("invalid_request", message).with_param("project"));
        }
        Ok(project)
    }

    /// Empty is none. With a name that is no route, each of the key's calls would be refused.
    fn check_route(&self, route: &str) -> Result<Option<String>, Refusal> {
        let route = check_label("route", route)?;
        if let Some(route) = &route
            && !self.engine.snapshot().has_route(route)
        {
            let message = format!(
                "\"{route}\" is no route of this gateway; name one that stands under `routes` in its configuration \
                 (GET /admin/targets lists them), or leave it empty for none"
            );
            return Err(Refusal::invalid("invalid_request", message).with_param("route"));
        }
        Ok(route)
    }

    fn no_admin(&self) -> NoAdmin {
        if self.auth.has_master_key() {
            NoAdmin::Allow
        } else {
            NoAdmin::Refuse
        }
    }

    fn changed(&self, outcome: KeyOutcome, id: &str, principal: &Principal, what: &str) -> Result<Key, Refusal> {
        self.auth.keys.forget();
        match outcome {
            KeyOutcome::Done(row) => {
                tracing::info!(key.id = row.id, key.name = row.name, by = principal.subject, "{what}");
                Ok(key_out(row, self.clock.now_ms()))
            }
            KeyOutcome::NotFound => Err(no_such_key(id)),
            KeyOutcome::LastAdmin => {
                let message = "this is the last live key of scope admin; create another one first";
                Err(Refusal::conflict("last_admin_key", message))
            }
        }
    }
}

fn no_such_key(id: &str) -> Refusal {
    Refusal::not_found(&format!("key {id}"))
}

fn own_key() -> Refusal {
    let message = "this is the key you are using; sign in with another one to change it";
    Refusal::conflict("self_mutation_forbidden", message)
}

fn check_name(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    if name.is_empty() || !is_label(name) {
        let message = format!("name must have 1 to {LONGEST_NAME} characters");
        return Err(Refusal::invalid("invalid_request", message).with_param("name"));
    }
    Ok(name.to_owned())
}

fn check_label(field: &str, text: &str) -> Result<Option<String>, Refusal> {
    let text = text.trim();
    if !is_label(text) {
        let message = format!("{field} must have at most {LONGEST_NAME} characters and no control characters");
        return Err(Refusal::invalid("invalid_request", message).with_param(field));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn is_label(text: &str) -> bool {
    text.chars().count() <= LONGEST_NAME && !text.chars().any(char::is_control)
}

fn check_expiry(Timestamp(at): Timestamp, now: i64) -> Result<i64, Refusal> {
    if at <= now {
        let message = "expires_at lies in the past; name a time to come, or leave it out for never";
        return Err(Refusal::invalid("invalid_request", message).with_param("expires_at"));
    }
    Ok(at)
}

fn key_out(row: KeyRow, now: i64) -> Key {
    let active = row.is_live(now);
    let state = match row.revoked_at_ms {
        Some(_) => KeyState::Revoked,
        None if active => KeyState::Live,
        None => KeyState::Expired,
    };
    Key {
        scopes: scopes_out(row.scopes),
        created_at: Timestamp(row.created_at_ms),
        expires_at: row.expires_at_ms.map(Timestamp),
        revoked_at: row.revoked_at_ms.map(Timestamp),
        last_used_at: row.last_used_at_ms.map(Timestamp),
        usage_count: row.usage_count,
        project: row.project,
        route: row.route,
        active,
        state,
        id: row.id,
        name: row.name,
        key: row.display,
    }
}
