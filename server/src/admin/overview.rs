//! The overview: what came in, what became of it, and the one sentence that says whether to worry.

use super::Services;
use crate::http::Refusal;
use switchyard_api::{
    Dashboard, KeyCounts, LogCounts, ProviderCounts, Range, Summary, Timestamp, Traffic, TrafficPoint,
};
use switchyard_engine::{Standing, TargetView};
use switchyard_store::{LogFilter, MinuteRow, OutcomeFilter, Page, StoreError};

const MINUTE_MS: i64 = 60_000;
/// Percentiles are those of the newest requests, up to this many.
const SAMPLE: u32 = 5_000;

impl Services {
    pub(crate) async fn dashboard(&self, range: Range) -> Result<Dashboard, Refusal> {
        let now_ms = self.clock.now_ms();
        let (traffic, counts, total) = tokio::join!(
            self.traffic(range, now_ms),
            self.store.key_counts(now_ms),
            self.store.total_requests()
        );
        let (traffic, counts) = (traffic?, counts?);
        let targets = self.engine.targets().targets;
        let callable = targets.iter().filter(|target| target.is_callable());
        // An open breaker means that nobody is asked there for now.
        let available = callable.filter(|target| target.circuit() != "open").count() as u64;
        Ok(Dashboard {
            providers: ProviderCounts {
                total: targets.len() as u64,
                available,
            },
            keys: KeyCounts {
                total: counts.total,
                active: counts.active,
                expired: counts.expired,
                total_usage: counts.total_usage,
            },
            request_logs: LogCounts {
                enabled: true,
                total: total?,
            },
            finding: self.finding(&traffic, &targets, now_ms).await?,
            traffic,
        })
    }

    async fn traffic(&self, range: Range, now_ms: i64) -> Result<Traffic, StoreError> {
        let width = range.bucket_minutes();
        // Buckets begin at round times, and the last one is still filling.
        let end = (now_ms / MINUTE_MS / width + 1) * width;
        let begin = end - range.minutes();
        let sample = |from: i64, to: i64| self.store.latency_sample(from * MINUTE_MS, to * MINUTE_MS, SAMPLE);
        let (rows, now, before) = tokio::join!(
            self.store.traffic(begin - range.minutes(), end),
            sample(begin, end),
            sample(begin - range.minutes(), begin),
        );
        let rows = rows?;
        let (earlier, current) = rows.split_at(rows.partition_point(|row| row.minute < begin));
        Ok(Traffic {
            range,
            as_of: Timestamp(now_ms),
            bucket_minutes: width,
            points: points(current, begin, end, width),
            now: summary(current, now?),
            before: summary(earlier, before?),
        })
    }

    async fn finding(&self, traffic: &Traffic, targets: &[TargetView], now_ms: i64) -> Result<String, Refusal> {
        if let Some(degraded) = self.records.stats().degraded {
            return Ok(degraded);
        }
        if let Some(out) = out_of_service(targets) {
            return Ok(out);
        }
        if !targets.iter().any(TargetView::is_callable) {
            return Ok("No target can be called: none has a credential. Requests are refused with 503.".to_owned());
        }
        let span = span_words(traffic.range);
        let Summary { requests, failed, .. } = traffic.now;
        if requests == 0 {
            return Ok(format!("No request came in the last {span}."));
        }
        if failed == 0 {
            let all = if requests == 1 {
                "The one request".to_owned()
            } else {
                format!("All {} requests", grouped(requests))
            };
            return Ok(format!(
                "{all} of the last {span} {} answered.",
                if requests == 1 { "was" } else { "were" }
            ));
        }
        let since_ms = Some(now_ms - traffic.range.minutes() * MINUTE_MS);
        let filter = LogFilter {
            outcome: Some(OutcomeFilter::Failed),
            since_ms,
            ..LogFilter::default()
        };
        let latest = self.store.logs(&filter, &Page::first(1)).await?;
        let latest = latest.rows.first().map(|row| {
            let record = &row.record;
            let place = record
                .target
                .as_ref()
                .map_or(String::new(), |target| format!(" at {target}"));
            let what = record.error_code.as_deref().unwrap_or("error");
            format!(
                ", the latest at {} UTC: {what}{place}",
                Timestamp(record.arrived_at_ms).minute()
            )
        });
        let share = format!("{} of {} requests", grouped(failed), grouped(requests));
        Ok(format!(
            "{share} of the last {span} failed{}.",
            latest.unwrap_or_default()
        ))
    }
}

/// Open breakers, if there are any: what an operator has to know before any figure.
fn out_of_service(targets: &[TargetView]) -> Option<String> {
    let open: Vec<&TargetView> = targets
        .iter()
        .filter(|target| target.standing == Standing::Open)
        .collect();
    let (first, others) = open.split_first()?;
    let until = first
        .until_ms
        .map(|until_ms| format!(" until {} UTC", Timestamp(until_ms).minute()))
        .unwrap_or_default();
    let more = match others.len() {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    let callable = targets.iter().filter(|target| target.is_callable()).count();
    let rest = if open.len() == callable {
        " No other target is left."
    } else {
        ""
    };
    Some(format!(
        "{}{more} is out of service{until}: its circuit breaker is open.{rest}",
        first.name
    ))
}

const fn span_words(range: Range) -> &'static str {
    match range {
        Range::Minutes15 => "15 minutes",
        Range::Hour1 => "hour",
        Range::Hours24 => "24 hours",
        Range::Days7 => "7 days",
    }
}

/// 57,204.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// One point per bucket, also where nothing happened.
fn points(rows: &[MinuteRow], begin: i64, end: i64, width: i64) -> Vec<TrafficPoint> {
    let mut rest = rows;
    (begin..end)
        .step_by(usize::try_from(width).unwrap_or(1))
        .map(|start| {
            let (inside, after) = rest.split_at(rest.partition_point(|row| row.minute < start + width));
            rest = after;
            let sum = |field: fn(&MinuteRow) -> u64| inside.iter().map(field).sum::<u64>();
            let failed = sum(|row| row.failed);
            TrafficPoint {
                start: Timestamp(start * MINUTE_MS),
                answered: sum(|row| row.requests) - failed,
                failed,
                prompt_tokens: sum(|row| row.prompt_tokens),
                completion_tokens: sum(|row| row.completion_tokens),
            }
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "a latency is no astronomical number")]
fn summary(rows: &[MinuteRow], latency: switchyard_store::LatencySample) -> Summary {
    let sum = |field: fn(&MinuteRow) -> u64| rows.iter().map(field).sum::<u64>();
    let millis = |micros: u64| micros as f64 / 1e3;
    Summary {
        requests: sum(|row| row.requests),
        failed: sum(|row| row.failed),
        prompt_tokens: sum(|row| row.prompt_tokens),
        completion_tokens: sum(|row| row.completion_tokens),
        first_token_p50_ms: latency.first_token_p50_us.map(millis),
        overhead_p99_ms: latency.overhead_p99_us.map(millis),
        sampled: latency.sampled,
    }
}

#[cfg(test)]
mod tests {
    use super::{grouped, points};
    use switchyard_store::MinuteRow;

    #[test]
    fn buckets_have_no_gaps_and_lose_nothing() {
        let row = |minute, requests, failed| MinuteRow {
            minute,
            requests,
            failed,
            ..MinuteRow::default()
        };
        let points = points(&[row(60, 3, 1), row(89, 2, 0), row(120, 1, 1)], 60, 150, 30);
        let counts: Vec<(u64, u64)> = points.iter().map(|point| (point.answered, point.failed)).collect();
        assert_eq!(counts, [(4, 1), (0, 0), (0, 1)]);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [0, 999, 1_000, 57_204, 1_234_567].map(grouped),
            ["0", "999", "1,000", "57,204", "1,234,567"]
        );
    }
}
