//! The writer's connection, and the one transaction that may be running on it.
//!
//! A transaction is a task of its own, because it must not be cancelled: when it takes longer than anybody waits for, its
//! outcome is still wanted, and a second one beside it would only make things worse (a thread each that hangs on the same
//! disk). So there is at most one, and whoever started it may come back later to see how it ended.

use super::batch::{self, Numbered, Written};
use crate::{error::StoreError, store::Store};
use sqlx::{Connection, SqliteConnection};
use std::{future, sync::Arc};
use tokio::task::JoinHandle;

pub(super) struct Database {
    store: Store,
    idle: Option<SqliteConnection>,
    running: Option<JoinHandle<Ended>>,
}

struct Ended {
    connection: Option<SqliteConnection>,
    outcome: Result<Written, StoreError>,
}

impl Database {
    pub(super) const fn new(store: Store) -> Self {
        Self {
            store,
            idle: None,
            running: None,
        }
    }

    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts to write a batch. Only when nothing is running.
    pub(super) fn start(&mut self, batch: Arc<Vec<Numbered>>) {
        debug_assert!(!self.is_running(), "two transactions at once");
        let (store, connection) = (self.store.clone(), self.idle.take());
        self.running = Some(tokio::spawn(run(store, connection, batch)));
    }

    /// Waits for the end of what is running; for ever, if nothing is. May be dropped and called again.
    pub(super) async fn ended(&mut self) -> Result<Written, StoreError> {
        let Some(running) = &mut self.running else {
            return future::pending().await;
        };
        let joined = running.await;
        self.running = None;
        match joined {
            Ok(Ended { connection, outcome }) => {
                self.idle = connection;
                outcome
            }
            Err(panic) => Err(StoreError::Unexpected(panic.into())),
        }
    }

    /// Closes the connection, unless a transaction still runs on it.
    pub(super) async fn close(&mut self) {
        if let Some(connection) = self.idle.take() {
            // Whatever it says, the connection is gone, and so are we.
            let _ = connection.close().await;
        }
    }
}

async fn run(store: Store, connection: Option<SqliteConnection>, batch: Arc<Vec<Numbered>>) -> Ended {
    let mut connection = match connection {
        Some(connection) => connection,
        None => match store.log_connection().await {
            Ok(connection) => connection,
            Err(error) => {
                return Ended {
                    connection: None,
                    outcome: Err(error),
                };
            }
        },
    };
    let outcome = {
        let _turn = store.turn().await;
        batch::write(&mut connection, &batch).await
    };
    // After anything worse than a lock, the next try gets a fresh connection.
    let is_sound = matches!(outcome, Ok(_) | Err(StoreError::Busy(_)));
    Ended {
        connection: is_sound.then_some(connection),
        outcome,
    }
}
