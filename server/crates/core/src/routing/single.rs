//! The first target and no other: somebody named it on purpose.

use super::{Facts, LeftOut, Order, Serves, Strategy, TargetId, World};
use rand::RngCore;

pub(super) struct Single;

impl Strategy for Single {
    fn order(&self, facts: &Facts<'_>, world: &dyn World, _: &mut dyn RngCore) -> Order {
        let first = TargetId(0);
        let mut order = Order::default();
        if world.targets() > 0 && world.serves(first, facts.model) != Serves::No {
            order.targets.push(first);
        } else if world.targets() > 0 {
            order.left_out.push((first, LeftOut::Model));
        }
        order
            .left_out
            .extend((1..world.targets()).map(|i| (TargetId(i), LeftOut::NotNamed)));
        order
    }
}
