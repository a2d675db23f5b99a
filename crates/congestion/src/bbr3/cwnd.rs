//! The congestion window, in packets. draft, "Congestion Window".

use super::model::MIN_PIPE_CWND;
use super::{Bbr3, Call, Mode, Sample};
use crate::Recovery;
use crate::fixed::INFINITE;

/// PROBE_RTT's window: half a BDP.
const PROBE_RTT_CWND_GAIN: u32 = 128;

impl Bbr3 {
    /// draft, ProbeRTTCwnd(). From the minimum RTT believed before PROBE_RTT (or a lower one measured in it): where both filters run out
    /// together after idleness, the new minimum is a queue's, and half of a BDP computed from it would not drain that queue (draft issue 109).
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        let state = &self.state;
        let mut packets = u64::from(self.bdp_multiple(state.bw(), PROBE_RTT_CWND_GAIN));
        if state.cap_min_rtt_us < state.min_rtt_us && state.min_rtt_us != INFINITE {
            packets = packets * u64::from(state.cap_min_rtt_us) / u64::from(state.min_rtt_us);
        }
        (packets as u32).max(MIN_PIPE_CWND)
    }

    /// draft, BoundCwndForModel().
    fn bound_cwnd_for_model(&self, cwnd: u32) -> u32 {
        let cap = match self.state.mode {
            Mode::ProbeRtt | Mode::Cruise => self.inflight_with_headroom(),
            Mode::Down | Mode::Refill | Mode::Up => self.state.inflight_hi,
            Mode::Startup | Mode::Drain => INFINITE,
        };
        cwnd.min(cap.min(self.state.inflight_lo).max(MIN_PIPE_CWND))
    }

    /// Every upper bound on `cwnd`: the transport's, PROBE_RTT's and the model's.
    pub(super) fn bound_cwnd(&self, x: &Call<'_>, cwnd: u32) -> u32 {
        let mut cwnd = cwnd.min(x.conn.max_cwnd);
        if self.state.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model(cwnd)
    }

    /// draft, UpdateMaxInflight(): BBR.max_inflight.
    fn max_inflight(&self, x: &Call<'_>) -> u32 {
        let packets = self.bdp_multiple(self.state.bw(), self.state.cwnd_gain);
        self.quantization_budget(x, packets.saturating_add(self.aggregation_cwnd()))
    }

    /// draft, SetCwnd().
    pub(super) fn set_cwnd(&self, x: &mut Call<'_>, sample: &Sample) {
        let mut cwnd = x.control.cwnd;
        if sample.newly_acked > 0 {
            let target = self.max_inflight(x);
            let grown = cwnd.saturating_add(sample.newly_acked);
            if self.state.full_bw_reached {
                cwnd = grown.min(target);
            } else if cwnd < target || cwnd < 2 * self.state.init_cwnd {
                cwnd = grown;
            }
            cwnd = cwnd.max(MIN_PIPE_CWND);
        }
        x.control.cwnd = self.bound_cwnd(x, cwnd);
    }

    /// draft, RestoreCwnd().
    pub(super) fn restore_cwnd(&self, x: &mut Call<'_>) {
        x.control.cwnd = x.control.cwnd.max(self.state.prior_cwnd);
    }

    /// draft, SaveCwnd(): the last window that neither recovery nor PROBE_RTT had cut.
    pub(super) fn save_cwnd(&mut self, cwnd: u32) {
        let is_cut = self.state.prev_recovery >= Recovery::Recovery || self.state.mode == Mode::ProbeRtt;
        self.state.prior_cwnd = if is_cut { self.state.prior_cwnd.max(cwnd) } else { cwnd };
    }
}
