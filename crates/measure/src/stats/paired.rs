use std::cmp::Ordering;

/// How two paired series differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// The Hodges-Lehmann estimate of the shift: median of the means of all pairs of differences, first minus second.
    pub estimate: f64,
    /// Lower end of the shift's interval at the confidence asked for; with too few pairs for it, the smallest difference.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Wilcoxon's signed-rank test, exact and two-sided: the probability of signs at least as one-sided as these, had every
    /// difference been as likely to be positive as negative. 1 where there is no difference at all.
    pub p: f64,
}

/// Compares paired series by Wilcoxon's signed-rank test: no assumption about the distribution, and a single wild run counts as one.
///
/// Differences of zero say nothing about a direction and are left out (Wilcoxon's own way), ties share their mean rank. The
/// distribution of the rank sum is counted exactly, over all signs.
///
/// # Panics
/// Where the series differ in length, hold a value that is no number, or `confidence` is not between 0 and 1.
pub fn paired(first: &[f64], second: &[f64], confidence: f64) -> Paired {
    assert_eq!(first.len(), second.len(), "pairs");
    assert!(confidence > 0.0 && confidence < 1.0, "a confidence of {confidence}");
    let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
    assert!(differences.iter().all(|d| !d.is_nan()), "a difference is no number");
    if differences.is_empty() {
        return Paired { estimate: 0.0, low: 0.0, high: 0.0, p: 1.0 };
    }
    let mut means = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (index, a) in differences.iter().enumerate() {
        means.extend(differences[index..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    means.sort_by(f64::total_cmp);
    let estimate = f64::midpoint(means[(means.len() - 1) / 2], means[means.len() / 2]);
    let cut = interval_cut(differences.len(), 1.0 - confidence);
    Paired { estimate, low: means[cut], high: means[means.len() - 1 - cut], p: probability(&differences) }
}

/// How many of the smallest means may be cut off at either end, so that what remains covers the shift with the confidence asked for.
fn interval_cut(pairs: usize, outside: f64) -> usize {
    // Without ties the doubled ranks are 2, 4, …
    let ranks: Vec<u32> = (1..=pairs as u32).map(|rank| 2 * rank).collect();
    let counts = sums(&ranks);
    let mut below = 0.0;
    let mut cut = 0;
    // Rank sums themselves: every second of the doubled ones.
    for share in counts.iter().step_by(2) {
        below += share;
        if 2.0 * below > outside {
            break;
        }
        cut += 1;
    }
    cut
}

fn probability(differences: &[f64]) -> f64 {
    let mut real: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    real.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Doubled, so that shared ranks stay whole numbers.
    let mut ranks = Vec::with_capacity(real.len());
    while ranks.len() < real.len() {
        let from = ranks.len();
        let same = real[from..].iter().take_while(|d| d.abs().total_cmp(&real[from].abs()) == Ordering::Equal).count();
        ranks.extend(std::iter::repeat_n((2 * from + same + 1) as u32, same));
    }
    let positive: u32 = real.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| rank).sum();
    let total: u32 = ranks.iter().sum();
    let least = positive.min(total - positive) as usize;
    let tail: f64 = sums(&ranks)[..=least].iter().sum();
    (2.0 * tail).min(1.0)
}

/// The probability of every sum of a random half of `ranks`: entry s is that of the sum s.
fn sums(ranks: &[u32]) -> Vec<f64> {
    let total: usize = ranks.iter().map(|rank| *rank as usize).sum();
    let mut shares = vec![0.0; total + 1];
    shares[0] = 1.0;
    for rank in ranks.iter().map(|rank| *rank as usize) {
        for sum in (0..=total).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = f64::midpoint(shares[sum], with);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn against_zero(differences: &[f64]) -> Paired {
        paired(differences, &vec![0.0; differences.len()], 0.95)
    }

    #[test]
    fn probabilities_agree_with_the_tables() {
        // All of n signs the same: 2 / 2^n.
        assert_eq!(against_zero(&[1.0, 2.0, 3.0, 4.0, 5.0]).p, 0.0625);
        assert_eq!(against_zero(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).p, 0.03125);
        // n = 8, W = 3: five sets of ranks have a sum up to 3 ({}, 1, 2, 3, 1+2), so 2 x 5 / 256.
        let one_against = against_zero(&[1.0, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(one_against.p, 10.0 / 256.0);
        // The sign of everything changes nothing.
        assert_eq!(against_zero(&[-1.0, -2.0, 3.0, -4.0, -5.0, -6.0, -7.0, -8.0]).p, one_against.p);
    }

    #[test]
    fn ties_share_ranks_and_zeros_say_nothing() {
        // Ranks 1.5, 1.5, 3: sums up to 1.5 are {}, {a}, {b}: 2 x 3 / 8.
        assert_eq!(against_zero(&[1.0, -1.0, 2.0]).p, 0.75);
        assert_eq!(against_zero(&[0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).p, 0.0625);
        assert_eq!(against_zero(&[0.0, 0.0]).p, 1.0);
        assert_eq!(against_zero(&[]).p, 1.0);
    }

    #[test]
    fn the_interval_is_the_tables_and_holds_the_estimate() {
        // n = 6 at 95 %: the critical sum is 0, so one mean goes at either end: W <= 0 has 2/64 = 0.031, W <= 1 has 0.0625.
        let six = against_zero(&[1.0, 2.0, 3.0, 4.0, 5.0, 60.0]);
        assert_eq!((six.low, six.estimate), (1.5, 3.5));
        assert_eq!(six.high, 32.5);
        // Too few for 95 %: everything.
        let three = against_zero(&[1.0, 2.0, 9.0]);
        assert_eq!((three.low, three.high), (1.0, 9.0));
    }
}
