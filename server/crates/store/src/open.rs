//! Opening: the file and its permissions, how connections are set up, migrations.
//!
//! The database holds hashes of credentials and what people asked models for, so nobody but its owner may read it. The
//! file is created with mode 0600 before SQLite sees it; SQLite gives its `-wal` and `-shm` files the mode of the
//! database. A file that exists keeps the mode that its operator chose.
//!
//! A database that is up to date is opened without taking a write lock: a start must neither wait for another process nor
//! disturb it.

use crate::{
    error::StoreError,
    store::{Inner, Store},
};
use rusqlite::OpenFlags;
use sqlx::{
    Connection, Row, Sqlite, SqliteConnection,
    migrate::Migrator,
    pool::PoolConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous},
};
use std::{
    collections::HashMap,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

static MIGRATOR: Migrator = sqlx::migrate!("../../../migrations/sqlite");

/// How long a change that somebody waits for stands in line for the lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The writer would rather spool than wait, so its connection gives up well before the bound of a flush.
const LOG_BUSY_TIMEOUT: Duration = Duration::from_millis(40);
/// 256 KiB: what a transaction touches, the ends of the log and of its indices, stays in memory. More is worth something only
/// where request ids are scattered, and is held for ever by a gateway that was busy once.
const LOG_CACHE: i64 = -256;
/// After a burst the log of changes shrinks back to this.
const LOG_FILE_LIMIT: i64 = 64 << 20;
const LOOKUP_CONNECTIONS: u32 = 2;
const SCAN_CONNECTIONS: u32 = 2;

impl Store {
    /// Opens the database file, or creates it and the folders above it, and brings its schema up to date.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        create_private_file(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .pragma("journal_size_limit", LOG_FILE_LIMIT.to_string());
        let options = quiet(options);
        let writes = pool(options.clone().journal_mode(SqliteJournalMode::Wal), 1);
        migrate(&mut *first_connection(&writes).await?).await?;
        let reading = options.clone().pragma("query_only", "on");
        Ok(Self {
            inner: Arc::new(Inner {
                writes,
                lookups: pool(reading.clone(), LOOKUP_CONNECTIONS),
                scans: pool(reading, SCAN_CONNECTIONS),
                turn: Arc::new(Mutex::new(())),
                path: PathBuf::from(path),
            }),
        })
    }
}

/// A connection as the request log wants it, on a database that has been opened.
pub(crate) fn log_connection(path: &Path) -> Result<rusqlite::Connection, StoreError> {
    // Used by one thread at a time, which the borrow checker sees to.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOG_BUSY_TIMEOUT)?;
    for (pragma, value) in [
        ("synchronous", 1),
        ("foreign_keys", 1),
        ("journal_size_limit", LOG_FILE_LIMIT),
        // Checkpoints are not left to whichever commit crosses the mark: see `writer/checkpoint.rs`.
        ("wal_autocheckpoint", 0),
        ("cache_size", LOG_CACHE),
    ] {
        connection.pragma_update(None, pragma, value)?;
    }
    Ok(connection)
}

/// Statements do not belong in anybody's log.
fn quiet(options: SqliteConnectOptions) -> SqliteConnectOptions {
    use sqlx::ConnectOptions;
    options.disable_statement_logging()
}

/// Connections to a file do not go stale: none is tested or retired.
fn pool(options: SqliteConnectOptions, size: u32) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(size)
        .acquire_timeout(BUSY_TIMEOUT * 2)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options)
}

/// SQLite does not wait for the lock that turning the write-ahead log on takes, so two processes that create the database at
/// once need patience of ours.
async fn first_connection(pool: &SqlitePool) -> Result<PoolConnection<Sqlite>, StoreError> {
    let give_up = Instant::now() + BUSY_TIMEOUT;
    loop {
        match pool.acquire().await.map_err(StoreError::from) {
            Err(StoreError::Busy(_)) if Instant::now() < give_up => sleep(Duration::from_millis(20)).await,
            settled => return settled,
        }
    }
}

// === Files ===

fn create_private_file(path: &Path) -> Result<(), StoreError> {
    let fault = |path: &Path| {
        let path = PathBuf::from(path);
        move |source| StoreError::File { path, source }
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_private_folder(folder).map_err(fault(folder))?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    private(&mut options);
    match options.open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(fault(path)(error)),
        _ => Ok(()),
    }
}

/// Creates a folder, and what is missing above it, for its owner only. One that exists stays as it is.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Files created with these options are their owner's only.
pub(crate) fn private(options: &mut fs::OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

// === Migrations ===

async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    if is_current(connection).await? {
        return Ok(());
    }
    // All or nothing, and one process at a time. Whoever waited here finds the work done.
    let mut transaction = connection.begin_with("begin immediate").await?;
    if !is_current(&mut transaction).await? {
        MIGRATOR.run(&mut *transaction).await?;
    }
    Ok(transaction.commit().await?)
}

/// Whether every migration of this build was applied. Refuses a database that is ahead of this build.
async fn is_current(connection: &mut SqliteConnection) -> Result<bool, StoreError> {
    let table = sqlx::query("select 1 from sqlite_schema where type = 'table' and name = '_sqlx_migrations'");
    if table.fetch_optional(&mut *connection).await?.is_none() {
        return Ok(false);
    }
    let rows = sqlx::query("select version, checksum from _sqlx_migrations order by version")
        .fetch_all(connection)
        .await?;
    let mut applied = HashMap::new();
    for row in &rows {
        applied.insert(row.try_get::<i64, _>(0)?, row.try_get::<Vec<u8>, _>(1)?);
    }
    let known = MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or(0);
    if let Some(&found) = applied
        .keys()
        .filter(|version| !MIGRATOR.version_exists(**version))
        .max()
    {
        return Err(StoreError::NewerSchema { found, known });
    }
    let mut current = true;
    for migration in MIGRATOR.iter() {
        match applied.get(&migration.version) {
            Some(checksum) if checksum.as_slice() == &*migration.checksum => {}
            Some(_) => {
                return Err(StoreError::AlteredSchema {
                    version: migration.version,
                });
            }
            None => current = false,
        }
    }
    Ok(current)
}
