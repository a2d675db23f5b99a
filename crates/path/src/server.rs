//! The bottleneck's transmitter: when a packet starts and when its last bit is out.
//!
//! Work is counted in 10^-9 bit, of which a link of `r` bit/s does exactly `r` each nanosecond. A transmission ends at a whole
//! nanosecond plus an overhang of less than one; the overhang is carried into the next packet of the same busy period, so
//! rounding never accumulates. What others see is the end rounded up to a whole nanosecond.

use alloc::vec::Vec;

use units::{Bytes, Duration, Instant, Rate};

use crate::config::{RateModel, Trace};

/// Work of one byte.
pub(crate) const NANOBITS_PER_BYTE: u64 = 8_000_000_000;
/// Largest packet the arithmetic is made for; larger ones are served as if they were this large.
const MAX_PACKET: u64 = 1 << 30;
/// A mahimahi opportunity carries one MTU.
const OPPORTUNITY_BYTES: u64 = 1500;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Work of `bytes`; below 2^63.1.
pub(crate) fn nanobits(bytes: u64) -> u64 {
    bytes.min(MAX_PACKET) * NANOBITS_PER_BYTE
}

/// How packets get out, one after the other.
#[derive(Debug)]
pub(crate) enum Server {
    Unlimited,
    Constant(Constant),
    Steps(Steps),
    Trace(Opportunities),
}

impl Server {
    pub(crate) fn new(model: &RateModel) -> Self {
        match model {
            RateModel::Unlimited => Self::Unlimited,
            RateModel::Constant(rate) => Self::Constant(Constant::new(rate.as_bps())),
            RateModel::Steps(steps) => Self::Steps(Steps::new(
                steps.iter().map(|(from, rate)| (from.as_nanos(), rate.as_bps())).collect::<Vec<_>>(),
            )),
            RateModel::Trace(trace) => Self::Trace(Opportunities::new(trace)),
        }
    }

    /// The rate right now, or the mean one of a trace.
    pub(crate) fn rate(&self) -> Rate {
        match self {
            Self::Unlimited => Rate::ZERO,
            Self::Constant(constant) => Rate::from_bps(constant.rate),
            Self::Steps(steps) => Rate::from_bps(steps.steps[steps.current].1),
            Self::Trace(trace) => {
                let bytes = Bytes::new(OPPORTUNITY_BYTES).saturating_mul(trace.trace.len() as u64);
                Rate::from_transfer(bytes, Duration::from_nanos(trace.period))
            }
        }
    }

    /// A packet arrives while nothing waits and nothing is in service.
    #[inline]
    pub(crate) fn wake(&mut self, now: Instant) {
        match self {
            Self::Unlimited => {}
            Self::Constant(constant) => constant.clock = Clock { at: now.as_nanos(), overhang: 0 },
            Self::Steps(steps) => steps.wake(now.as_nanos()),
            Self::Trace(trace) => trace.wake(now.as_nanos()),
        }
    }

    /// When the next waiting packet is taken from the queue, given that the one before is out.
    #[inline]
    pub(crate) fn next_start(&self) -> Instant {
        match self {
            Self::Unlimited => Instant::ZERO,
            Self::Constant(constant) => constant.clock.visible(),
            Self::Steps(steps) => steps.clock.visible(),
            Self::Trace(trace) => Instant::from_nanos(trace.next_start()),
        }
    }

    /// Sends a packet of `size` bytes from `next_start` on; returns when its last bit is out.
    #[inline]
    pub(crate) fn send(&mut self, size: Bytes) -> Instant {
        match self {
            Self::Unlimited => Instant::ZERO,
            Self::Constant(constant) => constant.send(size.as_u64()),
            Self::Steps(steps) => steps.send(size.as_u64()),
            Self::Trace(trace) => trace.send(size.as_u64()),
        }
    }
}

/// End of the last transmission: `at` plus the time that `overhang` takes, which is less than a nanosecond.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    at: u64,
    overhang: u64,
}

impl Clock {
    #[inline]
    fn visible(self) -> Instant {
        Instant::from_nanos(self.at.saturating_add(u64::from(self.overhang > 0)))
    }
}

/// One rate for ever.
#[derive(Debug)]
pub(crate) struct Constant {
    rate: u64,
    clock: Clock,
    /// Size of the packet before with its quotient and rest: packets of one size cost no division.
    size: u64,
    whole: u64,
    rest: u64,
}

impl Constant {
    fn new(rate: u64) -> Self {
        Self { rate, clock: Clock::default(), size: 0, whole: 0, rest: 0 }
    }

    #[inline]
    fn send(&mut self, size: u64) -> Instant {
        if size != self.size {
            let work = nanobits(size);
            (self.size, self.whole, self.rest) = (size, work / self.rate, work % self.rate);
        }
        let Clock { at, overhang } = &mut self.clock;
        *at = at.saturating_add(self.whole);
        *overhang += self.rest;
        if *overhang >= self.rate {
            *overhang -= self.rate;
            *at = at.saturating_add(1);
        }
        self.clock.visible()
    }
}

/// A rate that changes at known times, also in the middle of a packet.
#[derive(Debug)]
pub(crate) struct Steps {
    /// Start and rate; the first start is not used.
    steps: Vec<(u64, u64)>,
    current: usize,
    clock: Clock,
}

impl Steps {
    fn new(steps: Vec<(u64, u64)>) -> Self {
        Self { steps, current: 0, clock: Clock::default() }
    }

    /// End of the current step.
    fn end(&self) -> Option<u64> {
        self.steps.get(self.current + 1).map(|(start, _)| *start)
    }

    fn wake(&mut self, now: u64) {
        self.clock = Clock { at: now, overhang: 0 };
        while self.end().is_some_and(|end| end <= now) {
            self.current += 1;
        }
    }

    #[inline]
    fn send(&mut self, size: u64) -> Instant {
        let mut work = u128::from(nanobits(size)) + u128::from(self.clock.overhang);
        let mut at = self.clock.at;
        loop {
            let rate = u128::from(self.steps[self.current].1);
            let room = self.end().map(|end| u128::from(end.saturating_sub(at)) * rate);
            match (room, self.end()) {
                (Some(room), Some(end)) if room < work => {
                    work -= room;
                    at = end;
                    self.current += 1;
                }
                _ => {
                    let whole = u64::try_from(work / rate).unwrap_or(u64::MAX);
                    self.clock = Clock { at: at.saturating_add(whole), overhang: (work % rate) as u64 };
                    return self.clock.visible();
                }
            }
        }
    }
}

/// Mahimahi's packet-delivery schedule, as the mm-link manual page defines it: each line of a trace is a moment at which 1500
/// bytes can leave; they are counted in bytes, so that several small packets share one and a packet may need the next one too;
/// what finds no waiting packet at its moment is wasted; the trace wraps around. A packet that arrives at the very
/// moment of an opportunity is too late for it.
#[derive(Debug)]
pub(crate) struct Opportunities {
    trace: Vec<u32>,
    /// Nanoseconds of one turn.
    period: u64,
    /// The next opportunity: complete turns before it, and its place in the trace.
    turn: u64,
    next: usize,
    /// Moment of the last opportunity taken, and what is left of it.
    open_at: u64,
    left: u64,
}

impl Opportunities {
    fn new(trace: &Trace) -> Self {
        let period = trace.opportunities_ms.last().map_or(1, |last| u64::from(*last) * NANOS_PER_MILLI);
        Self { trace: trace.opportunities_ms.clone(), period, turn: 0, next: 0, open_at: 0, left: 0 }
    }

    fn next_opportunity(&self) -> u64 {
        let within = u64::from(self.trace[self.next]) * NANOS_PER_MILLI;
        self.turn.saturating_mul(self.period).saturating_add(within)
    }

    fn next_start(&self) -> u64 {
        if self.left > 0 { self.open_at } else { self.next_opportunity() }
    }

    /// Everything up to and including `now` is wasted.
    fn wake(&mut self, now: u64) {
        self.left = 0;
        self.turn = now / self.period;
        let within = now % self.period;
        // The last entry is at `period`, after every `within`: there always is a next one in this turn.
        self.next = self.trace.partition_point(|entry| u64::from(*entry) * NANOS_PER_MILLI <= within);
    }

    fn open(&mut self) {
        self.open_at = self.next_opportunity();
        self.left = OPPORTUNITY_BYTES;
        self.next += 1;
        if self.next == self.trace.len() {
            self.next = 0;
            self.turn += 1;
        }
    }

    #[inline]
    fn send(&mut self, size: u64) -> Instant {
        let mut waiting = size.min(MAX_PACKET);
        loop {
            if self.left == 0 {
                self.open();
            }
            let part = waiting.min(self.left);
            waiting -= part;
            self.left -= part;
            if waiting == 0 {
                return Instant::from_nanos(self.open_at);
            }
        }
    }
}
