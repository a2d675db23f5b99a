use std::collections::{BTreeMap, BTreeSet};

use congestion::{
    Ack, Cause, Connection, Control, Controller, INFINITE_SSTHRESH, Observer, PacketStamp, RateSampler, Recovery, Undo,
};
use units::{Bytes, Duration, Instant, Rate};

use super::MSS;

/// What there is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Application {
    /// Always more.
    Bulk,
    /// A packet every `interval`, as from a camera.
    Steady { interval: Duration },
    /// Nothing.
    Silent,
}

/// RFC 9002: packets that may overtake one another, and 9/8 of the RTT.
const PACKET_THRESHOLD: u64 = 3;
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

/// The sending end, of numbered packets that are never sent twice: a loss is repaired by new packets.
pub struct Sender<C> {
    pub cc: C,
    pub control: Control,
    pub sampler: RateSampler,
    pub conn: Connection,
    application: Application,
    /// Written and not sent; when the next packet is written.
    waiting: u64,
    next_write: Instant,
    outstanding: BTreeMap<u64, PacketStamp>,
    /// Marked lost and not acknowledged since: of the current episode.
    suspects: BTreeSet<u64>,
    next_number: u64,
    largest_acked: u64,
    /// Packets from here on were sent after the current episode began.
    recovery_end: u64,
    prior_ssthresh: u32,
    departure: Instant,
    rttvar: Duration,
    latest_rtt: Duration,
    timeout_at: Option<Instant>,
    loss_at: Option<Instant>,
    backoff: u32,
    /// Packets in flight as the window was last full.
    round_end: u64,
    pub spurious: u64,
    pub timeouts: u64,
}

impl<C: Controller> Sender<C> {
    pub fn new(cc: C, application: Application, handshake_rtt: Duration, observer: &mut dyn Observer) -> Self {
        let mut conn = Connection::new(Instant::ZERO, Bytes::new(MSS));
        if handshake_rtt > Duration::ZERO {
            conn.srtt = Some(handshake_rtt);
            conn.min_rtt = Some(handshake_rtt);
        }
        let mut sender = Self {
            cc,
            control: Control::new(10),
            sampler: RateSampler::new(Instant::ZERO),
            conn,
            application,
            waiting: 0,
            next_write: Instant::ZERO,
            outstanding: BTreeMap::new(),
            suspects: BTreeSet::new(),
            next_number: 0,
            largest_acked: 0,
            recovery_end: 0,
            prior_ssthresh: INFINITE_SSTHRESH,
            departure: Instant::ZERO,
            rttvar: handshake_rtt / 2,
            latest_rtt: handshake_rtt,
            timeout_at: None,
            loss_at: None,
            backoff: 0,
            round_end: 0,
            spurious: 0,
            timeouts: 0,
        };
        sender.cc.init(&sender.conn, &mut sender.control, observer);
        sender
    }

    pub fn delivered(&self) -> u64 {
        self.sampler.delivered()
    }

    pub fn in_flight(&self) -> u32 {
        self.conn.in_flight
    }

    pub fn pacing_rate(&self) -> Rate {
        self.control.pacing_rate.unwrap()
    }

    /// From now on.
    pub fn set_application(&mut self, now: Instant, application: Application) {
        self.application = application;
        self.waiting = 0;
        self.next_write = now;
    }

    pub fn next_event(&self) -> Option<Instant> {
        let write = matches!(self.application, Application::Steady { .. }).then_some(self.next_write);
        let can_send = self.has_data() && self.conn.in_flight < self.control.cwnd;
        let send = can_send.then_some(self.departure);
        [write, send, self.timeout_at, self.loss_at].into_iter().flatten().min()
    }

    fn has_data(&self) -> bool {
        self.application == Application::Bulk || self.waiting > 0
    }

    fn refresh(&mut self, now: Instant) {
        self.conn.now = now;
        self.conn.delivered = self.sampler.delivered();
        self.conn.delivered_at = self.sampler.delivered_at();
        self.conn.lost = self.sampler.lost();
        self.conn.departs_in = self.departure.since(now);
        self.conn.is_app_limited = self.sampler.is_app_limited();
    }

    fn mark_where_asked(&mut self) {
        if std::mem::take(&mut self.control.mark_app_limited) {
            self.sampler.mark_app_limited(self.conn.in_flight);
        }
    }

    fn check_app_limited(&mut self) {
        if !self.has_data() && self.conn.in_flight < self.control.cwnd {
            self.sampler.mark_app_limited(self.conn.in_flight);
        }
    }

    /// Numbers of the packets that leave now.
    pub fn send(&mut self, now: Instant, observer: &mut dyn Observer) -> Vec<u64> {
        if let Application::Steady { interval } = self.application {
            while self.next_write <= now {
                self.check_app_limited();
                self.waiting += 1;
                self.next_write += interval;
            }
        }
        let mut sent = Vec::new();
        while self.has_data() && self.departure <= now && self.conn.in_flight < self.control.cwnd {
            let mut burst = self.control.send_quantum.max(1);
            if self.control.pacing_rate.is_none() {
                burst = u32::MAX;
            }
            let first = sent.len();
            while burst > 0 && self.has_data() && self.conn.in_flight < self.control.cwnd {
                if self.conn.in_flight == 0 {
                    self.refresh(now);
                    self.cc.on_idle_restart(&self.conn, &mut self.control, observer);
                    self.mark_where_asked();
                }
                self.conn.in_flight += 1;
                let stamp = self.sampler.on_sent(now, self.conn.in_flight, self.outstanding.is_empty());
                self.outstanding.insert(self.next_number, stamp);
                sent.push(self.next_number);
                self.next_number += 1;
                self.waiting = self.waiting.saturating_sub(1);
                burst -= 1;
            }
            let packets = (sent.len() - first) as u64;
            if let Some(rate) = self.control.pacing_rate {
                self.departure = self.departure.max(now) + rate.time_for(Bytes::new(packets * MSS));
            }
        }
        if !sent.is_empty() {
            let is_full = self.conn.in_flight >= self.control.cwnd;
            if is_full || self.largest_acked >= self.round_end {
                self.conn.is_cwnd_limited = is_full;
                self.conn.max_outstanding = self.outstanding.len() as u32;
                self.round_end = self.next_number;
            }
            self.arm(now);
        }
        sent
    }

    fn timeout(&self) -> Duration {
        let Some(srtt) = self.conn.srtt else { return Duration::from_secs(1) };
        (srtt + (self.rttvar * 4).max(LEAST_TIMEOUT)) * (1 << self.backoff.min(6))
    }

    fn arm(&mut self, now: Instant) {
        self.timeout_at = (!self.outstanding.is_empty()).then(|| now + self.timeout());
    }

    fn note_rtt(&mut self, rtt: Duration) {
        self.latest_rtt = rtt;
        self.conn.min_rtt = Some(self.conn.min_rtt.map_or(rtt, |min| min.min(rtt)));
        let srtt = self.conn.srtt.unwrap_or(rtt);
        let error = Duration::from_nanos(rtt.as_nanos().abs_diff(srtt.as_nanos()));
        self.rttvar = (self.rttvar * 3 + error) / 4;
        self.conn.srtt = Some((srtt * 7 + rtt) / 8);
    }

    pub fn on_acknowledgement(&mut self, now: Instant, numbers: &[u64], observer: &mut dyn Observer) {
        self.check_app_limited();
        let mut ack = Ack { prior_in_flight: self.conn.in_flight, ..Ack::default() };
        let mut newest = None;
        for number in numbers {
            if let Some(stamp) = self.outstanding.remove(number) {
                self.conn.in_flight -= 1;
                self.sampler.on_delivered(&stamp, *number);
                ack.newly_acked += 1;
                newest = newest.max(Some((*number, stamp.sent_at)));
            } else if self.suspects.remove(number) {
                self.spurious += 1;
            }
        }
        if let Some((number, sent_at)) = newest {
            self.largest_acked = self.largest_acked.max(number);
            ack.rtt = Some(now.since(sent_at));
            self.note_rtt(now.since(sent_at));
            self.backoff = 0;
        }
        ack.is_delayed = ack.newly_acked == 1;
        ack.newly_lost = self.detect_losses(now, observer);
        self.refresh(now);
        self.begin_recovery(ack.newly_lost, observer);
        ack.sample = self.sampler.finish(now, self.conn.min_rtt);
        self.refresh(now);
        self.cc.on_ack(&self.conn, &ack, &mut self.control, observer);
        self.mark_where_asked();
        self.end_recovery(newest.map(|(number, _)| number), ack.newly_lost, observer);
        self.arm(now);
    }

    fn lose(&mut self, now: Instant, number: u64, observer: &mut dyn Observer) {
        let Some(stamp) = self.outstanding.remove(&number) else { return };
        self.conn.in_flight -= 1;
        self.suspects.insert(number);
        if self.application != Application::Bulk {
            self.waiting += 1;
        }
        let lost = self.sampler.on_lost(&stamp);
        self.refresh(now);
        self.cc.on_lost(&self.conn, &lost, &mut self.control, observer);
    }

    fn detect_losses(&mut self, now: Instant, observer: &mut dyn Observer) -> u32 {
        let patience = self.latest_rtt.max(self.conn.srtt.unwrap_or(self.latest_rtt)) * 9 / 8;
        let late = |number: u64, stamp: &PacketStamp| {
            number + PACKET_THRESHOLD <= self.largest_acked || now.since(stamp.sent_at) >= patience
        };
        let older = self.outstanding.range(..self.largest_acked);
        let (lost, waiting): (Vec<_>, Vec<_>) = older.partition(|(number, stamp)| late(**number, stamp));
        self.loss_at = waiting.first().map(|(_, stamp)| stamp.sent_at + patience);
        let lost: Vec<u64> = lost.into_iter().map(|(number, _)| *number).collect();
        for number in &lost {
            self.lose(now, *number, observer);
        }
        lost.len() as u32
    }

    fn begin_recovery(&mut self, lost: u32, observer: &mut dyn Observer) {
        if lost == 0 || self.conn.recovery >= Recovery::Recovery {
            return;
        }
        self.begin(Cause::Loss, observer);
        self.change(Recovery::Recovery, observer);
        if !self.cc.controls_recovery() {
            self.control.cwnd = self.control.ssthresh;
        }
    }

    /// Recovery ends with the delivery of what was sent after it began, or as all that seemed lost has arrived.
    fn end_recovery(&mut self, newest: Option<u64>, lost: u32, observer: &mut dyn Observer) {
        if self.conn.recovery < Recovery::Recovery {
            return;
        }
        if self.suspects.is_empty() {
            let undo = Undo { prior_cwnd: self.conn.prior_cwnd, prior_ssthresh: self.prior_ssthresh };
            self.cc.on_undo(&self.conn, &undo, &mut self.control, observer);
            self.change(Recovery::Open, observer);
        } else if newest.is_some_and(|number| number >= self.recovery_end) {
            self.change(Recovery::Open, observer);
            // What this ACK showed to be lost of later packets belongs to the next.
            self.suspects = self.suspects.split_off(&self.recovery_end);
            let again = if self.suspects.is_empty() { 0 } else { lost };
            self.begin_recovery(again, observer);
        }
    }

    fn begin(&mut self, cause: Cause, observer: &mut dyn Observer) {
        self.conn.prior_cwnd = self.control.cwnd;
        self.prior_ssthresh = self.control.ssthresh;
        self.recovery_end = self.next_number;
        self.cc.on_congestion(&self.conn, cause, &mut self.control, observer);
    }

    fn change(&mut self, to: Recovery, observer: &mut dyn Observer) {
        self.cc.on_recovery(&self.conn, to, &mut self.control, observer);
        self.conn.recovery = to;
    }

    pub fn on_timer(&mut self, now: Instant, observer: &mut dyn Observer) {
        if self.loss_at.is_some_and(|at| at <= now) {
            let lost = self.detect_losses(now, observer);
            self.refresh(now);
            self.begin_recovery(lost, observer);
        }
        if self.timeout_at.is_some_and(|at| at <= now) {
            self.timeouts += 1;
            self.refresh(now);
            if self.conn.recovery != Recovery::Loss {
                self.begin(Cause::Timeout, observer);
            }
            let all: Vec<u64> = self.outstanding.keys().copied().collect();
            for number in all {
                self.lose(now, number, observer);
            }
            self.control.cwnd = self.conn.in_flight + 1;
            self.refresh(now);
            self.change(Recovery::Loss, observer);
            self.recovery_end = self.next_number;
            self.backoff += 1;
            self.departure = now;
            self.timeout_at = None;
        }
    }
}
