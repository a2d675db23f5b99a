//! Loss detection and repair, end to end: RFC 8985 (RACK-TLP), RFC 5682 (F-RTO), RFC 6937 (PRR), RFC 3168 (ECN), windows and buffers.
//!
//! Packet 0 of the data direction is the SYN; segment k is packet k + 1 until something is sent again.

mod common;

use common::*;
use path::{CoDel, Discipline, LinkConfig, LossModel, RateModel, Reorder};
use sim::{AckPolicy, Buffers, FlowOutcome, Traffic, World};
use units::{Bytes, Duration, Instant, Probability, Rate};

const SEGMENT: u64 = 1448;

/// 100 Mbit/s, 40 ms, a queue of one BDP: `segments` of data, of which the packets with these numbers are lost.
fn transfer(segments: u64, lost: &[u64]) -> FlowOutcome {
    let (mut forward, back) = path(Rate::from_mbps(100), ms(40), 1000);
    forward.loss = LossModel::List(lost.to_vec());
    let amount = Traffic::Bulk { bytes: Some(Bytes::new(segments * SEGMENT)) };
    let mut world = world(forward, back, vec![flow("reno", amount)]);
    world.run(at(ms(60_000)));
    let outcome = world.outcome(0);
    assert!(outcome.completed.is_some(), "{outcome:?}");
    outcome
}

fn took(outcome: &FlowOutcome) -> Duration {
    outcome.completed.unwrap().since(outcome.start)
}

#[test]
fn a_loss_in_the_middle_is_repaired_within_a_round_trip_by_one_retransmission() {
    let (whole, repaired) = (transfer(100, &[]), transfer(100, &[30]));
    assert_eq!((whole.counters.retransmitted, whole.counters.recoveries), (0, 0));
    let counters = repaired.counters;
    assert_eq!((counters.retransmitted, counters.recoveries, counters.timeouts, counters.probes), (1, 1, 0, 0));
    assert!(took(&repaired) <= took(&whole) + ms(45), "{} after {}", took(&repaired), took(&whole));
}

#[test]
fn many_losses_of_one_flight_are_one_recovery() {
    let outcome = transfer(300, &[40, 42, 44, 46, 48, 50, 52, 54]);
    let counters = outcome.counters;
    assert_eq!((counters.retransmitted, counters.recoveries, counters.timeouts), (8, 1, 0));
}

/// RFC 8985 section 3.1: a probe after two round trips, not a timeout.
#[test]
fn a_lost_tail_is_found_by_a_probe() {
    let (whole, repaired) = (transfer(10, &[]), transfer(10, &[10]));
    let counters = repaired.counters;
    assert_eq!((counters.probes, counters.retransmitted, counters.timeouts), (1, 1, 0));
    // Two smoothed round trips and 2 ms, or a little more for the lone packet's ACK.
    let late = took(&repaired) - took(&whole);
    assert!((ms(60)..ms(290)).contains(&late), "{late}");
}

#[test]
fn a_lost_end_of_a_flight_is_found_by_a_probe_and_repaired_by_recovery() {
    let outcome = transfer(30, &[24, 25, 26, 27, 28, 29, 30]);
    let counters = outcome.counters;
    assert_eq!((counters.probes, counters.timeouts, counters.recoveries), (1, 0, 1), "{counters:?}");
    assert_eq!(counters.retransmitted, 7, "each once, the probe among them");
}

/// RFC 8985 section 3.2: a retransmission that is lost too is sent again without a timeout.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    // The transfer waits for the repair at its end. Which packet is the retransmission? The one whose loss makes it wait a round trip longer.
    let once = transfer(120, &[100]);
    let twice = (101..200).map(|number| transfer(120, &[100, number])).find(|outcome| {
        outcome.counters.retransmitted == 2 && outcome.counters.recoveries == 1 && took(outcome) >= took(&once) + ms(35)
    });
    let twice = twice.expect("one of the packets is the retransmission");
    assert_eq!(twice.counters.timeouts, 0);
    assert!(took(&twice) < took(&once) + ms(100), "{} after {}", took(&twice), took(&once));
}

#[test]
fn a_flight_lost_whole_takes_a_timeout_and_no_more_than_that() {
    let outcome = transfer(10, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert!(outcome.counters.timeouts >= 1);
    assert!(took(&outcome) < ms(2000), "{}", took(&outcome));
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    let (whole, late) = (transfer(5, &[]), transfer(5, &[0]));
    assert_eq!(took(&late), took(&whole) + ms(1000));
}

fn run(forward: LinkConfig, back: LinkConfig, flow: sim::FlowConfig, time: Duration) -> (World, FlowOutcome, f64) {
    let mut world = world(forward, back, vec![flow]);
    let goodput = goodput(&mut world, 0, time / 5, time);
    let outcome = world.outcome(0);
    (world, outcome, goodput)
}

/// RFC 8985 section 6.2: once reordering was seen, it is waited for.
#[test]
fn reordering_within_a_quarter_of_the_round_trip_costs_next_to_nothing() {
    let (mut forward, back) = path(Rate::from_mbps(50), ms(40), 2000);
    let straight = run(forward.clone(), back.clone(), bulk("reno"), ms(20_000));
    forward.reorder = Some(Reorder { probability: Probability::from_ppb(50_000_000), advance: ms(8) });
    let reordered = run(forward, back, bulk("reno"), ms(20_000));
    assert!(reordered.2 > 0.97 * straight.2, "{} of {} Mbit/s", reordered.2, straight.2);
    let counters = reordered.1.counters;
    let drops = reordered.0.forward_counters()[0].dropped_overflow;
    assert!(counters.retransmitted <= drops + 40, "{counters:?}, {drops} dropped");
}

/// The path stands still for longer than a timeout, and nothing is lost.
#[test]
fn a_spurious_timeout_is_undone() {
    let (mut forward, back) = path(Rate::from_mbps(20), ms(40), 4000);
    let second = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
    forward.rate = RateModel::Steps(vec![
        (Instant::ZERO, Rate::from_mbps(20)),
        (second(2), Rate::from_bps(1000)),
        (second(3), Rate::from_mbps(20)),
    ]);
    let amount = Traffic::Bulk { bytes: Some(Bytes::new(20_000_000)) };
    let mut flow = flow("reno", amount);
    // Less than what the queue holds, so that nothing is lost.
    flow.buffers.receive_initial = Bytes::new(200_000);
    flow.buffers.receive_most = Bytes::new(200_000);
    let (world, outcome, _) = run(forward, back, flow, ms(20_000));
    assert_eq!(world.forward_counters()[0].dropped_overflow, 0);
    assert!(outcome.counters.timeouts >= 1 && outcome.counters.undone >= 1, "{:?}", outcome.counters);
    assert!(outcome.counters.retransmitted <= 10, "{:?}", outcome.counters);
}

#[test]
fn marks_reduce_the_window_and_nothing_is_sent_again() {
    let (mut forward, back) = path(Rate::from_mbps(50), ms(40), 4000);
    forward.queue.discipline = Discipline::CoDel(CoDel { target: ms(5), interval: ms(100) });
    forward.queue.ecn = true;
    let mut flow = bulk("reno");
    flow.ecn = true;
    let (world, outcome, goodput) = run(forward, back, flow, ms(60_000));
    let counters = world.forward_counters()[0];
    assert!(counters.marked > 0);
    // Slow start overruns the queue once; afterwards it is kept short.
    assert!(outcome.counters.recoveries <= 1, "{:?}", outcome.counters);
    assert!(goodput > 38.0, "{goodput} Mbit/s");
}

#[test]
fn the_receive_window_limits_a_flow_and_says_so() {
    let (forward, back) = path(Rate::from_mbps(100), ms(100), 1000);
    let mut flow = bulk("reno");
    flow.buffers = Buffers { receive_most: Bytes::new(500_000), ..large() };
    flow.buffers.receive_initial = Bytes::new(131_072);
    let expected = 500_000.0 * f64::from(sim::PAYLOAD_PER_256) / 256.0 * 8.0 / 0.1 / 1e6;
    let (_, outcome, goodput) = run(forward, back, flow, ms(20_000));
    assert!((goodput / expected - 1.0).abs() < 0.03, "{goodput} Mbit/s, expected {expected}");
    let (limited, busy) = (outcome.counters.window_limited, outcome.counters.busy);
    assert!(limited.as_secs_f64() > 0.9 * busy.as_secs_f64(), "{limited} of {busy}");
}

#[test]
fn the_send_buffer_limits_a_flow_and_says_so() {
    let (forward, back) = path(Rate::from_mbps(100), ms(100), 1000);
    let mut flow = bulk("reno");
    flow.buffers = Buffers { send_most: Bytes::new(500_000), ..large() };
    let (_, outcome, goodput) = run(forward, back, flow, ms(20_000));
    assert!((25.0..40.5).contains(&goodput), "{goodput} Mbit/s");
    let (limited, busy) = (outcome.counters.buffer_limited, outcome.counters.busy);
    assert!(limited.as_secs_f64() > 0.8 * busy.as_secs_f64(), "{limited} of {busy}");
}

#[test]
fn stretched_acks_cost_little() {
    let (forward, back) = path(Rate::from_mbps(100), ms(40), 1000);
    let plain = run(forward.clone(), back.clone(), bulk("reno"), ms(20_000));
    let mut flow = bulk("reno");
    flow.acks = AckPolicy { every: 16, coalesce: ms(2), compress_sacks: true };
    let stretched = run(forward, back, flow, ms(20_000));
    assert!(stretched.2 > 0.95 * plain.2, "{} of {} Mbit/s", stretched.2, plain.2);
    let acks = |world: &World| world.back_counters()[0].offered;
    assert!(acks(&stretched.0) < acks(&plain.0) / 4);
}

/// Packets that arrive at the same moment were sent as one burst.
#[test]
fn bursts_are_as_long_as_they_are_set() {
    let sent_at_once = |burst| {
        let (forward, back) = path(Rate::from_mbps(100), ms(40), 1000);
        let mut flow = bulk("bbr3");
        flow.burst = Some(burst);
        let (world, _, _) = run(forward, back, flow, ms(5000));
        world.records().next().unwrap().buckets().iter().skip(30).map(|bucket| bucket.queue_max_bytes / 1500).max()
    };
    let (short, long) = (sent_at_once(1).unwrap(), sent_at_once(32).unwrap());
    assert!(long >= 32 && short < long, "{short} and {long} packets in the queue");
}
