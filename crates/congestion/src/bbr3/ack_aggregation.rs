//! How much more than expected is acknowledged at once. draft, "BBR.extra_acked".

use super::{Bbr3, Call, Sample};

/// Two slots of five rounds; one round in STARTUP.
const EXTRA_ACKED_ROUNDS: u8 = 5;
const STARTUP_EXTRA_ACKED_ROUNDS: u8 = 1;
const MOST_ROUNDS: u8 = 31;
/// Aggregation never adds more to the window than this time's worth of bandwidth, microseconds.
const EXTRA_ACKED_MAX_US: u64 = 100_000;
/// Packets after which an epoch starts anew, and the highest count kept.
const ACK_EPOCH_RESET: u32 = 1 << 20;
const ACK_EPOCH_MAX: u32 = 0xF_FFFF;

impl Bbr3 {
    /// What aggregation adds to the window: packets.
    pub(super) fn aggregation_cwnd(&self) -> u32 {
        let most = self.state.bw().packets_in(EXTRA_ACKED_MAX_US);
        u64::from(self.state.extra_acked()).min(most) as u32
    }

    pub(super) fn start_ack_epoch(&mut self, now_us: u64) {
        self.state.ack_epoch_stamp = now_us;
        self.state.ack_epoch_acked = 0;
    }

    /// A new slot of the two-slot maximum after enough rounds.
    fn rotate_extra_acked(&mut self) {
        let state = &mut self.state;
        let window = if state.full_bw_reached { EXTRA_ACKED_ROUNDS } else { STARTUP_EXTRA_ACKED_ROUNDS };
        state.extra_acked_rounds = (state.extra_acked_rounds + 1).min(MOST_ROUNDS);
        if state.extra_acked_rounds < window {
            return;
        }
        state.extra_acked_rounds = 0;
        state.extra_acked_slot ^= 1;
        state.extra_acked[usize::from(state.extra_acked_slot & 1)] = 0;
    }

    /// draft, UpdateACKAggregation().
    pub(super) fn update_ack_aggregation(&mut self, x: &Call<'_>, sample: &Sample) {
        if !sample.is_valid() {
            return;
        }
        if self.state.round_start {
            self.rotate_extra_acked();
        }
        let delivered_us = x.conn.delivered_at.as_nanos() / 1000;
        let elapsed_us = delivered_us.saturating_sub(self.state.ack_epoch_stamp);
        let mut expected = self.state.bw().packets_in(elapsed_us);
        let acked = self.state.ack_epoch_acked;
        if u64::from(acked) <= expected || acked.saturating_add(sample.newly_acked) >= ACK_EPOCH_RESET {
            self.start_ack_epoch(delivered_us);
            expected = 0;
        }
        let state = &mut self.state;
        state.ack_epoch_acked = state.ack_epoch_acked.saturating_add(sample.newly_acked).min(ACK_EPOCH_MAX);
        // Not below zero: an epoch that goes on had more acknowledged than expected.
        let extra = state.ack_epoch_acked.saturating_sub(expected as u32).min(x.control.cwnd);
        let slot = &mut state.extra_acked[usize::from(state.extra_acked_slot & 1)];
        *slot = extra.max(*slot);
    }
}
