//! The OpenAI wire against whole conversations: what goes up and what comes down, byte for byte.
//!
//! The gateway relays a dialect to itself by splicing, so the promise is about bytes: `1.50` stays `1.50`, an escape stays
//! an escape, an unknown field stays where it was. Only files that hold those bytes can keep such a promise. Each folder
//! below `golden/openai/` is one conversation; adding a folder is adding a test.
//!
//! | Written by hand | Made by the wire | |
//! |---|---|---|
//! | `options.json` | | what the case is about, the upstream's name for the model, the cells of the grid it fills |
//! | `request.json` | `sent.json` | the body from the caller, and the body that goes up |
//! | `answer.json` | `relayed.json` | a whole answer |
//! | `stream.sse` | `relayed.sse` | a stream: fed whole, byte by byte and in pieces of seven, with one result |
//! | | `usage.txt` | what it used; a stream that failed before any content used nothing that counts |
//! | `refusal.json` | | status, headers and body of an answer that is none |
//! | | `error.txt` | how it failed, where it did; a case without this file did not fail |
//!
//! `UPDATE_GOLDEN=1 cargo test -p switchyard-providers --test golden` writes the second column anew, to be read as a diff.
//! It cannot make a wrong thing right, because two checks do not look at those files: JSON that passed is compared, as
//! JSON, with what the few documented differences make of the original; and `golden/grid.json` says for every feature on
//! every kind of file which texts prove that a case shows it, or why there is no such case.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use switchyard_core::error::Error;
use switchyard_core::usage::Usage;
use switchyard_providers::openai::OpenAi;
use switchyard_providers::params::OnUnsupported;
use switchyard_providers::{Call, End, Progress, Surface, Terms, Wire};

/// The files that the wire makes.
const MADE: [&str; 5] = ["sent.json", "relayed.json", "relayed.sse", "usage.txt", "error.txt"];

/// The kinds of files that a case is written as, the columns of the grid.
const PARTS: [(&str, &str); 4] = [
    ("request", "request.json"),
    ("answer", "answer.json"),
    ("stream", "stream.sse"),
    ("refusal", "refusal.json"),
];

/// Refusals are read at this second: Sun, 06 Nov 1994 08:49:30 GMT.
const NOW: Duration = Duration::from_secs(784_111_770);

// === the grid ===

/// `golden/grid.json`: cells by feature and kind of file.
type Grid = BTreeMap<String, BTreeMap<String, Cell>>;

#[derive(Deserialize)]
#[serde(untagged)]
enum Cell {
    /// At least one case claims it, and holds these texts, in this order, in that file.
    Shown(Vec<String>),
    /// Left empty on purpose, and why.
    Empty(String),
}

/// The texts stand in `document`, one behind the other.
fn in_order(document: &str, texts: &[String]) -> bool {
    let mut rest = document;
    texts.iter().all(|text| {
        let found = rest.split_once(text);
        rest = found.map_or("", |(_, behind)| behind);
        found.is_some()
    })
}

#[test]
fn every_cell_of_the_grid_has_a_case_or_a_reason() {
    let grid: Grid = serde_json::from_slice(include_bytes!("grid.json")).unwrap();
    let mut claims: BTreeMap<(String, String), Vec<Case>> = BTreeMap::new();
    for case in cases() {
        for (part, features) in &case.options.covers {
            for feature in features {
                claims
                    .entry((feature.clone(), part.clone()))
                    .or_default()
                    .push(case.clone());
            }
        }
    }
    let mut faults = Vec::new();
    for (feature, row) in &grid {
        for (part, file) in PARTS {
            let claimed = claims.remove(&(feature.clone(), part.to_owned())).unwrap_or_default();
            let shows =
                |case: &Case, texts| in_order(&String::from_utf8_lossy(&case.read(file).unwrap_or_default()), texts);
            faults.extend(
                match row.get(part) {
                    None => Some("neither texts to look for nor a reason".to_owned()),
                    Some(Cell::Empty(reason)) if reason.is_empty() => Some("no reason".to_owned()),
                    Some(Cell::Empty(reason)) if !claimed.is_empty() => {
                        Some(format!("has a case after all, so strike \"{reason}\""))
                    }
                    Some(Cell::Empty(_)) => None,
                    Some(Cell::Shown(_)) if claimed.is_empty() => Some("no case".to_owned()),
                    Some(Cell::Shown(texts)) => claimed
                        .iter()
                        .find(|case| texts.is_empty() || !shows(case, texts))
                        .map(|case| format!("{} does not show it", case.name())),
                }
                .map(|fault| format!("{feature} × {part}: {fault}")),
            );
        }
    }
    faults.extend(
        claims
            .keys()
            .map(|(feature, part)| format!("{feature} × {part}: no such cell")),
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

// === cases ===

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// The point of the case, in a sentence.
    about: String,
    surface: String,
    /// What the upstream calls the model.
    upstream_model: String,
    /// The caller calls it otherwise.
    renamed: bool,
    /// Cells of the grid: features by kind of file.
    covers: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    status: u16,
    headers: BTreeMap<String, String>,
    /// A JSON text is sent as what it says, anything else as it stands.
    body: Box<RawValue>,
}

#[derive(Clone)]
struct Case {
    folder: PathBuf,
    options: Options,
}

impl Case {
    fn name(&self) -> String {
        self.folder.file_name().unwrap().to_string_lossy().into_owned()
    }

    fn read(&self, file: &str) -> Option<Vec<u8>> {
        std::fs::read(self.folder.join(file)).ok()
    }

    fn call(&self) -> Call {
        let surface = match self.options.surface.as_str() {
            "chat" => Surface::Chat,
            "embeddings" => Surface::Embeddings,
            other => panic!("{}: no surface is called {other}", self.name()),
        };
        Call::parse(surface, self.read("request.json").unwrap().into()).unwrap()
    }
}

fn cases() -> Vec<Case> {
    let folder = crate::folder().join("openai");
    let mut cases: Vec<Case> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let folder = entry.unwrap().path();
            let options = std::fs::read(folder.join("options.json"))
                .map_err(|error| error.to_string())
                .and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()))
                .unwrap_or_else(|error| panic!("{}/options.json: {error}", folder.display()));
            Case { folder, options }
        })
        .collect();
    cases.sort_by(|a, b| a.folder.cmp(&b.folder));
    cases
}

// === what the wire makes of a case ===

type Made = BTreeMap<&'static str, Vec<u8>>;

fn wire() -> OpenAi {
    OpenAi::new("https://up.test/v1", None, &[]).unwrap()
}

/// Every file of the second column that this case should have.
fn make(case: &Case) -> Made {
    let call = case.call();
    let terms = Terms {
        now: SystemTime::UNIX_EPOCH + NOW,
        on_unsupported: OnUnsupported::Warn,
    };
    let model = case.options.upstream_model.as_str();
    let request = wire().encode(&call, model, &HeaderMap::new(), &terms).unwrap().request;
    assert_eq!(
        request.uri().path(),
        format!("/v1{}", call.surface.path()),
        "{}",
        case.name()
    );
    let mut made = Made::from([("sent.json", request.body().to_vec())]);
    match (
        case.read("answer.json"),
        case.read("stream.sse"),
        case.read("refusal.json"),
    ) {
        (Some(answer), None, None) => match wire().decode(&call, model, answer.into()) {
            Ok(reply) => {
                made.insert("relayed.json", reply.body.to_vec());
                made.insert("usage.txt", show_usage(reply.usage).into());
            }
            Err(error) => {
                made.insert("error.txt", show_error(&error).into());
            }
        },
        (None, Some(stream), None) => made.extend(relay(case, &call, &stream)),
        (None, None, Some(refusal)) => {
            made.insert("error.txt", show_error(&refuse(&refusal)).into());
        }
        _ => panic!(
            "{}: exactly one of answer.json, stream.sse and refusal.json",
            case.name()
        ),
    }
    made
}

fn refuse(refusal: &[u8]) -> Error {
    let refusal: Refusal = serde_json::from_slice(refusal).unwrap();
    let headers: HeaderMap = refusal
        .headers
        .iter()
        .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
        .collect();
    let raw = refusal.body.get();
    let body = serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned());
    let status = StatusCode::from_u16(refusal.status).unwrap();
    wire().failure(status, &headers, body.as_bytes(), SystemTime::UNIX_EPOCH + NOW)
}

/// The stream's files, the same for every way to cut it.
fn relay(case: &Case, call: &Call, stream: &[u8]) -> Made {
    let whole = feed(case, call, stream, stream.len().max(1));
    for size in [1, 7] {
        let pieces = feed(case, call, stream, size);
        assert_eq!(show(&pieces), show(&whole), "{}: in pieces of {size}", case.name());
    }
    whole
}

/// For a failure's message: text instead of numbers.
fn show(made: &Made) -> BTreeMap<&str, String> {
    made.iter()
        .map(|(file, bytes)| (*file, String::from_utf8_lossy(bytes).into_owned()))
        .collect()
}

fn feed(case: &Case, call: &Call, stream: &[u8], size: usize) -> Made {
    let mut decoder = wire().decoder(call, &case.options.upstream_model);
    let mut steps: Vec<Progress> = stream
        .chunks(size)
        .map(|piece| decoder.push(Bytes::copy_from_slice(piece)))
        .collect();
    steps.push(decoder.finish());
    let content = steps.iter().any(|step| step.content);
    let out: Vec<u8> = steps
        .iter()
        .flat_map(|step| step.out.iter().flatten().copied())
        .collect();
    let ends: Vec<End> = steps.into_iter().filter_map(|step| step.end).collect();
    let mut made = Made::from([("relayed.sse", out)]);
    if content {
        made.insert("usage.txt", show_usage(decoder.usage()).into());
    }
    match ends.as_slice() {
        [End::Complete] => assert!(content, "{}: an answer without content", case.name()),
        [End::Failed(error)] => {
            let text = format!("{}after_content: {content}\n", show_error(error));
            made.insert("error.txt", text.into());
        }
        _ => panic!("{}: a stream ends once, not {} times", case.name(), ends.len()),
    }
    made
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn show_usage(usage: Usage) -> String {
    let mut out = String::new();
    for (name, count) in [
        ("prompt", usage.prompt),
        ("completion", usage.completion),
        ("total", usage.total),
        ("cached", usage.cached),
        ("reasoning", usage.reasoning),
    ] {
        writeln!(out, "{name}: {}", or_dash(count)).unwrap();
    }
    out + &format!("estimated: {}\n", usage.estimated)
}

fn show_error(error: &Error) -> String {
    format!(
        "kind: {}\nstatus: {}\ncode: {}\nparam: {}\nretry_after: {}\nmessage: {}\n",
        error.kind.as_str(),
        or_dash(error.status),
        or_dash(error.upstream_code.as_deref()),
        or_dash(error.param.as_deref()),
        or_dash(error.retry_after.map(|wait| format!("{wait:?}"))),
        error.message,
    )
}

#[test]
fn every_case_gives_the_bytes_of_its_files() {
    let update = crate::is_update();
    let mut faults = Vec::new();
    for case in cases() {
        let made = make(&case);
        for file in MADE {
            let (path, want) = (case.folder.join(file), case.read(file));
            match (made.get(file), want) {
                (made, want) if made == want.as_ref() => {}
                (Some(made), _) if update => std::fs::write(path, made).unwrap(),
                (None, _) if update => std::fs::remove_file(path).unwrap(),
                (made, want) => {
                    let text = |bytes: Option<&Vec<u8>>| {
                        bytes.map_or_else(|| "(no such file)".into(), |b| String::from_utf8_lossy(b).into_owned())
                    };
                    let (made, want) = (text(made), text(want.as_ref()));
                    faults.push(format!("{}/{file}\n--- wanted\n{want}\n--- made\n{made}", case.name()));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{}\n(UPDATE_GOLDEN=1 writes what was made)",
        faults.join("\n\n")
    );
}

// === what no update can write ===

#[test]
fn nothing_differs_but_what_has_to() {
    for case in cases() {
        let (name, options, call, made) = (case.name(), &case.options, case.call(), make(&case));
        assert!(!options.about.is_empty(), "{name}: say what it is about");
        assert_eq!(options.renamed, options.upstream_model != call.model, "{name}: renamed");

        let mut up = parse(&call.body);
        up["model"] = json!(options.upstream_model);
        if call.stream {
            if !up["stream_options"].is_object() {
                up["stream_options"] = json!({});
            }
            up["stream_options"]["include_usage"] = json!(true);
        }
        assert_eq!(parse(&made["sent.json"]), up, "{name}: sent");

        if let (Some(answer), Some(relayed)) = (case.read("answer.json"), made.get("relayed.json")) {
            let mut down = parse(&answer);
            rename(&mut down, options, &call);
            assert_eq!(parse(relayed), down, "{name}: relayed");
        }
        if let Some(stream) = case.read("stream.sse") {
            let failed = made.contains_key("error.txt");
            assert_eq!(
                events(&made["relayed.sse"]),
                wanted(&events(&stream), options, &call, failed),
                "{name}"
            );
        }
    }
}

fn parse(document: &[u8]) -> Value {
    serde_json::from_slice(document).unwrap()
}

fn rename(document: &mut Value, options: &Options, call: &Call) {
    if options.renamed && document.get("model").is_some() {
        document["model"] = json!(call.model);
    }
}

/// The data of a stream's events, read in the plainest way. What is no JSON is `null`, `[DONE]` a text.
fn events(stream: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(stream).replace("\r\n", "\n");
    text.split("\n\n")
        .filter_map(|frame| {
            let data: Vec<&str> = frame.lines().filter_map(|line| line.strip_prefix("data:")).collect();
            match data.join("\n").trim() {
                "" => None,
                "[DONE]" => Some(json!("[DONE]")),
                data => Some(serde_json::from_str(data).unwrap_or_default()),
            }
        })
        .collect()
}

/// What a caller should see of the upstream's events.
fn wanted(events: &[Value], options: &Options, call: &Call, failed: bool) -> Vec<Value> {
    let mut out = Vec::new();
    for event in events.iter().filter(|event| event.is_object()) {
        if event.get("error").is_some() {
            break;
        }
        let mut event = event.clone();
        rename(&mut event, options, call);
        if !call.wants_usage && event.get("usage").is_some() {
            if event["choices"].as_array().is_none_or(Vec::is_empty) && !event["usage"].is_null() {
                continue;
            }
            event.as_object_mut().unwrap().remove("usage");
        }
        out.push(event);
    }
    if !failed {
        out.push(json!("[DONE]"));
    }
    out
}
