//! The yard as markup. Geometry stands in attributes and looks in classes: the policy allows no `style`.

use super::yard::{Fate, Piece, Run, Track, WIDTH, Yard};
use crate::ui::state::Mark;
use leptos::prelude::*;

/// Height of a track, in its own units; the line runs through its middle.
const HEIGHT: f64 = 16.0;
/// Width of a buffer stop, and of the mark of the first token.
const STOP: f64 = 3.0;

/// The picture, read by a screen reader as a table of candidate, timing and reason.
#[component]
pub fn YardView(yard: Yard) -> impl IntoView {
    let tracks: Vec<_> = yard.tracks.into_iter().map(track).collect();
    let ticks: Vec<_> = yard
        .ticks
        .into_iter()
        .map(|tick| view! { <span>{tick}</span> }.into_any())
        .collect();
    let scale = (!ticks.is_empty()).then(|| {
        view! { <div class="scale" aria-hidden="true"><div class="axis"></div><div class="axis">{ticks}</div><div class="axis"></div></div> }.into_any()
    });
    view! {
        <div class="yard" role="table" aria-label=yard.label>
            {tracks}
            {scale}
        </div>
    }
}

fn track(track: Track) -> AnyView {
    let (mark, fate) = match track.fate {
        Fate::Chosen => (Some(Mark::Ok), "answered: "),
        Fate::Cut => (Some(Mark::Warn), "answered in part: "),
        Fate::Failed => (Some(Mark::Bad), "failed: "),
        Fate::Planned => (Some(Mark::Ok), ""),
        Fate::NotNeeded | Fate::LeftOut | Fate::Reserve => (None, ""),
    };
    let out = matches!(track.fate, Fate::NotNeeded | Fate::LeftOut);
    let name = if out { "name out" } else { "name" };
    let turn = track
        .turn
        .map(|turn| view! { <span class="tag">{turn}</span> }.into_any());
    let mark = mark.map(|mark| view! { <span class=mark.class()></span> }.into_any());
    view! {
        <div role="row">
            <div role="rowheader" class=name>{turn}{mark}{track.target}</div>
            <div role="cell" class="track" inner_html=picture(&track.runs)></div>
            <div role="cell" class="why"><span class="sr">{fate}</span>{track.why}</div>
        </div>
    }
    .into_any()
}

/// The runs of a track. Numbers alone, so there is nothing to escape.
fn picture(runs: &[Run]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let shapes: String = runs.iter().map(shape).collect();
    format!(
        "<svg class=\"runs\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{shapes}</svg>"
    )
}

fn shape(Run { piece, x, width }: &Run) -> String {
    let middle = HEIGHT / 2.0;
    let end = x + width;
    match piece {
        Piece::Wait => format!("<line class=\"wait\" x1=\"{x}\" x2=\"{end:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>"),
        Piece::First => format!("<rect class=\"first\" x=\"{x}\" y=\"1\" width=\"{STOP}\" height=\"14\"/>"),
        Piece::Planned => {
            format!("<rect class=\"planned\" x=\"{x}\" y=\"5\" width=\"{width}\" height=\"6\"/>")
        }
        Piece::Reserve => {
            format!("<line class=\"reserve\" x1=\"{x}\" x2=\"{end}\" y1=\"{middle}\" y2=\"{middle}\"/>")
        }
        Piece::Flow => format!("<rect class=\"flow\" x=\"{x}\" y=\"5\" width=\"{width}\" height=\"6\"/>"),
        Piece::Failed => format!(
            "<rect class=\"failed\" x=\"{x}\" y=\"5\" width=\"{width}\" height=\"6\"/>\
             <rect class=\"failed\" x=\"{stop:.1}\" y=\"0\" width=\"{STOP}\" height=\"{HEIGHT}\"/>",
            stop = end - STOP
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_ends_at_its_buffer_stop() {
        let failed = Run {
            piece: Piece::Failed,
            x: 100.0,
            width: 50.5,
        };
        assert_eq!(
            shape(&failed),
            "<rect class=\"failed\" x=\"100\" y=\"5\" width=\"50.5\" height=\"6\"/>\
             <rect class=\"failed\" x=\"147.5\" y=\"0\" width=\"3\" height=\"16\"/>"
        );
    }
}
