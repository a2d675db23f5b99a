//! What a link is: plain values, checked once by [`LinkConfig::check`].

use alloc::vec::Vec;

use units::{Bytes, Duration, Instant, Probability, Rate};

use crate::FlowId;

/// One direction of a path: what happens to a packet, in this order: duplication, loss, policer, queue (with AQM and
/// marking), bottleneck, propagation delay with jitter and reordering.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkConfig {
    /// The bottleneck's rate over time.
    pub rate: RateModel,
    /// One-way propagation delay.
    pub delay: Duration,
    /// One-way propagation delay of flows that differ from `delay`.
    pub flow_delay: Vec<(FlowId, Duration)>,
    /// Random extra delay that keeps the order of packets: uniform from zero to this.
    pub jitter: Duration,
    /// Packets that overtake others.
    pub reorder: Option<Reorder>,
    /// Each packet arrives twice with this probability. The copy follows its original at once, with the same number.
    pub duplicate: Probability,
    /// Loss that does not come from a full queue. Happens before the queue: a lost packet uses no link time.
    pub loss: LossModel,
    /// Drops what arrives above a contracted rate, before the queue.
    pub policer: Option<Policer>,
    /// The bottleneck's queue.
    pub queue: QueueConfig,
    /// Link-layer bytes added to every packet for queue and rate, e.g. 14 for an Ethernet header.
    pub overhead: Bytes,
}

/// How fast the bottleneck sends.
#[derive(Debug, Clone, PartialEq)]
pub enum RateModel {
    /// No bottleneck: packets leave as they come.
    Unlimited,
    /// Always the same.
    Constant(Rate),
    /// The first rate holds from the start; each later one from its time on. Times rise.
    Steps(Vec<(Instant, Rate)>),
    /// Delivery opportunities of a mahimahi trace.
    Trace(Trace),
}

/// A mahimahi trace: each entry is a moment, in milliseconds from the trace's start, at which up to 1500 bytes leave.
/// After its last entry's time the trace starts again from zero.
///
/// As the mm-link manual page has it, bytes are counted: several small packets share an opportunity, and a packet larger than
/// what is left of one is finished by the next. An opportunity that finds nothing waiting is lost; a packet that arrives at
/// that very moment is too late for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Rising (repeats allowed), not empty, the last above zero.
    pub opportunities_ms: Vec<u32>,
}

/// Loss that happens on the wire. A duplicate is judged for itself by independent loss; all other models lose it
/// with its original.
#[derive(Debug, Clone, PartialEq)]
pub enum LossModel {
    /// None.
    None,
    /// Every packet for itself.
    Independent(Probability),
    /// Gilbert-Elliott with loss of every packet in the bad state: by the average over all packets and the mean number
    /// of packets lost in a row.
    Burst {
        /// Average over all packets; below one.
        average: Probability,
        /// Mean length of a loss burst in packets, in thousandths; at least 1000 (one packet).
        mean_burst_milli: u32,
    },
    /// Every `every`-th packet, the first loss at packet number `offset` (from 0).
    Periodic {
        /// Distance between lost packets, at least 2.
        every: u64,
        /// Number of the first lost packet.
        offset: u64,
    },
    /// Exactly these packets, by their number from 0 in order of arrival at this link. Rising.
    List(Vec<u64>),
}

/// A token bucket that drops, with no queue of its own. It starts full. As in RFC 2697, tokens are bytes of IP packets: the
/// link's overhead does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policer {
    /// Tokens per second.
    pub rate: Rate,
    /// Depth of the bucket; at least one full packet.
    pub burst: Bytes,
}

/// Packets that skip part of the propagation delay and so arrive before earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// How many packets do.
    pub probability: Probability,
    /// How much of the propagation delay they skip; at most all of the shortest one.
    pub advance: Duration,
}

/// The bottleneck's queue. The packet in service counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// Its size.
    pub limit: QueueLimit,
    /// What is dropped or marked before it is full.
    pub discipline: Discipline,
    /// Mark packets of ECN-capable transports where the AQM would drop them.
    pub ecn: bool,
    /// Mark (ECN-capable packets only) what finds more than this waiting on arrival: a step threshold, as DCTCP expects. Does not
    /// depend on `ecn`, and never drops.
    pub mark_above: Option<Bytes>,
}

/// A queue's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// In bytes, overhead included.
    Bytes(Bytes),
    /// In packets.
    Packets(u32),
}

/// Active queue management.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out; what does not fit is dropped.
    DropTail,
    /// RFC 8289.
    CoDel(CoDel),
    /// RFC 8290: CoDel on each of `buckets` queues, served by deficit round robin with `quantum`. When the whole is full,
    /// half of the longest queue's packets (at most 64) are dropped from its head.
    FqCoDel {
        /// CoDel on each queue.
        codel: CoDel,
        /// Number of queues; flows share one where their hashes, mixed with the seed, say so.
        buckets: u32,
        /// Bytes per round, at least one full packet.
        quantum: Bytes,
    },
    /// Random Early Detection with an averaged queue length (Floyd and Jacobson 1993), gentle variant.
    Red(Red),
}

/// CoDel's two parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable standing queueing delay (RFC 8289: 5 ms).
    pub target: Duration,
    /// Time above target before the first drop (RFC 8289: 100 ms).
    pub interval: Duration,
}

/// RED's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Red {
    /// Average queue below which nothing happens.
    pub min: Bytes,
    /// Average queue at which the probability is `max_probability`; it rises to one at twice this (gentle).
    pub max: Bytes,
    /// Drop probability at `max`.
    pub max_probability: Probability,
    /// The average moves by 1/2^weight_shift of the difference per packet, and by as many packets of 1500 bytes as could have
    /// been sent while nothing waited.
    pub weight_shift: u8,
}
