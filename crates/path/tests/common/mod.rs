//! What the tests of a link share: a plain configuration, packets, and a sink that writes everything down.
#![allow(dead_code)]

use path::{
    Backlog, Delivery, Discipline, DropCause, Ecn, FlowId, Link, LinkConfig, LossModel, Packet, QueueConfig,
    QueueLimit, RateModel, Sink,
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
#[derive(Debug, Default, PartialEq, Eq)]
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
    fn each<R>(&self, pick: impl Fn(&Event) -> Option<R>) -> Vec<R> {
        self.0.iter().filter_map(pick).collect()
    }

    /// Number and time of each delivery.
    pub fn deliveries(&self) -> Vec<(u64, u64)> {
        self.each(|event| match event {
            Event::Delivered(delivery) => Some((delivery.number, delivery.due.as_nanos())),
            _ => None,
        })
    }

    /// Numbers of the packets dropped for this cause.
    pub fn dropped(&self, cause: DropCause) -> Vec<u64> {
        self.each(|event| match event {
            Event::Dropped(_, number, why) if *why == cause => Some(*number),
            _ => None,
        })
    }

    /// Number and time of the packets dropped for this cause.
    pub fn dropped_at(&self, cause: DropCause) -> Vec<(u64, u64)> {
        self.each(|event| match event {
            Event::Dropped(at, number, why) if *why == cause => Some((*number, at.as_nanos())),
            _ => None,
        })
    }

    /// Numbers of the packets that were marked.
    pub fn marked(&self) -> Vec<u64> {
        self.each(|event| match event {
            Event::Marked(_, number) => Some(*number),
            _ => None,
        })
    }

    /// Numbers in the order they left the bottleneck.
    pub fn dequeued(&self) -> Vec<u64> {
        self.each(|event| match event {
            Event::Dequeued(_, number, ..) => Some(*number),
            _ => None,
        })
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

/// A constant rate in bit/s with a queue of 1000 packets.
pub fn bottleneck(bps: u64) -> LinkConfig {
    LinkConfig { rate: RateModel::Constant(Rate::from_bps(bps)), ..open_link() }
}

/// A rate at which a full packet takes a millisecond.
pub const PACKET_PER_MS: u64 = 12_000_000;

/// The same link with another queue.
pub fn with_queue(config: LinkConfig, change: impl FnOnce(&mut QueueConfig)) -> LinkConfig {
    let mut config = config;
    change(&mut config.queue);
    config
}

/// A packet of this size whose token is its number.
pub fn packet(number: u64, size: u64) -> Packet<u64> {
    Packet { token: number, size: Bytes::new(size), flow: FlowId(0), hash: 0, ecn: Ecn::NotEct }
}

pub fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

pub fn ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Offers packets at their times, then lets everything arrive.
pub fn run(config: &LinkConfig, seed: u64, packets: impl IntoIterator<Item = (Instant, Packet<u64>)>) -> Log {
    let mut link = Link::new(config, seed).expect("a possible link");
    let mut log = Log::default();
    for (time, packet) in packets {
        link.offer(time, packet, &mut log);
    }
    link.advance(Instant::MAX, &mut log);
    assert_eq!((link.next_event(), link.in_flight(), link.backlog()), (None, 0, Backlog::default()));
    log
}

/// Full packets, `gap` nanoseconds apart.
pub fn stream(count: u64, gap: u64) -> impl Iterator<Item = (Instant, Packet<u64>)> {
    (0..count).map(move |number| (at(number * gap), packet(number, 1500)))
}

/// Whether `hits` of `trials` lie in the 99 % interval (normal approximation) of a binomial of this probability.
///
/// `clumping` widens the variance for trials that depend on each other; 1 where they do not.
pub fn plausible(hits: u64, trials: u64, probability: f64, clumping: f64) -> bool {
    let trials = trials as f64;
    let deviation = (trials * probability * (1.0 - probability) * clumping).sqrt();
    (hits as f64 - trials * probability).abs() <= 2.576 * deviation
}
