//! Whether a block helped, hurt, or did neither, by paired runs.

use serde::{Deserialize, Serialize};

/// What one run gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Application bits per second, counted where they arrive; every measured direction together.
    pub goodput_bps: f64,
    /// 95th percentile of the round-trip time while the transfer runs, in milliseconds; `None` where nothing measured it.
    pub rtt_loaded_ms: Option<f64>,
    /// Segments sent again, of all segments sent: 0 to 1.
    pub retransmitted_share: f64,
}

/// Runs with and without a block; the n-th of one belongs to the n-th of the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Without the block.
    pub without: Vec<Sample>,
    /// With it.
    pub with: Vec<Sample>,
}

/// How two paired series differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Median of the pairs' differences, with minus without, in the unit of what was compared.
    pub estimate: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability of a difference at least this clear where there is none, two-sided.
    pub p: f64,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// Goodput.
    Goodput,
    /// Round-trip time under load.
    RttLoaded,
    /// Retransmissions.
    Retransmissions,
}

/// From where on a difference counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// A difference counts as real where its probability by chance is at most this.
    pub level: f64,
    /// Goodput has to rise by this share to be a help.
    pub gain: f64,
    /// Goodput that falls by this share is a harm.
    pub loss: f64,
    /// An RTT under load that falls or rises by this share …
    pub rtt_share: f64,
    /// … and by so many milliseconds is a help or a harm.
    pub rtt_ms: f64,
    /// Retransmitted share that rises by this much (0.01: one segment in a hundred more) is a harm.
    pub retransmitted: f64,
    /// Goodput that rises by this share is worth a longer queue or more retransmissions.
    pub worth: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { level: 0.05, gain: 0.03, loss: 0.02, rtt_share: 0.2, rtt_ms: 5.0, retransmitted: 0.01, worth: 0.2 }
    }
}

/// What paired runs say of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// What got better by more than the limits, and not by chance.
    pub helped: Vec<Aspect>,
    /// What got worse.
    pub harmed: Vec<Aspect>,
    /// Goodput with the block over goodput without: median of the pairs, and the interval's ends.
    pub goodput_ratio: [f64; 3],
    /// Probability of such a goodput difference by chance.
    pub p: f64,
    /// Milliseconds of RTT under load more (or less); `None` where it wasn't measured in every run.
    pub rtt_loaded_ms: Option<Difference>,
    /// Retransmitted share more (or less).
    pub retransmitted_share: Difference,
}

impl Judgement {
    /// Whether the block should stay by itself: it helped, and what it cost, if anything, is worth it.
    pub fn stays(&self, limits: &Limits) -> bool {
        !self.helped.is_empty() && !self.hurts(limits)
    }

    /// Whether it did harm that its gain in goodput doesn't pay for.
    pub fn hurts(&self, limits: &Limits) -> bool {
        let paid = self.helped.contains(&Aspect::Goodput) && self.goodput_ratio[0] >= 1.0 + limits.worth;
        self.harmed.contains(&Aspect::Goodput) || (!self.harmed.is_empty() && !paid)
    }
}

/// Judges a block by its runs. `differ` compares two paired series of numbers, with the block first.
///
/// Goodput is compared by ratio (the difference of logarithms), RTT and retransmissions by difference.
///
/// # Panics
/// Where the series differ in length.
pub fn judge(series: &Series, limits: &Limits, differ: &dyn Fn(&[f64], &[f64]) -> Difference) -> Judgement {
    assert_eq!(series.with.len(), series.without.len(), "pairs");
    let of = |f: &dyn Fn(&Sample) -> f64| -> (Vec<f64>, Vec<f64>) {
        (series.with.iter().map(f).collect(), series.without.iter().map(f).collect())
    };
    // A run that carried nothing counts as one bit per second: its ratio is as bad as can be, and finite.
    let (with, without) = of(&|sample| sample.goodput_bps.max(1.0).ln());
    let goodput = differ(&with, &without);
    let ratio = [goodput.estimate.exp(), goodput.low.exp(), goodput.high.exp()];
    let measured = series.with.iter().chain(&series.without).all(|sample| sample.rtt_loaded_ms.is_some());
    let rtt = (measured && !series.with.is_empty()).then(|| {
        let (with, without) = of(&|sample| sample.rtt_loaded_ms.unwrap_or_default());
        (differ(&with, &without), median(&without))
    });
    let (with, without) = of(&|sample| sample.retransmitted_share);
    let retransmitted = differ(&with, &without);

    let mut judgement = Judgement {
        helped: Vec::new(),
        harmed: Vec::new(),
        goodput_ratio: ratio,
        p: goodput.p,
        rtt_loaded_ms: rtt.map(|(difference, _)| difference),
        retransmitted_share: retransmitted,
    };
    if goodput.p <= limits.level {
        if ratio[0] >= 1.0 + limits.gain {
            judgement.helped.push(Aspect::Goodput);
        } else if ratio[0] <= 1.0 - limits.loss {
            judgement.harmed.push(Aspect::Goodput);
        }
    }
    if let Some((difference, before)) = rtt
        && difference.p <= limits.level
        && difference.estimate.abs() >= limits.rtt_ms.max(before * limits.rtt_share)
    {
        let list = if difference.estimate < 0.0 { &mut judgement.helped } else { &mut judgement.harmed };
        list.push(Aspect::RttLoaded);
    }
    // Fewer retransmissions alone are no reason to change a host: goodput and delay say whether they mattered.
    if retransmitted.p <= limits.level && retransmitted.estimate >= limits.retransmitted {
        judgement.harmed.push(Aspect::Retransmissions);
    }
    judgement
}

/// Whether, with `left` pairs to come, anything can still be found to differ: the judgement is "no difference" whatever they give
/// otherwise, so that they need not be run. This changes no probability: it only leaves out what can't change the answer.
pub(super) fn can_still_differ(
    series: &Series,
    left: u32,
    limits: &Limits,
    differ: &dyn Fn(&[f64], &[f64]) -> Difference,
) -> bool {
    let aspects: [&dyn Fn(&Sample) -> f64; 3] =
        [&|sample| sample.goodput_bps.max(1.0).ln(), &|sample| sample.rtt_loaded_ms.unwrap_or_default(), &|sample| {
            sample.retransmitted_share
        }];
    aspects.iter().any(|aspect| {
        [1.0, -1.0].iter().any(|sign| {
            // The clearest that can come: every pair to this side, each further than all so far.
            let mut with: Vec<f64> = series.with.iter().map(aspect).collect();
            let mut without: Vec<f64> = series.without.iter().map(aspect).collect();
            let far = 1.0 + with.iter().zip(&without).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            with.extend((1..=left).map(|n| sign * far * f64::from(n + 1)));
            without.extend((0..left).map(|_| 0.0));
            differ(&with, &without).p <= limits.level
        })
    })
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed_rank(with: &[f64], without: &[f64]) -> Difference {
        let pairs: Vec<(f64, f64)> = without.iter().copied().zip(with.iter().copied()).collect();
        let none = Difference { estimate: 0.0, low: 0.0, high: 0.0, p: 1.0 };
        measure::stats::signed_rank(&pairs, 0.95).map_or(none, |test| {
            let (low, high) = test.interval.map_or((test.shift, test.shift), |interval| (interval.low, interval.high));
            Difference { estimate: test.shift, low, high, p: test.p }
        })
    }

    proptest::proptest! {
        #[test]
        fn pairs_that_are_not_run_could_not_have_changed_the_judgement(
            values in proptest::collection::vec((1e6..2e6f64, 1e6..2e6f64, 10.0..90.0f64, 10.0..90.0f64, 0.0..0.1f64, 0.0..0.1f64), 6..9)
        ) {
            let sample = |goodput_bps, rtt, retransmitted_share| Sample { goodput_bps, rtt_loaded_ms: Some(rtt), retransmitted_share };
            let with: Vec<Sample> = values.iter().map(|v| sample(v.0, v.2, v.4)).collect();
            let without: Vec<Sample> = values.iter().map(|v| sample(v.1, v.3, v.5)).collect();
            let limits = Limits::default();
            let whole = judge(&Series { with: with.clone(), without: without.clone() }, &limits, &signed_rank);
            for seen in 1..values.len() {
                let part = Series { with: with[..seen].to_vec(), without: without[..seen].to_vec() };
                if !can_still_differ(&part, (values.len() - seen) as u32, &limits, &signed_rank) {
                    proptest::prop_assert!(whole.helped.is_empty() && whole.harmed.is_empty(), "{seen} of {values:?}");
                    proptest::prop_assert!(!judge(&part, &limits, &signed_rank).stays(&limits));
                }
            }
        }
    }
}
