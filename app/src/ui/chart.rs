//! Requests over time as stacked bars: a picture with a sentence for those who cannot see it, and a table behind it.
//!
//! The whole figure is written as text. As components its several hundred shapes and cells would each be walked when the
//! page is taken over, for nothing: none of them ever reacts. Only numbers and times stand in it, so there is nothing to
//! escape, and geometry stands in SVG attributes, because the policy allows no `style`.

use crate::ui::{
    format,
    plot::{self, Bar, Extent, Plot},
};
use leptos::prelude::*;
use std::fmt::Write;
use switchyard_api::{Traffic, TrafficPoint};

/// The chart of a range of traffic.
#[component]
pub fn Chart(traffic: Traffic) -> impl IntoView {
    view! { <figure class="plot" inner_html=figure(&traffic)></figure> }
}

fn figure(traffic: &Traffic) -> String {
    let plot = plot::plot(traffic);
    let spans = |labels: Vec<String>| {
        labels
            .iter()
            .map(|label| format!("<span>{label}</span>"))
            .collect::<String>()
    };
    let rows = spans(plot.rows.iter().map(|n| format::count(*n)).collect());
    let picture = picture(traffic, &plot);
    let columns = spans(plot.columns);
    let table = table(&traffic.points);
    format!(
        "<div class=\"rows\" aria-hidden=\"true\">{rows}</div>{picture}\
         <div class=\"columns\" aria-hidden=\"true\">{columns}</div><div class=\"sr\">{table}</div>"
    )
}

fn picture(traffic: &Traffic, plot: &Plot) -> String {
    let (width, height, sentence) = (plot::WIDTH, plot::HEIGHT, sentence(traffic));
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{sentence}\">"
    );
    for y in plot.grid() {
        put(
            &mut svg,
            format_args!("<line class=\"grid\" x1=\"0\" x2=\"{width}\" y1=\"{y}\" y2=\"{y}\"/>"),
        );
    }
    for (bar, point) in plot.bars.iter().zip(&traffic.points) {
        let (at, answered, failed) = (
            point.start.minute(),
            format::count(point.answered),
            format::count(point.failed),
        );
        put(
            &mut svg,
            format_args!("<g><title>{at} UTC: {answered} answered, {failed} failed</title>"),
        );
        rect(&mut svg, "c1", bar, bar.answered);
        rect(&mut svg, "bad", bar, bar.failed);
        svg.push_str("</g>");
    }
    svg + "</svg>"
}

fn rect(svg: &mut String, class: &str, Bar { x, width, .. }: &Bar, Extent { y, height }: Extent) {
    if height > 0.0 {
        let rect = format_args!("<rect class=\"{class}\" x=\"{x}\" width=\"{width}\" y=\"{y}\" height=\"{height}\"/>");
        put(svg, rect);
    }
}

/// What the picture shows, in words.
fn sentence(traffic: &Traffic) -> String {
    let range = format::range_name(traffic.range);
    let failed: u64 = traffic.points.iter().map(|point| point.failed).sum();
    let answered: u64 = traffic.points.iter().map(|point| point.answered).sum();
    let all = |point: &&TrafficPoint| point.answered + point.failed;
    match traffic.points.iter().max_by_key(all) {
        Some(peak) if answered + failed > 0 => format!(
            "Requests over {range}: {} answered, {} failed. The most, {}, came at {} UTC.",
            format::count(answered),
            format::count(failed),
            format::count(all(&peak)),
            peak.start.minute()
        ),
        _ => format!("Requests over {range}: none."),
    }
}

/// The same figures to read one by one.
fn table(points: &[TrafficPoint]) -> String {
    let mut rows = String::new();
    for point in points {
        let (date, minute) = (point.start.date(), point.start.minute());
        let (answered, failed) = (format::count(point.answered), format::count(point.failed));
        put(
            &mut rows,
            format_args!("<tr><th scope=\"row\">{date} {minute}</th><td>{answered}</td><td>{failed}</td></tr>"),
        );
    }
    let head = ["From", "Answered", "Failed"]
        .map(|name| format!("<th scope=\"col\">{name}</th>"))
        .concat();
    format!(
        "<table><caption>Requests over time, UTC</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
}

/// Writing to a `String` cannot fail.
fn put(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::plot::tests::traffic;

    #[test]
    fn the_picture_is_the_figures_and_says_them() {
        let figure = figure(&traffic(&[(100, 0), (50, 50)]));
        let bars = "<g><title>02:01 UTC: 50 answered, 50 failed</title>\
                    <rect class=\"c1\" x=\"535\" width=\"430\" y=\"80\" height=\"80\"/>\
                    <rect class=\"bad\" x=\"535\" width=\"430\" y=\"0\" height=\"80\"/></g>";
        assert!(figure.contains(bars), "{figure}");
        let sentence = "Requests over 1 hour: 150 answered, 50 failed. The most, 100, came at 02:01 UTC.";
        assert!(figure.contains(sentence), "{figure}");
        assert!(
            figure.contains("<th scope=\"row\">2026-11-30 02:00</th><td>100</td><td>0</td>"),
            "{figure}"
        );
        assert!(!figure.contains("style"), "{figure}");
    }

    #[test]
    fn no_traffic_is_said_too() {
        assert_eq!(sentence(&traffic(&[(0, 0)])), "Requests over 1 hour: none.");
    }
}
