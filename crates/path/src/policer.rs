//! A token bucket that drops.

use units::{Bytes, Instant};

use crate::config::Policer;
use crate::server::{NANOBITS_PER_BYTE, nanobits};

/// RFC 2697's committed bucket, in color-blind mode and with no second bucket: tokens are bytes of IP packets, without
/// link-layer overhead. It starts full. Counted in 10^-9 bit, of which `rate` arrive each nanosecond, so nothing is rounded.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    rate: u64,
    depth: u128,
    level: u128,
    filled: Instant,
}

impl TokenBucket {
    pub(crate) fn new(policer: &Policer) -> Self {
        let depth = u128::from(policer.burst.as_u64()) * u128::from(NANOBITS_PER_BYTE);
        Self { rate: policer.rate.as_bps(), depth, level: depth, filled: Instant::ZERO }
    }

    /// Whether a packet of this size passes at `now`; takes its tokens if so.
    pub(crate) fn admits(&mut self, now: Instant, size: Bytes) -> bool {
        let earned = u128::from(now.since(self.filled).as_nanos()) * u128::from(self.rate);
        self.level = self.depth.min(self.level + earned);
        self.filled = now;
        match self.level.checked_sub(u128::from(nanobits(size.as_u64()))) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }
}
