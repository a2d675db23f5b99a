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
    /// Packets passed since the last signal; `None` while the average is below the lower threshold.
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
        // p_a = p_b / (1 - count * p_b) makes the distance of signals uniform from 1 to 1 / p_b (section 7; the pseudo-code's
        // count is one ahead of that derivation, which would signal always from p_b = 1/2 on). Random < p_a, multiplied out.
        let count = self.count.unwrap_or(0);
        let random = u128::from(self.stream.draw() >> (64 - FRACTION));
        let rest = ONE.saturating_sub(u128::from(count) * probability);
        if random * rest < probability * ONE {
            self.count = Some(0);
            Verdict::Signal
        } else {
            self.count = Some(count + 1);
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use units::{Bytes, Probability};

    use super::*;

    const PACKET_PER_MS: Rate = Rate::from_mbps(12);

    fn average(weight_shift: u8, max_probability: u32) -> Average {
        let red = Red {
            min: Bytes::new(10_000),
            max: Bytes::new(30_000),
            max_probability: Probability::from_ppb(max_probability),
            weight_shift,
        };
        Average::new(red, 1500, 1)
    }

    fn in_bytes(average: &Average) -> u64 {
        (average.avg >> FRACTION) as u64
    }

    #[test]
    fn the_average_moves_by_its_weight() {
        let mut average = average(2, 0);
        let seen: Vec<u64> = [1000, 1000, 200]
            .iter()
            .map(|queue| {
                average.judge(Instant::ZERO, *queue, PACKET_PER_MS);
                in_bytes(&average)
            })
            .collect();
        // 1000/4; 250 + 750/4 = 437.5; 437.5 - 237.5/4 = 378.1.
        assert_eq!(seen, [250, 437, 378]);
    }

    #[test]
    fn the_average_falls_while_idle_as_if_small_queues_had_been_seen() {
        let mut average = average(1, 0);
        average.avg = 8000 << FRACTION;
        average.idle(Instant::from_nanos(5));
        average.judge(Instant::from_nanos(3_000_005), 0, PACKET_PER_MS);
        assert_eq!(in_bytes(&average), 1000, "three packets could have been sent");
        average.judge(Instant::from_nanos(3_000_005), 0, PACKET_PER_MS);
        assert_eq!(in_bytes(&average), 1000, "and none since");
    }

    /// Distances between signals while the average stands at `queue`.
    fn gaps(average: &mut Average, queue: u64, packets: u64) -> Vec<u64> {
        average.avg = u128::from(queue) << FRACTION;
        let signals: Vec<u64> =
            (0..packets).filter(|_| average.judge(Instant::ZERO, queue, PACKET_PER_MS) == Verdict::Signal).collect();
        signals.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn signals_between_the_thresholds_are_spread_evenly() {
        // Halfway: half of 4 %. The paper makes the distance uniform from 1 to 1/p, here 50.
        let gaps = gaps(&mut average(9, 40_000_000), 20_000, 200_000);
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&50)));
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 25.5).abs() < 0.5, "{mean}");
    }

    #[test]
    fn above_the_upper_threshold_the_probability_rises_gently_to_one_at_twice_of_it() {
        let share = |queue| gaps(&mut average(9, 40_000_000), queue, 100_000).len() as f64 / 1e5;
        // With distances uniform from 1 to 1/p, a share of 2p / (1 + p) is signalled.
        let uniform = |p: f64| 2.0 * p / (1.0 + p);
        assert_eq!(share(9_999), 0.0);
        assert!((share(30_000) - uniform(0.04)).abs() < 0.01, "{}", share(30_000));
        let three_quarters = share(52_500);
        assert!(three_quarters > share(37_500) && three_quarters < 0.95, "{three_quarters}");
        assert!(share(60_000) > 0.9999);
    }

    #[test]
    fn the_arithmetic_holds_at_the_largest_thresholds() {
        let mut average = average(24, 1_000_000_000);
        average.red.min = Bytes::new(u64::MAX - 1);
        average.red.max = Bytes::new(u64::MAX);
        average.avg = u128::from(u64::MAX) << FRACTION;
        assert_eq!(average.judge(Instant::MAX, u64::MAX, PACKET_PER_MS), Verdict::Signal);
    }
}
