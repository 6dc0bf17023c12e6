//! SQL integers are signed and ours are not. Counters stop at the limit instead of wrapping round.

pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// The minute that an instant falls into, counted from the Unix epoch.
pub(crate) const fn minute_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(60_000)
}
