//! Rate and queue.

mod common;

use common::{Event, Log, PACKET_PER_MS, at, bottleneck, ms, open_link, packet, run, stream, with_queue};
use path::{DropCause, Link, LinkConfig, QueueLimit, RateModel};
use proptest::prelude::*;
use units::{Bytes, Duration, Instant, Rate};

#[test]
fn full_packets_at_10_gbit_per_second_leave_every_1200_ns() {
    let log = run(&bottleneck(10_000_000_000), 1, stream(4, 0));
    assert_eq!(log.deliveries(), [(0, 1200), (1, 2400), (2, 3600), (3, 4800)]);
}

#[test]
fn a_million_full_packets_at_800_gbit_per_second_take_15_ms_to_the_nanosecond() {
    // 15 ns each: the smallest whole result. 1499 bytes take 14.99 ns, which no whole number of nanoseconds can show.
    let deep = with_queue(bottleneck(800_000_000_000), |queue| queue.limit = QueueLimit::Packets(u32::MAX));
    let last = |size| {
        let log = run(&deep, 1, (0..1_000_000).map(|number| (at(0), packet(number, size))));
        log.deliveries().last().copied()
    };
    assert_eq!(last(1500), Some((999_999, 15_000_000)));
    assert_eq!(last(1499), Some((999_999, 14_990_000)));
}

#[test]
fn overhead_counts_for_rate_and_queue_but_not_as_delivered() {
    let config = with_queue(bottleneck(PACKET_PER_MS), |queue| queue.limit = QueueLimit::Bytes(Bytes::new(3000)));
    let config = LinkConfig { overhead: Bytes::new(500), ..config };
    let mut link = Link::new(&config, 1).unwrap();
    let mut log = Log::default();
    link.offer(at(0), packet(0, 1000), &mut log);
    assert_eq!(link.backlog().bytes, Bytes::new(1500));
    link.offer(at(0), packet(1, 1001), &mut log);
    link.advance(Instant::MAX, &mut log);
    assert_eq!(log.deliveries(), [(0, 1_000_000)]);
    assert_eq!(log.dropped(DropCause::Overflow), [1]);
    assert_eq!(link.counters().delivered_bytes, Bytes::new(1000));
}

#[test]
fn without_a_bottleneck_packets_arrive_after_the_delay_alone() {
    let config = LinkConfig { delay: Duration::from_millis(7), ..open_link() };
    let mut link = Link::new(&config, 1).unwrap();
    let mut log = Log::default();
    link.offer(at(5), packet(0, 1500), &mut log);
    assert_eq!(link.next_event(), Some(at(7_000_005)));
    link.advance(at(7_000_004), &mut log);
    assert_eq!(log.deliveries(), []);
    link.advance(at(7_000_005), &mut log);
    assert_eq!(log.deliveries(), [(0, 7_000_005)]);
    assert_eq!(link.next_event(), None);
}

#[test]
fn a_full_queue_drops_exactly_what_does_not_fit() {
    for limit in [QueueLimit::Packets(2), QueueLimit::Bytes(Bytes::new(3000)), QueueLimit::Bytes(Bytes::new(4499))] {
        let config = with_queue(bottleneck(PACKET_PER_MS), |queue| queue.limit = limit);
        let mut link = Link::new(&config, 1).unwrap();
        let mut log = Log::default();
        // At 1 ms the first is out and there is one place again.
        for (number, time) in [(0, 0), (1, 0), (2, 0), (3, 999_999), (4, 1_000_000), (5, 1_000_000)] {
            link.offer(at(time), packet(number, 1500), &mut log);
        }
        assert_eq!(log.dropped(DropCause::Overflow), [2, 3, 5], "{limit:?}");
        assert_eq!(link.backlog().packets, 2);
        link.advance(Instant::MAX, &mut log);
        assert_eq!(log.deliveries(), [(0, 1_000_000), (1, 2_000_000), (4, 3_000_000)]);
    }
}

#[test]
fn a_rate_step_takes_effect_in_the_middle_of_a_packet() {
    // 1 ms at 12 Mbit/s for a full packet. At 0.5 ms the rate falls to a tenth: the other half takes 5 ms. At 5.5 ms it is
    // back: the second packet takes 1 ms.
    let steps = [(0, 12), (500, 1), (5500, 12)];
    let rate = |(micros, mbps): (u64, u64)| {
        let bps = if mbps == 1 { 1_200_000 } else { PACKET_PER_MS };
        (Instant::ZERO + Duration::from_micros(micros), Rate::from_bps(bps))
    };
    let config = LinkConfig { rate: RateModel::Steps(steps.map(rate).to_vec()), ..open_link() };
    let log = run(&config, 1, stream(3, 0));
    assert_eq!(log.deliveries(), [(0, 5_500_000), (1, 6_500_000), (2, 7_500_000)]);
    // The first rate holds from the start, wherever its own time is.
    let late = LinkConfig { rate: RateModel::Steps(vec![(ms(10), Rate::from_bps(PACKET_PER_MS))]), ..open_link() };
    assert_eq!(run(&late, 1, stream(1, 0)).deliveries(), [(0, 1_000_000)]);
}

#[test]
fn steps_that_pass_while_nothing_is_sent_are_not_missed() {
    let rates = vec![(ms(0), Rate::from_bps(1)), (ms(1), Rate::from_bps(2)), (ms(2), Rate::from_bps(PACKET_PER_MS))];
    let config = LinkConfig { rate: RateModel::Steps(rates), ..open_link() };
    let log = run(&config, 1, [(ms(2), packet(0, 1500))]);
    assert_eq!(log.deliveries(), [(0, 3_000_000)]);
}

#[test]
fn what_is_inside_comes_back_when_the_link_is_drained() {
    let config = LinkConfig { delay: Duration::from_millis(5), ..bottleneck(PACKET_PER_MS) };
    let mut link = Link::new(&config, 1).unwrap();
    let mut log = Log::default();
    for number in 0..3 {
        link.offer(at(0), packet(number, 1500), &mut log);
    }
    link.advance(at(1_500_000), &mut log);
    assert_eq!((link.in_flight(), link.backlog().packets), (1, 2));
    link.drain(&mut log);
    assert_eq!(log.0[log.0.len() - 3..], [Event::Left(0), Event::Left(1), Event::Left(2)]);
    assert_eq!((link.counters().left, link.in_flight(), link.backlog().packets), (3, 0, 0));
    assert_eq!(link.next_event(), None);
    // And it can be used on.
    link.offer(ms(10), packet(3, 1500), &mut log);
    link.advance(ms(16), &mut log);
    assert_eq!(log.deliveries(), [(3, 16_000_000)]);
}

/// Exact end of a busy period's first `work` nanobits, from when the first rate holds on.
fn end_of(work: u128, start: u64, steps: &[(u64, u64)]) -> u64 {
    let mut done = 0;
    for (index, (from, rate)) in steps.iter().enumerate() {
        let (from, rate) = (u128::from((*from).max(start)), u128::from(*rate));
        let until = steps.get(index + 1).map(|next| u128::from(next.0.max(start)));
        let room = until.map_or(u128::MAX, |until| (until - from) * rate);
        if work - done <= room {
            return (from + (work - done).div_ceil(rate)) as u64;
        }
        done += room;
    }
    unreachable!("the last step has no end")
}

/// Rates from 1 kbit/s to 800 Gbit/s, each decade as likely.
fn rates() -> impl Strategy<Value = u64> {
    (0u32..9, 1_000u64..10_000).prop_map(|(decade, lead)| (lead * 10u64.pow(decade)).min(800_000_000_000))
}

proptest! {
    #[test]
    fn no_rounding_accumulates_in_a_busy_period(
        rate in rates(),
        start in 0u64..1_000_000_000,
        sizes in prop::collection::vec(40u64..9000, 1..200),
    ) {
        let packets = sizes.iter().zip(0..).map(|(size, number)| (at(start), packet(number, *size)));
        let mut work = 0;
        let exact: Vec<_> = sizes.iter().zip(0..).map(|(size, number)| {
            work += u128::from(*size) * 8_000_000_000;
            (number, end_of(work, start, &[(0, rate)]))
        }).collect();
        prop_assert_eq!(run(&bottleneck(rate), 1, packets).deliveries(), exact);
    }

    #[test]
    fn no_rounding_accumulates_over_rate_steps(
        pieces in prop::collection::vec((1u64..50_000_000, rates()), 1..8),
        start in 0u64..10_000_000,
        sizes in prop::collection::vec(40u64..9000, 1..100),
    ) {
        let mut time = 0;
        let steps: Vec<(u64, u64)> = pieces.iter().map(|(length, rate)| {
            time += length;
            (time - length, *rate)
        }).collect();
        let model = steps.iter().map(|(from, rate)| (at(*from), Rate::from_bps(*rate))).collect();
        let config = LinkConfig { rate: RateModel::Steps(model), ..open_link() };
        let first = steps.iter().rposition(|(from, _)| *from <= start).unwrap();
        let mut work = 0;
        let exact: Vec<_> = sizes.iter().zip(0..).map(|(size, number)| {
            work += u128::from(*size) * 8_000_000_000;
            (number, end_of(work, start, &steps[first..]))
        }).collect();
        let packets = sizes.iter().zip(0..).map(|(size, number)| (at(start), packet(number, *size)));
        prop_assert_eq!(run(&config, 1, packets).deliveries(), exact);
    }

    #[test]
    fn an_idle_link_serves_each_packet_from_its_arrival(rate in rates(), gap in 1u64..1000, size in 40u64..9000) {
        let service = (u128::from(size) * 8_000_000_000).div_ceil(u128::from(rate)) as u64;
        let spacing = service + gap;
        let packets = (0..20).map(|number| (at(number * spacing), packet(number, size)));
        let exact: Vec<_> = (0..20).map(|number| (number, number * spacing + service)).collect();
        prop_assert_eq!(run(&bottleneck(rate), 1, packets).deliveries(), exact);
    }

    #[test]
    fn a_drop_tail_queue_drops_exactly_when_full(
        in_bytes in any::<bool>(),
        limit in 1u64..20,
        arrivals in prop::collection::vec((0u64..2_000_000, 40u64..1500), 1..300),
    ) {
        let limit = if in_bytes { QueueLimit::Bytes(Bytes::new(limit * 1500)) } else { QueueLimit::Packets(limit as u32) };
        let config = with_queue(bottleneck(PACKET_PER_MS), |queue| queue.limit = limit);
        let mut time = 0;
        let packets: Vec<_> = arrivals.iter().zip(0..).map(|((gap, size), number)| {
            time += gap;
            (at(time), packet(number, *size))
        }).collect();
        let sizes: Vec<u64> = arrivals.iter().map(|(_, size)| *size).collect();
        // What the driver sees at each decision, kept apart from what the link says about its backlog.
        let (mut count, mut bytes) = (0u32, 0u64);
        for event in &run(&config, 1, packets).0 {
            let size = |number: &u64| sizes[*number as usize];
            let fits = |number| match limit {
                QueueLimit::Bytes(limit) => bytes + size(number) <= limit.as_u64(),
                QueueLimit::Packets(limit) => count < limit,
            };
            match event {
                Event::Queued(_, number, backlog) => {
                    prop_assert!(fits(number));
                    count += 1;
                    bytes += size(number);
                    prop_assert_eq!((backlog.packets, backlog.bytes.as_u64()), (count, bytes));
                }
                Event::Dequeued(_, number, _, backlog) => {
                    count -= 1;
                    bytes -= size(number);
                    prop_assert_eq!((backlog.packets, backlog.bytes.as_u64()), (count, bytes));
                }
                Event::Dropped(_, number, cause) => {
                    prop_assert_eq!(*cause, DropCause::Overflow);
                    prop_assert!(!fits(number));
                }
                _ => {}
            }
        }
    }
}
