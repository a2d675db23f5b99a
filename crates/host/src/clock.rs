//! The one time base of an experiment.

use nix::time::{ClockId, clock_gettime};
use units::{Duration, Instant};

/// A clock whose zero is an experiment's start, on `CLOCK_MONOTONIC`.
///
/// Every thread of an experiment carries a copy, so that instants of the emulator, the traffic and the probes compare directly:
/// both ends run on one machine, and `CLOCK_MONOTONIC` is the same in every network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    epoch_nanos: u64,
}

impl Clock {
    /// A clock that reads zero now.
    pub fn start() -> Self {
        Self { epoch_nanos: monotonic_nanos() }
    }

    /// The time since the start.
    pub fn now(&self) -> Instant {
        self.from_monotonic_nanos(monotonic_nanos())
    }

    /// What this clock reads when `CLOCK_MONOTONIC` stands at `nanos`; zero for a time before the start.
    pub fn from_monotonic_nanos(&self, nanos: u64) -> Instant {
        Instant::from_nanos(nanos.saturating_sub(self.epoch_nanos))
    }

    /// Where `CLOCK_MONOTONIC` stands when this clock reads `at`, in nanoseconds: for timers with absolute times.
    pub fn monotonic_nanos_at(&self, at: Instant) -> u64 {
        self.epoch_nanos.saturating_add(at.as_nanos())
    }

    /// The time until `at`, zero where it has passed.
    pub fn until(&self, at: Instant) -> Duration {
        at.since(self.now())
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds, by the vDSO: no system call.
fn monotonic_nanos() -> u64 {
    // It fails only for an unknown clock or a bad pointer, and every Linux has this clock.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists on every Linux");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_starts_near_zero_and_never_runs_backwards() {
        let clock = Clock::start();
        let first = clock.now();
        let second = clock.now();
        assert!(second >= first);
        assert!(first < Instant::from_nanos(1_000_000_000), "just started, but reads {first}");
    }

    #[test]
    fn monotonic_readings_convert_both_ways_and_earlier_ones_count_as_the_start() {
        let clock = Clock { epoch_nanos: 5_000 };
        assert_eq!(clock.from_monotonic_nanos(7_500), Instant::from_nanos(2_500));
        assert_eq!(clock.from_monotonic_nanos(4_000), Instant::ZERO);
        assert_eq!(clock.monotonic_nanos_at(Instant::from_nanos(2_500)), 7_500);
    }
}
