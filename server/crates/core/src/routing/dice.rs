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
pub(super) fn shuffle(mut items: Vec<usize>, weight: impl Fn(usize) -> f64, rng: &mut dyn RngCore) -> Vec<usize> {
    let mut drawn = Vec::with_capacity(items.len());
    while !items.is_empty() {
        let weights: Vec<f64> = items.iter().map(|item| weight(*item)).collect();
        let Some(i) = draw(&weights, roll(rng)) else { break };
        drawn.push(items.remove(i));
    }
    drawn.append(&mut items);
    drawn
}
