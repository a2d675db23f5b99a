use super::{Bbr3, Call};
use crate::Phase;
use crate::fixed::UNIT;

/// draft, "State Machine". PROBE_BW's four phases are states of their own. Numbered as in the kernel program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Mode {
    /// Doubles the rate each round trip until the pipe is full.
    #[default]
    Startup = 0,
    /// Empties the queue that STARTUP built.
    Drain = 1,
    /// Sends less than the path carries, until the queue of the last probe is gone.
    Down = 2,
    /// Sends what the path carries, and leaves headroom.
    Cruise = 3,
    /// Fills the pipe for a round trip, before it probes.
    Refill = 4,
    /// Sends more, to learn what the path carries.
    Up = 5,
    /// Half a BDP in flight for a moment, to see the RTT without a queue.
    ProbeRtt = 6,
}

/// draft, "ProbeBW State": what the arriving ACKs tell about the last bandwidth probe. Numbered as in the kernel program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum AckPhase {
    /// Nothing.
    #[default]
    Init = 0,
    /// Of packets sent while refilling the pipe.
    Refilling = 1,
    /// Not yet of packets sent while probing.
    ProbeStarting = 2,
    /// Of packets sent while probing.
    ProbeFeedback = 3,
    /// Of the last of them.
    ProbeStopping = 4,
}

/// draft, "Summary of Control Behavior in the State Machine": 2.77, 0.5, 0.906, 1.25, 2, 2.25.
pub(super) const STARTUP_PACING_GAIN: u32 = 710;
const DRAIN_PACING_GAIN: u32 = 128;
const DOWN_PACING_GAIN: u32 = 232;
const UP_PACING_GAIN: u32 = 320;
const CWND_GAIN: u32 = 512;
const UP_CWND_GAIN: u32 = 576;

impl Mode {
    /// All of them, by number.
    pub const ALL: [Self; 7] =
        [Self::Startup, Self::Drain, Self::Down, Self::Cruise, Self::Refill, Self::Up, Self::ProbeRtt];

    /// The same among all controllers.
    pub const fn phase(self) -> Phase {
        match self {
            Self::Startup => Phase::Startup,
            Self::Drain => Phase::Drain,
            Self::Down => Phase::ProbeBwDown,
            Self::Cruise => Phase::ProbeBwCruise,
            Self::Refill => Phase::ProbeBwRefill,
            Self::Up => Phase::ProbeBwUp,
            Self::ProbeRtt => Phase::ProbeRtt,
        }
    }

    /// Whether it is one of PROBE_BW's.
    pub const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// draft, IsProbingBW(): the short-term bounds do not apply.
    pub const fn is_probing_bw(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Pacing gain and window gain, in 1/256.
    pub const fn gains(self) -> (u32, u32) {
        match self {
            Self::Startup => (STARTUP_PACING_GAIN, CWND_GAIN),
            Self::Drain => (DRAIN_PACING_GAIN, CWND_GAIN),
            Self::Down => (DOWN_PACING_GAIN, CWND_GAIN),
            Self::Cruise | Self::Refill => (UNIT, CWND_GAIN),
            Self::Up => (UP_PACING_GAIN, UP_CWND_GAIN),
            // The window is capped at half a BDP besides.
            Self::ProbeRtt => (UNIT, UNIT),
        }
    }

    /// Whether the state machine goes from here to `to`. STARTUP can come after all others, and REFILL after itself, where a loss that had
    /// ended STARTUP or UP proves spurious.
    pub const fn may_become(self, to: Self) -> bool {
        match to {
            Self::Startup => !matches!(self, Self::Startup),
            Self::Drain => matches!(self, Self::Startup),
            Self::Down => matches!(self, Self::Drain | Self::Up | Self::ProbeRtt),
            Self::Cruise => matches!(self, Self::Down),
            Self::Refill => matches!(self, Self::Drain | Self::Down | Self::Cruise | Self::Refill),
            Self::Up => matches!(self, Self::Refill),
            Self::ProbeRtt => !matches!(self, Self::ProbeRtt),
        }
    }
}

impl Bbr3 {
    /// The only place where the mode changes.
    pub(super) fn enter(&mut self, x: &mut Call<'_>, mode: Mode) {
        let from = self.state.mode;
        debug_assert!(from.may_become(mode), "{from:?} does not become {mode:?}");
        self.state.mode = mode;
        x.observer.transition(x.conn.now, from.phase(), mode.phase());
    }
}
