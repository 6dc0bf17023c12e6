//! Targets as they stand now: `GET /admin/targets`. Every page that shows a target's state shows this.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /admin/targets`: the routes, and every target's live state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Targets {
    pub as_of: Timestamp,
    /// [`TargetState::calls`] and [`TargetState::share`] look back this many seconds.
    pub window_s: u32,
    /// The first is the default: the configuration's own `strategy` and `targets`.
    pub routes: Vec<RouteInfo>,
    pub data: Vec<TargetState>,
}

/// A route as it is configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteInfo {
    /// `default`, or its name.
    pub name: String,
    /// The mode: `fallback`, `load-balance`, …
    pub strategy: String,
    /// `pool`: a failure may move on to any of its targets. `named`: it stays inside what a rule names.
    pub family: String,
    /// The model that a call of `route/<name>` means, where the route says one.
    pub model: Option<String>,
    pub targets: Vec<RouteTarget>,
    /// The strategy's own settings, one sentence each: rules, variants, stickiness.
    pub details: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteTarget {
    /// Of a target, or of another route.
    pub name: String,
    /// It is another route.
    pub is_route: bool,
    /// Absent where the strategy does not look at weights.
    pub weight: Option<f64>,
    /// Asked for whatever the caller named.
    pub model: Option<String>,
}

/// One target: its configuration's facts, and how it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetState {
    pub target: String,
    pub provider: String,
    /// Answered by the built-in `demo` provider.
    pub simulated: bool,
    /// `ready`, `recovering`, `probing` (half-open), `open`, `parked`, `quota`, `saturated` or `unavailable`.
    pub state: String,
    /// A sentence without its full stop: why it is not `ready`.
    pub reason: Option<String>,
    /// When that is expected to end.
    pub until: Option<Timestamp>,
    /// Ids that it lists; empty when it serves what it is asked for.
    pub models: Vec<String>,
    /// Absent: it has no breaker.
    pub breaker: Option<BreakerState>,
    /// Set while a 429 keeps it out.
    pub parked_until: Option<Timestamp>,
    /// Calls under way.
    pub in_flight: u32,
    /// Most calls at once; absent: unlimited.
    pub max_concurrency: Option<u32>,
    /// Calls waiting for a slot.
    pub queued: u32,
    pub queue_size: Option<u32>,
    /// Median latency per upstream model: of a stream until its first content, else of the whole call.
    pub latency: Vec<ModelLatency>,
    /// 0 to 1, over its newest calls. Absent: none yet.
    pub success_rate: Option<f64>,
    /// The operator's own limits, and what is used of them.
    pub quota: Vec<QuotaUse>,
    /// Empty where the provider needs none.
    pub credentials: Vec<CredentialState>,
    /// Calls begun within the window.
    pub calls: u64,
    /// Of all calls within the window, 0 to 1. Absent: there was none.
    pub share: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerState {
    /// `closed`, `open` or `half_open`.
    pub state: String,
    /// Consecutive failures so far, while closed.
    pub failures: u32,
    /// It opens at so many.
    pub failure_threshold: u32,
    /// When probes are let through, while open.
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelLatency {
    pub model: String,
    pub p50_ms: f64,
    pub samples: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaUse {
    /// `rpm`, `rpd`, `tpm` or `tpd`.
    pub limit: String,
    pub most: u64,
    pub used: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CredentialState {
    pub id: String,
    pub weight: f64,
    /// `ready` or `benched`.
    pub state: String,
    pub reason: Option<String>,
    /// When it is tried again.
    pub until: Option<Timestamp>,
}
