//! Loss rounds and the short-term bounds. draft, "When not Probing for Bandwidth" and "Probing for Bandwidth In ProbeBW".

use super::{Bbr3, Call, Sample};
use crate::fixed::{Bandwidth, INFINITE, UNIT, scale};

/// More lost of the flight than `thresh`/256 of it?
pub(super) fn exceeds(lost: u32, tx_in_flight: u32, thresh: u32) -> bool {
    lost > scale(tx_in_flight, thresh)
}

/// draft, IsInflightTooHigh(). A connection that sees one loss per round trip at most: any is too many.
pub(super) fn is_inflight_too_high(sees_every_loss: bool, lost: u32, tx_in_flight: u32, thresh: u32) -> bool {
    lost > 0 && (!sees_every_loss || (tx_in_flight > 0 && exceeds(lost, tx_in_flight, thresh)))
}

impl Bbr3 {
    /// draft, ResetCongestionSignals().
    pub(super) fn reset_congestion_signals(&mut self) {
        self.state.loss_in_round = false;
        self.state.bw_latest = Bandwidth::ZERO;
        self.state.inflight_latest = 0;
    }

    /// draft, ResetShortTermModel().
    pub(super) fn reset_lower_bounds(&mut self) {
        self.state.bw_lo = Bandwidth::INFINITE;
        self.state.inflight_lo = INFINITE;
    }

    /// draft, UpdateLatestDeliverySignals().
    pub(super) fn update_latest_delivery_signals(&mut self, x: &Call<'_>, sample: &Sample) {
        let state = &mut self.state;
        state.loss_round_start = false;
        if !sample.is_valid() {
            return;
        }
        state.bw_latest = state.bw_latest.max(sample.bw);
        state.inflight_latest = state.inflight_latest.max(sample.delivered);
        if sample.prior_delivered >= state.loss_round_delivered {
            state.loss_round_delivered = x.conn.delivered;
            state.loss_round_start = true;
        }
    }

    /// draft, AdvanceLatestDeliverySignals(). What a tail loss probe repaired says nothing of how much the path delivers: the round before it
    /// is remembered.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &Sample) {
        if self.state.loss_round_start && !sample.is_tail_probe {
            self.state.bw_latest = sample.bw;
            self.state.inflight_latest = sample.delivered;
        }
    }

    /// draft, InitLowerBounds() and LossLowerBounds(): adapt once per round with loss, each bound by its own threshold.
    fn adapt_lower_bounds(&mut self, x: &Call<'_>, sample: &Sample) {
        if self.state.mode.is_probing_bw() || !self.state.loss_in_round {
            return;
        }
        let params = self.params;
        let moves = |thresh: u32| thresh == 0 || exceeds(sample.lost, sample.tx_in_flight, thresh);
        let kept = UNIT - params.beta;
        if moves(params.bw_lo_loss_thresh) {
            let max_bw = self.state.max_bw();
            let state = &mut self.state;
            if state.bw_lo == Bandwidth::INFINITE {
                state.bw_lo = max_bw;
            }
            state.bw_lo = state.bw_latest.max(state.bw_lo.scaled(kept)).max(Bandwidth::from_raw(1));
        }
        if moves(params.inflight_lo_loss_thresh) {
            let state = &mut self.state;
            if state.inflight_lo == INFINITE {
                state.inflight_lo = x.control.cwnd;
            }
            state.inflight_lo = state.inflight_latest.max(scale(state.inflight_lo, kept));
        }
    }

    /// draft, UpdateCongestionSignals().
    pub(super) fn update_congestion_signals(&mut self, x: &Call<'_>, sample: &Sample) {
        if !sample.is_valid() {
            return;
        }
        self.update_max_bw(sample);
        if sample.newly_lost > 0 {
            self.state.loss_in_round = true;
        }
        if self.state.loss_round_start {
            self.adapt_lower_bounds(x, sample);
            self.state.loss_in_round = false;
        }
    }
}
