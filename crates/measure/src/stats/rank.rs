//! Is there a difference? Tests and estimates by ranks: no assumption about the distribution, one outlier counts as one.

use super::{Interval, median};

/// Up to so many values the distributions under no difference are counted out exactly; above, the normal one stands in.
const EXACT: usize = 25;

/// What a comparison found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// The probability of ranks at least as uneven, in either direction, where there is no difference.
    pub p: f64,
    /// How one-sided: from -1 (the second is always smaller) over 0 to 1 (always larger).
    pub effect: f64,
    /// The shift from the first to the second, by Hodges and Lehmann.
    pub shift: f64,
    /// An interval around it at the confidence that was asked for; `None` where so few values can't give one.
    pub interval: Option<Interval>,
}

/// Wilcoxon's signed-rank test of pairs (F. Wilcoxon, 1945): whether `after - before` is centred on zero.
///
/// Pairs without a difference are left out, as Wilcoxon did. Ties get the mean of their ranks, and the exact distribution is that of the
/// ranks as they are. The effect is the matched-pairs rank-biserial correlation (D. Kerby, 2014). The shift is the median of the means of all
/// pairs of differences, and its interval holds those means that the same test would not reject. `None` for no pairs, or values that
/// are no numbers.
pub fn signed_rank(pairs: &[(f64, f64)], confidence: f64) -> Option<RankTest> {
    let differences: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
    if differences.is_empty() || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let kept: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let magnitudes: Vec<f64> = kept.iter().map(|d| d.abs()).collect();
    let ranks = ranks(&magnitudes);
    let total: u64 = ranks.iter().sum();
    let positive: u64 = kept.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    let mut means = Vec::new();
    for (index, a) in differences.iter().enumerate() {
        means.extend(differences[index..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    let n = differences.len();
    // Of differences without ties, for the interval.
    let plain = Sums::signed(&(1..=n as u64).map(|rank| 2 * rank).collect::<Vec<_>>());
    Some(RankTest {
        p: if kept.is_empty() { 1.0 } else { signed_p(&ranks, positive) },
        effect: if total == 0 { 0.0 } else { (2.0 * positive as f64 - total as f64) / total as f64 },
        shift: median(&means)?,
        interval: interval(&mut means, |k| plain.at_most(2 * k), confidence),
    })
}

/// The test of Mann and Whitney (1947), which is Wilcoxon's rank sum: whether values of `b` tend to be larger than those of `a`.
///
/// Ties count one half, and the exact distribution is that of the ranks as they are. The effect is Cliff's delta: the share of pairs in which
/// `b` is larger less the share in which it is smaller. The shift is the median of all differences `b - a`. `None` where either is empty, or
/// values are no numbers.
pub fn mann_whitney(a: &[f64], b: &[f64], confidence: f64) -> Option<RankTest> {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| !value.is_finite()) {
        return None;
    }
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = ranks(&all);
    let sum_b: u64 = ranks[a.len()..].iter().sum();
    let mut differences: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
    let (larger, smaller) = differences
        .iter()
        .fold((0i64, 0i64), |(larger, smaller), d| (larger + i64::from(*d > 0.0), smaller + i64::from(*d < 0.0)));
    let plain: Vec<u64> = (1..=all.len() as u64).map(|rank| 2 * rank).collect();
    let least: u64 = plain[..b.len()].iter().sum();
    let sums = Sums::drawn(&plain, b.len());
    Some(RankTest {
        p: sum_p(&ranks, b.len(), sum_b),
        effect: (larger - smaller) as f64 / differences.len() as f64,
        shift: median(&differences)?,
        interval: interval(&mut differences, |k| sums.at_most(least + 2 * k), confidence),
    })
}

/// Twice the rank of each value, ties sharing the mean: whole numbers.
fn ranks(values: &[f64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let mut to = from + 1;
        while to < order.len() && values[order[to]] == values[order[from]] {
            to += 1;
        }
        // Ranks from + 1 to `to`; twice their mean is their first plus their last.
        order[from..to].iter().for_each(|index| ranks[*index] = (from + 1 + to) as u64);
        from = to;
    }
    ranks
}

/// How probable each sum is, as the probability of at most so much.
enum Sums {
    /// Counted out; the index is the sum.
    Exact(Vec<f64>),
    /// Normal, of this mean and deviation; sums come in steps of two, since ranks are doubled.
    Normal(f64, f64),
}

impl Sums {
    /// Of the positive ranks, where each sign is a coin's.
    fn signed(ranks: &[u64]) -> Self {
        let total: u64 = ranks.iter().sum();
        if ranks.len() > EXACT {
            let squares: f64 = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum();
            return Self::Normal(total as f64 / 2.0, (squares / 4.0).sqrt());
        }
        let mut ways = vec![0.0; total as usize + 1];
        ways[0] = 1.0;
        for rank in ranks {
            for sum in (*rank as usize..ways.len()).rev() {
                ways[sum] += ways[sum - *rank as usize];
            }
        }
        Self::cumulated(ways)
    }

    /// Of `chosen` of these ranks, drawn without order.
    fn drawn(ranks: &[u64], chosen: usize) -> Self {
        let n = ranks.len();
        let total: u64 = ranks.iter().sum();
        if chosen > EXACT || n - chosen > EXACT {
            let (b, a, all) = (chosen as f64, (n - chosen) as f64, n as f64);
            let mean = total as f64 / all;
            let spread = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum::<f64>() / (all * (all - 1.0));
            return Self::Normal(b * mean, (b * a * spread).sqrt());
        }
        // ways[k][sum]: of k ranks.
        let mut ways = vec![vec![0.0; total as usize + 1]; chosen + 1];
        ways[0][0] = 1.0;
        for rank in ranks {
            let rank = *rank as usize;
            for k in (1..=chosen).rev() {
                let (fewer, these) = ways.split_at_mut(k);
                for (to, from) in these[0][rank..].iter_mut().zip(&fewer[k - 1]) {
                    *to += from;
                }
            }
        }
        Self::cumulated(ways.swap_remove(chosen))
    }

    fn cumulated(mut ways: Vec<f64>) -> Self {
        let all: f64 = ways.iter().sum();
        let mut sum = 0.0;
        for way in &mut ways {
            sum += *way;
            *way = sum / all;
        }
        Self::Exact(ways)
    }

    /// The probability of a sum of at most `most`.
    fn at_most(&self, most: u64) -> f64 {
        match self {
            Self::Exact(below) => below.get(most as usize).copied().unwrap_or(1.0),
            // Where all are tied there is nothing to tell apart.
            Self::Normal(_, deviation) if *deviation == 0.0 => 1.0,
            Self::Normal(mean, deviation) => normal_below((most as f64 + 1.0 - mean) / deviation),
        }
    }
}

fn signed_p(ranks: &[u64], positive: u64) -> f64 {
    let total: u64 = ranks.iter().sum();
    // The distribution is symmetric.
    (2.0 * Sums::signed(ranks).at_most(positive.min(total - positive))).min(1.0)
}

fn sum_p(ranks: &[u64], chosen: usize, sum: u64) -> f64 {
    let total: u64 = ranks.iter().sum();
    // Large sums are small sums of the others.
    let below = Sums::drawn(ranks, chosen).at_most(sum);
    let above = Sums::drawn(ranks, ranks.len() - chosen).at_most(total - sum);
    (2.0 * below.min(above)).min(1.0)
}

/// From the k-th smallest to the k-th largest estimate, k as large as the confidence allows; `tail(k)` is the probability of a statistic
/// of at most k.
fn interval(estimates: &mut [f64], tail: impl Fn(u64) -> f64, confidence: f64) -> Option<Interval> {
    let most = (1.0 - confidence) / 2.0;
    estimates.sort_by(f64::total_cmp);
    let half = estimates.len() as u64 / 2;
    if tail(0) > most {
        return None;
    }
    // tail rises, so the last k that is not above `most` is found by halving.
    let (mut low, mut high) = (0, half.max(1));
    while low + 1 < high {
        let middle = low.midpoint(high);
        if tail(middle) <= most { low = middle } else { high = middle }
    }
    let last = estimates.len() - 1;
    Some(Interval { low: estimates[low as usize], high: estimates[last - low as usize] })
}

/// The standard normal distribution.
fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }

    #[test]
    fn signed_ranks_agree_with_a_count_by_hand() {
        // All five of five positive: the sum 0 of negative ranks is one of 32 sign patterns, so p = 2/32.
        let pairs: Vec<(f64, f64)> = (1..=5).map(|n| (0.0, f64::from(n))).collect();
        let test = signed_rank(&pairs, 0.95).unwrap();
        close(test.p, 2.0 / 32.0);
        close(test.effect, 1.0);
        close(test.shift, 3.0);
        assert_eq!(test.interval, None, "five pairs can't be 95 % sure of anything");
        // Differences 1, -2, 3, 4, 5, 6: the negative rank is 2; patterns with a sum of at most 2 are {}, {1}, {2}: p = 2 * 3 / 64.
        let pairs: Vec<(f64, f64)> = [1.0, -2.0, 3.0, 4.0, 5.0, 6.0].map(|d| (10.0, 10.0 + d)).to_vec();
        close(signed_rank(&pairs, 0.95).unwrap().p, 6.0 / 64.0);
    }

    #[test]
    fn signed_ranks_of_six_give_the_whole_range_as_interval() {
        // P(W <= 0) = 1/64 < 2.5 %, P(W <= 1) = 2/64 > 2.5 %: from the smallest to the largest mean of two.
        let pairs: Vec<(f64, f64)> = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0].map(|d| (0.0, d)).to_vec();
        assert_eq!(signed_rank(&pairs, 0.95).unwrap().interval, Some(Interval { low: 1.0, high: 9.0 }));
    }

    #[test]
    fn mann_whitney_agrees_with_a_count_by_hand() {
        // 3 against 3 without overlap: one of 20 ways at each end.
        let test = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.95).unwrap();
        close(test.p, 0.1);
        close(test.effect, 1.0);
        close(test.shift, 3.0);
        assert_eq!(test.interval, None);
        // U = 1 of 4 against 4: ways with at most 1 are 1 + 1 of 70.
        let test = mann_whitney(&[1.0, 2.0, 3.0, 5.0], &[4.0, 6.0, 7.0, 8.0], 0.95).unwrap();
        close(test.p, 2.0 * 2.0 / 70.0);
        // 4 against 4: P(U <= 0) = 1/70 < 2.5 %: the whole range of differences.
        assert_eq!(test.interval, Some(Interval { low: -1.0, high: 7.0 }));
    }

    #[test]
    fn ties_share_ranks() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 2.0]), [7, 2, 7, 4]);
        let test = mann_whitney(&[1.0; 5], &[1.0; 5], 0.95).unwrap();
        close(test.p, 1.0);
        close(test.effect, 0.0);
        let test = signed_rank(&[(2.0, 2.0); 8], 0.95).unwrap();
        close(test.p, 1.0);
        close(test.shift, 0.0);
    }

    #[test]
    fn the_normal_distribution_takes_over_without_a_step() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let values = |n: usize, shift: f64, random: &mut Xoshiro256PlusPlus| -> Vec<f64> {
            (0..n).map(|_| shift + (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64).collect()
        };
        let (a, b) = (values(25, 0.0, &mut random), values(25, 0.2, &mut random));
        let all: Vec<f64> = a.iter().chain(&b).copied().collect();
        let ranks = ranks(&all);
        let sum: u64 = ranks[25..].iter().sum();
        let exact = sum_p(&ranks, 25, sum);
        let mean = 25.0 * 51.0;
        let variance = 25.0 * 25.0 * 51.0 / 12.0 * 4.0;
        let near = 2.0 * (1.0 - normal_below((sum as f64 - 1.0 - mean).abs() / f64::sqrt(variance)));
        assert!((exact - near).abs() < 0.01, "{exact} {near}");
    }

    #[test]
    fn nothing_and_no_numbers_give_no_test() {
        assert_eq!(signed_rank(&[], 0.95), None);
        assert_eq!(signed_rank(&[(f64::NAN, 1.0)], 0.95), None);
        assert_eq!(mann_whitney(&[], &[1.0], 0.95), None);
        assert_eq!(mann_whitney(&[1.0], &[f64::INFINITY], 0.95), None);
    }
}
