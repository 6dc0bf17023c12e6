//! `providers`: upstreams that are not known by name, or known ones under another id.

use super::reader::{Block, Faults, as_text, closest};
use super::{Notices, targets, tree::Node};
use crate::env::Template;

/// Providers that need no entry: they take their credential from the environment.
pub const BUILT_IN: [&str; 2] = ["openai", "demo"];

/// Providers of the reference gateway that this version does not speak to yet. A file may name them.
const LATER: [&str; 29] = [
    "ai21",
    "anthropic",
    "azure-foundry",
    "azure-openai",
    "bedrock",
    "cerebras",
    "cloudflare",
    "cohere",
    "databricks",
    "deepinfra",
    "deepseek",
    "fireworks",
    "gemini",
    "groq",
    "hugging-face",
    "mistral",
    "moonshot",
    "novita",
    "nvidia-nim",
    "ollama",
    "ollama-cloud",
    "openrouter",
    "perplexity",
    "qwen",
    "replicate",
    "sambanova",
    "together",
    "vertex-ai",
    "xai",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Anything that speaks OpenAI's wire format.
    OpenAi,
    /// The simulated provider.
    Demo,
}

#[derive(Clone, Debug)]
pub struct Provider {
    pub id: String,
    pub kind: ProviderKind,
    /// The API's root, version segment included: `https://api.openai.com/v1`. Absent for `demo`.
    pub base_url: Option<Template>,
    /// Absent: the upstream is called without a credential.
    pub api_key: Option<Template>,
    /// Empty: whatever it is asked for.
    pub models: Vec<String>,
    /// Sent with every call.
    pub headers: Vec<(String, Template)>,
}

pub(super) fn read(root: &mut Block<'_>, faults: &mut Faults, notices: &mut Notices) -> Vec<Provider> {
    let mut providers: Vec<Provider> = Vec::new();
    for (node, path) in root.list("providers", faults) {
        let Some(provider) = read_one(node, &path, faults, notices) else {
            continue;
        };
        if providers.iter().any(|other| other.id == provider.id) {
            let message = format!("\"{}\" is a provider already; give this one another id", provider.id);
            faults.add(&format!("{path}.id"), node.line, message);
        }
        providers.push(provider);
    }
    providers
}

fn read_one(node: &Node, path: &str, faults: &mut Faults, notices: &mut Notices) -> Option<Provider> {
    let mut block = Block::of(node, path, faults)?;
    let line = block.line;
    let id = block.text("id", faults).unwrap_or_default();
    let valid = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !valid {
        faults.add(
            &block.path_of("id"),
            line,
            "is required: letters, digits, \"-\", \"_\" and \".\"",
        );
    }
    let kind = match block.text("kind", faults).as_deref() {
        Some("openai") => ProviderKind::OpenAi,
        Some("demo") => ProviderKind::Demo,
        other => {
            let found = other.map_or("is required".to_owned(), |kind| {
                format!("\"{kind}\" is not a kind of this version")
            });
            faults.add(
                &block.path_of("kind"),
                line,
                format!("{found}; use \"openai\" for anything that speaks OpenAI's wire format"),
            );
            ProviderKind::OpenAi
        }
    };
    let base_url = block.text("base_url", faults);
    match (&base_url, kind) {
        (None, ProviderKind::OpenAi) => {
            faults.add(
                &block.path_of("base_url"),
                line,
                "is required, for example \"https://api.openai.com/v1\"",
            );
        }
        (Some(url), _) => check_url(url, &block.path_of("base_url"), line, faults),
        (None, ProviderKind::Demo) => {}
    }
    let api_key = block.text("api_key", faults).map(Template::new);
    if api_key.as_ref().is_some_and(Template::is_literal) {
        let remedy = "stands in the file in clear; write `${NAME}` and set that variable";
        notices.warn(&block.path_of("api_key"), line, remedy);
    }
    let models = targets::read_models(&mut block, faults);
    let headers = read_headers(&mut block, faults);
    block.finish(faults);
    let base_url = base_url.map(Template::new);
    Some(Provider {
        id,
        kind,
        base_url,
        api_key,
        models,
        headers,
    })
}

fn read_headers(block: &mut Block<'_>, faults: &mut Faults) -> Vec<(String, Template)> {
    let Some(node) = block.take("headers") else {
        return Vec::new();
    };
    let path = block.path_of("headers");
    let Some(headers) = Block::of(node, &path, faults) else {
        return Vec::new();
    };
    let mut read = Vec::new();
    for (name, value) in headers.all() {
        let path = headers.path_of(name);
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            faults.add(
                &path,
                value.line,
                "is not a header name: letters, digits, \"-\" and \"_\"",
            );
        } else if let Some(text) = as_text(value, &path, faults) {
            read.push((name.to_owned(), Template::new(text)));
        }
    }
    read
}

/// A reference into the environment is checked when it is resolved.
fn check_url(url: &str, path: &str, line: u64, faults: &mut Faults) {
    if !Template::new(url).is_literal() {
        return;
    }
    if let Err(message) = validate_url(url) {
        faults.add(path, line, message);
    }
}

/// What a base URL must be, also for one that came from the environment.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn validate_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace) => {}
        _ => return Err("must be an http:// or https:// address, such as \"https://api.openai.com/v1\"".to_owned()),
    }
    if url.contains(['?', '#']) {
        return Err("must not have a query or a fragment".to_owned());
    }
    Ok(())
}

/// Whether `virtual_key` names a provider.
pub(super) fn check_reference(
    virtual_key: &str,
    path: &str,
    line: u64,
    known: &[Provider],
    faults: &mut Faults,
    notices: &mut Notices,
) {
    if BUILT_IN.contains(&virtual_key) || known.iter().any(|provider| provider.id == virtual_key) {
        return;
    }
    if LATER.contains(&virtual_key) {
        notices.inert(path, line, &format!("provider \"{virtual_key}\""));
        return;
    }
    let mut names: Vec<&str> = known.iter().map(|provider| provider.id.as_str()).collect();
    names.extend(BUILT_IN);
    let hint = closest(virtual_key, &names).map_or_else(
        || format!("providers here: {}", names.join(", ")),
        |name| format!("did you mean \"{name}\"?"),
    );
    faults.add(path, line, format!("\"{virtual_key}\" names no provider; {hint}"));
}
