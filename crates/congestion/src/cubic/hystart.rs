//! HyStart++: leaves slow start as the queue begins to grow, before it overflows. RFC 9406.

use units::Duration;

use crate::round::Round;
use crate::{Ack, Connection};

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;

/// What slow start is to do with an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// Go on.
    Grow,
    /// Conservative slow start: a quarter of that.
    GrowLess,
    /// The queue has stood for five rounds: congestion avoidance.
    Leave,
}

/// State of the initial slow start.
#[derive(Debug, Clone, Copy)]
pub(super) struct HyStart {
    round: Round,
    last_min: Option<Duration>,
    current_min: Option<Duration>,
    samples: u32,
    /// In conservative slow start: the RTT as it began, and rounds in it.
    css: Option<(Duration, u32)>,
    /// Packets acknowledged towards the next of window.
    counted: u32,
}

impl HyStart {
    pub(super) const fn new() -> Self {
        Self { round: Round::NEW, last_min: None, current_min: None, samples: 0, css: None, counted: 0 }
    }

    /// RFC 9406, section 4.2.
    pub(super) fn on_ack(&mut self, conn: &Connection, ack: &Ack) -> Advice {
        if self.round.ends_with(conn, ack.sample.as_ref()) {
            self.last_min = self.current_min.take();
            self.samples = 0;
            if let Some((_, rounds)) = &mut self.css {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    return Advice::Leave;
                }
            }
        }
        let Some(rtt) = ack.rtt else { return self.advice() };
        let min = self.current_min.map_or(rtt, |min| min.min(rtt));
        self.current_min = Some(min);
        self.samples = self.samples.saturating_add(1);
        if self.samples < N_RTT_SAMPLE {
            return self.advice();
        }
        match (self.css, self.last_min) {
            (Some((baseline, _)), _) => {
                if min < baseline {
                    // It was no queue.
                    self.css = None;
                }
            }
            (None, Some(last)) => {
                let thresh = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if min >= last + thresh {
                    self.css = Some((min, 0));
                }
            }
            (None, None) => {}
        }
        self.advice()
    }

    fn advice(&self) -> Advice {
        if self.css.is_some() { Advice::GrowLess } else { Advice::Grow }
    }

    /// Packets of window for `acked` packets in conservative slow start.
    pub(super) fn slowed(&mut self, acked: u32) -> u32 {
        let counted = self.counted.saturating_add(acked);
        self.counted = counted % CSS_GROWTH_DIVISOR;
        counted / CSS_GROWTH_DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Instant};

    use super::*;
    use crate::RateSample;

    /// Ten ACKs of this RTT, all of one round.
    fn round(hystart: &mut HyStart, conn: &mut Connection, rtt_ms: u64) -> Advice {
        let sent_at = conn.delivered;
        let mut advice = Advice::Grow;
        for _ in 0..10 {
            conn.delivered += 1;
            let sample = Some(RateSample { prior_delivered: sent_at, ..RateSample::default() });
            let ack = Ack { rtt: Some(Duration::from_millis(rtt_ms)), newly_acked: 1, sample, ..Ack::default() };
            advice = hystart.on_ack(conn, &ack);
            if advice == Advice::Leave {
                return advice;
            }
        }
        advice
    }

    fn begun() -> (HyStart, Connection) {
        (HyStart::new(), Connection::new(Instant::ZERO, Bytes::new(1448)))
    }

    #[test]
    fn a_queue_that_stays_ends_slow_start_after_five_rounds() {
        let (mut hystart, mut conn) = begun();
        assert_eq!(round(&mut hystart, &mut conn, 40), Advice::Grow);
        assert_eq!(round(&mut hystart, &mut conn, 44), Advice::Grow, "40/8 is 5 ms");
        assert_eq!(round(&mut hystart, &mut conn, 50), Advice::GrowLess);
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, &mut conn, 60), Advice::GrowLess);
        }
        assert_eq!(round(&mut hystart, &mut conn, 60), Advice::Leave);
    }

    #[test]
    fn a_queue_that_goes_again_was_none() {
        let (mut hystart, mut conn) = begun();
        round(&mut hystart, &mut conn, 40);
        assert_eq!(round(&mut hystart, &mut conn, 50), Advice::GrowLess);
        assert_eq!(round(&mut hystart, &mut conn, 49), Advice::Grow);
        assert_eq!(round(&mut hystart, &mut conn, 49), Advice::Grow);
    }

    #[test]
    fn the_threshold_is_between_4_and_16_ms() {
        for (first, last_unchanged, changed) in [(8, 11, 12), (800, 815, 816)] {
            let (mut hystart, mut conn) = begun();
            round(&mut hystart, &mut conn, first);
            let (mut other, mut other_conn) = (hystart, conn);
            assert_eq!(round(&mut hystart, &mut conn, last_unchanged), Advice::Grow);
            assert_eq!(round(&mut other, &mut other_conn, changed), Advice::GrowLess);
        }
    }

    #[test]
    fn conservative_slow_start_grows_by_a_quarter() {
        let mut hystart = HyStart::new();
        let grown: u32 = (0..10).map(|_| hystart.slowed(2)).sum();
        assert_eq!(grown, 5);
    }
}
