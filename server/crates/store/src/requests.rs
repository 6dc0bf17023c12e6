//! Reading the request log.
//!
//! Lists run backwards along the primary key, which grows with time, and page by cursor: the next page begins below the
//! last id of this one, so rows that arrive meanwhile neither shift nor repeat anything. Exact totals of the whole log come
//! from `traffic_minutes`; a filter's total is counted up to a cap.

pub(crate) mod filter;
mod row;

use crate::{error::StoreError, number::unsigned, store::Store};
use filter::LogFilter;
use sqlx::{QueryBuilder, Row, Sqlite};
use switchyard_engine::record::{AttemptRecord, RequestRecord};

/// One request of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRequest {
    /// Grows in the order of writing; below 2^53.
    pub id: i64,
    pub attempts_count: u32,
    /// In lists without attempts, verdicts and notes: [`Store::log`] has them.
    pub record: RequestRecord,
}

/// Which part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub limit: u32,
    /// Matching rows to skip. Costs what it skips; `before` does not.
    pub offset: u32,
    /// Rows with a smaller id only.
    pub before: Option<i64>,
}

impl Page {
    #[must_use]
    pub const fn first(limit: u32) -> Self {
        Self {
            limit,
            offset: 0,
            before: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogRows {
    /// Newest first.
    pub rows: Vec<StoredRequest>,
    /// [`Page::before`] of the next page; absent on the last.
    pub next_before: Option<i64>,
}

impl Store {
    pub async fn logs(&self, filter: &LogFilter, page: &Page) -> Result<LogRows, StoreError> {
        let mut query = QueryBuilder::<Sqlite>::new(concat!("select ", row::columns!()));
        filter.push_from(&mut query);
        filter.push_order(&mut query, page.before);
        // One row more than asked for tells whether there is a next page.
        query.push(" limit ").push_bind(i64::from(page.limit) + 1);
        query.push(" offset ").push_bind(i64::from(page.offset));
        let found = query.build().fetch_all(self.scans()).await?;

        let wanted = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let rows = found
            .iter()
            .take(wanted)
            .map(row::request)
            .collect::<Result<Vec<_>, _>>()?;
        let next_before = rows.last().map(|last| last.id).filter(|_| found.len() > wanted);
        Ok(LogRows { rows, next_before })
    }

    /// How many rows match, and whether counting stopped at `cap`: then there are at least that many.
    pub async fn count_logs(&self, filter: &LogFilter, cap: u64) -> Result<(u64, bool), StoreError> {
        if filter.is_empty() {
            return Ok((self.total_requests().await?, false));
        }
        let mut query = QueryBuilder::<Sqlite>::new("select count(*) from (select 1");
        filter.push_from(&mut query);
        query
            .push(" limit ")
            .push_bind(crate::number::signed(cap.saturating_add(1)))
            .push(")");
        let counted = unsigned(query.build().fetch_one(self.scans()).await?.try_get(0)?);
        Ok((counted.min(cap), counted > cap))
    }

    /// A request by row id or request id, with attempts, verdicts and notes. The newest, when a request id was used twice.
    pub async fn log(&self, id_or_request_id: &str) -> Result<Option<StoredRequest>, StoreError> {
        let select = concat!("select ", row::columns!(), ", ", row::detail_columns!());
        let mut query = QueryBuilder::<Sqlite>::new(select);
        query.push(" from requests r left join courses c on c.id = r.course where ");
        match row_id(id_or_request_id) {
            Some(id) => query.push("r.id = ").push_bind(id),
            None => query.push("r.request_id = ").push_bind(id_or_request_id),
        };
        query.push(" order by r.id desc limit 1");
        // All reads are of rows that never change once they are there: they need no common snapshot.
        let Some(found) = query.build().fetch_optional(self.scans()).await? else {
            return Ok(None);
        };
        let mut request = row::request(&found)?;
        let details = row::details(&found)?;
        request.record.verdicts = details.verdicts;
        request.record.notes = details.notes;
        request.record.attempts = match details.attempts {
            Some(attempts) => attempts,
            None => self.attempts(request.id).await?,
        };
        Ok(Some(request))
    }

    async fn attempts(&self, request: i64) -> Result<Vec<AttemptRecord>, StoreError> {
        let rows = sqlx::query(concat!(
            "select ",
            row::attempt_columns!(),
            " from attempts where request_row = ? order by number"
        ))
        .bind(request)
        .fetch_all(self.scans())
        .await?;
        rows.iter().map(row::attempt).collect()
    }
}

/// A row id has at most 16 digits, a request id 32, and those may all be decimal.
fn row_id(text: &str) -> Option<i64> {
    (text.len() <= 16).then(|| text.parse().ok()).flatten()
}
