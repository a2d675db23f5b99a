//! The controllers for [quinn](https://docs.rs/quinn), a QUIC implementation. Cargo feature `quinn`.
//!
//! ```ignore
//! let mut transport = quinn::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(congestion::quinn::Factory::bbr3(Params::default(), seed)?));
//! ```
//!
//! What quinn (0.11) does not tell or do is made up for here:
//!
//! | a controller wants | quinn has | here |
//! | --- | --- | --- |
//! | to decide the pacing rate | a pacer of its own, at 1.25 windows per smoothed RTT | the window handed to quinn is what is in flight and what the pacing rate has allowed since, at most the controller's; it is looked at as ACKs come in |
//! | each lost packet | the bytes lost with one ACK, and when the newest of them was sent | so many packets of a full datagram, sent then |
//! | losses before the ACK that shows them | after it | they count with the next ACK |
//! | packets | bytes | packets of the current MTU |
//! | a recovery that proves spurious | not in 0.11 | nothing is taken back |
//! | whether the receiver held an ACK back | its own estimate only | an ACK of a single packet counts as held back |
//!
//! Packets that only acknowledge are counted as sent until the next ACK says what is in flight.

extern crate std;

use std::any::Any;
use std::boxed::Box;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant as Clock;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{ControllerFactory, ControllerMetrics};
use units::{Bytes, Duration, Instant};

use crate::bbr3::{ParamError, Params};
use crate::{
    Ack, Bbr1, Bbr3, Cause, Connection, Control, Controller, Cubic, CubicParams, Ignore, PacketStamp, RateSampler,
    Recovery, Reno,
};

/// RFC 9002, section 7.2: packets of the smallest window.
const MIN_WINDOW: u32 = 2;
/// Packets that may always be sent where little is in flight: nothing but an ACK lets quinn look at the window again.
const ALWAYS: u64 = 4;
/// Groups of packets sent that are remembered; the oldest are forgotten first.
const MOST_GROUPS: usize = 1 << 16;

/// Makes a controller for each connection.
#[derive(Debug)]
pub struct Factory {
    kind: Kind,
    seed: AtomicU64,
    initial_window: u32,
}

#[derive(Debug, Clone)]
enum Kind {
    Reno,
    Cubic(CubicParams),
    Bbr1,
    Bbr3(Params),
}

impl Factory {
    fn new(kind: Kind, seed: u64) -> Self {
        Self { kind, seed: AtomicU64::new(seed), initial_window: 10 }
    }

    /// Reno.
    pub fn reno() -> Self {
        Self::new(Kind::Reno, 0)
    }

    /// CUBIC.
    pub fn cubic(params: CubicParams) -> Self {
        Self::new(Kind::Cubic(params), 0)
    }

    /// BBRv1. `seed`: of the first connection's random decisions; those that follow get others.
    pub fn bbr1(seed: u64) -> Self {
        Self::new(Kind::Bbr1, seed)
    }

    /// BBRv3. `seed` as for [`Factory::bbr1`].
    ///
    /// # Errors
    /// The first parameter that is not within its range.
    pub fn bbr3(params: Params, seed: u64) -> Result<Self, ParamError> {
        params.to_fixed()?;
        Ok(Self::new(Kind::Bbr3(params), seed))
    }

    /// Packets of the initial window; 10 (RFC 9002) unless set here. At least two.
    pub fn initial_window(mut self, packets: u32) -> Self {
        self.initial_window = packets.max(MIN_WINDOW);
        self
    }

    fn controller(&self) -> Any4 {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        match &self.kind {
            Kind::Reno => Any4::Reno(Reno::new()),
            Kind::Cubic(params) => Any4::Cubic(Cubic::new(*params)),
            Kind::Bbr1 => Any4::Bbr1(Bbr1::new(seed)),
            // Checked as the factory was made.
            Kind::Bbr3(params) => Bbr3::new(*params, seed).map_or(Any4::Reno(Reno::new()), Any4::Bbr3),
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Clock, current_mtu: u16) -> Box<dyn quinn_proto::congestion::Controller> {
        Box::new(Adapter::new(self.controller(), now, current_mtu, self.initial_window))
    }
}

/// One of the controllers, to be copied.
#[derive(Debug, Clone)]
enum Any4 {
    Reno(Reno),
    Cubic(Cubic),
    Bbr1(Bbr1),
    Bbr3(Bbr3),
}

impl Any4 {
    fn get(&mut self) -> &mut dyn Controller {
        match self {
            Self::Reno(cc) => cc,
            Self::Cubic(cc) => cc,
            Self::Bbr1(cc) => cc,
            Self::Bbr3(cc) => cc,
        }
    }
}

/// Packets sent at the same moment.
#[derive(Debug, Clone, Copy)]
struct Group {
    at: Clock,
    stamp: PacketStamp,
    last_packet: u64,
}

/// A controller as quinn knows it.
#[derive(Debug, Clone)]
pub struct Adapter {
    cc: Any4,
    conn: Connection,
    control: Control,
    sampler: RateSampler,
    origin: Clock,
    mtu: u64,
    initial_window: u32,
    groups: VecDeque<Group>,
    in_flight: u64,
    /// Of the ACK being processed.
    acked: u32,
    prior_in_flight: u32,
    newest: Option<Clock>,
    /// Packets marked lost since the last ACK.
    lost: u32,
    /// When the current recovery began.
    recovery_start: Option<Clock>,
    /// Bytes that the pacing rate allows to be sent, as of `credit_at`.
    credit: u64,
    credit_at: Instant,
    round_end: u64,
}

impl Adapter {
    fn new(cc: Any4, now: Clock, mtu: u16, initial_window: u32) -> Self {
        let mtu = u64::from(mtu.max(1));
        let mut adapter = Self {
            cc,
            conn: Connection::new(Instant::ZERO, Bytes::new(mtu)),
            control: Control::new(initial_window),
            sampler: RateSampler::new(Instant::ZERO),
            origin: now,
            mtu,
            initial_window,
            groups: VecDeque::new(),
            in_flight: 0,
            acked: 0,
            prior_in_flight: 0,
            newest: None,
            lost: 0,
            recovery_start: None,
            credit: u64::from(initial_window) * mtu,
            credit_at: Instant::ZERO,
            round_end: 0,
        };
        adapter.cc.get().init(&adapter.conn, &mut adapter.control, &mut Ignore);
        adapter
    }

    fn time(&self, clock: Clock) -> Instant {
        Instant::ZERO + Duration::from(clock.saturating_duration_since(self.origin))
    }

    fn packets(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.mtu)).unwrap_or(u32::MAX)
    }

    /// Brings the connection's figures up to date.
    fn refresh(&mut self, now: Instant) {
        self.conn.now = now.max(self.conn.now);
        self.conn.in_flight = self.packets(self.in_flight);
        self.conn.delivered = self.sampler.delivered();
        self.conn.delivered_at = self.sampler.delivered_at();
        self.conn.lost = self.sampler.lost();
        self.conn.is_app_limited = self.sampler.is_app_limited();
    }

    fn after_call(&mut self) {
        self.control.cwnd = self.control.cwnd.max(MIN_WINDOW);
        if core::mem::take(&mut self.control.mark_app_limited) {
            self.sampler.mark_app_limited(self.conn.in_flight);
        }
    }

    fn full_window(&self) -> u64 {
        u64::from(self.control.cwnd).saturating_mul(self.mtu)
    }

    /// Adds what the pacing rate has allowed since the last look.
    fn earn(&mut self, now: Instant) {
        let Some(rate) = self.control.pacing_rate else { return };
        let earned = rate.bytes_in(now.since(self.credit_at)).as_u64();
        self.credit_at = self.credit_at.max(now);
        self.credit = self.credit.saturating_add(earned).min(self.full_window());
    }

    fn group(&self, sent: Clock) -> Option<&Group> {
        let after = self.groups.partition_point(|group| group.at <= sent);
        self.groups.get(after.checked_sub(1)?)
    }

    fn note_rtt(&mut self, rtt: Duration) {
        self.conn.min_rtt = Some(self.conn.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.conn.srtt = Some(self.conn.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
    }

    fn change(&mut self, to: Recovery) {
        if self.conn.recovery != to {
            self.cc.get().on_recovery(&self.conn, to, &mut self.control, &mut Ignore);
            self.conn.recovery = to;
            self.after_call();
        }
    }

    /// Begins a congestion episode, unless what was sent at `sent` belongs to the current one.
    fn begin(&mut self, now: Clock, sent: Clock, cause: Cause) {
        if cause != Cause::Timeout && self.recovery_start.is_some_and(|start| sent <= start) {
            return;
        }
        self.recovery_start = Some(now);
        self.conn.prior_cwnd = self.control.cwnd;
        self.cc.get().on_congestion(&self.conn, cause, &mut self.control, &mut Ignore);
        self.after_call();
        match cause {
            Cause::Timeout => {
                self.control.cwnd = MIN_WINDOW;
                self.change(Recovery::Loss);
            }
            Cause::Ecn => self.change(Recovery::Cwr),
            Cause::Loss | Cause::TailLoss => self.change(Recovery::Recovery),
        }
        if !self.cc.get().controls_recovery() && cause != Cause::Timeout {
            self.control.cwnd = self.control.ssthresh.max(MIN_WINDOW);
        }
    }
}

impl quinn_proto::congestion::Controller for Adapter {
    fn on_sent(&mut self, now: Clock, bytes: u64, last_packet_number: u64) {
        let time = self.time(now);
        self.earn(time);
        let was_idle = self.in_flight == 0;
        if was_idle {
            self.refresh(time);
            self.cc.get().on_idle_restart(&self.conn, &mut self.control, &mut Ignore);
            self.after_call();
        }
        self.in_flight = self.in_flight.saturating_add(bytes);
        self.credit = self.credit.saturating_sub(bytes);
        let in_flight = self.packets(self.in_flight);
        let stamp = self.sampler.on_sent(time, in_flight, was_idle);
        if self.groups.len() >= MOST_GROUPS {
            self.groups.pop_front();
        }
        self.groups.push_back(Group { at: now, stamp, last_packet: last_packet_number });

        let is_full = self.in_flight.saturating_add(self.mtu) >= self.full_window();
        if is_full || self.sampler.delivered() >= self.round_end {
            self.conn.is_cwnd_limited = is_full;
            self.conn.max_outstanding = in_flight;
            self.round_end = self.sampler.delivered() + u64::from(in_flight);
        }
    }

    fn on_ack(&mut self, _: Clock, sent: Clock, bytes: u64, _: bool, _: &RttEstimator) {
        if self.acked == 0 {
            self.prior_in_flight = self.packets(self.in_flight);
        }
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.acked += 1;
        self.newest = self.newest.max(Some(sent));
        if let Some(Group { stamp, last_packet, .. }) = self.group(sent).copied() {
            self.sampler.on_delivered(&stamp, last_packet);
        }
    }

    fn on_end_acks(&mut self, now: Clock, in_flight: u64, app_limited: bool, _: Option<u64>) {
        let time = self.time(now);
        self.in_flight = in_flight;
        self.earn(time);
        if app_limited {
            self.sampler.mark_app_limited(self.packets(in_flight));
            self.credit = self.credit.min(u64::from(self.control.send_quantum) * self.mtu);
        }
        let newest = self.newest.take();
        let mut ack = Ack {
            newly_acked: core::mem::take(&mut self.acked),
            newly_lost: core::mem::take(&mut self.lost),
            prior_in_flight: self.prior_in_flight,
            ..Ack::default()
        };
        ack.is_delayed = ack.newly_acked == 1;
        if let Some(sent) = newest {
            let rtt = Duration::from(now.saturating_duration_since(sent));
            ack.rtt = Some(rtt);
            self.note_rtt(rtt);
        }
        ack.sample = self.sampler.finish(time, self.conn.min_rtt);
        self.refresh(time);
        self.cc.get().on_ack(&self.conn, &ack, &mut self.control, &mut Ignore);
        self.after_call();
        if self.conn.recovery != Recovery::Open && newest > self.recovery_start {
            self.change(Recovery::Open);
        }
        // Older than anything that is still waited for by a good margin.
        if let (Some(sent), Some(srtt)) = (newest, self.conn.srtt) {
            let patience = core::time::Duration::from(srtt * 8 + Duration::from_secs(3));
            while self.groups.front().is_some_and(|group| group.at + patience < sent) {
                self.groups.pop_front();
            }
        }
    }

    fn on_congestion_event(&mut self, now: Clock, sent: Clock, is_persistent_congestion: bool, lost_bytes: u64) {
        let time = self.time(now);
        self.earn(time);
        self.refresh(time);
        if lost_bytes == 0 {
            self.begin(now, sent, Cause::Ecn);
            return;
        }
        if is_persistent_congestion {
            self.begin(now, sent, Cause::Timeout);
        }
        let packets = self.packets(lost_bytes);
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        self.lost = self.lost.saturating_add(packets);
        if let Some(Group { stamp, .. }) = self.group(sent).copied() {
            let lost = self.sampler.on_lost_together(&stamp, packets);
            self.refresh(time);
            self.cc.get().on_lost(&self.conn, &lost, &mut self.control, &mut Ignore);
            self.after_call();
        }
        if !is_persistent_congestion {
            self.begin(now, sent, Cause::Loss);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = u64::from(new_mtu.max(1));
        self.conn.mss = Bytes::new(self.mtu);
    }

    fn window(&self) -> u64 {
        let full = self.full_window();
        let window = match self.control.pacing_rate {
            None => full,
            Some(_) => self.in_flight.saturating_add(self.credit).max(ALWAYS * self.mtu).min(full),
        };
        // quinn sends only below it.
        window.saturating_add(1)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.full_window();
        metrics.ssthresh =
            (self.control.ssthresh < crate::INFINITE_SSTHRESH).then(|| u64::from(self.control.ssthresh) * self.mtu);
        metrics.pacing_rate = self.control.pacing_rate.map(units::Rate::as_bps);
        metrics
    }

    fn clone_box(&self) -> Box<dyn quinn_proto::congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::from(self.initial_window) * self.mtu
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
