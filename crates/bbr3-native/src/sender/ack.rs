use units::{Duration, Instant};

use super::rate::Taken;
use super::scoreboard::Outstanding;
use super::{CaState, Sender};
use crate::raw::{Ack, Sample};
use crate::receiver::Report;

/// What Linux adds to the time it waits for reordering (TCP_TIMEOUT_MIN_US).
const REORDER_TIMER_MIN: Duration = Duration::from_millis(2);

/// What one ACK brought.
#[derive(Debug, Default)]
struct Progress {
    advanced: bool,
    newly_sacked: bool,
    dsacks: u32,
    /// Data never sent again was delivered.
    original_delivered: bool,
    retransmitted_acked: bool,
    /// RTT of the newest original packet.
    rtt: Option<Duration>,
    /// RTT of the oldest original packet, for the timeout.
    oldest_rtt: Option<Duration>,
    taken: Taken,
}

impl Sender {
    /// An ACK arrives. `arrivals` are the packets it newly reports.
    pub(crate) fn on_report(&mut self, now: Instant, report: &Report, arrivals: &[u64]) {
        self.now = now;
        let (lost_before, delivered_before) = (self.board.lost, self.sampler.delivered);
        let prior_in_flight = self.board.in_flight();
        let had_packets = self.board.packets_out() > 0;
        let first_before = self.board.first;

        self.ask(|cc, conn| cc.in_ack(conn));
        let mut progress = self.deliver(report, arrivals);
        progress.dsacks = report.duplicates - self.duplicates_seen;
        self.duplicates_seen = report.duplicates;
        self.update_rtt(&progress);
        self.note_duplicates(progress.dsacks, first_before);
        self.process_tlp(report.cumulative, &progress);
        if progress.dsacks > 0 || progress.newly_sacked || self.ca_state != CaState::Open {
            self.recover(&progress, report.echo);
        }
        if progress.advanced {
            self.timers.backoff = 0;
        }
        if progress.advanced || progress.newly_sacked {
            self.arm_timer();
        }
        if !had_packets {
            return;
        }
        let delivered = self.sampler.delivered.wrapping_sub(delivered_before);
        let losses = self.board.lost - lost_before;
        let end = progress.taken.newest.map_or(0, |(packet, _)| self.sequence(packet + 1));
        let mut ack = self.sampler.finish(&progress.taken, now, delivered, losses, self.min_rtt_us, end);
        ack.prior_in_flight = prior_in_flight;
        ack.rtt_us = progress.rtt.map_or(-1, |rtt| rtt.as_micros() as i64);
        let trigger = self.exact_trigger();
        let before = self.cc.count(crate::Count::TooHigh);
        let sample = self.ask(|cc, conn| cc.ack(conn, &ack));
        let triggered = self.cc.count(crate::Count::TooHigh) > before;
        if trigger.is_some() || triggered {
            self.triggers.push((trigger, triggered.then(|| self.cc.state().inflight_hi), self.ca_state as u8));
        }
        self.compare(&sample, &ack, progress.taken.newest.map(|(_, packet)| packet));
        self.last_sample = sample;
        self.send(now);
    }

    fn deliver(&mut self, report: &Report, arrivals: &[u64]) -> Progress {
        let mut progress = Progress::default();
        for &number in arrivals.iter().filter(|number| **number >= report.cumulative) {
            if let Some(packet) = self.board.sack(number) {
                progress.newly_sacked = true;
                self.delivered(&mut progress, number, packet, false);
            }
        }
        while self.board.first < report.cumulative {
            let number = self.board.first;
            let Some((packet, new)) = self.board.acknowledge_first() else { break };
            progress.advanced = true;
            progress.retransmitted_acked |= packet.ever_retransmitted;
            if new {
                self.delivered(&mut progress, number, packet, true);
            }
        }
        if progress.retransmitted_acked && progress.advanced && !progress.newly_sacked {
            progress.rtt = None;
            progress.oldest_rtt = None;
        }
        progress
    }

    fn delivered(&mut self, progress: &mut Progress, number: u64, packet: Outstanding, cumulative: bool) {
        self.sampler.deliver(&mut progress.taken, number, packet);
        let rtt = self.now.since(packet.sent);
        if !packet.ever_retransmitted {
            progress.original_delivered = true;
            progress.rtt = Some(rtt);
            if cumulative || progress.oldest_rtt.is_none() {
                progress.oldest_rtt.get_or_insert(rtt);
            }
            // Something sent later arrived before it.
            if self.highest_delivered.is_some_and(|highest| number < highest) {
                self.reord_seen = true;
            }
        }
        self.highest_delivered = self.highest_delivered.max(Some(number));
        // RFC 8985 section 6.2 step 2; a retransmission delivered too soon was the original.
        if packet.ever_retransmitted && rtt.as_micros() < u64::from(self.min_rtt_us) {
            return;
        }
        self.rack.rtt = rtt;
        if (packet.sent, number) > (self.rack.sent, self.rack.packet) {
            self.rack.sent = packet.sent;
            self.rack.packet = number;
        }
    }

    fn update_rtt(&mut self, progress: &Progress) {
        if let Some(rtt) = progress.rtt {
            self.min_rtt_us = self.min_rtt_us.min(rtt.as_micros() as u32).max(1);
        }
        let Some(rtt) = progress.oldest_rtt.or(progress.rtt) else { return };
        let rtt_us = (rtt.as_micros() as u32).max(1);
        if self.srtt_us == 0 {
            self.srtt_us = rtt_us << 3;
            self.rttvar_us = rtt_us / 2;
            return;
        }
        let error = i64::from(rtt_us) - i64::from(self.srtt_us >> 3);
        self.srtt_us = (i64::from(self.srtt_us) + error) as u32;
        self.rttvar_us = ((3 * i64::from(self.rttvar_us) + error.abs()) / 4) as u32;
    }

    /// DSACKs: each takes back one retransmission, and widens RACK's patience.
    fn note_duplicates(&mut self, dsacks: u32, _first_before: u64) {
        if dsacks == 0 {
            return;
        }
        if self.undo_marker.is_some() && self.undo_retrans > 0 {
            self.undo_retrans = (self.undo_retrans - i64::from(dsacks)).max(0);
        }
        if self.reord_seen {
            self.rack.steps = self.rack.steps.saturating_add(1);
        }
    }

    /// tcp_process_tlp_ack().
    fn process_tlp(&mut self, cumulative: u64, progress: &Progress) {
        let Some(high) = self.tlp_high_seq else { return };
        if cumulative < high {
            return;
        }
        if !self.tlp_retrans || progress.dsacks > 0 {
            self.tlp_high_seq = None;
        } else if cumulative > high {
            self.reduce();
            self.change_state(CaState::Cwr);
            self.keep_open();
        } else if !progress.advanced && !progress.newly_sacked {
            self.tlp_high_seq = None;
        }
    }

    /// tcp_try_keep_open().
    fn keep_open(&mut self) {
        let left_out = self.board.sacked_out + self.board.lost_out > 0;
        let state = if left_out || self.board.any_retransmitted() { CaState::Disorder } else { CaState::Open };
        if state != self.ca_state {
            self.change_state(state);
            self.high_seq = self.board.next();
        }
    }

    /// tcp_fastretrans_alert().
    fn recover(&mut self, progress: &Progress, echo: Instant) {
        if self.ca_state == CaState::Open {
            self.retrans_stamp = None;
        } else if self.board.first >= self.high_seq {
            match self.ca_state {
                CaState::Cwr if self.board.first > self.high_seq => self.change_state(CaState::Open),
                CaState::Recovery => {
                    if self.may_undo(progress, echo) {
                        self.undo(false);
                    }
                    self.change_state(CaState::Open);
                }
                _ => {}
            }
        }
        match self.ca_state {
            CaState::Recovery => {
                if progress.advanced && self.is_echo_early(echo) && self.undo_marker.is_some() {
                    self.undo(true);
                    self.keep_open();
                } else if self.undo_by_dsack() {
                    self.keep_open();
                }
                self.detect_losses();
            }
            CaState::Loss => {
                self.process_loss(progress, echo);
                self.detect_losses();
                if self.ca_state == CaState::Loss {
                    return;
                }
            }
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if self.ca_state <= CaState::Disorder {
                    self.undo_by_dsack();
                }
                self.detect_losses();
            }
        }
        if self.ca_state >= CaState::Recovery {
            return;
        }
        if self.board.lost_out == 0 {
            // tcp_try_to_open().
            if self.ca_state != CaState::Cwr {
                self.keep_open();
            }
            return;
        }
        self.enter_recovery();
    }

    /// tcp_enter_recovery().
    fn enter_recovery(&mut self) {
        self.init_undo();
        if !self.board.any_retransmitted() {
            self.retrans_stamp = None;
        }
        if self.ca_state < CaState::Cwr {
            self.reduce();
        }
        self.change_state(CaState::Recovery);
        self.high_seq = self.board.next();
    }

    /// tcp_init_undo(): as long as nothing was sent again, no DSACK can take it back.
    pub(super) fn init_undo(&mut self) {
        self.undo_marker = Some(self.board.first);
        self.undo_retrans = if self.board.retrans_out > 0 { i64::from(self.board.retrans_out) } else { -1 };
    }

    /// tcp_packet_delayed(), RFC 3522: the ACK answers what was sent before the first retransmission.
    fn is_echo_early(&self, echo: Instant) -> bool {
        self.retrans_stamp.is_some_and(|stamp| echo < stamp)
    }

    fn may_undo(&self, _progress: &Progress, echo: Instant) -> bool {
        self.undo_marker.is_some() && (self.undo_retrans == 0 || self.is_echo_early(echo))
    }

    /// tcp_try_undo_dsack().
    fn undo_by_dsack(&mut self) -> bool {
        if self.undo_marker.is_none() || self.undo_retrans != 0 {
            return false;
        }
        self.undo(false);
        true
    }

    /// tcp_undo_cwnd_reduction().
    fn undo(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        self.cwnd = self.ask(|cc, conn| cc.undo(conn));
        self.undo_marker = None;
    }

    /// tcp_process_loss(), with F-RTO (RFC 5682).
    fn process_loss(&mut self, progress: &Progress, echo: Instant) {
        let spurious =
            (self.frto && progress.original_delivered) || (progress.advanced && self.may_undo(progress, echo));
        if spurious && self.undo_marker.is_some() {
            self.undo(true);
            self.frto = false;
            self.change_state(CaState::Open);
            return;
        }
        if progress.advanced {
            self.frto = false;
        }
        if self.board.first >= self.high_seq {
            self.change_state(CaState::Open);
        }
    }

    fn reordering_window(&self) -> Duration {
        if !self.reord_seen && (self.ca_state >= CaState::Recovery || self.board.sacked_out >= 3) {
            return Duration::ZERO;
        }
        let quarter = Duration::from_micros(u64::from(self.min_rtt_us / 4));
        (quarter * u64::from(self.rack.steps)).min(self.srtt())
    }

    /// RFC 8985 section 6.2 step 5. Without SACK: three duplicate ACKs are not modelled, only the timer.
    fn detect_losses(&mut self) {
        let window = self.rack.rtt + self.reordering_window();
        let mut soonest: Option<Duration> = None;
        for number in self.board.numbers() {
            let Some(packet) = self.board.get(number) else { break };
            if packet.sacked || (packet.lost && !packet.retransmitted) {
                continue;
            }
            if (packet.sent, number) >= (self.rack.sent, self.rack.packet) {
                continue;
            }
            let waited = self.now.since(packet.sent);
            if waited >= window {
                self.board.mark_lost(number);
            } else {
                let left = window.saturating_sub(waited);
                soonest = Some(soonest.map_or(left, |other| other.max(left)));
            }
        }
        self.timers.reorder = soonest.map(|left| self.now + left + REORDER_TIMER_MIN);
    }

    /// tcp_rack_reo_timeout().
    pub(super) fn reordering_window_over(&mut self) {
        let before = self.board.lost;
        self.detect_losses();
        if self.board.lost > before && self.ca_state < CaState::Recovery {
            self.enter_recovery();
        }
    }

    /// What a kernel that asks at each lost packet would set inflight_hi to, as this ACK is processed.
    fn exact_trigger(&mut self) -> Option<u32> {
        let marks = std::mem::take(&mut self.board.marks);
        if self.cc.state().bw_probe_samples == 0 {
            return None;
        }
        let too_high =
            marks.into_iter().find(|(in_flight, lost)| u64::from(*lost) > u64::from(*in_flight) * 5 / 256)?;
        Some(self.cc.inflight_at_loss(too_high.0, too_high.1))
    }

    /// Checks what the ring rebuilt against what this model knows.
    fn compare(&mut self, sample: &Sample, ack: &Ack, newest: Option<Outstanding>) {
        let Some(packet) = newest.filter(|_| ack.has_packet == 1) else { return };
        let lost = self.board.lost.wrapping_sub(packet.tx_lost);
        let error = sample.tx_in_flight.abs_diff(packet.tx_in_flight);
        let within =
            |parts: u32| u64::from(u64::from(error) * 100 <= u64::from(packet.tx_in_flight) * u64::from(parts));
        let truth = &mut self.truth;
        truth.samples += 1;
        truth.in_flight_exact += u64::from(error == 0);
        truth.in_flight_within_1_percent += within(1);
        truth.in_flight_within_5_percent += within(5);
        let lost_error = sample.lost.abs_diff(lost);
        truth.lost_exact += u64::from(lost_error == 0);
        truth.lost_worst = truth.lost_worst.max(lost_error);
        let too_high = |lost: u32, in_flight: u32| lost > 0 && u64::from(lost) > u64::from(in_flight) * 5 / 256;
        truth.decisions_differ +=
            u64::from(too_high(lost, packet.tx_in_flight) != too_high(sample.lost, sample.tx_in_flight));
    }
}
