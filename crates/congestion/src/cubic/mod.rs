//! CUBIC, RFC 9438, with HyStart++, RFC 9406.

mod curve;
mod hystart;

use units::{Duration, Instant};

use crate::reno::{is_cwnd_limited, slow_start, ssthresh};
use crate::{Ack, Cause, Connection, Control, Controller, INFINITE_SSTHRESH, Observer, Phase, Recovery, Undo};
use curve::{Curve, PACKET};
use hystart::{Advice, HyStart};

/// beta_cubic = 0.7.
const BETA: (u32, u32) = (7, 10);
/// (1 + beta_cubic) / 2: where the plateau is set, in fast convergence.
const CONVERGENCE: (u64, u64) = (17, 20);
/// alpha_cubic = 3 (1 - beta_cubic) / (1 + beta_cubic), which gives Reno's average with CUBIC's decrease.
const ALPHA: (u64, u64) = (9, 17);
/// The smallest window that congestion leaves, packets.
const MIN_SSTHRESH: u32 = 2;

/// What may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CubicParams {
    /// Give way to a new flow: after a window below the last maximum, the plateau is set lower (RFC 9438, section 4.7).
    pub fast_convergence: bool,
    /// Grow as Reno does where CUBIC would be slower (section 4.3).
    pub reno_friendly: bool,
    /// Leave the initial slow start as the queue begins to grow (RFC 9406).
    pub hystart: bool,
    /// Packets that one ACK adds to the window in slow start, at most; `None`: no limit. RFC 9406 asks for 8 where the transport does not
    /// pace; Linux has no limit.
    pub slow_start_limit: Option<u32>,
}

impl Default for CubicParams {
    fn default() -> Self {
        Self { fast_convergence: true, reno_friendly: true, hystart: true, slow_start_limit: None }
    }
}

/// CUBIC: RFC 9438, with HyStart++ (RFC 9406).
///
/// The threshold is a fraction of the window and not of what is in flight, for the window does not grow while it is not used (RFC 9438,
/// section 4.6 allows both). CE marks count as loss.
#[derive(Debug, Clone)]
pub struct Cubic {
    params: CubicParams,
    phase: Phase,
    hystart: HyStart,
    epoch: Option<Epoch>,
    /// W_max, packets times 2^32; 0: none.
    w_max: u64,
    /// cwnd_prior: the window before the last decrease, packets times 2^32.
    cwnd_prior: u64,
    /// What the window has beyond whole packets, packets times 2^32.
    fraction: u64,
    saved: Option<Saved>,
}

/// One stretch of congestion avoidance.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    curve: Curve,
    /// When it began, later by what was not spent at the window.
    start: Instant,
    /// The last ACK that found the window full.
    last_used: Instant,
    /// W_est: Reno's window, packets times 2^32.
    w_est: u64,
}

/// What a spurious episode has to restore.
#[derive(Debug, Clone, Copy)]
struct Saved {
    epoch: Option<Epoch>,
    w_max: u64,
    cwnd_prior: u64,
    at: Instant,
}

impl Default for Cubic {
    fn default() -> Self {
        Self::new(CubicParams::default())
    }
}

impl Cubic {
    /// Before the first packet.
    pub const fn new(params: CubicParams) -> Self {
        Self {
            params,
            phase: Phase::SlowStart,
            hystart: HyStart::new(),
            epoch: None,
            w_max: 0,
            cwnd_prior: 0,
            fraction: 0,
            saved: None,
        }
    }

    fn enter(&mut self, conn: &Connection, to: Phase, observer: &mut dyn Observer) {
        if self.phase != to {
            observer.transition(conn.now, self.phase, to);
            self.phase = to;
        }
    }

    /// Slow start; returns packets that are left for congestion avoidance.
    fn slow_start(&mut self, conn: &Connection, ack: &Ack, control: &mut Control, observer: &mut dyn Observer) -> u32 {
        let acked = ack.newly_acked.min(self.params.slow_start_limit.unwrap_or(u32::MAX));
        if !self.params.hystart || control.ssthresh < INFINITE_SSTHRESH {
            self.enter(conn, Phase::SlowStart, observer);
            return slow_start(conn, control, acked);
        }
        match self.hystart.on_ack(conn, ack) {
            Advice::Grow => {
                self.enter(conn, Phase::SlowStart, observer);
                slow_start(conn, control, acked)
            }
            Advice::GrowLess => {
                self.enter(conn, Phase::Css, observer);
                let slowed = self.hystart.slowed(acked);
                slow_start(conn, control, slowed)
            }
            Advice::Leave => {
                control.ssthresh = control.cwnd;
                observer.bound(conn.now, ssthresh(control.ssthresh));
                acked
            }
        }
    }

    fn window(&self, control: &Control) -> u64 {
        u64::from(control.cwnd) << 32 | self.fraction
    }

    fn set_window(&mut self, conn: &Connection, control: &mut Control, window: u64) {
        let cwnd = (window >> 32) as u32;
        self.fraction = window & (PACKET - 1);
        control.cwnd = cwnd.min(conn.max_cwnd);
    }

    /// RFC 9438, sections 4.2 to 4.5.
    fn avoid_congestion(&mut self, conn: &Connection, control: &mut Control, acked: u32) {
        let window = self.window(control);
        let w_max = self.w_max;
        let mut epoch = self.epoch.take().unwrap_or_else(|| Epoch {
            curve: Curve::new(window, w_max),
            start: conn.now,
            last_used: conn.now,
            w_est: window,
        });
        epoch.last_used = conn.now;
        let elapsed = conn.now.since(epoch.start);
        let cwnd = u64::from(control.cwnd.max(1));

        let (up, down) = if epoch.w_est < self.cwnd_prior { ALPHA } else { (1, 1) };
        let step = u128::from(acked) * u128::from(PACKET * up) / u128::from(cwnd * down);
        epoch.w_est = epoch.w_est.saturating_add(u64::try_from(step).unwrap_or(u64::MAX));

        let grown = if self.params.reno_friendly && epoch.curve.at(elapsed) < epoch.w_est {
            // No more at once than slow start would.
            epoch.w_est.min(window.saturating_add(u64::from(acked) << 32)).max(window)
        } else {
            let rtt = conn.srtt.unwrap_or(Duration::ZERO);
            let target = epoch.curve.at(elapsed + rtt).clamp(window, window.saturating_add(window / 2));
            let step = u128::from(target - window) * u128::from(acked) / u128::from(cwnd);
            window.saturating_add(u64::try_from(step).unwrap_or(u64::MAX).min(u64::from(acked) << 32))
        };
        self.epoch = Some(epoch);
        self.set_window(conn, control, grown);
    }

    /// Time in which the window was not used does not count (RFC 9438, section 5.8).
    fn skip_unused_time(&mut self, conn: &Connection) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += conn.now.since(epoch.last_used);
            epoch.last_used = conn.now;
        }
    }
}

impl Controller for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn on_idle_restart(&mut self, conn: &Connection, _: &mut Control, _: &mut dyn Observer) {
        self.skip_unused_time(conn);
    }

    /// RFC 9438, sections 4.6 to 4.8.
    fn on_congestion(&mut self, conn: &Connection, cause: Cause, control: &mut Control, observer: &mut dyn Observer) {
        self.saved = Some(Saved { epoch: self.epoch, w_max: self.w_max, cwnd_prior: self.cwnd_prior, at: conn.now });
        let window = self.window(control);
        self.cwnd_prior = window;
        self.w_max = if self.params.fast_convergence && window < self.w_max {
            (u128::from(window) * u128::from(CONVERGENCE.0) / u128::from(CONVERGENCE.1)) as u64
        } else {
            window
        };
        if cause == Cause::Timeout {
            // The next congestion avoidance begins at its plateau.
            self.w_max = 0;
        }
        self.epoch = None;
        self.fraction = 0;
        let decreased = u64::from(control.cwnd) * u64::from(BETA.0) / u64::from(BETA.1);
        control.ssthresh = (decreased as u32).max(MIN_SSTHRESH);
        observer.bound(conn.now, ssthresh(control.ssthresh));
        let next = if cause == Cause::Timeout { Phase::SlowStart } else { Phase::Reduction };
        self.enter(conn, next, observer);
    }

    fn on_recovery(&mut self, conn: &Connection, to: Recovery, _: &mut Control, observer: &mut dyn Observer) {
        if to == Recovery::Loss {
            self.epoch = None;
            self.fraction = 0;
            self.w_max = 0;
            self.enter(conn, Phase::SlowStart, observer);
        }
    }

    /// RFC 9438, section 4.9.
    fn on_undo(&mut self, conn: &Connection, undo: &Undo, control: &mut Control, observer: &mut dyn Observer) {
        control.cwnd = control.cwnd.max(undo.prior_cwnd).min(conn.max_cwnd);
        control.ssthresh = control.ssthresh.max(undo.prior_ssthresh);
        if let Some(saved) = self.saved.take() {
            self.epoch = saved.epoch;
            self.w_max = saved.w_max;
            self.cwnd_prior = saved.cwnd_prior;
            if let Some(epoch) = &mut self.epoch {
                // The episode's time does not count.
                epoch.start += conn.now.since(saved.at);
                epoch.last_used = conn.now;
            }
        }
        observer.bound(conn.now, ssthresh(control.ssthresh));
    }

    fn on_ack(&mut self, conn: &Connection, ack: &Ack, control: &mut Control, observer: &mut dyn Observer) {
        if conn.recovery.is_reducing() {
            return;
        }
        let is_used = is_cwnd_limited(conn, control);
        let mut acked = ack.newly_acked;
        if control.cwnd < control.ssthresh {
            if acked == 0 || !is_used {
                return;
            }
            acked = self.slow_start(conn, ack, control, observer);
            if control.cwnd < control.ssthresh {
                return;
            }
        }
        self.enter(conn, Phase::CongestionAvoidance, observer);
        if !is_used {
            self.skip_unused_time(conn);
        } else if acked > 0 {
            self.avoid_congestion(conn, control, acked);
        }
    }
}
