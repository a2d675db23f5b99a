//! Statistics of a few runs, without assumptions about their distribution.
//!
//! Nothing here draws randomness of its own: resampling takes a seed, so that the same figures give the same interval everywhere.

mod binomial;
mod difference;
mod interval;
mod rank;

pub use binomial::{binomial_range, is_plausible_count};
pub use difference::{Difference, LEVEL, Method, Verdict, paired, unpaired};
pub use interval::{Interval, median_interval};
pub use rank::{RankTest, mann_whitney, signed_rank};

/// The median: the middle value, or the mean of the two middle ones. `None` for no values, or where one is not a number.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len().is_multiple_of(2) { sorted[sorted.len() / 2 - 1].midpoint(upper) } else { upper })
}

/// The `percent`-th percentile by the nearest rank: the smallest value such that at least so many percent of all values are not
/// above it. It is always one of the values. `None` for no values, for incomparable ones, or for a percentage outside 0 to 100.
pub fn percentile<T: Copy + PartialOrd>(values: &[T], percent: f64) -> Option<T> {
    if !(0.0..=100.0).contains(&percent) {
        return None;
    }
    let sorted = sorted(values)?;
    // Float-to-integer conversion rounds down and saturates, and rank 0 stands for rank 1.
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// In ascending order; `None` where there are none, or where one compares with nothing (NaN).
fn sorted<T: Copy + PartialOrd>(values: &[T]) -> Option<Vec<T>> {
    let comparable = values.iter().all(|value| value.partial_cmp(value).is_some());
    if values.is_empty() || !comparable {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    Some(sorted)
}

/// Jain's fairness index of the shares that flows got: 1 where all are alike, 1/n where one has everything.
///
/// R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984. `None` for no flows, or
/// where none got anything.
pub fn jain_fairness(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_middle_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX), "the sum of two must not overflow");
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        // The example of NIST's and most textbooks: 15, 20, 35, 40, 50.
        let values = [35.0, 20.0, 15.0, 50.0, 40.0];
        for (percent, expected) in [(0.0, 15.0), (5.0, 15.0), (30.0, 20.0), (40.0, 20.0), (50.0, 35.0), (100.0, 50.0)] {
            assert_eq!(percentile(&values, percent), Some(expected), "{percent}");
        }
        let hundred: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&hundred, 99.0), Some(Duration::from_millis(99)));
        assert_eq!(percentile(&hundred, 99.1), Some(Duration::from_millis(100)));
        assert_eq!(percentile(&hundred, 95.0), Some(Duration::from_millis(95)));
    }

    #[test]
    fn percentiles_of_nothing_and_beyond_the_scale_do_not_exist() {
        assert_eq!(percentile::<f64>(&[], 50.0), None);
        assert_eq!(percentile(&[1.0], 101.0), None);
        assert_eq!(percentile(&[1.0], -1.0), None);
        assert_eq!(percentile(&[1.0], f64::NAN), None);
        assert_eq!(percentile(&[1.0, f64::NAN], 50.0), None);
    }

    #[test]
    fn fairness_is_one_for_equal_shares_and_falls_to_one_over_n() {
        assert_eq!(jain_fairness(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain_fairness(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1+2+3)^2 / (3 * (1+4+9)) = 36/42
        assert!((jain_fairness(&[1.0, 2.0, 3.0]).unwrap() - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!(jain_fairness(&[]), None);
        assert_eq!(jain_fairness(&[0.0, 0.0]), None);
    }
}
