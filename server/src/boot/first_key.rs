//! The first key, and a new one for whoever lost it.

use crate::auth::{Generated, generate_key};
use anyhow::Context;
use std::path::Path;
use switchyard_core::scope::Scopes;
use switchyard_core::secret::Secret;
use switchyard_engine::ports::{Clock, SystemClock};
use switchyard_store::{NewKeyRow, Store};

/// A key that was just made. Shown once; only its hash is kept.
#[derive(Debug)]
pub struct FirstKey {
    pub secret: Secret,
    pub name: String,
}

/// Creates a key of scope `admin` when there is none at all and no master key either.
pub(super) async fn create(store: &Store, has_master: bool, clock: &dyn Clock) -> anyhow::Result<Option<FirstKey>> {
    if has_master || store.has_any_key().await? {
        return Ok(None);
    }
    insert(store, "first key", clock).await.map(Some)
}

/// Makes a new key of scope `admin`, on the machine itself. Nothing else changes, and a running gateway may go on.
///
/// # Errors
/// When the database cannot be opened or written.
pub async fn recover(database: &Path) -> anyhow::Result<FirstKey> {
    anyhow::ensure!(
        database.exists(),
        "there is no database at {}; set DATA_DIR to where the gateway keeps it",
        database.display()
    );
    let store = Store::open(database).await?;
    let key = insert(&store, "recovered key", &SystemClock).await;
    store.close().await;
    key
}

async fn insert(store: &Store, name: &str, clock: &dyn Clock) -> anyhow::Result<FirstKey> {
    let Generated { secret, hash, display } = generate_key().context("the system gave no randomness")?;
    let row = NewKeyRow {
        id: uuid::Uuid::now_v7().to_string(),
        name: name.to_owned(),
        display,
        hash,
        scopes: Scopes::ADMIN,
        created_at_ms: clock.now_ms(),
        expires_at_ms: None,
        project: None,
        route: None,
    };
    store.insert_key(row).await?;
    Ok(FirstKey {
        secret,
        name: name.to_owned(),
    })
}
