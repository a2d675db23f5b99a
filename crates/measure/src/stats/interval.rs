use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{median, percentile};

/// How often the values are drawn again.
const RESAMPLES: usize = 10_000;

/// A range that probably holds the true value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The 95 % interval of the median by the percentile bootstrap (B. Efron, 1979): the values are drawn with replacement 10,000 times, and the
/// middle 95 % of the medians is the interval. Both ends are by nearest rank.
///
/// `None` for fewer than three values: two say nothing about spread. With three or four the interval is their whole range, and with
/// five it nearly always is: so few values can't promise more. The same `seed` gives the same interval.
pub fn median_interval(values: &[f64], seed: u64) -> Option<Interval> {
    if values.len() < 3 {
        return None;
    }
    median(values)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        drawn.fill_with(|| values[below(values.len(), random.next_u64())]);
        medians.push(median(&drawn)?);
    }
    Some(Interval { low: percentile(&medians, 2.5)?, high: percentile(&medians, 97.5)? })
}

/// A number below `bound` from a random one: the high half of the product, biased by less than `bound` / 2^64.
fn below(bound: usize, random: u64) -> usize {
    ((u128::from(random) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_values_give_their_whole_range() {
        // The median of a resample is the least value where that is drawn twice or more: 7 of 27 cases, far over 2.5 %.
        assert_eq!(median_interval(&[3.0, 1.0, 2.0], 1), Some(Interval { low: 1.0, high: 3.0 }));
    }

    #[test]
    fn fewer_than_three_values_or_a_missing_number_give_none() {
        assert_eq!(median_interval(&[], 1), None);
        assert_eq!(median_interval(&[1.0, 2.0], 1), None);
        assert_eq!(median_interval(&[1.0, 2.0, f64::NAN], 1), None);
    }

    #[test]
    fn equal_values_give_an_interval_without_width() {
        assert_eq!(median_interval(&[4.0; 8], 1), Some(Interval { low: 4.0, high: 4.0 }));
    }

    #[test]
    fn eleven_values_give_the_ranks_of_the_exact_bootstrap() {
        // The median of a resample of 1..=11 is at most k where 6 or more of 11 draws are: P(Bin(11, k/11) >= 6).
        // That is 0.0072 for k = 2 and 0.0512 for k = 3, so that the 2.5 % point is 3, and by symmetry the 97.5 % point is 9.
        let values: Vec<f64> = (1..=11).map(f64::from).collect();
        assert_eq!(median_interval(&values, 7), Some(Interval { low: 3.0, high: 9.0 }));
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let values: Vec<f64> = (0..40).map(|n| f64::from(n * n % 37) + 0.1).collect();
        assert_eq!(median_interval(&values, 5), median_interval(&values, 5));
        assert_eq!(below(10, 0), 0);
        assert_eq!(below(10, u64::MAX), 9);
    }

    #[test]
    fn the_interval_holds_the_true_median_about_as_often_as_it_says() {
        // 200 experiments of 15 values uniform on 0..1, whose median is 0.5. The percentile bootstrap is known to be a little off for
        // small samples; far off would be a mistake in here.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
        let mut held = 0;
        for seed in 0..200 {
            let values: Vec<f64> = (0..15).map(|_| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64).collect();
            let interval = median_interval(&values, seed).unwrap();
            held += u32::from(interval.low <= 0.5 && 0.5 <= interval.high);
        }
        assert!((178..=198).contains(&held), "{held} of 200");
    }
}
