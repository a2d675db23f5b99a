//! Lost packets: did one take the loss of its flight above the threshold? draft, "Probing for Bandwidth In ProbeBW".

use super::{Bbr3, Call};
use crate::fixed::{UNIT, UNIT_SHIFT, scale};
use crate::{Connection, Flight, Lost};

/// draft, InflightAtLoss(): packets in flight as the loss rate crossed `thresh`/256, for a lost packet sent as the last of `tx_in_flight`, `lost`
/// packets of which are lost. Solves (lost before + x) / (in flight before + x) = threshold.
fn inflight_at_loss(tx_in_flight: u32, lost: u32, thresh: u32) -> u32 {
    let (before, lost_before) = (tx_in_flight.saturating_sub(1), lost.saturating_sub(1));
    let budget = (u64::from(before) * u64::from(thresh)).div_ceil(u64::from(UNIT)) as u32;
    if lost_before >= budget || thresh >= UNIT {
        return before;
    }
    let more = (u64::from(budget - lost_before) << UNIT_SHIFT) / u64::from(UNIT - thresh);
    before.saturating_add(more as u32)
}

impl Bbr3 {
    /// draft, SaveStateUponLoss(): once for each recovery episode, before anything is cut.
    pub(super) fn save_state_upon_loss(&mut self, cwnd: u32) {
        if self.state.loss_in_episode {
            return;
        }
        self.state.loss_in_episode = true;
        self.save_cwnd(cwnd);
        self.state.undo_mode = None;
        self.state.undo_bw_lo = self.state.bw_lo;
        self.state.undo_inflight_lo = self.state.inflight_lo;
        self.state.undo_inflight_hi = self.state.inflight_hi;
    }

    /// draft, NoteLoss(): the first loss of a round starts the loss clock.
    pub(super) fn note_loss(&mut self, x: &Call<'_>) {
        if !self.state.loss_in_round {
            self.state.loss_round_delivered = x.conn.delivered;
        }
        self.state.loss_in_round = true;
    }

    /// Which packet of a row, counted from 1, takes its flight above the loss threshold; `None` where none does, or no probe is under way.
    pub fn crossing(&self, conn: &Connection, lost: &Lost) -> Option<u32> {
        let tx_in_flight = lost.tx_in_flight.filter(|packets| self.state.bw_probe_samples && *packets > 0)?;
        let tolerated = if conn.sees_every_loss { scale(tx_in_flight, self.params.loss_thresh) } else { 0 };
        let needed = tolerated.saturating_sub(lost.lost_before).saturating_add(1);
        (needed <= lost.packets).then_some(needed)
    }

    /// draft, HandleLostPacket(), for packets in a row: finds the one that takes its flight above the threshold.
    pub(super) fn handle_lost(&mut self, x: &mut Call<'_>, lost: &Lost) {
        self.save_state_upon_loss(x.control.cwnd);
        self.note_loss(x);
        let Some(needed) = self.crossing(x.conn, lost) else { return };
        let first = Flight { tx_in_flight: lost.tx_in_flight.unwrap_or(0), lost_before: lost.lost_before };
        let flight = lost.crossing.unwrap_or(first);
        let lost_with_it = flight.lost_before.saturating_add(needed);
        let at_loss = inflight_at_loss(flight.tx_in_flight, lost_with_it, self.params.loss_thresh);
        self.handle_inflight_too_high(x, at_loss, lost.is_app_limited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flight_at_loss_is_where_the_loss_rate_crossed_the_threshold() {
        // 5/256 of 999 is 19.5; with the 21st of 1000 packets the budget was already over.
        assert_eq!(inflight_at_loss(1000, 21, 5), 999);
        // Two packets of the budget were left: two more lost of as many sent, and what those two allow.
        assert_eq!(inflight_at_loss(1000, 19, 5), 999 + 2 * 256 / 251);
        assert_eq!(inflight_at_loss(0, 0, 5), 0);
        assert_eq!(inflight_at_loss(u32::MAX, 1, 255), u32::MAX);
    }
}
