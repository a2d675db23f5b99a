//! Drives every controller with the history that some bytes describe, and checks what must always hold. For fuzzing and property tests.
//!
//! Histories are causal and no more: nothing is delivered that was not sent, time does not run backwards, and the transport's counts add up.
//! Beyond that anything happens: idle centuries, flights of a billion packets, losses of everything, recoveries taken back.

use units::{Bytes, Duration, Instant, Probability, Rate};

use crate::bbr3::Params;
use crate::{
    Ack, Bbr1, Bbr3, Bound, Cause, Connection, Control, Controller, Cubic, CubicParams, INFINITE_SSTHRESH, Observer,
    PacketStamp, Phase, RateSampler, Recovery, Reno, Undo,
};

/// Groups of packets outstanding at once.
const GROUPS: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Group {
    stamp: PacketStamp,
    order: u64,
    packets: u32,
}

/// Holds that phases follow one another without a gap.
struct Watch {
    phase: Phase,
    now: Instant,
}

impl Observer for Watch {
    fn transition(&mut self, at: Instant, from: Phase, to: Phase) {
        assert_eq!((at, from), (self.now, self.phase), "on the way to {to:?}");
        self.phase = to;
    }

    fn bound(&mut self, at: Instant, bound: Bound) {
        assert_eq!(at, self.now);
        if let Bound::Ssthresh(Some(packets)) = bound {
            assert!(packets >= 2);
        }
    }
}

/// The bytes, one after the other; zeros after the last.
struct Bytes0<'a>(&'a [u8]);

impl Bytes0<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number of any size: a mantissa of eight bits and an exponent.
    fn number(&mut self, bits: u32) -> u64 {
        let mantissa = u64::from(self.next());
        let exponent = u32::from(self.next()) % bits;
        mantissa << exponent
    }
}

/// A connection and its history so far.
struct Transport<'a> {
    cc: &'a mut dyn Controller,
    watch: Watch,
    conn: Connection,
    control: Control,
    sampler: RateSampler,
    /// Oldest first.
    groups: [Option<Group>; GROUPS],
    orders: u64,
    prior_ssthresh: u32,
}

/// A controller, and the smallest window it sets of its own: after an ACK that delivers something, outside recovery.
fn controllers(choice: u8, run: &mut dyn FnMut(&mut dyn Controller, u32)) {
    let params = match choice >> 4 {
        0 => Params::lossy_link(),
        1 => Params {
            loss_thresh: Probability::ZERO,
            beta: Probability::from_ppb(999_000_000),
            headroom: Probability::from_ppb(999_000_000),
            pacing_margin_percent: 50,
            probe_max_rounds: 1,
            probe_wait_base: Duration::from_millis(1),
            probe_wait_random: Duration::ZERO,
            probe_rtt_interval: Duration::from_millis(1),
            min_rtt_window: Duration::from_millis(1),
            probe_rtt_duration: Duration::from_millis(1),
            ..Params::default()
        },
        _ => Params::default(),
    };
    let seed = u64::from(choice);
    run(&mut Reno::new(), 1);
    let plain =
        CubicParams { fast_convergence: false, reno_friendly: false, hystart: false, slow_start_limit: Some(8) };
    run(&mut Cubic::new(if choice & 1 == 0 { CubicParams::default() } else { plain }), 1);
    run(&mut Bbr1::new(seed), 4);
    if let Ok(mut bbr) = Bbr3::new(params, seed) {
        run(&mut bbr, 4);
    }
}

/// Runs every controller through the history in `bytes`.
///
/// # Panics
/// Where something does not hold that must always hold.
pub fn exercise(bytes: &[u8]) {
    let choice = bytes.first().copied().unwrap_or(0);
    controllers(choice, &mut |cc, floor| history(cc, floor, Bytes0(bytes)));
}

fn history(cc: &mut dyn Controller, floor: u32, mut bytes: Bytes0<'_>) {
    bytes.next();
    let mss = bytes.number(14).clamp(1, 65_535);
    let mut conn = Connection::new(Instant::from_nanos(bytes.number(50)), Bytes::new(mss));
    let rtt = Duration::from_nanos(bytes.number(40));
    if rtt > Duration::ZERO {
        conn.srtt = Some(rtt);
        conn.min_rtt = Some(rtt);
    }
    conn.sees_every_loss = bytes.next() & 7 != 0;
    if bytes.next() & 7 == 0 {
        conn.max_cwnd = (bytes.number(32) as u32).max(4);
        conn.max_pacing_rate = Rate::from_bps(bytes.number(50).max(8));
    }
    conn.burst_shift = if bytes.next() & 15 == 0 { bytes.next() } else { 10 };
    let initial = (bytes.number(10) as u32).clamp(1, conn.max_cwnd);
    let phase = cc.phase();
    let sampler = RateSampler::new(conn.now);
    let mut transport = Transport {
        cc,
        watch: Watch { phase, now: conn.now },
        conn,
        control: Control::new(initial),
        sampler,
        groups: [None; GROUPS],
        orders: 0,
        prior_ssthresh: INFINITE_SSTHRESH,
    };
    transport.cc.init(&transport.conn, &mut transport.control, &mut transport.watch);
    transport.check(1);
    while !bytes.0.is_empty() {
        let acked = transport.step(&mut bytes);
        let is_grown = acked > 0 && transport.conn.recovery == Recovery::Open;
        transport.check(if is_grown { floor } else { 1 });
    }
}

impl Transport<'_> {
    fn check(&mut self, floor: u32) {
        let control = &self.control;
        let name = self.cc.name();
        assert!(control.cwnd >= floor.min(self.conn.max_cwnd), "{name}: window {} below {floor}", control.cwnd);
        assert!(control.cwnd <= self.conn.max_cwnd, "{name}: window {} above the limit", control.cwnd);
        assert!(control.ssthresh >= 2 || self.cc.controls_recovery(), "{name}: threshold {}", control.ssthresh);
        assert!(control.send_quantum >= 1, "{name}: no burst");
        if let Some(rate) = control.pacing_rate {
            assert!(rate > Rate::ZERO, "{name}: paces at nothing");
            assert!(rate <= self.conn.max_pacing_rate, "{name}: paces above the limit");
        }
        assert_eq!(self.watch.phase, self.cc.phase(), "{name}: a transition was not told");
        let outstanding: u64 = self.groups.iter().flatten().map(|group| u64::from(group.packets)).sum();
        assert_eq!(outstanding, u64::from(self.conn.in_flight));
    }

    fn refresh(&mut self) {
        self.watch.now = self.conn.now;
        self.conn.delivered = self.sampler.delivered();
        self.conn.delivered_at = self.sampler.delivered_at();
        self.conn.lost = self.sampler.lost();
        self.conn.is_app_limited = self.sampler.is_app_limited();
        if core::mem::take(&mut self.control.mark_app_limited) {
            self.sampler.mark_app_limited(self.conn.in_flight);
        }
    }

    /// One event; how many packets it delivered.
    fn step(&mut self, bytes: &mut Bytes0<'_>) -> u32 {
        let event = bytes.next();
        self.refresh();
        match event % 16 {
            0..5 => self.send(bytes),
            5..11 => return self.acknowledge(bytes),
            11 => self.conn.now += Duration::from_nanos(bytes.number(44)),
            12 => self.time_out(),
            13 => self.undo(),
            14 => self.congestion(if event & 16 == 0 { Cause::Ecn } else { Cause::TailLoss }, Recovery::Cwr),
            _ => {
                self.sampler.mark_app_limited(self.conn.in_flight);
                self.conn.departs_in = Duration::from_nanos(bytes.number(40));
            }
        }
        0
    }

    fn send(&mut self, bytes: &mut Bytes0<'_>) {
        self.conn.now += Duration::from_nanos(bytes.number(36));
        let room = self.control.cwnd.saturating_sub(self.conn.in_flight);
        let packets = if bytes.next() & 1 == 0 { room } else { room.min(bytes.number(28) as u32) };
        let Some(slot) = self.groups.iter().position(Option::is_none).filter(|_| packets > 0) else { return };
        self.refresh();
        if self.conn.in_flight == 0 {
            self.cc.on_idle_restart(&self.conn, &mut self.control, &mut self.watch);
            self.refresh();
        }
        let was_empty = self.conn.in_flight == 0;
        self.conn.in_flight += packets;
        let stamp = self.sampler.on_sent(self.conn.now, self.conn.in_flight, was_empty);
        self.groups[slot] = Some(Group { stamp, order: self.orders, packets });
        self.orders += 1;
        self.conn.is_cwnd_limited = packets == room;
        self.conn.max_outstanding = self.conn.in_flight;
    }

    /// Takes up to `packets` out of a group.
    fn take(&mut self, slot: usize, packets: u32) -> Option<(Group, u32)> {
        let group = self.groups[slot].as_mut()?;
        let taken = packets.min(group.packets);
        group.packets -= taken;
        let copy = *group;
        if copy.packets == 0 {
            self.groups[slot] = None;
        }
        self.conn.in_flight -= taken;
        Some((copy, taken))
    }

    fn lose(&mut self, slot: usize, packets: u32) -> u32 {
        let Some((group, taken)) = self.take(slot, packets) else { return 0 };
        let lost = self.sampler.on_lost_together(&group.stamp, taken);
        self.refresh();
        self.cc.on_lost(&self.conn, &lost, &mut self.control, &mut self.watch);
        taken
    }

    fn acknowledge(&mut self, bytes: &mut Bytes0<'_>) -> u32 {
        self.conn.now += Duration::from_nanos(bytes.number(38));
        let prior_in_flight = self.conn.in_flight;
        let mut ack = Ack { prior_in_flight, ..Ack::default() };
        // Two bits for each group: delivered, or lost, or partly.
        let (mut fates, amount) = (bytes.next(), bytes.number(24).max(1) as u32);
        let mut newest = None;
        for slot in 0..GROUPS {
            let fate = fates & 3;
            fates = fates.rotate_left(2);
            match fate {
                0 | 1 => {
                    let most = if fate == 0 { u32::MAX } else { amount };
                    let Some((group, taken)) = self.take(slot, most) else { continue };
                    self.sampler.on_delivered_together(&group.stamp, group.order, taken);
                    ack.newly_acked += taken;
                    newest = newest.max(Some((group.stamp.sent_at, group.order)));
                }
                2 if bytes.next() & 3 == 0 => ack.newly_lost += self.lose(slot, amount),
                _ => {}
            }
        }
        if let Some((sent, _)) = newest {
            let rtt = self.conn.now.since(sent);
            ack.rtt = (bytes.next() & 7 != 0).then_some(rtt);
            self.conn.min_rtt = Some(self.conn.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.conn.srtt = Some(self.conn.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        ack.is_delayed = ack.newly_acked == 1;
        ack.sample = self.sampler.finish(self.conn.now, self.conn.min_rtt);
        self.refresh();
        if ack.newly_lost > 0 && self.conn.recovery < Recovery::Recovery {
            self.congestion(Cause::Loss, Recovery::Recovery);
        } else if ack.newly_lost == 0 && bytes.next() & 3 == 0 {
            self.change(Recovery::Open);
        }
        self.cc.on_ack(&self.conn, &ack, &mut self.control, &mut self.watch);
        ack.newly_acked
    }

    fn change(&mut self, to: Recovery) {
        if self.conn.recovery != to {
            self.cc.on_recovery(&self.conn, to, &mut self.control, &mut self.watch);
            if !self.cc.controls_recovery() && self.conn.recovery.is_reducing() {
                self.control.cwnd = self.control.ssthresh.min(self.conn.max_cwnd);
            }
            self.conn.recovery = to;
        }
    }

    fn congestion(&mut self, cause: Cause, to: Recovery) {
        if self.conn.recovery >= Recovery::Recovery {
            return;
        }
        self.conn.prior_cwnd = self.control.cwnd;
        self.prior_ssthresh = self.control.ssthresh;
        self.cc.on_congestion(&self.conn, cause, &mut self.control, &mut self.watch);
        self.change(to);
    }

    fn time_out(&mut self) {
        if self.conn.recovery != Recovery::Loss {
            self.conn.prior_cwnd = self.control.cwnd;
            self.prior_ssthresh = self.control.ssthresh;
            self.cc.on_congestion(&self.conn, Cause::Timeout, &mut self.control, &mut self.watch);
        }
        for slot in 0..GROUPS {
            self.lose(slot, u32::MAX);
        }
        self.control.cwnd = (self.conn.in_flight + 1).min(self.conn.max_cwnd);
        self.refresh();
        self.change(Recovery::Loss);
    }

    fn undo(&mut self) {
        if self.conn.recovery < Recovery::Recovery {
            return;
        }
        let undo = Undo { prior_cwnd: self.conn.prior_cwnd, prior_ssthresh: self.prior_ssthresh };
        self.cc.on_undo(&self.conn, &undo, &mut self.control, &mut self.watch);
        self.change(Recovery::Open);
    }
}
