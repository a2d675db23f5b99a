//! What leaves, when, and in how large bursts.

use congestion::{Ignore, Recovery};
use units::{Bytes, Duration, Instant};

use super::{Limit, Sender};
use crate::segment::Data;

/// Linux paces nothing before this many segments (`tcp_update_skb_after_send`).
const UNPACED: u64 = 10;
/// A segmentation-offload burst ends before this many bytes (GSO_LEGACY_MAX_SIZE less headers).
const MOST_BURST: u64 = 65_535 - 320;

impl Sender {
    /// The application has given, or will give, all packets before `end`. It never takes any back, but those not sent yet.
    pub(crate) fn give(&mut self, now: Instant, end: u64) {
        self.now = now;
        if end > self.given {
            self.note_application_limit();
        }
        self.given = end.max(self.board.next());
    }

    /// Packets that may be sent the first time, by application, send buffer and receiver.
    fn sendable(&self) -> u64 {
        self.given.min(self.buffered).min(self.right_edge).saturating_sub(self.board.next())
    }

    /// Packets the application has given and the buffer holds.
    pub(super) fn unsent(&self) -> u64 {
        self.given.min(self.buffered).saturating_sub(self.board.next())
    }

    /// The application writes on once a third of its buffer is free (`sk_stream_write_space`).
    pub(super) fn refill_buffer(&mut self) {
        let held = self.buffered.saturating_sub(self.board.first());
        if held <= self.options.buffer - self.options.buffer / 3 {
            if self.buffered < self.given {
                self.note_application_limit();
            }
            self.buffered = self.board.first() + self.options.buffer.max(1);
        }
    }

    /// `tcp_rate_check_app_limited`, which Linux calls as the application writes.
    fn note_application_limit(&mut self) {
        let in_flight = self.board.in_flight();
        if self.unsent() == 0 && in_flight < self.control.cwnd && self.board.lost_out() <= self.board.retrans_out() {
            self.sampler.mark_app_limited(in_flight);
        }
    }

    /// Sends what windows and pacing allow into `out`.
    pub(crate) fn send(&mut self, now: Instant, out: &mut Vec<Data>) {
        self.now = now;
        if !self.established {
            return;
        }
        let mut sent = false;
        let mut limited = false;
        while self.may_depart() {
            let room = self.control.cwnd.saturating_sub(self.board.in_flight());
            if room > 0 && self.board.lost_out() > self.board.retrans_out() {
                let Some(packet) = self.board.next_missing() else { break };
                self.retransmit(packet);
                sent = true;
                continue;
            }
            let ready = self.sendable();
            if ready == 0 {
                break;
            }
            if room == 0 {
                limited = true;
                break;
            }
            let burst = self.burst();
            if self.waits_for_more(room, ready, burst) {
                limited = true;
                break;
            }
            // `tcp_cwnd_test`: at most half the window at once.
            let quota = room.min((self.control.cwnd / 2).max(1)).min(burst);
            self.transmit_new(u64::from(quota).min(ready) as u32);
            sent = true;
        }
        if sent || limited {
            self.note_window_use(limited);
        }
        self.account();
        out.append(&mut self.out);
    }

    /// What holds the sender back from now on: `tcp_chrono_start`.
    fn account(&mut self) {
        let limit = if self.board.outstanding() == 0 && self.given <= self.board.next() {
            Limit::Idle
        } else if self.board.in_flight() >= self.control.cwnd || self.departure > self.now {
            Limit::Busy
        } else if self.board.next() >= self.right_edge && self.given > self.right_edge {
            Limit::Window
        } else if self.board.next() >= self.buffered && self.given > self.buffered {
            Limit::Buffer
        } else {
            Limit::Busy
        };
        self.set_limit(limit);
    }

    /// `tcp_pacing_check`: false sets the pacing timer.
    fn may_depart(&mut self) -> bool {
        if self.departure <= self.now {
            self.timers.pacing = Instant::MAX;
            return true;
        }
        self.timers.pacing = self.departure;
        false
    }

    /// `tcp_tso_autosize`, in packets: what the rate sends in a millisecond, and more on short paths.
    fn burst(&self) -> u32 {
        if let Some(burst) = self.options.burst {
            return burst.max(1);
        }
        if self.control.pacing_rate.is_some() {
            return self.control.send_quantum.max(1);
        }
        let Some(smoothed) = self.rtt.smoothed() else { return 2 };
        // `tcp_update_pacing_rate`, which sizes bursts for those too that are not paced.
        let percent = if self.control.cwnd < self.control.ssthresh / 2 { 200 } else { 120 };
        let mss = u64::from(self.options.mss);
        let window = u64::from(self.control.cwnd.max(self.board.outstanding())) * mss;
        let per_second =
            u128::from(window) * u128::from(percent * 10_000_000u64) / u128::from(smoothed.as_nanos().max(1));
        let mut bytes = u64::try_from(per_second >> 10).unwrap_or(u64::MAX);
        let halvings = self.rtt.min().map_or(0, Duration::as_micros) >> 9;
        if halvings < 32 {
            bytes = bytes.saturating_add(65_536 >> halvings);
        }
        ((bytes.min(MOST_BURST) / mss.max(1)) as u32).max(2)
    }

    /// `tcp_tso_should_defer`: a small piece of the window waits for more ACKs, unless that could stall the flow.
    fn waits_for_more(&self, room: u32, ready: u64, burst: u32) -> bool {
        if self.control.pacing_rate.is_some() || self.recovery >= Recovery::Recovery || self.board.in_flight() == 0 {
            return false;
        }
        let Some(smoothed) = self.rtt.smoothed() else { return false };
        u64::from(room) < ready
            && room < burst
            && room < self.control.cwnd / 3
            && self.now.since(self.last_sent) < Duration::from_millis(1)
            && self.board.oldest_sent().is_some_and(|sent| self.now.since(sent) < smoothed / 2)
    }

    /// `tcp_cwnd_validate`.
    fn note_window_use(&mut self, limited: bool) {
        let outstanding = self.board.outstanding();
        if self.board.first() >= self.cwnd_usage_end
            || limited
            || (!self.is_cwnd_limited && outstanding > self.max_outstanding)
        {
            self.is_cwnd_limited = limited;
            self.max_outstanding = outstanding;
            self.cwnd_usage_end = self.board.next();
        }
    }

    /// `tcp_update_skb_after_send`: when the next packet may depart.
    fn pace(&mut self, packets: u32) {
        let Some(rate) = self.control.pacing_rate.filter(|_| self.counters.sent >= UNPACED) else { return };
        let before = self.departure;
        self.departure = self.departure.max(self.now);
        let length = rate.time_for(Bytes::new(u64::from(packets) * u64::from(self.options.mss)));
        // Rates near zero still send, if only every minute.
        let length = length.min(Duration::from_secs(60));
        let credit = self.departure.since(before).min(length / 2);
        self.departure += length.saturating_sub(credit);
    }

    fn restart_from_idle(&mut self) {
        if self.board.in_flight() == 0 {
            let conn = self.connection();
            self.controller.on_idle_restart(&conn, &mut self.control, &mut Ignore);
            self.after_call();
        }
    }

    pub(super) fn transmit_new(&mut self, packets: u32) {
        self.restart_from_idle();
        let first_out = self.board.outstanding() == 0;
        for place in 0..packets {
            let number = self.board.next();
            let in_flight = self.board.in_flight() + 1;
            let stamp = self.sampler.on_sent(self.now, in_flight, first_out && place == 0);
            self.board.push(stamp);
            self.put_out(number, self.cwr_pending);
            self.cwr_pending = false;
        }
        self.after_transmission(packets);
        self.arm_timer_after_send(first_out);
    }

    pub(super) fn retransmit(&mut self, number: u64) {
        self.restart_from_idle();
        let in_flight = self.board.in_flight() + 1;
        let stamp = self.sampler.on_sent(self.now, in_flight, false);
        self.board.resend(number, stamp);
        self.first_retransmission.get_or_insert(self.now);
        self.undo_retransmissions = Some(self.undo_retransmissions.unwrap_or(0) + 1);
        self.put_out(number, false);
        self.counters.retransmitted += 1;
        self.after_transmission(1);
        if self.timers.retransmit == Instant::MAX {
            self.arm_timer();
        }
    }

    fn put_out(&mut self, number: u64, cwr: bool) {
        self.out.push(Data { number, payload: self.options.mss, cwr, sent: self.now, echo: self.echo });
    }

    fn after_transmission(&mut self, packets: u32) {
        self.counters.sent += u64::from(packets);
        self.prr.sent(packets);
        self.last_sent = self.now;
        self.pace(packets);
    }
}
