//! The request log: a page of it, and one request with everything that happened.

use super::Services;
use crate::http::Refusal;
use switchyard_api::{Attempt, LogDetail, LogPage, LogQuery, LogRow, LogSummary, Note, Timestamp, Verdict};
use switchyard_engine::PASSED_ON;
use switchyard_engine::record::{AttemptRecord, Outcome, VerdictState};
use switchyard_providers::Surface;
use switchyard_store::{KeyFilter, LogFilter, OutcomeFilter, Page, Stage, StoredRequest};

const DEFAULT_LIMIT: u32 = 50;
const MOST: u32 = 200;
/// A filtered count stops here, and says so.
const COUNT_UP_TO: u64 = 10_000;

impl Services {
    pub(crate) async fn logs(&self, query: &LogQuery) -> Result<LogPage, Refusal> {
        let filter = filter(query)?;
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MOST).contains(&limit) {
            return Err(wrong("limit", &format!("must be from 1 to {MOST}")));
        }
        let page = Page {
            limit,
            offset: query.offset.unwrap_or(0),
            before: query.before,
        };
        let (rows, count) = tokio::join!(
            self.store.logs(&filter, &page),
            self.store.count_logs(&filter, COUNT_UP_TO)
        );
        let (rows, (total_entries, capped)) = (rows?, count?);
        Ok(LogPage {
            data: rows.rows.iter().map(row_out).collect(),
            summary: LogSummary { total_entries, capped },
            next: rows.next_before,
        })
    }

    pub(crate) async fn log(&self, id: &str) -> Result<LogDetail, Refusal> {
        let stored = self
            .store
            .log(id)
            .await?
            .ok_or_else(|| Refusal::not_found(&format!("request {id}")))?;
        let verdict = |verdict: switchyard_engine::record::Verdict| Verdict {
            target: verdict.target.to_string(),
            state: state_word(verdict.state).to_owned(),
            reason: verdict.reason.to_string(),
            until: verdict.until_ms.map(Timestamp),
        };
        let note = |note: &switchyard_providers::notes::Note| Note {
            fate: note.fate.as_str().to_owned(),
            field: note.field.to_string(),
            why: note.why.to_string(),
        };
        let attempts = stored.record.attempts.iter().zip(1_u32..);
        Ok(LogDetail {
            row: row_out(&stored),
            attempts: attempts.map(|(attempt, number)| attempt_out(attempt, number)).collect(),
            verdicts: stored.record.verdicts.iter().map(verdict).collect(),
            notes: stored.record.notes.iter().map(note).collect(),
        })
    }
}

pub(super) const fn state_word(state: VerdictState) -> &'static str {
    match state {
        VerdictState::Chosen => "chosen",
        VerdictState::Failed => "failed",
        VerdictState::NotNeeded => "not_needed",
        VerdictState::Excluded => "excluded",
    }
}

fn wrong(field: &str, must: &str) -> Refusal {
    Refusal::invalid("invalid_request", format!("{field} {must}")).with_param(field)
}

/// The pairs of a query string, decoded, without those that say nothing: a plain HTML form sends every field.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    form_urlencoded::parse(query.as_bytes())
        .filter(|(_, value)| !value.trim().is_empty())
        .map(|(name, value)| (name.into_owned(), value.trim().to_owned()))
}

/// Reads the query of `GET /admin/logs`.
pub(crate) fn query(text: &str) -> Result<LogQuery, Refusal> {
    let mut query = LogQuery::default();
    for (name, value) in pairs(text) {
        let number = || value.parse::<u32>().map_err(|_| wrong(&name, "must be a whole number"));
        let time = || {
            Timestamp::parse(&value)
                .ok_or_else(|| wrong(&name, "must be an RFC 3339 time, such as 2026-11-30T03:00:00Z"))
        };
        match name.as_str() {
            "limit" => query.limit = Some(number()?),
            "offset" => query.offset = Some(number()?),
            "before" => {
                query.before = Some(
                    value
                        .parse()
                        .map_err(|_| wrong("before", "must be the `next` of a page"))?,
                )
            }
            "since" => query.since = Some(time()?),
            "until" => query.until = Some(time()?),
            "stage" => query.stage = Some(value),
            "surface" => query.surface = Some(value),
            "model" => query.model = Some(value),
            "provider" => query.provider = Some(value),
            "target" => query.target = Some(value),
            "route" => query.route = Some(value),
            "api_key_id" => query.api_key_id = Some(value),
            "outcome" => query.outcome = Some(value),
            "q" => query.q = Some(value),
            unknown => {
                let known = "limit, offset, before, stage, surface, model, provider, target, route, api_key_id, \
                             outcome, since, until, q";
                return Err(wrong(unknown, &format!("is not a filter; there are {known}")));
            }
        }
    }
    Ok(query)
}

fn filter(query: &LogQuery) -> Result<LogFilter, Refusal> {
    let stage = match query.stage.as_deref() {
        None | Some("all" | "") => None,
        Some("after_request") => Some(Stage::AfterRequest),
        Some("on_error") => Some(Stage::OnError),
        Some(_) => return Err(wrong("stage", "must be after_request, on_error or all")),
    };
    let outcome = match query.outcome.as_deref() {
        None | Some("") => None,
        Some("failed") => Some(OutcomeFilter::Failed),
        Some(word) => {
            let all: Vec<&str> = Outcome::ALL.into_iter().map(Outcome::as_str).collect();
            let unknown = || wrong("outcome", &format!("must be failed or one of {}", all.join(", ")));
            Some(OutcomeFilter::Is(Outcome::parse(word).ok_or_else(unknown)?))
        }
    };
    let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let surface = said(&query.surface);
    if let Some(word) = &surface {
        let all = Surface::ALL.map(Surface::as_str).into_iter().chain([PASSED_ON]);
        let all: Vec<&str> = all.collect();
        if !all.contains(&word.as_str()) {
            return Err(wrong("surface", &format!("must be one of {}", all.join(", "))));
        }
    }
    Ok(LogFilter {
        surface,
        model: said(&query.model),
        provider: said(&query.provider),
        target: said(&query.target),
        route: said(&query.route),
        key: said(&query.api_key_id).map(|id| {
            if id == "none" {
                KeyFilter::None
            } else {
                KeyFilter::Id(id)
            }
        }),
        outcome,
        stage,
        since_ms: query.since.map(|at| at.0),
        until_ms: query.until.map(|at| at.0),
        q: said(&query.q),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a request does not last for centuries")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1e3
}

fn row_out(stored: &StoredRequest) -> LogRow {
    let record = &stored.record;
    let stage = if record.outcome == Outcome::Success {
        "after_request"
    } else {
        "on_error"
    };
    LogRow {
        id: stored.id,
        trace_id: record.request_id.to_string(),
        stage: stage.to_owned(),
        created_at: Timestamp(record.arrived_at_ms),
        surface: record.surface.to_string(),
        stream: record.stream,
        model: record.model.clone(),
        upstream_model: record.upstream_model.as_deref().map(str::to_owned),
        provider: record.provider.as_deref().map(str::to_owned),
        target: record.target.as_deref().map(str::to_owned),
        route: record.route.to_string(),
        variant: record.variant.clone(),
        status: record.status,
        outcome: record.outcome.as_str().to_owned(),
        error_code: record.error_code.clone(),
        error_message: record.error_message.clone(),
        prompt_tokens: record.usage.prompt,
        completion_tokens: record.usage.completion,
        total_tokens: record.usage.total,
        cached_tokens: record.usage.cached,
        reasoning_tokens: record.usage.reasoning,
        cache_write_tokens: record.usage.cache_write,
        audio_prompt_tokens: record.usage.audio_prompt,
        audio_completion_tokens: record.usage.audio_completion,
        usage_estimated: record.usage.estimated,
        cost_usd: None,
        duration_ms: millis(record.duration_us),
        ttft_ms: record.first_token_us.map(millis),
        overhead_ms: millis(record.overhead_us),
        attempts_count: stored.attempts_count,
        api_key_id: record.key_id.as_deref().map(str::to_owned),
        api_key_name: record.key_name.as_deref().map(str::to_owned),
        simulated: record.simulated,
    }
}

fn attempt_out(attempt: &AttemptRecord, number: u32) -> Attempt {
    Attempt {
        number,
        target: attempt.target.to_string(),
        provider: attempt.provider.to_string(),
        model: attempt.model.to_string(),
        outcome: attempt.outcome.to_string(),
        status: attempt.status,
        started_ms: millis(attempt.started_us),
        latency_ms: millis(attempt.latency_us),
        ttft_ms: attempt.first_token_us.map(millis),
        error: attempt.error.clone(),
    }
}
