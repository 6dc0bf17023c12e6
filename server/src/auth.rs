//! One chain for `/v1`, `/admin` and the dashboard: who is it, and what may they do.
//!
//! A credential comes as `Authorization: Bearer`, `x-api-key`, `api-key` or the session cookie, in this order; the first
//! that is there counts. A key that is remembered is known by its hash. For all others the address must have budget left for
//! failures; then the token is compared with the master key, in constant time, and its shape decides where it is looked up:
//! a virtual key by the hash of all of it, a session by the hash of its id. What has neither shape never reaches the
//! database.

mod keys;
mod layer;
pub mod measured;
mod principal;
mod same_origin;
mod session_store;
pub(crate) mod sessions;
pub(crate) mod throttle;
mod token;

pub(crate) use keys::Keys;
pub(crate) use layer::{admit, authenticate_page, ip_of, require_data, require_invoke, require_read};
use principal::Identity;
pub(crate) use principal::Principal;
pub(crate) use same_origin::is_same_origin;
pub(crate) use sessions::{Sessions, cookie_of};
pub(crate) use token::{Generated, generate_key};

use crate::http::Refusal;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};
use std::net::IpAddr;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use throttle::Throttles;
use token::Shape;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");

#[derive(Clone)]
pub(crate) struct Auth {
    pub(crate) keys: Keys,
    pub(crate) sessions: Sessions,
    pub(crate) throttles: Throttles,
    master: Option<Arc<MasterKey>>,
    /// `ALLOW_UNAUTHENTICATED_PROXY`: a call on `/v1` without a credential is nobody's, and allowed.
    pub(crate) open_data_plane: bool,
}

struct MasterKey {
    hash: [u8; 32],
    identity: Arc<Identity>,
}

impl Auth {
    pub(crate) fn new(keys: Keys, sessions: Sessions, throttles: Throttles, master: Option<&str>, open: bool) -> Self {
        let master = master.map(|key| {
            let hash = token::hash(key);
            let id = hash
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>();
            Arc::new(MasterKey {
                hash,
                identity: Identity::of_master_key(format!("master-key:{id}")),
            })
        });
        Self {
            keys,
            sessions,
            throttles,
            master,
            open_data_plane: open,
        }
    }

    pub(crate) fn has_master_key(&self) -> bool {
        self.master.is_some()
    }

    /// Who is calling, if it is a key that is remembered: nearly everybody, and nobody has to wait for anything.
    pub(crate) fn known(&self, headers: &HeaderMap) -> Option<Principal> {
        known(&self.keys, headers)
    }

    /// Who is calling from `ip`. `None` when no credential came at all.
    pub(crate) async fn authenticate(&self, headers: &HeaderMap, ip: IpAddr) -> Result<Option<Principal>, Refusal> {
        if let Some(token) = credential(headers) {
            return self.by_token(token?, ip).await.map(Some);
        }
        let Some(id) = cookie_of(headers) else { return Ok(None) };
        if self.throttles.is_spent(ip) {
            return Err(Refusal::throttled(1));
        }
        let principal = self.by_session(&id).await?.map(Principal::by_cookie);
        // An old cookie is no credential at all; a guessed one counts.
        if principal.is_none() && self.throttles.refuses_failure(ip) {
            return Err(Refusal::throttled(1));
        }
        Ok(principal)
    }

    /// Who a key or a session's token stands for. Each failure counts against its address.
    pub(crate) async fn by_token(&self, token: &str, ip: IpAddr) -> Result<Principal, Refusal> {
        let shape = token::shape(token);
        if let Some(known) = (shape == Shape::Key).then(|| self.keys.known(token)).flatten() {
            return Ok(known);
        }
        if self.throttles.is_spent(ip) {
            return Err(Refusal::throttled(1));
        }
        let found = match self.by_master_key(token) {
            Some(master) => Some(master),
            None => match shape {
                Shape::Key => self.keys.find(token).await?,
                Shape::Session(id) => self.by_session(id).await?,
                Shape::Other => None,
            },
        };
        found.ok_or_else(|| {
            if self.throttles.refuses_failure(ip) {
                return Refusal::throttled(1);
            }
            if matches!(shape, Shape::Session(_)) {
                return Refusal::unauthenticated("invalid_session", "this session has ended; sign in again");
            }
            let message =
                "this key is not valid here: it may be mistyped, revoked or expired, or belong to another gateway";
            Refusal::unauthenticated("invalid_api_key", message)
        })
    }

    fn by_master_key(&self, token: &str) -> Option<Principal> {
        let master = self.master.as_ref()?;
        let same: bool = token::hash(token).ct_eq(&master.hash).into();
        same.then(|| Arc::clone(&master.identity).into())
    }

    /// A session is as good as the credential behind it, each time anew: revoking a key ends what was made from it.
    async fn by_session(&self, id: &str) -> Result<Option<Principal>, Refusal> {
        let Some(session) = self.sessions.find(id).await? else {
            return Ok(None);
        };
        let behind = match &self.master {
            Some(master) if session.credential_id == master.identity.credential_id => {
                Some(Arc::clone(&master.identity).into())
            }
            _ => self.keys.find_by_id(&session.credential_id).await?,
        };
        Ok(behind.map(|principal| principal.with_session(session)))
    }
}

fn known(keys: &Keys, headers: &HeaderMap) -> Option<Principal> {
    let token = credential(headers)?.ok()?;
    (token::shape(token) == Shape::Key).then(|| keys.known(token))?
}

/// The credential that the headers carry, the first of them that there is.
fn credential(headers: &HeaderMap) -> Option<Result<&str, Refusal>> {
    let by_header = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(value) = by_header(AUTHORIZATION) {
        let token = value
            .get(..7)
            .filter(|scheme| scheme.eq_ignore_ascii_case("bearer "))
            .map(|_| value[7..].trim())
            .filter(|token| !token.is_empty());
        let wrong = || Refusal::unauthenticated("invalid_api_key", "the Authorization header must read `Bearer <key>`");
        return Some(token.ok_or_else(wrong));
    }
    let value = by_header(X_API_KEY).or_else(|| by_header(API_KEY));
    value.map(|token| Ok(token.trim()))
}
