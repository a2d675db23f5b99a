//! BBRv1, as Linux's tcp_bbr behaves.

mod long_term;
mod model;
mod probe_rtt;
mod window;

use units::{Duration, Instant};

use crate::filter::WindowedMax;
use crate::fixed::{Bandwidth, INFINITE, SLOWEST, UNIT, generator, random_below, rate_from_bytes};
use crate::round::Round;
use crate::{Ack, Bound, Cause, Connection, Control, Controller, Observer, Phase, RateSample, Recovery, Undo};
use long_term::LongTerm;

/// 2/ln 2, in 1/256, rounded up: the smallest gain that doubles the rate each round trip.
const HIGH_GAIN: u32 = 739;
/// Its inverse: drains what STARTUP queued in about a round trip.
const DRAIN_GAIN: u32 = 88;
/// PROBE_BW's window: two BDPs, for delayed and aggregated ACKs.
const CWND_GAIN: u32 = 512;
/// PROBE_BW's pacing: a quarter more, a quarter less, then as measured.
const CYCLE: [u32; 8] = [320, 192, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The cycle begins at a random phase other than the second.
const CYCLE_RANDOM: u32 = 7;
/// Growth by a quarter within three rounds, else the pipe is full.
const FULL_BW_GROWTH: u64 = 320;
const FULL_BW_ROUNDS: u8 = 3;

/// RFC 6928, packets: as long as no RTT is known, and delivered before the window stops growing freely.
const INITIAL_CWND: u32 = 10;

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

impl Mode {
    const fn phase(self) -> Phase {
        match self {
            Self::Startup => Phase::Startup,
            Self::Drain => Phase::Drain,
            Self::ProbeBw => Phase::ProbeBw,
            Self::ProbeRtt => Phase::ProbeRtt,
        }
    }

    /// Whether the state machine goes from here to `to`.
    const fn may_become(self, to: Self) -> bool {
        match to {
            Self::Startup => matches!(self, Self::ProbeRtt),
            Self::Drain => matches!(self, Self::Startup),
            // From itself: a policer's rate is forgotten.
            Self::ProbeBw => matches!(self, Self::Drain | Self::ProbeBw | Self::ProbeRtt),
            Self::ProbeRtt => !matches!(self, Self::ProbeRtt),
        }
    }
}

/// BBRv1 of one connection: draft-cardwell-iccrg-bbr-congestion-control-00, with what Linux (net/ipv4/tcp_bbr.c, 6.12) has added since: ACK
/// aggregation, estimation of a policer's rate, packet conservation in the first round of recovery, a margin of 1 % in pacing.
#[derive(Debug, Clone)]
pub struct Bbr1 {
    random: u32,
    mode: Mode,
    prev_recovery: Recovery,
    round: Round,
    round_count: u32,
    round_start: bool,
    idle_restart: bool,
    has_seen_rtt: bool,

    bw: WindowedMax,
    /// Microseconds.
    min_rtt_us: u32,
    min_rtt_at: Instant,
    probe_rtt_done: Option<Instant>,
    probe_rtt_round_done: bool,

    full_bw: Bandwidth,
    full_bw_count: u8,
    full_bw_reached: bool,

    pacing_gain: u32,
    cwnd_gain: u32,
    cycle_index: usize,
    cycle_at: Instant,

    /// Packets: the window to go back to after PROBE_RTT or recovery.
    prior_cwnd: u32,
    packet_conservation: bool,

    extra_acked: [u32; 2],
    extra_acked_slot: usize,
    extra_acked_rounds: u32,
    ack_epoch_at: Instant,
    ack_epoch_acked: u32,

    long_term: LongTerm,
}

/// One call of the transport.
struct Call<'a> {
    conn: &'a Connection,
    control: &'a mut Control,
    observer: &'a mut dyn Observer,
}

impl Bbr1 {
    /// For a connection that has not begun. `seed` decides where its gain cycles begin.
    pub fn new(seed: u64) -> Self {
        Self {
            random: generator(seed),
            mode: Mode::Startup,
            prev_recovery: Recovery::Open,
            round: Round::NEW,
            round_count: 0,
            round_start: false,
            idle_restart: false,
            has_seen_rtt: false,
            bw: WindowedMax::default(),
            min_rtt_us: INFINITE,
            min_rtt_at: Instant::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            full_bw: Bandwidth::ZERO,
            full_bw_count: 0,
            full_bw_reached: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            cycle_index: 0,
            cycle_at: Instant::ZERO,
            prior_cwnd: 0,
            packet_conservation: false,
            extra_acked: [0; 2],
            extra_acked_slot: 0,
            extra_acked_rounds: 0,
            ack_epoch_at: Instant::ZERO,
            ack_epoch_acked: 0,
            long_term: LongTerm::default(),
        }
    }

    /// The only place where the mode changes.
    fn enter(&mut self, x: &mut Call<'_>, mode: Mode) {
        debug_assert!(self.mode.may_become(mode), "{:?} does not become {mode:?}", self.mode);
        if self.mode != mode {
            x.observer.transition(x.conn.now, self.mode.phase(), mode.phase());
        }
        self.mode = mode;
    }

    /// The highest delivery rate of the last ten round trips.
    fn max_bw(&self) -> Bandwidth {
        self.bw.get()
    }

    /// That, or the rate of a policer.
    fn bandwidth(&self) -> Bandwidth {
        self.long_term.rate().unwrap_or(self.max_bw())
    }

    fn start_probe_bw(&mut self, x: &mut Call<'_>) {
        self.enter(x, Mode::ProbeBw);
        self.cycle_index = CYCLE.len() - 1 - random_below(&mut self.random, CYCLE_RANDOM) as usize;
        self.advance_cycle(x);
    }

    fn advance_cycle(&mut self, x: &Call<'_>) {
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.cycle_at = x.conn.delivered_at;
    }

    /// Each phase lasts a minimum RTT; the first until its gain has filled a queue or met loss, the second only until the queue is gone.
    fn is_next_cycle_phase(&self, x: &Call<'_>, ack: &Ack) -> bool {
        let min_rtt = Duration::from_micros(self.min_rtt_us.into());
        let is_full_length = x.conn.delivered_at.since(self.cycle_at) > min_rtt;
        let in_net = self.in_net_at_departure(x, ack.prior_in_flight);
        match self.pacing_gain {
            UNIT => is_full_length,
            gain if gain > UNIT => {
                is_full_length && (ack.newly_lost > 0 || in_net >= self.inflight(x, self.max_bw(), gain))
            }
            _ => is_full_length || in_net <= self.inflight(x, self.max_bw(), UNIT),
        }
    }

    fn check_full_bw_reached(&mut self, ack: &Ack) {
        let is_app_limited = ack.sample.is_some_and(|sample| sample.is_app_limited);
        if self.full_bw_reached || !self.round_start || is_app_limited {
            return;
        }
        let grown = (u64::from(self.full_bw.raw()) * FULL_BW_GROWTH) >> 8;
        if u64::from(self.max_bw().raw()) >= grown {
            self.full_bw = self.max_bw();
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_reached = self.full_bw_count >= FULL_BW_ROUNDS;
    }

    fn check_drain(&mut self, x: &mut Call<'_>) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            x.control.ssthresh = self.inflight(x, self.max_bw(), UNIT);
            self.enter(x, Mode::Drain);
        }
        if self.mode == Mode::Drain
            && self.in_net_at_departure(x, x.conn.in_flight) <= self.inflight(x, self.max_bw(), UNIT)
        {
            self.start_probe_bw(x);
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle_index], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    fn update(&mut self, x: &mut Call<'_>, ack: &Ack) {
        self.update_bw(x, ack);
        self.update_ack_aggregation(x, ack);
        if self.mode == Mode::ProbeBw && self.is_next_cycle_phase(x, ack) {
            self.advance_cycle(x);
        }
        self.check_full_bw_reached(ack);
        self.check_drain(x);
        self.update_min_rtt(x, ack);
        self.update_gains();
        self.set_pacing_rate(x, self.pacing_gain);
        self.set_cwnd(x, ack);
    }

    /// One call; tells the observer which bounds it moved, and the transport how long its bursts may be.
    fn during(
        &mut self,
        conn: &Connection,
        control: &mut Control,
        observer: &mut dyn Observer,
        call: impl FnOnce(&mut Self, &mut Call<'_>),
    ) {
        let (bw, min_rtt_us) = (self.max_bw(), self.min_rtt_us);
        let mut x = Call { conn, control, observer };
        call(self, &mut x);
        x.control.send_quantum = self.send_quantum(&x);
        if self.max_bw() != bw {
            x.observer.bound(conn.now, Bound::MaxBandwidth(self.max_bw().to_rate(conn.mss)));
        }
        if self.min_rtt_us != min_rtt_us {
            let min_rtt = Duration::from_micros(self.min_rtt_us.into());
            x.observer.bound(conn.now, Bound::MinRtt((self.min_rtt_us != INFINITE).then_some(min_rtt)));
        }
    }
}

impl Controller for Bbr1 {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn phase(&self) -> Phase {
        self.mode.phase()
    }

    fn controls_recovery(&self) -> bool {
        true
    }

    fn init(&mut self, conn: &Connection, control: &mut Control, observer: &mut dyn Observer) {
        self.during(conn, control, observer, |bbr, x| {
            bbr.round.start(x.conn);
            bbr.min_rtt_us = x.conn.min_rtt.map_or(INFINITE, |rtt| rtt.as_micros().min(u64::from(INFINITE - 1)) as u32);
            bbr.min_rtt_at = x.conn.now;
            bbr.ack_epoch_at = x.conn.now;
            x.control.ssthresh = crate::INFINITE_SSTHRESH;
            bbr.init_pacing_rate(x);
        });
    }

    fn on_idle_restart(&mut self, conn: &Connection, control: &mut Control, observer: &mut dyn Observer) {
        if !conn.is_app_limited {
            return;
        }
        self.during(conn, control, observer, |bbr, x| {
            bbr.idle_restart = true;
            bbr.ack_epoch_at = x.conn.now;
            bbr.ack_epoch_acked = 0;
            match bbr.mode {
                Mode::ProbeBw => bbr.set_pacing_rate(x, UNIT),
                Mode::ProbeRtt => bbr.check_probe_rtt_done(x),
                Mode::Startup | Mode::Drain => {}
            }
        });
    }

    fn on_congestion(&mut self, _: &Connection, _: Cause, control: &mut Control, _: &mut dyn Observer) {
        self.save_cwnd(control.cwnd);
    }

    fn on_recovery(&mut self, conn: &Connection, to: Recovery, control: &mut Control, observer: &mut dyn Observer) {
        if to != Recovery::Loss {
            return;
        }
        self.during(conn, control, observer, |bbr, x| {
            bbr.prev_recovery = Recovery::Loss;
            bbr.full_bw = Bandwidth::ZERO;
            // A timeout counts as a round trip.
            bbr.round_start = true;
            bbr.sample_long_term(x, true, false);
        });
    }

    fn on_undo(&mut self, conn: &Connection, _: &Undo, control: &mut Control, observer: &mut dyn Observer) {
        // The window is restored as recovery ends.
        self.during(conn, control, observer, |bbr, x| {
            bbr.full_bw = Bandwidth::ZERO;
            bbr.full_bw_count = 0;
            bbr.long_term.reset(x.conn);
        });
    }

    fn on_ack(&mut self, conn: &Connection, ack: &Ack, control: &mut Control, observer: &mut dyn Observer) {
        self.during(conn, control, observer, |bbr, x| bbr.update(x, ack));
    }
}

/// Microseconds of a sample's interval, where it has one.
fn interval_us(sample: &RateSample) -> Option<u64> {
    sample.interval.map(Duration::as_micros).filter(|micros| *micros > 0)
}
