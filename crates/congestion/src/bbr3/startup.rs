//! STARTUP and DRAIN: double the rate each round trip until the pipe is full, then empty the queue. draft, "Startup" and "Drain".

use super::bounds::is_inflight_too_high;
use super::{Bbr3, Call, Mode, Sample};
use crate::Recovery;
use crate::fixed::UNIT;

const MAX_LOSS_EVENTS: u8 = 15;
/// DRAIN is left after more rounds than this.
const MAX_DRAIN_ROUNDS: u8 = 3;

impl Bbr3 {
    /// draft, "Exiting Startup Based on Packet Loss": a whole round of fast recovery with enough separate losses, and a flight that lost too
    /// much. Where only one loss a round trip can be seen, any in recovery is enough.
    fn is_startup_loss_high(&self, x: &Call<'_>, sample: &Sample) -> bool {
        if x.conn.recovery != Recovery::Recovery {
            return false;
        }
        if !x.conn.sees_every_loss {
            return sample.newly_lost > 0 || sample.lost > 0;
        }
        self.state.loss_round_start
            && self.state.loss_events_in_round >= self.params.startup_full_loss_count
            && is_inflight_too_high(true, sample.lost, sample.tx_in_flight, self.params.startup_loss_thresh)
    }

    /// draft, CheckStartupHighLoss().
    pub(super) fn check_startup_high_loss(&mut self, x: &Call<'_>, sample: &Sample) {
        if self.state.full_bw_reached {
            return;
        }
        if sample.newly_lost > 0 && self.state.loss_events_in_round < MAX_LOSS_EVENTS {
            self.state.loss_events_in_round += 1;
        }
        if self.is_startup_loss_high(x, sample) {
            self.end_startup_on_congestion(x);
        }
        if self.state.loss_round_start {
            self.state.loss_events_in_round = 0;
        }
    }

    pub(super) fn end_startup_on_congestion(&mut self, x: &Call<'_>) {
        self.state.undo_mode = Some(Mode::Startup);
        self.state.full_bw_reached = true;
        let inflight = self.inflight(x, self.state.max_bw(), UNIT);
        self.state.inflight_hi = inflight.max(self.state.inflight_latest);
    }

    /// draft, CheckStartupDone() and EnterDrain(). The threshold is set for those who look at it: BBR does not use it.
    pub(super) fn check_startup_done(&mut self, x: &mut Call<'_>) {
        if self.state.mode != Mode::Startup || !self.state.full_bw_reached {
            return;
        }
        self.state.drain_rounds = 0;
        x.control.ssthresh = self.inflight(x, self.state.max_bw(), UNIT);
        self.reset_congestion_signals();
        self.enter(x, Mode::Drain);
    }

    /// draft, CheckDrainDone(): when the queue is gone, or when it has had more rounds than it should need.
    pub(super) fn check_drain_done(&mut self, x: &mut Call<'_>) {
        if self.state.mode != Mode::Drain {
            return;
        }
        if self.state.round_start {
            self.state.drain_rounds = self.state.drain_rounds.saturating_add(1);
        }
        let is_queue_gone =
            self.in_net_at_departure(x, x.conn.in_flight) <= self.inflight(x, self.state.max_bw(), UNIT);
        if self.state.drain_rounds > MAX_DRAIN_ROUNDS || is_queue_gone {
            self.start_down(x);
        }
    }
}
