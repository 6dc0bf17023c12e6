//! Which models there are.
//!
//! A target with a list says so itself. One that serves whatever it is asked for is asked in turn: its upstream's own
//! listing, kept for a minute, and for longer while the upstream does not answer.

use crate::snapshot::{Snapshot, Target};
use futures_util::future::join_all;
use futures_util::stream::StreamExt;
use serde::Deserialize;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Listings younger than this are not asked for again.
const FRESH: Duration = Duration::from_secs(60);
/// An upstream that did not list is left alone for as long.
const FAILED: Duration = Duration::from_secs(10);
/// A listing that takes longer is done without.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest listing that is read, in bytes.
const LONGEST_LISTING: usize = 8 << 20;

/// The upstream's own listing, as of a moment.
#[derive(Default)]
pub(crate) struct Discovered(Mutex<Option<Kept>>);

struct Kept {
    until: Instant,
    models: Vec<ListedModel>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListedModel {
    pub id: String,
    /// Seconds since the Unix epoch; 0 when nobody says.
    #[serde(default)]
    pub created: i64,
    /// The provider of the first target that serves it.
    #[serde(skip)]
    pub owned_by: String,
}

#[derive(Deserialize)]
struct Listing {
    data: Vec<ListedModel>,
}

impl Snapshot {
    /// Every model that a call could name, each once.
    pub async fn models(&self) -> Vec<ListedModel> {
        let reachable = if self.mode == "single" { 1 } else { self.targets.len() };
        let targets = &self.targets[..reachable.min(self.targets.len())];
        let listings = join_all(targets.iter().map(Target::listing)).await;
        let mut models: Vec<ListedModel> = Vec::new();
        for model in listings.into_iter().flatten() {
            if !models.iter().any(|known| known.id == model.id) {
                models.push(model);
            }
        }
        for (alias, meant) in &self.aliases {
            let owner = models
                .iter()
                .find(|model| model.id == *meant)
                .map(|model| model.owned_by.clone());
            if let Some(owned_by) = owner.filter(|_| !models.iter().any(|model| model.id == *alias)) {
                models.push(ListedModel {
                    id: alias.clone(),
                    created: 0,
                    owned_by,
                });
            }
        }
        models
    }
}

impl Target {
    async fn listing(&self) -> Vec<ListedModel> {
        let named = self.names().map(|id| ListedModel {
            id: id.to_owned(),
            created: 0,
            owned_by: self.provider.clone(),
        });
        let mut models: Vec<ListedModel> = named.collect();
        if self.serves_any && self.link.is_ok() {
            models.extend(self.discover().await);
        }
        models
    }

    /// One caller asks; the others wait for what it learns. A failure is remembered too, for a shorter while.
    async fn discover(&self) -> Vec<ListedModel> {
        let mut kept = self.discovered.0.lock().await;
        if let Some(kept) = kept.as_ref().filter(|kept| Instant::now() < kept.until) {
            return kept.models.clone();
        }
        let asked = tokio::time::timeout(PATIENCE, self.ask()).await.ok().flatten();
        let fresh = if asked.is_some() { FRESH } else { FAILED };
        let models = asked
            .or_else(|| kept.take().map(|kept| kept.models))
            .unwrap_or_default();
        *kept = Some(Kept {
            until: Instant::now() + fresh,
            models: models.clone(),
        });
        models
    }

    async fn ask(&self) -> Option<Vec<ListedModel>> {
        let link = self.link.as_ref().ok()?;
        let answer = link.transport.send(link.wire.list_models()?).await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        let mut frames = answer.into_body();
        while let Some(frame) = frames.next().await {
            body.extend_from_slice(&frame.ok()?);
            if body.len() > LONGEST_LISTING {
                return None;
            }
        }
        let listing: Listing = serde_json::from_slice(&body).ok()?;
        Some(
            listing
                .data
                .into_iter()
                .map(|model| ListedModel {
                    owned_by: self.provider.clone(),
                    ..model
                })
                .collect(),
        )
    }
}
