//! Limits per address.
//!
//! Three of them. `RATE_LIMIT_RPS`, when it is set, holds for every request as the reference has it. Unset, only calls that
//! fail authentication count, so that a busy back end is never refused by default. And signing in has a limit of its own.

use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

type PerAddress = RateLimiter<IpAddr, DashMapStateStore<IpAddr>, DefaultClock>;

/// More addresses than this are forgotten from the least recently refused on.
const MOST_ADDRESSES: usize = 100_000;
const DEFAULT_RPS: u32 = 20;
const DEFAULT_BURST: u32 = 40;
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
    failures: Option<Arc<PerAddress>>,
    sign_ins: Arc<PerAddress>,
}

impl Throttles {
    pub(crate) fn new(limits: Limits) -> Self {
        let burst = limits.burst.unwrap_or(DEFAULT_BURST);
        let limiter = |rps: u32| per_second(rps, burst).map(|quota| Arc::new(RateLimiter::keyed(quota)));
        let (all, failures) = match limits.rps {
            Some(rps) => (limiter(rps), None),
            None => (None, limiter(DEFAULT_RPS)),
        };
        let sign_ins = Quota::per_minute(nonzero(SIGN_INS_PER_MINUTE)).allow_burst(nonzero(SIGN_IN_BURST));
        Self {
            all,
            failures,
            sign_ins: Arc::new(RateLimiter::keyed(sign_ins)),
        }
    }

    /// Counts a request; true when it is one too many.
    pub(crate) fn refuses(&self, ip: IpAddr) -> bool {
        self.all.as_ref().is_some_and(|limiter| over(limiter, ip))
    }

    /// Counts a failed authentication; true when it is one too many.
    pub(crate) fn refuses_failure(&self, ip: IpAddr) -> bool {
        self.failures.as_ref().is_some_and(|limiter| over(limiter, ip))
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
    limiter.check_key(&ip).is_err()
}

/// `None` for a rate of zero: switched off.
fn per_second(rps: u32, burst: u32) -> Option<Quota> {
    let rps = NonZeroU32::new(rps)?;
    let period = Duration::from_secs(1) / rps.get();
    Some(Quota::with_period(period)?.allow_burst(nonzero(burst)))
}

fn nonzero(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN)
}
