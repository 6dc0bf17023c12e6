//! Virtual keys, looked up by hash and remembered.
//!
//! The cache is keyed by the whole SHA-256 of the token. A change to any key empties it at once, and a lookup that was under
//! way while a key changed does not put back what it read before: entries carry the generation they were read in. Expiry
//! is judged at each use, so it needs no change to take effect. An entry that has grown old is still used while one task
//! reads it anew: no request but a key's first waits for the database, also when the database is away.

use super::principal::{Identity, Principal};
use super::token;
use crate::http::Refusal;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use switchyard_engine::ports::Clock;
use switchyard_store::{KeyRow, Store, StoreError};
use tokio::runtime::Handle;

const CACHED_KEYS: usize = 100_000;
/// After this an entry is read anew, because the database may have been changed by another process.
const FRESH: Duration = Duration::from_secs(30);
/// Without an answer of the database an entry is believed no longer than this.
const OLDEST: Duration = Duration::from_secs(10 * 60);

#[derive(Clone)]
pub(crate) struct Keys(Arc<Inner>);

struct Inner {
    store: Store,
    /// The runtime that owns the database's connections.
    control: Handle,
    clock: Arc<dyn Clock>,
    cache: Cache<[u8; 32], Arc<Entry>>,
    generation: AtomicU64,
}

struct Entry {
    key: KeyRow,
    identity: Arc<Identity>,
    read: Instant,
    generation: u64,
    /// Somebody is reading it anew.
    refreshing: AtomicBool,
}

impl Keys {
    pub(crate) fn new(store: Store, control: Handle, clock: Arc<dyn Clock>) -> Self {
        let (cache, generation) = (Cache::new(CACHED_KEYS), AtomicU64::new(0));
        Self(Arc::new(Inner {
            store,
            control,
            clock,
            cache,
            generation,
        }))
    }

    /// After any key has changed.
    pub(crate) fn forget(&self) {
        self.0.generation.fetch_add(1, Ordering::SeqCst);
        self.0.cache.clear();
    }

    /// The live key with this token, if it is remembered.
    pub(super) fn known(&self, token: &str) -> Option<Principal> {
        let hash = token::hash(token);
        let entry = self.0.cache.get(&hash)?;
        let age = entry.read.elapsed();
        if entry.generation != self.0.generation.load(Ordering::SeqCst) || age > OLDEST {
            return None;
        }
        if age > FRESH && !entry.refreshing.swap(true, Ordering::Relaxed) {
            let keys = self.clone();
            self.0.control.spawn(async move { keys.refresh(hash).await });
        }
        self.is_live(&entry.key).then(|| Arc::clone(&entry.identity).into())
    }

    /// The live key with this token, from the database.
    pub(super) async fn find(&self, token: &str) -> Result<Option<Principal>, Refusal> {
        let hash = token::hash(token);
        let keys = self.clone();
        let found = self.ask(async move { keys.read(hash).await }).await?;
        Ok(found.and_then(|key| self.live(&key)))
    }

    /// Reads a key and remembers it.
    async fn read(&self, hash: [u8; 32]) -> Result<Option<KeyRow>, StoreError> {
        let generation = self.0.generation.load(Ordering::SeqCst);
        let found = self.0.store.key_by_hash(&hash).await?;
        if let Some(key) = found.clone() {
            let entry = Entry {
                identity: Identity::of_key(&key),
                key,
                read: Instant::now(),
                generation,
                refreshing: AtomicBool::new(false),
            };
            self.0.cache.insert(hash, Arc::new(entry));
        } else {
            self.0.cache.remove(&hash);
        }
        Ok(found)
    }

    async fn refresh(&self, hash: [u8; 32]) {
        if let Err(error) = self.read(hash).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a key could not be read anew; what is known of it stands"
            );
            if let Some(entry) = self.0.cache.get(&hash) {
                entry.refreshing.store(false, Ordering::Relaxed);
            }
        }
    }

    /// The live key with this id; for sessions.
    pub(super) async fn find_by_id(&self, id: &str) -> Result<Option<Principal>, Refusal> {
        let (inner, id) = (Arc::clone(&self.0), id.to_owned());
        let found = self.ask(async move { inner.store.key(&id).await }).await?;
        Ok(found.and_then(|key| self.live(&key)))
    }

    fn live(&self, key: &KeyRow) -> Option<Principal> {
        self.is_live(key).then(|| Identity::of_key(key).into())
    }

    fn is_live(&self, key: &KeyRow) -> bool {
        key.is_live(self.0.clock.now_ms())
    }

    /// Carries a question over to the runtime that may ask it.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.0
            .control
            .spawn(question)
            .await
            .map_err(|_| Refusal::internal())?
            .map_err(Refusal::from)
    }
}
