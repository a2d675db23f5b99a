//! A deterministic, sans-IO model of one network path.
//!
//! A [`Link`] is one direction. Its driver owns the clock: it hands over packets with [`Link::offer`], asks when
//! something happens next with [`Link::next_event`], and lets time pass with [`Link::advance`]. What becomes of each packet is
//! told to a [`Sink`]. The same arrivals with the same seed give the same fates at the same times, whether the driver runs
//! in virtual time (the simulator) or in real time (the lab), and however late a real-time driver calls.
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

/// A packet that leaves the link.
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
