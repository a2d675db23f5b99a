//! The path model: how fast and how much. draft, "BBR.max_bw: Estimated Maximum Bandwidth", "Computing BBR.max_inflight",
//! "BBR.offload_budget".

use super::{Bbr3, Call, Mode, Sample};
use crate::fixed::{Bandwidth, INFINITE, UNIT, scale};

/// BBR.MinPipeCwnd, packets.
pub(super) const MIN_PIPE_CWND: u32 = 4;
/// Bursts as Linux's TCP sizes them (net/ipv4/tcp_output.c, `tcp_tso_autosize()`): what the pacing rate gives in a fraction of a second, and
/// 64 KiB halved for every 512 us of minimum RTT, within one buffer of 64 KiB less the headers.
const MIN_QUANTUM_PACKETS: u32 = 2;
const QUANTUM_RTT_SHIFT: u32 = 9;
const QUANTUM_MAX_BYTES: u64 = 65_536;
const QUANTUM_HEADER_BYTES: u64 = 321;
/// Bursts that may be at the sender's queue, in segmentation, and at the receiver at once.
const OFFLOAD_QUANTA: u32 = 3;

impl Bbr3 {
    /// draft, UpdateMaxBw(): an application-limited sample counts only where it shows more than was known.
    pub(super) fn update_max_bw(&mut self, sample: &Sample) {
        if !sample.is_app_limited || sample.bw >= self.state.max_bw() {
            self.state.bw_hi[1] = self.state.bw_hi[1].max(sample.bw);
        }
    }

    /// draft, AdvanceMaxBwFilter(). A cycle without a sample does not push out the one before.
    pub(super) fn advance_max_bw_filter(&mut self) {
        if self.state.bw_hi[1] != Bandwidth::ZERO {
            self.state.bw_hi = [self.state.bw_hi[1], Bandwidth::ZERO];
        }
    }

    /// draft, BDPMultiple(): packets, rounded up.
    pub(super) fn bdp_multiple(&self, bw: Bandwidth, gain: u32) -> u32 {
        if self.state.min_rtt_us == INFINITE {
            return self.state.init_cwnd;
        }
        bw.packets_to_fill(self.state.min_rtt_us, gain)
    }

    /// draft, SetSendQuantum(): packets in one burst at the current pacing rate.
    pub(super) fn send_quantum(&self, x: &Call<'_>) -> u32 {
        let mut bytes = x.control.pacing_rate.map_or(u64::MAX, |rate| rate.as_bps() / 8) >> (x.conn.burst_shift & 63);
        let halvings = self.state.min_rtt_us >> QUANTUM_RTT_SHIFT;
        if halvings < 32 {
            bytes = bytes.saturating_add(QUANTUM_MAX_BYTES >> halvings);
        }
        let bytes = bytes.min(QUANTUM_MAX_BYTES - QUANTUM_HEADER_BYTES);
        (bytes / x.conn.mss.as_u64().max(1)).max(u64::from(MIN_QUANTUM_PACKETS)) as u32
    }

    /// draft, QuantizationBudget(): what bursts and delayed ACKs need at least.
    pub(super) fn quantization_budget(&self, x: &Call<'_>, packets: u32) -> u32 {
        let packets = packets.max(OFFLOAD_QUANTA * self.send_quantum(x)).max(MIN_PIPE_CWND);
        if self.state.mode == Mode::Up && packets < INFINITE - 2 { packets + 2 } else { packets }
    }

    /// draft, Inflight(): packets that fill the path at `bw` times `gain`/256.
    pub(super) fn inflight(&self, x: &Call<'_>, bw: Bandwidth, gain: u32) -> u32 {
        self.quantization_budget(x, self.bdp_multiple(bw, gain))
    }

    /// draft, TargetInflight(): the estimated BDP, unless congestion cut the window below it.
    pub(super) fn target_inflight(&self, x: &Call<'_>) -> u32 {
        self.inflight(x, self.state.bw(), UNIT).min(x.control.cwnd)
    }

    /// draft, InflightWithHeadroom().
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let hi = self.state.inflight_hi;
        if hi == INFINITE {
            return INFINITE;
        }
        let headroom = scale(hi, self.params.headroom).max(1);
        hi.saturating_sub(headroom).max(MIN_PIPE_CWND)
    }

    /// Packets still in the network when the next one departs, of `in_flight` now. Pacing has fixed departure times in the future: until then
    /// the path delivers; and while pacing above the bandwidth the next burst is about to join.
    pub(super) fn in_net_at_departure(&self, x: &Call<'_>, in_flight: u32) -> u32 {
        let delivered = self.state.bw().packets_in(x.conn.departs_in.as_micros());
        let joining = if self.state.pacing_gain > UNIT { self.send_quantum(x) } else { 0 };
        let in_flight = in_flight.saturating_add(joining);
        in_flight - u64::from(in_flight).min(delivered) as u32
    }
}
