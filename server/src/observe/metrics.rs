//! Metrics, fed by the one record that every request leaves.
//!
//! Names and labels of the reference are kept where they say what they measure. `inflight` stands in a name only for work
//! in progress. A model is a label only when an upstream has answered for it, and only the first thousand of them: names
//! come from callers, and a series lives for ever.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram};
use prometheus_client::registry::Registry;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError, RwLock};
use switchyard_engine::TargetView;
use switchyard_engine::record::{Outcome, RequestRecord};

const MOST_MODELS: usize = 1_000;
const SECONDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
const SMALL_SECONDS: [f64; 10] = [5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2, 0.25];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByModel {
    provider: String,
    model: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStatus {
    provider: String,
    model: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByError {
    provider: String,
    error_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAttempt {
    target: String,
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByLimit {
    key_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByProvider {
    provider: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTarget {
    target: String,
}

pub(crate) struct Metrics {
    registry: Registry,
    breakers: Family<ByProvider, Gauge>,
    target_calls: Family<ByTarget, Gauge>,
    target_queued: Family<ByTarget, Gauge>,
    requests: Family<ByStatus, Counter>,
    durations: Family<ByModel, Histogram, fn() -> Histogram>,
    first_tokens: Family<ByModel, Histogram, fn() -> Histogram>,
    overhead: Histogram,
    tokens_in: Family<ByModel, Counter>,
    tokens_out: Family<ByModel, Counter>,
    errors: Family<ByError, Counter>,
    attempts: Family<ByAttempt, Counter>,
    rejections: Family<ByLimit, Counter>,
    in_flight: Gauge,
    connections: Gauge,
    records_queued: Gauge,
    records_spooled: Gauge,
    records_shed: Gauge,
    models: RwLock<HashSet<String>>,
    rendering: Mutex<()>,
}

/// What is measured at the moment of a scrape.
pub(crate) struct Now {
    pub(crate) in_flight: usize,
    pub(crate) records: switchyard_store::WriterStats,
    pub(crate) targets: Vec<TargetView>,
}

fn by_second() -> Histogram {
    Histogram::new(SECONDS)
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        registry.register(
            "gateway_requests",
            "Requests that ended: success, error or rejected",
            requests.clone(),
        );
        let durations = Family::new_with_constructor(by_second as fn() -> Histogram);
        registry.register(
            "gateway_request_duration_seconds",
            "From arrival to the answer's end",
            durations.clone(),
        );
        let first_tokens = Family::new_with_constructor(by_second as fn() -> Histogram);
        registry.register(
            "gateway_first_token_seconds",
            "From arrival to a stream's first content",
            first_tokens.clone(),
        );
        let overhead = Histogram::new(SMALL_SECONDS);
        registry.register(
            "gateway_overhead_seconds",
            "Spent in the gateway until the head, without waiting",
            overhead.clone(),
        );
        let (tokens_in, tokens_out) = (Family::default(), Family::default());
        registry.register(
            "gateway_tokens_input",
            "Prompt tokens, as reported or estimated",
            tokens_in.clone(),
        );
        registry.register(
            "gateway_tokens_output",
            "Completion tokens, as reported or estimated",
            tokens_out.clone(),
        );
        let errors = Family::default();
        registry.register("gateway_provider_errors", "Failed requests by class", errors.clone());
        let attempts = Family::default();
        registry.register(
            "gateway_attempts",
            "Calls to upstreams by outcome, retries included",
            attempts.clone(),
        );
        let rejections = Family::default();
        registry.register(
            "gateway_rate_limit_rejections",
            "Requests refused by a limit",
            rejections.clone(),
        );
        let breakers = Family::default();
        registry.register(
            "gateway_circuit_breaker_state",
            "0 closed, 1 open, 2 half-open; of targets that have a breaker",
            breakers.clone(),
        );
        let (target_calls, target_queued) = (Family::default(), Family::default());
        registry.register(
            "gateway_target_calls_inflight",
            "Calls to a target that have begun and not ended",
            target_calls.clone(),
        );
        registry.register(
            "gateway_target_calls_queued",
            "Calls that wait for a slot of a target",
            target_queued.clone(),
        );
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let in_flight = gauge("gateway_requests_inflight", "Requests that have begun and not ended");
        let connections = gauge("gateway_server_connections_current", "Open client connections");
        let records_queued = gauge("gateway_records_queued", "Records waiting in memory");
        let records_spooled = gauge("gateway_records_spooled", "Records waiting on disk for the database");
        let records_shed = gauge("gateway_records_shed", "Records lost since the start");
        let (models, rendering) = (RwLock::default(), Mutex::default());
        Self {
            registry,
            breakers,
            target_calls,
            target_queued,
            requests,
            durations,
            first_tokens,
            overhead,
            tokens_in,
            tokens_out,
            errors,
            attempts,
            rejections,
            in_flight,
            connections,
            records_queued,
            records_spooled,
            records_shed,
            models,
            rendering,
        }
    }

    pub(crate) fn rejected_by_limit(&self, key_type: &'static str) {
        self.rejections.get_or_create(&ByLimit { key_type }).inc();
    }

    pub(crate) fn connection_opened(&self) {
        self.connections.inc();
    }

    pub(crate) fn connection_closed(&self) {
        self.connections.dec();
    }

    /// The exposition format.
    pub(crate) fn render(&self, now: &Now) -> Result<String, fmt::Error> {
        let _one_at_a_time = self.rendering.lock().unwrap_or_else(PoisonError::into_inner);
        let set = |gauge: &Gauge, value: u64| gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        set(&self.in_flight, now.in_flight as u64);
        set(&self.records_queued, now.records.queued);
        set(&self.records_spooled, now.records.spooled);
        set(&self.records_shed, now.records.shed);
        self.show_targets(&now.targets);
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }

    /// A target that left the configuration leaves these too.
    fn show_targets(&self, targets: &[TargetView]) {
        self.breakers.clear();
        self.target_calls.clear();
        self.target_queued.clear();
        for target in targets {
            let name = || ByTarget {
                target: target.name.clone(),
            };
            self.target_calls
                .get_or_create(&name())
                .set(i64::from(target.in_flight));
            self.target_queued.get_or_create(&name()).set(i64::from(target.queued));
            if target.breaker.is_some() {
                let provider = ByProvider {
                    provider: target.name.clone(),
                };
                let state = match target.circuit() {
                    "open" => 1,
                    "half_open" => 2,
                    _ => 0,
                };
                self.breakers.get_or_create(&provider).set(state);
            }
        }
    }

    pub(crate) fn observe(&self, record: &RequestRecord) {
        let provider = record.provider.clone().unwrap_or_else(|| "none".to_owned());
        let model = self.model_label(record);
        let status = match record.outcome {
            Outcome::Success => "success",
            Outcome::Rejected => "rejected",
            Outcome::Error | Outcome::Partial | Outcome::ClientCancelled => "error",
        };
        let labels = ByModel {
            provider: provider.clone(),
            model: model.clone(),
        };
        self.requests
            .get_or_create(&ByStatus {
                provider: provider.clone(),
                model,
                status,
            })
            .inc();
        self.durations
            .get_or_create(&labels)
            .observe(seconds(record.duration_us));
        self.overhead.observe(seconds(record.overhead_us));
        if let Some(first) = record.first_token_us {
            self.first_tokens.get_or_create(&labels).observe(seconds(first));
        }
        if let Some(tokens) = record.usage.prompt {
            self.tokens_in.get_or_create(&labels).inc_by(tokens);
        }
        if let Some(tokens) = record.usage.completion {
            self.tokens_out.get_or_create(&labels).inc_by(tokens);
        }
        if let Some(error_type) = error_type(record) {
            self.errors.get_or_create(&ByError { provider, error_type }).inc();
        }
        for attempt in &record.attempts {
            let labels = ByAttempt {
                target: attempt.target.clone(),
                outcome: attempt.outcome.clone(),
            };
            self.attempts.get_or_create(&labels).inc();
        }
    }

    fn model_label(&self, record: &RequestRecord) -> String {
        let unknown = || "other".to_owned();
        let Some(model) = record.upstream_model.as_ref() else {
            return unknown();
        };
        if self
            .models
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(model)
        {
            return model.clone();
        }
        if record.outcome != Outcome::Success {
            return unknown();
        }
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        if models.len() >= MOST_MODELS {
            return unknown();
        }
        models.insert(model.clone());
        model.clone()
    }
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
