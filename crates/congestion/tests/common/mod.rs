//! A transport for the controllers, over a path in virtual time: numbered packets as in QUIC, each acknowledged for itself.
#![allow(dead_code)]

mod receiver;
mod sender;

use congestion::{Bound, Controller, Observer, Phase};
pub use path::RateModel;
use path::{
    Delivery, Discipline, DropCause, Ecn, FlowId, Link, LinkConfig, LossModel, Packet, QueueConfig, QueueLimit,
};
use receiver::{Acknowledgement, Receiver};
pub use sender::{Application, Sender};
use units::{Bytes, Duration, Instant, Probability, Rate};

pub const MSS: u64 = 1448;
const HEADERS: u64 = 52;

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Of a path in the test cases.
pub fn loss(percent: f64) -> LossModel {
    if percent == 0.0 {
        return LossModel::None;
    }
    LossModel::Independent(Probability::from_ppb((percent * 1e7) as u32))
}

/// The path: its bottleneck, round-trip time and queue in packets.
pub fn link(rate: RateModel, rtt: Duration, queue: u32, loss: LossModel) -> LinkConfig {
    LinkConfig {
        rate,
        delay: rtt / 2,
        flow_delay: Vec::new(),
        jitter: Duration::ZERO,
        reorder: None,
        duplicate: Probability::ZERO,
        loss,
        policer: None,
        queue: QueueConfig {
            limit: QueueLimit::Packets(queue),
            discipline: Discipline::DropTail,
            ecn: false,
            mark_above: None,
        },
        overhead: Bytes::ZERO,
    }
}

/// Keeps what a controller decides.
#[derive(Debug, Default)]
pub struct Log {
    pub transitions: Vec<(Instant, Phase, Phase)>,
    pub bounds: Vec<(Instant, Bound)>,
}

impl Observer for Log {
    fn transition(&mut self, at: Instant, from: Phase, to: Phase) {
        self.transitions.push((at, from, to));
    }

    fn bound(&mut self, at: Instant, bound: Bound) {
        self.bounds.push((at, bound));
    }
}

impl Log {
    /// When it last entered a phase.
    pub fn entered(&self, phase: Phase) -> Option<Instant> {
        self.transitions.iter().rev().find(|(_, _, to)| *to == phase).map(|(at, _, _)| *at)
    }

    pub fn entries(&self, phase: Phase) -> usize {
        self.transitions.iter().filter(|(_, _, to)| *to == phase).count()
    }
}

#[derive(Debug, Clone, Copy)]
struct Data {
    number: u64,
}

#[derive(Debug)]
struct Arrived<T> {
    packets: Vec<T>,
    dropped: u64,
}

impl<T> Default for Arrived<T> {
    fn default() -> Self {
        Self { packets: Vec::new(), dropped: 0 }
    }
}

impl<T> path::Sink<T> for Arrived<T> {
    fn deliver(&mut self, delivery: Delivery<T>) {
        self.packets.push(delivery.packet.token);
    }

    fn dropped(&mut self, _: Instant, _: Packet<T>, _: u64, _: DropCause) {
        self.dropped += 1;
    }
}

/// One connection over a path.
pub struct World<C> {
    pub now: Instant,
    pub sender: Sender<C>,
    pub log: Log,
    receiver: Receiver,
    forward: Link<Data>,
    reverse: Link<Acknowledgement>,
    /// Arrived at the sender and not processed.
    acks: Arrived<Acknowledgement>,
    pub drops: u64,
    /// From now on the path loses each packet of this number.
    pub drop_every: Option<u64>,
    offered: u64,
    /// The packets sent until then are held back, and arrive at the bottleneck at the second time.
    hold: Option<(Instant, Instant)>,
    held: Vec<Data>,
}

impl<C: Controller> World<C> {
    pub fn new(cc: C, forward: LinkConfig) -> Self {
        let rtt = forward.delay * 2;
        Self::with(cc, forward, rtt, Application::Bulk)
    }

    /// `handshake_rtt` zero: not measured.
    pub fn with(cc: C, forward: LinkConfig, handshake_rtt: Duration, application: Application) -> Self {
        let reverse = link(RateModel::Unlimited, forward.delay * 2, 1_000_000, LossModel::None);
        let mut log = Log::default();
        Self {
            now: Instant::ZERO,
            sender: Sender::new(cc, application, handshake_rtt, &mut log),
            log,
            receiver: Receiver::default(),
            forward: Link::new(&forward, 7).unwrap(),
            reverse: Link::new(&reverse, 8).unwrap(),
            acks: Arrived::default(),
            drops: 0,
            drop_every: None,
            offered: 0,
            hold: None,
            held: Vec::new(),
        }
    }

    /// The receiver, or something before it, sends ACKs only every `period`: all at once.
    pub fn aggregate(&mut self, period: Duration) {
        self.receiver.aggregate(period);
    }

    /// What is sent in the next `time` is held back for `delay`, and overtaken by what is sent later.
    pub fn hold(&mut self, time: Duration, delay: Duration) {
        self.hold = Some((self.now + time, self.now + delay));
    }

    pub fn run(&mut self, end: Instant) {
        self.run_until(end, |_| false);
    }

    /// Until `done` is true after an event; false: it never was.
    pub fn run_until(&mut self, end: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            let timers = [self.sender.next_event(), self.receiver.next_event()];
            let links = [self.forward.next_event(), self.reverse.next_event()];
            let held = (!self.held.is_empty()).then(|| self.hold.map(|(_, release)| release)).flatten();
            // What was handed over as something else was sent counts as now.
            let waiting = (!self.acks.packets.is_empty()).then_some(self.now);
            let next = timers
                .into_iter()
                .chain(links)
                .chain([held, waiting])
                .flatten()
                .min()
                .unwrap_or(Instant::MAX)
                .max(self.now);
            if next > end {
                self.now = end;
                return false;
            }
            self.now = next;
            self.step();
            if done(self) {
                return true;
            }
        }
    }

    fn step(&mut self) {
        let now = self.now;
        let mut data = Arrived::default();
        self.forward.advance(now, &mut data);
        self.take(data);
        self.reverse.advance(now, &mut self.acks);
        for ack in std::mem::take(&mut self.acks.packets) {
            self.sender.on_acknowledgement(now, &ack.numbers, &mut self.log);
        }
        if let Some(ack) = self.receiver.on_timer(now) {
            self.answer(ack);
        }
        self.sender.on_timer(now, &mut self.log);
        if self.hold.is_some_and(|(_, release)| release <= now) {
            for data in std::mem::take(&mut self.held) {
                self.offer(data);
            }
            self.hold = None;
        }
        for number in self.sender.send(now, &mut self.log) {
            self.offered += 1;
            if self.drop_every.is_some_and(|every| self.offered.is_multiple_of(every)) {
                self.drops += 1;
            } else if self.hold.is_some_and(|(until, _)| now < until) {
                self.held.push(Data { number });
            } else {
                self.offer(Data { number });
            }
        }
    }

    fn offer(&mut self, token: Data) {
        let size = Bytes::new(MSS + HEADERS);
        let mut data = Arrived::default();
        let packet = Packet { token, size, flow: FlowId(0), hash: 0, ecn: Ecn::NotEct };
        self.forward.offer(self.now, packet, &mut data);
        self.take(data);
    }

    fn take(&mut self, data: Arrived<Data>) {
        self.drops += data.dropped;
        for packet in data.packets {
            if let Some(ack) = self.receiver.take(self.now, packet.number) {
                self.answer(ack);
            }
        }
    }

    fn answer(&mut self, token: Acknowledgement) {
        let packet = Packet { token, size: Bytes::new(HEADERS), flow: FlowId(0), hash: 0, ecn: Ecn::NotEct };
        self.reverse.offer(self.now, packet, &mut self.acks);
    }

    /// Goodput from `from` on, in which `before` packets had been delivered.
    pub fn goodput(&self, before: u64, from: Instant) -> Rate {
        Rate::from_transfer(Bytes::new((self.sender.delivered() - before) * MSS), self.now.since(from))
    }

    /// Runs up to `end`, and returns the goodput of that time.
    pub fn measure(&mut self, end: Instant) -> Rate {
        let (before, from) = (self.sender.delivered(), self.now);
        self.run(end);
        self.goodput(before, from)
    }
}
