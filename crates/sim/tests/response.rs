//! CUBIC's and Reno's goodput under random loss, held against their RFCs' response functions.

mod common;

use common::*;
use path::LossModel;
use units::{Probability, Rate};

/// How packets are lost.
#[derive(Clone, Copy, Debug)]
enum Losses {
    /// Each for itself with this chance, in parts per billion.
    Random(u32),
    /// Every so many, as the RFCs' functions have it.
    Even(u64),
}

impl Losses {
    fn rate(self) -> f64 {
        match self {
            Self::Random(ppb) => f64::from(ppb) / 1e9,
            Self::Even(every) => 1.0 / every as f64,
        }
    }
}

/// Segments acknowledged per round trip, on average over four runs, on a path that is never full: 10 Gbit/s, 100 ms.
fn window(control: &str, losses: Losses, seconds: u64) -> f64 {
    let seeds = 4u32;
    let one = |seed: u32| {
        let (mut forward, back) = path(Rate::from_mbps(10_000), ms(100), 1000);
        forward.loss = match losses {
            Losses::Random(ppb) => LossModel::Independent(Probability::from_ppb(ppb)),
            Losses::Even(every) => LossModel::Periodic { every, offset: every / 2 + u64::from(seed) },
        };
        let mut config = config(forward, back, vec![bulk(control)]);
        config.seed = u64::from(seed);
        let mut world = sim::World::new(config).unwrap();
        goodput(&mut world, 0, ms(seconds * 200), ms(seconds * 1200)) * 1e6 / 8.0 / 1448.0 * 0.1
    };
    (1..=seeds).map(one).sum::<f64>() / f64::from(seeds)
}

/// Within 15 % of what is expected.
fn assert_follows(control: &str, losses: Losses, seconds: u64, expected: f64) {
    let measured = window(control, losses, seconds);
    let off = measured / expected - 1.0;
    println!("{control}, {losses:?}: {measured:.1} segments, expected {expected:.1}, {:+.1} %", off * 100.0);
    assert!(off.abs() < 0.15, "{control}, {losses:?}: {measured} segments in flight, expected {expected}");
}

/// Loss rates and how long they take to average out, in seconds.
const RANDOM: [(Losses, u64); 3] =
    [(Losses::Random(100_000), 600), (Losses::Random(1_000_000), 200), (Losses::Random(10_000_000), 60)];
/// Not more: where ten segments are in flight the laws, which know no whole segments, are 20 % above.
const EVEN: [(Losses, u64); 2] = [(Losses::Even(10_000), 300), (Losses::Even(1000), 100)];

/// RFC 3649 section 1: W = 1.22 / sqrt(p), for a sender that counts packets rather than ACKs.
#[test]
fn reno_follows_its_response_function() {
    for (losses, seconds) in RANDOM.into_iter().chain(EVEN) {
        assert_follows("reno", losses, seconds, 1.22 / losses.rate().sqrt());
    }
}

/// RFC 9438 section 5.1 is derived for evenly spaced losses: W = (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4) with C = 0.4 and
/// beta = 0.7; and no less than Reno's (section 4.3).
#[test]
fn cubic_follows_its_response_function() {
    for (losses, seconds) in EVEN {
        let p = losses.rate();
        let cubic = (0.4f64 * 3.7 / (4.0 * 0.3)).powf(0.25) * (0.1 / p).powf(0.75);
        assert_follows("cubic", losses, seconds, cubic.max(1.22 / p.sqrt()));
    }
}

/// With losses at random the same window law averages to W = 1.3004 (RTT / p)^(3/4), a quarter more (Poojary and Sharma, "An asymptotic
/// approximation for TCP CUBIC"), where the Reno-friendly region does not matter.
#[test]
fn cubic_under_random_loss_follows_the_law_for_random_loss() {
    assert_follows("cubic", Losses::Random(100_000), 600, 1.3004 * (0.1f64 / 1e-4).powf(0.75));
    assert_follows("cubic", Losses::Random(10_000_000), 60, 1.22 / 0.01f64.sqrt());
}
