use units::{Duration, Rate};

/// Bytes of the record.
const LENGTH: usize = 52;
/// "No bound".
const NONE: u32 = u32::MAX;

/// A state of BBRv3's state machine, PROBE_BW's four phases each as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Doubling the rate each round trip.
    Startup,
    /// Emptying the queue that STARTUP built.
    Drain,
    /// Below the bandwidth, to make room.
    Down,
    /// At the bandwidth.
    Cruise,
    /// At the bandwidth for one round trip, to fill the pipe before a probe.
    Refill,
    /// Above the bandwidth, probing for more.
    Up,
    /// A low window for a moment, to measure the path's RTT without its queue.
    ProbeRtt,
}

impl Mode {
    /// Every mode, in the order of `enum bbr3_mode`.
    pub const ALL: [Self; 7] =
        [Self::Startup, Self::Drain, Self::Down, Self::Cruise, Self::Refill, Self::Up, Self::ProbeRtt];

    /// The draft's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "STARTUP",
            Self::Drain => "DRAIN",
            Self::Down => "PROBE_BW_DOWN",
            Self::Cruise => "PROBE_BW_CRUISE",
            Self::Refill => "PROBE_BW_REFILL",
            Self::Up => "PROBE_BW_UP",
            Self::ProbeRtt => "PROBE_RTT",
        }
    }

    /// From `bbr_phase` of the kernel's record.
    fn from_phase(phase: u8) -> Option<Self> {
        match phase {
            1 => Some(Self::Startup),
            2 => Some(Self::Drain),
            3 => Some(Self::ProbeRtt),
            4 => Some(Self::Up),
            5 => Some(Self::Down),
            6 => Some(Self::Cruise),
            7 => Some(Self::Refill),
            _ => None,
        }
    }
}

/// One socket's state, from the first 52 bytes of its `bbr3_state` storage: the layout of `struct tcp_bbr_info` that kernels
/// with BBRv2 or BBRv3 of their own return for `TCP_CC_INFO`, so this reads theirs too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Monitor {
    /// The state.
    pub mode: Mode,
    /// Estimated bandwidth, all bounds applied.
    pub bandwidth: Rate,
    /// The long-term maximum.
    pub max_bandwidth: Rate,
    /// The short-term bound, where there is one.
    pub bandwidth_lo: Option<Rate>,
    /// Minimum RTT; none as long as there is no measurement.
    pub min_rtt: Option<Duration>,
    /// Pacing gain in 1/256.
    pub pacing_gain: u32,
    /// Window gain in 1/256.
    pub cwnd_gain: u32,
    /// Short-term bound on packets in flight, where there is one.
    pub inflight_lo: Option<u32>,
    /// Long-term bound on packets in flight, where there is one.
    pub inflight_hi: Option<u32>,
    /// Packets added to the window for ACK aggregation.
    pub extra_acked: u32,
}

/// Not a record that this crate knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MonitorError {
    /// Shorter than the record.
    #[error("a BBR record has 52 bytes, this has {0}")]
    TooShort(usize),
    /// Written by another version of BBR.
    #[error("a BBR record of version {0}, not 3")]
    Version(u8),
    /// A phase that does not exist.
    #[error("a BBR record with the unknown phase {0}")]
    Phase(u8),
}

impl Monitor {
    /// Reads the record. Bytes after it are not looked at.
    ///
    /// # Errors
    /// [`MonitorError`], where it is not one of version 3.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MonitorError> {
        let record = bytes.first_chunk::<LENGTH>().ok_or(MonitorError::TooShort(bytes.len()))?;
        let word = |index: usize| {
            let at = index * 4;
            u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let rate = |low: usize| (u64::from(word(low + 1)) << 32) | u64::from(word(low));
        let [_, phase, _, version] = word(9).to_ne_bytes();
        if version != 3 {
            return Err(MonitorError::Version(version));
        }
        let bound = |value: u32| (value != NONE).then_some(value);
        Ok(Self {
            mode: Mode::from_phase(phase).ok_or(MonitorError::Phase(phase))?,
            bandwidth: bytes_per_second(rate(0)),
            max_bandwidth: bytes_per_second(rate(5)),
            bandwidth_lo: (rate(7) != u64::MAX).then(|| bytes_per_second(rate(7))),
            min_rtt: bound(word(2)).map(|micros| Duration::from_micros(u64::from(micros))),
            pacing_gain: word(3),
            cwnd_gain: word(4),
            inflight_lo: bound(word(10)),
            inflight_hi: bound(word(11)),
            extra_acked: word(12),
        })
    }
}

fn bytes_per_second(bytes: u64) -> Rate {
    Rate::from_bps(bytes.saturating_mul(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(phase: u8, version: u8, inflight_hi: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [5_000_000, 0, 40_000, 320, 576, 0, 1, u32::MAX, u32::MAX] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend([2, phase, 0, version]);
        for word in [u32::MAX, inflight_hi, 12] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn a_record_of_the_kernels_layout_is_read() {
        let monitor = Monitor::from_bytes(&record(4, 3, 330)).unwrap();
        assert_eq!(monitor.mode, Mode::Up);
        assert_eq!(monitor.bandwidth, Rate::from_mbps(40));
        assert_eq!(monitor.max_bandwidth, Rate::from_bps((1 << 32) * 8));
        assert_eq!(monitor.bandwidth_lo, None);
        assert_eq!(monitor.min_rtt, Some(Duration::from_millis(40)));
        assert_eq!((monitor.pacing_gain, monitor.cwnd_gain), (320, 576));
        assert_eq!((monitor.inflight_lo, monitor.inflight_hi, monitor.extra_acked), (None, Some(330), 12));
    }

    #[test]
    fn a_record_of_another_kind_is_refused() {
        assert_eq!(Monitor::from_bytes(&[0; 20]), Err(MonitorError::TooShort(20)));
        assert_eq!(Monitor::from_bytes(&record(4, 2, 0)), Err(MonitorError::Version(2)));
        assert_eq!(Monitor::from_bytes(&record(9, 3, 0)), Err(MonitorError::Phase(9)));
    }
}
