//! Geometry of the yard: one request drawn as tracks.
//!
//! Every candidate is a track, in the order the strategy gave. What was tried is drawn in time: waiting for the first
//! token, then flow; a failed attempt ends at a buffer stop. A track that was not used says why. The layout is pure, so
//! it is tested as numbers and the server and the browser draw the same picture.

use crate::ui::format;
use switchyard_api::{Attempt, LogDetail, Verdict};

/// Width of a track, in its own units.
pub const WIDTH: f64 = 1_000.0;

/// No piece is drawn thinner than this: a refusal in a millisecond is still an attempt.
const LEAST: f64 = 4.0;

/// What a piece of track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Sent, and no content yet.
    Wait,
    /// Content arrives.
    Flow,
    /// An attempt that failed, with a buffer stop at its end.
    Failed,
}

/// A stretch of a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub piece: Piece,
    pub x: f64,
    pub width: f64,
}

/// What became of a candidate, as its mark shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Chosen,
    Failed,
    NotNeeded,
    LeftOut,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    pub target: String,
    pub fate: Fate,
    pub runs: Vec<Run>,
    pub why: String,
}

/// The picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Yard {
    pub tracks: Vec<Track>,
    /// Evenly spaced from zero to the whole.
    pub ticks: Vec<String>,
}

/// Lays out a request.
pub fn yard(detail: &LogDetail) -> Yard {
    let whole = detail
        .attempts
        .iter()
        .map(|a| a.started_ms + a.latency_ms)
        .fold(detail.row.duration_ms, f64::max);
    let whole = if whole > 0.0 { whole } else { 1.0 };
    let named = detail
        .verdicts
        .iter()
        .map(|verdict| track(verdict, &detail.attempts, whole));
    // An attempt without a verdict should not be; if it is, it is shown rather than lost.
    let unnamed = detail
        .attempts
        .iter()
        .filter(|a| !detail.verdicts.iter().any(|v| v.target == a.target));
    let mut tracks: Vec<Track> = named.collect();
    for attempt in unnamed {
        if !tracks.iter().any(|track| track.target == attempt.target) {
            tracks.push(track(&stand_in(attempt), &detail.attempts, whole));
        }
    }
    let ticks = [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| {
        if part > 0.0 {
            format::millis(whole * part)
        } else {
            "0".to_owned()
        }
    });
    Yard {
        tracks,
        ticks: ticks.into(),
    }
}

fn stand_in(attempt: &Attempt) -> Verdict {
    let state = if attempt.outcome == "success" {
        "chosen"
    } else {
        "failed"
    };
    Verdict {
        target: attempt.target.clone(),
        state: state.to_owned(),
        reason: attempt.outcome.clone(),
        until: None,
    }
}

fn track(verdict: &Verdict, attempts: &[Attempt], whole: f64) -> Track {
    let mine: Vec<&Attempt> = attempts.iter().filter(|a| a.target == verdict.target).collect();
    let fate = match verdict.state.as_str() {
        "chosen" => Fate::Chosen,
        "failed" => Fate::Failed,
        "not_needed" => Fate::NotNeeded,
        _ => Fate::LeftOut,
    };
    let runs = mine.iter().flat_map(|attempt| runs(attempt, whole)).collect();
    Track {
        target: verdict.target.clone(),
        fate,
        runs,
        why: why(fate, verdict, &mine),
    }
}

/// The one sentence on a track's right.
fn why(fate: Fate, verdict: &Verdict, mine: &[&Attempt]) -> String {
    let mut text = match (fate, mine.last()) {
        (Fate::Chosen, Some(last)) => match last.ttft_ms {
            Some(first) => {
                let rest = (last.latency_ms - first).max(0.0);
                format!(
                    "first token after {}, then {}",
                    format::millis(first),
                    format::millis(rest)
                )
            }
            None => format!("answered in {}", format::millis(last.latency_ms)),
        },
        (Fate::LeftOut, _) => format!("left out: {}", verdict.reason),
        (Fate::NotNeeded, _) if verdict.reason.is_empty() => "not needed".to_owned(),
        _ => verdict.reason.clone(),
    };
    if mine.len() > 1 {
        text = format!("{} attempts; {text}", mine.len());
    }
    if let Some(until) = verdict.until {
        text = format!("{text}, until {}", format::clock(until));
    }
    text
}

fn runs(attempt: &Attempt, whole: f64) -> Vec<Run> {
    let run = |piece, from: f64, to: f64| {
        let x = (from / whole * WIDTH).clamp(0.0, WIDTH - LEAST);
        Run {
            piece,
            x: round(x),
            width: round((to / whole * WIDTH - x).clamp(LEAST, WIDTH - x)),
        }
    };
    let (from, to) = (attempt.started_ms, attempt.started_ms + attempt.latency_ms);
    match (attempt.outcome.as_str(), attempt.ttft_ms) {
        ("success", Some(first)) => vec![run(Piece::Wait, from, from + first), run(Piece::Flow, from + first, to)],
        ("success", None) => vec![run(Piece::Flow, from, to)],
        // Content arrived and then the line was cut: the flow stays visible, the stop is at its end.
        (_, Some(first)) => vec![
            run(Piece::Wait, from, from + first),
            run(Piece::Flow, from + first, to),
            run(Piece::Failed, to, to),
        ],
        (_, None) => vec![run(Piece::Failed, from, to)],
    }
}

fn round(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

#[cfg(test)]
#[path = "yard/tests.rs"]
mod tests;
