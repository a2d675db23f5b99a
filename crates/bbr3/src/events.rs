//! What the program tells while somebody reads: who a socket is, its changes of mode, and every call with its inputs and decisions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use units::{Duration, Instant, Rate};
use zerocopy::FromBytes;

use crate::Mode;
use crate::raw::{CallEvent, EventHead, FlowEvent, SnapshotEvent, TransitionEvent};

/// "No bound", "not measured".
const NONE: u32 = u32::MAX;
/// `NO_MODE` of state.h.
const NO_MODE: u32 = 7;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// One event, checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Who a socket is. Comes before everything else of it.
    Flow(Flow),
    /// It changed its mode.
    Transition(Transition),
    /// All that it remembers, at the start of a recording. As it is in the kernel: for replay.
    Snapshot(Box<SnapshotEvent>),
    /// One callback of the kernel. As it is in the kernel: for replay.
    Call(Box<CallEvent>),
}

/// A socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Its number: counts sockets since the program was loaded.
    pub number: u64,
    /// When this was written.
    pub at: Instant,
    /// SO_COOKIE, where somebody has asked for it before.
    pub cookie: Option<u64>,
    /// The descriptor's inode, as `/proc/PID/fd` names it; none before it is accepted and after its process has closed it.
    pub inode: Option<u64>,
    /// Inode of its network namespace.
    pub netns: u32,
    /// This end.
    pub local: (IpAddr, u16),
    /// The other end.
    pub remote: (IpAddr, u16),
}

/// A change of mode, with what the model held at that moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// The socket's number.
    pub flow: u64,
    /// CLOCK_MONOTONIC.
    pub at: Instant,
    /// The mode it leaves.
    pub from: Mode,
    /// The mode it enters; none: the socket closes, or takes another congestion control.
    pub to: Option<Mode>,
    /// Estimated bandwidth, all bounds applied.
    pub bandwidth: Rate,
    /// The long-term maximum.
    pub max_bandwidth: Rate,
    /// The short-term bound.
    pub bandwidth_lo: Option<Rate>,
    /// Pacing rate before this change.
    pub pacing_rate: Rate,
    /// Minimum RTT.
    pub min_rtt: Option<Duration>,
    /// Packets in flight.
    pub in_flight: u32,
    /// Window in packets before this change.
    pub cwnd: u32,
    /// Long-term bound in packets.
    pub inflight_hi: Option<u32>,
    /// Short-term bound in packets.
    pub inflight_lo: Option<u32>,
    /// Packets delivered since the connection began.
    pub delivered: u32,
    /// Packets marked lost since the connection began.
    pub lost: u32,
    /// The kernel's state of loss recovery, `enum tcp_ca_state`.
    pub ca_state: u8,
}

/// Bytes that are no event of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Shorter than its kind is, or than it says.
    #[error("an event of kind {kind} with {length} bytes is not whole")]
    Length {
        /// The kind it names.
        kind: u32,
        /// Its bytes.
        length: usize,
    },
    /// A kind of another version.
    #[error("an event of the unknown kind {0}")]
    Kind(u32),
    /// A mode that does not exist.
    #[error("an event with the unknown mode {0}")]
    Mode(u32),
    /// Neither IPv4 nor IPv6.
    #[error("an event with the unknown address family {0}")]
    Family(u16),
}

impl Event {
    /// Reads one event. Its bytes must be all of it, and no more than padding may follow (the ring buffer pads to eight bytes).
    ///
    /// # Errors
    /// [`EventError`], where it is none of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EventError> {
        let length = bytes.len();
        let (head, _) = EventHead::read_from_prefix(bytes).map_err(|_| EventError::Length { kind: 0, length })?;
        let kind = head.kind;
        let wrong = EventError::Length { kind, length };
        let bytes = bytes.get(..head.size as usize).ok_or(wrong)?;
        match kind {
            1 => Flow::from_raw(&FlowEvent::read_from_bytes(bytes).map_err(|_| wrong)?).map(Self::Flow),
            2 => {
                Transition::from_raw(&TransitionEvent::read_from_bytes(bytes).map_err(|_| wrong)?).map(Self::Transition)
            }
            3 => Ok(Self::Snapshot(Box::new(SnapshotEvent::read_from_bytes(bytes).map_err(|_| wrong)?))),
            4 => Ok(Self::Call(Box::new(CallEvent::read_from_bytes(bytes).map_err(|_| wrong)?))),
            other => Err(EventError::Kind(other)),
        }
    }

    /// The socket's number.
    pub fn flow(&self) -> u64 {
        match self {
            Self::Flow(flow) => flow.number,
            Self::Transition(transition) => transition.flow,
            Self::Snapshot(snapshot) => snapshot.event.flow,
            Self::Call(call) => call.event.flow,
        }
    }
}

impl Flow {
    fn from_raw(raw: &FlowEvent) -> Result<Self, EventError> {
        let address = |bytes: &[u8; 16]| match raw.family {
            AF_INET => Ok(IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))),
            // An IPv4 connection of an IPv6 socket is shown as what it is.
            AF_INET6 => Ok(Ipv6Addr::from(*bytes).to_canonical()),
            other => Err(EventError::Family(other)),
        };
        Ok(Self {
            number: raw.event.flow,
            at: Instant::from_nanos(raw.event.time_ns),
            cookie: Some(raw.cookie).filter(|cookie| *cookie != 0),
            inode: Some(raw.inode).filter(|inode| *inode != 0),
            netns: raw.netns,
            local: (address(&raw.local)?, raw.local_port),
            remote: (address(&raw.remote)?, raw.remote_port),
        })
    }
}

impl Transition {
    fn from_raw(raw: &TransitionEvent) -> Result<Self, EventError> {
        let mode = |number: u32| Mode::ALL.get(number as usize).copied().ok_or(EventError::Mode(number));
        let rate = |bw: u32| bandwidth(bw, raw.mss);
        let bound = |value: u32| Some(value).filter(|value| *value != NONE);
        Ok(Self {
            flow: raw.event.flow,
            at: Instant::from_nanos(raw.event.time_ns),
            from: mode(raw.from)?,
            to: if raw.to == NO_MODE { None } else { Some(mode(raw.to)?) },
            bandwidth: rate(raw.bw),
            max_bandwidth: rate(raw.max_bw),
            bandwidth_lo: bound(raw.bw_lo).map(rate),
            pacing_rate: Rate::from_bps(raw.pacing_rate.saturating_mul(8)),
            min_rtt: bound(raw.min_rtt_us).map(|micros| Duration::from_micros(u64::from(micros))),
            in_flight: raw.in_flight,
            cwnd: raw.cwnd,
            inflight_hi: bound(raw.inflight_hi),
            inflight_lo: bound(raw.inflight_lo),
            delivered: raw.delivered,
            lost: raw.lost,
            ca_state: raw.ca_state as u8,
        })
    }
}

/// Of `bw` in packets/µs << 24, for packets of `mss` bytes.
fn bandwidth(bw: u32, mss: u32) -> Rate {
    let bits = (u128::from(bw) * u128::from(mss) * 8 * 1_000_000) >> 24;
    Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::IntoBytes;

    use super::*;

    fn head<T>(kind: u32) -> EventHead {
        EventHead { kind, size: size_of::<T>() as u32, flow: 5, time_ns: 2_000_000_000 }
    }

    fn transition() -> TransitionEvent {
        TransitionEvent {
            event: head::<TransitionEvent>(2),
            pacing_rate: 1_000_000,
            from: 0,
            to: 1,
            mss: 1448,
            bw: (1 << 24) / 256,
            max_bw: (1 << 24) / 128,
            bw_lo: u32::MAX,
            min_rtt_us: 40_000,
            inflight_hi: 330,
            inflight_lo: u32::MAX,
            lost: 3,
            ..TransitionEvent::default()
        }
    }

    #[test]
    fn a_transition_is_read_with_its_units() {
        let Ok(Event::Transition(read)) = Event::from_bytes(transition().as_bytes()) else { panic!("a transition") };
        assert_eq!((read.flow, read.from, read.to), (5, Mode::Startup, Some(Mode::Drain)));
        assert_eq!(read.bandwidth, Rate::from_bps(1448 * 8 * 1_000_000 / 256));
        assert_eq!(read.max_bandwidth.as_bps(), 2 * read.bandwidth.as_bps());
        assert_eq!((read.bandwidth_lo, read.inflight_hi, read.inflight_lo), (None, Some(330), None));
        assert_eq!(read.min_rtt, Some(Duration::from_millis(40)));
        assert_eq!(read.pacing_rate, Rate::from_mbps(8));
    }

    #[test]
    fn a_socket_is_read_with_its_ends() {
        let mut raw = FlowEvent {
            event: head::<FlowEvent>(1),
            family: 2,
            local_port: 443,
            remote_port: 5001,
            ..FlowEvent::default()
        };
        raw.local[..4].copy_from_slice(&[10, 0, 0, 1]);
        raw.remote[..4].copy_from_slice(&[192, 0, 2, 7]);
        raw.inode = 77;
        let Ok(Event::Flow(flow)) = Event::from_bytes(raw.as_bytes()) else { panic!("a flow") };
        assert_eq!(flow.local, ("10.0.0.1".parse().unwrap(), 443));
        assert_eq!(flow.remote, ("192.0.2.7".parse().unwrap(), 5001));
        assert_eq!((flow.cookie, flow.inode), (None, Some(77)));
        // A mapped address, as a dual-stack socket has it.
        raw.family = 10;
        raw.remote = "::ffff:192.0.2.7".parse::<Ipv6Addr>().unwrap().octets();
        let Ok(Event::Flow(flow)) = Event::from_bytes(raw.as_bytes()) else { panic!("a flow") };
        assert_eq!(flow.remote.0, "192.0.2.7".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let good = transition();
        let bytes = good.as_bytes();
        assert_eq!(Event::from_bytes(&bytes[..20]), Err(EventError::Length { kind: 0, length: 20 }));
        assert_eq!(Event::from_bytes(&bytes[..60]), Err(EventError::Length { kind: 2, length: 60 }));
        let unknown = TransitionEvent { event: head::<TransitionEvent>(9), ..good };
        assert_eq!(Event::from_bytes(unknown.as_bytes()), Err(EventError::Kind(9)));
        assert_eq!(Event::from_bytes(TransitionEvent { from: 7, ..good }.as_bytes()), Err(EventError::Mode(7)));
        assert_eq!(Event::from_bytes(TransitionEvent { to: 8, ..good }.as_bytes()), Err(EventError::Mode(8)));
        let ended = TransitionEvent { to: 7, ..good };
        assert!(matches!(Event::from_bytes(ended.as_bytes()), Ok(Event::Transition(t)) if t.to.is_none()));
        let small = FlowEvent { event: head::<FlowEvent>(1), family: 3, ..FlowEvent::default() };
        assert_eq!(Event::from_bytes(small.as_bytes()), Err(EventError::Family(3)));
        // A kind with the size of another.
        let mixed = TransitionEvent { event: head::<TransitionEvent>(1), ..good };
        assert!(Event::from_bytes(mixed.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind in 0_u32..6, said in 0_u32..6000, mut bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let _ = Event::from_bytes(&bytes);
            let kinds = [kind.to_ne_bytes(), said.to_ne_bytes()].concat();
            let start = kinds.len().min(bytes.len());
            bytes[..start].copy_from_slice(&kinds[..start]);
            let _ = Event::from_bytes(&bytes);
        }
    }
}
