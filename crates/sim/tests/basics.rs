//! One flow over a plain path.

mod common;

use common::*;
use sim::Traffic;
use units::{Bytes, Duration, Rate};

#[test]
fn one_flow_fills_a_link_without_loss() {
    let (forward, back) = path(Rate::from_mbps(100), ms(20), 1000);
    let mut world = world(forward, back, vec![bulk("reno")]);
    let goodput = goodput(&mut world, 0, ms(2000), ms(12_000));
    // 1448 of 1500 bytes are payload.
    assert!((94.0..96.6).contains(&goodput), "{goodput} Mbit/s");
}

#[test]
fn a_transfer_ends_with_its_last_byte_and_takes_handshake_and_slow_start() {
    let (forward, back) = path(Rate::from_mbps(100), ms(20), 1000);
    let amount = Bytes::new(100_000);
    let mut world = world(forward, back, vec![flow("reno", Traffic::Bulk { bytes: Some(amount) })]);
    world.run(at(ms(1000)));
    let outcome = world.outcome(0);
    assert_eq!(outcome.received, amount);
    let completed = outcome.completed.unwrap().since(outcome.start);
    // 70 segments: a handshake of one round trip, then 10, 20 and 40 in three, the last one way only.
    assert!((ms(70)..ms(80)).contains(&completed), "{completed}");
    assert_eq!(outcome.counters.retransmitted, 0);
}

#[test]
fn requests_and_responses_take_turns_with_their_pause() {
    let (forward, back) = path(Rate::from_mbps(100), ms(20), 1000);
    let traffic = Traffic::RequestResponse { request: Bytes::new(100), response: Bytes::new(4000), pause: ms(30) };
    let mut world = world(forward, back, vec![flow("reno", traffic)]);
    world.run(at(ms(1035)));
    let outcome = world.outcome(0);
    // Each takes a round trip and the pause: 50 ms.
    assert!((19..=21).contains(&outcome.response_times.len()), "{:?}", outcome.response_times);
    assert!(outcome.response_times.iter().all(|time| (ms(20)..ms(22)).contains(time)), "{:?}", outcome.response_times);
}

#[test]
fn a_paced_application_gets_its_rate_and_no_more() {
    let (forward, back) = path(Rate::from_mbps(100), ms(20), 1000);
    let traffic = Traffic::Paced { rate: Rate::from_mbps(5), every: ms(40) };
    let mut world = world(forward, back, vec![flow("reno", traffic)]);
    let goodput = goodput(&mut world, 0, ms(1000), ms(11_000));
    assert!((4.95..5.05).contains(&goodput), "{goodput} Mbit/s");
}

#[test]
fn the_slowest_of_several_links_in_a_row_decides() {
    let mut config = config(link(Rate::from_mbps(100), ms(5), Bytes::new(500_000)), back(ms(10)), vec![bulk("reno")]);
    config.forward.push(link(Rate::from_mbps(20), ms(5), Bytes::new(50_000)));
    config.forward.push(link(Rate::from_mbps(50), Duration::ZERO, Bytes::new(500_000)));
    let mut world = sim::World::new(config).unwrap();
    let goodput = goodput(&mut world, 0, ms(2000), ms(12_000));
    assert!((18.0..19.4).contains(&goodput), "{goodput} Mbit/s");
    let counters = world.forward_counters();
    assert_eq!((counters[0].dropped_overflow, counters[2].dropped_overflow), (0, 0));
    assert!(counters[1].dropped_overflow > 0);
}
