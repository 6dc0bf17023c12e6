//! From rows to records.

use super::StoredRequest;
use crate::{error::StoreError, number::unsigned};
use sqlx::{Row, sqlite::SqliteRow};
use switchyard_core::usage::Usage;
use switchyard_engine::record::{AttemptRecord, Outcome, RequestRecord, Verdict};

/// Columns of [`request`], in its order.
macro_rules! columns {
    () => {
        "id, request_id, arrived_at_ms, surface, stream, model, upstream_model, provider, target, status, outcome, \
         error_code, error_message, prompt_tokens, completion_tokens, total_tokens, cached_tokens, reasoning_tokens, \
         usage_estimated, duration_us, first_token_us, overhead_us, key_id, key_name, simulated, attempts_count, \
         route, variant"
    };
}
pub(super) use columns;

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
            request_id: row.try_get(1)?,
            arrived_at_ms: row.try_get(2)?,
            surface: row.try_get(3)?,
            stream: row.try_get(4)?,
            model: row.try_get(5)?,
            upstream_model: row.try_get(6)?,
            provider: row.try_get(7)?,
            target: row.try_get(8)?,
            route: row.try_get(26)?,
            variant: row.try_get(27)?,
            status: row.try_get(9)?,
            outcome,
            error_code: row.try_get(11)?,
            error_message: row.try_get(12)?,
            usage: Usage {
                prompt: optional(row, 13)?,
                completion: optional(row, 14)?,
                total: optional(row, 15)?,
                cached: optional(row, 16)?,
                reasoning: optional(row, 17)?,
                estimated: row.try_get(18)?,
            },
            duration_us: unsigned(row.try_get(19)?),
            first_token_us: optional(row, 20)?,
            overhead_us: unsigned(row.try_get(21)?),
            key_id: row.try_get(22)?,
            key_name: row.try_get(23)?,
            simulated: row.try_get(24)?,
            attempts: Vec::new(),
            verdicts: Vec::new(),
        },
    })
}

/// Verdicts stand behind the columns of [`request`].
pub(super) fn verdicts(row: &SqliteRow) -> Result<Vec<Verdict>, StoreError> {
    serde_json::from_str(row.try_get(28)?).map_err(|error| StoreError::Unexpected(error.into()))
}

pub(super) fn attempt(row: &SqliteRow) -> Result<AttemptRecord, StoreError> {
    Ok(AttemptRecord {
        target: row.try_get(0)?,
        provider: row.try_get(1)?,
        model: row.try_get(2)?,
        outcome: row.try_get(3)?,
        status: row.try_get(4)?,
        started_us: unsigned(row.try_get(5)?),
        latency_us: unsigned(row.try_get(6)?),
        first_token_us: optional(row, 7)?,
        error: row.try_get(8)?,
    })
}

fn optional(row: &SqliteRow, column: usize) -> Result<Option<u64>, StoreError> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(unsigned))
}
