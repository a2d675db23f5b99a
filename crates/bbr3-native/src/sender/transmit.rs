use units::{Duration, Instant};

use super::scoreboard::Outstanding;
use super::{Application, Outgoing, Sender};
use crate::CaState;

impl Sender {
    /// The application writes `packets` packets more. Send with [`Sender::send`] afterwards.
    pub fn write(&mut self, now: Instant, packets: u64) {
        assert_eq!(self.application, Application::Writes, "a bulk sender has everything already");
        self.now = now;
        self.note_application_limit();
        self.written += packets;
    }

    /// tcp_rate_check_app_limited(), which mainline Linux calls as the application writes.
    fn note_application_limit(&mut self) {
        let in_flight = self.board.in_flight();
        if self.unsent() == 0 && in_flight < self.cwnd && self.board.lost_out <= self.board.retrans_out {
            self.sampler.app_limited = self.sampler.delivered.wrapping_add(in_flight).max(1);
        }
    }

    /// Sends what window and pacing allow. Collect it with [`Sender::take_outgoing`].
    pub fn send(&mut self, now: Instant) {
        self.now = now;
        let (mut sent, mut deferred) = (false, false);
        while self.may_depart() {
            let room = self.cwnd.saturating_sub(self.board.in_flight());
            if self.board.lost_out > self.board.retrans_out && room > 0 {
                let Some(packet) = self.board.next_to_retransmit() else { break };
                self.retransmit(packet);
                continue;
            }
            // tcp_cwnd_test(): at most half the window at once, so that bursts stay short.
            let quota = room.min((self.cwnd / 2).max(1)).min(self.burst());
            let packets = u64::from(quota).min(self.unsent());
            if packets == 0 {
                break;
            }
            if self.should_defer(room) {
                deferred = true;
                break;
            }
            self.transmit_new(packets as u32);
            sent = true;
        }
        let limited = deferred || (self.unsent() > 0 && self.board.in_flight() >= self.cwnd);
        if sent || limited {
            self.note_window_use(limited);
        }
    }

    pub(crate) fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    /// tcp_pacing_check(): false sets the pacing timer.
    fn may_depart(&mut self) -> bool {
        if self.departure <= self.now {
            self.timers.pacing = None;
            return true;
        }
        self.timers.pacing = Some(self.departure);
        false
    }

    /// tcp_tso_autosize(), in packets.
    fn burst(&self) -> u32 {
        if self.burst > 0 {
            return self.burst;
        }
        let mut bytes = self.pacing_rate >> 10;
        let halvings = self.min_rtt_us >> 9;
        if halvings < 32 {
            bytes += 65_536 >> halvings;
        }
        (bytes.min(65_535 - 320) as u32 / self.mss).max(2)
    }

    /// tcp_tso_should_defer(): waits for room for a whole burst, where the next ACK is about to make it.
    fn should_defer(&self, room: u32) -> bool {
        let Some(oldest) = self.board.get(self.board.first) else { return false };
        self.ca_state < CaState::Recovery
            && room < self.burst()
            // net.ipv4.tcp_tso_win_divisor
            && room < self.cwnd / 3
            && u64::from(room) < self.unsent()
            && self.now.since(self.departure) <= Duration::from_millis(1)
            && self.now.since(oldest.sent) >= self.srtt() / 2
    }

    /// tcp_cwnd_validate().
    fn note_window_use(&mut self, limited: bool) {
        let packets_out = self.board.packets_out();
        if self.board.first >= self.cwnd_usage_seq
            || limited
            || (!self.is_cwnd_limited && packets_out > self.max_packets_out)
        {
            self.is_cwnd_limited = limited;
            self.max_packets_out = packets_out;
            self.cwnd_usage_seq = self.board.next();
        }
    }

    /// tcp_update_skb_after_send(): when the next packet may depart.
    fn pace(&mut self, bytes: u64) {
        let before = self.departure;
        self.departure = self.departure.max(self.now);
        // Linux does not pace the first ten packets.
        if self.pacing_rate == 0 || self.pacing_rate == u64::MAX || self.data_segs_out < 10 {
            return;
        }
        let length = Duration::from_nanos(bytes * 1_000_000_000 / self.pacing_rate);
        let credit = self.departure.since(before).min(length / 2);
        self.departure += length.saturating_sub(credit);
    }

    pub(super) fn transmit_new(&mut self, packets: u32) {
        if self.board.in_flight() == 0 {
            self.ask(|cc, conn| cc.tx_start(conn));
        }
        let first_out = self.board.packets_out() == 0;
        let (first_sent, delivered, delivered_at, app_limited) = self.sampler.stamp(self.now, first_out);
        for left in (0..packets).rev() {
            let packet = self.board.next();
            self.orders += 1;
            let in_flight = self.board.in_flight() + 1;
            self.board.push(Outstanding {
                sent: self.now,
                order: self.orders,
                first_sent,
                delivered,
                delivered_at,
                app_limited,
                sacked: false,
                lost: false,
                retransmitted: false,
                ever_retransmitted: false,
                tx_in_flight: in_flight,
                tx_lost: self.board.lost,
            });
            self.outgoing.push(Outgoing { packet, order: self.orders, push: packets > 1 && left == 0 });
        }
        self.data_segs_out = self.data_segs_out.wrapping_add(packets);
        self.pace(u64::from(packets) * u64::from(self.mss));
        self.arm_timer_after_send(first_out);
    }

    pub(super) fn retransmit(&mut self, number: u64) {
        if self.board.in_flight() == 0 {
            self.ask(|cc, conn| cc.tx_start(conn));
        }
        let (first_sent, delivered, delivered_at, app_limited) = self.sampler.stamp(self.now, false);
        self.orders += 1;
        let (now, order, lost) = (self.now, self.orders, self.board.lost);
        let in_flight = self.board.in_flight() + 1;
        let Some(packet) = self.board.get_mut(number) else { return };
        packet.sent = now;
        packet.order = order;
        packet.first_sent = first_sent;
        packet.delivered = delivered;
        packet.delivered_at = delivered_at;
        packet.app_limited = app_limited;
        packet.ever_retransmitted = true;
        packet.tx_in_flight = in_flight;
        packet.tx_lost = lost;
        if !packet.retransmitted {
            packet.retransmitted = true;
            self.board.retrans_out += 1;
        }
        if self.retrans_stamp.is_none() {
            self.retrans_stamp = Some(self.now);
        }
        self.undo_retrans = self.undo_retrans.max(0) + 1;
        self.outgoing.push(Outgoing { packet: number, order, push: false });
        self.data_segs_out = self.data_segs_out.wrapping_add(1);
        self.pace(u64::from(self.mss));
    }
}
