use units::{Duration, Instant};

use crate::{Lost, RateSample};

/// Notes on a packet as it was sent: the draft's `P`. The transport keeps them with the packet until it is acknowledged; a
/// retransmission gets new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketStamp {
    /// When it was sent.
    pub sent_at: Instant,
    first_sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    lost: u64,
    tx_in_flight: u32,
    is_app_limited: bool,
}

/// Measures how fast the network delivers: draft-ietf-ccwg-bbr, "Delivery Rate Samples", as net/ipv4/tcp_rate.c of Linux 6.12 does.
///
/// For each packet delivered, the packets delivered while it was on its way are divided by the longer of two times: in which they were
/// sent, and in which their ACKs came in. So neither a burst sent nor a burst of ACKs makes the path look faster than it is.
///
/// ```
/// use congestion::RateSampler;
/// use units::{Duration, Instant};
///
/// let at = |ms| Instant::ZERO + Duration::from_millis(ms);
/// let mut sampler = RateSampler::new(Instant::ZERO);
/// // Two packets, 1 ms apart; each is acknowledged after 10 ms.
/// let first = sampler.on_sent(at(0), 1, true);
/// let second = sampler.on_sent(at(1), 2, false);
/// sampler.on_delivered(&first, 1);
/// sampler.finish(at(10), None);
/// sampler.on_delivered(&second, 2);
/// let sample = sampler.finish(at(11), None).unwrap();
/// // Both were delivered while the second was on its way.
/// assert_eq!((sample.delivered, sample.interval), (2, Some(Duration::from_millis(11))));
/// ```
#[derive(Debug, Clone)]
pub struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    lost: u64,
    first_sent_at: Instant,
    /// `delivered` at the end of the application-limited bubble.
    app_limited_until: Option<u64>,
    newest: Option<Newest>,
}

/// The most recently sent of the packets that one ACK delivers.
#[derive(Debug, Clone, Copy)]
struct Newest {
    stamp: PacketStamp,
    order: u64,
    send_elapsed: Duration,
}

impl RateSampler {
    /// For a connection that has sent nothing.
    pub const fn new(now: Instant) -> Self {
        Self { delivered: 0, delivered_at: now, lost: 0, first_sent_at: now, app_limited_until: None, newest: None }
    }

    /// Packets delivered so far: [`Connection::delivered`](crate::Connection::delivered).
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// [`Connection::delivered_at`](crate::Connection::delivered_at).
    pub const fn delivered_at(&self) -> Instant {
        self.delivered_at
    }

    /// Packets marked lost so far: [`Connection::lost`](crate::Connection::lost).
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// [`Connection::is_app_limited`](crate::Connection::is_app_limited).
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// A packet is sent, the first time or again. `in_flight` counts it; `nothing_outstanding`: before it nothing was outstanding, so the
    /// flight begins anew.
    pub fn on_sent(&mut self, now: Instant, in_flight: u32, nothing_outstanding: bool) -> PacketStamp {
        if nothing_outstanding {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        PacketStamp {
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            tx_in_flight: in_flight,
            is_app_limited: self.app_limited_until.is_some(),
        }
    }

    /// A packet is delivered: acknowledged for the first time, in order or selectively. `order` decides which of two packets sent at the
    /// same time was the later: a sequence or packet number.
    pub fn on_delivered(&mut self, stamp: &PacketStamp, order: u64) {
        self.on_delivered_together(stamp, order, 1);
    }

    /// The same for packets that were sent together and share one stamp, as with segmentation offload.
    pub fn on_delivered_together(&mut self, stamp: &PacketStamp, order: u64, packets: u32) {
        self.delivered = self.delivered.saturating_add(packets.into());
        let newer = match &self.newest {
            None => true,
            Some(newest) => (stamp.sent_at, order) > (newest.stamp.sent_at, newest.order),
        };
        if newer {
            let send_elapsed = stamp.sent_at.since(stamp.first_sent_at);
            self.newest = Some(Newest { stamp: *stamp, order, send_elapsed });
            // The next flight's send time is counted from here.
            self.first_sent_at = stamp.sent_at;
        }
    }

    /// A packet is marked lost. Returns what [`Controller::on_lost`](crate::Controller::on_lost) wants to know of it.
    pub fn on_lost(&mut self, stamp: &PacketStamp) -> Lost {
        self.on_lost_together(stamp, 1)
    }

    /// The same for packets that were sent together and share one stamp.
    pub fn on_lost_together(&mut self, stamp: &PacketStamp, packets: u32) -> Lost {
        let lost_before = self.lost.saturating_sub(stamp.lost).min(u64::from(u32::MAX)) as u32;
        self.lost = self.lost.saturating_add(packets.into());
        Lost {
            packets,
            tx_in_flight: Some(stamp.tx_in_flight),
            lost_before,
            is_app_limited: stamp.is_app_limited,
            crossing: None,
        }
    }

    /// An ACK has been processed. Returns what its newest packet tells; `None` where it delivered nothing. An interval below `min_rtt` is
    /// no possible one and left out: the packet is likely to have been taken for its own retransmission.
    pub fn finish(&mut self, now: Instant, min_rtt: Option<Duration>) -> Option<RateSample> {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let Newest { stamp, send_elapsed, .. } = self.newest.take()?;
        self.delivered_at = now;
        let ack_elapsed = now.since(stamp.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        let is_possible = interval.as_micros() > 0 && min_rtt.is_none_or(|min| interval >= min);
        let between = |now: u64, then: u64| now.saturating_sub(then).min(u64::from(u32::MAX)) as u32;
        Some(RateSample {
            prior_delivered: stamp.delivered,
            delivered: between(self.delivered, stamp.delivered),
            interval: is_possible.then_some(interval),
            is_app_limited: stamp.is_app_limited,
            tx_in_flight: Some(stamp.tx_in_flight),
            lost: between(self.lost, stamp.lost),
        })
    }

    /// Everything sent from now on is application-limited until what is `in_flight` now is delivered: draft,
    /// MarkConnectionAppLimited(). Call it where the application has nothing more to send, nothing waits below the transport, the window
    /// has room, and all that was lost has been sent again; and where [`Control::mark_app_limited`](crate::Control::mark_app_limited) is set.
    pub fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight.into()).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn a_burst_of_acks_does_not_make_the_path_look_faster() {
        let mut sampler = RateSampler::new(at(0));
        // Ten packets, 1 ms apart, all acknowledged within 1 us.
        let stamps: [PacketStamp; 10] =
            core::array::from_fn(|packet| sampler.on_sent(at(packet as u64 * 1000), packet as u32 + 1, packet == 0));
        for (packet, stamp) in stamps.iter().enumerate() {
            sampler.on_delivered(stamp, packet as u64);
        }
        let sample = sampler.finish(at(20_000), None).unwrap();
        assert_eq!((sample.delivered, sample.interval), (10, Some(Duration::from_millis(20))));

        let next = sampler.on_sent(at(20_000), 1, false);
        let after = sampler.on_sent(at(30_000), 2, false);
        sampler.on_delivered(&next, 10);
        sampler.on_delivered(&after, 11);
        // The last packet of the first flight left 21 ms before: that counts, not the 10 ms since its ACK.
        let sample = sampler.finish(at(30_001), None).unwrap();
        assert_eq!((sample.delivered, sample.interval), (2, Some(Duration::from_millis(21))));
    }

    #[test]
    fn an_interval_below_the_minimum_rtt_is_left_out() {
        let mut sampler = RateSampler::new(at(0));
        let stamp = sampler.on_sent(at(0), 1, true);
        sampler.on_delivered(&stamp, 0);
        let sample = sampler.finish(at(9_999), Some(Duration::from_millis(10))).unwrap();
        assert_eq!((sample.interval, sample.delivered), (None, 1));
    }

    #[test]
    fn a_bubble_ends_once_all_that_was_in_flight_is_delivered() {
        let mut sampler = RateSampler::new(at(0));
        let before = sampler.on_sent(at(0), 1, true);
        sampler.mark_app_limited(1);
        let within = sampler.on_sent(at(1), 2, false);
        sampler.on_delivered(&before, 0);
        assert!(!sampler.finish(at(10), None).unwrap().is_app_limited);
        assert!(sampler.is_app_limited());
        sampler.on_delivered(&within, 1);
        assert!(sampler.finish(at(11), None).unwrap().is_app_limited);
        assert!(!sampler.is_app_limited());
        assert!(!sampler.on_sent(at(12), 1, true).is_app_limited);
    }

    #[test]
    fn a_lost_packet_tells_its_flight_and_what_was_lost_of_it() {
        let mut sampler = RateSampler::new(at(0));
        let first = sampler.on_sent(at(0), 7, true);
        let second = sampler.on_sent(at(0), 8, false);
        assert_eq!(sampler.on_lost(&first).lost_before, 0);
        let lost = sampler.on_lost(&second);
        assert_eq!((lost.packets, lost.tx_in_flight, lost.lost_before), (1, Some(8), 1));
        assert_eq!(sampler.lost(), 2);
        assert!(sampler.finish(at(1), None).is_none());
    }
}
