//! What every wire makes of what every caller says, and every caller is told of what every upstream says, in files.
//!
//! The grid has three sides: the surfaces on which callers write, the wires that upstreams speak, and the features that a
//! conversation may have. Inputs are written by hand, in the words of those whose dialect it is:
//!
//! | Written by hand | |
//! |---|---|
//! | `callers/<surface>/<feature>.json` | a request; for a stream the flag is set here |
//! | `vendors/<wire>/<feature>.response.json`, `<feature>.stream` | an answer, whole and streamed (`.stream.json`: events that are framed here) |
//! | `vendors/<wire>/errors/<error>.json` | an answer that is none |
//! | `absent.json` beside them | which features a dialect or a wire does not have, and why |
//!
//! Everything else is made: `out/<wire>/` and `docs/conformance.md`. `UPDATE_GOLDEN=1 cargo test -p switchyard-providers
//! --test golden` writes that anew, to be read as a diff. It cannot make a wrong thing right, because what must hold for every
//! cell is checked beside it: a dialect is relayed to itself byte for byte, any split of a stream gives the same, a stream is
//! built as its dialect demands (`rules.rs`), no credential shows, and the grid has no hole (`grid.rs`).
//!
//! `openai/` is older and deeper than the grid: whole conversations of one dialect, with every accent of its upstreams
//! (`relay.rs`). `exact.rs` sends two hundred fields that nobody knows there and back.
#![cfg(test)]

mod cells;
mod diff;
mod exact;
mod frames;
mod grid;
mod lost;
mod page;
mod relay;
mod rules;
mod run;

use grid::WIRES;
use std::path::PathBuf;

/// Where all of this stands.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

/// Compares a made file with the one that is kept, or keeps it.
fn keep(path: &std::path::Path, made: &str) -> Option<String> {
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    if kept == made {
        return None;
    }
    if is_update() {
        std::fs::create_dir_all(path.parent()?).unwrap();
        std::fs::write(path, made).unwrap();
        return None;
    }
    let name = path.strip_prefix(folder()).unwrap_or(path).display();
    if kept.is_empty() {
        return Some(format!("{name} is not kept yet: UPDATE_GOLDEN=1 keeps what was made"));
    }
    Some(format!(
        "{name} (- as kept, + as made; UPDATE_GOLDEN=1 keeps what was made)\n{}",
        diff::show(&kept, made)
    ))
}

fn check(wire: &str) {
    let place = WIRES.iter().position(|known| known.name == wire).unwrap();
    let made = run::of(place);
    let mut faults = made.faults.clone();
    let out = folder().join("out").join(wire);
    for (file, text) in &made.files {
        faults.extend(keep(&out.join(file), text));
    }
    for old in std::fs::read_dir(&out).into_iter().flatten().flatten() {
        let name = old.file_name().to_string_lossy().into_owned();
        if made.files.contains_key(&name) {
            continue;
        }
        if is_update() {
            std::fs::remove_file(old.path()).unwrap();
        } else {
            faults.push(format!("out/{wire}/{name}: nothing makes it any more"));
        }
    }
    assert!(faults.is_empty(), "{} faults\n\n{}", faults.len(), faults.join("\n\n"));
}

macro_rules! wires {
    ($($wire:ident)+) => {
        $(
            #[test]
            fn $wire() {
                check(stringify!($wire));
            }
        )+

        #[test]
        fn every_wire_has_a_test() {
            let tested = [$(stringify!($wire)),+];
            assert_eq!(WIRES.map(|wire| wire.name), tested);
        }
    };
}

wires! { openai completions responses anthropic gemini vertex bedrock cohere }

#[test]
fn the_page_says_what_is_so() {
    let made: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..WIRES.len())
            .map(|place| scope.spawn(move || run::of(place)))
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/conformance.md");
    let fault = keep(&path, &page::print(&made));
    assert!(fault.is_none(), "{}", fault.unwrap_or_default());
}
