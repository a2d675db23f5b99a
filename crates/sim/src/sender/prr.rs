//! Proportional rate reduction: RFC 6937 with the slow-start reduction bound of its successor, draft-ietf-tcpm-prr-rfc6937bis, as
//! `tcp_cwnd_reduction` of Linux 6.18 has it.

/// One reduction of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prr {
    /// The window when it began (the draft's RecoverFS).
    prior_cwnd: u32,
    /// Packets delivered since.
    delivered: u64,
    /// Packets sent since.
    out: u64,
}

impl Prr {
    pub fn begin(cwnd: u32) -> Self {
        Self { prior_cwnd: cwnd.max(1), delivered: 0, out: 0 }
    }

    pub fn sent(&mut self, packets: u32) {
        self.out += u64::from(packets);
    }

    /// An ACK that delivered `delivered` packets and marked `lost` lost, with `in_flight` left. Returns the window.
    pub fn on_ack(&mut self, delivered: u32, lost: u32, in_flight: u32, ssthresh: u32, advanced: bool) -> u32 {
        self.delivered += u64::from(delivered);
        let room = i64::from(ssthresh) - i64::from(in_flight);
        let by_out = |count: u64| i64::try_from(count).unwrap_or(i64::MAX) - self.out as i64;
        let send = if room < 0 {
            let share =
                (u128::from(ssthresh) * u128::from(self.delivered)).div_ceil(u128::from(self.prior_cwnd.max(1)));
            by_out(u64::try_from(share).unwrap_or(u64::MAX))
        } else {
            // A good ACK, one that shows no further loss, allows slow start's growth.
            let safe = by_out(self.delivered).max(i64::from(delivered)) + i64::from(advanced && lost == 0);
            safe.min(room)
        };
        // Entering recovery always sends the first retransmission.
        let send = send.max(i64::from(self.out == 0)).max(0);
        in_flight.saturating_add(u32::try_from(send).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937, section 4: 20 packets in flight, the first lost, halved. Each of 19 ACKs SACKs one.
    #[test]
    fn half_the_packets_leave_over_one_round_trip_and_the_window_ends_at_the_threshold() {
        let mut prr = Prr::begin(20);
        let (mut in_flight, ssthresh) = (20 - 1, 10);
        let mut sent = Vec::new();
        for ack in 0..19 {
            in_flight -= 1;
            let window = prr.on_ack(1, u32::from(ack == 0), in_flight, ssthresh, false);
            let now = window.saturating_sub(in_flight);
            prr.sent(now);
            in_flight += now;
            sent.push(now);
        }
        assert_eq!(in_flight, 10, "{sent:?}");
        assert!(sent.iter().all(|now| *now <= 1), "never a burst: {sent:?}");
        assert_eq!(sent.iter().sum::<u32>(), 10);
    }

    /// RFC 6937, section 4, second example: 15 of 20 lost. The window may grow back to the threshold, no faster than slow start.
    #[test]
    fn after_heavy_loss_it_grows_back_like_slow_start_and_not_beyond_the_threshold() {
        let mut prr = Prr::begin(20);
        let ssthresh = 10;
        // Four more arrive, then the retransmissions are acknowledged in order.
        let mut in_flight = 20 - 15;
        for _ in 0..5 {
            in_flight -= 1;
            let window = prr.on_ack(1, 0, in_flight, ssthresh, true);
            assert!(window <= ssthresh && window - in_flight <= 2);
            prr.sent(window - in_flight);
            in_flight = window;
        }
        for _ in 0..20 {
            in_flight -= 1;
            let window = prr.on_ack(1, 0, in_flight, ssthresh, true);
            assert!(window <= ssthresh);
            prr.sent(window - in_flight);
            in_flight = window;
        }
        assert_eq!(in_flight, ssthresh);
    }

    #[test]
    fn a_reduction_that_has_sent_nothing_sends_one_even_where_too_much_is_in_flight() {
        let mut prr = Prr::begin(100);
        assert_eq!(prr.on_ack(1, 1, 98, 50, false), 99);
        prr.sent(1);
        assert_eq!(prr.on_ack(1, 0, 98, 50, false), 98);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let mut prr = Prr::begin(1);
        assert_eq!(prr.on_ack(u32::MAX, 0, u32::MAX, u32::MAX, true), u32::MAX);
        assert!(prr.on_ack(u32::MAX, 0, 0, u32::MAX, true) > 0);
    }
}
