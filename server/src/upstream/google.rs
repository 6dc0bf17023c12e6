//! Tokens for Google's services: fetched ahead, kept fresh, and at hand when a call needs one.
//!
//! Whose they are:
//!
//! 1. the service account of `VERTEX_AI_SERVICE_ACCOUNT_JSON`
//! 2. the file that `GOOGLE_APPLICATION_CREDENTIALS` names
//! 3. the file that `gcloud auth application-default login` leaves
//! 4. the machine's own account, asked of Google's metadata server
//!
//! A service account signs a claim (RS256) and gets a token for it; a person's file has a refresh token that does the same.
//! Tokens are good for an hour. One task for each source fetches the next five minutes before the last one ends, and ends when
//! the source is dropped, which is when another configuration takes its place.

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::stream::StreamExt;
use http::{HeaderValue, Method, StatusCode, header};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use switchyard_core::env::Env;
use switchyard_core::error::{Error, Kind};
use switchyard_core::secret::Secret;
use switchyard_engine::GoogleTokens;
use switchyard_engine::ports::{Clock, Transport};
use switchyard_providers::gemini::Tokens;
use tokio::time::{sleep, timeout};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const METADATA: &str = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token";
/// A claim is good for as long as a token may be.
const LIFETIME_S: i64 = 3600;
/// So long before a token ends the next one is fetched.
const AHEAD: Duration = Duration::from_secs(300);
const PATIENCE: Duration = Duration::from_secs(10);
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Longest answer that is read, in bytes.
const LONGEST_ANSWER: usize = 64 << 10;

pub(crate) struct GoogleAccounts {
    clock: Arc<dyn Clock>,
    /// Those in use, by the hash of the credential that they were made of: another configuration goes on with the token that is
    /// there, unless the credential has changed.
    living: Mutex<Vec<([u8; 32], Weak<Source>)>>,
}

impl GoogleAccounts {
    pub(crate) const fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            living: Mutex::new(Vec::new()),
        }
    }
}

impl GoogleTokens for GoogleAccounts {
    fn source(
        &self,
        account: Option<&Secret>,
        env: &dyn Env,
        transport: &Arc<dyn Transport>,
    ) -> Result<Arc<dyn Tokens>, String> {
        let found = match account {
            Some(json) => Found {
                whence: "VERTEX_AI_SERVICE_ACCOUNT_JSON".to_owned(),
                json: Some(json.clone()),
            },
            None => Found::of_machine(env)?,
        };
        let hash = found.hash();
        let mut living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
        living.retain(|(_, source)| source.strong_count() > 0);
        let known = living.iter().find(|(known, _)| *known == hash);
        if let Some(source) = known.and_then(|(_, source)| source.upgrade()) {
            return Ok(source);
        }
        let source = Arc::new(Source {
            account: found.account()?,
            transport: Arc::clone(transport),
            clock: Arc::clone(&self.clock),
            held: ArcSwap::from_pointee(Held::Nothing("it is being fetched for the first time".to_owned())),
        });
        tokio::spawn(keep_fresh(Arc::downgrade(&source)));
        living.push((hash, Arc::downgrade(&source)));
        Ok(source)
    }
}

/// A credential as it was found. A file is read anew each time: its key may have been changed under the same name.
struct Found {
    whence: String,
    /// None: the machine itself is asked.
    json: Option<Secret>,
}

impl Found {
    fn of_machine(env: &dyn Env) -> Result<Self, String> {
        let machine = || Self {
            whence: "the machine's own account".to_owned(),
            json: None,
        };
        let named = env
            .get("GOOGLE_APPLICATION_CREDENTIALS")
            .filter(|path| !path.trim().is_empty());
        let (path, must_be) = match (named, env.get("HOME")) {
            (Some(path), _) => (PathBuf::from(path), true),
            (None, Some(home)) => {
                let below = ".config/gcloud/application_default_credentials.json";
                (Path::new(&home).join(below), false)
            }
            (None, None) => return Ok(machine()),
        };
        match std::fs::read_to_string(&path) {
            Ok(json) => Ok(Self {
                whence: path.display().to_string(),
                json: Some(Secret::new(json)),
            }),
            Err(error) if must_be => Err(format!("{} cannot be read: {error}", path.display())),
            Err(_) => Ok(machine()),
        }
    }

    fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.json.as_ref().map_or("", Secret::expose)).into()
    }

    fn account(&self) -> Result<Account, String> {
        match &self.json {
            Some(json) => Account::read(&self.whence, json.expose()),
            None => Ok(Account::Machine),
        }
    }
}

struct Source {
    account: Account,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    held: ArcSwap<Held>,
}

enum Held {
    /// Why there is none.
    Nothing(String),
    Token {
        token: Secret,
        until_ms: i64,
    },
}

impl Tokens for Source {
    fn current(&self) -> Result<Secret, Error> {
        let none = |why: &str| Error::new(Kind::Connect, format!("there is no token for Google's services: {why}"));
        match &**self.held.load() {
            Held::Token { token, until_ms } if *until_ms > self.clock.now_ms() => Ok(token.clone()),
            Held::Token { .. } => Err(none("the last one has ended, and the next could not be fetched")),
            Held::Nothing(why) => Err(none(why)),
        }
    }
}

/// Whose tokens they are.
enum Account {
    Service {
        email: String,
        key_id: Option<String>,
        key: Box<RsaKeyPair>,
        token_uri: String,
    },
    Person {
        client_id: String,
        client_secret: Secret,
        refresh_token: Secret,
        token_uri: String,
    },
    Machine,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum File {
    ServiceAccount {
        client_email: String,
        #[serde(default)]
        private_key_id: Option<String>,
        private_key: String,
        #[serde(default)]
        token_uri: Option<String>,
    },
    AuthorizedUser {
        client_id: String,
        client_secret: String,
        refresh_token: String,
        #[serde(default)]
        token_uri: Option<String>,
    },
}

impl Account {
    fn read(whence: &str, json: &str) -> Result<Self, String> {
        // What does not parse is not quoted: it holds a key.
        let file: File = serde_json::from_str(json).map_err(|_| {
            format!("{whence} is no credential of type service_account or authorized_user as Google writes them")
        })?;
        let token_uri = |uri: Option<String>| uri.unwrap_or_else(|| TOKEN_URI.to_owned());
        Ok(match file {
            File::ServiceAccount {
                client_email,
                private_key_id,
                private_key,
                token_uri: uri,
            } => Self::Service {
                email: client_email,
                key_id: private_key_id,
                key: read_key(&private_key)
                    .map(Box::new)
                    .ok_or_else(|| format!("{whence}: its private_key is no RSA key in PEM"))?,
                token_uri: token_uri(uri),
            },
            File::AuthorizedUser {
                client_id,
                client_secret,
                refresh_token,
                token_uri: uri,
            } => Self::Person {
                client_id,
                client_secret: Secret::new(client_secret),
                refresh_token: Secret::new(refresh_token),
                token_uri: token_uri(uri),
            },
        })
    }

    /// The request for a token.
    fn ask(&self, now_s: i64) -> Result<http::Request<Bytes>, String> {
        let form = |fields: &[(&str, &str)]| {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.extend_pairs(fields);
            form.finish()
        };
        let (uri, body) = match self {
            Self::Service {
                email,
                key_id,
                key,
                token_uri,
            } => {
                let claim = sign(email, key_id.as_deref(), key, token_uri, now_s)?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                (
                    token_uri.as_str(),
                    form(&[("grant_type", grant), ("assertion", &claim)]),
                )
            }
            Self::Person {
                client_id,
                client_secret,
                refresh_token,
                token_uri,
            } => {
                let fields = [
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.expose()),
                    ("refresh_token", refresh_token.expose()),
                ];
                (token_uri.as_str(), form(&fields))
            }
            Self::Machine => {
                let mut request = http::Request::new(Bytes::new());
                *request.uri_mut() = http::Uri::from_static(METADATA);
                let flavor = HeaderValue::from_static("Google");
                request.headers_mut().insert("metadata-flavor", flavor);
                return Ok(request);
            }
        };
        let mut request = http::Request::new(Bytes::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.parse().map_err(|_| format!("token_uri {uri:?} is no address"))?;
        let urlencoded = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(header::CONTENT_TYPE, urlencoded);
        Ok(request)
    }
}

fn read_key(pem: &str) -> Option<RsaKeyPair> {
    let text = pem.split_once("-----BEGIN PRIVATE KEY-----")?.1;
    let text = text.split_once("-----END PRIVATE KEY-----")?.0;
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    RsaKeyPair::from_pkcs8(&STANDARD.decode(text).ok()?).ok()
}

/// A claim to be the account, signed with its key (RFC 7523).
fn sign(email: &str, key_id: Option<&str>, key: &RsaKeyPair, audience: &str, now_s: i64) -> Result<String, String> {
    let mut head = json!({ "alg": "RS256", "typ": "JWT" });
    if let Some(key_id) = key_id {
        head["kid"] = key_id.into();
    }
    let claim = json!({
        "iss": email,
        "scope": SCOPE,
        "aud": audience,
        "iat": now_s,
        "exp": now_s + LIFETIME_S,
    });
    let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&head), part(&claim));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| "its private key cannot sign".to_owned())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: i64,
}

async fn keep_fresh(source: Weak<Source>) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        let Some(held) = source.upgrade() else { return };
        let wait = match held.fetch().await {
            Ok(lifetime) => {
                pause = SHORTEST_PAUSE;
                lifetime.saturating_sub(AHEAD).max(SHORTEST_PAUSE)
            }
            Err(why) => {
                tracing::warn!(
                    error = why,
                    "no token for Google's services; its targets fail until there is one"
                );
                held.failed(why);
                let wait = pause;
                pause = (pause * 2).min(LONGEST_PAUSE);
                wait
            }
        };
        drop(held);
        sleep(wait).await;
    }
}

impl Source {
    /// Fetches a token, and tells how long it is good.
    async fn fetch(&self) -> Result<Duration, String> {
        let now_ms = self.clock.now_ms();
        let request = self.account.ask(now_ms.div_euclid(1000))?;
        let granted = timeout(PATIENCE, self.send(request))
            .await
            .map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))??;
        let lifetime_s = granted.expires_in.max(1);
        self.held.store(Arc::new(Held::Token {
            token: Secret::new(granted.access_token),
            until_ms: now_ms.saturating_add(lifetime_s.saturating_mul(1000)),
        }));
        Ok(Duration::from_secs(lifetime_s.unsigned_abs()))
    }

    async fn send(&self, request: http::Request<Bytes>) -> Result<Granted, String> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let response = self
            .transport
            .send(request)
            .await
            .map_err(|error| format!("{host}: {error}"))?;
        let (status, mut frames) = (response.status(), response.into_body());
        let mut body = Vec::new();
        while let Some(frame) = frames.next().await {
            body.extend_from_slice(&frame.map_err(|error| format!("{host}: {error}"))?);
            if body.len() > LONGEST_ANSWER {
                return Err(format!("{host} answered with more than {LONGEST_ANSWER} bytes"));
            }
        }
        if status != StatusCode::OK {
            let said: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let why = said["error_description"].as_str().or_else(|| said["error"].as_str());
            return Err(format!(
                "{host} answered {status}: {}",
                why.unwrap_or("without a reason")
            ));
        }
        serde_json::from_slice(&body).map_err(|_| format!("{host} answered with something that is no token"))
    }

    /// A token that is still good outlives a failure to fetch the next.
    fn failed(&self, why: String) {
        let is_good = matches!(&**self.held.load(), Held::Token { until_ms, .. } if *until_ms > self.clock.now_ms());
        if !is_good {
            self.held.store(Arc::new(Held::Nothing(why)));
        }
    }
}

#[cfg(test)]
mod tests;
