//! The sides of the grid, and its holes.

use crate::folder;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use switchyard_core::secret::Secret;
use switchyard_providers::anthropic::Anthropic;
use switchyard_providers::bedrock::{AwsAuth, Bedrock};
use switchyard_providers::cohere::Cohere;
use switchyard_providers::gemini::{Gemini, GoogleAuth, GoogleService};
use switchyard_providers::openai::OpenAi;
use switchyard_providers::{Surface, Takes, Task, Wire};

/// What may be asked for and answered.
pub(crate) const FEATURES: [&str; 25] = [
    "plain",
    "system",
    "multi_turn",
    "image_base64",
    "image_url",
    "document",
    "audio_in",
    "tools",
    "parallel_tools",
    "tool_results",
    "tool_choice",
    "json_mode",
    "json_schema",
    "reasoning",
    "reasoning_round_trip",
    "sampling",
    "logprobs",
    "n",
    "cache_control",
    "citations",
    "refusal",
    "length",
    "content_filter",
    "stop_sequence",
    "usage_details",
];

/// Goes both ways, and is nobody's feature.
pub(crate) const UNKNOWN: &str = "unknown_fields";

/// Nobody can ask for these.
const ONLY_ANSWERED: [&str; 4] = ["refusal", "length", "content_filter", "usage_details"];

pub(crate) const ANSWERED: [&str; 14] = [
    "plain",
    "tools",
    "parallel_tools",
    "json_schema",
    "reasoning",
    "logprobs",
    "n",
    "citations",
    "refusal",
    "length",
    "content_filter",
    "stop_sequence",
    "usage_details",
    UNKNOWN,
];

/// Answers that are none.
pub(crate) const ERRORS: [&str; 10] = [
    "context_length",
    "quota",
    "rate_limit",
    "auth",
    "overload",
    "content_policy",
    "not_found",
    "bad_request",
    "html",
    "under_200",
];

/// Surfaces on which conversations are written down. Counting is asked for in the words of a conversation.
pub(crate) const SURFACES: [Surface; 6] = [
    Surface::Chat,
    Surface::Completions,
    Surface::Responses,
    Surface::Messages,
    Surface::Generate,
    Surface::Embeddings,
];

/// What is counted: that which differs on the way there.
const COUNTED: [&str; 4] = ["plain", "system", "tools", "image_base64"];

/// Embeddings and counts have one answer each.
pub(crate) const EMBEDDINGS: &str = "embeddings";
pub(crate) const COUNT: &str = "count_tokens";

/// What embeddings have instead of the features of a conversation.
const EMBEDDED: [&str; 5] = ["plain", "base64", "dimensions", "token_array", UNKNOWN];

/// What callers of a surface ask for.
pub(crate) fn asked(surface: Surface) -> Vec<&'static str> {
    match surface {
        Surface::Embeddings => EMBEDDED.to_vec(),
        Surface::CountTokens | Surface::GeminiCountTokens => COUNTED.to_vec(),
        _ => {
            let is_asked = |feature: &&str| !ONLY_ANSWERED.contains(feature);
            FEATURES.into_iter().chain([UNKNOWN]).filter(is_asked).collect()
        }
    }
}

/// A wire with an address and a credential.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) make: fn() -> Box<dyn Wire>,
    /// What the upstream calls the models that answer, embed and count.
    pub(crate) model: &'static str,
    pub(crate) embedder: &'static str,
    /// Whose files it answers with.
    pub(crate) vendor: &'static str,
    /// Another wire shows what goes by other paths.
    pub(crate) only: &'static [&'static str],
}

impl Known {
    pub(crate) const fn model_for(&self, surface: Surface) -> &'static str {
        match surface {
            Surface::Embeddings => self.embedder,
            _ => self.model,
        }
    }

    /// Its answers are another wire's, and are shown there.
    pub(crate) fn is_twin(&self) -> bool {
        self.vendor != self.name
    }
}

/// The upstream's credential, which must not show.
pub(crate) const UPSTREAM_SECRET: &str = "upstream-secret";
/// The caller's, which must not go up.
pub(crate) const CALLER_SECRET: &str = "caller-secret";

fn secret() -> Secret {
    Secret::new(UPSTREAM_SECRET.to_owned())
}

fn openai() -> OpenAi {
    OpenAi::new("https://up.test/v1", Some(&secret()), &[]).unwrap()
}

fn google(base: &str, service: GoogleService) -> Box<dyn Wire> {
    Box::new(Gemini::new(base, service, GoogleAuth::Key(secret()), &[]).unwrap())
}

pub(crate) const WIRES: [Known; 8] = [
    Known {
        name: "openai",
        make: || Box::new(openai()),
        model: "gpt-5-mini",
        embedder: "text-embedding-3-small",
        vendor: "openai",
        only: &[],
    },
    Known {
        name: "completions",
        make: || Box::new(openai().serving(&[Surface::Responses, Surface::Completions])),
        model: "gpt-3.5-turbo-instruct",
        embedder: "",
        vendor: "completions",
        only: &["/v1/completions"],
    },
    Known {
        name: "responses",
        make: || Box::new(openai().serving(&[Surface::Responses, Surface::Completions])),
        model: "gpt-5-mini",
        embedder: "",
        vendor: "responses",
        only: &["/v1/responses"],
    },
    Known {
        name: "anthropic",
        make: || Box::new(Anthropic::new("https://up.test/v1", Some(&secret()), &[]).unwrap()),
        model: "claude-sonnet-4-5",
        embedder: "",
        vendor: "anthropic",
        only: &[],
    },
    Known {
        name: "gemini",
        make: || google("https://up.test/v1beta", GoogleService::Gemini),
        model: "gemini-2.5-flash",
        embedder: "gemini-embedding-001",
        vendor: "gemini",
        only: &[],
    },
    Known {
        name: "vertex",
        make: || google("https://up.test/v1/projects/p/locations/l", GoogleService::Vertex),
        model: "gemini-2.5-flash",
        embedder: "gemini-embedding-001",
        vendor: "gemini",
        only: &[],
    },
    Known {
        name: "bedrock",
        make: || {
            let auth = AwsAuth::Keys {
                access_key_id: "AKIDEXAMPLE".to_owned(),
                secret_access_key: secret(),
                session_token: None,
            };
            Box::new(Bedrock::new("https://up.test", "us-east-1", auth, &[]).unwrap())
        },
        model: "anthropic.claude-sonnet-4-20250514-v1:0",
        embedder: "amazon.titan-embed-text-v2:0",
        vendor: "bedrock",
        only: &[],
    },
    Known {
        name: "cohere",
        make: || Box::new(Cohere::new("https://up.test", Some(&secret()), &[]).unwrap()),
        model: "command-a-03-2025",
        embedder: "embed-v4.0",
        vendor: "cohere",
        only: &[],
    },
];

/// The folders of answers.
pub(crate) fn vendors() -> BTreeSet<&'static str> {
    WIRES.iter().map(|wire| wire.vendor).collect()
}

// === files ===

pub(crate) fn read(path: &str) -> Option<Vec<u8>> {
    std::fs::read(folder().join(path)).ok()
}

pub(crate) fn read_json(path: &str) -> Option<Value> {
    let text = read(path)?;
    Some(serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// Features that there are none of, and why.
pub(crate) fn absent(side: &str) -> Map<String, Value> {
    match read_json(&format!("{side}/absent.json")) {
        Some(Value::Object(absent)) => absent,
        _ => Map::new(),
    }
}

pub(crate) fn caller_file(surface: Surface, feature: &str) -> String {
    format!("callers/{}/{feature}.json", surface.as_str())
}

pub(crate) fn response_file(vendor: &str, feature: &str) -> String {
    format!("vendors/{vendor}/{feature}.response.json")
}

/// A stream as it is sent.
pub(crate) fn stream_of(vendor: &str, feature: &str) -> Option<Vec<u8>> {
    let path = format!("vendors/{vendor}/{feature}.stream");
    read(&path).or_else(|| Some(crate::frames::stream(&read_json(&format!("{path}.json"))?)))
}

// === holes ===

/// What a side has to have: by feature, the files of which one must be there.
type Wanted = BTreeMap<String, Vec<String>>;

fn holes(side: &str, wanted: &Wanted) -> Vec<String> {
    let absent = absent(side);
    let mut faults = Vec::new();
    for (feature, files) in wanted {
        let found = files.iter().find(|file| read(file).is_some());
        match (found, absent.get(feature)) {
            (None, None) => faults.push(format!(
                "{} is missing, and {side}/absent.json does not say why",
                files[0]
            )),
            (Some(file), Some(_)) => faults.push(format!("{file} is there: strike it in {side}/absent.json")),
            (None, Some(reason)) if reason.as_str().is_none_or(|reason| reason.len() < 8) => {
                faults.push(format!("{side}/absent.json: \"{feature}\" has no reason"));
            }
            _ => {}
        }
    }
    let is_known =
        |name: &str| wanted.contains_key(name) || FEATURES.contains(&name) || name == EMBEDDINGS || name == COUNT;
    let odd = absent
        .keys()
        .filter(|feature| !is_known(feature.trim_end_matches(".stream")));
    faults.extend(odd.map(|feature| format!("{side}/absent.json: there is no feature \"{feature}\"")));
    faults
}

/// Files that nothing looks at: a name is misspelt.
fn unread(side: &str, wanted: &Wanted) -> Vec<String> {
    let known: BTreeSet<&str> = wanted.values().flatten().map(String::as_str).collect();
    let mut faults = Vec::new();
    for file in std::fs::read_dir(folder().join(side)).into_iter().flatten().flatten() {
        let path = format!("{side}/{}", file.file_name().to_string_lossy());
        let is_known = known.contains(path.as_str()) || path.ends_with("/absent.json") || path.ends_with("/errors");
        if !is_known {
            faults.push(format!("{path}: nothing looks at it"));
        }
    }
    faults
}

fn callers(surface: Surface) -> (String, Wanted) {
    let side = format!("callers/{}", surface.as_str());
    let wanted = asked(surface)
        .into_iter()
        .map(|feature| (feature.to_owned(), vec![caller_file(surface, feature)]));
    let wanted = wanted.collect();
    (side, wanted)
}

fn answers(vendor: &str) -> (String, Wanted) {
    let mut wanted = Wanted::new();
    for feature in ANSWERED {
        let stream = format!("vendors/{vendor}/{feature}.stream");
        wanted.insert(feature.to_owned(), vec![response_file(vendor, feature)]);
        wanted.insert(
            format!("{feature}.stream"),
            vec![stream.clone(), format!("{stream}.json")],
        );
    }
    for (only_whole, task) in [(EMBEDDINGS, Task::Embed), (COUNT, Task::Count)] {
        if has(vendor, task) {
            wanted.insert(only_whole.to_owned(), vec![response_file(vendor, only_whole)]);
        }
    }
    (format!("vendors/{vendor}"), wanted)
}

/// An upstream does this by itself.
fn has(vendor: &str, task: Task) -> bool {
    let known = WIRES.iter().find(|wire| wire.name == vendor).unwrap();
    let wire = (known.make)();
    let takes = |surface: &Surface| wire.takes(*surface) != Takes::Not && known.only.is_empty();
    let mut surfaces = Surface::ALL
        .into_iter()
        .filter(|surface| surface.task() == task)
        .filter(takes);
    surfaces.any(|surface| {
        crate::run::call_for(surface, "plain", false).is_none_or(|call| wire.answer_here(&call).is_none())
    })
}

fn errors(vendor: &str) -> (String, Wanted) {
    let side = format!("vendors/{vendor}/errors");
    let wanted = ERRORS
        .iter()
        .map(|error| ((*error).to_owned(), vec![format!("{side}/{error}.json")]));
    let wanted = wanted.collect();
    (side, wanted)
}

/// What `absent.json` says of a feature holds for its answer and its stream, and errors may stand there as well.
fn answer_holes(vendor: &str) -> Vec<String> {
    let (side, mut wanted) = answers(vendor);
    let mut faults = unread(&side, &wanted);
    let absent = absent(&side);
    for feature in ANSWERED {
        let stream = format!("{feature}.stream");
        let both_gone = absent.contains_key(feature) && !absent.contains_key(&stream);
        if both_gone && wanted[&stream].iter().all(|file| read(file).is_none()) {
            wanted.remove(&stream);
        }
    }
    let (errors_side, wanted_errors) = errors(vendor);
    faults.extend(unread(&errors_side, &wanted_errors));
    wanted.extend(wanted_errors);
    faults.extend(holes(&side, &wanted));
    faults
}

#[test]
fn the_grid_has_no_hole() {
    let mut faults = Vec::new();
    for surface in SURFACES {
        let (side, wanted) = callers(surface);
        faults.extend(holes(&side, &wanted));
        faults.extend(unread(&side, &wanted));
    }
    for vendor in vendors() {
        faults.extend(answer_holes(vendor));
    }
    assert!(faults.is_empty(), "{} holes\n{}", faults.len(), faults.join("\n"));
}
