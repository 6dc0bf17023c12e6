//! From a provider's settings to the wire that is spoken with it.

use crate::ports::Transport;
use crate::snapshot::{BuildError, Parts};
use std::sync::Arc;
use switchyard_core::config::{self, Aws, ExtraSurface, Provider, ProviderKind};
use switchyard_core::env::{Env, Template};
use switchyard_core::secret::Secret;
use switchyard_providers::anthropic::Anthropic;
use switchyard_providers::bedrock::{AwsAuth, Bedrock};
use switchyard_providers::cohere::Cohere;
use switchyard_providers::gemini::{Gemini, GoogleAuth, GoogleService, Tokens};
use switchyard_providers::openai::OpenAi;
use switchyard_providers::{Surface, Unusable, Wire};

/// Never looked up: the demo provider answers in this process.
const DEMO_BASE_URL: &str = "http://demo.invalid/v1";
const DEFAULT_AWS_REGION: &str = "us-east-1";

/// Where an upstream is, as the environment completes it.
pub(crate) struct Site<'a> {
    provider: &'a Provider,
    env: &'a dyn Env,
    google: &'a dyn GoogleTokens,
    transport: &'a Arc<dyn Transport>,
    base_url: String,
    region: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// Where tokens for Google's services come from, of a service account or of the machine.
pub trait GoogleTokens: Send + Sync {
    /// A source of tokens that is kept fresh as long as it lives. Without an account it is the machine's own.
    ///
    /// # Errors
    /// When the account makes no sense: a sentence for operators.
    fn source(
        &self,
        account: Option<&Secret>,
        env: &dyn Env,
        transport: &Arc<dyn Transport>,
    ) -> Result<Arc<dyn Tokens>, String>;
}

/// Where there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGoogleTokens;

impl GoogleTokens for NoGoogleTokens {
    fn source(&self, _: Option<&Secret>, _: &dyn Env, _: &Arc<dyn Transport>) -> Result<Arc<dyn Tokens>, String> {
        Err("nobody fetches tokens for Google's services here".to_owned())
    }
}

/// What a wire is spoken with.
pub(crate) enum Key<'a> {
    None,
    Api(&'a Secret),
    Other(&'a Other),
}

/// A credential that is no API key.
pub(crate) enum Other {
    Aws(AwsAuth),
    Google(Arc<dyn Tokens>, Option<Secret>),
}

impl Other {
    pub(crate) fn into_secrets(self) -> Vec<Secret> {
        match self {
            Self::Aws(AwsAuth::Keys {
                secret_access_key,
                session_token,
                ..
            }) => [Some(secret_access_key), session_token].into_iter().flatten().collect(),
            Self::Aws(AwsAuth::Bearer(key)) => vec![key],
            Self::Aws(AwsAuth::None) => Vec::new(),
            Self::Google(_, account) => account.into_iter().collect(),
        }
    }
}

impl<'a> Site<'a> {
    /// The inner error is why it cannot be called as things are; the outer one, a setting that makes no sense.
    pub(crate) fn of(provider: &'a Provider, parts: &'a Parts<'_>) -> Result<Result<Self, String>, BuildError> {
        let mut site = Self {
            provider,
            env: parts.env,
            google: parts.google,
            transport: &parts.transport,
            base_url: String::new(),
            region: DEFAULT_AWS_REGION.to_owned(),
            headers: Vec::new(),
        };
        if let Err(reason) = site.complete() {
            return Ok(Err(reason));
        }
        config::validate_url(&site.base_url)
            .map_err(|message| BuildError::new(format!("provider {}: its base URL {message}", provider.id)))?;
        Ok(Ok(site))
    }

    fn complete(&mut self) -> Result<(), String> {
        if let Some(region) = &self.provider.aws.region {
            self.region = self.resolve(region)?;
        }
        self.base_url = match (&self.provider.base_url, self.provider.kind) {
            (Some(url), _) => self.resolve(url)?,
            (None, ProviderKind::Demo) => DEMO_BASE_URL.to_owned(),
            (None, ProviderKind::Bedrock) => format!("https://bedrock-runtime.{}.amazonaws.com", self.region),
            (None, kind) => kind.home().unwrap_or_default().to_owned(),
        };
        for (name, value) in &self.provider.headers {
            self.headers.push((name.clone(), self.resolve(value)?));
        }
        Ok(())
    }

    pub(crate) fn resolve(&self, template: &Template) -> Result<String, String> {
        template.resolve(self.env).map_err(|name| format!("{name} is not set"))
    }

    /// What is used where no API key is configured; `None` where the upstream is called without a credential.
    pub(crate) fn other_credential(&self) -> Result<Option<Other>, String> {
        match self.provider.kind {
            ProviderKind::Bedrock => self.aws_keys().map(|auth| auth.map(Other::Aws)),
            ProviderKind::Gemini if self.google_service() == GoogleService::Vertex => {
                let is_built_in = self.provider.id == "vertex-ai";
                let account = self
                    .env
                    .get("VERTEX_AI_SERVICE_ACCOUNT_JSON")
                    .filter(|json| is_built_in && !json.trim().is_empty())
                    .map(Secret::new);
                if !is_built_in && account.is_none() {
                    return Ok(None);
                }
                let tokens = self.google.source(account.as_ref(), self.env, self.transport)?;
                Ok(Some(Other::Google(tokens, account)))
            }
            _ => Ok(None),
        }
    }

    fn aws_keys(&self) -> Result<Option<AwsAuth>, String> {
        let Aws {
            access_key_id: Some(id),
            secret_access_key: Some(secret),
            session_token,
            ..
        } = &self.provider.aws
        else {
            if self.provider.id == "bedrock" && self.provider.base_url.is_none() {
                return Err(
                    "neither AWS_BEARER_TOKEN_BEDROCK nor AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set"
                        .to_owned(),
                );
            }
            return Ok(None);
        };
        let session_token = session_token.as_ref().map(|token| self.resolve(token)).transpose()?;
        Ok(Some(AwsAuth::Keys {
            access_key_id: self.resolve(id)?,
            secret_access_key: Secret::new(self.resolve(secret)?),
            session_token: session_token.filter(|token| !token.is_empty()).map(Secret::new),
        }))
    }

    fn google_service(&self) -> GoogleService {
        if self.base_url.contains("/projects/") {
            GoogleService::Vertex
        } else {
            GoogleService::Gemini
        }
    }

    /// The wire, bound to a credential.
    pub(crate) fn speak(&self, key: &Key<'_>) -> Result<Box<dyn Wire>, BuildError> {
        self.wire(key)
            .map_err(|error| BuildError::new(format!("provider {}: {error}", self.provider.id)))
    }

    fn wire(&self, key: &Key<'_>) -> Result<Box<dyn Wire>, Unusable> {
        let (base_url, headers) = (&*self.base_url, &*self.headers);
        let api = match *key {
            Key::Api(key) => Some(key),
            _ => None,
        };
        Ok(match self.provider.kind {
            ProviderKind::OpenAi | ProviderKind::Demo => {
                let extra = |surface: &ExtraSurface| match surface {
                    ExtraSurface::Responses => Surface::Responses,
                    ExtraSurface::Completions => Surface::Completions,
                };
                let surfaces: Vec<Surface> = self.provider.surfaces.iter().map(extra).collect();
                Box::new(OpenAi::new(base_url, api, headers)?.serving(&surfaces))
            }
            ProviderKind::Anthropic => Box::new(Anthropic::new(base_url, api, headers)?),
            ProviderKind::Cohere => Box::new(Cohere::new(base_url, api, headers)?),
            ProviderKind::Gemini => {
                let auth = match key {
                    Key::Api(key) => GoogleAuth::Key((*key).clone()),
                    Key::Other(Other::Google(tokens, _)) => GoogleAuth::Token(Arc::clone(tokens)),
                    _ => GoogleAuth::None,
                };
                Box::new(Gemini::new(base_url, self.google_service(), auth, headers)?)
            }
            ProviderKind::Bedrock => {
                let auth = match key {
                    Key::Api(key) => AwsAuth::Bearer((*key).clone()),
                    Key::Other(Other::Aws(auth)) => auth.clone(),
                    _ => AwsAuth::None,
                };
                Box::new(Bedrock::new(base_url, &self.region, auth, headers)?)
            }
        })
    }
}
