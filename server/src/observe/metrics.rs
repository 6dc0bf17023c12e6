//! Metrics, fed by the one record that every request leaves.
//!
//! Names and labels of the reference are kept where they say what they measure. `inflight` stands in a name only for work
//! in progress. A model is a label only when an upstream has answered for it, and only the first thousand of them: names
//! come from callers, and a series lives for ever.

use super::requests::{Requests, Scraped};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use switchyard_engine::TargetView;
use switchyard_engine::record::RequestRecord;

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
    requests: Arc<Requests>,
    rejections: Family<ByLimit, Counter>,
    in_flight: Gauge,
    connections: Gauge,
    records_queued: Gauge,
    records_spooled: Gauge,
    records_shed: Gauge,
    responses_lost: Gauge,
    rendering: Mutex<()>,
}

/// What is measured at the moment of a scrape.
pub(crate) struct Now {
    pub(crate) in_flight: usize,
    pub(crate) records: switchyard_store::WriterStats,
    pub(crate) responses_lost: u64,
    pub(crate) targets: Vec<TargetView>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let requests = Arc::<Requests>::default();
        registry.register_collector(Box::new(Scraped(Arc::clone(&requests))));
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
        let responses_lost = gauge(
            "gateway_responses_not_kept",
            "Answers of /v1/responses since the start that could not be kept, or not in time, for calls that go on from them",
        );
        Self {
            registry,
            breakers,
            target_calls,
            target_queued,
            requests,
            rejections,
            in_flight,
            connections,
            records_queued,
            records_spooled,
            records_shed,
            responses_lost,
            rendering: Mutex::default(),
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
        set(&self.responses_lost, now.responses_lost);
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
        self.requests.observe(record);
    }
}
