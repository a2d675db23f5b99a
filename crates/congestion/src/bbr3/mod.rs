//! BBRv3, after draft-ietf-ccwg-bbr.

mod ack_aggregation;
mod bounds;
mod cwnd;
mod full_bw;
mod loss;
mod mode;
mod model;
mod pacing;
mod params;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod startup;
mod state;

use crate::fixed::{Bandwidth, INFINITE, generator};
use crate::{Ack, Bound, Cause, Connection, Control, Controller, Lost, Observer, Phase, Recovery, Undo};
pub use mode::{AckPhase, Mode};
use params::Fixed;
pub use params::{ParamError, Params};
pub use state::State;

/// Largest initial window remembered, packets.
const MAX_INIT_CWND: u32 = 127;

/// BBRv3 of one connection.
#[derive(Debug, Clone)]
pub struct Bbr3 {
    params: Fixed,
    state: State,
}

/// One call of the transport.
struct Call<'a> {
    conn: &'a Connection,
    control: &'a mut Control,
    observer: &'a mut dyn Observer,
}

impl Call<'_> {
    fn now_us(&self) -> u64 {
        self.conn.now.as_nanos() / 1000
    }
}

/// What the newest packet delivered by an ACK tells.
struct Sample {
    /// Microseconds.
    rtt_us: Option<u32>,
    /// Delivery rate; 0: no valid sample.
    bw: Bandwidth,
    prior_delivered: u64,
    /// Packets delivered since the packet was sent.
    delivered: u32,
    newly_acked: u32,
    newly_lost: u32,
    prior_in_flight: u32,
    /// 0: not known.
    tx_in_flight: u32,
    lost: u32,
    /// Something was newly delivered.
    has_packet: bool,
    /// The delivery rate is valid.
    has_interval: bool,
    is_app_limited: bool,
    is_ack_delayed: bool,
    is_tail_probe: bool,
}

impl Sample {
    /// draft, GenerateRateSample(), as far as the transport has not done it.
    fn of(ack: &Ack) -> Self {
        let sample = ack.sample.unwrap_or_default();
        let interval_us = sample.interval.map_or(0, units::Duration::as_micros);
        let has_interval = interval_us > 0;
        Self {
            rtt_us: ack.rtt.map(|rtt| rtt.as_micros().min(u64::from(INFINITE - 1)) as u32),
            bw: if has_interval { Bandwidth::rounded_up(sample.delivered, interval_us) } else { Bandwidth::ZERO },
            prior_delivered: sample.prior_delivered,
            delivered: sample.delivered,
            newly_acked: ack.newly_acked,
            newly_lost: ack.newly_lost,
            prior_in_flight: ack.prior_in_flight,
            tx_in_flight: sample.tx_in_flight.unwrap_or(0),
            lost: sample.lost,
            has_packet: sample.delivered > 0,
            has_interval,
            is_app_limited: sample.is_app_limited,
            is_ack_delayed: ack.is_delayed,
            is_tail_probe: ack.is_tail_probe,
        }
    }

    /// Both conditions the model asks for before it believes a sample.
    fn is_valid(&self) -> bool {
        self.has_interval && self.newly_acked > 0
    }
}

/// The bounds that an observer is told of.
#[derive(PartialEq)]
struct Bounds {
    max_bw: Bandwidth,
    bw_lo: Bandwidth,
    inflight_hi: u32,
    inflight_lo: u32,
    min_rtt_us: u32,
}

impl Bbr3 {
    /// For a connection that has not begun. `seed` decides the random waits between bandwidth probes: another one for each connection, so that
    /// those that share a path probe at different times.
    ///
    /// # Errors
    /// The first parameter that is not within its range.
    pub fn new(params: Params, seed: u64) -> Result<Self, ParamError> {
        Ok(Self { params: params.to_fixed()?, state: State::new(generator(seed)) })
    }

    /// Goes on where another left off, such as in a recording. With [`State::random`] only: a connection that has not begun.
    ///
    /// # Errors
    /// The first parameter that is not within its range.
    pub fn resume(params: Params, state: State) -> Result<Self, ParamError> {
        Ok(Self { params: params.to_fixed()?, state })
    }

    /// Everything it remembers.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn bounds(&self) -> Bounds {
        let State { bw_lo, inflight_hi, inflight_lo, min_rtt_us, .. } = self.state;
        Bounds { max_bw: self.state.max_bw(), bw_lo, inflight_hi, inflight_lo, min_rtt_us }
    }

    /// One call; tells the observer which bounds it moved, and the transport how long its bursts may be.
    fn during(
        &mut self,
        conn: &Connection,
        control: &mut Control,
        observer: &mut dyn Observer,
        call: impl FnOnce(&mut Self, &mut Call<'_>),
    ) {
        let before = self.bounds();
        let mut x = Call { conn, control, observer };
        call(self, &mut x);
        x.control.send_quantum = self.send_quantum(&x);
        let after = self.bounds();
        if after == before {
            return;
        }
        let finite = |packets: u32| (packets != INFINITE).then_some(packets);
        let mut tell = |changed: bool, bound: Bound| {
            if changed {
                x.observer.bound(conn.now, bound);
            }
        };
        tell(after.max_bw != before.max_bw, Bound::MaxBandwidth(after.max_bw.to_rate(conn.mss)));
        let bw_lo = (after.bw_lo != Bandwidth::INFINITE).then(|| after.bw_lo.to_rate(conn.mss));
        tell(after.bw_lo != before.bw_lo, Bound::BandwidthLo(bw_lo));
        tell(after.inflight_hi != before.inflight_hi, Bound::InflightHi(finite(after.inflight_hi)));
        tell(after.inflight_lo != before.inflight_lo, Bound::InflightLo(finite(after.inflight_lo)));
        let min_rtt = finite(after.min_rtt_us).map(|micros| units::Duration::from_micros(micros.into()));
        tell(after.min_rtt_us != before.min_rtt_us, Bound::MinRtt(min_rtt));
    }

    /// draft, UpdateRound().
    fn update_round(&mut self, x: &Call<'_>, sample: &Sample) {
        self.state.round_start = sample.has_interval && sample.prior_delivered >= self.state.next_round_delivered;
        if self.state.round_start {
            self.start_round(x);
            self.state.rounds_since_probe = self.state.rounds_since_probe.saturating_add(1);
        }
    }

    /// draft, StartRound(): a round trip ends with the delivery of something sent from now on.
    fn start_round(&mut self, x: &Call<'_>) {
        self.state.next_round_delivered = x.conn.delivered;
    }

    /// draft, UpdateModelAndState() and UpdateControlParameters().
    fn update(&mut self, x: &mut Call<'_>, sample: &Sample) {
        self.update_round(x, sample);
        self.update_latest_delivery_signals(x, sample);
        self.update_congestion_signals(x, sample);
        self.update_ack_aggregation(x, sample);
        self.check_startup_high_loss(x, sample);
        self.check_full_bw_reached(sample);

        self.check_startup_done(x);
        self.check_drain_done(x);
        self.update_probe_bw(x, sample);
        let expired = self.update_min_rtt(x, sample);
        self.check_probe_rtt(x, sample, expired);

        (self.state.pacing_gain, self.state.cwnd_gain) = self.state.mode.gains();
        self.set_pacing_rate(x, self.state.pacing_gain);
        self.set_cwnd(x, sample);
        self.advance_latest_delivery_signals(sample);
        self.state.prev_recovery = x.conn.recovery;
    }
}

impl Controller for Bbr3 {
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn phase(&self) -> Phase {
        self.state.mode.phase()
    }

    fn controls_recovery(&self) -> bool {
        true
    }

    /// draft, OnInit().
    fn init(&mut self, conn: &Connection, control: &mut Control, observer: &mut dyn Observer) {
        self.state = State::new(self.state.random);
        self.during(conn, control, observer, |bbr, x| {
            let now = x.now_us();
            let min_rtt = x.conn.min_rtt.map(|rtt| rtt.as_micros().min(u64::from(INFINITE - 1)) as u32);
            let state = &mut bbr.state;
            state.init_cwnd = x.control.cwnd.min(MAX_INIT_CWND);
            state.min_rtt_us = min_rtt.unwrap_or(INFINITE);
            state.probe_rtt_min_us = state.min_rtt_us;
            state.cap_min_rtt_us = state.min_rtt_us;
            state.min_rtt_stamp = now;
            state.probe_rtt_min_stamp = now;
            state.ack_epoch_stamp = now;
            state.next_round_delivered = x.conn.delivered;
            state.loss_round_delivered = x.conn.delivered + 1;
            x.control.ssthresh = crate::INFINITE_SSTHRESH;
            bbr.init_pacing_rate(x);
        });
    }

    fn on_idle_restart(&mut self, conn: &Connection, control: &mut Control, observer: &mut dyn Observer) {
        self.during(conn, control, observer, |bbr, x| bbr.handle_restart_from_idle(x));
    }

    fn on_lost(&mut self, conn: &Connection, lost: &Lost, control: &mut Control, observer: &mut dyn Observer) {
        self.during(conn, control, observer, |bbr, x| bbr.handle_lost(x, lost));
    }

    fn on_congestion(&mut self, conn: &Connection, cause: Cause, control: &mut Control, observer: &mut dyn Observer) {
        self.during(conn, control, observer, |bbr, x| bbr.handle_congestion(x, cause));
    }

    fn on_recovery(&mut self, conn: &Connection, to: Recovery, control: &mut Control, observer: &mut dyn Observer) {
        self.during(conn, control, observer, |bbr, x| bbr.handle_recovery(x, to));
    }

    fn on_undo(&mut self, conn: &Connection, _: &Undo, control: &mut Control, observer: &mut dyn Observer) {
        self.during(conn, control, observer, |bbr, x| bbr.handle_spurious_loss_detection(x));
    }

    /// draft, UpdateOnACK().
    fn on_ack(&mut self, conn: &Connection, ack: &Ack, control: &mut Control, observer: &mut dyn Observer) {
        self.during(conn, control, observer, |bbr, x| bbr.update(x, &Sample::of(ack)));
    }
}
