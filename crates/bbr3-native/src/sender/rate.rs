//! Delivery rate samples, as net/ipv4/tcp_rate.c takes them (Linux 6.12).

use units::Instant;

use super::scoreboard::Outstanding;
use crate::raw::Ack;

/// The connection's part.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    pub delivered: u32,
    pub delivered_at: Instant,
    pub first_sent: Instant,
    /// `delivered` at the end of the application-limited bubble, or 0.
    pub app_limited: u32,
}

/// The ACK's part.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub newest: Option<(u64, Outstanding)>,
    send_us: i64,
}

impl Sampler {
    /// tcp_rate_skb_sent(): the stamps of a packet sent now.
    pub fn stamp(&mut self, now: Instant, nothing_outstanding: bool) -> (Instant, u32, Instant, bool) {
        if nothing_outstanding {
            self.first_sent = now;
            self.delivered_at = now;
        }
        (self.first_sent, self.delivered, self.delivered_at, self.app_limited != 0)
    }

    /// tcp_rate_skb_delivered(), for each newly delivered packet.
    pub fn deliver(&mut self, taken: &mut Taken, number: u64, packet: Outstanding) {
        self.delivered = self.delivered.wrapping_add(1);
        let newer = taken.newest.is_none_or(|(last, _)| (packet.sent, number) > (self.first_sent, last));
        if newer {
            taken.newest = Some((number, packet));
            taken.send_us = packet.sent.since(packet.first_sent).as_micros() as i64;
            self.first_sent = packet.sent;
        }
    }

    /// tcp_rate_gen(). `end` is the sequence number behind the newest packet.
    pub fn finish(
        &mut self,
        taken: &Taken,
        now: Instant,
        delivered: u32,
        losses: u32,
        min_rtt_us: u32,
        end: u32,
    ) -> Ack {
        if self.app_limited != 0 && (self.app_limited.wrapping_sub(self.delivered) as i32) < 0 {
            self.app_limited = 0;
        }
        if delivered > 0 {
            self.delivered_at = now;
        }
        let mut ack =
            Ack { acked_sacked: delivered, losses: losses as i32, delivered: -1, interval_us: -1, ..Ack::default() };
        let Some((_, packet)) = taken.newest else { return ack };
        ack.has_packet = 1;
        ack.prior_delivered = packet.delivered;
        ack.delivered = self.delivered.wrapping_sub(packet.delivered) as i32;
        ack.last_end_seq = end;
        ack.is_app_limited = u8::from(packet.app_limited);
        ack.is_retrans = u8::from(packet.ever_retransmitted);
        let ack_us = now.since(packet.delivered_at).as_micros() as i64;
        let interval_us = taken.send_us.max(ack_us);
        if interval_us >= i64::from(min_rtt_us) {
            ack.interval_us = interval_us;
        }
        ack
    }
}
