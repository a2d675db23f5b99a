//! A distribution in a few hundred bytes: eight steps to each doubling, so that a quantile is at most an eighth too high.

use facts::Spread;

const STEPS: u32 = 8;
const BINS: usize = (64 - 3 + 1) * STEPS as usize;

#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    /// Grows to the largest value seen.
    bins: Vec<u32>,
    count: u64,
    max: u64,
}

/// Values below eight have a bin each; above, the three bits below the leading one choose the step.
fn bin(value: u64) -> usize {
    let Some(log) = value.checked_ilog2().filter(|log| *log >= 3) else { return value as usize };
    let step = (value >> (log - 3)) & 7;
    ((log - 2) * STEPS) as usize + step as usize
}

/// The largest value of a bin.
fn top(bin: usize) -> u64 {
    if bin < STEPS as usize {
        return bin as u64;
    }
    let (log, step) = (bin as u32 / STEPS + 2, bin as u64 % u64::from(STEPS));
    let width = 1u64 << (log - 3);
    (1u64 << log).saturating_add(step * width).saturating_add(width - 1)
}

impl Histogram {
    pub fn add(&mut self, value: u64) {
        let bin = bin(value).min(BINS - 1);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] = self.bins[bin].saturating_add(1);
        self.count += 1;
        self.max = self.max.max(value);
    }

    fn quantile(&self, permille: u64) -> u64 {
        let rank = (self.count * permille).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (bin, count) in self.bins.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return top(bin).min(self.max);
            }
        }
        self.max
    }

    pub fn spread(&self) -> Option<Spread> {
        (self.count > 0).then(|| Spread {
            count: self.count,
            p50: self.quantile(500),
            p90: self.quantile(900),
            p99: self.quantile(990),
            max: self.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_is_in_its_bin_and_the_bins_top_at_most_an_eighth_above(value: u64) {
            let top = top(bin(value));
            prop_assert!(top >= value);
            prop_assert!(top - value <= value / 8);
            prop_assert!(bin(value) < BINS);
        }

        #[test]
        fn quantiles_are_ordered_and_near_the_sorted_ones(mut values in proptest::collection::vec(0u64..10_000_000, 1..300)) {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.add(*value);
            }
            values.sort_unstable();
            let spread = histogram.spread().unwrap();
            let exact = values[(values.len() * 9).div_ceil(10) - 1];
            prop_assert!(spread.p90 >= exact && spread.p90 - exact <= exact / 8);
            prop_assert!(spread.p50 <= spread.p90 && spread.p90 <= spread.p99 && spread.p99 <= spread.max);
            prop_assert_eq!(spread.max, *values.last().unwrap());
        }
    }

    #[test]
    fn nothing_has_no_spread() {
        assert_eq!(Histogram::default().spread(), None);
    }
}
