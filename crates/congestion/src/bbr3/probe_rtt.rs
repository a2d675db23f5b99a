//! The minimum RTT and PROBE_RTT. draft, "ProbeRTT Logic" and "BBR.min_rtt Min Filter".

use super::{AckPhase, Bbr3, Call, Mode, Sample};

impl Bbr3 {
    /// draft, UpdateMinRTT(). True: the RTT filter has run out. A delayed ACK does not open a new window, and an equal RTT refreshes the
    /// stamp.
    pub(super) fn update_min_rtt(&mut self, x: &Call<'_>, sample: &Sample) -> bool {
        let now = x.now_us();
        let params = &self.params;
        let state = &mut self.state;
        let expired = now > state.probe_rtt_min_stamp.saturating_add(params.probe_rtt_interval_us);
        if let Some(rtt_us) = sample.rtt_us
            && (rtt_us < state.probe_rtt_min_us || (expired && !sample.is_ack_delayed))
        {
            state.probe_rtt_min_us = rtt_us;
            state.probe_rtt_min_stamp = now;
        }
        if state.mode != Mode::ProbeRtt {
            state.cap_min_rtt_us = state.min_rtt_us;
        }
        if state.probe_rtt_min_us <= state.min_rtt_us
            || now > state.min_rtt_stamp.saturating_add(params.min_rtt_window_us)
        {
            state.min_rtt_us = state.probe_rtt_min_us;
            state.min_rtt_stamp = state.probe_rtt_min_stamp;
        }
        expired
    }

    /// draft, ExitProbeRTT(). The queue is empty: no need to stay in DOWN.
    fn exit_probe_rtt(&mut self, x: &mut Call<'_>) {
        self.reset_lower_bounds();
        if self.state.full_bw_reached {
            self.start_down(x);
            self.start_cruise(x);
        } else {
            self.enter(x, Mode::Startup);
        }
    }

    /// draft, CheckProbeRTTDone().
    pub(super) fn check_probe_rtt_done(&mut self, x: &mut Call<'_>) {
        let now = x.now_us();
        if self.state.probe_rtt_done_stamp == 0 || now <= self.state.probe_rtt_done_stamp {
            return;
        }
        // When the next one is due.
        self.state.probe_rtt_min_stamp = now;
        self.restore_cwnd(x);
        self.exit_probe_rtt(x);
    }

    /// draft, HandleProbeRTT().
    fn handle_probe_rtt(&mut self, x: &mut Call<'_>) {
        x.control.mark_app_limited = true;
        if self.state.probe_rtt_done_stamp == 0 {
            if x.conn.in_flight > self.probe_rtt_cwnd() {
                return;
            }
            self.state.probe_rtt_done_stamp = x.now_us().saturating_add(self.params.probe_rtt_duration_us);
            self.state.probe_rtt_round_done = false;
            self.start_round(x);
            return;
        }
        if self.state.round_start {
            self.state.probe_rtt_round_done = true;
        }
        if self.state.probe_rtt_round_done {
            self.check_probe_rtt_done(x);
        }
    }

    /// draft, CheckProbeRTT().
    pub(super) fn check_probe_rtt(&mut self, x: &mut Call<'_>, sample: &Sample, expired: bool) {
        if expired && !self.state.idle_restart && self.state.mode != Mode::ProbeRtt {
            self.save_cwnd(x.control.cwnd);
            self.state.probe_rtt_done_stamp = 0;
            self.state.ack_phase = AckPhase::ProbeStopping;
            self.start_round(x);
            self.enter(x, Mode::ProbeRtt);
        }
        if self.state.mode == Mode::ProbeRtt {
            self.handle_probe_rtt(x);
        }
        if sample.has_packet {
            self.state.idle_restart = false;
        }
    }
}
