//! The rate of a policer: where two intervals in a row lose a fifth of their packets at the same delivery rate, that rate is used instead of
//! the maximum for 48 round trips.

use units::Duration;

use super::{Bandwidth, Bbr1, Call, Connection, Mode, UNIT};

/// Round trips of an interval, at least; four times as many are too long.
const INTERVAL_ROUNDS: u32 = 4;
/// Loss rate of an interval that looks like a policer's, in 1/256: a fifth.
const LOSS_THRESH: u64 = 50;
/// Two rates are the same within an eighth, or 500 bytes per second.
const SAME_SHARE: u64 = (UNIT >> 3) as u64;
const SAME_BYTES: u64 = 500;
/// For how many round trips the rate is used.
const USE_ROUNDS: u32 = 48;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LongTerm {
    is_sampling: bool,
    is_used: bool,
    /// Of the last interval, or the policer's.
    bw: Bandwidth,
    rounds: u32,
    /// The interval's start.
    since: units::Instant,
    delivered: u64,
    lost: u64,
}

impl LongTerm {
    /// The policer's rate, while it is used.
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.is_used.then_some(self.bw)
    }

    fn start_interval(&mut self, conn: &Connection) {
        // Whole milliseconds, as Linux.
        self.since = units::Instant::ZERO + Duration::from_millis(conn.delivered_at.as_nanos() / 1_000_000);
        self.delivered = conn.delivered;
        self.lost = conn.lost;
        self.rounds = 0;
    }

    pub(super) fn reset(&mut self, conn: &Connection) {
        self.bw = Bandwidth::ZERO;
        self.is_used = false;
        self.is_sampling = false;
        self.start_interval(conn);
    }

    fn end_interval(&mut self, conn: &Connection, bw: Bandwidth) {
        if self.bw != Bandwidth::ZERO {
            let difference = bw.raw().abs_diff(self.bw.raw());
            let bytes = Bandwidth::from_raw(difference).bytes_per_second(conn.mss, UNIT, 1);
            let is_same_share = u64::from(difference) * u64::from(UNIT) <= SAME_SHARE * u64::from(self.bw.raw());
            if is_same_share || bytes <= SAME_BYTES {
                let mean = (u64::from(bw.raw()) + u64::from(self.bw.raw())) / 2;
                self.bw = Bandwidth::from_raw(mean as u32);
                self.is_used = true;
                self.rounds = 0;
                return;
            }
        }
        self.bw = bw;
        self.start_interval(conn);
    }

    /// Takes part in an interval; `rounds` have been counted.
    fn sample(&mut self, conn: &Connection, has_losses: bool, is_app_limited: bool) {
        if is_app_limited || self.rounds > 4 * INTERVAL_ROUNDS {
            self.reset(conn);
            return;
        }
        if self.rounds < INTERVAL_ROUNDS || !has_losses {
            return;
        }
        let lost = conn.lost.saturating_sub(self.lost);
        let delivered = conn.delivered.saturating_sub(self.delivered);
        if delivered == 0 || lost.saturating_mul(u64::from(UNIT)) < delivered.saturating_mul(LOSS_THRESH) {
            return;
        }
        let time = conn.delivered_at.since(self.since).as_millis();
        if time == 0 {
            return;
        }
        if time >= u64::from(u32::MAX) / 1000 {
            self.reset(conn);
            return;
        }
        let packets = delivered.min(u64::from(u32::MAX)) as u32;
        self.end_interval(conn, Bandwidth::rounded_down(packets, time * 1000));
    }
}

impl Bbr1 {
    pub(super) fn sample_long_term(&mut self, x: &mut Call<'_>, has_losses: bool, is_app_limited: bool) {
        if self.long_term.is_used {
            if self.mode == Mode::ProbeBw && self.round_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= USE_ROUNDS {
                    self.long_term.reset(x.conn);
                    self.start_probe_bw(x);
                }
            }
            return;
        }
        if !self.long_term.is_sampling {
            if !has_losses {
                return;
            }
            self.long_term.start_interval(x.conn);
            self.long_term.is_sampling = true;
        }
        if !is_app_limited && self.round_start {
            self.long_term.rounds += 1;
        }
        self.long_term.sample(x.conn, has_losses, is_app_limited);
    }
}
