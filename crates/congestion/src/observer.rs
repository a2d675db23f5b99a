use units::{Duration, Instant, Rate};

/// What a controller is about. One list for all of them; each uses its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Reno, CUBIC: a packet more for each acknowledged.
    SlowStart,
    /// CUBIC: conservative slow start (RFC 9406).
    Css,
    /// Reno, CUBIC: careful growth.
    CongestionAvoidance,
    /// Reno, CUBIC: a congestion episode; the transport reduces the window.
    Reduction,
    /// BBR: doubles the rate each round trip until the pipe is full.
    Startup,
    /// BBR: empties the queue that it built.
    Drain,
    /// BBRv1: the gain cycle.
    ProbeBw,
    /// BBRv3: sends less than the path carries.
    ProbeBwDown,
    /// BBRv3: sends what the path carries, and leaves headroom.
    ProbeBwCruise,
    /// BBRv3: fills the pipe, before it probes.
    ProbeBwRefill,
    /// BBRv3: sends more, to learn what the path carries.
    ProbeBwUp,
    /// BBR: little in flight for a moment, to see the RTT without a queue.
    ProbeRtt,
}

impl Phase {
    /// A short name, as in the draft.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow start",
            Self::Css => "conservative slow start",
            Self::CongestionAvoidance => "congestion avoidance",
            Self::Reduction => "reduction",
            Self::Startup => "STARTUP",
            Self::Drain => "DRAIN",
            Self::ProbeBw => "PROBE_BW",
            Self::ProbeBwDown => "PROBE_BW_DOWN",
            Self::ProbeBwCruise => "PROBE_BW_CRUISE",
            Self::ProbeBwRefill => "PROBE_BW_REFILL",
            Self::ProbeBwUp => "PROBE_BW_UP",
            Self::ProbeRtt => "PROBE_RTT",
        }
    }
}

/// A number that bounds what a controller does; `None`: no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// BBR: the estimated bandwidth of the path.
    MaxBandwidth(Rate),
    /// BBRv3: short-term bound on the bandwidth (the draft's `bw_shortterm`).
    BandwidthLo(Option<Rate>),
    /// BBRv3: long-term bound on packets in flight (the draft's `inflight_longterm`).
    InflightHi(Option<u32>),
    /// BBRv3: short-term bound on packets in flight (the draft's `inflight_shortterm`).
    InflightLo(Option<u32>),
    /// BBR: the minimum round-trip time.
    MinRtt(Option<Duration>),
    /// Reno, CUBIC: the slow start threshold, in packets.
    Ssthresh(Option<u32>),
}

/// Is told what a controller decides.
pub trait Observer {
    /// The controller goes from one phase to the other.
    fn transition(&mut self, at: Instant, from: Phase, to: Phase) {
        let _ = (at, from, to);
    }

    /// A bound is at a new value.
    fn bound(&mut self, at: Instant, bound: Bound) {
        let _ = (at, bound);
    }
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ignore;

impl Observer for Ignore {}
