//! Which course a request took: what it has in common with others is written once.
//!
//! Gateways see the same few things over and over: this model asked for in this way, answered by that target at the first
//! try, the others not needed. Such a *course* gets a row of its own, and a request's row names it (migration 0004 tells what
//! that saves). Only a course that is seen for the second time gets a row, so that requests which are like no other (a
//! message with a number in it, a model that nobody has) stay in their own rows, and a caller who invents models does not
//! fill the table. What is known here is a copy of what the table has, good until a transaction fails and takes back what it
//! put there. Whatever is not known is looked up, and written if it is not there.

use super::batch::notes_text;
use crate::error::StoreError;
use foldhash::{HashMap, HashSet, fast::RandomState};
use rusqlite::{Connection, OptionalExtension, params};
use std::hash::{BuildHasher as _, Hash, Hasher as _};
use switchyard_core::usage::Usage;
use switchyard_engine::record::{AttemptRecord, RequestRecord};

/// Courses that are known at a time: a kB each, or some with dozens of targets. Beyond, they begin to be looked up again.
const MOST: usize = 4096;
/// Digests of what was seen once.
const MOST_ONCE: usize = 16_384;

#[derive(Default)]
pub(super) struct Courses {
    /// By what tells most of them apart, for this is asked for every record.
    known: HashMap<u64, Vec<Course>>,
    count: usize,
    /// Digests of all that makes a course: seen once, or known before.
    once: HashSet<u64>,
    hasher: RandomState,
}

struct Course {
    id: i64,
    /// Without what is a request's own.
    record: RequestRecord,
}

impl Courses {
    /// The course of a request, if it has one.
    pub(super) fn of(&mut self, connection: &Connection, record: &RequestRecord) -> Result<Option<i64>, StoreError> {
        let target = record.target.as_deref();
        let place = self
            .hasher
            .hash_one((&*record.model, target, record.stream, record.status));
        let alike = self.known.get_mut(&place).map_or(&mut [][..], Vec::as_mut_slice);
        if let Some(course) = alike.iter_mut().find(|course| is_same(&course.record, record)) {
            course.record.verdicts.share_names(&record.verdicts);
            return Ok(Some(course.id));
        }
        let digest = self.digest(record);
        if !self.once.remove(&digest) {
            if self.once.len() >= MOST_ONCE {
                self.once.clear();
            }
            self.once.insert(digest);
            return Ok(None);
        }
        if self.count >= MOST {
            self.forget();
        }
        let record = strip(record);
        let id = find_or_insert(connection, &record)?;
        self.known.entry(place).or_default().push(Course { id, record });
        self.count += 1;
        Ok(Some(id))
    }

    /// What was known has to be looked up again.
    fn forget(&mut self) {
        let courses = std::mem::take(&mut self.known).into_values().flatten();
        let digests: Vec<_> = courses.map(|course| self.digest(&course.record)).collect();
        self.once.extend(digests);
        self.count = 0;
    }

    fn digest(&self, record: &RequestRecord) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        shared(record).hash(&mut hasher);
        record
            .attempts
            .iter()
            .for_each(|attempt| shared_of_attempt(attempt).hash(&mut hasher));
        record.verdicts.digest().hash(&mut hasher);
        record
            .notes
            .iter()
            .for_each(|note| (note.fate, &*note.field, &*note.why).hash(&mut hasher));
        hasher.finish()
    }
}

/// What makes a course, but for attempts, verdicts and notes.
fn shared(record: &RequestRecord) -> impl Hash + Eq + use<'_> {
    let asked = (
        &*record.surface,
        record.stream,
        &*record.model,
        &*record.route,
        record.variant.as_deref(),
    );
    let sent = (
        record.upstream_model.as_deref(),
        record.provider.as_deref(),
        record.target.as_deref(),
        record.attempts.len(),
    );
    let ended = (
        record.status,
        record.error_code.as_deref(),
        record.error_message.as_deref(),
        record.usage.estimated,
        record.simulated,
    );
    (asked, sent, ended)
}

fn shared_of_attempt(attempt: &AttemptRecord) -> impl Hash + Eq + use<'_> {
    (
        &*attempt.target,
        &*attempt.provider,
        &*attempt.model,
        &*attempt.outcome,
        attempt.status,
        attempt.error.as_deref(),
    )
}

fn is_same(one: &RequestRecord, other: &RequestRecord) -> bool {
    shared(one) == shared(other)
        && one
            .attempts
            .iter()
            .map(shared_of_attempt)
            .eq(other.attempts.iter().map(shared_of_attempt))
        && one.verdicts == other.verdicts
        && one.notes == other.notes
}

/// What is left of a request without what is its own.
fn strip(record: &RequestRecord) -> RequestRecord {
    let mut course = RequestRecord {
        request_id: "".into(),
        arrived_at_ms: 0,
        usage: Usage {
            estimated: record.usage.estimated,
            ..Usage::default()
        },
        duration_us: 0,
        first_token_us: None,
        overhead_us: 0,
        key_id: None,
        key_name: None,
        ..record.clone()
    };
    for attempt in &mut course.attempts {
        attempt.started_us = 0;
        attempt.latency_us = 0;
        attempt.first_token_us = None;
    }
    course
}

fn find_or_insert(connection: &Connection, course: &RequestRecord) -> Result<i64, StoreError> {
    let json = |error: serde_json::Error| StoreError::Unexpected(error.into());
    let verdicts = serde_json::to_string(&course.verdicts).map_err(json)?;
    let attempts = serde_json::to_string(&course.attempts).map_err(json)?;
    let notes = notes_text(&course.notes)?;
    let values = params![
        &*course.model,
        course.target.as_deref(),
        &*course.surface,
        course.stream,
        course.upstream_model.as_deref(),
        course.provider.as_deref(),
        &*course.route,
        course.variant.as_deref(),
        course.status,
        course.error_code.as_deref(),
        course.error_message.as_deref(),
        course.usage.estimated,
        course.simulated,
        verdicts,
        attempts,
        notes,
    ];
    let found = connection
        .prepare_cached(
            "select id from courses
             where model = ? and target is ? and surface = ? and stream = ? and upstream_model is ? and provider is ? and
                   route = ? and variant is ? and status = ? and error_code is ? and error_message is ? and
                   usage_estimated = ? and simulated = ? and verdicts = ? and attempts = ? and
                   notes = ?",
        )?
        .query_row(values, |row| row.get(0))
        .optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    connection
        .prepare_cached(
            "insert into courses (model, target, surface, stream, upstream_model, provider, route, variant, status,
                                  error_code, error_message, usage_estimated, simulated, verdicts, attempts,
                                  notes)
             values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(values)?;
    Ok(connection.last_insert_rowid())
}
