use units::Duration;

/// One acknowledgement that has been processed: what it delivered, and what was marked lost because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ack {
    /// Packets newly delivered, in order or selectively.
    pub newly_acked: u32,
    /// Packets marked lost because of it; [`Controller::on_lost`] was called for each before.
    ///
    /// [`Controller::on_lost`]: crate::Controller::on_lost
    pub newly_lost: u32,
    /// Packets newly reported to have met congestion (ECN CE).
    pub newly_marked: u32,
    /// Packets in flight before it.
    pub prior_in_flight: u32,
    /// Round-trip time of the newest packet it delivers; `None` where only retransmissions were delivered (Karn).
    pub rtt: Option<Duration>,
    /// The receiver is likely to have held it back: it delivers a single packet that is not the end of a burst, or as Linux's
    /// `is_ack_delayed`.
    pub is_delayed: bool,
    /// It acknowledges exactly a retransmitted tail loss probe.
    pub is_tail_probe: bool,
    /// What the newest packet that it delivers tells; `None` where it delivers nothing.
    pub sample: Option<RateSample>,
}

/// What a delivered packet tells of the path: the draft's `RS` and `P`. [`RateSampler`] makes them.
///
/// [`RateSampler`]: crate::RateSampler
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateSample {
    /// [`Connection::delivered`] when the packet was sent. A round trip ends with the delivery of a packet sent after it began.
    ///
    /// [`Connection::delivered`]: crate::Connection::delivered
    pub prior_delivered: u64,
    /// Packets delivered since then.
    pub delivered: u32,
    /// The time in which they were; `None`: too short to be true.
    pub interval: Option<Duration>,
    /// The connection was application-limited when the packet was sent.
    pub is_app_limited: bool,
    /// Packets in flight right after it was sent, itself included; `None`: not known.
    pub tx_in_flight: Option<u32>,
    /// Packets marked lost since it was sent.
    pub lost: u32,
}

/// Packets marked lost that were sent in a row: from a transport that keeps notes of each packet, one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// How many.
    pub packets: u32,
    /// Packets in flight right after the first of them was sent, itself included; `None`: not known.
    pub tx_in_flight: Option<u32>,
    /// Packets marked lost since it was sent and before it was marked itself.
    pub lost_before: u32,
    /// The connection was application-limited when it was sent.
    pub is_app_limited: bool,
    /// Of several: the flight of the one that [`Bbr3::crossing`] names, where the transport knows it; `None`: that of the first stands for it.
    ///
    /// [`Bbr3::crossing`]: crate::Bbr3::crossing
    pub crossing: Option<Flight>,
}

/// What was in flight with a lost packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flight {
    /// Packets in flight right after it was sent, itself included.
    pub tx_in_flight: u32,
    /// Packets marked lost since it was sent, without those of its own row.
    pub lost_before: u32,
}
