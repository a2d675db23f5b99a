//! What travels: the contents of packets on a path.

use units::Instant;

/// IPv4 and TCP headers with timestamps, in bytes.
pub(crate) const HEADERS: u64 = 52;
/// What an ACK with SACK blocks has on top: the option with three blocks, as fits beside timestamps (RFC 2018).
pub(crate) const SACK_OPTION: u64 = 28;
/// The lab's probe: a UDP packet of 64 bytes of payload.
pub(crate) const PROBE_SIZE: u64 = 64 + 28;

/// SYN and SYN-ACK with Linux's options.
pub(crate) const SYN_SIZE: u64 = 60;

/// A segment of data. Sequence numbers count segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Data {
    pub number: u64,
    /// Bytes of payload.
    pub payload: u32,
    /// Congestion window reduced (RFC 3168).
    pub cwr: bool,
    /// Its timestamp (RFC 7323).
    pub sent: Instant,
    /// The timestamp it echoes: when the last ACK that reached the sender left the receiver. `Instant::MAX`: none.
    pub echo: Instant,
}

/// An acknowledgement. Selective acknowledgement is exact and never forgets: blocks are not limited to three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Every segment before this one has arrived.
    pub cumulative: u64,
    /// How many arrivals out of order the receiver had noted: the sender reads them from the receiver's list.
    pub noted: u64,
    /// The first segment that the receiver has no room for.
    pub right_edge: u64,
    /// Duplicates seen so far, as DSACKs tell them.
    pub duplicates: u32,
    /// Segments seen so far that were marked CE, where the receiver still has to tell (RFC 3168's ECE).
    pub congestion_experienced: bool,
    /// When the segment that this answers was sent: the echo of its timestamp.
    pub echo: Instant,
    /// When it left: its own timestamp.
    pub sent: Instant,
}

/// Contents of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Data(Data),
    Ack(Ack),
    /// Opens a connection, and when it left.
    Syn {
        sent: Instant,
    },
    /// Answers that.
    SynAck {
        sent: Instant,
    },
    /// A probe on its way to the far end or back, and when it left.
    Probe {
        sent: Instant,
        back: bool,
    },
}
