//! Limits per address.
//!
//! Three of them. `RATE_LIMIT_RPS`, when it is set, holds for every request as the reference has it. Failed authentication
//! has a budget of its own: an address that has spent it is not looked up any more for a second, right or wrong, so that
//! guessing learns nothing and reaches no database; keys that are known already go on. And signing in has its limit.
//!
//! An IPv6 host has as many addresses as it likes, so there the network of 64 bits counts as one.

use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use quick_cache::sync::Cache;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

type PerAddress = RateLimiter<IpAddr, DashMapStateStore<IpAddr>, DefaultClock>;

/// Beyond this many addresses those are forgotten whose budget is whole again.
const MOST_ADDRESSES: usize = 100_000;
const DEFAULT_RPS: u32 = 20;
const DEFAULT_BURST: u32 = 40;
/// How long an address without budget is not looked up.
const PAUSE: Duration = Duration::from_secs(1);
const SIGN_INS_PER_MINUTE: u32 = 10;
const SIGN_IN_BURST: u32 = 20;

/// `RATE_LIMIT_RPS` and `RATE_LIMIT_BURST`, as far as they are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) rps: Option<u32>,
    pub(crate) burst: Option<u32>,
}

#[derive(Clone)]
pub(crate) struct Throttles {
    /// Every request.
    all: Option<Arc<PerAddress>>,
    /// Failed authentication.
    failures: Arc<PerAddress>,
    /// Addresses that have spent that budget, and until when.
    spent: Arc<Cache<IpAddr, Instant>>,
    sign_ins: Arc<PerAddress>,
}

impl Throttles {
    pub(crate) fn new(limits: Limits) -> Self {
        let burst = nonzero(limits.burst.unwrap_or(DEFAULT_BURST));
        let all = limits.rps.and_then(NonZeroU32::new);
        let sign_ins = Quota::per_minute(nonzero(SIGN_INS_PER_MINUTE)).allow_burst(nonzero(SIGN_IN_BURST));
        let failures = Quota::per_second(nonzero(DEFAULT_RPS)).allow_burst(burst);
        Self {
            all: all.map(|rps| Arc::new(RateLimiter::keyed(Quota::per_second(rps).allow_burst(burst)))),
            failures: Arc::new(RateLimiter::keyed(failures)),
            spent: Arc::new(Cache::new(MOST_ADDRESSES)),
            sign_ins: Arc::new(RateLimiter::keyed(sign_ins)),
        }
    }

    /// Counts a request; true when it is one too many.
    pub(crate) fn refuses(&self, ip: IpAddr) -> bool {
        self.all.as_ref().is_some_and(|limiter| over(limiter, ip))
    }

    /// Whether this address has spent its budget of failed authentication. Counts nothing.
    pub(crate) fn is_spent(&self, ip: IpAddr) -> bool {
        self.spent.get(&network(ip)).is_some_and(|until| Instant::now() < until)
    }

    /// Counts a failed authentication; true when it is one too many.
    pub(crate) fn refuses_failure(&self, ip: IpAddr) -> bool {
        let over = over(&self.failures, ip);
        if over {
            self.spent.insert(network(ip), Instant::now() + PAUSE);
        }
        over
    }

    /// Counts an attempt to sign in; true when it is one too many.
    pub(crate) fn refuses_sign_in(&self, ip: IpAddr) -> bool {
        over(&self.sign_ins, ip)
    }
}

fn over(limiter: &PerAddress, ip: IpAddr) -> bool {
    if limiter.len() > MOST_ADDRESSES {
        limiter.retain_recent();
    }
    limiter.check_key(&network(ip)).is_err()
}

/// What counts as one address.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

fn nonzero(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::{Limits, Throttles};

    #[test]
    fn an_address_that_has_spent_its_budget_is_not_looked_up() {
        let throttles = Throttles::new(Limits {
            rps: None,
            burst: Some(2),
        });
        let (guesser, neighbour, other) = (
            "2001:db8::1".parse().unwrap(),
            "2001:db8::2".parse().unwrap(),
            "2001:db8:0:1::1".parse().unwrap(),
        );
        while !throttles.refuses_failure(guesser) {
            assert!(!throttles.is_spent(guesser));
        }
        assert!(throttles.is_spent(guesser));
        assert!(throttles.is_spent(neighbour), "the same network");
        assert!(!throttles.is_spent(other));
        assert!(!throttles.refuses(guesser), "requests as such are not limited");
    }
}
