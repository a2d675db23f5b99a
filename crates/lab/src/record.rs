//! What happened at the bottleneck, over time: kept in time buckets, so that a long run stays small.

use path::{Backlog, Delivery, DropCause, Ecn, FlowId, Packet};
use units::{Bytes, Duration, Instant};

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
        let index = ((at.as_nanos() / self.bucket.as_nanos()) as usize).min(MOST_BUCKETS - 1);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, Bucket::default());
        }
        &mut self.buckets[index]
    }

    pub(crate) fn offered<T>(&mut self, at: Instant, packet: &Packet<T>) {
        if let Some(log) = &mut self.log {
            log.offered.push((at, packet.size, packet.flow, packet.hash, packet.ecn));
        }
    }

    pub(crate) fn delivered<T>(&mut self, delivery: &Delivery<T>) {
        self.at(delivery.due).delivered_bytes += delivery.packet.size.as_u64();
        if let Some(log) = &mut self.log {
            log.delivered.push((delivery.number, delivery.due));
        }
    }

    pub(crate) fn dropped<T>(&mut self, at: Instant, packet: &Packet<T>, number: u64, cause: DropCause) {
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

    pub(crate) fn queued(&mut self, at: Instant, backlog: Backlog) {
        let bucket = self.at(at);
        let bytes = backlog.bytes.as_u64();
        bucket.queue_max_bytes = bucket.queue_max_bytes.max(bytes);
        bucket.queue_sum_bytes += bytes;
        bucket.queue_seen += 1;
    }

    pub(crate) fn dequeued<T>(&mut self, at: Instant, packet: &Packet<T>, sojourn: Duration) {
        if self.probe == Some(packet.flow) {
            self.probe_sojourns.push((at, sojourn));
        }
    }

    pub(crate) fn marked<T>(&mut self, at: Instant, _packet: &Packet<T>) {
        self.at(at).marks += 1;
    }
}
