//! How fast and how much: bandwidth, what is in flight, ACK aggregation, pacing.

use super::{
    Ack, Bandwidth, Bbr1, CYCLE, Call, Duration, HIGH_GAIN, INFINITE, INITIAL_CWND, Mode, SLOWEST, UNIT, interval_us,
    rate_from_bytes,
};

/// Round trips that the bandwidth's maximum looks back.
const BW_ROUNDS: u32 = 10;
/// Pacing stays this far below the estimated bandwidth, percent.
const MARGIN_PERCENT: u32 = 1;
/// One window per this, as long as no round trip was measured, microseconds.
const RTT_UNKNOWN_US: u64 = 1000;
/// Below this rate a single packet is a burst, bytes per second (1.2 Mbit/s).
const SLOW: u64 = 150_000;
/// A burst is one buffer of 64 KiB less the headers, and 127 packets, at most.
const QUANTUM_MAX_BYTES: u64 = 65_536 - 321;
const QUANTUM_MAX_PACKETS: u64 = 0x7F;
/// Two slots of five rounds.
const EXTRA_ACKED_ROUNDS: u32 = 5;
/// Aggregation never adds more to the window than this time's worth of bandwidth, microseconds.
const EXTRA_ACKED_MAX_US: u64 = 100_000;
const ACK_EPOCH_RESET: u32 = 1 << 20;
const ACK_EPOCH_MAX: u32 = 0xF_FFFF;

impl Bbr1 {
    pub(super) fn update_bw(&mut self, x: &mut Call<'_>, ack: &Ack) {
        self.round_start = false;
        let Some(sample) = &ack.sample else { return };
        let Some(interval_us) = interval_us(sample) else { return };
        if self.round.ends_with(x.conn, Some(sample)) {
            self.round_count = self.round_count.wrapping_add(1);
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(x, ack.newly_lost > 0, sample.is_app_limited);
        let bw = Bandwidth::rounded_down(sample.delivered, interval_us);
        if !sample.is_app_limited || bw >= self.max_bw() {
            self.bw.update(BW_ROUNDS, self.round_count, bw);
        }
    }

    pub(super) fn bdp(&self, bw: Bandwidth, gain: u32) -> u32 {
        if self.min_rtt_us == INFINITE {
            return INITIAL_CWND;
        }
        bw.packets_to_fill(self.min_rtt_us, gain)
    }

    pub(super) fn send_quantum(&self, x: &Call<'_>) -> u32 {
        let rate = x.control.pacing_rate.map_or(u64::MAX, |rate| rate.as_bps() / 8);
        let bytes = (rate >> (x.conn.burst_shift & 63)).min(QUANTUM_MAX_BYTES);
        let least = if rate < SLOW { 1 } else { 2 };
        (bytes / x.conn.mss.as_u64().max(1)).clamp(least, QUANTUM_MAX_PACKETS) as u32
    }

    /// What bursts and delayed ACKs need besides; even, so that every delayed ACK opens room for two.
    pub(super) fn quantization_budget(&self, x: &Call<'_>, packets: u32) -> u32 {
        let packets = packets.saturating_add(3 * self.send_quantum(x));
        let packets = packets.saturating_add(packets & 1);
        let is_probing = self.mode == Mode::ProbeBw && CYCLE[self.cycle_index] > UNIT;
        packets.saturating_add(if is_probing { 2 } else { 0 })
    }

    pub(super) fn inflight(&self, x: &Call<'_>, bw: Bandwidth, gain: u32) -> u32 {
        self.quantization_budget(x, self.bdp(bw, gain))
    }

    /// Packets still in the network when the next one departs, of `in_flight` now.
    pub(super) fn in_net_at_departure(&self, x: &Call<'_>, in_flight: u32) -> u32 {
        let delivered = self.bandwidth().packets_in(x.conn.departs_in.as_micros());
        let joining = if self.pacing_gain > UNIT { self.send_quantum(x) } else { 0 };
        let in_flight = in_flight.saturating_add(joining);
        in_flight - u64::from(in_flight).min(delivered) as u32
    }

    /// How much more than expected is acknowledged at once: maximum of two slots of five rounds.
    pub(super) fn update_ack_aggregation(&mut self, x: &Call<'_>, ack: &Ack) {
        if ack.newly_acked == 0 || ack.sample.as_ref().and_then(interval_us).is_none() {
            return;
        }
        if self.round_start {
            self.extra_acked_rounds += 1;
            if self.extra_acked_rounds >= EXTRA_ACKED_ROUNDS {
                self.extra_acked_rounds = 0;
                self.extra_acked_slot ^= 1;
                self.extra_acked[self.extra_acked_slot & 1] = 0;
            }
        }
        let elapsed = x.conn.delivered_at.since(self.ack_epoch_at);
        let mut expected = self.bandwidth().packets_in(elapsed.as_micros());
        let acked = self.ack_epoch_acked;
        if u64::from(acked) <= expected || acked.saturating_add(ack.newly_acked) >= ACK_EPOCH_RESET {
            self.ack_epoch_acked = 0;
            self.ack_epoch_at = x.conn.delivered_at;
            expected = 0;
        }
        self.ack_epoch_acked = self.ack_epoch_acked.saturating_add(ack.newly_acked).min(ACK_EPOCH_MAX);
        let extra = u64::from(self.ack_epoch_acked).saturating_sub(expected).min(u64::from(x.control.cwnd)) as u32;
        let slot = &mut self.extra_acked[self.extra_acked_slot & 1];
        *slot = extra.max(*slot);
    }

    /// What aggregation adds to the window, packets.
    pub(super) fn aggregation_cwnd(&self) -> u32 {
        if !self.full_bw_reached {
            return 0;
        }
        let most = self.bandwidth().packets_in(EXTRA_ACKED_MAX_US);
        let extra = self.extra_acked[0].max(self.extra_acked[1]);
        u64::from(extra).min(most) as u32
    }

    pub(super) fn init_pacing_rate(&mut self, x: &mut Call<'_>) {
        self.has_seen_rtt |= x.conn.srtt.is_some();
        let rtt_us = x.conn.srtt.map_or(RTT_UNKNOWN_US, |srtt: Duration| srtt.as_micros().max(1));
        let bw = Bandwidth::rounded_down(x.control.cwnd, rtt_us);
        x.control.pacing_rate = Some(self.pacing_rate(x, bw, HIGH_GAIN));
    }

    fn pacing_rate(&self, x: &Call<'_>, bw: Bandwidth, gain: u32) -> units::Rate {
        let bytes = bw.bytes_per_second(x.conn.mss, gain, MARGIN_PERCENT);
        rate_from_bytes(bytes).min(x.conn.max_pacing_rate).max(SLOWEST)
    }

    /// Not downwards before the pipe was full, because samples may be application-limited.
    pub(super) fn set_pacing_rate(&mut self, x: &mut Call<'_>, gain: u32) {
        let rate = self.pacing_rate(x, self.bandwidth(), gain);
        if !self.has_seen_rtt && x.conn.srtt.is_some() {
            self.init_pacing_rate(x);
        }
        if self.full_bw_reached || x.control.pacing_rate.is_some_and(|current| rate > current) {
            x.control.pacing_rate = Some(rate);
        }
    }
}
