//! Random Early Detection (Floyd and Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993) in bytes, with the gentle
//! slope that Floyd recommended in 2000: above the upper threshold the probability rises on to one at twice of it.

use units::{Duration, Instant, Rate};

use crate::config::Red;
use crate::random::{Stage, Stream};
use crate::server::nanobits;

/// Fractional bits of the average and of probabilities.
const FRACTION: u32 = 32;
const ONE: u128 = 1 << FRACTION;

/// What RED wants done with an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// Mark, or drop where that can't be.
    Signal,
}

/// The paper's algorithm; `avg` and `count` are its names.
#[derive(Debug)]
pub(crate) struct Average {
    red: Red,
    /// Averaged queue in bytes, times `ONE`.
    avg: u128,
    /// Packets since the last signal; `None` while the average is below the lower threshold.
    count: Option<u64>,
    idle_since: Instant,
    /// Size of a typical packet in bytes, for how many could have been sent while idle.
    typical: u64,
    stream: Stream,
}

impl Average {
    pub(crate) fn new(red: Red, typical: u64, seed: u64) -> Self {
        let stream = Stream::new(seed, Stage::Queue);
        Self { red, avg: 0, count: None, idle_since: Instant::ZERO, typical, stream }
    }

    /// The queue has become empty.
    pub(crate) fn idle(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// A packet arrives and finds `queue` bytes waiting or in service.
    pub(crate) fn judge(&mut self, now: Instant, queue: u64, rate: Rate) -> Verdict {
        self.update(now, queue, rate);
        let (min, max) = (u128::from(self.red.min.as_u64()) << FRACTION, u128::from(self.red.max.as_u64()) << FRACTION);
        if self.avg < min {
            self.count = None;
            return Verdict::Pass;
        }
        let at_max = u128::from(self.red.max_probability.as_ppb()) * ONE / 1_000_000_000;
        let probability = if self.avg < max {
            scaled(at_max, self.avg - min, max - min)
        } else if self.avg < 2 * max {
            at_max + scaled(ONE - at_max, self.avg - max, max)
        } else {
            ONE
        };
        // The paper's p_a = p_b / (1 - count * p_b) spreads signals evenly: random < p_a, multiplied out.
        let count = self.count.map_or(0, |count| count + 1);
        let random = u128::from(self.stream.draw() >> (64 - FRACTION));
        let rest = ONE.saturating_sub(u128::from(count) * probability);
        if random * rest < probability * ONE {
            self.count = Some(0);
            Verdict::Signal
        } else {
            self.count = Some(count);
            Verdict::Pass
        }
    }

    /// Moves the average towards the queue; after an idle time, as if that many typical packets had found it empty.
    fn update(&mut self, now: Instant, queue: u64, rate: Rate) {
        let shift = u32::from(self.red.weight_shift);
        if queue > 0 {
            let queue = u128::from(queue) << FRACTION;
            self.avg = if queue >= self.avg {
                self.avg + ((queue - self.avg) >> shift)
            } else {
                self.avg - ((self.avg - queue) >> shift)
            };
            return;
        }
        let idle: Duration = now.since(self.idle_since);
        let could = u128::from(idle.as_nanos()) * u128::from(rate.as_bps()) / u128::from(nanobits(self.typical));
        self.avg = scaled(self.avg, power(ONE - (ONE >> shift), could), ONE);
        self.idle_since = now;
    }
}

/// `value * part / whole`; the factors stay below 2^128 for queues below 2^48 bytes.
fn scaled(value: u128, part: u128, whole: u128) -> u128 {
    // Where the product would not fit, both sides of the fraction lose their fractional bits first.
    match value.checked_mul(part) {
        Some(product) => product / whole,
        None => value * (part >> FRACTION) / (whole >> FRACTION).max(1),
    }
}

/// `base^exponent` for a base of at most one.
fn power(mut base: u128, mut exponent: u128) -> u128 {
    let mut result = ONE;
    while exponent > 0 && result > 0 {
        if exponent & 1 == 1 {
            result = (result * base) >> FRACTION;
        }
        base = (base * base) >> FRACTION;
        exponent >>= 1;
    }
    result
}
