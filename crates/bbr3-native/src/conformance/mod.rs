//! Repeats recorded connections with the BBRv3 of the `congestion` crate.

mod compare;
mod ring;

use std::collections::HashMap;

use bbr3::raw::{CallEvent, Conn, RawKnobs, SnapshotEvent, State as RawState};
use bbr3::recording::Header;
use bbr3::{Event, Knobs};
use congestion::bbr3::{Params, State};
use congestion::{Ack, Bbr3, Cause, Connection, Control, Controller, Flight, Ignore, Lost, RateSample, Recovery, Undo};
use units::{Bytes, Duration, Instant, Rate};

use crate::{Difference, Replayed, raw};
use compare::{differences, to_state};
use ring::{Ring, before, tx_in_flight};

/// Less than the true size of the smallest packet that holds data (app_limited.h).
const SMALLEST_SKB_TRUESIZE: i32 = 576;

/// `u32` counters of the kernel wrap; those of the library don't. Where they begin.
const EPOCH: u64 = 1 << 32;

/// Feeds a recording of the kernel program to the BBRv3 of the `congestion` crate, call by call, and holds every decision and everything
/// remembered against it.
///
/// What the program rebuilds because a kernel keeps no notes of single packets (its ring, the loss marks it sees one ACK late, the
/// application-limited marks) belongs to the transport in the library's terms; it is done here, by the same rules.
#[derive(Debug)]
pub struct Conformance {
    header: Header,
    flows: HashMap<u64, Flow>,
    counts: Replayed,
}

/// One connection: the library's control, and what the kernel program keeps besides.
#[derive(Debug)]
struct Flow {
    cc: Bbr3,
    ring: Ring,
    /// A value of `delivered` of before, with the times it had wrapped.
    delivered: u64,
    seen_lost: u32,
    /// The kernel's `delivered` as of the last ACK.
    seen_delivered: u32,
    tlp_pending: bool,
    can_mark: bool,
    /// Where the kernel does not let the program mark a connection application-limited: from and until these values of `delivered`.
    app_limited: Option<(u32, u32)>,
}

/// The library's form of the program's parameters.
pub fn params(knobs: RawKnobs) -> Params {
    let Knobs {
        loss_thresh,
        startup_loss_thresh,
        bw_lo_loss_thresh,
        inflight_lo_loss_thresh,
        beta,
        headroom,
        probe_wait_base,
        probe_wait_random,
        probe_max_rounds,
        probe_rtt_interval,
        probe_rtt_duration,
        min_rtt_window,
        pacing_margin_percent,
        startup_full_loss_count,
    } = Knobs::from_raw(knobs);
    Params {
        loss_thresh,
        startup_loss_thresh,
        bw_lo_loss_thresh,
        inflight_lo_loss_thresh,
        beta,
        headroom,
        probe_wait_base,
        probe_wait_random,
        probe_max_rounds,
        probe_rtt_interval,
        probe_rtt_duration,
        min_rtt_window,
        pacing_margin_percent,
        startup_full_loss_count,
    }
}

/// One call of the native build, started from `before`, leads to the same here.
pub(crate) fn check_step(before: &raw::Connection, call: &CallEvent) {
    let raw::Environment { knobs, features, .. } = before.environment;
    let mut step = Conformance::new(Header { knobs, features, name: String::new(), kernel: String::new() });
    let mut snapshot = SnapshotEvent { state: before.state, ring: before.ring, ..SnapshotEvent::default() };
    snapshot.event.flow = call.event.flow;
    let flow = step.begin_with(&snapshot);
    step.flows.insert(call.event.flow, flow);
    step.repeat(call).unwrap_or_else(|difference| panic!("{difference}"));
}

fn micros(micros: u32) -> Duration {
    Duration::from_micros(micros.into())
}

fn recovery(ca_state: u8) -> Recovery {
    match ca_state {
        0 => Recovery::Open,
        1 => Recovery::Disorder,
        2 => Recovery::Cwr,
        3 => Recovery::Recovery,
        _ => Recovery::Loss,
    }
}

/// `value` as it follows or precedes `near`, with the times the counter has wrapped.
fn extend(near: u64, value: u32) -> u64 {
    near.wrapping_add_signed(i64::from(value.wrapping_sub(near as u32) as i32))
}

impl Conformance {
    /// For a recording with this header.
    pub fn new(header: Header) -> Self {
        Self { header, flows: HashMap::new(), counts: Replayed::default() }
    }

    /// How much agreed so far.
    pub fn replayed(&self) -> Replayed {
        self.counts
    }

    /// Repeats one event.
    ///
    /// # Errors
    /// The first [`Difference`].
    ///
    /// # Panics
    /// Where the recording's parameters are none that the program would load with.
    pub fn feed(&mut self, event: &Event) -> Result<(), Difference> {
        match event {
            Event::Flow(_) | Event::Transition(_) => Ok(()),
            Event::Snapshot(snapshot) => {
                self.counts.snapshots += 1;
                let flow = self.begin_with(snapshot);
                self.flows.insert(snapshot.event.flow, flow);
                Ok(())
            }
            Event::Call(call) => self.repeat(call),
        }
    }

    fn begin(&self, state: State, ring: Ring, delivered: u64, seen_delivered: u32, raw: &RawState) -> Flow {
        Flow {
            cc: Bbr3::resume(params(self.header.knobs), state).expect("parameters of a loaded program"),
            ring,
            delivered,
            seen_lost: raw.seen_lost,
            seen_delivered,
            tlp_pending: raw.tlp_retrans_pending != 0,
            can_mark: self.header.features.app_limited_writable != 0,
            app_limited: (raw.app_limited_mark != 0).then_some((raw.app_limited_from, raw.app_limited_until)),
        }
    }

    fn begin_with(&self, snapshot: &SnapshotEvent) -> Flow {
        let raw = &snapshot.state;
        let near = EPOCH + u64::from(raw.next_round_delivered);
        let ring = Ring::from_raw(&snapshot.ring, raw.seen_data_segs_out);
        self.begin(to_state(raw, near), ring, near, snapshot.ring.seen_delivered, raw)
    }

    fn repeat(&mut self, call: &CallEvent) -> Result<(), Difference> {
        let number = call.event.flow;
        let name = crate::replay::call_name(call.call);
        if name == "init" {
            self.counts.from_init += 1;
            let conn = &call.before;
            let near = EPOCH + u64::from(conn.delivered);
            let raw = RawState { seen_lost: conn.lost, ..RawState::default() };
            let flow =
                self.begin(State::new(call.after.random), Ring::new(conn.data_segs_out), near, conn.delivered, &raw);
            self.flows.insert(number, flow);
        }
        let Some(flow) = self.flows.get_mut(&number) else {
            self.counts.skipped += 1;
            return Ok(());
        };
        let made = flow.call(name, call);
        if let Some((field, recorded, replayed)) = differences(call, &made, flow.cc.state()).next() {
            let after = self.counts.calls;
            let (recorded, replayed) = (recorded.to_ne_bytes().into(), replayed.to_ne_bytes().into());
            return Err(Difference { flow: number, after, call: name, field, recorded, replayed });
        }
        self.counts.calls += 1;
        self.counts.acks += u64::from(name == "ack");
        Ok(())
    }
}

/// What a call made of the connection.
struct Made {
    pacing_rate: u64,
    cwnd: u32,
    ssthresh: u32,
    app_limited: u32,
    answer: u32,
}

impl Flow {
    fn call(&mut self, name: &str, call: &CallEvent) -> Made {
        let mut c = call.before;
        self.delivered = extend(self.delivered, c.delivered);
        let mut control = Control {
            cwnd: c.cwnd,
            ssthresh: c.ssthresh,
            pacing_rate: (c.pacing_rate != u64::MAX).then(|| Rate::from_bps(c.pacing_rate.saturating_mul(8))),
            send_quantum: 0,
            mark_app_limited: false,
        };
        let mut answer = 0;
        match name {
            "init" => self.cc.init(&self.connection(&c), &mut control, &mut Ignore),
            "ack" => self.ack(&mut c, &call.ack, &mut control),
            "ssthresh" => {
                self.cc.on_congestion(&self.connection(&c), Cause::Loss, &mut control, &mut Ignore);
                answer = control.ssthresh;
            }
            "set_state" => self.set_state(&c, recovery(call.argument as u8), &mut control),
            "in_ack" => self.tlp_pending = true,
            "undo_cwnd" => {
                // The kernel takes the window from the answer.
                let mut undone = control;
                let undo = Undo { prior_cwnd: c.prior_cwnd, prior_ssthresh: c.ssthresh };
                self.cc.on_undo(&self.connection(&c), &undo, &mut undone, &mut Ignore);
                answer = undone.cwnd;
                control.pacing_rate = undone.pacing_rate;
            }
            "tx_start" => self.cc.on_idle_restart(&self.connection(&c), &mut control, &mut Ignore),
            _ => {}
        }
        if control.mark_app_limited {
            self.mark_app_limited(&mut c, call.before.delivered, call.before.in_flight);
        }
        Made {
            pacing_rate: control.pacing_rate.map_or(u64::MAX, |rate| rate.as_bps() / 8),
            cwnd: control.cwnd,
            ssthresh: control.ssthresh,
            app_limited: c.app_limited,
            answer,
        }
    }

    fn connection(&self, c: &Conn) -> Connection {
        Connection {
            now: Instant::from_nanos(c.now_us * 1000),
            mss: Bytes::new(c.mss.into()),
            in_flight: c.in_flight,
            delivered: self.delivered,
            delivered_at: Instant::from_nanos(c.delivered_us * 1000),
            lost: c.lost.into(),
            departs_in: Duration::from_nanos(c.departure_ns.saturating_sub(c.clock_ns)),
            max_pacing_rate: Rate::from_bps(c.max_pacing_rate.saturating_mul(8)),
            max_cwnd: c.cwnd_clamp,
            max_outstanding: 0,
            prior_cwnd: c.prior_cwnd,
            srtt: (c.srtt_us != 0).then(|| micros(c.srtt_us >> 3)),
            min_rtt: (c.kernel_min_rtt_us != u32::MAX).then(|| micros(c.kernel_min_rtt_us)),
            recovery: recovery(c.ca_state),
            is_cwnd_limited: c.is_cwnd_limited != 0,
            is_app_limited: c.app_limited != 0 || self.app_limited.is_some(),
            sees_every_loss: c.has_sack != 0,
            burst_shift: c.pacing_shift,
        }
    }

    /// mark_app_limited() of app_limited.h.
    fn mark_app_limited(&mut self, c: &mut Conn, delivered: u32, in_flight: u32) {
        let until = delivered.wrapping_add(in_flight);
        if self.can_mark {
            c.app_limited = until.max(1);
        } else {
            let from = self.app_limited.map_or(delivered, |(from, _)| from);
            self.app_limited = Some((from, until));
        }
    }

    /// take_sample() of algorithm.h, and what follows it.
    fn ack(&mut self, c: &mut Conn, ack: &bbr3::raw::Ack, control: &mut Control) {
        let losses = ack.losses.max(0) as u32;
        let delivered_before = c.delivered.wrapping_sub(ack.acked_sacked);
        self.ring.close_group(c, delivered_before, c.lost.wrapping_sub(losses), ack.prior_in_flight);
        let flight = if ack.has_packet != 0 { self.ring.look_up(c, ack) } else { None };
        let newly_lost = c.lost.wrapping_sub(self.seen_lost);
        self.seen_lost = c.lost;
        let mut sample = RateSample {
            prior_delivered: extend(self.delivered, ack.prior_delivered),
            delivered: ack.delivered.max(0) as u32,
            interval: (ack.interval_us > 0 && ack.delivered >= 0)
                .then(|| Duration::from_micros(ack.interval_us as u64)),
            is_app_limited: ack.is_app_limited != 0,
            tx_in_flight: flight.map(|(tx_in_flight, _)| tx_in_flight),
            lost: flight.map_or(0, |(_, lost)| c.lost.wrapping_sub(lost)),
        };
        self.check_app_limited(c, control.cwnd, losses, delivered_before, ack.prior_in_flight);
        if !self.can_mark && ack.has_packet != 0 && ack.delivered > 0 {
            self.apply_own_mark(&mut sample, ack.prior_delivered);
        }
        if newly_lost > 0 {
            self.losses(c, ack, &sample, newly_lost, losses, control);
        }
        self.tlp_pending = false;
        self.seen_delivered = c.delivered;
        let ack = Ack {
            newly_acked: ack.acked_sacked,
            newly_lost: losses,
            newly_marked: 0,
            prior_in_flight: ack.prior_in_flight,
            rtt: (ack.rtt_us >= 0).then(|| Duration::from_micros(ack.rtt_us as u64)),
            is_delayed: ack.is_ack_delayed != 0,
            is_tail_probe: c.tlp_high_seq != 0 && c.tlp_retrans != 0 && c.snd_una == c.tlp_high_seq,
            sample: (ack.has_packet != 0 || sample.interval.is_some()).then_some(sample),
        };
        self.cc.on_ack(&self.connection(c), &ack, control, &mut Ignore);
    }

    /// check_app_limited() of app_limited.h.
    fn check_app_limited(&mut self, c: &mut Conn, cwnd: u32, losses: u32, delivered: u32, prior_in_flight: u32) {
        let lost_before = c.lost_out.saturating_sub(losses);
        if c.unsent_bytes < c.mss
            && c.queued_bytes < SMALLEST_SKB_TRUESIZE
            && prior_in_flight < cwnd
            && lost_before <= c.retrans_out
        {
            self.mark_app_limited(c, delivered, prior_in_flight);
        }
    }

    /// is_marked_app_limited() and expire_app_limited() of app_limited.h.
    fn apply_own_mark(&mut self, sample: &mut RateSample, prior_delivered: u32) {
        let Some((from, until)) = self.app_limited else { return };
        sample.is_app_limited |= !before(prior_delivered, from) && !before(until, prior_delivered);
        if before(until, prior_delivered) {
            self.app_limited = None;
        }
    }

    /// handle_losses_of_ack() of loss.h: the program sees what timers marked one ACK late, and finds the flight of the lost packets in
    /// the ring.
    fn losses(
        &mut self,
        c: &Conn,
        ack: &bbr3::raw::Ack,
        sample: &RateSample,
        newly_lost: u32,
        losses: u32,
        control: &mut Control,
    ) {
        let noted = if newly_lost > losses { c.delivered.wrapping_sub(ack.acked_sacked) } else { c.delivered };
        let conn = self.connection(c);
        let then = Connection { delivered: extend(self.delivered, noted), ..conn };
        let unknown = Lost { packets: newly_lost, is_app_limited: sample.is_app_limited, ..Lost::default() };
        self.cc.on_lost(&then, &unknown, control, &mut Ignore);

        let state = self.cc.state();
        let reordering_us = if c.reord_seen != 0 {
            (u64::from(c.kernel_min_rtt_us >> 2) * u64::from(c.reo_wnd_steps)).min(u64::from(c.srtt_us >> 3)) as u32
        } else {
            0
        };
        let end = if state.prev_recovery < Recovery::Recovery {
            c.snd_una.wrapping_add(c.mss)
        } else if ack.has_packet == 0 || ack.is_retrans != 0 || reordering_us != 0 {
            0
        } else {
            let packets = ack.acked_sacked.wrapping_add(newly_lost).wrapping_sub(1);
            let end = ack.last_end_seq.wrapping_sub(c.mss.wrapping_mul(packets));
            if before(c.snd_una, end) { end } else { 0 }
        };
        let found = if end != 0 {
            let entry = self.ring.find_sequence(end.wrapping_sub(1));
            entry.map(|entry| (entry, tx_in_flight(c, entry, end)))
        } else if ack.has_packet != 0 {
            let earlier = (u64::from(state.bw().raw()) * u64::from(reordering_us)) >> 24;
            let entry = self.ring.find(ack.prior_delivered.wrapping_sub(earlier as u32));
            entry.map(|entry| (entry, entry.in_flight))
        } else {
            None
        };
        let Some((entry, tx_in_flight)) = found else { return };
        let lost_before = c.lost.wrapping_sub(newly_lost).wrapping_sub(entry.lost);
        let lost = Lost { tx_in_flight: Some(tx_in_flight), lost_before, ..unknown };
        let crossing =
            if end != 0 { self.crossing(c, &conn, &lost, end, c.lost.wrapping_sub(newly_lost)) } else { None };
        self.cc.on_lost(&conn, &Lost { crossing, ..lost }, control, &mut Ignore);
    }

    /// The flight of the packet of a row that takes it above the threshold, where that isn't the first; `end`: where that one ends;
    /// `lost`: the count without the row. handle_lost_packets() of loss.h.
    fn crossing(&self, c: &Conn, conn: &Connection, row: &Lost, end: u32, lost: u32) -> Option<Flight> {
        let needed = self.cc.crossing(conn, row).filter(|needed| *needed > 1)?;
        let end = end.wrapping_add((needed - 1).wrapping_mul(c.mss));
        let entry = self.ring.find_sequence(end.wrapping_sub(1))?;
        Some(Flight { tx_in_flight: tx_in_flight(c, entry, end), lost_before: lost.wrapping_sub(entry.lost) })
    }

    /// handle_losses_of_timer() of recovery.h; `control` with the window as it was before the timer.
    fn losses_of_timer(&mut self, c: &Conn, conn: &Connection, control: &mut Control) {
        self.cc.on_congestion(conn, Cause::Loss, control, &mut Ignore);
        let newly_lost = c.lost.wrapping_sub(self.seen_lost);
        if newly_lost == 0 {
            return;
        }
        self.ring.close_group(c, c.delivered, self.seen_lost, c.in_flight.wrapping_add(newly_lost));
        let end = c.snd_una.wrapping_add(c.mss);
        let entry = self.ring.find_sequence(c.snd_una);
        let lost = Lost {
            packets: newly_lost,
            tx_in_flight: entry.map(|entry| tx_in_flight(c, entry, end)),
            lost_before: entry.map_or(0, |entry| self.seen_lost.wrapping_sub(entry.lost)),
            is_app_limited: conn.is_app_limited,
            crossing: None,
        };
        let crossing = self.crossing(c, conn, &lost, end, self.seen_lost);
        self.cc.on_lost(conn, &Lost { crossing, ..lost }, control, &mut Ignore);
        self.seen_lost = c.lost;
    }

    /// on_set_state() of recovery.h.
    fn set_state(&mut self, c: &Conn, to: Recovery, control: &mut Control) {
        let conn = self.connection(c);
        if to == Recovery::Cwr && self.tlp_pending {
            self.tlp_pending = false;
            self.cc.on_congestion(&conn, Cause::TailLoss, control, &mut Ignore);
        }
        if to == Recovery::Recovery && c.delivered == self.seen_delivered {
            self.losses_of_timer(c, &conn, control);
        }
        if to == Recovery::Loss {
            // The window as it was: the kernel has cut it before this call.
            let mut uncut = Control { cwnd: control.cwnd.max(c.prior_cwnd), ..*control };
            self.losses_of_timer(c, &conn, &mut uncut);
        }
        self.cc.on_recovery(&conn, to, control, &mut Ignore);
    }
}
