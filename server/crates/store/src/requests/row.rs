//! From rows to records.

use super::StoredRequest;
use crate::{error::StoreError, number::unsigned};
use sqlx::{Row, sqlite::SqliteRow};
use switchyard_core::usage::Usage;
use switchyard_engine::record::{AttemptRecord, Note, Outcome, RequestRecord, Verdicts};

/// Columns of [`request`], in its order.
macro_rules! columns {
    () => {
        "r.id, r.request_id, r.arrived_at_ms, coalesce(c.surface, r.surface), coalesce(c.stream, r.stream), \
         coalesce(c.model, r.model), coalesce(c.upstream_model, r.upstream_model), coalesce(c.provider, r.provider), \
         coalesce(c.target, r.target), coalesce(c.status, r.status), r.outcome, coalesce(c.error_code, r.error_code), \
         coalesce(c.error_message, r.error_message), r.prompt_tokens, r.completion_tokens, r.total_tokens, \
         r.cached_tokens, r.reasoning_tokens, coalesce(c.usage_estimated, r.usage_estimated), r.duration_us, \
         r.first_token_us, r.overhead_us, r.key_id, r.key_name, coalesce(c.simulated, r.simulated), r.attempts_count, \
         coalesce(c.route, r.route), coalesce(c.variant, r.variant), r.cache_write_tokens, r.audio_prompt_tokens, \
         r.audio_completion_tokens"
    };
}
pub(super) use columns;

/// What stands behind them when one request is asked for, in the order of [`details`].
macro_rules! detail_columns {
    () => {
        "coalesce(c.verdicts, r.verdicts), c.attempts, r.attempt_times, coalesce(c.notes, r.notes)"
    };
}
pub(super) use detail_columns;

/// Columns of [`attempt`], in its order.
macro_rules! attempt_columns {
    () => {
        "target, provider, model, outcome, status, started_us, latency_us, first_token_us, error"
    };
}
pub(super) use attempt_columns;

pub(super) fn request(row: &SqliteRow) -> Result<StoredRequest, StoreError> {
    let outcome: &str = row.try_get(10)?;
    let outcome = Outcome::parse(outcome)
        .ok_or_else(|| StoreError::Unexpected(format!("a request has the unknown outcome `{outcome}`").into()))?;
    Ok(StoredRequest {
        id: row.try_get(0)?,
        attempts_count: row.try_get(25)?,
        record: RequestRecord {
            request_id: text(row, 1)?,
            arrived_at_ms: row.try_get(2)?,
            surface: text(row, 3)?,
            stream: row.try_get(4)?,
            model: text(row, 5)?,
            upstream_model: optional_text(row, 6)?,
            provider: optional_text(row, 7)?,
            target: optional_text(row, 8)?,
            route: text(row, 26)?,
            variant: optional_text(row, 27)?,
            status: row.try_get(9)?,
            outcome,
            error_code: optional_text(row, 11)?,
            error_message: optional_text(row, 12)?,
            usage: Usage {
                prompt: optional(row, 13)?,
                completion: optional(row, 14)?,
                total: optional(row, 15)?,
                cached: optional(row, 16)?,
                reasoning: optional(row, 17)?,
                estimated: row.try_get(18)?,
                cache_write: optional(row, 28)?,
                audio_prompt: optional(row, 29)?,
                audio_completion: optional(row, 30)?,
            },
            duration_us: unsigned(row.try_get(19)?),
            first_token_us: optional(row, 20)?,
            overhead_us: unsigned(row.try_get(21)?),
            key_id: optional_text(row, 22)?,
            key_name: optional_text(row, 23)?,
            simulated: row.try_get(24)?,
            attempts: Vec::new(),
            verdicts: Verdicts::default(),
            notes: Vec::new(),
        },
    })
}

/// What lists do not read of a request.
pub(super) struct Details {
    pub(super) verdicts: Verdicts,
    pub(super) notes: Vec<Note>,
    /// Of a request that has a course.
    pub(super) attempts: Option<Vec<AttemptRecord>>,
}

pub(super) fn details(row: &SqliteRow) -> Result<Details, StoreError> {
    let json = |error: serde_json::Error| StoreError::Unexpected(error.into());
    let verdicts = serde_json::from_str(row.try_get(31)?).map_err(json)?;
    let notes = match row.try_get(34)? {
        "" => Vec::new(),
        notes => serde_json::from_str(notes).map_err(json)?,
    };
    let Some(attempts) = row.try_get::<Option<&str>, _>(32)? else {
        return Ok(Details {
            verdicts,
            notes,
            attempts: None,
        });
    };
    let mut attempts: Vec<AttemptRecord> = serde_json::from_str(attempts).map_err(json)?;
    let times: Vec<(u64, u64, Option<u64>)> = serde_json::from_str(row.try_get(33)?).map_err(json)?;
    for (attempt, (started_us, latency_us, first_token_us)) in attempts.iter_mut().zip(times) {
        attempt.started_us = started_us;
        attempt.latency_us = latency_us;
        attempt.first_token_us = first_token_us;
    }
    Ok(Details {
        verdicts,
        notes,
        attempts: Some(attempts),
    })
}

pub(super) fn attempt(row: &SqliteRow) -> Result<AttemptRecord, StoreError> {
    Ok(AttemptRecord {
        target: text(row, 0)?,
        provider: text(row, 1)?,
        model: text(row, 2)?,
        outcome: text(row, 3)?,
        status: row.try_get(4)?,
        started_us: unsigned(row.try_get(5)?),
        latency_us: unsigned(row.try_get(6)?),
        first_token_us: optional(row, 7)?,
        error: optional_text(row, 8)?,
    })
}

fn text<T: From<String>>(row: &SqliteRow, column: usize) -> Result<T, StoreError> {
    Ok(row.try_get::<String, _>(column)?.into())
}

fn optional_text<T: From<String>>(row: &SqliteRow, column: usize) -> Result<Option<T>, StoreError> {
    Ok(row.try_get::<Option<String>, _>(column)?.map(Into::into))
}

fn optional(row: &SqliteRow, column: usize) -> Result<Option<u64>, StoreError> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(unsigned))
}
