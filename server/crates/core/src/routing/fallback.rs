//! Every target that serves the model, in the order written.
//!
//! Targets that list the model come before those that serve whatever they are asked for: the latter may well not have it, and
//! an upstream that does not know a model ends the walk.

use super::{Facts, LeftOut, Order, Serves, Strategy, TargetId, World};
use rand::RngCore;

pub(super) struct Fallback;

impl Strategy for Fallback {
    fn order(&self, facts: &Facts<'_>, world: &dyn World, _: &mut dyn RngCore) -> Order {
        let mut order = Order::default();
        let mut anything = Vec::new();
        for target in (0..world.targets()).map(TargetId) {
            match world.serves(target, facts.model) {
                Serves::Listed => order.targets.push(target),
                Serves::Anything => anything.push(target),
                Serves::No => order.left_out.push((target, LeftOut::Model)),
            }
        }
        order.targets.append(&mut anything);
        order
    }
}
