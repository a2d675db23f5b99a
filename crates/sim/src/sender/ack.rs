//! What an ACK tells.

use congestion::{Ack as Delivered, Ignore, Recovery};
use units::{Duration, Instant};

use super::Sender;
use super::scoreboard::Outstanding;
use crate::segment::Ack;

/// What one ACK brought.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub advanced: bool,
    pub newly_sacked: bool,
    pub dsacks: u32,
    /// Data never sent again was delivered.
    pub original_delivered: bool,
    retransmitted_acked: bool,
    /// RTT of the newest original packet.
    rtt: Option<Duration>,
    /// RTT of the oldest original packet, for the timeout.
    oldest_rtt: Option<Duration>,
}

impl Sender {
    /// An ACK arrives. `sacked` are the packets that it newly reports out of order. [`Sender::send`] follows.
    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack, sacked: impl Iterator<Item = u64>) {
        self.now = now;
        if !self.established {
            return;
        }
        if ack.cumulative >= self.board.first() {
            self.echo = ack.sent;
            self.right_edge = self.right_edge.max(ack.right_edge);
        }
        let had_packets = self.board.outstanding() > 0;
        let delivered_before = self.sampler.delivered();
        let prior_in_flight = self.board.in_flight();
        self.lost_now = 0;

        let mut progress = self.deliver(ack, sacked);
        progress.dsacks = ack.duplicates.saturating_sub(self.duplicates_seen);
        self.duplicates_seen = self.duplicates_seen.max(ack.duplicates);
        self.update_rtt(&progress);
        self.note_duplicates(progress.dsacks);
        let is_tail_probe = self.process_probe(ack.cumulative, &progress);
        let marked = ack.congestion_experienced && self.options.ecn;
        if progress.dsacks > 0 || progress.newly_sacked || self.recovery != Recovery::Open || marked {
            self.recover(&progress, ack.echo, marked);
        }
        if progress.advanced {
            self.timers.backoff = 0;
            self.refill_buffer();
        }
        if progress.advanced || progress.newly_sacked {
            self.arm_timer();
        }
        if !had_packets {
            return;
        }
        let newly_acked = (self.sampler.delivered() - delivered_before) as u32;
        let sample = self.sampler.finish(now, self.rtt.min());
        let alone = sample.is_some_and(|sample| sample.prior_delivered + 1 == self.sampler.delivered());
        let delivered = Delivered {
            newly_acked,
            newly_lost: self.lost_now,
            newly_marked: u32::from(marked),
            prior_in_flight,
            rtt: progress.rtt,
            // `tcp_clean_rtx_queue`: a lone segment over a whole round trip.
            is_delayed: progress.advanced && newly_acked == 1 && alone,
            is_tail_probe,
            sample,
        };
        let reduces = self.recovery.is_reducing() && !self.controller.controls_recovery();
        if reduces && newly_acked > 0 {
            self.control.cwnd = self.prr.on_ack(
                newly_acked,
                self.lost_now,
                self.board.in_flight(),
                self.control.ssthresh,
                progress.advanced,
            );
        }
        let conn = self.connection();
        self.controller.on_ack(&conn, &delivered, &mut self.control, &mut Ignore);
        self.after_call();
    }

    fn deliver(&mut self, ack: &Ack, sacked: impl Iterator<Item = u64>) -> Progress {
        let mut progress = Progress::default();
        for number in sacked {
            if number < ack.cumulative {
                continue;
            }
            if let Some(packet) = self.board.sack(number) {
                progress.newly_sacked = true;
                self.delivered(&mut progress, number, &packet, false);
            }
        }
        while self.board.first() < ack.cumulative {
            let number = self.board.first();
            let Some(packet) = self.board.acknowledge_first() else { break };
            progress.advanced = true;
            progress.retransmitted_acked |= packet.was_ever_retransmitted();
            if !packet.is_sacked() {
                self.delivered(&mut progress, number, &packet, true);
            }
        }
        if progress.retransmitted_acked && progress.advanced && !progress.newly_sacked {
            // Karn: which of its transmissions was it?
            progress.rtt = None;
            progress.oldest_rtt = None;
        }
        progress
    }

    fn delivered(&mut self, progress: &mut Progress, number: u64, packet: &Outstanding, in_order: bool) {
        self.sampler.on_delivered(&packet.stamp, number);
        let sent = packet.stamp.sent_at;
        let rtt = self.now.since(sent);
        if !packet.was_ever_retransmitted() {
            progress.original_delivered = true;
            progress.rtt = Some(rtt);
            if in_order || progress.oldest_rtt.is_none() {
                progress.oldest_rtt.get_or_insert(rtt);
            }
            // Something sent later arrived before it.
            self.reordering_seen |= self.highest_delivered.is_some_and(|highest| number < highest);
        }
        self.highest_delivered = self.highest_delivered.max(Some(number));
        // RFC 8985 section 6.2 step 2: a retransmission delivered too soon was the original.
        if packet.was_ever_retransmitted() && self.rtt.min().is_some_and(|min| rtt < min) {
            return;
        }
        self.rack.rtt = rtt;
        if (sent, number) > self.rack.sent {
            self.rack.sent = (sent, number);
        }
        self.rack.advanced = true;
    }

    fn update_rtt(&mut self, progress: &Progress) {
        if let Some(rtt) = progress.rtt {
            self.rtt.note_min(rtt);
        }
        if let Some(rtt) = progress.oldest_rtt.or(progress.rtt) {
            self.rtt.sample(rtt);
        }
    }
}
