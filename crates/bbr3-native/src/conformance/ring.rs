use std::collections::VecDeque;

use bbr3::raw::{Ack, Conn, Ring as RawRing, RingEntry};

/// `RING_ENTRIES` of ring.h.
const ENTRIES: usize = bbr3::raw::RING_ENTRIES;
/// `TCP_CA_Recovery`.
const IN_RECOVERY: u8 = 3;

/// Is counter `a` earlier than `b`, where both wrap?
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// ring.h once more: what a kernel without per-packet notes knows of packets in flight and lost. Newest first.
#[derive(Debug, Default, Clone)]
pub(super) struct Ring {
    entries: VecDeque<RingEntry>,
    seen_data_segs_out: u32,
}

impl Ring {
    pub(super) fn new(seen_data_segs_out: u32) -> Self {
        Self { entries: VecDeque::new(), seen_data_segs_out }
    }

    pub(super) fn from_raw(raw: &RawRing, seen_data_segs_out: u32) -> Self {
        let newest = raw.newest as usize;
        let at = |age: usize| raw.entries[(newest + ENTRIES - age) % ENTRIES];
        Self { entries: (0..raw.used as usize).map(at).collect(), seen_data_segs_out }
    }

    /// Notes what was sent since the last call.
    pub(super) fn close_group(&mut self, c: &Conn, delivered: u32, lost: u32, in_flight: u32) {
        if c.data_segs_out == self.seen_data_segs_out {
            return;
        }
        self.seen_data_segs_out = c.data_segs_out;
        let granularity = (in_flight / (ENTRIES as u32 / 2)).max(1);
        let snd_nxt = c.snd_nxt;
        if let Some(entry) = self.entries.front_mut()
            && delivered.wrapping_sub(entry.delivered) < granularity
            && (delivered != entry.delivered || lost == entry.lost)
        {
            *entry = RingEntry { in_flight, snd_nxt, ..*entry };
            return;
        }
        self.entries.truncate(ENTRIES - 1);
        self.entries.push_front(RingEntry { delivered, lost, in_flight, snd_nxt });
    }

    /// The entry of what was sent while `delivered` stood at this value.
    pub(super) fn find(&self, delivered: u32) -> Option<&RingEntry> {
        let later = self.entries.partition_point(|entry| before(delivered, entry.delivered));
        self.entries.get(later)
    }

    /// ring_look_up(): packets in flight as the newest delivered packet was sent, and what had been lost by then.
    pub(super) fn look_up(&self, c: &Conn, ack: &Ack) -> Option<(u32, u32)> {
        let at = self.entries.partition_point(|entry| before(ack.prior_delivered, entry.delivered));
        let mut entry = self.entries.get(at)?;
        let older = self.entries.get(at + 1);
        let mut end = ack.last_end_seq;
        if ack.is_retrans != 0 {
            end = older.map(|older| older.snd_nxt).filter(|end| before(*end, entry.snd_nxt)).unwrap_or(entry.snd_nxt);
        } else if c.ca_state >= IN_RECOVERY
            && let Some(older) = older
            && older.delivered == entry.delivered
            && !before(older.snd_nxt, end)
        {
            entry = older;
        }
        Some((tx_in_flight(c, entry, end), entry.lost))
    }

    /// The oldest entry that holds data from `sequence` on.
    pub(super) fn find_sequence(&self, sequence: u32) -> Option<&RingEntry> {
        let holding = self.entries.partition_point(|entry| before(sequence, entry.snd_nxt));
        self.entries.get(holding.checked_sub(1)?)
    }
}

/// Packets in flight right after the packet that ends at `end` was sent with the group of `entry`.
pub(super) fn tx_in_flight(c: &Conn, entry: &RingEntry, end: u32) -> u32 {
    let is_before = c.mss > 0 && before(end, entry.snd_nxt);
    let behind = if is_before { entry.snd_nxt.wrapping_sub(end).div_ceil(c.mss) } else { 0 };
    if behind < entry.in_flight { entry.in_flight - behind } else { 1 }
}
