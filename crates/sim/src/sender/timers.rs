//! Timeouts, tail loss probes and RACK's patience.

use congestion::{Cause, Recovery};
use units::{Duration, Instant};

use super::Sender;

/// When something is due; `Instant::MAX` for never.
#[derive(Debug)]
pub(super) struct Timers {
    pub pacing: Instant,
    /// Retransmission timeout, or tail loss probe.
    pub retransmit: Instant,
    pub is_probe: bool,
    /// RACK: packets may be lost by then.
    pub reordering: Instant,
    pub backoff: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self { pacing: Instant::MAX, retransmit: Instant::MAX, is_probe: false, reordering: Instant::MAX, backoff: 0 }
    }
}

impl Sender {
    /// When [`Sender::on_timer`] has something to do.
    #[inline]
    pub(crate) fn next_event(&self) -> Instant {
        self.timers.pacing.min(self.timers.retransmit).min(self.timers.reordering)
    }

    /// Does what is due, except to send: [`Sender::send`] follows.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        self.now = now;
        if self.timers.reordering <= now {
            self.timers.reordering = Instant::MAX;
            self.reordering_window_over();
        }
        if self.timers.retransmit <= now {
            self.timers.retransmit = Instant::MAX;
            if self.timers.is_probe { self.probe_tail() } else { self.time_out() }
        }
        if self.timers.pacing <= now {
            self.timers.pacing = Instant::MAX;
        }
    }

    fn timeout(&self) -> Duration {
        self.rtt.timeout(self.timers.backoff)
    }

    fn may_probe(&self) -> bool {
        matches!(self.recovery, Recovery::Open | Recovery::Cwr)
            && self.board.sacked_out() == 0
            && self.probe_end.is_none()
            && self.timers.backoff == 0
    }

    pub(super) fn arm_timer_after_send(&mut self, first_out: bool) {
        if first_out || self.timers.retransmit == Instant::MAX {
            self.arm_timer();
        } else if self.timers.is_probe && self.may_probe() {
            self.timers.retransmit = self.now + self.rtt.probe_timeout(self.board.outstanding());
        }
    }

    pub(super) fn arm_timer(&mut self) {
        if self.board.outstanding() == 0 {
            self.timers.retransmit = Instant::MAX;
            return;
        }
        self.timers.is_probe = self.may_probe();
        let wait = if self.timers.is_probe { self.rtt.probe_timeout(self.board.outstanding()) } else { self.timeout() };
        self.timers.retransmit = self.now + wait;
    }

    /// RFC 8985 section 7.3, `tcp_send_loss_probe`: new data beyond the window, or the last packet again.
    fn probe_tail(&mut self) {
        if self.board.outstanding() == 0 {
            return;
        }
        self.timers.is_probe = false;
        let last = self.board.next() - 1;
        let room = self.right_edge > self.board.next();
        if self.unsent() > 0 && room {
            self.probe_retransmits = false;
            self.transmit_new(1);
        } else if self.board.get(last).is_some_and(|packet| packet.is_sacked()) {
            self.timers.retransmit = self.now + self.timeout();
            return;
        } else {
            self.probe_retransmits = true;
            self.retransmit(last);
        }
        self.counters.probes += 1;
        self.timers.is_probe = false;
        self.probe_end = Some(self.board.next());
        self.timers.retransmit = self.now + self.timeout();
    }

    /// `tcp_enter_loss`, after RFC 6298 section 5.
    fn time_out(&mut self) {
        if self.board.outstanding() == 0 {
            return;
        }
        self.counters.timeouts += 1;
        let new_recovery = self.recovery < Recovery::Recovery;
        let again = self.recovery == Recovery::Loss && self.timers.backoff > 0;
        if !again {
            if self.recovery <= Recovery::Disorder || self.board.first() >= self.recovery_end || self.undo.is_none() {
                self.init_undo();
            }
            self.reduce(Cause::Timeout);
        }
        for number in self.board.numbers() {
            // What was sent just now may still arrive.
            let recent = number != self.board.first()
                && self.board.get(number).is_some_and(|p| self.now.since(p.stamp.sent_at) < self.rack.rtt);
            if !recent {
                self.mark_lost(number);
            }
        }
        self.control.cwnd = self.board.in_flight() + 1;
        self.change_state(Recovery::Loss);
        self.recovery_end = self.board.next();
        self.frto = new_recovery && !again;
        self.probe_end = None;
        self.timers.reordering = Instant::MAX;
        self.timers.backoff += 1;
        self.first_retransmission = None;
        // The timeout's own retransmission is not paced.
        self.retransmit(self.board.first());
        self.timers.is_probe = false;
        self.timers.retransmit = self.now + self.timeout();
    }
}
