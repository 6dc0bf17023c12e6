//! One batch, one transaction.
//!
//! Rows are written one by one, each by a statement that is prepared once per connection: statements of many rows, which save
//! the way to SQLite and back, have so many values that they no longer fit the caches, and were slower. A request whose
//! course is known (see `courses.rs`) is one short row; any other is a long one, and a row for each of its attempts.
//!
//! Writing the same batch again changes nothing. Inside the transaction nobody else can write, so the ids that are there
//! already are looked up first (a new batch's are above all of them, which saves looking) and left out of rows and sums
//! alike. An id that another process gave to another request is replaced; such a record is recognised by its request id and
//! arrival.

use super::{MOMENT_BITS, courses::Courses};
use crate::{
    error::StoreError,
    number::{minute_of, signed},
    store::Store,
};
use foldhash::{HashMap, HashMapExt as _};
use rusqlite::{Connection, Statement, ToSql, TransactionBehavior, params};
use serde::{Deserialize, Serialize, Serializer as _};
use std::collections::BTreeMap;
use switchyard_engine::record::{AttemptRecord, Note, Outcome, RequestRecord};

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

/// Keys whose newest moment is remembered, to save asking the database.
const MOST_KEYS: usize = 16_384;

type Fresh<'a> = Vec<(i64, &'a RequestRecord)>;

/// The log's connection, and what is known of what the database has.
pub(super) struct Log {
    connection: Connection,
    courses: Courses,
    /// The newest moment of each key that has a row.
    moments: HashMap<String, i64>,
}

impl Log {
    pub(super) fn open(store: &Store) -> Result<Self, StoreError> {
        Ok(Self {
            connection: store.log_connection()?,
            courses: Courses::default(),
            moments: HashMap::new(),
        })
    }

    /// After an error this is of no use any more: what is known may have been taken back with the transaction.
    pub(super) fn write(&mut self, batch: &[Numbered]) -> Result<Written, StoreError> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let highest_before = highest_id(&transaction)?;
        let fresh = leave_out_written(&transaction, batch, highest_before)?;
        add_rows(&transaction, &mut self.courses, &fresh)?;
        add_to_minutes(&transaction, &fresh)?;
        add_to_keys(&transaction, &mut self.moments, &fresh)?;
        transaction.commit()?;
        let highest_id = fresh.iter().map(|(id, _)| *id).fold(highest_before, i64::max);
        Ok(Written {
            rows: fresh.len() as u64,
            highest_id,
        })
    }
}

// === What is new ===

fn highest_id(connection: &Connection) -> Result<i64, StoreError> {
    let mut statement = connection.prepare_cached("select coalesce(max(id), 0) from requests")?;
    Ok(statement.query_row((), |row| row.get(0))?)
}

fn leave_out_written<'a>(
    connection: &Connection,
    batch: &'a [Numbered],
    highest_id: i64,
) -> Result<Fresh<'a>, StoreError> {
    let ids = || batch.iter().map(|numbered| numbered.id);
    let (first, last) = (ids().min().unwrap_or(i64::MAX), ids().max().unwrap_or(0));
    if first > highest_id {
        return Ok(batch.iter().map(|Numbered { id, record }| (*id, record)).collect());
    }
    let mut statement =
        connection.prepare_cached("select id, request_id, arrived_at_ms from requests where id between ? and ?")?;
    let present: HashMap<i64, (String, i64)> = statement
        .query_map([first, last], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
        .collect::<Result<_, _>>()?;
    let mut next_free = highest_id.max(last) + 1;
    let mut fresh = Fresh::with_capacity(batch.len());
    for Numbered { id, record } in batch {
        match present.get(id) {
            None => fresh.push((*id, record)),
            Some((request_id, at_ms)) if **request_id == *record.request_id && *at_ms == record.arrived_at_ms => {}
            Some(_) if is_written(connection, record)? => {}
            Some(_) => {
                fresh.push((next_free, record));
                next_free += 1;
            }
        }
    }
    Ok(fresh)
}

fn is_written(connection: &Connection, record: &RequestRecord) -> Result<bool, StoreError> {
    let mut statement =
        connection.prepare_cached("select 1 from requests where request_id = ? and arrived_at_ms = ? limit 1")?;
    Ok(statement.exists(params![&*record.request_id, record.arrived_at_ms])?)
}

// === Rows ===

/// The row of a request that has a course.
const SHORT: &str = "\
    insert into requests (id, request_id, arrived_at_ms, outcome, prompt_tokens, completion_tokens, total_tokens,
                          cached_tokens, reasoning_tokens, duration_us, first_token_us, overhead_us, key_id, key_name,
                          attempts_count, course, attempt_times, cache_write_tokens, audio_prompt_tokens,
                          audio_completion_tokens, surface, stream, model, status, usage_estimated, simulated,
                          verdicts, route)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, '', 0, 0, 0, '', '')";

const LONG: &str = "\
    insert into requests (id, request_id, arrived_at_ms, surface, stream, model, upstream_model, provider, target, status,
                          outcome, error_code, error_message, prompt_tokens, completion_tokens, total_tokens,
                          cached_tokens, reasoning_tokens, usage_estimated, duration_us, first_token_us, overhead_us,
                          key_id, key_name, simulated, attempts_count, verdicts, route, variant, cache_write_tokens,
                          audio_prompt_tokens, audio_completion_tokens, notes)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const ATTEMPT: &str = "\
    insert into attempts (request_row, number, target, provider, model, outcome, status, started_us, latency_us,
                          first_token_us, error)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

fn add_rows(connection: &Connection, courses: &mut Courses, fresh: &Fresh<'_>) -> Result<(), StoreError> {
    let mut short = connection.prepare_cached(SHORT)?;
    let mut times = Vec::new();
    for (id, record) in fresh {
        let Some(course) = courses.of(connection, record)? else {
            add_long(connection, *id, record)?;
            continue;
        };
        times.clear();
        write_times(&mut times, &record.attempts)?;
        let mut values = Values::of(&mut short);
        values.add(id)?;
        values.add(&*record.request_id)?;
        values.add(record.arrived_at_ms)?;
        values.add(record.outcome.as_str())?;
        values.add(record.usage.prompt.map(signed))?;
        values.add(record.usage.completion.map(signed))?;
        values.add(record.usage.total.map(signed))?;
        values.add(record.usage.cached.map(signed))?;
        values.add(record.usage.reasoning.map(signed))?;
        values.add(signed(record.duration_us))?;
        values.add(record.first_token_us.map(signed))?;
        values.add(signed(record.overhead_us))?;
        values.add(record.key_id.as_deref())?;
        values.add(record.key_name.as_deref())?;
        values.add(count_of(&record.attempts))?;
        values.add(course)?;
        values.add(str::from_utf8(&times).map_err(|error| StoreError::Unexpected(error.into()))?)?;
        values.add(record.usage.cache_write.map(signed))?;
        values.add(record.usage.audio_prompt.map(signed))?;
        values.add(record.usage.audio_completion.map(signed))?;
        short.raw_execute()?;
    }
    Ok(())
}

/// Binds one value after the other, without the way through a list of trait objects: there are enough of them to tell.
struct Values<'a, 'c> {
    statement: &'a mut Statement<'c>,
    count: usize,
}

impl<'a, 'c> Values<'a, 'c> {
    const fn of(statement: &'a mut Statement<'c>) -> Self {
        Self { statement, count: 0 }
    }

    fn add(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.count += 1;
        self.statement.raw_bind_parameter(self.count, value)
    }
}

fn write_times(text: &mut Vec<u8>, attempts: &[AttemptRecord]) -> Result<(), StoreError> {
    let times = attempts.iter().map(|a| (a.started_us, a.latency_us, a.first_token_us));
    serde_json::Serializer::new(text)
        .collect_seq(times)
        .map_err(|error| StoreError::Unexpected(error.into()))
}

/// As they are kept: empty where there are none.
pub(super) fn notes_text(notes: &[Note]) -> Result<String, StoreError> {
    if notes.is_empty() {
        return Ok(String::new());
    }
    serde_json::to_string(notes).map_err(|error| StoreError::Unexpected(error.into()))
}

fn count_of(attempts: &[AttemptRecord]) -> u32 {
    u32::try_from(attempts.len()).unwrap_or(u32::MAX)
}

fn add_long(connection: &Connection, id: i64, record: &RequestRecord) -> Result<(), StoreError> {
    let verdicts = serde_json::to_string(&record.verdicts).map_err(|error| StoreError::Unexpected(error.into()))?;
    connection.prepare_cached(LONG)?.execute(params![
        id,
        &*record.request_id,
        record.arrived_at_ms,
        &*record.surface,
        record.stream,
        &*record.model,
        record.upstream_model.as_deref(),
        record.provider.as_deref(),
        record.target.as_deref(),
        record.status,
        record.outcome.as_str(),
        record.error_code.as_deref(),
        record.error_message.as_deref(),
        record.usage.prompt.map(signed),
        record.usage.completion.map(signed),
        record.usage.total.map(signed),
        record.usage.cached.map(signed),
        record.usage.reasoning.map(signed),
        record.usage.estimated,
        signed(record.duration_us),
        record.first_token_us.map(signed),
        signed(record.overhead_us),
        record.key_id.as_deref(),
        record.key_name.as_deref(),
        record.simulated,
        count_of(&record.attempts),
        verdicts,
        &*record.route,
        record.variant.as_deref(),
        record.usage.cache_write.map(signed),
        record.usage.audio_prompt.map(signed),
        record.usage.audio_completion.map(signed),
        notes_text(&record.notes)?,
    ])?;
    let mut statement = connection.prepare_cached(ATTEMPT)?;
    for (number, attempt) in (1_i64..).zip(&record.attempts) {
        statement.execute(params![
            id,
            number,
            &*attempt.target,
            &*attempt.provider,
            &*attempt.model,
            &*attempt.outcome,
            attempt.status,
            signed(attempt.started_us),
            signed(attempt.latency_us),
            attempt.first_token_us.map(signed),
            attempt.error.as_deref(),
        ])?;
    }
    Ok(())
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

fn add_to_minutes(connection: &Connection, fresh: &Fresh<'_>) -> Result<(), StoreError> {
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
    let mut statement = connection.prepare_cached(
        "insert into traffic_minutes (minute, requests, failed, prompt_tokens, completion_tokens, last_id)
         values (?, ?, ?, ?, ?, ?)
         on conflict (minute) do update set
             requests = requests + excluded.requests,
             failed = failed + excluded.failed,
             prompt_tokens = prompt_tokens + excluded.prompt_tokens,
             completion_tokens = completion_tokens + excluded.completion_tokens,
             last_id = max(last_id, excluded.last_id)",
    )?;
    for (minute, sums) in minutes {
        statement.execute(params![
            minute,
            signed(sums.requests),
            signed(sums.failed),
            signed(sums.prompt_tokens),
            signed(sums.completion_tokens),
            sums.last_id,
        ])?;
    }
    Ok(())
}

#[derive(Default)]
struct Key {
    uses: u64,
    last_used_ms: i64,
    moment: i64,
}

fn add_to_keys(connection: &Connection, known: &mut HashMap<String, i64>, fresh: &Fresh<'_>) -> Result<(), StoreError> {
    let mut keys: HashMap<&str, Key> = HashMap::new();
    let mut moments = Vec::new();
    for (id, record) in fresh {
        let key_id = record.key_id.as_deref().unwrap_or("");
        let key = keys.entry(key_id).or_default();
        key.uses += 1;
        key.last_used_ms = record.arrived_at_ms.max(key.last_used_ms);
        let moment = id >> MOMENT_BITS;
        if key.moment != moment {
            key.moment = moment;
            moments.push((key_id, moment));
        }
    }
    let mut statement = connection.prepare_cached(
        "update keys set usage_count = usage_count + ?, last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?)
         where key_id = ?",
    )?;
    for (key_id, key) in keys {
        statement.execute(params![signed(key.uses), key.last_used_ms, key_id])?;
    }
    let mut statement =
        connection.prepare_cached("insert or ignore into key_moments (key_id, moment) values (?, ?)")?;
    if known.len() > MOST_KEYS {
        known.clear();
    }
    for (key_id, moment) in moments {
        match known.get_mut(key_id) {
            Some(newest) if *newest == moment => continue,
            Some(newest) => *newest = moment,
            None => {
                known.insert(key_id.to_owned(), moment);
            }
        }
        statement.execute(params![key_id, moment])?;
    }
    Ok(())
}
