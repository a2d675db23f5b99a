//! What the tests of a link share: a plain configuration, packets, and a sink that writes everything down.
#![allow(dead_code)]

use path::{
    Backlog, Delivery, Discipline, DropCause, Ecn, FlowId, LinkConfig, LossModel, Packet, QueueConfig, QueueLimit,
    RateModel, Sink,
};
use units::{Bytes, Duration, Instant, Probability, Rate};

/// Everything a sink can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Delivered(Delivery<u64>),
    Dropped(Instant, u64, DropCause),
    Queued(Instant, u64, Backlog),
    Dequeued(Instant, u64, Duration, Backlog),
    Marked(Instant, u64),
    Left(u64),
}

/// Writes down what it is told, in order.
#[derive(Debug, Default)]
pub struct Log(pub Vec<Event>);

impl Sink<u64> for Log {
    fn deliver(&mut self, delivery: Delivery<u64>) {
        self.0.push(Event::Delivered(delivery));
    }
    fn dropped(&mut self, at: Instant, packet: Packet<u64>, number: u64, cause: DropCause) {
        assert_eq!(packet.token, number, "tokens are numbers in these tests");
        self.0.push(Event::Dropped(at, number, cause));
    }
    fn queued(&mut self, at: Instant, _packet: &Packet<u64>, number: u64, backlog: Backlog) {
        self.0.push(Event::Queued(at, number, backlog));
    }
    fn dequeued(&mut self, at: Instant, _packet: &Packet<u64>, number: u64, sojourn: Duration, backlog: Backlog) {
        self.0.push(Event::Dequeued(at, number, sojourn, backlog));
    }
    fn marked(&mut self, at: Instant, packet: &Packet<u64>, number: u64) {
        assert_eq!(packet.ecn, Ecn::Ce);
        self.0.push(Event::Marked(at, number));
    }
    fn left(&mut self, _packet: Packet<u64>, number: u64) {
        self.0.push(Event::Left(number));
    }
}

impl Log {
    /// Number and time of each delivery.
    pub fn deliveries(&self) -> Vec<(u64, u64)> {
        let each = self.0.iter().filter_map(|event| match event {
            Event::Delivered(delivery) => Some((delivery.number, delivery.due.as_nanos())),
            _ => None,
        });
        each.collect()
    }

    /// Numbers of the packets dropped for this cause.
    pub fn dropped(&self, cause: DropCause) -> Vec<u64> {
        let each = self.0.iter().filter_map(|event| match event {
            Event::Dropped(_, number, why) if *why == cause => Some(*number),
            _ => None,
        });
        each.collect()
    }
}

/// No bottleneck, no delay, no loss.
pub fn open_link() -> LinkConfig {
    LinkConfig {
        rate: RateModel::Unlimited,
        delay: Duration::ZERO,
        flow_delay: Vec::new(),
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss: LossModel::None,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Packets(1000),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

/// A constant rate in bit/s with a deep queue.
pub fn bottleneck(bps: u64) -> LinkConfig {
    LinkConfig { rate: RateModel::Constant(Rate::from_bps(bps)), ..open_link() }
}

/// A packet of this size whose token is its number.
pub fn packet(number: u64, size: u64) -> Packet<u64> {
    Packet { token: number, size: Bytes::new(size), flow: FlowId(0), hash: 0, ecn: Ecn::NotEct }
}

pub fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}
