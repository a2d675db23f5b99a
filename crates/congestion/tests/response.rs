//! Reno and CUBIC at random loss, held against the response functions of their RFCs.

mod common;

use common::{Application, RateModel, World, at, link, loss};
use congestion::{Controller, Cubic, Reno};
use units::{Duration, Instant, Rate};

/// How packets are lost.
#[derive(Debug, Clone, Copy)]
enum Losses {
    /// Each for itself, percent.
    Random(f64),
    /// Each of this number.
    Every(u64),
}

/// Average packets per round trip on a path that nothing else limits, over `seconds` after the first 60.
fn window(cc: impl Controller, rtt_ms: u64, losses: Losses, seconds: u64) -> f64 {
    let rtt = Duration::from_millis(rtt_ms);
    let percent = if let Losses::Random(percent) = losses { percent } else { 0.0 };
    let path = link(RateModel::Constant(Rate::from_mbps(10_000)), rtt, 1_000_000, loss(percent));
    let mut world = World::with(cc, path, rtt, Application::Bulk);
    if let Losses::Every(every) = losses {
        world.drop_every = Some(every);
    }
    world.run(at(60_000));
    let (before, from) = (world.sender.delivered(), world.now);
    world.run(Instant::ZERO + Duration::from_secs(60 + seconds));
    let rounds = world.now.since(from).as_secs_f64() / rtt.as_secs_f64();
    (world.sender.delivered() - before) as f64 / rounds
}

fn within(share: f64, what: &str, got: f64, expected: f64) {
    println!("{what}: {got:.1} packets, {expected:.1} expected, {:+.1} %", 100.0 * (got / expected - 1.0));
    assert!((got / expected - 1.0).abs() < share, "{what}: {got:.1} packets, {expected:.1} expected");
}

#[test]
fn reno_follows_its_response_function() {
    // Mathis et al. 1997, as RFC 3448 and RFC 9438 (equation 6) have it: sqrt(3/2) / sqrt(p), for a packet more each round trip.
    for (percent, seconds) in [(0.05, 1500), (0.2, 800)] {
        let expected = (1.5 / (percent / 100.0_f64)).sqrt();
        within(0.15, "Reno", window(Reno::new(), 100, Losses::Random(percent), seconds), expected);
    }
}

/// RFC 9438, equation 5: (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4).
fn cubic(rtt_ms: u64, p: f64) -> f64 {
    (0.4 * 3.7 / (4.0 * 0.3_f64)).powf(0.25) * (rtt_ms as f64 / 1000.0 / p).powf(0.75)
}

#[test]
fn cubic_follows_its_response_function_where_every_nth_packet_is_lost() {
    // What the equation is derived from; it leaves out the round trip until a loss is seen and the one of recovery, two of 33.
    let got = window(Cubic::default(), 200, Losses::Every(10_000), 400);
    within(0.12, "CUBIC, periodic", got, cubic(200, 1.0 / 10_000.0));
}

#[test]
fn cubic_follows_its_response_function_at_random_loss() {
    // Random losses favour it: a run of the bare equations, round by round, comes out 7 to 14 % above with other seeds.
    let got = window(Cubic::default(), 1000, Losses::Random(0.1), 6000);
    within(0.15, "CUBIC, random", got, cubic(1000, 0.001));
}

#[test]
fn where_reno_is_faster_cubic_is_as_fast() {
    // RFC 9438, section 4.3: short round trips.
    for (percent, seconds) in [(0.1, 400), (0.5, 200)] {
        let expected = (1.5 / (percent / 100.0_f64)).sqrt();
        within(0.15, "CUBIC", window(Cubic::default(), 10, Losses::Random(percent), seconds), expected);
    }
}
