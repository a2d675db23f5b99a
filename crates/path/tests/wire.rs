//! Delay, jitter, reordering.

mod common;

use std::collections::BTreeSet;

use common::{at, bottleneck, ms, open_link, packet, plausible, run, stream};
use path::{FlowId, LinkConfig, Packet, Reorder};
use units::{Duration, Probability};

const MS: u64 = 1_000_000;

fn delayed(millis: u64) -> LinkConfig {
    LinkConfig { delay: Duration::from_millis(millis), ..open_link() }
}

fn of_flow(flow: u16, packet: Packet<u64>) -> Packet<u64> {
    Packet { flow: FlowId(flow), ..packet }
}

#[test]
fn each_flow_has_its_own_delay_and_others_the_links() {
    let flow_delay = vec![(FlowId(1), Duration::from_millis(3)), (FlowId(4), Duration::from_millis(30))];
    let config = LinkConfig { flow_delay, ..delayed(10) };
    let flows = [0, 1, 2, 4, 5, 1];
    let packets = flows.iter().zip(0..).map(|(flow, number)| (at(number), of_flow(*flow, packet(number, 100))));
    let log = run(&config, 1, packets);
    let due = |number, millis| (number, millis * MS + number);
    assert_eq!(log.deliveries(), [due(1, 3), due(5, 3), due(0, 10), due(2, 10), due(4, 10), due(3, 30)]);
}

#[test]
fn of_two_deliveries_due_together_the_first_to_leave_is_first() {
    // Flow 2 leaves 5 ms later with 5 ms less to go.
    let flow_delay = vec![(FlowId(2), Duration::from_millis(5))];
    let config = LinkConfig { flow_delay, ..delayed(10) };
    let log = run(
        &config,
        1,
        [
            (ms(0), packet(0, 100)),
            (ms(0), packet(1, 100)),
            (ms(5), of_flow(2, packet(2, 100))),
            (ms(5), packet(3, 100)),
        ],
    );
    assert_eq!(log.deliveries(), [(0, 10 * MS), (1, 10 * MS), (2, 10 * MS), (3, 15 * MS)]);
}

#[test]
fn jitter_is_uniform_up_to_its_limit_and_keeps_the_order() {
    // So far apart that none has to wait for the one before.
    let config = LinkConfig { jitter: Duration::from_nanos(3), ..delayed(1) };
    let log = run(&config, 1, stream(100_000, 10));
    let mut seen = [0; 4];
    for (number, due) in log.deliveries() {
        seen[(due - MS - number * 10) as usize] += 1;
    }
    assert!(seen.iter().all(|hits| plausible(*hits, 100_000, 0.25, 1.0)), "{seen:?}");

    let config = LinkConfig { jitter: Duration::from_millis(5), ..delayed(1) };
    let log = run(&config, 1, stream(10_000, 10_000));
    assert!(log.deliveries().is_sorted_by_key(|(number, _)| *number));
    let apart: BTreeSet<_> = log.deliveries().windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(apart.contains(&0) && apart.len() > 100, "packets bunch up and spread");
    for (number, due) in log.deliveries() {
        let delay = due - number * 10_000;
        assert!((MS..=6 * MS).contains(&delay), "{delay}");
    }
}

#[test]
fn reordered_packets_skip_part_of_the_delay_and_others_keep_their_order() {
    let reorder = Reorder { probability: Probability::from_ppb(100_000_000), advance: Duration::from_millis(4) };
    let config = LinkConfig { reorder: Some(reorder), ..delayed(10) };
    let log = run(&config, 1, stream(100_000, MS));
    let early: Vec<u64> = log
        .deliveries()
        .iter()
        .filter(|(number, due)| due - number * MS == 6 * MS)
        .map(|(number, _)| *number)
        .collect();
    let late: Vec<u64> = log
        .deliveries()
        .iter()
        .filter(|(number, due)| due - number * MS == 10 * MS)
        .map(|(number, _)| *number)
        .collect();
    assert_eq!(early.len() + late.len(), 100_000);
    assert!(plausible(early.len() as u64, 100_000, 0.1, 1.0), "{}", early.len());
    assert!(early.is_sorted() && late.is_sorted());
    assert!(!log.deliveries().is_sorted_by_key(|(number, _)| *number), "some did overtake");
}

#[test]
fn reordering_works_for_flows_with_delays_of_their_own() {
    let reorder = Reorder { probability: Probability::ONE, advance: Duration::from_millis(2) };
    let flow_delay = vec![(FlowId(7), Duration::from_millis(20))];
    let config = LinkConfig { reorder: Some(reorder), flow_delay, ..delayed(10) };
    let log = run(&config, 1, [(at(0), of_flow(7, packet(0, 100))), (at(0), packet(1, 100))]);
    assert_eq!(log.deliveries(), [(1, 8 * MS), (0, 18 * MS)]);
}

#[test]
fn order_is_kept_through_the_bottleneck_unless_reordering_is_asked_for() {
    let config = LinkConfig {
        jitter: Duration::from_millis(3),
        duplicate: Probability::from_ppb(100_000_000),
        ..bottleneck(common::PACKET_PER_MS)
    };
    let numbers =
        |config: &LinkConfig| run(config, 3, stream(900, MS)).deliveries().iter().map(|d| d.0).collect::<Vec<_>>();
    assert!(numbers(&config).is_sorted());
    let reorder = Reorder { probability: Probability::from_ppb(10_000_000), advance: Duration::from_millis(9) };
    let asked = LinkConfig { reorder: Some(reorder), delay: Duration::from_millis(9), ..config };
    assert!(!numbers(&asked).is_sorted());
}

#[test]
fn a_delay_beyond_the_end_of_time_never_ends() {
    let config = LinkConfig { delay: Duration::MAX, ..open_link() };
    let mut link = path::Link::new(&config, 1).unwrap();
    let mut log = common::Log::default();
    link.offer(at(1), packet(0, 100), &mut log);
    assert_eq!(link.next_event(), None);
    link.advance(units::Instant::MAX, &mut log);
    assert_eq!((log.deliveries(), link.in_flight()), (vec![], 1));
}
