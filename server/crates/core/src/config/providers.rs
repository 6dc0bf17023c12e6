//! `providers`: upstreams that are not known by name, or known ones under another id.

use super::reader::{Block, Faults, as_text, closest};
use super::{Notices, targets, tree::Node};
use crate::env::Template;
use std::collections::BTreeMap;

/// Providers that need no entry: they take their credential from the environment.
pub const BUILT_IN: [&str; 7] = [
    "openai",
    "anthropic",
    "gemini",
    "vertex-ai",
    "bedrock",
    "cohere",
    "demo",
];

/// Providers of the reference gateway that this version does not speak to yet. A file may name them.
const LATER: [&str; 24] = [
    "ai21",
    "azure-foundry",
    "azure-openai",
    "cerebras",
    "cloudflare",
    "databricks",
    "deepinfra",
    "deepseek",
    "fireworks",
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
    "xai",
];

/// Headers that say how a message travels, which is the client library's to know.
const OF_THE_CLIENT: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Anything that speaks OpenAI's wire format.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's generateContent, of the Gemini API or of Vertex AI.
    Gemini,
    /// Amazon's Converse.
    Bedrock,
    /// Cohere's v2.
    Cohere,
    /// The simulated provider.
    Demo,
}

impl ProviderKind {
    const WIRES: [Self; 5] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Bedrock, Self::Cohere];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
            Self::Cohere => "cohere",
            Self::Demo => "demo",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let wires = Self::WIRES.into_iter().chain([Self::Demo]);
        wires.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Where the vendor itself is reached, if there is one place for all.
    #[must_use]
    pub const fn home(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::Cohere => Some("https://api.cohere.com"),
            // Of the first there are hundreds, of the second one in each region.
            Self::OpenAi | Self::Bedrock | Self::Demo => None,
        }
    }
}

/// A surface that only some of those who speak OpenAI's wire have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraSurface {
    Responses,
    Completions,
}

impl ExtraSurface {
    const ALL: [Self; 2] = [Self::Responses, Self::Completions];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Completions => "completions",
        }
    }
}

/// How AWS knows whose call it is, where that is no API key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aws {
    /// `us-east-1` unless it is written.
    pub region: Option<Template>,
    pub access_key_id: Option<Template>,
    pub secret_access_key: Option<Template>,
    pub session_token: Option<Template>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    pub id: String,
    pub kind: ProviderKind,
    /// The API's root, version segment included: `https://api.openai.com/v1`. Absent: the vendor's own, see
    /// [`ProviderKind::home`].
    pub base_url: Option<Template>,
    /// Surfaces that it has besides chat and embeddings, for `openai`. Calls of others are translated.
    pub surfaces: Vec<ExtraSurface>,
    /// For `bedrock`.
    pub aws: Aws,
    /// Empty: the upstream is called without a credential.
    pub credentials: Vec<Credential>,
    /// Empty: whatever it is asked for.
    pub models: Vec<String>,
    /// Sent with every call.
    pub headers: Vec<(String, Template)>,
    /// Whose models and prices the catalogue knows it by: its own id, unless another is written.
    pub catalog: String,
    /// Prices that go before the catalogue's.
    pub prices: BTreeMap<String, Price>,
}

/// One of a provider's API keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Credential {
    /// For people, and to tell one from the other; no secret.
    pub id: String,
    pub api_key: Template,
    /// Its share among its siblings, more than 0.
    pub weight: f64,
}

/// USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub input_per_m: f64,
    pub output_per_m: f64,
}

impl Credential {
    /// The only credential of a provider.
    #[must_use]
    pub fn only(api_key: Template) -> Self {
        Self {
            id: "default".to_owned(),
            api_key,
            weight: 1.0,
        }
    }
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
    let id = block.text("id", faults).unwrap_or_default();
    let valid = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if !valid {
        let message = "is required: letters, digits, \"-\", \"_\" and \".\"";
        faults.add(&block.path_of("id"), block.line_of("id"), message);
    }
    let written = block.text("kind", faults);
    let kind = written.as_deref().and_then(ProviderKind::parse).unwrap_or_else(|| {
        let found = written.as_ref().map_or("is required".to_owned(), |kind| {
            format!("\"{kind}\" is not a kind of this version")
        });
        let wires = ProviderKind::WIRES.map(ProviderKind::as_str).join(", ");
        let message = format!("{found}; use {wires}: the wire that it speaks");
        faults.add(&block.path_of("kind"), block.line_of("kind"), message);
        // So that nothing else is said of what was not understood.
        ProviderKind::Demo
    });
    let base_url = block.text("base_url", faults);
    match (&base_url, kind) {
        (None, ProviderKind::OpenAi) => {
            let message = "is required, for example \"https://api.openai.com/v1\"";
            faults.add(&block.path_of("base_url"), block.line_of("base_url"), message);
        }
        (Some(url), _) => check_url(url, &block.path_of("base_url"), block.line_of("base_url"), faults),
        (None, _) => {}
    }
    let surfaces = read_surfaces(&mut block, kind, faults);
    let aws = read_aws(&mut block, kind, faults, notices);
    let credentials = read_credentials(&mut block, faults, notices);
    let models = targets::read_models(&mut block, faults);
    let headers = read_headers(&mut block, faults);
    let catalog = block.text("catalog", faults).unwrap_or_else(|| id.clone());
    let prices = read_prices(&mut block, faults);
    block.finish(faults);
    let base_url = base_url.map(Template::new);
    Some(Provider {
        id,
        kind,
        base_url,
        surfaces,
        aws,
        credentials,
        models,
        headers,
        catalog,
        prices,
    })
}

/// `surfaces: [responses, completions]`.
fn read_surfaces(block: &mut Block<'_>, kind: ProviderKind, faults: &mut Faults) -> Vec<ExtraSurface> {
    if block.take("surfaces").is_none() {
        return Vec::new();
    }
    let line = block.line_of("surfaces");
    if kind != ProviderKind::OpenAi {
        faults.add(
            &block.path_of("surfaces"),
            line,
            "is for kind \"openai\" alone; remove it",
        );
    }
    let mut surfaces = Vec::new();
    for (node, path) in block.list("surfaces", faults) {
        let Some(name) = as_text(node, &path, faults) else {
            continue;
        };
        match ExtraSurface::ALL.into_iter().find(|surface| surface.as_str() == name) {
            Some(surface) => surfaces.push(surface),
            // Every one of them has these.
            None if ["chat", "embeddings"].contains(&name.as_str()) => {}
            None => {
                let known = ExtraSurface::ALL.map(ExtraSurface::as_str).join(", ");
                faults.add(
                    &path,
                    node.line,
                    format!("\"{name}\" is no surface to name here; there are {known}"),
                );
            }
        }
    }
    surfaces
}

/// `region`, `access_key_id`, `secret_access_key`, `session_token`.
fn read_aws(block: &mut Block<'_>, kind: ProviderKind, faults: &mut Faults, notices: &mut Notices) -> Aws {
    let mut read = |key: &'static str, is_secret: bool| {
        let line = block.take(key)?.line;
        let written = block.text(key, faults)?;
        let path = block.path_of(key);
        if kind != ProviderKind::Bedrock {
            faults.add(&path, line, "is for kind \"bedrock\" alone; remove it");
        } else if written.trim().is_empty() {
            faults.add(&path, line, "must not be empty; write a value, or leave it out");
        }
        let template = Template::new(written);
        if is_secret && template.is_literal() {
            let remedy = "stands in the file in clear; write `${NAME}` and set that variable";
            notices.warn(&path, line, remedy);
        }
        Some(template)
    };
    let aws = Aws {
        region: read("region", false),
        access_key_id: read("access_key_id", false),
        secret_access_key: read("secret_access_key", true),
        session_token: read("session_token", true),
    };
    let halves = [
        (
            "access_key_id",
            &aws.access_key_id,
            "secret_access_key",
            &aws.secret_access_key,
        ),
        (
            "secret_access_key",
            &aws.secret_access_key,
            "access_key_id",
            &aws.access_key_id,
        ),
    ];
    for (given, one, lacking, other) in halves {
        if one.is_some() && other.is_none() {
            let message = format!("stands without `{lacking}`; write both");
            faults.add(&block.path_of(given), block.line_of(given), message);
        }
    }
    aws
}

/// `remedy` is for a key that is empty.
fn read_key(block: &mut Block<'_>, remedy: &str, faults: &mut Faults, notices: &mut Notices) -> Option<Template> {
    let node = block.take("api_key")?;
    let written = block.text("api_key", faults)?;
    let is_empty = written.trim().is_empty();
    let key = Template::new(written);
    if is_empty {
        let message = format!("must not be empty; {remedy}");
        faults.add(&block.path_of("api_key"), node.line, message);
    } else if key.is_literal() {
        let remedy = "stands in the file in clear; write `${NAME}` and set that variable";
        notices.warn(&block.path_of("api_key"), node.line, remedy);
    }
    Some(key)
}

/// `api_key`, or `credentials` with several.
fn read_credentials(block: &mut Block<'_>, faults: &mut Faults, notices: &mut Notices) -> Vec<Credential> {
    let remedy = "leave it out to call the upstream without a credential";
    let alone = read_key(block, remedy, faults, notices);
    let mut credentials: Vec<Credential> = Vec::new();
    if block.take("credentials").is_some() {
        let (path, line) = (block.path_of("credentials"), block.line_of("credentials"));
        if alone.is_some() {
            faults.add(&path, line, "stands beside `api_key`; keep one of them");
        }
        if block.is_bare("credentials") {
            let message = "holds none; leave it out to call the upstream without a credential";
            faults.add(&path, line, message);
        }
    }
    for (node, path) in block.list("credentials", faults) {
        let Some(mut entry) = Block::of(node, &path, faults) else {
            continue;
        };
        let id = entry.text("id", faults).unwrap_or_default();
        if id.trim().is_empty() {
            let message = "is required: a name to tell it from its siblings";
            faults.add(&entry.path_of("id"), entry.line_of("id"), message);
        } else if credentials.iter().any(|other| other.id == id) {
            let message = format!("\"{id}\" is another credential's id; give each its own");
            faults.add(&entry.path_of("id"), entry.line_of("id"), message);
        }
        let remedy = "write a reference, such as \"${OPENAI_API_KEY_2}\", or take the credential out";
        let api_key = read_key(&mut entry, remedy, faults, notices);
        if entry.take("api_key").is_none() {
            let message = "is required, for example \"${OPENAI_API_KEY_2}\"";
            faults.add(&entry.path_of("api_key"), entry.line_of("api_key"), message);
        }
        let weight = entry.weight("weight", faults).unwrap_or(1.0);
        if weight <= 0.0 {
            let message = "must be more than 0; to retire a credential, take it out";
            faults.add(&entry.path_of("weight"), entry.line_of("weight"), message);
        }
        entry.finish(faults);
        credentials.extend(api_key.map(|api_key| Credential { id, api_key, weight }));
    }
    credentials.extend(alone.map(Credential::only));
    credentials
}

/// `{model: {input_per_m, output_per_m}}`, in USD per million tokens.
fn read_prices(block: &mut Block<'_>, faults: &mut Faults) -> BTreeMap<String, Price> {
    let mut prices = BTreeMap::new();
    let path = block.path_of("prices");
    let Some(models) = block.take("prices").and_then(|node| Block::of(node, &path, faults)) else {
        return prices;
    };
    for (model, node) in models.all() {
        let Some(mut entry) = Block::of(node, &models.path_of(model), faults) else {
            continue;
        };
        let mut rate = |key: &'static str| {
            let found = entry.number(key, 0.0, faults);
            if found.is_none() && entry.take(key).is_none() {
                faults.add(
                    &entry.path_of(key),
                    entry.line_of(key),
                    "is required: USD per million tokens",
                );
            }
            found.unwrap_or_default()
        };
        let price = Price {
            input_per_m: rate("input_per_m"),
            output_per_m: rate("output_per_m"),
        };
        entry.finish(faults);
        prices.insert(model.to_owned(), price);
    }
    prices
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
        } else if OF_THE_CLIENT.contains(&name.to_ascii_lowercase().as_str()) {
            let message = "is set by the client library with every call; remove it";
            faults.add(&path, value.line, message);
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

/// Whether the name is that of a provider, one of a later version included.
pub(super) fn is_known(virtual_key: &str, known: &[Provider]) -> bool {
    BUILT_IN.contains(&virtual_key)
        || LATER.contains(&virtual_key)
        || known.iter().any(|provider| provider.id == virtual_key)
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
    if is_known(virtual_key, known) {
        let is_here = BUILT_IN.contains(&virtual_key) || known.iter().any(|provider| provider.id == virtual_key);
        if !is_here {
            notices.inert(path, line, &format!("provider \"{virtual_key}\""));
        }
        return;
    }
    let mut names: Vec<&str> = known.iter().map(|provider| provider.id.as_str()).collect();
    names.extend(BUILT_IN);
    let here = names.join(", ");
    names.extend(LATER);
    let hint = closest(virtual_key, &names).map_or_else(
        || format!("providers here: {here}"),
        |name| format!("did you mean \"{name}\"?"),
    );
    faults.add(path, line, format!("\"{virtual_key}\" names no provider; {hint}"));
}
