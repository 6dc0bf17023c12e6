//! One `check`, a table of worlds.

#![expect(
    clippy::needless_pass_by_value,
    reason = "an expectation is written where it is handed over"
)]

use super::{Facts, LeftOut, Serves, TargetId, World, strategy};
use crate::config::Mode;
use expect_test::{Expect, expect};
use rand::{SeedableRng, rngs::StdRng};

/// `a=m,n` serves models m and n; `b=*` serves anything.
struct Table(Vec<(String, Vec<String>)>);

impl Table {
    fn parse(text: &str) -> Self {
        let target = |part: &str| {
            let (name, models) = part.split_once('=').unwrap();
            (name.to_owned(), models.split(',').map(str::to_owned).collect())
        };
        Self(text.split_whitespace().map(target).collect())
    }
}

impl World for Table {
    fn targets(&self) -> usize {
        self.0.len()
    }

    fn serves(&self, TargetId(i): TargetId, model: &str) -> Serves {
        match &self.0[i].1 {
            any if any.iter().any(|m| m == "*") => Serves::Anything,
            listed if listed.iter().any(|m| m == model) => Serves::Listed,
            _ => Serves::No,
        }
    }
}

#[track_caller]
fn check(mode: Mode, world: &str, model: &str, want: Expect) {
    let world = Table::parse(world);
    let order = strategy(mode).order(&Facts { model }, &world, &mut StdRng::seed_from_u64(1));
    let name = |TargetId(i): TargetId| world.0[i].0.clone();
    let mut words: Vec<String> = order.targets.into_iter().map(name).collect();
    words.extend(order.left_out.into_iter().map(|(target, why)| {
        let why = match why {
            LeftOut::Model => "model",
            LeftOut::NotNamed => "not named",
        };
        format!("-{}({why})", name(target))
    }));
    want.assert_eq(&words.join(" "));
}

#[test]
fn single_is_the_first_target_and_no_other() {
    check(Mode::Single, "a=m b=m", "m", expect!["a -b(not named)"]);
    check(Mode::Single, "a=n b=m", "m", expect!["-a(model) -b(not named)"]);
    check(Mode::Single, "a=*", "m", expect!["a"]);
}

#[test]
fn fallback_is_every_target_that_serves_the_model_in_the_order_written() {
    check(Mode::Fallback, "a=m b=n c=*", "m", expect!["a c -b(model)"]);
    check(Mode::Fallback, "a=n b=n", "m", expect!["-a(model) -b(model)"]);
    check(Mode::Fallback, "b=m a=m", "m", expect!["b a"]);
    check(Mode::Fallback, "any=* a=n b=m", "m", expect!["b any -a(model)"]);
    check(Mode::Fallback, "one=* two=*", "m", expect!["one two"]);
}
