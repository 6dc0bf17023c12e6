//! Which models there are.
//!
//! A target with a list says so itself. One that serves whatever it is asked for is asked in turn: its upstream's own
//! listing, kept for a minute, and for longer while the upstream does not answer.

use crate::live::now;
use crate::snapshot::{Snapshot, Target};
use futures_util::future::join_all;
use futures_util::stream::StreamExt;
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchyard_core::catalog::{Work, WorkKind};
use switchyard_core::health::Health;
use switchyard_core::routing::{self, Facts, LeftOut, RouteId, Serves, TargetId, World, is_virtual};
use tokio::sync::Mutex;

/// Listings younger than this are not asked for again.
const FRESH: Duration = Duration::from_secs(60);
/// The whole list is made anew after this.
const KEPT: Duration = Duration::from_secs(1);
/// An upstream that did not list is left alone for as long.
const FAILED: Duration = Duration::from_secs(10);
/// A listing that takes longer is done without.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest listing that is read, in bytes.
const LONGEST_LISTING: usize = 8 << 20;

/// All that can be called, as of a moment: a thousand callers at once cost one look.
#[derive(Default)]
pub(crate) struct Listed(Mutex<Option<(Instant, Arc<[ListedModel]>)>>);

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

/// A listing as OpenAI and Anthropic write it, or as Google and Cohere do.
#[derive(Deserialize)]
#[serde(untagged)]
enum Listing {
    Ids {
        data: Vec<ListedModel>,
    },
    Names {
        // The second is Vertex's.
        #[serde(alias = "publisherModels")]
        models: Vec<NamedModel>,
    },
}

#[derive(Deserialize)]
struct NamedModel {
    name: String,
}

impl Listing {
    fn into_models(self) -> Vec<ListedModel> {
        match self {
            Self::Ids { data } => data,
            Self::Names { models } => models
                .into_iter()
                .map(|model| ListedModel {
                    // Google's names are paths: `models/…`, `publishers/google/models/…`.
                    id: model
                        .name
                        .rsplit_once("models/")
                        .map_or(&*model.name, |(_, id)| id)
                        .to_owned(),
                    created: 0,
                    owned_by: String::new(),
                })
                .collect(),
        }
    }
}

impl Snapshot {
    /// Every model that a call could name, each once: what the routes would not send anywhere is not listed.
    pub async fn models(&self) -> Arc<[ListedModel]> {
        let mut kept = self.listed.0.lock().await;
        if let Some((_, models)) = kept.as_ref().filter(|(until, _)| now() < *until) {
            return Arc::clone(models);
        }
        let models: Arc<[ListedModel]> = self.list().await.into();
        *kept = Some((now() + KEPT, Arc::clone(&models)));
        models
    }

    async fn list(&self) -> Vec<ListedModel> {
        let listings = join_all(self.targets.iter().map(Target::listing)).await;
        let mut models: Vec<ListedModel> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut list = |model: ListedModel| {
            if seen.insert(model.id.clone()) {
                models.push(model);
            }
        };
        for model in listings.into_iter().flatten() {
            if self.first_for(&model.id).is_some() {
                list(model);
            }
        }
        let named = |id: &str, meant: &str| {
            self.first_for(meant).map(|target| ListedModel {
                id: id.to_owned(),
                created: 0,
                owned_by: target.provider.to_string(),
            })
        };
        let places = self.routes.iter().flat_map(|route| &route.places);
        for model in places.flat_map(|place| place.model_map.keys()) {
            named(model, model).into_iter().for_each(&mut list);
        }
        let listed: HashSet<String> = models.iter().map(|model| model.id.clone()).collect();
        for (alias, meant) in &self.aliases {
            if (is_virtual(meant).is_some() || listed.contains(meant)) && !listed.contains(alias) {
                models.extend(named(alias, meant));
            }
        }
        for route in self.routes.iter().skip(1) {
            let id = format!("route/{}", route.name);
            models.extend(named(&id, &id));
        }
        models
    }

    /// The target that a call of this model would go to first, as far as its model decides.
    fn first_for(&self, model: &str) -> Option<&Target> {
        let route = match is_virtual(model) {
            Some(name) => self.router.find(name)?,
            None => RouteId::DEFAULT,
        };
        let facts = Facts {
            model,
            work: Work {
                kind: WorkKind::Chat,
                input_tokens: 1,
                output_tokens: None,
            },
            user: None,
            session: None,
            stream: false,
            has_tools: false,
            key: None,
            project: None,
            headers: &(),
            metadata: &(),
            prompt: Some(""),
            now_ms: 0,
        };
        let order = self
            .router
            .order(route, &facts, &Everything(self), &mut routing::dice(model));
        self.targets.get(order.legs.first()?.target.0)
    }
}

/// The gateway without its measurements: who serves what.
struct Everything<'a>(&'a Snapshot);

impl World for Everything<'_> {
    fn targets(&self) -> usize {
        self.0.targets.len()
    }

    fn serves(&self, TargetId(i): TargetId, model: &str) -> Serves {
        self.0.targets.get(i).map_or(Serves::No, |target| target.serves(model))
    }

    fn upstream<'a>(&'a self, TargetId(i): TargetId, model: &'a str) -> &'a str {
        self.0
            .targets
            .get(i)
            .map_or(model, |target| target.upstream_model(model))
    }

    fn p50(&self, _: TargetId, _: &str) -> Option<Duration> {
        None
    }

    fn price(&self, TargetId(i): TargetId, upstream: &str, work: &Work) -> Option<f64> {
        self.0.targets.get(i)?.price(upstream, work)
    }

    fn health(&self, _: TargetId) -> Health {
        Health::default()
    }

    fn denies(&self, _: TargetId) -> Option<LeftOut> {
        None
    }
}

impl Target {
    async fn listing(&self) -> Vec<ListedModel> {
        let named = self.names().map(|id| ListedModel {
            id: id.to_owned(),
            created: 0,
            owned_by: self.provider.to_string(),
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
        if let Some(kept) = kept.as_ref().filter(|kept| now() < kept.until) {
            return kept.models.clone();
        }
        let asked = tokio::time::timeout(PATIENCE, self.ask()).await.ok().flatten();
        let fresh = if asked.is_some() { FRESH } else { FAILED };
        let models = asked
            .or_else(|| kept.take().map(|kept| kept.models))
            .unwrap_or_default();
        *kept = Some(Kept {
            until: now() + fresh,
            models: models.clone(),
        });
        models
    }

    async fn ask(&self) -> Option<Vec<ListedModel>> {
        let link = self.link.as_ref().ok()?;
        let usable = self.live.usable(now());
        let access = link.accesses.get(*usable.first()?)?;
        let answer = link.transport.send(access.wire.list_models()?).await.ok()?;
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
                .into_models()
                .into_iter()
                .map(|model| ListedModel {
                    owned_by: self.provider.to_string(),
                    ..model
                })
                .collect(),
        )
    }
}
