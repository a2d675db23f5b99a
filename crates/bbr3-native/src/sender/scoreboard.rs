use std::collections::VecDeque;

use units::Instant;

/// A packet that was sent and is not cumulatively acknowledged: Linux's `tcp_skb_cb`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outstanding {
    /// Last transmission, and its place among all transmissions.
    pub sent: Instant,
    pub order: u64,
    /// Stamps of the rate sampler, of the last transmission.
    pub first_sent: Instant,
    pub delivered: u32,
    pub delivered_at: Instant,
    pub app_limited: bool,
    /// Scoreboard.
    pub sacked: bool,
    pub lost: bool,
    pub retransmitted: bool,
    pub ever_retransmitted: bool,
    /// What the kernel of the congestion control can't see: the truth of the last transmission.
    pub tx_in_flight: u32,
    pub tx_lost: u32,
}

/// What is outstanding, and the sums over it that Linux keeps.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    packets: VecDeque<Outstanding>,
    /// Number of the first.
    pub first: u64,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    /// Marked lost since the connection began.
    pub lost: u32,
    /// Marks since this was last taken, in order: packets in flight right after the packet was sent, and packets lost since then,
    /// itself included.
    pub marks: Vec<(u32, u32)>,
}

impl Scoreboard {
    /// Number of the next new packet.
    pub fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    pub fn packets_out(&self) -> u32 {
        self.packets.len() as u32
    }

    pub fn in_flight(&self) -> u32 {
        self.packets_out() - (self.sacked_out + self.lost_out) + self.retrans_out
    }

    pub fn get(&self, number: u64) -> Option<&Outstanding> {
        self.packets.get(number.checked_sub(self.first)? as usize)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Outstanding> {
        self.packets.get_mut(number.checked_sub(self.first)? as usize)
    }

    pub fn push(&mut self, packet: Outstanding) {
        self.packets.push_back(packet);
    }

    /// Takes the first out: it is cumulatively acknowledged. False: nothing new, it was SACKed before.
    pub fn acknowledge_first(&mut self) -> Option<(Outstanding, bool)> {
        let packet = self.packets.pop_front()?;
        self.first += 1;
        let new = !packet.sacked;
        if packet.sacked {
            self.sacked_out -= 1;
        } else {
            self.forget_marks(&packet);
        }
        Some((packet, new))
    }

    /// SACKs one. `None`: nothing new.
    pub fn sack(&mut self, number: u64) -> Option<Outstanding> {
        let packet = *self.get(number)?;
        if packet.sacked {
            return None;
        }
        self.forget_marks(&packet);
        self.sacked_out += 1;
        let slot = self.get_mut(number)?;
        slot.sacked = true;
        slot.lost = false;
        slot.retransmitted = false;
        Some(packet)
    }

    fn forget_marks(&mut self, packet: &Outstanding) {
        self.lost_out -= u32::from(packet.lost);
        self.retrans_out -= u32::from(packet.retransmitted);
    }

    /// tcp_mark_skb_lost().
    pub fn mark_lost(&mut self, number: u64) {
        let Some(packet) = self.get_mut(number) else { return };
        if packet.sacked || (packet.lost && !packet.retransmitted) {
            return;
        }
        let (newly, again) = (!packet.lost, packet.retransmitted);
        packet.lost = true;
        packet.retransmitted = false;
        let packet = *packet;
        self.lost_out += u32::from(newly);
        self.retrans_out -= u32::from(again);
        self.lost = self.lost.wrapping_add(1);
        let mark = (packet.tx_in_flight, self.lost.wrapping_sub(packet.tx_lost));
        self.marks.push(mark);
    }

    /// tcp_undo_cwnd_reduction() with unmark_loss.
    pub fn unmark_lost(&mut self) {
        for packet in &mut self.packets {
            packet.lost = false;
        }
        self.lost_out = 0;
    }

    /// The first that is marked lost and not sent again.
    pub fn next_to_retransmit(&self) -> Option<u64> {
        let at = self.packets.iter().position(|packet| packet.lost && !packet.sacked && !packet.retransmitted)?;
        Some(self.first + at as u64)
    }

    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.next()
    }

    /// tcp_any_retrans_done().
    pub fn any_retransmitted(&self) -> bool {
        self.retrans_out > 0 || self.packets.front().is_some_and(|packet| packet.ever_retransmitted)
    }
}
