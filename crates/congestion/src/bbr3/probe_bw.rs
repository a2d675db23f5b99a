//! PROBE_BW: DOWN, CRUISE, REFILL, UP, and the long-term bound on packets in flight. draft, "ProbeBW Algorithm Details", "Time Scale for
//! Bandwidth Probing", "Precautionary Bandwidth Probing".

use super::bounds::is_inflight_too_high;
use super::{AckPhase, Bbr3, Call, Mode, Sample};
use crate::fixed::{INFINITE, UNIT, random_below, scale};

/// Doublings of the growth of `inflight_hi` within one UP phase, at most.
const MAX_PROBE_UP_ROUNDS: u8 = 30;

impl Bbr3 {
    /// draft, PickProbeWait(): random, so that flows that share a path probe at different times.
    fn pick_probe_wait(&mut self) {
        self.state.rounds_since_probe = random_below(&mut self.state.random, 2) as u8;
        let random_us = random_below(&mut self.state.random, self.params.probe_wait_random_us);
        self.state.probe_wait_us = self.params.probe_wait_base_us.saturating_add(random_us);
    }

    /// draft, StartProbeBW_DOWN().
    pub(super) fn start_down(&mut self, x: &mut Call<'_>) {
        self.reset_congestion_signals();
        self.state.probe_up_cnt = INFINITE;
        self.pick_probe_wait();
        self.state.cycle_stamp = x.now_us();
        self.state.ack_phase = AckPhase::ProbeStopping;
        self.start_round(x);
        self.enter(x, Mode::Down);
    }

    /// draft, StartProbeBW_CRUISE(). A short-term bound does not stay above the long-term one.
    pub(super) fn start_cruise(&mut self, x: &mut Call<'_>) {
        if self.state.inflight_lo != INFINITE {
            self.state.inflight_lo = self.state.inflight_lo.min(self.state.inflight_hi);
        }
        self.enter(x, Mode::Cruise);
    }

    /// draft, StartProbeBW_REFILL().
    pub(super) fn start_refill(&mut self, x: &mut Call<'_>) {
        self.reset_lower_bounds();
        self.state.probe_up_rounds = 0;
        self.state.probe_up_acked = 0;
        self.state.stopped_risky_probe = false;
        self.state.ack_phase = AckPhase::Refilling;
        self.start_round(x);
        self.enter(x, Mode::Refill);
    }

    /// draft, RaiseInflightLongtermSlope(): one packet more per round trip, then two, four, ...
    fn raise_inflight_hi_slope(&mut self, x: &Call<'_>) {
        let rounds = self.state.probe_up_rounds.min(MAX_PROBE_UP_ROUNDS);
        self.state.probe_up_rounds = (rounds + 1).min(MAX_PROBE_UP_ROUNDS);
        self.state.probe_up_cnt = (x.control.cwnd >> rounds).max(1);
    }

    /// draft, StartProbeBW_UP().
    fn start_up(&mut self, x: &mut Call<'_>, sample: &Sample) {
        self.state.ack_phase = AckPhase::ProbeStarting;
        self.start_round(x);
        self.state.cycle_stamp = x.now_us();
        self.reset_full_bw(sample.bw);
        self.enter(x, Mode::Up);
        self.raise_inflight_hi_slope(x);
    }

    /// draft, ProbeInflightLongtermUpward().
    fn probe_inflight_hi_upward(&mut self, x: &Call<'_>, sample: &Sample) {
        if !x.conn.is_cwnd_limited || x.control.cwnd < self.state.inflight_hi {
            return;
        }
        let state = &mut self.state;
        state.probe_up_acked = state.probe_up_acked.saturating_add(sample.newly_acked);
        if let Some(grown) = state.probe_up_acked.checked_div(state.probe_up_cnt) {
            state.probe_up_acked -= grown * state.probe_up_cnt;
            state.inflight_hi = state.inflight_hi.saturating_add(grown).min(INFINITE - 1);
        }
        if state.round_start {
            self.raise_inflight_hi_slope(x);
        }
    }

    /// draft, HandleInflightTooHigh(): the flight of `tx_in_flight` packets lost too much. Not below what one step of multiplicative decrease
    /// gives. An application-limited flight tells nothing about how much is safe, only that the probe is over.
    pub(super) fn handle_inflight_too_high(&mut self, x: &mut Call<'_>, tx_in_flight: u32, is_app_limited: bool) {
        self.state.prev_probe_too_high = true;
        self.state.bw_probe_samples = false;
        if !is_app_limited {
            let least = scale(self.target_inflight(x), UNIT - self.params.beta);
            self.state.inflight_hi = tx_in_flight.max(least);
        }
        if self.state.mode == Mode::Up {
            self.state.undo_mode = Some(Mode::Up);
            self.start_down(x);
        }
    }

    /// draft, AdaptLongTermModel(). True: it has changed the phase.
    fn adapt_long_term_model(&mut self, x: &mut Call<'_>, sample: &Sample) -> bool {
        let is_probe_bw = self.state.mode.is_probe_bw();
        if self.state.round_start && self.state.ack_phase == AckPhase::ProbeStarting {
            self.state.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.state.round_start && self.state.ack_phase == AckPhase::ProbeStopping {
            self.state.bw_probe_samples = false;
            self.state.ack_phase = AckPhase::Init;
            if is_probe_bw && !sample.is_app_limited {
                self.advance_max_bw_filter();
            }
            if is_probe_bw && self.state.stopped_risky_probe && !self.state.prev_probe_too_high {
                self.start_refill(x);
                return true;
            }
        }

        let thresh = self.params.loss_thresh;
        if is_inflight_too_high(x.conn.sees_every_loss, sample.lost, sample.tx_in_flight, thresh) {
            if self.state.bw_probe_samples {
                self.handle_inflight_too_high(x, sample.tx_in_flight, sample.is_app_limited);
            }
            return false;
        }
        if self.state.inflight_hi == INFINITE {
            return false;
        }
        self.state.inflight_hi = self.state.inflight_hi.max(sample.tx_in_flight);
        if self.state.mode == Mode::Up {
            self.probe_inflight_hi_upward(x, sample);
        }
        false
    }

    /// draft, IsTimeToProbeBW(): after two to three seconds, or as often as Reno would fill the same pipe.
    fn is_time_to_probe_bw(&self, x: &Call<'_>) -> bool {
        x.now_us() > self.state.cycle_stamp.saturating_add(self.state.probe_wait_us.into())
            || u32::from(self.state.rounds_since_probe) >= self.params.probe_max_rounds.min(self.target_inflight(x))
    }

    /// draft, IsTimeToCruise().
    fn is_time_to_cruise(&self, x: &Call<'_>, in_net: u32) -> bool {
        in_net <= self.inflight_with_headroom() && in_net <= self.inflight(x, self.state.max_bw(), UNIT)
    }

    /// draft, IsTimeToGoDown().
    fn is_time_to_go_down(&mut self, x: &Call<'_>, sample: &Sample, in_net: u32) -> bool {
        if self.state.prev_probe_too_high && in_net >= self.state.inflight_hi {
            self.state.stopped_risky_probe = true;
            return true;
        }
        if x.conn.is_cwnd_limited && x.control.cwnd >= self.state.inflight_hi {
            // The bandwidth is limited by the bound, not by the path.
            self.reset_full_bw(sample.bw);
            return false;
        }
        self.state.full_bw_now
    }

    /// draft, UpdateProbeBWCyclePhase().
    pub(super) fn update_probe_bw(&mut self, x: &mut Call<'_>, sample: &Sample) {
        if !self.state.full_bw_reached || self.adapt_long_term_model(x, sample) || !self.state.mode.is_probe_bw() {
            return;
        }
        let in_net = self.in_net_at_departure(x, sample.prior_in_flight);
        let mode = self.state.mode;
        match mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe_bw(x) => self.start_refill(x),
            Mode::Down if self.is_time_to_cruise(x, in_net) => self.start_cruise(x),
            Mode::Refill if self.state.round_start => {
                self.state.bw_probe_samples = true;
                self.start_up(x, sample);
            }
            Mode::Up if self.is_time_to_go_down(x, sample, in_net) => {
                self.state.prev_probe_too_high = false;
                self.start_down(x);
            }
            _ => {}
        }
    }
}
