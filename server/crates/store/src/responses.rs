//! Answers of OpenAI's Responses, and the conversations that they make.
//!
//! A row is one turn: the items that the call brought, and the items of the answer. A conversation is found by walking from a
//! turn to the one before, all in one query and within bounds: it is a caller who decides how long it gets.
//!
//! Everything is asked for in somebody's name ([`Whose`]). What belongs to somebody else, what was deleted and what has
//! expired is not there.

use crate::{
    error::StoreError,
    number::{signed, unsigned},
    store::Store,
};
use sqlx::{Row, sqlite::SqliteRow};

/// Rows that one step of a sweep deletes: between two, others may write.
const SWEPT_AT_ONCE: i64 = 500;

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseRow {
    /// As the caller knows it.
    pub id: String,
    /// Id of the credential that it belongs to.
    pub owner: String,
    pub target: Option<String>,
    /// The target speaks Responses itself, and knows the id.
    pub is_native: bool,
    pub model: String,
    pub created_at_ms: i64,
    /// The answer that it goes on from, or a conversation that only the vendor has.
    pub previous: Option<String>,
    /// JSON array: the items that the call brought.
    pub input: String,
    /// JSON array: the items of the answer.
    pub output: String,
    /// The answer without its output.
    pub response: String,
    pub expires_at_ms: i64,
}

/// In whose name something is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose<'a> {
    /// Of this credential.
    Of(&'a str),
    /// Of anybody: for the master key.
    Anybodys,
}

impl Whose<'_> {
    /// As it is bound: null is anybody's.
    const fn owner(&self) -> Option<&str> {
        match self {
            Self::Of(owner) => Some(owner),
            Self::Anybodys => None,
        }
    }
}

/// The longest conversation that is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestConversation {
    pub turns: u32,
    /// Of all items.
    pub bytes: u64,
}

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub id: String,
    /// JSON array.
    pub input: String,
    /// JSON array.
    pub output: String,
}

/// What an id leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversation {
    /// Nothing with this id was ever kept here.
    Unknown,
    /// It is another's, or deleted, or has expired: it is not there, and nobody else is to be asked for it.
    NotThere,
    /// More turns or bytes than the bound.
    TooLong,
    Found {
        /// First turn first, and last the one that was asked for.
        turns: Vec<Turn>,
        /// The first of them goes on from this, which is not here.
        missing: Option<String>,
        /// Of the last turn.
        target: Option<String>,
        /// Of the last turn.
        is_native: bool,
    },
}

impl Store {
    /// Keeps a turn. `false`, and nothing is kept, if the id is another's.
    pub async fn keep_response(&self, row: &ResponseRow) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        // An upstream that gives an id twice to one caller means the later one.
        let kept = sqlx::query(
            "insert into responses
             (id, owner, target, native, model, created_at_ms, previous, input, output, response, expires_at_ms)
             values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
             on conflict (id) do update set
                 target = excluded.target, native = excluded.native, model = excluded.model,
                 created_at_ms = excluded.created_at_ms, previous = excluded.previous, input = excluded.input,
                 output = excluded.output, response = excluded.response, expires_at_ms = excluded.expires_at_ms
             where owner = excluded.owner",
        )
        .bind(&row.id)
        .bind(&row.owner)
        .bind(&row.target)
        .bind(row.is_native)
        .bind(&row.model)
        .bind(row.created_at_ms)
        .bind(&row.previous)
        .bind(&row.input)
        .bind(&row.output)
        .bind(&row.response)
        .bind(row.expires_at_ms)
        .execute(change.connection())
        .await?
        .rows_affected();
        change.commit().await?;
        Ok(kept > 0)
    }

    pub async fn response(&self, id: &str, whose: Whose<'_>, now_ms: i64) -> Result<Option<ResponseRow>, StoreError> {
        let row = sqlx::query(
            "select id, owner, target, native, model, created_at_ms, previous, input, output, response, expires_at_ms
             from responses
             where id = ?1 and (?2 is null or owner = ?2) and response <> '' and expires_at_ms > ?3",
        )
        .bind(id)
        .bind(whose.owner())
        .bind(now_ms)
        .fetch_optional(self.lookups())
        .await?;
        row.as_ref().map(response_row).transpose()
    }

    /// What was said until the end of a turn.
    pub async fn conversation(
        &self,
        id: &str,
        whose: Whose<'_>,
        now_ms: i64,
        longest: LongestConversation,
    ) -> Result<Conversation, StoreError> {
        // The bounds stop the walk one turn behind them, so that what is too long is told from what just fits. A turn that
        // somebody may see leads to nothing but turns of its own owner, unless the master key carried on.
        let rows = sqlx::query(
            "with recursive turns (id, previous, depth, bytes) as (
                 select id, previous, 1, octet_length(input) + octet_length(output)
                 from responses
                 where id = ?1 and (?2 is null or owner = ?2) and response <> '' and expires_at_ms > ?3
                 union all
                 select r.id, r.previous, t.depth + 1, t.bytes + octet_length(r.input) + octet_length(r.output)
                 from turns t
                 join responses r on r.id = t.previous
                 where (?2 is null or r.owner = ?2) and r.response <> '' and r.expires_at_ms > ?3 and
                       t.depth <= ?4 and t.bytes <= ?5
             )
             select r.id, t.previous, t.depth, t.bytes, r.target, r.native,
                    iif(t.bytes <= ?5, r.input, ''), iif(t.bytes <= ?5, r.output, '')
             from turns t
             join responses r on r.id = t.id
             order by t.depth desc",
        )
        .bind(id)
        .bind(whose.owner())
        .bind(now_ms)
        .bind(i64::from(longest.turns))
        .bind(signed(longest.bytes))
        .fetch_all(self.lookups())
        .await?;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            let known = sqlx::query("select 1 from responses where id = ?")
                .bind(id)
                .fetch_optional(self.lookups())
                .await?;
            return Ok(known.map_or(Conversation::Unknown, |_| Conversation::NotThere));
        };
        if first.try_get::<u32, _>(2)? > longest.turns || unsigned(first.try_get(3)?) > longest.bytes {
            return Ok(Conversation::TooLong);
        }
        let turn = |row: &SqliteRow| {
            Ok(Turn {
                id: row.try_get(0)?,
                input: row.try_get(6)?,
                output: row.try_get(7)?,
            })
        };
        Ok(Conversation::Found {
            missing: first.try_get(1)?,
            target: last.try_get(4)?,
            is_native: last.try_get(5)?,
            turns: rows.iter().map(turn).collect::<Result<_, StoreError>>()?,
        })
    }

    /// Whether there was such an answer. What it said is gone; that there was one is remembered until it expires, so that
    /// nobody is asked for it.
    pub async fn delete_response(&self, id: &str, whose: Whose<'_>, now_ms: i64) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let deleted = sqlx::query(
            "update responses set input = '', output = '', response = ''
             where id = ?1 and (?2 is null or owner = ?2) and response <> '' and expires_at_ms > ?3",
        )
        .bind(id)
        .bind(whose.owner())
        .bind(now_ms)
        .execute(change.connection())
        .await?
        .rows_affected();
        change.commit().await?;
        Ok(deleted > 0)
    }

    /// Deletes what has expired, little by little, and tells how much.
    pub async fn delete_expired_responses(&self, now_ms: i64) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let mut change = self.change().await?;
            let swept = sqlx::query(
                "delete from responses where id in
                 (select id from responses where expires_at_ms <= ? order by expires_at_ms limit ?)",
            )
            .bind(now_ms)
            .bind(SWEPT_AT_ONCE)
            .execute(change.connection())
            .await?
            .rows_affected();
            change.commit().await?;
            deleted += swept;
            if swept < SWEPT_AT_ONCE.unsigned_abs() {
                return Ok(deleted);
            }
        }
    }
}

fn response_row(row: &SqliteRow) -> Result<ResponseRow, StoreError> {
    Ok(ResponseRow {
        id: row.try_get(0)?,
        owner: row.try_get(1)?,
        target: row.try_get(2)?,
        is_native: row.try_get(3)?,
        model: row.try_get(4)?,
        created_at_ms: row.try_get(5)?,
        previous: row.try_get(6)?,
        input: row.try_get(7)?,
        output: row.try_get(8)?,
        response: row.try_get(9)?,
        expires_at_ms: row.try_get(10)?,
    })
}
