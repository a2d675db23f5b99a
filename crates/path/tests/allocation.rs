//! Buffers grow until a link has carried its bandwidth-delay product once; from then on nothing is allocated.

mod common;

use common::{bottleneck, packet, with_queue};
use path::{CoDel, Delivery, Discipline, DropCause, FlowId, Link, LinkConfig, LossModel, Packet, QueueLimit, Sink};
use units::{Bytes, Duration, Instant, Probability};

#[derive(Default)]
struct Count(u64);

impl Sink<u64> for Count {
    fn deliver(&mut self, _delivery: Delivery<u64>) {
        self.0 += 1;
    }
    fn dropped(&mut self, _at: Instant, _packet: Packet<u64>, _number: u64, _cause: DropCause) {}
}

/// Allocations while packets of eight flows arrive at 110 % of the bottleneck for `count` packet times.
fn allocations(link: &mut Link<u64>, now: &mut Instant, count: u64) -> u64 {
    let mut sink = Count::default();
    let info = allocation_counter::measure(|| {
        for number in 0..count {
            *now += Duration::from_nanos(10_900);
            let flow = (number % 8) as u16;
            let packet = Packet { flow: FlowId(flow), hash: u32::from(flow), ..packet(number, 1500) };
            link.offer(*now, packet, &mut sink);
        }
    });
    assert!(sink.0 > count / 2);
    info.count_total
}

#[test]
fn a_warm_link_allocates_nothing_per_packet() {
    let codel = CoDel { target: Duration::from_millis(1), interval: Duration::from_millis(10) };
    let plain = LinkConfig {
        delay: Duration::from_millis(20),
        flow_delay: (0..4).map(|flow| (FlowId(flow), Duration::from_millis(10 + u64::from(flow)))).collect(),
        jitter: Duration::from_micros(100),
        loss: LossModel::Independent(Probability::from_ppb(1_000_000)),
        ..bottleneck(1_000_000_000)
    };
    for discipline in [
        Discipline::DropTail,
        Discipline::CoDel(codel),
        Discipline::FqCoDel { codel, buckets: 64, quantum: Bytes::new(1500) },
    ] {
        let config = with_queue(plain.clone(), |queue| {
            (queue.discipline, queue.limit) = (discipline, QueueLimit::Packets(200));
        });
        let mut link = Link::new(&config, 1).unwrap();
        let mut now = Instant::ZERO;
        assert!(allocations(&mut link, &mut now, 200_000) > 0, "the count works");
        assert_eq!(allocations(&mut link, &mut now, 100_000), 0, "{discipline:?}");
    }
}
