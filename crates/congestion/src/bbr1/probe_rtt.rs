//! The minimum RTT, and PROBE_RTT: four packets in flight for a moment every ten seconds, to see it without a queue.

use super::{Ack, Bbr1, Call, Duration, INFINITE, Mode};

const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// The smallest window, packets.
pub(super) const MIN_CWND: u32 = 4;

impl Bbr1 {
    pub(super) fn update_min_rtt(&mut self, x: &mut Call<'_>, ack: &Ack) {
        let expired = x.conn.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt {
            let rtt_us = rtt.as_micros().min(u64::from(INFINITE - 1)) as u32;
            if rtt_us < self.min_rtt_us || (expired && !ack.is_delayed) {
                self.min_rtt_us = rtt_us;
                self.min_rtt_at = x.conn.now;
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.enter(x, Mode::ProbeRtt);
            self.save_cwnd(x.control.cwnd);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(x);
        }
        if ack.sample.is_some_and(|sample| sample.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, x: &mut Call<'_>) {
        x.control.mark_app_limited = true;
        if self.probe_rtt_done.is_none() {
            if x.conn.in_flight <= MIN_CWND {
                self.probe_rtt_done = Some(x.conn.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.round.start(x.conn);
            }
            return;
        }
        if self.round_start {
            self.probe_rtt_round_done = true;
        }
        if self.probe_rtt_round_done {
            self.check_probe_rtt_done(x);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, x: &mut Call<'_>) {
        if self.probe_rtt_done.is_none_or(|done| x.conn.now <= done) {
            return;
        }
        // When the next one is due.
        self.min_rtt_at = x.conn.now;
        x.control.cwnd = x.control.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.start_probe_bw(x);
        } else {
            self.enter(x, Mode::Startup);
        }
    }
}
