//! Providers that need no entry in a configuration: what the environment says of them.

use crate::demo;
use std::collections::BTreeMap;
use switchyard_core::config::{Aws, Credential, ExtraSurface, Provider, ProviderKind};
use switchyard_core::env::{Env, Template};

/// Where an OpenAI account is reached unless `OPENAI_BASE_URL` says otherwise.
const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The variables of which one has to be there for a provider to be, most wanted provider first.
const GATES: [(&str, &[&str]); 6] = [
    ("openai", &["OPENAI_API_KEY"]),
    ("anthropic", &["ANTHROPIC_API_KEY"]),
    ("gemini", &["GEMINI_API_KEY"]),
    ("vertex-ai", &["VERTEX_AI_PROJECT_ID"]),
    (
        "bedrock",
        &["AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "AWS_ACCESS_KEY_ID"],
    ),
    ("cohere", &["COHERE_API_KEY"]),
];

fn get(env: &dyn Env, name: &str) -> Option<String> {
    env.get(name).filter(|value| !value.trim().is_empty())
}

/// Those for which there is a credential.
pub(crate) fn offered(env: &dyn Env) -> Vec<&'static str> {
    let is_there = |names: &&[&str]| names.iter().any(|name| get(env, name).is_some());
    GATES
        .iter()
        .filter(|(_, names)| is_there(names))
        .map(|(id, _)| *id)
        .collect()
}

/// A provider by its well-known name.
pub(crate) fn provider(id: &str, env: &dyn Env) -> Provider {
    let kind = match id {
        "anthropic" => ProviderKind::Anthropic,
        "gemini" | "vertex-ai" => ProviderKind::Gemini,
        "bedrock" => ProviderKind::Bedrock,
        "cohere" => ProviderKind::Cohere,
        "demo" => ProviderKind::Demo,
        _ => ProviderKind::OpenAi,
    };
    let variable = |name: &str| Template::new(format!("${{{name}}}"));
    let given = |name: &str| get(env, name).map(|_| variable(name));
    let mut provider = Provider {
        id: id.to_owned(),
        kind,
        base_url: None,
        surfaces: Vec::new(),
        aws: Aws::default(),
        credentials: Vec::new(),
        models: Vec::new(),
        headers: Vec::new(),
        catalog: id.to_owned(),
        prices: BTreeMap::new(),
    };
    match id {
        "demo" => provider.models = demo::MODELS.iter().map(|model| (*model).to_owned()).collect(),
        "openai" => {
            let base_url = get(env, "OPENAI_BASE_URL").unwrap_or_else(|| OPENAI_BASE_URL.to_owned());
            // Whoever else answers there may not have it.
            if base_url.trim_end_matches('/') == OPENAI_BASE_URL {
                provider.surfaces = vec![ExtraSurface::Responses];
            }
            provider.base_url = Some(Template::new(base_url));
            provider.credentials = vec![Credential::only(variable("OPENAI_API_KEY"))];
        }
        "vertex-ai" => {
            provider.base_url = Some(vertex_url(env, variable));
            provider.credentials = given("VERTEX_AI_API_KEY").map(Credential::only).into_iter().collect();
        }
        "bedrock" => {
            provider.base_url = given("BEDROCK_BASE_URL");
            provider.credentials = given("AWS_BEARER_TOKEN_BEDROCK")
                .map(Credential::only)
                .into_iter()
                .collect();
            provider.aws = Aws {
                region: given("AWS_REGION"),
                access_key_id: given("AWS_ACCESS_KEY_ID"),
                secret_access_key: given("AWS_SECRET_ACCESS_KEY"),
                session_token: given("AWS_SESSION_TOKEN"),
            };
        }
        _ => {
            let prefix = id.to_ascii_uppercase();
            provider.base_url = given(&format!("{prefix}_BASE_URL"));
            provider.credentials = vec![Credential::only(variable(&format!("{prefix}_API_KEY")))];
        }
    }
    provider
}

/// Below this Google keeps a project's models. Variables that are not set are named when they are needed.
fn vertex_url(env: &dyn Env, variable: impl Fn(&str) -> Template) -> Template {
    if let Some(url) = get(env, "VERTEX_AI_BASE_URL") {
        return Template::new(url);
    }
    let named = |name: &str| get(env, name);
    let (Some(project), Some(region)) = (named("VERTEX_AI_PROJECT_ID"), named("VERTEX_AI_REGION")) else {
        let missing = if named("VERTEX_AI_PROJECT_ID").is_some() {
            "VERTEX_AI_REGION"
        } else {
            "VERTEX_AI_PROJECT_ID"
        };
        return variable(missing);
    };
    let host = match region.as_str() {
        "global" => "aiplatform.googleapis.com".to_owned(),
        region => format!("{region}-aiplatform.googleapis.com"),
    };
    Template::new(format!("https://{host}/v1/projects/{project}/locations/{region}"))
}
