use units::{Bytes, Duration, Instant, Rate};

/// A sender's state of loss recovery, as Linux has it (`enum tcp_ca_state` of include/uapi/linux/tcp.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Recovery {
    /// Nothing is amiss.
    #[default]
    Open = 0,
    /// Something arrived out of order, and nothing is taken for lost yet.
    Disorder = 1,
    /// The window is being reduced for another reason than a loss that is still to be repaired: ECN, or a loss that a tail loss probe
    /// repaired.
    Cwr = 2,
    /// Fast recovery: until all that was outstanding at its start is acknowledged.
    Recovery = 3,
    /// After a retransmission timeout (QUIC: persistent congestion).
    Loss = 4,
}

impl Recovery {
    /// Whether the transport reduces the window of a controller that leaves it to the transport ([`Controller::controls_recovery`]).
    ///
    /// [`Controller::controls_recovery`]: crate::Controller::controls_recovery
    pub const fn is_reducing(self) -> bool {
        matches!(self, Self::Cwr | Self::Recovery)
    }
}

/// The connection as the transport knows it at the moment of an event: the draft's `C`. Everything the event changes is already
/// changed, unless a method of [`Controller`] says otherwise.
///
/// [`Controller`]: crate::Controller
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The time of the event. Never earlier than that of the event before.
    pub now: Instant,
    /// Payload of a full packet.
    pub mss: Bytes,
    /// Packets sent, and neither delivered nor marked lost since.
    pub in_flight: u32,
    /// Packets delivered (acknowledged in order or selectively) since the connection began.
    pub delivered: u64,
    /// When `delivered` last rose, or a flight was started from nothing.
    pub delivered_at: Instant,
    /// Packets marked lost since the connection began. Does not fall where a mark turns out to be wrong.
    pub lost: u64,
    /// How long pacing keeps the next packet back from now on; zero where it may leave at once.
    pub departs_in: Duration,
    /// Never pace faster. [`Rate::from_bps`]`(u64::MAX)`: no limit.
    pub max_pacing_rate: Rate,
    /// Never have more packets in flight. [`u32::MAX`]: no limit.
    pub max_cwnd: u32,
    /// Most packets outstanding at once during the last round trip (Linux: `max_packets_out`).
    pub max_outstanding: u32,
    /// The window before the current reduction; 0: there was none yet.
    pub prior_cwnd: u32,
    /// Smoothed round-trip time; none was measured yet: `None`.
    pub srtt: Option<Duration>,
    /// The transport's minimum round-trip time.
    pub min_rtt: Option<Duration>,
    /// The state of loss recovery.
    pub recovery: Recovery,
    /// The window was full at some moment of the last round trip.
    pub is_cwnd_limited: bool,
    /// The last packets sent were fewer than the window allowed, because the application had no more ([`RateSampler::is_app_limited`]).
    ///
    /// [`RateSampler::is_app_limited`]: crate::RateSampler::is_app_limited
    pub is_app_limited: bool,
    /// More than one lost packet per round trip can be seen: TCP with SACK, QUIC.
    pub sees_every_loss: bool,
    /// log2 of the fraction of a second that is sent as one burst. Linux: 10, that is 0.98 ms (`sk_pacing_shift`).
    pub burst_shift: u8,
}

impl Connection {
    /// A connection that has not sent anything: `mss` as given, everything else at rest.
    pub const fn new(now: Instant, mss: Bytes) -> Self {
        Self {
            now,
            mss,
            in_flight: 0,
            delivered: 0,
            delivered_at: now,
            lost: 0,
            departs_in: Duration::ZERO,
            max_pacing_rate: Rate::from_bps(u64::MAX),
            max_cwnd: u32::MAX,
            max_outstanding: 0,
            prior_cwnd: 0,
            srtt: None,
            min_rtt: None,
            recovery: Recovery::Open,
            is_cwnd_limited: false,
            is_app_limited: false,
            sees_every_loss: true,
            burst_shift: 10,
        }
    }
}
