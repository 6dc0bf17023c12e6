//! Geometry of the bar chart: figures in, rectangles out.
//!
//! The picture is stretched to its box, so its units are free; labels are HTML around it and keep their size on a
//! narrow screen. That is why labels stand at even fractions only: they need no position of their own.

use switchyard_api::{Range, Timestamp, Traffic, TrafficPoint};

/// Width of the picture, in its own units.
pub const WIDTH: f64 = 1_000.0;
/// Height of the picture, in its own units.
pub const HEIGHT: f64 = 160.0;

/// Part of a bar's step that the bar fills.
const FILL: f64 = 0.86;
/// A count that is not zero is never thinner than this.
const LEAST: f64 = 1.5;

/// One bar: what was answered below, what failed on top of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub x: f64,
    pub width: f64,
    pub answered: Extent,
    pub failed: Extent,
}

/// Where a part of a bar begins, from the top, and how high it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    pub y: f64,
    pub height: f64,
}

/// Everything to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    pub bars: Vec<Bar>,
    /// From the top down, evenly spaced, ending at zero.
    pub rows: Vec<u64>,
    /// From left to right, evenly spaced.
    pub columns: Vec<String>,
}

impl Plot {
    /// How far down each of the rows is.
    pub fn grid(&self) -> impl Iterator<Item = f64> + use<> {
        let last = self.rows.len().max(2) - 1;
        (0..=last).map(move |n| round(n as f64 / last as f64 * HEIGHT))
    }
}

/// Lays out a range of traffic.
pub fn plot(traffic: &Traffic) -> Plot {
    let peak = traffic.points.iter().map(total).max().unwrap_or(0);
    let rows = rows(peak);
    let top = rows.first().copied().unwrap_or(1);
    let step = WIDTH / traffic.points.len().max(1) as f64;
    let bars = traffic
        .points
        .iter()
        .enumerate()
        .map(|(n, point)| bar(n, point, step, top))
        .collect();
    Plot {
        bars,
        rows,
        columns: columns(traffic),
    }
}

const fn total(point: &TrafficPoint) -> u64 {
    point.answered + point.failed
}

fn bar(n: usize, point: &TrafficPoint, step: f64, top: u64) -> Bar {
    let height = |n: u64| {
        if n == 0 {
            0.0
        } else {
            (n as f64 / top as f64 * HEIGHT).max(LEAST)
        }
    };
    let (answered, failed) = (height(point.answered), height(point.failed));
    Bar {
        x: round(step.mul_add(n as f64, step * (1.0 - FILL) / 2.0)),
        width: round(step * FILL),
        answered: Extent {
            y: round(HEIGHT - answered),
            height: round(answered),
        },
        failed: Extent {
            y: round(HEIGHT - answered - failed),
            height: round(failed),
        },
    }
}

/// Hundredths: enough for any screen, and the same characters on both sides.
fn round(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

/// At most four even, round steps, up to a top that no bar reaches over.
fn rows(peak: u64) -> Vec<u64> {
    let powers = (0..19).map(|power| 10_u64.pow(power));
    let mut steps = powers.flat_map(|power| [power, 2 * power, 5 * power]);
    let step = steps.find(|step| peak.div_ceil(*step) <= 4).unwrap_or(peak);
    let count = peak.div_ceil(step).max(1);
    (0..=count).rev().map(|n| n.saturating_mul(step)).collect()
}

/// Four even steps of time from the first bar's start to the last bar's end.
fn columns(traffic: &Traffic) -> Vec<String> {
    let (Some(first), Some(last)) = (traffic.points.first(), traffic.points.last()) else {
        return Vec::new();
    };
    let (from, to) = (first.start.0, last.start.0 + traffic.bucket_minutes * 60_000);
    let label = |at| match traffic.range {
        Range::Days7 => Timestamp(at).date().chars().skip(5).collect(),
        Range::Minutes15 | Range::Hour1 | Range::Hours24 => Timestamp(at).minute(),
    };
    (0..=4).map(|n| label(from + (to - from) * n / 4)).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use switchyard_api::Summary;

    pub fn traffic(counts: &[(u64, u64)]) -> Traffic {
        let start = |n: i64| Timestamp(1_796_004_000_000 + n * 60_000);
        let point = |(n, &(answered, failed))| TrafficPoint {
            start: start(i64::try_from(n).unwrap()),
            answered,
            failed,
            prompt_tokens: 0,
            completion_tokens: 0,
        };
        Traffic {
            range: Range::Hour1,
            as_of: start(0),
            bucket_minutes: 1,
            points: counts.iter().enumerate().map(point).collect(),
            now: Summary::default(),
            before: Summary::default(),
        }
    }

    #[test]
    fn bars_stack_from_the_ground_and_one_failure_stays_visible() {
        let plot = plot(&traffic(&[(100, 0), (50, 50), (0, 0), (98, 1)]));
        assert_eq!(plot.rows, [100, 50, 0]);
        let tops: Vec<_> = plot
            .bars
            .iter()
            .map(|bar| (bar.answered.y, bar.failed.y, bar.failed.height))
            .collect();
        assert_eq!(
            tops,
            [(0.0, 0.0, 0.0), (80.0, 0.0, 80.0), (160.0, 160.0, 0.0), (3.2, 1.6, 1.6)]
        );
        assert_eq!((plot.bars[1].x, plot.bars[1].width), (267.5, 215.0));
    }

    #[test]
    fn the_axis_ends_on_a_round_number_above_every_bar() {
        let tops: Vec<_> = [0, 1, 2, 3, 11, 953, 1_210, 57_204, u64::MAX]
            .into_iter()
            .map(|peak| rows(peak)[0])
            .collect();
        assert_eq!(tops, [1, 1, 2, 3, 15, 1_000, 1_500, 60_000, u64::MAX]);
        assert_eq!(rows(1_210), [1_500, 1_000, 500, 0]);
    }

    #[test]
    fn times_run_from_the_first_start_to_the_last_end() {
        assert_eq!(
            plot(&traffic(&[(0, 0); 60])).columns,
            ["02:00", "02:15", "02:30", "02:45", "03:00"]
        );
        assert_eq!(plot(&traffic(&[])).columns, Vec::<String>::new());
    }
}
