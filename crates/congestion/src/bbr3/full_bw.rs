//! The plateau test: is the pipe full? draft, "Exiting Acceleration Based on Bandwidth Plateau".

use super::{Bbr3, Sample};
use crate::fixed::{Bandwidth, UNIT_SHIFT};

/// Growth by a quarter within three rounds, else the pipe is full.
const FULL_BW_GROWTH: u64 = 320;
const FULL_BW_ROUNDS: u8 = 3;

impl Bbr3 {
    /// draft, ResetFullBW(), with the baseline to grow from.
    pub(super) fn reset_full_bw(&mut self, baseline: Bandwidth) {
        self.state.full_bw = baseline;
        self.state.full_bw_count = 0;
        self.state.full_bw_now = false;
    }

    /// draft, CheckFullBWReached().
    pub(super) fn check_full_bw_reached(&mut self, sample: &Sample) {
        if self.state.full_bw_now || sample.is_app_limited {
            return;
        }
        // In 64 bits: what a threshold beyond the highest bandwidth asks for is never reached.
        if u64::from(sample.bw.raw()) >= (u64::from(self.state.full_bw.raw()) * FULL_BW_GROWTH) >> UNIT_SHIFT {
            self.reset_full_bw(sample.bw);
            return;
        }
        if !self.state.round_start {
            return;
        }
        self.state.full_bw_count += 1;
        if self.state.full_bw_count >= FULL_BW_ROUNDS {
            self.state.full_bw_now = true;
            self.state.full_bw_reached = true;
        }
    }
}
