//! A dry run as a yard: the targets that would be called, in order, then the rest with their reasons.

use crate::{
    pages::request::yard::{Fate, Piece, Run, Track, WIDTH, Yard, left_out},
    ui::format,
};
use switchyard_api::Explained;

pub fn yard(explained: &Explained) -> Yard {
    let planned = explained.order.iter().enumerate().map(|(before, target)| {
        let (fate, piece) = match before {
            0 => (Fate::Planned, Piece::Planned),
            _ => (Fate::Reserve, Piece::Reserve),
        };
        Track {
            turn: Some(before + 1),
            target: target.clone(),
            fate,
            runs: vec![Run {
                piece,
                x: 0.0,
                width: WIDTH,
            }],
            why: why(explained, before),
        }
    });
    let rest = explained
        .verdicts
        .iter()
        .filter(|verdict| !explained.order.contains(&verdict.target));
    let rest = rest.map(|verdict| Track {
        turn: None,
        target: verdict.target.clone(),
        fate: Fate::LeftOut,
        runs: Vec::new(),
        why: left_out(verdict),
    });
    Yard {
        label: "Candidates in order, and why",
        tracks: planned.chain(rest).collect(),
        ticks: Vec::new(),
    }
}

/// What a target would be asked for, and what its verdict adds.
fn why(explained: &Explained, place: usize) -> String {
    let when = if place == 0 {
        "called first"
    } else {
        "called if those before it fail"
    };
    let model = explained
        .upstream_models
        .get(place)
        .map(|model| format!(", asked for {model}"));
    let verdict = explained
        .verdicts
        .iter()
        .find(|verdict| verdict.target == explained.order[place]);
    // That it is in the order is said already; what speaks against it is not.
    let reason = verdict
        .filter(|verdict| verdict.reason.contains("although"))
        .map(|verdict| {
            let until = verdict.until.map(|until| format!(", until {}", format::clock(until)));
            format!("; {}{}", verdict.reason, until.unwrap_or_default())
        });
    [when, &model.unwrap_or_default(), &reason.unwrap_or_default()].concat()
}
