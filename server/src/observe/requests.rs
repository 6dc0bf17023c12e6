//! What requests leave in the metrics: counted by each thread for itself, added up when somebody asks.
//!
//! A counter that all threads share is a line of memory that they take from each other with every request, and a histogram
//! of the library's is a lock besides. Here a thread has its own, under a lock that only a scrape ever contends for.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};
use switchyard_engine::record::{Outcome, RequestRecord};
use thread_local::ThreadLocal;

const MOST_MODELS: usize = 1_000;
/// Upper bounds in microseconds.
type Bounds = &'static [u64];
const LONG: Bounds = &[
    5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000,
];
const SHORT: Bounds = &[50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000];
const MOST_BOUNDS: usize = 12;

static NONE: LazyLock<Arc<str>> = LazyLock::new(|| "none".into());
static OTHER: LazyLock<Arc<str>> = LazyLock::new(|| "other".into());

#[derive(Debug, Default)]
pub(super) struct Requests {
    shards: ThreadLocal<Mutex<Shard>>,
    /// Those that have answered, in the order of their first answer.
    models: RwLock<HashSet<Arc<str>>>,
}

#[derive(Debug, Default)]
struct Shard {
    /// By provider and model.
    series: HashMap<(Arc<str>, Arc<str>), Series>,
    /// By provider and class.
    errors: HashMap<(Arc<str>, &'static str), u64>,
    /// By target and outcome.
    attempts: HashMap<(Arc<str>, Cow<'static, str>), u64>,
    overhead: Times,
}

#[derive(Clone, Debug, Default)]
struct Series {
    success: u64,
    error: u64,
    rejected: u64,
    durations: Times,
    first_tokens: Times,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
}

/// How many were how long. What is longer than the last bound is in `count` alone.
#[derive(Clone, Debug, Default)]
struct Times {
    count: u64,
    sum_us: u64,
    within: [u64; MOST_BOUNDS],
}

impl Times {
    fn add(&mut self, micros: u64, bounds: Bounds) {
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(micros);
        let bound = bounds.partition_point(|bound| *bound < micros);
        if let Some(within) = self.within.get_mut(bound) {
            *within += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        for (mine, theirs) in self.within.iter_mut().zip(&other.within) {
            *mine += theirs;
        }
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>, bounds: Bounds) -> fmt::Result {
        let mut buckets: Vec<(f64, u64)> = bounds.iter().map(|bound| seconds(*bound)).zip(self.within).collect();
        let within: u64 = buckets.iter().map(|(_, count)| count).sum();
        buckets.push((f64::MAX, self.count.saturating_sub(within)));
        encoder.encode_histogram::<NoLabelSet>(seconds(self.sum_us), self.count, &buckets, None)
    }
}

impl Series {
    fn merge(&mut self, other: &Self) {
        self.success += other.success;
        self.error += other.error;
        self.rejected += other.rejected;
        self.durations.merge(&other.durations);
        self.first_tokens.merge(&other.first_tokens);
        merge_known(&mut self.tokens_in, other.tokens_in);
        merge_known(&mut self.tokens_out, other.tokens_out);
    }
}

fn merge_known(mine: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *mine = Some(mine.unwrap_or(0).saturating_add(more));
    }
}

impl Requests {
    pub(super) fn observe(&self, record: &RequestRecord) {
        let provider = record.provider.as_ref().unwrap_or(&NONE);
        let mut shard = locked(self.shards.get_or_default());
        let labels = (Arc::clone(provider), self.model_label(record, provider, &shard));
        let series = shard.series.entry(labels).or_default();
        match record.outcome {
            Outcome::Success => series.success += 1,
            Outcome::Rejected => series.rejected += 1,
            Outcome::Error | Outcome::Partial | Outcome::ClientCancelled => series.error += 1,
        }
        series.durations.add(record.duration_us, LONG);
        if let Some(first) = record.first_token_us {
            series.first_tokens.add(first, LONG);
        }
        merge_known(&mut series.tokens_in, record.usage.prompt);
        merge_known(&mut series.tokens_out, record.usage.completion);
        shard.overhead.add(record.overhead_us, SHORT);
        if let Some(error_type) = error_type(record) {
            *shard.errors.entry((Arc::clone(provider), error_type)).or_default() += 1;
        }
        for attempt in &record.attempts {
            let labels = (Arc::clone(&attempt.target), attempt.outcome.clone());
            *shard.attempts.entry(labels).or_default() += 1;
        }
    }

    /// A model is a label only when an upstream has answered for it.
    fn model_label(&self, record: &RequestRecord, provider: &Arc<str>, shard: &Shard) -> Arc<str> {
        let Some(model) = &record.upstream_model else {
            return Arc::clone(&OTHER);
        };
        let labels = (Arc::clone(provider), Arc::clone(model));
        if shard.series.contains_key(&labels) || self.is_known(model) {
            return labels.1;
        }
        if record.outcome != Outcome::Success {
            return Arc::clone(&OTHER);
        }
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        if models.len() >= MOST_MODELS {
            return Arc::clone(&OTHER);
        }
        models.insert(Arc::clone(model));
        labels.1
    }

    fn is_known(&self, model: &str) -> bool {
        self.models
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(model)
    }

    /// What all threads have counted.
    fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for shard in &self.shards {
            let shard = locked(shard);
            for (labels, series) in &shard.series {
                sum.series.entry(labels.clone()).or_default().merge(series);
            }
            for (labels, count) in &shard.errors {
                *sum.errors.entry(labels.clone()).or_default() += count;
            }
            for (labels, count) in &shard.attempts {
                *sum.attempts.entry(labels.clone()).or_default() += count;
            }
            sum.overhead.merge(&shard.overhead);
        }
        sum
    }
}

/// In an order that stays the same from one scrape to the next.
#[derive(Debug, Default)]
struct Sum {
    series: BTreeMap<(Arc<str>, Arc<str>), Series>,
    errors: BTreeMap<(Arc<str>, &'static str), u64>,
    attempts: BTreeMap<(Arc<str>, Cow<'static, str>), u64>,
    overhead: Times,
}

/// For the registry.
#[derive(Clone, Debug)]
pub(super) struct Scraped(pub(super) Arc<Requests>);

impl Collector for Scraped {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sum = self.0.sum();
        let mut requests = encoder.encode_descriptor(
            "gateway_requests",
            "Requests that ended: success, error or rejected.",
            None,
            MetricType::Counter,
        )?;
        for ((provider, model), series) in &sum.series {
            for (status, count) in [
                ("success", series.success),
                ("error", series.error),
                ("rejected", series.rejected),
            ] {
                let labels = [("provider", &**provider), ("model", model), ("status", status)];
                if count > 0 {
                    encode_count(&mut requests.encode_family(&labels)?, count)?;
                }
            }
        }
        let mut durations = encoder.encode_descriptor(
            "gateway_request_duration_seconds",
            "From arrival to the answer's end.",
            None,
            MetricType::Histogram,
        )?;
        for (labels, series) in &sum.series {
            series
                .durations
                .encode(&mut durations.encode_family(&by_model(labels))?, LONG)?;
        }
        let mut first_tokens = encoder.encode_descriptor(
            "gateway_first_token_seconds",
            "From arrival to a stream's first content.",
            None,
            MetricType::Histogram,
        )?;
        for (labels, series) in sum.series.iter().filter(|(_, series)| series.first_tokens.count > 0) {
            let labels = by_model(labels);
            series
                .first_tokens
                .encode(&mut first_tokens.encode_family(&labels)?, LONG)?;
        }
        let mut overhead = encoder.encode_descriptor(
            "gateway_overhead_seconds",
            "Spent in the gateway until the head, without waiting.",
            None,
            MetricType::Histogram,
        )?;
        sum.overhead.encode(&mut overhead, SHORT)?;
        sum.encode_counts(&mut encoder)
    }
}

impl Sum {
    fn encode_counts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut tokens_in = encoder.encode_descriptor(
            "gateway_tokens_input",
            "Prompt tokens, as reported or estimated.",
            None,
            MetricType::Counter,
        )?;
        for (labels, series) in &self.series {
            if let Some(tokens) = series.tokens_in {
                encode_count(&mut tokens_in.encode_family(&by_model(labels))?, tokens)?;
            }
        }
        let mut tokens_out = encoder.encode_descriptor(
            "gateway_tokens_output",
            "Completion tokens, as reported or estimated.",
            None,
            MetricType::Counter,
        )?;
        for (labels, series) in &self.series {
            if let Some(tokens) = series.tokens_out {
                encode_count(&mut tokens_out.encode_family(&by_model(labels))?, tokens)?;
            }
        }
        let mut errors = encoder.encode_descriptor(
            "gateway_provider_errors",
            "Failed requests by class.",
            None,
            MetricType::Counter,
        )?;
        for ((provider, error_type), count) in &self.errors {
            let labels = [("provider", &**provider), ("error_type", *error_type)];
            encode_count(&mut errors.encode_family(&labels)?, *count)?;
        }
        let mut attempts = encoder.encode_descriptor(
            "gateway_attempts",
            "Calls to upstreams by outcome, retries included.",
            None,
            MetricType::Counter,
        )?;
        for ((target, outcome), count) in &self.attempts {
            let labels = [("target", &**target), ("outcome", outcome)];
            encode_count(&mut attempts.encode_family(&labels)?, *count)?;
        }
        Ok(())
    }
}

fn by_model((provider, model): &(Arc<str>, Arc<str>)) -> [(&'static str, &str); 2] {
    [("provider", provider), ("model", model)]
}

fn encode_count(encoder: &mut MetricEncoder<'_>, count: u64) -> fmt::Result {
    encoder.encode_counter::<NoLabelSet, _, f64>(&count, None)
}

fn locked(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error_type(record: &RequestRecord) -> Option<&'static str> {
    match record.outcome {
        Outcome::Success | Outcome::Rejected => None,
        Outcome::ClientCancelled => Some("client_canceled"),
        Outcome::Error | Outcome::Partial => match record.error_code.as_deref() {
            Some("upstream_timeout" | "gateway_timeout") => Some("timeout"),
            Some("upstream_unavailable") => Some("circuit_open"),
            Some("provider_saturated") => Some("backpressure"),
            _ => Some("provider_error"),
        },
    }
}

#[expect(clippy::cast_precision_loss, reason = "a request does not last for centuries")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
