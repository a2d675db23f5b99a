//! The transport's loss recovery: its begin and end, timeouts, tail loss probes, idleness, and recoveries that prove spurious. draft,
//! "Modulating cwnd in Loss Recovery", "Updating the Model Upon Detecting a Spurious Loss Recovery", "Actions when Restarting from Idle".

use super::bounds::is_inflight_too_high;
use super::{Bbr3, Call, Mode};
use crate::fixed::{Bandwidth, INFINITE, UNIT};
use crate::{Cause, Recovery};

impl Bbr3 {
    /// draft, OnEnterFastRecovery(); and what only tail loss probes and ECN tell.
    pub(super) fn handle_congestion(&mut self, x: &mut Call<'_>, cause: Cause) {
        self.save_state_upon_loss(x.control.cwnd);
        match cause {
            Cause::Loss | Cause::Timeout => {}
            Cause::TailLoss => self.handle_tail_loss(x),
            Cause::Ecn => self.handle_ecn(x),
        }
    }

    /// A tail loss probe repaired a loss: counts as one lost packet at the end of the latest flight.
    fn handle_tail_loss(&mut self, x: &mut Call<'_>) {
        let tx_in_flight = self.state.inflight_latest.saturating_add(1);
        self.note_loss(x);
        if self.state.bw_probe_samples
            && is_inflight_too_high(x.conn.sees_every_loss, 1, tx_in_flight, self.params.loss_thresh)
        {
            self.handle_inflight_too_high(x, tx_in_flight, x.conn.is_app_limited);
        }
    }

    /// The draft asks that a CE mark be taken for congestion and leaves open how. Here: as a loss beyond every threshold.
    fn handle_ecn(&mut self, x: &mut Call<'_>) {
        self.note_loss(x);
        if self.state.mode == Mode::Startup && !self.state.full_bw_reached {
            self.end_startup_on_congestion(x);
        } else if self.state.bw_probe_samples {
            self.handle_inflight_too_high(x, x.conn.in_flight, x.conn.is_app_limited);
        }
    }

    /// Before the transport changes its state of recovery.
    pub(super) fn handle_recovery(&mut self, x: &mut Call<'_>, to: Recovery) {
        if to == Recovery::Loss {
            self.handle_timeout(x);
        } else if self.state.prev_recovery == Recovery::Loss {
            // There may be no ACK that bounds the restored window.
            self.restore_cwnd(x);
            x.control.cwnd = self.bound_cwnd(x, x.control.cwnd);
        }
        if to < Recovery::Recovery {
            self.state.loss_in_episode = false;
        }
    }

    /// draft, OnEnterRTO(). The transport has cut the window already.
    fn handle_timeout(&mut self, x: &Call<'_>) {
        self.save_state_upon_loss(x.control.cwnd.max(x.conn.prior_cwnd));
        self.state.prev_recovery = Recovery::Loss;
        self.reset_full_bw(Bandwidth::ZERO);
        // At the end of the round it would begin with a window of one.
        if !self.state.mode.is_probing_bw() && self.state.inflight_lo == INFINITE {
            self.state.inflight_lo = x.control.cwnd.max(self.state.prior_cwnd);
        }
    }

    /// draft, HandleSpuriousLossDetection().
    pub(super) fn handle_spurious_loss_detection(&mut self, x: &mut Call<'_>) {
        self.state.loss_in_round = false;
        self.state.loss_round_start = false;
        self.state.loss_round_delivered = x.conn.delivered;
        self.state.loss_events_in_round = 0;
        self.reset_full_bw(Bandwidth::ZERO);
        let state = &mut self.state;
        state.bw_lo = state.bw_lo.max(state.undo_bw_lo);
        state.inflight_lo = state.inflight_lo.max(state.undo_inflight_lo);
        state.inflight_hi = state.inflight_hi.max(state.undo_inflight_hi);
        match (state.undo_mode, state.mode) {
            (Some(Mode::Startup), mode) if mode != Mode::Startup => {
                state.full_bw_reached = false;
                if mode != Mode::ProbeRtt {
                    self.enter(x, Mode::Startup);
                }
            }
            (Some(Mode::Up), mode) if !matches!(mode, Mode::Up | Mode::ProbeRtt) => self.start_refill(x),
            _ => {}
        }
        self.state.undo_mode = None;
        // There may be no ACK that sets the pace of the restored mode.
        (self.state.pacing_gain, self.state.cwnd_gain) = self.state.mode.gains();
        self.set_pacing_rate(x, self.state.pacing_gain);
        x.control.cwnd = self.bound_cwnd(x, x.control.cwnd.max(self.state.prior_cwnd));
    }

    /// draft, HandleRestartFromIdle().
    pub(super) fn handle_restart_from_idle(&mut self, x: &mut Call<'_>) {
        if !x.conn.is_app_limited {
            return;
        }
        self.state.idle_restart = true;
        self.start_ack_epoch(x.now_us());
        if self.state.mode.is_probe_bw() {
            self.set_pacing_rate(x, UNIT);
        } else if self.state.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(x);
        }
    }
}
