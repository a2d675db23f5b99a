//! The receiving end: what has arrived, and when to say so.

use std::collections::VecDeque;

use units::{Bytes, Duration, Instant};

use crate::segment::{Ack, Data};
use crate::window::{Buffers, Window};

/// How long Linux's receiver holds back an ACK at most (TCP_DELACK_MIN).
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// Duplicate ACKs that are sent at once before SACKs are held together (`tcp_ack_snd_check`, Linux 5.8 and later).
const PROMPT_DUPLICATES: u8 = 3;
/// Most SACKs held together (`net.ipv4.tcp_comp_sack_nr`).
const MOST_COMPRESSED: u8 = 44;
/// Longest time SACKs are held together (`tcp_comp_sack_delay_ns`); at most a twentieth of the round-trip time.
const LONGEST_COMPRESSION: Duration = Duration::from_millis(1);
/// Packets acknowledged one by one at a connection's start (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;

/// When a receiver acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckPolicy {
    /// Segments in order per ACK. Linux: 2.
    pub every: u32,
    /// Arrivals within this time share one ACK, as a NIC's interrupt moderation and GRO make it. Zero: none do.
    pub coalesce: Duration,
    /// Whether SACKs are held together as Linux does since 4.18.
    pub compress_sacks: bool,
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self { every: 2, coalesce: Duration::ZERO, compress_sacks: true }
    }
}

/// A receiver whose application reads everything at once.
#[derive(Debug)]
pub struct Receiver {
    policy: AckPolicy,
    /// Every segment before this one has arrived.
    cumulative: u64,
    /// Which segments from `cumulative` on have arrived; the first never has.
    ahead: VecDeque<bool>,
    ahead_count: u64,
    /// Arrivals out of order that no ACK has told the sender of; the first has the number `forgotten`.
    noted: VecDeque<u64>,
    forgotten: u64,
    duplicates: u32,
    /// Segments in order that are not acknowledged yet.
    unanswered: u32,
    quick: u32,
    prompt_duplicates: u8,
    compressed: u8,
    answer_by: Instant,
    echo: Instant,
    has_echo: bool,
    window: Window,
    /// Payload in order.
    received: u64,
    /// ECE is set until the sender says CWR.
    ece: bool,
}

impl Receiver {
    /// Of segments of `mss` bytes.
    pub fn new(policy: AckPolicy, buffers: Buffers, mss: u32) -> Self {
        Self {
            policy,
            cumulative: 0,
            ahead: VecDeque::new(),
            ahead_count: 0,
            noted: VecDeque::new(),
            forgotten: 0,
            duplicates: 0,
            unanswered: 0,
            quick: QUICK_ACKS,
            prompt_duplicates: 0,
            compressed: 0,
            answer_by: Instant::MAX,
            echo: Instant::ZERO,
            has_echo: false,
            window: Window::new(buffers, mss),
            received: 0,
            ece: false,
        }
    }

    /// Payload that has arrived in order.
    pub fn received(&self) -> Bytes {
        Bytes::new(self.received)
    }

    /// Segments that have arrived in order.
    pub fn cumulative(&self) -> u64 {
        self.cumulative
    }

    /// Segments that arrived twice.
    pub fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// The first segment the sender may not send as the connection begins.
    pub(crate) fn first_right_edge(&self) -> u64 {
        self.window.right_edge()
    }

    /// When [`Receiver::late`] is due; `Instant::MAX` for never.
    #[inline]
    pub(crate) fn next_event(&self) -> Instant {
        self.answer_by
    }

    /// Takes a segment; returns the ACK it leads to at once. `payload_of` gives the size of any segment.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        data: &Data,
        congested: bool,
        payload_of: impl Fn(u64) -> u32,
    ) -> Option<Ack> {
        if data.cwr {
            self.ece = false;
        }
        self.ece |= congested;
        let place = data.number.checked_sub(self.cumulative);
        let known = place.is_none_or(|place| self.ahead.get(place as usize).copied().unwrap_or(false));
        if known {
            self.duplicates += 1;
            self.echo = data.sent;
            return Some(self.answer(now));
        }
        self.window.note_round_trip(now, data.echo);
        let in_order = data.number == self.cumulative && self.ahead_count == 0;
        if in_order {
            // RFC 7323: the timestamp of the segment that the last ACK waits for.
            if !self.has_echo {
                self.echo = data.sent;
                self.has_echo = true;
            }
            self.cumulative += 1;
            self.ahead.pop_front();
            self.received += u64::from(data.payload);
            self.window.in_order(now, u64::from(data.payload), 0);
            self.prompt_duplicates = 0;
            return self.answer_in_order(now);
        }
        if data.number == self.cumulative {
            self.echo = data.sent;
            let mut payload = 0;
            loop {
                payload += u64::from(payload_of(self.cumulative));
                self.cumulative += 1;
                self.ahead.pop_front();
                match self.ahead.front() {
                    Some(true) => self.ahead_count -= 1,
                    _ => break,
                }
            }
            self.received += payload;
            self.window.in_order(now, payload, self.ahead_count);
            self.prompt_duplicates = 0;
            return Some(self.answer(now));
        }
        self.note_ahead(data.number);
        self.window.out_of_order(self.ahead_count);
        self.answer_out_of_order(now)
    }

    fn note_ahead(&mut self, number: u64) {
        let place = (number - self.cumulative) as usize;
        if place >= self.ahead.len() {
            self.ahead.resize(place + 1, false);
        }
        self.ahead[place] = true;
        self.ahead_count += 1;
        self.noted.push_back(number);
    }

    fn answer_in_order(&mut self, now: Instant) -> Option<Ack> {
        self.unanswered += 1;
        if self.quick > 0 || self.unanswered >= self.policy.every || self.ece {
            if self.policy.coalesce > Duration::ZERO {
                // The first of a batch starts the wait: `answer_by` may be an earlier one's already.
                self.answer_by = self.answer_by.min(now + self.policy.coalesce);
                return None;
            }
            self.quick = self.quick.saturating_sub(1);
            return Some(self.answer(now));
        }
        if self.answer_by == Instant::MAX {
            self.answer_by = now + DELAYED_ACK;
        }
        None
    }

    /// `__tcp_ack_snd_check`: the first few at once, later ones together.
    fn answer_out_of_order(&mut self, now: Instant) -> Option<Ack> {
        if self.prompt_duplicates < PROMPT_DUPLICATES || !self.policy.compress_sacks {
            self.prompt_duplicates += 1;
            return Some(self.answer(now));
        }
        self.compressed += 1;
        if self.compressed >= MOST_COMPRESSED {
            return Some(self.answer(now));
        }
        let wait = LONGEST_COMPRESSION.min(self.window.round_trip() / 20).max(self.policy.coalesce);
        self.answer_by = self.answer_by.min(now + wait);
        None
    }

    /// The ACK that was held back, where its time has come.
    pub(crate) fn late(&mut self, now: Instant) -> Option<Ack> {
        if self.answer_by > now {
            return None;
        }
        self.quick = self.quick.saturating_sub(1);
        Some(self.answer(now))
    }

    fn answer(&mut self, now: Instant) -> Ack {
        self.unanswered = 0;
        self.compressed = 0;
        self.has_echo = false;
        self.answer_by = Instant::MAX;
        Ack {
            cumulative: self.cumulative,
            noted: self.forgotten + self.noted.len() as u64,
            right_edge: self.window.advertise(self.cumulative, self.ahead_count),
            duplicates: self.duplicates,
            congestion_experienced: self.ece,
            echo: self.echo,
            sent: now,
        }
    }

    /// Whether an ACK now carries SACK blocks.
    pub(crate) fn has_holes(&self) -> bool {
        self.ahead_count > 0
    }

    /// Arrivals out of order up to an ACK's count that were not read before, in order.
    pub(crate) fn read(&mut self, noted: u64) -> impl Iterator<Item = u64> + '_ {
        let new = noted.saturating_sub(self.forgotten).min(self.noted.len() as u64) as usize;
        self.forgotten += new as u64;
        self.noted.drain(..new)
    }
}
