use std::ops::RangeInclusive;

use units::Probability;

/// The counts of an event of probability `event` in `trials` independent trials that are plausible at `confidence`, exactly: below
/// the range, and above it, lies at most half of the remaining probability.
///
/// An honest model falls outside in less than `1 - confidence` of all checks. The sum is over the binomial distribution itself, in
/// about 25 standard deviations of steps, so that a billion trials are fine.
///
/// # Panics
/// Where `confidence` is not between 0 and 1.
pub fn binomial_range(trials: u64, event: Probability, confidence: f64) -> RangeInclusive<u64> {
    assert!(confidence > 0.0 && confidence < 1.0, "a confidence of {confidence}");
    let p = event.as_f64();
    if event == Probability::ZERO || trials == 0 {
        return 0..=0;
    }
    if event == Probability::ONE {
        return trials..=trials;
    }
    let tail = (1.0 - confidence) / 2.0;
    let low = low_end(trials, p, tail);
    // Failures are as binomial as successes.
    let high = trials - low_end(trials, 1.0 - p, tail);
    low..=high
}

/// Whether `count` lies in [`binomial_range`].
pub fn is_plausible_count(count: u64, trials: u64, event: Probability, confidence: f64) -> bool {
    binomial_range(trials, event, confidence).contains(&count)
}

/// The smallest k with P(X <= k) > `tail`.
fn low_end(trials: u64, p: f64, tail: f64) -> u64 {
    let n = trials as f64;
    let spread = (n * p * (1.0 - p)).sqrt();
    // So far below the mean (12 standard deviations and more) nothing is left to sum up: under 10^-15, whatever p is.
    let mut k = (n * p - 12.0 * spread - 50.0).max(0.0) as u64;
    let mut term = ln_term(n, k as f64, p).exp();
    let mut below = term;
    let odds = p / (1.0 - p);
    while below <= tail && k < trials {
        term *= (trials - k) as f64 / (k + 1) as f64 * odds;
        below += term;
        k += 1;
        // Far out in the tail the first terms may be too small for a float; start again from the exact one.
        if term == 0.0 {
            term = ln_term(n, k as f64, p).exp();
        }
    }
    k
}

/// The logarithm of P(X = k).
fn ln_term(n: f64, k: f64, p: f64) -> f64 {
    libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0) + k * p.ln() + (n - k) * (-p).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(text: &str) -> Probability {
        text.parse().unwrap()
    }

    #[test]
    fn small_cases_agree_with_the_table() {
        // Bin(10, 1/2): P(X <= 1) = 11/1024 = 0.0107, P(X <= 2) = 56/1024 = 0.0547.
        assert_eq!(binomial_range(10, percent("50%"), 0.95), 2..=8);
        assert_eq!(binomial_range(10, percent("50%"), 0.99), 1..=9);
        // Bin(20, 0.1): P(X = 0) = 0.1216, P(X <= 4) = 0.9568, P(X <= 5) = 0.9887.
        assert_eq!(binomial_range(20, percent("10%"), 0.95), 0..=5);
        // Bin(3, 1/2) at 50 %: P(X = 0) = 0.125 is not over 0.25.
        assert_eq!(binomial_range(3, percent("50%"), 0.5), 1..=2);
    }

    #[test]
    fn many_trials_agree_with_the_normal_distribution() {
        // 10^8 trials of 1 %: mean 10^6, standard deviation 994.99; 99 % is 2.5758 of them.
        let range = binomial_range(100_000_000, percent("1%"), 0.99);
        let half_width = 2.575_829 * 994.987;
        assert!((*range.start() as f64 - (1e6 - half_width)).abs() < 5.0, "{range:?}");
        assert!((*range.end() as f64 - (1e6 + half_width)).abs() < 5.0, "{range:?}");
    }

    #[test]
    fn rare_events_agree_with_the_poisson_distribution() {
        // 10^7 trials of 10^-7, mean 1: P(0) = 0.3679, P(X <= 3) = 0.9810, P(X <= 4) = 0.9963.
        assert_eq!(binomial_range(10_000_000, Probability::from_ppb(100), 0.99), 0..=4);
        assert_eq!(binomial_range(10_000_000, Probability::from_ppb(100), 0.95), 0..=3);
    }

    #[test]
    fn a_wrong_probability_is_found_out() {
        // The 99 % range, summed up in double precision elsewhere, is 1402 to 1600.
        let trials = 100_000;
        assert!(is_plausible_count(1_600, trials, percent("1.5%"), 0.99));
        assert!(is_plausible_count(1_402, trials, percent("1.5%"), 0.99));
        assert!(!is_plausible_count(1_401, trials, percent("1.5%"), 0.99));
        assert!(!is_plausible_count(1_601, trials, percent("1.5%"), 0.99));
        assert!(!is_plausible_count(trials + 1, trials, Probability::ONE, 0.99));
    }

    #[test]
    fn certain_events_leave_no_room() {
        assert_eq!(binomial_range(10, Probability::ZERO, 0.99), 0..=0);
        assert_eq!(binomial_range(10, Probability::ONE, 0.99), 10..=10);
        assert_eq!(binomial_range(0, percent("50%"), 0.99), 0..=0);
        // The first terms are under the smallest float here: 10^-459.
        assert_eq!(binomial_range(100, Probability::from_ppb(999_999_999), 0.99), 100..=100);
    }

    #[test]
    #[should_panic(expected = "confidence")]
    fn a_confidence_that_is_none_is_refused() {
        binomial_range(1, Probability::ONE, 95.0);
    }
}
