//! One immutable view of everything a request is decided by.
//!
//! Built from a configuration and the environment, swapped as a whole, loaded once per request. A provider without a
//! credential does not keep the gateway from starting: its targets are there, with the reason why they cannot be called.

use crate::demo::{self, DemoTransport};
use crate::models::Discovered;
use crate::ports::Transport;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use switchyard_core::config::{self, BUILT_IN, Config, Provider, ProviderKind, Retry};
use switchyard_core::env::{Env, Template};
use switchyard_core::routing::{Serves, Strategy, TargetId, World, strategy};
use switchyard_core::secret::Secret;
use switchyard_providers::{Wire, openai::OpenAi};

/// Where an OpenAI account is reached unless `OPENAI_BASE_URL` says otherwise.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
/// Public ids of OpenAI's chat and embedding models.
static OPENAI_MODELS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("../data/openai-models.txt").lines().collect());
/// Never looked up: the demo provider answers in this process.
const DEMO_BASE_URL: &str = "http://demo.invalid/v1";

pub struct Snapshot {
    pub(crate) strategy: Box<dyn Strategy>,
    pub(crate) mode: &'static str,
    pub(crate) targets: Vec<Target>,
    pub(crate) aliases: BTreeMap<String, String>,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) failover_on: Vec<u16>,
    pub max_request_bytes: usize,
}

pub(crate) struct Target {
    /// `virtual_key`.
    pub(crate) name: String,
    pub(crate) provider: String,
    pub(crate) simulated: bool,
    /// Why it cannot be called at all.
    pub(crate) link: Result<Link, String>,
    /// Listed for it, by its provider or by itself. Empty with `serves_any`.
    pub(crate) models: Vec<String>,
    pub(crate) serves_any: bool,
    /// Models that everybody knows this provider has: they decide its place in an order, and are not listed.
    known: Option<&'static HashSet<&'static str>>,
    pub(crate) model_map: BTreeMap<String, String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: Retry,
    pub(crate) discovered: Discovered,
}

/// The way to an upstream.
pub(crate) struct Link {
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) transport: Arc<dyn Transport>,
    /// Taken out of every message that leaves.
    pub(crate) secrets: Vec<Secret>,
}

/// What a snapshot is built with.
pub struct Parts<'a> {
    pub env: &'a dyn Env,
    pub transport: Arc<dyn Transport>,
    pub demo: Arc<DemoTransport>,
}

/// A configuration that cannot come to life in this environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BuildError(String);

/// One target as probes and pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetStatus {
    pub name: String,
    pub provider: String,
    pub simulated: bool,
    /// Why it cannot be called.
    pub unavailable: Option<String>,
    pub models: Vec<String>,
}

impl Snapshot {
    /// Uses the configuration, or what the environment offers when there is none.
    ///
    /// # Errors
    /// When a setting that came from the environment makes no sense, such as an address that is none.
    pub fn build(config: Option<&Config>, parts: &Parts<'_>) -> Result<Self, BuildError> {
        let implicit;
        let config = if let Some(config) = config {
            config
        } else {
            let has_openai = parts.env.get("OPENAI_API_KEY").is_some_and(|key| !key.is_empty());
            implicit = Config::implicit([if has_openai { "openai" } else { "demo" }]);
            &implicit
        };
        let targets = config
            .targets
            .iter()
            .map(|target| Target::build(target, config, parts))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            strategy: strategy(config.strategy.mode),
            mode: config.strategy.mode.as_str(),
            targets,
            aliases: config.aliases.clone(),
            request_timeout: config.request_timeout,
            failover_on: config.strategy.failover_on_status_codes.clone(),
            max_request_bytes: config.max_request_bytes,
        })
    }

    /// Every answer is simulated.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.targets.iter().all(|target| target.simulated)
    }

    #[must_use]
    pub fn status(&self) -> Vec<TargetStatus> {
        let status = |target: &Target| TargetStatus {
            name: target.name.clone(),
            provider: target.provider.clone(),
            simulated: target.simulated,
            unavailable: target.link.as_ref().err().cloned(),
            models: target.names().map(str::to_owned).collect(),
        };
        self.targets.iter().map(status).collect()
    }

    /// The model that an alias means, or the name itself.
    pub(crate) fn resolve<'a>(&'a self, model: &'a str) -> &'a str {
        self.aliases.get(model).map_or(model, String::as_str)
    }
}

impl World for Snapshot {
    fn targets(&self) -> usize {
        self.targets.len()
    }

    fn serves(&self, target: TargetId, model: &str) -> Serves {
        self.targets
            .get(target.0)
            .map_or(Serves::No, |target| target.serves(model))
    }
}

impl Target {
    fn build(target: &config::Target, config: &Config, parts: &Parts<'_>) -> Result<Self, BuildError> {
        let built_in;
        let provider = match config
            .providers
            .iter()
            .find(|provider| provider.id == target.virtual_key)
        {
            Some(provider) => Some(provider),
            None if BUILT_IN.contains(&target.virtual_key.as_str()) => {
                built_in = built_in_provider(&target.virtual_key, parts.env);
                Some(&built_in)
            }
            None => None,
        };
        let link = match provider {
            Some(provider) => Link::build(provider, parts)?,
            None => Err(format!(
                "this version does not speak to provider {}",
                target.virtual_key
            )),
        };
        let mut models = provider.map(|provider| provider.models.clone()).unwrap_or_default();
        let serves_any = provider.is_some() && models.is_empty();
        models.extend(
            target
                .models
                .iter()
                .filter(|model| !models.contains(model))
                .cloned()
                .collect::<Vec<_>>(),
        );
        Ok(Self {
            name: target.virtual_key.clone(),
            provider: target.virtual_key.clone(),
            simulated: provider.is_some_and(|provider| provider.kind == ProviderKind::Demo),
            link,
            models,
            serves_any,
            known: (target.virtual_key == "openai").then(|| &*OPENAI_MODELS),
            model_map: target.model_map.clone(),
            timeout: target.timeout,
            retry: target.retry.clone(),
            discovered: Discovered::default(),
        })
    }

    fn serves(&self, model: &str) -> Serves {
        let listed = self.model_map.contains_key(model) || self.models.iter().any(|known| known == model);
        match (
            listed || self.known.is_some_and(|known| known.contains(model)),
            self.serves_any,
        ) {
            (true, _) => Serves::Listed,
            (false, true) => Serves::Anything,
            (false, false) => Serves::No,
        }
    }

    /// Names that clients may use, as far as they are listed.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.model_map.keys().chain(&self.models).map(String::as_str)
    }

    /// The upstream's id for a model.
    pub(crate) fn upstream_model<'a>(&'a self, model: &'a str) -> &'a str {
        self.model_map.get(model).map_or(model, String::as_str)
    }
}

fn built_in_provider(id: &str, env: &dyn Env) -> Provider {
    if id == "demo" {
        let models = demo::MODELS.iter().map(|model| (*model).to_owned()).collect();
        return Provider {
            id: id.to_owned(),
            kind: ProviderKind::Demo,
            base_url: None,
            api_key: None,
            models,
            headers: Vec::new(),
        };
    }
    let base_url = env
        .get("OPENAI_BASE_URL")
        .filter(|url| !url.is_empty())
        .unwrap_or_else(|| OPENAI_BASE_URL.to_owned());
    Provider {
        id: id.to_owned(),
        kind: ProviderKind::OpenAi,
        base_url: Some(Template::new(base_url)),
        api_key: Some(Template::new("${OPENAI_API_KEY}")),
        models: Vec::new(),
        headers: Vec::new(),
    }
}

impl Link {
    fn build(provider: &Provider, parts: &Parts<'_>) -> Result<Result<Self, String>, BuildError> {
        let missing = |name: String| format!("{name} is not set");
        if provider.kind == ProviderKind::Demo {
            let wire = OpenAi::new(DEMO_BASE_URL, None, &[]).map_err(|error| BuildError(error.to_string()))?;
            let transport: Arc<dyn Transport> = parts.demo.clone();
            return Ok(Ok(Self {
                wire: Box::new(wire),
                transport,
                secrets: Vec::new(),
            }));
        }
        let resolve = |template: &Template| template.resolve(parts.env).map_err(missing);
        let key = match provider.api_key.as_ref().map(resolve).transpose() {
            Ok(key) => key.filter(|key| !key.is_empty()).map(Secret::new),
            Err(reason) => return Ok(Err(reason)),
        };
        if key.is_none() && provider.api_key.is_some() {
            return Ok(Err("its API key is empty".to_owned()));
        }
        let base_url = match provider.base_url.as_ref().map(resolve).transpose() {
            Ok(url) => url.unwrap_or_default(),
            Err(reason) => return Ok(Err(reason)),
        };
        config::validate_url(&base_url)
            .map_err(|message| BuildError(format!("provider {}: its base URL {message}", provider.id)))?;
        let mut headers = Vec::new();
        for (name, value) in &provider.headers {
            match resolve(value) {
                Ok(value) => headers.push((name.clone(), value)),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        let wire = OpenAi::new(&base_url, key.as_ref(), &headers)
            .map_err(|error| BuildError(format!("provider {}: {error}", provider.id)))?;
        let secrets = key
            .into_iter()
            .chain(headers.into_iter().map(|(_, value)| Secret::new(value)))
            .collect();
        Ok(Ok(Self {
            wire: Box::new(wire),
            transport: Arc::clone(&parts.transport),
            secrets,
        }))
    }
}
