//! A deterministic, sans-IO model of one network path.
//!
//! A [`Link`] is one direction of a path. A packet goes through its parts in this order:
//!
//! ```text
//!  offer ──► duplication ──► loss ──► policer ──► queue ──► transmitter ──► delay, jitter, reordering ──► deliver
//!                              │         │          │
//!                              └─────────┴──────────┴──► dropped, with its cause
//! ```
//!
//! * **Duplication, loss and policer** judge a packet at the moment it arrives. Loss is independent, in bursts
//!   (Gilbert-Elliott), periodic, or a list of packet numbers ([`LossModel`]). A lost packet takes no room in the queue and no
//!   time on the link.
//! * **The queue** has a limit in bytes or packets, and a [`Discipline`]: drop-tail, CoDel, FQ-CoDel or RED. It can mark
//!   instead of dropping, and at a step threshold.
//! * **The transmitter** sends one packet after the other, at a constant rate, a rate that changes at given times, or
//!   the delivery opportunities of a mahimahi trace ([`RateModel`]).
//! * **The wire** adds the propagation delay, which may differ between flows, and jitter, which keeps the order of packets. Only
//!   packets that [`Reorder`] picks overtake others.
//!
//! # Time
//!
//! The driver owns the clock. It hands over packets with [`Link::offer`], asks when to come back with [`Link::next_event`],
//! and lets time pass with [`Link::advance`]; what becomes of each packet is told to a [`Sink`], with the exact time. The same
//! arrivals and the same seed give the same fates at the same times in the same order, whether the driver runs in virtual time
//! (the simulator) or in real time (the lab), however often or late it calls.
//!
//! ```
//! use path::{Delivery, DropCause, Ecn, FlowId, Link, LinkConfig, Packet, Sink};
//! # use path::{Discipline, LossModel, QueueConfig, QueueLimit, RateModel};
//! use units::{Bytes, Duration, Instant, Probability, Rate};
//!
//! struct Print;
//!
//! impl Sink<&'static str> for Print {
//!     fn deliver(&mut self, delivery: Delivery<&'static str>) {
//!         println!("{}: {} arrives", delivery.due, delivery.packet.token);
//! #       assert_eq!(delivery.due, Instant::ZERO + Duration::from_millis(21));
//!     }
//!     fn dropped(&mut self, at: Instant, packet: Packet<&'static str>, _number: u64, cause: DropCause) {
//!         println!("{at}: {} is lost: {cause:?}", packet.token);
//! #       panic!("nothing is lost");
//!     }
//! }
//!
//! # let config = LinkConfig {
//! #     rate: RateModel::Constant(Rate::from_mbps(12)),
//! #     delay: Duration::from_millis(20),
//! #     flow_delay: Vec::new(),
//! #     jitter: Duration::ZERO,
//! #     reorder: None,
//! #     duplicate: Probability::ZERO,
//! #     loss: LossModel::None,
//! #     policer: None,
//! #     queue: QueueConfig {
//! #         limit: QueueLimit::Packets(10), discipline: Discipline::DropTail, ecn: false, mark_above: None,
//! #     },
//! #     overhead: Bytes::ZERO,
//! # };
//! // A `config` of 12 Mbit/s and 20 ms: 1500 bytes take 1 ms and then 20.
//! let mut link = Link::new(&config, 42)?;
//! let packet = Packet { token: "hello", size: Bytes::new(1500), flow: FlowId(0), hash: 0, ecn: Ecn::NotEct };
//! link.offer(Instant::ZERO, packet, &mut Print);
//! while let Some(next) = link.next_event() {
//!     link.advance(next, &mut Print); // 0.021 s: hello arrives
//! }
//! assert_eq!(link.counters().delivered, 1);
//! # Ok::<(), path::ConfigError>(())
//! ```
//!
//! # Exactness
//!
//! Everything is integer arithmetic. A transmission that ends between two nanoseconds is shown at the later one, but the next
//! packet starts at the exact time: at no rate does rounding add up. Every stage that needs randomness has a stream of
//! its own from the seed, so switching on jitter does not change which packets are lost, and with the same seed every packet
//! that independent loss of 1 % takes is also taken at 2 %.
//!
//! # Cost
//!
//! The parts do the least work they can per packet, because the lab runs them at line rate: a drop-tail link with one delay
//! costs tens of nanoseconds a packet (`cargo bench -p linerate-path`), and no part allocates once its buffers have grown to the
//! bandwidth-delay product.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bottleneck;
mod check;
mod config;
mod ledger;
mod link;
mod loss;
mod policer;
mod queue;
mod random;
pub mod record;
mod server;
mod wire;

pub use check::ConfigError;
pub use config::{
    CoDel, Discipline, LinkConfig, LossModel, Policer, QueueConfig, QueueLimit, RateModel, Red, Reorder, Trace,
};
pub use link::Link;

use units::{Bytes, Duration, Instant};

/// A flow of the experiment, for its own delay and accounting. 0 is everything that belongs to no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FlowId(pub u16);

/// The two ECN bits of the IP header (RFC 3168).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Not ECN-capable: dropped where others are marked.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// One packet on its way in: at most one MTU, never a segmentation-offload burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<T> {
    /// The driver's handle to the content.
    pub token: T,
    /// IP length.
    pub size: Bytes,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// Hash of the transport flow, for fair queueing.
    pub hash: u32,
    /// Its ECN bits on arrival.
    pub ecn: Ecn,
}

/// A packet that reaches the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery<T> {
    /// The packet; `ecn` is CE where the link marked it.
    pub packet: Packet<T>,
    /// Its number in order of arrival at this link, from 0. A duplicate has its original's.
    pub number: u64,
    /// When it reaches the far end, exactly, also when the driver calls later.
    pub due: Instant,
    /// Time spent in the queue and in service.
    pub sojourn: Duration,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// The loss model.
    Random,
    /// The queue was full.
    Overflow,
    /// CoDel, FQ-CoDel or RED.
    Aqm,
    /// The policer.
    Policer,
}

/// What waits at the bottleneck, the packet in service included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes, overhead included.
    pub bytes: Bytes,
}

/// Receives what becomes of the packets of a [`Link`]. Every token handed over comes back exactly once, by `deliver`,
/// `dropped` or, at the end, `left` (a duplicate is a clone of its own). Calls come in order of their times.
pub trait Sink<T> {
    /// The packet reaches the far end at `delivery.due`.
    fn deliver(&mut self, delivery: Delivery<T>);
    /// The packet is gone.
    fn dropped(&mut self, at: Instant, packet: Packet<T>, number: u64, cause: DropCause);
    /// The packet was copied; the copy comes back on its own. Told before anything happens to either.
    fn duplicated(&mut self, _packet: &Packet<T>, _number: u64) {}
    /// The packet has entered the queue; `backlog` counts it.
    fn queued(&mut self, _at: Instant, _packet: &Packet<T>, _number: u64, _backlog: Backlog) {}
    /// The packet has left the bottleneck after `sojourn` in queue and service.
    fn dequeued(&mut self, _at: Instant, _packet: &Packet<T>, _number: u64, _sojourn: Duration, _backlog: Backlog) {}
    /// The packet was marked CE.
    fn marked(&mut self, _at: Instant, _packet: &Packet<T>, _number: u64) {}
    /// The packet was still inside when the link was drained.
    fn left(&mut self, _packet: Packet<T>, _number: u64) {}
}

/// Totals of a link since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Packets offered.
    pub offered: u64,
    /// Packets handed to the far end, duplicates included.
    pub delivered: u64,
    /// Bytes handed to the far end, without overhead.
    pub delivered_bytes: Bytes,
    /// Extra copies made by duplication.
    pub duplicated: u64,
    /// Packets marked CE here.
    pub marked: u64,
    /// Lost by the loss model.
    pub dropped_random: u64,
    /// Dropped by a full queue.
    pub dropped_overflow: u64,
    /// Dropped by AQM.
    pub dropped_aqm: u64,
    /// Dropped by the policer.
    pub dropped_policer: u64,
    /// Still inside when the link was drained.
    pub left: u64,
}
