//! What is out of service is looked after in the background, so that callers need not find out by failing.
//!
//! A benched credential is probed until it works. A target with an open breaker is probed where its configuration asks for
//! it. Probes are listings of models where the upstream has one; a minimal call where the operator wants that.

use crate::live::now;
use crate::snapshot::{Access, Link, Snapshot, Target};
use bytes::Bytes;
use futures_util::stream::StreamExt;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use switchyard_core::config::{OnUnsupported, Reverify};
use switchyard_providers::{Call, Surface, Terms};
use tokio::time::{sleep, timeout};

/// How often it is looked what is due.
const TICK: Duration = Duration::from_millis(500);
/// Between two probes of a benched credential: less than the shortest bench lasts.
const CREDENTIALS_EVERY: Duration = Duration::from_secs(10);
/// A probe that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs for ever.
pub(crate) async fn watch(snapshot: impl Fn() -> Arc<Snapshot>) {
    loop {
        sleep(TICK).await;
        let snapshot = snapshot();
        for (i, target) in snapshot.targets.iter().enumerate() {
            let Ok(link) = &target.link else { continue };
            if target.live.reverify_due(now()) {
                tokio::spawn(reverify(Arc::clone(&snapshot), i));
            }
            if link.accesses.len() > 1 {
                for credential in target.live.to_probe(CREDENTIALS_EVERY, now()) {
                    tokio::spawn(probe_credential(Arc::clone(&snapshot), i, credential));
                }
            }
        }
    }
}

async fn reverify(snapshot: Arc<Snapshot>, target: usize) {
    let Some((target, link)) = reach(&snapshot, target) else {
        return;
    };
    let Some(reverify) = target.live.reverify() else { return };
    let usable = target.live.usable(now());
    let Some(access) = usable.first().and_then(|credential| link.accesses.get(*credential)) else {
        return;
    };
    let answered = ask(link, access, reverify).await;
    tracing::debug!(target.name = &*target.name, answered = ?answered, "an open target was probed");
    if let Some(ok) = tells(answered, reverify.model.is_some()) {
        target.live.reverified(ok, now());
    }
}

async fn probe_credential(snapshot: Arc<Snapshot>, target: usize, credential: usize) {
    let Some((target, link)) = reach(&snapshot, target) else {
        return;
    };
    let Some(access) = link.accesses.get(credential) else {
        return;
    };
    let listing = Reverify {
        model: None,
        every: CREDENTIALS_EVERY,
    };
    match ask(link, access, &listing).await {
        Some(status) if status.is_success() => {
            tracing::info!(
                target.name = &*target.name,
                credential.id = access.id,
                "a benched credential works again"
            );
            target.live.credential_works(credential);
        }
        Some(StatusCode::UNAUTHORIZED) => target.live.credential_fails(credential, now()),
        // Nothing was learned (a restricted key may call and not list): its time on the bench ends as it would have.
        Some(_) | None => {}
    }
}

/// What a probe says about its target; `None` when it says nothing.
///
/// An upstream that refuses a call because of what stands in it lives, as it does when a caller's is refused. One that
/// has no listing, or a limit on it, may well answer calls: were that a failure, it would be kept out for good.
fn tells(answered: Option<StatusCode>, by_call: bool) -> Option<bool> {
    let Some(status) = answered else { return Some(false) };
    match status.as_u16() {
        200..300 => Some(true),
        400 | 404 | 422 if by_call => Some(true),
        408 => Some(false),
        400..500 => None,
        _ => Some(false),
    }
}

fn reach(snapshot: &Snapshot, target: usize) -> Option<(&Target, &Link)> {
    let target = snapshot.targets.get(target)?;
    Some((target, target.link.as_ref().ok()?))
}

/// The status of a probe; `None` when there was no answer.
async fn ask(link: &Link, access: &Access, how: &Reverify) -> Option<StatusCode> {
    let request = match &how.model {
        None => access.wire.list_models()?,
        Some(model) => {
            let body = serde_json::json!({
                "model": model,
                "messages": [{ "role": "user", "content": "ping" }],
                "max_tokens": 1,
            });
            let call = Call::parse(Surface::Chat, Bytes::from(body.to_string())).ok()?;
            let terms = Terms {
                now: SystemTime::now(),
                on_unsupported: OnUnsupported::Drop,
            };
            access
                .wire
                .encode(&call, model, &HeaderMap::new(), &terms)
                .ok()?
                .request
        }
    };
    let probe = async {
        let response = link.transport.send(request).await.ok()?;
        let status = response.status();
        // Read to its end, so that the connection can be used again.
        let mut body = response.into_body();
        while let Some(Ok(_)) = body.next().await {}
        Some(status)
    };
    timeout(PATIENCE, probe).await.ok().flatten()
}
