//! Rate and queue.

mod common;

use common::{Event, Log, at, bottleneck, open_link, packet};
use path::{DropCause, Link, LinkConfig, QueueConfig, QueueLimit};
use units::{Bytes, Duration, Instant};

#[test]
fn full_packets_at_10_gbit_per_second_leave_every_1200_ns() {
    let mut link = Link::new(&bottleneck(10_000_000_000), 1).unwrap();
    let mut log = Log::default();
    for number in 0..4 {
        link.offer(at(0), packet(number, 1500), &mut log);
    }
    link.advance(at(5000), &mut log);
    assert_eq!(log.deliveries(), [(0, 1200), (1, 2400), (2, 3600), (3, 4800)]);
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
        let plain = bottleneck(12_000_000);
        let config = LinkConfig { queue: QueueConfig { limit, ..plain.queue }, ..plain };
        let mut link = Link::new(&config, 1).unwrap();
        let mut log = Log::default();
        // One packet takes 1 ms: at 1 ms the first is out and there is one place again.
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
fn what_is_inside_comes_back_when_the_link_is_drained() {
    let config = LinkConfig { delay: Duration::from_millis(5), ..bottleneck(12_000_000) };
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
}
