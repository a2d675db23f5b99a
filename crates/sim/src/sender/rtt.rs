//! Round-trip times: RFC 6298, with Linux's lower bound of 200 ms on what it adds for variance.

use units::Duration;

const RTO_MIN: Duration = Duration::from_millis(200);
const RTO_MAX: Duration = Duration::from_secs(120);
/// RFC 6298 section 2.1, before a sample.
const RTO_INITIAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rtt {
    /// Smoothed, times 8; 0: none.
    smoothed_8: u64,
    /// Mean deviation, times 4.
    deviation_4: u64,
    min: u64,
}

impl Rtt {
    pub fn sample(&mut self, rtt: Duration) {
        let rtt = rtt.as_nanos().max(1);
        if self.smoothed_8 == 0 {
            self.smoothed_8 = rtt << 3;
            self.deviation_4 = rtt << 1;
            return;
        }
        let error = rtt.abs_diff(self.smoothed_8 >> 3);
        self.smoothed_8 = self.smoothed_8 - (self.smoothed_8 >> 3) + rtt;
        self.deviation_4 = self.deviation_4 - (self.deviation_4 >> 2) + error;
    }

    pub fn note_min(&mut self, rtt: Duration) {
        let rtt = rtt.as_nanos().max(1);
        self.min = if self.min == 0 { rtt } else { self.min.min(rtt) };
    }

    pub fn smoothed(&self) -> Option<Duration> {
        (self.smoothed_8 > 0).then(|| Duration::from_nanos(self.smoothed_8 >> 3))
    }

    pub fn min(&self) -> Option<Duration> {
        (self.min > 0).then(|| Duration::from_nanos(self.min))
    }

    /// The retransmission timeout after `backoff` in a row.
    pub fn timeout(&self, backoff: u32) -> Duration {
        let base = match self.smoothed() {
            None => RTO_INITIAL,
            Some(smoothed) => smoothed + Duration::from_nanos(self.deviation_4).max(RTO_MIN),
        };
        (base * (1u64 << backoff.min(10))).min(RTO_MAX)
    }

    /// The time to wait for a tail loss probe (RFC 8985 section 7.2): for a single packet the receiver may delay its ACK.
    pub fn probe_timeout(&self, outstanding: u32) -> Duration {
        let Some(smoothed) = self.smoothed() else { return self.timeout(0) };
        let more = if outstanding == 1 { RTO_MIN } else { Duration::from_millis(2) };
        (smoothed * 2 + more).min(self.timeout(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_first_sample_sets_both_and_the_timeout_has_linux_s_floor() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(0), RTO_INITIAL);
        rtt.sample(MS(80));
        assert_eq!(rtt.smoothed(), Some(MS(80)));
        assert_eq!(rtt.timeout(0), MS(280));
        assert_eq!(rtt.timeout(2), MS(280) * 4);
        assert_eq!(rtt.timeout(40), RTO_MAX);
    }

    #[test]
    fn it_follows_a_change_by_an_eighth_and_a_quarter() {
        let mut rtt = Rtt::default();
        rtt.sample(MS(800));
        rtt.sample(MS(1600));
        // RFC 6298: SRTT = 7/8 * 800 + 1/8 * 1600; RTTVAR = 3/4 * 400 + 1/4 * 800.
        assert_eq!(rtt.smoothed(), Some(MS(900)));
        assert_eq!(rtt.timeout(0), MS(900) + MS(4 * 500));
    }

    #[test]
    fn a_probe_waits_two_round_trips_and_longer_for_a_lone_packet() {
        let mut rtt = Rtt::default();
        rtt.sample(MS(50));
        assert_eq!(rtt.probe_timeout(2), MS(102));
        assert_eq!(rtt.probe_timeout(1), MS(250), "no later than the timeout");
    }
}
