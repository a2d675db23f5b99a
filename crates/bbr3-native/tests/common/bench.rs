//! One connection by hand: each test says what an ACK brings, and looks at what the algorithm makes of it.

use bbr3::Mode;
use bbr3::raw::RawKnobs;
use bbr3_native::raw::{Ack, Conn, Sample};
use bbr3_native::{Bbr3, CaState};

pub const INFINITE: u32 = u32::MAX;
/// Numbers that divide without a rest: a BDP is 160 packets exactly.
pub const RTT_US: u32 = 40_960;
pub const MSS: u32 = 1448;
/// Time of a packet at the bandwidth.
pub const PACKET_US: u32 = 256;
/// One packet per 256 µs, in packets/µs << 24.
pub const BW: u32 = (1 << 24) / PACKET_US;
/// BW times RTT_US.
pub const BDP: u32 = RTT_US / PACKET_US;

pub struct Bench {
    pub cc: Bbr3,
    pub conn: Conn,
    /// What the next ACK says, reset after each.
    pub ack: Ack,
    /// What is acknowledged is replaced by new packets, sent before the next ACK.
    pub sends: bool,
}

impl Bench {
    /// Freshly initialised, with a measured RTT.
    pub fn new() -> Self {
        Self::with(Bbr3::faithful(1))
    }

    pub fn knobs(change: impl FnOnce(&mut RawKnobs)) -> Self {
        let mut knobs = bbr3::Knobs::default().to_raw().unwrap();
        change(&mut knobs);
        Self::with(Bbr3::new(knobs, 1))
    }

    /// Every call is held against the Rust BBRv3 too.
    pub fn with(cc: Bbr3) -> Self {
        let cc = cc.shadowed();
        let conn = Conn {
            pacing_rate: u64::MAX,
            cwnd: 10,
            ssthresh: 1,
            mss: MSS,
            now_us: 1_000_000,
            delivered_us: 1_000_000,
            departure_ns: 0,
            clock_ns: 1_000_000_000,
            max_pacing_rate: u64::MAX,
            cwnd_clamp: u32::MAX,
            delivered: 1000,
            lost: 7,
            data_segs_out: 100,
            snd_nxt: 10 * MSS,
            unsent_bytes: 1 << 30,
            srtt_us: RTT_US << 3,
            kernel_min_rtt_us: RTT_US,
            pacing_shift: 10,
            has_sack: 1,
            ..Conn::default()
        };
        let mut bench = Self { cc, conn, ack: Ack::default(), sends: true };
        bench.cc.init(&mut bench.conn);
        bench.rest();
        bench
    }

    /// In `mode`, with the pipe filled once: one BDP in flight and a window of two.
    pub fn in_mode(mode: Mode) -> Self {
        let mut bench = Self::new();
        bench.go(mode);
        bench
    }

    pub fn go(&mut self, mode: Mode) {
        self.conn.cwnd = 2 * BDP;
        self.conn.in_flight = BDP;
        let now = self.conn.now_us;
        let state = self.cc.state_mut();
        state.mode = mode as u8;
        state.bw_hi = [0, BW];
        state.full_bw = BW;
        state.full_bw_reached = u8::from(mode != Mode::Startup);
        state.cycle_stamp = now;
        state.probe_wait_us = 2_500_000;
        state.pacing_gain = match mode {
            Mode::Startup => 710,
            Mode::Drain => 128,
            Mode::Down => 232,
            Mode::Up => 320,
            Mode::Cruise | Mode::Refill | Mode::ProbeRtt => 256,
        };
        state.cwnd_gain = if mode == Mode::Up { 576 } else { 512 };
        self.new_round();
        self.rest();
    }

    /// The next ACK does not begin a round trip.
    pub fn new_round(&mut self) {
        let delivered = self.conn.delivered;
        let state = self.cc.state_mut();
        state.next_round_delivered = delivered;
        state.loss_round_delivered = delivered;
    }

    /// An ACK for two packets sent one BDP ago, at the estimated bandwidth, without news.
    fn rest(&mut self) {
        let delivered = BDP.min(self.conn.delivered);
        self.ack = Ack {
            interval_us: i64::from(RTT_US),
            rtt_us: i64::from(RTT_US) + 100,
            delivered: delivered as i32,
            prior_delivered: self.conn.delivered.wrapping_sub(delivered).wrapping_add(2),
            acked_sacked: 2,
            losses: 0,
            prior_in_flight: self.conn.in_flight,
            last_end_seq: self.conn.snd_nxt,
            has_packet: 1,
            ..Ack::default()
        };
    }

    /// As `rest`, for a flight of `packets`.
    pub fn rest_with(&mut self, packets: u32) {
        self.rest();
        self.ack.prior_in_flight = packets;
    }

    /// The ACK ends a round trip.
    pub fn round(&mut self) -> Sample {
        self.ack.prior_delivered = self.conn.delivered;
        self.deliver()
    }

    /// Time passes, and the ACK arrives.
    pub fn after(&mut self, micros: u64) -> Sample {
        self.conn.now_us += micros;
        self.conn.clock_ns += micros * 1000;
        self.deliver()
    }

    /// The ACK arrives.
    pub fn deliver(&mut self) -> Sample {
        let acked = self.ack.acked_sacked;
        self.conn.delivered = self.conn.delivered.wrapping_add(acked);
        self.conn.delivered_us = self.conn.now_us;
        self.conn.lost = self.conn.lost.wrapping_add(self.ack.losses.max(0) as u32);
        if self.sends {
            self.conn.data_segs_out += acked;
            self.conn.snd_nxt = self.conn.snd_nxt.wrapping_add(acked * MSS);
        }
        let ack = self.ack;
        let sample = self.cc.ack(&mut self.conn, &ack);
        self.rest();
        sample
    }

    pub fn set_state(&mut self, state: CaState) {
        self.cc.set_state(&mut self.conn, state);
        self.conn.ca_state = state as u8;
    }

    pub fn mode(&self) -> Mode {
        self.cc.mode()
    }
}
