//! Finding losses, repairing them, and finding out that there were none.

use congestion::{Cause, Ignore, Recovery, Undo};
use units::{Duration, Instant};

use super::Sender;
use super::ack::Progress;

/// Packets reported out of order that are taken for a loss at once, while no reordering was seen (DupThresh of RFC 6675).
const DUPLICATE_THRESHOLD: u32 = 3;

impl Sender {
    /// DSACKs: each takes back one retransmission, and widens RACK's patience.
    pub(super) fn note_duplicates(&mut self, dsacks: u32) {
        if dsacks == 0 {
            return;
        }
        if self.undo.is_some()
            && let Some(left) = &mut self.undo_retransmissions
        {
            *left = left.saturating_sub(u64::from(dsacks));
        }
        if self.reordering_seen {
            self.rack.steps = self.rack.steps.saturating_add(1);
        }
    }

    /// RFC 8985 section 7.4, `tcp_process_tlp_ack`. Whether the ACK is for exactly a retransmitted probe.
    pub(super) fn process_probe(&mut self, cumulative: u64, progress: &Progress) -> bool {
        let Some(end) = self.probe_end else { return false };
        if cumulative < end {
            return false;
        }
        if !self.probe_retransmits || progress.dsacks > 0 {
            self.probe_end = None;
        } else if cumulative > end {
            // The probe repaired a loss that nothing else told of.
            self.reduce(Cause::TailLoss);
            self.change_state(Recovery::Cwr);
            self.end_reduction();
            self.keep_open();
        } else if !progress.advanced && !progress.newly_sacked {
            self.probe_end = None;
        }
        true
    }

    /// `tcp_try_keep_open`.
    fn keep_open(&mut self) {
        let left_out = self.board.sacked_out() + self.board.lost_out() > 0;
        let state = if left_out || self.board.any_retransmitted() { Recovery::Disorder } else { Recovery::Open };
        if state != self.recovery {
            self.change_state(state);
            self.recovery_end = self.board.next();
        }
    }

    /// `tcp_end_cwnd_reduction`.
    fn end_reduction(&mut self) {
        if !self.controller.controls_recovery() {
            self.control.cwnd = self.control.ssthresh.max(1);
        }
    }

    /// `tcp_fastretrans_alert`.
    pub(super) fn recover(&mut self, progress: &Progress, echo: Instant, marked: bool) {
        if self.recovery == Recovery::Open {
            self.first_retransmission = None;
        } else if self.board.first() >= self.recovery_end {
            match self.recovery {
                Recovery::Cwr if self.board.first() > self.recovery_end => {
                    self.end_reduction();
                    self.change_state(Recovery::Open);
                }
                Recovery::Recovery => {
                    if self.may_undo(echo) {
                        self.undo(false);
                    } else {
                        self.end_reduction();
                    }
                    self.change_state(Recovery::Open);
                }
                _ => {}
            }
        }
        match self.recovery {
            Recovery::Recovery => {
                if progress.advanced && self.is_echo_early(echo) && self.undo.is_some() {
                    self.undo(true);
                    self.keep_open();
                } else if self.undo_by_dsack() {
                    self.keep_open();
                }
                self.detect_losses();
            }
            Recovery::Loss => {
                self.process_loss(progress, echo);
                self.detect_losses();
                if self.recovery == Recovery::Loss {
                    return;
                }
            }
            Recovery::Open | Recovery::Disorder | Recovery::Cwr => {
                if self.recovery <= Recovery::Disorder {
                    self.undo_by_dsack();
                }
                self.detect_losses();
            }
        }
        if self.recovery >= Recovery::Recovery {
            return;
        }
        if self.board.lost_out() > 0 {
            return self.enter_recovery();
        }
        // `tcp_try_to_open`.
        if marked && self.recovery < Recovery::Cwr {
            self.undo = None;
            self.reduce(Cause::Ecn);
            self.change_state(Recovery::Cwr);
        }
        if self.recovery != Recovery::Cwr {
            self.keep_open();
        }
    }

    /// `tcp_enter_recovery`.
    fn enter_recovery(&mut self) {
        self.counters.recoveries += 1;
        if !self.board.any_retransmitted() {
            self.first_retransmission = None;
        }
        if self.recovery < Recovery::Cwr {
            self.init_undo();
            self.reduce(Cause::Loss);
        }
        self.change_state(Recovery::Recovery);
        self.recovery_end = self.board.next();
    }

    /// `tcp_init_undo`: as long as nothing was sent again, no DSACK can take it back.
    pub(super) fn init_undo(&mut self) {
        self.undo = Some(Undo { prior_cwnd: self.control.cwnd, prior_ssthresh: self.control.ssthresh });
        let again = self.board.retrans_out();
        self.undo_retransmissions = (again > 0).then_some(u64::from(again));
    }

    /// `tcp_packet_delayed`, RFC 3522: the ACK answers what was sent before the first retransmission.
    fn is_echo_early(&self, echo: Instant) -> bool {
        self.first_retransmission.is_some_and(|first| echo < first)
    }

    fn may_undo(&self, echo: Instant) -> bool {
        self.undo.is_some() && (self.undo_retransmissions == Some(0) || self.is_echo_early(echo))
    }

    /// `tcp_try_undo_dsack`.
    fn undo_by_dsack(&mut self) -> bool {
        if self.undo.is_none() || self.undo_retransmissions != Some(0) {
            return false;
        }
        self.undo(false);
        true
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
        }
        let Some(undo) = self.undo.take() else { return };
        self.counters.undone += 1;
        let conn = self.connection();
        self.controller.on_undo(&conn, &undo, &mut self.control, &mut Ignore);
        self.after_call();
    }

    /// `tcp_process_loss`, with F-RTO (RFC 5682).
    fn process_loss(&mut self, progress: &Progress, echo: Instant) {
        let spurious = (self.frto && progress.original_delivered) || (progress.advanced && self.may_undo(echo));
        if spurious && self.undo.is_some() {
            self.undo(true);
            self.frto = false;
            self.change_state(Recovery::Open);
            return;
        }
        if progress.advanced {
            self.frto = false;
        }
        if self.board.first() >= self.recovery_end {
            self.change_state(Recovery::Open);
        }
    }

    fn reordering_window(&self) -> Duration {
        let threshold = self.recovery >= Recovery::Recovery || self.board.sacked_out() >= DUPLICATE_THRESHOLD;
        if !self.reordering_seen && threshold {
            return Duration::ZERO;
        }
        let quarter = self.rtt.min().unwrap_or(Duration::ZERO) / 4;
        (quarter * u64::from(self.rack.steps)).min(self.rtt.smoothed().unwrap_or(quarter))
    }

    /// RFC 8985 section 6.2 step 5: what was sent long enough before something that arrived is lost.
    fn detect_losses(&mut self) {
        if !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        self.mark_overdue();
    }

    fn mark_overdue(&mut self) {
        let patience = self.rack.rtt + self.reordering_window();
        self.timers.reordering = Instant::MAX;
        while let Some((number, sent)) = self.board.earliest_before(self.rack.sent) {
            let overdue = sent + patience;
            if overdue > self.now {
                // The last of the candidates was sent no later than what arrived: then all are overdue.
                self.timers.reordering = (self.rack.sent.0 + patience).max(overdue);
                return;
            }
            self.mark_lost(number);
        }
    }

    /// `tcp_rack_reo_timeout`.
    pub(super) fn reordering_window_over(&mut self) {
        self.mark_overdue();
        if self.board.lost_out() > self.board.retrans_out() && self.recovery < Recovery::Recovery {
            self.enter_recovery();
        }
    }

    /// Marks one packet lost and tells the controller.
    pub(super) fn mark_lost(&mut self, number: u64) {
        let Some(stamp) = self.board.mark_lost(number) else { return };
        let lost = self.sampler.on_lost(&stamp);
        self.lost_now += 1;
        let conn = self.connection();
        self.controller.on_lost(&conn, &lost, &mut self.control, &mut Ignore);
        self.after_call();
    }
}
