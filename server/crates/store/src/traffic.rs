//! Sums and percentiles, for the overview.

use crate::{error::StoreError, number::unsigned, requests::filter::push_arrival, store::Store};
use sqlx::{QueryBuilder, Row, Sqlite};

/// One minute's requests, by arrival. Minutes without any have no row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteRow {
    /// Minutes since the Unix epoch.
    pub minute: i64,
    pub requests: u64,
    /// Those with an outcome other than `success`.
    pub failed: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

/// Percentiles over the newest requests of a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencySample {
    /// Median over those that have a first token.
    pub first_token_p50_us: Option<u64>,
    pub overhead_p99_us: Option<u64>,
    /// Size of the sample.
    pub sampled: u64,
}

impl Store {
    /// From `from_minute` on, before `to_minute`; oldest first.
    pub async fn traffic(&self, from_minute: i64, to_minute: i64) -> Result<Vec<MinuteRow>, StoreError> {
        let rows = sqlx::query(
            "select minute, requests, failed, prompt_tokens, completion_tokens
             from traffic_minutes where minute >= ? and minute < ? order by minute",
        )
        .bind(from_minute)
        .bind(to_minute)
        .fetch_all(self.scans())
        .await?;
        let minute = |row: &sqlx::sqlite::SqliteRow| {
            Ok(MinuteRow {
                minute: row.try_get(0)?,
                requests: unsigned(row.try_get(1)?),
                failed: unsigned(row.try_get(2)?),
                prompt_tokens: unsigned(row.try_get(3)?),
                completion_tokens: unsigned(row.try_get(4)?),
            })
        };
        rows.iter().map(minute).collect()
    }

    /// All requests ever recorded.
    pub async fn total_requests(&self) -> Result<u64, StoreError> {
        let row = sqlx::query("select coalesce(sum(requests), 0) from traffic_minutes")
            .fetch_one(self.scans())
            .await?;
        Ok(unsigned(row.try_get(0)?))
    }

    /// Percentiles (nearest rank) over the newest `limit` requests that arrived from `from_ms` on, before `to_ms`.
    pub async fn latency_sample(&self, from_ms: i64, to_ms: i64, limit: u32) -> Result<LatencySample, StoreError> {
        let mut query = QueryBuilder::<Sqlite>::new(
            "with sample as materialized (select first_token_us, overhead_us from requests r where true",
        );
        push_arrival(&mut query, Some(from_ms), Some(to_ms));
        query.push(" order by r.id desc limit ").push_bind(limit);
        // The rank of a percentile p among n values is ceil(n × p); offsets count from 0.
        query.push(
            ") select (select count(*) from sample),
                      (select first_token_us from sample where first_token_us is not null order by first_token_us
                       limit 1 offset (select (max(count(first_token_us), 1) - 1) / 2 from sample)),
                      (select overhead_us from sample order by overhead_us
                       limit 1 offset (select (max(count(*), 1) * 99 + 99) / 100 - 1 from sample))",
        );
        let row = query.build().fetch_one(self.scans()).await?;
        Ok(LatencySample {
            sampled: unsigned(row.try_get(0)?),
            first_token_p50_us: row.try_get::<Option<i64>, _>(1)?.map(unsigned),
            overhead_p99_us: row.try_get::<Option<i64>, _>(2)?.map(unsigned),
        })
    }
}
