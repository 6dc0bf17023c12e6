//! Geometry of the yard: one request, or a dry run, drawn as tracks.
//!
//! Every candidate is a track: those that were tried in the order of their turns, then the rest. What was tried is drawn
//! in time: waiting for the first token, then flow; a failed attempt ends at a buffer stop. A track that was not used says
//! why. The layout is pure, so it is tested as numbers and the server and the browser draw the same picture.

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
    /// The first content: a mark between the two, of no width.
    First,
    /// Content arrives.
    Flow,
    /// An attempt that failed, with a buffer stop at its end.
    Failed,
    /// Where a call would go.
    Planned,
    /// Where it would go if that fails.
    Reserve,
}

/// A stretch of a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub piece: Piece,
    pub x: f64,
    pub width: f64,
}

/// What became of a candidate, as its mark shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    Chosen,
    /// It answered, and not to the end.
    Cut,
    Failed,
    NotNeeded,
    LeftOut,
    /// Of a dry run: it would be called.
    Planned,
    /// Of a dry run: it would be called if those before it failed.
    Reserve,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Its turn among those that were tried, or would be.
    pub turn: Option<usize>,
    pub target: String,
    pub fate: Fate,
    pub runs: Vec<Run>,
    pub why: String,
}

/// The picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Yard {
    pub label: &'static str,
    pub tracks: Vec<Track>,
    /// Evenly spaced from zero to the whole; none where nothing has been timed.
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
    // The record has them in the configuration's order.
    tracks.sort_by_key(|track| (track.turn.unwrap_or(usize::MAX), track.fate));
    let ticks = [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| {
        if part > 0.0 {
            format::millis(whole * part)
        } else {
            "0".to_owned()
        }
    });
    Yard {
        label: "Candidates in order, what was tried, and why",
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
    let whole_answer = mine.last().is_none_or(|last| last.outcome == "success");
    let fate = match verdict.state.as_str() {
        "chosen" if whole_answer => Fate::Chosen,
        "chosen" => Fate::Cut,
        "failed" => Fate::Failed,
        "not_needed" => Fate::NotNeeded,
        _ => Fate::LeftOut,
    };
    let runs = mine.iter().flat_map(|attempt| runs(attempt, whole)).collect();
    Track {
        turn: turn(&verdict.target, attempts),
        target: verdict.target.clone(),
        fate,
        runs,
        why: why(fate, verdict, &mine),
    }
}

/// When its turn came: after how many other targets it was first called.
fn turn(target: &str, attempts: &[Attempt]) -> Option<usize> {
    let mut called: Vec<&str> = Vec::new();
    for attempt in attempts {
        if !called.contains(&attempt.target.as_str()) {
            called.push(&attempt.target);
        }
    }
    called.iter().position(|this| *this == target).map(|before| before + 1)
}

/// The one sentence on a track's right.
fn why(fate: Fate, verdict: &Verdict, mine: &[&Attempt]) -> String {
    let text = match (fate, mine.last()) {
        (Fate::Chosen | Fate::Cut, Some(last)) => answered(last, mine.len()),
        (Fate::LeftOut, _) => left_out(verdict),
        (Fate::NotNeeded, _) if verdict.reason.is_empty() => "not needed".to_owned(),
        _ => verdict.reason.clone(),
    };
    match verdict.until {
        Some(until) if fate != Fate::LeftOut => format!("{text}, until {}", format::clock(until)),
        _ => text,
    }
}

/// How the last of a target's attempts went, which brought content.
fn answered(last: &Attempt, attempts: usize) -> String {
    let end = match last.outcome.as_str() {
        "success" => "then",
        "client_cancelled" => "cancelled by the client after another",
        _ => "cut off after another",
    };
    let text = match last.ttft_ms {
        Some(first) => {
            let rest = format::millis((last.latency_ms - first).max(0.0));
            format!("first token after {}, {end} {rest}", format::millis(first))
        }
        None => format!("answered in {}", format::millis(last.latency_ms)),
    };
    match attempts {
        0 | 1 => text,
        _ => format!("{attempts} attempts; {text}"),
    }
}

/// Why a target was not, or would not be, called.
pub fn left_out(verdict: &Verdict) -> String {
    let until = verdict.until.map(|until| format!(", until {}", format::clock(until)));
    format!("left out: {}{}", verdict.reason, until.unwrap_or_default())
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
    let mark = |at: f64| Run {
        piece: Piece::First,
        x: round((at / whole * WIDTH).clamp(0.0, WIDTH)),
        width: 0.0,
    };
    let (from, to) = (attempt.started_ms, attempt.started_ms + attempt.latency_ms);
    match (attempt.outcome.as_str(), attempt.ttft_ms) {
        ("success", Some(first)) => vec![
            run(Piece::Wait, from, from + first),
            run(Piece::Flow, from + first, to),
            mark(from + first),
        ],
        ("success", None) => vec![run(Piece::Flow, from, to)],
        // Content arrived and then the line was cut: the flow stays visible, the stop is at its end.
        (_, Some(first)) => vec![
            run(Piece::Wait, from, from + first),
            run(Piece::Flow, from + first, to),
            mark(from + first),
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
