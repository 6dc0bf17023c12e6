//! Draws, all from one number in [0, 1): so that a sticky number can take the dice's place.

use rand::{Rng, RngCore};

/// A fresh number in [0, 1).
pub(super) fn roll(rng: &mut dyn RngCore) -> f64 {
    rng.random_range(0.0..1.0)
}

/// The position in `weights` that `at` falls on; `None` when no weight is positive.
pub(super) fn draw(weights: &[f64], at: f64) -> Option<usize> {
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return None;
    }
    let mut left = at * total;
    let mut last = None;
    for (i, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        last = Some(i);
        left -= weight;
        if left < 0.0 {
            return last;
        }
    }
    // Rounding may leave a crumb at the very end.
    last
}

/// All of `items` in an order drawn by weight; those of weight 0 come last, as written.
///
/// Each draws how long it waits, the likelier short the greater its weight: who comes first is then as likely as a draw by
/// weight among all, who comes second as one among the others, and so on (exponential waiting times).
pub(super) fn shuffle(items: Vec<usize>, weight: impl Fn(usize) -> f64, rng: &mut dyn RngCore) -> Vec<usize> {
    let wait = |item| {
        let weight = weight(item);
        let drawn = if weight > 0.0 {
            -(1.0 - roll(rng)).ln() / weight
        } else {
            f64::INFINITY
        };
        (drawn, item)
    };
    let mut waits: Vec<(f64, usize)> = items.into_iter().map(wait).collect();
    waits.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    waits.into_iter().map(|(_, item)| item).collect()
}
