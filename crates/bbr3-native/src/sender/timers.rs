use units::{Duration, Instant};

use super::Sender;
use crate::CaState;

const RTO_MIN: Duration = Duration::from_millis(200);

/// When something is due.
#[derive(Debug, Default)]
pub(super) struct Timers {
    pub pacing: Option<Instant>,
    /// Retransmission timeout, or tail loss probe.
    pub retransmit: Option<Instant>,
    pub is_probe: bool,
    /// RACK: a packet may be lost by then.
    pub reorder: Option<Instant>,
    pub backoff: u32,
}

impl Sender {
    /// When [`Sender::on_timer`] has something to do.
    pub fn next_event(&self) -> Option<Instant> {
        [self.timers.pacing, self.timers.retransmit, self.timers.reorder].into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn on_timer(&mut self, now: Instant) {
        self.now = now;
        let due = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        if due(self.timers.reorder) {
            self.timers.reorder = None;
            self.reordering_window_over();
        }
        if due(self.timers.retransmit) {
            self.timers.retransmit = None;
            if self.timers.is_probe { self.probe_tail() } else { self.time_out() }
        }
        self.timers.pacing = self.timers.pacing.filter(|at| *at > now);
        self.send(now);
    }

    /// RFC 6298, with Linux's lower bound on the variance.
    fn timeout(&self) -> Duration {
        if self.srtt_us == 0 {
            return Duration::from_secs(1);
        }
        let variance = Duration::from_micros(4 * u64::from(self.rttvar_us)).max(RTO_MIN);
        (self.srtt() + variance) * (1 << self.timers.backoff.min(8))
    }

    /// RFC 8985 section 7.2.
    fn probe_timeout(&self) -> Duration {
        if self.srtt_us == 0 {
            return self.timeout();
        }
        let more = if self.board.packets_out() == 1 { RTO_MIN } else { Duration::from_millis(2) };
        (self.srtt() * 2 + more).min(self.timeout())
    }

    fn may_probe(&self) -> bool {
        matches!(self.ca_state, CaState::Open | CaState::Cwr)
            && self.has_sack
            && self.board.sacked_out == 0
            && self.tlp_high_seq.is_none()
            && self.timers.backoff == 0
    }

    pub(super) fn arm_timer_after_send(&mut self, first_out: bool) {
        if first_out || self.timers.retransmit.is_none() {
            self.arm_timer();
        } else if self.timers.is_probe && self.may_probe() {
            self.timers.retransmit = Some(self.now + self.probe_timeout());
        }
    }

    pub(super) fn arm_timer(&mut self) {
        if self.board.packets_out() == 0 {
            self.timers.retransmit = None;
            return;
        }
        self.timers.is_probe = self.may_probe();
        let wait = if self.timers.is_probe { self.probe_timeout() } else { self.timeout() };
        self.timers.retransmit = Some(self.now + wait);
    }

    /// tcp_send_loss_probe(): new data beyond the window, or the last packet again.
    fn probe_tail(&mut self) {
        if self.board.packets_out() == 0 {
            return;
        }
        self.timers.is_probe = false;
        if self.unsent() > 0 {
            self.tlp_retrans = false;
            self.transmit_new(1);
        } else {
            let last = self.board.next() - 1;
            if self.board.get(last).is_some_and(|packet| packet.sacked) {
                self.timers.retransmit = Some(self.now + self.timeout());
                return;
            }
            self.tlp_retrans = true;
            self.retransmit(last);
        }
        self.tlp_high_seq = Some(self.board.next());
        self.timers.retransmit = Some(self.now + self.timeout());
    }

    /// tcp_enter_loss(), after RFC 6298 section 5.
    fn time_out(&mut self) {
        if self.board.packets_out() == 0 {
            return;
        }
        let numbers = self.board.numbers();
        let new_recovery = self.ca_state < CaState::Recovery;
        for number in numbers.clone() {
            self.board.mark_lost(number);
        }
        let again = self.ca_state == CaState::Loss && self.timers.backoff > 0;
        if self.ca_state <= CaState::Disorder
            || self.board.first >= self.high_seq
            || (self.ca_state == CaState::Loss && !again)
        {
            self.prior_cwnd = self.cwnd;
            self.ssthresh = self.ask(|cc, conn| cc.ssthresh(conn));
            self.init_undo();
        }
        self.cwnd = self.board.in_flight() + 1;
        self.change_state(CaState::Loss);
        self.high_seq = self.board.next();
        self.frto = new_recovery && !again;
        self.tlp_high_seq = None;
        self.timers.reorder = None;
        self.timers.backoff += 1;
        self.retrans_stamp = None;
        // The timeout's own retransmission is not paced.
        self.retransmit(self.board.first);
        self.timers.is_probe = false;
        self.timers.retransmit = Some(self.now + self.timeout());
    }
}
