//! Makes the corpus of the golden files: `cargo run --bin corpus`.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use switchyard_fuzz::{OTHERS, SURFACES, framed};
use switchyard_providers::Surface;

/// Longer inputs make a run slow and teach it little.
const LONGEST: usize = 6_000;
const CUTS: [u8; 4] = [3, 0, 6, 40];

fn put(target: &str, name: &str, input: &[u8]) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    if input.len() <= LONGEST {
        fs::write(folder.join(name), input).unwrap();
    }
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter(|entry| entry.path().is_file() && entry.file_name() != "absent.json")
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

fn with_cuts(first: usize, data: &[u8]) -> Vec<u8> {
    [&[u8::try_from(first).unwrap()][..], &CUTS, data].concat()
}

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let golden = root.join("../server/crates/providers/tests/golden");
    let _ = fs::remove_dir_all(root.join("corpus"));
    for (place, surface) in Surface::ALL.into_iter().enumerate() {
        for (name, body) in files(&golden.join("callers").join(surface.as_str())) {
            let first = u8::try_from(2 * place).unwrap();
            put(
                "calls",
                &format!("{}_{name}", surface.as_str()),
                &[&[first], &*body].concat(),
            );
        }
    }
    for wire in ["openai", "responses", "anthropic", "gemini", "bedrock", "cohere"] {
        let folder = golden.join("vendors").join(wire);
        for (n, (name, body)) in files(&folder).into_iter().enumerate() {
            if name.starts_with("embeddings") {
                put(wire, &name, &with_cuts(2 * SURFACES.len() + 1, &body));
            } else if name.starts_with("count_tokens") {
                put(wire, &name, &with_cuts(2 * (SURFACES.len() + OTHERS.len()) - 1, &body));
            } else if name.ends_with(".response.json") {
                put(wire, &name, &with_cuts(2 * (n % SURFACES.len()) + 1, &body));
            } else if let Some(name) = name.strip_suffix(".stream.json") {
                let events: Value = serde_json::from_slice(&body).unwrap();
                put(
                    wire,
                    &format!("{name}.stream"),
                    &with_cuts(2 * (n % SURFACES.len()), &framed(&events)),
                );
                put("event_stream", name, &with_cuts(n % SURFACES.len(), &unframed(&events)));
            } else {
                put(wire, &name, &with_cuts(2 * (n % SURFACES.len()), &body));
                if wire == "anthropic" {
                    put("sse", &name, &[&CUTS, &*body].concat());
                }
            }
        }
        for (name, said) in files(&folder.join("errors")) {
            let said: Value = serde_json::from_slice(&said).unwrap();
            let body = said["body"]
                .as_str()
                .map_or_else(|| said["body"].to_string(), ToOwned::to_owned);
            let status = u16::try_from(said["status"].as_u64().unwrap_or(500)).unwrap() - 100;
            put(
                "failure",
                &format!("{wire}_{name}"),
                &[&status.to_be_bytes(), body.as_bytes()].concat(),
            );
            if let Some(stream) = said["stream"].as_str() {
                put(wire, &format!("error_{name}"), &with_cuts(0, stream.as_bytes()));
            }
        }
    }
}

/// Events as the target `event_stream` takes them.
fn unframed(events: &Value) -> Vec<u8> {
    const NAMES: [&str; 6] = [
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    ];
    let mut out = Vec::new();
    for event in events.as_array().unwrap() {
        let kind = NAMES.iter().position(|name| event["type"] == *name).unwrap_or(7);
        let payload = event["payload"].to_string();
        out.push(u8::try_from(kind).unwrap());
        out.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        out.extend(payload.as_bytes());
    }
    out
}
