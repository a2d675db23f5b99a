//! CUBIC's and Reno's goodput under random loss, held against their RFCs' response functions.

mod common;

use common::*;
use path::LossModel;
use sim::{AckPolicy, FlowConfig};
use units::{Probability, Rate};

/// Segments acknowledged per round trip, on average over `seeds` runs, on a path that is never full: 10 Gbit/s, 100 ms.
fn window(control: &str, loss_ppb: u32, seconds: u64, every: u32) -> f64 {
    let seeds = 4;
    let total: f64 = (1..=seeds)
        .map(|seed| {
            let (mut forward, back) = path(Rate::from_mbps(10_000), ms(100), 1000);
            forward.loss = LossModel::Independent(Probability::from_ppb(loss_ppb));
            let acks = AckPolicy { every, ..AckPolicy::default() };
            let mut config = config(forward, back, vec![FlowConfig { acks, ..bulk(control) }]);
            config.seed = seed;
            let mut world = sim::World::new(config).unwrap();
            goodput(&mut world, 0, ms(seconds * 200), ms(seconds * 1200)) * 1e6 / 8.0 / 1448.0 * 0.1
        })
        .sum();
    total / f64::from(seeds as u32)
}

/// Within 15 % of what the RFC gives.
fn assert_follows(control: &str, loss: u32, seconds: u64, expected: f64) {
    let measured = window(control, loss, seconds, 2);
    let off = measured / expected - 1.0;
    println!(
        "{control} at {} %: {measured:.1} segments, RFC {expected:.1}, {:+.1} %",
        f64::from(loss) / 1e7,
        off * 100.0
    );
    assert!(off.abs() < 0.15, "{control} at {loss} ppb: {measured} segments in flight, expected {expected}");
}

/// RFC 3649 section 1 and RFC 5166: W = 1.22 / sqrt(p), for a sender that counts packets rather than ACKs.
#[test]
fn reno_follows_its_response_function() {
    for (loss, seconds) in [(100_000, 600), (1_000_000, 200), (10_000_000, 60)] {
        assert_follows("reno", loss, seconds, 1.22 / (f64::from(loss) / 1e9).sqrt());
    }
}
