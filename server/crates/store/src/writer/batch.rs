//! One batch, one transaction.
//!
//! Written row by row, a record costs as much as relaying the request did; in statements of hundreds of rows, a tenth of
//! that. Statements come in sizes that are powers of two, so that any number of rows is written by a few of them and each
//! is prepared once per connection.
//!
//! Writing the same batch again changes nothing. Inside the transaction nobody else can write, so the ids that are there
//! already are looked up first (a new batch's are above all of them, which saves looking) and left out of rows and sums
//! alike. An id that another process gave to another request is replaced; such a record is recognised by its request id and
//! arrival.

use crate::{
    error::StoreError,
    number::{minute_of, signed},
};
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Connection, Row, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock},
};
use switchyard_engine::record::{AttemptRecord, Outcome, RequestRecord};

/// A record with the id of its row; also a line of the spool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Numbered {
    pub(super) id: i64,
    pub(super) record: RequestRecord,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// Without those that were there already.
    pub(super) rows: u64,
    /// The greatest id in the database.
    pub(super) highest_id: i64,
}

type Fresh<'a> = Vec<(i64, &'a RequestRecord)>;
type Statement = Query<'static, Sqlite, SqliteArguments>;

pub(super) async fn write(connection: &mut SqliteConnection, batch: &[Numbered]) -> Result<Written, StoreError> {
    let mut transaction = connection.begin_with("begin immediate").await?;
    let highest_before = highest_id(&mut transaction).await?;
    let fresh = leave_out_written(&mut transaction, batch, highest_before).await?;
    send(&mut transaction, &REQUESTS, &fresh, |statement, (id, record)| {
        bind_request(statement, *id, record)
    })
    .await?;
    let attempts: Vec<_> = fresh
        .iter()
        .flat_map(|(id, record)| {
            (1_i64..)
                .zip(&record.attempts)
                .map(|(number, attempt)| (*id, number, attempt))
        })
        .collect();
    send(&mut transaction, &ATTEMPTS, &attempts, |statement, row| {
        Ok(bind_attempt(statement, row))
    })
    .await?;
    add_to_minutes(&mut transaction, &fresh).await?;
    add_to_keys(&mut transaction, &fresh).await?;
    transaction.commit().await?;
    let highest_id = fresh.iter().map(|(id, _)| *id).fold(highest_before, i64::max);
    Ok(Written {
        rows: fresh.len() as u64,
        highest_id,
    })
}

// === What is new ===

async fn highest_id(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let row = sqlx::query("select coalesce(max(id), 0) from requests")
        .fetch_one(connection)
        .await?;
    Ok(row.try_get(0)?)
}

async fn leave_out_written<'a>(
    connection: &mut SqliteConnection,
    batch: &'a [Numbered],
    highest_id: i64,
) -> Result<Fresh<'a>, StoreError> {
    let ids = || batch.iter().map(|numbered| numbered.id);
    let (first, last) = (ids().min().unwrap_or(i64::MAX), ids().max().unwrap_or(0));
    if first > highest_id {
        return Ok(batch.iter().map(|Numbered { id, record }| (*id, record)).collect());
    }
    let rows = sqlx::query("select id, request_id, arrived_at_ms from requests where id between ? and ?")
        .bind(first)
        .bind(last)
        .fetch_all(&mut *connection)
        .await?;
    let mut present: HashMap<i64, (String, i64)> = HashMap::new();
    for row in &rows {
        present.insert(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    let mut next_free = highest_id.max(last) + 1;
    let mut fresh = Fresh::with_capacity(batch.len());
    for Numbered { id, record } in batch {
        match present.get(id) {
            None => fresh.push((*id, record)),
            Some((request_id, at_ms)) if **request_id == *record.request_id && *at_ms == record.arrived_at_ms => {}
            Some(_) if is_written(connection, record).await? => {}
            Some(_) => {
                fresh.push((next_free, record));
                next_free += 1;
            }
        }
    }
    Ok(fresh)
}

async fn is_written(connection: &mut SqliteConnection, record: &RequestRecord) -> Result<bool, StoreError> {
    let found = sqlx::query("select 1 from requests where request_id = ? and arrived_at_ms = ? limit 1")
        .bind(&record.request_id)
        .bind(record.arrived_at_ms)
        .fetch_optional(connection)
        .await?;
    Ok(found.is_some())
}

// === Rows ===

/// Statements of 1, 2, 4, … 512 rows. SQLite takes 32,766 values in one; 512 × 29 are well below.
type Sizes = [Arc<str>; 10];

static REQUESTS: LazyLock<Sizes> = LazyLock::new(|| {
    sizes(
        "insert into requests (id, request_id, arrived_at_ms, surface, stream, model, upstream_model, provider, target, \
         status, outcome, error_code, error_message, prompt_tokens, completion_tokens, total_tokens, cached_tokens, \
         reasoning_tokens, usage_estimated, duration_us, first_token_us, overhead_us, key_id, key_name, simulated, \
         attempts_count, verdicts, route, variant) values ",
        29,
        "",
    )
});

static ATTEMPTS: LazyLock<Sizes> = LazyLock::new(|| {
    sizes(
        "insert into attempts (request_row, number, target, provider, model, outcome, status, started_us, latency_us, \
         first_token_us, error) values ",
        11,
        "",
    )
});

static KEYS: LazyLock<Sizes> = LazyLock::new(|| {
    sizes(
        "with used (key_id, uses, last_used_at_ms) as (values ",
        3,
        ") update keys set usage_count = usage_count + used.uses,
                          last_used_at_ms = max(coalesce(keys.last_used_at_ms, 0), used.last_used_at_ms)
           from used where keys.key_id = used.key_id",
    )
});

fn sizes(head: &str, columns: usize, tail: &str) -> Sizes {
    let row = format!("({})", vec!["?"; columns].join(", "));
    std::array::from_fn(|power| format!("{head}{}{tail}", vec![row.as_str(); 1 << power].join(", ")).into())
}

async fn send<T>(
    connection: &mut SqliteConnection,
    sizes: &Sizes,
    mut rows: &[T],
    bind: impl Fn(Statement, &T) -> Result<Statement, StoreError>,
) -> Result<(), StoreError> {
    while !rows.is_empty() {
        let power = (rows.len().ilog2() as usize).min(sizes.len() - 1);
        let (chunk, rest) = rows.split_at(1 << power);
        let mut statement = sqlx::query(AssertSqlSafe(Arc::clone(&sizes[power])));
        for row in chunk {
            statement = bind(statement, row)?;
        }
        statement.execute(&mut *connection).await?;
        rows = rest;
    }
    Ok(())
}

fn bind_request(statement: Statement, id: i64, record: &RequestRecord) -> Result<Statement, StoreError> {
    let verdicts = serde_json::to_string(&record.verdicts).map_err(|error| StoreError::Unexpected(error.into()))?;
    Ok(statement
        .bind(id)
        .bind(&*record.request_id)
        .bind(record.arrived_at_ms)
        .bind(&*record.surface)
        .bind(record.stream)
        .bind(record.model.as_str())
        .bind(record.upstream_model.as_deref())
        .bind(record.provider.as_deref())
        .bind(record.target.as_deref())
        .bind(record.status)
        .bind(record.outcome.as_str())
        .bind(record.error_code.as_deref())
        .bind(record.error_message.as_deref())
        .bind(record.usage.prompt.map(signed))
        .bind(record.usage.completion.map(signed))
        .bind(record.usage.total.map(signed))
        .bind(record.usage.cached.map(signed))
        .bind(record.usage.reasoning.map(signed))
        .bind(record.usage.estimated)
        .bind(signed(record.duration_us))
        .bind(record.first_token_us.map(signed))
        .bind(signed(record.overhead_us))
        .bind(record.key_id.as_deref())
        .bind(record.key_name.as_deref())
        .bind(record.simulated)
        .bind(u32::try_from(record.attempts.len()).unwrap_or(u32::MAX))
        .bind(verdicts)
        .bind(&*record.route)
        .bind(record.variant.as_deref()))
}

fn bind_attempt(statement: Statement, (id, number, attempt): &(i64, i64, &AttemptRecord)) -> Statement {
    statement
        .bind(*id)
        .bind(*number)
        .bind(&*attempt.target)
        .bind(&*attempt.provider)
        .bind(&*attempt.model)
        .bind(&*attempt.outcome)
        .bind(attempt.status)
        .bind(signed(attempt.started_us))
        .bind(signed(attempt.latency_us))
        .bind(attempt.first_token_us.map(signed))
        .bind(attempt.error.as_deref())
}

// === Sums ===

#[derive(Default)]
struct Minute {
    requests: u64,
    failed: u64,
    prompt_tokens: u64,
    completion_tokens: u64,
    last_id: i64,
}

async fn add_to_minutes(connection: &mut SqliteConnection, fresh: &Fresh<'_>) -> Result<(), StoreError> {
    let mut minutes: BTreeMap<i64, Minute> = BTreeMap::new();
    for (id, record) in fresh {
        let minute = minutes.entry(minute_of(record.arrived_at_ms)).or_default();
        minute.requests += 1;
        minute.failed += u64::from(record.outcome != Outcome::Success);
        minute.prompt_tokens = minute.prompt_tokens.saturating_add(record.usage.prompt.unwrap_or(0));
        minute.completion_tokens = minute
            .completion_tokens
            .saturating_add(record.usage.completion.unwrap_or(0));
        minute.last_id = minute.last_id.max(*id);
    }
    for (minute, sums) in minutes {
        sqlx::query(
            "insert into traffic_minutes (minute, requests, failed, prompt_tokens, completion_tokens, last_id)
             values (?, ?, ?, ?, ?, ?)
             on conflict (minute) do update set
                 requests = requests + excluded.requests,
                 failed = failed + excluded.failed,
                 prompt_tokens = prompt_tokens + excluded.prompt_tokens,
                 completion_tokens = completion_tokens + excluded.completion_tokens,
                 last_id = max(last_id, excluded.last_id)",
        )
        .bind(minute)
        .bind(signed(sums.requests))
        .bind(signed(sums.failed))
        .bind(signed(sums.prompt_tokens))
        .bind(signed(sums.completion_tokens))
        .bind(sums.last_id)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn add_to_keys(connection: &mut SqliteConnection, fresh: &Fresh<'_>) -> Result<(), StoreError> {
    let mut keys: HashMap<&str, (i64, i64)> = HashMap::new();
    for (_, record) in fresh {
        if let Some(key_id) = &record.key_id {
            let (uses, last_used_ms) = keys.entry(key_id).or_default();
            *uses += 1;
            *last_used_ms = record.arrived_at_ms.max(*last_used_ms);
        }
    }
    let keys: Vec<_> = keys.into_iter().collect();
    let bind = |statement: Statement, (key_id, (uses, last_used_ms)): &(&str, (i64, i64))| {
        Ok(statement.bind(*key_id).bind(*uses).bind(*last_used_ms))
    };
    send(connection, &KEYS, &keys, bind).await
}
