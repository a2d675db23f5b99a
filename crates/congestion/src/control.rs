use units::Rate;

use crate::{Ack, Connection, Lost, Observer, Phase, Recovery};

/// "No slow start threshold yet", packets: `TCP_INFINITE_SSTHRESH` of include/net/tcp.h.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// What the transport goes by. It belongs to the transport, which hands it to each call; between calls the transport may change the
/// window itself, as TCP does after a timeout or while proportional rate reduction is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Most packets in flight.
    pub cwnd: u32,
    /// Reno, CUBIC: below this window it grows exponentially; while the window is reduced, where it is going to. Packets. BBR writes
    /// it for others to see.
    pub ssthresh: u32,
    /// How fast to send; `None`: as fast as the window allows.
    pub pacing_rate: Option<Rate>,
    /// Packets that may be sent back to back at that rate, at least 1.
    pub send_quantum: u32,
    /// Set by a controller that keeps little in flight by its own will: the transport marks the connection application-limited
    /// ([`RateSampler::mark_app_limited`]) and clears this.
    ///
    /// [`RateSampler::mark_app_limited`]: crate::RateSampler::mark_app_limited
    pub mark_app_limited: bool,
}

impl Control {
    /// With an initial window (RFC 6928: 10 packets), no threshold and no pacing.
    pub const fn new(initial_cwnd: u32) -> Self {
        Self {
            cwnd: initial_cwnd,
            ssthresh: INFINITE_SSTHRESH,
            pacing_rate: None,
            send_quantum: 2,
            mark_app_limited: false,
        }
    }
}

/// Why a congestion episode begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Packets were lost, and fast recovery begins.
    Loss,
    /// The retransmission timer ran out (QUIC: persistent congestion).
    Timeout,
    /// The path has marked packets (ECN CE).
    Ecn,
    /// A tail loss probe has repaired a loss.
    TailLoss,
}

/// What a spurious recovery had changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undo {
    /// [`Control::cwnd`] before it.
    pub prior_cwnd: u32,
    /// [`Control::ssthresh`] before it.
    pub prior_ssthresh: u32,
}

/// A congestion control of one connection.
///
/// # The order of calls
///
/// [`init`](Self::init) once, before anything is sent. Then, in the order in which things happen; each call has the connection as it is at
/// that moment:
///
/// * **Sending**, for the first packet with nothing in flight: [`on_idle_restart`](Self::on_idle_restart).
/// * **An ACK arrives.** The transport counts what it delivers, marks what it shows to be lost, and calls
///   1. [`on_lost`](Self::on_lost) for each packet marked lost;
///   2. where a congestion episode begins, [`on_congestion`](Self::on_congestion); then [`on_recovery`](Self::on_recovery) for each change
///      of [`Recovery`], its end too; [`on_undo`](Self::on_undo) where an episode proves spurious;
///   3. [`on_ack`](Self::on_ack), last. A transport whose recovery ends as soon as something sent after its beginning is delivered (QUIC)
///      tells of that end after this call: BBR asks whether a whole round trip was spent in recovery.
/// * **The retransmission timer runs out.** [`on_congestion`](Self::on_congestion) with [`Cause::Timeout`] (unless within an episode that had
///   one), [`on_lost`](Self::on_lost) for all that is marked lost, both with the window as it was; then the transport sets the window to what is
///   in flight and one more, and calls [`on_recovery`](Self::on_recovery) with [`Recovery::Loss`].
///
/// After each call the transport goes by the [`Control`].
pub trait Controller {
    /// Its name in a table: `reno`, `cubic`, `bbr`, `bbr3`.
    fn name(&self) -> &'static str;

    /// What it is about.
    fn phase(&self) -> Phase;

    /// Whether it sets the window during recovery too, as BBR does. The transport sets the window of others while
    /// [`Recovery::is_reducing`]: with proportional rate reduction (RFC 6937) towards [`Control::ssthresh`], or to that at once; and to that
    /// at the end.
    fn controls_recovery(&self) -> bool {
        false
    }

    /// Begins the connection.
    fn init(&mut self, conn: &Connection, control: &mut Control, observer: &mut dyn Observer) {
        let _ = (conn, control, observer);
    }

    /// The first packet with nothing in flight is about to be sent.
    fn on_idle_restart(&mut self, conn: &Connection, control: &mut Control, observer: &mut dyn Observer) {
        let _ = (conn, control, observer);
    }

    /// Packets were marked lost: counted in [`Connection::lost`], and no more in [`Connection::in_flight`].
    fn on_lost(&mut self, conn: &Connection, lost: &Lost, control: &mut Control, observer: &mut dyn Observer) {
        let _ = (conn, lost, control, observer);
    }

    /// A congestion episode begins, at most one each round trip. [`Connection::recovery`] is the state before, the window not cut.
    fn on_congestion(&mut self, conn: &Connection, cause: Cause, control: &mut Control, observer: &mut dyn Observer);

    /// Loss recovery is about to change from [`Connection::recovery`] to `to`.
    fn on_recovery(&mut self, conn: &Connection, to: Recovery, control: &mut Control, observer: &mut dyn Observer) {
        let _ = (conn, to, control, observer);
    }

    /// The current recovery has proved spurious (RFC 3522, RFC 5682, DSACK): nothing was lost. Before it ends.
    fn on_undo(&mut self, conn: &Connection, undo: &Undo, control: &mut Control, observer: &mut dyn Observer) {
        let _ = (conn, observer);
        control.cwnd = control.cwnd.max(undo.prior_cwnd).min(conn.max_cwnd);
        control.ssthresh = control.ssthresh.max(undo.prior_ssthresh);
    }

    /// An ACK was processed. Called for those too that deliver nothing.
    fn on_ack(&mut self, conn: &Connection, ack: &Ack, control: &mut Control, observer: &mut dyn Observer);
}
