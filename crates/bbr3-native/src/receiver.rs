use std::collections::{BTreeSet, VecDeque};

use units::{Duration, Instant};

/// How long Linux's receiver holds back an ACK at most (TCP_DELACK_MIN).
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// ACKs out of order that are sent at once, before the receiver begins to hold them back, and how many it holds back at most
/// (TCP_FASTRETRANS_THRESH; net.ipv4.tcp_comp_sack_nr).
const UNCOMPRESSED: u32 = 3;
const COMPRESSED: u32 = 44;

/// How long it holds them back at most: a twentieth of the RTT, or this (net.ipv4.tcp_comp_sack_delay_ns).
const COMPRESSION: Duration = Duration::from_millis(1);

/// An acknowledgement: what the receiver has as of its departure. Selective acknowledgement is exact and never forgets: blocks are
/// not limited to three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Everything before this packet has arrived.
    pub cumulative: u64,
    /// How many arrivals the receiver had noted: the sender reads them from the receiver's list.
    pub noted: u64,
    /// Duplicates seen so far, as DSACKs tell them.
    pub duplicates: u32,
    /// When the packet that this answers was sent: the echo of its timestamp.
    pub echo: Instant,
}

/// A receiver that takes everything. As Linux 6.12 does, it acknowledges every second packet in order, a last packet of a burst, the first
/// packets out of order, and after those what arrived within a millisecond (SACK compression, `__tcp_ack_snd_check()`).
#[derive(Debug, Default)]
pub struct Receiver {
    cumulative: u64,
    above: BTreeSet<u64>,
    /// Arrivals that no report the sender has seen covers, in order; the first has the number `forgotten`.
    arrivals: VecDeque<u64>,
    forgotten: u64,
    duplicates: u32,
    unanswered: u32,
    answer_by: Option<Instant>,
    echo: Instant,
    /// `cumulative` as of the last ACK out of order, and how many of those were sent and held back since it moved.
    hole: u64,
    duplicate_acks: u32,
    held_back: u32,
    sack_by: Option<Instant>,
    /// Packets acknowledged by one ACK while all is in order. Two where not set.
    pub(crate) every: u32,
    compression: Duration,
}

impl Receiver {
    /// Acknowledges every `every`-th packet while all is in order, on a path of this RTT.
    pub fn new(every: u32, rtt: Duration) -> Self {
        Self { every, compression: COMPRESSION.min(rtt / 20), ..Self::default() }
    }

    /// Takes a packet; returns the ACK it leads to at once. `push`: the last of a burst.
    pub fn take(&mut self, now: Instant, packet: u64, sent: Instant, push: bool) -> Option<Report> {
        if packet < self.cumulative || self.above.contains(&packet) {
            self.duplicates += 1;
            self.echo = sent;
            return Some(self.answer());
        }
        self.arrivals.push_back(packet);
        if packet > self.cumulative {
            self.above.insert(packet);
            return self.out_of_order(now);
        }
        let in_order = self.above.is_empty();
        // RFC 7323: the timestamp of the packet that advances the window.
        self.echo = if self.unanswered == 0 { sent } else { self.echo };
        self.cumulative += 1;
        while self.above.remove(&self.cumulative) {
            self.cumulative += 1;
        }
        if !in_order {
            return Some(self.answer());
        }
        self.unanswered += 1;
        // The reader empties the buffer, and then what is pushed is acknowledged (tcp_cleanup_rbuf()).
        if self.unanswered >= self.every || push {
            return Some(self.answer());
        }
        self.answer_by.get_or_insert(now + DELAYED_ACK);
        None
    }

    fn out_of_order(&mut self, now: Instant) -> Option<Report> {
        if self.hole != self.cumulative {
            self.hole = self.cumulative;
            self.duplicate_acks = 0;
        }
        if self.duplicate_acks < UNCOMPRESSED || self.held_back >= COMPRESSED || self.compression == Duration::ZERO {
            self.duplicate_acks += 1;
            return Some(self.answer());
        }
        self.held_back += 1;
        self.sack_by.get_or_insert(now + self.compression);
        None
    }

    /// When [`Receiver::late`] is due.
    pub fn next_event(&self) -> Option<Instant> {
        [self.answer_by, self.sack_by].into_iter().flatten().min()
    }

    /// The ACK that was held back, where its time has come.
    pub fn late(&mut self, now: Instant) -> Option<Report> {
        if self.next_event().is_some_and(|by| by <= now) { Some(self.answer()) } else { None }
    }

    fn answer(&mut self) -> Report {
        self.unanswered = 0;
        self.answer_by = None;
        self.held_back = 0;
        self.sack_by = None;
        Report {
            cumulative: self.cumulative,
            noted: self.forgotten + self.arrivals.len() as u64,
            duplicates: self.duplicates,
            echo: self.echo,
        }
    }

    /// Arrivals up to a report's count that were not read before, in order.
    pub(crate) fn read(&mut self, noted: u64) -> Vec<u64> {
        let new = noted.saturating_sub(self.forgotten) as usize;
        self.forgotten += new as u64;
        self.arrivals.drain(..new).collect()
    }

    /// Packets received, each once.
    pub fn received(&self) -> u64 {
        self.forgotten + self.arrivals.len() as u64
    }
}
