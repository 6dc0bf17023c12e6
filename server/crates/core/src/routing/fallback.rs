//! Every target that serves the model, in the order written.

use super::{Facts, LeftOut, Order, Strategy, TargetId, World};
use rand::RngCore;

pub(super) struct Fallback;

impl Strategy for Fallback {
    fn order(&self, facts: &Facts<'_>, world: &dyn World, _: &mut dyn RngCore) -> Order {
        let mut order = Order::default();
        for target in (0..world.targets()).map(TargetId) {
            if world.serves(target, facts.model) {
                order.targets.push(target);
            } else {
                order.left_out.push((target, LeftOut::Model));
            }
        }
        order
    }
}
