//! `docs/conformance.md`: the grid as a page.

use crate::cells::Cell;
use crate::grid::{ANSWERED, COUNT, EMBEDDINGS, ERRORS, FEATURES, SURFACES, WIRES, absent, asked};
use crate::run::Made;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use switchyard_providers::Surface;
use switchyard_providers::params::{Param, Support, WireKind, support};

const HEAD: &str = "# Conformance

What becomes of each feature on its way from a caller's dialect to an upstream's and back. This page is printed by the tests that
hold it (`UPDATE_GOLDEN=1 cargo test -p switchyard-providers --test golden`), from the same run that compares every request, answer,
stream and error with its file in `server/crates/providers/tests/golden/out`; to see what exactly is sent, look there.

| in a table | means |
|---|---|
| native | the same dialect on both sides: the bytes go through as they came, but for the model's name |
| ok | translated, and nothing is lost |
| ≈2 | translated, and two fields became something that comes near |
| −1 | translated, and one field is gone; the answer's `X-Gateway-Translation` says `dropped=1`, and the request's page says which |
| refused | the caller gets a 400 that names the field and the remedy, or the next target is asked: an answer would not be one to what was asked |
| **fails** | it does not work, and should |
| · | there is none, for the reason at the end of this page to which the number leads |
| empty | nobody has asked: the feature is not one of this surface |

Each request is asked for whole and as a stream, and each stream is fed whole, byte by byte and in seven random splits; a place is
shown once because these must agree. `compatibility.on_unsupported_param: reject` turns what is dropped into a refusal.
";

fn word(cell: &Cell) -> String {
    match cell {
        Cell::Absent => String::new(),
        Cell::Native => "native".to_owned(),
        Cell::Refused => "refused".to_owned(),
        Cell::Failed(kind) => format!("**fails** ({kind})"),
        Cell::Broken => "**fails**".to_owned(),
        Cell::Translated { approximated, dropped } => {
            let mut words = Vec::new();
            if *approximated > 0 {
                words.push(format!("≈{approximated}"));
            }
            if *dropped > 0 {
                words.push(format!("−{dropped}"));
            }
            if words.is_empty() {
                "ok".to_owned()
            } else {
                words.join(" ")
            }
        }
    }
}

/// Reasons, each once, in the order in which they are asked for.
#[derive(Default)]
struct Reasons {
    numbers: BTreeMap<String, usize>,
    list: Vec<String>,
}

impl Reasons {
    /// A link to why there is no such file, if somebody says why.
    fn link(&mut self, side: &str, feature: &str, whose: &str) -> Option<String> {
        let absent = absent(side);
        let key = [format!("{feature}.stream"), feature.to_owned()];
        let reason = key.iter().find_map(|key| absent.get(key)?.as_str())?;
        let said = format!("{whose}: {reason}");
        let next = self.list.len() + 1;
        let number = *self.numbers.entry(said.clone()).or_insert(next);
        if number == next {
            self.list.push(said);
        }
        Some(format!("[{number}](#why-{number})"))
    }

    /// The name of a row, with a link to why there is nothing in it.
    fn row(&mut self, side: &str, feature: &str, whose: &str, cells: &mut [String]) -> String {
        let is_absent = cells.iter().all(String::is_empty);
        match is_absent.then(|| self.link(side, feature, whose)).flatten() {
            Some(link) => {
                cells.fill("·".to_owned());
                format!("{feature} {link}")
            }
            None => feature.to_owned(),
        }
    }
}

fn table(out: &mut String, first: &str, columns: &[&str], rows: Vec<(String, Vec<String>)>) {
    writeln!(out, "\n| {first} | {} |", columns.join(" | ")).unwrap();
    writeln!(out, "|---|{}", "---|".repeat(columns.len())).unwrap();
    for (name, cells) in rows {
        if cells.iter().any(|cell| !cell.is_empty()) {
            writeln!(out, "| {name} | {} |", cells.join(" | ")).unwrap();
        }
    }
}

fn title(surface: Surface) -> &'static str {
    match surface {
        Surface::Chat => "`/v1/chat/completions`",
        Surface::Completions => "`/v1/completions`",
        Surface::Responses => "`/v1/responses`",
        Surface::Messages => "`/v1/messages`",
        Surface::Generate => "`/v1beta/models/{model}:generateContent`",
        Surface::Embeddings => "`/v1/embeddings`",
        Surface::CountTokens => "`/v1/messages/count_tokens`",
        Surface::GeminiCountTokens => "`/v1beta/models/{model}:countTokens`",
    }
}

pub(crate) fn print(made: &[Made]) -> String {
    let mut out = HEAD.to_owned();
    let mut reasons = Reasons::default();
    models(&mut out);
    requests(&mut out, made, &mut reasons);
    answers(&mut out, made, &mut reasons);
    errors(&mut out, made, &mut reasons);
    parameters(&mut out);
    lost(&mut out, made);
    out.push_str("\n## Why there is none\n\n");
    for (n, reason) in reasons.list.iter().enumerate() {
        let number = n + 1;
        writeln!(out, "{number}. <a id=\"why-{number}\"></a>{reason}").unwrap();
    }
    out
}

/// What a wire says may depend on the model.
fn models(out: &mut String) {
    out.push_str("\nWhat is sent may depend on the model. These were asked:\n");
    let or_dash = |name: &str| {
        if name.is_empty() {
            "–".to_owned()
        } else {
            format!("`{name}`")
        }
    };
    let rows = WIRES.iter().map(|wire| {
        let cells = vec![format!("`{}`", wire.model), or_dash(wire.embedder)];
        (wire.name.to_owned(), cells)
    });
    let rows = rows.collect();
    table(out, "wire", &["conversations", "embeddings"], rows);
}

fn requests(out: &mut String, made: &[Made], reasons: &mut Reasons) {
    out.push_str("\n## Requests: what is asked for\n\nA table for each surface, and a column for each wire that takes its calls.\n");
    for surface in Surface::ALL {
        let name = surface.as_str();
        let wires: Vec<usize> = (0..WIRES.len())
            .filter(|place| made[*place].requests.keys().any(|(of, _)| *of == name))
            .collect();
        let rows = asked(surface).into_iter().map(|feature| {
            let mut cells: Vec<String> = wires
                .iter()
                .map(|place| {
                    made[*place]
                        .requests
                        .get(&(name, feature))
                        .map(word)
                        .unwrap_or_default()
                })
                .collect();
            let row = reasons.row(&format!("callers/{name}"), feature, name, &mut cells);
            (row, cells)
        });
        let rows = rows.collect();
        if wires.is_empty() {
            continue;
        }
        writeln!(out, "\n### {}", title(surface)).unwrap();
        let columns: Vec<&str> = wires.iter().map(|place| WIRES[*place].name).collect();
        table(out, "feature", &columns, rows);
    }
}

fn answers(out: &mut String, made: &[Made], reasons: &mut Reasons) {
    out.push_str(
        "\n## Answers: what is told\n\nA table for each wire, and a column for each surface that it answers: the whole answer, and \
         the stream where it differs.\n",
    );
    for (wire, made) in WIRES.iter().zip(made) {
        if wire.is_twin() {
            writeln!(out, "\n### {}\n\nAs {}.", wire.name, wire.vendor).unwrap();
            continue;
        }
        let surfaces: Vec<Surface> = Surface::ALL
            .into_iter()
            .filter(|surface| made.requests.keys().any(|(of, _)| *of == surface.as_str()))
            .collect();
        let features = ANSWERED.into_iter().chain([EMBEDDINGS, COUNT]);
        let rows = features.map(|feature| {
            let mut cells: Vec<String> = surfaces
                .iter()
                .map(|surface| {
                    let place = (surface.as_str(), feature);
                    let whole = made.responses.get(&place).map(word).unwrap_or_default();
                    let stream = made.streams.get(&place).map(word).unwrap_or_default();
                    match (whole.as_str(), stream.as_str()) {
                        (_, "") => whole,
                        (whole, stream) if whole == stream => stream.to_owned(),
                        ("", stream) => format!("{stream} (stream)"),
                        (whole, stream) => format!("{whole}, {stream} (stream)"),
                    }
                })
                .collect();
            let row = reasons.row(&format!("vendors/{}", wire.vendor), feature, wire.name, &mut cells);
            (row, cells)
        });
        let rows = rows.collect();
        writeln!(out, "\n### {}", wire.name).unwrap();
        let columns: Vec<&str> = surfaces.iter().map(|surface| surface.as_str()).collect();
        table(out, "feature", &columns, rows);
    }
}

fn errors(out: &mut String, made: &[Made], reasons: &mut Reasons) {
    out.push_str(
        "\n## Errors: what an upstream's failure is taken for\n\nThe kind that decides what happens next (another try, another target, \
         the caller), and the status that the caller sees.\n",
    );
    let wires: Vec<usize> = (0..WIRES.len()).filter(|place| !WIRES[*place].is_twin()).collect();
    let rows = ERRORS.into_iter().map(|error| {
        let cells = wires.iter().map(|place| match made[*place].errors.get(error) {
            Some((kind, status)) => format!("{kind} → {status}"),
            None => {
                let (wire, side) = (&WIRES[*place], format!("vendors/{}", WIRES[*place].vendor));
                reasons.link(&side, error, wire.name).unwrap_or_default()
            }
        });
        (error.to_owned(), cells.collect())
    });
    let rows = rows.collect();
    let columns: Vec<&str> = wires.iter().map(|place| WIRES[*place].name).collect();
    table(out, "what the upstream means", &columns, rows);
}

fn parameters(out: &mut String) {
    out.push_str(
        "\n## Parameters\n\nThe table that translation asks, and that `GET /v1/capabilities` prints. A parameter is called here what the \
         chat surface calls it; a caller of the same dialect as the upstream is relayed, and this does not apply to it.\n",
    );
    let rows = Param::ALL.iter().map(|param| {
        let cells = WireKind::ALL.iter().map(|wire| match support(*wire, *param) {
            Support::Unsupported => "**dropped**".to_owned(),
            support => support.as_str().to_owned(),
        });
        (format!("`{}`", param.name(Surface::Chat)), cells.collect())
    });
    let rows = rows.collect();
    table(out, "parameter", &WireKind::ALL.map(WireKind::as_str), rows);
}

/// Places in lists are all the same here.
fn without_numbers(said: &str) -> String {
    let (mut out, mut rest) = (String::new(), said);
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        let digits = after.trim_start_matches(|c: char| c.is_ascii_digit());
        if digits.len() < after.len() && digits.starts_with(']') {
            out.push_str("[]");
            rest = &digits[1..];
        } else {
            out.push('[');
            rest = after;
        }
    }
    out + rest
}

fn lost(out: &mut String, made: &[Made]) {
    out.push_str(
        "\n## What is lost, in words\n\nEverything that was dropped or approximated in this run, requests and answers, by wire and by the \
         caller's surface.\n",
    );
    for (wire, made) in WIRES.iter().zip(made) {
        if made.lost.is_empty() || wire.is_twin() {
            continue;
        }
        writeln!(out, "\n### {}\n", wire.name).unwrap();
        let mut words: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (surface, said) in made.lost.keys() {
            let surfaces = words.entry(without_numbers(said)).or_default();
            if !surfaces.contains(surface) {
                surfaces.push(surface);
            }
        }
        for (said, surfaces) in words {
            writeln!(out, "- {said} ({})", surfaces.join(", ")).unwrap();
        }
    }
}

#[test]
fn every_feature_has_a_row() {
    for surface in SURFACES.into_iter().filter(|surface| *surface != Surface::Embeddings) {
        assert!(asked(surface).len() > FEATURES.len() - 5, "{surface:?}");
    }
}
