//! A TCP sender that acts like Linux's, as far as a congestion control can tell.
//!
//! From RFC 8985 (RACK-TLP), RFC 6298, RFC 5682 and the behaviour of Linux 6.12. Not modelled: receive windows, Nagle, PRR (a control with
//! `cong_control` has none), and limits of the local queue.

mod ack;
mod rate;
mod scoreboard;
mod timers;
mod transmit;

use units::{Duration, Instant};

use crate::raw::{Conn, Sample};
use crate::{Bbr3, CaState};
use rate::Sampler;
use scoreboard::Scoreboard;
use timers::Timers;

/// What the application has to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Application {
    /// Always more.
    Bulk,
    /// What [`Sender::write`] was given.
    Writes,
}

/// How well the ring rebuilt what the kernel does not keep, over every ACK that delivered something.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Truth {
    /// ACKs compared.
    pub samples: u64,
    /// Of those, in which packets in flight at send time were exact, within 1 %, within 5 %.
    pub in_flight_exact: u64,
    /// See `in_flight_exact`.
    pub in_flight_within_1_percent: u64,
    /// See `in_flight_exact`.
    pub in_flight_within_5_percent: u64,
    /// In which packets lost since were exact.
    pub lost_exact: u64,
    /// Largest error of packets lost since.
    pub lost_worst: u32,
    /// In which "lost more than 5/256 of the flight" came out differently.
    pub decisions_differ: u64,
}

/// One segment on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub packet: u64,
    pub order: u64,
    /// The last of a burst, which Linux marks PSH.
    pub push: bool,
}

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender {
    pub(crate) cc: Bbr3,
    /// Payload of a packet in bytes.
    pub(crate) mss: u32,
    /// Sequence number of the first byte.
    pub(crate) start_sequence: u32,
    pub(crate) has_sack: bool,
    /// Most packets sent as one burst; 0: as the kernel sizes it.
    pub(crate) burst: u32,
    now: Instant,
    application: Application,
    written: u64,
    board: Scoreboard,
    sampler: Sampler,
    timers: Timers,
    outgoing: Vec<Outgoing>,
    orders: u64,
    truth: Truth,
    /// Per ACK with a lost packet: the bound that a kernel with per-packet truth would have set, the one set here, and the state of recovery.
    pub triggers: Vec<(Option<u32>, Option<u32>, u8)>,
    last_sample: Sample,

    cwnd: u32,
    cwnd_clamp: u32,
    ssthresh: u32,
    prior_cwnd: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    /// Earliest departure of the next packet.
    departure: Instant,
    data_segs_out: u32,
    is_cwnd_limited: bool,
    max_packets_out: u32,
    cwnd_usage_seq: u64,

    srtt_us: u32,
    rttvar_us: u32,
    min_rtt_us: u32,

    ca_state: CaState,
    high_seq: u64,
    undo_marker: Option<u64>,
    undo_retrans: i64,
    duplicates_seen: u32,
    retrans_stamp: Option<Instant>,
    frto: bool,
    rack: Rack,
    highest_delivered: Option<u64>,
    reord_seen: bool,
    tlp_high_seq: Option<u64>,
    tlp_retrans: bool,
}

/// RFC 8985: the most recently sent packet that was delivered.
#[derive(Debug, Default, Clone, Copy)]
struct Rack {
    sent: Instant,
    packet: u64,
    rtt: Duration,
    steps: u8,
}

impl Sender {
    /// A connection that has shaken hands with this RTT (zero: not measured) and may send `initial_cwnd` packets.
    pub fn new(mut cc: Bbr3, application: Application, handshake_rtt: Duration, initial_cwnd: u32) -> Self {
        let rtt_us = handshake_rtt.as_micros() as u32;
        let mut conn = Conn { cwnd: initial_cwnd, ..Conn::default() };
        cc.take_transitions();
        let mut sender = Self {
            cc,
            mss: 1448,
            // Wraps after a few packets, as no test of arithmetic should do without.
            start_sequence: u32::MAX - 20_000,
            has_sack: true,
            burst: 0,
            now: Instant::ZERO,
            application,
            written: 0,
            board: Scoreboard::default(),
            // Wraps soon, too.
            sampler: Sampler { delivered: u32::MAX - 50, ..Sampler::default() },
            timers: Timers::default(),
            outgoing: Vec::new(),
            orders: 0,
            truth: Truth::default(),
            triggers: Vec::new(),
            last_sample: Sample::default(),
            cwnd: conn.cwnd,
            cwnd_clamp: u32::MAX,
            ssthresh: u32::MAX,
            prior_cwnd: 0,
            pacing_rate: u64::MAX,
            max_pacing_rate: u64::MAX,
            departure: Instant::ZERO,
            data_segs_out: 0,
            is_cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage_seq: 0,
            srtt_us: rtt_us << 3,
            rttvar_us: rtt_us / 2,
            min_rtt_us: if rtt_us > 0 { rtt_us } else { u32::MAX },
            ca_state: CaState::Open,
            high_seq: 0,
            undo_marker: None,
            undo_retrans: 0,
            duplicates_seen: 0,
            retrans_stamp: None,
            frto: false,
            rack: Rack { steps: 1, ..Rack::default() },
            highest_delivered: None,
            reord_seen: false,
            tlp_high_seq: None,
            tlp_retrans: false,
        };
        conn = sender.conn();
        sender.cc.init(&mut conn);
        sender.take_back(&conn);
        sender
    }

    /// The congestion control.
    pub fn cc(&self) -> &Bbr3 {
        &self.cc
    }

    /// The same, to be changed by a test.
    pub fn cc_mut(&mut self) -> &mut Bbr3 {
        &mut self.cc
    }

    /// The window in packets.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Bytes per second.
    pub fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }

    /// Packets in flight.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// The slow start threshold in packets, which BBR sets only for others to see.
    pub fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Packets acknowledged without a gap.
    pub fn acknowledged(&self) -> u64 {
        self.board.first
    }

    /// The state of loss recovery.
    pub fn ca_state(&self) -> CaState {
        self.ca_state
    }

    /// Packets sent again.
    pub fn retransmissions(&self) -> u64 {
        self.orders - self.board.next()
    }

    /// The time of the last event.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Packets marked lost so far.
    pub fn lost(&self) -> u32 {
        self.board.lost
    }

    /// Smoothed RTT.
    pub fn srtt(&self) -> Duration {
        Duration::from_micros(u64::from(self.srtt_us >> 3))
    }

    /// What the last ACK told.
    pub fn last_sample(&self) -> Sample {
        self.last_sample
    }

    /// How well the ring did.
    pub fn truth(&self) -> Truth {
        self.truth
    }

    /// Most packets sent as one burst; 0: as the kernel sizes it.
    pub fn set_burst(&mut self, packets: u32) {
        self.burst = packets;
    }

    /// Sets the socket's own limits: SO_MAX_PACING_RATE in bytes per second, and the window in packets.
    pub fn limit(&mut self, max_pacing_rate: u64, cwnd_clamp: u32) {
        self.max_pacing_rate = max_pacing_rate;
        self.cwnd_clamp = cwnd_clamp;
    }

    /// The other end has not offered SACK.
    pub fn forget_sack(&mut self) {
        self.has_sack = false;
    }

    fn sequence(&self, packet: u64) -> u32 {
        self.start_sequence.wrapping_add((packet as u32).wrapping_mul(self.mss))
    }

    fn unsent(&self) -> u64 {
        match self.application {
            Application::Bulk => u64::from(u32::MAX),
            Application::Writes => self.written - self.board.next(),
        }
    }

    /// What the congestion control sees of the connection now.
    pub fn conn(&self) -> Conn {
        Conn {
            pacing_rate: self.pacing_rate,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            app_limited: self.sampler.app_limited,
            mss: self.mss,
            now_us: self.now.as_nanos() / 1000,
            delivered_us: self.sampler.delivered_at.as_nanos() / 1000,
            departure_ns: self.departure.as_nanos(),
            clock_ns: self.now.as_nanos(),
            max_pacing_rate: self.max_pacing_rate,
            cwnd_clamp: self.cwnd_clamp,
            prior_cwnd: self.prior_cwnd,
            in_flight: self.board.in_flight(),
            delivered: self.sampler.delivered,
            lost: self.board.lost,
            lost_out: self.board.lost_out,
            retrans_out: self.board.retrans_out,
            data_segs_out: self.data_segs_out,
            snd_nxt: self.sequence(self.board.next()),
            snd_una: self.sequence(self.board.first),
            unsent_bytes: u32::try_from(self.unsent() * u64::from(self.mss)).unwrap_or(i32::MAX as u32),
            queued_bytes: 0,
            srtt_us: self.srtt_us,
            kernel_min_rtt_us: self.min_rtt_us,
            tlp_high_seq: self.tlp_high_seq.map_or(0, |packet| self.sequence(packet)),
            ca_state: self.ca_state as u8,
            pacing_shift: 10,
            is_cwnd_limited: u8::from(self.is_cwnd_limited),
            has_sack: u8::from(self.has_sack),
            tlp_retrans: u8::from(self.tlp_retrans),
            reord_seen: u8::from(self.reord_seen),
            reo_wnd_steps: self.rack.steps,
            reserved: [0; 5],
        }
    }

    fn take_back(&mut self, conn: &Conn) {
        self.pacing_rate = conn.pacing_rate;
        self.cwnd = conn.cwnd;
        self.ssthresh = conn.ssthresh;
        self.sampler.app_limited = conn.app_limited;
    }

    /// Calls the congestion control with the connection as it is, and takes over what it changed.
    fn ask<T>(&mut self, call: impl FnOnce(&mut Bbr3, &mut Conn) -> T) -> T {
        let mut conn = self.conn();
        let answer = call(&mut self.cc, &mut conn);
        self.take_back(&conn);
        answer
    }

    fn change_state(&mut self, state: CaState) {
        self.ask(|cc, conn| cc.set_state(conn, state));
        self.ca_state = state;
    }

    /// tcp_init_cwnd_reduction().
    fn reduce(&mut self) {
        self.high_seq = self.board.next();
        self.tlp_high_seq = None;
        self.prior_cwnd = self.cwnd;
        self.ssthresh = self.ask(|cc, conn| cc.ssthresh(conn));
    }
}
