use std::collections::{BTreeSet, VecDeque};

use units::{Duration, Instant};

/// How long Linux's receiver holds back an ACK at most (TCP_DELACK_MIN).
const DELAYED_ACK: Duration = Duration::from_millis(40);

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

/// A receiver that takes everything, acknowledges every second packet in order and every packet out of order.
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
    /// Packets acknowledged by one ACK while all is in order. Two where not set.
    pub(crate) every: u32,
}

impl Receiver {
    /// Acknowledges every `every`-th packet while all is in order.
    pub fn new(every: u32) -> Self {
        Self { every, ..Self::default() }
    }

    /// Takes a packet; returns the ACK it leads to at once.
    pub fn take(&mut self, now: Instant, packet: u64, sent: Instant) -> Option<Report> {
        if packet < self.cumulative || self.above.contains(&packet) {
            self.duplicates += 1;
            self.echo = sent;
            return Some(self.answer());
        }
        self.arrivals.push_back(packet);
        let in_order = packet == self.cumulative && self.above.is_empty();
        if packet == self.cumulative {
            // RFC 7323: the timestamp of the packet that advances the window.
            self.echo = if self.unanswered == 0 { sent } else { self.echo };
            self.cumulative += 1;
            while self.above.remove(&self.cumulative) {
                self.cumulative += 1;
            }
        } else {
            self.above.insert(packet);
        }
        if !in_order {
            return Some(self.answer());
        }
        self.unanswered += 1;
        if self.unanswered >= self.every {
            return Some(self.answer());
        }
        self.answer_by.get_or_insert(now + DELAYED_ACK);
        None
    }

    /// When [`Receiver::late`] is due.
    pub fn next_event(&self) -> Option<Instant> {
        self.answer_by
    }

    /// The delayed ACK, where its time has come.
    pub fn late(&mut self, now: Instant) -> Option<Report> {
        if self.answer_by.is_some_and(|by| by <= now) { Some(self.answer()) } else { None }
    }

    fn answer(&mut self) -> Report {
        self.unanswered = 0;
        self.answer_by = None;
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
