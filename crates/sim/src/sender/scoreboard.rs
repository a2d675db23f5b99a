//! What was sent and is not acknowledged in order yet.
//!
//! Every operation takes constant or logarithmic time for each packet, however much is in flight: packets lost are found by two
//! queues in the order of transmission (originals in the order of their numbers, retransmissions in a list of their own), never by
//! looking at everything outstanding.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use congestion::PacketStamp;
use units::Instant;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// Sent again, and that is on its way.
const RETRANSMITTED: u8 = 4;
const EVER_RETRANSMITTED: u8 = 8;

/// A packet that was sent and is not acknowledged in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outstanding {
    /// Notes of its last transmission.
    pub stamp: PacketStamp,
    /// Which of its transmissions that was, from 0.
    transmission: u16,
    marks: u8,
}

impl Outstanding {
    pub fn is_sacked(&self) -> bool {
        self.marks & SACKED != 0
    }

    pub fn is_lost(&self) -> bool {
        self.marks & LOST != 0
    }

    pub fn is_retransmitted(&self) -> bool {
        self.marks & RETRANSMITTED != 0
    }

    pub fn was_ever_retransmitted(&self) -> bool {
        self.marks & EVER_RETRANSMITTED != 0
    }

    /// Lost, and not sent again since.
    pub fn is_missing(&self) -> bool {
        self.is_lost() && !self.is_retransmitted()
    }
}

/// A moment in the order of transmissions: of two packets sent at once, the one with the higher number is the later.
pub(crate) type Sent = (Instant, u64);

#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    packets: VecDeque<Outstanding>,
    /// Number of the first outstanding packet.
    first: u64,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    /// Every packet before this one is SACKED, lost or was sent again: the next whose first transmission may turn out lost.
    undecided: u64,
    /// Retransmissions in the order they were sent: number, transmission. Entries may be out of date.
    resent: VecDeque<(u64, u16)>,
    /// Packets marked lost, lowest first. Entries may be out of date.
    missing: BinaryHeap<Reverse<u64>>,
}

impl Scoreboard {
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number of the next new packet.
    #[inline]
    pub fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    #[inline]
    pub fn outstanding(&self) -> u32 {
        self.packets.len() as u32
    }

    pub fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    pub fn lost_out(&self) -> u32 {
        self.lost_out
    }

    pub fn retrans_out(&self) -> u32 {
        self.retrans_out
    }

    /// Linux's `tcp_packets_in_flight()`.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.outstanding() - (self.sacked_out + self.lost_out) + self.retrans_out
    }

    pub fn get(&self, number: u64) -> Option<&Outstanding> {
        self.packets.get(number.checked_sub(self.first)? as usize)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Outstanding> {
        self.packets.get_mut(number.checked_sub(self.first)? as usize)
    }

    pub fn push(&mut self, stamp: PacketStamp) {
        self.packets.push_back(Outstanding { stamp, transmission: 0, marks: 0 });
    }

    /// Takes the first packet out: it is acknowledged in order.
    #[inline]
    pub fn acknowledge_first(&mut self) -> Option<Outstanding> {
        let packet = self.packets.pop_front()?;
        self.first += 1;
        if packet.is_sacked() {
            self.sacked_out -= 1;
        } else {
            self.forget_marks(&packet);
        }
        Some(packet)
    }

    /// Notes that a packet was acknowledged selectively. Returns it as it was before; `None`: nothing new.
    pub fn sack(&mut self, number: u64) -> Option<Outstanding> {
        let packet = *self.get(number)?;
        if packet.is_sacked() {
            return None;
        }
        self.forget_marks(&packet);
        self.sacked_out += 1;
        let slot = self.get_mut(number)?;
        slot.marks = (slot.marks & EVER_RETRANSMITTED) | SACKED;
        Some(packet)
    }

    #[inline]
    fn forget_marks(&mut self, packet: &Outstanding) {
        self.lost_out -= u32::from(packet.is_lost());
        self.retrans_out -= u32::from(packet.is_retransmitted());
    }

    /// Marks a packet lost (again, where it was sent again). Returns the notes of the transmission that was lost; `None`: it was
    /// not on its way.
    pub fn mark_lost(&mut self, number: u64) -> Option<PacketStamp> {
        let packet = self.get_mut(number)?;
        if packet.is_sacked() || packet.is_missing() {
            return None;
        }
        let (newly, again) = (!packet.is_lost(), packet.is_retransmitted());
        packet.marks = (packet.marks & !RETRANSMITTED) | LOST;
        let stamp = packet.stamp;
        self.lost_out += u32::from(newly);
        self.retrans_out -= u32::from(again);
        self.missing.push(Reverse(number));
        Some(stamp)
    }

    /// Takes back every mark of loss: what was sent is still on its way.
    pub fn unmark_lost(&mut self) {
        for (packet, number) in self.packets.iter_mut().zip(self.first..) {
            if packet.is_missing() && packet.was_ever_retransmitted() {
                self.resent.push_back((number, packet.transmission));
                packet.marks |= RETRANSMITTED;
                self.retrans_out += 1;
            }
            packet.marks &= !LOST;
        }
        self.lost_out = 0;
        self.missing.clear();
        self.undecided = self.first;
    }

    /// The lowest packet that is lost and not sent again.
    pub fn next_missing(&mut self) -> Option<u64> {
        while let Some(Reverse(number)) = self.missing.peek().copied() {
            if self.get(number).is_some_and(Outstanding::is_missing) {
                return Some(number);
            }
            self.missing.pop();
        }
        None
    }

    /// A packet is sent again.
    pub fn resend(&mut self, number: u64, stamp: PacketStamp) {
        let Some(packet) = self.get_mut(number) else { return };
        packet.stamp = stamp;
        packet.transmission = packet.transmission.wrapping_add(1);
        let newly = !packet.is_retransmitted();
        packet.marks |= RETRANSMITTED | EVER_RETRANSMITTED;
        let transmission = packet.transmission;
        self.retrans_out += u32::from(newly);
        self.resent.push_back((number, transmission));
    }

    /// The earliest transmission still on its way, if it was before `limit`: the next that may turn out lost (RFC 8985). Ask again once
    /// it is marked.
    pub fn earliest_before(&mut self, limit: Sent) -> Option<(u64, Instant)> {
        let original = self.earliest_original().filter(|(number, sent)| (*sent, *number) < limit);
        let resent = self.earliest_resent().filter(|(number, sent)| (*sent, *number) < limit);
        match (original, resent) {
            (Some(a), Some(b)) => Some(if (a.1, a.0) < (b.1, b.0) { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    fn earliest_original(&mut self) -> Option<(u64, Instant)> {
        self.undecided = self.undecided.max(self.first);
        while let Some(packet) = self.get(self.undecided) {
            if packet.marks == 0 {
                return Some((self.undecided, packet.stamp.sent_at));
            }
            self.undecided += 1;
        }
        None
    }

    fn earliest_resent(&mut self) -> Option<(u64, Instant)> {
        while let Some((number, transmission)) = self.resent.front().copied() {
            if let Some(packet) = self.get(number)
                && packet.transmission == transmission
                && packet.is_retransmitted()
            {
                return Some((number, packet.stamp.sent_at));
            }
            self.resent.pop_front();
        }
        None
    }

    pub fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.next()
    }

    /// When the oldest outstanding packet was sent last.
    pub fn oldest_sent(&self) -> Option<Instant> {
        self.packets.front().map(|packet| packet.stamp.sent_at)
    }

    /// Linux's `tcp_any_retrans_done()`.
    pub fn any_retransmitted(&self) -> bool {
        self.retrans_out > 0 || self.packets.front().is_some_and(Outstanding::was_ever_retransmitted)
    }
}

#[cfg(test)]
mod tests {
    use congestion::RateSampler;
    use proptest::prelude::*;

    use super::*;

    fn stamp(nanos: u64) -> PacketStamp {
        RateSampler::new(Instant::ZERO).on_sent(Instant::from_nanos(nanos), 1, false)
    }

    fn with(packets: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..packets).for_each(|number| board.push(stamp(number * 10)));
        board
    }

    /// All that is earlier than `limit`, marking each as it comes.
    fn lost_before(board: &mut Scoreboard, limit: u64) -> Vec<u64> {
        let mut lost = Vec::new();
        while let Some((number, _)) = board.earliest_before((Instant::from_nanos(limit), 0)) {
            board.mark_lost(number).unwrap();
            lost.push(number);
        }
        lost
    }

    #[test]
    fn losses_are_found_in_the_order_of_transmission_retransmissions_among_them() {
        let mut board = with(6);
        board.sack(2);
        assert_eq!(lost_before(&mut board, 25), [0, 1]);
        assert_eq!((board.next_missing(), board.in_flight()), (Some(0), 3));
        board.resend(1, stamp(35));
        board.resend(0, stamp(45));
        assert_eq!(board.in_flight(), 5);
        // 3 was sent at 30, 1 again at 35, 4 at 40, 0 again at 45, 5 at 50.
        assert_eq!(lost_before(&mut board, 100), [3, 1, 4, 0, 5]);
        assert_eq!(board.next_missing(), Some(0));
        assert_eq!(board.in_flight(), 0);
    }

    #[test]
    fn what_is_acknowledged_is_neither_lost_nor_missing_any_more() {
        let mut board = with(4);
        assert_eq!(lost_before(&mut board, 30), [0, 1, 2]);
        board.sack(0);
        board.resend(1, stamp(50));
        assert_eq!(board.next_missing(), Some(2));
        (0..3).for_each(|_| assert!(board.acknowledge_first().is_some()));
        assert_eq!((board.next_missing(), board.first(), board.in_flight()), (None, 3, 1));
        assert_eq!(lost_before(&mut board, 100), [3]);
    }

    #[test]
    fn marks_taken_back_can_be_made_again() {
        let mut board = with(3);
        lost_before(&mut board, 100);
        board.resend(0, stamp(40));
        board.unmark_lost();
        assert_eq!((board.next_missing(), board.lost_out()), (None, 0));
        assert_eq!(lost_before(&mut board, 100), [1, 2, 0]);
    }

    proptest! {
        /// The sums are what counting everything outstanding gives, whatever happens in whatever order.
        #[test]
        fn the_sums_agree_with_a_count(steps in proptest::collection::vec((0u8..6, 0u64..40), 0..200)) {
            let mut board = Scoreboard::default();
            for (time, (step, number)) in steps.into_iter().enumerate() {
                let now = 10 * time as u64;
                match step {
                    0 | 1 => board.push(stamp(now)),
                    2 => board.acknowledge_first().map_or((), |_| ()),
                    3 => board.sack(board.first() + number).map_or((), |_| ()),
                    4 => board.mark_lost(board.first() + number).map_or((), |_| ()),
                    _ => {
                        if let Some(missing) = board.next_missing() {
                            board.resend(missing, stamp(now));
                        }
                    }
                }
                let count = |what: fn(&Outstanding) -> bool| {
                    board.numbers().filter(|number| board.get(*number).is_some_and(what)).count() as u32
                };
                prop_assert_eq!(board.sacked_out(), count(Outstanding::is_sacked));
                prop_assert_eq!(board.lost_out(), count(Outstanding::is_lost));
                prop_assert_eq!(board.retrans_out(), count(Outstanding::is_retransmitted));
                let missing = board.numbers().find(|number| board.get(*number).is_some_and(Outstanding::is_missing));
                prop_assert_eq!(board.next_missing(), missing);
            }
        }
    }
}
