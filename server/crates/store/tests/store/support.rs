//! A store in a folder of its own, records to put there, and a stranger who locks it.

use sqlx::{ConnectOptions, Connection, Executor, SqliteConnection, sqlite::SqliteConnectOptions};
use std::path::PathBuf;
use switchyard_core::{
    scope::{Scope, Scopes},
    usage::Usage,
};
use switchyard_engine::{
    ports::Records,
    record::{AttemptRecord, Fate, Note, Outcome, RequestRecord, Verdict, VerdictState, Verdicts},
};
use switchyard_store::{KeyRow, NewKeyRow, Store, Writer, WriterConfig};

/// 2026-01-01, on a full minute.
pub(crate) const T0: i64 = 1_767_225_600_000;

pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("data/switchyard.db")
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.folder.path().join("data/spool")
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.database()).await.unwrap()
    }

    pub(crate) fn config(&self) -> WriterConfig {
        WriterConfig::new(self.spool())
    }

    /// A store that holds these records.
    pub(crate) async fn with(&self, records: impl IntoIterator<Item = RequestRecord>) -> Store {
        let store = self.open().await;
        let writer = Writer::start(store.clone(), self.config());
        for record in records {
            writer.push(record);
        }
        writer.drained().await;
        assert!(writer.close().await, "the writer did not stop");
        store
    }

    /// Files on the spool.
    pub(crate) fn segments(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.spool()) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// A connection as another program would have it.
    pub(crate) async fn stranger(&self) -> SqliteConnection {
        SqliteConnectOptions::new()
            .filename(self.database())
            .connect()
            .await
            .unwrap()
    }

    /// Locks the database for everybody else who wants to write.
    pub(crate) async fn lock(&self) -> Lock {
        let mut connection = self.stranger().await;
        connection.execute("begin exclusive").await.unwrap();
        Lock(connection)
    }
}

pub(crate) struct Lock(SqliteConnection);

impl Lock {
    pub(crate) async fn release(mut self) {
        self.0.execute("rollback").await.unwrap();
        self.0.close().await.unwrap();
    }
}

/// The `n`th of a row of plain, successful requests, a second apart.
pub(crate) fn record(n: i64) -> RequestRecord {
    RequestRecord {
        request_id: format!("{n:032x}").into(),
        arrived_at_ms: T0 + n * 1000,
        surface: "chat".into(),
        stream: false,
        model: "gpt-4o".into(),
        upstream_model: Some("gpt-4o-2024".into()),
        provider: Some("openai".into()),
        target: Some("openai-1".into()),
        route: "default".into(),
        variant: None,
        status: 200,
        outcome: Outcome::Success,
        error_code: None,
        error_message: None,
        usage: Usage {
            prompt: Some(10),
            completion: Some(5),
            total: Some(15),
            ..Usage::default()
        },
        duration_us: 800_000,
        first_token_us: None,
        overhead_us: 150,
        key_id: Some("key-1".into()),
        key_name: Some("first".into()),
        simulated: false,
        attempts: vec![attempt("openai-1", "success")],
        verdicts: Verdicts::from_iter([verdict("openai-1", VerdictState::Chosen, "first in order")]),
        notes: Vec::new(),
    }
}

pub(crate) fn attempt(target: &str, outcome: &str) -> AttemptRecord {
    AttemptRecord {
        target: target.into(),
        provider: "openai".into(),
        model: "gpt-4o-2024".into(),
        outcome: outcome.to_owned().into(),
        status: Some(200),
        started_us: 120,
        latency_us: 700_000,
        first_token_us: Some(90_000),
        error: None,
    }
}

pub(crate) fn verdict(target: &str, state: VerdictState, reason: &str) -> Verdict {
    Verdict {
        target: target.into(),
        state,
        reason: reason.to_owned().into(),
        until_ms: None,
    }
}

pub(crate) fn note(fate: Fate, field: &str, why: &str) -> Note {
    Note {
        fate,
        field: field.to_owned().into(),
        why: why.to_owned().into(),
    }
}

pub(crate) async fn add_key(store: &Store, id: &str, scopes: &[Scope]) -> KeyRow {
    let mut hash = [0; 32];
    hash[..id.len()].copy_from_slice(id.as_bytes());
    let scopes: Scopes = scopes.iter().copied().collect();
    let key = NewKeyRow {
        id: id.to_owned(),
        name: format!("name of {id}"),
        display: format!("sy_{id}…"),
        hash,
        scopes,
        created_at_ms: T0,
        expires_at_ms: None,
        project: None,
        route: None,
    };
    store.insert_key(key).await.unwrap()
}
