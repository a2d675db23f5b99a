use crate::{Ack, Bound, Cause, Connection, Control, Controller, INFINITE_SSTHRESH, Observer, Phase, Recovery, Undo};

/// The smallest window that congestion leaves, packets: 2 (RFC 5681, equation 4).
const MIN_SSTHRESH: u32 = 2;

/// Reno: RFC 5681 with NewReno's recovery (RFC 6582), which is the transport's.
///
/// Counts packets rather than ACKs (RFC 3465 without its limit, as Linux: a transport that limits bursts needs none). The threshold is
/// half the window and not half of what is in flight, for the window does not grow while it is not used (RFC 5681, section 4.1; Linux does
/// so too).
#[derive(Debug, Clone, Default)]
pub struct Reno {
    /// Packets acknowledged towards the next packet of window.
    acked: u32,
    phase: Option<Phase>,
}

/// Is the window what limits the sender? In slow start half of it is enough (net/ipv4/tcp_output.c, `tcp_cwnd_validate()`).
pub(crate) fn is_cwnd_limited(conn: &Connection, control: &Control) -> bool {
    conn.is_cwnd_limited
        || (control.cwnd < control.ssthresh && u64::from(control.cwnd) < 2 * u64::from(conn.max_outstanding))
}

/// Slow start: a packet more for each acknowledged, up to the threshold. Returns the packets left over.
pub(crate) fn slow_start(conn: &Connection, control: &mut Control, acked: u32) -> u32 {
    let grown = control.cwnd.saturating_add(acked).min(control.ssthresh);
    let left = acked - (grown - control.cwnd);
    control.cwnd = grown.min(conn.max_cwnd);
    left
}

/// Additive increase: a packet more for `per` acknowledged; `counted` is what was acknowledged towards the next.
pub(crate) fn additive_increase(conn: &Connection, control: &mut Control, counted: &mut u32, per: u32, acked: u32) {
    let per = per.max(1);
    // What was counted towards a larger step gives one packet, not many.
    if *counted >= per {
        *counted = 0;
        control.cwnd = control.cwnd.saturating_add(1);
    }
    *counted = counted.saturating_add(acked);
    let packets = *counted / per;
    *counted -= packets * per;
    control.cwnd = control.cwnd.saturating_add(packets).min(conn.max_cwnd);
}

/// The slow start threshold as a bound.
pub(crate) fn ssthresh(packets: u32) -> Bound {
    Bound::Ssthresh((packets < INFINITE_SSTHRESH).then_some(packets))
}

impl Reno {
    /// Before the first packet.
    pub const fn new() -> Self {
        Self { acked: 0, phase: None }
    }

    fn enter(&mut self, conn: &Connection, to: Phase, observer: &mut dyn Observer) {
        let from = self.phase();
        if from != to {
            self.phase = Some(to);
            observer.transition(conn.now, from, to);
        }
    }
}

impl Controller for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn phase(&self) -> Phase {
        self.phase.unwrap_or(Phase::SlowStart)
    }

    fn on_congestion(&mut self, conn: &Connection, cause: Cause, control: &mut Control, observer: &mut dyn Observer) {
        control.ssthresh = (control.cwnd / 2).max(MIN_SSTHRESH);
        self.acked = 0;
        observer.bound(conn.now, ssthresh(control.ssthresh));
        let next = if cause == Cause::Timeout { Phase::SlowStart } else { Phase::Reduction };
        self.enter(conn, next, observer);
    }

    fn on_recovery(&mut self, conn: &Connection, to: Recovery, control: &mut Control, observer: &mut dyn Observer) {
        let _ = control;
        if to == Recovery::Loss {
            self.acked = 0;
            self.enter(conn, Phase::SlowStart, observer);
        }
    }

    fn on_undo(&mut self, conn: &Connection, undo: &Undo, control: &mut Control, observer: &mut dyn Observer) {
        control.cwnd = control.cwnd.max(undo.prior_cwnd).min(conn.max_cwnd);
        control.ssthresh = control.ssthresh.max(undo.prior_ssthresh);
        observer.bound(conn.now, ssthresh(control.ssthresh));
    }

    fn on_ack(&mut self, conn: &Connection, ack: &Ack, control: &mut Control, observer: &mut dyn Observer) {
        if conn.recovery.is_reducing() {
            return;
        }
        let slow = control.cwnd < control.ssthresh;
        self.enter(conn, if slow { Phase::SlowStart } else { Phase::CongestionAvoidance }, observer);
        if ack.newly_acked == 0 || !is_cwnd_limited(conn, control) {
            return;
        }
        let mut left = ack.newly_acked;
        if slow {
            left = slow_start(conn, control, left);
            if left == 0 {
                return;
            }
            self.enter(conn, Phase::CongestionAvoidance, observer);
        }
        let per = control.cwnd;
        additive_increase(conn, control, &mut self.acked, per, left);
    }
}
