//! `strategy`: how targets are ordered.

use super::Notices;
use super::reader::{Block, Faults, closest};
use super::targets::Target;

/// Modes that other versions know. They are refused here rather than read as something else.
const LATER: [&str; 7] = [
    "load-balance",
    "loadbalance",
    "least-latency",
    "cost-optimized",
    "conditional",
    "content-based",
    "ab-test",
];

/// A failure with one of these is the request's own fault on every target.
const NEVER_FAILOVER: [u16; 5] = [400, 401, 403, 404, 422];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The first target and no other.
    Single,
    /// All targets in the order written.
    Fallback,
}

impl Mode {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Fallback => "fallback",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub mode: Mode,
    /// Statuses that move on to the next target, besides transport failures, 408, 429 and 5xx.
    pub failover_on_status_codes: Vec<u16>,
}

pub(super) fn read(root: &mut Block<'_>, targets: &[Target], faults: &mut Faults, notices: &mut Notices) -> Strategy {
    let mut strategy = Strategy {
        mode: Mode::Single,
        failover_on_status_codes: Vec::new(),
    };
    let Some(node) = root.take("strategy") else {
        return strategy;
    };
    let Some(mut block) = Block::of(node, "strategy", faults) else {
        return strategy;
    };
    if let Some(mode) = block.take("mode") {
        let written = block.text("mode", faults).unwrap_or_default();
        match written.as_str() {
            "single" | "" => strategy.mode = Mode::Single,
            "fallback" => strategy.mode = Mode::Fallback,
            later if LATER.contains(&later) => faults.add(
                "strategy.mode",
                mode.line,
                format!("\"{later}\" is not in this version yet; it routes \"single\" and \"fallback\""),
            ),
            unknown => {
                let hint = closest(unknown, &["single", "fallback"]).map_or_else(
                    || "use \"single\" or \"fallback\"".to_owned(),
                    |known| format!("did you mean \"{known}\"?"),
                );
                faults.add(
                    "strategy.mode",
                    mode.line,
                    format!("unknown strategy mode \"{unknown}\"; {hint}"),
                );
            }
        }
    }
    strategy.failover_on_status_codes = read_failover_statuses(&mut block, faults);
    for key in [
        "conditions",
        "content_conditions",
        "ab_variants",
        "unpriced_strategy",
        "sticky",
    ] {
        if let Some(node) = block.take(key) {
            let path = block.path_of(key);
            notices.warn(
                &path,
                node.line,
                format!("has no effect under mode \"{}\"", strategy.mode.as_str()),
            );
        }
    }
    if strategy.mode == Mode::Single && targets.len() > 1 {
        let unused: Vec<&str> = targets
            .iter()
            .skip(1)
            .map(|target| target.virtual_key.as_str())
            .collect();
        notices.warn(
            "strategy.mode",
            block.line,
            format!("\"single\" uses the first target only; unused: {}", unused.join(", ")),
        );
    }
    block.finish(faults);
    strategy
}

fn read_failover_statuses(block: &mut Block<'_>, faults: &mut Faults) -> Vec<u16> {
    let line = block
        .take("failover_on_status_codes")
        .map_or(block.line, |node| node.line);
    let statuses = block.statuses("failover_on_status_codes", faults);
    for status in statuses.iter().filter(|status| NEVER_FAILOVER.contains(status)) {
        let message =
            format!("{status} says that the request itself is wrong, on every target; remove it from the list");
        faults.add("strategy.failover_on_status_codes", line, message);
    }
    statuses
}
