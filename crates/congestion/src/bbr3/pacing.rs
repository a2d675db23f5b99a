//! The pacing rate. draft, "Pacing Rate: C.pacing_rate".

use super::mode::STARTUP_PACING_GAIN;
use super::{Bbr3, Call};
use crate::fixed::{Bandwidth, SLOWEST, rate_from_bytes};
use units::Rate;

/// One window per this, microseconds, as long as no round trip was measured.
const RTT_UNKNOWN_US: u64 = 1000;

impl Bbr3 {
    fn pacing_rate(&self, x: &Call<'_>, bw: Bandwidth, gain: u32) -> Rate {
        let bytes = bw.bytes_per_second(x.conn.mss, gain, self.params.pacing_margin_percent);
        rate_from_bytes(bytes).min(x.conn.max_pacing_rate).max(SLOWEST)
    }

    /// draft, InitPacingRate(): one window per round trip, or per millisecond.
    pub(super) fn init_pacing_rate(&mut self, x: &mut Call<'_>) {
        let mut rtt_us = RTT_UNKNOWN_US;
        if let Some(srtt) = x.conn.srtt {
            rtt_us = srtt.as_micros().max(1);
            self.state.has_seen_rtt = true;
        }
        let bw = Bandwidth::rounded_down(x.control.cwnd, rtt_us);
        x.control.pacing_rate = Some(self.pacing_rate(x, bw, STARTUP_PACING_GAIN));
    }

    /// draft, SetPacingRateWithGain(): not downwards before the pipe was full, because samples may be application-limited.
    pub(super) fn set_pacing_rate(&mut self, x: &mut Call<'_>, gain: u32) {
        let rate = self.pacing_rate(x, self.state.bw(), gain);
        if !self.state.has_seen_rtt && x.conn.srtt.is_some() {
            self.init_pacing_rate(x);
        }
        if self.state.full_bw_reached || x.control.pacing_rate.is_some_and(|current| rate > current) {
            x.control.pacing_rate = Some(rate);
        }
    }
}
