//! The sending end: a TCP sender that acts like Linux's as far as a congestion control and a path can tell.
//!
//! From RFC 8985 (RACK-TLP), RFC 6298 and RFC 5682 (timeouts and F-RTO), RFC 3522 (spurious recoveries by timestamps), RFC 6937 and its
//! successor (PRR), RFC 3168 (ECN), and the behaviour of Linux 6.12 to 6.18. Sequence numbers count segments. Not modelled: Nagle, path
//! MTU discovery, urgent data, more than one connection sharing what it learnt.

mod ack;
mod prr;
mod recovery;
mod rtt;
mod scoreboard;
mod timers;
mod transmit;

use congestion::{Cause, Connection, Control, Controller, Ignore, RateSampler, Recovery, Undo};
use units::{Bytes, Duration, Instant, Rate};

use crate::segment::Data;
use prr::Prr;
use rtt::Rtt;
use scoreboard::{Scoreboard, Sent};
use timers::Timers;

/// Segments allowed before the first round trip (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

/// What a sender does besides following its congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderOptions {
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Most segments sent as one burst (segmentation offload); `None`: as Linux sizes it from the rate.
    pub burst: Option<u32>,
    /// Segments are ECN-capable (ECT(0)).
    pub ecn: bool,
    /// Segments that the send buffer holds, acknowledged selectively or not.
    pub buffer: u64,
}

/// Totals of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments sent, again ones included.
    pub sent: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Recoveries and timeouts found spurious and undone.
    pub undone: u64,
    /// Time with something to send, of that limited by the receiver's window, and by the send buffer.
    pub busy: Duration,
    /// See `busy`.
    pub window_limited: Duration,
    /// See `busy`.
    pub buffer_limited: Duration,
}

/// What holds a sender back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Limit {
    #[default]
    Idle,
    Busy,
    Window,
    Buffer,
}

/// The sending end of a connection.
pub struct Sender {
    controller: Box<dyn Controller>,
    control: Control,
    options: SenderOptions,
    now: Instant,
    established: bool,
    board: Scoreboard,
    sampler: RateSampler,
    rtt: Rtt,
    timers: Timers,
    counters: SenderCounters,

    /// The application has given the packets before this one, or will.
    given: u64,
    /// Of those, the send buffer has room for the ones before this.
    buffered: u64,
    /// The receiver takes the ones before this.
    right_edge: u64,
    limit: Limit,
    limit_since: Instant,

    /// Earliest departure of the next packet.
    departure: Instant,
    last_sent: Instant,
    is_cwnd_limited: bool,
    max_outstanding: u32,
    cwnd_usage_end: u64,

    recovery: Recovery,
    /// Recovery ends when everything before this is acknowledged.
    recovery_end: u64,
    prior_cwnd: u32,
    prr: Prr,
    undo: Option<Undo>,
    /// Retransmissions that no DSACK has taken back; `None`: there were none yet.
    undo_retransmissions: Option<u64>,
    duplicates_seen: u32,
    first_retransmission: Option<Instant>,
    frto: bool,

    rack: Rack,
    highest_delivered: Option<u64>,
    reordering_seen: bool,
    /// A tail loss probe is out, and this is the next packet after it.
    probe_end: Option<u64>,
    probe_retransmits: bool,

    /// The timestamp to echo.
    echo: Instant,
    cwr_pending: bool,
    lost_now: u32,
    out: Vec<Data>,
}

/// RFC 8985: the most recently sent packet that was delivered, by the time it was sent.
#[derive(Debug, Clone, Copy)]
struct Rack {
    sent: Sent,
    rtt: Duration,
    steps: u8,
    advanced: bool,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender")
            .field("controller", &self.controller.name())
            .field("control", &self.control)
            .field("recovery", &self.recovery)
            .field("first", &self.board.first())
            .field("next", &self.board.next())
            .field("in_flight", &self.board.in_flight())
            .finish_non_exhaustive()
    }
}

impl Sender {
    /// A sender that has yet to shake hands.
    pub(crate) fn new(controller: Box<dyn Controller>, options: SenderOptions) -> Self {
        Self {
            controller,
            control: Control::new(INITIAL_WINDOW),
            options,
            now: Instant::ZERO,
            established: false,
            board: Scoreboard::default(),
            sampler: RateSampler::new(Instant::ZERO),
            rtt: Rtt::default(),
            timers: Timers::default(),
            counters: SenderCounters::default(),
            given: 0,
            buffered: options.buffer.max(1),
            right_edge: 0,
            limit: Limit::Idle,
            limit_since: Instant::ZERO,
            departure: Instant::ZERO,
            last_sent: Instant::ZERO,
            is_cwnd_limited: false,
            max_outstanding: 0,
            cwnd_usage_end: 0,
            recovery: Recovery::Open,
            recovery_end: 0,
            prior_cwnd: 0,
            prr: Prr::default(),
            undo: None,
            undo_retransmissions: None,
            duplicates_seen: 0,
            first_retransmission: None,
            frto: false,
            rack: Rack { sent: (Instant::ZERO, 0), rtt: Duration::ZERO, steps: 1, advanced: false },
            highest_delivered: None,
            reordering_seen: false,
            probe_end: None,
            probe_retransmits: false,
            echo: Instant::MAX,
            cwr_pending: false,
            lost_now: 0,
            out: Vec::new(),
        }
    }

    /// The handshake is done. `rtt`: how long it took, where its first packet was not sent again.
    pub(crate) fn establish(&mut self, now: Instant, rtt: Option<Duration>, right_edge: u64) {
        self.now = now;
        self.established = true;
        self.right_edge = right_edge;
        self.limit_since = now;
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
            self.rtt.note_min(rtt);
        }
        self.sampler = RateSampler::new(now);
        let conn = self.connection();
        self.controller.init(&conn, &mut self.control, &mut Ignore);
    }

    /// Whether the handshake is done.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// The congestion control.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// What it decided.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Segments in flight.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// Segments acknowledged in order.
    pub fn acknowledged(&self) -> u64 {
        self.board.first()
    }

    /// The number of the next new segment.
    pub fn next(&self) -> u64 {
        self.board.next()
    }

    /// The first segment that the application has not given.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// Payload of a full segment.
    pub(crate) fn mss(&self) -> u32 {
        self.options.mss
    }

    /// The state of loss recovery.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Totals so far.
    pub fn counters(&self) -> SenderCounters {
        let mut counters = self.counters;
        let since = self.now.since(self.limit_since);
        add_limit(&mut counters, self.limit, since);
        counters
    }

    /// Smoothed round-trip time.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Smallest round-trip time.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// Everything that was given is acknowledged.
    pub fn is_done(&self) -> bool {
        self.board.first() >= self.given
    }

    /// What the congestion control sees of the connection now.
    fn connection(&self) -> Connection {
        Connection {
            now: self.now,
            mss: Bytes::new(u64::from(self.options.mss)),
            in_flight: self.board.in_flight(),
            delivered: self.sampler.delivered(),
            delivered_at: self.sampler.delivered_at(),
            lost: self.sampler.lost(),
            departs_in: self.departure.since(self.now),
            max_pacing_rate: Rate::from_bps(u64::MAX),
            max_cwnd: u32::MAX,
            max_outstanding: self.max_outstanding,
            prior_cwnd: self.prior_cwnd,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            recovery: self.recovery,
            is_cwnd_limited: self.is_cwnd_limited,
            is_app_limited: self.sampler.is_app_limited(),
            sees_every_loss: true,
            burst_shift: 10,
        }
    }

    fn after_call(&mut self) {
        if self.control.mark_app_limited {
            self.control.mark_app_limited = false;
            self.sampler.mark_app_limited(self.board.in_flight());
        }
        self.control.cwnd = self.control.cwnd.max(1);
    }

    fn change_state(&mut self, to: Recovery) {
        let conn = self.connection();
        self.controller.on_recovery(&conn, to, &mut self.control, &mut Ignore);
        self.recovery = to;
        self.after_call();
    }

    /// `tcp_init_cwnd_reduction`: a congestion episode begins.
    fn reduce(&mut self, cause: Cause) {
        self.recovery_end = self.board.next();
        self.probe_end = None;
        self.prior_cwnd = self.control.cwnd;
        self.prr = Prr::begin(self.control.cwnd);
        let conn = self.connection();
        self.controller.on_congestion(&conn, cause, &mut self.control, &mut Ignore);
        self.after_call();
        self.cwr_pending |= self.options.ecn;
    }

    /// Accounts for the time since the last change of what holds the sender back.
    fn set_limit(&mut self, limit: Limit) {
        if limit != self.limit {
            let since = self.now.since(self.limit_since);
            add_limit(&mut self.counters, self.limit, since);
            self.limit = limit;
            self.limit_since = self.now;
        }
    }
}

fn add_limit(counters: &mut SenderCounters, limit: Limit, time: Duration) {
    if limit != Limit::Idle {
        counters.busy += time;
    }
    match limit {
        Limit::Window => counters.window_limited += time,
        Limit::Buffer => counters.buffer_limited += time,
        Limit::Idle | Limit::Busy => {}
    }
}
