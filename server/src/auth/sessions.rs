//! Sessions: a key exchanged for something that lives a day at most, and an hour without use.

use super::principal::Principal;
use super::session_store::{CREDENTIAL_ID, SCOPES, SUBJECT, SessionsInStore, hash};
use super::token::SESSION_PREFIX;
use crate::http::Refusal;
use cookie::{Cookie, SameSite};
use http::{HeaderMap, HeaderValue, header};
use std::sync::Arc;
use switchyard_engine::ports::Clock;
use switchyard_store::Store;
use time::OffsetDateTime;
use tokio::runtime::Handle;
use tower_sessions::session::Id;
use tower_sessions::{Expiry, SessionStore, session_store};

const COOKIE: &str = "switchyard_session";
const LIFETIME_MS: i64 = 24 * 60 * 60 * 1000;
const IDLE_MS: i64 = 60 * 60 * 1000;
/// `last_seen` is written no more often than this.
const SEEN_EVERY_MS: i64 = 60 * 1000;

#[derive(Clone)]
pub(crate) struct Sessions {
    inner: Arc<SessionsInStore>,
    control: Handle,
}

/// A live session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    id: Id,
    pub(crate) credential_id: String,
    pub(crate) expires_at_ms: i64,
}

/// A session that has just begun. The id is shown to nobody but its owner.
pub(crate) struct Begun {
    id: Id,
    pub(crate) expires_at_ms: i64,
}

impl Begun {
    /// For a client that is no browser.
    pub(crate) fn bearer(&self) -> String {
        format!("{SESSION_PREFIX}{}", self.id)
    }

    /// For a browser. `Secure` follows the scheme, so that plain http on a local network works.
    pub(crate) fn cookie(&self, https: bool) -> Option<HeaderValue> {
        let age = time::Duration::milliseconds(LIFETIME_MS);
        write_cookie(&self.id.to_string(), age, https)
    }
}

/// Takes the cookie out of the browser.
pub(crate) fn expired_cookie(https: bool) -> Option<HeaderValue> {
    write_cookie("", time::Duration::ZERO, https)
}

fn write_cookie(value: &str, age: time::Duration, https: bool) -> Option<HeaderValue> {
    let cookie = Cookie::build((COOKIE, value))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(https)
        .max_age(age)
        .build();
    HeaderValue::from_str(&cookie.to_string()).ok()
}

/// The session's id in a request's cookies.
pub(crate) fn cookie_of(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(header::COOKIE);
    let cookies = lines
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(Cookie::split_parse);
    cookies
        .flatten()
        .find(|cookie| cookie.name() == COOKIE)
        .map(|cookie| cookie.value().to_owned())
}

impl Sessions {
    pub(crate) fn new(store: Store, control: Handle, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner: Arc::new(SessionsInStore { store, clock }),
            control,
        }
    }

    pub(crate) async fn begin(&self, principal: &Principal) -> Result<Begun, Refusal> {
        let expires_at_ms = self.inner.clock.now_ms() + LIFETIME_MS;
        let expiry = OffsetDateTime::from_unix_timestamp(expires_at_ms / 1000).map_err(|_| Refusal::internal())?;
        let session = tower_sessions::Session::new(None, Arc::clone(&self.inner), Some(Expiry::AtDateTime(expiry)));
        let failed = |error: &dyn std::fmt::Display| {
            tracing::error!(error = %error, "a session could not be kept");
            Refusal::store_unavailable()
        };
        let scopes: Vec<&'static str> = principal.scopes.into();
        session
            .insert(CREDENTIAL_ID, &principal.credential_id)
            .await
            .map_err(|error| failed(&error))?;
        session
            .insert(SUBJECT, &principal.subject)
            .await
            .map_err(|error| failed(&error))?;
        session.insert(SCOPES, scopes).await.map_err(|error| failed(&error))?;
        session.save().await.map_err(|error| failed(&error))?;
        let id = session.id().ok_or_else(Refusal::internal)?;
        Ok(Begun { id, expires_at_ms })
    }

    /// The live session with this id. What is no id never reaches the database.
    pub(super) async fn find(&self, id: &str) -> Result<Option<Session>, Refusal> {
        let Ok(id) = id.parse::<Id>() else { return Ok(None) };
        let inner = Arc::clone(&self.inner);
        let found = self
            .control
            .spawn(async move { look_up(&inner, id).await })
            .await
            .map_err(|_| Refusal::internal())?;
        Ok(found?)
    }

    pub(crate) async fn end(&self, session: &Session) -> Result<(), Refusal> {
        self.inner
            .delete(&session.id)
            .await
            .map_err(|error: session_store::Error| {
                tracing::error!(error = %error, "a session could not be ended");
                Refusal::store_unavailable()
            })
    }

    /// Takes sessions out of the store that nobody can use any more.
    pub(crate) async fn sweep(&self) {
        if let Err(error) = self
            .inner
            .store
            .delete_expired_sessions(self.inner.clock.now_ms(), IDLE_MS)
            .await
        {
            tracing::warn!(error = %error, "old sessions were not removed");
        }
    }
}

async fn look_up(inner: &SessionsInStore, id: Id) -> Result<Option<Session>, switchyard_store::StoreError> {
    let Some(row) = inner.store.session(&hash(id)).await? else {
        return Ok(None);
    };
    let now = inner.clock.now_ms();
    if now >= row.expires_at_ms || now - row.last_seen_at_ms >= IDLE_MS {
        return Ok(None);
    }
    if now - row.last_seen_at_ms >= SEEN_EVERY_MS {
        // A session that cannot be marked as used is still one.
        if let Err(error) = inner.store.touch_session(&row.id_hash, now).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the use of a session was not noted"
            );
        }
    }
    Ok(Some(Session {
        id,
        credential_id: row.credential_id,
        expires_at_ms: row.expires_at_ms,
    }))
}
