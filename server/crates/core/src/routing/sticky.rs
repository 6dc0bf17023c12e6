//! Stickiness without state: a caller's own value, hashed, takes the place of the dice.
//!
//! Every replica computes the same, and none has to remember. A pin lasts until the window of `ttl` ends: windows are
//! counted from the Unix epoch, so everybody moves at once, at a boundary.

use super::Facts;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sticky {
    pub on: StickyOn,
    /// Absent: for ever.
    pub ttl: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StickyOn {
    /// The body's `user`.
    User,
    /// `X-Session-ID`.
    Session,
    /// A header, by lower-case name.
    Header(String),
}

impl Sticky {
    /// The caller's point in [0, 1); `None` when the request says nothing to stick to. Each route has points of its own:
    /// if all had the same, those whom one route sends to a nested one would all fall on the same side of it again.
    pub(super) fn point(&self, facts: &Facts<'_>, route: &str) -> Option<f64> {
        let value = match &self.on {
            StickyOn::User => facts.user,
            StickyOn::Session => facts.session,
            StickyOn::Header(name) => facts.headers.value(name),
        };
        let value = value.filter(|value| !value.is_empty())?;
        let window = self.ttl.map_or(0, |ttl| {
            let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX).max(1);
            facts.now_ms.div_euclid(ttl)
        });
        let bytes = [route.as_bytes(), &[0], value.as_bytes(), &window.to_le_bytes()].concat();
        Some(unit(hash(&bytes)))
    }
}

/// FNV-1a over the bytes, then a finaliser that lets every bit reach every other: FNV alone leaves neighbours together.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let fnv = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}
