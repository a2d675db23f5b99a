//! What happened at the bottleneck, over time: kept in time buckets, so that a long run stays small. A driver's [`Sink`](crate::Sink) passes on
//! what it is told.

use alloc::vec::Vec;

use units::{Bytes, Duration, Instant};

use crate::{Backlog, Delivery, DropCause, Ecn, FlowId, Packet};

/// One bucket of a [`Record`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Bytes that left the link, without overhead.
    pub delivered_bytes: u64,
    /// The longest queue seen, in bytes, overhead included.
    pub queue_max_bytes: u64,
    /// Sum of the queue lengths seen on arrival, for the mean.
    queue_sum_bytes: u64,
    queue_seen: u64,
    /// Drops by cause: random, overflow, AQM, policer.
    pub drops: [u32; 4],
    /// Packets marked CE.
    pub marks: u32,
}

impl Bucket {
    /// Mean queue length on arrival in bytes; zero where nothing arrived.
    pub fn queue_mean_bytes(&self) -> u64 {
        self.queue_sum_bytes.checked_div(self.queue_seen).unwrap_or(0)
    }
}

/// What became of each packet, for comparison with the model in virtual time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketLog {
    /// Every packet offered, in order: when, size, flow, hash, ECN.
    pub offered: Vec<(Instant, Bytes, FlowId, u32, Ecn)>,
    /// Every delivery, in order: number and due time.
    pub delivered: Vec<(u64, Instant)>,
    /// Every drop, in order: number and cause.
    pub dropped: Vec<(u64, DropCause)>,
}

/// Totals and series of one direction.
#[derive(Debug, Clone)]
pub struct Record {
    bucket: Duration,
    buckets: Vec<Bucket>,
    /// Time in queue and service of the probe's packets.
    pub probe_sojourns: Vec<(Instant, Duration)>,
    /// Drops per flow id, by cause as in [`Bucket::drops`].
    pub flow_drops: Vec<[u64; 4]>,
    probe: Option<FlowId>,
    log: Option<PacketLog>,
    /// The bucket of the last event, and the times within it: most events need no division.
    current: usize,
    current_from: u64,
    current_to: u64,
}

fn index(cause: DropCause) -> usize {
    match cause {
        DropCause::Random => 0,
        DropCause::Overflow => 1,
        DropCause::Aqm => 2,
        DropCause::Policer => 3,
    }
}

/// Runs longer than this many buckets keep their last bucket growing instead of their memory.
const MOST_BUCKETS: usize = 1 << 20;

impl Record {
    /// Buckets of length `bucket`; sojourn times are kept for packets of flow `probe`; `log` keeps every packet.
    pub fn new(bucket: Duration, probe: Option<FlowId>, log: bool) -> Self {
        Self {
            bucket,
            buckets: Vec::new(),
            probe_sojourns: Vec::new(),
            flow_drops: Vec::new(),
            probe,
            log: log.then(PacketLog::default),
            current: 0,
            current_from: 0,
            current_to: 0,
        }
    }

    /// Length of a bucket.
    pub fn bucket(&self) -> Duration {
        self.bucket
    }

    /// The buckets from the experiment's start on.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The packet log, where one was asked for.
    pub fn log(&self) -> Option<&PacketLog> {
        self.log.as_ref()
    }

    fn at(&mut self, at: Instant) -> &mut Bucket {
        let at = at.as_nanos();
        if at < self.current_from || at >= self.current_to {
            let length = self.bucket.as_nanos().max(1);
            let number = at / length;
            self.current = (number as usize).min(MOST_BUCKETS - 1);
            self.current_from = number * length;
            self.current_to = self.current_from.saturating_add(length);
            if self.current >= self.buckets.len() {
                self.buckets.resize(self.current + 1, Bucket::default());
            }
        }
        &mut self.buckets[self.current]
    }

    /// For [`Link::offer`](crate::Link::offer).
    pub fn offered<T>(&mut self, at: Instant, packet: &Packet<T>) {
        if let Some(log) = &mut self.log {
            log.offered.push((at, packet.size, packet.flow, packet.hash, packet.ecn));
        }
    }

    /// For [`Sink::deliver`](crate::Sink::deliver).
    pub fn delivered<T>(&mut self, delivery: &Delivery<T>) {
        self.at(delivery.due).delivered_bytes += delivery.packet.size.as_u64();
        if let Some(log) = &mut self.log {
            log.delivered.push((delivery.number, delivery.due));
        }
    }

    /// For [`Sink::dropped`](crate::Sink::dropped).
    pub fn dropped<T>(&mut self, at: Instant, packet: &Packet<T>, number: u64, cause: DropCause) {
        self.at(at).drops[index(cause)] += 1;
        let flow = usize::from(packet.flow.0);
        if flow >= self.flow_drops.len() {
            self.flow_drops.resize(flow + 1, [0; 4]);
        }
        self.flow_drops[flow][index(cause)] += 1;
        if let Some(log) = &mut self.log {
            log.dropped.push((number, cause));
        }
    }

    /// For [`Sink::queued`](crate::Sink::queued).
    pub fn queued(&mut self, at: Instant, backlog: Backlog) {
        let bucket = self.at(at);
        let bytes = backlog.bytes.as_u64();
        bucket.queue_max_bytes = bucket.queue_max_bytes.max(bytes);
        bucket.queue_sum_bytes += bytes;
        bucket.queue_seen += 1;
    }

    /// For [`Sink::dequeued`](crate::Sink::dequeued).
    pub fn dequeued<T>(&mut self, at: Instant, packet: &Packet<T>, sojourn: Duration) {
        if self.probe == Some(packet.flow) {
            self.probe_sojourns.push((at, sojourn));
        }
    }

    /// For [`Sink::marked`](crate::Sink::marked).
    pub fn marked<T>(&mut self, at: Instant, _packet: &Packet<T>) {
        self.at(at).marks += 1;
    }
}
