//! The congestion window, in packets.

use super::probe_rtt::MIN_CWND;
use super::{Ack, Bbr1, Call, INITIAL_CWND, Mode, Recovery};

impl Bbr1 {
    /// The last window that neither recovery nor PROBE_RTT had cut.
    pub(super) fn save_cwnd(&mut self, cwnd: u32) {
        let is_cut = self.prev_recovery >= Recovery::Recovery || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if is_cut { self.prior_cwnd.max(cwnd) } else { cwnd };
    }

    /// The first round trip of recovery sends a packet for each delivered; the end of recovery restores the window. True: this is the window.
    fn recover_or_restore(&mut self, x: &mut Call<'_>, ack: &Ack) -> bool {
        let (before, now) = (self.prev_recovery, x.conn.recovery);
        let mut cwnd = x.control.cwnd;
        if ack.newly_lost > 0 {
            cwnd = cwnd.saturating_sub(ack.newly_lost).max(1);
        }
        let conserved = x.conn.in_flight.saturating_add(ack.newly_acked);
        if now == Recovery::Recovery && before != Recovery::Recovery {
            self.packet_conservation = true;
            self.round.start(x.conn);
            cwnd = conserved;
        } else if before >= Recovery::Recovery && now < Recovery::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_recovery = now;
        if self.packet_conservation {
            cwnd = cwnd.max(conserved);
        }
        x.control.cwnd = cwnd;
        self.packet_conservation
    }

    pub(super) fn set_cwnd(&mut self, x: &mut Call<'_>, ack: &Ack) {
        if ack.newly_acked > 0 && !self.recover_or_restore(x, ack) {
            let wanted = self.bdp(self.bandwidth(), self.cwnd_gain).saturating_add(self.aggregation_cwnd());
            let target = self.quantization_budget(x, wanted);
            let cwnd = x.control.cwnd;
            let grown = cwnd.saturating_add(ack.newly_acked);
            if self.full_bw_reached {
                x.control.cwnd = grown.min(target);
            } else if cwnd < target || x.conn.delivered < u64::from(INITIAL_CWND) {
                x.control.cwnd = grown;
            }
            x.control.cwnd = x.control.cwnd.max(MIN_CWND);
        }
        x.control.cwnd = x.control.cwnd.min(x.conn.max_cwnd);
        if self.mode == Mode::ProbeRtt {
            x.control.cwnd = x.control.cwnd.min(MIN_CWND);
        }
    }
}
