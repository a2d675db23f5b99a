//! Loss that does not come from a queue.

use alloc::vec::Vec;

use units::Probability;

use crate::config::LossModel;
use crate::random::{Stage, Stream};

/// Decides the fate of each packet in order of arrival.
#[derive(Debug)]
pub(crate) enum Loss {
    None,
    Independent { probability: Probability, originals: Stream, copies: Stream },
    Burst(GilbertElliott),
    Periodic { every: u64, offset: u64 },
    List { numbers: Vec<u64>, next: usize, last: bool },
}

/// A two-state Markov chain, one step per packet; every packet in the bad state is lost (Gilbert 1960 with h = 0).
#[derive(Debug)]
pub(crate) struct GilbertElliott {
    /// Chance of going from good to bad, in 2^-64.
    enter: u128,
    /// Chance of going from bad to good, in 2^-64.
    leave: u128,
    bad: bool,
    stream: Stream,
}

impl GilbertElliott {
    /// A burst is left with chance 1 / mean, and entered so that the share of bad packets, enter / (enter + leave), is the
    /// average. The chain starts in its stationary distribution, so the first packet is lost as often as any other.
    fn new(average: Probability, mean_burst_milli: u32, mut stream: Stream) -> Self {
        let (mean, bad) = (u128::from(mean_burst_milli), u128::from(average.as_ppb()));
        let good = 1_000_000_000 - bad;
        let leave = (1000u128 << 64) / mean;
        let enter = ((1000u128 << 64) * bad) / (mean * good);
        let bad = average.happens(stream.draw());
        Self { enter, leave, bad, stream }
    }

    fn step(&mut self) -> bool {
        let random = u128::from(self.stream.draw());
        self.bad = if self.bad { random >= self.leave } else { random < self.enter };
        self.bad
    }
}

impl Loss {
    pub(crate) fn new(model: &LossModel, seed: u64) -> Self {
        let stream = |stage| Stream::new(seed, stage);
        match model {
            LossModel::None => Self::None,
            LossModel::Independent(probability) => Self::Independent {
                probability: *probability,
                originals: stream(Stage::Loss),
                copies: stream(Stage::LossOfCopies),
            },
            LossModel::Burst { average, mean_burst_milli } => {
                Self::Burst(GilbertElliott::new(*average, *mean_burst_milli, stream(Stage::Loss)))
            }
            LossModel::Periodic { every, offset } => Self::Periodic { every: *every, offset: *offset },
            LossModel::List(numbers) => Self::List { numbers: numbers.clone(), next: 0, last: false },
        }
    }

    /// Whether the packet with this number is lost. Called once for every packet, in order.
    #[inline]
    pub(crate) fn loses(&mut self, number: u64) -> bool {
        match self {
            Self::None => false,
            Self::Independent { probability, originals, .. } => probability.happens(originals.draw()),
            Self::Burst(chain) => chain.step(),
            Self::Periodic { every, offset } => {
                number.checked_sub(*offset).is_some_and(|since| since.is_multiple_of(*every))
            }
            Self::List { numbers, next, last } => {
                *last = numbers.get(*next) == Some(&number);
                *next += usize::from(*last);
                *last
            }
        }
    }

    /// Whether the copy of the packet that `loses` last judged is lost too. Independent loss judges it for itself, from a
    /// stream of its own so that duplication does not move the fates of other packets. Elsewhere it shares its original's.
    #[inline]
    pub(crate) fn loses_copy(&mut self, number: u64) -> bool {
        match self {
            Self::None => false,
            Self::Independent { probability, copies, .. } => probability.happens(copies.draw()),
            Self::Burst(chain) => chain.bad,
            Self::Periodic { .. } => self.loses(number),
            Self::List { last, .. } => *last,
        }
    }
}
