//! Targets as they stand now, and the dry run: the engine's own view, in the admin API's words.

use super::Services;
use crate::auth::Principal;
use bytes::Bytes;
use http::HeaderMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchyard_api::{
    BreakerState, CredentialState, ErrorBody, Explained, ModelLatency, QuotaUse, RouteInfo, RouteTarget, TargetState,
    Targets, Timestamp, Verdict, WouldFail,
};
use switchyard_core::error::Error;
use switchyard_engine::{Circuit, CredentialView, Explanation, Request, RouteView, Standing, TargetView};
use switchyard_providers::Surface;

/// As much of a call as tells which surface it is meant for.
#[derive(Deserialize)]
struct Shape {
    #[serde(default)]
    messages: Option<IgnoredAny>,
    #[serde(default)]
    input: Option<IgnoredAny>,
}

impl Services {
    pub(crate) fn targets(&self) -> Targets {
        let view = self.engine.targets();
        let all: u64 = view.targets.iter().map(|target| target.calls).sum();
        Targets {
            as_of: Timestamp(view.as_of_ms),
            window_s: u32::try_from(view.window.as_secs()).unwrap_or(u32::MAX),
            routes: view.routes.into_iter().map(route_out).collect(),
            data: view.targets.into_iter().map(|target| target_out(target, all)).collect(),
        }
    }

    /// What a call with this body and these headers would do.
    pub(crate) async fn explain(
        &self,
        principal: &Principal,
        id: Arc<str>,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Explained, Error> {
        let shape: Option<Shape> = serde_json::from_slice(&body).ok();
        let surface = match shape {
            Some(Shape {
                messages: None,
                input: Some(_),
            }) => Surface::Embeddings,
            _ => Surface::Chat,
        };
        let request = Request {
            id,
            arrived: Instant::now(),
            arrived_at_ms: self.clock.now_ms(),
            upload: Duration::ZERO,
            caller: principal.caller(),
            surface,
            path: None,
            headers,
            body,
            thread: None,
        };
        self.engine.explain(request).await.map(explained)
    }
}

fn explained(explanation: Explanation) -> Explained {
    let (order, upstream_models) = explanation.order.into_iter().unzip();
    let verdict = |verdict: switchyard_engine::record::Verdict| Verdict {
        target: verdict.target.to_string(),
        state: super::logs::state_word(verdict.state).to_owned(),
        reason: verdict.reason.into_owned(),
        until: verdict.until_ms.map(Timestamp),
    };
    Explained {
        model: explanation.model,
        route: explanation.route,
        route_by: explanation.route_by.to_owned(),
        strategy: explanation.strategy.to_owned(),
        variant: explanation.variant,
        order,
        upstream_models,
        verdicts: explanation.verdicts.into_iter().map(verdict).collect(),
        error: explanation.error.map(|error| would_fail(&error)),
    }
}

fn would_fail(error: &Error) -> WouldFail {
    let face = error.face();
    WouldFail {
        status: face.status,
        error: ErrorBody {
            message: error.message.clone(),
            kind: face.kind.to_owned(),
            code: face.code.to_owned(),
            param: error.param.clone(),
        },
    }
}

fn route_out(route: RouteView) -> RouteInfo {
    let target = |target: switchyard_engine::RoutedView| RouteTarget {
        name: target.name,
        is_route: target.is_route,
        weight: target.weight,
        model: target.model,
    };
    RouteInfo {
        name: route.name,
        strategy: route.strategy.to_owned(),
        family: if route.named { "named" } else { "pool" }.to_owned(),
        model: route.model,
        targets: route.targets.into_iter().map(target).collect(),
        details: route.details,
    }
}

const fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Ready => "ready",
        Standing::Recovering => "recovering",
        Standing::Probing => "probing",
        Standing::Open => "open",
        Standing::Parked => "parked",
        Standing::Quota => "quota",
        Standing::Saturated => "saturated",
        Standing::Unavailable => "unavailable",
    }
}

#[expect(clippy::cast_precision_loss, reason = "calls of five minutes fit")]
fn target_out(target: TargetView, all: u64) -> TargetState {
    let circuit = target.circuit();
    let breaker = target.breaker.map(|(state, failure_threshold)| {
        let (failures, until) = match state {
            Circuit::Closed { failures } => (failures, None),
            Circuit::Open { until_ms } => (failure_threshold, Some(Timestamp(until_ms))),
            Circuit::HalfOpen => (failure_threshold, None),
        };
        BreakerState {
            state: circuit.to_owned(),
            failures,
            failure_threshold,
            until,
        }
    });
    let latency = |(model, p50, samples): (String, Duration, usize)| ModelLatency {
        model,
        p50_ms: p50.as_secs_f64() * 1e3,
        samples: u32::try_from(samples).unwrap_or(u32::MAX),
    };
    let quota = |quota: switchyard_core::quota::Use| QuotaUse {
        limit: quota.limit.to_owned(),
        most: quota.most,
        used: quota.used,
    };
    TargetState {
        target: target.name,
        provider: target.provider,
        simulated: target.simulated,
        state: standing(target.standing).to_owned(),
        reason: target.reason,
        until: target.until_ms.map(Timestamp),
        models: target.models,
        breaker,
        parked_until: target.parked_until_ms.map(Timestamp),
        in_flight: target.in_flight,
        max_concurrency: target.max_concurrency,
        queued: target.queued,
        queue_size: target.queue_size,
        latency: target.latency.into_iter().map(latency).collect(),
        success_rate: target.success_rate,
        quota: target.quota.into_iter().map(quota).collect(),
        credentials: target.credentials.into_iter().map(credential_out).collect(),
        calls: target.calls,
        share: (all > 0).then(|| target.calls as f64 / all as f64),
    }
}

fn credential_out(credential: CredentialView) -> CredentialState {
    let state = if credential.out.is_some() { "benched" } else { "ready" };
    let (reason, until_ms) = credential.out.unzip();
    CredentialState {
        id: credential.id,
        weight: credential.weight,
        state: state.to_owned(),
        reason,
        until: until_ms.flatten().map(Timestamp),
    }
}
